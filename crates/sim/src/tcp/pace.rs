//! How an application writes or reads: a rate that changes at given times.

use byway_wire::time::nanos;
use byway_wire::{Duration, Instant};

const SECOND_NANOS: u128 = 1_000_000_000;

/// The rate of an application over time. Bytes that it could not move are not made up for later.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    /// Bits per second from each instant on; `None`: no limit.
    steps: Vec<(Instant, Option<u64>)>,
    /// Number of steps that have begun.
    begun: usize,
    since: Instant,
    /// Bits times nanoseconds that do not make a byte yet.
    carry: u128,
}

impl Pace {
    pub(super) fn new(mut steps: Vec<(Instant, Option<u64>)>) -> Self {
        steps.sort_by_key(|step| step.0);
        Self { steps, begun: 0, since: Instant::ZERO, carry: 0 }
    }

    /// Sets the rate from now on, and removes all later steps.
    pub(super) fn set(&mut self, now: Instant, rate: Option<u64>) {
        self.take(now, u64::MAX);
        self.steps = vec![(now, rate)];
        self.begun = 1;
    }

    fn rate(&self) -> Option<u64> {
        match self.begun.checked_sub(1).and_then(|last| self.steps.get(last)) {
            Some(&(_, rate)) => rate,
            None => Some(0),
        }
    }

    /// Whether the rate is unlimited at the time of the last call.
    pub(super) fn is_unlimited(&self) -> bool {
        self.rate().is_none()
    }

    /// Returns the bytes that were done since the last call, if at most `most` could be.
    pub(super) fn take(&mut self, now: Instant, most: u64) -> u64 {
        let mut done = 0_u64;
        loop {
            let next = self.steps.get(self.begun).map(|step| step.0).filter(|&at| at <= now);
            let until = next.unwrap_or(now).max(self.since);
            match self.rate() {
                // In a time without limit all is done at once, by calls in that time; one that is
                // over has done its part.
                None if next.is_none() => done = most,
                None => {}
                Some(rate) => {
                    self.carry += u128::from(rate) * u128::from(nanos(until.since(self.since)));
                    let bytes = self.carry / (8 * SECOND_NANOS);
                    self.carry -= bytes * 8 * SECOND_NANOS;
                    done = done.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
                }
            }
            self.since = until;
            if next.is_none() {
                break;
            }
            self.begun += 1;
        }
        if done > most {
            self.carry = 0;
        }
        done.min(most)
    }

    /// When `bytes` more will be done, or the rate changes, whichever is first. `None`: never.
    pub(super) fn when(&self, bytes: u64) -> Option<Instant> {
        let step = self.steps.get(self.begun).map(|step| step.0);
        let done = match self.rate() {
            None => Some(self.since),
            Some(0) => None,
            Some(rate) => {
                let need = (u128::from(bytes) * 8 * SECOND_NANOS).saturating_sub(self.carry);
                let wait = u64::try_from(need.div_ceil(u128::from(rate))).unwrap_or(u64::MAX);
                Some(self.since + Duration::from_nanos(wait))
            }
        };
        match (step, done) {
            (Some(step), Some(done)) => Some(step.min(done)),
            (step, done) => step.or(done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_exact_however_often_one_asks() {
        let at = Instant::from_millis;
        let steps =
            vec![(at(10), Some(1_000_003)), (at(500), None), (at(600), Some(0)), (at(700), Some(8_000))];
        let (mut often, mut seldom) = (Pace::new(steps.clone()), Pace::new(steps));
        let sum: u64 = (1..=490).map(|ms| often.take(at(ms), 1 << 40)).sum();
        assert_eq!(sum, seldom.take(at(490), 1 << 40));
        assert_eq!(sum, 480 * 1_000_003 / 8_000);
        assert_eq!(seldom.when(1 << 30), Some(at(500)));
        assert_eq!(seldom.take(at(550), 77), 77);
        assert_eq!(seldom.take(at(660), 77), 0);
        assert_eq!(seldom.take(at(700), 77), 0);
        // 490 001.47 bits were done by 500 ms: 1.47 beyond the last full byte, so 6.53 are missing.
        assert_eq!(seldom.when(1), Some(at(700) + Duration::from_nanos(816_250)));
        assert_eq!(seldom.take(at(1_700), 2_000), 1_000);
    }

    #[test]
    fn what_was_kept_from_being_done_is_not_made_up_for() {
        let mut pace = Pace::new(vec![(Instant::ZERO, Some(8_000))]);
        assert_eq!(pace.take(Instant::from_millis(1_000), 10), 10);
        assert_eq!(pace.take(Instant::from_millis(1_001), 10), 1);
    }
}
