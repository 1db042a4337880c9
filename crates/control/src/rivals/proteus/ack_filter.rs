//! ACKs that come in a burst after a silence tell no RTT.

use byway_wire::{Duration, Instant};

/// Two intervals between ACKs in a row that differ by this many times the usual are a burst
/// (`pcc_monitor_interval_queue.cpp`).
const BURST_FACTOR: f64 = 50.0;
/// Weight of a new ratio in the usual one.
const RATIO_GAIN: f64 = 0.1;

/// A filter that judges RTT samples by the arrival times of their ACKs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckFilter {
    last: Option<Instant>,
    interval: Option<Duration>,
    /// The usual ratio of two intervals in a row, the longer by the shorter.
    usual: Option<f64>,
    in_burst: bool,
}

impl AckFilter {
    /// Whether the RTT sample of an ACK that came at `now` is reliable.
    pub(super) fn is_reliable(&mut self, now: Instant, rtt: Duration, smoothed: Duration) -> bool {
        let interval = self.last.map(|last| now.since(last));
        self.last = Some(now);
        let Some(interval) = interval.filter(|interval| !interval.is_zero()) else { return !self.in_burst };
        let Some(before) = self.interval.replace(interval) else { return true };
        let (one, other) = (interval.as_secs_f64(), before.as_secs_f64());
        let ratio = one.max(other) / one.min(other);
        let usual = *self.usual.get_or_insert(ratio);
        self.usual = Some(usual + RATIO_GAIN * (ratio - usual));
        if ratio > BURST_FACTOR * usual {
            self.in_burst = true;
            return false;
        }
        let was_in_burst = self.in_burst;
        self.in_burst &= rtt >= smoothed;
        !was_in_burst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_lasts_until_an_rtt_below_the_usual() {
        let (at, ms) = (Instant::from_micros, Duration::from_millis);
        let mut filter = AckFilter::default();
        for count in 0..100 {
            assert!(filter.is_reliable(at(1_000 * count), ms(40), ms(40)), "{count}");
        }
        assert!(!filter.is_reliable(at(99_000 + 60_000), ms(99), ms(41)), "60 times later");
        for count in 1..5 {
            assert!(!filter.is_reliable(at(159_000 + count), ms(98), ms(42)), "{count}");
        }
        assert!(!filter.is_reliable(at(160_000), ms(40), ms(43)), "it ends the burst");
        assert!(filter.is_reliable(at(161_000), ms(40), ms(43)));
    }
}
