//! A registry with relays and clients in simulated worlds.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says so when it cannot go on")]

mod bad;
mod common;
mod complaints;
mod enrol;
mod epochs;
mod fleet;
mod nat;
