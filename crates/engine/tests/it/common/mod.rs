//! Hosts for simulated worlds: an endpoint and an application that sends or takes objects and a
//! stream.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test says so when it cannot go on")]

pub mod detours;
pub mod harm;
pub mod liar;
pub mod many;
pub mod shared;
pub mod spy;
pub mod strangers;
pub mod talk;

use byway_control::{Controller, by_name};
use byway_engine::connection::Event;
use byway_engine::data::{InEvent, OutEvent};
use byway_engine::handshake::{Identity, PublicKey};
use byway_engine::seal::Suites;
use byway_engine::{
    Admission, Admit, Config, Connect, ConnectError, Endpoint, EndpointConfig, EndpointEvent, Handle,
    Payload, Reachable, RelayRoute, RelayTrouble,
};
use byway_sim::{Node, NodeId, PipeConfig, World};
use byway_wire::relay::{Consent, Word};
use byway_wire::{Duration, Instant, Machine, ObjectId, StreamId};
use std::collections::BTreeMap;
use std::net::SocketAddr;

pub const MS: Duration = Duration::from_millis(1);

/// The byte at `offset` of `object`: anything that shows when bytes are mixed up.
pub fn pattern(object: u32, offset: u64) -> u8 {
    let mixed = (offset / 7).wrapping_mul(0x9e37_79b9).wrapping_add(u64::from(object) * 0x85eb_ca6b) ^ offset;
    (mixed ^ (mixed >> 13)) as u8
}

pub fn pattern_bytes(object: u32, offset: u64, length: usize) -> Vec<u8> {
    (offset..offset + length as u64).map(|at| pattern(object, at)).collect()
}

/// The initiator's `index`th stream.
pub fn stream_id(index: u32) -> StreamId {
    StreamId(2 * index)
}

/// What the bytes of a stream are made of.
pub fn stream_pattern(id: StreamId) -> u32 {
    u32::MAX - id.0
}

pub fn identity(seed: u8) -> Identity {
    Identity::from_secret([seed; 32])
}

/// Takes everybody.
struct Everybody(&'static str);

impl Admission for Everybody {
    fn admit(&mut self, _peer: PublicKey, said: &[u8]) -> Admit {
        if said == b"no" {
            return Admit::Reject { code: 6, reason: "not on the list".into() };
        }
        Admit::Accept(by_name(self.0, 2).expect("a controller"))
    }
}

/// What a sending host sends.
#[derive(Clone, Debug)]
pub struct Plan {
    pub congestion: &'static str,
    pub objects: Vec<u64>,
    /// Bytes of each stream; 0: none is opened.
    pub stream: u64,
    pub streams: u32,
    /// Whether nothing is written to a stream before all objects arrived.
    pub stream_last: bool,
    pub start: Duration,
    pub said: &'static [u8],
    pub addresses: Vec<SocketAddr>,
    pub config: Config,
    pub suites: Suites,
    /// What writes down what the sender's controller is told.
    pub log: Option<spy::Log>,
    /// Relays to send through, each perhaps with what a ticket says about reaching the peer through
    /// it.
    pub relays: Vec<(Word, Option<RelayRoute>)>,
}

impl Plan {
    pub fn new(congestion: &'static str, objects: &[u64], to: &[SocketAddr]) -> Self {
        Self {
            congestion,
            objects: objects.to_vec(),
            stream: 0,
            streams: 1,
            stream_last: false,
            start: Duration::ZERO,
            said: b"",
            addresses: to.to_vec(),
            config: Config::default(),
            suites: Suites::SECURE,
            log: None,
            relays: Vec::new(),
        }
    }
}

impl Plan {
    fn controller(&self) -> Box<dyn Controller> {
        let controller = by_name(self.congestion, 1).expect("a controller");
        match &self.log {
            Some(log) => Box::new(spy::Spy::new(controller, log)),
            None => controller,
        }
    }

    /// Headers only, and no cipher: for what takes long.
    pub fn lengths(mut self) -> Self {
        self.config.payload = Payload::Length;
        self.suites = Suites::INSECURE_SIMULATION;
        self
    }
}

/// A host that sends.
pub struct Sender {
    pub endpoint: Endpoint,
    plan: Plan,
    peer: PublicKey,
    pub handle: Option<Handle>,
    pub connected_at: Option<Instant>,
    pub done_at: Option<Instant>,
    pub failed: Option<ConnectError>,
    pub closed: Option<(u64, String)>,
    pub events: Vec<Event>,
    /// Bytes written to each stream that is not yet written to its end.
    writing: BTreeMap<u32, u64>,
    pub acked: Vec<ObjectId>,
    pub keep_open: bool,
    pub troubles: Vec<(SocketAddr, RelayTrouble)>,
    /// How often packets or deadlines woke the host.
    pub turn_count: u64,
}

impl Sender {
    pub fn new(seed: u8, peer: PublicKey, plan: Plan) -> Self {
        Self::with_key(seed, seed, peer, plan)
    }

    /// One of several hosts that may have the same key, each with a seed of its own.
    pub fn with_key(key: u8, seed: u8, peer: PublicKey, plan: Plan) -> Self {
        let streams = if plan.stream > 0 { plan.streams } else { 0 };
        let endpoint = Endpoint::new(EndpointConfig {
            identity: identity(key),
            suites: plan.suites,
            seed: [seed ^ 0x55; 32],
            connection: plan.config.clone(),
            admission: None,
            greeting: Vec::new(),
        });
        Self {
            endpoint,
            plan,
            peer,
            handle: None,
            connected_at: None,
            done_at: None,
            failed: None,
            closed: None,
            events: Vec::new(),
            writing: (0..streams).map(|index| (index, 0)).collect(),
            acked: Vec::new(),
            keep_open: false,
            troubles: Vec::new(),
            turn_count: 0,
        }
    }

    /// Has learnt from a ticket how the peer can be reached through a relay.
    pub fn meet(&mut self, word: Word, reach: RelayRoute) {
        self.plan.relays.push((word, Some(reach)));
    }

    pub fn finished(&self) -> bool {
        self.done_at.is_some() || self.failed.is_some() || self.closed.is_some()
    }

    fn feed(&mut self, now: Instant) {
        let Some(connection) = self.handle.and_then(|handle| self.endpoint.connection_mut(handle)) else {
            return;
        };
        while let Some(event) = connection.next_event() {
            if let Event::Closed { code, reason, .. } = &event {
                self.closed = Some((*code, reason.clone()));
            }
            self.events.push(event);
        }
        if self.connected_at.is_none() || connection.is_closing() {
            return;
        }
        let out = connection.outgoing();
        while let Some(read) = out.next_read() {
            let bytes = pattern_bytes(read.object.0, read.offset, read.length);
            out.provide(read.object, read.offset, bytes);
        }
        let waits = self.plan.stream_last && self.acked.len() < self.plan.objects.len();
        let size = if waits { 0 } else { self.plan.stream };
        self.writing.retain(|index, sent| {
            let id = stream_id(*index);
            while *sent < size {
                let chunk = (size - *sent).min(8192) as usize;
                let taken = out.write(id, &pattern_bytes(stream_pattern(id), *sent, chunk));
                *sent += taken as u64;
                if taken < chunk {
                    return true;
                }
            }
            if !waits {
                out.finish(id);
            }
            waits
        });
        while let Some(event) = out.next_event() {
            if let OutEvent::ObjectAcked(id) = event {
                self.acked.push(id);
            }
        }
        if self.writing.is_empty() && out.all_acked() && self.done_at.is_none() {
            self.done_at = Some(now);
            if !self.keep_open {
                let handle = self.handle.expect("connected");
                self.endpoint.close(now, handle, 0, "done");
            }
        } else {
            connection.finishing();
        }
    }
}

impl Node for Sender {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.endpoint
    }

    fn turn(&mut self, now: Instant) {
        self.turn_count += 1;
        if self.handle.is_none() && now >= Instant::ZERO + self.plan.start {
            let connect = Connect {
                peer: self.peer,
                addresses: self.plan.addresses.clone(),
                application: self.plan.said.to_vec(),
                controller: self.plan.controller(),
            };
            let handle = self.endpoint.connect(now, connect).expect("an attempt");
            for (word, reach) in &self.plan.relays {
                self.endpoint.add_relay(now, handle, word, reach.as_ref());
            }
            self.handle = Some(handle);
        }
        while let Some(event) = self.endpoint.next_event() {
            match event {
                EndpointEvent::Connected(handle) => {
                    self.connected_at = Some(now);
                    let out = self.endpoint.connection_mut(handle).expect("connected").outgoing();
                    for (index, size) in self.plan.objects.iter().enumerate() {
                        out.add_object(ObjectId(index as u32), *size);
                    }
                    for index in self.writing.keys() {
                        out.open_stream(stream_id(*index));
                    }
                }
                EndpointEvent::Failed(_, error) => self.failed = Some(error),
                EndpointEvent::RelayTrouble(_, relay, trouble) => self.troubles.push((relay, trouble)),
                _ => {}
            }
        }
        self.feed(now);
    }

    fn alarm(&self) -> Option<Instant> {
        self.handle.is_none().then_some(Instant::ZERO + self.plan.start)
    }
}

/// A host that receives, and checks every byte.
pub struct Receiver {
    pub endpoint: Endpoint,
    pub handles: Vec<Handle>,
    pub received: u64,
    pub complete: Vec<(ObjectId, u64)>,
    /// Bytes read from streams, and how many of them ended.
    pub stream: u64,
    pub streams_finished: u32,
    reading: BTreeMap<StreamId, u64>,
    pub closed: Vec<(u64, String)>,
    /// Time and bytes received so far, a mark each 100 ms.
    pub marks: Vec<(Instant, u64)>,
    /// What objects are made of.
    pub payload: Payload,
    /// Stops taking what arrives.
    pub stuck: bool,
    /// Takes objects, and reads no stream.
    pub deaf: bool,
    /// How it can be reached through relays where it stands.
    pub reachable: Vec<(SocketAddr, SocketAddr, Consent)>,
    /// The grants under which it can be.
    pub reachable_grants: Vec<u32>,
    /// Whether each of these relays remembers this side.
    pub is_remembered: Vec<bool>,
    /// The grants under which it cannot, and why.
    pub standing_troubles: Vec<(u32, RelayTrouble)>,
    /// How often packets or deadlines woke the host.
    pub turn_count: u64,
}

impl Receiver {
    pub fn new(seed: u8, config: Config, suites: Suites) -> Self {
        let payload = config.payload;
        let endpoint = Endpoint::new(EndpointConfig {
            identity: identity(seed),
            suites,
            seed: [seed ^ 0xaa; 32],
            connection: config,
            admission: Some(Box::new(Everybody("background"))),
            greeting: b"hello".to_vec(),
        });
        Self {
            endpoint,
            handles: Vec::new(),
            received: 0,
            complete: Vec::new(),
            stream: 0,
            streams_finished: 0,
            reading: BTreeMap::new(),
            closed: Vec::new(),
            marks: Vec::new(),
            payload,
            stuck: false,
            deaf: false,
            reachable: Vec::new(),
            reachable_grants: Vec::new(),
            is_remembered: Vec::new(),
            standing_troubles: Vec::new(),
            turn_count: 0,
        }
    }

    fn take(&mut self, handle: Handle) {
        let Some(connection) = self.endpoint.connection_mut(handle) else { return };
        while let Some(event) = connection.next_event() {
            if let Event::Closed { code, reason, .. } = event {
                self.closed.push((code, reason));
            }
        }
        if self.stuck {
            return;
        }
        let incoming = connection.incoming();
        incoming.flush();
        while self.payload == Payload::Length
            && let Some(arrival) = incoming.next_arrival()
        {
            self.received += arrival.length;
        }
        while let Some(write) = incoming.next_write() {
            let expected = pattern_bytes(write.object.0, write.offset, write.data.len());
            assert!(write.data == expected, "{:?} at {} is wrong", write.object, write.offset);
            self.received += write.data.len() as u64;
            incoming.written(write.data);
        }
        while let Some(event) = incoming.next_event() {
            match event {
                InEvent::ObjectComplete { id, size } => self.complete.push((id, size)),
                InEvent::StreamReadable(id) | InEvent::StreamOpened(id) if !self.deaf => {
                    let mut buffer = [0; 4096];
                    let at = self.reading.entry(id).or_default();
                    while let Some(read) = incoming.read(id, &mut buffer) {
                        let expected = pattern_bytes(stream_pattern(id), *at, read.length);
                        assert_eq!(buffer[..read.length], expected[..], "{id:?} at {at}");
                        *at += read.length as u64;
                        self.stream += read.length as u64;
                        self.streams_finished += u32::from(read.finished);
                        if read.finished || read.length == 0 {
                            break;
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

impl Node for Receiver {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.endpoint
    }

    fn turn(&mut self, now: Instant) {
        self.turn_count += 1;
        while let Some(event) = self.endpoint.next_event() {
            match event {
                EndpointEvent::Accepted(handle) => self.handles.push(handle),
                EndpointEvent::Reachable(Reachable { relay, grant, address, consent, is_remembered }) => {
                    self.reachable.push((relay, address, consent));
                    self.is_remembered.push(is_remembered);
                    self.reachable_grants.push(grant);
                }
                EndpointEvent::StandingTrouble(_, grant, trouble) => {
                    self.standing_troubles.push((grant, trouble));
                }
                _ => {}
            }
        }
        for handle in self.handles.clone() {
            self.take(handle);
        }
        if self.marks.last().is_none_or(|(at, _)| now.since(*at) >= 100 * MS) {
            self.marks.push((now, self.received));
        }
    }
}

impl Receiver {
    /// Goodput in bits per second between two times.
    pub fn goodput(&self, from: Duration, until: Duration) -> f64 {
        let at = |time: Duration| {
            let time = Instant::ZERO + time;
            *self.marks.iter().rev().find(|(at, _)| *at <= time).expect("a mark")
        };
        let ((a, before), (b, after)) = (at(from), at(until));
        (after - before) as f64 * 8.0 / b.since(a).as_secs_f64()
    }
}

pub fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// A sender with `paths` sockets, each with a pipe of its own to and from the receiver.
pub struct Parallel {
    pub world: World,
    pub sender: byway_sim::Handle<Sender>,
    pub receiver: byway_sim::Handle<Receiver>,
    pub there: Vec<byway_sim::LinkId>,
    pub back: Vec<byway_sim::LinkId>,
}

pub fn parallel(seed: u64, mut plan: Plan, pipes: &[(PipeConfig, PipeConfig)]) -> Parallel {
    let mut world = World::new(seed);
    let to = address("10.0.1.1:4000");
    if plan.addresses.is_empty() {
        plan.addresses.push(to);
    }
    let (config, suites) = (plan.config.clone(), plan.suites);
    let receiver = world.add("receiver", Receiver::new(9, config, suites), &[to]);
    let locals: Vec<SocketAddr> =
        (0..pipes.len()).map(|path| address(&format!("10.0.0.{}:5000", path + 1))).collect();
    let sender = world.add("sender", Sender::new(7, identity(9).public(), plan), &locals);
    let (mut there, mut back) = (Vec::new(), Vec::new());
    for (local, (up, down)) in locals.iter().zip(pipes) {
        let (a, b) = world.connect(*local, to, up.clone(), down.clone());
        there.push(a);
        back.push(b);
    }
    Parallel { world, sender, receiver, there, back }
}

impl Parallel {
    /// Runs until the sender is done; panics if that takes longer than `limit`.
    pub fn finish(&mut self, limit: Duration) -> Duration {
        let sender = self.sender;
        let done = self.world.run_while(|world| !world[sender].finished(), Instant::ZERO + limit);
        let host = &self.world[sender];
        assert!(done, "not done after {limit:?}: received {}", self.world[self.receiver].received);
        assert_eq!(host.failed, None);
        let done_at = host.done_at.unwrap_or_else(|| panic!("closed: {:?}", host.closed));
        done_at.since(Instant::ZERO)
    }
}

/// A line of this many Mbit/s and this one-way delay, with a queue of 50 packets.
pub fn line(mbit: u64, delay: Duration) -> PipeConfig {
    PipeConfig::new(mbit * 1_000_000, delay).queue(50)
}

/// A pair of equal pipes, one for each direction.
pub fn both(config: PipeConfig) -> (PipeConfig, PipeConfig) {
    (config.clone(), config)
}

pub fn id(node: impl Into<NodeId>) -> NodeId {
    node.into()
}

/// The secret in a ticket, by which a relay names a receiver.
pub const TICKET_SECRET: [u8; 16] = *b"permission 1234.";

/// A route through a relay that is asked for no location.
pub fn relay_route(word: &Word, destination: SocketAddr, consent: Consent) -> RelayRoute {
    RelayRoute { word: word.clone(), reach: Some((destination, consent)), location_key: None }
}
