//! Everything between the nodes: links, routes, packets under way, and the books that must balance.

use super::trace::Trace;
use crate::counters::Counters;
use crate::link::{Delivery, Fate, Link, Offer};
use byway_wire::{Ecn, Instant};
use core::net::{IpAddr, SocketAddr};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Which link. Numbered in the order of [`World::link`](crate::World::link).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LinkId(pub u32);

/// Packets that went astray outside of any link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stray {
    /// No route led from the sender to the destination.
    pub no_route: u64,
    /// Nobody has the destination address, its socket is down, or its node is frozen.
    pub no_socket: u64,
    /// The socket that should have sent it was down.
    pub local_down: u64,
    /// Larger than its socket may send ([`World::set_largest`](crate::World::set_largest)).
    pub too_large: u64,
    /// The tap dropped it.
    pub tapped: u64,
}

/// A packet under way.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) ecn: Ecn,
    pub(super) payload: Vec<u8>,
    /// Bytes beyond the payload that are only a length.
    pub(super) phantom: usize,
    /// The chain of links that it follows; `None`: injected, it is where it is going.
    chain: Option<u32>,
    /// Where in the chain it is.
    hop: u32,
    /// Its number among those that the link accepted.
    order: u64,
}

impl Parcel {
    /// Bytes of UDP payload, real or not.
    fn size(&self) -> usize {
        self.payload.len() + self.phantom
    }
}

/// Something that happens at a time. Packets go before wakes, packets in the order in which they were scheduled, wakes in
/// the order of nodes: so a wake more or less (they may be spurious) changes nobody's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event {
    pub(super) at: Instant,
    order: u64,
    subject: u32,
}

const WAKE: u64 = 1 << 63;

pub(super) enum Happening {
    /// The parcel in this slot reaches the end of its link.
    Parcel(u32),
    /// This node wanted to be woken.
    Wake(u32),
}

impl Event {
    pub(super) fn happening(self) -> Happening {
        if self.order & WAKE == 0 { Happening::Parcel(self.subject) } else { Happening::Wake(self.subject) }
    }
}

#[derive(Debug)]
pub(super) struct Edge {
    pub(super) name: String,
    pub(super) link: Box<dyn Link>,
    books: Counters,
    /// Events in the heap that belong to this link: counted apart from the books, so that they can disagree.
    outstanding: u64,
    accepted: u64,
    last_order: u64,
    /// Arrivals in order of time. Only the first of them stands in the heap, which so stays as small as there are links
    /// and nodes; a packet that will overtake the last one here goes to the heap by itself.
    line: VecDeque<Event>,
}

#[derive(Debug, Default)]
pub(super) struct Network {
    pub(super) edges: Vec<Edge>,
    chains: Vec<Vec<LinkId>>,
    by_local: BTreeMap<(u32, u16, IpAddr), u32>,
    by_address: BTreeMap<(IpAddr, IpAddr), u32>,
    events: BinaryHeap<Reverse<Event>>,
    scheduled: u64,
    parcels: Vec<Parcel>,
    free: Vec<u32>,
    pub(super) stray: Stray,
    pub(super) trace: Option<Trace>,
}

impl Network {
    pub(super) fn new() -> Self {
        Self { trace: Some(Trace::new()), ..Self::default() }
    }

    pub(super) fn add(&mut self, name: &str, link: Box<dyn Link>) -> LinkId {
        assert!(
            self.edges.iter().all(|edge| edge.name != name),
            "two links are called {name}: their faults would be the same"
        );
        self.edges.push(Edge {
            name: name.to_owned(),
            link,
            books: Counters::default(),
            outstanding: 0,
            accepted: 0,
            last_order: 0,
            line: VecDeque::new(),
        });
        LinkId(self.edges.len() as u32 - 1)
    }

    pub(super) fn edge(&self, link: LinkId) -> &Edge {
        self.edges.get(link.0 as usize).unwrap_or_else(|| panic!("{link:?} is not of this world"))
    }

    pub(super) fn edge_mut(&mut self, link: LinkId) -> &mut Edge {
        self.edges.get_mut(link.0 as usize).unwrap_or_else(|| panic!("{link:?} is not of this world"))
    }

    pub(super) fn chain(&mut self, links: &[LinkId]) -> u32 {
        for &link in links {
            self.edge(link);
        }
        self.chains.push(links.to_vec());
        self.chains.len() as u32 - 1
    }

    pub(super) fn route_local(&mut self, node: u32, local: u16, to: IpAddr, chain: u32) {
        self.by_local.insert((node, local, to), chain);
    }

    pub(super) fn route_address(&mut self, from: IpAddr, to: IpAddr, chain: u32) {
        self.by_address.insert((from, to), chain);
    }

    /// The chain that leads from a socket to an address: its own route before that of its source address.
    pub(super) fn lookup(&self, node: u32, local: u16, from: IpAddr, to: IpAddr) -> Option<u32> {
        self.by_local.get(&(node, local, to)).or_else(|| self.by_address.get(&(from, to))).copied()
    }

    /// When the next event is.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.events.peek().map(|Reverse(event)| event.at)
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        let Reverse(event) = self.events.pop()?;
        if let Happening::Parcel(slot) = event.happening()
            && let Some(id) = self.link_of(slot)
        {
            let line = &mut self.edge_mut(id).line;
            if line.front() == Some(&event) {
                line.pop_front();
                if let Some(&next) = line.front() {
                    self.events.push(Reverse(next));
                }
            }
        }
        Some(event)
    }

    pub(super) fn schedule_wake(&mut self, at: Instant, node: u32) {
        self.events.push(Reverse(Event { at, order: WAKE | u64::from(node), subject: node }));
    }

    fn arrival(&mut self, at: Instant, slot: u32) -> Event {
        self.scheduled += 1;
        Event { at, order: self.scheduled, subject: slot }
    }

    /// A slot for a packet: its payload is empty and, once the world has run a while, has been allocated before.
    pub(super) fn claim(&mut self, from: SocketAddr, to: SocketAddr, ecn: Ecn, chain: Option<u32>) -> u32 {
        if let Some(slot) = self.free.pop()
            && let Some(parcel) = self.parcels.get_mut(slot as usize)
        {
            parcel.payload.clear();
            (parcel.from, parcel.to, parcel.ecn, parcel.phantom) = (from, to, ecn, 0);
            (parcel.chain, parcel.hop, parcel.order) = (chain, 0, 0);
            return slot;
        }
        self.parcels.push(Parcel { from, to, ecn, payload: Vec::new(), phantom: 0, chain, hop: 0, order: 0 });
        self.parcels.len() as u32 - 1
    }

    /// The packet in a claimed slot. Slots come from claim() and the slab never shrinks, so the index is proven.
    pub(super) fn parcel(&mut self, slot: u32) -> &mut Parcel {
        &mut self.parcels[slot as usize]
    }

    pub(super) fn release(&mut self, slot: u32) {
        self.free.push(slot);
    }

    pub(super) fn inject(&mut self, at: Instant, slot: u32) {
        let event = self.arrival(at, slot);
        self.events.push(Reverse(event));
    }

    /// Which link a packet is on, or goes to next.
    pub(super) fn link_of(&mut self, slot: u32) -> Option<LinkId> {
        let parcel = self.parcel(slot);
        let (chain, hop) = (parcel.chain?, parcel.hop);
        self.chains.get(chain as usize)?.get(hop as usize).copied()
    }

    /// Offers the packet to the link where it stands. An empty chain, or its end, is an arrival at once.
    pub(super) fn offer(&mut self, now: Instant, slot: u32) -> Onward {
        let Some(id) = self.link_of(slot) else { return Onward::Arrived };
        let parcel = self.parcel(slot);
        let offer = Offer { size: parcel.size(), ecn: parcel.ecn };
        let edge = self.edge_mut(id);
        let fate = edge.link.offer(now, &offer);
        edge.books.note(&offer, &fate);
        let (waiting, bound) = (edge.link.waiting(now), edge.link.bound());
        assert!(
            waiting.packets <= bound.packets && waiting.bytes <= bound.bytes,
            "law broken: link {} queues {waiting:?} of {bound:?} at {now:?}",
            edge.name
        );
        match fate {
            Fate::Dropped(reason) => {
                if let Some(trace) = &mut self.trace {
                    trace.number(now.as_nanos());
                    trace.number(u64::from(id.0) << 32 | 1 << 24 | reason as u64);
                }
                self.release(slot);
            }
            Fate::Delivered(delivery) => self.carry(now, id, slot, delivery),
            Fate::Duplicated(first, second) => {
                let (from, to, ecn, phantom, chain, hop) = {
                    let parcel = self.parcel(slot);
                    (parcel.from, parcel.to, parcel.ecn, parcel.phantom, parcel.chain, parcel.hop)
                };
                let copy = self.claim(from, to, ecn, chain);
                let payload = core::mem::take(&mut self.parcel(slot).payload);
                let twin = self.parcel(copy);
                (twin.hop, twin.phantom) = (hop, phantom);
                twin.payload.extend_from_slice(&payload);
                self.parcel(slot).payload = payload;
                self.carry(now, id, slot, first);
                self.carry(now, id, copy, second);
            }
        }
        self.balance(id, now);
        Onward::UnderWay
    }

    fn carry(&mut self, now: Instant, id: LinkId, slot: u32, delivery: Delivery) {
        let edge = self.edge_mut(id);
        assert!(delivery.at >= now, "law broken: link {} delivers before it is offered", edge.name);
        edge.accepted += 1;
        edge.outstanding += 1;
        let order = edge.accepted;
        let parcel = self.parcel(slot);
        parcel.order = order;
        parcel.ecn = delivery.ecn;
        if let Some(corruption) = delivery.corruption {
            corruption.apply(&mut parcel.payload);
        }
        let event = self.arrival(delivery.at, slot);
        let line = &mut self.edge_mut(id).line;
        let alone = line.is_empty();
        let behind = line.back().is_none_or(|last| last.at <= event.at);
        if behind {
            line.push_back(event);
        }
        if alone || !behind {
            self.events.push(Reverse(event));
        }
    }

    /// The packet has come to the end of its link (if it was on one).
    pub(super) fn delivered(&mut self, now: Instant, slot: u32) {
        let Some(id) = self.link_of(slot) else { return };
        let parcel = self.parcel(slot);
        let (order, size) = (parcel.order, parcel.size());
        parcel.hop += 1;
        let edge = self.edge_mut(id);
        edge.books.note_arrival(size);
        edge.outstanding -= 1;
        assert!(
            order > edge.last_order || edge.link.may_reorder(),
            "law broken: link {} reorders, though it may not: packet {order} after {} at {now:?}",
            edge.name,
            edge.last_order
        );
        edge.last_order = edge.last_order.max(order);
        self.balance(id, now);
        if let Some(trace) = &mut self.trace {
            trace.number(now.as_nanos());
            trace.number(u64::from(id.0) << 32);
            if let Some(parcel) = self.parcels.get(slot as usize) {
                trace.bytes(&parcel.payload);
            }
        }
    }

    fn balance(&self, id: LinkId, now: Instant) {
        let Edge { name, books, outstanding, .. } = self.edge(id);
        assert!(
            books.balance_with(*outstanding),
            "law broken: link {name} does not balance at {now:?}: {books:?}, {outstanding} outstanding"
        );
    }

    /// The books of a link, with what waits and what is in flight.
    pub(super) fn counters(&self, now: Instant, id: LinkId) -> Counters {
        let edge = self.edge(id);
        let queued = edge.link.waiting(now).deliveries;
        assert!(
            queued <= edge.outstanding,
            "law broken: link {} says that {queued} packets wait, {} are outstanding at {now:?}",
            edge.name,
            edge.outstanding
        );
        Counters { queued, in_flight: edge.outstanding - queued, ..edge.books }
    }

    /// Counts every packet under way and every free buffer: what the books say must be what is there.
    pub(super) fn audit(&self) {
        let mut found = vec![0_u64; self.edges.len()];
        let mut parcels = 0;
        let behind = self.edges.iter().flat_map(|edge| edge.line.iter().skip(1));
        for event in self.events.iter().map(|Reverse(event)| event).chain(behind) {
            let Happening::Parcel(slot) = event.happening() else { continue };
            parcels += 1;
            let Some(parcel) = self.parcels.get(slot as usize) else { continue };
            let link = parcel
                .chain
                .and_then(|chain| self.chains.get(chain as usize))
                .and_then(|chain| chain.get(parcel.hop as usize));
            if let Some(count) = link.and_then(|link| found.get_mut(link.0 as usize)) {
                *count += 1;
            }
        }
        for (edge, found) in self.edges.iter().zip(found) {
            assert!(
                edge.outstanding == found,
                "law broken: link {} has {found} packets under way, its books say {}",
                edge.name,
                edge.outstanding
            );
        }
        assert!(
            parcels + self.free.len() == self.parcels.len(),
            "law broken: {} packets under way and {} free buffers, but {} buffers",
            parcels,
            self.free.len(),
            self.parcels.len()
        );
    }
}

/// Whether a packet goes on or is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Onward {
    UnderWay,
    Arrived,
}
