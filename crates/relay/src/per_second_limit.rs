//! A limit of events per second.

use byway_wire::{Instant, Meter};

const SECOND_NANOS: u64 = 1_000_000_000;

/// Admits a number of events per second. A tenth of a second's worth, and one more, may come at
/// once.
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
        if self.per_second == 0 || self.meter.wait(now, SECOND_NANOS / 10) > 0 {
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
