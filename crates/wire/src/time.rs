//! Time as machines are told it: integer nanoseconds since an epoch that only the driver knows.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

pub use core::time::Duration;

/// A point in time, in nanoseconds since the driver's epoch (584 years fit). Never goes back within
/// one driver.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The time at which the driver's clock began.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens: the deadline of a thing that waits for nothing.
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the epoch.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The instant `micros` microseconds after the epoch.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// The instant `millis` milliseconds after the epoch.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the epoch.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds since the epoch.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Seconds since the epoch, for people and figures.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time since `earlier`. Zero if `earlier` is later than `self`.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Nanoseconds from `other` to `self`, negative if `other` is later; saturates at ±292 years.
    #[must_use]
    pub const fn signed_nanos_since(self, other: Self) -> i64 {
        let wrapped = self.0.wrapping_sub(other.0) as i64;
        if self.0 >= other.0 {
            if wrapped < 0 { i64::MAX } else { wrapped }
        } else if wrapped >= 0 {
            i64::MIN
        } else {
            wrapped
        }
    }

    /// The instant `nanos` nanoseconds later, or earlier if negative; saturates at both ends.
    #[must_use]
    pub const fn offset_nanos(self, nanos: i64) -> Self {
        Self(self.0.saturating_add_signed(nanos))
    }
}

/// Nanoseconds of a duration, saturating at 584 years.
#[must_use]
pub const fn nanos(duration: Duration) -> u64 {
    let wide = duration.as_nanos();
    if wide > u64::MAX as u128 { u64::MAX } else { wide as u64 }
}

/// Nanoseconds of a duration as a number that may be subtracted from, saturating at 292 years.
#[must_use]
pub const fn signed_nanos(duration: Duration) -> i64 {
    let wide = duration.as_nanos();
    if wide > i64::MAX as u128 { i64::MAX } else { wide as i64 }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(nanos(rhs)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, rhs: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(rhs)))
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_saturate_instead_of_wrapping() {
        let (early, late) = (Instant::from_nanos(5), Instant::FAR_FUTURE);
        assert_eq!(late.signed_nanos_since(early), i64::MAX);
        assert_eq!(early.signed_nanos_since(late), i64::MIN);
        assert_eq!(early.since(late), Duration::ZERO);
        assert_eq!(late + Duration::from_secs(1), Instant::FAR_FUTURE);
        assert_eq!(early - Duration::from_secs(1), Instant::ZERO);
        assert_eq!(Instant::from_nanos(7).signed_nanos_since(early), 2);
        assert_eq!(early.signed_nanos_since(Instant::from_nanos(7)), -2);
        assert_eq!(
            (signed_nanos(Duration::MAX), signed_nanos(Duration::from_secs(1))),
            (i64::MAX, 1_000_000_000)
        );
    }
}
