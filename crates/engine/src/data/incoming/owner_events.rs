//! What the owner is handed: bytes for the disk, events, and what a read gave.

use alloc::vec::Vec;
use byway_wire::{ObjectId, StreamId};

/// Bytes for the disk. Give the buffer back with [`Incoming::written`](super::Incoming::written),
/// as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteRequest {
    /// The object.
    pub object: ObjectId,
    /// Where the bytes stand in it.
    pub offset: u64,
    /// The bytes.
    pub data: Vec<u8>,
}

/// Bytes of an object that is only a length, new and not told before: see
/// [`Incoming::next_arrival`](super::Incoming::next_arrival).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The object.
    pub object: ObjectId,
    /// Where the bytes stand in it.
    pub offset: u64,
    /// How many they are.
    pub length: u64,
}

/// What the owner may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InEvent {
    /// The first frame of a stream came (also on streams that this side opened, when the peer first
    /// answers).
    StreamOpened(StreamId),
    /// A stream can be read, or is at its end. Told once until a read comes to the end of what is
    /// there.
    StreamReadable(StreamId),
    /// The peer gave up a stream; what was not read is gone.
    StreamReset {
        /// The stream.
        id: StreamId,
        /// The peer's code for the reason.
        code: u64,
    },
    /// All of an object arrived, and all of it was handed out by
    /// [`Incoming::next_write`](super::Incoming::next_write) (or
    /// [`Incoming::next_arrival`](super::Incoming::next_arrival)) before. The object is forgotten
    /// with this.
    ObjectComplete {
        /// The object.
        id: ObjectId,
        /// The object's size in bytes.
        size: u64,
    },
}

/// What a read gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamRead {
    /// Bytes put into the buffer.
    pub length: usize,
    /// Whether the stream ends after them. It is forgotten with this.
    pub finished: bool,
}
