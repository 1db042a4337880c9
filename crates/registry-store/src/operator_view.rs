//! A registry's reports for its operator: as text, and as fields for programs.

use crate::operator_store::{OperatorStore, StoreError};
use byway_registry::message::{Reason, carriers};
use byway_registry::registry::RegistryCounters;
use byway_registry::store::{RelayRow, WordRow};
use byway_registry::word::WordKind;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

/// A registry word in a list, without its secret.
#[derive(Clone, Debug, Serialize)]
pub struct WordLine {
    /// The name of the registry word's holder.
    pub name: String,
    /// `join` or `use`.
    pub kind: &'static str,
    /// Number of relays that the registry word may still enrol. `None`: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uses: Option<u32>,
    /// Bytes per second at each relay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<u64>,
    /// Bytes per day at each relay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<u64>,
    /// The expiry of the registry word, in seconds of Unix time. `None`: it never expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// Whether the registry word was revoked.
    pub revoked: bool,
}

/// A relay in a list, for the operator.
#[derive(Clone, Debug, Serialize)]
pub struct RelayLine {
    /// The relay's name.
    pub relay: String,
    /// The name of the relay's operator.
    pub operator: String,
    /// The relay's region, as its operator named it.
    pub region: String,
    /// The addresses and ports of the relay.
    pub addresses: Vec<String>,
    /// The transports over which the relay forwards, as the registry tested them: `udp`, `tcp`.
    pub carriers: &'static [&'static str],
    /// Bytes per second that the relay grants to a client. `None`: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<u64>,
    /// Bytes per day that the relay grants to a client. `None`: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<u64>,
    /// Bytes per second that the relay forwards.
    pub load: u64,
    /// Seconds since the relay's last heartbeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_seconds_ago: Option<u64>,
    /// Whether the operator revoked the relay.
    pub revoked: bool,
}

/// The words and relays of a registry, for its operator.
#[derive(Clone, Debug, Serialize)]
pub struct Listing {
    /// The registry words that were issued.
    pub words: Vec<WordLine>,
    /// The relays that are enrolled.
    pub relays: Vec<RelayLine>,
}

impl WordLine {
    fn of(row: &WordRow) -> Self {
        Self {
            name: row.name.clone(),
            kind: if row.kind == WordKind::Join { "join" } else { "use" },
            uses: row.uses,
            rate: row.rate.bytes_per_second(),
            quota: row.quota.bytes_per_day(),
            expires: Some(row.expires).filter(|expires| *expires != u64::MAX),
            revoked: row.revoked,
        }
    }
}

impl RelayLine {
    fn of(row: &RelayRow, seen: Option<(u64, u64)>) -> Self {
        Self {
            relay: row.relay.to_string(),
            operator: row.operator.to_string(),
            region: row.region.to_string(),
            addresses: row.addresses.iter().map(ToString::to_string).collect(),
            carriers: carriers(row.tcp),
            rate: row.rate.bytes_per_second(),
            quota: row.quota.bytes_per_day(),
            load: seen.map_or(0, |(_, load)| load),
            seen_seconds_ago: seen.map(|(ago, _)| ago),
            revoked: row.revoked,
        }
    }
}

impl Listing {
    /// Reads the listing of a store, at `unix` (seconds).
    ///
    /// # Errors
    /// It does not answer.
    pub fn of(keeper: &mut dyn OperatorStore, unix: u64) -> Result<Self, StoreError> {
        let all = keeper.everything()?;
        let seen: BTreeMap<_, _> =
            all.seen.iter().map(|seen| (seen.relay, (unix.saturating_sub(seen.at), seen.load))).collect();
        let relays = all.relays.iter().map(|row| RelayLine::of(row, seen.get(&row.relay).copied()));
        Ok(Self { words: all.words.iter().map(WordLine::of).collect(), relays: relays.collect() })
    }
}

/// The first report of a registry, when it has started.
#[derive(Clone, Debug, Serialize)]
pub struct StartReport<'a> {
    address: &'a str,
    addresses: &'a [String],
    listen: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    http: Option<SocketAddr>,
    join: &'a str,
    #[serde(rename = "use")]
    ask: &'a str,
}

impl<'a> StartReport<'a> {
    /// Makes a report with the registry's addresses, its sockets, its operator's HTTP address, and
    /// its two registry words with their secrets.
    #[must_use]
    pub fn new(
        addresses: &'a [String],
        listen: &'a [String],
        http: Option<SocketAddr>,
        [join, ask]: [&'a str; 2],
    ) -> Self {
        Self { address: addresses.first().map_or("", String::as_str), addresses, listen, http, join, ask }
    }
}

/// A registry word that was issued.
#[derive(Clone, Serialize)]
pub struct Done {
    /// The name of the registry word's holder.
    pub name: String,
    /// The text of the registry word, secret included.
    pub word: String,
}

/// The counters of a registry since its start, for a report.
#[derive(Clone, Debug, Serialize)]
pub struct Did {
    beats: u64,
    enrolled: u64,
    questions: u64,
    grants: u64,
    complaints: u64,
    refused: BTreeMap<String, u64>,
    beats_refused: u64,
    overdue: u64,
    dismissed: u64,
    store_gone: u64,
}

impl Did {
    /// A report made from the registry's counters.
    #[must_use]
    pub fn of(counters: &RegistryCounters) -> Self {
        let refused = Reason::ALL.into_iter().map(|reason| (reason.to_string(), counters.refused(reason)));
        Self {
            beats: counters.beats,
            enrolled: counters.enrolled,
            questions: counters.questions,
            grants: counters.grants,
            complaints: counters.complaints,
            refused: refused.filter(|(_, count)| *count > 0).collect(),
            beats_refused: counters.beats_unknown + counters.beats_forged + counters.beats_replayed,
            overdue: counters.overdue,
            dismissed: counters.dismissed,
            store_gone: counters.store_gone,
        }
    }
}

impl fmt::Display for Did {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { beats, enrolled, questions, grants, .. } = self;
        write!(
            f,
            "answered {questions} questions with {grants} grants, {enrolled} enrolments and {beats} heartbeats"
        )?;
        for (reason, count) in &self.refused {
            write!(f, "\n  refused {count}: {reason}")?;
        }
        Ok(())
    }
}
