//! The session in the simulator: two endpoints and what lies between them, by seed.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says so when it cannot go on")]

mod background;
mod bad_relays;
mod cap;
mod carried;
mod carried_yielding;
mod closing;
mod common;
mod crowd;
mod datagrams;
mod early;
mod faults;
mod figures;
mod flaps;
mod flood;
mod found_addresses;
mod greedy;
mod handshake;
mod heap;
mod hostile;
mod idle;
mod interop;
mod laws;
mod lengths;
mod literal;
mod marks;
mod memory;
mod moved;
mod opened;
mod paths;
mod relay_search;
mod relays;
mod sans_io;
mod streams;
mod transfer;
mod ways_back;
