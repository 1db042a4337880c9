//! Means of delays (HIR, 7.1): of the latest ones, or with weights that decay exponentially.

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

/// The exponentially weighted mean of a path's delays. A delay that is `age` packets old has a
/// weight in proportion to `(1 - gain)^age`. The paper names no gain. Here it is 2/(n + 1). With it
/// the delays are on average as old as those in a mean of the latest n.
#[derive(Clone, Copy, Debug)]
pub struct ExponentialAverage {
    /// The first delay, in nanoseconds. Only differences from it are averaged, since delays contain
    /// the offset of two clocks, which may be anything.
    first: i64,
    /// The mean less the first delay, in nanoseconds.
    deviation: f64,
    /// Delays taken so far, at most `most`.
    count: u32,
    most: u32,
}

impl ExponentialAverage {
    /// A mean that is known once `most` delays are, at least one.
    #[must_use]
    pub fn new(most: u32) -> Self {
        Self { first: 0, deviation: 0.0, count: 0, most: most.max(1) }
    }

    /// Takes a delay into account, with the gain of a mean of `packets` delays, at most `most`.
    /// Until so many delays are known, each has the same weight.
    pub fn sample(&mut self, delay: i64, packets: f64) {
        if self.count == 0 {
            (self.first, self.deviation) = (delay, 0.0);
        }
        self.count = self.count.saturating_add(1).min(self.most);
        let gain = 2.0 / (packets.clamp(1.0, f64::from(self.most)) + 1.0);
        let gain = gain.max(1.0 / f64::from(self.count));
        self.deviation += (delay.saturating_sub(self.first) as f64 - self.deviation) * gain;
    }

    /// Forgets all delays.
    pub const fn clear(&mut self) {
        self.count = 0;
    }

    /// The mean. `None` while fewer than `packets` delays are known, or fewer than `most` if that
    /// is less, because a mean of few delays has more jitter.
    #[must_use]
    pub fn mean(&self, packets: f64) -> Option<i64> {
        let is_known = f64::from(self.count) >= packets.clamp(1.0, f64::from(self.most));
        is_known.then(|| self.first.saturating_add(self.deviation as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_decay_by_the_gain() {
        let mut average = ExponentialAverage::new(3);
        average.sample(1_000, 3.0);
        average.sample(1_000, 3.0);
        assert_eq!(average.mean(3.0), None, "two of three");
        average.sample(1_000, 3.0);
        assert_eq!(average.mean(3.0), Some(1_000));
        // The gain of three packets is 1/2.
        for expected in [1_400, 1_600, 1_700, 1_750] {
            average.sample(1_800, 3.0);
            assert_eq!(average.mean(3.0), Some(expected));
        }
        average.clear();
        assert_eq!(average.mean(1.0), None);
        average.sample(7, 1.0);
        assert_eq!((average.mean(1.0), average.mean(3.0)), (Some(7), None));
    }

    /// 50 packets after a step, a mean over 50 packets shows the whole step. The exponential mean
    /// shows 1 - (49/51)^50 of it.
    #[test]
    fn after_a_step_it_lacks_a_seventh_when_a_window_has_passed() {
        let mut average = ExponentialAverage::new(50);
        (0..200).for_each(|_| average.sample(0, 50.0));
        (0..50).for_each(|_| average.sample(1_000_000, 50.0));
        let mean = average.mean(50.0).expect("enough delays");
        assert!((mean - 864_700).abs() < 1_000, "{mean}");
    }

    #[test]
    fn the_first_delays_have_the_same_weight() {
        let mut average = ExponentialAverage::new(50);
        for delay in [i64::MIN, i64::MIN + 100, i64::MIN + 200] {
            average.sample(delay, 50.0);
        }
        assert_eq!(average.mean(3.0), Some(i64::MIN + 100), "no offset of clocks is too much");
    }

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
