//! Time without steps. The driver (the I/O loop) tells the endpoint the time. If the host sleeps,
//! or its clock is set forward by an hour, the timers of all connections must not fire at once.

use byway_wire::{Duration, Instant};

/// The lateness from which a driver did not oversleep: its clock stepped.
const MIN_CLOCK_STEP: Duration = Duration::from_secs(5);

/// The endpoint's own time: the driver's time minus `skipped`. If the driver's clock jumps more
/// than [`MIN_CLOCK_STEP`] beyond the next deadline, nobody knows how much time passed. Then the
/// own time advances by [`MIN_CLOCK_STEP`], or to the deadline if this is earlier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SteadyClock {
    skipped: Duration,
    /// The latest of the machine's times seen.
    seen: Option<Instant>,
}

impl SteadyClock {
    /// A clock that has skipped nothing.
    pub const fn new() -> Self {
        Self { skipped: Duration::ZERO, seen: None }
    }

    /// Converts `now`, a time of the driver's clock, to the endpoint's own time, without jumps.
    /// `deadline`: the endpoint's earliest deadline, in own time. If `now` is more than 5 s beyond
    /// it, the driver's clock jumped. Then own time advances at most to `deadline`.
    pub fn at(&mut self, now: Instant, deadline: Option<Instant>) -> Instant {
        let mut own = now - self.skipped;
        if let Some(deadline) = deadline
            && own > deadline + MIN_CLOCK_STEP
        {
            let believed = self.seen.map_or(deadline, |seen| deadline.min(seen + MIN_CLOCK_STEP).max(seen));
            self.skipped += own.since(believed);
            own = believed;
        }
        self.seen = self.seen.max(Some(own));
        own
    }

    /// A time of the driver's that is past on the machine's clock, without looking for a step.
    pub fn own(&self, driver: Instant) -> Instant {
        driver - self.skipped
    }

    /// A time of the machine's on the driver's clock.
    pub fn driver(&self, own: Instant) -> Instant {
        own + self.skipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_that_never_happened() {
        let mut steady = SteadyClock::new();
        let deadline = Instant::from_millis(1_010);
        assert_eq!(steady.at(Instant::from_millis(1_000), Some(deadline)), Instant::from_millis(1_000));
        assert_eq!(steady.at(Instant::from_millis(1_005), Some(deadline)), Instant::from_millis(1_005));
        let hour = Duration::from_secs(3600);
        assert_eq!(steady.at(Instant::from_millis(1_000) + hour, Some(deadline)), deadline);
        assert_eq!(steady.own(Instant::from_millis(1_100) + hour), Instant::from_millis(1_110));
        assert_eq!(steady.driver(deadline), Instant::from_millis(1_000) + hour);
    }

    #[test]
    fn a_step_does_not_reach_a_far_deadline() {
        let mut steady = SteadyClock::new();
        let far = Instant::from_millis(11_000);
        assert_eq!(steady.at(Instant::from_millis(1_000), Some(far)), Instant::from_millis(1_000));
        let stepped = Instant::from_millis(1_020) + Duration::from_secs(3600);
        let own = steady.at(stepped, Some(far));
        assert_eq!(own, Instant::from_millis(6_000));
        // What was due is still to come, and a wake at that time finds it due.
        let due = steady.driver(far);
        assert_eq!(due, stepped + Duration::from_secs(5));
        assert_eq!(steady.at(due, Some(far)), far);
    }
}
