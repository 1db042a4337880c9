//! What the owner is told: what to read, what happened, what was done.

use byway_wire::{ObjectId, StreamId};

/// What the owner should read from the disk next, and hand to
/// [`Outgoing::provide`](super::Outgoing::provide).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadRequest {
    /// The object.
    pub object: ObjectId,
    /// The first byte's offset in the object.
    pub offset: u64,
    /// How many bytes.
    pub length: usize,
}

/// What the owner may want to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutEvent {
    /// The peer has all of an object.
    ObjectAcked(ObjectId),
    /// The peer has all of a stream, and knows its end.
    StreamAcked(StreamId),
    /// The peer wants no more of a stream. It was [`reset`](super::Outgoing::reset) with the same
    /// code.
    Stopped {
        /// The stream.
        stream: StreamId,
        /// The peer's code for the reason.
        code: u64,
    },
    /// A write to this stream was cut short before; it takes bytes again. Told once for each time
    /// that one was cut short.
    Writable(StreamId),
    /// A stream could not be [opened](super::Outgoing::open_next) before; now one can.
    MayOpen,
}

/// What was done so far, in bytes of streams and objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataCounters {
    /// Distinct bytes sent.
    pub sent: u64,
    /// Bytes sent again: lost, or repeated.
    pub repeated: u64,
    /// Distinct bytes that the peer has.
    pub acked: u64,
}
