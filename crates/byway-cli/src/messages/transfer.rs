//! Messages of every transfer: its progress, its result, and the changes of its paths.

use crate::units::{Bytes, Rate, Span};
use byway_transfer::{NameStep, NotCopied, PauseReason};
use std::fmt::Display;

pub const NO_LIMIT_TO_LIFT: &str = "there is no bandwidth limit to lift: start with --bwlimit RATE";

/// Returns why a transfer is not faster, in words.
pub const fn pause(reason: PauseReason) -> &'static str {
    match reason {
        PauseReason::Yielding => "yielding to others",
        PauseReason::SharedBottleneck => "shares another path's bottleneck",
        PauseReason::ApplicationLimited => "waiting for data to send",
        PauseReason::ReceiverLimited => "waiting for the receiver",
        PauseReason::RelayQuota => "relay quota used up",
        PauseReason::BandwidthLimit => "capped by --bwlimit",
        PauseReason::ReceiverBandwidthLimit => "capped by the receiver's --bwlimit",
        PauseReason::NoAnswer => "the receiver does not answer",
        PauseReason::CannotSense => "cannot measure delays",
    }
}

/// Returns why one path is not faster, in words. A silent path says only `no answer`, as the
/// receiver may answer on another path.
pub const fn pause_of_path(reason: PauseReason) -> &'static str {
    match reason {
        PauseReason::NoAnswer => "no answer",
        other => pause(other),
    }
}

/// The reason why the receiver is away when it lost the session. The error's own text gives advice
/// that does not apply here.
pub const SESSION_FORGOTTEN: &str = "it no longer knows the session";
pub const RECEIVER_STOPPED: &str = "it was stopped";
pub const RECEIVER_SILENT: &str = "nothing was heard from it";
pub const NOTHING_ARRIVES: &str = "nothing of what was sent arrived there, although it answers";

/// The reason why a silent receiver is away when a relay reports that its quota is used up.
pub fn silent_and_used_up(relay: impl Display) -> String {
    format!("{RECEIVER_SILENT}, and a relay says: {relay}")
}

pub fn listening(addresses: &[String]) -> String {
    format!("listening on {}", addresses.join(", "))
}

pub fn warning(message: impl Display) -> String {
    format!("warning: {message}")
}

pub fn path_changed(number: u32, name: impl Display, state: &str, reason: Option<String>) -> String {
    format!("path {number} ({name}) is {state}{}", because(reason))
}

pub fn relay_changed(name: impl Display, standing: &str, reason: Option<String>) -> String {
    format!("{name} is {standing}{}", because(reason))
}

/// A step in looking up a name of a ticket.
pub fn looked_up(step: &NameStep) -> String {
    match step {
        NameStep::Asked(name) => format!("looking up {name}"),
        NameStep::Found(name, found) => {
            let addresses: Vec<String> = found.iter().map(ToString::to_string).collect();
            format!("{name} leads to {}", addresses.join(", "))
        }
        NameStep::NotFound(name, why) => format!("{name}: {why}"),
    }
}

fn because(reason: Option<String>) -> String {
    reason.map(|reason| format!(": {reason}")).unwrap_or_default()
}

pub fn limit_changed(bytes_per_second: Option<u64>) -> String {
    format!("the bandwidth limit is {} from now on", limit(bytes_per_second))
}

/// The limits of a forward, in bytes per second.
pub fn limits_changed(up: Option<u64>, down: Option<u64>) -> String {
    let (up, down) = (limit(up), limit(down));
    format!("the bandwidth limit is {up} to the receiver and {down} from it from now on")
}

fn limit(bytes_per_second: Option<u64>) -> String {
    bytes_per_second.map_or_else(|| "off".into(), |rate| Rate::of(rate, 1.0).to_string())
}

/// One line for an address that was tried, with the reply to it.
pub fn tried(address: impl Display) -> String {
    format!("  {address}")
}

/// The totals of a transfer that ended.
pub struct Totals<'a> {
    pub bytes: u64,
    pub entries: u64,
    pub seconds: f64,
    pub goodput_bps: f64,
    pub verified: bool,
    pub failed_entries: u64,
    pub kept_bytes: u64,
    pub unchanged_files: u64,
    pub newer_files: u64,
    pub excluded_entries: u64,
    /// The number of entries that the receiver moved to its trash, and the trash's path.
    pub deleted: (u64, Option<&'a str>),
    pub undeleted_entries: u64,
}

/// The line for a complete transfer: `1.00 MiB in 2 entries, 4.00 s, 2.10 Mbit/s, verified; 1 entry
/// is missing; 512 KiB of it had arrived before`
pub fn complete(totals: &Totals<'_>) -> String {
    let verified = if totals.verified { "verified" } else { "NOT verified" };
    let (bytes, span, rate) = (Bytes(totals.bytes), Span(totals.seconds), Rate(totals.goodput_bps));
    let mut text = format!("{bytes} in {}, {span}, {rate}, {verified}", entries(totals.entries));
    if totals.failed_entries > 0 {
        let verb = if totals.failed_entries == 1 { "is" } else { "are" };
        text += &format!("; {} {verb} missing", entries(totals.failed_entries));
    }
    if totals.kept_bytes > 0 {
        text += &format!("; {} of it had arrived before", Bytes(totals.kept_bytes));
    }
    match totals.unchanged_files {
        0 => {}
        1 => text += "; the receiver has 1 file with the same size and time",
        count => text += &format!("; the receiver has {count} files with the same size and time"),
    }
    match totals.newer_files {
        0 => {}
        1 => text += "; the receiver keeps 1 newer file",
        count => text += &format!("; the receiver keeps {count} newer files"),
    }
    if let (count, Some(trash)) = totals.deleted {
        let verb = if count == 1 { "was" } else { "were" };
        text += &format!("; {} {verb} moved to {trash} at the receiver", entries(count));
    }
    if totals.undeleted_entries > 0 {
        text += &format!("; {} to be deleted stayed there", entries(totals.undeleted_entries));
    }
    text + &super::send::excluded(totals.excluded_entries)
}

/// The line for metadata that was not copied: `not copied: 3 owners or groups, 2 hard links
/// (--hard-links keeps them)`
pub fn not_copied(counts: &NotCopied) -> String {
    let parts = [
        (counts.owners, "owners or groups"),
        (counts.hard_links, "hard links (--hard-links keeps them)"),
        (counts.special_modes, "setuid or setgid bits (--keep-modes at both ends keeps them)"),
        (counts.acls, "access control lists"),
        (counts.xattrs, "files with extended attributes"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    format!("not copied: {}", parts.collect::<Vec<_>>().join(", "))
}

/// The line for a transfer that broke off: `30.3 MiB of 286 MiB arrived, 15.0 s, 16.8 Mbit/s; it is
/// kept, 3 entries are complete`
pub fn broken_off(arrived: u64, total: Option<u64>, totals: &Totals<'_>) -> String {
    let total = total.map(|total| format!(" of {}", Bytes(total))).unwrap_or_default();
    let verb = if totals.entries == 1 { "is" } else { "are" };
    let (span, rate, entries) = (Span(totals.seconds), Rate(totals.goodput_bps), entries(totals.entries));
    format!("{}{total} arrived, {span}, {rate}; it is kept, {entries} {verb} complete", Bytes(arrived))
}

fn entries(count: u64) -> String {
    if count == 1 { "1 entry".into() } else { format!("{count} entries") }
}

/// The line for one path of a transfer that ended. `lost` is known only at the sender.
pub fn path_carried(route: &str, bytes: u64, lost: Option<u64>) -> String {
    let lost = lost.map(|lost| format!(", {lost} packets lost")).unwrap_or_default();
    format!("  {route}: {}{lost}", Bytes(bytes))
}
