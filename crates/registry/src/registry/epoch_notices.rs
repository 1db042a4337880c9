//! Relays that are to be told of a new epoch: all of them, but not all at once, which no line would
//! carry.

use alloc::vec::Vec;
use byway_wire::heartbeat::RelayId;
use byway_wire::{Duration, Instant};

/// Number of relays that are notified of a new epoch at once, before a pause.
const BATCH_RELAYS: u32 = 64;
/// Time between two batches of relays that are notified of a new epoch.
const BATCH_INTERVAL: Duration = Duration::from_millis(20);

/// The relays that have yet to be notified of the new epoch.
#[derive(Debug)]
pub(super) struct EpochNotices {
    names: Vec<RelayId>,
    left: u32,
    at: Instant,
}

impl EpochNotices {
    pub const fn new(now: Instant) -> Self {
        Self { names: Vec::new(), left: 0, at: now }
    }

    /// Replaces the relays to be notified.
    pub fn set(&mut self, names: Vec<RelayId>) {
        self.names = names;
    }

    pub const fn wake(&mut self, now: Instant) {
        if self.at.as_nanos() <= now.as_nanos() && self.left == 0 {
            self.left = BATCH_RELAYS;
        }
    }

    /// The next relay to tell. `None`: there is none, or the pause is not over.
    pub fn next(&mut self, now: Instant) -> Option<RelayId> {
        self.left = self.left.checked_sub(1)?;
        if self.left == 0 {
            self.at = now + BATCH_INTERVAL;
        }
        let name = self.names.pop();
        if name.is_none() {
            self.left = 0;
        }
        name
    }

    pub fn deadline(&self) -> Option<Instant> {
        (!self.names.is_empty()).then_some(self.at)
    }
}
