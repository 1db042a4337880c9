//! How a connection stands: its paths, and why it is not faster.

use byway_engine::Connection;
use byway_transfer::{
    Circumstances, PathChanges, PathCounters, PauseReason, ProgressCounter, TransferAmount, TransferProgress,
};
use byway_wire::Instant;
use std::net::SocketAddr;
use std::time::Duration;

/// Where a path is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathState {
    /// Nothing that was sent on it was answered yet.
    Probing,
    /// The path works, and is not needed so far.
    Available,
    /// The path carries data.
    Active,
    /// The path makes room for others, and carries probes alone.
    Choked,
}

/// A path on which this side sends.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PathStatus {
    /// The path's number, never used again in its connection.
    pub id: u32,
    /// What a person calls it: `direct`, `direct from 192.0.2.1`, `relay 198.51.100.1:4748`.
    pub name: String,
    /// The address to which its datagrams go first: the peer's, or a relay's.
    pub remote: SocketAddr,
    /// Whether it leads through a relay.
    pub relayed: bool,
    /// Where it is in its life.
    pub state: PathState,
    /// Bytes sent on it so far: UDP payload, with what was sent again.
    pub bytes: u64,
    /// Bits per second sent on it between the last two looks, which are at least 250 ms apart.
    pub bits_per_second: f64,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Packets lost so far.
    pub lost: u64,
    /// Why it carries less than it could; `None`: nothing holds it up.
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
            lost: tally.lost,
            why_slow: tally.pause,
        }
    }
}

/// What is known of a connection, looked at a few times a second.
#[derive(Default)]
pub struct StatusSampler {
    counter: ProgressCounter,
    path_changes: PathChanges,
    last: Option<StatusSnapshot>,
}

/// What one look at a session's paths showed.
#[derive(Clone, Debug, Default)]
pub struct StatusSnapshot {
    /// The paths on which this side sends.
    pub paths: Vec<PathStatus>,
    /// Why all of it is not faster.
    pub why_slow: Option<PauseReason>,
}

impl StatusSampler {
    /// The connection is there.
    pub fn begin(&mut self, now: Instant) {
        self.counter.begin(now);
    }

    /// Takes in what happened to paths.
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

    /// Looks if it is time to. Rates and silence are those between two looks.
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
