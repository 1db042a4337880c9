//! What the papers leave open, as values.

use byway_wire::Duration;

/// What a decrease on one path is a fraction of. This sets the value of its xi (Harp, III.A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coupling {
    /// xi = 1: the window of the path. n paths act as n flows.
    Independent,
    /// xi = 0: the windows of all paths. The bundle acts as one flow on its best paths.
    Joint,
    /// xi = w/M: the first on a path that the bundle has for itself, more of the second the more
    /// others are there.
    Adaptive,
}

/// When delays make a signal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DelayRule {
    /// Harp, III.D: `delay > dmin + delta (dmax - dmin)`, with the extremes of the whole life of
    /// the path.
    Relative {
        /// The paper's delta, a share.
        delta: f64,
        /// How much of an RTT's packets must be delayed (see
        /// [`DelayedShare`](crate::detector::DelayedShare)).
        fraction: f64,
        /// No signal while `dmax - dmin` is less: in the beginning each nanosecond of jitter
        /// exceeds the threshold.
        least_range: Duration,
        /// `dmax - dmin` given instead of observed. Harp avoids full queues, so it never sees the
        /// dmax that theorem 2 supposes.
        range: Option<Duration>,
    },
    /// HIR, 7.1: `mean > dmin + delta (dmax - dmin)`, where the mean is that of the latest delays.
    /// The extremes are those of this mean in the whole life of the path.
    Averaged {
        /// The delta of HIR's evaluation is 0.3.
        delta: f64,
        /// Delays in a mean.
        packets: u32,
        /// No more of them than there are in a window, but at least four. Otherwise a small window
        /// hears of a queue, and of its end, many RTTs late. But a mean of four varies half as much
        /// as a single delay. Under jitter as wide as `least_range` a window that is small once
        /// stays so.
        capped: bool,
        /// No signal while `dmax - dmin` is less.
        least_range: Duration,
    },
}

/// All that Harp's page leaves open, or that its followers want otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HarpOptions {
    /// What sets the paper's xi.
    pub coupling: Coupling,
    /// MI: packets added per packet acknowledged, so `(1 + alpha)` per RTT as in eq. 15 of the
    /// appendix. Algorithm 1 adds .03 bytes per ACK, which doubles a window in 35 000 RTTs.
    pub alpha: f64,
    /// MD: the share of the window that a delay signal takes off.
    pub beta: f64,
    /// Initial window in packets.
    pub initial: f64,
    /// Smallest window in packets (`MIN_CWND`).
    pub floor: f64,
    /// When delays make a signal.
    pub delay: DelayRule,
    /// Whether a path at its floor is choked (III.E). Otherwise it keeps its smallest window.
    pub choke: bool,
}

impl HarpOptions {
    /// Algorithm 1 and table I, word by word. There is no slow start, and extremes are those of the
    /// lifetime. A loss takes `W/2`, at least one packet, and M is for ever.
    #[must_use]
    pub const fn literal(coupling: Coupling) -> Self {
        Self {
            coupling,
            alpha: 0.03,
            beta: 0.125,
            initial: 2.0,
            floor: 1.0,
            delay: DelayRule::Relative {
                delta: 0.15,
                fraction: 0.5,
                least_range: Duration::from_millis(1),
                range: None,
            },
            choke: true,
        }
    }
}
