//! Messages of `byway status` and `byway limit`, and about the status socket.

use crate::units::{Bytes, Rate, Span};
use std::fmt::Display;

pub const NOTHING_RUNS: &str = "no byway runs here";
pub const NOTHING_MOVES: &str = "  no transfer now";
pub const GATEWAY_TELLS_MORE: &str = "  `byway gateway status` tells what it carries";
pub const REGISTRY_TELLS_MORE: &str = "  `byway registry list` tells its relays and words";
pub const NO_ANSWER: &str = "  it does not answer: it is stopped, or very busy";
pub const OWN_LIMIT: &str = "the limit that it was started with";
pub const NOTHING_LIMITED: &str =
    "nothing that answers here has such a limit: `byway status` shows what runs";

pub fn not_published(error: impl Display) -> String {
    format!("`byway status` does not show this process: {error}")
}

pub fn untold(error: impl Display) -> String {
    format!("what runs here cannot be asked: {error}")
}

pub fn history_not_written(error: impl Display) -> String {
    format!("`byway status` will not remember this transfer: {error}")
}

/// `send nas, for 12m 03s, process 4711`
pub fn process(verb: &str, peer: Option<&str>, seconds: f64, pid: u32) -> String {
    let peer = peer.map(|peer| format!(" {peer}")).unwrap_or_default();
    format!("{verb}{peer}, for {}, process {pid}", Span(seconds))
}

/// `  the peer does not answer: …`
pub fn away(reason: &str) -> String {
    format!("  the peer does not answer: {reason}")
}

/// `  3 connections; 1.20 GiB sent, 3.00 MiB received`
pub fn forwarded(open: u64, sent: u64, received: u64) -> String {
    format!("  connections: {open}; {} sent, {} received", Bytes(sent), Bytes(received))
}

/// `  relayed 1.20 GiB, 3.00 MiB today; senders: 4`
pub fn relayed(bytes: u64, today: u64, grants: u64) -> String {
    format!("  relayed {}, {} today; senders: {grants}", Bytes(bytes), Bytes(today))
}

/// One line about the cost of a transfer to others: `  yielded to others for 41.0 s; delay that it
/// added: 3.1 ms`
pub fn cost(yielded_seconds: f64, added_delay_ms: f64) -> String {
    format!("  yielded to others for {}; delay that it added: {added_delay_ms:.1} ms", Span(yielded_seconds))
}

/// `last 30 days: 812 GiB; transfers: 41, failed: 3`
pub fn history(count: usize, bytes: u64, failed: usize) -> String {
    format!("last 30 days: {}; transfers: {count}, failed: {failed}", Bytes(bytes))
}

/// `  2h 10m ago  send nas  3.10 GiB in 4m 10s, 104 Mbit/s`
pub fn ended(ago: f64, verb: &str, peer: &str, outcome: &str) -> String {
    format!("  {:>8} ago  {verb} {peer}  {outcome}", Span(ago).to_string())
}

pub fn moved(bytes: u64, seconds: f64, rate_bps: f64) -> String {
    format!("{} in {}, {}", Bytes(bytes), Span(seconds), Rate(rate_bps))
}

/// `send nas, process 4711: 4.19 Mbit/s from now on`
pub fn limited(verb: &str, peer: Option<&str>, pid: u64, limit: &str) -> String {
    let peer = peer.map(|peer| format!(" {peer}")).unwrap_or_default();
    format!("{verb}{peer}, process {pid}: {limit} from now on")
}
