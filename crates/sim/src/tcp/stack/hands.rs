//! Connections whose owner writes and reads by hand, in both directions.

use super::Stack;
use crate::tcp::acking::Fate;
use crate::tcp::connection::{Connection, State};
use crate::tcp::receive::Reading;
use crate::tcp::{Demand, Flow};
use byway_control::Opened;
use byway_wire::{Instant, Local};
use core::net::SocketAddr;

/// A connection of a stack: the slot is this connection's as long as it has this port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) struct ByHand {
    pub slot: u32,
    pub port: u32,
}

impl Stack {
    /// Opens a connection whose SYN says `tag`. `None`: there are as many connections as there are slots.
    pub(in crate::tcp) fn dial(
        &mut self,
        now: Instant,
        way: (Local, SocketAddr),
        tag: u64,
    ) -> Option<ByHand> {
        let options = self.serve.options.clone();
        let slot = self.claim(now, way, &options, Reading::ByHand)?;
        let bundle = self.open_by_hand(now, slot);
        let connection = &mut self.connections[slot as usize];
        connection.path = self.bundles[bundle as usize].name_path();
        connection.opening.tag = tag;
        let port = connection.port;
        self.ready(slot);
        Some(ByHand { slot, port })
    }

    /// Takes an accepted connection for one that is written and read by hand.
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

    /// Who governs what this side sends.
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
            .filter(|it| it.port == which.port && !matches!(it.state, State::Closed | State::Lingering))
    }

    /// Writes so many bytes.
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

    /// Reads so many of the bytes that came in order: the window opens by as many.
    pub(in crate::tcp) fn read(&mut self, which: ByHand, bytes: u64) {
        if self.by_hand(which).is_some() {
            let connection = &mut self.connections[which.slot as usize];
            connection.receive.take(bytes);
            connection.received += bytes;
            self.received += bytes;
            self.ready(which.slot);
        }
    }

    /// Ends this side once all that was written has arrived.
    pub(in crate::tcp) fn end(&mut self, now: Instant, which: ByHand) {
        if let Some(index) = self.by_hand(which).map(|connection| connection.bundle) {
            self.with_bundle(index, |bundle| bundle.supply.stop(now, bundle.delivered));
            if (index as usize) < self.bundles.len() {
                self.after(now, index);
            }
        }
    }

    /// Ends both sides at once: what is under way is lost.
    pub(in crate::tcp) fn reset(&mut self, now: Instant, which: ByHand) {
        if let Some((local, remote, peer)) = self.by_hand(which).map(|it| (it.local, it.remote, it.peer_port))
        {
            self.refusals.push_back((local, remote, peer));
            self.on_fate(now, which.slot, Fate::Dead);
        }
    }
}
