//! The application's data: streams, objects, datagrams and their flow control.
//!
//! [`Outgoing`] is what this side sends, [`Incoming`] what it receives. Neither knows paths, packet
//! numbers or timers: the connection asks [`Outgoing::fill`] for frames whenever a path has room,
//! remembers the [`Carried`] it got for them in the packet's ledger entry, and hands them back when
//! the packet is acknowledged or lost.
//!
//! **Flow control** counts every distinct byte of all streams and objects once, however often it
//! travels, and [`OBJECT_COST`] for every object once: an object takes memory at the receiver even
//! when it is empty, and ten thousand small ones are to slow their sender as much as one large one.
//! Both ends count alike; the receiver gives the bytes back when the owner has read or written
//! them, an object's cost when the owner has taken its [`InEvent::ObjectComplete`].

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
