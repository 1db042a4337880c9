//! The paper's proportion manager and the one that comes to rest, as values of one type.

/// How much the weight of the least efficient path decreases.
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
    /// How far a weight goes down.
    pub step: WeightStep,
    /// The hysteresis: weight moves only if the least T_wr is below the largest by more than this
    /// share of the largest.
    pub hysteresis: f64,
    /// The smallest weight, so that repeated squaring stops no path.
    pub floor: f64,
}

impl BmcOptions {
    /// Section 2.2 word by word.
    pub const LITERAL: Self = Self { step: WeightStep::Square, hysteresis: 0.0, floor: 0.0 };

    /// The options that converge to the optimum of the paper.
    pub const RECOMMENDED: Self = Self { step: WeightStep::Proportional, hysteresis: 0.0, floor: 0.02 };
}
