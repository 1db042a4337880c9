//! The states of BBRv3, with their gains (5.6.1 has them in a table).

/// A state. The four of ProbeBW follow each other in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The rate doubles in each round until the path is full (5.3.1).
    Startup,
    /// The queue of STARTUP drains (5.3.2).
    Drain,
    /// ProbeBW: slower than the path delivers (5.3.3.1).
    Down,
    /// ProbeBW: as fast as the path delivers (5.3.3.2).
    Cruise,
    /// ProbeBW: one round that fills the path without a queue (5.3.3.3).
    Refill,
    /// ProbeBW: faster, to find more (5.3.3.4).
    Up,
    /// Half of the window, to measure the smallest RTT (5.3.4).
    ProbeRtt,
}

impl Phase {
    /// The pacing rate is the path's rate times this.
    pub(super) const fn pacing_gain(self) -> f64 {
        match self {
            // 5.3.1.1: the least gain that doubles the rate in each round, 4 ln 2.
            Self::Startup => 2.77,
            Self::Drain => 0.5,
            Self::Down => 0.9,
            Self::Cruise | Self::Refill | Self::ProbeRtt => 1.0,
            Self::Up => 1.25,
        }
    }

    /// The window is this many bandwidth-delay products.
    pub(super) const fn window_gain(self) -> f64 {
        match self {
            Self::Up => 2.25,
            // 2.16.2 (ProbeRTTCwndGain).
            Self::ProbeRtt => 0.5,
            _ => 2.0,
        }
    }

    /// Whether the phase is one of the four states of ProbeBW.
    pub(super) const fn is_cycle(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// Whether the flow may have caused a loss, since it probes for more bandwidth.
    pub(super) const fn accelerates(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}
