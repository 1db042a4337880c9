//! The times of the relays' last retests. A relay is tested again only after a while, whoever
//! complains.

use alloc::collections::{BTreeSet, VecDeque};
use byway_wire::heartbeat::RelayId;
use byway_wire::{Duration, Instant};

/// Time from a test to the next of the same relay, after a complaint or a failure.
const RETEST_INTERVAL: Duration = Duration::from_secs(60);

/// The relays that were tested within [`RETEST_INTERVAL`].
#[derive(Debug)]
pub(super) struct Retests {
    recent: BTreeSet<RelayId>,
    /// The relays in the order in which their tests began.
    order: VecDeque<(Instant, RelayId)>,
}

impl Retests {
    pub const fn new() -> Self {
        Self { recent: BTreeSet::new(), order: VecDeque::new() }
    }

    /// Whether a relay may be tested again.
    pub fn may_begin(&mut self, now: Instant, relay: RelayId) -> bool {
        while let Some((at, old)) = self.order.front()
            && now.since(*at) >= RETEST_INTERVAL
        {
            self.recent.remove(old);
            self.order.pop_front();
        }
        !self.recent.contains(&relay)
    }

    /// Enters that the relay's test begins.
    pub fn begin(&mut self, now: Instant, relay: RelayId) {
        if self.recent.insert(relay) {
            self.order.push_back((now, relay));
        }
    }
}
