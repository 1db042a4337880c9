//! The mean of the latest delays (HIR, 7.1).

use alloc::collections::VecDeque;

/// The latest `most` delays of a path, for means over up to `most` packets. The mean of many delays
/// hides jitter and shows a lasting queue. But the mean of n packets lags by n/2 packets.
#[derive(Clone, Debug)]
pub struct Average {
    latest: VecDeque<i64>,
    most: usize,
}

impl Average {
    /// A mean of at most `most` delays, at least one.
    #[must_use]
    pub fn new(most: u32) -> Self {
        Self { latest: VecDeque::new(), most: most.max(1) as usize }
    }

    /// Takes a delay into account.
    pub fn sample(&mut self, delay: i64) {
        if self.latest.len() >= self.most {
            self.latest.pop_front();
        }
        self.latest.push_back(delay);
    }

    /// Forgets all delays.
    pub fn clear(&mut self) {
        self.latest.clear();
    }

    /// The mean of the latest `packets` delays, or of `most` delays if `packets` is more. `None`
    /// while fewer delays are known, because a mean of few delays has more jitter.
    #[must_use]
    pub fn mean(&self, packets: usize) -> Option<i64> {
        let packets = packets.clamp(1, self.most);
        let skipped = self.latest.len().checked_sub(packets)?;
        // Delays contain the offset of two clocks, which may be anything.
        let sum: i128 = self.latest.iter().skip(skipped).map(|&delay| i128::from(delay)).sum();
        i64::try_from(sum.div_euclid(packets as i128)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_mean_of_the_latest_and_of_nothing_else() {
        let mut average = Average::new(50);
        for delay in 0..49 {
            average.sample(delay);
        }
        assert_eq!((average.mean(50), average.mean(51)), (None, None));
        assert_eq!(average.mean(4), Some((45 + 46 + 47 + 48) / 4));
        average.sample(49);
        assert_eq!((average.mean(50), average.mean(1_000), average.mean(0)), (Some(24), Some(24), Some(49)));
        for _ in 0..50 {
            average.sample(-1_000);
        }
        assert_eq!(average.mean(50), Some(-1_000));
    }

    #[test]
    fn no_offset_of_clocks_is_too_much() {
        let mut average = Average::new(4);
        for delay in [i64::MAX, i64::MAX, i64::MIN, i64::MIN] {
            average.sample(delay);
        }
        assert_eq!((average.mean(2), average.mean(4)), (Some(i64::MIN), Some(-1)));
    }
}
