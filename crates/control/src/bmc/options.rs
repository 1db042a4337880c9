//! The paper's proportion manager and the one that comes to rest, as values of one type.

/// The amount by which the weight of the least efficient path decreases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightStep {
    /// (7): to its square. This overshoots any optimum, again and again.
    Square,
    /// The path with the least T_wr loses the weight `(D - D^2) * (1 - least T_wr / largest T_wr)`.
    /// D is its weight. T_wr is a path's throughput times RTT, divided by its weight. For nearly
    /// equal T_wr the loss is small, so weights settle.
    Proportional,
}

/// The parts of BMC that the paper leaves open, or that practical use requires.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BmcOptions {
    /// The rule for a decrease of a weight.
    pub step: WeightStep,
    /// The hysteresis: weight moves only if the least T_wr is below the largest by more than this
    /// share of the largest.
    pub hysteresis: f64,
    /// The smallest weight, so that repeated squaring stops no path.
    pub floor: f64,
}

impl BmcOptions {
    /// The rules of section 2.2, literally.
    pub const LITERAL: Self = Self { step: WeightStep::Square, hysteresis: 0.0, floor: 0.0 };

    /// The options that converge to the optimum of the paper.
    pub const RECOMMENDED: Self = Self { step: WeightStep::Proportional, hysteresis: 0.0, floor: 0.02 };
}
