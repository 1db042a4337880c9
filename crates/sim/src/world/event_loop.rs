//! The loop: one event after the other, and the laws that it asserts.

use super::events::{Event, PacketInFlight};
use super::network::{AddressOwner, WorldEvent};
use super::{
    CaptureDirection, Captured, NodeId, NodeSlot, Route, SCRATCH_BYTES, TapVerdict, TappedDatagram, World,
};
use byway_wire::{
    Datagram, Duration, Input, Instant, LinkChange, Local, SendError, SendErrorKind, Transmit, TransmitBuffer,
};
use core::net::SocketAddr;

/// The number of wakes of a machine at one instant from which it counts as stuck.
const ROUNDS_PER_INSTANT: u32 = 1_000;
/// The most datagrams that a machine may send at one instant. With more it counts as endless.
const DATAGRAMS_PER_INSTANT: u32 = 1 << 18;
/// The most events at one instant, after which the simulation counts as stuck.
const EVENTS_PER_INSTANT: u64 = 1 << 20;

impl World {
    /// Handles all events up to and including `end`. Afterwards the time is `end`.
    pub fn run_until(&mut self, end: Instant) {
        while let Some(event) = self.network.next().filter(|event| event.at() <= end) {
            self.step(event);
        }
        self.advance(end.max(self.now));
        self.network.catch_up_all(self.now);
        self.network.audit();
    }

    /// Runs the simulation for this time.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    /// Runs as long as `condition` holds, at most until `limit`. Whether it ended because the
    /// condition no longer holds; if not, it is `limit`.
    #[must_use]
    pub fn run_while(&mut self, mut condition: impl FnMut(&Self) -> bool, limit: Instant) -> bool {
        // The condition may look at any book after any event.
        self.network.look_ahead(false);
        loop {
            if !condition(self) {
                self.network.audit();
                return true;
            }
            let Some(event) = self.network.next().filter(|event| event.at() <= limit) else {
                self.run_until(limit);
                return !condition(self);
            };
            self.step(event);
        }
    }

    /// Runs the next event.
    fn step(&mut self, event: Event) {
        let at = event.at();
        if self.spurious.is_some() {
            self.maybe_wake_early(at);
        }
        self.advance(at);
        self.events += 1;
        self.events_now += 1;
        assert!(
            self.events_now <= EVENTS_PER_INSTANT,
            "law broken: {EVENTS_PER_INSTANT} events at {:?} and no end: a loop without delay",
            self.now
        );
        match self.network.step(event) {
            WorldEvent::Arrived(flight) => self.arrive(flight),
            WorldEvent::Wake(node) => self.due(node, at),
            WorldEvent::Quiet => {}
        }
    }

    fn advance(&mut self, to: Instant) {
        assert!(to >= self.now, "law broken: time goes back from {:?} to {to:?}", self.now);
        if to > self.now {
            self.now = to;
            self.events_now = 0;
        }
    }

    /// Passes a machine its sockets, and lets it run.
    pub(super) fn introduce(&mut self, node: u32) {
        let sockets = self.slot(NodeId(node)).sockets.len();
        for local in (0..sockets).map(|local| Local(local as u16)) {
            let socket = self.socket(NodeId(node), local);
            let change = LinkChange { local, address: socket.told, up: socket.up };
            self.input(node, Input::Link(change));
        }
        self.wake_soon(node);
    }

    pub(super) fn wake_soon(&mut self, node: u32) {
        let now = self.now;
        let slot = self.slot_mut(NodeId(node));
        (slot.wake_at, slot.fresh) = (now, true);
        self.network.schedule_wake(now, node);
    }

    pub(super) fn input(&mut self, node: u32, input: Input<'_>) {
        let now = self.now;
        let slot = self.slot_mut(NodeId(node));
        let local = slot.clock.local(now);
        slot.node.handle(local, input);
    }

    /// The node and socket that have this address now.
    fn owner(&self, address: &SocketAddr) -> Option<AddressOwner> {
        let &(node, local) = self.owners.get(address)?;
        Some(AddressOwner { node, local, generation: self.generation })
    }

    /// Handles a packet that reached its destination address.
    fn arrive(&mut self, flight: PacketInFlight) {
        let parcel = self.network.parcel(flight.slot);
        let (from, to, known) = (parcel.from, parcel.to, parcel.owner);
        let owner = match known {
            Some(owner) if owner.generation == self.generation => known,
            _ => self.owner(&to),
        };
        let owner = owner.and_then(|AddressOwner { node, local, .. }| {
            let slot = self.slots.get_mut(node as usize)?;
            let socket = slot.sockets.get(usize::from(local))?;
            let admitted = socket.filter.as_ref().is_none_or(|nat| nat.admits(self.now, from));
            (socket.up && admitted && !slot.frozen).then_some((node, local, slot))
        });
        let Some((node, local, slot)) = owner else {
            self.network.stray.no_socket += 1;
            self.network.release(flight.slot);
            return;
        };
        let local = Local(local);
        let now = slot.clock.local(self.now);
        let parcel = self.network.parcel(flight.slot);
        let phantom = flight.size as usize - parcel.payload.len();
        if let Some(capture) = &mut self.capture {
            capture(&Captured {
                at: self.now,
                node: NodeId(node),
                local,
                way: CaptureDirection::Arrived,
                from: parcel.from,
                to,
                ecn: flight.ecn,
                payload: &parcel.payload,
                phantom,
            });
        }
        let datagram = Datagram {
            local,
            remote: parcel.from,
            ecn: flight.ecn,
            arrival: now,
            payload: &mut parcel.payload,
            phantom,
        };
        slot.node.handle(now, Input::Datagram(datagram));
        self.network.release(flight.slot);
        self.settle(node);
    }

    /// A wake of this node was scheduled for now: it may be stale, or early because the deadline
    /// moved on since.
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
        let next = slot.node.next();
        if slot.fresh || next.is_some_and(|next| next <= slot.clock.local(now)) {
            slot.fresh = false;
            self.settle(node);
        } else {
            self.schedule(node, next);
        }
    }

    /// Runs a node until it has no more work now, and then notes its next wake.
    pub(super) fn settle(&mut self, node: u32) {
        let world_now = self.now;
        let mut sent = 0;
        for _ in 0..ROUNDS_PER_INSTANT {
            let slot = self.slot_mut(NodeId(node));
            if slot.frozen {
                return;
            }
            let now = slot.clock.local(world_now);
            slot.node.turn(now);
            self.drain(node, now, &mut sent);
            let next = self.slot_mut(NodeId(node)).node.next();
            if next.is_none_or(|next| next > now) {
                self.schedule(node, next);
                return;
            }
        }
        let NodeSlot { node, name, clock, .. } = self.slot_mut(NodeId(node));
        panic!(
            "law broken: node {name} is stuck at {:?} (its clock): after {ROUNDS_PER_INSTANT} rounds of wake and transmit \
             its deadline is {:?}, its next turn {:?}",
            clock.local(world_now),
            node.machine().deadline(),
            node.next()
        );
    }

    /// Adds the event of the node's next wake, at `local` on its clock, unless there is an earlier
    /// one.
    fn schedule(&mut self, node: u32, local: Option<Instant>) {
        let now = self.now;
        let slot = self.slot_mut(NodeId(node));
        let Some(local) = local.filter(|&local| local != Instant::FAR_FUTURE) else { return };
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
            let mut out = TransmitBuffer { buffer: &mut scratch, max_segments };
            let Some(transmit) = slot.node.transmit(now, &mut out) else { break };
            let Transmit { size, segment, .. } = transmit;
            assert!(
                size <= SCRATCH_BYTES && segment <= size && (size == 0 || segment > 0),
                "law broken: node {} says {transmit:?} of {SCRATCH_BYTES} bytes",
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

    /// Sends one datagram of a node.
    fn send(&mut self, node: u32, transmit: &Transmit, payload: &[u8]) {
        let Some(slot) = self.slots.get_mut(node as usize) else { return };
        let Some(socket) = slot.sockets.get_mut(usize::from(transmit.local.0)) else {
            panic!("law broken: node {} sends by {}, which it does not have", slot.name, transmit.local)
        };
        let refused = if !socket.up {
            self.network.stray.local_down += 1;
            Some(SendErrorKind::Unreachable)
        } else if payload.len() + transmit.phantom > socket.largest {
            self.network.stray.too_large += 1;
            Some(SendErrorKind::TooLarge)
        } else {
            None
        };
        if let Some(kind) = refused {
            let Transmit { local, remote, .. } = *transmit;
            self.input(
                node,
                Input::SendError(SendError { local, remote, size: payload.len() + transmit.phantom, kind }),
            );
            return;
        }
        let to = transmit.remote;
        let from = socket.seen;
        if let Some(filter) = &mut socket.filter {
            filter.on_sent(self.now, to);
        }
        if socket.routes.get(socket.last_route).is_none_or(|route| route.to != to) {
            let place = socket.routes.binary_search_by(|route| route.to.cmp(&to)).unwrap_or_else(|place| {
                let known = self.network.lookup(node, transmit.local.0, from.ip(), to.ip());
                let chain = known.or_else(|| {
                    let links = self.router.as_mut()?(from.ip(), to.ip())?;
                    let chain = self.network.chain(self.now, &links);
                    self.network.route_address(from.ip(), to.ip(), chain);
                    Some(chain)
                });
                socket.routes.insert(place, Route { to, chain, owner: None });
                place
            });
            socket.last_route = place;
        }
        let Some(route) = socket.routes.get_mut(socket.last_route) else { return };
        let Some(chain) = route.chain else {
            self.network.stray.no_route += 1;
            return;
        };
        if route.owner.is_none_or(|owner| owner.generation != self.generation) {
            let found = self.owners.get(&to);
            route.owner =
                found.map(|&(node, local)| AddressOwner { node, local, generation: self.generation });
        }
        let parcel = self.network.claim(from, to, route.owner);
        let inside = self.network.parcel(parcel);
        inside.payload.extend_from_slice(payload);
        let mut ecn = transmit.ecn;
        if let Some(tap) = &mut self.tap {
            let seen = TappedDatagram {
                now: self.now,
                from: &mut inside.from,
                to: &mut inside.to,
                ecn: &mut ecn,
                payload: &mut inside.payload,
                phantom: transmit.phantom,
            };
            if tap(seen) == TapVerdict::Drop {
                self.network.stray.tapped += 1;
                self.network.release(parcel);
                return;
            }
            // The tap may have sent it elsewhere.
            inside.owner = None;
        }
        if let Some(capture) = &mut self.capture {
            capture(&Captured {
                at: self.now,
                node: NodeId(node),
                local: transmit.local,
                way: CaptureDirection::Sent,
                from: inside.from,
                to: inside.to,
                ecn,
                payload: &inside.payload,
                phantom: transmit.phantom,
            });
        }
        let size = (inside.payload.len() + transmit.phantom) as u32;
        let flight = PacketInFlight { at: self.now, slot: parcel, place: chain, size, ecn };
        if let WorldEvent::Arrived(flight) = self.network.offer(flight) {
            // A route without links: it arrives by an event of its own, for its sender is still at
            // work.
            self.network.inject(self.now, flight.slot, size, ecn);
        }
    }

    /// At random, wakes a node before the next event, and asserts that this changes nothing.
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
        let sent = slot
            .node
            .machine()
            .transmit(local, &mut TransmitBuffer { buffer: &mut scratch, max_segments: 1 });
        assert!(
            sent.is_none(),
            "law broken: a spurious wake of node {} at {local:?} made it send {sent:?}",
            slot.name
        );
        self.scratch = scratch;
    }
}
