//! Figure 2 as printed and as it works, as values of one type.

/// The parameters of a source. Rates are in any one unit; the presets are in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WangOptions {
    /// m, the source's demand, in the unit of rates. Infinite: the source has more to send than all
    /// paths carry.
    pub demand: f64,
    /// epsilon, the constant part of a raise, in the unit of rates.
    pub epsilon: f64,
    /// alpha > 1, the factor by which a success multiplies the rate increment term.
    pub alpha: f64,
    /// gamma > 1, the factor by which a failure divides the rate increment term.
    pub gamma: f64,
    /// delta, a share of the rate. A raise has succeeded if no larger share was not received.
    pub delta: f64,
    /// beta(0), the rate increment term of a new path, in the unit of rates. 0 means additive
    /// increase and decrease (A-AIAD).
    pub beta: f64,
    /// Whether a raise that meets the demand rewrites the rate increment term, to what was raised
    /// in fact. Then a source that once had all on one path has a term of 0 there for ever.
    pub rewrite: bool,
    /// The most that a rate increment term grows to, in the unit of rates.
    pub cap: f64,
    /// No path's probability falls below this (or half of its equal share). The proof of theorem 1
    /// wants it positive.
    pub floor: f64,
    /// By how much less than the rate may arrive without being a failure. It is a packet per
    /// interval, since packets do not come in parts.
    pub slack: f64,
}

impl WangOptions {
    /// Figure 2 word by word, with the parameters of figure 3 and table I: 1.2 Mbit/s, 0.5 kbit/s.
    pub const LITERAL: Self = Self {
        demand: 150_000.0,
        epsilon: 62.5,
        alpha: 1.1,
        gamma: 2.0,
        delta: 0.03,
        beta: 0.1,
        rewrite: true,
        cap: f64::INFINITY,
        floor: 0.0,
        slack: 0.0,
    };

    /// A source with terms that recover and probabilities that do not vanish. The slack is a packet
    /// of 500 bytes per interval of 0.4 s.
    pub const RECOMMENDED: Self =
        Self { rewrite: false, cap: 1.0, floor: 0.01, slack: 1_250.0, ..Self::LITERAL };
}
