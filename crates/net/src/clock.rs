//! The clock of the real world. Machines see only what it says: nanoseconds since the clock was
//! made.

use byway_wire::Instant;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// `CLOCK_MONOTONIC`, counted in nanoseconds from the moment the clock was made (its epoch). Copies
/// of a clock share its epoch, so instants from copies of one clock can be compared.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: u64,
}

impl Clock {
    /// A clock whose epoch is now.
    #[must_use]
    pub fn new() -> Self {
        Self { epoch: read(ClockId::Monotonic) }
    }

    /// The time. Never goes back. Stands still while the host is suspended.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant::from_nanos(read(ClockId::Monotonic).saturating_sub(self.epoch))
    }

    /// The time, and the wall clock of the same moment in nanoseconds of Unix time, to translate
    /// the kernel's receive timestamps. `None` if the readings took 20 µs or more, because the
    /// thread lost the processor between them.
    pub(crate) fn with_wall(&self) -> Option<(Instant, u64)> {
        let before = self.now();
        let wall = read(ClockId::Realtime);
        let after = self.now();
        (after.since(before).as_nanos() < SAME_MOMENT_NANOS).then_some((before, wall))
    }
}

/// Clock readings this close count as simultaneous. Three readings take 0.1 µs if the thread is not
/// interrupted.
const SAME_MOMENT_NANOS: u128 = 20_000;

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// Unix time in whole seconds, zero before 1970. It steps when the clock is set, so never measure
/// with it.
#[must_use]
pub fn unix_seconds() -> u64 {
    read(ClockId::Realtime) / 1_000_000_000
}

/// Unix time in milliseconds, as [`unix_seconds`].
#[must_use]
pub fn unix_millis() -> u64 {
    read(ClockId::Realtime) / 1_000_000
}

fn read(id: ClockId) -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(id);
    let (seconds, nanos) = (u64::try_from(tv_sec).unwrap_or(0), u64::try_from(tv_nsec).unwrap_or(0));
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn starts_at_its_epoch_and_agrees_with_the_standard_library() {
        let clock = Clock::new();
        assert!(clock.now().since(Instant::ZERO) < Duration::from_secs(1));

        let (from, elapsed) = (clock.now(), std::time::Instant::now());
        while elapsed.elapsed() < Duration::from_millis(5) {
            std::hint::spin_loop();
        }
        let counted = clock.now().since(from);
        assert!(counted >= Duration::from_millis(5) && counted < Duration::from_secs(1), "{counted:?}");
    }

    #[test]
    fn copies_share_the_epoch() {
        let clock = Clock::new();
        let copy = clock;
        let (first, second, third) = (clock.now(), copy.now(), clock.now());
        assert!(first <= second && second <= third);
    }

    #[test]
    fn wall_clock_is_unix_time() {
        let expected = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        assert!(unix_seconds().abs_diff(expected) <= 1 && (unix_millis() / 1_000).abs_diff(expected) <= 1);
        let (_, wall) = (0..100).find_map(|_| Clock::new().with_wall()).unwrap();
        assert!((wall / 1_000_000_000).abs_diff(expected) <= 1);
    }
}
