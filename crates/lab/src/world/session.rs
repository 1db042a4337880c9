//! byway's own session between two hosts: the engine, and an application that has bulk data.

use super::registry::SharedOffers;
use super::supply::Supply;
use byway_control::{Controller, by_name};
use byway_engine::connection::Event;
use byway_engine::connection::status::PathStatus;
use byway_engine::data::RangeSet;
use byway_engine::handshake::{Identity, PublicKey};
use byway_engine::seal::{Suite, Suites};
use byway_engine::{
    Admission, Admit, Config, Connect, Endpoint, EndpointConfig, EndpointEvent, Handle, Payload, Reachable,
    RelayRoute,
};
use byway_sim::{Node, Random};
use byway_wire::relay::{Consent, Word};
use byway_wire::{Duration, Instant, Machine, ObjectId};
use core::net::SocketAddr;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Time between two checks of a sender whether its receiver can be reached through another relay.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// Time for which a sender checks whether its receiver can be reached through another relay.
const LOOK_TIMEOUT: Duration = Duration::from_secs(15);
/// Time between two looks of a sender whether the registry named relays.
const OFFER_LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// The entries of a ticket, one for each relay: the relay's address, the receiver's address as the
/// relay sees it, and the consent, which proves to the relay that the receiver wants packets.
/// Sender and receiver share the ticket in memory.
pub(super) type Ticket = Rc<RefCell<Vec<(SocketAddr, SocketAddr, Consent)>>>;

/// How both ends of a session are.
#[derive(Clone, Debug)]
pub(super) struct SessionSetup {
    /// The configuration of each connection.
    pub(super) config: Config,
    /// Whether the session carries and seals real bytes.
    pub(super) real_bytes: bool,
}

impl SessionSetup {
    fn endpoint(&self, random: &mut Random, admission: Option<Box<dyn Admission>>) -> Endpoint {
        let (mut secret, mut seed) = ([0; 32], [0; 32]);
        random.fill(&mut secret);
        random.fill(&mut seed);
        Endpoint::new(EndpointConfig {
            identity: Identity::from_secret(secret),
            suites: if self.real_bytes {
                Suites::only(Suite::Aes256Gcm)
            } else {
                Suites::INSECURE_SIMULATION
            },
            seed,
            connection: Config {
                payload: if self.real_bytes { Payload::Bytes } else { Payload::Length },
                ..self.config.clone()
            },
            admission,
            greeting: Vec::new(),
        })
    }
}

/// The task of a sender.
pub(super) struct SendTask {
    /// The receiver's public key.
    pub(super) peer: PublicKey,
    /// The receiver's address, if the direct way may be used.
    pub(super) direct: Option<SocketAddr>,
    /// The relay words of the relays that the sender may use.
    pub(super) words: BTreeMap<SocketAddr, Word>,
    /// The ways to the receiver through these relays.
    pub(super) ticket: Ticket,
    /// The offers of a registry, if the sender asks one, and the addresses of relays that are no
    /// detour.
    pub(super) offers: Option<(SharedOffers, Vec<SocketAddr>)>,
    /// The data to send.
    pub(super) supply: Supply,
    /// The controller that governs the session.
    pub(super) controller: Box<dyn Controller>,
    /// When the transfer begins.
    pub(super) start: Instant,
    /// The latest end of the transfer.
    pub(super) stop: Option<Instant>,
}

/// The host that sends.
pub(super) struct SessionSender {
    endpoint: Endpoint,
    peer: PublicKey,
    direct: Option<SocketAddr>,
    words: BTreeMap<SocketAddr, Word>,
    ticket: Ticket,
    /// Number of entries of the ticket that were used.
    met: usize,
    offers: Option<(SharedOffers, Vec<SocketAddr>)>,
    /// Number of the registry's offers that were taken.
    taken: usize,
    supply: Supply,
    controller: Option<Box<dyn Controller>>,
    start: Instant,
    stop: Option<Instant>,
    look_at: Option<Instant>,
    handle: Option<Handle>,
    connected: bool,
    /// The paths at the end.
    last: Vec<PathStatus>,
    /// Distinct bytes that the receiver acknowledged.
    pub(super) acked: u64,
    /// When the last byte was acknowledged.
    pub(super) finished: Option<Instant>,
    /// Why the session failed.
    pub(super) failed: Option<String>,
    over: bool,
}

impl SessionSender {
    pub(super) fn new(manner: &SessionSetup, task: SendTask, random: &mut Random) -> Self {
        Self {
            endpoint: manner.endpoint(random, None),
            peer: task.peer,
            direct: task.direct,
            words: task.words,
            ticket: task.ticket,
            met: 0,
            offers: task.offers,
            taken: 0,
            supply: task.supply,
            controller: Some(task.controller),
            start: task.start,
            stop: task.stop,
            look_at: Some(task.start),
            handle: None,
            connected: false,
            last: Vec::new(),
            acked: 0,
            finished: None,
            failed: None,
            over: false,
        }
    }

    /// Returns the paths now, or at the end, and whether the session has ended.
    pub(super) fn paths(&self) -> (Vec<PathStatus>, bool) {
        let connection =
            self.handle.filter(|_| !self.over).and_then(|handle| self.endpoint.connection(handle));
        (connection.map_or_else(|| self.last.clone(), |connection| connection.status().paths), self.over)
    }

    /// The relays that have answered a probe within the limit for relays.
    pub(super) fn available(&self, now: Instant) -> Vec<SocketAddr> {
        let relays = self.handle.map(|handle| self.endpoint.relays(now, handle)).unwrap_or_default();
        relays.into_iter().filter(|status| status.in_time).map(|status| status.relay).collect()
    }

    /// Connects as soon as there is a route, and adds relays as they become known.
    fn look(&mut self, now: Instant) {
        if self.look_at.is_none_or(|at| at > now) {
            return;
        }
        let known = self.ticket.borrow().len();
        if self.handle.is_none() && (self.direct.is_some() || known > 0) {
            let Some(controller) = self.controller.take() else { return };
            let addresses = self.direct.into_iter().collect();
            let connect = Connect { peer: self.peer, addresses, application: Vec::new(), controller };
            match self.endpoint.connect(now, connect) {
                Ok(handle) => {
                    self.handle = Some(handle);
                    if self.direct.is_some() {
                        self.offer_all(now, handle);
                    }
                }
                Err(error) => self.fail(error.to_string()),
            }
        }
        if let Some(handle) = self.handle {
            for (relay, destination, consent) in self.ticket.borrow().iter().skip(self.met) {
                let Some(word) = self.words.get(relay) else { continue };
                let reach = Some((*destination, *consent));
                let reach = RelayRoute { word: word.clone(), reach, location_key: None };
                self.endpoint.add_relay(now, handle, word, Some(&reach));
            }
            self.met = self.met.max(known);
        }
        let offered = self.take_offers(now).then_some(now + OFFER_LOOK_INTERVAL);
        let waits = !self.over && self.met < self.words.len() && now < self.start + LOOK_TIMEOUT;
        self.look_at = if waits { Some(now + LOOK_INTERVAL) } else { offered.filter(|_| !self.over) };
        if !waits && self.handle.is_none() {
            self.fail("no relay answers the receiver".to_owned());
        }
    }

    /// Takes up the relays that a registry named; whether more may come.
    fn take_offers(&mut self, now: Instant) -> bool {
        let (Some((offers, passed)), Some(handle)) = (&self.offers, self.handle) else { return false };
        for word in offers.after(self.taken) {
            self.taken += 1;
            if !word.relays().iter().any(|relay| passed.contains(relay)) {
                self.endpoint.add_relay(now, handle, &word, None);
            }
        }
        !offers.is_complete()
    }

    /// The peer is reached directly, and offered every relay over that way.
    fn offer_all(&mut self, now: Instant, handle: Handle) {
        for word in self.words.values() {
            self.endpoint.add_relay(now, handle, word, None);
        }
        self.met = self.words.len();
    }

    fn fail(&mut self, why: String) {
        self.failed.get_or_insert(why);
        self.over = true;
    }

    fn feed(&mut self, now: Instant) {
        if self.over {
            return;
        }
        let Some(handle) = self.handle.filter(|_| self.connected) else { return };
        let Some(connection) = self.endpoint.connection_mut(handle) else { return };
        while let Some(event) = connection.next_event() {
            match event {
                Event::Closed { code, reason, .. } => {
                    return self.fail(format!("closed with code {code}: {reason}"));
                }
                Event::RelaysUsedUp => {
                    if let Some((offers, _)) = &self.offers {
                        offers.use_up();
                    }
                }
                _ => {}
            }
        }
        let out = connection.outgoing();
        self.supply.fill(now, out);
        self.acked = out.progress().acked;
        while let Some(read) = out.next_read() {
            out.provide(read.object, read.offset, vec![0; read.length]);
        }
        while out.next_event().is_some() {}
        if !self.supply.is_over() {
            return;
        }
        if out.all_acked() {
            self.finished = Some(now);
            self.end(now, handle);
        } else {
            connection.finishing();
        }
    }

    fn end(&mut self, now: Instant, handle: Handle) {
        self.last = self.paths().0;
        self.over = true;
        self.endpoint.close(now, handle, 0, "done");
    }
}

impl Node for SessionSender {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.endpoint
    }

    fn turn(&mut self, now: Instant) {
        self.look(now);
        while let Some(event) = self.endpoint.next_event() {
            match event {
                EndpointEvent::Connected(_) => {
                    self.connected = true;
                    self.supply.begin(now);
                }
                EndpointEvent::Failed(_, error) => self.fail(error.to_string()),
                _ => {}
            }
        }
        if self.stop.is_some_and(|stop| stop <= now) {
            self.stop = None;
            match self.handle.filter(|_| !self.over) {
                Some(handle) => self.end(now, handle),
                None => self.over = true,
            }
            self.look_at = None;
        }
        self.feed(now);
    }

    fn alarm(&self) -> Option<Instant> {
        let supply = self.supply.due().filter(|_| self.connected && !self.over);
        [self.look_at, self.stop, supply].into_iter().flatten().min()
    }
}

/// Accepts every session. The receiver itself sends only ACKs.
struct AcceptAll;

impl Admission for AcceptAll {
    fn admit(&mut self, _: PublicKey, _: &[u8]) -> Admit {
        match by_name("newreno", 1) {
            Some(controller) => Admit::Accept(controller),
            None => Admit::Reject { code: 1, reason: "no controller".to_owned() },
        }
    }
}

/// The host that receives.
pub(super) struct SessionReceiver {
    endpoint: Endpoint,
    words: Vec<Word>,
    ticket: Ticket,
    stands: bool,
    real_bytes: bool,
    handle: Option<Handle>,
    /// Distinct bytes that came.
    pub(super) received: u64,
    objects: BTreeMap<ObjectId, RangeSet>,
    /// Bytes behind a hole.
    held: u64,
    /// Most bytes behind a hole at once.
    pub(super) reorder: u64,
}

impl SessionReceiver {
    /// Makes a host that can be reached through the relays of these relay words.
    pub(super) fn new(manner: &SessionSetup, words: Vec<Word>, ticket: Ticket, random: &mut Random) -> Self {
        Self {
            endpoint: manner.endpoint(random, Some(Box::new(AcceptAll))),
            words,
            ticket,
            stands: false,
            real_bytes: manner.real_bytes,
            handle: None,
            received: 0,
            objects: BTreeMap::new(),
            held: 0,
            reorder: 0,
        }
    }

    pub(super) fn key(&self) -> PublicKey {
        self.endpoint.public_key()
    }

    fn note(&mut self, object: ObjectId, offset: u64, length: u64) {
        self.received += length;
        let ranges = self.objects.entry(object).or_default();
        let before = ranges.prefix();
        ranges.insert(offset, offset + length);
        let released = ranges.prefix() - before;
        self.held = self.held + length - released;
        self.reorder = self.reorder.max(self.held);
    }

    fn take(&mut self, handle: Handle) {
        let Some(connection) = self.endpoint.connection_mut(handle) else { return };
        while connection.next_event().is_some() {}
        let mut arrived = Vec::new();
        let incoming = connection.incoming();
        if self.real_bytes {
            incoming.flush();
            while let Some(write) = incoming.next_write() {
                arrived.push((write.object, write.offset, write.data.len() as u64));
                incoming.written(write.data);
            }
        } else {
            while let Some(arrival) = incoming.next_arrival() {
                arrived.push((arrival.object, arrival.offset, arrival.length));
            }
        }
        let mut complete = Vec::new();
        while let Some(event) = incoming.next_event() {
            if let byway_engine::data::InEvent::ObjectComplete { id, .. } = event {
                complete.push(id);
            }
        }
        for (object, offset, length) in arrived {
            self.note(object, offset, length);
        }
        for id in complete {
            self.objects.remove(&id);
        }
    }
}

impl Node for SessionReceiver {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.endpoint
    }

    fn turn(&mut self, now: Instant) {
        if !core::mem::replace(&mut self.stands, true) {
            for word in &self.words {
                // It has a socket of the relay's family, so it can.
                let _ = self.endpoint.stand_at(now, word);
            }
        }
        while let Some(event) = self.endpoint.next_event() {
            match event {
                EndpointEvent::Accepted(handle) => self.handle = Some(handle),
                EndpointEvent::Reachable(Reachable { relay, address, consent, .. }) => {
                    self.ticket.borrow_mut().push((relay, address, consent));
                }
                _ => {}
            }
        }
        if let Some(handle) = self.handle {
            self.take(handle);
        }
    }
}
