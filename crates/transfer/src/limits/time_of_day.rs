//! Times of day, as a local clock shows them.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Seconds of a day on a clock.
const DAY_SECONDS: i64 = 86_400;

/// The text is no time of day.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is no time of day: write 00:00 to 23:59 with two digits each, such as 08:00")]
pub struct TimeOfDayError(String);

/// A time of day in whole minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeOfDay {
    /// Minutes since 00:00, below 1440.
    minute: u16,
}

impl FromStr for TimeOfDay {
    type Err = TimeOfDayError;

    /// `HH:MM`, from 00:00 to 23:59.
    fn from_str(text: &str) -> Result<Self, TimeOfDayError> {
        let number = |digits: &str, end: u16| {
            let is_plain = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_digit());
            digits.parse::<u16>().ok().filter(|number| is_plain && *number < end)
        };
        let minute = text.split_once(':').and_then(|(hours, minutes)| {
            let (hour, minute) = (number(hours, 24)?, number(minutes, 60)?);
            Some(hour * 60 + minute)
        });
        minute.map(|minute| Self { minute }).ok_or_else(|| TimeOfDayError(text.to_owned()))
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.minute / 60, self.minute % 60)
    }
}

/// The date and time that a local clock shows at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    /// Seconds from the beginning of the year 1970 on this clock.
    shown: i64,
    /// The same for timetables: an hour that comes twice counts once.
    counted: i64,
}

impl LocalTime {
    /// A clock that shows `shown` seconds after the beginning of the year 1970.
    #[must_use]
    pub const fn new(shown: i64) -> Self {
        Self { shown, counted: shown }
    }

    /// The same moment, in a time that comes twice, since the clock was set back for the winter.
    /// `before` is the last second that it showed before that. Timetables take this second for all
    /// of the second time. So an entry that has come does not come again.
    #[must_use]
    pub const fn second_time(self, before: i64) -> Self {
        Self { counted: before, ..self }
    }

    /// The time of day for timetables.
    #[must_use]
    pub const fn time_of_day(self) -> TimeOfDay {
        // Below 1440.
        TimeOfDay { minute: (self.counted.rem_euclid(DAY_SECONDS) / 60) as u16 }
    }

    /// Seconds until the clock shows `time`, from 1 to a day.
    #[must_use]
    pub const fn seconds_until(self, time: TimeOfDay) -> u64 {
        let ahead = (time.minute as i64 * 60 - self.counted).rem_euclid(DAY_SECONDS);
        (if ahead == 0 { DAY_SECONDS } else { ahead }) as u64
    }
}

/// Waits until a clock shows a time of day.
#[derive(Clone, Copy, Debug)]
pub struct Alarm {
    at: TimeOfDay,
    /// The clock's time at the last check.
    looked: LocalTime,
    has_rung: bool,
}

impl Alarm {
    /// An alarm for the next time after `now` that the clock shows `at`.
    #[must_use]
    pub const fn new(at: TimeOfDay, now: LocalTime) -> Self {
        Self { at, looked: now, has_rung: false }
    }

    /// Whether the clock, which shows `now`, has shown the time since the alarm was set. A clock
    /// that leaps over the time has shown it. One that is set back shows it later.
    pub const fn has_rung(&mut self, now: LocalTime) -> bool {
        let looked = LocalTime::new(self.looked.shown);
        let next = looked.shown + looked.seconds_until(self.at) as i64;
        self.has_rung |= now.shown >= next;
        self.looked = now;
        self.has_rung
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> TimeOfDay {
        text.parse().unwrap()
    }

    /// A day's second.
    fn shows(day: i64, time: &str, second: i64) -> LocalTime {
        LocalTime::new(day * DAY_SECONDS + i64::from(at(time).minute) * 60 + second)
    }

    #[test]
    fn a_time_of_day_has_two_digits_twice() {
        for text in ["00:00", "08:05", "23:59"] {
            assert_eq!(at(text).to_string(), text);
        }
        for text in ["24:00", "8:00", "08:0", "08:60", "8", "", ":", "08:00:00", "+8:00", "08:-1", "٠٨:٠٠"]
        {
            let told = text.parse::<TimeOfDay>().unwrap_err().to_string();
            assert!(told.starts_with(&format!("`{text}` is no time of day")), "{told}");
        }
    }

    #[test]
    fn an_alarm_rings_when_the_clock_passes_its_time() {
        let mut alarm = Alarm::new(at("07:00"), shows(3, "06:59", 59));
        assert!(!alarm.has_rung(shows(3, "06:59", 59)));
        assert!(alarm.has_rung(shows(3, "07:00", 0)) && alarm.has_rung(shows(3, "06:00", 0)));
        // What it shows at the beginning is not the next time.
        let mut alarm = Alarm::new(at("07:00"), shows(3, "07:00", 0));
        assert!(!alarm.has_rung(shows(3, "07:00", 30)) && !alarm.has_rung(shows(4, "06:59", 59)));
        assert!(alarm.has_rung(shows(4, "07:00", 1)));
        // A host that slept.
        let mut alarm = Alarm::new(at("07:00"), shows(3, "22:00", 0));
        assert!(alarm.has_rung(shows(9, "03:00", 0)));
        assert!(Alarm::new(at("07:00"), shows(-3, "06:59", 0)).has_rung(shows(-3, "07:00", 0)));
    }

    #[test]
    fn an_alarm_heeds_a_clock_that_is_set() {
        let mut alarm = Alarm::new(at("02:30"), shows(3, "01:59", 59));
        assert!(alarm.has_rung(shows(3, "03:00", 0)), "02:30 does not exist");
        let mut alarm = Alarm::new(at("02:30"), shows(3, "02:40", 0));
        assert!(!alarm.has_rung(shows(3, "02:59", 59)) && !alarm.has_rung(shows(3, "02:00", 0)));
        assert!(alarm.has_rung(shows(3, "02:30", 0)), "the second time");
    }
}
