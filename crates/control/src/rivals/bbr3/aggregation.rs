//! ACKs that arrive in bunches: how much more they acknowledge than the rate explains (5.5.9).

use crate::rivals::max_filter::MaxFilter;
use byway_wire::Instant;

/// Rounds of which the largest excess counts (2.12, `ExtraAckedFilterLen`).
const EXCESS_ROUNDS: u64 = 10;
/// The same in STARTUP.
const STARTUP_ROUNDS: u64 = 1;

/// The largest excess of acknowledged bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aggregation {
    excess: MaxFilter,
    since: Instant,
    acked: f64,
}

impl Aggregation {
    pub(super) const fn new(now: Instant) -> Self {
        Self { excess: MaxFilter::new(STARTUP_ROUNDS), since: now, acked: 0.0 }
    }

    /// Bytes that the window adds, so that sending goes on between two bunches.
    pub(super) const fn get(&self) -> f64 {
        self.excess.get()
    }

    /// Sending begins again after a pause.
    pub(super) const fn restart(&mut self, now: Instant) {
        self.since = now;
    }

    /// The path is full: from now on ten rounds count.
    pub(super) const fn leave_startup(&mut self) {
        self.excess.set_rounds(EXCESS_ROUNDS);
    }

    /// `bytes` were acknowledged in `round`, on a path that delivers `rate` bytes per second.
    pub(super) fn update(&mut self, now: Instant, round: u64, bytes: f64, rate: f64, window: f64) {
        let mut expected = rate * now.since(self.since).as_secs_f64();
        if self.acked <= expected {
            (self.since, self.acked, expected) = (now, 0.0, 0.0);
        }
        self.acked += bytes;
        self.excess.add((self.acked - expected).clamp(0.0, window), round);
    }
}
