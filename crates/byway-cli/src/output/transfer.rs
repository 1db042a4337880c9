//! The fields of a transfer's events: its sender, its progress, its paths, and its result.

use crate::messages::lending;
use byway_terminal::line_wrap::printable;
use byway_transfer::{NotCopied, PauseReason};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// The transfer of a receiver that an event is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The number of the transfer, counted from 1 since the receiver began.
    pub transfer: u32,
    /// The public key of the sender.
    pub from: String,
    /// The name of the file or directory that the sender sends. Of several, the first and an
    /// ellipsis. `None` for a stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl fmt::Display for Origin {
    /// `photos from byway-key-2x4k…`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref().unwrap_or("a stream");
        write!(f, "{} from {}", printable(name), short_key(&self.from))
    }
}

/// The beginning of a key, which distinguishes a receiver's senders.
#[must_use]
pub fn short_key(key: &str) -> String {
    // Keys are ASCII.
    format!("{}…", key.get(..SHORT_KEY_LEN).unwrap_or(key))
}

/// Letters of a key that are shown, enough to distinguish a receiver's senders.
const SHORT_KEY_LEN: usize = "byway-key-".len() + 8;

/// The progress of a transfer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Progress {
    /// The sender and number of the transfer at a receiver. `None` at a sender.
    #[serde(flatten)]
    pub origin: Option<Origin>,
    /// Seconds since the transfer began.
    pub seconds: f64,
    /// Payload bytes that the receiver has.
    pub bytes: u64,
    /// Payload bytes of the whole transfer. `None`: it is a stream, or the files are still counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Payload rate over the last seconds, in bits per second. Bytes kept from an earlier attempt
    /// do not count.
    pub rate_bps: f64,
    /// Why the transfer is not faster. `None`: only the paths limit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "by_code", deserialize_with = "of_code")]
    pub pause: Option<PauseReason>,
    /// Seconds in which the transfer yielded to others so far. `None`: this host sends nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yielded_seconds: Option<f64>,
    /// The mean queueing delay of the transfer's packets while it did not yield, in milliseconds:
    /// its cost to others. `None`: not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_delay_ms: Option<f64>,
    /// The rate that this host relays for others during the transfer. `None`: it does not relay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lends: Option<LendingReport>,
    /// Every path that is not closed.
    pub paths: Vec<PathProgress>,
    /// Paths on which the other host sends, if both hosts send.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrivals: Vec<PathProgress>,
}

/// The rate that an end host relays for others now, and what limits it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LendingReport {
    /// Bits per second that the host relays for others.
    pub relays_bps: u64,
    /// Bits per second that others may send through this host, in the slower direction.
    pub lends_bps: u64,
    /// The highest rate at which the host itself sent in the last second.
    pub own_up_bps: u64,
    /// The highest rate at which the host itself received in the last second.
    pub own_down_bps: u64,
    /// The reason why the host lends nothing. `None`: it lends, or its own traffic takes the whole
    /// line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lends_nothing: Option<String>,
}

impl fmt::Display for LendingReport {
    /// Writes the relayed rate and its limit: `relays 3.10 Mbit/s of 7.20 Mbit/s for others`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&lending::relays(self.relays_bps, self.lends_bps))
    }
}

/// The progress of one path.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PathProgress {
    /// The number of the path in the connection.
    pub path: u32,
    /// The path's name: `direct`, or the relay.
    pub name: String,
    /// The transport of the path's packets: `udp` or `tcp`.
    pub carrier: Cow<'static, str>,
    /// This host's address on the path. `None`: the system chooses the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<IpAddr>,
    /// The address of the path's other end: the peer, or the relay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<SocketAddr>,
    /// `probing`, `active`, `choked`, …
    pub state: String,
    /// Bytes sent on the path. At a receiver: bytes received.
    pub bytes: u64,
    /// Rate over the last seconds.
    pub rate_bps: f64,
    /// The path's round-trip time in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<f64>,
    /// The smallest round-trip time of the latest 15 to 30 s, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_rtt_ms: Option<f64>,
    /// Time that the newest acknowledged packet waited in queues, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_ms: Option<f64>,
    /// Number of packets sent. `None`: the other host sends on the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// Number of packets lost. `None`: the other host sends on the path, and only it knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Why the path carries less than possible. `None`: no reason is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "by_code", deserialize_with = "of_code")]
    pub pause: Option<PauseReason>,
}

/// Serializes a reason as its code.
#[expect(clippy::ref_option, reason = "serde hands over a reference to the field")]
fn by_code<S: Serializer>(reason: &Option<PauseReason>, serializer: S) -> Result<S::Ok, S::Error> {
    reason.map(PauseReason::code).serialize(serializer)
}

/// Reads a reason from its code. A code that only later versions know is read as `None`.
fn of_code<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Option<PauseReason>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.and_then(|code| PauseReason::of_code(&code)))
}

/// A change in the state of a path.
#[derive(Clone, Debug, Serialize)]
pub struct PathChange {
    /// The number of the path in the connection.
    pub path: u32,
    /// The name of the path, for a person.
    pub name: String,
    /// The state of the path from now on.
    pub state: String,
    /// The reason for the change, for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A relay has come further.
#[derive(Clone, Debug, Serialize)]
pub struct RelayChange {
    /// The name of the relay, for a person.
    pub name: String,
    /// `available`, `reserve`, `used`, `unusable` or `dropped`.
    pub standing: &'static str,
    /// The reason for the change, for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The result of a transfer.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Transferred {
    /// Payload bytes in place, each file's hash found right.
    pub bytes: u64,
    /// Bytes that were not sent, because the receiver already had them.
    #[serde(rename = "kept_bytes")]
    pub kept: u64,
    /// Number of files that were not sent, because the receiver reports files of the same size and
    /// time.
    #[serde(rename = "unchanged_files", skip_serializing_if = "is_zero")]
    pub unchanged: u64,
    /// Number of files that were not sent, because the receiver keeps its newer ones.
    #[serde(rename = "newer_files", skip_serializing_if = "is_zero")]
    pub newer: u64,
    /// Number of entries that patterns excluded. A directory counts as one, with all that it holds.
    #[serde(rename = "excluded_entries", skip_serializing_if = "is_zero")]
    pub excluded: u64,
    /// Number of entries that the receiver moved to its trash, because the sender no longer has
    /// them.
    #[serde(rename = "deleted_entries", skip_serializing_if = "is_zero")]
    pub deleted: u64,
    /// Number of entries that the receiver should have moved to its trash, and did not.
    #[serde(rename = "undeleted_entries", skip_serializing_if = "is_zero")]
    pub undeleted: u64,
    /// The path of the trash, from the receiver's directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trash: Option<String>,
    /// Metadata of the tree that is not copied, as far as the sender has read the tree.
    #[serde(skip_serializing_if = "is_all_copied", serialize_with = "counts_not_copied")]
    pub not_copied: NotCopied,
    /// Files, directories and links in place.
    pub entries: u64,
    /// Seconds from the first byte to the receiver's confirmation.
    pub seconds: f64,
    /// Payload bits per second over this time. Bytes that the receiver already had do not count.
    pub goodput_bps: f64,
    /// Whether the hashes of all files agree at both ends.
    pub verified: bool,
    /// Seconds in which the transfer yielded to others. `None`: this host sent nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub yielded_seconds: Option<f64>,
    /// The mean queueing delay of the transfer's packets while it did not yield, in milliseconds.
    /// `None`: not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added_delay_ms: Option<f64>,
    /// Every path that was used.
    pub paths: Vec<PathTotal>,
    /// The final state of each relay that a sender tried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relays: Vec<RelayTotal>,
    /// Whether relays helped, and if not why, for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relays_verdict: Option<String>,
    /// Entries that are not in place although the transfer has ended.
    #[serde(rename = "failed_entries", skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// Payload bytes of a broken-off transfer that the receiver keeps, so that they need not be
    /// sent again.
    #[serde(rename = "arrived_bytes", skip_serializing_if = "Option::is_none")]
    pub arrived: Option<u64>,
    /// Payload bytes of a transfer that broke off. `None`: unknown.
    #[serde(rename = "total_bytes", skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// The sender and number of the transfer at a receiver. `None` at a sender.
    #[serde(flatten)]
    pub origin: Option<Origin>,
    /// Bytes that this host relayed for others during the transfer. `None`: relaying was off.
    #[serde(rename = "lent_bytes", skip_serializing_if = "Option::is_none")]
    pub lent: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields so")]
pub(super) const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The final state of a relay in a transfer.
#[derive(Clone, Debug, Serialize)]
pub struct RelayTotal {
    /// The name of the relay, for a person.
    pub name: String,
    /// `trying`, `available`, `reserve`, `used`, `unusable` or `dropped`.
    pub standing: &'static str,
    /// The reason, for a person, why the relay is spare, unusable or dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Round-trip time of the latest answered probe in milliseconds. `None`: no probe was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<f64>,
    /// Bytes sent through the relay.
    pub bytes: u64,
}

/// The totals of one path in a transfer.
#[derive(Clone, Debug, Serialize)]
pub struct PathTotal {
    /// The path's name: `direct` or the relay, with the local address if there are several.
    pub route: String,
    /// The transport of the path's packets: `udp` or `tcp`.
    pub carrier: &'static str,
    /// Bytes sent on the path. At a receiver: bytes received.
    pub bytes: u64,
    /// Packets lost on the path. `None` at a receiver: the sender alone knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
}

fn is_all_copied(counts: &NotCopied) -> bool {
    counts.sum() == 0
}

fn counts_not_copied<S: Serializer>(counts: &NotCopied, serializer: S) -> Result<S::Ok, S::Error> {
    let NotCopied { owners, hard_links, special_modes, acls, xattrs } = *counts;
    serializer.collect_map([
        ("owners", owners),
        ("hard_links", hard_links),
        ("special_modes", special_modes),
        ("acls", acls),
        ("xattrs", xattrs),
    ])
}
