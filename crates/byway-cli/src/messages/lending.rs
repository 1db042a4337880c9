//! Messages of `send` and `recv` about `--also-relay`.

use crate::units::Rate;
use std::fmt::Display;

pub const NO_WORD_FOR_JOINING: &str =
    "--also-relay needs the registry's word for joining: give it with --registry";

/// The warning that this host cannot relay for others. The transfer goes on.
pub fn cannot_relay(error: impl Display) -> String {
    format!("this host does not relay for others: {error}")
}

/// The message that a registry has tested this host and offers it to senders.
pub fn listed(addresses: &[String]) -> String {
    format!("the registry lists this host at {}", addresses.join(" "))
}

pub fn relayed(counters: impl Display) -> String {
    format!("relayed for others: {counters}")
}

/// The rate that is relayed, and the rate that others may use: `relays 3.10 Mbit/s of 7.20 Mbit/s
/// for others`.
pub fn relays(used_bps: u64, lent_bps: u64) -> String {
    let [used, lent] = [used_bps, lent_bps].map(|bps| Rate(bps as f64));
    format!("relays {used} of {lent} for others")
}
