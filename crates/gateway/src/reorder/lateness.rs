//! By how much packets are late.

use byway_wire::time::nanos;
use byway_wire::{Duration, Instant};

/// How much later packets arrive than packets that were sent after them, for whatever reason. A
/// packet may wait at the sender, on the path that it was given to, for the pacer or for an
/// acknowledgment. The path's one-way delay does not include this wait. It is longest when windows
/// are small, as in the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketLateness {
    peak: Duration,
    last: Option<Instant>,
}

/// The time in which the known lateness falls to about a third. It falls with time and not with
/// each packet. Otherwise many packets would make it fall faster, and the latest one in a hundred
/// thousand would come too late several times a second.
const LATENESS_LASTS: Duration = Duration::from_secs(4);
/// After such a pause nothing is known of what is late.
const PAUSE: Duration = Duration::from_secs(1);

impl PacketLateness {
    /// A packet came. `late` is how long others had to wait for it, if they did. At the start and
    /// after a pause no lateness is known. Then `longest`, the round trip of the longest path, is
    /// assumed.
    pub fn on_packet(&mut self, now: Instant, late: Option<Duration>, longest: Duration) {
        let since = self.last.map(|last| now.since(last)).filter(|since| *since <= PAUSE);
        if since.is_none() {
            self.peak = self.peak.max(longest);
        }
        self.last = Some(now);
        let part = nanos(since.unwrap_or_default()) as f64 / nanos(LATENESS_LASTS) as f64;
        let fallen = self.peak.saturating_sub(self.peak.mul_f64(part));
        self.peak = late.map_or(fallen, |late| fallen.max(late));
    }

    /// The most of late.
    #[must_use]
    pub const fn peak(&self) -> Duration {
        self.peak
    }

    /// How long a packet may wait for others: half as long again, for windows grow.
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
