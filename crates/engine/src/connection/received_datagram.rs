//! A datagram that carries a packet of a connection.

use crate::route::PacketSource;
use byway_wire::{Ecn, Instant, PathId};

/// A datagram that carries a packet of a connection.
#[derive(Debug)]
pub(crate) struct Inbound<'a> {
    /// The peer's path, from the connection id.
    pub path: PathId,
    /// Where it came from.
    pub source: PacketSource,
    /// The ECN mark of the datagram.
    pub ecn: Ecn,
    /// When it arrived.
    pub at: Instant,
    /// UDP payload bytes, envelope and phantom ones included.
    pub bytes: usize,
    /// The packet, still sealed.
    pub packet: &'a mut [u8],
    /// Bytes of objects that it has beyond that.
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
