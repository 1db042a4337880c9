//! The progress of a transfer, path by path.

pub(crate) mod cost_to_others;
pub(crate) mod limiting_factor;

use crate::identity::PublicKey;
use crate::path_names::{local_address, route_name};
use byway_engine::Connection;
use byway_engine::connection::path::PathState;
use byway_engine::connection::status::{ArrivalStatus, EndedPath};
use byway_engine::route::Route;
use byway_wire::{Duration, Instant, PathId};
use cost_to_others::CostToOthers;
use limiting_factor::{Circumstances, PauseReason};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// Time between two samples of the progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// Identifies one transfer of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferId {
    /// The transfer's number, counted from 1 since the receiver began.
    pub transfer: u32,
    /// The sender's public key.
    pub from: PublicKey,
    /// The name of the file or directory that the sender sends. Of several, the first and an
    /// ellipsis. `None` for a stream.
    pub name: Option<String>,
}

/// A look at a transfer.
#[derive(Clone, Debug, Default)]
pub struct TransferProgress {
    /// The id of the transfer at a receiver. `None` at a sender, which has only one.
    pub origin: Option<TransferId>,
    /// Seconds since the session was established.
    pub seconds: f64,
    /// Payload bytes that the receiver has.
    pub bytes: u64,
    /// Payload bytes of the whole transfer. `None`: not counted yet.
    pub total: Option<u64>,
    /// Payload bits per second since the last look. Bytes that the receiver already had do not
    /// count.
    pub rate_bps: f64,
    /// Why the transfer is slower than possible. `None`: no reason is known.
    pub pause: Option<PauseReason>,
    /// The transfer's cost to others so far. Zero at a receiver, which sends nothing.
    pub cost: CostToOthers,
    /// Every present path.
    pub paths: Vec<PathCounters>,
    /// Where both hosts send: the paths that the peer has used so far. Paths with the same name are
    /// merged.
    pub arrivals: Vec<PathCounters>,
}

/// A look at a path.
#[derive(Clone, Debug)]
pub struct PathCounters {
    /// The path's number.
    pub path: u32,
    /// The name of the path, for a person.
    pub name: String,
    /// How the path's datagrams travel.
    pub route: Route,
    /// This host's address on the path. `None`: the system chooses the address.
    pub local: Option<IpAddr>,
    /// `probing`, `available`, `active`, `choked` or `closed`; for a path on which the peer sends,
    /// `active` or `idle`.
    pub state: &'static str,
    /// Bytes of UDP payload sent on the path, or received if the peer sends on it.
    pub bytes: u64,
    /// Bits per second since the last look.
    pub rate_bps: f64,
    /// Smoothed round-trip time. `None`: not measured.
    pub rtt: Option<Duration>,
    /// The smallest round-trip time of the latest 15 to 30 s. `None`: this side does not know it.
    pub base_rtt: Option<Duration>,
    /// Time that the newest acknowledged packet waited in queues. `None`: not measured.
    pub queueing: Option<Duration>,
    /// The congestion window in bytes. `None`: the peer sends on the path, or the path is closed.
    pub window: Option<u64>,
    /// Bytes in flight. `None`: the peer sends on the path, or the path is closed.
    pub in_flight: Option<u64>,
    /// Number of packets sent, acknowledgements included. `None`: the peer sends on the path.
    pub packets: Option<u64>,
    /// Number of packets lost. `None`: the peer sends on the path, and only it knows.
    pub lost: Option<u64>,
    /// Why the path carries less than possible. `None`: no reason is known.
    pub pause: Option<PauseReason>,
    /// Whether the path was ever in use.
    pub used: bool,
}

/// The amounts of a transfer: done, sent and total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferAmount {
    /// Payload bytes that the receiver has.
    pub bytes: u64,
    /// Payload bytes that travelled.
    pub travelled: u64,
    /// Payload bytes of the whole transfer. `None`: not counted yet.
    pub total: Option<u64>,
}

impl TransferAmount {
    /// The amount of a tree. `skipped` counts bytes that the receiver already had.
    #[must_use]
    pub fn of_tree(travelled: u64, skipped: u64, total: Option<u64>) -> Self {
        let bytes = travelled.saturating_add(skipped).min(total.unwrap_or(u64::MAX));
        Self { bytes, travelled, total }
    }
}

/// The counters of a forwarder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForwardCounters {
    /// Whether the forwarder has a session with the receiver.
    pub connected: bool,
    /// Number of connections that programs have now.
    pub open: usize,
    /// Number of connections that the receiver was asked to make.
    pub opened: u64,
    /// Bytes from programs to targets.
    pub forth: u64,
    /// Bytes from targets to programs.
    pub back: u64,
}

/// The state of a path that is over.
const CLOSED_STATE: &str = "closed";

/// The last figures of a closed path.
struct EndedFigures<'a> {
    route: &'a Route,
    bytes: u64,
    rtt: Option<Duration>,
    lost: Option<u64>,
    is_used: bool,
}

/// Keeps count between two looks.
#[derive(Debug, Default)]
pub struct ProgressCounter {
    begun: Option<Instant>,
    looked: Option<Instant>,
    amount: TransferAmount,
    paths: BTreeMap<PathId, PathCounters>,
    /// The time since which all paths are silent, as of the last check.
    silent: Option<Instant>,
    /// Packets acknowledged at the last look.
    acknowledged: u64,
    cost: CostToOthers,
}

impl ProgressCounter {
    /// Notes that the session is established. Time counts from now.
    pub fn begin(&mut self, now: Instant) {
        self.begun.get_or_insert(now);
        self.looked.get_or_insert(now);
    }

    /// Seconds since the session was established.
    #[must_use]
    pub fn seconds(&self, now: Instant) -> f64 {
        self.begun.map_or(0.0, |begun| now.since(begun).as_secs_f64())
    }

    /// Whether the last look is at least `PROGRESS_INTERVAL` ago.
    #[must_use]
    pub fn is_due(&self, now: Instant) -> bool {
        self.looked.is_some_and(|at| now.since(at) >= PROGRESS_INTERVAL)
    }

    /// Returns the progress of the data that this host sends. It also finds how long all paths have
    /// been silent.
    pub fn look(
        &mut self,
        now: Instant,
        connection: &Connection,
        locals: &[SocketAddr],
        circumstances: Circumstances,
        amount: TransferAmount,
    ) -> TransferProgress {
        let rate = self.rate(now);
        let status = connection.status();
        let acknowledged = limiting_factor::acknowledged(&status);
        if std::mem::replace(&mut self.acknowledged, acknowledged) < acknowledged {
            self.silent = None;
        }
        self.silent = limiting_factor::is_silent(&status).then(|| self.silent.unwrap_or(now));
        let circumstances = Circumstances { silence: self.silence(now), ..circumstances };
        let pause = limiting_factor::of_transfer(circumstances, &status);
        let mut paths = Vec::with_capacity(status.paths.len());
        for path in &status.paths {
            let sent = path.totals.bytes;
            let before = self.paths.get(&path.id);
            let tally = PathCounters {
                path: path.id.0,
                name: route_name(&path.route, locals),
                pause: limiting_factor::of_path(path, &status),
                route: path.route.clone(),
                local: local_address(&path.route, locals),
                state: state_name(path.state),
                bytes: sent,
                rate_bps: rate(sent.saturating_sub(before.map_or(0, |before| before.bytes))),
                rtt: path.is_rtt_measured.then_some(path.srtt),
                base_rtt: path.is_rtt_measured.then_some(path.min_rtt),
                queueing: path.queueing,
                window: Some(path.window),
                in_flight: Some(path.in_flight),
                packets: Some(path.totals.packets),
                lost: Some(path.totals.lost),
                used: matches!(path.state, PathState::Active | PathState::Choked)
                    || before.is_some_and(|before| before.used),
            };
            self.paths.insert(path.id, tally.clone());
            paths.push(tally);
        }
        for EndedPath { id, route, is_used, srtt, totals } in connection.ended_paths() {
            let (bytes, lost) = (totals.bytes, Some(totals.lost));
            self.enter_ended(*id, locals, EndedFigures { route, bytes, rtt: *srtt, lost, is_used: *is_used });
        }
        // Of hundreds of relays most are probed and closed again.
        let now_there: BTreeSet<u32> = paths.iter().map(|path| path.path).collect();
        self.paths.retain(|id, path| path.used || now_there.contains(&id.0));
        let passed = self.looked.map_or(Duration::ZERO, |at| now.since(at));
        let queues = paths.iter().map(|path| (path.rate_bps, path.queueing));
        self.cost.note(passed, pause == Some(PauseReason::Yielding), queues);
        let (cost, rate_bps) = (self.cost, rate(amount.travelled.saturating_sub(self.amount.travelled)));
        let tally = TransferProgress { rate_bps, pause, cost, paths, ..TransferProgress::default() };
        self.tally(now, amount, tally)
    }

    /// Returns the progress of the data that the peer sends. Paths with the same name are merged.
    pub fn look_at_arrivals(
        &mut self,
        now: Instant,
        connection: &Connection,
        locals: &[SocketAddr],
        amount: TransferAmount,
    ) -> TransferProgress {
        let rate = self.rate(now);
        let mut fresh = Vec::new();
        for path in connection.arrivals() {
            let before = self.paths.get(&path.id).map_or(0, |before| before.bytes);
            let more = path.bytes.saturating_sub(before);
            let tally = PathCounters {
                path: path.id.0,
                name: route_name(&path.route, locals),
                local: local_address(&path.route, locals),
                route: path.route,
                state: if more > 0 { "active" } else { "idle" },
                bytes: path.bytes,
                rate_bps: rate(more),
                rtt: path.srtt,
                base_rtt: None,
                queueing: None,
                window: None,
                in_flight: None,
                packets: None,
                lost: None,
                pause: None,
                used: true,
            };
            self.paths.insert(path.id, tally.clone());
            fresh.push(tally);
        }
        for ArrivalStatus { id, route, srtt, bytes } in connection.ended_arrivals() {
            let figures = EndedFigures { route, bytes: *bytes, rtt: *srtt, lost: None, is_used: true };
            self.enter_ended(*id, locals, figures);
        }
        let rate_bps = rate(amount.travelled.saturating_sub(self.amount.travelled));
        self.tally(
            now,
            amount,
            TransferProgress { rate_bps, paths: together(fresh), ..TransferProgress::default() },
        )
    }

    /// Records the last figures of the paths on which this side sends, at the end of a session.
    pub fn settle(&mut self, now: Instant, connection: &Connection, locals: &[SocketAddr]) {
        let _ = self.look(now, connection, locals, Circumstances::default(), self.amount);
    }

    /// Notes the last figures of the paths on which the peer sends, at the end of a session.
    pub fn settle_arrivals(&mut self, now: Instant, connection: &Connection, locals: &[SocketAddr]) {
        let _ = self.look_at_arrivals(now, connection, locals, self.amount);
    }

    /// Enters the last figures of a path that is over.
    fn enter_ended(&mut self, id: PathId, locals: &[SocketAddr], ended: EndedFigures<'_>) {
        let before = self.paths.get(&id);
        if before.is_some_and(|before| before.state == CLOSED_STATE) {
            return;
        }
        let tally = PathCounters {
            path: id.0,
            name: route_name(ended.route, locals),
            route: ended.route.clone(),
            local: local_address(ended.route, locals),
            state: CLOSED_STATE,
            bytes: ended.bytes,
            rate_bps: 0.0,
            rtt: ended.rtt,
            base_rtt: None,
            queueing: None,
            window: None,
            in_flight: None,
            packets: None,
            lost: ended.lost,
            pause: None,
            used: ended.is_used || before.is_some_and(|before| before.used),
        };
        self.paths.insert(id, tally);
    }

    /// A function that turns bytes since the last look into bits per second.
    fn rate(&self, now: Instant) -> impl Fn(u64) -> f64 + use<> {
        let passed = self.looked.map_or(0.0, |at| now.since(at).as_secs_f64());
        move |more| if passed > 0.0 { more as f64 * 8.0 / passed } else { 0.0 }
    }

    fn tally(&mut self, now: Instant, amount: TransferAmount, tally: TransferProgress) -> TransferProgress {
        (self.looked, self.amount) = (Some(now), amount);
        TransferProgress { seconds: self.seconds(now), bytes: amount.bytes, total: amount.total, ..tally }
    }

    /// For how long nothing is heard.
    #[must_use]
    pub fn silence(&self, now: Instant) -> Duration {
        self.silent.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Returns the transfer's cost to others so far.
    #[must_use]
    pub const fn cost(&self) -> CostToOthers {
        self.cost
    }

    /// Every path that was ever used, as last seen.
    #[must_use]
    pub fn paths(&self) -> Vec<PathCounters> {
        self.paths.values().filter(|path| path.used).cloned().collect()
    }

    /// Returns the counters of the paths on which the peer sends.
    #[must_use]
    pub fn arrivals(&self) -> Vec<PathCounters> {
        together(self.paths())
    }
}

/// Merges paths with the same name, in the order in which they came.
fn together(paths: Vec<PathCounters>) -> Vec<PathCounters> {
    let mut named: Vec<PathCounters> = Vec::new();
    for path in paths {
        match named.iter_mut().find(|known| known.name == path.name) {
            Some(known) => {
                known.bytes += path.bytes;
                known.rate_bps += path.rate_bps;
                known.lost = known.lost.zip(path.lost).map(|(known, more)| known + more);
                if path.state == "active" {
                    (known.state, known.rtt) = (path.state, path.rtt);
                }
            }
            None => named.push(path),
        }
    }
    named
}

pub(crate) const fn state_name(state: PathState) -> &'static str {
    match state {
        PathState::Probing => "probing",
        PathState::Available => "available",
        PathState::Active => "active",
        PathState::Choked => "choked",
    }
}
