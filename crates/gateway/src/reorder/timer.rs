//! How long a packet may wait at the exit for those before it.

use byway_control::detector::{Average, Base, Extremes, Smoothed};
use byway_wire::time::nanos;
use byway_wire::{Duration, Instant};

/// Packets whose delays are averaged: "take average delay observed over the recent 50 packets" (HIR, 7.1).
const RECENT: u32 = 50;
/// A peak falls by this part of what it rises above the least with each packet.
const PEAK_LASTS: i64 = 256;
/// Delays this near the smallest are as good as it.
const TOLERANCE: Duration = Duration::from_millis(1);

/// What is known of the delays of a path, by clocks that may differ by anything, the same on all paths. ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathDelay {
    /// The smallest ever: `dmin_i` of Harp.
    pub least: i64,
    /// That of the route as it is now.
    pub base: i64,
    /// The average of the latest.
    pub average: i64,
    /// The largest of late.
    pub peak: i64,
    /// The smoothed difference from one packet to the next.
    pub jitter: i64,
}

/// The delays of a path as packets arrive.
#[derive(Clone, Debug)]
pub struct PathDelays {
    extremes: Option<Extremes>,
    base: Base,
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
            base: Base::new(TOLERANCE),
            average: Average::new(RECENT),
            seen: 0,
            jitter: Smoothed::default(),
            latest: 0,
            peak: i64::MIN,
        }
    }
}

impl PathDelays {
    /// Nothing known yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the one-way delay of a packet, ns; `rtt` is the path's round trip, as far as it is known.
    pub fn on_packet(&mut self, now: Instant, delay: i64, rtt: Duration) {
        if self.extremes.is_some() {
            let leap = delay.saturating_sub(self.latest);
            self.jitter.sample(leap.saturating_abs());
        }
        Extremes::sample(&mut self.extremes, delay);
        self.base.sample(delay, now, rtt);
        self.average.sample(delay);
        self.seen = self.seen.saturating_add(1).min(RECENT as usize);
        self.latest = delay;
        let least = self.extremes.map_or(delay, |extremes| extremes.min);
        let fallen = self.peak.saturating_sub(self.peak.saturating_sub(least) / PEAK_LASTS);
        self.peak = delay.max(fallen);
    }

    /// What is known. `None` before the first packet.
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

/// How much later than those behind them packets come, whatever the reason. One that a path took on may wait there until the pacer or
/// an acknowledgment lets it go, which no delay on the way shows: most when windows are small, as in the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lateness {
    peak: Duration,
    last: Option<Instant>,
}

/// Lateness falls to a third of itself in this time. Not with each packet: the more there are the sooner it would be forgotten, and the
/// latest of a hundred thousand would come too late several times a second.
const LATENESS_LASTS: Duration = Duration::from_secs(4);
/// After such a pause nothing is known of what is late.
const PAUSE: Duration = Duration::from_secs(1);

impl Lateness {
    /// A packet came, so much `late` if others had to wait for it. Until that is known of some, they may be late by a round trip of the
    /// longest path.
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

/// The rule for the time that a packet may wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timer {
    /// Harp: "a factor rho of the minimum delay over the longest path". Clocks must agree: delays count as they are.
    Harp {
        /// The factor; 1.5 in the paper.
        rho: f64,
    },
    /// Harp's with differences, which need no clocks that agree: `rho * (max dmin - min dmin) + 2 * jitter`.
    HarpRelative {
        /// The factor.
        rho: f64,
    },
    /// HIR: "maximum average delay of all paths [...] a maximum threshold value can be set". Clocks must agree.
    Hir {
        /// The threshold, of which the paper says no value.
        cap: Duration,
    },
    /// HIR's with differences: `max average - min dmin + 2 * jitter`, at most the threshold. Sees queues as they are on average, and is
    /// too early for the packets that wait longest: one in forty of three equal paths under the background class.
    HirRelative {
        /// The threshold.
        cap: Duration,
    },
    /// The largest delay of late on any path, beyond the least of all: `max peak - min dmin`, at most the threshold; and no less than
    /// packets were [late](Lateness) of late. The default.
    Peak {
        /// The threshold.
        cap: Duration,
    },
}

/// The factor of the paper, and a threshold where HIR says of none what it is.
const RHO: f64 = 1.5;
const CAP: Duration = Duration::from_millis(200);

impl Default for Timer {
    fn default() -> Self {
        Self::Peak { cap: CAP }
    }
}

impl Timer {
    /// All with usual factors and thresholds, by the names that people write.
    pub const NAMES: [(&str, Self); 5] = [
        ("harp", Self::Harp { rho: RHO }),
        ("harp-relative", Self::HarpRelative { rho: RHO }),
        ("hir", Self::Hir { cap: CAP }),
        ("hir-relative", Self::HirRelative { cap: CAP }),
        ("peak", Self::Peak { cap: CAP }),
    ];

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, timer)| *timer)
    }

    /// Its name, whatever the factor or the threshold.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Harp { .. } => "harp",
            Self::HarpRelative { .. } => "harp-relative",
            Self::Hir { .. } => "hir",
            Self::HirRelative { .. } => "hir-relative",
            Self::Peak { .. } => "peak",
        }
    }

    /// Whether it makes sense only between hosts whose clocks agree: simulated ones.
    #[must_use]
    pub const fn needs_clocks(&self) -> bool {
        matches!(self, Self::Harp { .. } | Self::Hir { .. })
    }

    /// How long a packet that arrives now may wait, given the paths that carry data. Zero if nothing is known, and never negative.
    #[must_use]
    pub fn wait(&self, paths: impl IntoIterator<Item = PathDelay> + Clone) -> Duration {
        let all = || paths.clone().into_iter();
        let most = |of: fn(&PathDelay) -> i64| all().map(|path| of(&path)).max().unwrap_or(0);
        let base = all().map(|path| path.base).min().unwrap_or(0);
        let jitter = most(|path| path.jitter).saturating_mul(2);
        match *self {
            Self::Harp { rho } => scaled(most(|path| path.least), rho),
            Self::HarpRelative { rho } => {
                scaled(most(|path| path.base).saturating_sub(base), rho) + positive(jitter)
            }
            Self::Peak { cap } => positive(most(|path| path.peak).saturating_sub(base)).min(cap),
            Self::Hir { cap } => positive(most(|path| path.average)).min(cap),
            Self::HirRelative { cap } => {
                (positive(most(|path| path.average).saturating_sub(base)) + positive(jitter)).min(cap)
            }
        }
    }
}

const fn positive(nanos: i64) -> Duration {
    Duration::from_nanos(if nanos > 0 { nanos as u64 } else { 0 })
}

fn scaled(nanos: i64, factor: f64) -> Duration {
    Duration::try_from_secs_f64(positive(nanos).as_secs_f64() * factor.max(0.0)).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;

    fn fed(delays: impl IntoIterator<Item = i64>) -> PathDelay {
        let mut path = PathDelays::new();
        assert_eq!(path.view(), None);
        for (at, delay) in (1..).zip(delays) {
            path.on_packet(Instant::from_millis(at), delay, Duration::from_millis(20));
        }
        path.view().unwrap()
    }

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn each_rule_by_its_formula() {
        let (short, long) =
            (fed([10 * MS; 60]), fed((0..400).map(|at| if at < 100 { 30 * MS } else { 50 * MS })));
        let wait = |timer: Timer| timer.wait([short, long]);
        assert_eq!(wait(Timer::Harp { rho: 1.5 }), ms(45));
        let relative = wait(Timer::HarpRelative { rho: 1.5 });
        assert!(relative >= ms(30) && relative < ms(31), "{relative:?}");
        assert_eq!(
            wait(Timer::Hir { cap: CAP }),
            ms(50),
            "the average follows the queue, the minimum does not"
        );
        assert_eq!(wait(Timer::Hir { cap: ms(40) }), ms(40));
        let relative = wait(Timer::HirRelative { cap: CAP });
        assert!(relative >= ms(40) && relative < ms(41), "{relative:?}");
        assert_eq!(wait(Timer::HirRelative { cap: ms(7) }), ms(7));
        assert_eq!(Timer::default().wait([]), Duration::ZERO);
    }

    #[test]
    fn with_few_packets_the_average_is_of_those() {
        assert_eq!(fed([10 * MS, 20 * MS]).average, 15 * MS);
        assert_eq!(fed((0..100).map(|at| at * MS)).average, 74 * MS + MS / 2);
    }

    proptest! {
        #[test]
        fn differences_do_not_know_the_clocks(
            paths in prop::collection::vec(prop::collection::vec(0..200 * MS, 1..80), 1..4), offset in -(1i64 << 50)..1 << 50
        ) {
            let views = |offset: i64| paths.iter().map(|delays| fed(delays.iter().map(|delay| delay + offset))).collect::<Vec<_>>();
            for timer in [Timer::HarpRelative { rho: 1.5 }, Timer::HirRelative { cap: CAP }] {
                prop_assert_eq!(timer.wait(views(0)), timer.wait(views(offset)));
            }
            let capped = Timer::HirRelative { cap: CAP };
            prop_assert!(capped.wait(views(offset)) <= CAP);
        }
    }
}
