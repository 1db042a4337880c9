//! By what a packet leaves: a UDP socket, or a TCP connection that is there or has to be opened
//! first.

use crate::operator_report::Dropped;
use crate::send_queue::{SendAddress, SendQueue, size};
use crate::tcp_hops::{Hops, NextHop};
use crate::udp_sockets::RelaySockets;
use byway_wire::relay::{Reason, canonical};
use byway_wire::{Datagram, Ecn, Input, Instant, Local, TcpRequest, Transmit, TransmitBuffer};
use core::net::SocketAddr;

/// The next hop of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextLink {
    /// The packet leaves by this socket or TCP connection.
    Way(SendAddress),
    /// A TCP connection must be opened before the packet can leave.
    Dial,
    /// The packet waits for a connection that is being opened.
    Wait,
}

/// A relay's sockets and TCP connections, and its queue of datagrams to send.
#[derive(Debug)]
pub(crate) struct Carriers {
    sockets: RelaySockets,
    hops: Hops,
    queue: SendQueue,
}

impl Carriers {
    pub(crate) fn new(queue_bytes: usize, queue_datagrams: usize) -> Self {
        let queue = SendQueue::new(queue_bytes, queue_datagrams);
        Self { sockets: RelaySockets::new(), hops: Hops::default(), queue }
    }

    /// Whether a socket of the relay has this address.
    pub(crate) fn are_at(&self, address: SocketAddr) -> bool {
        self.sockets.are_at(address)
    }

    /// Returns the next hop of a packet, if there is room. `may_dial`: the grant for which a
    /// connection may be opened.
    pub(crate) fn way(
        &self,
        datagram: &Datagram<'_>,
        to: SocketAddr,
        may_dial: Option<u32>,
    ) -> Result<NextLink, Dropped> {
        let (onto, full) = match self.hops.next(datagram.local, to, may_dial) {
            NextHop::Connection { way, full } => (NextLink::Way(way), full),
            NextHop::Dial => (NextLink::Dial, false),
            NextHop::Wait { full } => (NextLink::Wait, full),
            NextHop::TooMany => return Err(Dropped::Refused(Reason::Busy)),
            NextHop::Datagrams => {
                let way = self.sockets.way(Some((datagram.local, datagram.remote)), to, datagram.ecn);
                let (way, full) = way.ok_or(Dropped::Refused(Reason::Unreachable))?;
                (NextLink::Way(way), full)
            }
        };
        if full || !self.queue.has_room(size(datagram)) { Err(Dropped::QueueFull) } else { Ok(onto) }
    }

    /// A packet that was judged and rewritten goes on. Whether there was room for it.
    pub(crate) fn goes(
        &mut self,
        onto: NextLink,
        datagram: &Datagram<'_>,
        to: SocketAddr,
        grant: Option<u32>,
    ) -> bool {
        let from = datagram.local;
        if let (NextLink::Dial, Some(grant)) = (onto, grant) {
            self.hops.dial(from, to, grant);
        }
        let NextLink::Way(way) = onto else { return self.hops.hold(from, datagram.payload) };
        let goes = self.queue.push(way, datagram.payload, datagram.phantom);
        if from.is_connection() && goes {
            self.hops.leads(from, way.local, grant);
        }
        goes
    }

    /// Sends `bytes` back to the source of a datagram, if they are no longer than the datagram.
    /// Returns whether they were queued.
    pub(crate) fn answer(&mut self, datagram: &Datagram<'_>, bytes: &[u8]) -> bool {
        let way = SendAddress { local: datagram.local, remote: datagram.remote, ecn: Ecn::NotEct };
        bytes.len() <= size(datagram) && self.queue.push(way, bytes, 0)
    }

    /// Sends `bytes` over UDP. Returns false if no socket fits or the queue is full.
    pub(crate) fn send(&mut self, to: SocketAddr, bytes: &[u8]) -> bool {
        self.sockets.way(None, to, Ecn::NotEct).is_some_and(|(way, _)| self.queue.push(way, bytes, 0))
    }

    /// Notes that a TCP connection brought a valid packet. It is not read until `owes_until`, if it
    /// brought more than its rate.
    pub(crate) fn is_good(&mut self, now: Instant, local: Local, owes_until: Option<Instant>) {
        self.hops.is_good(now, local);
        if let Some(until) = owes_until {
            self.hops.owes(local, until);
        }
    }

    /// Updates the sockets and connections after one of them opened, closed or became full.
    pub(crate) fn change(&mut self, now: Instant, input: &Input<'_>) {
        match input {
            Input::Link(change) => self.sockets.change(change),
            Input::Room(change) => {
                self.sockets.room(*change);
                self.hops.room(*change);
            }
            Input::Connection(change) if change.open => {
                if let Some((way, (by, held))) = self.hops.opened(now, change) {
                    self.send_held(way, &held);
                    self.hops.leads(by, way.local, None);
                }
            }
            Input::Connection(change) => self.hops.closed(change.local),
            // A destination that accepts no connection is reached over UDP.
            Input::NotDialed(peer) => {
                let held = self.hops.not_dialed(*peer).map(|(_, held)| held);
                if let (Some(held), Some((way, _))) =
                    (held, self.sockets.way(None, canonical(*peer), Ecn::NotEct))
                {
                    self.send_held(way, &held);
                }
            }
            Input::Datagram(_) | Input::SendError(_) => {}
        }
    }

    fn send_held(&mut self, way: SendAddress, mut held: &[u8]) {
        while let Some((prefix, rest)) = held.split_first_chunk::<2>() {
            let length = usize::from(u16::from_be_bytes(*prefix));
            let (packet, rest) = rest.split_at_checked(length).unwrap_or_default();
            held = rest;
            self.queue.push(way, packet, 0);
        }
    }

    pub(crate) fn transmit(&mut self, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        self.queue.transmit(out)
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.hops.deadline()
    }

    pub(crate) fn wake(&mut self, now: Instant) {
        self.hops.wake(now);
    }

    pub(crate) fn serves(&self, local: Local) -> bool {
        self.hops.serves(local)
    }

    pub(crate) fn next_ask(&mut self) -> Option<TcpRequest> {
        self.hops.next_ask()
    }

    /// The number of TCP connections.
    pub(crate) fn connections(&self) -> usize {
        self.hops.len()
    }
}
