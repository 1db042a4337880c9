//! The paper's Harp and the one that is fit for use, as values of one type.

use byway_wire::Duration;

/// What a decrease on one path is a fraction of (Harp, III.A): the value of its xi.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coupling {
    /// xi = 1: the window of the path. n paths act as n flows.
    Independent,
    /// xi = 0: the windows of all paths. The bundle acts as one flow on its best paths.
    Joint,
    /// xi = w/M: the first on a path that the bundle has for itself, more of the second the more others are there.
    Adaptive,
}

/// When delays make a signal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DelayRule {
    /// Harp, III.D: `delay > dmin + delta (dmax - dmin)`, with the extremes of the whole life of the path.
    Relative {
        /// The paper's delta.
        delta: f64,
        /// How much of an RTT's packets must be delayed (see [`Share`](crate::detector::Share)).
        fraction: f64,
        /// No signal while `dmax - dmin` is less: in the beginning each nanosecond of jitter exceeds the threshold.
        least_range: Duration,
        /// `dmax - dmin` given instead of observed. Harp avoids full queues, so it never sees the dmax that
        /// theorem 2 supposes.
        range: Option<Duration>,
    },
    /// HIR, 7.1: `mean > dmin + delta (dmax - dmin)`, where the mean is that of the latest delays, and the extremes are
    /// those of this mean in the whole life of the path: what is averaged is not compared with what is not. The paper names
    /// 50 packets and the extremes not at all. One mean beyond is a signal: it stands for many packets already.
    Averaged {
        /// The delta of HIR's evaluation is 0.3.
        delta: f64,
        /// Delays in a mean.
        packets: u32,
        /// No more of them than there are in a window, but at least four: or else a small window hears of a queue, and of
        /// its end, many RTTs late. But a mean of
        /// four trembles half as much as a single delay: under jitter as wide as `least_range` a window that is small once
        /// stays so.
        capped: bool,
        /// No signal while `dmax - dmin` is less.
        least_range: Duration,
    },
    /// `delay > base + threshold`, with a [`Base`](crate::detector::Base) that forced drains keep honest.
    ///
    /// Beyond it by as much as three packets take on the line if that is longer, up to 20 ms, and by what the line's
    /// delays [tremble](crate::detector::Tremble) without a queue.
    Absolute {
        /// How long a packet may wait in queues.
        threshold: Duration,
    },
}

/// What a loss costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossRule {
    /// Algorithm 1, line 12: half of the windows of all paths.
    HalfOfAll,
    /// By what the delays say at the time: see [`Harp`](super::Harp).
    ByDelay {
        /// Packets taken off the window for a packet that was lost while no queue stood.
        gentle: f64,
        /// Share of packets lost beyond which a loss is congestion whatever the delays say.
        tolerated: f64,
    },
}

/// All that Harp's page leaves open or that use in earnest wants otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// xi.
    pub coupling: Coupling,
    /// MI: packets added per packet acknowledged. The algorithm counts windows in bytes and adds .03 per ACK, which
    /// doubles a window in 35 000 RTT; the appendix, eq. 15, has `(1 + alpha)` per RTT, which is this.
    pub alpha: f64,
    /// MD: fraction taken off at a delay signal.
    pub beta: f64,
    /// Initial window in packets.
    pub initial: f64,
    /// Smallest window in packets (`MIN_CWND`).
    pub floor: f64,
    /// When delays make a signal.
    pub delay: DelayRule,
    /// What a loss costs.
    pub loss: LossRule,
    /// What each decrease takes off the remembered maximum M.
    pub forget: f64,
    /// Delay-limited slow start, climbing on an empty path, re-start after a timeout, no growth without need.
    pub agile: bool,
    /// Beside requests that come and go the window stays below the one that fills the line, makes way for each of them at once and
    /// comes back at once.
    pub company: bool,
    /// Whether a path at its floor is choked (III.E); without, it keeps its smallest window.
    pub choke: bool,
}

impl Options {
    /// Algorithm 1 and table I, word by word: no slow start, lifetime extremes, a loss takes `W/2`, at least one packet,
    /// M for ever.
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
            loss: LossRule::HalfOfAll,
            forget: 0.0,
            agile: false,
            company: false,
            choke: true,
        }
    }

    /// Harp as HIR has it (HIR, 4 and 7.1): adaptive, with delta 0.3 and means of up to 50 delays; as published, or `capped`
    /// by the window.
    #[must_use]
    pub const fn averaged(capped: bool) -> Self {
        let least_range = Duration::from_millis(1);
        Self {
            delay: DelayRule::Averaged { delta: 0.3, packets: 50, capped, least_range },
            ..Self::literal(Coupling::Adaptive)
        }
    }

    /// The class `background`.
    ///
    /// The threshold is 5 ms: four packets of 1500 bytes at 10 Mbit/s, which is what the bunches of aggregated ACKs and
    /// of GSO make by themselves; a tenth of what a voice call may wait; and far below the 20 ms and more that a loss-based
    /// TCP keeps in a queue of its own making. A relative threshold would follow the sender's own overshoot. In the company of requests
    /// it is 2 ms, or two packets and a half.
    #[must_use]
    pub const fn production(coupling: Coupling) -> Self {
        Self {
            initial: 4.0,
            floor: 1.0 / 8.0,
            delay: DelayRule::Absolute { threshold: Duration::from_millis(5) },
            loss: LossRule::ByDelay { gentle: 3.0, tolerated: 0.02 },
            forget: 0.01,
            agile: true,
            company: true,
            ..Self::literal(coupling)
        }
    }

    /// Delays up to this above the base count as equal to it.
    #[must_use]
    pub(super) fn tolerance(&self) -> Duration {
        match self.delay {
            DelayRule::Absolute { threshold } => threshold / 4,
            DelayRule::Relative { .. } | DelayRule::Averaged { .. } => Duration::ZERO,
        }
    }
}
