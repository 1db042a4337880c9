//! How far a transfer is, path by path, for those who look on.

use super::holdup;
use super::names::route_name;
use crate::output::Pause;
use byway_engine::Connection;
use byway_engine::connection::path::State;
use byway_engine::route::Route;
use byway_wire::{Duration, Instant, PathId};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(250);

/// A look at a transfer.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Seconds since the connection was there.
    pub seconds: f64,
    /// Payload bytes that the receiver has.
    pub bytes: u64,
    /// Payload bytes in all, once they are counted.
    pub total: Option<u64>,
    /// Payload bits per second since the last look.
    pub rate_bps: f64,
    /// Why it is not as fast as it could be.
    pub pause: Option<Pause>,
    /// Every path that there is now.
    pub paths: Vec<PathTally>,
}

/// A look at a path.
#[derive(Clone, Debug)]
pub struct PathTally {
    /// Its number.
    pub path: u32,
    /// What to call it.
    pub name: String,
    /// How it travels.
    pub route: Route,
    /// `probing`, `available`, `active`, `choked`, `closed`.
    pub state: &'static str,
    /// Bytes sent over it (UDP payload).
    pub bytes: u64,
    /// Bits per second since the last look.
    pub rate_bps: f64,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Packets lost.
    pub lost: u64,
    /// Why it carries less than it could.
    pub pause: Option<Pause>,
}

/// Keeps count between two looks.
#[derive(Debug, Default)]
pub(super) struct Counter {
    begun: Option<Instant>,
    looked: Option<Instant>,
    bytes: u64,
    paths: BTreeMap<PathId, PathTally>,
    /// Since when nothing is heard on any path, as far as was looked.
    silent: Option<Instant>,
}

impl Counter {
    pub fn begin(&mut self, now: Instant) {
        self.begun.get_or_insert(now);
        self.looked.get_or_insert(now);
    }

    pub fn seconds(&self, now: Instant) -> f64 {
        self.begun.map_or(0.0, |begun| now.since(begun).as_secs_f64())
    }

    /// Whether it is time for another look.
    pub fn is_due(&self, now: Instant) -> bool {
        self.looked.is_some_and(|at| now.since(at) >= INTERVAL)
    }

    /// Looks. `used_up`: whether a relay's quota is.
    pub fn look(
        &mut self,
        now: Instant,
        connection: &Connection,
        locals: &[SocketAddr],
        used_up: bool,
        bytes: u64,
        total: Option<u64>,
    ) -> Tally {
        let passed = self.looked.map_or(0.0, |at| now.since(at).as_secs_f64());
        let rate = |more: u64| if passed > 0.0 { more as f64 * 8.0 / passed } else { 0.0 };
        let status = connection.status();
        self.silent = holdup::is_silent(&status).then(|| self.silent.unwrap_or(now));
        let pause = holdup::after(self.silence(now), used_up, &status);
        let mut paths = Vec::with_capacity(status.paths.len());
        for path in status.paths {
            let sent = path.totals.bytes;
            let before = self.paths.get(&path.id).map_or(0, |before| before.bytes);
            let pause = holdup::of_path(&path, status.congestion);
            let tally = PathTally {
                path: path.id.0,
                name: route_name(&path.route, locals),
                route: path.route,
                state: state_name(path.state),
                bytes: sent,
                rate_bps: rate(sent.saturating_sub(before)),
                rtt: path.srtt,
                lost: path.totals.lost,
                pause,
            };
            self.paths.insert(path.id, tally.clone());
            paths.push(tally);
        }
        let rate_bps = rate(bytes.saturating_sub(self.bytes));
        (self.looked, self.bytes) = (Some(now), bytes);
        Tally { seconds: self.seconds(now), bytes, total, rate_bps, pause, paths }
    }

    /// For how long nothing is heard.
    pub fn silence(&self, now: Instant) -> Duration {
        self.silent.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Payload bytes at the last look.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Every path that there ever was, as last seen.
    pub fn paths(&self) -> Vec<PathTally> {
        self.paths.values().cloned().collect()
    }
}

pub(super) const fn state_name(state: State) -> &'static str {
    match state {
        State::Probing => "probing",
        State::Available => "available",
        State::Active => "active",
        State::Choked => "choked",
    }
}
