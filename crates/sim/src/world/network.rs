//! Links, routes and packets under way between the nodes, with the books that must balance.

use super::events::{Event, EventSubject, Events, PacketInFlight};
use super::feeder::Feeder;
use super::link_id::LinkId;
use super::observers::{LinkEvent, LinkFact, Observer};
use super::trace::Trace;
use crate::counters::LinkCounters;
use crate::link::{Decision, Delivery, DropReason, Link, Occupancy, Offer, PacketOutcome, flow};
use crate::pipe::Pipe;
use byway_wire::{Ecn, Instant};
use core::any::Any;
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Packets that went astray outside of any link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct StrayCounters {
    /// No route led from the sender to the destination.
    pub no_route: u64,
    /// Packets whose destination address no open socket has, or whose node is suspended.
    pub no_socket: u64,
    /// Packets whose sending socket was down.
    pub local_down: u64,
    /// Packets larger than their socket may send
    /// ([`World::set_largest`](crate::World::set_largest)).
    pub too_large: u64,
    /// Packets that the tap dropped.
    pub tapped: u64,
}

/// The owner of an address. It is a socket of a node, as long as the generation of owners lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AddressOwner {
    pub(super) node: u32,
    pub(super) local: u16,
    pub(super) generation: u32,
}

/// The content of a packet in flight: addresses, marks and bytes.
#[derive(Debug)]
pub(super) struct PacketContent {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) payload: Vec<u8>,
    /// The owner of the destination address when the packet was sent.
    pub(super) owner: Option<AddressOwner>,
}

/// A link. Nearly all are pipes, and a pipe is called without a detour.
#[derive(Debug)]
pub(super) enum EdgeLink {
    Pipe(Box<Pipe>),
    Other(Box<dyn Link>),
}

impl EdgeLink {
    pub(super) fn new(link: impl Link) -> Self {
        let mut link = Some(link);
        let any: &mut dyn Any = &mut link;
        if let Some(pipe) = any.downcast_mut::<Option<Pipe>>().and_then(Option::take) {
            return Self::Pipe(Box::new(pipe));
        }
        match link {
            Some(link) => Self::Other(Box::new(link)),
            None => unreachable!("only a pipe was taken"),
        }
    }

    fn as_link(&self) -> &dyn Link {
        match self {
            Self::Pipe(pipe) => &**pipe,
            Self::Other(link) => &**link,
        }
    }

    fn offer(&mut self, now: Instant, offer: &Offer) -> PacketOutcome {
        match self {
            Self::Pipe(pipe) => pipe.offer(now, offer),
            Self::Other(link) => link.offer(now, offer),
        }
    }

    fn decides_at(&self) -> Option<Instant> {
        match self {
            Self::Pipe(pipe) => pipe.decides_at(),
            Self::Other(link) => link.decides_at(),
        }
    }

    fn decide(&mut self, now: Instant) -> Option<Decision> {
        match self {
            Self::Pipe(pipe) => pipe.decide(now),
            Self::Other(link) => link.decide(now),
        }
    }

    pub(super) fn waiting(&self, now: Instant) -> Occupancy {
        match self {
            Self::Pipe(pipe) => pipe.waiting(now),
            Self::Other(link) => link.waiting(now),
        }
    }

    fn bound(&self) -> Occupancy {
        match self {
            Self::Pipe(pipe) => pipe.bound(),
            Self::Other(link) => link.bound(),
        }
    }
}

pub(super) struct Edge {
    pub(super) name: String,
    pub(super) body: EdgeLink,
    pub(super) may_reorder: bool,
    pub(super) counters: LinkCounters,
    /// Dropped packets. The number is counted separately from the link's counters.
    pub(super) lost: u64,
    /// Packets that are held or on the line, loose or not: counted apart from the books, so that
    /// they can disagree.
    pub(super) outstanding: u64,
    /// Arrivals in order of time. Only the first has an event.
    pub(super) line: VecDeque<PacketInFlight>,
    /// The time of the next check for arrivals, which is the link's one valid event. Its other
    /// events are stale.
    expected: Instant,
    /// When the last packet that was ever put in line arrives.
    pub(super) last_at: Instant,
    /// Packets that overtake, ever.
    overtaking: u64,
    /// Packets without a fate, in the order in which they were offered. `at` is the time of the
    /// offer.
    pub(super) held: VecDeque<PacketInFlight>,
    /// The time of the link's next decision, according to its event. `None`: it has no event.
    decision: Option<Instant>,
    pub(super) trace: Trace,
    pub(super) observers: Vec<Observer>,
    /// The link that leads to this one, over all chains.
    pub(super) feeder: Feeder,
    /// Whether packets are examined when they leave this link, instead of when they reach it
    /// ([`super::eventless_links`]).
    pub(super) ahead: bool,
    /// Whether a link after this one has `ahead` set.
    pub(super) leads_ahead: bool,
    /// Packets that are still on the link before, or have been since; `at` is when they reach this
    /// one.
    pub(super) coming: VecDeque<PacketInFlight>,
}

impl fmt::Debug for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Edge")
            .field("name", &self.name)
            .field("books", &self.counters)
            .finish_non_exhaustive()
    }
}

/// The index that ends every chain.
pub(super) const CHAIN_END: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(super) struct Network {
    pub(super) edges: Vec<Edge>,
    names: BTreeSet<String>,
    /// The links of all chains, one chain after the other, each closed by [`CHAIN_END`]; the first
    /// is empty.
    pub(super) places: Vec<u32>,
    by_local: BTreeMap<(u32, u16, IpAddr), u32>,
    by_address: BTreeMap<(IpAddr, IpAddr), u32>,
    pub(super) events: Events,
    injected: u64,
    /// Packets on no line, by the order of their events.
    pub(super) loose: BTreeMap<u64, PacketInFlight>,
    pub(super) packets: Vec<PacketContent>,
    pub(super) free: Vec<u32>,
    pub(super) stray: StrayCounters,
    pub(super) traced: bool,
    /// Whether links may be examined late ([`super::eventless_links`]).
    pub(super) may_look_ahead: bool,
}

/// The world's task for an event.
#[derive(Debug)]
pub(super) enum WorldEvent {
    /// The packet has reached its destination address.
    Arrived(PacketInFlight),
    /// A timer of this node is due.
    Wake(u32),
    /// Nothing. The event was the network's own.
    Quiet,
}

impl Network {
    pub(super) fn new() -> Self {
        Self { traced: true, may_look_ahead: true, places: vec![CHAIN_END], ..Self::default() }
    }

    pub(super) fn add(&mut self, name: &str, body: EdgeLink) -> LinkId {
        let fresh = self.names.insert(name.to_owned());
        assert!(fresh, "two links are called {name}: their faults would be the same");
        let may_reorder = body.as_link().may_reorder();
        self.edges.push(Edge {
            name: name.to_owned(),
            body,
            may_reorder,
            counters: LinkCounters::default(),
            lost: 0,
            outstanding: 0,
            line: VecDeque::new(),
            expected: Instant::FAR_FUTURE,
            last_at: Instant::ZERO,
            overtaking: 0,
            held: VecDeque::new(),
            decision: None,
            trace: Trace::new(),
            observers: Vec::new(),
            feeder: Feeder::Nobody,
            ahead: false,
            leads_ahead: false,
            coming: VecDeque::new(),
        });
        LinkId(self.edges.len() as u32 - 1)
    }

    pub(super) fn edge(&self, link: LinkId) -> &Edge {
        self.edges.get(link.0 as usize).unwrap_or_else(|| panic!("{link:?} is not of this world"))
    }

    pub(super) fn edge_mut(&mut self, link: LinkId) -> &mut Edge {
        self.edges.get_mut(link.0 as usize).unwrap_or_else(|| panic!("{link:?} is not of this world"))
    }

    pub(super) fn observe(&mut self, link: LinkId, observer: Observer) {
        self.look_closely(link);
        self.edge_mut(link).observers.push(observer);
    }

    /// Notes a chain of links that is new at `now`; the place where it begins.
    pub(super) fn chain(&mut self, now: Instant, links: &[LinkId]) -> u32 {
        let begins = self.places.len() as u32;
        for &link in links {
            self.edge(link);
            self.places.push(link.0);
        }
        self.places.push(CHAIN_END);
        self.note_feeders(now, links);
        begins
    }

    pub(super) fn route_local(&mut self, node: u32, local: u16, to: IpAddr, chain: u32) {
        self.by_local.insert((node, local, to), chain);
    }

    pub(super) fn route_address(&mut self, from: IpAddr, to: IpAddr, chain: u32) {
        self.by_address.insert((from, to), chain);
    }

    /// The chain of links from a socket to an address. The socket's own route precedes that of its
    /// source address.
    pub(super) fn lookup(&self, node: u32, local: u16, from: IpAddr, to: IpAddr) -> Option<u32> {
        self.by_local.get(&(node, local, to)).or_else(|| self.by_address.get(&(from, to))).copied()
    }

    /// The event that comes next.
    pub(super) fn next(&self) -> Option<Event> {
        self.events.peek().copied()
    }

    /// Takes the next event, which is at `at`, and does the network's part.
    #[inline]
    pub(super) fn step(&mut self, event: Event) -> WorldEvent {
        let at = event.at();
        match event.subject() {
            EventSubject::Line(id) => {
                if self.edges[id as usize].expected != at {
                    self.events.again(event, None);
                    return WorldEvent::Quiet;
                }
                let first = self.first_in_line(id, at);
                let edge = &mut self.edges[id as usize];
                let next = edge.next_arrival();
                edge.expected = next.unwrap_or(Instant::FAR_FUTURE);
                self.events.again(event, next);
                match first {
                    Some(flight) => self.delivered(id, flight),
                    None => WorldEvent::Quiet,
                }
            }
            EventSubject::Loose(order) => {
                self.events.again(event, None);
                let Some(flight) = self.loose.remove(&order) else {
                    panic!("law broken: an arrival without a packet at {at:?}")
                };
                match self.places[flight.place as usize] {
                    CHAIN_END => WorldEvent::Arrived(flight),
                    id => self.delivered(id, flight),
                }
            }
            EventSubject::Decision(id) => {
                self.events.again(event, None);
                self.decide(at, id);
                WorldEvent::Quiet
            }
            EventSubject::Wake(node) => {
                self.events.again(event, None);
                WorldEvent::Wake(node)
            }
        }
    }

    /// Returns the packet that reaches the end of this link at `at`, if there is one. Afterwards
    /// the first packet in line is known.
    #[inline]
    fn first_in_line(&mut self, id: u32, at: Instant) -> Option<PacketInFlight> {
        let edge = &mut self.edges[id as usize];
        if !edge.ahead {
            return arrived(&mut edge.line, at);
        }
        while self.edges[id as usize].line.is_empty() && self.catch_up(id, at) {}
        let first = arrived(&mut self.edges[id as usize].line, at);
        while self.edges[id as usize].line.is_empty() && self.catch_up(id, at) {}
        first
    }

    /// Schedules a check of the link for arrivals at `at`, unless there is an earlier one.
    #[inline]
    pub(super) fn expect(&mut self, at: Instant, id: u32) {
        let edge = &mut self.edges[id as usize];
        if at < edge.expected {
            edge.expected = at;
            self.events.push(Event::line(at, id));
        }
    }

    pub(super) fn schedule_wake(&mut self, at: Instant, node: u32) {
        self.events.push(Event::wake(at, node));
    }

    /// A slot for a packet: its payload is empty and, once the world has run a while, has been
    /// allocated before.
    pub(super) fn claim(&mut self, from: SocketAddr, to: SocketAddr, owner: Option<AddressOwner>) -> u32 {
        if let Some(slot) = self.free.pop() {
            let parcel = &mut self.packets[slot as usize];
            parcel.payload.clear();
            (parcel.from, parcel.to, parcel.owner) = (from, to, owner);
            return slot;
        }
        self.packets.push(PacketContent { from, to, payload: Vec::new(), owner });
        self.packets.len() as u32 - 1
    }

    /// The packet in a claimed slot. Slots come from claim() and the slab never shrinks, so the
    /// index is proven.
    pub(super) fn parcel(&mut self, slot: u32) -> &mut PacketContent {
        &mut self.packets[slot as usize]
    }

    pub(super) fn release(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// Lets a packet arrive at `at` without any link.
    pub(super) fn inject(&mut self, at: Instant, slot: u32, size: u32, ecn: Ecn) {
        self.injected += 1;
        self.put_loose(Event::injected(at, self.injected), PacketInFlight { at, slot, place: 0, size, ecn });
    }

    fn put_loose(&mut self, event: Event, flight: PacketInFlight) {
        self.loose.insert(event.order(), flight);
        self.events.push(event);
    }

    /// Offers the packet, which is as far as `flight.place` at `flight.at`, to its next link, if
    /// there is one.
    #[inline]
    pub(super) fn offer(&mut self, flight: PacketInFlight) -> WorldEvent {
        let id = self.places[flight.place as usize];
        if id == CHAIN_END {
            return WorldEvent::Arrived(flight);
        }
        let now = flight.at;
        let edge = &mut self.edges[id as usize];
        if edge.observers.is_empty()
            && let EdgeLink::Pipe(pipe) = &mut edge.body
            && let Some(passed) = pipe.pass(now, flight.size)
        {
            assert!(!pipe.overfull(), "law broken: link {} queues more than it may at {now:?}", edge.name);
            edge.counters.sent += 1;
            edge.counters.sent_bytes += u64::from(flight.size);
            match passed {
                Ok((begins, at)) => {
                    edge.counters.note_wait(now, begins);
                    edge.outstanding += 1;
                    edge.balance(now);
                    self.launch(now, id, PacketInFlight { at, ..flight });
                }
                Err(reason) => {
                    edge.counters.note_drop(reason);
                    self.lose(now, id, flight.slot, reason);
                    self.edges[id as usize].balance(now);
                }
            }
            return WorldEvent::Quiet;
        }
        self.offer_to_any(id, flight);
        WorldEvent::Quiet
    }

    /// Offers a packet to a link of whatever kind.
    #[inline(never)]
    fn offer_to_any(&mut self, id: u32, flight: PacketInFlight) {
        let now = flight.at;
        let edge = &mut self.edges[id as usize];
        let PacketContent { from, to, .. } = self.packets[flight.slot as usize];
        let offer = Offer { size: flight.size as usize, ecn: flight.ecn, flow: flow(from, to) };
        let fate = edge.body.offer(now, &offer);
        edge.counters.note(now, &offer, &fate);
        let (waiting, bound) = (edge.body.waiting(now), edge.body.bound());
        assert!(
            waiting.packets <= bound.packets && waiting.bytes <= bound.bytes,
            "law broken: link {} queues {waiting:?} of {bound:?} at {now:?}",
            edge.name
        );
        if !edge.observers.is_empty() {
            let event = match &fate {
                PacketOutcome::Dropped(reason) => LinkEvent::Dropped(*reason),
                PacketOutcome::Queued => LinkEvent::Accepted { waiting, wait: None },
                PacketOutcome::Delivered(first) | PacketOutcome::Duplicated(first, _) => {
                    LinkEvent::Accepted { waiting, wait: Some(first.begins.since(now)) }
                }
            };
            self.tell(now, id, &flight, event);
        }
        self.apply(now, id, flight, fate);
    }

    /// Carries out the outcome that a link gave a packet at `now`.
    fn apply(&mut self, now: Instant, id: u32, flight: PacketInFlight, fate: PacketOutcome) {
        match fate {
            PacketOutcome::Delivered(delivery) => self.carry(now, id, flight, delivery),
            PacketOutcome::Dropped(reason) => self.lose(now, id, flight.slot, reason),
            PacketOutcome::Duplicated(first, second) => {
                let PacketContent { from, to, owner, .. } = self.packets[flight.slot as usize];
                let copy = self.claim(from, to, owner);
                let payload = core::mem::take(&mut self.parcel(flight.slot).payload);
                self.parcel(copy).payload.extend_from_slice(&payload);
                self.parcel(flight.slot).payload = payload;
                self.carry(now, id, flight, first);
                self.carry(now, id, PacketInFlight { slot: copy, ..flight }, second);
            }
            PacketOutcome::Queued => {
                let edge = &mut self.edges[id as usize];
                edge.outstanding += 1;
                edge.held.push_back(flight);
                self.schedule_decision(id);
            }
        }
        self.edges[id as usize].balance(now);
    }

    fn carry(&mut self, now: Instant, id: u32, mut flight: PacketInFlight, delivery: Delivery) {
        (flight.at, flight.ecn) = (delivery.at, delivery.ecn);
        if let Some(corruption) = delivery.corruption {
            corruption.apply(&mut self.packets[flight.slot as usize].payload);
        }
        self.edges[id as usize].outstanding += 1;
        self.launch(now, id, flight);
    }

    /// A packet that was offered at `now` will not arrive.
    #[inline(never)]
    fn lose(&mut self, now: Instant, id: u32, slot: u32, reason: DropReason) {
        let edge = &mut self.edges[id as usize];
        edge.lost += 1;
        if self.traced {
            let trace = &mut edge.trace;
            trace.number(now.as_nanos());
            trace.number(1 << 40 | reason as u64);
        }
        self.release(slot);
    }

    /// A packet that was offered at `now` will arrive at `flight.at`.
    #[inline]
    fn launch(&mut self, now: Instant, id: u32, mut flight: PacketInFlight) {
        if self.traced {
            self.trace_launch(now, id, &flight);
        }
        let edge = &mut self.edges[id as usize];
        assert!(flight.at >= now, "law broken: link {} delivers before it is offered", edge.name);
        if flight.at < edge.last_at {
            self.overtake(now, id, flight);
            return;
        }
        edge.last_at = flight.at;
        if edge.leads_ahead {
            let next = self.places[flight.place as usize + 1];
            if next != CHAIN_END && self.edges[next as usize].ahead {
                flight.place += 1;
                self.come(next, flight);
                return;
            }
        }
        let edge = &mut self.edges[id as usize];
        let alone = edge.line.is_empty() && !edge.ahead;
        edge.line.push_back(flight);
        if alone {
            self.expect(flight.at, id);
        }
    }

    #[inline(never)]
    fn trace_launch(&mut self, now: Instant, id: u32, flight: &PacketInFlight) {
        let edge = &mut self.edges[id as usize];
        edge.trace.number(now.as_nanos());
        edge.trace.number(flight.at.as_nanos());
        edge.trace.number(u64::from(flight.size) << 8 | flight.ecn as u64);
        let payload = &self.packets[flight.slot as usize].payload;
        if !payload.is_empty() {
            edge.trace.bytes(payload);
        }
    }

    /// Adds a packet that arrives before an earlier one.
    #[inline(never)]
    fn overtake(&mut self, now: Instant, id: u32, flight: PacketInFlight) {
        let edge = &mut self.edges[id as usize];
        assert!(
            edge.may_reorder,
            "law broken: link {} reorders, though it may not: at {now:?} it says {:?}, after {:?}",
            edge.name, flight.at, edge.last_at
        );
        edge.overtaking += 1;
        let event = Event::loose(flight.at, id, edge.overtaking);
        self.put_loose(event, flight);
    }

    /// Handles a packet that has reached the end of its link.
    #[inline]
    fn delivered(&mut self, id: u32, mut flight: PacketInFlight) -> WorldEvent {
        let edge = &mut self.edges[id as usize];
        edge.note_arrival(&flight);
        if !edge.observers.is_empty() {
            self.tell(flight.at, id, &flight, LinkEvent::Delivered);
        }
        flight.place += 1;
        self.offer(flight)
    }

    /// Adds the event of a link's next decision, unless it exists.
    fn schedule_decision(&mut self, id: u32) {
        let edge = &mut self.edges[id as usize];
        let at = edge.body.decides_at();
        if edge.decision == at {
            return;
        }
        edge.decision = at;
        if let Some(at) = at {
            self.events.push(Event::decision(at, id));
        }
    }

    /// Lets the link decide about what it holds, as far as it can now.
    fn decide(&mut self, now: Instant, id: u32) {
        self.edges[id as usize].decision = None;
        while self.edges[id as usize].body.decides_at().is_some_and(|at| at <= now) {
            let edge = &mut self.edges[id as usize];
            let Some(Decision { place, fate }) = edge.body.decide(now) else { break };
            let Some(flight) = edge.held.remove(place) else {
                panic!("law broken: link {} decides about a packet that it does not hold", edge.name)
            };
            assert!(fate != PacketOutcome::Queued, "law broken: link {} does not decide", edge.name);
            edge.outstanding -= 1;
            edge.counters.note_fate(flight.at, flight.ecn, &fate);
            if let (PacketOutcome::Dropped(reason), false) = (&fate, edge.observers.is_empty()) {
                self.tell(now, id, &flight, LinkEvent::Dropped(*reason));
            }
            self.apply(now, id, flight, fate);
        }
        self.schedule_decision(id);
    }

    /// Notifies the observers of a link.
    #[cold]
    fn tell(&mut self, at: Instant, id: u32, flight: &PacketInFlight, event: LinkEvent) {
        let PacketContent { from, to, .. } = self.packets[flight.slot as usize];
        let fact =
            LinkFact { at, link: LinkId(id), from, to, size: flight.size as usize, ecn: flight.ecn, event };
        for observer in &mut self.edges[id as usize].observers {
            observer(&fact);
        }
    }
}

impl Edge {
    /// Returns the time of the link's next check for arrivals.
    pub(super) const fn expected(&self) -> Instant {
        self.expected
    }

    /// Returns the time of the link's next decision, according to its event.
    pub(super) const fn decision(&self) -> Option<Instant> {
        self.decision
    }

    #[inline]
    pub(super) fn note_arrival(&mut self, flight: &PacketInFlight) {
        self.counters.note_arrival(flight.size as usize);
        self.outstanding -= 1;
        self.balance(flight.at);
    }
}

/// Removes the first packet of a line, if it has reached the end by `at`.
#[inline]
fn arrived(line: &mut VecDeque<PacketInFlight>, at: Instant) -> Option<PacketInFlight> {
    line.front().is_some_and(|first| first.at <= at).then(|| line.pop_front()).flatten()
}
