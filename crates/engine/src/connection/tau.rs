//! τ: when a hole in a stream or object is named to the sender (SNACK).

use super::{Connection, Receiving};
use crate::config::Tau;
use crate::route::Through;
use byway_wire::{Duration, Instant};

/// What the RTT of the direct path is taken for until its sender tells it (mPath section 2.1: the inter-continental average).
const UNTOLD: Duration = Duration::from_millis(250);

impl Connection {
    /// When the next hole is to be named to the sender.
    pub(super) fn snack_at(&mut self, now: Instant) -> Option<Instant> {
        if self.snack_due {
            return None;
        }
        let tau = self.tau(now);
        self.incoming.snack_deadline(tau)
    }

    /// The [`reorder_time`](Self::reorder_time), worked out now and then: it takes a look at every path.
    pub(super) fn tau(&mut self, now: Instant) -> Duration {
        const HOLDS: Duration = Duration::from_millis(20);
        if self.tau.1 <= now {
            self.tau = (self.reorder_time(now), now + HOLDS);
        }
        self.tau.0
    }

    /// How long a hole in a stream or object may be explained by paths of different length: mPath's τ (section 2.2), twice the RTT of
    /// the direct path, but at least what the slowest path in use explains.
    fn reorder_time(&self, now: Instant) -> Duration {
        const RECENT: Duration = Duration::from_secs(2);
        let came_direct = |receiving: &&Receiving| matches!(receiving.source.through, Through::Nothing);
        let direct = self.receive.iter().find(came_direct).or_else(|| self.receive.iter().next());
        let direct = direct.and_then(|first| first.facts.round_trip());
        if let Tau::Direct(percent) = self.config.tau {
            return direct.unwrap_or(UNTOLD) * percent / 100;
        }
        let recent = self.receive.iter().filter(|receiving| receiving.facts.last_arrival + RECENT > now);
        let slowest = recent.filter_map(|receiving| receiving.facts.round_trip()).max();
        (direct.unwrap_or_default() * 2)
            .max(slowest.unwrap_or_default() * 3 / 2)
            .max(Duration::from_millis(60))
    }
}
