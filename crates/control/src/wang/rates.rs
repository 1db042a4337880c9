//! The rate controller of one source: figure 2 of the paper, as arithmetic.

use super::options::WangOptions;
use crate::seeded_random::Random;
use alloc::vec::Vec;

/// The largest rate, which keeps sums finite whatever is reported.
const MAX_RATE: f64 = 1e15;

/// Sets the rates of a source's paths once per control interval, by the receiver's results of the
/// interval before.
#[derive(Clone, Debug)]
pub struct RateController {
    options: WangOptions,
    random: Random,
    /// y: application-level path rates.
    rates: Vec<f64>,
    /// p: how likely a path is raised.
    probabilities: Vec<f64>,
    /// beta: rate increment terms.
    terms: Vec<f64>,
    /// g: the path whose rate was raised, and its earlier rate. `None`: no rate was raised.
    raised: Option<(usize, f64)>,
}

impl RateController {
    /// Makes a source that sends at `rates` until the first interval, y(0) in the paper. Each
    /// probability p(0) is 1/k.
    #[must_use]
    pub fn new(options: WangOptions, rates: &[f64], seed: u64) -> Self {
        let count = rates.len();
        Self {
            options,
            random: Random::new(seed),
            rates: rates.to_vec(),
            probabilities: alloc::vec![1.0 / count.max(1) as f64; count],
            terms: alloc::vec![options.beta; count],
            raised: None,
        }
    }

    /// y: the rate of each path until the next interval.
    #[must_use]
    pub fn rates(&self) -> &[f64] {
        &self.rates
    }

    /// The index of the path whose rate is raised in this interval. `None`: no rate is.
    #[must_use]
    pub fn raised(&self) -> Option<usize> {
        self.raised.map(|(path, _)| path)
    }

    /// Returns the last increase of the rate of the path that is being raised. 0: no path is.
    #[must_use]
    pub fn last_raise(&self) -> f64 {
        self.raised.map_or(0.0, |(path, before)| self.rates[path] - before)
    }

    /// Sets epsilon (the constant part of a raise) and the slack from the next interval on. Both
    /// become `packet`: the rate of one packet per interval, in the unit of rates. Slack: how much
    /// less than sent may arrive before a raise counts as failed.
    pub fn set_packet(&mut self, packet: f64) {
        (self.options.epsilon, self.options.slack) = (packet, packet);
    }

    /// m: sets the demand. If the sum of all rates exceeds it, all rates fall by the same factor.
    pub fn set_demand(&mut self, demand: f64) {
        self.options.demand = demand;
        let sum: f64 = self.rates.iter().sum();
        if sum > demand {
            let part = (demand / sum).max(0.0);
            self.rates.iter_mut().for_each(|rate| *rate *= part);
            self.raised = self.raised.map(|(path, before)| (path, before * part));
        }
    }

    /// epsilon: sets the constant part of a raise, from the next on.
    pub fn set_epsilon(&mut self, epsilon: f64) {
        self.options.epsilon = epsilon;
    }

    /// Appends a path that sends at `rate`.
    pub fn add(&mut self, rate: f64) {
        let mean = 1.0 / (self.rates.len() + 1) as f64;
        self.rates.push(rate);
        self.terms.push(self.options.beta);
        self.probabilities.push(mean / (1.0 - mean).max(f64::MIN_POSITIVE));
        self.normalise();
    }

    /// Sets the rate of a path of which nothing is known any more.
    pub fn reset(&mut self, path: usize, rate: f64) {
        if let (Some(own), Some(term)) = (self.rates.get_mut(path), self.terms.get_mut(path)) {
            (*own, *term) = (rate, self.options.beta);
        }
        self.raised = self.raised.filter(|(raised, _)| *raised != path);
    }

    /// Removes a path. The indices of later paths decrease by 1.
    pub fn remove(&mut self, path: usize) {
        if path < self.rates.len() {
            self.rates.remove(path);
            self.terms.remove(path);
            self.probabilities.remove(path);
            self.normalise();
            self.raised = match self.raised {
                Some((raised, _)) if raised == path => None,
                Some((raised, before)) if raised > path => Some((raised - 1, before)),
                other => other,
            };
        }
    }

    /// Begins the next control interval. `received` is x: the rate at which the receiver got data
    /// over each path in the last interval.
    pub fn interval(&mut self, received: &[f64]) {
        let failed = self.raised.take().and_then(|(path, before)| {
            let received = received.get(path).copied().unwrap_or(0.0);
            (!self.judge(path, before, received)).then_some(path)
        });
        if let Some(path) = self.choose(failed) {
            self.raise(path);
        }
    }

    /// Step 1 of the algorithm. Returns whether the raise has succeeded.
    fn judge(&mut self, path: usize, before: f64, received: f64) -> bool {
        let WangOptions { alpha, gamma, delta, cap, slack, .. } = self.options;
        // x/y >= 1 - delta; a rate of zero was received.
        let success = received >= (1.0 - delta) * self.rates[path] - slack;
        if success {
            self.probabilities[path] = (2.0 * self.probabilities[path]).min(1.0);
            self.terms[path] = (self.terms[path] * alpha).min(cap);
        } else {
            // The paper takes a raise back by `y = (y - epsilon)/(1 + beta)`, which gives the rate
            // before the raise. If the raise has lowered the rates of other paths, those rates stay
            // low until they are raised themselves.
            self.rates[path] = before;
            self.probabilities[path] /= 2.0;
            self.terms[path] /= gamma;
        }
        self.normalise();
        success
    }

    /// The probabilities are 1 in sum.
    fn normalise(&mut self) {
        let floor = self.options.floor.min(0.5 / self.probabilities.len().max(1) as f64);
        for _ in 0..2 {
            let sum: f64 = self.probabilities.iter().sum();
            for probability in &mut self.probabilities {
                *probability = (*probability / sum.max(f64::MIN_POSITIVE)).max(floor);
            }
        }
    }

    /// Draws a random path other than `except`, unless it is the only one.
    fn choose(&mut self, except: Option<usize>) -> Option<usize> {
        let candidates = || (0..self.rates.len()).filter(|path| Some(*path) != except);
        let sum: f64 = candidates().map(|path| self.probabilities[path]).sum();
        let mut lot = self.random.unit() * sum;
        let drawn = candidates().find(|path| {
            lot -= self.probabilities[*path];
            lot < 0.0
        });
        // If all remaining paths have a probability of 0, the last of them is chosen.
        drawn.or_else(|| candidates().next_back()).or(except)
    }

    /// Step 2 of the algorithm raises the rate of a path.
    fn raise(&mut self, path: usize) {
        let WangOptions { demand, epsilon, rewrite, .. } = self.options;
        let before = self.rates[path];
        let raised = (before * (1.0 + self.terms[path]) + epsilon).min(demand).min(MAX_RATE);
        if rewrite && raised >= demand {
            // A rate of zero cannot be raised by a factor, so the whole raise counts as the
            // constant part.
            let factor = if before > 0.0 { (raised - epsilon) / before - 1.0 } else { 0.0 };
            self.terms[path] = factor.max(0.0);
        }
        self.rates[path] = raised;
        self.raised = Some((path, before));
        // "Normalize y_j, j != g, such that the sum is m." Figure 2 prints h for g.
        let others = self.rates.iter().sum::<f64>() - raised;
        if others > 0.0 && others + raised > demand {
            let scale = ((demand - raised) / others).max(0.0);
            for (_, rate) in self.rates.iter_mut().enumerate().filter(|(other, _)| *other != path) {
                *rate *= scale;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: WangOptions = WangOptions { demand: 100.0, epsilon: 1.0, beta: 0.5, ..WangOptions::LITERAL };

    /// A source with one path, so that there is no lot to draw.
    fn single(options: WangOptions, rate: f64) -> RateController {
        let mut source = RateController::new(options, &[rate], 1);
        source.interval(&[]);
        source
    }

    #[test]
    fn a_raise_is_taken_back_to_where_it_began() {
        let mut source = single(PLAIN, 10.0);
        assert_eq!(source.rates(), [16.0]);
        // A success: the term is .55 now. 16 * 1.55 + 1.
        source.interval(&[15.6]);
        assert!((source.rates()[0] - 25.8).abs() < 1e-12);
        // More than 3 % is missing: back to 16, and a term of .275.
        source.interval(&[25.0]);
        assert!((source.rates()[0] - (16.0 * 1.275 + 1.0)).abs() < 1e-12, "{source:?}");
    }

    #[test]
    fn what_meets_the_demand_rewrites_the_term_by_option() {
        for (rewrite, term) in [(true, 0.2375), (false, 0.5)] {
            let source = single(WangOptions { rewrite, ..PLAIN }, 80.0);
            assert_eq!(source.rates(), [100.0]);
            assert!((source.terms[0] - term).abs() < 1e-12, "{:?}", source.terms);
        }
        // At the demand already, it is 0, and stays so.
        let mut source = single(PLAIN, 100.0);
        source.interval(&[100.0]);
        assert_eq!(source.terms, [0.0]);
        assert_eq!(single(WangOptions { epsilon: 200.0, ..PLAIN }, 0.0).terms, [0.0], "no division by zero");
    }

    #[test]
    fn the_others_give_what_is_beyond_the_demand_and_do_not_get_it_back() {
        let mut source = RateController::new(PLAIN, &[50.0, 30.0, 20.0], 1);
        source.interval(&[]);
        let raised = source.raised().unwrap_or_default();
        let before = [50.0, 30.0, 20.0];
        let to: f64 = before[raised] * 1.5 + 1.0;
        assert!((source.rates()[raised] - to).abs() < 1e-12);
        assert!((source.rates().iter().sum::<f64>() - 100.0).abs() < 1e-9);
        let squeezed: Vec<f64> = source.rates().to_vec();
        source.interval(&[0.0; 3]);
        let next = source.raised().unwrap_or_default();
        assert_ne!(next, raised, "not the one that failed");
        assert!((source.rates()[raised] - before[raised]).abs() < 1e-12);
        let third = 3 - raised - next;
        assert!((source.rates()[third] - squeezed[third]).abs() < 1e-12);
    }

    #[test]
    fn probabilities_double_and_halve_and_keep_the_floor() {
        let options = WangOptions { floor: 0.01, ..PLAIN };
        let mut source = RateController::new(options, &[1.0, 1.0], 3);
        for _ in 0..1_000 {
            let good = source.raised() == Some(0);
            let received = if good { source.rates().to_vec() } else { alloc::vec![0.0; 2] };
            source.interval(&received);
            assert!(source.probabilities.iter().all(|p| *p > 0.009), "{:?}", source.probabilities);
        }
        assert!(source.probabilities[0] > 0.98, "{:?}", source.probabilities);
    }

    #[test]
    fn a_demand_that_falls_takes_its_part_of_every_rate() {
        let mut source = RateController::new(PLAIN, &[60.0, 40.0], 1);
        source.interval(&[]);
        source.set_demand(50.0);
        assert!((source.rates().iter().sum::<f64>() - 50.0).abs() < 1e-9, "{source:?}");
        source.interval(&[0.0; 2]);
        assert!(source.rates().iter().sum::<f64>() <= 50.0 + 1e-9, "{source:?}");
        source.set_demand(80.0);
        source.set_epsilon(30.0);
        let before = source.rates().iter().sum::<f64>();
        let received = source.rates().to_vec();
        source.interval(&received);
        let after = source.rates().iter().sum::<f64>();
        assert!(after > before && after <= 80.0 + 1e-9, "{before} {after}");
    }

    #[test]
    fn paths_come_and_go() {
        let mut source = RateController::new(WangOptions { demand: f64::INFINITY, ..PLAIN }, &[], 1);
        source.interval(&[]);
        assert_eq!(source.raised(), None);
        for rate in [5.0, 6.0, 7.0] {
            source.add(rate);
        }
        source.interval(&[]);
        let sum: f64 = source.probabilities.iter().sum();
        assert!(
            (sum - 1.0).abs() < 1e-9 && source.probabilities.iter().all(|p| (p - 1.0 / 3.0).abs() < 1e-9)
        );
        source.remove(1);
        assert_eq!(source.rates().len(), 2);
        assert!(source.raised().is_none_or(|path| path < 2));
    }
}
