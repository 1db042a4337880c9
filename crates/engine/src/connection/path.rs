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

/// The time between probes of a choked path, or four RTTs if they are longer (readings, Harp 11).
const CHOKE_PROBE_INTERVAL: Duration = Duration::from_millis(500);
/// Pacing goes this much faster than window over RTT, in percent, so that the window and not the
/// pacer is the limit.
const PACING_PERCENT: u64 = 125;

/// Where a path is in its life. A dropped path is gone from the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// Nothing sent on it was acknowledged yet.
    Probing,
    /// The path works, and the controller has not opened it.
    Available,
    /// The path carries data.
    Active,
    /// The path carries only empty time-stamped probes.
    Choked,
}

/// Where a path comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathOrigin {
    /// The handshake went over it.
    Handshake,
    /// A candidate of ours, by its index.
    Candidate(usize),
    /// The way back to where the peer's packets come from.
    Return,
}

/// Whether a path was changed since its queues, timer and allowance were last seen to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeMark {
    /// The path was not changed.
    #[default]
    Settled,
    /// The path was changed.
    Changed,
    /// The path was changed, and the controller was told of it.
    Judged,
}

/// What a path should send beside data, soon.
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
    /// Whether there is anything.
    #[must_use]
    pub fn any(&self) -> bool {
        self.ping || self.mtu.is_some() || self.challenge || self.ask || !self.responses.is_empty()
    }
}

/// Whether the address at the other end is known to be the peer's. Until then no more is sent there
/// than came from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressValidation {
    /// The peer proved that it receives there.
    Valid,
    /// The peer has yet to return this challenge from the address. So many more bytes may be sent
    /// there.
    Unproven {
        /// What a PATH_CHALLENGE carries.
        challenge: [u8; 8],
        /// Bytes that came from there, less those sent.
        credit: u64,
    },
}

/// Where the peer's newest packets come from, while it has not shown that it receives there.
#[derive(Debug)]
pub struct Migration {
    /// The route to the new address.
    pub route: Route,
    /// What a PATH_CHALLENGE there carries.
    pub challenge: [u8; 8],
    /// Bytes that came from there, less those sent.
    pub credit: u64,
    /// When it may be asked again, or another address be asked instead.
    pub again_at: Instant,
}

/// A path that this side sends on. What is looked at before anything is sent stands first, together
/// with the beginning of the facts.
#[derive(Debug)]
#[repr(C)]
pub struct Path {
    /// Where it is in its life.
    pub state: PathState,
    /// Whether it stands in the queue of paths that may send data.
    pub ready: bool,
    /// Whether it stands in the queue of paths with something pending.
    pub urgent: bool,
    /// Whether it waits for its pacer.
    pub paced: bool,
    /// Whether it was changed and is not settled yet.
    pub mark: ChangeMark,
    /// What it should send beside data.
    pub pending: PendingFrames,
    /// Bytes of a full packet, as the controller knows it.
    pub told_size: usize,
    /// What the controller allows it.
    pub allowance: Allowance,
    /// What is known of the path: numbers, RTT, packets in flight.
    pub send: SendPath,
    /// The last hint given, and when the next may be.
    pub hint: (Option<PathHint>, Instant),
    /// The earliest deadline of the path that is armed.
    pub armed: Armed,
    /// When the path is probed next if choked, pinged next as a way for ACKs, or challenged again.
    pub probe_at: Option<Instant>,
    /// The number of a choked path's probe that is under way.
    pub probe: Option<u64>,
    /// Datagrams that it took on.
    pub(super) outbox: Outbox,
    /// The peer's name for it.
    pub connection_id: ConnectionId,
    /// How its datagrams travel now.
    pub route: Route,
    /// Whether its address is proven.
    pub address: AddressValidation,
    /// Where it may lead soon.
    pub moving: Option<alloc::boxed::Box<Migration>>,
    /// Where it comes from.
    pub origin: PathOrigin,
    /// When the path began.
    pub began: Instant,
    /// When the controller took it, if it did.
    pub used: Option<Instant>,
    /// When a packet of the peer's last came by it, as of the last choice of the way for ACKs.
    pub heard: Option<Instant>,
    resting: TcpResting,
}

impl Path {
    /// What is to be done about a path that is not preferred: [`TcpResting::step`]. One over UDP
    /// never ends for that.
    pub(super) fn rest_step(&mut self, now: Instant, answers: bool) -> RestAction {
        let in_use = self.is_governed();
        match self.resting.step(now, answers, in_use) {
            RestAction::End if !self.route.local.is_connection() => RestAction::Nothing,
            step => step,
        }
    }

    /// A path in `state`.
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

    /// Bytes per second that it has carried since the controller took it; zero if it never did.
    #[must_use]
    pub fn goodput(&self, now: Instant) -> u64 {
        let Some(used) = self.used else { return 0 };
        let millis = u64::try_from(now.since(used).as_millis()).unwrap_or(u64::MAX).max(1);
        self.send.totals.acked_bytes.saturating_mul(1_000) / millis
    }

    /// When it must be looked at.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let release = self.paced.then(|| self.send.pacer.ready_at(self.send.pacer.burst()));
        [self.send.deadline(), self.probe_at, release].into_iter().flatten().min()
    }

    /// Bytes that may be sent to its address.
    #[must_use]
    pub const fn credit(&self) -> u64 {
        match self.address {
            AddressValidation::Valid => u64::MAX,
            AddressValidation::Unproven { credit, .. } => credit,
        }
    }

    /// Bytes came from its address.
    pub const fn earn(&mut self, bytes: u64) {
        if let AddressValidation::Unproven { credit, .. } = &mut self.address {
            *credit = credit.saturating_add(bytes);
        }
    }

    /// Bytes were sent to its address.
    pub const fn spend(&mut self, bytes: u64) {
        if let AddressValidation::Unproven { credit, .. } = &mut self.address {
            *credit = credit.saturating_sub(bytes);
        }
    }

    /// Whether the controller governs it.
    #[must_use]
    pub const fn is_governed(&self) -> bool {
        matches!(self.state, PathState::Active | PathState::Choked)
    }

    /// What the controller allows it from now on.
    pub fn set_allowance(&mut self, now: Instant, allowance: Allowance) {
        self.allowance = allowance;
        let packet = self.send.mtu.current() as u64;
        let rate = allowance.rate.unwrap_or_else(|| {
            let rtt = self.send.rtt.smoothed().as_nanos().max(1_000);
            let rate = u128::from(allowance.window.max(packet)) * 1_000_000_000 / rtt;
            u64::try_from(rate * u128::from(PACING_PERCENT) / 100).unwrap_or(u64::MAX)
        });
        self.send.pacer.set_rate(now, rate, packet);
    }

    /// Whether all is as it was when its allowance was last taken over, and all that is to be done
    /// under way.
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
        in_flight == 0 || in_flight + packet <= self.allowance.window
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
