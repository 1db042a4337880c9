//! Which limits hold for a transfer that runs: those of its timetable, what somebody set since, or
//! none while they are lifted.

use crate::limits::local_clock::{LocalClock, LocalClockError};
use crate::limits::rate_timetable::RateTimetable;
use crate::limits::time_of_day::LocalTime;
use crate::units::RateLimits;
use std::time::Duration;

/// The directions that a program limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedDirection {
    /// Data that are sent.
    Up,
    /// Data that are received.
    Down,
    /// Each of both.
    Both,
}

impl LimitedDirection {
    /// Returns the limits of this direction only.
    const fn of(self, limits: RateLimits) -> RateLimits {
        match self {
            Self::Up => RateLimits { down: None, ..limits },
            Self::Down => RateLimits { up: None, ..limits },
            Self::Both => limits,
        }
    }
}

/// A request to change the limits of a running transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitWish {
    /// To use these limits in place of the timetable.
    Set(RateLimits),
    /// To use the limits of the timetable again.
    Own,
}

/// The limits of a transfer, from a timetable, from a request, or lifted.
#[derive(Clone, Debug)]
pub struct LimitChoice {
    direction: LimitedDirection,
    timetable: RateTimetable,
    /// The clock, where the timetable needs one.
    clock: Option<LocalClock>,
    /// The limits that a request set in place of the timetable.
    set: Option<RateLimits>,
    is_lifted: bool,
}

impl LimitChoice {
    /// The limits of `timetable` in `direction`, by the clock of this host.
    ///
    /// # Errors
    /// The limits depend on the time of day, and the local time is not known.
    pub fn new(direction: LimitedDirection, timetable: RateTimetable) -> Result<Self, LocalClockError> {
        let clock = timetable.is_daily().then(LocalClock::open).transpose()?;
        Ok(Self { direction, timetable, clock, set: None, is_lifted: false })
    }

    /// The limits that hold now.
    #[must_use]
    pub fn limits(&self) -> RateLimits {
        self.limits_at(self.clock.map_or(LocalTime::new(0), LocalClock::now))
    }

    fn limits_at(&self, now: LocalTime) -> RateLimits {
        if self.is_lifted {
            return RateLimits::default();
        }
        self.direction.of(self.set.unwrap_or_else(|| self.timetable.limits_at(now.time_of_day())))
    }

    /// Returns the time until the timetable applies other limits, if nobody sets the clock. `None`:
    /// its limits never change, or it is not heeded at present.
    #[must_use]
    pub fn until_change(&self) -> Option<Duration> {
        let clock = self.clock.filter(|_| self.set.is_none() && !self.is_lifted)?;
        self.timetable.until_change(clock.now())
    }

    /// Returns the highest limits in the timetable.
    #[must_use]
    pub fn highest(&self) -> RateLimits {
        self.direction.of(self.timetable.highest())
    }

    /// Changes who decides the limits from now on. This also ends a lifting.
    pub const fn set(&mut self, wish: LimitWish) {
        let set = match wish {
            LimitWish::Set(limits) => Some(limits),
            LimitWish::Own => None,
        };
        (self.set, self.is_lifted) = (set, false);
    }

    /// Lifts the limits, or applies them again. Returns whether there are any limits.
    #[must_use]
    pub fn toggle(&mut self) -> bool {
        let is_limited = self.is_lifted || self.limits() != RateLimits::default();
        self.is_lifted = is_limited && !self.is_lifted;
        is_limited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(direction: LimitedDirection, limits: &str) -> LimitChoice {
        let timetable = limits.parse().unwrap();
        LimitChoice { direction, timetable, clock: None, set: None, is_lifted: false }
    }

    fn up(rate: u64) -> RateLimits {
        RateLimits { up: Some(rate), down: None }
    }

    #[test]
    fn each_direction_has_its_own_limit() {
        let limits = |direction| choice(direction, "5:7").limits();
        assert_eq!(limits(LimitedDirection::Up), up(5));
        assert_eq!(limits(LimitedDirection::Down), RateLimits { up: None, down: Some(7) });
        assert_eq!(limits(LimitedDirection::Both), RateLimits { up: Some(5), down: Some(7) });
    }

    #[test]
    fn limits_are_lifted_and_hold_again() {
        let mut choice = choice(LimitedDirection::Up, "00:00,5 08:00,6");
        let morning = LocalTime::new(8 * 3_600);
        assert_eq!((choice.limits(), choice.limits_at(morning)), (up(5), up(6)));
        assert!(choice.toggle());
        // Nor does the timetable set them while they are lifted.
        assert_eq!((choice.limits(), choice.limits_at(morning)), Default::default());
        assert!(choice.toggle());
        assert_eq!(choice.limits_at(morning), up(6));
    }

    #[test]
    fn what_is_set_holds_in_place_of_the_timetable() {
        let mut choice = choice(LimitedDirection::Up, "00:00,5 08:00,6");
        choice.set(LimitWish::Set(RateLimits { up: Some(9), down: Some(1) }));
        assert_eq!((choice.limits(), choice.limits_at(LocalTime::new(8 * 3_600))), (up(9), up(9)));
        assert!(choice.toggle());
        choice.set(LimitWish::Set(up(3)));
        assert_eq!(choice.limits(), up(3), "who sets a limit wants it now");
        choice.set(LimitWish::Set(RateLimits::default()));
        assert!(!choice.toggle(), "there is nothing to lift");
        choice.set(LimitWish::Set(up(4)));
        assert!(choice.toggle() && choice.limits() == RateLimits::default());
        assert!(choice.toggle() && choice.limits() == up(4));
        choice.set(LimitWish::Own);
        assert_eq!(choice.limits_at(LocalTime::new(8 * 3_600)), up(6));
    }

    #[cfg(feature = "local-time")]
    #[test]
    fn the_next_change_is_that_of_a_timetable_which_is_heeded() {
        let timetable = "00:00,5 08:00,6".parse().unwrap();
        let mut choice = LimitChoice::new(LimitedDirection::Up, timetable).unwrap();
        assert!(choice.until_change().is_some_and(|change| change <= Duration::from_hours(16)));
        choice.set(LimitWish::Set(up(3)));
        assert_eq!(choice.until_change(), None);
        choice.set(LimitWish::Own);
        assert!(choice.until_change().is_some() && choice.toggle());
        assert_eq!(choice.until_change(), None);
        assert_eq!(
            LimitChoice::new(LimitedDirection::Up, "5".parse().unwrap()).unwrap().until_change(),
            None
        );
    }

    #[test]
    fn where_nothing_is_limited_nothing_is_lifted() {
        assert!(!choice(LimitedDirection::Up, "off").toggle());
        assert!(!choice(LimitedDirection::Up, "off:5").toggle());
        let choice = LimitChoice::new(LimitedDirection::Up, "5".parse().unwrap()).unwrap();
        assert_eq!((choice.limits(), choice.highest(), choice.clock.is_none()), (up(5), up(5), true));
    }
}
