//! Two endpoints on loopback, with real sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says so when it cannot go on")]

mod common;
mod ends;
mod examples;
mod figures;
mod hostile;
mod killed;
mod objects;
mod paths;
mod streams;
#[cfg(feature = "tokio")]
mod tasks;
mod tcp;
