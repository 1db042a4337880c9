//! The application's data: streams, objects, datagrams and their flow control.
//!
//! [`Outgoing`] is what this side sends, [`Incoming`] what it receives. Neither knows paths, packet
//! numbers or timers. Whenever a path has room, the connection asks [`Outgoing::fill`] for frames.
//! It keeps the [`Carried`] of these frames in the packet's ledger entry. When the packet is
//! acknowledged or lost, the connection hands the [`Carried`] back.
//!
//! **Flow control** counts every distinct byte of all streams and objects once, however often it
//! travels. It also counts [`OBJECT_COST`] once for every object. Even an empty object takes memory
//! at the receiver, and ten thousand small objects must slow their sender as much as one large
//! object. Both ends count alike. The receiver gives bytes back when the owner has read or written
//! them. It gives an object's cost back when the owner has taken the object's
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
