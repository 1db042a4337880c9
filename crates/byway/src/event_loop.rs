//! The event loop of an endpoint: one thread that owns the engine, and does what handles ask for.

use crate::config::Priority;
use crate::error::{ConnectError, ConnectionError};
use crate::loop_commands::{
    ChangedItem, Command, Connecting, Core, LoopWork, PeerCell, PeerState, first_stream,
};
use crate::path_status::StatusSnapshot;
use crate::session::{LoopResources, Session, SessionStatus};
use crate::shared_value::Shared;
use byway_engine::{Endpoint, EndpointEvent, Handle};
use byway_net::{Carrier, Control, LoopControl, Owner, Ready, Socket};
use byway_transfer::application_protocol::{Application, Protocol};
use byway_transfer::close::CloseCode;
use byway_transfer::identity;
use byway_transfer::secret::Secret;
use byway_transfer::{
    Dialers, Entrance, FirstMessage, SessionEvent, SessionKeeper, SessionPlan, StandingRelays, TcpUse,
    Ticket, TransferError, Uplinks, UselessRelay,
};
use byway_wire::relay::Word;
use byway_wire::{Input, Instant, Machine as _};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

/// The most bytes of records in one read.
const RECORD_READ_BYTES: usize = 8 << 10;

/// The owner of an endpoint.
pub struct EventLoop {
    core: Arc<Core>,
    defaults: ConnectionDefaults,
    sessions: BTreeMap<Handle, Session>,
    attempts: BTreeMap<Handle, Attempt>,
    work: LoopWork,
    scratch: Vec<u8>,
    /// Connections that have ended here, and whose peers are still being told.
    leaving: BTreeSet<Handle>,
    /// Whether the listener has registered at its relays.
    stands: bool,
    /// The relays through which the listener is reached.
    standing: StandingRelays,
    /// The TCP dialers of connections that this side began.
    dialers: BTreeMap<Handle, Dialers>,
    /// Number of attempts to connect, which wraps around.
    attempts_begun: u16,
}

/// The parameters of every connection of the endpoint.
pub struct ConnectionDefaults {
    /// The application protocol.
    pub protocol: Protocol,
    /// The priority of the data that this side sends.
    pub priority: Priority,
    /// Streams that each peer may have open.
    pub streams: u32,
    /// The most connections at once.
    pub peers: usize,
    /// The local addresses from which this side sends.
    pub locals: Vec<SocketAddr>,
    /// The relay words of relays at which the listener registers, so that peers reach it through
    /// them.
    pub stand: Vec<Word>,
    /// The secret in a listener's tickets. The relays give its location to those who hold it.
    pub permission: Secret<[u8; 16]>,
    /// Watches the host's local addresses, which may change.
    pub uplinks: Option<Uplinks>,
    /// The seed of the congestion controllers.
    pub seed: u64,
    /// The listener for TCP connections that carry datagrams.
    pub entrance: Entrance,
    /// Watches TCP connections that are dialled, and wakes the loop.
    pub control: Control,
    /// When connections use TCP.
    pub tcp: TcpUse,
}

/// A connection that is being made.
struct Attempt {
    connecting: Arc<Connecting>,
    keeper: SessionKeeper,
}

impl EventLoop {
    pub fn new(core: Arc<Core>, defaults: ConnectionDefaults) -> Self {
        Self {
            core,
            standing: StandingRelays::new(defaults.permission.clone()),
            defaults,
            sessions: BTreeMap::new(),
            attempts: BTreeMap::new(),
            work: LoopWork::default(),
            scratch: vec![0; RECORD_READ_BYTES],
            leaving: BTreeSet::new(),
            stands: false,
            dialers: BTreeMap::new(),
            attempts_begun: 0,
        }
    }

    fn obey(&mut self, endpoint: &mut Endpoint, command: Command, now: Instant) {
        match command {
            Command::Connect { ticket, relays, answer } => {
                self.connect(endpoint, &ticket, &relays, answer, now);
            }
            Command::Open(cell) => {
                let connection = endpoint.connection_mut(cell.handle);
                match (self.sessions.get_mut(&cell.handle), connection) {
                    (Some(session), Some(connection)) => session.open(cell, connection),
                    _ => cell.fail(&ConnectionError::ClosedHere),
                }
            }
            Command::Send(sent) => {
                let connection = endpoint.connection_mut(sent.handle);
                match (self.sessions.get_mut(&sent.handle), connection) {
                    (Some(session), Some(connection)) => session.send(sent, connection),
                    _ => sent.fail(&ConnectionError::ClosedHere),
                }
            }
            Command::Look(handle, answer) => {
                let connection = endpoint.connection_mut(handle);
                let look = match (self.sessions.get_mut(&handle), connection) {
                    (Some(session), Some(connection)) => session.look(now, connection, &self.defaults.locals),
                    _ => StatusSnapshot::default(),
                };
                answer.change(|answer| *answer = Some(look));
            }
            Command::Close(handle) | Command::Abandon(handle) => {
                let abandoned = matches!(command, Command::Abandon(_));
                self.sessions.get_mut(&handle).into_iter().for_each(|it| it.close(now, abandoned));
            }
            Command::Abort(handle, code, reason) => {
                endpoint.close(now, handle, code.into(), &reason);
                self.core.again();
            }
        }
    }

    fn touch(&mut self, endpoint: &mut Endpoint, touched: &ChangedItem) {
        let handle = match touched {
            ChangedItem::Stream(cell) => cell.handle,
            ChangedItem::Sent(sent) => sent.handle,
            ChangedItem::Coming(coming) => coming.handle,
        };
        if let ChangedItem::Stream(cell) = touched {
            cell.unlist();
        }
        let Some(session) = self.sessions.get_mut(&handle) else { return };
        let Some(connection) = endpoint.connection_mut(handle) else { return };
        match touched {
            ChangedItem::Stream(cell) => session.touch(cell.id),
            ChangedItem::Sent(sent) => session.touch_sent(sent, connection),
            ChangedItem::Coming(coming) => session.touch_coming(coming, connection),
        }
    }

    fn connect(
        &mut self,
        endpoint: &mut Endpoint,
        ticket: &Ticket,
        relays: &[Word],
        answer: Arc<Connecting>,
        now: Instant,
    ) {
        let application =
            Application { permission: ticket.permission.clone(), protocol: self.defaults.protocol };
        let priority = self.defaults.priority;
        let controller = Box::new(move |seed| priority.controller(seed));
        self.attempts_begun = self.attempts_begun.wrapping_add(1);
        let session = SessionPlan {
            tcp: self.defaults.tcp.clone(),
            number: self.attempts_begun,
            seed: self.next_seed(),
            ..SessionPlan::new(ticket, relays.to_vec(), application.to_bytes(), controller)
        };
        let mut keeper = SessionKeeper::new(session, &self.defaults.locals, &self.defaults.control);
        keeper.begin(endpoint, &self.defaults.locals, now);
        let mut attempt = Attempt { connecting: answer, keeper };
        match attempt.keeper.handle() {
            Some(handle) => {
                self.attempts.insert(handle, attempt);
            }
            None => attempt.take_events(),
        }
    }

    const fn next_seed(&mut self) -> u64 {
        self.defaults.seed = self.defaults.seed.wrapping_add(1);
        self.defaults.seed
    }

    fn on_event(&mut self, endpoint: &mut Endpoint, event: EndpointEvent, now: Instant) {
        match event {
            EndpointEvent::Connected(handle) => {
                if let Some(attempt) = self.attempts.remove(&handle) {
                    self.dialers.insert(handle, attempt.keeper.into_dialers());
                    self.begin(endpoint, handle, Some(attempt.connecting), now);
                }
            }
            EndpointEvent::Failed(handle, _) => {
                if let Some(mut attempt) = self.attempts.remove(&handle) {
                    attempt.keeper.on_event(endpoint, &event, &self.defaults.locals, now);
                    attempt.take_events();
                }
            }
            EndpointEvent::Accepted(handle) => self.accept(endpoint, handle, now),
            EndpointEvent::Closed(handle) => {
                self.drive(endpoint, handle, now);
                self.leaving.remove(&handle);
                endpoint.forget(handle);
            }
            EndpointEvent::RelayTrouble(handle, ..) => {
                if let Some(attempt) = self.attempts.get_mut(&handle) {
                    attempt.keeper.on_event(endpoint, &event, &self.defaults.locals, now);
                }
            }
            EndpointEvent::Reachable(reachable) => {
                let Some(relay) = self.standing.on_reachable(&reachable) else { return };
                // One way through each relay; the first to answer is the shortest, and may renew
                // its consent.
                self.core.listener_relays.change(|standing| {
                    match standing.greeted.iter_mut().find(|known| known.word == relay.word) {
                        Some(known) if known.is_renewed_by(&relay) => *known = relay,
                        Some(_) => {}
                        None => standing.greeted.push(relay),
                    }
                });
            }
            EndpointEvent::StandingTrouble(relay, grant, trouble) => {
                let useless = self.standing.on_trouble(relay, grant, trouble);
                self.tell_useless(useless);
            }
        }
    }

    fn tell_useless(&self, useless: Option<UselessRelay>) {
        let Some(UselessRelay { message, .. }) = useless else { return };
        self.core.listener_relays.change(|standing| standing.troubles.push(message));
    }

    /// Registers at the relays of a listener.
    fn stand(&mut self, endpoint: &mut Endpoint, now: Instant) {
        if std::mem::replace(&mut self.stands, true) {
            return;
        }
        for word in self.defaults.stand.clone() {
            let useless = self.standing.stand(endpoint, now, word);
            self.tell_useless(useless);
        }
    }

    fn accept(&mut self, endpoint: &mut Endpoint, handle: Handle, now: Instant) {
        let Some(connection) = endpoint.connection(handle) else { return };
        // A ping is answered by the engine, and nobody hears of it.
        if !matches!(FirstMessage::read(connection.application()), Ok(FirstMessage::Application(_))) {
            return;
        }
        if self.sessions.len() >= self.defaults.peers || !self.core.is_listening() {
            let reason = "the listener has as many connections as it takes";
            return endpoint.close(now, handle, CloseCode::Failed.number(), reason);
        }
        if let Some(cell) = self.begin(endpoint, handle, None, now) {
            self.core.accept_queue.change(|arrivals| arrivals.peers.push_back(cell));
        }
    }

    /// Handles a new connection.
    fn begin(
        &mut self,
        endpoint: &mut Endpoint,
        handle: Handle,
        connecting: Option<Arc<Connecting>>,
        now: Instant,
    ) -> Option<Arc<PeerCell>> {
        let connection = endpoint.connection_mut(handle)?;
        let initiator = connecting.is_some();
        let state = PeerState { next: first_stream(initiator).0, ..PeerState::default() };
        let key = identity::PublicKey(connection.peer().0);
        let cell =
            Arc::new(PeerCell { handle, key, state: Shared::new(state), datagrams: Shared::default() });
        let session =
            Session::new(Arc::clone(&cell), initiator, self.defaults.streams, connection, connecting, now);
        self.sessions.insert(handle, session);
        Some(cell)
    }

    fn drive(&mut self, endpoint: &mut Endpoint, handle: Handle, now: Instant) {
        let Some(session) = self.sessions.get_mut(&handle) else { return };
        let Some(connection) = endpoint.connection_mut(handle) else { return };
        let Self { scratch, core, defaults, .. } = self;
        let mut tools =
            LoopResources { scratch, shared_buffers: &core.shared_buffers, locals: &defaults.locals };
        match session.drive(now, connection, &mut tools) {
            SessionStatus::Open => {}
            SessionStatus::Again => self.core.again(),
            SessionStatus::Over => {
                if !connection.is_closed() {
                    self.leaving.insert(handle);
                }
                self.sessions.remove(&handle);
            }
        }
    }

    /// Advances connection attempts that no peer has answered yet.
    fn look_at_attempts(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let (locals, uplinks) = (&self.defaults.locals, &mut self.defaults.uplinks);
        self.attempts.retain(|handle, attempt| {
            attempt.keeper.look(endpoint, locals, now);
            if let Some(uplinks) = uplinks {
                uplinks.lead_to(attempt.keeper.named_destinations());
            }
            attempt.take_events();
            attempt.keeper.handle() == Some(*handle)
        });
    }

    /// Dials over TCP where UDP brings no answer.
    fn dial(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let Self { dialers, sessions, defaults, .. } = self;
        dialers.retain(|handle, dialers| {
            let session = sessions.get(handle);
            if let Some(session) = session {
                dialers.look(endpoint, Some(*handle), Some(session.silence(now)), now);
                if let Some(uplinks) = &mut defaults.uplinks {
                    uplinks.lead_to(dialers.named_addresses().map(|address| address.ip()));
                }
            }
            session.is_some()
        });
    }

    /// Whether the last handle was dropped, and all peers were told.
    fn is_left(&self) -> bool {
        self.core.is_stopping() && self.sessions.is_empty() && self.leaving.is_empty()
    }
}

impl Attempt {
    /// Handles the events of the attempt. Notifies the application if it failed.
    fn take_events(&mut self) {
        while let Some(event) = self.keeper.next_event() {
            if let SessionEvent::Lost(lost) | SessionEvent::Refused(lost) = event {
                let error = match lost.error {
                    TransferError::NotConnected(error) => ConnectError::NotConnected(error),
                    error => ConnectError::Start(error.into()),
                };
                self.connecting.change(|answer| *answer = Some(Err(error)));
            }
        }
    }
}

impl Owner for EventLoop {
    type Machine = Endpoint;

    fn ready(&mut self, _: &mut Endpoint, ready: Ready, _: Instant) {
        if !self.defaults.entrance.ready(ready) {
            let _ = self.attempts.values_mut().any(|attempt| attempt.keeper.ready(ready))
                || self.dialers.values_mut().any(|dialers| dialers.ready(ready));
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.defaults.entrance.deadline()
    }

    fn turn(&mut self, endpoint: &mut Endpoint, now: Instant) -> LoopControl {
        if self.defaults.entrance.turn(now) {
            self.core.again();
        }
        self.stand(endpoint, now);
        while let Some(event) = endpoint.next_event() {
            self.on_event(endpoint, event, now);
        }
        let mut work = std::mem::take(&mut self.work);
        self.core.take(&mut work);
        for command in work.commands.drain(..) {
            self.obey(endpoint, command, now);
        }
        for touched in work.touched.drain(..) {
            self.touch(endpoint, &touched);
        }
        self.work = work;
        let uplinks = self.defaults.uplinks.iter_mut().filter(|uplinks| uplinks.is_due(now));
        for change in uplinks.flat_map(|uplinks| uplinks.look(now)) {
            endpoint.handle(now, Input::Link(change));
        }
        if !self.attempts.is_empty() {
            self.look_at_attempts(endpoint, now);
        }
        let handles: Vec<Handle> = self.sessions.keys().copied().collect();
        for handle in handles {
            self.drive(endpoint, handle, now);
        }
        self.dial(endpoint, now);
        if self.is_left() { LoopControl::Stop } else { LoopControl::Continue }
    }

    fn opened(&mut self) -> Vec<Carrier> {
        let opened = self.defaults.uplinks.as_mut().map(Uplinks::opened).unwrap_or_default();
        self.defaults.locals.extend(opened.iter().map(Socket::address));
        let attempted = self.attempts.values_mut().flat_map(|attempt| attempt.keeper.opened());
        let dialled = attempted.chain(self.dialers.values_mut().flat_map(Dialers::opened));
        opened.into_iter().map(Carrier::from).chain(dialled).chain(self.defaults.entrance.opened()).collect()
    }
}

impl Drop for EventLoop {
    /// Ends every wait for this event loop with an error, for whatever reason the loop ends.
    fn drop(&mut self) {
        let work = self.core.end();
        let over = ConnectionError::EndpointOver;
        self.core.accept_queue.change(|arrivals| arrivals.over = true);
        let answers = self.attempts.values().map(|attempt| &attempt.connecting);
        let asked = work.commands.iter().filter_map(|command| match command {
            Command::Connect { answer, .. } => Some(answer),
            _ => None,
        });
        for answer in answers.chain(asked) {
            answer.change(|answer| {
                answer.get_or_insert_with(|| Err(ConnectError::Lost(over.clone())));
            });
        }
        for command in &work.commands {
            match command {
                Command::Open(cell) => cell.fail(&over),
                Command::Send(sent) => sent.fail(&over),
                Command::Look(_, answer) => answer.change(|answer| *answer = Some(StatusSnapshot::default())),
                _ => {}
            }
        }
        for session in self.sessions.values_mut() {
            session.end(&over);
        }
    }
}
