//! An attempt to connect: the same HELLO to every address of the peer, a little apart, until one
//! answers.

use crate::config::{Config, Params};
use crate::handshake::{Established, HandshakeProgress, Initiator};
use crate::route::{PacketSource, Route, Via};
use alloc::boxed::Box;
use alloc::vec::Vec;
use byway_control::Controller;
use byway_wire::packet::{Handshake, RefuseReason};
use byway_wire::relay::{Notice, NoticeTrust, Reason};
use byway_wire::{Dscp, Duration, Ecn, Instant, Local, Transmit, TransmitBuffer};
use thiserror::Error;

/// Time between the first HELLOs to two addresses. RFC 8305 (section 5) says 250 ms for TCP, but a
/// HELLO costs less.
const ATTEMPT_DELAY: Duration = Duration::from_millis(100);
/// Time before the first repetition of a HELLO. It doubles up to `MAX_RETRY_INTERVAL`.
const RETRY_INTERVAL: Duration = Duration::from_millis(300);
const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// An attempt without an answer ends.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(20);

/// Why an attempt to connect failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// No address of the peer fits any local socket.
    #[error("no local socket can reach any address of the peer")]
    NoRoute,
    /// No address answered.
    #[error("the peer does not answer")]
    NoAnswer,
    /// No address answered, and the system reports that the network or host is unreachable.
    #[error("the peer cannot be reached from here")]
    Unreachable,
    /// The peer is of another version.
    #[error("the peer runs an incompatible version of byway")]
    Version,
    /// A host with another key answers at the address.
    #[error("the host at that address has another key")]
    WrongKey,
    /// The peer has the largest permitted number of connections.
    #[error("the peer is busy")]
    Full,
    /// The application's data for the handshake are too long, or the peer's key is invalid.
    #[error("the handshake cannot be made")]
    Impossible,
}

/// A route on which a HELLO is sent.
#[derive(Clone, Debug)]
struct Target {
    route: Route,
    next_at: Instant,
    sent: u32,
    sent_at: Instant,
    dead: bool,
    /// Why the relay on the route does not forward. `None`: it gave no reason.
    refused: Option<Reason>,
}

impl Target {
    const fn new(route: Route, now: Instant, next_at: Instant) -> Self {
        Self { route, next_at, sent: 0, sent_at: now, dead: false, refused: None }
    }
}

/// An attempt to connect, until one route answers.
#[derive(Debug)]
pub(super) struct Attempt {
    initiator: Box<Initiator>,
    targets: Vec<Target>,
    until: Instant,
    refused: Option<RefuseReason>,
    /// Whether the owner may still find addresses of the peer. Then the attempt ends at `until`
    /// alone.
    expects_addresses: bool,
    /// The controller that the connection will have.
    pub controller: Option<Box<dyn Controller>>,
}

/// A handshake that succeeded.
#[derive(Debug)]
pub(super) struct Success {
    pub established: Box<Established>,
    pub params: Params,
    pub application: Vec<u8>,
    pub route: Route,
    pub rtt: Option<Duration>,
    /// The other routes to the peer.
    pub others: Vec<Route>,
    pub controller: Box<dyn Controller>,
}

impl Attempt {
    pub fn new(
        now: Instant,
        initiator: Initiator,
        routes: Vec<Route>,
        controller: Box<dyn Controller>,
    ) -> Self {
        let target = |(index, route)| {
            Target::new(route, now, now + ATTEMPT_DELAY * u32::try_from(index).unwrap_or(u32::MAX))
        };
        let targets = routes.into_iter().enumerate().map(target).collect();
        Self {
            initiator: Box::new(initiator),
            targets,
            until: now + ATTEMPT_TIMEOUT,
            refused: None,
            expects_addresses: false,
            controller: Some(controller),
        }
    }

    pub fn deadline(&self) -> Instant {
        self.targets.iter().map(|target| target.next_at).min().unwrap_or(self.until).min(self.until)
    }

    /// Adds a route to the peer.
    pub fn add_route(&mut self, now: Instant, route: Route) {
        if !self.targets.iter().any(|target| target.route == route) {
            self.targets.push(Target::new(route, now, now));
        }
    }

    /// Whether the owner may still find addresses of the peer.
    pub const fn expect_addresses(&mut self, are_expected: bool) {
        self.expects_addresses = are_expected;
    }

    /// A local socket or connection is gone.
    pub fn local_down(&mut self, local: Local) {
        self.targets.retain(|target| target.route.local != local);
    }

    /// Whether a HELLO uses this local socket or connection.
    pub fn goes_by(&self, local: Local) -> bool {
        self.targets.iter().any(|target| target.route.local == local)
    }

    /// Why the attempt failed, or `None` while it may succeed. The attempt ends at the time
    /// `self.until`, or once every route is dead and had three HELLOs. `relays`: whether a relay
    /// that may lead to the peer has not answered yet. Then only `self.until` counts, as it does
    /// while addresses are expected.
    pub fn failure(&self, now: Instant, relays: bool) -> Option<ConnectError> {
        // A route is dead if sending failed there, or if its relay refused.
        let hopeless = self.targets.iter().all(|target| target.dead && target.sent >= 3);
        if now < self.until && (relays || self.expects_addresses || !hopeless) {
            return None;
        }
        Some(match self.refused {
            Some(RefuseReason::Version) => ConnectError::Version,
            Some(RefuseReason::WrongKey) => ConnectError::WrongKey,
            Some(RefuseReason::Full) => ConnectError::Full,
            None if self.targets.is_empty() => ConnectError::NoRoute,
            None if self.targets.iter().all(|target| target.dead) => ConnectError::Unreachable,
            None => ConnectError::NoAnswer,
        })
    }

    /// The next HELLO to send.
    pub fn next_hello(&mut self, now: Instant) -> Option<(Route, Vec<u8>)> {
        let target = self.targets.iter_mut().find(|target| target.next_at <= now)?;
        target.sent += 1;
        target.sent_at = now;
        target.next_at =
            now + RETRY_INTERVAL.saturating_mul(1 << (target.sent - 1).min(3)).min(MAX_RETRY_INTERVAL);
        Some((target.route.clone(), self.initiator.hello()))
    }

    /// A HELLO could not be sent.
    pub fn on_send_error(&mut self, error: &byway_wire::SendError) {
        for target in &mut self.targets {
            target.dead |= target.route.local == error.local && target.route.remote == error.remote;
        }
    }

    /// Handles a relay's notice that it does not forward. Returns the relay, if one of the routes
    /// uses it, and whether this is news for the owner.
    pub fn on_notice(&mut self, now: Instant, notice: &Notice) -> Option<(core::net::SocketAddr, bool)> {
        let judged = self.targets.iter_mut().find_map(|target| match &target.route.via {
            Via::Relay(hop) => hop.judge(notice, now).map(|verdict| (target, verdict)),
            _ => None,
        });
        let (target, verdict) = judged?;
        // Those pass by themselves, as they do on a path.
        if matches!(notice.reason, Reason::Clock | Reason::OverRate | Reason::Busy | Reason::StaleCookie) {
            return Some((target.route.remote, false));
        }
        target.dead |= verdict == NoticeTrust::Proven;
        let before = target.refused.replace(notice.reason);
        Some((target.route.remote, before != Some(notice.reason)))
    }

    /// Handles a handshake packet. A forged, late or damaged one changes nothing.
    pub fn on_packet(
        &mut self,
        now: Instant,
        source: &PacketSource,
        packet: &Handshake<'_>,
    ) -> Option<Success> {
        // An answer from nowhere that was asked is somebody's copy; taken, it would use up the one
        // that is to come.
        if !self.targets.iter().any(|target| source.is_end_of(&target.route)) {
            return None;
        }
        match self.initiator.on_packet(packet).ok()? {
            HandshakeProgress::Established(mut established) => {
                let payload = core::mem::take(&mut established.payload);
                let (params, application) = Params::read(&payload).ok()?;
                let tried = self.targets.iter().find(|target| source.is_end_of(&target.route))?;
                let rtt = (tried.sent == 1).then(|| now.since(tried.sent_at));
                let others = self.targets.iter().map(|target| target.route.clone());
                Some(Success {
                    established,
                    params,
                    application: application.to_vec(),
                    route: tried.route.clone(),
                    rtt,
                    others: others.filter(|route| !source.is_end_of(route)).collect(),
                    controller: self.controller.take()?,
                })
            }
            HandshakeProgress::SendHello => {
                if let Some(target) = self.targets.iter_mut().find(|target| source.is_end_of(&target.route)) {
                    target.next_at = now;
                }
                None
            }
            HandshakeProgress::Refused(reason) => {
                // Not authenticated: a hint. Somebody else may still answer, but nobody is waited
                // for long.
                self.refused = Some(reason);
                self.until = self.until.min(now + Duration::from_secs(3));
                None
            }
            HandshakeProgress::Waiting => None,
        }
    }

    /// The payload of a HELLO.
    pub fn payload(config: &Config, application: &[u8]) -> Vec<u8> {
        Params::of(config).payload(application)
    }
}

/// Sends a packet that belongs to no connection yet.
pub(super) fn send_plain(
    now: Instant,
    route: &Route,
    packet: &[u8],
    out: &mut TransmitBuffer<'_>,
) -> Option<Transmit> {
    let envelope = route.overhead();
    let size = envelope + packet.len();
    let datagram = out.buffer.get_mut(..size)?;
    datagram.get_mut(envelope..)?.copy_from_slice(packet);
    route.enclose(now, datagram);
    Some(Transmit {
        local: route.local,
        remote: route.remote,
        ecn: Ecn::NotEct,
        dscp: Dscp::BestEffort,
        size,
        segment: size,
        phantom: 0,
    })
}
