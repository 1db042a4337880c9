//! The smallest RTT, and when it is to be measured again (5.3.4.3, 5.5.7).

use byway_wire::{Duration, Instant};

/// Age after which the smallest RTT is forgotten (2.16.1, `MinRTTFilterLen`).
const MAX_AGE: Duration = Duration::from_secs(10);
/// Time between two PROBE_RTT (2.16.2, `ProbeRTTInterval`).
const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// The smallest RTT of the last ten seconds, and of the last five.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    /// `None`: there is no sample.
    smallest: Option<Duration>,
    smallest_at: Instant,
    recent: Duration,
    recent_at: Instant,
    due: bool,
}

impl MinRtt {
    pub(super) const fn new(now: Instant, rtt: Option<Duration>) -> Self {
        Self { smallest: rtt, smallest_at: now, recent: Duration::MAX, recent_at: now, due: false }
    }

    pub(super) const fn get(&self) -> Option<Duration> {
        self.smallest
    }

    /// Whether the smallest RTT of the last five seconds is older than that.
    pub(super) const fn is_due(&self) -> bool {
        self.due
    }

    pub(super) fn update(&mut self, now: Instant, rtt: Option<Duration>) {
        self.due = now.since(self.recent_at) > PROBE_INTERVAL;
        if let Some(rtt) = rtt
            && (rtt < self.recent || self.due)
        {
            (self.recent, self.recent_at) = (rtt, now);
        }
        let is_old = now.since(self.smallest_at) > MAX_AGE;
        if self.recent < Duration::MAX && (self.smallest.is_none_or(|it| self.recent < it) || is_old) {
            (self.smallest, self.smallest_at) = (Some(self.recent), self.recent_at);
        }
    }

    /// PROBE_RTT is over: the next is due five seconds from now.
    pub(super) const fn probed(&mut self, now: Instant) {
        self.recent_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_due_after_five_seconds_and_a_smallest_is_forgotten_after_ten() {
        let (at, ms) = (Instant::from_millis, Duration::from_millis);
        let mut min = MinRtt::new(at(0), None);
        min.update(at(100), Some(ms(40)));
        for (now, rtt) in [(200, 60), (5_100, 70)] {
            min.update(at(now), Some(ms(rtt)));
            assert!(min.get() == Some(ms(40)) && !min.is_due(), "{now}");
        }
        min.update(at(5_101), Some(ms(70)));
        assert!(min.is_due() && min.get() == Some(ms(40)));
        min.probed(at(5_400));
        min.update(at(10_101), Some(ms(80)));
        assert!(!min.is_due());
        assert_eq!(min.get(), Some(ms(70)), "ten seconds are over: that of the last five");
    }
}
