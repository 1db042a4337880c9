//! The rate, by the utilities of what was tried. It is the rate control of PCC Vivace (NSDI 2018)
//! with the constants of `pcc_vivace_sender.cpp`. Rates are in Mbit/s.

use super::trials::TRIAL_STEP_SHARE;

/// The first limit of a step, and its growth with each step at the limit, as shares of the rate
/// (`kInitialMaxStepSize`, `kIncrementalStepSize`).
const STEP_SHARE: f64 = 0.05;
/// The exponent by which steps in one direction grow (`kRateChangeAmplifyExponent`).
const STEP_EXPONENT: f64 = 1.2;
/// The least step (`kMinRateChange`).
const MIN_STEP_MBIT: f64 = 0.5;
/// A rate above any line's.
const MAX_RATE_MBIT: f64 = 1e6;

/// The result of an interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    pub(super) rate: f64,
    pub(super) utility: f64,
}

/// How the next rates are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The rate doubles while that is of use.
    Starting,
    /// Two pairs of a higher and a lower rate are tried.
    Probing,
    /// The rate moves in the direction that was of use.
    Moving,
}

/// The rate control of a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateControl {
    mode: Mode,
    rate: f64,
    least: f64,
    /// +1 or -1.
    direction: f64,
    rounds: u32,
    /// The number of `STEP_SHARE`s by which a step may exceed the first limit.
    allowance: u32,
    latest: Outcome,
}

/// The change of utility from one outcome to another for each Mbit/s more.
fn slope(one: Outcome, other: Outcome) -> f64 {
    let step = one.rate - other.rate;
    if step.abs() > 0.0 { (one.utility - other.utility) / step } else { 0.0 }
}

impl RateControl {
    pub(super) fn new(rate: f64, least: f64) -> Self {
        let rate = rate.clamp(least, MAX_RATE_MBIT);
        let latest = Outcome::default();
        Self { mode: Mode::Starting, rate, least, direction: 1.0, rounds: 1, allowance: 0, latest }
    }

    pub(super) const fn mode(&self) -> Mode {
        self.mode
    }

    pub(super) const fn rate(&self) -> f64 {
        self.rate
    }

    /// Begins again with half of the rate.
    pub(super) fn restart(&mut self) {
        *self = Self::new(self.rate / 2.0, self.least);
    }

    /// Decides by the results of the tried rates: one, or two pairs while probing.
    pub(super) fn decide(&mut self, outcomes: &[Outcome]) {
        match (self.mode, outcomes) {
            (Mode::Starting, &[outcome]) => self.start(outcome),
            (Mode::Moving, &[outcome]) => self.go_on(outcome),
            (Mode::Probing, &[a, b, c, d]) => self.probe([(a, b), (c, d)]),
            _ => {}
        }
        if self.rate <= self.least {
            (self.rate, self.allowance) = (self.least, 0);
            if self.mode == Mode::Moving {
                self.begin(Mode::Probing);
            }
        }
        self.rate = self.rate.min(MAX_RATE_MBIT);
    }

    const fn begin(&mut self, mode: Mode) {
        (self.mode, self.rounds) = (mode, 1);
    }

    fn start(&mut self, outcome: Outcome) {
        if outcome.utility > self.latest.utility {
            self.rate *= 2.0;
            self.latest = outcome;
        } else {
            self.rate /= 2.0;
            self.begin(Mode::Probing);
        }
    }

    /// Both pairs must tell the same direction.
    fn probe(&mut self, pairs: [(Outcome, Outcome); 2]) {
        let slopes = pairs.map(|(one, other)| slope(one, other));
        let rise = slopes.iter().filter(|slope| **slope > 0.0).count();
        if rise == 1 {
            self.rounds += 1;
            if self.rate <= self.least {
                // Below the least rate there is nothing to try.
                self.begin(Mode::Starting);
            }
            return;
        }
        self.direction = if rise == 2 { 1.0 } else { -1.0 };
        let [_, (one, other)] = pairs;
        self.latest = if one.utility > other.utility { one } else { other };
        self.rate *= 1.0 + self.direction * TRIAL_STEP_SHARE;
        self.begin(Mode::Moving);
        self.allowance = 0;
        self.rate += self.direction * self.step(f64::midpoint(slopes[0], slopes[1]).abs());
    }

    fn go_on(&mut self, outcome: Outcome) {
        let slope = slope(outcome, self.latest);
        if slope * self.direction > 0.0 {
            self.rounds += 1;
            let factor = libm::pow(f64::from(self.rounds.div_ceil(2)), STEP_EXPONENT);
            self.rate += self.direction * self.step(slope.abs() * factor);
            self.latest = outcome;
        } else {
            // It went too far: a step back.
            self.begin(Mode::Probing);
            self.rate -= self.direction * self.step(slope.abs());
        }
    }

    /// Returns the next step, where `wanted` is the step according to the utility's slope.
    fn step(&mut self, wanted: f64) -> f64 {
        let most = self.rate * STEP_SHARE * f64::from(self.allowance + 1);
        let step = if wanted > most {
            self.allowance = self.allowance.saturating_add(1);
            most
        } else {
            self.allowance = self.allowance.saturating_sub(1);
            wanted
        };
        step.max(MIN_STEP_MBIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn outcome(rate: f64, utility: f64) -> Outcome {
        Outcome { rate, utility }
    }

    #[test]
    fn the_rate_doubles_while_that_is_of_use() {
        let mut control = RateControl::new(4.0, 0.5);
        for (rate, utility, next) in [(4.0, 3.0, 8.0), (8.0, 6.0, 16.0), (16.0, 5.0, 8.0)] {
            control.decide(&[outcome(rate, utility)]);
            assert!((control.rate() - next).abs() < 1e-9, "{}", control.rate());
        }
        assert_eq!(control.mode(), Mode::Probing);
    }

    #[test]
    fn pairs_that_differ_decide_nothing_and_pairs_that_agree_move_the_rate() {
        let mut control = RateControl::new(20.0, 0.5);
        control.decide(&[outcome(20.0, -1.0)]);
        let up = [outcome(10.5, 9.0), outcome(9.5, 8.9)];
        let down = [outcome(10.5, 8.0), outcome(9.5, 8.9)];
        control.decide(&[up[0], up[1], down[1], down[0]]);
        assert!(control.mode() == Mode::Probing && (control.rate() - 10.0).abs() < 1e-9);
        control.decide(&[up[0], up[1], up[1], up[0]]);
        // The slope asks for .1, and the least step is .5.
        assert!(control.mode() == Mode::Moving && (control.rate() - 11.0).abs() < 1e-9);
        control.decide(&[outcome(11.0, 20.0)]);
        // .55, .05 of the rate: the slope asks for more.
        assert!((control.rate() - 11.55).abs() < 1e-9, "{}", control.rate());
        control.decide(&[outcome(11.55, 40.0)]);
        assert!((control.rate() - 11.55 * 1.1).abs() < 1e-9, "the limit doubles: {}", control.rate());
        let before = control.rate();
        control.decide(&[outcome(12.7, 30.0)]);
        assert!(control.mode() == Mode::Probing && control.rate() < before, "a step back");
    }

    #[test]
    fn at_the_least_rate_it_starts_again() {
        let mut control = RateControl::new(1.0, 0.5);
        control.decide(&[outcome(1.0, -1.0)]);
        assert!((control.rate() - 0.5).abs() < 1e-9);
        let down = [outcome(0.525, 0.3), outcome(0.475, 0.4)];
        control.decide(&[down[0], down[1], down[0], down[1]]);
        assert!(control.mode() == Mode::Probing && (control.rate() - 0.5).abs() < 1e-9);
        control.decide(&[down[0], down[1], outcome(0.525, 0.5), outcome(0.475, 0.4)]);
        assert_eq!(control.mode(), Mode::Starting);
    }
}
