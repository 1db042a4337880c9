//! How the datagrams of a path travel: directly or through a relay, and over UDP or TCP. A path
//! keeps its id and its packet numbers when its route changes.

use crate::path::transport::PathTransport;
use alloc::boxed::Box;
use byway_wire::relay::{Delivered, Hop, ReturnHop, canonical};
use byway_wire::{Instant, Local};
use core::net::SocketAddr;

/// The route of a path, as seen from this side.
#[derive(Clone, Debug)]
pub struct Route {
    /// The socket that datagrams leave by.
    pub local: Local,
    /// The address to which datagrams are sent: the peer's, or a relay's.
    pub remote: SocketAddr,
    /// How datagrams go on from the remote address.
    pub via: Via,
}

/// How datagrams reach the peer.
#[derive(Clone, Debug)]
pub enum Via {
    /// The remote address is the peer's.
    Direct,
    /// The remote address is a relay's, which forwards to a receiver.
    Relay(Box<Hop>),
    /// The remote address is a relay's, which forwards back to a sender.
    Return(Box<ReturnHop>),
}

/// Routes are equal if they use the same addresses, even with different credentials for the relay.
impl PartialEq for Route {
    fn eq(&self, other: &Self) -> bool {
        self.local == other.local && self.remote == other.remote && self.far() == other.far()
    }
}

impl Eq for Route {}

impl Route {
    /// A route without a relay.
    #[must_use]
    pub const fn direct(local: Local, remote: SocketAddr) -> Self {
        Self { local, remote, via: Via::Direct }
    }

    /// A route through a relay to a receiver.
    #[must_use]
    pub fn relayed(local: Local, hop: Hop) -> Self {
        Self { local, remote: hop.relay(), via: Via::Relay(Box::new(hop)) }
    }

    /// The address behind the relay.
    #[must_use]
    pub fn far(&self) -> Option<SocketAddr> {
        match &self.via {
            Via::Direct => None,
            Via::Relay(hop) => Some(hop.destination()),
            Via::Return(hop) => Some(hop.destination()),
        }
    }

    /// Whether the route goes through a relay.
    #[must_use]
    pub const fn is_proxied(&self) -> bool {
        !matches!(self.via, Via::Direct)
    }

    /// The transport all the way. A relay may lose packets behind a TCP connection to it.
    #[must_use]
    pub fn carriage(&self) -> PathTransport {
        if self.local.is_connection() && !self.is_proxied() {
            PathTransport::Connection
        } else {
            PathTransport::Datagrams
        }
    }

    /// Whether this route goes over UDP to the same address to which `tcp` goes over TCP: the peer
    /// or a relay.
    #[must_use]
    pub fn is_udp_of(&self, tcp: &Self) -> bool {
        self.leads_as(tcp) && !self.local.is_connection()
    }

    /// Whether both go straight to the peer, or to the same relay.
    #[must_use]
    pub fn leads_as(&self, other: &Self) -> bool {
        self.is_direct_as(other) || self.is_proxied() && other.is_proxied() && self.remote == other.remote
    }

    /// Whether this route uses the preferred transport, which carries the data while it works. For
    /// a direct route the preferred transport is `direct` (UDP or TCP). For a route through a relay
    /// it is UDP.
    #[must_use]
    pub fn is_preferred(&self, direct: PathTransport) -> bool {
        let kind = if self.is_proxied() { PathTransport::Datagrams } else { direct };
        self.local.is_connection() == (kind == PathTransport::Connection)
    }

    /// Whether both go through the same relay by the same socket and under the same grant, to
    /// different addresses of the peer.
    #[must_use]
    pub fn is_moved(&self, other: &Self) -> bool {
        let (Via::Relay(ours), Via::Relay(theirs)) = (&self.via, &other.via) else { return false };
        let same_relay = self.local == other.local && self.remote == other.remote;
        same_relay && ours.grant() == theirs.grant() && ours.destination() != theirs.destination()
    }

    /// Whether both go straight to the peer.
    #[must_use]
    pub const fn is_direct_as(&self, other: &Self) -> bool {
        !self.is_proxied() && !other.is_proxied()
    }

    /// Bytes that the route needs in each datagram before the packet.
    #[must_use]
    pub fn overhead(&self) -> usize {
        match &self.via {
            Via::Direct => 0,
            Via::Relay(hop) => hop.room(),
            Via::Return(hop) => hop.room(),
        }
    }

    /// Writes the header that the route needs into the first [`overhead`](Self::overhead) bytes of
    /// a datagram. The packet follows.
    pub fn enclose(&self, now: Instant, datagram: &mut [u8]) {
        let enclosed = match &self.via {
            Via::Direct => true,
            Via::Relay(hop) => hop.seal(now, datagram),
            Via::Return(hop) => hop.seal(datagram),
        };
        debug_assert!(enclosed, "an envelope without a packet");
    }
}

/// The source of a datagram.
#[derive(Clone, Copy, Debug)]
pub struct PacketSource {
    /// The local socket on which the datagram arrived.
    pub local: Local,
    /// The UDP source address of the datagram: the peer, or a relay.
    pub remote: SocketAddr,
    /// The relay's data about the sender, which are not authenticated.
    pub through: Through,
}

/// The data that a relay adds to a datagram that it forwards.
#[derive(Clone, Copy, Debug)]
pub enum Through {
    /// The datagram came without a relay.
    Nothing,
    /// The relay forwarded the datagram from a sender, with a return tag.
    Delivered(Delivered),
    /// The relay forwarded the datagram from a receiver at this address.
    Back(SocketAddr),
}

impl PartialEq for PacketSource {
    fn eq(&self, other: &Self) -> bool {
        self.local == other.local && self.remote == other.remote && self.far() == other.far()
    }
}

impl Eq for PacketSource {}

impl PacketSource {
    /// A datagram that came without a relay.
    #[must_use]
    pub const fn direct(local: Local, remote: SocketAddr) -> Self {
        Self { local, remote, through: Through::Nothing }
    }

    /// Whether both sources are equal to the last byte, the relay's return tag included. Where the
    /// inner packet begins does not count.
    #[must_use]
    pub fn is_alike(&self, other: &Self) -> bool {
        let alike = match (&self.through, &other.through) {
            (Through::Nothing, Through::Nothing) => true,
            (Through::Delivered(one), Through::Delivered(two)) => one.from == two.from && one.tag == two.tag,
            (Through::Back(one), Through::Back(two)) => one == two,
            _ => false,
        };
        alike && self.local == other.local && self.remote == other.remote
    }

    fn far(&self) -> Option<SocketAddr> {
        match &self.through {
            Through::Nothing => None,
            Through::Delivered(delivered) => Some(canonical(delivered.from)),
            Through::Back(from) => Some(canonical(*from)),
        }
    }

    /// Whether `route` leads to this source.
    #[must_use]
    pub fn is_end_of(&self, route: &Route) -> bool {
        self.local == route.local && self.remote == route.remote && self.far() == route.far()
    }

    /// The route to this source. `None`: only a side with a hop through the relay can send there.
    #[must_use]
    pub fn route(&self) -> Option<Route> {
        let via = match &self.through {
            Through::Nothing => Via::Direct,
            Through::Delivered(delivered) => Via::Return(Box::new(ReturnHop::new(self.remote, delivered))),
            Through::Back(_) => return None,
        };
        Some(Route { local: self.local, remote: self.remote, via })
    }
}
