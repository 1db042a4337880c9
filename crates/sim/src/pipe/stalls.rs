//! A line that now and then delivers nothing for a while, as a radio that searches or waits for its
//! turn.

use crate::random::Random;
use byway_wire::{Duration, Instant};

/// One stall in each period, at a random time and of random length. Packets due in it arrive at its
/// end, all at once and in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stalls {
    /// The time between the beginnings of two stalls. Zero: there are no stalls.
    pub period: Duration,
    /// The shortest stall.
    pub min: Duration,
    /// The longest stall, at most a period.
    pub max: Duration,
}

/// The line's position in the sequence of stalls.
#[derive(Clone, Debug)]
pub(super) struct StallState {
    stalls: Stalls,
    random: Random,
    /// When the next period begins.
    next_period: Instant,
    /// The stall of the present period.
    from: Instant,
    until: Instant,
}

impl StallState {
    /// Makes the stalls of a line, from the world's beginning. They depend only on `seed`, not on
    /// the line's packets.
    pub fn new(stalls: Stalls, seed: u64) -> Self {
        let zero = Instant::ZERO;
        Self { stalls, random: Random::new(seed), next_period: zero, from: zero, until: zero }
    }

    /// The arrival time of a packet that would arrive at `at` without stalls. `at` never decreases.
    pub fn release(&mut self, at: Instant) -> Instant {
        if self.stalls.period.is_zero() {
            return at;
        }
        while at >= self.next_period {
            self.begin_period();
        }
        if at >= self.from && at < self.until { self.until } else { at }
    }

    fn begin_period(&mut self) {
        let Stalls { period, min, max } = self.stalls;
        let max = max.min(period);
        let length = min.min(max) + self.random.up_to(max.saturating_sub(min));
        self.from = self.next_period + self.random.up_to(period.saturating_sub(length));
        self.until = self.from + length;
        self.next_period += period;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn wifi() -> Stalls {
        Stalls { period: 1000 * MS, min: 20 * MS, max: 50 * MS }
    }

    #[test]
    fn what_would_arrive_in_a_stall_arrives_at_its_end() {
        let mut line = StallState::new(wifi(), 7);
        let (mut late, mut together, mut before) = (0, 0, Instant::ZERO);
        for packet in 0..100_000 {
            let at = Instant::from_millis(packet);
            let came = line.release(at);
            assert!(came >= at && came >= before && came.since(at) <= 50 * MS);
            late += u32::from(came > at);
            together += u32::from(came == before);
            before = came;
        }
        // 100 stalls of 35 ms on average.
        assert!((3_000..4_000).contains(&late), "{late}");
        assert!(together >= late - 100, "{together} of {late}");
    }

    #[test]
    fn stalls_do_not_depend_on_what_the_line_carries() {
        let (mut busy, mut idle) = (StallState::new(wifi(), 3), StallState::new(wifi(), 3));
        for packet in 0..60_000 {
            let at = Instant::from_millis(packet);
            let came = busy.release(at);
            if packet % 977 == 0 {
                assert_eq!(idle.release(at), came);
            }
        }
    }

    #[test]
    fn a_period_of_zero_has_none() {
        let mut line = StallState::new(Stalls { period: Duration::ZERO, min: MS, max: MS }, 1);
        assert_eq!(line.release(Instant::from_millis(5)), Instant::from_millis(5));
    }
}
