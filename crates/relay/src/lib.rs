//! The relay: forwards what it cannot read, for senders that hold a word, to receivers that
//! consented.
//!
//! [`Relay`] is a [`Machine`](byway_wire::Machine). It keeps no state per flow. What it needs to
//! judge a packet stands in the packet ([`byway_wire::relay`]) or follows from its key. What it
//! keeps is bounded: one account per grant in use ([`Config::accounts`]), and the datagrams on
//! their way out ([`Config::queue_bytes`]). All memory is taken at construction. No packet makes it
//! allocate.
//!
//! ```text
//! handle ── read ── whose word? ── allowed? ── consented? ── charge ── rewrite in place ──> queue ──> transmit (runs)
//!              └───────┴─────────────┴───────────┴────────────┴── counted, and a notice so that the person learns why
//! ```
#![no_std]

extern crate alloc;

mod accounts;
mod carriers;
mod config;
mod heartbeats;
mod hops;
mod keys;
mod lending;
mod limit;
mod links;
mod log;
mod policy;
mod queue;
mod relay;
mod report;
mod usage;
mod verified_packets;

pub use config::Config;
pub use heartbeats::RegistryStatus;
pub use lending::{
    InterfaceCounters, LATE, LOOK, LendingConfig, LendingControl, LendingState, LendingTrouble,
};
pub use policy::Policy;
pub use relay::Relay;
pub use report::{Dropped, LogEvent, RelayCounters};
pub use usage::{Load, Used};
