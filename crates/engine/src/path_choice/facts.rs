//! The facts that a rule decides by, and its decision.

use byway_wire::{Duration, PathId};

/// A path that carries data and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathFacts {
    /// The path's id.
    pub(crate) id: PathId,
    /// The smoothed RTT.
    pub(crate) rtt: Duration,
    /// The mean deviation of the RTT.
    pub(crate) deviation: Duration,
    /// The size of a full packet in bytes.
    pub(crate) packet: u64,
    /// The congestion window in bytes.
    pub(crate) window: u64,
    /// Bytes in flight.
    pub(crate) in_flight: u64,
    /// Whether window and pacer let a full packet leave now.
    pub(crate) may_send: bool,
}

impl PathFacts {
    /// The congestion window in packets, at least 1.
    pub(crate) fn window_packets(&self) -> f64 {
        (self.window as f64 / self.packet.max(1) as f64).max(1.0)
    }
}

/// The facts of the session as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionFacts {
    /// Bytes from the first unacknowledged one to the end of the receive window.
    pub(crate) send_window: u64,
    /// Bytes that wait and were never sent.
    pub(crate) unsent: u64,
}

/// What a rule decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The next packet leaves by this path.
    Send(PathId),
    /// Nothing leaves until an ACK or a pacer changes the facts.
    Wait,
}

/// Facts for unit tests.
#[cfg(test)]
pub(super) mod samples {
    use super::*;

    /// A path of 1000-byte packets. Windows and bytes in flight are in packets.
    pub(crate) fn path(id: u32, rtt_ms: u64, window: u64, in_flight: u64) -> PathFacts {
        PathFacts {
            id: PathId(id),
            rtt: Duration::from_millis(rtt_ms),
            deviation: Duration::ZERO,
            packet: 1_000,
            window: window * 1_000,
            in_flight: in_flight * 1_000,
            may_send: in_flight < window,
        }
    }
}
