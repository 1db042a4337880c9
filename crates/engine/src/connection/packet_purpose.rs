//! What a packet is for, and what is left of a run of packets for the same.

use byway_wire::PathId;

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// What is pending on the path.
    Pending,
    /// A padded PING that probes a size.
    Size,
    /// A PATH_CHALLENGE to where the path may have moved.
    Ask,
    /// ACKs and other control of the whole connection.
    Control,
    /// The ACK of this path of the peer's, for the second time.
    Echo(PathId),
    /// Data; the last of it once more if nothing else is left.
    Data,
    /// Datagrams that the path took on.
    Datagram,
    /// Data that was sent before and is not acknowledged yet.
    Tail,
    /// A CLOSE, which ends the session.
    Close,
}

/// What is left of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunRemainder {
    pub path: PathId,
    /// The size of each packet in bytes.
    pub size: usize,
    /// How many more packets the run may have.
    pub most: usize,
    pub purpose: Purpose,
}
