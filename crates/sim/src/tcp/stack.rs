//! Connections, bundles and their timers: the machine under hosts, web clients and relays.

mod manual_connections;
mod manual_io;
mod paths;

use super::acks_and_timeouts::{ConnectionFate, LINGER_TIME};
use super::bundle::Bundle;
use super::connection::{Connection, NO_ENTRY, TcpState};
use super::flow_spec::{Demand, Flow, FlowTag, ReceiverReport};
use super::pace::Pace;
use super::receive::ReadPattern;
use super::segment::{
    FLAG_ACK, FLAG_RST, FLAG_SYN, MAX_HEADER_LEN, Segment, SynFields, nanos_between, stamp,
};
use super::server_config::ServerConfig;
use crate::random::Random;
use byway_control::Opened;
use byway_wire::{Datagram, Dscp, Duration, Ecn, Input, Instant, Local, Transmit, TransmitBuffer};
use core::net::{IpAddr, SocketAddr};
pub(super) use manual_connections::{ByHand, Onward};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// The number of slots. A port is a slot and how often it was used before.
const SLOT_COUNT: u32 = 1 << 16;
/// Marks bundles among the subjects of timers.
const BUNDLE_BIT: u32 = 1 << 31;

/// An event of a stack, for its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StackEvent {
    /// All of the peer's data have arrived on the connection of this bundle.
    Answered(u32),
    /// The bundle's last connection is gone.
    Gone(u32),
}

/// An answer to a segment of an unknown connection: the socket, the destination and the port.
type Refusal = (Local, SocketAddr, u32);

#[derive(Debug)]
pub(super) struct Stack {
    pub serve: ServerConfig,
    random: Random,
    /// This host's name in tags, once it has an address.
    name: Option<u64>,
    connections: Vec<Connection>,
    free: VecDeque<u32>,
    /// Accepted connections by their remote address and port.
    accepted: BTreeMap<(SocketAddr, u32), u32>,
    bundles: Vec<Bundle>,
    free_bundles: Vec<u32>,
    inbound: Vec<Inbound>,
    by_tag: BTreeMap<u64, u32>,
    ready: VecDeque<u32>,
    timers: BinaryHeap<Reverse<(Instant, u32)>>,
    refusals: VecDeque<Refusal>,
    undone: Vec<Instant>,
    /// Whether the owner takes events.
    pub watched: bool,
    pub events: Vec<StackEvent>,
    /// The destination to which a relay forwards received data. `None`: the host is no relay.
    pub onward: Option<Onward>,
    /// Accepted connections that the owner has not taken yet. `None`: the owner takes none.
    pub newcomers: Option<Vec<ByHand>>,
    pub received: u64,
}

#[derive(Debug, Default)]
struct Inbound {
    received: ReceiverReport,
    open: u32,
}

impl Stack {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            serve: ServerConfig::default(),
            random: Random::component(seed, "tcp"),
            name: None,
            connections: Vec::new(),
            free: VecDeque::new(),
            accepted: BTreeMap::new(),
            bundles: Vec::new(),
            free_bundles: Vec::new(),
            inbound: Vec::new(),
            by_tag: BTreeMap::new(),
            ready: VecDeque::new(),
            timers: BinaryHeap::new(),
            refusals: VecDeque::new(),
            undone: Vec::new(),
            watched: false,
            events: Vec::new(),
            onward: None,
            newcomers: None,
            received: 0,
        }
    }

    // Flows.

    /// Opens a flow that asks for an answer of `answer` bytes at its end. Returns the index of its
    /// bundle.
    pub(super) fn open(&mut self, flow: Flow, answer: u64) -> u32 {
        let mut bundle = Bundle::new(flow);
        bundle.answer = answer;
        let index = match self.free_bundles.pop() {
            Some(index) => index,
            None => self.bundles.len() as u32,
        };
        bundle.tag = self.name.unwrap_or(0) ^ u64::from(index);
        match self.bundles.get_mut(index as usize) {
            Some(place) => *place = bundle,
            None => self.bundles.push(bundle),
        }
        self.schedule_bundle(index);
        index
    }

    pub(super) fn bundle(&self, index: u32) -> Option<&Bundle> {
        self.bundles.get(index as usize)
    }

    /// Applies `change` to a bundle, and then lets its paths send.
    pub(super) fn with_bundle(&mut self, index: u32, change: impl FnOnce(&mut Bundle)) {
        if let Some(bundle) = self.bundles.get_mut(index as usize) {
            change(bundle);
            self.settle_bundle(index);
        }
    }

    /// Forgets a bundle that is over.
    pub(super) fn release(&mut self, index: u32) {
        self.free_bundles.push(index);
    }

    pub(super) fn connection(&self, slot: u32) -> Option<&Connection> {
        self.connections.get(slot as usize)
    }

    pub(super) fn tag(&self, index: u32) -> Option<FlowTag> {
        self.name.and(self.bundles.get(index as usize)).map(|bundle| FlowTag(bundle.tag))
    }

    pub(super) fn received(&self, tag: FlowTag) -> Option<ReceiverReport> {
        let &index = self.by_tag.get(&tag.0)?;
        self.inbound.get(index as usize).map(|inbound| inbound.received)
    }

    // The machine.

    pub(super) fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Datagram(datagram) => self.datagram(now, &datagram),
            Input::Link(change) if self.name.is_none() => {
                // High, for the low half is left to the flows' numbers. Hosts of different IPv4
                // addresses and equal ports never share a name.
                let high = match change.address.ip() {
                    IpAddr::V4(ip) => u32::from(ip),
                    IpAddr::V6(ip) => ip.octets().iter().fold(0x811c_9dc5, |hash: u32, &byte| {
                        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
                    }),
                } ^ u32::from(change.address.port()) << 16;
                let name = u64::from(high) << 32;
                self.name = Some(name);
                for bundle in &mut self.bundles {
                    bundle.tag ^= name;
                }
            }
            // A socket that went is a path that is silent.
            Input::Link(_)
            | Input::SendError(_)
            | Input::Room(_)
            | Input::Connection(_)
            | Input::NotDialed(_) => {}
        }
    }

    pub(super) fn wake(&mut self, now: Instant) {
        while let Some(&Reverse((at, subject))) = self.timers.peek()
            && at <= now
        {
            self.timers.pop();
            if subject & BUNDLE_BIT != 0 {
                self.bundle_due(now, at, subject & !BUNDLE_BIT);
            } else {
                self.connection_due(now, at, subject);
            }
        }
    }

    pub(super) fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        while let Some(&slot) = self.ready.front() {
            if let Some(connection) = self.connections.get_mut(slot as usize) {
                let bundle = self.bundles.get_mut(connection.bundle as usize);
                if let Some(transmit) = connection.transmit(now, bundle, out) {
                    // Those that can send more take turns.
                    if self.ready.len() > 1 {
                        self.ready.rotate_left(1);
                    }
                    return Some(transmit);
                }
                connection.queued = false;
                let deadline = connection.deadline();
                if deadline < connection.scheduled {
                    connection.scheduled = deadline;
                    self.timers.push(Reverse((deadline, slot)));
                }
                let index = connection.bundle;
                self.ready.pop_front();
                self.schedule_bundle(index);
            } else {
                self.ready.pop_front();
            }
        }
        let (local, remote, to) = self.refusals.pop_front()?;
        let segment = Segment { flags: FLAG_RST, to, stamp: stamp(now), ..Segment::default() };
        let size = segment.encode(0, out.buffer)?;
        Some(Transmit {
            local,
            remote,
            ecn: Ecn::NotEct,
            dscp: Dscp::BestEffort,
            size,
            segment: size,
            phantom: 0,
        })
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    // What happens.

    fn datagram(&mut self, now: Instant, datagram: &Datagram<'_>) {
        if datagram.payload.len() > MAX_HEADER_LEN {
            return;
        }
        let Some(segment) = Segment::decode(datagram.payload, datagram.phantom) else { return };
        if segment.flags & (FLAG_SYN | FLAG_ACK) == FLAG_SYN {
            self.on_syn(now, datagram, &segment);
            return;
        }
        let slot = segment.to & (SLOT_COUNT - 1);
        let known = self.connections.get_mut(slot as usize).filter(|connection| {
            connection.port == segment.to
                && connection.remote == datagram.remote
                && connection.state != TcpState::Closed
        });
        let Some(connection) = known else {
            if segment.flags & (FLAG_SYN | FLAG_RST) == FLAG_SYN {
                self.refusals.push_back((datagram.local, datagram.remote, segment.opening.port));
            }
            return;
        };
        if segment.has(FLAG_RST) {
            self.on_fate(now, slot, ConnectionFate::Dead);
            return;
        }
        let index = connection.bundle;
        let bundle = self.bundles.get_mut(index as usize);
        if segment.has(FLAG_SYN) {
            // The answer to a SYN, perhaps not for the first time.
            connection.receive.ack_now = true;
            if connection.state == TcpState::SynSent {
                connection.state = TcpState::Open;
                connection.agree(&segment);
                connection.retransmission_at = Instant::FAR_FUTURE;
                let rtt = nanos_between(segment.echo, stamp(now)).max(0).unsigned_abs();
                let rtt = Duration::from_nanos(rtt);
                connection.rtt.sample(rtt);
                connection.rtt.backoff = 0;
                if let Some(bundle) = bundle {
                    let packet_size = connection.mss as u32;
                    let proxied =
                        bundle.candidates.get(connection.place).is_some_and(|place| place.subflow.proxied);
                    let opened = Opened { now, proxied, packet_size, rtt: Some(rtt) };
                    bundle.open_path(connection.path, &opened);
                }
            }
            self.ready(slot);
            return;
        }
        if connection.state == TcpState::SynReceived && segment.has(FLAG_ACK) {
            connection.state = TcpState::Open;
            connection.rtt.backoff = 0;
            connection.retransmission_at = Instant::FAR_FUTURE;
            connection.on_handshake(now);
        }
        let taken = connection.on_segment(now, &segment, datagram.phantom as u32, bundle, &mut self.undone);
        let ended = connection.receive.is_complete() && !connection.ended;
        let over = connection.is_over();
        let inbound = connection.inbound;
        connection.received += taken;
        if taken > 0 {
            self.received += taken;
            self.note_received(now, inbound, taken);
        }
        if ended {
            self.on_end(now, slot);
        }
        if over {
            self.on_fate(now, slot, ConnectionFate::Over);
        }
        self.ready(slot);
        if index != NO_ENTRY {
            self.after(now, index);
        }
    }

    fn note_received(&mut self, now: Instant, inbound: u32, bytes: u64) {
        if let Some(inbound) = self.inbound.get_mut(inbound as usize) {
            inbound.received.bytes += bytes;
            inbound.received.first.get_or_insert(now);
            inbound.received.last = Some(now);
        }
    }

    fn on_syn(&mut self, now: Instant, datagram: &Datagram<'_>, segment: &Segment) {
        let key = (datagram.remote, segment.opening.port);
        if let Some(&slot) = self.accepted.get(&key) {
            let connection = &mut self.connections[slot as usize];
            if connection.state == TcpState::SynReceived {
                connection.syn_due = true;
                self.ready(slot);
            }
            return;
        }
        let reading = match self.serve.reading.as_slice() {
            _ if self.onward.is_some() || self.newcomers.is_some() => ReadPattern::ByHand,
            [] => ReadPattern::All,
            steps => ReadPattern::Paced(Pace::new(steps.to_vec())),
        };
        let options = self.serve.options.clone();
        let Some(slot) = self.claim(now, (datagram.local, datagram.remote), &options, reading) else {
            return;
        };
        self.accepted.insert(key, slot);
        let SynFields { tag, answer, .. } = segment.opening;
        let mut inbound = NO_ENTRY;
        if answer == 0 {
            inbound = *self.by_tag.entry(tag).or_insert(self.inbound.len() as u32);
            if inbound as usize == self.inbound.len() {
                self.inbound.push(Inbound::default());
            }
            self.inbound[inbound as usize].open += 1;
        }
        let connection = &mut self.connections[slot as usize];
        connection.inbound = inbound;
        connection.state = TcpState::SynReceived;
        connection.opening.answer = answer;
        connection.agree(segment);
        connection.receive.echo = segment.stamp;
        self.ready(slot);
        self.carry_on(now, slot);
        self.take_by_hand(now, slot, tag);
    }

    /// Handles the end of the peer's data: this side ends too, or answers.
    fn on_end(&mut self, now: Instant, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        connection.ended = true;
        let (answer, index) = (connection.opening.answer, connection.bundle);
        if let Some(inbound) = self.inbound.get_mut(connection.inbound as usize) {
            inbound.open = inbound.open.saturating_sub(1);
            if inbound.open == 0 {
                inbound.received.finished.get_or_insert(now);
            }
        }
        if index != NO_ENTRY {
            if self.watched {
                self.events.push(StackEvent::Answered(index));
            }
            return;
        }
        if answer == 0 {
            connection.closing = true;
            return;
        }
        let (path, rtt) = (connection.path, connection.rtt.smoothed);
        let packet_size = connection.mss as u32;
        let controller = (self.serve.controller)(self.random.next_u64(), &self.serve.options);
        let mut flow = Flow::new(Vec::new(), controller).demand(Demand::Size(answer)).start(now);
        flow.options = self.serve.options.clone();
        let index = self.open(flow, 0);
        let bundle = &mut self.bundles[index as usize];
        bundle.started = Some(now);
        bundle.connections.push(slot);
        let rtt = Some(rtt).filter(|rtt| !rtt.is_zero());
        bundle.open_path(path, &Opened { now, proxied: false, packet_size, rtt });
        self.connections[slot as usize].bundle = index;
    }

    fn on_fate(&mut self, now: Instant, slot: u32, fate: ConnectionFate) {
        let connection = &mut self.connections[slot as usize];
        match fate {
            ConnectionFate::Lives => {}
            ConnectionFate::Over if connection.state == TcpState::Open => {
                connection.state = TcpState::Lingering;
                connection.expect_nothing();
                connection.linger_at = now + LINGER_TIME;
                self.detach(now, slot);
            }
            ConnectionFate::Over if connection.linger_at > now => {}
            ConnectionFate::Over | ConnectionFate::Dead => {
                connection.state = TcpState::Closed;
                connection.linger_at = Instant::FAR_FUTURE;
                connection.expect_nothing();
                self.detach(now, slot);
                let connection = &mut self.connections[slot as usize];
                let key = (connection.remote, connection.peer_port);
                if self.accepted.get(&key) == Some(&slot) {
                    self.accepted.remove(&key);
                }
                self.free.push_back(slot);
            }
        }
    }

    fn connection_due(&mut self, now: Instant, at: Instant, slot: u32) {
        let chance = self.random.unit();
        let connection = &mut self.connections[slot as usize];
        if connection.scheduled != at {
            return;
        }
        connection.scheduled = Instant::FAR_FUTURE;
        if connection.state == TcpState::Closed {
            return;
        }
        let index = connection.bundle;
        let bundle = self.bundles.get_mut(index as usize);
        let (taken, fate) = connection.on_timer(now, bundle, chance);
        connection.received += taken;
        let inbound = connection.inbound;
        if taken > 0 {
            self.received += taken;
            self.note_received(now, inbound, taken);
        }
        self.on_fate(now, slot, fate);
        self.ready(slot);
        if index != NO_ENTRY {
            self.after(now, index);
        }
    }

    fn bundle_due(&mut self, now: Instant, at: Instant, index: u32) {
        let bundle = &mut self.bundles[index as usize];
        if bundle.scheduled != at {
            return;
        }
        bundle.scheduled = Instant::FAR_FUTURE;
        if bundle.started.is_none() && bundle.start <= now {
            bundle.started = Some(now);
            for place in 0..bundle.at_start.min(bundle.candidates.len()) {
                self.connect(now, index, place);
            }
        }
        let bundle = &mut self.bundles[index as usize];
        bundle.on_timer(now);
        self.after(now, index);
        self.settle_bundle(index);
    }

    fn ready(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        if !connection.queued {
            connection.queued = true;
            self.ready.push_back(slot);
        }
    }

    /// Lets all paths of a bundle send if they can.
    fn settle_bundle(&mut self, index: u32) {
        for place in 0..self.bundles[index as usize].connections.len() {
            self.ready(self.bundles[index as usize].connections[place]);
        }
        self.schedule_bundle(index);
    }

    fn schedule_bundle(&mut self, index: u32) {
        // A connection that only receives has none.
        let Some(bundle) = self.bundles.get_mut(index as usize) else { return };
        let deadline = bundle.deadline();
        if deadline < bundle.scheduled {
            bundle.scheduled = deadline;
            self.timers.push(Reverse((deadline, BUNDLE_BIT | index)));
        }
    }
}
