//! A node's clock: it starts at some time, runs a little fast or slow, and may jump ahead.

use byway_wire::time::nanos;
use byway_wire::{Duration, Instant};

const PARTS_PER_BILLION: i128 = 1_000_000_000;

/// A node's clock as a function of the world's time. It never goes back, as no [`Instant`] of a
/// driver does.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    offset: u64,
    drift: i64,
    /// World time of each jump and the sum of all jumps up to it, in order of time.
    steps: Vec<(Instant, u64)>,
}

impl Clock {
    /// A clock that shows the world's time.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the clock's time at the beginning of the simulation.
    #[must_use]
    pub fn with_offset(mut self, offset: Duration) -> Self {
        self.offset = nanos(offset);
        self
    }

    /// Runs fast (or slow, if negative) by `ppm` parts per million. Held to ±500 000, so that it
    /// always advances.
    #[must_use]
    pub fn with_drift_ppm(mut self, ppm: f64) -> Self {
        self.drift = (ppm.clamp(-500_000.0, 500_000.0) * 1_000.0) as i64;
        self
    }

    /// Jumps ahead by `by` at the world's time `at`, as after a suspend.
    #[must_use]
    pub fn with_step(mut self, at: Instant, by: Duration) -> Self {
        let place = self.steps.partition_point(|&(other, _)| other <= at);
        let before = place.checked_sub(1).and_then(|last| self.steps.get(last)).map_or(0, |step| step.1);
        self.steps.insert(place, (at, before));
        for (_, sum) in self.steps.iter_mut().skip(place) {
            *sum = sum.saturating_add(nanos(by));
        }
        self
    }

    /// The clock's time at the simulated time `world`.
    #[must_use]
    #[inline]
    pub fn local(&self, world: Instant) -> Instant {
        if self.shows_the_worlds_time() {
            return world;
        }
        let place = self.steps.partition_point(|&(at, _)| at <= world);
        let jumped = place.checked_sub(1).and_then(|last| self.steps.get(last)).map_or(0, |step| step.1);
        self.shown(world, jumped)
    }

    /// The earliest time of the world at which the clock shows `local` or later.
    #[must_use]
    #[inline]
    pub fn world(&self, local: Instant) -> Instant {
        if local == Instant::FAR_FUTURE || self.shows_the_worlds_time() {
            return local;
        }
        let mut begins = Instant::ZERO;
        let mut jumped = 0;
        for &(next, sum) in &self.steps {
            let candidate = self.inverse(local, jumped).max(begins);
            if candidate < next {
                return candidate;
            }
            (begins, jumped) = (next, sum);
        }
        self.inverse(local, jumped).max(begins)
    }

    /// Whether the clock has no offset, drift or step, as is usual. It is read several times per
    /// event.
    fn shows_the_worlds_time(&self) -> bool {
        self.offset == 0 && self.drift == 0 && self.steps.is_empty()
    }

    fn shown(&self, world: Instant, jumped: u64) -> Instant {
        let elapsed = if self.drift == 0 {
            world.as_nanos()
        } else {
            let wide = i128::from(world.as_nanos()) * (PARTS_PER_BILLION + i128::from(self.drift))
                / PARTS_PER_BILLION;
            u64::try_from(wide).unwrap_or(u64::MAX)
        };
        Instant::from_nanos(elapsed.saturating_add(self.offset).saturating_add(jumped))
    }

    /// The earliest world time that shows `local`, if the clock had jumped by `jumped` all along.
    fn inverse(&self, local: Instant, jumped: u64) -> Instant {
        let elapsed = local.as_nanos().saturating_sub(self.offset).saturating_sub(jumped);
        if self.drift == 0 {
            return Instant::from_nanos(elapsed);
        }
        // shown() rounds down, so the earliest time that reaches `elapsed` is the quotient rounded
        // up.
        let pace = PARTS_PER_BILLION + i128::from(self.drift);
        let wide = (i128::from(elapsed) * PARTS_PER_BILLION + pace - 1) / pace;
        Instant::from_nanos(u64::try_from(wide).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_fast_clock_that_jumps() {
        let hour = Duration::from_secs(3_600);
        let clock = Clock::new()
            .with_offset(Duration::from_secs(5))
            .with_drift_ppm(50.0)
            .with_step(Instant::from_millis(10_000), hour);
        assert_eq!(clock.local(Instant::ZERO), Instant::from_millis(5_000));
        assert_eq!(clock.local(Instant::from_nanos(9_999_999_999)), Instant::from_nanos(15_000_499_998));
        assert_eq!(clock.local(Instant::from_millis(10_000)), Instant::from_nanos(15_000_500_000) + hour);
        // A deadline that the jump passes over comes due at the jump.
        assert_eq!(clock.world(Instant::from_millis(1_000_000)), Instant::from_millis(10_000));
        assert_eq!(clock.world(Instant::FAR_FUTURE), Instant::FAR_FUTURE);
        // 50 ppm are 30 ms in ten minutes.
        let ten_minutes = Instant::from_millis(600_000);
        let plain = Clock::new().with_drift_ppm(50.0);
        assert_eq!(plain.local(ten_minutes).since(ten_minutes), Duration::from_millis(30));
    }

    proptest! {
        #[test]
        fn deadlines_come_back_to_the_earliest_time_that_shows_them(
            offset in 0_u64..1 << 40,
            ppm in -500_000.0..500_000.0_f64,
            steps in proptest::collection::vec((0_u64..1 << 41, 0_u64..1 << 42), 0..4),
            deadline in 0_u64..1 << 43,
            time in 0_u64..1 << 42,
        ) {
            let clock = steps.iter().fold(
                Clock::new().with_offset(Duration::from_nanos(offset)).with_drift_ppm(ppm),
                |clock, &(at, by)| clock.with_step(Instant::from_nanos(at), Duration::from_nanos(by)),
            );
            let deadline = Instant::from_nanos(deadline);
            let due = clock.world(deadline);
            prop_assert!(clock.local(due) >= deadline);
            if due > Instant::ZERO {
                prop_assert!(clock.local(due.offset_nanos(-1)) < deadline);
            }
            let time = Instant::from_nanos(time);
            prop_assert!(clock.local(time) <= clock.local(time.offset_nanos(1)));
        }
    }
}
