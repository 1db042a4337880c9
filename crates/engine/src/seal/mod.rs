//! Sealing: what makes a packet unreadable and unforgeable to everyone but the peer.
//!
//! [`Sealer`] and [`Opener`] hold the keys of one direction each and roll them by themselves. A
//! [`ReplayWindow`] per path refuses what was opened before. [`connection_id`] names paths so that
//! two relays cannot tell that they serve the same connection.
//!
//! The nonce of a packet is its path id (32 bits) and its packet number (64 bits), both big endian.
//! It does not matter which epoch a packet belongs to: a path id is never used twice in a
//! connection and a number never twice on a path, so no nonce ever repeats under any key.

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
