//! Limits of rates, which may change with the time of day: `10Mbit`, `1M:off`,
//! `08:00,512K 23:00,off`.
//!
//! An entry holds from its time on, as the local clock shows it, until that of the next. The last
//! of a day holds until the first of the next day. A night in which the clock is set for the summer
//! or the winter has two rules:
//!
//! - A time that the clock leaps over has come with the leap. An entry for 02:30 then holds from
//!   03:00 on.
//! - In a time that comes twice, entries come the first time. The second time changes nothing.
//!   [`LocalTime::second_time`] says so to the timetable.
//!
//! A clock that a person sets is followed, forth and back.

use crate::limits::time_of_day::{LocalTime, TimeOfDay, TimeOfDayError};
use crate::units::{RateLimits, UnitError};
use std::str::FromStr;
use std::time::Duration;
use thiserror::Error;

/// Why a text is neither a limit nor a timetable of limits.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RateTimetableError {
    /// There is no text.
    #[error(
        "the limit is empty: write a rate such as 10Mbit, `off`, or a timetable as `08:00,512K 23:00,off`"
    )]
    Empty,
    /// An entry has no time of day.
    #[error(
        "`{0}` has no time, and other parts of the limit have one: write HH:MM,RATE for each, as `08:00,512K 23:00,off`"
    )]
    Timeless(String),
    /// A time of day is none.
    #[error(transparent)]
    Time(#[from] TimeOfDayError),
    /// Two entries are for the same time.
    #[error("the timetable has {0} twice: give each time one rate")]
    Twice(TimeOfDay),
    /// A rate is none.
    #[error(transparent)]
    Rate(#[from] UnitError),
}

/// Limits for each time of day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateTimetable {
    /// The limits, each with the time of day from which it applies, in order. Never empty.
    entries: Vec<(TimeOfDay, RateLimits)>,
}

impl From<RateLimits> for RateTimetable {
    /// The same limits all day.
    fn from(limits: RateLimits) -> Self {
        Self { entries: vec![(TimeOfDay::default(), limits)] }
    }
}

impl FromStr for RateTimetable {
    type Err = RateTimetableError;

    /// Reads one limit as [`RateLimits`] does, or entries `HH:MM,LIMIT` in any order, separated by
    /// spaces.
    fn from_str(text: &str) -> Result<Self, RateTimetableError> {
        if text.trim().is_empty() {
            return Err(RateTimetableError::Empty);
        }
        if !text.contains(',') {
            return Ok(text.parse::<RateLimits>()?.into());
        }
        let mut entries = Vec::new();
        for part in text.split_whitespace() {
            let (time, limits) =
                part.split_once(',').ok_or_else(|| RateTimetableError::Timeless(part.to_owned()))?;
            entries.push((time.parse::<TimeOfDay>()?, limits.parse::<RateLimits>()?));
        }
        entries.sort_by_key(|(time, _)| *time);
        let twice = entries.windows(2).find(|pair| matches!(pair, [(a, _), (b, _)] if a == b));
        match twice.and_then(<[_]>::first) {
            Some((time, _)) => Err(RateTimetableError::Twice(*time)),
            None => Ok(Self { entries }),
        }
    }
}

impl RateTimetable {
    /// The limits that hold at a time of day.
    #[must_use]
    pub fn limits_at(&self, time: TimeOfDay) -> RateLimits {
        let begun = self.entries.partition_point(|(from, _)| *from <= time);
        let entry = self.entries.get(..begun).and_then(<[_]>::last).or(self.entries.last());
        entry.map(|(_, limits)| *limits).unwrap_or_default()
    }

    /// Returns the time until other limits apply, if nobody sets the clock. `None`: the limits
    /// never change.
    #[must_use]
    pub fn until_change(&self, now: LocalTime) -> Option<Duration> {
        let present = self.limits_at(now.time_of_day());
        let others = self.entries.iter().filter(|(_, limits)| *limits != present);
        let seconds = others.map(|(from, _)| now.seconds_until(*from)).min();
        seconds.map(Duration::from_secs)
    }

    /// Whether the limits depend on the time of day.
    #[must_use]
    pub fn is_daily(&self) -> bool {
        self.entries.windows(2).any(|pair| matches!(pair, [(_, a), (_, b)] if a != b))
    }

    /// The highest limits of the day.
    #[must_use]
    pub fn highest(&self) -> RateLimits {
        let highest = |of: fn(&RateLimits) -> Option<u64>| {
            let rates = self.entries.iter().map(|(_, limits)| of(limits).unwrap_or(u64::MAX));
            rates.max().filter(|rate| *rate < u64::MAX)
        };
        RateLimits { up: highest(|limits| limits.up), down: highest(|limits| limits.down) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> RateTimetable {
        text.parse().unwrap()
    }

    fn both(rate: Option<u64>) -> RateLimits {
        RateLimits { up: rate, down: rate }
    }

    fn at(table: &RateTimetable, time: &str) -> RateLimits {
        table.limits_at(time.parse().unwrap())
    }

    #[test]
    fn one_limit_holds_all_day() {
        for (text, limits) in [
            ("10Mbit", both(Some(1_250_000))),
            ("10 Mbit/s", both(Some(1_250_000))),
            ("off", both(None)),
            ("1M:off", RateLimits { up: Some(1 << 20), down: None }),
        ] {
            let table = read(text);
            assert_eq!((at(&table, "00:00"), at(&table, "23:59")), (limits, limits), "{text}");
            assert_eq!((table.until_change(LocalTime::new(5)), table.is_daily()), (None, false));
            assert_eq!((table.highest(), RateTimetable::from(limits)), (limits, table));
        }
    }

    #[test]
    fn an_entry_holds_from_its_time_to_that_of_the_next() {
        let table = read(" 23:00,off  08:00,512K 12:30,1M:2M ");
        for (time, limits) in [
            ("00:00", both(None)),
            ("07:59", both(None)),
            ("08:00", both(Some(512 << 10))),
            ("12:29", both(Some(512 << 10))),
            ("12:30", RateLimits { up: Some(1 << 20), down: Some(2 << 20) }),
            ("23:00", both(None)),
        ] {
            assert_eq!(at(&table, time), limits, "{time}");
        }
        assert!(table.is_daily());
        assert_eq!(table.highest(), both(None));
        assert_eq!(read("08:00,1M:3M 09:00,2M").highest(), "2M:3M".parse().unwrap());
        let seconds =
            |table: &RateTimetable, now| table.until_change(LocalTime::new(now)).map(|it| it.as_secs());
        assert_eq!(seconds(&table, 86_400 * 20_000 + 8 * 3_600 - 1), Some(1));
        assert_eq!(seconds(&table, 8 * 3_600), Some(4 * 3_600 + 1_800));
        assert_eq!(seconds(&table, 23 * 3_600 + 1), Some(9 * 3_600 - 1));
        // An entry that says what held before changes nothing.
        assert_eq!(seconds(&read("08:00,1M 09:00,1M 10:00,2M"), 8 * 3_600), Some(2 * 3_600));
        assert_eq!(seconds(&read("08:00,1M 09:00,1M"), 8 * 3_600), None);
    }

    #[test]
    fn what_is_no_timetable_is_refused_with_what_to_write() {
        for (text, told) in [
            ("", "the limit is empty: write a rate such as 10Mbit"),
            ("  ", "the limit is empty"),
            ("24:00,1M", "`24:00` is no time of day: write 00:00 to 23:59"),
            ("8:0,1M", "`8:0` is no time of day"),
            (",", "`` is no time of day"),
            ("512K,08:00", "`512K` is no time of day"),
            ("08:00,1M 09:00,2M 08:00,off", "the timetable has 08:00 twice: give each time one rate"),
            ("512K 23:00,off", "`512K` has no time, and other parts of the limit have one"),
            ("23:00,off 512K", "`512K` has no time"),
            ("08:00,10 Mbit", "`Mbit` has no time"),
            ("08:00,", "`` is not a rate: write for example 10Mbit"),
            ("08:00,fast", "`fast` is not a rate"),
            ("08:00,0", "write `off` for no limit"),
            ("08:00,1M,2M", "`1M,2M` is not a rate"),
            ("0", "write `off` for no limit"),
            ("fast", "`fast` is not a rate"),
        ] {
            let error = text.parse::<RateTimetable>().unwrap_err().to_string();
            assert!(error.starts_with(told) || error.ends_with(told), "{text}: {error}");
        }
    }

    #[test]
    fn a_night_in_which_the_clock_is_set() {
        let table = read("01:00,1M 02:30,2M 04:00,3M");
        // In spring 01:59 is followed by 03:00.
        assert_eq!((at(&table, "01:59"), at(&table, "03:00")), (both(Some(1 << 20)), both(Some(2 << 20))));
        // In autumn 02:59 is followed by 02:00, which counts as 02:59 for the whole hour.
        for minute in [0, 29, 30, 59] {
            let now = LocalTime::new((120 + minute) * 60).second_time(3 * 3_600 - 1);
            assert_eq!(table.limits_at(now.time_of_day()), both(Some(2 << 20)), "{minute}");
        }
    }

    /// Returns the limit at a minute, found by going back minute by minute.
    fn model(entries: &[(u16, u64)], minute: u16) -> u64 {
        let before = (0..1440).map(|ago| (minute + 1440 - ago) % 1440);
        let mut rates = before.filter_map(|at| entries.iter().find(|(from, _)| *from == at));
        rates.next().unwrap().1
    }

    proptest! {
        #[test]
        fn each_minute_is_as_a_slow_model_says(
            entries in proptest::collection::btree_map(0u16..1440, 1u64..4, 1..8),
            shift in any::<usize>(),
        ) {
            let mut entries: Vec<(u16, u64)> = entries.into_iter().collect();
            let turned = shift % entries.len();
            entries.rotate_left(turned);
            let text: Vec<String> =
                entries.iter().map(|(at, rate)| format!("{:02}:{:02},{rate}", at / 60, at % 60)).collect();
            let table = read(&text.join(" "));
            let rates: Vec<u64> = (0..1440).map(|minute| model(&entries, minute)).collect();
            for minute in 0..1440usize {
                let now = LocalTime::new(minute as i64 * 60 + 7);
                prop_assert_eq!(table.limits_at(now.time_of_day()), both(Some(rates[minute])));
                let same = (1..=1440).find(|ahead| rates[(minute + ahead) % 1440] != rates[minute]);
                let until = same.map(|ahead| Duration::from_secs(ahead as u64 * 60 - 7));
                prop_assert_eq!(table.until_change(now), until);
            }
            prop_assert_eq!(table.is_daily(), rates.iter().any(|rate| *rate != rates[0]));
        }

        #[test]
        fn garbage_never_panics(text in "[0-9:, KMoff]{0,24}") {
            if let Ok(table) = text.parse::<RateTimetable>() {
                let _ = (table.limits_at(TimeOfDay::default()), table.until_change(LocalTime::new(0)));
            }
        }
    }
}
