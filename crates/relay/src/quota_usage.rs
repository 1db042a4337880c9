//! What the relay carries in all: by the day and the month, within what its operator lets it, and
//! at the moment.

use byway_wire::date::{DAY, civil, left_of_month};

/// Seconds over which the load is counted.
const PERIOD: u64 = 16;

/// What a relay carried, to be [kept](crate::Relay::used) over restarts. Bytes are those of UDP
/// payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Days since 1970-01-01, UTC.
    pub day: u64,
    /// Bytes on that day.
    pub today: u64,
    /// Months since 1970-01, UTC.
    pub month: u64,
    /// Bytes in that month.
    pub this_month: u64,
}

/// What a relay carries at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Bytes per second.
    pub rate: u64,
    /// Grants in use, within half a minute.
    pub grants: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct UsageCount {
    bytes: u64,
    grants: u32,
}

#[derive(Debug)]
pub(crate) struct Usage {
    per_day: Option<u64>,
    per_month: Option<u64>,
    used: Used,
    /// Counts [`PERIOD`]s of Unix time.
    period: u64,
    now: UsageCount,
    before: UsageCount,
}

impl Usage {
    pub(crate) fn new(per_day: Option<u64>, per_month: Option<u64>, used: Used, unix: u64) -> Self {
        let (now, before) = (UsageCount::default(), UsageCount::default());
        let mut usage = Self { per_day, per_month, used, period: unix / PERIOD, now, before };
        usage.turn(unix);
        usage
    }

    /// Goes on to the present. Gives the number of the period, by which accounts know whether they
    /// were counted in it.
    pub(crate) fn go_on(&mut self, unix: u64) -> u32 {
        let period = unix / PERIOD;
        if period != self.period {
            let next = self.period.checked_add(1) == Some(period);
            self.before = if next { self.now } else { UsageCount::default() };
            (self.now, self.period) = (UsageCount::default(), period);
            self.turn(unix);
        }
        period as u32
    }

    /// Resets the count of bytes on a new day and in a new month. A clock that is set back resets
    /// nothing. So a clock that jumps ahead and back renews a quota once, not twice.
    fn turn(&mut self, unix: u64) {
        let day = unix / DAY;
        if day == self.used.day {
            return;
        }
        if day > self.used.day {
            self.used.today = 0;
        }
        let (year, month, _) = civil(day);
        let month = (year - 1970) * 12 + month - 1;
        if month > self.used.month {
            self.used.this_month = 0;
        }
        (self.used.day, self.used.month) = (day, month);
    }

    /// Whether so many bytes may pass; else after how many seconds.
    pub(crate) fn check(&self, unix: u64, bytes: u64) -> Result<(), u32> {
        let over = |used: u64, most: Option<u64>| most.is_some_and(|most| used.saturating_add(bytes) > most);
        let days = if over(self.used.this_month, self.per_month) {
            left_of_month(unix / DAY)
        } else if over(self.used.today, self.per_day) {
            1
        } else {
            return Ok(());
        };
        Err((days * DAY - unix % DAY) as u32) // at most 31 days
    }

    /// Bytes that may pass before another day or month; `u64::MAX`: any number.
    pub(crate) fn left(&self) -> u64 {
        let of = |most: Option<u64>, used: u64| most.map_or(u64::MAX, |most| most.saturating_sub(used));
        of(self.per_day, self.used.today).min(of(self.per_month, self.used.this_month))
    }

    pub(crate) fn charge(&mut self, bytes: u64, new_grant: bool) {
        self.used.today = self.used.today.saturating_add(bytes);
        self.used.this_month = self.used.this_month.saturating_add(bytes);
        self.now.bytes += bytes;
        self.now.grants += u32::from(new_grant);
    }

    pub(crate) const fn used(&self) -> Used {
        self.used
    }

    /// By the last period that is over, or by this one if it has more.
    pub(crate) fn load(&self) -> Load {
        Load {
            rate: self.before.bytes.max(self.now.bytes) / PERIOD,
            grants: self.before.grants.max(self.now.grants),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2027-01-31T12:00Z
    const NOON: u64 = 1_801_396_800;

    #[test]
    fn days_and_months_begin_with_nothing() {
        let mut usage = Usage::new(Some(100), Some(150), Used::default(), NOON);
        assert_eq!(usage.used(), Used { day: 20_849, today: 0, month: 684, this_month: 0 });
        usage.charge(100, true);
        assert_eq!((usage.check(NOON, 0), usage.left()), (Ok(()), 0));
        assert_eq!(usage.check(NOON, 1), Err(43_200));
        // The first of February.
        usage.go_on(NOON + 43_200);
        assert_eq!(usage.used(), Used { day: 20_850, today: 0, month: 685, this_month: 0 });
        usage.charge(100, true);
        usage.go_on(NOON + 43_200 + DAY);
        assert_eq!(usage.check(NOON + 43_200 + DAY, 50), Ok(()));
        assert_eq!(usage.check(NOON + 43_200 + DAY, 51), Err(27 * 86_400));
    }

    #[test]
    fn a_restart_goes_on_and_a_clock_set_back_gives_nothing() {
        let used = Used { day: 20_849, today: 90, month: 684, this_month: 140 };
        let mut usage = Usage::new(Some(100), Some(150), used, NOON);
        assert_eq!((usage.used(), usage.left()), (used, 10));
        assert_eq!((usage.check(NOON, 10), usage.check(NOON, 11)), (Ok(()), Err(43_200)));
        usage.charge(10, true);
        usage.go_on(NOON - DAY);
        assert_eq!(usage.used(), Used { day: 20_848, today: 100, month: 684, this_month: 150 });
        // A day ahead once, the first of the next month, and back.
        usage.go_on(NOON + DAY);
        usage.charge(100, true);
        usage.go_on(NOON);
        assert_eq!(usage.used(), Used { day: 20_849, today: 100, month: 684, this_month: 100 });
    }

    #[test]
    fn the_load_is_that_of_the_last_seconds() {
        let mut usage = Usage::new(None, None, Used::default(), 0);
        usage.charge(1_600, true);
        usage.charge(1_600, false);
        assert_eq!(usage.load(), Load { rate: 200, grants: 1 });
        usage.go_on(16);
        assert_eq!(usage.load(), Load { rate: 200, grants: 1 });
        usage.go_on(48);
        assert_eq!(usage.load(), Load::default());
    }
}
