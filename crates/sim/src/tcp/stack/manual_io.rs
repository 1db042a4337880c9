//! Connections that are written and read by hand: an owner's in both directions, and a relay's,
//! where what comes on one leaves on another.

use super::Stack;
use super::manual_connections::{ByHand, Pair};
use crate::tcp::acks_and_timeouts::ConnectionFate;
use crate::tcp::connection::{Connection, TcpState};
use crate::tcp::flow_spec::{Demand, Flow};
use crate::tcp::receive::ReadPattern;
use byway_control::Opened;
use byway_wire::{Instant, Local};
use core::net::SocketAddr;

impl Stack {
    /// Opens a connection with `tag` in its SYN. `None`: all slots are in use.
    pub(in crate::tcp) fn dial(
        &mut self,
        now: Instant,
        way: (Local, SocketAddr),
        tag: u64,
    ) -> Option<ByHand> {
        let options = self.serve.options.clone();
        let slot = self.claim(now, way, &options, ReadPattern::ByHand)?;
        let bundle = self.open_by_hand(now, slot);
        let connection = &mut self.connections[slot as usize];
        connection.path = self.bundles[bundle as usize].name_path();
        connection.opening.tag = tag;
        let port = connection.port;
        self.ready(slot);
        Some(ByHand { slot, port })
    }

    /// Registers an accepted connection as one that the owner reads and writes.
    pub(super) fn take_by_hand(&mut self, now: Instant, slot: u32, tag: u64) {
        if self.newcomers.is_none() {
            return;
        }
        let bundle = self.open_by_hand(now, slot);
        let connection = &mut self.connections[slot as usize];
        connection.opening.tag = tag;
        let (path, packet_size, port) = (connection.path, connection.mss as u32, connection.port);
        self.bundles[bundle as usize]
            .open_path(path, &Opened { now, proxied: false, packet_size, rtt: None });
        if let Some(newcomers) = &mut self.newcomers {
            newcomers.push(ByHand { slot, port });
        }
    }

    /// Makes a bundle for the sending direction of the connection in `slot`.
    fn open_by_hand(&mut self, now: Instant, slot: u32) -> u32 {
        let options = self.serve.options.clone();
        let controller = (self.serve.controller)(self.random.next_u64(), &options);
        let written = Demand::Rate(Vec::new());
        let index =
            self.open(Flow::new(Vec::new(), controller).demand(written).start(now).options(options), 0);
        let bundle = &mut self.bundles[index as usize];
        bundle.started = Some(now);
        bundle.connections.push(slot);
        self.connections[slot as usize].bundle = index;
        index
    }

    /// A connection that is not over.
    pub(in crate::tcp) fn by_hand(&self, which: ByHand) -> Option<&Connection> {
        self.connections
            .get(which.slot as usize)
            .filter(|it| it.port == which.port && !matches!(it.state, TcpState::Closed | TcpState::Lingering))
    }

    /// Writes `bytes` bytes.
    pub(in crate::tcp) fn write(&mut self, which: ByHand, bytes: u64) {
        if let Some(index) = self.by_hand(which).map(|connection| connection.bundle) {
            self.with_bundle(index, |bundle| bundle.supply.write(bytes));
        }
    }

    /// Bytes written that have not been sent for the first time.
    pub(in crate::tcp) fn unsent(&self, which: ByHand) -> u64 {
        let bundle = self.by_hand(which).and_then(|connection| self.bundle(connection.bundle));
        bundle.map_or(0, |bundle| bundle.supply.waiting())
    }

    /// Reads `bytes` of the bytes that came in order. The window opens by the same number.
    pub(in crate::tcp) fn read(&mut self, which: ByHand, bytes: u64) {
        if self.by_hand(which).is_some() {
            let connection = &mut self.connections[which.slot as usize];
            connection.receive.take(bytes);
            connection.received += bytes;
            self.received += bytes;
            self.ready(which.slot);
        }
    }

    /// Ends this side after all written data have arrived.
    pub(in crate::tcp) fn end(&mut self, now: Instant, which: ByHand) {
        if let Some(index) = self.by_hand(which).map(|connection| connection.bundle) {
            self.with_bundle(index, |bundle| bundle.supply.stop(now, bundle.delivered));
            if (index as usize) < self.bundles.len() {
                self.after(now, index);
            }
        }
    }

    /// Ends both sides at once. Data in flight are lost.
    pub(in crate::tcp) fn reset(&mut self, now: Instant, which: ByHand) {
        if let Some((local, remote, peer)) = self.by_hand(which).map(|it| (it.local, it.remote, it.peer_port))
        {
            self.refusals.push_back((local, remote, peer));
            self.on_fate(now, which.slot, ConnectionFate::Dead);
        }
    }

    /// Opens the flow that forwards the data of the connection in `slot`.
    pub(super) fn carry_on(&mut self, now: Instant, slot: u32) {
        let port = self.connections[slot as usize].port;
        let Some(onward) = &self.onward else { return };
        // It writes what comes, when it comes.
        let written = Demand::Rate(Vec::new());
        let controller = (self.serve.controller)(slot.into(), &onward.options);
        let flow = Flow::new(vec![onward.to], controller).demand(written).start(now);
        let flow = flow.options(onward.options.clone());
        let bundle = self.open(flow, 0);
        if let Some(onward) = &mut self.onward {
            onward.pairs.push(Pair { slot, port, bundle, came: 0, gone: 0, ended: false });
        }
    }

    /// Forwards received data, and reopens windows for the data that were sent on.
    pub(in crate::tcp) fn hand_over(&mut self, now: Instant) {
        for number in 0..self.onward.as_ref().map_or(0, |onward| onward.pairs.len()) {
            let pair = self.onward.as_mut().and_then(|onward| onward.pairs.get_mut(number));
            let Some(pair) = pair else { return };
            let Pair { slot, bundle: index, .. } = *pair;
            let bundle = &mut self.bundles[index as usize];
            let left = bundle.delivered - pair.gone;
            pair.gone = bundle.delivered;
            let connection = &mut self.connections[slot as usize];
            if connection.port != pair.port {
                continue;
            }
            let fresh = connection.receive.next - pair.came;
            pair.came += fresh;
            bundle.supply.write(fresh);
            let ended = connection.receive.is_complete() && !pair.ended;
            if ended {
                pair.ended = true;
                bundle.supply.stop(now, bundle.delivered);
            }
            if left > 0 {
                connection.receive.take(left);
                connection.received += left;
                self.received += left;
                self.ready(slot);
            }
            if fresh > 0 || ended {
                self.settle_bundle(index);
            }
            if ended {
                self.after(now, index);
            }
        }
    }
}
