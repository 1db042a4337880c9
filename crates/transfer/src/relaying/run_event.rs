//! The events of a running relay, for its program.

use crate::state_directory::StateError;
use byway_relay::{LendingState, LendingTrouble, Load, LogEvent, Relay, RelayCounters, Used};
use byway_wire::Instant;
use std::io;

/// An event of a running relay.
#[derive(Debug)]
pub enum RelayRunEvent {
    /// The counters of the relay, as requested.
    Relayed(Box<RelaySummary>),
    /// The relay dropped a datagram.
    Dropped(LogEvent),
    /// The counts could not be written to disk. The relay goes on, and tries again.
    NotKept(io::Error),
    /// The counts are written to disk again.
    KeptAgain,
    /// The file of named relay words changed, and was read.
    WordsRead {
        /// Number of relay words that are not revoked.
        good: usize,
    },
    /// The file of named relay words changed, and cannot be used. If it is damaged, no named relay
    /// word is valid.
    WordsUnread(StateError),
    /// The relay lends nothing, for this reason. `None`: it lends again.
    Lends(Option<LendingTrouble>),
}

/// The counters of a relay since its start, and its present state.
#[derive(Clone, Copy, Debug, Default)]
pub struct RelaySummary {
    /// The relay's counters since its start.
    pub counters: RelayCounters,
    /// Bytes carried on this day and in this month, over restarts.
    pub used: Used,
    /// The relay's load now.
    pub load: Load,
    /// Number of times that the counts could not be written to disk.
    pub not_kept: u64,
    /// The number of open TCP connections.
    pub connections: usize,
    /// The number of receivers whose addresses are remembered.
    pub receivers: usize,
    /// The state of lending. `None`: the relay is not on an end host that lends its line.
    pub lending: Option<LendingState>,
}

impl RelaySummary {
    /// `not_kept`: how often the counts could not be written to disk.
    pub(super) fn of(relay: &mut Relay, now: Instant, not_kept: u64) -> Self {
        let (used, load) = (relay.used(now), relay.load(now));
        let lending = relay.lending().map(|lending| lending.state());
        let (connections, receivers) = (relay.connections(), relay.remembered_receivers());
        Self { counters: *relay.counters(), used, load, not_kept, connections, receivers, lending }
    }
}
