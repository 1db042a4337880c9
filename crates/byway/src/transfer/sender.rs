//! The sending end: an owner on the data plane's thread, and the handle by which a program runs it.

use super::feed::{Feed, MAILBOX, PipeFeed, TreeFeed};
use super::mailbox::mailbox;
use super::preamble::{Kind, Preamble};
use super::probe::{Move, Probe};
use super::reader::{self, TreeDone, TreeReader, UNKNOWN};
use super::running::Running;
use super::tally::{Counter, PathTally, state_name};
use super::{News, code_of, failure_of, route_name};
use crate::exit::{Exit, Failure};
use crate::identity::Identity;
use crate::ticket::Ticket;
use anyhow::{Context as _, Result};
use byway_control::{Class, Controller};
use byway_engine::connection::{Event, close};
use byway_engine::handshake::{self, PublicKey};
use byway_engine::seal::Suites;
use byway_engine::{Config, Connect, ConnectError, Endpoint, EndpointConfig, EndpointEvent, Handle, Reach};
use byway_files::{Journals, Source, SourceOptions};
use byway_net::{Clock, Control, Flow, Owner, Socket};
use byway_wire::relay::Word;
use byway_wire::{Duration, Instant, PathId};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

/// Pieces of standard input that wait to be sent.
const PIPED: usize = 16;
/// Events that wait for the program.
const NEWS: usize = 256;
/// How long to stay after the end, so that a CLOSE that is lost can be said again.
const LINGER: Duration = Duration::from_millis(200);
/// What to send.
pub enum Payload {
    /// Files and directories.
    Tree(Vec<PathBuf>),
    /// A stream.
    Pipe(Box<dyn Read + Send>),
}

/// What to send, whom to, and how.
pub struct SendingPlan {
    /// This host.
    pub identity: Identity,
    /// The receiver.
    pub ticket: Ticket,
    /// Relays besides those that the ticket names.
    pub relays: Vec<Word>,
    /// What to send.
    pub payload: Payload,
    /// Where to keep what another run needs in order to go on with a tree; `None`: nowhere.
    pub journals: Option<PathBuf>,
    /// Governs all paths.
    pub controller: Box<dyn Controller>,
    /// To send from: each adds paths.
    pub sockets: Vec<Socket>,
    /// How the session behaves.
    pub config: Config,
}

/// How it ended.
#[derive(Debug)]
pub struct Sent {
    /// `Ok`: the receiver has it all, except what is counted here. An error knows its exit code.
    pub outcome: Result<(), Failure>,
    /// Payload bytes that the receiver verified.
    pub bytes: u64,
    /// How many of them did not travel, since an earlier try had brought them.
    pub kept: u64,
    /// Files, directories and links in place.
    pub entries: u64,
    /// Entries that the receiver refused, or that were found damaged.
    pub failed: u64,
    /// Entries that could not be read.
    pub unsent: u64,
    /// Whether a hash disagreed.
    pub damaged: bool,
    /// From the connection to the receiver's last word.
    pub seconds: f64,
    /// Every path that there was.
    pub paths: Vec<PathTally>,
    /// The receiver was started anew meanwhile: the same again goes on from there.
    pub renewed: bool,
}

/// A transfer that runs.
pub type Sending = Running<Sender>;

impl Sending {
    /// Starts.
    ///
    /// # Errors
    /// What is to be sent does not exist or cannot be read; the system gives no thread.
    pub fn start(plan: SendingPlan) -> Result<Self> {
        let control = Control::new().context("cannot make an event descriptor")?;
        let (news, inbox) = sync_channel(NEWS);
        let journals = plan.journals.as_deref().map(|directory| (directory, &plan.ticket));
        let (feed, kind, transfer, reader) =
            start_feed(plan.payload, &plan.identity, journals, &control, &news)?;
        let locals = plan.sockets.iter().map(Socket::address).collect();
        let cap = plan.config.cap;
        let endpoint = Endpoint::new(EndpointConfig {
            identity: handshake::Identity::from_secret(*plan.identity.secret().expose()),
            suites: suites(),
            seed: byway_net::seed()?,
            connection: plan.config,
            admission: None,
            greeting: Vec::new(),
        });
        let permission = plan.ticket.permission.clone();
        let preamble = Preamble { kind, permission: permission.clone(), transfer };
        // A stream cannot be taken up again: nothing is asked for one.
        let question = Preamble { kind: Kind::Ping, permission, transfer: [0; 16] };
        let key = PublicKey(plan.ticket.key.0);
        let receiver = (key, plan.ticket.addresses.clone(), question.to_bytes().to_vec());
        let connect = Connect {
            peer: PublicKey(plan.ticket.key.0),
            addresses: plan.ticket.addresses.clone(),
            application: preamble.to_bytes().to_vec(),
            controller: plan.controller,
        };
        let reach = |relay: &crate::ticket::GreetedRelay| {
            let reach =
                Reach { word: relay.word.clone(), destination: relay.address, consent: relay.consent };
            (relay.word.clone(), Some(reach))
        };
        let relays = plan.relays.into_iter().map(|word| (word, None));
        let cancel = Arc::new(AtomicBool::new(false));
        let owner = Sender {
            connect: Some(connect),
            relays: plan.ticket.relays.iter().map(reach).chain(relays).collect(),
            handle: None,
            connected: false,
            feed,
            news,
            cancel: Arc::clone(&cancel),
            counter: Counter::default(),
            names: BTreeMap::new(),
            relays_known: BTreeSet::new(),
            notices: BTreeSet::new(),
            locals,
            ending: None,
            leave_at: None,
            cap,
            receiver,
            probe: Probe::default(),
            probing: None,
            renewed: false,
            reader,
        };
        let driver =
            byway_net::spawn_with(control, "byway send", endpoint, owner, plan.sockets, Clock::new())
                .context("cannot start a thread")?;
        Ok(Self::new(driver, inbox, cancel))
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// The data plane broke.
    pub fn join(self) -> Result<Sent> {
        let finished = self.finish()?;
        let mut owner = finished.owner;
        finished.outcome?;
        // The journals are another run's once this one's thread has put them down.
        owner.feed.hang_up();
        if let Some(reader) = owner.reader.take() {
            // Had it panicked, it was said.
            let _ = reader.join();
        }
        let ending = owner.ending.unwrap_or(Ending {
            outcome: Err(Failure::new(Exit::Error, "the transfer stopped before its end")),
            done: TreeDone::default(),
            seconds: 0.0,
        });
        let TreeDone { bytes, kept, entries, failed, unsent, damaged } = ending.done;
        let (outcome, seconds, paths) = (ending.outcome, ending.seconds, owner.counter.paths());
        let renewed = owner.renewed;
        Ok(Sent { outcome, bytes, kept, entries, failed, unsent, damaged, seconds, paths, renewed })
    }
}

/// Ciphers for this machine's processor.
pub(super) fn suites() -> Suites {
    Suites::SECURE
}

/// What gives the data, its kind, the transfer's name, and the thread that reads files.
type Started = (Feed, Kind, [u8; 16], Option<JoinHandle<()>>);

fn start_feed(
    payload: Payload,
    identity: &Identity,
    journals: Option<(&Path, &Ticket)>,
    control: &Control,
    news: &SyncSender<News>,
) -> Result<Started> {
    let waker = control.waker().clone();
    match payload {
        Payload::Tree(paths) => {
            let mut source = Source::open(&paths, SourceOptions::default())?;
            let transfer = transfer_of(identity, &paths);
            if let Some((directory, ticket)) = journals {
                let hash = blake3::hash(&[&transfer[..], &ticket.key.0].concat());
                match Journals::open(&directory.join(hash.to_hex().get(..32).unwrap_or_default())) {
                    Ok(journals) => source = source.with_journals(journals),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        let sentence = "another `byway send` is sending the same to the same receiver: \
                                        wait for it or stop it";
                        return Err(Failure::new(Exit::Error, sentence).into());
                    }
                    Err(error) => {
                        let directory = directory.display();
                        let sentence = format!(
                            "cannot keep notes in {directory} ({error}): a transfer that breaks off will begin anew"
                        );
                        let _ = news.try_send(News::Warning(sentence));
                    }
                }
            }
            let (asks, inbox) = mailbox(MAILBOX);
            let (answers, answered) = sync_channel(MAILBOX + 1);
            let reader = TreeReader { source, inbox, answers, news: news.clone(), waker, limit: None };
            let thread = Builder::new().name("byway read".into()).spawn(move || reader.run())?;
            let total = Arc::new(AtomicU64::new(UNKNOWN));
            let counted = Arc::clone(&total);
            let journals = journals.map(|(directory, _)| directory.to_owned());
            let aside = move || reader::aside(&paths, &counted, journals.as_deref());
            Builder::new().name("byway count".into()).spawn(aside)?;
            let feed = Feed::Tree(Box::new(TreeFeed::new(asks, answered, total)));
            Ok((feed, Kind::Tree, transfer, Some(thread)))
        }
        Payload::Pipe(input) => {
            let (answers, answered) = sync_channel(PIPED);
            let run = move || reader::read_pipe(input, &answers, &waker);
            Builder::new().name("byway read".into()).spawn(run)?;
            Ok((Feed::Pipe(Box::new(PipeFeed::new(answered))), Kind::Pipe, byway_net::seed()?, None))
        }
    }
}

/// Names a tree by who sends it and from where, so that a second try is known as one.
fn transfer_of(identity: &Identity, paths: &[PathBuf]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new_derive_key("byway 2026 transfer of a tree");
    hasher.update(&identity.public().0);
    for path in paths {
        let full = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let bytes = std::os::unix::ffi::OsStrExt::as_bytes(full.as_os_str());
        hasher.update(&(bytes.len() as u64).to_be_bytes());
        hasher.update(bytes);
    }
    let mut name = [0; 16];
    hasher.finalize_xof().fill(&mut name);
    name
}

struct Ending {
    outcome: Result<(), Failure>,
    done: TreeDone,
    seconds: f64,
}

/// The owner of a sending endpoint.
pub struct Sender {
    connect: Option<Connect>,
    relays: Vec<(Word, Option<Reach>)>,
    handle: Option<Handle>,
    connected: bool,
    feed: Feed,
    news: SyncSender<News>,
    cancel: Arc<AtomicBool>,
    counter: Counter,
    names: BTreeMap<PathId, String>,
    /// Relays that work, or of which it was said that they do not.
    relays_known: BTreeSet<SocketAddr>,
    /// What relays said of which path: once is enough.
    notices: BTreeSet<(PathId, u8)>,
    locals: Vec<SocketAddr>,
    ending: Option<Ending>,
    leave_at: Option<Instant>,
    /// What this side sends at most, in bytes per second.
    cap: Option<u64>,
    /// The receiver, to be asked whether it is there.
    receiver: (PublicKey, Vec<SocketAddr>, Vec<u8>),
    probe: Probe,
    probing: Option<Handle>,
    /// The receiver is there, but not the one that the connection is with.
    renewed: bool,
    reader: Option<JoinHandle<()>>,
}

impl Owner for Sender {
    type Machine = Endpoint;

    fn turn(&mut self, endpoint: &mut Endpoint, now: Instant) -> Flow {
        if let Some(connect) = self.connect.take() {
            self.begin(endpoint, now, connect);
        }
        while let Some(event) = endpoint.next_event() {
            self.on_event(event, now);
        }
        self.ask(endpoint, now);
        if let (Some(handle), true) = (self.handle, self.connected) {
            self.drive(endpoint, handle, now);
        }
        if self.ending.is_none() && self.cancel.load(Ordering::Acquire) {
            self.fail(Failure::new(Exit::Interrupted, "interrupted"), now);
        }
        let Some(ending) = &self.ending else { return Flow::Continue };
        let leave_at = *self.leave_at.get_or_insert_with(|| {
            let (code, reason) = match &ending.outcome {
                Ok(()) => (close::DONE, String::from("done")),
                Err(failure) => (code_of(failure.exit()), failure.to_string()),
            };
            if let Some(handle) = self.handle {
                endpoint.close(now, handle, code, &reason);
            }
            now + LINGER
        });
        let gone = self.handle.and_then(|handle| endpoint.connection(handle)).is_none_or(|it| it.is_closed());
        if gone || now >= leave_at { Flow::Stop } else { Flow::Continue }
    }
}

impl Sender {
    fn begin(&mut self, endpoint: &mut Endpoint, now: Instant, connect: Connect) {
        match endpoint.connect(now, connect) {
            Ok(handle) => {
                self.handle = Some(handle);
                for (word, reach) in std::mem::take(&mut self.relays) {
                    endpoint.add_relay(now, handle, &word, reach.as_ref());
                }
            }
            Err(error) => self.fail(not_connected(error), now),
        }
    }

    /// Finds out whether a receiver that fell silent was started anew.
    fn ask(&mut self, endpoint: &mut Endpoint, now: Instant) {
        if !self.connected || self.ending.is_some() || self.reader.is_none() {
            return;
        }
        match self.probe.judge(now, self.counter.silence(now)) {
            Move::Wait => {}
            Move::Ask => {
                let (peer, addresses, application) = self.receiver.clone();
                let controller = Class::Normal.controller(0);
                if let Some(before) = self.probing.take() {
                    endpoint.close(now, before, close::DONE, "done");
                }
                let connect = Connect { peer, addresses, application, controller };
                // Without a way to it, it is asked again later.
                self.probing = endpoint.connect(now, connect).ok();
            }
            Move::Renew => {
                self.renewed = true;
                let sentence = "the receiver was started anew: the same command goes on from there";
                self.fail(Failure::new(Exit::Network, sentence), now);
            }
        }
        if let Some(handle) = self.probing.filter(|_| self.counter.silence(now).is_zero()) {
            self.probing = None;
            endpoint.close(now, handle, close::DONE, "done");
        }
    }

    fn on_event(&mut self, event: EndpointEvent, now: Instant) {
        match event {
            EndpointEvent::Connected(handle) if Some(handle) == self.probing => self.probe.answered(now),
            EndpointEvent::Failed(handle, _) if Some(handle) == self.probing => self.probing = None,
            EndpointEvent::Connected(handle) | EndpointEvent::Failed(handle, _)
                if Some(handle) != self.handle => {}
            EndpointEvent::Connected(_) => {
                self.connected = true;
                self.counter.begin(now);
                self.tell(News::Begun);
            }
            EndpointEvent::Failed(_, error) => {
                self.handle = None;
                self.fail(not_connected(error), now);
            }
            EndpointEvent::RelayTrouble(_, relay, trouble) => {
                self.tell(News::Warning(format!(
                    "relay {relay}: {trouble}; the transfer goes on without it"
                )));
            }
            EndpointEvent::Accepted(_)
            | EndpointEvent::Closed(_)
            | EndpointEvent::Reachable { .. }
            | EndpointEvent::StandingTrouble(..) => {}
        }
    }

    fn drive(&mut self, endpoint: &mut Endpoint, handle: Handle, now: Instant) {
        let Some(connection) = endpoint.connection_mut(handle) else { return };
        while let Some(event) = connection.next_event() {
            let find = |path: PathId| connection.status().paths.into_iter().find(|it| it.id == path);
            let name = |path: PathId| find(path).map(|it| route_name(&it.route, &self.locals));
            match event {
                Event::Closed { code, reason, by_peer } => {
                    self.fail(failure_of(code, &reason, by_peer), now);
                }
                Event::PathUp(path) => {
                    if let Some(status) = find(path) {
                        if status.route.is_proxied() {
                            self.relays_known.insert(status.route.remote);
                        }
                        let name = route_name(&status.route, &self.locals);
                        self.names.insert(path, name.clone());
                        let state = state_name(status.state);
                        self.tell(News::Path { path: path.0, name, state, reason: None });
                    }
                }
                // Of a path that never worked, a notice told why.
                Event::PathDown { path, reason } => {
                    if let Some(name) = self.names.remove(&path) {
                        let reason = Some(reason.to_owned());
                        self.tell(News::Path { path: path.0, name, state: "closed", reason });
                    }
                }
                Event::Notice { path, reason, proven } => {
                    // A path that was refused at once may be gone by now.
                    let name = self.names.get(&path).cloned().or_else(|| name(path));
                    if self.notices.insert((path, reason as u8)) {
                        let name = name.unwrap_or_else(|| String::from("a relay"));
                        let says = if proven { "says" } else { "seems to say" };
                        self.tell(News::Warning(format!("{name} {says}: {reason}")));
                    }
                }
                Event::Confirmed => {}
            }
        }
        if self.ending.is_some() || connection.is_closing() {
            return;
        }
        self.feed.drive(connection.outgoing(), now);
        self.feed.take(connection.incoming());
        if let Some(wanted) = self.feed.take_limit() {
            connection.set_cap(now, least(self.cap, wanted));
        }
        if self.feed.is_sent() {
            connection.finishing();
        }
        let ending = self.feed.ending();
        if ending.is_some() || self.counter.is_due(now) {
            let (bytes, total) = self.feed.progress(connection.outgoing());
            let tally = self.counter.look(now, connection, &self.locals, bytes, total);
            self.tell(News::Progress(tally));
        }
        match ending {
            Some(Ok(done)) => {
                let seconds = self.counter.seconds(now);
                self.ending = Some(Ending { outcome: Ok(()), done, seconds });
            }
            Some(Err(failure)) => self.fail(failure, now),
            None => {}
        }
    }

    fn fail(&mut self, failure: Failure, now: Instant) {
        if self.ending.is_none() {
            let done = TreeDone { bytes: self.counter.bytes(), ..TreeDone::default() };
            self.ending = Some(Ending { outcome: Err(failure), done, seconds: self.counter.seconds(now) });
        }
    }

    /// Progress that nobody takes is not worth waiting for, and warnings neither.
    fn tell(&self, news: News) {
        let _ = self.news.try_send(news);
    }
}

/// The lower of what this side sends at most and what the receiver `wanted`, where 0 is no limit.
fn least(own: Option<u64>, wanted: u64) -> Option<u64> {
    let wanted = Some(wanted).filter(|wanted| *wanted > 0);
    own.into_iter().chain(wanted).min()
}

/// Why there is no connection, for a person.
pub(super) fn not_connected(error: ConnectError) -> Failure {
    let (exit, sentence) = match error {
        ConnectError::NoAnswer => (
            Exit::Network,
            "the receiver does not answer at any address of the ticket: is `byway recv` still running there, \
             and does a firewall let UDP through? A relay may help (--relay)",
        ),
        ConnectError::Unreachable | ConnectError::NoRoute => (
            Exit::Network,
            "the receiver cannot be reached from here: no network leads to any address of the ticket; \
             a relay may help (--relay)",
        ),
        ConnectError::WrongKey => (
            Exit::NotAuthorised,
            "the host at the ticket's address has another key than the ticket says: \
             ask the receiver for a new ticket",
        ),
        ConnectError::Version => {
            (Exit::Error, "the receiver runs an incompatible version of byway: update the older side")
        }
        ConnectError::Full => {
            (Exit::Network, "the receiver has as many connections as it takes: try again later")
        }
        ConnectError::Impossible => {
            (Exit::Usage, "the ticket holds a key that cannot be: ask for a new ticket")
        }
    };
    Failure::new(exit, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_to_connect_has_a_code_and_says_what_to_do() {
        for (error, exit) in [
            (ConnectError::NoRoute, Exit::Network),
            (ConnectError::NoAnswer, Exit::Network),
            (ConnectError::Unreachable, Exit::Network),
            (ConnectError::Full, Exit::Network),
            (ConnectError::WrongKey, Exit::NotAuthorised),
            (ConnectError::Version, Exit::Error),
            (ConnectError::Impossible, Exit::Usage),
        ] {
            let failure = not_connected(error);
            assert_eq!(failure.exit(), exit, "{error:?}");
            assert!(failure.to_string().contains(':'), "{failure}");
        }
    }

    #[test]
    fn the_lower_limit_counts() {
        assert_eq!((least(None, 0), least(Some(5), 0)), (None, Some(5)));
        assert_eq!((least(None, 7), least(Some(5), 7), least(Some(9), 7)), (Some(7), Some(5), Some(7)));
    }

    #[test]
    fn the_second_try_of_a_transfer_has_the_name_of_the_first() {
        let identity = |byte| Identity::new(crate::secret::Secret::new([byte; 32])).unwrap();
        let name = |byte, paths: &[&str]| {
            transfer_of(&identity(byte), &paths.iter().map(PathBuf::from).collect::<Vec<_>>())
        };
        assert_eq!(name(1, &["/a", "/b"]), name(1, &["/a", "/b"]));
        assert_ne!(name(1, &["/a", "/b"]), name(1, &["/a/b"]));
        assert_ne!(name(1, &["/a"]), name(2, &["/a"]));
    }
}
