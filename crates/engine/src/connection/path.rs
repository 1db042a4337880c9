//! A path that this side sends on, with its life. It is probing, available, active, choked or
//! dropped.

use super::pending_datagrams::Outbox;
use super::tcp_resting::{RestAction, TcpResting};
use super::timers::Armed;
use crate::path::send::{ACK_DELAY, SendPath};
use crate::route::{PacketSource, Route, Through, Via};
use byway_control::Allowance;
use byway_wire::frame::PathHint;
use byway_wire::relay::ReturnHop;
use byway_wire::{ConnectionId, Duration, Instant, PathId};
use smallvec::SmallVec;

/// The shortest time between probes of a choked path. Four RTTs, if longer, take its place
/// (readings, Harp 11).
const CHOKE_PROBE_INTERVAL: Duration = Duration::from_millis(500);
/// Pacing goes this much faster than window over RTT, in percent, so that the window and not the
/// pacer is the limit.
const PACING_PERCENT: u64 = 125;

/// The state of a path. A dropped path is removed from the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// Nothing sent on the path was acknowledged yet.
    Probing,
    /// The path answers, and the controller does not use the path yet.
    Available,
    /// The path carries data.
    Active,
    /// The path carries only empty time-stamped probes.
    Choked,
}

/// The origin of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathOrigin {
    /// The path of the handshake.
    Handshake,
    /// A path from this side's candidate with this index.
    Candidate(usize),
    /// A path back to the source of the peer's packets.
    Return,
}

/// Whether a path was changed since its queues, timer and allowance were last updated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeMark {
    /// The path was not changed.
    #[default]
    Settled,
    /// The path was changed, and the controller does not know.
    Changed,
    /// The path was changed, and the controller knows.
    Judged,
}

/// Frames that a path should send soon, other than data.
#[derive(Clone, Debug, Default)]
pub struct PendingFrames {
    /// Whether a PING is to be sent.
    pub ping: bool,
    /// The size in bytes of a padded PING that is to be sent, to probe the MTU.
    pub mtu: Option<usize>,
    /// A PATH_CHALLENGE with the path's challenge data.
    pub challenge: bool,
    /// A PATH_CHALLENGE to where the path may have [moved](Migration).
    pub ask: bool,
    /// The PATH_RESPONSEs to send.
    pub responses: SmallVec<[[u8; 8]; 2]>,
}

impl PendingFrames {
    /// Whether any frame is pending.
    #[must_use]
    pub fn any(&self) -> bool {
        self.ping || self.mtu.is_some() || self.challenge || self.ask || !self.responses.is_empty()
    }
}

/// Whether the address at the other end is proved to be the peer's. Until then, no more bytes are
/// sent to it than came from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressValidation {
    /// The peer has proved that it receives at the address.
    Valid,
    /// The peer has yet to return this challenge from the address. So many more bytes may be sent
    /// there.
    Unproven {
        /// The content of the PATH_CHALLENGE for the address.
        challenge: [u8; 8],
        /// Bytes received from the address, minus bytes sent to it.
        credit: u64,
    },
}

/// The source of the peer's newest packets, while the peer has not proved that it receives there.
#[derive(Debug)]
pub struct Migration {
    /// The route to the new address.
    pub route: Route,
    /// The content of the PATH_CHALLENGE for the new address.
    pub challenge: [u8; 8],
    /// Bytes received from the new address, minus bytes sent to it.
    pub credit: u64,
    /// When the address may be challenged again, or another one instead.
    pub again_at: Instant,
}

/// A path on which this host sends. The fields that are read before a packet is sent come first.
#[derive(Debug)]
#[repr(C)]
pub struct Path {
    /// The path's state: probing, available, active, choked or dropped.
    pub state: PathState,
    /// Whether the path is in the queue of paths that may send data.
    pub ready: bool,
    /// Whether the path is in the queue of paths with pending frames.
    pub urgent: bool,
    /// Whether the path waits for its pacer.
    pub paced: bool,
    /// Whether the path was changed and is not settled yet.
    pub mark: ChangeMark,
    /// Frames that the path should send soon, other than data.
    pub pending: PendingFrames,
    /// The size of a full packet in bytes that the controller knows.
    pub told_size: usize,
    /// The amount that the controller allows the path to send.
    pub allowance: Allowance,
    /// The most bytes in flight under the allowance.
    pub window_limit: u64,
    /// The facts of the path: packet numbers, RTT, packets in flight.
    pub send: SendPath,
    /// The last hint given, and when the next may be.
    pub hint: (Option<PathHint>, Instant),
    /// The earliest deadline of the path that is armed.
    pub armed: Armed,
    /// When the path is next probed (choked), pinged (ACKs only) or challenged.
    pub probe_at: Option<Instant>,
    /// The packet number of a choked path's probe in flight. `None`: none is in flight.
    pub probe: Option<u64>,
    /// Datagrams that the path holds and has not sent.
    pub(super) outbox: Outbox,
    /// The peer's connection id for packets on this path.
    pub connection_id: ConnectionId,
    /// The route of the path's datagrams at present.
    pub route: Route,
    /// Whether the peer has proven that it receives at the path's address.
    pub address: AddressValidation,
    /// A new address of the peer that is being validated. `None`: there is none.
    pub moving: Option<alloc::boxed::Box<Migration>>,
    /// The origin of the path: the handshake, a candidate, or the way back of a peer's path.
    pub origin: PathOrigin,
    /// When the path began.
    pub began: Instant,
    /// When the controller began to use the path. `None`: never.
    pub used: Option<Instant>,
    /// When the peer's latest packet arrived from this path's address, as of the last choice of the
    /// path for ACKs.
    pub heard: Option<Instant>,
    resting: TcpResting,
}

impl Path {
    /// Returns the step for a path that is not preferred, see [`TcpResting::step`]. A path over UDP
    /// never ends for this reason.
    pub(super) fn rest_step(&mut self, now: Instant, answers: bool) -> RestAction {
        let in_use = self.is_governed();
        match self.resting.step(now, answers, in_use) {
            RestAction::End if !self.route.local.is_connection() => RestAction::Nothing,
            step => step,
        }
    }

    /// A new path in `state`.
    #[must_use]
    pub fn new(
        now: Instant,
        send: SendPath,
        route: Route,
        state: PathState,
        origin: PathOrigin,
        connection_id: ConnectionId,
    ) -> Self {
        Self {
            send,
            route,
            state,
            origin,
            began: now,
            used: None,
            allowance: Allowance::default(),
            window_limit: 0,
            told_size: 0,
            connection_id,
            address: AddressValidation::Valid,
            moving: None,
            pending: PendingFrames::default(),
            outbox: Outbox::default(),
            ready: false,
            urgent: false,
            paced: false,
            mark: ChangeMark::Settled,
            armed: Armed::default(),
            probe_at: None,
            probe: None,
            hint: (None, Instant::ZERO),
            heard: None,
            resting: TcpResting::default(),
        }
    }

    /// The id of the path.
    #[must_use]
    pub const fn id(&self) -> PathId {
        self.send.id
    }

    /// Returns the bytes per second that the path has carried since the controller took it; zero if
    /// it never did.
    #[must_use]
    pub fn goodput(&self, now: Instant) -> u64 {
        let Some(used) = self.used else { return 0 };
        let millis = u64::try_from(now.since(used).as_millis()).unwrap_or(u64::MAX).max(1);
        self.send.totals.acked_bytes.saturating_mul(1_000) / millis
    }

    /// Returns the time of the path's next timer.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let release = self.paced.then(|| self.send.pacer.ready_at(self.send.pacer.burst()));
        [self.send.deadline(), self.probe_at, release].into_iter().flatten().min()
    }

    /// Bytes that may be sent to the path's address. Unlimited if the address is proven.
    #[must_use]
    pub const fn credit(&self) -> u64 {
        match self.address {
            AddressValidation::Valid => u64::MAX,
            AddressValidation::Unproven { credit, .. } => credit,
        }
    }

    /// Notes bytes received from the path's address.
    pub const fn earn(&mut self, bytes: u64) {
        if let AddressValidation::Unproven { credit, .. } = &mut self.address {
            *credit = credit.saturating_add(bytes);
        }
    }

    /// Notes bytes sent to the path's address.
    pub const fn spend(&mut self, bytes: u64) {
        if let AddressValidation::Unproven { credit, .. } = &mut self.address {
            *credit = credit.saturating_sub(bytes);
        }
    }

    /// Whether the controller governs the path.
    #[must_use]
    pub const fn is_governed(&self) -> bool {
        matches!(self.state, PathState::Active | PathState::Choked)
    }

    /// Sets the amount that the controller allows the path to send.
    pub fn set_allowance(&mut self, now: Instant, allowance: Allowance) {
        self.allowance = allowance;
        self.window_limit = match allowance.rate {
            Some(_) => allowance.window,
            None => self.send.window_limit(allowance.window),
        };
        let packet = self.send.mtu.current() as u64;
        let rate = allowance.rate.unwrap_or_else(|| {
            let rtt = self.send.rtt.smoothed().as_nanos().max(1_000);
            let rate = u128::from(allowance.window.max(packet)) * 1_000_000_000 / rtt;
            u64::try_from(rate * u128::from(PACING_PERCENT) / 100).unwrap_or(u64::MAX)
        });
        self.send.pacer.set_rate(now, rate, packet);
    }

    /// Whether the path's allowance is unchanged, and all its pending frames are queued.
    pub(super) fn is_fresh(&mut self, now: Instant, allowance: impl FnOnce() -> Allowance) -> bool {
        let unasked = !self.urgent && self.pending.any();
        if unasked || self.is_governed() && self.send.mtu.wanted(now).is_some() {
            return false;
        }
        if self.is_governed() {
            if self.told_size != self.send.mtu.current() || self.allowance != allowance() {
                return false;
            }
            if self.state == PathState::Active && !self.ready && !self.paced && self.has_room() {
                return false;
            }
            // As if its rate were set once more: what is rounded off must not depend on who looked.
            self.send.pacer.fill(now);
        }
        debug_assert!(self.armed.covers(self.deadline()), "what is as it was is waited for");
        true
    }

    /// Whether the window has room for a full packet.
    pub(super) const fn has_room(&self) -> bool {
        let (in_flight, packet) = (self.send.in_flight, self.send.mtu.current() as u64);
        in_flight == 0 || in_flight + packet <= self.window_limit
    }

    /// Takes over the return tag of the peer's newest authenticated packet, because the return tags
    /// of a relay expire. Returns whether the tag changed.
    pub(super) fn refresh_return_tag(&mut self, source: &PacketSource) -> bool {
        if let (Via::Return(hop), Through::Delivered(delivered)) = (&mut self.route.via, &source.through)
            && source.remote == hop.relay()
        {
            let newest = ReturnHop::new(source.remote, delivered);
            return core::mem::replace(&mut **hop, newest) != newest;
        }
        false
    }

    /// When a choked path is probed next; spread by ±10 %, so that probes of many paths do not
    /// meet.
    pub(super) fn choke_interval(&self, random: u64) -> Duration {
        let interval = (self.send.rtt.smoothed() * 4).max(CHOKE_PROBE_INTERVAL);
        interval * 9 / 10 + interval / 5 * (random % 1024) as u32 / 1024
    }

    /// When a challenge without an answer is repeated.
    pub(super) fn challenge_interval(&self) -> Duration {
        self.send.rtt.probe_timeout(ACK_DELAY).max(Duration::from_millis(100))
    }
}
