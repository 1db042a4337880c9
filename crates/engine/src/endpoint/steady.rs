//! Time that does not step. A host that sleeps, or whose clock is set forward by an hour, must not make every timer of
//! every connection fire at once: what the driver was late by, beyond what scheduling explains, never happened.

use byway_wire::{Duration, Instant};

/// A driver that wakes a machine this late did not oversleep: its clock stepped.
const STEP: Duration = Duration::from_secs(5);

/// The machine's own time: the driver's, less what it skipped.
#[derive(Clone, Copy, Debug, Default)]
pub struct Steady {
    skipped: Duration,
}

impl Steady {
    /// The machine's time at the driver's `now`, when the earliest thing it waits for was due at `deadline` (its own time).
    pub fn at(&mut self, now: Instant, deadline: Option<Instant>) -> Instant {
        let own = now - self.skipped;
        if let Some(deadline) = deadline
            && own > deadline + STEP
        {
            self.skipped += own.since(deadline);
            return deadline;
        }
        own
    }

    /// A time of the driver's on the machine's clock, without looking for a step.
    #[must_use]
    pub fn own(&self, driver: Instant) -> Instant {
        driver - self.skipped
    }

    /// A time of the machine's on the driver's clock.
    #[must_use]
    pub fn driver(&self, own: Instant) -> Instant {
        own + self.skipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_that_never_happened() {
        let mut steady = Steady::default();
        let deadline = Instant::from_millis(1_010);
        assert_eq!(steady.at(Instant::from_millis(1_000), Some(deadline)), Instant::from_millis(1_000));
        assert_eq!(steady.at(Instant::from_millis(1_500), Some(deadline)), Instant::from_millis(1_500));
        let hour = Duration::from_secs(3600);
        assert_eq!(steady.at(Instant::from_millis(1_000) + hour, Some(deadline)), deadline);
        assert_eq!(steady.own(Instant::from_millis(1_100) + hour), Instant::from_millis(1_110));
        assert_eq!(steady.driver(deadline), Instant::from_millis(1_000) + hour);
    }
}
