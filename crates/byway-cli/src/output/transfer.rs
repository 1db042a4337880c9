//! What the events of transfers hold. They say whose they are, how far, over which paths, and what
//! came of them.

use super::line_wrap::printable;
use crate::messages::lending;
use byway_transfer::PauseReason;
use serde::{Serialize, Serializer};
use std::fmt;

/// The transfer of a receiver that an event is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// The number of the transfer, counted from 1 since the receiver began.
    pub transfer: u32,
    /// The public key of its sender.
    pub from: String,
    /// What comes: the file or directory that the sender named; of several the first, and an
    /// ellipsis. Unknown for a stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl fmt::Display for Origin {
    /// `photos from byway-key-2x4k…`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref().unwrap_or("a stream");
        // Keys are ASCII.
        let key = self.from.get(..SHORT_KEY_LEN).unwrap_or(&self.from);
        write!(f, "{} from {key}…", printable(name))
    }
}

/// Letters of a key that a person is shown: enough to tell the senders of a receiver apart.
const SHORT_KEY_LEN: usize = "byway-key-".len() + 8;

/// How far a transfer is.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Progress {
    /// Whose it is, for a receiver.
    #[serde(flatten)]
    pub origin: Option<Origin>,
    /// Seconds since it began.
    pub seconds: f64,
    /// Payload bytes that the receiver has.
    pub bytes: u64,
    /// Payload bytes in all; unknown for a stream, and before they are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Payload rate over the last seconds, of what travelled: what an earlier try had brought does
    /// not count.
    pub rate_bps: f64,
    /// Why it is not faster, if something other than the paths holds it.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "by_code")]
    pub pause: Option<PauseReason>,
    /// What this host relays for others beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lends: Option<LendingReport>,
    /// Every path that is not closed.
    pub paths: Vec<PathProgress>,
    /// Paths on which the other side sends, where both do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arrivals: Vec<PathProgress>,
}

/// How much an end host relays for others now, and why it is no more.
#[derive(Clone, Debug, Serialize)]
pub struct LendingReport {
    /// What it forwards for others.
    pub relays_bps: u64,
    /// What others may send by it at most: the less of both directions.
    pub lends_bps: u64,
    /// The most that it sent itself in the last second.
    pub own_up_bps: u64,
    /// The most that it received itself.
    pub own_down_bps: u64,
    /// Why nothing is lent, if its own traffic is not the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lends_nothing: Option<String>,
}

impl fmt::Display for LendingReport {
    /// What is relayed now, of what may be: `relays 3.10 Mbit/s of 7.20 Mbit/s for others`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&lending::relays(self.relays_bps, self.lends_bps))
    }
}

/// How one path does.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PathProgress {
    /// The number of the path in the connection.
    pub path: u32,
    /// What to call it: `direct`, or which relay.
    pub name: String,
    /// `udp` or `tcp`: what carries its packets.
    pub carrier: &'static str,
    /// `probing`, `active`, `choked`, …
    pub state: String,
    /// Bytes sent over it; for a receiver, received.
    pub bytes: u64,
    /// Rate over the last seconds.
    pub rate_bps: f64,
    /// The path's round-trip time in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<f64>,
    /// How many packets were lost.
    pub lost: u64,
    /// Why it carries less than it could.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "by_code")]
    pub pause: Option<PauseReason>,
}

/// Writes a reason by its code.
#[expect(clippy::ref_option, reason = "serde hands over a reference to the field")]
fn by_code<S: Serializer>(reason: &Option<PauseReason>, serializer: S) -> Result<S::Ok, S::Error> {
    reason.map(PauseReason::code).serialize(serializer)
}

/// A path changed its state.
#[derive(Clone, Debug, Serialize)]
pub struct PathChange {
    /// The number of the path in the connection.
    pub path: u32,
    /// What to call it.
    pub name: String,
    /// The state of the path from now on.
    pub state: String,
    /// Why, for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A relay has come further.
#[derive(Clone, Debug, Serialize)]
pub struct RelayChange {
    /// What to call it.
    pub name: String,
    /// `available`, `reserve`, `used`, `unusable` or `dropped`.
    pub standing: &'static str,
    /// Why, for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What came of a transfer.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Transferred {
    /// Payload bytes in place, each file's hash found right.
    pub bytes: u64,
    /// How many of them an earlier try had brought, so that they did not travel.
    #[serde(rename = "kept_bytes")]
    pub kept: u64,
    /// Files, directories and links in place.
    pub entries: u64,
    /// From the first byte to the receiver's confirmation.
    pub seconds: f64,
    /// Payload bits per second of that time, of what travelled.
    pub goodput_bps: f64,
    /// Whether the hashes of all files agree at both ends.
    pub verified: bool,
    /// Every path that was used.
    pub paths: Vec<PathTotal>,
    /// What became of each relay that was tried, at a sender.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relays: Vec<RelayTotal>,
    /// Whether relays helped, and if not why, for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relays_verdict: Option<String>,
    /// Entries that are not in place although the transfer came to its end.
    #[serde(rename = "failed_entries", skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// Payload bytes of a transfer that broke off which the receiver has and keeps, so that they
    /// need not travel again.
    #[serde(rename = "arrived_bytes", skip_serializing_if = "Option::is_none")]
    pub arrived: Option<u64>,
    /// Payload bytes in all, if a transfer that broke off told them.
    #[serde(rename = "total_bytes", skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Whose it was, for a receiver.
    #[serde(flatten)]
    pub origin: Option<Origin>,
    /// What was relayed for others meanwhile, if anything was to be.
    #[serde(rename = "lent_bytes", skip_serializing_if = "Option::is_none")]
    pub lent: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields so")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What became of a relay in a transfer.
#[derive(Clone, Debug, Serialize)]
pub struct RelayTotal {
    /// What to call it.
    pub name: String,
    /// `trying`, `available`, `reserve`, `used`, `unusable` or `dropped`.
    pub standing: &'static str,
    /// Why it is a reserve, unusable or dropped, for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Round-trip time of its latest probe, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<f64>,
    /// Bytes sent through it.
    pub bytes: u64,
}

/// What one path did for a transfer.
#[derive(Clone, Debug, Serialize)]
pub struct PathTotal {
    /// `direct`, or which relay, and the local address where there are several.
    pub route: String,
    /// `udp` or `tcp`: what carries its packets.
    pub carrier: &'static str,
    /// Bytes sent over it; for a receiver, received.
    pub bytes: u64,
    /// Packets lost on it.
    pub lost: u64,
}
