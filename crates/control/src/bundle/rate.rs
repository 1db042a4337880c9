//! Bytes per second acknowledged in the latest seconds.

use byway_wire::{Duration, Instant};

/// The least time over which a rate is a mean. The greatest is twice this time.
const RATE_WINDOW: Duration = Duration::from_millis(5_600);

/// Counts bytes, and computes their rate over the last seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// Bytes since the beginning.
    pub total: f64,
    /// Two points in time at least [`RATE_WINDOW`] apart, and the total by then.
    marks: [(Instant, f64); 2],
}

impl Rate {
    pub const fn new(now: Instant) -> Self {
        Self { total: 0.0, marks: [(now, 0.0); 2] }
    }

    pub fn add(&mut self, now: Instant, bytes: u64) {
        self.total += bytes as f64;
        if now.since(self.marks[1].0) >= RATE_WINDOW {
            self.marks = [self.marks[1], (now, self.total)];
        }
    }

    /// Bytes per second in the latest seconds. `None` in the first seconds.
    pub fn of_late(&self, now: Instant) -> Option<f64> {
        let [(at, total), (later, _)] = self.marks;
        (later > at).then(|| (self.total - total) / now.since(at).as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_follows_within_twice_its_span() {
        let mut rate = Rate::new(Instant::ZERO);
        let mut now = Instant::ZERO;
        assert_eq!(rate.of_late(now), None);
        for (bytes, expected) in [(1_000, 10_000.0), (3_000, 30_000.0), (0, 0.0)] {
            for _ in 0..120 {
                now += Duration::from_millis(100);
                rate.add(now, bytes);
            }
            let found = rate.of_late(now).unwrap_or(-1.0);
            assert!((found - expected).abs() < 1.0, "{found} for {expected}");
        }
    }
}
