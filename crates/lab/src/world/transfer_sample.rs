//! The interface to the hosts that carry a transfer, and their samples.

use super::gateways::GatewayPair;
use crate::record::TransferRecord;
use byway_engine::connection::path::PathState;
use byway_sim::World;
use byway_wire::{Duration, PathId};

/// An observer of the hosts that carry a transfer.
pub(super) trait TransferProbe {
    /// Returns the state of the transfer, in a world with these gateways.
    fn look(&self, world: &World, gateways: &[GatewayPair]) -> TransferSample;

    /// Whether the transfer has ended or failed.
    fn is_over(&self, world: &World) -> bool;

    /// Notes how the transfer ended.
    fn finish(&self, world: &World, record: &mut TransferRecord);
}

/// A transfer at a sample.
#[derive(Debug, Default)]
pub(super) struct TransferSample {
    /// Bytes that the receiver has.
    pub(super) received: u64,
    /// Every path that there is, or TCP's subflows by number.
    pub(super) paths: Vec<PathSample>,
    /// The ways through relays that have answered a probe in time. `None`: that is not known.
    pub(super) available: Option<Vec<usize>>,
    /// Bytes of data that all paths have carried together, where the paths' counts include more
    /// than data.
    pub(super) together: Option<u64>,
}

/// A path at a sample.
#[derive(Debug)]
pub(super) struct PathSample {
    pub(super) path: PathId,
    /// The index of the path's route.
    pub(super) way: usize,
    /// Bytes acknowledged, with headers if the path counts them.
    pub(super) bytes: u64,
    pub(super) lost: u64,
    /// Whether the path can carry data.
    pub(super) usable: bool,
    /// The window and RTT, if the path sends.
    pub(super) send_state: Option<SendState>,
}

/// The window, RTT and choke of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendState {
    /// The window in packets.
    pub(super) window: f64,
    pub(super) window_bytes: u64,
    pub(super) rtt: Duration,
    pub(super) choked: bool,
}

/// Returns the state of a session's path, if the path is active or choked.
pub(super) fn glance(state: PathState, window: u64, datagram: usize, rtt: Duration) -> Option<SendState> {
    matches!(state, PathState::Active | PathState::Choked).then(|| SendState {
        window: window as f64 / datagram.max(1) as f64,
        window_bytes: window,
        rtt,
        choked: state == PathState::Choked,
    })
}
