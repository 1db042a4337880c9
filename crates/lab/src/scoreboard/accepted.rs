//! The values at which known misses were accepted: `accepted.tsv`, a line for each bound, scene and
//! figure. They are the worst of seeds 1 to 5 in the quick form, and of seed 1 elsewhere. A miss
//! that is worse than that fails.

use super::bound::Limit;
use super::bounds;
use crate::acceptance::{Acceptance, MissedBounds};

/// Bound, scene, figure and value, apart by tabs.
const ACCEPTED_VALUES: &str = include_str!("accepted.tsv");

/// Compares the value of a missed bound with the accepted one.
pub(super) fn compare(bound: &str, scene: &str, figure: &str, value: f64, limit: Limit) -> Acceptance {
    let missed = match limit {
        Limit::AtMost(most) => MissedBounds { at_most: Some(most), at_least: None },
        Limit::AtLeast(least) => MissedBounds { at_least: Some(least), at_most: None },
    };
    missed.compare(value, accepted(bound, scene, figure), bounds::RATIO_TOLERANCE)
}

fn accepted(bound: &str, scene: &str, figure: &str) -> Option<f64> {
    ACCEPTED_VALUES.lines().find_map(|line| {
        let mut words = line.split('\t');
        let is_it = [bound, scene, figure].into_iter().all(|word| words.next() == Some(word));
        words.next().filter(|_| is_it)?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::super::known::KNOWN_FAILURES;
    use super::super::known_full::KNOWN_FULL_FAILURES;
    use super::super::known_jitter::KNOWN_JITTER_FAILURES;
    use super::*;

    #[test]
    fn each_line_is_a_known_miss_with_a_value() {
        for line in ACCEPTED_VALUES.lines() {
            let words: Vec<&str> = line.split('\t').collect();
            let [bound, scene, figure, value] = words[..] else { panic!("{line}") };
            assert!(value.parse::<f64>().is_ok_and(|value| !value.is_nan()), "{line}");
            assert!(super::super::Figure::ALL.iter().any(|known| known.name() == figure) || figure == "part");
            let mut all = KNOWN_FAILURES.iter().chain(KNOWN_FULL_FAILURES).chain(KNOWN_JITTER_FAILURES);
            assert!(all.any(|known| known.bound == bound && scene.starts_with(known.scene)), "{line}");
        }
    }
}
