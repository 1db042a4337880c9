//! The rate that cross traffic leaves of a core line, by line, direction and hour of the day.
//!
//! The mean over the day is log-uniform. The hour changes it by a swing of the local time, and by a
//! draw of this hour. `EDGE_CONGESTED_SHARE` is calibrated. All other numbers are choices.

use super::super::parameters::dice;

/// The least and the most that cross traffic leaves of a congested line, in Mbit/s, in the mean
/// over the day. Between them the rate is log-uniform, so a factor of ten is as likely anywhere.
/// The two decades hold the campus lines of 100 Mbit/s, so some pairs fill those and others do not.
const AVAILABLE_MBIT: [f64; 2] = [5.0, 500.0];
/// The rate in Mbit/s of an edge network's line that is not congested.
const UNCONGESTED_MBIT: f64 = 1_000.0;
/// The share of lines between an edge network and its provider that are congested. It is calibrated
/// on Haddow et al. (PAM 2011). On PlanetLab 74.8 % of the pairs have a detour with 1.2 times the
/// rate and 1 Mbit/s more. Here 75.1 % of the pairs of 152 relays have one, over seeds 1 to 5. With
/// a share of 0.8 it would be 72 %, and with 1 it would be 68 %. `tests/it/topology_random.rs`
/// computes it.
const EDGE_CONGESTED_SHARE: f64 = 0.6;
/// The amplitude of the rate over the day, as a share of the mean. A guess.
const DAY_SWING: f64 = 0.3;
/// The local hour at which cross traffic leaves least. Traffic of homes peaks in the evening.
const BUSIEST_HOUR: f64 = 20.0;
/// The factor by which one hour of a line may differ from another, up or down. A guess.
const HOUR_FACTOR: f64 = 1.25;

/// The ends of a core line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CoreLine {
    /// A line between routers of backbones or regional networks. It is always congested.
    Between,
    /// An edge network, or several with a common line, and a provider.
    Edge,
}

/// A number from `least` to `most`, of which the logarithm is uniform, for a draw from 0 to 1.
fn log_uniform(draw: f64, [least, most]: [f64; 2]) -> f64 {
    least * libm::pow(most / least, draw)
}

/// The available rate in Mbit/s of the line between two nodes, in the direction from the first to
/// the second. The hour is in UTC, and also given as the line's local time.
pub(super) fn available_mbit(
    seed: u64,
    [from, to]: [&str; 2],
    kind: CoreLine,
    hour: usize,
    local_hour: f64,
) -> f64 {
    let mut line = dice(seed, &format!("available rate from {from} to {to}"));
    let mean = log_uniform(line.unit(), AVAILABLE_MBIT);
    if kind == CoreLine::Edge && !line.chance(EDGE_CONGESTED_SHARE) {
        return UNCONGESTED_MBIT;
    }
    let since_busiest = (local_hour - BUSIEST_HOUR) / 24.0;
    let swing = 1.0 - DAY_SWING * libm::cos(2.0 * core::f64::consts::PI * since_busiest);
    let chance = dice(seed, &format!("hour {hour} from {from} to {to}")).unit();
    mean * swing * log_uniform(chance, [1.0 / HOUR_FACTOR, HOUR_FACTOR])
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: usize = 4_000;

    /// The available rates of many lines at this hour, both in UTC and in local time.
    fn rates(hour: usize) -> Vec<f64> {
        let rate = |line: usize| {
            available_mbit(1, ["a1.paris", &format!("b{line}")], CoreLine::Between, hour, hour as f64)
        };
        (1..=LINES).map(rate).collect()
    }

    #[test]
    fn each_factor_of_ten_has_half_of_the_lines() {
        // At 14 o'clock the swing is 1.
        let found = rates(14);
        let below = found.iter().filter(|&&rate| rate < 50.0).count() as f64 / LINES as f64;
        // Three standard deviations.
        assert!((below - 0.5).abs() < 0.024, "{below}");
        assert!(found.iter().all(|&rate| rate > 5.0 / HOUR_FACTOR && rate < 500.0 * HOUR_FACTOR));
    }

    #[test]
    fn a_line_has_less_left_in_the_evening_and_another_rate_each_hour() {
        let (evening, morning, next) = (rates(20), rates(8), rates(9));
        let mean = |rates: &[f64]| rates.iter().sum::<f64>() / LINES as f64;
        // 0.7 and 1.3 of the mean over the day.
        let ratio = mean(&morning) / mean(&evening);
        assert!((ratio / (1.3 / 0.7) - 1.0).abs() < 0.02, "{ratio}");
        let factors: Vec<f64> = morning.iter().zip(&next).map(|(one, other)| other / one).collect();
        let apart = |factor: &&f64| !(1.0 / 1.2..1.2).contains(*factor);
        let share = factors.iter().filter(apart).count() as f64 / LINES as f64;
        assert!((0.2..0.5).contains(&share), "{share}");
        assert!(factors.iter().all(|&factor| factor < 1.6 && factor > 0.6));
    }

    #[test]
    fn directions_of_a_line_differ_and_some_edge_lines_are_not_congested() {
        let rate = |from: &str, to: &str, kind| available_mbit(1, [from, to], kind, 12, 12.0);
        assert_ne!(rate("b1", "b2", CoreLine::Between), rate("b2", "b1", CoreLine::Between));
        let is_free = |edge: usize| rate("b1", &format!("e{edge}"), CoreLine::Edge) == UNCONGESTED_MBIT;
        let free = (1..=LINES).filter(|&edge| is_free(edge)).count() as f64;
        assert!((free / LINES as f64 - (1.0 - EDGE_CONGESTED_SHARE)).abs() < 0.024, "{free}");
    }
}
