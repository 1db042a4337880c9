//! The utility of a scavenger. A rate is worth something, and costs what it makes others lose and
//! wait.

use super::interval::Interval;
use super::noise::RttSignal;

/// The coefficients of a utility. Rates are in Mbit/s, times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UtilityOptions {
    /// The exponent of the rate. .9.
    pub exponent: f64,
    /// The cost of an RTT that grows by a second in a second. 900.
    pub gradient: f64,
    /// The cost of losing everything. 11.35.
    pub loss: f64,
    /// The cost of a deviation of the RTT by a second. 1500; 0 as in a primary sender.
    pub deviation: f64,
}

impl UtilityOptions {
    /// The scavenger's coefficients (`pcc_utility_manager.cpp`).
    pub const SCAVENGER: Self = Self { exponent: 0.9, gradient: 900.0, loss: 11.35, deviation: 1_500.0 };

    /// The utility of an interval.
    pub(super) fn of(&self, interval: &Interval, signal: RttSignal) -> f64 {
        let rate = interval.sent_rate() * 8e-6;
        let cost =
            self.gradient * signal.gradient + self.loss * interval.loss() + self.deviation * signal.deviation;
        libm::pow(rate, self.exponent) - rate * cost
    }
}
