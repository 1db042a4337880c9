//! The one-way delays of a path, as packets arrive by it.

use byway_control::detector::{Average, BaseDelay, Extremes, Smoothed};
use byway_wire::{Duration, Instant};

/// The number of packets whose delays are averaged. The paper: "take average delay observed over
/// the recent 50 packets" (HIR, 7.1).
const AVERAGED_PACKETS: u32 = 50;
/// The divisor of a peak's height above the least delay: a peak falls by this part with each
/// packet.
const PEAK_LIFETIME_PACKETS: i64 = 256;
/// The largest excess over the smallest delay that still counts as equal to it.
const DELAY_TOLERANCE: Duration = Duration::from_millis(1);

/// The delays of a path in ns. They include the difference of the clocks, which is the same on all
/// paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathDelay {
    /// The smallest ever: `dmin_i` of Harp.
    pub least: i64,
    /// The smallest delay of the present route.
    pub base: i64,
    /// The average of the latest.
    pub average: i64,
    /// The largest, which falls with each packet.
    pub peak: i64,
    /// The smoothed difference between the delays of consecutive packets.
    pub jitter: i64,
}

/// The delays of a path as packets arrive.
#[derive(Clone, Debug)]
pub struct PathDelays {
    extremes: Option<Extremes>,
    base: BaseDelay,
    average: Average,
    seen: usize,
    jitter: Smoothed,
    latest: i64,
    peak: i64,
}

impl Default for PathDelays {
    fn default() -> Self {
        Self {
            extremes: None,
            base: BaseDelay::new(DELAY_TOLERANCE),
            average: Average::new(AVERAGED_PACKETS),
            seen: 0,
            jitter: Smoothed::default(),
            latest: 0,
            peak: i64::MIN,
        }
    }
}

impl PathDelays {
    /// A path without measured delays.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the one-way delay of a packet in ns. `rtt`: the path's round-trip time, if known.
    pub fn on_packet(&mut self, now: Instant, delay: i64, rtt: Duration) {
        if self.extremes.is_some() {
            let leap = delay.saturating_sub(self.latest);
            self.jitter.sample(leap.saturating_abs());
        }
        Extremes::sample(&mut self.extremes, delay);
        self.base.sample(delay, now, rtt);
        self.average.sample(delay);
        self.seen = self.seen.saturating_add(1).min(AVERAGED_PACKETS as usize);
        self.latest = delay;
        let least = self.extremes.map_or(delay, |extremes| extremes.min);
        let fallen = self.peak.saturating_sub(self.peak.saturating_sub(least) / PEAK_LIFETIME_PACKETS);
        self.peak = delay.max(fallen);
    }

    /// The path's delays. `None`: no packet has arrived yet.
    #[must_use]
    pub fn view(&self) -> Option<PathDelay> {
        let least = self.extremes?.min;
        Some(PathDelay {
            least,
            base: self.base.floor().unwrap_or(least),
            average: self.average.mean(self.seen).unwrap_or(least),
            peak: self.peak,
            jitter: self.jitter.value(),
        })
    }
}

/// Returns the view of a path after these delays, one per millisecond.
#[cfg(test)]
pub(super) fn fed(delays: impl IntoIterator<Item = i64>) -> PathDelay {
    let mut path = PathDelays::new();
    assert_eq!(path.view(), None);
    for (at, delay) in (1..).zip(delays) {
        path.on_packet(Instant::from_millis(at), delay, Duration::from_millis(20));
    }
    path.view().unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn with_few_packets_the_average_is_of_those() {
        assert_eq!(fed([10 * MS, 20 * MS]).average, 15 * MS);
        assert_eq!(fed((0..100).map(|at| at * MS)).average, 74 * MS + MS / 2);
    }
}
