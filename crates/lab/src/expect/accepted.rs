//! How a known miss compares with the value at which it was accepted.

use super::Measured;

/// Part of the accepted value by which a result may be worse: seeds scatter so far where only one
/// is run.
const NOISE: f64 = 0.1;

/// A known miss beside the accepted one.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Comparison {
    /// Nobody accepted a value in this mode.
    NotAccepted,
    /// Worse than accepted, by more than noise. A sentence tells both values.
    Worse(String),
    /// As it was accepted.
    Alike,
    /// Better, by more than noise. A sentence tells both values.
    Better(String),
}

/// The bounds of a claim that is missed.
#[derive(Clone, Copy, Debug)]
pub(super) struct MissedBounds {
    /// The measure should be no less.
    pub at_least: Option<f64>,
    /// The measure should be no more.
    pub at_most: Option<f64>,
}

impl MissedBounds {
    /// Compares what decides a missed claim with the accepted value. That value is the end of the
    /// interval that lies beyond the bound; NaN stands for a seed without a value.
    pub(super) fn compare(self, decides: &Measured, accepted: Option<f64>) -> Comparison {
        let Some(accepted) = accepted else { return Comparison::NotAccepted };
        let interval = decides.interval.filter(|_| decides.missing.is_empty());
        let (value, width) = match interval {
            Some(interval) => (self.end_beyond(interval.low, interval.high), interval.high - interval.low),
            None => (f64::NAN, 0.0),
        };
        let (now, before) = (self.beyond(value), self.beyond(accepted));
        let slack = (NOISE * libm::fabs(accepted)).max(width);
        let sentence =
            |word: &str| format!("{word} than accepted: {} instead of {}", told(value), told(accepted));
        match (now.is_finite(), before.is_finite()) {
            (false, false) => Comparison::Alike,
            (false, true) => Comparison::Worse(sentence("worse")),
            (true, false) => Comparison::Better(sentence("better")),
            (true, true) if now > before + slack => Comparison::Worse(sentence("worse")),
            (true, true) if now < before - slack => Comparison::Better(sentence("better")),
            (true, true) => Comparison::Alike,
        }
    }

    /// The end of an interval that lies further beyond the bounds.
    fn end_beyond(self, low: f64, high: f64) -> f64 {
        if self.beyond(low) >= self.beyond(high) { low } else { high }
    }

    /// How far a value lies beyond the bounds; negative: within. A value that is none lies
    /// infinitely far beyond.
    fn beyond(self, value: f64) -> f64 {
        if value.is_nan() {
            return f64::INFINITY;
        }
        let below = self.at_least.map(|least| least - value);
        let above = self.at_most.map(|most| value - most);
        below.into_iter().chain(above).fold(f64::NEG_INFINITY, f64::max)
    }
}

fn told(value: f64) -> String {
    if value.is_nan() { "no value".to_owned() } else { super::table::number(value) }
}
