//! When the next run of segments may be written, for all connections together. A pure function of
//! the times and rates that it is told.

use byway_wire::{Duration, Instant};

/// How much more than one run may be written at once, in sending time. A thread that wakes late
/// loses what it could not write in this time.
const MAX_LATENESS: Duration = Duration::from_millis(2);

/// Leases bytes at a rate, a run at once. What is leased over any time is at most the bytes that
/// the rate brings in this time, one run, and `MAX_LATENESS` of the rate.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// Bytes that may be leased now.
    credit: f64,
    /// Bytes per second.
    rate: f64,
    at: Instant,
}

impl Pacer {
    /// A pacer of this rate, in bytes per second, from which a run of `run` bytes may be leased at
    /// once.
    #[must_use]
    pub const fn new(run: usize, rate: f64, now: Instant) -> Self {
        Self { credit: run as f64, rate, at: now }
    }

    /// Sets the rate, in bytes per second, from now on.
    pub fn set_rate(&mut self, rate: f64, now: Instant) {
        self.advance(now);
        self.rate = rate;
    }

    /// Has the rate bring nothing from now until this time.
    pub fn pause(&mut self, now: Instant, until: Instant) {
        self.advance(now);
        self.at = self.at.max(until);
    }

    fn advance(&mut self, now: Instant) {
        self.credit += now.since(self.at).as_secs_f64() * self.rate;
        self.at = self.at.max(now);
    }

    /// Whether a run of `run` bytes may be leased now.
    pub fn has_credit(&mut self, run: usize, now: Instant) -> bool {
        self.advance(now);
        let most = run as f64 + self.rate * MAX_LATENESS.as_secs_f64();
        self.credit = self.credit.min(most);
        self.credit >= run as f64
    }

    /// Leases a run of `run` bytes. 0: not yet.
    pub fn lease(&mut self, run: usize, now: Instant) -> usize {
        if !self.has_credit(run, now) {
            return 0;
        }
        self.credit -= run as f64;
        run
    }

    /// Takes back bytes that were leased and not written.
    pub fn give_back(&mut self, bytes: usize) {
        self.credit += bytes as f64;
    }

    /// When a run of `run` bytes may be leased at the present rate.
    #[must_use]
    pub fn next_lease(&self, run: usize) -> Instant {
        let missing = (run as f64 - self.credit).max(0.0);
        self.at + Duration::from_secs_f64((missing / self.rate.max(1.0)).min(3600.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever is asked, given back, and set: no more is written than the rates allowed.
        #[test]
        fn never_more_is_written_than_leased(
            steps in proptest::collection::vec((0_u64..20_000, 0_usize..4, 0.0_f64..1.0, 1e3_f64..1e8), 1..300),
            runs in proptest::collection::vec(1_usize..70_000, 1..4),
        ) {
            let longest = runs.iter().copied().max().unwrap_or_default();
            let mut now = Instant::from_millis(5);
            let mut pacer = Pacer::new(longest, 1e5, now);
            let mut turns = runs.iter().cycle();
            let (mut allowed, mut written, mut rate, mut fastest) = (0.0, 0.0, 1e5, 1e5_f64);
            for (micros, leases, share, next_rate) in steps {
                now += Duration::from_micros(micros);
                allowed += rate * micros as f64 / 1e6;
                for _ in 0..leases {
                    let run = turns.next().copied().unwrap_or(longest);
                    let lease = pacer.lease(run, now);
                    prop_assert!(lease == 0 || lease == run);
                    let unused = (lease as f64 * share) as usize;
                    pacer.give_back(unused);
                    written += (lease - unused) as f64;
                }
                let most = allowed + 2.0 * longest as f64 + fastest * MAX_LATENESS.as_secs_f64();
                prop_assert!(written <= most, "{written} of {most}");
                pacer.set_rate(next_rate, now);
                (rate, fastest) = (next_rate, fastest.max(next_rate));
            }
        }
    }

    #[test]
    fn the_rate_is_reached_by_who_wakes_when_told() {
        let (mut now, mut written) = (Instant::from_millis(1), 0);
        let mut pacer = Pacer::new(2_896, 1.25e6, now);
        while now < Instant::from_millis(1_001) {
            written += pacer.lease(2_896, now);
            now = pacer.next_lease(2_896).max(now + Duration::from_micros(60));
        }
        assert!((1.24e6..1.26e6).contains(&(written as f64)), "{written}");
    }
}
