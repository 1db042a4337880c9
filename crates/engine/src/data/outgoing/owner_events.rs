//! Events for the owner: data to read, and data that were delivered.

use byway_wire::{ObjectId, StreamId};

/// The bytes to read from the disk next, and to pass to
/// [`Outgoing::provide`](super::Outgoing::provide).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadRequest {
    /// The number of the object.
    pub object: ObjectId,
    /// The first byte's offset in the object.
    pub offset: u64,
    /// Number of bytes.
    pub length: usize,
}

/// An event of sent streams and objects, for the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutEvent {
    /// The peer has all of an object.
    ObjectAcked(ObjectId),
    /// The peer has acknowledged all bytes of a stream, and its end.
    StreamAcked(StreamId),
    /// The peer wants no more of a stream. It was [`reset`](super::Outgoing::reset) with the same
    /// code.
    Stopped {
        /// The number of the stream.
        stream: StreamId,
        /// The peer's code for the reason.
        code: u64,
    },
    /// A write to this stream was cut short before, and the stream takes bytes again. There is one
    /// event for each such write.
    Writable(StreamId),
    /// A stream can be [opened](super::Outgoing::open_next) again, after that was refused.
    MayOpen,
}

/// Bytes of streams and objects that were sent and acknowledged so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataCounters {
    /// Distinct bytes sent.
    pub sent: u64,
    /// Bytes sent again: lost, or repeated.
    pub repeated: u64,
    /// Distinct bytes that the peer has.
    pub acked: u64,
}
