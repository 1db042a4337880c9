//! Chooses the path for each packet: for data the smallest ratio of bytes in flight to congestion
//! window (Harp, III.B), for an acknowledgment the least delay. Unlike in Harp (`Policy::LITERAL`),
//! data waits while all congestion windows are full.

use byway_wire::{Duration, PathId};
use core::cmp::Ordering;

/// The facts about a path that decide the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathInfo {
    /// The id of the path.
    pub id: PathId,
    /// Bytes sent and neither acknowledged nor lost.
    pub in_flight: u64,
    /// Congestion window, bytes.
    pub window: u64,
    /// The smallest one-way delay in ns. It includes the difference of the clocks, which is the
    /// same on all paths.
    pub delay: i64,
    /// Smoothed or smallest round trip.
    pub rtt: Duration,
    /// Whether the path goes through a relay.
    pub relayed: bool,
    /// Whether the path is choked, and takes no data.
    pub choked: bool,
    /// Whether pacing permits a packet on the path now.
    pub paced: bool,
    /// The largest datagram on the path, in bytes.
    pub largest: usize,
}

/// The demand of a packet on its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathNeed {
    /// Room: for data, of which each path takes its share.
    Room,
    /// The path with the least delay, for an acknowledgment: the host that gets it waits to send
    /// more data. Acknowledgments may arrive out of order, because a later one includes an earlier
    /// one.
    Soon,
}

/// How relays with a much longer round trip than the direct path are used. The paper takes "paths
/// through relays that differ in RTTs from the direct path by at most a factor of 1.5" (Harp,
/// III.G).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RelayPreference {
    /// Relays within the factor come first. Other relays are used while no path within the factor
    /// is open.
    Prefer(f64),
    /// Relays beyond the factor are never used, as in Harp.
    Exclude(f64),
    /// All relays are treated alike.
    Any,
}

/// The factor of the direct RTT within which relays are near (Harp, III.G).
const NEAR_RTT_FACTOR: f64 = 1.5;

impl RelayPreference {
    /// All preferences, with the factor of the paper.
    pub const ALL: [Self; 3] = [Self::Prefer(NEAR_RTT_FACTOR), Self::Exclude(NEAR_RTT_FACTOR), Self::Any];

    /// The name of the rule, whatever the factor.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prefer(_) => "prefer",
            Self::Exclude(_) => "exclude",
            Self::Any => "any",
        }
    }
}

/// How to choose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// Choose also among paths whose window is full, as in Harp.
    pub over_window: bool,
    /// The treatment of distant relays.
    pub relays: RelayPreference,
    /// A relay whose round trip exceeds the direct one by at most this time counts as near,
    /// whatever the factor. With a direct round trip of 2 ms, a factor of 1.5 alone would exclude a
    /// relay with 4 ms.
    pub slack: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            over_window: false,
            relays: RelayPreference::Prefer(NEAR_RTT_FACTOR),
            slack: Duration::from_millis(20),
        }
    }
}

impl Policy {
    /// Harp's own rules.
    pub const LITERAL: Self =
        Self { over_window: true, relays: RelayPreference::Exclude(NEAR_RTT_FACTOR), slack: Duration::ZERO };
}

/// The path for the next datagram, of `bytes` bytes. `None` if it has to wait, or [nothing carries
/// it](carries).
#[must_use]
pub fn pick(paths: &[PathInfo], policy: Policy, want: PathNeed, bytes: usize) -> Option<PathId> {
    let open = |path: &&PathInfo| !path.choked && path.largest >= bytes;
    let near = |path: &&PathInfo| is_near(path, paths, policy);
    let only_near = match policy.relays {
        RelayPreference::Any => false,
        RelayPreference::Exclude(_) => true,
        RelayPreference::Prefer(_) => paths.iter().filter(open).any(|path| near(&path)),
    };
    let has_room = |path: &&PathInfo| path.paced && (policy.over_window || path.in_flight < path.window);
    let usable = paths.iter().filter(open).filter(|path| !only_near || near(path)).filter(has_room);
    let first = |a: &&PathInfo, b: &&PathInfo| match want {
        PathNeed::Room => by_fill(a, b).then(a.delay.cmp(&b.delay)),
        PathNeed::Soon => a.delay.cmp(&b.delay),
    };
    usable.min_by(|a, b| first(a, b).then(a.id.cmp(&b.id))).map(|path| path.id)
}

/// Whether a datagram of `bytes` bytes should wait for one of `paths`: true if a path carries this
/// size. A choked path sends only probes, so it does not count. If all are choked, the result is
/// true, because their later sizes are unknown.
#[must_use]
pub fn carries(paths: &[PathInfo], bytes: usize) -> bool {
    let mut open = paths.iter().filter(|path| !path.choked).peekable();
    open.peek().is_none() || open.any(|path| path.largest >= bytes)
}

/// Whether a path is within the factor of the direct one; if there is no direct one, of the
/// fastest.
fn is_near(path: &PathInfo, all: &[PathInfo], policy: Policy) -> bool {
    let (RelayPreference::Prefer(factor) | RelayPreference::Exclude(factor)) = policy.relays else {
        return true;
    };
    let fastest =
        |direct: bool| all.iter().filter(|path| !(direct && path.relayed)).map(|path| path.rtt).min();
    let Some(reference) = fastest(true).or_else(|| fastest(false)) else { return true };
    !path.relayed
        || path.rtt <= reference.saturating_add(policy.slack)
        || path.rtt.as_secs_f64() <= reference.as_secs_f64() * factor
}

/// In flight over window, without dividing.
fn by_fill(a: &PathInfo, b: &PathInfo) -> Ordering {
    let crossed = |a: &PathInfo, b: &PathInfo| u128::from(a.in_flight) * u128::from(b.window.max(1));
    crossed(a, b).cmp(&crossed(b, a))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn path(id: u32, in_flight: u64, window: u64, rtt: u64) -> PathInfo {
        PathInfo {
            id: PathId(id),
            in_flight,
            window,
            delay: 500_000 * rtt as i64,
            rtt: Duration::from_millis(rtt),
            relayed: id > 0,
            choked: false,
            paced: true,
            largest: 1_400,
        }
    }

    /// The policy without slack.
    const STRICT: Policy =
        Policy { over_window: false, relays: RelayPreference::Prefer(1.5), slack: Duration::ZERO };

    #[test]
    fn relays_a_little_longer_are_near_whatever_the_factor() {
        let full = [path(0, 100, 100, 20), path(1, 0, 100, 40)];
        assert_eq!(pick(&full, STRICT, PathNeed::Room, 1_000), None);
        assert_eq!(pick(&full, Policy::default(), PathNeed::Room, 1_000), Some(PathId(1)));
        let beyond = [path(0, 100, 100, 20), path(1, 0, 100, 41)];
        assert_eq!(pick(&beyond, Policy::default(), PathNeed::Room, 1_000), None);
        assert_eq!(
            pick(&full, Policy { over_window: false, ..Policy::LITERAL }, PathNeed::Room, 1_000),
            None
        );
    }

    #[test]
    fn what_is_large_takes_the_paths_that_carry_it() {
        let narrow = PathInfo { largest: 900, ..path(1, 0, 100, 20) };
        let paths = [path(0, 90, 100, 20), narrow];
        let ask = |paths: &[PathInfo], bytes| {
            (pick(paths, Policy::default(), PathNeed::Room, bytes).map(|id| id.0), carries(paths, bytes))
        };
        assert_eq!((ask(&paths, 900), ask(&paths, 901)), ((Some(1), true), (Some(0), true)));
        assert_eq!(ask(&paths, 1_401), (None, false));
        let full = [path(0, 100, 100, 20), narrow];
        assert_eq!(ask(&full, 901), (None, true), "it waits, rather than go elsewhere");
        let choked = [PathInfo { choked: true, ..paths[0] }, narrow];
        assert_eq!((ask(&choked, 901), ask(&choked[..1], 901)), ((None, false), (None, true)));
        // The near one is too narrow for it: the distant one is all there is.
        let distant = [PathInfo { largest: 900, ..path(0, 0, 100, 20) }, path(1, 0, 100, 90)];
        assert_eq!((ask(&distant, 900).0, ask(&distant, 901).0), (Some(0), Some(1)));
    }

    #[test]
    fn acknowledgments_take_the_fastest_with_room() {
        let ask = |paths: &[PathInfo]| pick(paths, Policy::default(), PathNeed::Soon, 1_000).map(|id| id.0);
        assert_eq!(ask(&[path(0, 90, 100, 20), path(1, 0, 100, 25)]), Some(0));
        assert_eq!(ask(&[path(0, 0, 100, 25), path(1, 90, 100, 20)]), Some(1));
        assert_eq!(ask(&[path(0, 100, 100, 20), path(1, 0, 100, 25)]), Some(1));
        assert_eq!(ask(&[PathInfo { choked: true, ..path(0, 0, 100, 20) }, path(1, 0, 100, 25)]), Some(1));
    }

    #[test]
    fn the_least_full_then_the_fastest_then_the_first() {
        let ask = |paths: &[PathInfo]| pick(paths, Policy::default(), PathNeed::Room, 1_000).map(|id| id.0);
        assert_eq!(ask(&[path(0, 50, 100, 20), path(1, 60, 200, 20)]), Some(1));
        assert_eq!(ask(&[path(0, 0, 100, 30), path(1, 0, 200, 20)]), Some(1));
        assert_eq!(ask(&[path(2, 5, 10, 20), path(1, 50, 100, 20)]), Some(1));
        assert_eq!(ask(&[path(0, 100, 100, 20)]), None);
        assert_eq!(ask(&[PathInfo { choked: true, ..path(0, 0, 100, 20) }, path(1, 99, 100, 20)]), Some(1));
        assert_eq!(ask(&[PathInfo { paced: false, ..path(0, 0, 100, 20) }, path(1, 99, 100, 20)]), Some(1));
        assert_eq!(ask(&[]), None);
    }

    #[test]
    fn the_literal_rule_chooses_among_full_paths() {
        let full = [path(0, 300, 100, 20), path(1, 200, 100, 20)];
        assert_eq!(
            (
                pick(&full, Policy::default(), PathNeed::Room, 1_000),
                pick(&full, Policy::LITERAL, PathNeed::Room, 1_000)
            ),
            (None, Some(PathId(1)))
        );
    }

    #[test]
    fn distant_relays_come_last_or_not_at_all() {
        let paths = [path(0, 90, 100, 20), path(1, 80, 100, 30), path(2, 0, 100, 31)];
        let with = |relays| pick(&paths, Policy { relays, ..STRICT }, PathNeed::Room, 1_000);
        assert_eq!(with(RelayPreference::Any), Some(PathId(2)));
        assert_eq!(
            (with(RelayPreference::Prefer(1.5)), with(RelayPreference::Exclude(1.5))),
            (Some(PathId(1)), Some(PathId(1)))
        );
        // All near ones choked: the distant one is all there is.
        let choked = paths.map(|path| PathInfo { choked: path.id.0 < 2, ..path });
        let with = |relays| pick(&choked, Policy { relays, ..STRICT }, PathNeed::Room, 1_000);
        assert_eq!(
            (with(RelayPreference::Prefer(1.5)), with(RelayPreference::Exclude(1.5))),
            (Some(PathId(2)), None)
        );
        // Near ones full: wait for them, rather than have every packet wait for the distant one at
        // the exit.
        let full = paths.map(|path| PathInfo { in_flight: if path.id.0 < 2 { 100 } else { 0 }, ..path });
        assert_eq!(pick(&full, STRICT, PathNeed::Room, 1_000), None);
        // Without a direct path the fastest is the measure.
        assert_eq!(
            pick(&[path(3, 50, 100, 200), path(4, 0, 100, 301)], STRICT, PathNeed::Room, 1_000),
            Some(PathId(3))
        );
    }

    proptest! {
        #[test]
        fn nothing_that_could_take_it_is_less_full(
            paths in prop::collection::vec((0u64..2_000, 0u64..2_000, 1u64..100, any::<bool>(), any::<bool>()), 0..8), over_window: bool
        ) {
            let paths: Vec<PathInfo> = (0..).zip(paths).map(|(id, (in_flight, window, rtt, choked, paced))| {
                PathInfo { choked, paced, ..path(id, in_flight, window, rtt) }
            }).collect();
            let usable = |path: &&PathInfo| !path.choked && path.paced && (over_window || path.in_flight < path.window);
            let fill = |path: &PathInfo| path.in_flight as f64 / path.window.max(1) as f64;
            match pick(&paths, Policy { over_window, relays: RelayPreference::Any, ..STRICT }, PathNeed::Room, 1_000) {
                None => prop_assert!(!paths.iter().any(|path| usable(&path))),
                Some(id) => {
                    let picked = paths.iter().find(|path| path.id == id).unwrap();
                    prop_assert!(usable(&picked));
                    prop_assert!(paths.iter().filter(usable).all(|path| fill(picked) <= fill(path)));
                }
            }
        }
    }
}
