//! By how much packets are late.

use byway_wire::time::nanos;
use byway_wire::{Duration, Instant};

/// Measures how long packets of a flow wait at the exit for a late one. The paths' one-way delays
/// do not show this. A packet may also wait at the entry, for pacing or an ACK, while later packets
/// overtake it.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketLateness {
    peak: Duration,
    last: Option<Instant>,
}

/// The time in which the remembered lateness falls to about a third (1/e). If it fell with each
/// packet instead, a high rate would make it forget rare late packets within milliseconds.
const LATENESS_LIFETIME: Duration = Duration::from_secs(4);
/// The longest pause after which the measured lateness is still valid.
const MAX_PAUSE: Duration = Duration::from_secs(1);

impl PacketLateness {
    /// Notes the arrival of a packet. `late`: how long other packets had waited for it, or `None`.
    /// The largest recent `late` sets how long packets wait. At the start, and after one second's
    /// pause, this value is at least `longest`, the longest path's round trip.
    pub fn on_packet(&mut self, now: Instant, late: Option<Duration>, longest: Duration) {
        let since = self.last.map(|last| now.since(last)).filter(|since| *since <= MAX_PAUSE);
        if since.is_none() {
            self.peak = self.peak.max(longest);
        }
        self.last = Some(now);
        let part = nanos(since.unwrap_or_default()) as f64 / nanos(LATENESS_LIFETIME) as f64;
        let fallen = self.peak.saturating_sub(self.peak.mul_f64(part));
        self.peak = late.map_or(fallen, |late| fallen.max(late));
    }

    /// The remembered lateness, which falls with time.
    #[must_use]
    pub const fn peak(&self) -> Duration {
        self.peak
    }

    /// Returns the time that a packet may wait for others: 1.5 times the peak, as windows grow.
    #[must_use]
    pub fn wait(&self) -> Duration {
        self.peak + self.peak / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Instant = Instant::from_millis;
    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn until_some_is_known_it_is_a_round_trip_and_then_it_falls_with_time() {
        let mut lateness = PacketLateness::default();
        lateness.on_packet(AT(0), None, MS(40));
        assert_eq!((lateness.peak(), lateness.wait()), (MS(40), MS(60)));
        for ms in 1..=4_000 {
            lateness.on_packet(AT(ms), None, MS(40));
        }
        let fallen = lateness.peak();
        assert!(fallen > MS(14) && fallen < MS(15), "a third: {fallen:?}");
        lateness.on_packet(AT(4_001), Some(MS(30)), MS(40));
        assert_eq!(lateness.peak(), MS(30));
        lateness.on_packet(AT(6_000), None, MS(50));
        assert_eq!(lateness.peak(), MS(50), "after a pause nothing is known");
    }
}
