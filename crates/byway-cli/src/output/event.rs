//! The events that `--json` prints. Fields are only added. If the meaning of a field changes,
//! [`EVENT_VERSION`] increases.
//!
//! Rates are in bit/s (`_bps`), sizes in bytes, and times in seconds unless the field's name ends
//! in another unit (`rtt_ms`).

use super::json_fields::{Fields, always};
use super::transfer::{LendingReport, PathChange, Progress, RelayChange, Transferred, is_zero};
use crate::exit::Exit;
use crate::messages::relay;
use byway_transfer::LookedAt;
use byway_transfer::receiver_addresses::DirectAddresses;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

/// The `"v"` of every line.
pub const EVENT_VERSION: u32 = 1;

/// An event of the program, printed as one line of JSON with `--json`.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Ready for peers; the first event of `recv` and `relay`.
    Ready(Ready),
    /// The progress of a transfer, about once a second.
    Progress(Progress),
    /// A warning: the transfer goes on.
    Warning {
        /// The message in one sentence.
        message: String,
    },
    /// The receiver's ticket now admits only one sender: the first that completed a transfer with
    /// it.
    Bound {
        /// The sender's public key.
        sender: String,
    },
    /// A path changed its state.
    Path(PathChange),
    /// A relay has come further.
    Relay(RelayChange),
    /// The bandwidth limit changed: by its timetable, by SIGUSR2, or by `byway limit`.
    Limit {
        /// Bytes per second from now on; `None`: no limit.
        bytes_per_second: Option<u64>,
        /// The limits of a forward, which has one for each direction. `None`: the verb limits only
        /// one direction.
        #[serde(skip_serializing_if = "Option::is_none")]
        directions: Option<BothLimits>,
    },
    /// The counters of a relay since its start.
    Counters(RelayCounters),
    /// The result of a verb or a transfer. It is the last event, except of a `recv` or `relay` that
    /// goes on.
    Result(ResultEvent),
    /// An event that is specific to a verb.
    #[serde(untagged)]
    Told {
        /// The event's name.
        event: &'static str,
        /// The other fields of the event, in order.
        #[serde(flatten)]
        fields: Fields,
    },
}

/// Bytes per second in each direction; `None`: no limit.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct BothLimits {
    /// To the receiver.
    pub up: Option<u64>,
    /// The limit from the receiver to this host, in bytes per second.
    pub down: Option<u64>,
}

/// The addresses and secrets that peers need to connect.
#[derive(Clone, Default, Serialize)]
pub struct Ready {
    /// The ticket of a receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// The relay word that a relay printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub word: Option<String>,
    /// Local addresses listened on.
    pub listen: Vec<String>,
    /// The address of a relay's pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<SocketAddr>,
    /// The only sender that the ticket admits. `None`: the ticket was not used yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// The addresses at which a receiver can be reached without a relay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direct: Option<Reach>,
}

/// The addresses at which a receiver can be reached without a relay, and the command for the
/// sender.
#[derive(Clone, Debug, Serialize)]
pub struct Reach {
    /// The addresses in the ticket.
    pub addresses: Vec<String>,
    /// The names in the ticket, each with a port.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// UDP ports that this host's firewall must let in.
    pub ports: Vec<u16>,
    /// Whether all of `addresses` are private and no name leads here, so that hosts in other
    /// networks need a relay.
    /// Private means RFC 1918, RFC 4193, RFC 6598, link-local and loopback.
    pub private: bool,
    /// The command to type on the other host. It contains `TICKET` in place of the ticket.
    pub command: String,
}

impl Reach {
    /// Describes the addresses `direct` at which senders reach a receiver, and the `command` for
    /// them.
    pub fn new(direct: &DirectAddresses, command: String) -> Self {
        Self {
            addresses: direct.addresses.iter().map(ToString::to_string).collect(),
            names: direct.names.iter().map(ToString::to_string).collect(),
            ports: direct.ports.iter().copied().collect(),
            private: direct.is_private(),
            command,
        }
    }
}

impl fmt::Debug for Ready {
    /// Writes the fields for a log, without tickets and relay words, which are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hide = |secret: &Option<String>| secret.as_ref().map(|_| "[redacted]");
        f.debug_struct("Ready")
            .field("ticket", &hide(&self.ticket))
            .field("word", &hide(&self.word))
            .field("listen", &self.listen)
            .field("sender", &self.sender)
            .field("direct", &self.direct)
            .finish()
    }
}

/// The result of a verb.
#[derive(Clone, Debug, Serialize)]
pub struct ResultEvent {
    /// The verb; empty if none was understood.
    pub verb: &'static str,
    /// The exit code of the process, or of one transfer for a `recv` that goes on.
    pub exit: u8,
    /// The error in one sentence. `None`: there was no error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The result of the verb.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The result of a verb.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    /// The result of `send` or `recv`.
    Transfer(Box<Transferred>),
    /// The result of `send --dry-run`.
    Plan {
        /// Payload bytes that would be sent.
        bytes: u64,
        /// Number of files that would be sent.
        files: u64,
        /// Number of directories that would be sent.
        directories: u64,
        /// Number of symbolic links that would be sent.
        links: u64,
        /// Number of entries that patterns exclude. A directory counts as one, with all that it
        /// holds.
        #[serde(rename = "excluded_entries", skip_serializing_if = "is_zero")]
        excluded: u64,
        /// Entries that cannot be read and would be left out.
        unreadable: u64,
        /// The receiver's reply. `None`: the receiver does not answer.
        #[serde(flatten)]
        found: Option<Found>,
    },
    /// The result of `demo`.
    Demo {
        /// Payload bytes, sent twice.
        bytes: u64,
        /// Whether every byte arrived as sent, both times.
        verified: bool,
        /// Time over the direct path only.
        single_path_seconds: f64,
        /// Time over all paths.
        multipath_seconds: f64,
        /// The first divided by the second.
        speedup: f64,
        /// Every path of the second transfer.
        paths: Vec<DemoPath>,
    },
    /// The result of `id`.
    Id {
        /// The host's public key.
        key: String,
    },
    /// The result of `ping`.
    Ping {
        /// Every path that was tried.
        paths: Vec<PingPath>,
    },
    /// The result of `relay`.
    Relay(RelayCounters),
    /// `send` and `ping`, of a receiver that does not answer.
    Unreached {
        /// Every path to the receiver that was tried.
        tried: Vec<TriedAddress>,
    },
    /// A result that is specific to a verb.
    Told(Fields),
    /// No result, because the verb failed before it had one.
    Nothing {},
}

/// The receiver's reply to a dry run: the number of entries for each action that a transfer would
/// take.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Found {
    /// Number of files and links that the receiver does not have.
    pub new_entries: u64,
    /// Number of files and links that would replace existing ones at the receiver.
    pub replaced_entries: u64,
    /// Number of files that are newer at the receiver, and kept.
    pub newer_files: u64,
    /// Number of files whose contents both hosts would compare.
    pub compared_files: u64,
    /// Entries that would be moved to the trash.
    pub deleted_entries: u64,
    /// Bytes that would travel at most.
    pub travelling_bytes: u64,
}

impl Found {
    /// The counts, in the order of [`LookedAt::ALL`].
    #[must_use]
    pub const fn counts(&self) -> [u64; 5] {
        let Self { new_entries, replaced_entries, newer_files, compared_files, deleted_entries, .. } = *self;
        [new_entries, replaced_entries, newer_files, compared_files, deleted_entries]
    }

    /// Counts one entry of the receiver's reply. `amount` is its bytes or, of a deleted directory,
    /// its entries.
    pub const fn add(&mut self, what: LookedAt, amount: u64) {
        let (counter, count) = match what {
            LookedAt::New => (&mut self.new_entries, 1),
            LookedAt::Replaced => (&mut self.replaced_entries, 1),
            LookedAt::Newer => (&mut self.newer_files, 1),
            LookedAt::Compared => (&mut self.compared_files, 1),
            LookedAt::Deleted => (&mut self.deleted_entries, amount),
        };
        *counter = counter.saturating_add(count);
        if !matches!(what, LookedAt::Newer | LookedAt::Deleted) {
            self.travelling_bytes = self.travelling_bytes.saturating_add(amount);
        }
    }
}

/// An address that was tried for a receiver that does not answer, with the reply.
#[derive(Clone, Debug, Serialize)]
pub struct TriedAddress {
    /// The address that was tried: the receiver's, its name if the name has no address, or a
    /// relay's address.
    pub address: String,
    /// Whether the address is a relay's.
    pub relay: bool,
    /// The reply as a code: `nothing`, `port_unreachable`, `host_unreachable`,
    /// `network_unreachable`, `forbidden`, `too_narrow`, `name_without_address`, `name_of_no_host`,
    /// `resolver_silent`, `relay_silent`, `relay_refuses`, …
    pub heard: &'static str,
    /// The reply in words, for a person.
    pub reason: String,
}

/// The counters of a relay since its start. Bytes are those of UDP payloads.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RelayCounters {
    /// Datagrams from senders to receivers.
    pub forwarded_packets: u64,
    /// Bytes of the datagrams from senders to receivers.
    pub forwarded_bytes: u64,
    /// Datagrams from receivers back to senders.
    pub returned_packets: u64,
    /// Bytes of the datagrams from receivers back to senders.
    pub returned_bytes: u64,
    /// Number of greetings that the relay answered.
    pub greeted: u64,
    /// Number of notices sent to senders whose datagrams were dropped.
    pub notices: u64,
    /// Sends that the system refused.
    pub send_errors: u64,
    /// Bytes in both directions on this day (UTC), over restarts.
    pub today_bytes: u64,
    /// Bytes in both directions in this month (UTC), over restarts.
    pub month_bytes: u64,
    /// Number of grants in use.
    pub grants: u32,
    /// Times that these could not be written to the disk.
    pub not_kept: u64,
    /// TCP connections at the moment.
    pub connections: usize,
    /// Number of receivers whose addresses the relay remembers.
    pub receivers: usize,
    /// The rate that an end host relays for others at present.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub lends: Option<LendingReport>,
    /// Datagrams dropped, by reason.
    pub dropped: BTreeMap<String, u64>,
}

impl fmt::Display for RelayCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let forth = (self.forwarded_packets, self.forwarded_bytes);
        let back = (self.returned_packets, self.returned_bytes);
        f.write_str(&relay::forwarded(forth, back, self.greeted))?;
        write!(f, "\n{}", relay::carried(self.today_bytes, self.month_bytes))?;
        if self.connections + self.receivers > 0 {
            write!(f, "\n{}", relay::knows(self.connections, self.receivers))?;
        }
        if let Some(lends) = &self.lends {
            write!(f, "\n{}", relay::lends(lends))?;
        }
        self.dropped.iter().try_for_each(|(reason, count)| write!(f, "\n{}", relay::dropped(*count, reason)))
    }
}

/// The share of one path in a round of the demo.
#[derive(Clone, Debug, Serialize)]
pub struct DemoPath {
    /// `direct`, or which relay.
    pub name: String,
    /// Bytes that the path carried.
    pub bytes: u64,
    /// The mean rate of the path in bits per second.
    pub rate_bps: f64,
}

/// The replies on one path of a ping.
#[derive(Clone, Debug, Serialize)]
pub struct PingPath {
    /// `direct`, or which relay.
    pub route: String,
    /// Number of probes sent.
    pub sent: u32,
    /// Number of replies received.
    pub received: u32,
    /// The smallest round-trip time, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rtt_ms: Option<f64>,
    /// The mean round-trip time, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_rtt_ms: Option<f64>,
}

impl Event {
    /// The end of `verb`, without an error.
    #[must_use]
    pub const fn result(verb: &'static str, exit: Exit, outcome: Outcome) -> Self {
        Self::Result(ResultEvent { verb, exit: exit as u8, error: None, outcome })
    }

    /// The final event of a verb that failed without a result.
    #[must_use]
    pub fn failure(verb: &'static str, exit: Exit, sentence: &str) -> Self {
        let error = Some(sentence.to_owned());
        Self::Result(ResultEvent { verb, exit: exit as u8, error, outcome: Outcome::Nothing {} })
    }

    /// An event that is specific to a verb.
    #[must_use]
    pub fn told(event: &'static str, what: &impl Serialize) -> Self {
        Self::Told { event, fields: Fields::of(what) }
    }

    /// Whether a later event of this kind replaces this one, so that it may be left out.
    pub(super) const fn is_progress(&self) -> bool {
        matches!(self, Self::Progress(_) | Self::Counters(_))
    }

    /// Returns the event as one line of JSON, without a line feed.
    #[must_use]
    pub fn to_line(&self) -> String {
        self.line_after(0)
    }

    /// Returns the event as one line of JSON, with the number of events that were left out before
    /// it.
    pub(super) fn line_after(&self, dropped_events: u64) -> String {
        #[derive(Serialize)]
        struct Versioned<'a> {
            v: u32,
            #[serde(flatten)]
            event: &'a Event,
            #[serde(skip_serializing_if = "Option::is_none")]
            dropped_events: Option<u64>,
        }
        let dropped_events = Some(dropped_events).filter(|dropped| *dropped > 0);
        always(serde_json::to_string(&Versioned { v: EVENT_VERSION, event: self, dropped_events }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_receiver_says_may_be_any_number() {
        let mut found = Found::default();
        for what in LookedAt::ALL {
            (0..2).for_each(|_| found.add(what, u64::MAX));
        }
        assert_eq!(found.counts(), [2, 2, 2, 2, u64::MAX]);
        assert_eq!(found.travelling_bytes, u64::MAX);
    }
}
