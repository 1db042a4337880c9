//! A rate limit in one number: the generic cell rate algorithm (ITU-T I.371, virtual scheduling), which is a token
//! bucket that stores when it would be full again instead of how full it is.

use byway_wire::Instant;

const SECOND: u64 = 1_000_000_000;

/// When the bucket is full again. It lends up to the burst.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meter {
    full_at: Instant,
}

impl Meter {
    /// How long until `burst` nanoseconds' worth are not exceeded any more; 0: there is room now.
    pub(crate) fn wait(&self, now: Instant, burst: u64) -> u64 {
        self.full_at.as_nanos().saturating_sub(now.as_nanos()).saturating_sub(burst)
    }

    /// Takes `units` at `rate` units per second. Rounds up, so that the rate is never exceeded.
    pub(crate) fn take(&mut self, now: Instant, units: u64, rate: u64) {
        let cost = units.saturating_mul(SECOND).div_ceil(rate.max(1));
        self.full_at = self.full_at.max(now).offset_nanos(i64::try_from(cost).unwrap_or(i64::MAX));
    }

    /// Whether nothing is lent: forgetting the meter forgets nothing.
    pub(crate) fn is_full(&self, now: Instant) -> bool {
        self.full_at <= now
    }
}

/// So many a second, a tenth of a second's worth (and one) at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limiter {
    meter: Meter,
    per_second: u64,
}

impl Limiter {
    pub(crate) fn new(per_second: u64) -> Self {
        Self { meter: Meter::default(), per_second }
    }

    pub(crate) fn allows(&mut self, now: Instant) -> bool {
        if self.per_second == 0 || self.meter.wait(now, SECOND / 10) > 0 {
            return false;
        }
        self.meter.take(now, 1, self.per_second);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_wire::Duration;

    #[test]
    fn a_limiter_keeps_to_its_rate_after_its_burst() {
        let mut limiter = Limiter::new(100);
        let mut now = Instant::from_millis(1);
        let burst = (0..1000).filter(|_| limiter.allows(now)).count();
        assert_eq!(burst, 11);
        let mut later = 0;
        for _ in 0..10_000 {
            now += Duration::from_millis(1);
            later += usize::from(limiter.allows(now));
        }
        assert_eq!(later, 1000);
        assert!(!Limiter::new(0).allows(now));
    }
}
