//! The application's data in packets, and the errors of a peer that violates their rules.

use byway_wire::{ObjectId, PathId, StreamId};
use thiserror::Error;

/// Bytes of flow control that an object costs in addition to its data: about the receiver's state
/// for one.
pub const OBJECT_COST: u64 = 512;

/// Something whose bytes have offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DataId {
    /// A stream.
    Stream(StreamId),
    /// An object.
    Object(ObjectId),
}

/// The application data in a packet. It is remembered until the packet is acknowledged or lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// Bytes of a stream.
    Stream {
        /// The stream.
        id: StreamId,
        /// The offset of the bytes in the stream.
        offset: u64,
        /// Number of bytes.
        length: u32,
        /// Whether these bytes are the last of the stream.
        fin: bool,
    },
    /// Bytes of an object.
    Object {
        /// The object.
        id: ObjectId,
        /// The offset of the bytes in the object.
        offset: u64,
        /// Number of bytes.
        length: u32,
        /// Whether these bytes are the last of the object.
        fin: bool,
    },
    /// The number of streams that the peer may open.
    MaxStreams,
    /// The connection's flow-control limit.
    MaxData,
    /// A stream's flow-control limit.
    MaxStreamData(StreamId),
    /// RESET_STREAM: this side gave up a stream.
    ResetStream(StreamId),
    /// STOP_SENDING: this side wants no more of a stream.
    StopSending(StreamId),
    /// An unreliable datagram, with the owner's mark.
    Datagram(u64),
    /// PATH_DROPPED: this side gave up a path. The session deals with it, not the data layer.
    PathDropped(PathId),
}

/// A violation of the protocol by the peer. The connection closes with its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct ProtocolError {
    /// The code of the error, one of the constants of this type.
    pub code: u64,
    /// The error in words, for people.
    pub reason: &'static str,
}

impl ProtocolError {
    /// More data than the limits allowed (the number is RFC 9000's, section 20.1, as are the next
    /// three).
    pub const FLOW_CONTROL: u64 = 0x03;
    /// The code for more streams or objects at once than allowed.
    pub const STREAM_LIMIT: u64 = 0x04;
    /// The code for a frame of a stream that its receiver would have to open, and did not open.
    pub const STREAM_STATE: u64 = 0x05;
    /// The code for a stream's or object's end that moves, and for data beyond the end.
    pub const FINAL_SIZE: u64 = 0x06;
    /// The error code for data in too many pieces: the list of received ranges would take more
    /// memory than the data.
    pub const SCATTERED: u64 = 0x40;

    pub(crate) const fn new(code: u64, reason: &'static str) -> Self {
        Self { code, reason }
    }
}
