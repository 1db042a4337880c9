//! The proportion manager of BMC (section 2.2): a pure function over weights and what they yield.

use super::options::{BmcOptions, WeightStep};

/// Moves weight between paths once (Honda et al., 2.2). The path with the least of `throughputs`
/// gives weight to the path with the largest. `throughputs[i]` is T_wr of path i: its RTT times its
/// throughput, divided by its weight. All are in one unit.
pub fn step(weights: &mut [f64], throughputs: &[f64], options: &BmcOptions) {
    let order = |a: &usize, b: &usize| throughputs[*a].total_cmp(&throughputs[*b]);
    let known = || 0..weights.len().min(throughputs.len());
    let (Some(least), Some(largest)) = (known().min_by(order), known().max_by(order)) else { return };
    if throughputs[least] >= (1.0 - options.hysteresis) * throughputs[largest] {
        return;
    }
    let weight = weights[least];
    let imbalance = match options.step {
        WeightStep::Square => 1.0,
        WeightStep::Proportional => 1.0 - (throughputs[least] / throughputs[largest]).max(0.0),
    };
    // With many paths a weight may be less than the floor from the beginning. Such a path keeps its
    // weight.
    let floor = options.floor.min(weight);
    let freed = ((weight - weight * weight) * imbalance).min(weight - floor);
    weights[least] -= freed;
    weights[largest] += freed;
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// T_wr of two paths (Honda et al., figure 2): throughput times RTT, divided by weight D. Both
    /// RTTs are set to 1, so T_wr is in Mbit/s. Beside one TCP on a link of C Mbit/s, throughput is
    /// `C D/(1 + D)`. So T_wr is `C/(1 + D)`.
    fn figure_2(weights: [f64; 2]) -> [f64; 2] {
        [12.0 / (1.0 + weights[0]), 18.0 / (1.0 + weights[1])]
    }

    fn run(options: &BmcOptions, steps: usize) -> Vec<f64> {
        let mut weights = [0.5, 0.5];
        (0..steps)
            .map(|_| {
                let throughputs = figure_2(weights);
                step(&mut weights, &throughputs, options);
                assert!((weights[0] + weights[1] - 1.0).abs() < 1e-12);
                weights[0]
            })
            .collect()
    }

    #[test]
    fn o13_a_fifth_and_four_fifths_are_where_nothing_moves() {
        let [first, second] = figure_2([0.2, 0.8]);
        assert!((first - 10.0).abs() < 1e-12 && (second - 10.0).abs() < 1e-12);
        let mut weights = [0.2, 0.8];
        step(&mut weights, &[10.0, 10.0], &BmcOptions::LITERAL);
        assert_eq!(weights, [0.2, 0.8]);
        // The paper's example has T_wr 2 and 3 for weights of a half; by (6) they are 8 and 12.
        assert_eq!(figure_2([0.5, 0.5]), [8.0, 12.0]);
    }

    #[test]
    fn o13_the_literal_map_circles_the_fixed_point() {
        let expected = [0.25, 0.0625, 0.121, 0.2275, 0.052, 0.101, 0.192, 0.347, 0.120];
        for (weight, expected) in run(&BmcOptions::LITERAL, 9).iter().zip(expected) {
            assert!((weight - expected).abs() < 1e-3, "{weight}, expected {expected}");
        }
        let later = run(&BmcOptions::LITERAL, 1_000);
        let (least, largest) =
            later[500..].iter().fold((1.0_f64, 0.0_f64), |(a, b), w| (a.min(*w), b.max(*w)));
        assert!(largest / least > 4.0, "{least} to {largest}");
    }

    #[test]
    fn o13_hysteresis_stops_it_and_proportion_meets_it() {
        let still = run(&BmcOptions { hysteresis: 0.1, ..BmcOptions::LITERAL }, 20);
        assert!(still.iter().all(|weight| (weight - 0.25).abs() < 1e-12), "{still:?}");
        let settled = run(&BmcOptions::RECOMMENDED, 60);
        assert!((settled[59] - 0.2).abs() < 1e-6, "{settled:?}");
    }

    #[test]
    fn a_path_that_yields_nothing_keeps_the_floor() {
        let mut weights = [0.5, 0.5];
        for _ in 0..100 {
            step(&mut weights, &[0.0, 1.0], &BmcOptions::RECOMMENDED);
        }
        assert_eq!(weights, [0.02, 0.98]);
    }
}
