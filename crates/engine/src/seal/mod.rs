//! Sealing: makes packets unreadable and unforgeable for everyone but the peer.
//!
//! [`Sealer`] and [`Opener`] hold the keys of one direction each, and change to new keys by
//! themselves. Each key serves one epoch. A [`ReplayWindow`] per path refuses packets that were
//! opened before. [`connection_id`] gives each path its own id, so that two relays cannot tell that
//! they serve the same connection.
//!
//! The nonce of a packet is its path id (32 bits) and its packet number (64 bits), both big endian.
//! The nonce does not contain the epoch. A connection never uses a path id twice, and a path never
//! uses a number twice. So no nonce repeats under any key.

mod aead;
mod ids;
mod opener;
mod replay;
mod schedule;
mod sealer;
mod suite;
#[cfg(test)]
mod tests;

pub use aead::{Aead, Key, Null, Ring, TagMismatch};
pub use ids::connection_id;
pub use opener::{OpenError, Opener};
pub use replay::{REPLAY_WINDOW, ReplayWindow};
pub use schedule::{EpochLimits, Secret};
pub use sealer::{SealError, Sealer};
pub use suite::{Suite, Suites};
