//! The sink: takes the records of any number of sources, and has each written once and in order.

use crate::endpoint::{BACK, FAULT, FORTH, NAME_TAKEN, PATIENT, endpoint};
use crate::message::{FromSink, FromSource, Message as _, Messages, SourceHeartbeat};
use crate::sink_access::SourceAccess;
use crate::sink_files::{Block, FileReply, FileRequest, Files};
use crate::source_name::Name;
use crate::source_thread::{RunningLoop, StopFlag};
use byway_engine::connection::Event;
use byway_engine::{Config, Connection, Endpoint, EndpointEvent, Handle};
use byway_net::{Carrier, Clock, Control, Listener, LoopControl, Owner, Ready, Socket, Waker};
use byway_transfer::close::CloseCode;
use byway_transfer::{Entrance, Error, Identity, RelayDialer, Secret};
use byway_wire::relay::{Consent, Word};
use byway_wire::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread::Builder;

/// Sources at once.
const MOST: usize = 1024;
/// News that wait for the program.
const NEWS: usize = 256;
/// What a source's block may hold before nothing more is read of it.
const BLOCK: usize = 256 << 10;
/// A block is written when it holds so much, or after so long.
const ENOUGH: usize = 32 << 10;
const SOON: Duration = Duration::from_millis(150);
/// How often every source is looked at, though nothing was heard of it.
const LOOK: Duration = Duration::from_millis(20);
/// Bytes of a source read at once.
const PIECE: usize = 16 << 10;
/// How often a source is told how far its records are written, though nothing changed.
const WORD: Duration = Duration::from_secs(1);
/// The sink tells a source how far its records are written: at most every `NEXT_WORD`, or at once
/// after `WORTH_A_WORD` more bytes were written. Each such message costs a packet in both
/// directions.
const NEXT_WORD: Duration = Duration::from_millis(250);
const WORTH_A_WORD: u64 = 16 << 10;
/// How often the program is told how sources do.
const REPORT: Duration = Duration::from_secs(1);
/// A source of which nothing was heard for so long leaves its name to another. A living one is
/// heard every second.
const SILENT: Duration = Duration::from_secs(3);
/// How long a connection may be there without a word of who it is.
const HELLO: Duration = Duration::from_secs(20);
/// UDP to relays is waited for so long before TCP.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long to stay after the end, so that a CLOSE that is lost can be said again.
const LINGER: Duration = Duration::from_millis(200);

/// How to take records.
pub struct SinkPlan {
    /// This host.
    pub identity: Identity,
    /// What the ticket says.
    pub permission: Secret<[u8; 16]>,
    /// Where to write.
    pub directory: PathBuf,
    /// Whether what is told as written survives a loss of power.
    pub sync: bool,
    /// Relays to stand at.
    pub relays: Vec<Word>,
    /// For greeting relays.
    pub sockets: Vec<Socket>,
    /// To listen on.
    pub listeners: Vec<Listener>,
    /// How sessions behave.
    pub config: Config,
}

/// What a sink tells.
#[derive(Clone, Debug)]
pub enum SinkEvent {
    /// A relay by which sources may come.
    Reachable {
        /// The relay.
        relay: SocketAddr,
        /// This host's address as the relay sees it.
        address: SocketAddr,
        /// The consent to be reached there.
        consent: Consent,
    },
    /// A source came.
    Came(Name),
    /// A source is gone: why.
    Gone(Name, String),
    /// Something that a person should know.
    Warning(String),
    /// How the sources do, about once a second.
    Report(Vec<SourceReport>),
}

/// How a source does.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceReport {
    /// Its name.
    pub name: Name,
    /// Bytes of records that were written in the last second or so, per second.
    pub rate: f64,
    /// Bytes per second that it asks for.
    pub demand: u64,
    /// Records that it has and that are not written.
    pub lag: u64,
    /// For how long the oldest of them waits, in seconds.
    pub lag_seconds: f64,
    /// Numbers that have no record, since the file began.
    pub lost: u64,
    /// Records written, since the file began.
    pub written: u64,
    /// Bytes that came over each of its paths.
    pub paths: Vec<(String, u64)>,
}

/// A sink that runs.
pub type Sink = RunningLoop<SinkOwner, SinkEvent>;

impl Sink {
    /// Starts.
    ///
    /// # Errors
    /// The system gives no thread or descriptor.
    pub fn start(plan: SinkPlan) -> Result<Self, Error> {
        let control = Control::new().map_err(Error::Descriptor)?;
        let (news, inbox) = sync_channel(NEWS);
        let (asks, asked) = sync_channel(4 * MOST);
        let (answers, answered) = sync_channel(4 * MOST);
        let gate = SourceAccess {
            permission: plan.permission,
            protocol: crate::PROTOCOL.parse().unwrap_or_default(),
            seed: u64::from_be_bytes(byway_net::seed()?),
        };
        let config = Config { tau: PATIENT, ..plan.config };
        let endpoint = endpoint(&plan.identity, config, Some(Box::new(gate)))?;
        let requests = Arc::new(StopFlag::default());
        let files = Files::new(plan.directory, plan.sync, answers, control.waker().clone());
        Builder::new().name("byway write".into()).spawn(move || files.run(&asked)).map_err(Error::Thread)?;
        let owner = SinkOwner {
            relay_dialer: RelayDialer::new(control.watch(), plan.relays.iter()),
            relays: plan.relays,
            entrance: Entrance::new(control.watch(), plan.listeners).map_err(Error::Descriptor)?,
            begun_at: None,
            sources: BTreeMap::new(),
            sessions: 0,
            news,
            asks,
            answers: answered,
            waker: control.waker().clone(),
            requests: Arc::clone(&requests),
            look_at: Instant::ZERO,
            report_at: Instant::ZERO,
            leave_at: None,
            scratch: vec![0; PIECE],
        };
        let driver =
            byway_net::spawn_with(control, "byway sink", endpoint, owner, plan.sockets, Clock::new())
                .map_err(Error::Thread)?;
        Ok(Self::new(driver, inbox, requests))
    }
}

/// A source that is connected.
struct Connected {
    /// The name of the session for the thread that writes.
    session: u64,
    came_at: Instant,
    heard_at: Instant,
    who: Option<(Name, [u8; 16])>,
    messages: Messages,
    /// Records that came and are not with the thread that writes.
    block: Block,
    block_since: Option<Instant>,
    /// Bytes of the block before: room that this one will use.
    block_before: usize,
    /// Whether it has the file open, and whether a block is being written.
    open: bool,
    writing: bool,
    next: u64,
    written: u64,
    lost: u64,
    bytes: u64,
    beat: SourceHeartbeat,
    ended: bool,
    /// What is to be said, from `said` on.
    back: Vec<u8>,
    word_at: Instant,
    /// Bytes written when that was last told, and when.
    told: (u64, Instant),
    /// What was written when it was last reported, and when.
    reported: (u64, Instant),
    fault: Option<(u64, String)>,
}

impl Connected {
    fn new(session: u64, now: Instant) -> Self {
        Self {
            session,
            came_at: now,
            heard_at: now,
            who: None,
            messages: Messages::default(),
            block: Block::default(),
            block_since: None,
            block_before: 0,
            open: false,
            writing: false,
            next: 0,
            written: 0,
            lost: 0,
            bytes: 0,
            beat: SourceHeartbeat::default(),
            ended: false,
            back: Vec::new(),
            word_at: now,
            told: (0, now),
            reported: (0, now),
            fault: None,
        }
    }

    fn blame(&mut self, code: u64, sentence: impl Into<String>) {
        self.fault.get_or_insert_with(|| (code, sentence.into()));
    }

    fn say(&mut self, now: Instant, message: FromSink) {
        message.write(&mut self.back);
        self.word_at = now + WORD;
        self.told = (self.bytes, now);
    }

    /// Takes in what the source says. A HELLO is given back.
    fn on_message(&mut self, now: Instant, message: FromSource) -> Option<(Name, [u8; 16])> {
        self.heard_at = now;
        match message {
            FromSource::Hello { name, run } if self.who.is_none() => return Some((name, run)),
            FromSource::Beat(beat) if self.open => self.beat = beat,
            FromSource::From(number) if self.open && number >= self.next => {
                self.skip(now, number - self.next);
            }
            FromSource::Skipped(count) if self.open => self.skip(now, count),
            FromSource::Record(record) if self.open => {
                self.block_since.get_or_insert(now);
                if self.block.bytes.is_empty() {
                    self.block.bytes.reserve(self.block_before.max(record.len()));
                }
                self.block.bytes.extend_from_slice(&record);
                self.block.records += 1;
                self.next += 1;
            }
            FromSource::End if self.open => self.ended = true,
            _ => self.blame(FAULT, "what the source says makes no sense"),
        }
        None
    }

    fn skip(&mut self, now: Instant, count: u64) {
        if count > 0 {
            self.block_since.get_or_insert(now);
            self.block.lost = self.block.lost.saturating_add(count);
            self.next = self.next.saturating_add(count);
        }
    }

    /// The block that is to be written now.
    fn due(&mut self, now: Instant) -> Option<Block> {
        let since = self.block_since?;
        let due = self.block.bytes.len() >= ENOUGH || self.ended || now.since(since) >= SOON;
        if self.writing || !due {
            return None;
        }
        self.writing = true;
        self.block_since = None;
        self.block_before = self.block.bytes.len();
        Some(std::mem::take(&mut self.block))
    }
}

/// The owner of a sink's endpoint.
pub struct SinkOwner {
    relay_dialer: RelayDialer,
    relays: Vec<Word>,
    entrance: Entrance,
    begun_at: Option<Instant>,
    sources: BTreeMap<Handle, Connected>,
    /// Sessions so far.
    sessions: u64,
    news: SyncSender<SinkEvent>,
    asks: SyncSender<FileRequest>,
    answers: Receiver<FileReply>,
    waker: Waker,
    requests: Arc<StopFlag>,
    look_at: Instant,
    report_at: Instant,
    leave_at: Option<Instant>,
    scratch: Vec<u8>,
}

impl Owner for SinkOwner {
    type Machine = Endpoint;

    fn ready(&mut self, _: &mut Endpoint, ready: Ready, _: Instant) {
        if !self.entrance.ready(ready) {
            self.relay_dialer.ready(ready);
        }
    }

    fn opened(&mut self) -> Vec<Carrier> {
        self.entrance.opened().chain(self.relay_dialer.opened()).collect()
    }

    fn turn(&mut self, endpoint: &mut Endpoint, now: Instant) -> LoopControl {
        if self.entrance.turn() {
            self.waker.wake();
        }
        self.stand(endpoint, now);
        while let Some(event) = endpoint.next_event() {
            self.on_event(endpoint, event, now);
        }
        self.take_answers(now);
        while let Some(handle) = endpoint.next_with_streams() {
            self.drive(endpoint, handle, now);
        }
        if now >= self.look_at {
            self.look_at = now + LOOK;
            let handles: Vec<Handle> = self.sources.keys().copied().collect();
            for handle in handles {
                self.drive(endpoint, handle, now);
            }
        }
        if now >= self.report_at {
            self.report_at = now + REPORT;
            let report = self.report(endpoint, now);
            self.tell(SinkEvent::Report(report));
        }
        if self.requests.is_stopped() {
            let leave_at = *self.leave_at.get_or_insert_with(|| {
                for handle in endpoint.handles().collect::<Vec<_>>() {
                    endpoint.close(now, handle, CloseCode::Interrupted.number(), "the sink was stopped");
                }
                now + LINGER
            });
            if now >= leave_at || endpoint.handles().next().is_none() {
                return LoopControl::Stop;
            }
        }
        LoopControl::Continue
    }
}

impl SinkOwner {
    /// Stands at its relays.
    fn stand(&mut self, endpoint: &mut Endpoint, now: Instant) {
        for word in std::mem::take(&mut self.relays) {
            if let Err(trouble) = endpoint.stand_at(now, &word) {
                let relay = word.relays().first().map(ToString::to_string).unwrap_or_default();
                self.tell(SinkEvent::Warning(format!(
                    "relay {relay}: {trouble}; nobody will come through it"
                )));
            }
        }
        let begun = *self.begun_at.get_or_insert(now);
        let served = |relay| endpoint.leads_to(relay) || endpoint.stands_at(relay);
        self.relay_dialer.look(now, now.since(begun) >= PATIENCE, served);
    }

    fn on_event(&mut self, endpoint: &mut Endpoint, event: EndpointEvent, now: Instant) {
        match event {
            EndpointEvent::Accepted(handle) => {
                if self.sources.len() >= MOST {
                    endpoint.close(
                        now,
                        handle,
                        CloseCode::Failed.number(),
                        "the sink has as many sources as it takes",
                    );
                    return;
                }
                if let Some(connection) = endpoint.connection_mut(handle) {
                    connection.outgoing().open_stream(BACK);
                }
                self.sessions += 1;
                self.sources.insert(handle, Connected::new(self.sessions, now));
            }
            EndpointEvent::Closed(handle) => {
                let reason = endpoint.connection_mut(handle).map_or_else(String::new, closed_because);
                self.leave(handle, &reason);
                endpoint.forget(handle);
            }
            EndpointEvent::Reachable { relay, address, consent } => {
                self.tell(SinkEvent::Reachable { relay, address, consent });
            }
            EndpointEvent::StandingTrouble(relay, trouble) => {
                self.tell(SinkEvent::Warning(format!(
                    "relay {relay}: {trouble}; nobody will come through it"
                )));
            }
            EndpointEvent::Connected(_) | EndpointEvent::Failed(..) | EndpointEvent::RelayTrouble(..) => {}
        }
    }

    fn leave(&mut self, handle: Handle, why: &str) {
        if let Some(source) = self.sources.remove(&handle) {
            self.ask(FileRequest::Close(source.session));
            if let Some((name, _)) = source.who {
                self.tell(SinkEvent::Gone(name, why.to_owned()));
            }
        }
    }

    fn drive(&mut self, endpoint: &mut Endpoint, handle: Handle, now: Instant) {
        let Some(connection) = endpoint.connection_mut(handle) else { return };
        let Some(source) = self.sources.get_mut(&handle) else { return };
        while connection.incoming().next_event().is_some() || connection.outgoing().next_event().is_some() {}
        let mut hello = None;
        while source.fault.is_none()
            && hello.is_none()
            && (source.open || source.who.is_none())
            && source.block.bytes.len() < BLOCK
            && let Some(read) = connection.incoming().read(FORTH, &mut self.scratch)
        {
            let bytes = self.scratch.get(..read.length).unwrap_or_default();
            let mut messages = std::mem::take(&mut source.messages);
            let pushed = messages.push(bytes, |message| {
                if let Some(said) = source.on_message(now, message) {
                    hello = Some(said);
                }
            });
            source.messages = messages;
            if let Err(error) = pushed {
                source.blame(FAULT, format!("what the source says makes no sense: {error}"));
            }
            if read.length == 0 || read.finished {
                break;
            }
        }
        if source.who.is_none() && hello.is_none() && now.since(source.came_at) >= HELLO {
            source.blame(FAULT, "the source did not say who it is");
        }
        if let Some(hello) = hello {
            self.greet(endpoint, handle, hello, now);
        }
        let Some(source) = self.sources.get_mut(&handle) else { return };
        if let Some((code, sentence)) = source.fault.take() {
            self.leave(handle, &sentence);
            endpoint.close(now, handle, code, &sentence);
            return;
        }
        let due = source.due(now).map(|block| FileRequest::Write(source.session, block));
        if source.open && now >= source.word_at {
            let word = FromSink::Written(source.written);
            source.say(now, word);
        }
        if let Some(connection) = endpoint.connection_mut(handle)
            && !source.back.is_empty()
        {
            let taken = connection.outgoing().write(BACK, &source.back);
            source.back.drain(..taken);
        }
        if let Some(ask) = due {
            self.ask(ask);
        }
    }

    /// A source says who it is.
    fn greet(
        &mut self,
        endpoint: &mut Endpoint,
        handle: Handle,
        (name, run): (Name, [u8; 16]),
        now: Instant,
    ) {
        let same = self.sources.iter().find_map(|(other, source)| {
            let (known, known_run) = source.who.as_ref()?;
            (*known == name).then_some((*other, *known_run == run, now.since(source.heard_at) >= SILENT))
        });
        if let Some((other, is_itself, is_silent)) = same {
            if !is_itself && !is_silent {
                let Some(source) = self.sources.get_mut(&handle) else { return };
                source.blame(
                    NAME_TAKEN,
                    format!(
                        "another source named {name} is connected: stop it first, or give another --name"
                    ),
                );
                return;
            }
            self.leave(other, "it came again");
            endpoint.close(now, other, CloseCode::Failed.number(), "a source of this name came again");
        }
        let Some(source) = self.sources.get_mut(&handle) else { return };
        source.who = Some((name.clone(), run));
        let ask = FileRequest::Open(source.session, name);
        self.ask(ask);
    }

    fn take_answers(&mut self, now: Instant) {
        loop {
            let answer = match self.answers.try_recv() {
                Ok(answer) => answer,
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return,
            };
            let session = match &answer {
                FileReply::Opened(session, _)
                | FileReply::Failed(session, _)
                | FileReply::Written(session, _)
                | FileReply::Refused(session, _) => *session,
            };
            let source = self.sources.values_mut().find(|source| source.session == session);
            let Some(source) = source else { continue };
            let mut news = None;
            match answer {
                FileReply::Opened(_, note) => {
                    (source.open, source.next, source.written) = (true, note.next, note.next);
                    (source.lost, source.bytes) = (note.lost, note.bytes);
                    source.reported = (note.bytes, now);
                    source.say(now, FromSink::Welcome(note.next));
                    news = source.who.clone().map(|(name, _)| SinkEvent::Came(name));
                }
                FileReply::Written(_, note) => {
                    source.writing = false;
                    (source.written, source.lost, source.bytes) = (note.next, note.lost, note.bytes);
                    let (bytes, at) = source.told;
                    if source.ended || note.bytes.saturating_sub(bytes) >= WORTH_A_WORD {
                        source.say(now, FromSink::Written(note.next));
                    } else {
                        source.word_at = source.word_at.min(at + NEXT_WORD);
                    }
                }
                FileReply::Failed(_, sentence) => {
                    source.blame(CloseCode::Failed.number(), sentence.clone());
                    news = Some(SinkEvent::Warning(sentence));
                }
                FileReply::Refused(_, sentence) => {
                    let held = "sources are held back until it can be written";
                    news = Some(SinkEvent::Warning(format!("{sentence}; {held}")));
                }
            }
            if let Some(news) = news {
                self.tell(news);
            }
        }
    }

    fn report(&mut self, endpoint: &Endpoint, now: Instant) -> Vec<SourceReport> {
        let mut reports = Vec::new();
        for (handle, source) in &mut self.sources {
            let Some((name, _)) = source.who.as_ref().filter(|_| source.open) else { continue };
            let (before, at) = std::mem::replace(&mut source.reported, (source.bytes, now));
            let seconds = now.since(at).as_secs_f64().max(1e-3);
            let arrivals = endpoint.connection(*handle).map(Connection::arrivals).unwrap_or_default();
            let paths = arrivals.into_iter().filter(|path| path.bytes > 0);
            let waiting = source.beat.produced.saturating_sub(source.written);
            reports.push(SourceReport {
                name: name.clone(),
                rate: source.bytes.saturating_sub(before) as f64 / seconds,
                demand: source.beat.demand,
                lag: waiting,
                lag_seconds: if waiting == 0 { 0.0 } else { source.beat.age_ms as f64 / 1e3 },
                lost: source.lost,
                written: source.written.saturating_sub(source.lost),
                paths: paths.map(|path| (byway_transfer::route_name(&path.route, &[]), path.bytes)).collect(),
            });
        }
        reports.sort_by(|a, b| a.name.cmp(&b.name));
        reports
    }

    /// There is room: what is asked of one session at once is bounded.
    fn ask(&self, ask: FileRequest) {
        if let Err(TrySendError::Full(ask)) = self.asks.try_send(ask) {
            // Only a disk that stands still leaves so much unanswered.
            let _ = self.asks.send(ask);
        }
    }

    /// What the program does not take is not worth waiting for.
    fn tell(&self, news: SinkEvent) {
        let _ = self.news.try_send(news);
    }
}

/// Why a connection is over.
fn closed_because(connection: &mut Connection) -> String {
    let mut why = String::from("its session is over");
    while let Some(event) = connection.next_event() {
        if let Event::Closed { code, reason, .. } = event {
            why = if code == 0 { String::from("it has sent all") } else { reason };
        }
    }
    why
}
