//! What is asked of whoever carries a transfer, and what it says at a sample.

use super::gateways::GatewayPair;
use crate::record::TransferRecord;
use byway_engine::connection::path::PathState;
use byway_sim::World;
use byway_wire::{Duration, PathId};

/// Whoever carries a transfer.
pub(super) trait TransferProbe {
    /// How the transfer is now, in a world with these gateways.
    fn look(&self, world: &World, gateways: &[GatewayPair]) -> TransferSample;

    /// Whether the transfer is over, one way or the other.
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
    /// Where paths count more than data: bytes of data that they have carried together.
    pub(super) together: Option<u64>,
}

/// A path at a sample.
#[derive(Debug)]
pub(super) struct PathSample {
    pub(super) path: PathId,
    /// The way that it goes.
    pub(super) way: usize,
    /// Bytes acknowledged, with headers where the path counts them.
    pub(super) bytes: u64,
    pub(super) lost: u64,
    /// Whether data can go by it.
    pub(super) usable: bool,
    /// What it sends with, if it sends.
    pub(super) send_state: Option<SendState>,
}

/// What a path sends with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendState {
    /// The window in packets.
    pub(super) window: f64,
    pub(super) window_bytes: u64,
    pub(super) rtt: Duration,
    pub(super) choked: bool,
}

/// A path of a session as it sends, unless it waits or is not needed.
pub(super) fn glance(state: PathState, window: u64, datagram: usize, rtt: Duration) -> Option<SendState> {
    matches!(state, PathState::Active | PathState::Choked).then(|| SendState {
        window: window as f64 / datagram.max(1) as f64,
        window_bytes: window,
        rtt,
        choked: state == PathState::Choked,
    })
}
