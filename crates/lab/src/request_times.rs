//! The times of requests, as their users wait: one that never ends is the longest of all.

use crate::record::RequestRecord;

/// The percentile `percent` (0 to 100) of `times`, by nearest rank; `None` if `times` is empty.
/// Each time is in seconds, or a ratio to the same request's time in another run. A request that
/// did not end (`None`) counts as infinite.
#[must_use]
pub fn percentile(times: impl IntoIterator<Item = Option<f64>>, percent: f64) -> Option<f64> {
    let mut times: Vec<f64> = times.into_iter().map(|time| time.unwrap_or(f64::INFINITY)).collect();
    times.sort_by(f64::total_cmp);
    // Multiplied first: 55 % of 100 are 55.
    let rank = libm::ceil(percent * times.len() as f64 / 100.0) as usize;
    times.get(rank.saturating_sub(1)).copied()
}

/// Returns the ratio of each request's time to the time of the same request in another run. `None`:
/// the request did not end here.
pub fn ratios<'a>(
    here: impl IntoIterator<Item = &'a RequestRecord>,
    there: impl IntoIterator<Item = &'a RequestRecord>,
) -> impl Iterator<Item = Option<f64>> {
    here.into_iter().zip(there).filter_map(|(here, there)| {
        let there = there.took.filter(|&there| there > 0.0)?;
        Some(here.took.map(|here| here / there))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_never_ends_is_the_longest_of_all() {
        let times = [Some(2.0), None, Some(1.0), Some(3.0)];
        let percentiles = [0.0, 25.0, 50.0, 75.0, 75.1, 100.0].map(|percent| percentile(times, percent));
        assert_eq!(percentiles, [1.0, 1.0, 2.0, 3.0, f64::INFINITY, f64::INFINITY].map(Some));
        assert_eq!(percentile([], 50.0), None);
        let hundred = (1..=100).map(|time| Some(f64::from(time)));
        assert_eq!(percentile(hundred, 55.0), Some(55.0));
    }

    #[test]
    fn a_request_is_compared_with_itself() {
        let list = |times: [Option<f64>; 4]| {
            times.map(|took| RequestRecord { size: 1, began: Some(0.0), took, given_up: false })
        };
        let here = list([Some(3.0), None, Some(1.0), None]);
        let there = list([Some(2.0), Some(1.0), None, None]);
        assert_eq!(ratios(&here, &there).collect::<Vec<_>>(), [Some(1.5), None]);
    }
}
