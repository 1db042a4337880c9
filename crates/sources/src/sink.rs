//! The sink: takes the records of any number of sources, and has each written once and in order.

use crate::connected_source::{ConnectedSource, Hello};
use crate::endpoint::{NAME_BOUND_CODE, NAME_TAKEN_CODE, RECONNECT_CODE, SINK_STREAM, session_config};
use crate::memory_budget::MemoryBudget;
use crate::sink_access::{AllowedSource, NameAccess, SourceAccess, name_access};
use crate::sink_file::{OpenRequest, name_is_bound};
use crate::sink_files::{FileReply, FileRequest, Files};
use crate::sink_plan::{SinkEvent, SinkPlan, SourceReport};
use crate::told_once::ToldOnce;
use byway_engine::connection::Event;
use byway_engine::{Connection, Endpoint, EndpointEvent, Handle};
use byway_net::{Carrier, Clock, Control, LoopControl, Owner, Ready, Waker};
use byway_transfer::close::CloseCode;
use byway_transfer::session_seats::{SeatDecision, network_of, seat};
use byway_transfer::{
    Entrance, Error, EventLoop, NewsSender, Requests, StandingRelays, TcpDialer, endpoint, hung_up,
    news_channel,
};
use byway_wire::relay::Word;
use byway_wire::{Duration, Instant};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread::Builder;

/// Sources that may be connected at once.
const MAX_SOURCES: usize = 1024;
/// Events that wait for the program.
const MAX_QUEUED_EVENTS: usize = 256;
/// Time between two checks of every source, even if nothing arrived from it.
const SOURCE_CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Bytes of a source read at once.
const READ_BYTES: usize = 16 << 10;
/// Time between two reports about the sources to the program.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Time that the sink waits for UDP to relays before it tries TCP.
const UDP_TIMEOUT: Duration = Duration::from_millis(500);
/// Time to stay after the end, so that a lost CLOSE can be sent again.
const LINGER_TIME: Duration = Duration::from_millis(200);

/// A sink that runs.
pub struct Sink(EventLoop<SinkOwner, SinkEvent>);

impl Deref for Sink {
    type Target = EventLoop<SinkOwner, SinkEvent>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Sink {
    /// Starts.
    ///
    /// # Errors
    /// The system gives no thread or descriptor.
    pub fn start(plan: SinkPlan) -> Result<Self, Error> {
        let control = Control::new().map_err(Error::Descriptor)?;
        let (news, inbox) = news_channel(MAX_QUEUED_EVENTS);
        let (asks, asked) = sync_channel(4 * MAX_SOURCES);
        let (answers, answered) = sync_channel(4 * MAX_SOURCES);
        let permission = plan.permission.clone();
        let gate = SourceAccess {
            permission: plan.permission,
            protocol: crate::PROTOCOL_NAME.parse().unwrap_or_default(),
            seed: u64::from_be_bytes(byway_net::seed()?),
        };
        let endpoint = endpoint(&plan.identity, session_config(plan.config), Some(Box::new(gate)))?;
        let requests = Arc::new(Requests::default());
        let files = Files::new(plan.directory, plan.sync, answers, control.waker().clone());
        Builder::new().name("byway write".into()).spawn(move || files.run(&asked)).map_err(Error::Thread)?;
        let owner = SinkOwner {
            relay_dialer: TcpDialer::of_relays(control.watch(), plan.relays.iter()),
            relays: plan.relays,
            standing: StandingRelays::new(permission),
            entrance: Entrance::new(control.watch(), plan.listeners).map_err(Error::Descriptor)?,
            begun_at: None,
            sources: BTreeMap::new(),
            allow: plan.allow,
            warned: ToldOnce::default(),
            budget: MemoryBudget::new(plan.record_memory, MAX_SOURCES),
            sessions: 0,
            news,
            asks,
            answers: answered,
            waker: control.waker().clone(),
            requests: Arc::clone(&requests),
            look_at: Instant::ZERO,
            report_at: Instant::ZERO,
            leave_at: None,
            scratch: vec![0; READ_BYTES],
        };
        let driver =
            byway_net::spawn_with(control, "byway sink", endpoint, owner, plan.sockets, Clock::new())
                .map_err(Error::Thread)?;
        Ok(Self(EventLoop::new(driver, inbox, requests)))
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// The event loop broke.
    pub fn join(self) -> Result<(), Error> {
        self.0.into_owner().map(drop)
    }
}

/// The owner of a sink's endpoint.
pub struct SinkOwner {
    relay_dialer: TcpDialer,
    relays: Vec<Word>,
    /// The relays through which the sink can be reached.
    standing: StandingRelays,
    entrance: Entrance,
    begun_at: Option<Instant>,
    sources: BTreeMap<Handle, ConnectedSource>,
    /// The names that sources may use, by key; empty: all.
    allow: Vec<AllowedSource>,
    /// The latest warning about each source, so that none is repeated.
    warned: ToldOnce,
    budget: MemoryBudget,
    /// The number of sessions so far.
    sessions: u64,
    news: NewsSender<SinkEvent>,
    asks: SyncSender<FileRequest>,
    answers: Receiver<FileReply>,
    waker: Waker,
    requests: Arc<Requests>,
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

    fn deadline(&self) -> Option<Instant> {
        self.entrance.deadline()
    }

    fn ended(&mut self) {
        self.news = hung_up();
    }

    fn turn(&mut self, endpoint: &mut Endpoint, now: Instant) -> LoopControl {
        if self.entrance.turn(now) {
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
            self.look_at = now + SOURCE_CHECK_INTERVAL;
            let handles: Vec<Handle> = self.sources.keys().copied().collect();
            for handle in handles {
                self.drive(endpoint, handle, now);
            }
        }
        if now >= self.report_at {
            self.report_at = now + REPORT_INTERVAL;
            let report = self.report(endpoint, now);
            self.tell(SinkEvent::Report(report));
        }
        if self.requests.is_cancelled() {
            let leave_at = *self.leave_at.get_or_insert_with(|| {
                for handle in endpoint.handles().collect::<Vec<_>>() {
                    endpoint.close(now, handle, CloseCode::Interrupted.number(), "the sink was stopped");
                }
                now + LINGER_TIME
            });
            if now >= leave_at || endpoint.handles().next().is_none() {
                return LoopControl::Stop;
            }
        }
        LoopControl::Continue
    }
}

impl SinkOwner {
    /// Registers at the sink's relays, so that sources reach it through them.
    fn stand(&mut self, endpoint: &mut Endpoint, now: Instant) {
        for word in std::mem::take(&mut self.relays) {
            if let Some(useless) = self.standing.stand(endpoint, now, word) {
                self.tell(SinkEvent::UselessRelay(useless));
            }
        }
        let begun = *self.begun_at.get_or_insert(now);
        let served = |relay| endpoint.leads_to(relay) || endpoint.stands_at(relay);
        self.relay_dialer.look_at_relays(now, now.since(begun) >= UDP_TIMEOUT, served);
    }

    fn on_event(&mut self, endpoint: &mut Endpoint, event: EndpointEvent, now: Instant) {
        match event {
            EndpointEvent::Accepted(handle) => {
                self.accept(endpoint, handle, now);
            }
            EndpointEvent::Closed(handle) => {
                let reason = endpoint.connection_mut(handle).map_or_else(String::new, closed_because);
                self.leave(handle, &reason);
                endpoint.forget(handle);
            }
            EndpointEvent::Reachable(reachable) => {
                if let Some(relay) = self.standing.on_reachable(&reachable) {
                    self.tell(SinkEvent::Reachable(relay));
                }
            }
            EndpointEvent::StandingTrouble(relay, grant, trouble) => {
                if let Some(useless) = self.standing.on_trouble(relay, grant, trouble) {
                    self.tell(SinkEvent::UselessRelay(useless));
                }
            }
            EndpointEvent::Connected(_) | EndpointEvent::Failed(..) | EndpointEvent::RelayTrouble(..) => {}
        }
    }

    fn accept(&mut self, endpoint: &mut Endpoint, handle: Handle, now: Instant) {
        let network = network_of(endpoint, handle);
        let seats: Vec<_> = self.sources.iter().map(|(handle, source)| source.seat(*handle)).collect();
        let code = CloseCode::Failed.number();
        match seat(&seats, network, self.budget.sessions()) {
            SeatDecision::Free => {}
            SeatDecision::InPlaceOf(silent) => {
                self.leave(silent, "it said nothing");
                endpoint.dismiss(now, silent, code, "the sink needs the place of a source that says nothing");
            }
            SeatDecision::Full => {
                return endpoint.close(now, handle, code, "the sink has as many sources as it takes");
            }
        }
        let Some(connection) = endpoint.connection_mut(handle) else { return };
        connection.outgoing().open_stream(SINK_STREAM);
        self.sessions += 1;
        let source = ConnectedSource::new(self.sessions, connection.peer(), network, now);
        self.sources.insert(handle, source);
    }

    fn leave(&mut self, handle: Handle, why: &str) {
        if let Some(mut source) = self.sources.remove(&handle) {
            source.give_back(&mut self.budget);
            self.ask(FileRequest::Close(source.session()));
            if let Some(hello) = source.who().filter(|_| source.is_open()) {
                self.tell(SinkEvent::Gone(hello.name.clone(), why.to_owned()));
            }
        }
    }

    fn drive(&mut self, endpoint: &mut Endpoint, handle: Handle, now: Instant) {
        let Some(connection) = endpoint.connection_mut(handle) else { return };
        let Some(source) = self.sources.get_mut(&handle) else { return };
        while connection.incoming().next_event().is_some() || connection.outgoing().next_event().is_some() {}
        if let Some(hello) = source.read(connection, &mut self.scratch, &mut self.budget, now) {
            self.greet(endpoint, handle, hello, now);
        }
        let Some(source) = self.sources.get_mut(&handle) else { return };
        if let Some((code, sentence)) = source.take_fault() {
            self.leave(handle, &sentence);
            endpoint.close(now, handle, code, &sentence);
            return;
        }
        let due = source.due(now).map(|block| FileRequest::Write(source.session(), block));
        if let Some(connection) = endpoint.connection_mut(handle) {
            source.answer(connection, now);
        }
        if let Some(ask) = due {
            self.ask(ask);
        }
    }

    /// Handles the HELLO of a source.
    fn greet(&mut self, endpoint: &mut Endpoint, handle: Handle, hello: Hello, now: Instant) {
        let Some(key) = self.sources.get(&handle).map(ConnectedSource::key) else { return };
        let access = name_access(&self.allow, &hello.name, key);
        let same = self.sources.iter().find_map(|(other, source)| {
            let who = source.who().filter(|who| who.name == hello.name)?;
            Some((*other, source.key() == key, who.run == hello.run || source.is_silent(now)))
        });
        let name = hello.name.as_str();
        let refusal = match same {
            _ if access == NameAccess::Refused => Some((NAME_BOUND_CODE, name_is_bound(name))),
            Some((_, false, _)) if access == NameAccess::FirstCome => {
                Some((NAME_BOUND_CODE, name_is_bound(name)))
            }
            Some((_, _, false)) => Some((
                NAME_TAKEN_CODE,
                format!("another source named {name} is connected: stop it first, or give another --name"),
            )),
            Some((_, _, true)) | None => None,
        };
        if let Some((other, ..)) = same.filter(|_| refusal.is_none()) {
            self.leave(other, "it came again");
            endpoint.close(now, other, RECONNECT_CODE, "a source of this name came again");
        }
        let Some(source) = self.sources.get_mut(&handle) else { return };
        if let Some((code, sentence)) = refusal {
            source.blame(code, sentence);
            return;
        }
        let (name, run, has_lines) = (hello.name.clone(), hello.run, hello.has_lines);
        source.identify(hello);
        let request = OpenRequest { name, key, is_listed: access == NameAccess::Listed, run, has_lines };
        let ask = FileRequest::Open(source.session(), request);
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
                | FileReply::Refused(session, _)
                | FileReply::Changed(session, _) => *session,
            };
            let source = self.sources.values_mut().find(|source| source.session() == session);
            let Some(source) = source else { continue };
            let Some(name) = source.who().map(|who| who.name.clone()) else { continue };
            let mut news = None;
            match answer {
                FileReply::Opened(_, note) => {
                    source.on_opened(note, now);
                    self.warned.is_over(name.as_str());
                    news = Some(SinkEvent::Came(name));
                }
                FileReply::Written(_, note) => source.on_written(note, now),
                FileReply::Failed(_, fault) => {
                    // Of a name that many hosts ask for, the first is told.
                    let reason = if fault.code == NAME_BOUND_CODE { "another key" } else { &fault.sentence };
                    if self.warned.is_news(name.as_str(), reason) {
                        let for_operator = fault.for_operator.as_ref().unwrap_or(&fault.sentence);
                        news = Some(SinkEvent::Warning(for_operator.clone()));
                    }
                    source.blame(fault.code, fault.sentence);
                }
                FileReply::Refused(_, sentence) => {
                    let held = "sources are held back until it can be written";
                    news = Some(SinkEvent::Warning(format!("{sentence}; {held}")));
                }
                FileReply::Changed(_, change) => news = Some(SinkEvent::NewFile(name, change)),
            }
            if let Some(news) = news {
                self.tell(news);
            }
        }
    }

    fn report(&mut self, endpoint: &Endpoint, now: Instant) -> Vec<SourceReport> {
        let mut reports = Vec::new();
        for (handle, source) in &mut self.sources {
            let arrivals = endpoint.connection(*handle).map(Connection::arrivals).unwrap_or_default();
            let paths = arrivals.into_iter().filter(|path| path.bytes > 0);
            let paths =
                paths.map(|path| (byway_transfer::route_name(&path.route, &[]), path.bytes)).collect();
            reports.extend(source.report(paths, now));
        }
        reports.sort_by(|a, b| a.name.cmp(&b.name));
        reports
    }

    /// Sends a request to the thread that writes files. The queue has room, because each session
    /// has a bounded number of requests.
    fn ask(&self, ask: FileRequest) {
        if let Err(TrySendError::Full(ask)) = self.asks.try_send(ask) {
            // The queue is full only if the disk stands still.
            let _ = self.asks.send(ask);
        }
    }

    /// Sends an event to the program. If the program does not read its events, this one is lost.
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
