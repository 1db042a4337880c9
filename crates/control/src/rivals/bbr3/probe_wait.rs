//! When the next probe for bandwidth is due (5.3.3.5).

use crate::seeded_random::Random;
use byway_wire::{Duration, Instant};

/// The shortest time from the end of a probe to the next.
const MIN_WAIT: Duration = Duration::from_secs(2);
/// A random part of this is added.
const WAIT_SPREAD: Duration = Duration::from_secs(1);
/// Rounds from the end of a probe to the next, at most. A flow with fewer packets in flight waits
/// for so many rounds: about as long as Reno takes from a loss to the next.
const MAX_WAIT_ROUNDS: f64 = 63.0;

/// The wait for the next probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeWait {
    since: Instant,
    wait: Duration,
    rounds: u32,
}

impl ProbeWait {
    pub(super) const fn new(now: Instant) -> Self {
        Self { since: now, wait: Duration::ZERO, rounds: 0 }
    }

    /// A probe ended: draws how long to wait (`PickProbeWait`).
    pub(super) fn draw(&mut self, now: Instant, random: &mut Random) {
        self.since = now;
        self.rounds = random.below(2) as u32;
        self.wait = MIN_WAIT + WAIT_SPREAD.mul_f64(random.unit());
    }

    /// A round began.
    pub(super) const fn count_round(&mut self) {
        self.rounds = self.rounds.saturating_add(1);
    }

    /// Whether the wait is over, for a flow that wants `packets` in flight.
    pub(super) fn is_over(&self, now: Instant, packets: f64) -> bool {
        now.since(self.since) > self.wait || f64::from(self.rounds) >= packets.min(MAX_WAIT_ROUNDS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_window_waits_for_its_rounds_and_a_large_one_for_two_to_three_seconds() {
        let at = Instant::from_millis;
        let mut random = Random::new(1);
        let mut waits = [0_u64; 20];
        for wait in &mut waits {
            let mut probe = ProbeWait::new(at(0));
            probe.draw(at(0), &mut random);
            *wait = (0..9_000).find(|&ms| probe.is_over(at(ms), 1e6)).unwrap();
            (0..8).for_each(|_| probe.count_round());
            assert!(!probe.is_over(at(100), 10.0));
            (0..2).for_each(|_| probe.count_round());
            assert!(probe.is_over(at(100), 10.0) && !probe.is_over(at(100), 1e6));
            (0..53).for_each(|_| probe.count_round());
            assert!(probe.is_over(at(100), 1e6));
        }
        assert!(waits.iter().all(|wait| (2_000..=3_001).contains(wait)), "{waits:?}");
        assert!(waits.iter().any(|&wait| wait < 2_400) && waits.iter().any(|&wait| wait > 2_600));
    }
}
