//! Sockets and the driver, on this host's loopback.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says so when it cannot go on")]

#[path = "../common/mod.rs"]
mod common;
mod loopback;
mod opened;
mod tcp;
mod watched;
