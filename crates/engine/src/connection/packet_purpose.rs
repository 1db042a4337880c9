//! The purpose of a packet, and the rest of a run of packets with the same purpose.

use byway_wire::PathId;

/// Why a packet is sent, which decides its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The path's own pending frames, such as a PING or a challenge.
    Pending,
    /// A padded PING that probes a size.
    Size,
    /// A PATH_CHALLENGE to where the path may have moved.
    Ask,
    /// ACKs and other control of the whole connection.
    Control,
    /// The second copy of the ACK of this path of the peer's.
    Echo(PathId),
    /// Data. If nothing else is left, the last data once more.
    Data,
    /// Datagrams that the path took on.
    Datagram,
    /// Data that was sent before and is not acknowledged yet.
    Tail,
    /// A CLOSE, which ends the session.
    Close,
}

/// The unfinished rest of a run of packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunRemainder {
    pub path: PathId,
    /// The size of each packet in bytes.
    pub size: usize,
    /// The most packets that the run may still have.
    pub most: usize,
    pub purpose: Purpose,
}
