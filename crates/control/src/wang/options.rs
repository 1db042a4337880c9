//! Figure 2 as printed and as it works, as values of one type.

/// The parameters of a source. Rates are in any one unit; the presets are in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WangOptions {
    /// m, the source's demand, in the unit of rates. If infinite, the source has more to send than
    /// all paths carry.
    pub demand: f64,
    /// epsilon, the constant part of a raise, in the unit of rates.
    pub epsilon: f64,
    /// alpha > 1, the factor by which a success multiplies the rate increment term.
    pub alpha: f64,
    /// gamma > 1, the factor by which a failure divides the rate increment term.
    pub gamma: f64,
    /// delta: the largest share of the rate that may be missing at the receiver if a raise has
    /// succeeded.
    pub delta: f64,
    /// The rate increment term of a new path, as a factor; beta(0) in the paper. A raise multiplies
    /// the path's rate by `1 + beta` and adds `epsilon`. With 0, rates change only by `epsilon`
    /// (the paper's A-AIAD).
    pub beta: f64,
    /// Whether a raise that the source's `demand` cuts short lowers beta to the increase that was
    /// possible. (A raise multiplies a path's rate by `1 + beta`.) If one path carries the whole
    /// demand, its beta becomes and stays 0, because beta changes only by factors.
    pub rewrite: bool,
    /// The most that a rate increment term grows to, as a factor.
    pub cap: f64,
    /// The smallest probability of a path, at most half of its equal share. The proof of theorem 1
    /// needs a positive one.
    pub floor: f64,
    /// A tolerance beside `delta`, in the unit of rates: a raise fails if the received rate is
    /// below `(1 - delta) * sent - slack`. Use the rate of one packet per interval, because only
    /// whole packets are counted. Wang et al. have no such tolerance (0).
    pub slack: f64,
}

impl WangOptions {
    /// The algorithm of the paper's figure 2, literally, with the parameters of figure 3 and table
    /// I: a demand of 1.2 Mbit/s and an epsilon of 0.5 kbit/s.
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

    /// Figure 2 of Wang et al. with four changes:
    ///
    /// | field | change |
    /// |---|---|
    /// | `rewrite` | demand never lowers beta (a raise multiplies a rate by `1 + beta`) |
    /// | `cap` | beta is at most 1 |
    /// | `floor` | each path keeps a least probability of a raise |
    /// | `slack` | 1,250 bytes/s (a 500-byte packet per 0.4 s) may be missing at the receiver |
    pub const RECOMMENDED: Self =
        Self { rewrite: false, cap: 1.0, floor: 0.01, slack: 1_250.0, ..Self::LITERAL };
}
