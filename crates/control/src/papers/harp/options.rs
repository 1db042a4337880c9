//! What the papers leave open, as values.

use byway_wire::Duration;

/// The window or windows of which a decrease takes a share. They set the paper's xi (Harp, III.A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coupling {
    /// xi = 1: the window of the path. n paths act as n flows.
    Independent,
    /// xi = 0: the windows of all paths. The bundle acts as one flow on its best paths.
    Joint,
    /// xi = w/M: the window of the path where the bundle has the path for itself. The more other
    /// flows are there, the more the windows of all paths count.
    Adaptive,
}

/// When delays make a signal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DelayRule {
    /// Harp, III.D: `delay > dmin + delta (dmax - dmin)`. dmin and dmax are the extremes of the
    /// whole life of the path.
    Relative {
        /// The paper's delta, a share.
        delta: f64,
        /// The share of an RTT's packets that must be delayed (see
        /// [`DelayedShare`](crate::detector::DelayedShare)).
        fraction: f64,
        /// There is no signal while `dmax - dmin` is less than this. In the beginning, while the
        /// range is small, each nanosecond of jitter would exceed the threshold.
        least_range: Duration,
        /// A fixed `dmax - dmin` in place of the observed one. Harp avoids full queues, so it never
        /// observes the dmax that theorem 2 assumes.
        range: Option<Duration>,
    },
    /// HIR, 7.1: `mean > dmin + delta (dmax - dmin)`. `mean` is the mean of the latest delays. dmin
    /// and dmax are the extremes of this mean in the whole life of the path.
    Averaged {
        /// The delta of HIR's evaluation is 0.3.
        delta: f64,
        /// Delays in a mean.
        packets: u32,
        /// Whether a mean has at most as many delays as a window has packets, but at least four.
        /// Without the cap, a path with a small window learns many RTTs late that a queue has come
        /// or gone. But a mean of four delays varies half as much as a single delay. If jitter is
        /// as wide as `least_range`, a window that is once small stays small.
        capped: bool,
        /// There is no signal while `dmax - dmin` is less than this.
        least_range: Duration,
    },
}

/// What Harp's paper leaves open, or what later papers do otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HarpOptions {
    /// What sets the paper's xi.
    pub coupling: Coupling,
    /// MI: packets added per packet acknowledged. The window grows by the factor `1 + alpha` per
    /// RTT, as in eq. 15 of the appendix. Algorithm 1 read to the letter adds .03 bytes per ACK.
    /// That doubles a window in 35 000 RTTs.
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
    /// Algorithm 1 and table I, word by word. There is no slow start. The extremes of delays and
    /// M_i hold for the whole life of a path. A loss takes `W/2` off a window, and leaves at least
    /// one packet.
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
