//! The largest delivery rate of this cycle of ProbeBW and of the one before (5.5.3, 5.5.6).

/// The largest delivery rate of two cycles, in bytes per second (`MaxBwFilterLen` is 2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBandwidth {
    before: f64,
    current: f64,
}

impl MaxBandwidth {
    pub(super) const fn get(&self) -> f64 {
        self.before.max(self.current)
    }

    pub(super) const fn add(&mut self, rate: f64) {
        self.current = self.current.max(rate);
    }

    /// Begins a new cycle. One that brought no sample is none.
    pub(super) fn advance(&mut self) {
        if self.current > 0.0 {
            (self.before, self.current) = (self.current, 0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_kept_for_the_cycle_after_its_own() {
        let mut rate = MaxBandwidth::default();
        rate.add(9.0);
        rate.advance();
        rate.advance();
        rate.add(4.0);
        assert_eq!(rate.get() as u32, 9, "a cycle without samples does not count");
        rate.advance();
        assert_eq!(rate.get() as u32, 4);
    }
}
