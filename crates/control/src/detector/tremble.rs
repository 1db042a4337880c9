//! How far the delays of a path tremble while no queue stands.

use byway_wire::{Duration, Instant};

/// The spread of delays that is the line's own: radio slots, polling, a busy host.
///
/// Packets are taken in blocks. A block speaks of jitter only if some of its packets came near the base, so no queue
/// stood throughout; and only as far as it has leaps: from one packet to the next, a queue grows by no more than the
/// packet takes on the line, and falls slowly. What was learnt stays while no block speaks, since a line whose packets
/// keep their order bunches them at the late end as soon as it is busy, and then none comes near the base.
#[derive(Clone, Debug, Default)]
pub struct Tremble {
    spread: i64,
    /// Blocks that spoke.
    blocks: u32,
    began: Option<Instant>,
    packets: i64,
    /// Waits beyond the base: their sum, the least and the latest of the block.
    sum: i64,
    least: i64,
    latest: i64,
    /// All leaps within the block, and the greatest, which may be somebody's burst.
    leaps: i64,
    greatest: i64,
}

impl Tremble {
    /// Packets of a block, at least.
    const PACKETS: i64 = 8;
    /// Time of a block, at least, unless an RTT is shorter.
    const BLOCK: Duration = Duration::from_millis(20);
    /// A block of more RTTs than this says nothing: in that time a queue of others comes and goes, however near the base its first
    /// packet came. Of ten that share a line each has so few packets in flight.
    const ROUNDS: u32 = 4;
    /// So many blocks have to speak before a line is known.
    const KNOWN: u32 = 50;
    /// More than this is no jitter to be lived with, but somebody's queue.
    const MOST: i64 = 20_000_000;

    /// The width of the band in which delays lie while no queue stands, in nanoseconds.
    #[must_use]
    pub const fn spread(&self) -> i64 {
        self.spread
    }

    /// Whether the line is known to tremble by less than `spread` nanoseconds.
    #[must_use]
    pub const fn is_below(&self, spread: i64) -> bool {
        self.blocks >= Self::KNOWN && self.spread < spread
    }

    /// A packet waited `wait` nanoseconds beyond the base; up to `near` is as good as none, and `step` more than the one
    /// before may be a queue's doing.
    pub fn sample(&mut self, wait: i64, near: i64, step: i64, now: Instant, rtt: Duration) {
        let wait = wait.clamp(0, 10 * Self::MOST);
        let began = match self.began {
            Some(began) => {
                let leap = (wait - self.latest).saturating_sub(step).max(0);
                self.leaps += leap;
                self.greatest = self.greatest.max(leap);
                began
            }
            None => {
                (self.packets, self.sum, self.least) = (0, 0, wait);
                (self.leaps, self.greatest) = (0, 0);
                *self.began.insert(now)
            }
        };
        self.latest = wait;
        self.packets += 1;
        self.sum += wait;
        self.least = self.least.min(wait);
        if self.packets >= Self::PACKETS && now.since(began) >= Self::BLOCK.min(rtt) {
            if self.least <= near && now.since(began) <= rtt.max(Self::BLOCK).saturating_mul(Self::ROUNDS) {
                self.end_block();
            }
            self.began = None;
        }
    }

    fn end_block(&mut self) {
        self.blocks = self.blocks.saturating_add(1);
        // Twice the mean: the whole width if all of it is equally likely, and an outlier counts for little.
        let width = 2 * (self.sum / self.packets - self.least);
        let leaps = 2 * (self.leaps - self.greatest);
        let seen = width.min(leaps).min(Self::MOST);
        // Rising soon, falling slowly: a path taken for steady stops working, one taken for unsteady is a little late.
        self.spread += (seen - self.spread) / if seen > self.spread { 4 } else { 32 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const MS: i64 = 1_000_000;
    const RTT: Duration = Duration::from_millis(20);

    fn learn(wait: impl Fn(u64, f64) -> i64) -> i64 {
        let (mut tremble, mut random) = (Tremble::default(), Random::new(1));
        for at in 0..5_000 {
            tremble.sample(wait(at, random.unit()), MS, MS, Instant::from_millis(at), RTT);
        }
        tremble.spread()
    }

    #[test]
    fn jitter_is_known_by_its_width() {
        let spread = learn(|_, unit| (unit * 10e6) as i64);
        assert!((8 * MS..12 * MS).contains(&spread), "{spread}");
    }

    #[test]
    fn a_queue_that_grows_or_stands_is_no_jitter() {
        assert_eq!(learn(|at, _| (at % 7) as i64 * MS), 0, "builds up and drains");
        assert_eq!(learn(|_, unit| 2 * MS + (unit * 10e6) as i64), 0, "never near the base");
    }
}
