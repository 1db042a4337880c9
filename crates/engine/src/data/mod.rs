//! The application's data: streams, objects, datagrams and their flow control.
//!
//! **Flow control** counts each byte of a stream or object once, even if sent twice. The peer may
//! send new bytes when the application has taken old ones.
//!
//! | item | what it is |
//! |---|---|
//! | [`Outgoing`] | what this side sends, as frames in packets ([`Outgoing::fill`]) |
//! | [`Incoming`] | what this side receives |
//! | [`Carried`] | what a frame holds, handed back when the packet is acknowledged or lost |
//! | [`OBJECT_COST`] | bytes of flow control per object, until [`InEvent::ObjectComplete`] comes |

pub mod buffer_pool;
mod data_frames;
pub mod incoming;
mod outgoing;
pub mod ranges;

pub use crate::numbered_map::NumberedMap;
pub use buffer_pool::BufferPool;
pub use data_frames::{Carried, DataId, OBJECT_COST, ProtocolError};
pub use incoming::{Arrival, InEvent, Incoming, IncomingLimits, StreamRead, WriteRequest};
pub use outgoing::{Blocked, DataCounters, OutEvent, Outgoing, OutgoingLimits, ReadRequest};
pub use ranges::RangeSet;

#[cfg(test)]
mod tests;
