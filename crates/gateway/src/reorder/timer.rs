//! The time that a packet may wait at the exit for earlier ones: the papers' rules, and the one in
//! use.

use super::delays::PathDelay;
use super::lateness::PacketLateness;
use byway_wire::Duration;

/// The rule for the time that a packet may wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timer {
    /// Harp: "a factor rho of the minimum delay over the longest path". Clocks must agree: delays
    /// count as they are.
    Harp {
        /// The factor; 1.5 in the paper.
        rho: f64,
    },
    /// The rule of the paper Harp if the gateways' clocks differ: a packet waits `rho * (max base -
    /// min base) + 2 * max jitter`, each maximum and minimum over all paths. `rho` is Harp's
    /// factor, `base` the least delay of a path's present route, and `jitter` the mean difference
    /// between successive packets' delays.
    HarpRelative {
        /// The factor, Harp's rho.
        rho: f64,
    },
    /// HIR: "maximum average delay of all paths [...] a maximum threshold value can be set". Clocks
    /// must agree.
    Hir {
        /// The threshold, of which the paper says no value.
        cap: Duration,
    },
    /// The wait of the paper HIR, if clocks do not agree: `max average - min base + 2 * max jitter`
    /// of the paths' delays, at most `cap`. With the background controller this is too short for
    /// packets behind a full queue, whose delay exceeds the average.
    HirRelative {
        /// The longest waiting time.
        cap: Duration,
    },
    /// The default: a packet waits as long as the largest recent delay of any path minus the least
    /// delay of all paths. It waits longer if packets recently came even later
    /// ([`PacketLateness`]). The wait is at most `cap`.
    Peak {
        /// The longest waiting time.
        cap: Duration,
    },
}

/// The factor of the paper on Harp.
const DEFAULT_RHO: f64 = 1.5;
/// The threshold, for which the paper on HIR has no value.
const DEFAULT_CAP: Duration = Duration::from_millis(200);

impl Default for Timer {
    fn default() -> Self {
        Self::Peak { cap: DEFAULT_CAP }
    }
}

impl Timer {
    /// All timers, with their usual factors and thresholds.
    pub const ALL: [Self; 5] = [
        Self::Harp { rho: DEFAULT_RHO },
        Self::HarpRelative { rho: DEFAULT_RHO },
        Self::Hir { cap: DEFAULT_CAP },
        Self::HirRelative { cap: DEFAULT_CAP },
        Self::Peak { cap: DEFAULT_CAP },
    ];

    /// The timer with this name. `None`: there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|timer| timer.name() == name)
    }

    /// The name of the timer, whatever the factor or the threshold.
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

    /// Returns the time that a packet may wait, from the delays of the `paths` by which packets
    /// arrive. `apart`: longest minus shortest round trip of the paths that this side sends on. The
    /// rule `Peak` waits at least `apart`, because some paths' delays may not be known yet.
    #[must_use]
    pub fn by_way(&self, paths: impl IntoIterator<Item = PathDelay> + Clone, apart: Duration) -> Duration {
        let heard = self.wait(paths);
        match *self {
            Self::Peak { cap } => heard.max(apart.min(cap)),
            _ => heard,
        }
    }

    /// Returns the time that an arriving packet may wait, from the time for its
    /// [paths](Self::by_way) and the lateness of earlier packets.
    #[must_use]
    pub fn at_arrival(&self, by_way: Duration, lateness: &PacketLateness) -> Duration {
        match *self {
            Self::Peak { cap } => by_way.max(lateness.wait()).min(cap),
            _ => by_way,
        }
    }

    /// Returns the time that a packet may wait, according to the delays of the paths. Zero if these
    /// are not known, and never negative.
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
    use super::super::delays::fed;
    use super::*;
    use alloc::vec::Vec;
    use byway_wire::Instant;
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;

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
            wait(Timer::Hir { cap: DEFAULT_CAP }),
            ms(50),
            "the average follows the queue, the minimum does not"
        );
        assert_eq!(wait(Timer::Hir { cap: ms(40) }), ms(40));
        let relative = wait(Timer::HirRelative { cap: DEFAULT_CAP });
        assert!(relative >= ms(40) && relative < ms(41), "{relative:?}");
        assert_eq!(wait(Timer::HirRelative { cap: ms(7) }), ms(7));
        assert_eq!(Timer::default().wait([]), Duration::ZERO);
    }

    #[test]
    fn the_latest_packets_and_our_own_paths_make_the_default_wait_longer() {
        let mut lateness = PacketLateness::default();
        lateness.on_packet(Instant::from_millis(0), Some(ms(40)), Duration::ZERO);
        let peak = Timer::default();
        assert_eq!((peak.by_way([], ms(9)), peak.by_way([], ms(900))), (ms(9), DEFAULT_CAP));
        assert_eq!((peak.at_arrival(ms(9), &lateness), peak.at_arrival(ms(90), &lateness)), (ms(60), ms(90)));
        let literal = Timer::Harp { rho: DEFAULT_RHO };
        assert_eq!(
            (literal.by_way([], ms(9)), literal.at_arrival(ms(9), &lateness)),
            (Duration::ZERO, ms(9))
        );
    }

    proptest! {
        #[test]
        fn differences_do_not_know_the_clocks(
            paths in prop::collection::vec(prop::collection::vec(0..200 * MS, 1..80), 1..4), offset in -(1i64 << 50)..1 << 50
        ) {
            let views = |offset: i64| paths.iter().map(|delays| fed(delays.iter().map(|delay| delay + offset))).collect::<Vec<_>>();
            for timer in [Timer::HarpRelative { rho: 1.5 }, Timer::HirRelative { cap: DEFAULT_CAP }] {
                prop_assert_eq!(timer.wait(views(0)), timer.wait(views(offset)));
            }
            let capped = Timer::HirRelative { cap: DEFAULT_CAP };
            prop_assert!(capped.wait(views(offset)) <= DEFAULT_CAP);
        }
    }
}
