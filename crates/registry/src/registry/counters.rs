//! The counters of a registry, and a log of its refusals.

use crate::message::Reason;
use crate::relay_directory::HeartbeatResult;
use alloc::collections::VecDeque;

/// Events that wait for the owner at most.
const MAX_QUEUED_EVENTS: usize = 64;

/// Something for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEvent {
    /// A request was refused, for this reason.
    Refused(Reason),
}

/// The counters of a registry since its start.
#[derive(Clone, Debug, Default)]
pub struct RegistryCounters {
    /// Number of heartbeats that were answered.
    pub beats: u64,
    /// Heartbeats of relays that are not enrolled.
    pub beats_unknown: u64,
    /// Heartbeats that were not made with the relay's key.
    pub beats_forged: u64,
    /// Heartbeats that came before.
    pub beats_replayed: u64,
    /// Datagrams that are none of ours.
    pub malformed: u64,
    /// Enrolments and changes that were answered.
    pub enrolled: u64,
    /// Questions that were answered.
    pub questions: u64,
    /// Grants in the answers.
    pub grants: u64,
    /// Number of complaints about relays.
    pub complaints: u64,
    /// Addresses of relays that were tested.
    pub tests: u64,
    /// Tests that a relay did not pass.
    pub tests_failed: u64,
    /// Sessions that took too long.
    pub overdue: u64,
    /// Sessions that were closed to make room for others.
    pub dismissed: u64,
    /// Number of times that the store failed to run a request.
    pub store_gone: u64,
    refused: [u64; 16],
    events: VecDeque<LogEvent>,
}

impl RegistryCounters {
    /// Returns the number of requests refused for this reason.
    #[must_use]
    pub fn refused(&self, reason: Reason) -> u64 {
        self.refused.get(reason as usize).copied().unwrap_or(0)
    }

    /// Notes a refusal.
    pub(super) fn refuse(&mut self, reason: Reason) {
        if let Some(count) = self.refused.get_mut(reason as usize) {
            *count += 1;
        }
        if self.events.len() < MAX_QUEUED_EVENTS {
            self.events.push_back(LogEvent::Refused(reason));
        }
    }

    /// Notes a heartbeat that was not taken.
    pub(super) const fn beat_refused(&mut self, heard: HeartbeatResult) {
        match heard {
            HeartbeatResult::Unknown => self.beats_unknown += 1,
            HeartbeatResult::Forged => self.beats_forged += 1,
            HeartbeatResult::Replayed | HeartbeatResult::Taken { .. } => self.beats_replayed += 1,
        }
    }

    pub(super) fn next_event(&mut self) -> Option<LogEvent> {
        self.events.pop_front()
    }
}
