//! The application's data: streams, objects, datagrams and their flow control.
//!
//! [`Outgoing`] is what this side sends, [`Incoming`] what this side receives. When a path can
//! send, the connection calls [`Outgoing::fill`] to write frames into a packet. A [`Carried`] says
//! what a frame holds. The connection hands the [`Carried`] back when the packet is acknowledged or
//! lost.
//!
//! **Flow control** counts each byte of a stream or object once, even if it is sent twice. Each
//! object counts as [`OBJECT_COST`] more bytes, because even an empty object takes memory at the
//! receiver. The peer may send new bytes when the application has read or written the old ones. The
//! cost of an object is free again when the application has taken [`InEvent::ObjectComplete`].

pub mod buffer_pool;
mod data_frames;
pub mod incoming;
pub mod numbered_map;
mod outgoing;
pub mod ranges;

pub use buffer_pool::BufferPool;
pub use data_frames::{Carried, DataId, OBJECT_COST, ProtocolError};
pub use incoming::{Arrival, InEvent, Incoming, IncomingLimits, StreamRead, WriteRequest};
pub use numbered_map::Numbered;
pub use outgoing::{Blocked, DataCounters, OutEvent, Outgoing, OutgoingLimits, ReadRequest};
pub use ranges::RangeSet;

#[cfg(test)]
mod tests;
