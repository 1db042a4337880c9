//! The paper's proportion manager and the one that comes to rest, as values of one type.

/// How far the weight of the path that makes least of it goes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightStep {
    /// (7): to its square. That overshoots whatever there is to be met, for ever.
    Square,
    /// The path with the least T_wr loses the weight `(D - D^2) * (1 - least T_wr / largest T_wr)`.
    /// D is its weight. T_wr is a path's throughput times RTT, divided by its weight. For nearly
    /// equal T_wr the loss is small, so weights settle.
    Proportional,
}

/// What the paper leaves open or use in earnest wants otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BmcOptions {
    /// How far a weight goes down.
    pub step: WeightStep,
    /// The hysteresis: weight moves only if the least T_wr is below the largest by more than this
    /// share of the largest.
    pub hysteresis: f64,
    /// The number below which no weight goes, so that repeated squaring stops no path.
    pub floor: f64,
}

impl BmcOptions {
    /// Section 2.2 word by word.
    pub const LITERAL: Self = Self { step: WeightStep::Square, hysteresis: 0.0, floor: 0.0 };

    /// What settles where the paper wants it to.
    pub const RECOMMENDED: Self = Self { step: WeightStep::Proportional, hysteresis: 0.0, floor: 0.02 };
}
