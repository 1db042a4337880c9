//! The values at which known misses were accepted: `accepted.tsv`, a line for each bound, scene and
//! figure. A miss that is worse than that fails.

use super::bounds;
use super::judge::Limit;

/// Bound, scene, figure and value, apart by tabs.
const TABLE: &str = include_str!("accepted.tsv");
/// Part of the accepted value by which a result may be worse: one seed scatters so far when
/// anything before it changes.
const NOISE: f64 = 0.1;

/// A known miss beside the value at which it was accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Acceptance {
    /// Nobody accepted a value.
    Missing,
    /// Worse than this accepted value, by more than noise.
    Worse(f64),
    /// As it was accepted.
    Alike,
    /// Better than this accepted value, by more than noise.
    Better(f64),
}

/// Compares the value of a missed bound with the accepted one.
pub(super) fn compare(bound: &str, scene: &str, figure: &str, value: f64, limit: Limit) -> Acceptance {
    accepted(bound, scene, figure).map_or(Acceptance::Missing, |accepted| beside(value, accepted, limit))
}

fn accepted(bound: &str, scene: &str, figure: &str) -> Option<f64> {
    TABLE.lines().find_map(|line| {
        let mut words = line.split('\t');
        let is_it = [bound, scene, figure].into_iter().all(|word| words.next() == Some(word));
        words.next().filter(|_| is_it)?.parse().ok()
    })
}

fn beside(value: f64, accepted: f64, limit: Limit) -> Acceptance {
    if value.is_infinite() && accepted.is_infinite() {
        return Acceptance::Alike;
    }
    let worse = match limit {
        Limit::AtMost(_) => value - accepted,
        Limit::AtLeast(_) => accepted - value,
    };
    let slack = if accepted.is_finite() { (NOISE * libm::fabs(accepted)).max(bounds::ALIKE) } else { 0.0 };
    if worse > slack {
        Acceptance::Worse(accepted)
    } else if worse < -slack {
        Acceptance::Better(accepted)
    } else {
        Acceptance::Alike
    }
}

#[cfg(test)]
mod tests {
    use super::super::known::KNOWN;
    use super::super::known_full::KNOWN_IN_FULL;
    use super::*;

    #[test]
    fn each_line_is_a_known_miss_with_a_value() {
        for line in TABLE.lines() {
            let words: Vec<&str> = line.split('\t').collect();
            let [bound, scene, figure, value] = words[..] else { panic!("{line}") };
            assert!(value.parse::<f64>().is_ok_and(|value| !value.is_nan()), "{line}");
            assert!(super::super::Figure::ALL.iter().any(|known| known.name() == figure) || figure == "part");
            let mut all = KNOWN.iter().chain(KNOWN_IN_FULL);
            assert!(all.any(|known| known.bound == bound && scene.starts_with(known.scene)), "{line}");
        }
    }

    #[test]
    fn a_miss_is_compared_with_the_accepted_one() {
        let (most, least) = (Limit::AtMost(5.0), Limit::AtLeast(0.25));
        for (value, accepted, limit, is) in [
            (8.0, 8.0, most, Acceptance::Alike),
            (8.7, 8.0, most, Acceptance::Alike),
            (9.0, 8.0, most, Acceptance::Worse(8.0)),
            (f64::INFINITY, 8.0, most, Acceptance::Worse(8.0)),
            (8.0, f64::INFINITY, most, Acceptance::Better(f64::INFINITY)),
            (f64::INFINITY, f64::INFINITY, most, Acceptance::Alike),
            (0.0, 0.2, least, Acceptance::Worse(0.2)),
            (0.0, 0.01, least, Acceptance::Alike),
            (0.24, 0.2, least, Acceptance::Better(0.2)),
        ] {
            assert_eq!(beside(value, accepted, limit), is, "{value} {accepted}");
        }
    }
}
