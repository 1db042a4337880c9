//! A token bucket by the generic cell rate algorithm (ITU-T I.371, virtual scheduling). Its state
//! is one number: the time when the bucket is full again.

use crate::{Duration, Instant};

const SECOND_NANOS: u64 = 1_000_000_000;

/// A token bucket: the time at which it is full again. Its owner decides how far it may be
/// overdrawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    full_at: Instant,
}

impl Meter {
    /// A bucket of which nothing is lent.
    pub const FULL: Self = Self { full_at: Instant::ZERO };

    /// Returns the time until the bucket is full again.
    #[must_use]
    pub const fn debt(&self, now: Instant) -> Duration {
        self.full_at.since(now)
    }

    /// Returns the nanoseconds until at most `burst` nanoseconds' worth is borrowed. 0: there is
    /// room now.
    #[must_use]
    pub const fn wait(&self, now: Instant, burst: u64) -> u64 {
        self.full_at.as_nanos().saturating_sub(now.as_nanos()).saturating_sub(burst)
    }

    /// Takes tokens from the bucket. `cost`: the time in which they come back.
    pub fn lend(&mut self, now: Instant, cost: Duration) {
        self.full_at = self.full_at.max(now) + cost;
    }

    /// Takes `units` from the bucket, which come back at `rate` units per second. It rounds up, so
    /// that the rate is never exceeded.
    pub fn take(&mut self, now: Instant, units: u64, rate: u64) {
        let cost = units.saturating_mul(SECOND_NANOS).div_ceil(rate.max(1));
        self.full_at = self.full_at.max(now).offset_nanos(i64::try_from(cost).unwrap_or(i64::MAX));
    }

    /// Whether nothing is lent: forgetting the meter forgets nothing.
    #[must_use]
    pub fn is_full(&self, now: Instant) -> bool {
        self.full_at <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lent_comes_back_with_time_and_no_more_than_that() {
        let (mut meter, now) = (Meter::default(), Instant::from_millis(1_000));
        assert!(meter.is_full(now));
        meter.take(now, 3, 1_000);
        meter.lend(now, Duration::from_millis(2));
        assert_eq!(meter.debt(now), Duration::from_millis(5));
        assert_eq!((meter.wait(now, 5_000_000), meter.wait(now, 4_999_999)), (0, 1));
        let later = now + Duration::from_secs(60);
        assert!(meter.is_full(later));
        meter.take(later, 1, 3);
        assert_eq!(meter.debt(later), Duration::from_nanos(333_333_334));
    }
}
