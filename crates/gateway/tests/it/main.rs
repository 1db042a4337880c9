//! Gateways in the simulator, between hosts whose TCP is not ours.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says so when it cannot go on")]

mod bad;
mod bundles;
mod common;
mod detours;
mod guests;
mod losses;
mod site;
mod tables;
