//! The program as a person meets it: processes of it on this host, and the walls between its
//! crates. What needs root, namespaces or programs of the system is in `tests/machine`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where it fails")]

mod circles;
#[path = "../common/mod.rs"]
mod common;
mod config;
mod forward;
mod kernel;
mod lab;
mod lending;
mod limit;
mod live;
mod memory;
mod modes;
mod output;
mod pages;
mod program;
mod progress;
mod reasons;
mod registry;
mod relaying;
mod resume;
mod signals;
mod stuck;
mod terminal;
mod tickets;
mod transfer;
mod unreached;
mod walls;
