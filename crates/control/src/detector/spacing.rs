//! How close packets follow each other where the line lets them out.

use byway_wire::Duration;

/// Estimates the transmission time of one packet on the bottleneck link, from the gaps between the
/// arrivals of successive packets. Each estimate is the 1/32 quantile of 256 gaps. Shorter gaps
/// count as errors, for example after a late interrupt.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spacing {
    /// The smallest distances of this block in nanoseconds, ascending. Only the first `pairs` of
    /// them are set.
    least: [i64; Self::SMALLEST_COUNT],
    pairs: usize,
    /// Pairs of this block that arrived out of order or together. `pairs` does not count them.
    mixed: usize,
    /// The latest block had too many mixed pairs: jitter exceeds the time of a packet.
    jitters: bool,
    /// The estimates of earlier blocks, the latest first. Zero: there is no estimate.
    said: [i64; Self::BLOCK_COUNT],
    /// The smallest of these estimates, updated once per block.
    settled: Option<Duration>,
}

impl Spacing {
    /// Pairs in a block.
    const BLOCK_PAIRS: usize = 256;
    /// Pairs of a block that may be closer together than the line sends packets.
    const SMALLEST_COUNT: usize = Self::BLOCK_PAIRS / 32;
    /// The greatest number of packet pairs, per block of 256 pairs, that may arrive together or out
    /// of order. With more, jitter exceeds a packet's transmission time on the bottleneck link.
    /// Then the block gives no estimate of the transmission time.
    const MAX_MIXED_PAIRS: usize = 2 * Self::SMALLEST_COUNT;
    /// In the first block the estimate is at least the distance of this rank, in ascending order.
    const MIN_RANK: usize = 3;
    /// The result, the line's time for one packet, is the smallest estimate of this many latest
    /// blocks. A block has 256 gaps between successive packets of this flow. Its estimate is too
    /// large if other flows' packets arrive in most of these gaps.
    const BLOCK_COUNT: usize = 8;

    /// Notes that two successive packets arrived `apart` nanoseconds after each other.
    pub fn sample(&mut self, apart: i64) {
        if apart <= 0 {
            self.mixed += 1;
            return;
        }
        let filled = self.pairs.min(Self::SMALLEST_COUNT);
        let place = self.least.iter().take(filled).position(|least| apart < *least).unwrap_or(filled);
        if let Some(behind) = self.least.get_mut(place..) {
            behind.rotate_right(1.min(behind.len()));
            if let Some(first) = behind.first_mut() {
                *first = apart;
            }
        }
        self.pairs += 1;
        if self.pairs >= Self::BLOCK_PAIRS {
            let [.., says] = self.least;
            self.jitters = self.mixed > Self::MAX_MIXED_PAIRS;
            if self.jitters {
                self.said = [0; Self::BLOCK_COUNT];
            } else {
                self.said.rotate_right(1);
                self.said[0] = says;
            }
            (self.pairs, self.mixed) = (0, 0);
            let least = self.said.iter().filter(|said| **said > 0).min();
            self.settled = least.map(|least| Duration::from_nanos(least.unsigned_abs()));
        }
    }

    /// The time that the line takes for a packet, or more if packets never met in a queue. `None`
    /// until enough pairs were seen.
    #[must_use]
    pub fn packet(&self) -> Option<Duration> {
        if self.jitters {
            return self.settled;
        }
        self.settled.or_else(|| {
            // The rank rises with the pairs so far: one in 32 may be too close together.
            let rank = (self.pairs * Self::SMALLEST_COUNT / Self::BLOCK_PAIRS).max(Self::MIN_RANK);
            let least = self.least.get(rank - 1).filter(|_| self.pairs >= Self::MIN_RANK)?;
            Some(Duration::from_nanos(least.unsigned_abs()))
        })
    }

    /// The time that the line takes for one packet, estimated from the gaps between successive
    /// packets' arrivals. `None` before the first 256 gaps are complete: a new flow sends its
    /// packets far apart, so its gaps are longer than this time.
    #[must_use]
    pub const fn settled(&self) -> Option<Duration> {
        self.settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeded_random::Random;

    const MS: i64 = 1_000_000;

    fn fed(pairs: usize, mut apart: impl FnMut(usize) -> i64) -> Spacing {
        let mut spacing = Spacing::default();
        (0..pairs).for_each(|pair| spacing.sample(apart(pair)));
        spacing
    }

    #[test]
    fn pairs_that_met_in_the_queue_tell_the_line_and_one_outlier_does_not() {
        let mut spacing = Spacing::default();
        for apart in [0, -MS, 12 * MS, MS / 100, 15 * MS] {
            spacing.sample(apart);
        }
        assert_eq!(spacing.packet(), Some(Duration::from_millis(15)), "of three, the largest");
        for apart in [2 * MS, 14 * MS, 2 * MS, 30 * MS] {
            spacing.sample(apart);
        }
        assert_eq!(spacing.packet(), Some(Duration::from_millis(2)));
    }

    #[test]
    fn two_pairs_are_too_few() {
        assert_eq!(fed(2, |_| MS).packet(), None);
    }

    #[test]
    fn however_many_pass_a_few_in_a_hundred_that_come_late_are_not_believed() {
        // Every fiftieth comes at once after one that was held up.
        let late = |pair: usize| if pair % 50 < 1 { MS / 500 } else { MS };
        for pairs in [60, 255, 256, 700, 100_000] {
            assert_eq!(fed(pairs, late).packet(), Some(Duration::from_millis(1)), "{pairs}");
        }
    }

    #[test]
    fn jitter_beyond_the_time_of_a_packet_tells_nothing() {
        let mut random = Random::new(1);
        let mut late = 0;
        let spacing = fed(5_000, |_| {
            let before = core::mem::replace(&mut late, (random.unit() * 3e6) as i64);
            MS + late - before
        });
        assert_eq!(spacing.packet(), None);
    }

    #[test]
    fn one_of_ten_meets_itself_in_the_queue_now_and_then() {
        let ten = |pair: usize| if pair.is_multiple_of(25) { MS } else { 10 * MS };
        assert_eq!(fed(5_000, ten).packet(), Some(Duration::from_millis(1)));
        // Of late, and not for ever: the line became slower.
        let slower = fed(8_000, |pair| if pair < 4_000 { MS } else { 3 * MS });
        assert_eq!(slower.packet(), Some(Duration::from_millis(3)));
    }
}
