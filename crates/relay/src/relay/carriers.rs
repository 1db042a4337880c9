//! By what a packet leaves: a UDP socket, or a TCP connection that is there or has to be opened first.

use super::{Held, Next, Relay};
use crate::queue::{Way, size};
use crate::report::Dropped;
use byway_wire::relay::{Reason, canonical};
use byway_wire::{ConnectionChange, Datagram, Duration, Ecn, Instant, Local};
use core::net::SocketAddr;

impl Relay {
    /// By what a packet leaves; `None`: it waits for a connection.
    pub(super) fn way(
        &self,
        next: Next,
        datagram: &Datagram<'_>,
        to: SocketAddr,
    ) -> Result<Option<Way>, Dropped> {
        let (way, full) = match next {
            Next::Connection { way, full } => (Some(way), full),
            Next::Dial => (None, false),
            Next::Wait { full } => (None, full),
            Next::TooMany => return Err(Dropped::Refused(Reason::Busy)),
            Next::Datagrams => {
                let way = self.links.way(to, datagram.ecn);
                let (way, full) = way.ok_or(Dropped::Refused(Reason::Unreachable))?;
                (Some(way), full)
            }
        };
        if full || !self.queue.has_room(size(datagram)) { Err(Dropped::QueueFull) } else { Ok(way) }
    }

    /// A packet that was judged and rewritten goes on. Whether there was room for it.
    pub(super) fn goes(&mut self, way: Option<Way>, datagram: &Datagram<'_>, grant: Option<u32>) -> bool {
        let Some(way) = way else { return self.hops.hold(datagram.local, datagram.payload) };
        let goes = self.queue.push(way, datagram.payload, datagram.phantom);
        if datagram.local.is_connection() && goes {
            self.hops.leads(datagram.local, way.local, grant);
        }
        goes
    }

    /// What came by a TCP connection was good. The connection waits if it brought more than its word's rate allows.
    pub(super) fn hold_back(&mut self, now: Instant, local: Local, places: (usize, Option<usize>)) {
        if !local.is_connection() {
            return;
        }
        self.hops.is_good(now, local);
        let wait = self.accounts.owed(places, now);
        if wait > Duration::ZERO {
            self.hops.owes(local, now + wait);
        }
    }

    /// A connection was opened.
    pub(super) fn opened(&mut self, now: Instant, change: &ConnectionChange) {
        if let Some((way, (by, held))) = self.hops.opened(now, change) {
            self.send_held(way, &held);
            self.hops.leads(by, way.local, None);
        }
    }

    /// A destination accepts no connection: it is reached over UDP.
    pub(super) fn not_dialed(&mut self, peer: SocketAddr) {
        let Some((_, held)): Option<Held> = self.hops.not_dialed(peer) else { return };
        if let Some((way, _)) = self.links.way(canonical(peer), Ecn::NotEct) {
            self.send_held(way, &held);
        }
    }

    fn send_held(&mut self, way: Way, mut held: &[u8]) {
        while let Some((prefix, rest)) = held.split_first_chunk::<2>() {
            let (packet, rest) =
                rest.split_at_checked(usize::from(u16::from_be_bytes(*prefix))).unwrap_or_default();
            held = rest;
            self.queue.push(way, packet, 0);
        }
    }
}
