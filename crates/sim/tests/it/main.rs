//! The simulator against what can be worked out by hand, and against its own laws.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says so when it cannot go on")]

mod ahead;
mod common;
mod faults;
mod laws;
mod oracles;
mod pipe;
mod shaper;
mod tcp_bbr;
mod tcp_bbr3;
mod tcp_common;
mod tcp_faults;
mod tcp_oracles;
mod tcp_proteus;
mod tcp_recovery;
mod tcp_relay;
mod tcp_web;
mod topology;
mod topology_random;
mod world;
