//! Computes how much of a line is used, and how soon.

/// The part of a line (0 to 1) that counts as the whole line.
pub const USED_SHARE: f64 = 0.9;
/// Seconds for which [`USED_SHARE`] of a line has to be used.
const USED_SECONDS: f64 = 1.0;

/// A cumulative series at a time. `sample` is the time between two of its values; both are in
/// seconds.
#[must_use]
pub fn at(series: &[u64], sample: f64, seconds: f64) -> u64 {
    let place = libm::round(seconds / sample) as usize;
    series.get(place).or(series.last()).copied().unwrap_or(0)
}

/// Returns the growth of a cumulative series between two times, in seconds.
#[must_use]
pub fn between(series: &[u64], sample: f64, from: f64, to: f64) -> u64 {
    at(series, sample, to).saturating_sub(at(series, sample, from))
}

/// Seconds from `from` to the end of the first second that carried [`USED_SHARE`] of the line's
/// capacity. `sent` is the bytes carried so far, every `sample` seconds; `most(a, b)` is the
/// capacity in bytes from second a to b.
pub fn filled_after(sent: &[u64], sample: f64, from: f64, most: impl Fn(f64, f64) -> f64) -> Option<f64> {
    let window = libm::round(USED_SECONDS / sample) as usize;
    let first = libm::ceil(from / sample) as usize;
    (first..sent.len().saturating_sub(window)).find_map(|begin| {
        let (before, after) = (sent.get(begin)?, sent.get(begin + window)?);
        let times = (begin as f64 * sample, (begin + window) as f64 * sample);
        let enough = USED_SHARE * most(times.0, times.1);
        // Times are not exact: half a byte is nothing.
        (after.saturating_sub(*before) as f64 + 0.5 >= enough).then_some(times.1 - from)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_filled_once_a_second_of_it_is() {
        // 80 % of 1000 bytes a second until second 3, then all.
        let sent: Vec<u64> =
            (0..=100).map(|tenth: u64| 80 * tenth.min(30) + 100 * tenth.saturating_sub(30)).collect();
        let most = |from: f64, to: f64| 1_000.0 * (to - from);
        // The window that ends at 3.5 has half a second of each.
        assert!((filled_after(&sent, 0.1, 0.0, most).expect("filled") - 3.5).abs() < 1e-9);
        assert!((filled_after(&sent, 0.1, 2.0, most).expect("filled") - 1.5).abs() < 1e-9);
        assert_eq!(filled_after(&sent, 0.1, 0.0, |from, to| 1_200.0 * (to - from)), None);
        assert_eq!((at(&sent, 0.1, 1.0), at(&sent, 0.1, 99.0), at(&[], 0.1, 1.0)), (800, sent[100], 0));
        assert_eq!(between(&sent, 0.1, 1.0, 2.0), 800);
    }
}
