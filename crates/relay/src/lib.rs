//! The relay: forwards packets that it cannot read. Their senders hold a relay word (a secret that
//! permits the use of this relay), and their receivers consented.
//!
//! [`Relay`] is a [`Machine`](byway_wire::Machine) without state per connection. Its memory is
//! bounded by [`Config::accounts`], [`Config::receivers`] and [`Config::queue_bytes`]. No UDP
//! datagram makes it allocate, but the first greeting of a receiver that is to be remembered.
//!
//! ```text
//! handle ── read ── whose word? ── allowed? ── consented? ── charge ── rewrite in place ──> queue ──> transmit (runs)
//!              └───────┴─────────────┴───────────┴────────────┴── counted, and a notice so that the person learns why
//! ```
#![no_std]

extern crate alloc;

mod config;
mod destination_policy;
mod grant_accounts;
mod greeting_answers;
mod heartbeats;
mod lending_control;
mod log;
mod mailboxes;
mod named_words;
mod operator_report;
mod outgoing_carrier;
mod per_second_limit;
mod quota_usage;
mod receiver_locations;
mod relay;
mod relay_keys;
mod request_rights;
mod send_queue;
mod tcp_hops;
mod udp_sockets;
mod verified_packets;

pub use config::Config;
pub use destination_policy::Policy;
pub use heartbeats::RegistryStatus;
pub use lending_control::{
    COUNTER_READ_DEADLINE, COUNTER_READ_INTERVAL, LendingConfig, LendingControl, LendingState, LendingTrouble,
};
pub use named_words::NamedWord;
pub use operator_report::{Dropped, LogEvent, RelayCounters};
pub use quota_usage::{Load, Reserve, Used, UsedIn};
pub use relay::Relay;
