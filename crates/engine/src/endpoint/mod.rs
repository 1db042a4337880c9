//! All sessions of one host. The endpoint assigns packets from a few sockets to their sessions,
//! begins and accepts connections, and lets its connections send in turn.

mod connect_attempt;
mod demux;
mod demux_cache;
mod full_sockets;
mod greeting_failure;
mod greetings;
mod handle;
mod hello_limit;
mod memory;
mod openings;
mod relay_addresses;
mod relay_pool;
mod relays;
pub(crate) mod steady_clock;
mod unconfirmed_peers;

use crate::config::Config;
use crate::connection::timers::{Armed, Timers, claim};
use crate::connection::{Connection, ConnectionStart, Role, close};
use crate::handshake::{HelloDigest, Identity, Initiator, PublicKey, Responder};
use crate::random::Random;
use crate::route::Route;
use crate::seal::Suites;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use byway_control::Controller;
use byway_wire::relay::{Consent, Word};
use byway_wire::{
    ConnectionId, Duration, Input, Instant, Local, Machine, Meter, NetworkPrefix, PathId, TcpRequest,
    Transmit, TransmitBuffer,
};
use core::net::SocketAddr;

pub use connect_attempt::ConnectError;
use connect_attempt::{Attempt, send_plain};
use demux_cache::DemuxCache;
use full_sockets::SocketWaiters;
use greetings::Greetings;
pub use handle::Handle;
use hello_limit::HelloLimiter;
use openings::Openings;
pub use relay_addresses::AddressProblem;
pub use relay_pool::{MAX_RELAYS, RelayRoute, RelayStatus, RelayTrouble};
use steady_clock::SteadyClock;
use unconfirmed_peers::UnconfirmedPeers;

/// Unconfirmed connections beyond which a HELLO must show a cookie.
const COOKIE_THRESHOLD: usize = 64;
/// The most handshake answers that wait to be sent.
const MAX_ANSWERS: usize = 256;
/// The shortest delay of a timer. Earlier events are handled together.
const MIN_TIMER_DELAY: Duration = Duration::from_micros(100);
/// The most direct routes tried to one peer.
const MAX_DIRECT_ROUTES: usize = 16;

/// The decision who may connect, made once per HELLO for this host. The HELLO may be a replay:
/// spend and write nothing before [`EndpointEvent::Accepted`].
pub trait Admission: Send {
    /// Decides about `peer`. `said`: the data of the peer's application.
    fn admit(&mut self, peer: PublicKey, said: &[u8]) -> Admit;
}

/// The owner's decision about a new connection.
#[derive(Debug)]
pub enum Admit {
    /// The connection is accepted, under this congestion controller.
    Accept(Box<dyn Controller>),
    /// The connection is refused, with an authenticated CLOSE.
    Reject {
        /// The application's code, below 2^16.
        code: u64,
        /// The reason, for people.
        reason: String,
    },
}

/// The configuration of an endpoint.
pub struct EndpointConfig {
    /// The key pair of this host.
    pub identity: Identity,
    /// Ciphers, as offered and as taken.
    pub suites: Suites,
    /// Fresh entropy, or a simulation's seed.
    pub seed: [u8; 32],
    /// The settings of each connection.
    pub connection: Config,
    /// The decision who may connect. `None`: nobody may connect.
    pub admission: Option<Box<dyn Admission>>,
    /// The application data for peers that connect.
    pub greeting: Vec<u8>,
}

/// The peer to connect to, and its addresses and relays.
pub struct Connect {
    /// The public key of the peer.
    pub peer: PublicKey,
    /// The peer's direct addresses.
    pub addresses: Vec<SocketAddr>,
    /// The application data for the peer. They are encrypted, but may be replayed.
    pub application: Vec<u8>,
    /// The congestion controller of the session.
    pub controller: Box<dyn Controller>,
}

/// An event of an endpoint, for its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointEvent {
    /// An attempt became a connection.
    Connected(Handle),
    /// An attempt to connect failed, and its handle is no longer valid.
    Failed(Handle, ConnectError),
    /// A peer connected, and proved that its HELLO is no replay.
    Accepted(Handle),
    /// A connection is over. Call [`Endpoint::forget`] after its last events were taken.
    Closed(Handle),
    /// A relay is not used for this peer. The session continues without it.
    RelayTrouble(Handle, SocketAddr, RelayTrouble),
    /// A relay with which this side is [registered](Endpoint::stand_at) leads to this side.
    Reachable(Reachable),
    /// A relay at which this host is registered does not work. The number is the id of the relay
    /// word's grant.
    StandingTrouble(SocketAddr, u32, RelayTrouble),
}

/// A relay through which other hosts reach this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reachable {
    /// The address of the relay.
    pub relay: SocketAddr,
    /// The id of the relay word's grant.
    pub grant: u32,
    /// The address of this host, as the relay saw it.
    pub address: SocketAddr,
    /// The consent that lets peers use the relay to this host.
    pub consent: Consent,
    /// Whether the relay gives senders this host's location, also after its address has changed.
    pub is_remembered: bool,
}

/// Counts of dropped datagrams, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropCounters {
    /// Datagrams that are nothing of byway's.
    pub unknown: u64,
    /// Packets for no connection of ours.
    pub stray: u64,
    /// Packets that could not be opened.
    pub forged: u64,
    /// Packets seen before.
    pub replayed: u64,
    /// Number of HELLOs that were not answered.
    pub hellos: u64,
}

enum ConnectionSlot {
    Attempt(Box<Attempt>),
    Connection { connection: Box<Connection>, announced: bool, digest: Option<HelloDigest> },
}

struct ConnectionEntry {
    slot: ConnectionSlot,
    pool: relay_pool::RelayPool,
    /// Limits how often the peer may offer relays.
    offers: Meter,
    addresses: Vec<SocketAddr>,
    /// Number of `addresses` that were added after the beginning.
    added: usize,
    /// The network from which the peer began the session. `None`: this side began it.
    network: Option<NetworkPrefix>,
    dirty: bool,
    /// Whether the connection is in the list of connections with datagrams for their owner.
    listed: bool,
    /// Whether the connection is in the list of connections with stream events for their owner.
    streams_listed: bool,
    armed: Armed,
}

/// All sessions of one host over its sockets.
pub struct Endpoint {
    identity: Identity,
    suites: Suites,
    config: Config,
    responder: Responder,
    admission: Option<Box<dyn Admission>>,
    greeting: Vec<u8>,
    random: Random,
    steady: SteadyClock,
    locals: BTreeMap<Local, SocketAddr>,
    room: SocketWaiters,
    entries: BTreeMap<Handle, ConnectionEntry>,
    next: u32,
    ids: BTreeMap<ConnectionId, (Handle, PathId)>,
    recent: DemuxCache,
    attempts: BTreeMap<ConnectionId, Handle>,
    answered: BTreeMap<HelloDigest, Vec<u8>>,
    waiting: UnconfirmedPeers,
    /// Number of connections whose peer has proved that its HELLO is no replay.
    confirmed: usize,
    hello_limiter: HelloLimiter,
    greetings: Greetings,
    openings: Openings,
    /// Relay words that are checked at the relays at which this host is registered.
    standing: Vec<Word>,
    answers: VecDeque<(Route, Vec<u8>)>,
    /// Connections that may have something to send, in turn.
    dirty: VecDeque<Handle>,
    timers: Timers<Handle>,
    events: VecDeque<EndpointEvent>,
    /// Connections with datagrams for their owner.
    datagrams: VecDeque<Handle>,
    /// Connections with events of received streams.
    streams: VecDeque<Handle>,
    dropped: DropCounters,
}

impl Endpoint {
    /// A host's end without connections.
    #[must_use]
    pub fn new(config: EndpointConfig) -> Self {
        let mut random = Random::new(config.seed);
        let hello_limiter = HelloLimiter::new(config.connection.hellos_per_second);
        let responder =
            Responder::new(config.identity.clone(), config.suites, random.unguessable(), random.fork());
        Self {
            identity: config.identity,
            suites: config.suites,
            config: config.connection,
            responder,
            admission: config.admission,
            greeting: config.greeting,
            random,
            steady: SteadyClock::new(),
            locals: BTreeMap::new(),
            room: SocketWaiters::default(),
            entries: BTreeMap::new(),
            next: 0,
            ids: BTreeMap::new(),
            recent: DemuxCache::new(),
            attempts: BTreeMap::new(),
            answered: BTreeMap::new(),
            waiting: UnconfirmedPeers::default(),
            confirmed: 0,
            hello_limiter,
            greetings: Greetings::default(),
            openings: Openings::default(),
            standing: Vec::new(),
            answers: VecDeque::new(),
            dirty: VecDeque::new(),
            timers: Timers::default(),
            events: VecDeque::new(),
            datagrams: VecDeque::new(),
            streams: VecDeque::new(),
            dropped: DropCounters::default(),
        }
    }

    /// The public key of this host.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        self.identity.public()
    }

    /// Starts an attempt to connect.
    pub fn connect(&mut self, now: Instant, connect: Connect) -> Result<Handle, ConnectError> {
        let now = self.own_time(now);
        let said = Attempt::payload(&self.config, &connect.application);
        let seed = self.random.fork();
        let initiator = Initiator::new(&self.identity, connect.peer, &said, self.suites, seed)
            .map_err(|_| ConnectError::Impossible)?;
        let routes = self.routes_now(&connect.addresses);
        let handle = self.new_handle();
        self.attempts.insert(initiator.reply_id(), handle);
        let attempt = Attempt::new(now, initiator, routes, connect.controller);
        self.insert(handle, ConnectionSlot::Attempt(Box::new(attempt)), connect.addresses);
        self.touch(handle);
        Ok(handle)
    }

    /// The connection with this handle. `None`: there is none, or it is still an attempt.
    #[must_use]
    pub fn connection(&self, handle: Handle) -> Option<&Connection> {
        match &self.entries.get(&handle)?.slot {
            ConnectionSlot::Connection { connection, .. } => Some(connection),
            ConnectionSlot::Attempt(_) => None,
        }
    }

    /// The connection with this handle, mutable. Afterwards it is checked for something to send.
    pub fn connection_mut(&mut self, handle: Handle) -> Option<&mut Connection> {
        self.touch(handle);
        match &mut self.entries.get_mut(&handle)?.slot {
            ConnectionSlot::Connection { connection, .. } => {
                connection.keep_time(self.steady);
                Some(connection)
            }
            ConnectionSlot::Attempt(_) => None,
        }
    }

    /// Closes a connection, and sends the peer a CLOSE.
    pub fn close(&mut self, now: Instant, handle: Handle, code: u64, reason: &str) {
        let now = self.own_time(now);
        match self.entries.get_mut(&handle).map(|entry| &mut entry.slot) {
            Some(ConnectionSlot::Connection { connection, .. }) => connection.close_at(now, code, reason),
            Some(ConnectionSlot::Attempt(_)) => self.remove(handle),
            None => {}
        }
        self.touch(handle);
    }

    /// Ends a connection whose place is needed. The peer gets one CLOSE, and the place is free at
    /// the next [`wake`](Machine::wake).
    pub fn dismiss(&mut self, now: Instant, handle: Handle, code: u64, reason: &str) {
        let now = self.own_time(now);
        if let Some(ConnectionSlot::Connection { connection, .. }) =
            self.entries.get_mut(&handle).map(|entry| &mut entry.slot)
        {
            connection.dismiss(now, code, reason);
        }
        self.touch(handle);
    }

    /// Returns the network from which the peer began this session. The peer has proved that it
    /// receives there. `None`: this host began the session.
    #[must_use]
    pub fn network_of(&self, handle: Handle) -> Option<NetworkPrefix> {
        self.entries.get(&handle)?.network
    }

    /// The next thing the owner should know.
    pub fn next_event(&mut self) -> Option<EndpointEvent> {
        self.events.pop_front()
    }

    /// The next connection with datagrams to take ([`Connection::next_datagram`],
    /// [`Connection::next_returned`]). A connection is not returned again until all its datagrams
    /// were taken. So the application need not look at every connection.
    pub fn next_with_datagrams(&mut self) -> Option<Handle> {
        let handle = self.datagrams.pop_front()?;
        if let Some(entry) = self.entries.get_mut(&handle) {
            entry.listed = false;
        }
        Some(handle)
    }

    /// The next connection with news of [what it receives](crate::data::Incoming::next_event) or
    /// [what it sends](crate::data::Outgoing::next_event). A connection is not returned again until
    /// all its news was taken. So the application need not look at every connection.
    pub fn next_with_streams(&mut self) -> Option<Handle> {
        let handle = self.streams.pop_front()?;
        if let Some(entry) = self.entries.get_mut(&handle) {
            entry.streams_listed = false;
        }
        Some(handle)
    }

    /// The handles of all connections and attempts.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.entries.keys().copied()
    }

    /// The counts of dropped datagrams so far.
    #[must_use]
    pub const fn dropped(&self) -> DropCounters {
        self.dropped
    }

    const fn new_handle(&mut self) -> Handle {
        let handle = Handle::new(self.next);
        self.next += 1;
        handle
    }

    fn insert(&mut self, handle: Handle, slot: ConnectionSlot, addresses: Vec<SocketAddr>) {
        let entry = ConnectionEntry {
            slot,
            pool: relay_pool::RelayPool::default(),
            offers: Meter::default(),
            addresses,
            added: 0,
            network: None,
            dirty: false,
            listed: false,
            streams_listed: false,
            armed: Armed::default(),
        };
        self.entries.insert(handle, entry);
    }

    /// Returns routes from every local socket to every address that it can reach.
    fn direct_routes(&self, addresses: &[SocketAddr]) -> Vec<Route> {
        let mut routes = Vec::new();
        for address in addresses {
            for (local, bound) in &self.locals {
                if bound.is_ipv4() == address.is_ipv4() && routes.len() < MAX_DIRECT_ROUTES {
                    routes.push(Route::direct(*local, *address));
                }
            }
        }
        routes
    }

    /// Something may have changed: look at it for something to send and for its deadline.
    fn touch(&mut self, handle: Handle) {
        if let Some(entry) = self.entries.get_mut(&handle)
            && !entry.dirty
        {
            entry.dirty = true;
            self.dirty.push_back(handle);
        }
    }

    fn remove(&mut self, handle: Handle) {
        let Some(entry) = self.entries.remove(&handle) else { return };
        self.greetings.forget(handle);
        self.openings.forget(handle);
        if entry.streams_listed {
            self.streams.retain(|listed| *listed != handle);
        }
        self.room.forget(handle);
        match entry.slot {
            ConnectionSlot::Attempt(_) => self.attempts.retain(|_, attempt| *attempt != handle),
            ConnectionSlot::Connection { connection, digest, announced } => {
                for id in connection.receive_ids() {
                    self.ids.remove(&id);
                    self.recent.forget(id);
                }
                self.waiting.remove(handle);
                if let Some(digest) = digest {
                    self.answered.remove(&digest);
                }
                if announced {
                    self.confirmed -= 1;
                    self.share_memory();
                }
            }
        }
    }

    /// Updates an entry after any event: its connection ids, its deadline, its end.
    fn settle(&mut self, now: Instant, handle: Handle) {
        while let Some(ConnectionSlot::Connection { connection, .. }) =
            self.entries.get_mut(&handle).map(|entry| &mut entry.slot)
            && let Some(news) = connection.next_relay_news()
        {
            self.on_relay_news(now, handle, news);
        }
        let Some(entry) = self.entries.get_mut(&handle) else { return };
        match &mut entry.slot {
            ConnectionSlot::Attempt(attempt) => {
                let relays = self.greetings.awaited_by(handle);
                if let Some(error) = attempt.failure(now, relays) {
                    self.remove(handle);
                    self.events.push_back(EndpointEvent::Failed(handle, error));
                    return;
                }
                let at = attempt.deadline();
                self.timers.arm(handle, &mut entry.armed, Some(at));
            }
            ConnectionSlot::Connection { connection, announced, .. } => {
                while let Some(id) = connection.next_id_over() {
                    self.ids.remove(&id);
                    self.recent.forget(id);
                }
                while let Some((id, path)) = connection.next_receive_id() {
                    self.ids.insert(id, (handle, path));
                }
                // Once, also where the owner looks by itself and never asks.
                if connection.has_datagram_news() && !core::mem::replace(&mut entry.listed, true) {
                    self.datagrams.push_back(handle);
                }
                if connection.has_stream_news() && !core::mem::replace(&mut entry.streams_listed, true) {
                    self.streams.push_back(handle);
                }
                if connection.is_confirmed() && !*announced {
                    *announced = true;
                    self.waiting.remove(handle);
                    self.on_confirmed(now, handle);
                    return self.settle(now, handle);
                }
                if connection.incoming().wants_window() {
                    self.share_memory();
                    return self.settle(now, handle);
                }
                if connection.is_closed() {
                    let known = *announced && !connection.is_rejected();
                    if known && connection.tell_over() {
                        self.events.push_back(EndpointEvent::Closed(handle));
                    } else if !known {
                        self.remove(handle);
                    }
                    return;
                }
                let at = connection.deadline();
                self.timers.arm(handle, &mut entry.armed, at);
            }
        }
    }

    /// Handles a peer that has proved to be no replay.
    fn on_confirmed(&mut self, now: Instant, handle: Handle) {
        // Others of the same peer may have been confirmed since its first message.
        let peer = self.connection(handle).map(Connection::peer);
        let others = peer.map_or(0, |peer| self.sessions_of(peer).saturating_sub(1));
        let full = self.is_full() || !self.may_have_another(others);
        self.confirmed += 1;
        let Some(ConnectionSlot::Connection { connection, .. }) =
            self.entries.get_mut(&handle).map(|entry| &mut entry.slot)
        else {
            debug_assert!(false, "confirmed, and no connection");
            return;
        };
        if full {
            connection.turn_away(now, close::BUSY_CODE, close::BUSY_REASON);
        }
        if !connection.is_closing() {
            self.events.push_back(EndpointEvent::Accepted(handle));
        }
        self.share_memory();
    }

    /// Removes a closed connection, with its remaining events.
    pub fn forget(&mut self, handle: Handle) {
        if self.connection(handle).is_some_and(Connection::is_closed) {
            self.remove(handle);
        }
    }

    fn new_connection(
        &mut self,
        now: Instant,
        role: Role,
        success: connect_attempt::Success,
    ) -> Box<Connection> {
        let connect_attempt::Success { established, params, application, controller, .. } = success;
        let random = Random::new(self.random.fork());
        let beginning = ConnectionStart { established, application, params, controller, random };
        Box::new(Connection::new(now, role, &self.config, beginning))
    }

    /// The driver's `now` on this endpoint's clock, which never goes back: whatever is called first
    /// after a step finds it.
    fn own_time(&mut self, now: Instant) -> Instant {
        self.steady.at(now, self.next_deadline())
    }

    fn next_deadline(&self) -> Option<Instant> {
        [self.timers.next(), self.greetings.due(), self.openings.due()].into_iter().flatten().min()
    }
}

impl Machine for Endpoint {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        let now = self.own_time(now);
        match input {
            Input::Datagram(datagram) => self.on_datagram(now, datagram),
            Input::SendError(error) => self.on_send_error(now, &error),
            Input::Link(change) => self.on_link(now, &change),
            Input::Connection(change) => self.on_connection(now, &change),
            Input::NotDialed(_) => {}
            Input::Room(change) => {
                self.room.change(change);
                while change.room
                    && let Some(handle) = self.room.next_waiting()
                {
                    self.touch(handle);
                }
            }
        }
    }

    fn wake(&mut self, now: Instant) {
        let now = self.own_time(now);
        while let Some((at, handle)) = self.timers.pop(now) {
            let Some(entry) = self.entries.get_mut(&handle) else { continue };
            if !claim(&mut entry.armed, at) {
                continue;
            }
            let settles = match &mut entry.slot {
                ConnectionSlot::Connection { connection, .. } => {
                    connection.wake(now);
                    true
                }
                // A HELLO that is due leaves in `transmit`; armed here again, it would be due for
                // ever.
                ConnectionSlot::Attempt(attempt) => {
                    attempt.failure(now, self.greetings.awaited_by(handle)).is_some()
                }
            };
            if settles {
                self.settle(now, handle);
            }
            self.touch(handle);
        }
    }

    fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let now = self.own_time(now);
        if let Some((route, bytes)) = self.answers.pop_front() {
            return send_plain(now, &route, &bytes, out);
        }
        let greeting = self.send_greeting(now, out).or_else(|| self.send_opening(now, out));
        if greeting.is_some() {
            return greeting;
        }
        // What checks words at relays has just become due.
        if let Some((route, bytes)) = self.answers.pop_front() {
            return send_plain(now, &route, &bytes, out);
        }
        while let Some(handle) = self.dirty.front().copied() {
            let Some(entry) = self.entries.get_mut(&handle) else {
                self.dirty.pop_front();
                continue;
            };
            let (sent, more) = match &mut entry.slot {
                ConnectionSlot::Attempt(attempt) => {
                    let hello = attempt.next_hello(now);
                    (hello.and_then(|(route, hello)| send_plain(now, &route, &hello, out)), false)
                }
                ConnectionSlot::Connection { connection, .. } => {
                    connection.see(self.room.full());
                    (connection.transmit(now, out), connection.is_amid_run())
                }
            };
            if sent.is_some() {
                if self.dirty.len() > 1 && !more {
                    self.dirty.rotate_left(1);
                }
                return sent;
            }
            entry.dirty = false;
            self.dirty.pop_front();
            if let ConnectionSlot::Connection { connection, .. } = &entry.slot {
                self.room.note(handle, || connection.waits_for_room());
            }
            if let ConnectionSlot::Attempt(attempt) = &entry.slot
                && attempt.failure(now, self.greetings.awaited_by(handle)).is_some()
            {
                // Told by a wake, after which owners look for news; after a datagram they need not.
                self.timers.arm(handle, &mut entry.armed, Some(now + MIN_TIMER_DELAY));
                continue;
            }
            self.settle(now, handle);
        }
        None
    }

    fn deadline(&self) -> Option<Instant> {
        self.next_deadline().map(|own| self.steady.driver(own))
    }

    fn serves(&self, local: Local) -> bool {
        self.is_of_use(local)
    }

    fn ask(&mut self, _: Instant) -> Option<TcpRequest> {
        self.greetings.next_ask()
    }
}
