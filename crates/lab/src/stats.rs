//! Statistics over the values of a few seeds: the median and its confidence interval, fairness, and
//! rank correlation.
//!
//! Every function returns `None` where its result would have no meaning: for no values, or for
//! values that are not finite.

use serde::{Deserialize, Serialize};

/// A confidence interval for the median of the distribution that the values come from. Its ends are
/// two of the values, chosen by rank, so it holds for every distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end, one of the values.
    pub low: f64,
    /// The upper end, one of the values.
    pub high: f64,
    /// The probability that the true median lies between, 0 to 1.
    pub coverage: f64,
}

/// How sure an interval shall be, two-sided.
const CONFIDENCE_LEVEL: f64 = 0.95;

fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(sorted)
}

/// The arithmetic mean.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values)?;
    Some(sorted.iter().sum::<f64>() / sorted.len() as f64).filter(|mean| mean.is_finite())
}

/// The quantile `part` (0 to 1) of the values, by linear interpolation between neighbours (type 7
/// of Hyndman and Fan, 1996).
#[must_use]
pub fn quantile(values: &[f64], part: f64) -> Option<f64> {
    let sorted = sorted(values)?;
    if !(0.0..=1.0).contains(&part) {
        return None;
    }
    let place = part * (sorted.len() - 1) as f64;
    let below = libm::floor(place);
    let low = *sorted.get(below as usize)?;
    let high = *sorted.get(libm::ceil(place) as usize)?;
    let weight = place - below;
    // Weighed one by one: the difference of two huge numbers is not finite.
    Some(if weight == 0.0 { low } else { low * (1.0 - weight) + high * weight })
}

/// The middle value, or the mean of the two in the middle.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// A confidence interval for the median: from the k-th smallest to the k-th largest value. k is the
/// largest number for which the interval's confidence level is at least 95 %. With fewer than six
/// values, no k reaches 95 %; then k is 1.
///
/// Source: David and Nagaraja, Order Statistics, 7.1.
#[must_use]
pub fn median_interval(values: &[f64]) -> Option<Interval> {
    let sorted = sorted(values)?;
    let count = sorted.len();
    // The probability that the median lies outside of the values from the rank-th to its mirror
    // image. It grows by one term with each rank.
    let (mut rank, mut outside) = (1, 2.0 * half_binomial(count, 0));
    while 2 * (rank + 1) <= count {
        let next = outside + 2.0 * half_binomial(count, rank);
        if 1.0 - next < CONFIDENCE_LEVEL {
            break;
        }
        (rank, outside) = (rank + 1, next);
    }
    Some(Interval {
        low: *sorted.get(rank - 1)?,
        high: *sorted.get(count - rank)?,
        coverage: if count == 1 { 0.0 } else { 1.0 - outside },
    })
}

/// The probability of exactly `hits` heads in `count` throws of a fair coin.
fn half_binomial(count: usize, hits: usize) -> f64 {
    let factorial = |n: usize| libm::lgamma(n as f64 + 1.0);
    libm::exp(
        factorial(count) - factorial(hits) - factorial(count - hits) - count as f64 * core::f64::consts::LN_2,
    )
}

/// Jain's index of fairness, from 1/n (one of n values has everything) to 1 (all are equal). It is
/// `None` if all values are zero or one is negative. Source: Jain, Chiu and Hawe, DEC-TR-301.
#[must_use]
pub fn jain(values: &[f64]) -> Option<f64> {
    let most = *sorted(values)?.last()?;
    if most <= 0.0 || values.iter().any(|&value| value < 0.0) {
        return None;
    }
    // By the largest, so that no square leaves the range of numbers.
    let sum: f64 = values.iter().map(|value| value / most).sum();
    let squares: f64 = values.iter().map(|value| (value / most) * (value / most)).sum();
    Some(sum * sum / (values.len() as f64 * squares))
}

/// The sample standard deviation (divided by n - 1). `None` of fewer than two values.
#[must_use]
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    Some(libm::sqrt(squares / (values.len() - 1) as f64)).filter(|deviation| deviation.is_finite())
}

/// Spearman's rank correlation, from -1 to 1. Equal values get the mean of their ranks. It is
/// `None` if there are fewer than two pairs, or if all values on one side are equal.
#[must_use]
pub fn spearman(left: &[f64], right: &[f64]) -> Option<f64> {
    if left.len() != right.len() || left.len() < 2 {
        return None;
    }
    let (left, right) = (ranks(left)?, ranks(right)?);
    // Ranks with shared means still sum to n (n + 1) / 2.
    let mean = (left.len() as f64 + 1.0) / 2.0;
    let product = |one: &[f64], other: &[f64]| -> f64 {
        one.iter().zip(other).map(|(one, other)| (one - mean) * (other - mean)).sum()
    };
    let spread = product(&left, &left) * product(&right, &right);
    (spread > 0.0).then(|| (product(&left, &right) / libm::sqrt(spread)).clamp(-1.0, 1.0))
}

/// The rank of each value, from 1.
fn ranks(values: &[f64]) -> Option<Vec<f64>> {
    let sorted = sorted(values)?;
    let rank = |value: &f64| {
        let below = sorted.partition_point(|other| other < value);
        let upto = sorted.partition_point(|other| other <= value);
        (below + 1 + upto) as f64 / 2.0
    };
    Some(values.iter().map(rank).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0, f64::NAN]), None);
        assert_eq!(quantile(&[10.0, 20.0, 30.0, 40.0, 50.0], 0.9), Some(46.0));
        assert_eq!(quantile(&[1.0], 1.1), None);
    }

    #[test]
    fn the_interval_takes_the_ranks_of_the_table() {
        // Columns: the number n of values, the rank k, and the coverage. The interval goes from the
        // k-th smallest to the k-th largest value. Coverage, the probability that it contains the
        // median, is `1 - 2S/2^n`; S is the sum of `C(n, i)` over i < k.
        for (count, rank, coverage) in [
            (1, 1, 0.0),
            (2, 1, 0.5),
            (3, 1, 0.75),
            (5, 1, 0.9375),
            (6, 1, 0.968_75),
            (8, 1, 0.992_187_5),
            (9, 2, 0.960_937_5),
            (10, 2, 0.978_515_625),
            (11, 2, 0.988_281_25),
            (12, 3, 0.961_425_781_25),
            (20, 6, 0.958_610_534_667_968_8),
        ] {
            let values: Vec<f64> = (1..=count).rev().map(f64::from).collect();
            let interval = median_interval(&values).expect("values");
            assert_eq!(interval.low, f64::from(rank), "of {count}");
            assert_eq!(interval.high, f64::from(count + 1 - rank), "of {count}");
            assert!((interval.coverage - coverage).abs() < 1e-12, "of {count}: {}", interval.coverage);
        }
    }

    #[test]
    fn thousands_of_values_keep_the_confidence() {
        let values: Vec<f64> = (0..5000).map(f64::from).collect();
        let interval = median_interval(&values).expect("values");
        assert!((0.95..0.952).contains(&interval.coverage), "{}", interval.coverage);
        // 1.96 standard deviations of sqrt(5000) / 2 either side of the middle.
        assert!((interval.high - interval.low - 2.0 * 1.96 * 35.355).abs() < 3.0);
    }

    #[test]
    fn spearman_by_hand() {
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[10.0, 100.0, 1000.0]), Some(1.0));
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), Some(-1.0));
        // Ranks 1 2 3 4 5 against 2 1 4 3 5 give `1 - 6 x 4 / (5 x 24)`.
        let some = spearman(&[1.0, 2.0, 3.0, 4.0, 5.0], &[20.0, 10.0, 40.0, 30.0, 50.0]).expect("orders");
        assert!((some - 0.8).abs() < 1e-12);
        // With ties, ranks 1 2.5 2.5 4 against 1 2 3 4 give `4.5 / sqrt(4.5 x 5)`.
        let ties = spearman(&[1.0, 5.0, 5.0, 9.0], &[1.0, 2.0, 3.0, 4.0]).expect("orders");
        assert!((ties - 4.5 / libm::sqrt(22.5)).abs() < 1e-12);
        assert_eq!(spearman(&[1.0, 1.0], &[1.0, 2.0]), None, "nothing to order");
        assert_eq!(spearman(&[1.0], &[1.0]), None);
    }

    #[test]
    fn jain_and_deviation_by_hand() {
        assert_eq!(jain(&[5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(jain(&[8.0, 0.0, 0.0, 0.0]), Some(0.25));
        // `(1 + 3)^2 / (2 x 10)`.
        assert!((jain(&[1.0, 3.0]).expect("some") - 0.8).abs() < 1e-12);
        assert_eq!(jain(&[0.0, 0.0]), None);
        assert_eq!(jain(&[2.0, -1.0]), None);
        assert!((standard_deviation(&[1.0, 3.0]).expect("two") - libm::sqrt(2.0)).abs() < 1e-12);
        assert_eq!(standard_deviation(&[1.0]), None);
    }

    fn values(least: usize) -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(-1e6..1e6, least..40)
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_median_and_does_not_depend_on_order(mut values in values(1)) {
            let middle = median(&values).expect("values");
            let interval = median_interval(&values).expect("values");
            prop_assert!(interval.low <= middle && middle <= interval.high);
            prop_assert!(values.len() < 6 || interval.coverage >= 0.95);
            values.reverse();
            prop_assert_eq!(median_interval(&values), Some(interval));
        }

        #[test]
        fn quantiles_rise_from_the_least_to_the_most(values in values(1), one in 0.0..=1.0f64, other in 0.0..=1.0f64) {
            let at = |part| quantile(&values, part).expect("values");
            prop_assert!(at(one.min(other)) <= at(one.max(other)) + 1e-9);
            prop_assert_eq!(at(0.0), values.iter().copied().fold(f64::INFINITY, f64::min));
            prop_assert_eq!(at(1.0), values.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        }

        #[test]
        fn jain_lies_between_one_for_all_and_all_alike(values in prop::collection::vec(0.0..1e300f64, 1..30)) {
            if let Some(index) = jain(&values) {
                prop_assert!(index <= 1.0 + 1e-9 && index >= 1.0 / values.len() as f64 - 1e-9);
                let halves: Vec<f64> = values.iter().map(|value| value / 2.0).collect();
                prop_assert!((jain(&halves).expect("the same") - index).abs() < 1e-9, "no unit");
            }
        }

        #[test]
        fn spearman_sees_order_alone(pairs in prop::collection::vec((-100..100i32, -100..100i32), 2..30)) {
            let (left, right): (Vec<f64>, Vec<f64>) =
                pairs.iter().map(|&(one, other)| (f64::from(one), f64::from(other))).unzip();
            let stretched: Vec<f64> = left.iter().map(|value| value * value * value + 7.0).collect();
            let turned: Vec<f64> = right.iter().map(|value| -value).collect();
            if let Some(correlation) = spearman(&left, &right) {
                prop_assert!((-1.0..=1.0).contains(&correlation));
                prop_assert!((spearman(&stretched, &right).expect("same ranks") - correlation).abs() < 1e-9);
                prop_assert!((spearman(&left, &turned).expect("turned") + correlation).abs() < 1e-9);
                prop_assert!((spearman(&right, &left).expect("swapped") - correlation).abs() < 1e-9);
            }
        }

        #[test]
        fn deviation_moves_with_scale_and_not_with_place(values in values(2), place in -1e3..1e3f64) {
            let deviation = standard_deviation(&values).expect("two");
            let moved: Vec<f64> = values.iter().map(|value| 3.0 * value + place).collect();
            prop_assert!((standard_deviation(&moved).expect("two") - 3.0 * deviation).abs() < 1e-5 * (1.0 + deviation));
        }
    }
}
