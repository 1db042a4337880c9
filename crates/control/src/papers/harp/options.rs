//! Values for the parts that the papers leave open.

use byway_wire::Duration;

/// The window or windows of which a decrease takes a share. They set the paper's xi (Harp, III.A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coupling {
    /// xi = 1: the window of the path. n paths act as n flows.
    Independent,
    /// xi = 0: the windows of all paths. The bundle acts as one flow on its best paths.
    Joint,
    /// xi = w/M: w is the window of the path, and M its largest window so far. A decrease is a
    /// share of `xi * w + (1 - xi) * W`; W is the sum of all windows.
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
        /// No congestion is signalled while `dmax - dmin` is less than this. dmin and dmax are the
        /// smallest and the largest delay so far. In a smaller range, even slight jitter would
        /// exceed the limit, `dmin + delta (dmax - dmin)`.
        least_range: Duration,
        /// A fixed value for `dmax - dmin`; `None`: the observed range. In theorem 2 of the paper,
        /// dmax is the delay of a full queue. Harp avoids full queues, so the observed dmax is
        /// smaller.
        range: Option<Duration>,
    },
    /// The rule of the paper HIR (section 7.1), for the mean of the latest delays. Congestion is
    /// signalled if `mean > dmin + delta (dmax - dmin)`. dmin and dmax are the smallest and the
    /// largest mean so far. delta is a number from 0 to 1.
    Averaged {
        /// The delta of HIR's evaluation is 0.3.
        delta: f64,
        /// Delays in a mean.
        packets: u32,
        /// Whether the number of delays in the mean is capped at the number of packets in the
        /// window. The cap is never below four. Without the cap, delays of a queue that has gone
        /// count for too long. With the cap, jitter causes more signals.
        capped: bool,
        /// Whether the mean is exponentially weighted. Otherwise the latest delays count alike. The
        /// paper proposes either.
        exponential: bool,
        /// The smallest `dmax - dmin` at which delays can be a signal.
        least_range: Duration,
    },
}

/// The parts of Harp that its paper leaves open, or that later papers change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HarpOptions {
    /// How xi of the paper is set.
    pub coupling: Coupling,
    /// MI, multiplicative increase: packets added per packet acknowledged, so the window grows by
    /// the factor `1 + alpha` per RTT (eq. 15 of the appendix). Algorithm 1 taken literally adds
    /// 0.03 bytes per ACK, hardly any growth.
    pub alpha: f64,
    /// MD: the share of the window that a delay signal takes off.
    pub beta: f64,
    /// Initial window in packets.
    pub initial: f64,
    /// Smallest window in packets (`MIN_CWND`).
    pub floor: f64,
    /// When delays make a signal.
    pub delay: DelayRule,
    /// Whether a path at its smallest window is choked (III.E). Otherwise it keeps that window.
    pub choke: bool,
}

impl HarpOptions {
    /// The values of Algorithm 1 and table I, taken literally, without slow start. dmin, dmax and
    /// the largest window are extremes of the path's whole life. A loss takes half of the sum of
    /// all windows off the path's window.
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
