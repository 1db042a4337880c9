//! The bytes that the relay forwards in all: per day and month, within the operator's limits, and
//! the present load.

use crate::operator_report::Dropped;
use byway_wire::date::{DAY_SECONDS, civil, left_of_month};
use byway_wire::relay::Reason;

/// Seconds over which the load is counted.
const LOAD_PERIOD_SECONDS: u64 = 16;

/// Number of earlier days whose bytes are known, for a clock that is set back and forth.
const EARLIER_DAYS: usize = 7;
/// Earlier months whose bytes are known.
const EARLIER_MONTHS: usize = 3;

/// The least number of bytes that a relay with a quota keeps ahead. A relay that is killed has lost
/// no more than it keeps ahead.
const MIN_RESERVE_BYTES: u64 = 16 << 20;
/// The divisor of the quota that gives the largest reserve, unless a datagram would not fit into
/// it.
const QUOTA_RESERVE_DIVISOR: u64 = 20;
const MAX_DATAGRAM_BYTES: u64 = 64 << 10;

/// Bytes carried on one day or in one month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsedIn {
    /// Days or months since 1970.
    pub number: u64,
    /// Bytes; 0: nothing is known.
    pub bytes: u64,
}

/// Bytes forwarded by a relay, which its owner [saves](crate::Relay::used) for a restart. They are
/// bytes of UDP payloads.
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
    /// Counts of other days that the clock showed, the last one first. They matter if the clock is
    /// set back.
    pub earlier_days: [UsedIn; EARLIER_DAYS],
    /// Counts of other months that the clock showed, the last one first. They matter if the clock
    /// is set back.
    pub earlier_months: [UsedIn; EARLIER_MONTHS],
}

impl Used {
    /// No bytes carried yet.
    pub(crate) const NOTHING: Self = Self {
        day: 0,
        today: 0,
        month: 0,
        this_month: 0,
        earlier_days: [UsedIn { number: 0, bytes: 0 }; EARLIER_DAYS],
        earlier_months: [UsedIn { number: 0, bytes: 0 }; EARLIER_MONTHS],
    };
}

/// The bytes that may be forwarded once the owner has saved the count that includes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// The day, counted from 1970, for which this reserve was made.
    day: u64,
    /// Bytes since the start. `u64::MAX`: as many as the quotas allow.
    until: u64,
}

impl Reserve {
    /// Whatever the quotas allow: where nothing is kept, or nothing can be.
    pub const UNLIMITED: Self = Self { day: 0, until: u64::MAX };
}

/// A relay's recent load: its rate, and the grants in use.
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
    /// Bytes since the start.
    total: u64,
    /// The largest `total` that the counts on the disk include. More may not be carried.
    /// `u64::MAX`: no bound.
    until: u64,
    /// Whether more was asked for, and has yet to come.
    asked: bool,
    /// Counts [`LOAD_PERIOD_SECONDS`]s of Unix time.
    period: u64,
    now: UsageCount,
    before: UsageCount,
}

impl Usage {
    pub(crate) fn new(per_day: Option<u64>, per_month: Option<u64>, used: Used, unix: u64) -> Self {
        let (now, before, period) =
            (UsageCount::default(), UsageCount::default(), unix / LOAD_PERIOD_SECONDS);
        let (total, until, asked) = (0, u64::MAX, false);
        let mut usage = Self { per_day, per_month, used, total, until, asked, period, now, before };
        usage.turn(unix);
        usage
    }

    /// Goes on to the present. Gives the number of the period, by which accounts know whether they
    /// were counted in it.
    pub(crate) fn go_on(&mut self, unix: u64) -> u32 {
        let period = unix / LOAD_PERIOD_SECONDS;
        if period != self.period {
            let next = self.period.checked_add(1) == Some(period);
            self.before = if next { self.now } else { UsageCount::default() };
            (self.now, self.period) = (UsageCount::default(), period);
            self.turn(unix);
        }
        period as u32
    }

    /// Moves on to the clock's day and month, each with its own count.
    fn turn(&mut self, unix: u64) {
        let used = &mut self.used;
        let day = unix / DAY_SECONDS;
        if day == used.day {
            return;
        }
        let (year, month, _) = civil(day);
        let month = (year - 1970) * 12 + month - 1;
        let left = UsedIn { number: used.day, bytes: used.today };
        (used.day, used.today) = (day, switch(&mut used.earlier_days, left, day));
        if month != used.month {
            let left = UsedIn { number: used.month, bytes: used.this_month };
            (used.month, used.this_month) = (month, switch(&mut used.earlier_months, left, month));
        }
        if self.until != u64::MAX {
            // What was kept ahead counts on the other day.
            (self.until, self.asked) = (self.total, false);
        }
    }

    /// Whether `bytes` bytes may pass; else why not, and after how many seconds they may.
    pub(crate) fn check(&self, unix: u64, bytes: u64) -> Result<(), (Dropped, u32)> {
        let over = |used: u64, most: Option<u64>| most.is_some_and(|most| used.saturating_add(bytes) > most);
        let days = if over(self.used.this_month, self.per_month) {
            left_of_month(unix / DAY_SECONDS)
        } else if over(self.used.today, self.per_day) {
            1
        } else if self.total.saturating_add(bytes) > self.until {
            return Err((Dropped::NotKept, 0));
        } else {
            return Ok(());
        };
        let retry = (days * DAY_SECONDS - unix % DAY_SECONDS) as u32; // at most 31 days
        Err((Dropped::Refused(Reason::RelayQuota), retry))
    }

    /// Bytes that may pass before another day or month; `u64::MAX`: any number.
    pub(crate) fn left(&self) -> u64 {
        let of = |most: Option<u64>, used: u64| most.map_or(u64::MAX, |most| most.saturating_sub(used));
        of(self.per_day, self.used.today).min(of(self.per_month, self.used.this_month))
    }

    pub(crate) fn charge(&mut self, bytes: u64, new_grant: bool) {
        self.total = self.total.saturating_add(bytes);
        self.used.today = self.used.today.saturating_add(bytes);
        self.used.this_month = self.used.this_month.saturating_add(bytes);
        self.now.bytes = self.now.bytes.saturating_add(bytes);
        self.now.grants += u32::from(new_grant);
    }

    pub(crate) const fn used(&self) -> Used {
        self.used
    }

    /// Whether half of the reserve is used, and there is more quota for a new one.
    pub(crate) fn wants_reserve(&self) -> bool {
        let ahead = self.until.saturating_sub(self.total);
        self.until != u64::MAX && !self.asked && ahead < self.left() && ahead < self.ahead() / 2
    }

    /// Returns the counts to save now. They include a reserve, which may be forwarded once they are
    /// saved.
    pub(crate) fn reserve(&mut self) -> (Used, Reserve) {
        let mut used = self.used;
        if self.per_day.or(self.per_month).is_none() {
            return (used, Reserve::UNLIMITED);
        }
        let had = if self.until == u64::MAX { 0 } else { self.until.saturating_sub(self.total) };
        let ahead = self.ahead().max(had).min(self.left());
        used.today = used.today.saturating_add(ahead);
        used.this_month = used.this_month.saturating_add(ahead);
        self.asked = true;
        (used, Reserve { day: used.day, until: self.total.saturating_add(ahead) })
    }

    /// Notes that the counts with this reserve are on the disk, so the reserve may be carried.
    pub(crate) fn kept(&mut self, reserve: Reserve) {
        if reserve == Reserve::UNLIMITED || reserve.day == self.used.day {
            (self.until, self.asked) = (reserve.until, false);
        }
    }

    /// Returns the bytes of the reserve: twice the bytes of the last 16 seconds or of this period,
    /// within the bounds above.
    fn ahead(&self) -> u64 {
        let most = [self.per_day, self.per_month].into_iter().flatten().min().unwrap_or(u64::MAX);
        let taken = self.before.bytes.max(self.now.bytes).saturating_mul(2);
        taken.max(MIN_RESERVE_BYTES).min((most / QUOTA_RESERVE_DIVISOR).max(MAX_DATAGRAM_BYTES))
    }

    /// Returns the load of the last complete period, or of this one if it has more.
    pub(crate) fn load(&self) -> Load {
        Load {
            rate: self.before.bytes.max(self.now.bytes) / LOAD_PERIOD_SECONDS,
            grants: self.before.grants.max(self.now.grants),
        }
    }
}

/// Leaves one day or month for another, and gives the bytes that count there: those of before, if
/// they are known. A later one than all that are known begins with nothing. Of any other it is not
/// known how much was carried, so it begins with the most that is known of any.
fn switch(earlier: &mut [UsedIn], left: UsedIn, to: u64) -> u64 {
    let known = |it: &UsedIn| it.bytes > 0;
    let all = earlier.iter().copied().chain([left]).filter(known);
    let latest = all.clone().map(|it| it.number).max();
    let found = earlier.iter().position(|it| known(it) && it.number == to);
    let bytes = match found.and_then(|at| earlier.get(at)) {
        Some(found) => found.bytes,
        None if latest.is_none_or(|latest| to > latest) => 0,
        None => all.map(|it| it.bytes).max().unwrap_or(0),
    };
    // Without room the one with the fewest bytes is forgotten: whoever comes back to it begins with
    // more. The latest stays known, as every later one begins with nothing.
    let is_latest = |it: &UsedIn| Some(it.number) == latest;
    let fewest = || {
        let others = earlier.iter().enumerate().rev().filter(|(_, it)| !is_latest(it));
        let (at, fewest) = others.min_by_key(|(_, it)| it.bytes)?;
        (is_latest(&left) || left.bytes >= fewest.bytes).then_some(at)
    };
    let room = found.or_else(|| earlier.iter().position(|it| !known(it))).or_else(fewest);
    let moved = room.filter(|_| known(&left) || found.is_some());
    if let Some(moved) = moved.and_then(|room| earlier.get_mut(..=room)) {
        moved.rotate_right(1);
        moved.iter_mut().take(1).for_each(|first| *first = left);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    /// 2027-01-31T12:00Z
    const NOON: u64 = 1_801_396_800;

    /// Day, bytes, month, bytes.
    fn counts(usage: &Usage) -> [u64; 4] {
        let used = usage.used();
        [used.day, used.today, used.month, used.this_month]
    }

    fn over(usage: &Usage, unix: u64, bytes: u64) -> Option<u32> {
        usage.check(unix, bytes).err().map(|(_, retry)| retry)
    }

    #[test]
    fn days_and_months_begin_with_nothing() {
        let mut usage = Usage::new(Some(100), Some(150), Used::default(), NOON);
        assert_eq!(counts(&usage), [20_849, 0, 684, 0]);
        usage.charge(100, true);
        assert_eq!((usage.check(NOON, 0), usage.left()), (Ok(()), 0));
        assert_eq!(over(&usage, NOON, 1), Some(43_200));
        // The first of February.
        usage.go_on(NOON + 43_200);
        assert_eq!(counts(&usage), [20_850, 0, 685, 0]);
        usage.charge(100, true);
        usage.go_on(NOON + 43_200 + DAY_SECONDS);
        assert_eq!(usage.check(NOON + 43_200 + DAY_SECONDS, 50), Ok(()));
        assert_eq!(over(&usage, NOON + 43_200 + DAY_SECONDS, 51), Some(27 * 86_400));
    }

    #[test]
    fn a_restart_goes_on_and_a_clock_set_back_gives_nothing() {
        let used = Used { day: 20_849, today: 90, month: 684, this_month: 140, ..Used::default() };
        let mut usage = Usage::new(Some(100), Some(150), used, NOON);
        assert_eq!((usage.used(), usage.left()), (used, 10));
        assert_eq!((usage.check(NOON, 10), over(&usage, NOON, 11)), (Ok(()), Some(43_200)));
        usage.charge(10, true);
        usage.go_on(NOON - DAY_SECONDS);
        assert_eq!(counts(&usage), [20_848, 100, 684, 150]);
        // A day ahead once, the first of the next month, and back.
        usage.go_on(NOON + DAY_SECONDS);
        usage.charge(100, true);
        usage.go_on(NOON);
        assert_eq!(counts(&usage), [20_849, 100, 684, 150]);
        usage.go_on(NOON + DAY_SECONDS);
        assert_eq!(counts(&usage), [20_850, 100, 685, 100], "that day had its bytes already");
    }

    #[test]
    fn a_start_with_a_clock_in_the_past_gives_nothing_anew() {
        let mut usage = Usage::new(Some(100), Some(100), Used::default(), NOON);
        usage.charge(100, true);
        // Forty days back, 1970, and the day before.
        for wrong in [NOON - 40 * DAY_SECONDS, 0, NOON - DAY_SECONDS] {
            let usage_then = Usage::new(Some(100), Some(100), usage.used(), wrong);
            assert_eq!(usage_then.left(), 0, "{wrong}");
            usage = Usage::new(Some(100), Some(100), usage_then.used(), NOON);
            assert_eq!(usage.left(), 0, "after {wrong}");
        }
        // A host without a clock that starts each time in 1970, for a year.
        for day in 1..=365 {
            let boot = Usage::new(Some(100), Some(9_000), usage.used(), 0);
            usage = Usage::new(Some(100), Some(9_000), boot.used(), NOON + day * DAY_SECONDS);
            assert_eq!(usage.left(), 100, "{day}");
            usage.charge(100, true);
            let again = Usage::new(Some(100), Some(9_000), usage.used(), 0);
            usage = Usage::new(Some(100), Some(9_000), again.used(), NOON + day * DAY_SECONDS);
            assert_eq!(usage.left(), 0, "{day}");
        }
    }

    /// A clock without a battery shows any date at each start, and one that is set may wander.
    #[test]
    fn a_clock_that_shows_many_dates_gives_none_of_them_anew() {
        let (per_day, per_month) = (100, 250);
        for seed in 1..=200_u64 {
            let mut drawn = seed;
            let mut draw = |below: u64| {
                drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (drawn >> 33) % below
            };
            // Some dates lie close together, and others are months apart.
            let gap = [1, 1, 9, 31][seed as usize % 4];
            let dates: Vec<u64> = (0..12).map(|at| NOON + at * gap * DAY_SECONDS).collect();
            let (mut of_day, mut of_month) = (BTreeMap::<u64, u64>::new(), BTreeMap::<u64, u64>::new());
            let mut used = Used::default();
            for _ in 0..300 {
                let unix = dates[draw(12) as usize];
                let mut usage = Usage::new(Some(per_day), Some(per_month), used, unix);
                let bytes = usage.left().min(draw(4) * 40);
                usage.charge(bytes, false);
                used = usage.used();
                *of_day.entry(used.day).or_default() += bytes;
                *of_month.entry(used.month).or_default() += bytes;
            }
            let most = |of: &BTreeMap<u64, u64>| of.values().copied().max().unwrap_or(0);
            assert!(most(&of_day) <= per_day, "seed {seed}: {of_day:?}");
            assert!(most(&of_month) <= per_month, "seed {seed}: {of_month:?}");
        }
    }

    /// Returns the bytes forwarded until a kill, if the owner saves all that it is asked to.
    fn carried_until_killed(kept: &mut Used, per_day: u64, most: u64) -> u64 {
        let mut usage = Usage::new(Some(per_day), None, *kept, NOON);
        let first = usage.reserve();
        *kept = first.0;
        usage.kept(first.1);
        let mut carried = 0;
        while carried < most && usage.check(NOON, 1_000).is_ok() {
            usage.charge(1_000, false);
            carried += 1_000;
            if usage.wants_reserve() {
                let (used, reserve) = usage.reserve();
                *kept = used;
                usage.kept(reserve);
            }
        }
        carried
    }

    #[test]
    fn a_relay_that_is_killed_again_and_again_carries_no_more_than_its_quota() {
        for (per_day, most) in
            [(20_000_000, 10_000_000), (20_000_000, 100_000), (3_000, 2_000), (1 << 32, 1 << 26)]
        {
            let mut kept = Used::default();
            let carried: u64 = (0..1_000).map(|_| carried_until_killed(&mut kept, per_day, most)).sum();
            assert!(carried <= per_day, "{carried} of {per_day}");
            // A kill loses a twentieth at most.
            assert!(carried >= per_day / 25 || carried >= 900 * most, "{carried} of {per_day}");
        }
        let mut kept = Used::default();
        assert!(
            carried_until_killed(&mut kept, 20_000_000, u64::MAX) > 19_998_000,
            "without a kill it has all"
        );
    }

    #[test]
    fn nothing_passes_that_is_not_kept_and_what_was_kept_for_a_day_counts_on_that_day() {
        let mut usage = Usage::new(Some(20_000_000), None, Used::default(), NOON);
        let (used, reserve) = usage.reserve();
        assert_eq!((used.today, usage.wants_reserve()), (1_000_000, false));
        usage.kept(reserve);
        usage.charge(600_000, false);
        assert!(usage.wants_reserve());
        assert_eq!(usage.check(NOON, 400_001), Err((Dropped::NotKept, 0)));
        let (used, more) = usage.reserve();
        assert_eq!((used.today, usage.wants_reserve()), (1_600_000, false));
        usage.go_on(NOON + DAY_SECONDS);
        usage.kept(more);
        assert_eq!(usage.check(NOON + DAY_SECONDS, 1), Err((Dropped::NotKept, 0)));
        assert!(usage.wants_reserve());
        let (used, reserve) = usage.reserve();
        assert_eq!(used.today, 1_000_000);
        usage.kept(reserve);
        assert_eq!(usage.check(NOON + DAY_SECONDS, 1_000_000), Ok(()));
        usage.kept(Reserve::UNLIMITED);
        assert_eq!(usage.check(NOON + DAY_SECONDS, 20_000_000), Ok(()));
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
