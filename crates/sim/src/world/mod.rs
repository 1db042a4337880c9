//! Nodes, routes, and the loop that runs them and asserts its own laws.
//!
//! The loop does what every driver does: it hands a machine what arrived, wakes it at its deadline, drains what it wants to send,
//! and sleeps until the next deadline. It panics, with the law and the name of the culprit, when
//!
//! * a link's books do not balance, its queue exceeds its bound, or it reorders though it may not,
//! * time would go back,
//! * a machine's deadline stays in the past after `wake` and `transmit`, or it transmits without end,
//! * a spurious wake changes something ([`World::wake_spuriously`]),
//! * a machine writes what [`Transmit`] does not allow.

mod network;
mod node;
mod trace;

pub use network::{Counters, LinkId, Stray};
pub use node::{Handle, Node, NodeId};

use crate::clock::Clock;
use crate::link::Link;
use crate::pipe::{Pipe, PipeConfig};
use crate::random::Random;
use byway_wire::{
    Datagram, Duration, Ecn, Input, Instant, LinkChange, Local, Out, SendError, SendErrorKind, Transmit,
};
use core::any::Any;
use core::fmt;
use core::marker::PhantomData;
use core::net::{IpAddr, SocketAddr};
use core::ops::Index;
use network::{Happening, Network, Onward};
use std::collections::BTreeMap;
use trace::Trace;

/// How often a machine may want to be woken again at one instant before it counts as stuck.
const ROUNDS_PER_INSTANT: u32 = 1_000;
/// How many datagrams a machine may send at one instant before it counts as never ending.
const DATAGRAMS_PER_INSTANT: u32 = 1 << 18;
/// How many events may happen at one instant before the world counts as stuck.
const EVENTS_PER_INSTANT: u64 = 1 << 20;
/// Room for what a machine sends in one run: the most that one UDP call takes.
const SCRATCH: usize = 65_536;

/// Where a route begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// At whatever has this IP address.
    Address(IpAddr),
    /// At this socket of this node, whatever its address. Goes before [`Source::Address`].
    Socket(NodeId, Local),
}

impl From<SocketAddr> for Source {
    fn from(address: SocketAddr) -> Self {
        Self::Address(address.ip())
    }
}

impl From<IpAddr> for Source {
    fn from(address: IpAddr) -> Self {
        Self::Address(address)
    }
}

impl<N: Into<NodeId>> From<(N, Local)> for Source {
    fn from((node, local): (N, Local)) -> Self {
        Self::Socket(node.into(), local)
    }
}

/// A datagram on its way into the network, as a tap sees it: it may read and change it.
#[derive(Debug)]
pub struct Seen<'a> {
    /// The world's time.
    pub now: Instant,
    /// Who sends it; `from` may be forged.
    pub from: &'a mut SocketAddr,
    /// Where it goes. The route is chosen already.
    pub to: &'a mut SocketAddr,
    /// Its mark.
    pub ecn: &'a mut Ecn,
    /// Its bytes.
    pub payload: &'a mut Vec<u8>,
}

/// What a tap wants done with a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Let it go on, changed or not.
    Pass,
    /// Take it away.
    Drop,
}

type Tap = Box<dyn FnMut(Seen<'_>) -> Verdict>;

#[derive(Debug)]
struct Socket {
    /// The address that the machine was told.
    told: SocketAddr,
    /// The address that the world sees: another one behind a NAT.
    seen: SocketAddr,
    up: bool,
    /// Routes looked up before, in order of address.
    routes: Vec<(IpAddr, Option<u32>)>,
}

struct Slot {
    name: String,
    node: Box<dyn Node>,
    clock: Clock,
    sockets: Vec<Socket>,
    frozen: bool,
    /// Has not run yet since it was made, or thawed.
    fresh: bool,
    /// The earliest wake of this node in the heap; later ones there are stale.
    wake_at: Instant,
}

/// Early wakes at random, to test that they change nothing.
struct Spurious {
    probability: f64,
    random: Random,
}

/// A simulated world.
///
/// *Building*: [`add`](Self::add), [`link`](Self::link), [`route`](Self::route), [`connect`](Self::connect).
/// *Running*: [`run_until`](Self::run_until), [`run_for`](Self::run_for), [`run_while`](Self::run_while).
/// *Looking*: `world[handle]`, [`counters`](Self::counters), [`stray`](Self::stray), [`trace`](Self::trace).
/// *Meddling*: [`act`](Self::act), [`inject`](Self::inject), [`tap`](Self::tap), [`rebind`](Self::rebind),
/// [`move_local`](Self::move_local), [`set_up`](Self::set_up), [`freeze`](Self::freeze), [`replace`](Self::replace),
/// [`pipe`](Self::pipe).
pub struct World {
    now: Instant,
    seed: u64,
    slots: Vec<Slot>,
    owners: BTreeMap<SocketAddr, (u32, u16)>,
    network: Network,
    tap: Option<Tap>,
    spurious: Option<Spurious>,
    scratch: Vec<u8>,
    max_segments: usize,
    events: u64,
    events_now: u64,
}

impl World {
    /// An empty world; everything random in it follows from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            now: Instant::ZERO,
            seed,
            slots: Vec::new(),
            owners: BTreeMap::new(),
            network: Network::new(),
            tap: None,
            spurious: None,
            scratch: vec![0; SCRATCH],
            max_segments: 64,
            events: 0,
            events_now: 0,
        }
    }

    /// The stream of random numbers of a component of this world. Names of links are taken by the links.
    #[must_use]
    pub fn random(&self, component: &str) -> Random {
        Random::component(self.seed, component)
    }

    // Building.

    /// Adds a node with a socket for each address. Its machine is told its locals at once, and runs when the world does.
    ///
    /// # Panics
    /// If an address is taken.
    pub fn add<T: Node>(&mut self, name: &str, node: T, addresses: &[SocketAddr]) -> Handle<T> {
        let id = self.slots.len() as u32;
        let sockets: Vec<Socket> = addresses
            .iter()
            .map(|&address| Socket { told: address, seen: address, up: true, routes: Vec::new() })
            .collect();
        for (local, &address) in addresses.iter().enumerate() {
            let taken = self.owners.insert(address, (id, local as u16));
            assert!(taken.is_none(), "{name}: {address} is taken");
        }
        self.slots.push(Slot {
            name: name.to_owned(),
            node: Box::new(node),
            clock: Clock::new(),
            sockets,
            frozen: false,
            fresh: true,
            wake_at: Instant::FAR_FUTURE,
        });
        self.introduce(id);
        Handle { id: NodeId(id), kind: PhantomData }
    }

    /// Gives a node a clock of its own. Call it before the world runs: the machine's clock never goes back.
    ///
    /// # Panics
    /// If the new clock shows an earlier time than the old one.
    pub fn set_clock(&mut self, node: impl Into<NodeId>, clock: Clock) {
        let now = self.now;
        let id = node.into();
        let slot = self.slot_mut(id);
        assert!(clock.local(now) >= slot.clock.local(now), "{}: its clock would go back", slot.name);
        slot.clock = clock;
        self.wake_soon(id.0);
    }

    /// Adds a pipe. Its faults follow from the world's seed and its name.
    ///
    /// # Panics
    /// If another link has this name.
    pub fn link(&mut self, name: &str, config: PipeConfig) -> LinkId {
        let random = self.random(name);
        self.link_with(name, Pipe::new(config, random))
    }

    /// Adds a link of another kind.
    ///
    /// # Panics
    /// If another link has this name.
    pub fn link_with(&mut self, name: &str, link: impl Link) -> LinkId {
        self.network.add(name, Box::new(link))
    }

    /// Packets from `from` to the IP address `to` follow these links in turn; several routes may share a link. A route
    /// of no links is an arrival at once. A later route replaces an earlier one.
    pub fn route(&mut self, from: impl Into<Source>, to: IpAddr, links: &[LinkId]) {
        let chain = self.network.chain(links);
        match from.into() {
            Source::Address(from) => self.network.route_address(from, to, chain),
            Source::Socket(node, local) => self.network.route_local(node.0, local.0, to, chain),
        }
        for socket in self.slots.iter_mut().flat_map(|slot| &mut slot.sockets) {
            socket.routes.clear();
        }
    }

    /// Joins the hosts of two addresses by a pipe each way, called "a>b" and "b>a" after the IP addresses.
    ///
    /// # Panics
    /// If they are joined already.
    pub fn connect(
        &mut self,
        a: SocketAddr,
        b: SocketAddr,
        there: PipeConfig,
        back: PipeConfig,
    ) -> (LinkId, LinkId) {
        let there = self.link(&format!("{}>{}", a.ip(), b.ip()), there);
        let back = self.link(&format!("{}>{}", b.ip(), a.ip()), back);
        self.route(a, b.ip(), &[there]);
        self.route(b, a.ip(), &[back]);
        (there, back)
    }

    /// How many datagrams machines may send in one run; 1: no segmentation. 64 to begin with.
    pub fn set_max_segments(&mut self, segments: usize) {
        self.max_segments = segments.max(1);
    }

    /// Stops the trace: no hash of every byte, for speed.
    pub fn stop_trace(&mut self) {
        self.network.trace = None;
    }

    /// Between events, wakes a random node with this probability. By the law of machines it changes nothing: this
    /// asserts that nothing is sent and no deadline moves.
    pub fn wake_spuriously(&mut self, probability: f64) {
        let random = self.random("spurious wakes");
        self.spurious = Some(Spurious { probability, random });
    }

    // Looking.

    /// The world's time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// What the clock of a node shows now.
    #[must_use]
    pub fn local_now(&self, node: impl Into<NodeId>) -> Instant {
        self.slot(node.into()).clock.local(self.now)
    }

    /// The books of a link.
    #[must_use]
    pub fn counters(&mut self, link: LinkId) -> Counters {
        self.network.counters(self.now, link)
    }

    /// What went astray outside of links.
    #[must_use]
    pub fn stray(&self) -> Stray {
        self.network.stray
    }

    /// A hash over time, link, size and bytes of all that was delivered, and over all drops; 0 if stopped.
    #[must_use]
    pub fn trace(&self) -> u64 {
        self.network.trace.as_ref().map_or(0, Trace::value)
    }

    /// How many events happened.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    // Meddling.

    /// Lets the application of a node do something now (open, write, read); the machine then runs.
    pub fn act<T: Node, R>(&mut self, node: Handle<T>, action: impl FnOnce(&mut T, Instant) -> R) -> R {
        let now = self.now;
        let slot = self.slot_mut(node.id);
        let local = slot.clock.local(now);
        let any: &mut dyn Any = &mut *slot.node;
        let Some(concrete) = any.downcast_mut::<T>() else { panic!("{:?} is not of this world", node.id) };
        let result = action(concrete, local);
        self.settle(node.id.0);
        result
    }

    /// A link that is a pipe, to change it while the world runs.
    ///
    /// # Panics
    /// If it is not a [`Pipe`].
    pub fn pipe(&mut self, link: LinkId) -> &mut Pipe {
        let any: &mut dyn Any = &mut *self.network.edge_mut(link).link;
        let Some(pipe) = any.downcast_mut() else { panic!("{link:?} is not a pipe") };
        pipe
    }

    /// Lets a closure see, change or take away every datagram that a node sends, before its first link.
    pub fn tap(&mut self, tap: impl FnMut(Seen<'_>) -> Verdict + 'static) {
        self.tap = Some(Box::new(tap));
    }

    /// Takes the tap off.
    pub fn untap(&mut self) {
        self.tap = None;
    }

    /// Lets a datagram, forged or replayed, arrive at `to` at time `at` (not before now) without any link.
    pub fn inject(&mut self, at: Instant, from: SocketAddr, to: SocketAddr, ecn: Ecn, payload: &[u8]) {
        let slot = self.network.claim(from, to, ecn, None);
        self.network.parcel(slot).payload.extend_from_slice(payload);
        self.network.inject(at.max(self.now), slot);
    }

    /// Rebinds a socket behind a NAT: the world sees another address from now on, the machine is not told. Routes by IP
    /// address follow the new one: where its IP changes, add them.
    ///
    /// # Panics
    /// If the address is taken, or the node has no such local.
    pub fn rebind(&mut self, node: impl Into<NodeId>, local: Local, address: SocketAddr) {
        let id = node.into();
        let old = self.socket(id, local).seen;
        self.owners.remove(&old);
        let taken = self.owners.insert(address, (id.0, local.0));
        assert!(taken.is_none(), "{}: {address} is taken", self.slot(id).name);
        let socket = self.socket(id, local);
        socket.seen = address;
        socket.routes.clear();
    }

    /// Moves a socket to another address, and tells the machine.
    ///
    /// # Panics
    /// If the address is taken, or the node has no such local.
    pub fn move_local(&mut self, node: impl Into<NodeId>, local: Local, address: SocketAddr) {
        let id = node.into();
        self.rebind(id, local, address);
        let socket = self.socket(id, local);
        socket.told = address;
        let change = LinkChange { local, address, up: socket.up };
        self.input(id.0, Input::Link(change));
        self.settle(id.0);
    }

    /// Takes a socket down or up, and tells the machine. While it is down nothing arrives, and sending fails.
    ///
    /// # Panics
    /// If the node has no such local.
    pub fn set_up(&mut self, node: impl Into<NodeId>, local: Local, up: bool) {
        let id = node.into();
        let socket = self.socket(id, local);
        socket.up = up;
        let change = LinkChange { local, address: socket.told, up };
        self.input(id.0, Input::Link(change));
        self.settle(id.0);
    }

    /// Freezes a node, as if its process were stopped: it gets nothing and is not woken. Thawed, it sees the time.
    pub fn freeze(&mut self, node: impl Into<NodeId>, frozen: bool) {
        let id = node.into();
        self.slot_mut(id).frozen = frozen;
        if !frozen {
            self.wake_soon(id.0);
        }
    }

    /// Puts a fresh node in the place of one that died: same sockets, same clock. Returns the old one.
    pub fn replace<T: Node>(&mut self, node: Handle<T>, fresh: T) -> T {
        let slot = self.slot_mut(node.id);
        slot.frozen = false;
        let any: &mut dyn Any = &mut *slot.node;
        let Some(place) = any.downcast_mut::<T>() else { panic!("{:?} is not of this world", node.id) };
        let old = core::mem::replace(place, fresh);
        self.introduce(node.id.0);
        old
    }

    // Running.

    /// Runs all that happens up to and including `end`; then it is `end`.
    pub fn run_until(&mut self, end: Instant) {
        while self.network.next_at().is_some_and(|at| at <= end) {
            self.step();
        }
        self.advance(end.max(self.now));
        self.network.audit();
    }

    /// Runs for this long.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    /// Runs as long as `condition` holds, at most until `limit`. Whether it ended because the condition no longer
    /// holds; if not, it is `limit`.
    #[must_use]
    pub fn run_while(&mut self, mut condition: impl FnMut(&Self) -> bool, limit: Instant) -> bool {
        loop {
            if !condition(self) {
                self.network.audit();
                return true;
            }
            if self.network.next_at().is_none_or(|at| at > limit) {
                self.run_until(limit);
                return !condition(self);
            }
            self.step();
        }
    }

    /// Runs one event.
    fn step(&mut self) {
        if let Some(next) = self.network.next_at() {
            self.maybe_wake_early(next);
        }
        let Some(event) = self.network.pop() else { return };
        self.advance(event.at);
        self.events += 1;
        self.events_now += 1;
        assert!(
            self.events_now <= EVENTS_PER_INSTANT,
            "law broken: {EVENTS_PER_INSTANT} events at {:?} and no end: a loop without delay",
            self.now
        );
        match event.happening() {
            Happening::Parcel(parcel) => {
                self.network.delivered(self.now, parcel);
                if self.network.offer(self.now, parcel) == Onward::Arrived {
                    self.arrive(parcel);
                }
            }
            Happening::Wake(node) => self.due(node, event.at),
        }
    }

    fn advance(&mut self, to: Instant) {
        assert!(to >= self.now, "law broken: time goes back from {:?} to {to:?}", self.now);
        if to > self.now {
            self.now = to;
            self.events_now = 0;
        }
    }

    /// Tells a machine its locals and lets it run when the world does.
    fn introduce(&mut self, node: u32) {
        let sockets = self.slot(NodeId(node)).sockets.len();
        for local in (0..sockets).map(|local| Local(local as u16)) {
            let socket = self.socket(NodeId(node), local);
            let change = LinkChange { local, address: socket.told, up: socket.up };
            self.input(node, Input::Link(change));
        }
        self.wake_soon(node);
    }

    fn wake_soon(&mut self, node: u32) {
        let now = self.now;
        let slot = self.slot_mut(NodeId(node));
        (slot.wake_at, slot.fresh) = (now, true);
        self.network.schedule_wake(now, node);
    }

    fn input(&mut self, node: u32, input: Input<'_>) {
        let now = self.now;
        let slot = self.slot_mut(NodeId(node));
        let local = slot.clock.local(now);
        slot.node.machine().handle(local, input);
    }

    /// A packet has reached its destination address.
    fn arrive(&mut self, parcel: u32) {
        let to = self.network.parcel(parcel).to;
        let owner = self.owners.get(&to).and_then(|&(node, local)| {
            let slot = self.slots.get_mut(node as usize)?;
            let up = slot.sockets.get(usize::from(local)).is_some_and(|socket| socket.up);
            (up && !slot.frozen).then_some((node, local, slot))
        });
        let Some((node, local, slot)) = owner else {
            self.network.stray.no_socket += 1;
            self.network.release(parcel);
            return;
        };
        let now = slot.clock.local(self.now);
        let parcel_ref = self.network.parcel(parcel);
        let datagram = Datagram {
            local: Local(local),
            remote: parcel_ref.from,
            ecn: parcel_ref.ecn,
            arrival: now,
            payload: &mut parcel_ref.payload,
        };
        slot.node.machine().handle(now, Input::Datagram(datagram));
        self.network.release(parcel);
        self.settle(node);
    }

    /// A wake of this node was scheduled for now: it may be stale, or early because the deadline moved on since.
    fn due(&mut self, node: u32, at: Instant) {
        let now = self.now;
        let slot = self.slot_mut(NodeId(node));
        if slot.wake_at != at {
            return;
        }
        slot.wake_at = Instant::FAR_FUTURE;
        if slot.frozen {
            return;
        }
        let local = slot.clock.local(now);
        let wakes = slot.node.machine().deadline().is_some_and(|deadline| deadline <= local);
        let turns = slot.node.alarm().is_some_and(|alarm| alarm <= local);
        if wakes {
            slot.node.machine().wake(local);
        }
        if wakes || turns || slot.fresh {
            slot.fresh = false;
            self.settle(node);
        } else {
            self.schedule(node);
        }
    }

    /// Runs a node until it has nothing more to do now, then notes when it wants to be woken.
    fn settle(&mut self, node: u32) {
        let mut rounds = 0;
        let mut sent = 0;
        loop {
            let world_now = self.now;
            let slot = self.slot_mut(NodeId(node));
            if slot.frozen {
                return;
            }
            let now = slot.clock.local(world_now);
            slot.node.turn(now);
            self.drain(node, now, &mut sent);
            let slot = self.slot_mut(NodeId(node));
            let deadline = slot.node.machine().deadline();
            let alarm = slot.node.alarm();
            let machine_due = deadline.is_some_and(|deadline| deadline <= now);
            if !machine_due && alarm.is_none_or(|alarm| alarm > now) {
                break;
            }
            rounds += 1;
            assert!(
                rounds <= ROUNDS_PER_INSTANT,
                "law broken: node {} is stuck at {now:?} (its clock): after {rounds} rounds of wake and transmit its \
                 deadline is {deadline:?}, its alarm {alarm:?}",
                slot.name
            );
            if machine_due {
                slot.node.machine().wake(now);
            }
        }
        self.schedule(node);
    }

    /// Puts the node's next wake into the heap if there is none before it.
    fn schedule(&mut self, node: u32) {
        let now = self.now;
        let slot = self.slot_mut(NodeId(node));
        let deadline = slot.node.machine().deadline().unwrap_or(Instant::FAR_FUTURE);
        let local = deadline.min(slot.node.alarm().unwrap_or(Instant::FAR_FUTURE));
        if local == Instant::FAR_FUTURE {
            return;
        }
        let at = slot.clock.world(local).max(now);
        if at < slot.wake_at {
            slot.wake_at = at;
            self.network.schedule_wake(at, node);
        }
    }

    /// Sends all that the machine wants to send.
    fn drain(&mut self, node: u32, now: Instant, sent: &mut u32) {
        // Taken out so that the machine can write into it while the network is at hand.
        let mut scratch = core::mem::take(&mut self.scratch);
        loop {
            let max_segments = self.max_segments;
            let slot = self.slot_mut(NodeId(node));
            let mut out = Out { buffer: &mut scratch, max_segments };
            let Some(transmit) = slot.node.machine().transmit(now, &mut out) else { break };
            let Transmit { size, segment, .. } = transmit;
            assert!(
                size <= SCRATCH && segment <= size && (size == 0 || segment > 0),
                "law broken: node {} says {transmit:?} of {SCRATCH} bytes",
                slot.name
            );
            let segments = size.div_ceil(segment.max(1)).max(1);
            assert!(
                segments <= max_segments,
                "law broken: node {} sends {segments} segments in a run of {max_segments}",
                slot.name
            );
            *sent += segments as u32;
            assert!(
                *sent <= DATAGRAMS_PER_INSTANT,
                "law broken: node {} has sent {sent} datagrams at {now:?} (its clock) and goes on",
                slot.name
            );
            let (run, _) = scratch.split_at(size);
            if run.is_empty() {
                self.send(node, &transmit, run);
            } else {
                for datagram in run.chunks(segment) {
                    self.send(node, &transmit, datagram);
                }
            }
        }
        self.scratch = scratch;
    }

    /// Sends one datagram.
    fn send(&mut self, node: u32, transmit: &Transmit, payload: &[u8]) {
        let Some(slot) = self.slots.get_mut(node as usize) else { return };
        let Some(socket) = slot.sockets.get_mut(usize::from(transmit.local.0)) else {
            panic!("law broken: node {} sends by {}, which it does not have", slot.name, transmit.local)
        };
        if !socket.up {
            self.network.stray.local_down += 1;
            let error = SendError {
                local: transmit.local,
                remote: transmit.remote,
                size: payload.len(),
                kind: SendErrorKind::Unreachable,
            };
            self.input(node, Input::SendError(error));
            return;
        }
        let to = transmit.remote.ip();
        let found = socket.routes.binary_search_by_key(&to, |route| route.0);
        let chain = match found {
            Ok(place) => socket.routes.get(place).and_then(|route| route.1),
            Err(place) => {
                let chain = self.network.lookup(node, transmit.local.0, socket.seen.ip(), to);
                socket.routes.insert(place, (to, chain));
                chain
            }
        };
        let Some(chain) = chain else {
            self.network.stray.no_route += 1;
            return;
        };
        let from = socket.seen;
        let parcel = self.network.claim(from, transmit.remote, transmit.ecn, Some(chain));
        let inside = self.network.parcel(parcel);
        inside.payload.extend_from_slice(payload);
        if let Some(tap) = &mut self.tap {
            let seen = Seen {
                now: self.now,
                from: &mut inside.from,
                to: &mut inside.to,
                ecn: &mut inside.ecn,
                payload: &mut inside.payload,
            };
            if tap(seen) == Verdict::Drop {
                self.network.stray.tapped += 1;
                self.network.release(parcel);
                return;
            }
        }
        if self.network.offer(self.now, parcel) == Onward::Arrived {
            // A route without links: it arrives by an event of its own, for its sender is still at work.
            self.network.inject(self.now, parcel);
        }
    }

    /// Perhaps wakes some node before the next event, and asserts that it changed nothing.
    fn maybe_wake_early(&mut self, next: Instant) {
        let nodes = self.slots.len() as u64;
        let Some(spurious) = &mut self.spurious else { return };
        if nodes == 0 || !spurious.random.chance(spurious.probability) {
            return;
        }
        let node = spurious.random.below(nodes) as u32;
        let at = self.now + spurious.random.up_to(next.since(self.now));
        let slot = self.slot_mut(NodeId(node));
        let local = slot.clock.local(at);
        let before = slot.node.machine().deadline();
        // What is due at this very instant, or has not run yet, would be no spurious wake.
        if slot.frozen || slot.wake_at <= at || before.is_some_and(|deadline| deadline <= local) {
            return;
        }
        self.advance(at);
        let mut scratch = core::mem::take(&mut self.scratch);
        let slot = self.slot_mut(NodeId(node));
        slot.node.machine().wake(local);
        let after = slot.node.machine().deadline();
        assert!(
            before == after,
            "law broken: a spurious wake of node {} at {local:?} moved its deadline from {before:?} to {after:?}",
            slot.name
        );
        let sent = slot.node.machine().transmit(local, &mut Out { buffer: &mut scratch, max_segments: 1 });
        assert!(
            sent.is_none(),
            "law broken: a spurious wake of node {} at {local:?} made it send {sent:?}",
            slot.name
        );
        self.scratch = scratch;
    }

    fn slot(&self, id: NodeId) -> &Slot {
        self.slots.get(id.0 as usize).unwrap_or_else(|| panic!("{id:?} is not of this world"))
    }

    fn slot_mut(&mut self, id: NodeId) -> &mut Slot {
        self.slots.get_mut(id.0 as usize).unwrap_or_else(|| panic!("{id:?} is not of this world"))
    }

    fn socket(&mut self, id: NodeId, local: Local) -> &mut Socket {
        let slot = self.slot_mut(id);
        let name = &slot.name;
        slot.sockets.get_mut(usize::from(local.0)).unwrap_or_else(|| panic!("{name} has no {local}"))
    }
}

impl<T: Node> Index<Handle<T>> for World {
    type Output = T;

    fn index(&self, handle: Handle<T>) -> &T {
        let any: &dyn Any = &*self.slot(handle.id).node;
        match any.downcast_ref() {
            Some(node) => node,
            None => panic!("{:?} is not of this world", handle.id),
        }
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("now", &self.now)
            .field("seed", &self.seed)
            .field("nodes", &self.slots.iter().map(|slot| &slot.name).collect::<Vec<_>>())
            .field("network", &self.network)
            .finish_non_exhaustive()
    }
}
