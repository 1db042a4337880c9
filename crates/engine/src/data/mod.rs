//! The application's data: streams, objects, datagrams and their flow control.
//!
//! [`Outgoing`] is what this side sends, [`Incoming`] what this side receives. Neither knows paths,
//! packet numbers or timers. When a path can send, the connection calls [`Outgoing::fill`] to write
//! frames into a packet. For each frame it keeps a [`Carried`], and hands the [`Carried`] back when
//! the packet is acknowledged or lost.
//!
//! **Flow control** counts each byte of a stream or object once, even if it is sent twice. It also
//! counts [`OBJECT_COST`] bytes for each object, because even an empty object takes memory at the
//! receiver. The receiver grants new bytes once the application has read or written the old ones.
//! It grants the cost of an object again once the application has taken
//! [`InEvent::ObjectComplete`].

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
