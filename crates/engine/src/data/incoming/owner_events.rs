//! Results for the owner: bytes for the disk, events, and the results of reads.

use alloc::vec::Vec;
use byway_wire::{ObjectId, StreamId};

/// Bytes to write to disk. Return the unchanged buffer with
/// [`Incoming::written`](super::Incoming::written).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteRequest {
    /// The number of the object.
    pub object: ObjectId,
    /// The offset of the bytes in the object.
    pub offset: u64,
    /// The bytes.
    pub data: Vec<u8>,
}

/// New bytes of an object that is only a length: see
/// [`Incoming::next_arrival`](super::Incoming::next_arrival).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The number of the object.
    pub object: ObjectId,
    /// The offset of the bytes in the object.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
}

/// An event of received streams and objects, for the owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InEvent {
    /// The first frame of a stream came. Of a stream that this side opened, it is the peer's first
    /// answer.
    StreamOpened(StreamId),
    /// A stream has bytes to read, or has ended. The event repeats only after a read has taken
    /// everything.
    StreamReadable(StreamId),
    /// The peer reset a stream. Unread bytes are gone.
    StreamReset {
        /// The number of the stream.
        id: StreamId,
        /// The peer's code for the reason.
        code: u64,
    },
    /// All bytes of an object have arrived, and
    /// [`Incoming::next_write`](super::Incoming::next_write) (or
    /// [`Incoming::next_arrival`](super::Incoming::next_arrival)) has handed them out. The object
    /// is then forgotten.
    ObjectComplete {
        /// The number of the object.
        id: ObjectId,
        /// The object's size in bytes.
        size: u64,
    },
}

/// The result of reading a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamRead {
    /// Bytes put into the buffer.
    pub length: usize,
    /// Whether the stream ends after these bytes, and is then forgotten.
    pub finished: bool,
}
