//! How a connection stands: its paths, and why it is not faster.

use byway_engine::Connection;
use byway_transfer::{
    Circumstances, PathChanges, PathCounters, PauseReason, ProgressCounter, TransferAmount, TransferProgress,
};
use byway_wire::Instant;
use std::net::SocketAddr;
use std::time::Duration;

/// The state of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathState {
    /// Nothing sent on the path was acknowledged yet.
    Probing,
    /// The path works, and is not used so far.
    Available,
    /// The path carries data.
    Active,
    /// The path yields to other traffic, and carries only probes.
    Choked,
}

/// A path on which this side sends.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PathStatus {
    /// The path's number, never used again in its connection.
    pub id: u32,
    /// The path's name for a person: `direct`, `direct from 192.0.2.1`, `relay 198.51.100.1:4748`.
    pub name: String,
    /// The address to which datagrams on the path are sent: the peer's, or a relay's.
    pub remote: SocketAddr,
    /// Whether the path goes through a relay.
    pub relayed: bool,
    /// The state of the path.
    pub state: PathState,
    /// Bytes sent on the path so far (UDP payload), retransmissions included.
    pub bytes: u64,
    /// Bits per second sent on the path between the last two samples, which are at least 250 ms
    /// apart.
    pub bits_per_second: f64,
    /// Smoothed round-trip time. `None`: none was measured yet.
    pub rtt: Option<Duration>,
    /// Packets lost so far.
    pub lost: u64,
    /// Why the path carries less than possible. `None`: nothing limits it.
    pub why_slow: Option<PauseReason>,
}

impl From<PathCounters> for PathStatus {
    fn from(tally: PathCounters) -> Self {
        Self {
            id: tally.path,
            name: tally.name,
            remote: tally.route.remote,
            relayed: tally.route.is_proxied(),
            state: match tally.state {
                "active" => PathState::Active,
                "choked" => PathState::Choked,
                "available" => PathState::Available,
                _ => PathState::Probing,
            },
            bytes: tally.bytes,
            bits_per_second: tally.rate_bps,
            rtt: tally.rtt,
            lost: tally.lost.unwrap_or_default(),
            why_slow: tally.pause,
        }
    }
}

/// Samples the status of a connection a few times a second.
#[derive(Default)]
pub struct StatusSampler {
    counter: ProgressCounter,
    path_changes: PathChanges,
    last: Option<StatusSnapshot>,
}

/// The status of a connection at one look.
#[derive(Clone, Debug, Default)]
pub struct StatusSnapshot {
    /// The paths on which this side sends.
    pub paths: Vec<PathStatus>,
    /// Why the connection is not faster. `None`: only its paths limit it.
    pub why_slow: Option<PauseReason>,
}

impl StatusSampler {
    /// Notes that the connection is established.
    pub fn begin(&mut self, now: Instant) {
        self.counter.begin(now);
    }

    /// Handles an event about paths.
    pub fn on_event(
        &mut self,
        event: byway_engine::connection::Event,
        connection: &Connection,
        locals: &[SocketAddr],
    ) {
        let _ = self.path_changes.on_event(event, connection, locals);
    }

    /// For how long nothing is heard though something is waited for, as of the last look.
    pub fn silence(&self, now: Instant) -> byway_wire::Duration {
        self.counter.silence(now)
    }

    /// Takes a new sample if one is due. Rates and silence are measured between samples.
    pub fn look(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        locals: &[SocketAddr],
    ) -> &StatusSnapshot {
        if self.last.is_none() || self.counter.is_due(now) {
            let bytes = connection.outgoing().progress().acked;
            let amount = TransferAmount { bytes, travelled: bytes, total: None };
            let used_up = self.path_changes.is_quota_used_up();
            let circumstances = Circumstances { used_up, ..Circumstances::default() };
            let TransferProgress { paths, pause, .. } =
                self.counter.look(now, connection, locals, circumstances, amount);
            let paths = paths.into_iter().map(PathStatus::from).collect();
            self.last = Some(StatusSnapshot { paths, why_slow: pause });
        }
        self.last.get_or_insert_default()
    }
}
