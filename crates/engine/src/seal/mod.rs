//! Sealing: makes packets unreadable and unforgeable for all but the peer.
//!
//! | name | what it does |
//! |---|---|
//! | [`Sealer`], [`Opener`] | hold the keys of one direction each, and change keys by themselves |
//! | [`ReplayWindow`] | refuses packets of one path that were opened before |
//! | [`connection_id`] | each path's own id: relays cannot tell that they serve one connection |
//!
//! The nonce is path id (32 bits) and packet number (64 bits), big endian. No nonce repeats: a
//! connection uses no path id twice, a path no number twice.

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
