//! The largest sample of the last rounds.

/// The maximum over the last `rounds` rounds. Besides the maximum it keeps two later, smaller
/// samples, which replace the maximum when it is too old. Linux's filter does the same
/// (`lib/win_minmax.c`, after Kathleen Nichols).
#[derive(Clone, Copy, Debug)]
pub(super) struct MaxFilter {
    rounds: u64,
    /// Value and round, falling values, rising rounds.
    best: [(f64, u64); 3],
}

impl MaxFilter {
    pub(super) const fn new(rounds: u64) -> Self {
        Self { rounds, best: [(0.0, 0); 3] }
    }

    /// Makes the filter forget samples older than `rounds` rounds from now on.
    pub(super) const fn set_rounds(&mut self, rounds: u64) {
        self.rounds = rounds;
    }

    pub(super) const fn get(&self) -> f64 {
        self.best[0].0
    }

    /// Multiplies all samples, for another unit.
    pub(super) fn scale(&mut self, factor: f64) {
        self.best.iter_mut().for_each(|(value, _)| *value *= factor);
    }

    /// Adds a sample of `round`, which is at least the previous one's.
    pub(super) fn add(&mut self, value: f64, round: u64) {
        let sample = (value, round);
        let [first, second, third] = self.best;
        if value >= first.0 || round.saturating_sub(third.1) > self.rounds {
            self.best = [sample; 3];
            return;
        }
        if value >= second.0 {
            self.best = [first, sample, sample];
        } else if value >= third.0 {
            self.best[2] = sample;
        }
        let age = round.saturating_sub(first.1);
        if age > self.rounds {
            // The largest is too old: those after it move up.
            let [_, second, third] = self.best;
            self.best = [second, third, sample];
            if round.saturating_sub(second.1) > self.rounds {
                self.best = [third, sample, sample];
            }
        } else if second.1 == first.1 && age > self.rounds / 4 {
            // Nothing later is kept for when the largest grows too old.
            self.best = [first, sample, sample];
        } else if third.1 == second.1 && age > self.rounds / 2 {
            self.best[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_is_forgotten_after_its_rounds() {
        let mut filter = MaxFilter::new(10);
        for (round, value) in [(1, 5.0), (2, 9.0), (3, 4.0), (6, 7.0), (9, 6.0)] {
            filter.add(value, round);
        }
        filter.add(1.0, 12);
        assert_eq!(filter.get().to_bits(), 9.0_f64.to_bits());
        filter.add(1.0, 13);
        assert_eq!(filter.get().to_bits(), 7.0_f64.to_bits(), "that of round 6");
        filter.add(1.0, 17);
        assert_eq!(filter.get().to_bits(), 6.0_f64.to_bits(), "that of round 9");
        filter.add(2.0, 40);
        assert_eq!(filter.get().to_bits(), 2.0_f64.to_bits());
    }
}
