//! The round-trip time of each target without a queue, and so what a sample waited.

use byway_control::detector::BaseDelay;
use byway_wire::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Targets that are remembered. The one that was used longest ago is forgotten first.
const MAX_TARGETS: usize = 256;
/// RTTs that differ by this much count as equal.
const RTT_TOLERANCE: Duration = Duration::from_millis(1);
/// The time for which a wait that was seen says how long packets wait now.
const WAIT_MEMORY: Duration = Duration::from_millis(200);

#[derive(Clone, Debug)]
struct KnownTarget {
    base: BaseDelay,
    used: Instant,
}

/// The least RTT of each target. Connections of one target share it: a new one, or one that was
/// idle, knows it from the first sample on.
#[derive(Clone, Debug, Default)]
pub struct BaseRtts {
    targets: BTreeMap<IpAddr, KnownTarget>,
    /// The latest wait of any connection, in nanoseconds, and when it was seen.
    latest_wait: Option<(Instant, i64)>,
}

/// What an RTT tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttReading {
    /// How long the packet waited in queues, in nanoseconds.
    pub waited: i64,
    /// The RTT of the target without a queue.
    pub base: Duration,
}

impl BaseRtts {
    /// Takes an RTT in nanoseconds into account. The first one of a target waited as long as the
    /// packets of others did just before: they all leave by the same uplink.
    pub fn sample(&mut self, target: IpAddr, rtt: i64, now: Instant) -> RttReading {
        if !self.targets.contains_key(&target) {
            self.make_room();
            let recent = self.latest_wait.filter(|(at, _)| now.since(*at) <= WAIT_MEMORY);
            let waits = recent.map_or(0, |(_, waited)| waited);
            let mut base = BaseDelay::new(RTT_TOLERANCE);
            base.adopt(rtt.saturating_sub(waits).max(rtt / 8), now);
            self.targets.insert(target, KnownTarget { base, used: now });
        }
        let Some(known) = self.targets.get_mut(&target) else {
            return RttReading { waited: 0, base: Duration::from_nanos(rtt.unsigned_abs()) };
        };
        known.used = now;
        let waited = known.base.sample(rtt, now, Duration::from_nanos(rtt.unsigned_abs()));
        self.latest_wait = Some((now, waited));
        let base = known.base.floor().unwrap_or(rtt);
        RttReading { waited, base: Duration::from_nanos(base.unsigned_abs()) }
    }

    fn make_room(&mut self) {
        if self.targets.len() < MAX_TARGETS {
            return;
        }
        let oldest = self.targets.iter().min_by_key(|(_, known)| known.used).map(|(target, _)| *target);
        if let Some(oldest) = oldest {
            self.targets.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn target(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    #[test]
    fn each_target_has_a_base_of_its_own() {
        let mut bases = BaseRtts::default();
        let at = Instant::from_millis(1);
        bases.sample(target(1), 20 * MS, at);
        bases.sample(target(2), 150 * MS, at);
        assert_eq!(bases.sample(target(1), 26 * MS, at).waited, 6 * MS);
        let read = bases.sample(target(2), 153 * MS, at);
        assert_eq!((read.waited, read.base), (3 * MS, Duration::from_millis(150)));
    }

    #[test]
    fn a_target_that_is_first_seen_during_a_queue_does_not_take_it_for_its_base() {
        let mut bases = BaseRtts::default();
        let at = Instant::from_millis(1);
        bases.sample(target(1), 20 * MS, at);
        bases.sample(target(1), 50 * MS, at);
        let read = bases.sample(target(2), 70 * MS, at + Duration::from_millis(10));
        assert_eq!((read.waited, read.base), (30 * MS, Duration::from_millis(40)));
        let later = bases.sample(target(3), 70 * MS, at + Duration::from_millis(900));
        assert_eq!(later.waited, 0);
    }

    #[test]
    fn targets_that_are_remembered_are_bounded() {
        let mut bases = BaseRtts::default();
        for number in 0..2_000_u32 {
            let target = IpAddr::from(number.to_be_bytes());
            bases.sample(target, 20 * MS, Instant::from_millis(u64::from(number)));
        }
        assert_eq!(bases.targets.len(), MAX_TARGETS);
        assert!(bases.targets.contains_key(&IpAddr::from(1_999_u32.to_be_bytes())));
    }
}
