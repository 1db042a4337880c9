//! What a person or a test may want to know about a connection and its paths.

use super::Connection;
use super::path::PathState;
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
    /// The smallest RTT of the latest 15 to 30 s.
    pub min_rtt: Duration,
    /// How long the newest acknowledged packet waited in queues: its one-way delay less the
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

/// A path that the peer sends on.
#[derive(Clone, Debug)]
pub struct ArrivalStatus {
    /// The path's id, which the peer chose.
    pub id: PathId,
    /// The route back to the source of the path's newest packet.
    pub route: Route,
    /// The smoothed RTT that the peer reported. `None`: it reported none.
    pub srtt: Option<Duration>,
    /// Bytes that arrived (UDP payload).
    pub bytes: u64,
}

/// The state of a connection and its paths.
#[derive(Clone, Debug)]
pub struct ConnectionStatus {
    /// The paths that this side sends on.
    pub paths: Vec<PathStatus>,
    /// Why nothing more is sent, if that is not for want of window.
    pub blocked: Option<Blocked>,
    /// Whether the limit of [`set_cap`](Connection::set_cap) holds data back.
    pub capped: bool,
    /// The controller's name.
    pub congestion: &'static str,
}

impl Connection {
    /// The paths that the peer sends on. Not for the hot path.
    #[must_use]
    pub fn arrivals(&self) -> Vec<ArrivalStatus> {
        let peer_paths = self.peer_paths.iter().filter_map(|receiving| {
            let way = receiving.way.and_then(|way| self.paths.get(way));
            Some(ArrivalStatus {
                id: receiving.facts.id,
                route: way.map(|way| way.route.clone()).or_else(|| receiving.source.route())?,
                srtt: receiving.facts.round_trip(),
                bytes: receiving.facts.bytes,
            })
        });
        peer_paths.collect()
    }

    /// Looks at everything. Not for the hot path.
    #[must_use]
    pub fn status(&self) -> ConnectionStatus {
        let paths = self.paths.iter().map(|path| PathStatus {
            id: path.id(),
            route: path.route.clone(),
            state: path.state,
            spare: path.allowance.spare,
            srtt: path.send.rtt.smoothed(),
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
            congestion: self.controller.name(),
        }
    }
}
