//! Tests of the program as a person uses it: processes on this host, without root. They also check
//! which crate may import which. Tests that need root, namespaces or other programs are in
//! `tests/machine`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where it fails")]

mod circles;
#[path = "../common/mod.rs"]
mod common;
mod config;
mod deleted;
mod dry_run;
mod filters;
mod first_use;
mod forward;
mod forward_stdio;
mod help;
mod kernel;
mod lab;
mod lane;
mod lending;
mod limit;
mod live;
mod live_hostile;
mod local_addresses;
mod manual;
mod memory;
mod metrics;
mod modes;
mod names;
mod output;
mod packages;
mod pages;
mod pair;
mod peers;
mod program;
mod progress;
mod reasons;
mod registry;
mod relay_words;
mod relaying;
mod resume;
mod services;
mod shortage;
mod signals;
mod status;
mod stuck;
mod sweep;
mod terminal;
mod tickets;
mod transfer;
mod unreached;
mod view;
mod walls;
