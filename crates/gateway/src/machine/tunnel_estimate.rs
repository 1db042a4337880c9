//! The estimated properties of a tunnel in both directions, over all its paths.

use byway_wire::{Duration, Instant};

/// The largest packet that is carried before paths are known to take more.
const MIN_PACKET_BYTES: usize = 1_000;

/// The estimated properties of a tunnel, over all its paths.
#[derive(Clone, Copy, Debug)]
pub(super) struct TunnelEstimate {
    /// When the estimate expires.
    pub until: Instant,
    /// Bytes that each flow may have in flight.
    pub flow_limit: u64,
    /// The largest IP packet that a path carries.
    pub largest: usize,
    /// The IP packets that hosts had better send.
    pub best: usize,
    /// Round trip of the fastest path.
    pub rtt: Duration,
    /// Round trip of the slowest path.
    pub longest: Duration,
    /// The time that an arriving packet may wait for earlier ones.
    pub reorder_wait: Duration,
}

impl Default for TunnelEstimate {
    fn default() -> Self {
        Self {
            until: Instant::ZERO,
            flow_limit: u64::MAX,
            largest: MIN_PACKET_BYTES,
            best: MIN_PACKET_BYTES,
            rtt: Duration::ZERO,
            longest: Duration::ZERO,
            reorder_wait: Duration::ZERO,
        }
    }
}
