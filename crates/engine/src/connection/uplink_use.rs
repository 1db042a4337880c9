//! What a governor of the host's uplink sees of a connection.

use super::Connection;
use super::path::Path;
use super::uplink_gate::UplinkLimit;
use byway_control::Controller as _;
use byway_wire::{Duration, Instant, Local, PathId};
use core::net::SocketAddr;

/// A path on which a connection sends data, as a governor of the uplink sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataPath {
    /// The id of the path.
    pub id: PathId,
    /// The socket by which its datagrams leave.
    pub local: Local,
    /// Where they go first: to the peer, or to a relay.
    pub remote: SocketAddr,
    /// The controller's pacing rate, in bytes per second. It falls when packets wait.
    pub pace: u64,
}

/// What all paths together send, as a governor of the uplink sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UplinkUse {
    /// Packets and bytes (UDP payload) sent so far, on paths that are over, too.
    pub sent: (u64, u64),
    /// Bytes that were acknowledged on the [paths in use](Connection::data_paths).
    pub acked_bytes: u64,
    /// How long ago the newest packet was sent that was acknowledged.
    pub newest_acked_age: Duration,
    /// How long that packet waited in queues.
    pub queueing: Duration,
    /// The rate that the controller believes its own, in bytes per second.
    pub own_rate: u64,
    /// Whether the governor's limit holds data back.
    pub is_limited: bool,
    /// Whether there are data to send.
    pub has_data: bool,
}

impl Connection {
    /// Returns what this connection sends, for a governor of the host's uplink. `None`: it sends no
    /// data, or its controller does not yield.
    #[must_use]
    pub fn uplink_use(&self, now: Instant) -> Option<UplinkUse> {
        let own_rate = self.controller.own_rate()?;
        let acked_bytes = self.carrying().map(|path| path.send.totals.acked_bytes).sum();
        let newest = self.carrying().max_by_key(|path| path.send.newest_acked_at())?;
        Some(UplinkUse {
            sent: self.scheduler.gate().sent(),
            acked_bytes,
            newest_acked_age: self.session.own_time(now).since(newest.send.newest_acked_at()),
            queueing: newest.send.queueing()?,
            own_rate,
            is_limited: self.scheduler.gate().holds(),
            has_data: self.contents.has_any(),
        })
    }

    /// The paths on which data are sent at present.
    pub fn data_paths(&self) -> impl Iterator<Item = DataPath> + '_ {
        self.carrying().map(|path| DataPath {
            id: path.id(),
            local: path.route.local,
            remote: path.route.remote,
            pace: path.allowance.rate.unwrap_or_default(),
        })
    }

    fn carrying(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().filter(|path| path.is_governed() && !path.allowance.choked)
    }

    /// Sets what a governor of the host's uplink allows from now on. While it holds data back, no
    /// congestion window grows.
    pub fn set_uplink_limit(&mut self, now: Instant, limit: UplinkLimit) {
        let now = self.session.own_time(now);
        let closed_until = limit.closed_until.map(|until| self.session.own_time(until));
        let limit = UplinkLimit { closed_until, ..limit };
        if self.scheduler.gate_mut().set(now, limit) {
            self.scheduler.reconsider();
            self.settle(now);
        }
    }
}
