//! A datagram that carries a packet of a connection.

use crate::route::PacketSource;
use byway_wire::{Ecn, Instant, PathId};

/// A datagram that carries a packet of a connection.
#[derive(Debug)]
pub(crate) struct Inbound<'a> {
    /// The peer's path, from the connection id.
    pub path: PathId,
    /// The source of the packet: the local socket and the remote address.
    pub source: PacketSource,
    /// The ECN mark of the datagram.
    pub ecn: Ecn,
    /// The arrival time of the packet.
    pub at: Instant,
    /// UDP payload bytes, envelope and phantom ones included.
    pub bytes: usize,
    /// The packet, still sealed.
    pub packet: &'a mut [u8],
    /// Phantom bytes of objects in the packet, which exist only as a length.
    pub phantom: usize,
}

/// Why a packet was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// The bytes are no packet.
    Malformed,
    /// The packet was seen before.
    Replayed,
    /// The packet was not made with the peer's keys.
    Forged,
    /// For a path that the peer dropped, or too many paths.
    Unexpected,
}
