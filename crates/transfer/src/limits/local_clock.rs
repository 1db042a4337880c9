//! The local time of this host, in the time zone of this process: that of `TZ`, or else of
//! `/etc/localtime`.

use crate::limits::time_of_day::{Alarm, LocalTime, TimeOfDay};
use thiserror::Error;

#[cfg(feature = "local-time")]
use jiff::{Timestamp, tz::TimeZone};

/// Why the local time is not known.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LocalClockError {
    /// The time zone of this process is not known.
    #[error(
        "the local time is not known, since {0} names no time zone of this host: name one, or install its data (tzdata)"
    )]
    NoZone(&'static str),
    /// The build has no local time.
    #[error("this build of byway knows no local time: build it with the feature `local-time`")]
    NotBuilt,
}

/// The local clock of this host.
#[derive(Clone, Copy, Debug)]
pub struct LocalClock {
    _found: (),
}

impl LocalClock {
    /// The clock in the time zone of this process. A host without a zone has UTC, as `date` does.
    ///
    /// # Errors
    /// The zone is not known, or the build lacks the feature `local-time`.
    #[cfg(feature = "local-time")]
    pub fn open() -> Result<Self, LocalClockError> {
        const SYSTEM_ZONE: &str = "/etc/localtime";
        let named = match std::env::var_os("TZ") {
            Some(zone) => (!zone.is_empty()).then_some("TZ"),
            None => std::fs::symlink_metadata(SYSTEM_ZONE).is_ok().then_some(SYSTEM_ZONE),
        };
        match named {
            Some(named) if TimeZone::try_system().is_err() => Err(LocalClockError::NoZone(named)),
            _ => Ok(Self { _found: () }),
        }
    }

    /// No clock, in this build.
    ///
    /// # Errors
    /// The build lacks the feature `local-time`.
    #[cfg(not(feature = "local-time"))]
    pub const fn open() -> Result<Self, LocalClockError> {
        Err(LocalClockError::NotBuilt)
    }

    /// Returns the local time of this moment.
    #[cfg(feature = "local-time")]
    #[must_use]
    pub fn now(self) -> LocalTime {
        local_time(Timestamp::now(), &TimeZone::try_system().unwrap_or(TimeZone::UTC))
    }

    /// Returns a constant time, as this build has no local clock.
    #[cfg(not(feature = "local-time"))]
    #[must_use]
    pub const fn now(self) -> LocalTime {
        LocalTime::new(0)
    }
}

/// Waits until the local clock of this host shows a time of day.
#[derive(Clone, Copy, Debug)]
pub struct LocalAlarm {
    clock: LocalClock,
    alarm: Alarm,
}

impl LocalAlarm {
    /// An alarm for the next time that the local clock shows `at`.
    ///
    /// # Errors
    /// The local time is not known.
    pub fn new(at: TimeOfDay) -> Result<Self, LocalClockError> {
        let clock = LocalClock::open()?;
        Ok(Self { clock, alarm: Alarm::new(at, clock.now()) })
    }

    /// Whether the clock has shown the time since the alarm was made. Call this a few times a
    /// minute at least.
    pub fn has_rung(&mut self) -> bool {
        self.alarm.has_rung(self.clock.now())
    }
}

/// Returns the local time in `zone` at a moment.
#[cfg(feature = "local-time")]
fn local_time(now: Timestamp, zone: &TimeZone) -> LocalTime {
    let offset_at = |moment: Timestamp| i64::from(zone.to_offset(moment).seconds());
    let shown = now.as_second() + offset_at(now);
    let time = LocalTime::new(shown);
    // The moment at which the clock was last set, `now` included, and its last second before that.
    let after = Timestamp::from_second(now.as_second() + 1).unwrap_or(now);
    let Some(set_at) = zone.preceding(after).next().map(|set| set.timestamp()) else { return time };
    let Ok(last) = Timestamp::from_second(set_at.as_second() - 1) else { return time };
    let before = last.as_second() + offset_at(last);
    if shown <= before { time.second_time(before) } else { time }
}

#[cfg(test)]
#[cfg(feature = "local-time")]
mod tests {
    use super::*;
    use crate::limits::rate_timetable::RateTimetable;

    /// The time zone of Berlin, by its present rule.
    fn berlin() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    fn at(text: &str) -> LocalTime {
        local_time(text.parse().unwrap(), &berlin())
    }

    fn time(text: &str) -> TimeOfDay {
        text.parse().unwrap()
    }

    #[test]
    fn a_night_without_half_past_two() {
        let table: RateTimetable = "00:00,1M 02:30,2M".parse().unwrap();
        let up = |text: &str| table.limits_at(at(text).time_of_day()).up.unwrap() >> 20;
        assert_eq!(at("2026-03-29T00:59:59Z").time_of_day(), time("01:59"));
        assert_eq!(at("2026-03-29T01:00:00Z").time_of_day(), time("03:00"));
        assert_eq!(["2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z"].map(up), [1, 2]);
        let mut alarm = Alarm::new(time("02:30"), at("2026-03-29T00:50:00Z"));
        assert!(!alarm.has_rung(at("2026-03-29T00:59:59Z")) && alarm.has_rung(at("2026-03-29T01:00:00Z")));
    }

    #[test]
    fn a_night_with_half_past_two_twice() {
        let table: RateTimetable = "00:00,1M 02:30,2M 03:00,3M".parse().unwrap();
        // From one o'clock UTC on, the clock shows 02:00 for the second time.
        let minute = |minute: i64| -> Timestamp {
            let midnight: Timestamp = "2026-10-25T00:00:00Z".parse().unwrap();
            Timestamp::from_second(midnight.as_second() + minute * 60).unwrap()
        };
        let found: Vec<u64> = (-60..180)
            .map(|it| table.limits_at(local_time(minute(it), &berlin()).time_of_day()).up.unwrap() >> 20)
            .collect();
        let mut changes: Vec<(usize, u64)> = Vec::new();
        for (place, rate) in found.iter().enumerate() {
            if changes.last().is_none_or(|(_, before)| before != rate) {
                changes.push((place, *rate));
            }
        }
        // At 02:30 of the first time, and at 03:00, which comes once.
        assert_eq!(changes, [(0, 1), (90, 2), (180, 3)]);
        // A transfer that begins at the second 02:10 has the limit that held at the first 02:59.
        assert_eq!(at("2026-10-25T01:10:00Z").time_of_day(), time("02:59"));
        // `--stop-at` waits for what the clock shows.
        let mut alarm = Alarm::new(time("02:30"), at("2026-10-25T00:40:00Z"));
        assert!(!alarm.has_rung(at("2026-10-25T01:29:59Z")) && alarm.has_rung(at("2026-10-25T01:30:00Z")));
    }

    #[test]
    fn a_clock_that_a_person_sets_back_is_followed() {
        let table: RateTimetable = "00:00,1M 08:00,2M".parse().unwrap();
        let up = |text: &str| table.limits_at(at(text).time_of_day()).up.unwrap() >> 20;
        let shown =
            ["2026-07-01T05:59:59Z", "2026-07-01T06:10:00Z", "2026-07-01T05:10:00Z", "2026-07-01T06:00:00Z"];
        assert_eq!(shown.map(up), [1, 2, 1, 2]);
    }

    #[test]
    fn zones_without_a_change_and_this_host_have_a_time() {
        let now: Timestamp = "1970-01-02T00:00:05Z".parse().unwrap();
        assert_eq!(local_time(now, &TimeZone::UTC), LocalTime::new(86_405));
        assert_eq!(
            local_time(now, &TimeZone::posix("XXX-05:17:20").unwrap()),
            LocalTime::new(86_405 + 19_040)
        );
        for earliest in [Timestamp::MIN, Timestamp::MAX] {
            let _ = local_time(earliest, &berlin()).time_of_day();
        }
        assert_eq!(LocalClock::open().map(LocalClock::now).is_ok(), LocalClock::open().is_ok());
    }
}
