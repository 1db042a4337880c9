//! When a host tries TCP: while UDP brings no answer, or far less than TCP. The rules are those of
//! byway's program.

use super::dialing_endpoint::DialingEndpoint;
use byway_engine::carrier_trials::{self, Sight, Trials};
use byway_engine::connection::path::PathState;
use byway_engine::connection::status::ConnectionStatus;
use byway_engine::{Connection, Handle};
use byway_wire::{Duration, Instant, TcpRequest};
use core::net::SocketAddr;

/// If nothing answers within this time after the first datagram, TCP is dialled.
const FIRST_ANSWER_TIMEOUT: Duration = Duration::from_millis(500);
/// TCP is dialled once nothing was heard for this long on paths that were in use.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(1);
/// Time that an address may take to answer a SYN.
const DIAL_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause of an address after the first failure. Each further failure doubles the pause.
const RETRY_DELAY: Duration = Duration::from_secs(2);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);
/// Time between two checks of a session.
const LOOK_INTERVAL: Duration = carrier_trials::CHECK_INTERVAL;

/// An address that may be dialled.
#[derive(Debug)]
struct DialTarget {
    address: SocketAddr,
    next_at: Instant,
    failures: u32,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Dialing {
    targets: Vec<DialTarget>,
    begun: Instant,
    trials: Trials,
    compared_at: Instant,
    /// Packets acknowledged, when something was heard last.
    acked: u64,
    silent_since: Option<Instant>,
    /// When to look again.
    next_look: Instant,
}

impl Dialing {
    pub(super) fn new(addresses: Vec<SocketAddr>) -> Self {
        let target = |address| DialTarget { address, next_at: Instant::ZERO, failures: 0 };
        Self {
            targets: addresses.into_iter().map(target).collect(),
            begun: Instant::ZERO,
            trials: Trials::default(),
            compared_at: Instant::ZERO,
            acked: 0,
            silent_since: None,
            next_look: Instant::ZERO,
        }
    }

    /// Starts again for a new session.
    pub(super) fn begin(&mut self, now: Instant) {
        (self.begun, self.next_look) = (now, now);
        self.trials = Trials::default();
    }

    /// Notes that the session is established.
    pub(super) const fn on_connected(&mut self) {
        self.acked = 0;
        self.silent_since = None;
    }

    /// Dials TCP if that is due. Returns when to look again.
    pub(super) fn look(
        &mut self,
        now: Instant,
        machine: &mut DialingEndpoint,
        handle: Handle,
        connected: bool,
    ) -> Instant {
        if now < self.next_look {
            return self.next_look;
        }
        self.next_look = now + LOOK_INTERVAL;
        let mut wanted = !connected && now.since(self.begun) >= FIRST_ANSWER_TIMEOUT;
        if connected && let Some(connection) = machine.endpoint().connection_mut(handle) {
            wanted = self.is_wanted(now, connection);
        }
        for target in &mut self.targets {
            if machine.endpoint().leads_to(target.address) {
                target.failures = 0;
                target.next_at = target.next_at.min(now + FIRST_ANSWER_TIMEOUT);
            } else if wanted && target.next_at <= now {
                let rest = RETRY_DELAY.saturating_mul(1 << target.failures.min(4)).min(MAX_RETRY_DELAY);
                target.failures += 1;
                target.next_at = now + DIAL_TIMEOUT.max(rest);
                let dial = TcpRequest::Dial { peer: target.address, patience: DIAL_TIMEOUT };
                machine.request(dial);
            }
        }
        self.next_look
    }

    /// Whether an established session should also use TCP.
    fn is_wanted(&mut self, now: Instant, connection: &mut Connection) -> bool {
        let status = connection.status();
        let acked = status.paths.iter().map(|path| path.totals.acked).sum();
        if acked > self.acked || !is_silent(&status) {
            self.silent_since = None;
        } else {
            self.silent_since.get_or_insert(now);
        }
        self.acked = acked;
        if now >= self.compared_at {
            self.compared_at = now + carrier_trials::CHECK_INTERVAL;
            let transport = self.trials.look(now, Sight::of(&status));
            connection.prefer(now, transport);
        }
        let is_silent = self.silent_since.is_some_and(|since| now.since(since) >= SILENCE_TIMEOUT);
        is_silent || self.trials.wants_tcp()
    }
}

/// Whether the peer seems silent: one path in use had a timeout, and all others wait for ACKs.
fn is_silent(status: &ConnectionStatus) -> bool {
    let mut used = status.paths.iter().filter(|path| path.state != PathState::Probing).peekable();
    let is_overdue = used.peek().is_none() || used.clone().any(|path| path.silent > 0);
    is_overdue && used.all(|path| path.silent > 0 || path.in_flight > 0)
}
