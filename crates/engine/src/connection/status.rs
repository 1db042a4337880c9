//! The status of a connection and its paths, for people and tests.

use super::Connection;
pub use super::ended_path_counters::{ArrivalStatus, EndedPath};
use super::path::PathState;
use super::peer_paths::PeerPath;
use crate::data::Blocked;
use crate::path::send::Totals;
use crate::route::Route;
use alloc::vec::Vec;
use byway_control::Controller as _;
use byway_wire::{Duration, PathId};

/// A path that this side sends on.
#[derive(Clone, Debug)]
pub struct PathStatus {
    /// The id of the path.
    pub id: PathId,
    /// How the path's datagrams travel.
    pub route: Route,
    /// The path's state: probing, available, active, choked or dropped.
    pub state: PathState,
    /// Choked because another path leads through the same bottleneck and fills it alone.
    pub spare: bool,
    /// The smoothed RTT of the path.
    pub srtt: Duration,
    /// Whether an RTT of the path was measured. If not, the RTTs here are assumed ones.
    pub is_rtt_measured: bool,
    /// The smallest RTT of the latest 15 to 30 s.
    pub min_rtt: Duration,
    /// Time that the newest acknowledged packet waited in queues: its one-way delay minus the
    /// smallest. `None`: not measured.
    pub queueing: Option<Duration>,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Congestion window in bytes.
    pub window: u64,
    /// Bytes per second delivered over the last RTT.
    pub rate: Option<u64>,
    /// Largest datagram (UDP payload).
    pub datagram: usize,
    /// Timeouts in a row. Above 0 the path does not answer.
    pub silent: u32,
    /// Packets and bytes sent, acknowledged and lost since the path began.
    pub totals: Totals,
}

/// The state of a connection and its paths.
#[derive(Clone, Debug)]
pub struct ConnectionStatus {
    /// The paths that this side sends on.
    pub paths: Vec<PathStatus>,
    /// Why no more data are sent, if the window is not the reason.
    pub blocked: Option<Blocked>,
    /// Whether the limit of [`set_cap`](Connection::set_cap) holds data back.
    pub capped: bool,
    /// Whether data wait until the line has carried what this host itself sent, as a governor of
    /// the uplink [asked](Connection::set_uplink_limit).
    pub uplink_busy: bool,
    /// The controller's name.
    pub congestion: &'static str,
}

impl Connection {
    /// The paths that the peer sends on. Not for the hot path.
    #[must_use]
    pub fn arrivals(&self) -> Vec<ArrivalStatus> {
        self.peer_paths.iter().filter_map(|receiving| self.arrival(receiving)).collect()
    }

    /// Returns the status of a path on which the peer sends. `None`: no route leads back to its
    /// source.
    pub(super) fn arrival(&self, receiving: &PeerPath) -> Option<ArrivalStatus> {
        let way = receiving.way.and_then(|way| self.paths.get(way));
        Some(ArrivalStatus {
            id: receiving.facts.id,
            route: way.map(|way| way.route.clone()).or_else(|| receiving.source.route())?,
            srtt: receiving.facts.round_trip(),
            bytes: receiving.facts.bytes,
        })
    }

    /// The latest paths that the peer sent on and dropped, the oldest first: at most 64.
    pub fn ended_arrivals(&self) -> impl Iterator<Item = &ArrivalStatus> {
        self.peer_paths.ended()
    }

    /// The latest paths that this side sent on and gave up, the oldest first: at most 64.
    pub fn ended_paths(&self) -> impl Iterator<Item = &EndedPath> {
        self.paths.ended()
    }

    /// Returns the status of the connection and all its paths. Not for the hot path.
    #[must_use]
    pub fn status(&self) -> ConnectionStatus {
        let paths = self.paths.iter().map(|path| PathStatus {
            id: path.id(),
            route: path.route.clone(),
            state: path.state,
            spare: path.allowance.spare,
            srtt: path.send.rtt.smoothed(),
            is_rtt_measured: path.send.rtt.measured().is_some(),
            min_rtt: path.send.rtt.minimum(),
            queueing: path.send.queueing(),
            in_flight: path.send.in_flight,
            window: path.allowance.window,
            rate: path.send.delivery_rate(),
            datagram: path.send.mtu.current(),
            silent: path.send.timeouts(),
            totals: path.send.totals,
        });
        ConnectionStatus {
            paths: paths.collect(),
            blocked: self.contents.blocked_by(),
            capped: self.scheduler.is_capped(),
            uplink_busy: self.scheduler.gate().is_closed(),
            congestion: self.controller.name(),
        }
    }
}
