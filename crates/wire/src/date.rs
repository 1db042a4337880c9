//! Days and months of the calendar (UTC), without a crate for it.

/// Seconds of a day.
pub const DAY_SECONDS: u64 = 86_400;

/// The most days since 1970 that are counted, which are some ten thousand years.
const MAX_DAYS: u64 = 1 << 22;

/// Year, month and day of a day since 1970-01-01, by counting off years and months. Days after the
/// year 13000 are the last.
#[must_use]
pub fn civil(days: u64) -> (u64, u64, u64) {
    let mut days = days.min(MAX_DAYS);
    let mut year = 1970;
    while days >= days_of(year) {
        days -= days_of(year);
        year += 1;
    }
    let mut month = 1;
    for length in months_of(year) {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

/// Returns the days left in the month of the day `days` since 1970-01-01, that day included: 1 on
/// the last day.
#[must_use]
pub fn left_of_month(days: u64) -> u64 {
    let (year, month, day) = civil(days);
    let length = months_of(year).into_iter().nth(month.saturating_sub(1) as usize).unwrap_or(31);
    (length + 1).saturating_sub(day)
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn days_of(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

const fn months_of(year: u64) -> [u64; 12] {
    [31, if is_leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        for (day, date) in [
            (0, (1970, 1, 1)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (20_778, (2026, 11, 21)),
            (19_722, (2023, 12, 31)),
        ] {
            assert_eq!(civil(day), date, "{day}");
        }
        assert_eq!(civil(u64::MAX), civil(MAX_DAYS));
    }

    #[test]
    fn a_month_has_days_left() {
        for (day, left) in [(0, 31), (30, 1), (31, 28), (11_016, 1), (20_778, 10), (19_722, 1)] {
            assert_eq!(left_of_month(day), left, "{day}");
        }
    }
}
