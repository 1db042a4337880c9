//! The limits of a transfer while it runs: its timetable, SIGUSR2, which lifts them and has them
//! hold again, and whoever sets others.

use crate::messages;
use crate::output::{BothLimits, Event, Output};
use crate::signals::Signals;
use crate::units::RateLimits;
use anyhow::Result;
use byway_net::Owner;
use byway_transfer::host_status::StatusBoard;
use byway_transfer::limits::rate_timetable::RateTimetable;
use byway_transfer::{EventLoop, LimitChoice, LimitedDirection};
use std::time::Duration;

/// The bandwidth limits of a command, over all attempts of its transfer.
pub(super) struct LimitControl {
    choice: LimitChoice,
    direction: LimitedDirection,
    /// The limits that were applied last.
    limits: RateLimits,
}

impl LimitControl {
    /// The limits of `--bwlimit` in `direction`.
    ///
    /// # Errors
    /// They depend on the time of day, and the local time is not known.
    pub fn new(direction: LimitedDirection, timetable: &RateTimetable) -> Result<Self> {
        let choice = LimitChoice::new(direction, timetable.clone())?;
        Ok(Self { limits: choice.limits(), choice, direction })
    }

    /// The limits at the last look, with which a transfer begins.
    pub const fn limits(&self) -> RateLimits {
        self.limits
    }

    /// The highest limits of a day.
    pub fn highest(&self) -> RateLimits {
        self.choice.highest()
    }

    /// How long may be waited until the next look: `longest`, or until the timetable changes.
    pub fn patience(&self, longest: Duration) -> Duration {
        self.choice.until_change().map_or(longest, |change| change.min(longest))
    }

    /// Applies the limits of this moment, and emits an event if they changed.
    pub fn look<O: Owner>(&mut self, signals: &Signals, running: &EventLoop<O>, output: &mut Output) {
        if let Some(wish) = output.status().and_then(StatusBoard::take_limits) {
            self.choice.set(wish);
        }
        if let Some(event) = self.turn(signals.take_limit_toggle()) {
            running.set_limits(self.limits);
            output.emit(&event);
        }
    }

    /// From now on, signals and requests for other limits end the event loop's wait for the next
    /// event.
    pub fn interrupt<O: Owner>(signals: &Signals, running: &EventLoop<O>, output: &Output) {
        let interrupter = running.interrupter();
        if let Some(status) = output.status() {
            let interrupter = interrupter.clone();
            status.wake_by(move || interrupter.interrupt());
        }
        signals.wake_by(move || interrupter.interrupt());
    }

    /// Finds the limits of this moment. Returns the event to emit if they changed. `is_toggled`:
    /// whether SIGUSR2 came.
    fn turn(&mut self, is_toggled: bool) -> Option<Event> {
        if is_toggled && !self.choice.toggle() {
            return Some(Event::Warning { message: messages::transfer::NO_LIMIT_TO_LIFT.into() });
        }
        let limits = self.choice.limits();
        let is_other = std::mem::replace(&mut self.limits, limits) != limits;
        let (RateLimits { up, down }, is_both) = (limits, self.direction == LimitedDirection::Both);
        let directions = is_both.then_some(BothLimits { up, down });
        (is_toggled || is_other).then_some(Event::Limit { bytes_per_second: up.or(down), directions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_transfer::LimitWish;

    fn control(direction: LimitedDirection, limits: &str) -> LimitControl {
        LimitControl::new(direction, &limits.parse().unwrap()).unwrap()
    }

    /// Returns the limit in the event of one turn. `None`: the turn has no event.
    fn told(control: &mut LimitControl, is_toggled: bool) -> Option<Option<u64>> {
        match control.turn(is_toggled)? {
            Event::Limit { bytes_per_second, .. } => Some(bytes_per_second),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_set_replaces_the_option_and_is_told_once() {
        let mut control = control(LimitedDirection::Down, "5:7");
        assert_eq!((control.limits().down, control.highest().down), (Some(7), Some(7)));
        assert_eq!(told(&mut control, false), None);
        control.choice.set(LimitWish::Set(RateLimits { up: Some(1), down: Some(9) }));
        assert_eq!(control.limits().down, Some(7), "until the next look");
        assert_eq!(told(&mut control, false), Some(Some(9)));
        assert_eq!((told(&mut control, false), control.limits().down), (None, Some(9)));
        assert_eq!(told(&mut control, true), Some(None));
        assert_eq!(told(&mut control, true), Some(Some(9)));
        control.choice.set(LimitWish::Set(RateLimits::default()));
        assert_eq!(told(&mut control, false), Some(None));
        assert!(matches!(control.turn(true), Some(Event::Warning { .. })));
        control.choice.set(LimitWish::Own);
        assert_eq!(told(&mut control, false), Some(Some(7)));
    }

    #[test]
    fn a_forward_tells_both_directions() {
        let mut control = control(LimitedDirection::Both, "off:7");
        control.choice.set(LimitWish::Set(RateLimits { up: None, down: Some(8) }));
        let line = control.turn(false).unwrap().to_line();
        assert!(line.contains(r#""bytes_per_second":8,"directions":{"up":null,"down":8}"#), "{line}");
        control.choice.set(LimitWish::Set(RateLimits { up: Some(2), down: None }));
        let line = control.turn(false).unwrap().to_line();
        assert!(line.contains(r#""bytes_per_second":2,"directions":{"up":2,"down":null}"#), "{line}");
    }

    #[cfg(feature = "local-time")]
    #[test]
    fn the_clock_changes_the_limits_of_a_timetable() {
        let minutes = (0..1440).map(|it| format!("{:02}:{:02},{}", it / 60, it % 60, 1 + it));
        let every_minute: Vec<String> = minutes.collect();
        let limits = control(LimitedDirection::Up, &every_minute.join(" ")).limits();
        assert!(limits.up.is_some() && limits.down.is_none());
    }
}
