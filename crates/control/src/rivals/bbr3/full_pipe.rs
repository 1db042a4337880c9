//! Whether the path is full: more sent brings no more delivered (5.3.1.2).

/// The factor by which the rate must exceed the remembered one to count as growth.
const MIN_GROWTH_FACTOR: f64 = 1.25;
/// Rounds without such growth after which the path counts as full.
const PLATEAU_ROUNDS: u32 = 3;

/// Looks for a plateau of the delivery rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    rate: f64,
    rounds: u32,
    now: bool,
    ever: bool,
}

impl FullPipe {
    /// Whether the path was full since the last [`restart`](Self::restart).
    pub(super) const fn is_full(&self) -> bool {
        self.now
    }

    /// Whether the path was ever full.
    pub(super) const fn was_full(&self) -> bool {
        self.ever
    }

    /// Sets whether the path was ever full, for a reason other than a plateau.
    pub(super) const fn set_was_full(&mut self, ever: bool) {
        self.ever = ever;
    }

    /// Looks again, from `rate` on.
    pub(super) const fn restart(&mut self, rate: f64) {
        *self = Self { rate, rounds: 0, now: false, ever: self.ever };
    }

    /// A round ended, with this delivery rate, and the application limited nothing.
    pub(super) fn end_round(&mut self, rate: f64) {
        if self.now {
            return;
        }
        if rate >= self.rate * MIN_GROWTH_FACTOR {
            self.restart(rate);
            return;
        }
        self.rounds += 1;
        self.now = self.rounds >= PLATEAU_ROUNDS;
        self.ever |= self.now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_rounds_without_a_quarter_more_fill_the_path() {
        let mut pipe = FullPipe::default();
        for rate in [10.0, 20.0, 24.0, 24.9, 25.0, 26.0, 31.0] {
            pipe.end_round(rate);
            assert!(!pipe.is_full(), "{rate}");
        }
        pipe.end_round(31.2);
        assert!(pipe.is_full() && pipe.was_full());
        pipe.restart(31.2);
        assert!(!pipe.is_full() && pipe.was_full());
    }
}
