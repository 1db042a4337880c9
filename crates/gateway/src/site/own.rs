//! Tunnels of single flows: one bundle of paths for each, as Harp has it (section III), where one for all flows of two sites (HIR) is
//! the default.
//!
//! A flow begins by the site's tunnel while its own is dialled, and goes by its own once that carries packets as large. So nothing
//! waits for a handshake, and a flow that gets no tunnel, or loses it, goes on by the site's. Labels and places
//! in the order are known to a peer and not to a tunnel, so that the exit puts in order what came by both.
//!
//! Who takes a flow in opens its tunnel. The other side learns from the packets that come by it whose it is, and sends that flow's
//! other direction back by it.

use super::config::Bundle;
use super::peers::FOR_FLOW;
use super::places::{PeerIdx, TunnelIdx};
use super::tunnel::Tunnel;
use super::{Gateway, judge};
use crate::entry;
use crate::flow::{End, FlowId, Phase};
use crate::segment::Segment;
use crate::tcp::Flags;
use alloc::vec::Vec;
use byway_engine::{Connection, Handle, Via};
use byway_wire::{Duration, Instant, Meter};
use core::net::SocketAddr;

/// A flow of which no packet comes for this long gives its tunnel back; with the next it gets another.
const IDLE: Duration = Duration::from_secs(10);
/// Tunnels to one peer are opened no faster than this, but for so many at once: a handshake is work for both, and a flood of SYNs is to
/// cause little of it.
const PACE: Duration = Duration::from_millis(10);
const BURST: u32 = 32;
/// After a tunnel could not be made, or died, none is opened for so long, then twice as long, at most the longest.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A peer may open so many times as many as are opened here: who closes one and opens the next is ahead of who hears of it.
const TAKEN: usize = 2;

/// What the peer is told when it is closed.
const NEEDLESS: &str = "its flow needs it no more";

/// What a tunnel of a single flow is beside a tunnel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    /// The flow, once it is known.
    pub flow: Option<FlowId>,
    /// Whether it was opened here; then it is closed here.
    opened_here: bool,
    /// Whether the peer takes it: it may close the session at once.
    taken: bool,
    /// When to see whether it is still needed.
    look_at: Instant,
}

/// Which flows of a peer's get tunnels of their own.
#[derive(Debug, Default)]
pub(super) struct Gate {
    opened: usize,
    taken: usize,
    /// How fast they are opened.
    pace: Meter,
    shut_until: Instant,
    pause: Duration,
    /// Places of tunnels that are over.
    vacant: Vec<TunnelIdx>,
}

impl Gate {
    fn is_open(&self, now: Instant, most: usize) -> bool {
        self.opened < most && now >= self.shut_until && self.pace.debt(now) < PACE * BURST
    }

    const fn count(&mut self, opened_here: bool) -> &mut usize {
        if opened_here { &mut self.opened } else { &mut self.taken }
    }

    /// One could not be made, or died: others would, too. Of those that die together one counts.
    fn shut(&mut self, now: Instant) {
        if now >= self.shut_until {
            self.pause = (self.pause * 2).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
            self.shut_until = now + self.pause;
        }
    }
}

impl Tunnel {
    /// When to see whether it is still needed, if that is decided here.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.own.filter(|own| own.opened_here).map(|own| own.look_at)
    }
}

impl Gateway {
    /// The tunnel that a packet of a flow takes, which `from` sent behind this gateway.
    pub(super) fn tunnel_for(
        &mut self,
        now: Instant,
        id: FlowId,
        from: End,
        segment: &Segment,
    ) -> Option<TunnelIdx> {
        let flow = self.flows.get(id)?;
        let (peer, tunnel, told) = (flow.data.peer, flow.data.tunnel, flow.data.told);
        let Some(own) = flow.data.own else {
            let ends =
                flow.phase == Phase::Closed || segment.tcp.flags.any(Flags(Flags::FIN.0 | Flags::RST.0));
            if self.settings.bundle == Bundle::Flow && from == End::Opener && !ends {
                self.open_own(now, id, peer);
            }
            return Some(tunnel);
        };
        self.look_at_way(now, own);
        // The host here was told a size that the site's paths carried then. New paths carry less until they were probed, those of the
        // site's session as well.
        let site = self.peers[peer].site;
        let wanted = told.unwrap_or(self.tunnels[site].way.best);
        let ready = self.tunnels[own].way.largest >= wanted && self.is_taken(own);
        let right = if ready { own } else { site };
        if right != tunnel {
            self.switch(id, right);
        }
        Some(right)
    }

    /// Whether a tunnel of a single flow has a session, and the peer wants it.
    fn is_taken(&mut self, place: TunnelIdx) -> bool {
        let Self { tunnels, endpoint, counters, .. } = self;
        let tunnel = &mut tunnels[place];
        let session = tunnel.session();
        let Some(own) = &mut tunnel.own else { return false };
        let connection = || endpoint.connection(session?);
        if !own.taken && connection().is_some_and(Connection::is_acknowledged) {
            own.taken = true;
            counters.bundles += 1;
        }
        own.taken
    }

    /// Sends what comes of a flow by another tunnel from now on; what waits goes with it.
    fn switch(&mut self, id: FlowId, to: TunnelIdx) {
        let Self { flows, tunnels, spare, .. } = self;
        let Some(data) = flows.get_mut(id).map(|flow| &mut flow.data) else { return };
        let from = core::mem::replace(&mut data.tunnel, to);
        // It is not yet among those that send by the other.
        data.sent_at = None;
        let Some([old, new]) = tunnels.pair_mut(from, to) else { return };
        while let Some(waiting) = old.entry.withdraw(old.slot(id)) {
            new.entry.push(new.slot(id), waiting.parcel.len(), waiting, |_, dropped| {
                if spare.len() < super::SPARE {
                    spare.push(dropped.parcel.into_buffer());
                }
            });
        }
        self.note_waiting(to);
    }

    /// Opens a tunnel for a flow, if there may be one now.
    fn open_own(&mut self, now: Instant, id: FlowId, index: PeerIdx) {
        let peer = &self.peers[index];
        let site = &self.tunnels[peer.site];
        if !peer.gate.is_open(now, self.settings.bundles) {
            return;
        }
        let Some(session) = site.session().and_then(|session| self.endpoint.connection(session)) else {
            return;
        };
        let addresses = match peer.config.addresses.as_slice() {
            [] => addresses(session),
            known => known.to_vec(),
        };
        self.dials += 1;
        let connect = peer.connect(addresses, FOR_FLOW, (&self.congestion, self.dials));
        let handle = connect.and_then(|connect| self.endpoint.connect(now, connect).ok());
        let peer = &mut self.peers[index];
        let Some(handle) = handle else { return peer.gate.shut(now) };
        peer.gate.pace.lend(now, PACE);
        let own = Own { flow: Some(id), opened_here: true, taken: false, look_at: now + IDLE };
        let place = self.settle_own(index, own);
        self.tunnels[place].dialling = Some(handle);
        self.sessions.insert(handle, place);
        if let Some(flow) = self.flows.get_mut(id) {
            flow.data.own = Some(place);
        }
        self.due = self.due.into_iter().chain([own.look_at]).min();
    }

    /// A place for a tunnel of a single flow.
    fn settle_own(&mut self, peer: PeerIdx, own: Own) -> TunnelIdx {
        let gate = &mut self.peers[peer].gate;
        *gate.count(own.opened_here) += 1;
        let place = gate.vacant.pop().unwrap_or_else(|| {
            let entry = entry::Limits { bytes: self.settings.entry.flow_bytes, ..self.settings.entry };
            self.tunnels.push(Tunnel::new(peer, entry, None))
        });
        let tunnel = &mut self.tunnels[place];
        tunnel.own = Some(own);
        tunnel.judge = Self::watches(&self.settings).then(|| judge::Judge::new(self.settings.loss));
        place
    }

    /// A peer opened a tunnel for a single flow.
    pub(super) fn on_own_accepted(&mut self, now: Instant, handle: Handle, index: PeerIdx) {
        let most = self.settings.bundles.saturating_mul(TAKEN);
        if self.peers[index].gate.taken >= most {
            self.endpoint.close(now, handle, 8, "no more bundles for single flows");
            return;
        }
        let own = Own { flow: None, opened_here: false, taken: true, look_at: now };
        let place = self.settle_own(index, own);
        self.sessions.insert(handle, place);
        self.begin_own(now, handle, place);
        self.counters.bundles += 1;
        // What came before it was known whose it is.
        self.collect_from(now, handle);
    }

    /// A tunnel of a single flow has its session.
    pub(super) fn begin_own(&mut self, now: Instant, handle: Handle, place: TunnelIdx) {
        let tunnel = &mut self.tunnels[place];
        tunnel.on_session(now, handle, &self.peers[tunnel.peer].config, &mut self.endpoint);
        if tunnel.own.is_some_and(|own| own.opened_here && own.flow.is_none()) {
            self.close_own(now, place, NEEDLESS);
        }
    }

    /// A packet of a flow came by a tunnel that a peer opened: that is whose it is, unless it is another's.
    pub(super) fn adopt(&mut self, place: TunnelIdx, id: FlowId) {
        let tunnel = &mut self.tunnels[place];
        let Some(own) = &mut tunnel.own else { return };
        let taken = own.opened_here || own.flow.is_some_and(|other| self.flows.get(other).is_some());
        let peer = tunnel.peer;
        let flow = self.flows.get_mut(id).filter(|flow| flow.data.own.is_none() && flow.data.peer == peer);
        if let Some(flow) = flow.filter(|_| !taken) {
            flow.data.own = Some(place);
            own.flow = Some(id);
        }
    }

    /// The session of a single flow is over, or could not be made, and not because it is not needed any more.
    pub(super) fn on_own_gone(&mut self, now: Instant, place: TunnelIdx) {
        let tunnel = &self.tunnels[place];
        if tunnel.own.is_some_and(|own| own.opened_here) {
            self.peers[tunnel.peer].gate.shut(now);
            self.counters.lost_bundles += 1;
        }
        self.end_own(place);
    }

    /// The flow of a tunnel is no more, or is idle.
    pub(super) fn leave_own(&mut self, now: Instant, place: TunnelIdx) {
        let tunnel = &mut self.tunnels[place];
        match &mut tunnel.own {
            Some(own) if own.opened_here && tunnel.dialling.is_none() => {
                self.peers[tunnel.peer].gate.pause = Duration::ZERO;
                self.close_own(now, place, NEEDLESS);
            }
            // An attempt that nobody waits for is closed once it is a session: given up now, it would be half of one over there for long.
            Some(own) => own.flow = None,
            None => {}
        }
    }

    fn close_own(&mut self, now: Instant, place: TunnelIdx, why: &str) {
        let tunnel = &mut self.tunnels[place];
        for handle in core::mem::take(&mut tunnel.sessions).into_iter().chain(tunnel.dialling.take()) {
            self.sessions.remove(&handle);
            self.endpoint.close(now, handle, 0, why);
        }
        self.end_own(place);
    }

    /// A tunnel of a single flow is no more. The flow goes on by the site's.
    fn end_own(&mut self, place: TunnelIdx) {
        let tunnel = &self.tunnels[place];
        let (Some(own), index) = (tunnel.own, tunnel.peer) else { return };
        let site = self.peers[index].site;
        let flow = own.flow.and_then(|id| Some((id, self.flows.get_mut(id)?)));
        if let Some((id, flow)) = flow.filter(|(_, flow)| flow.data.own == Some(place)) {
            flow.data.own = None;
            if flow.data.tunnel == place {
                self.switch(id, site);
            }
        }
        self.tunnels[place].vacate();
        let gate = &mut self.peers[index].gate;
        *gate.count(own.opened_here) -= 1;
        gate.vacant.push(place);
        if self.tunnels[site].session().is_none() && !self.settings.fail_closed {
            self.release(site);
        }
    }

    /// The session for all flows is no more, or another: with it all is over that stood beside it.
    pub(super) fn close_all_own(&mut self, now: Instant, index: PeerIdx) {
        for place in self.tunnels.numbers() {
            let tunnel = &self.tunnels[place];
            if tunnel.is_dedicated() && tunnel.peer == index {
                self.close_own(now, place, "the session beside it is over");
            }
        }
    }

    /// Closes tunnels of flows that are idle.
    pub(super) fn tend_own(&mut self, now: Instant) {
        for place in self.tunnels.numbers() {
            let tunnel = &mut self.tunnels[place];
            if tunnel.deadline().is_none_or(|at| at > now) {
                continue;
            }
            tunnel.forget_delays(now);
            let Some(own) = &mut tunnel.own else { continue };
            let last = own.flow.and_then(|id| self.flows.get(id)).map(|flow| flow.last);
            let until = if tunnel.dialling.is_some() { now + IDLE } else { last.unwrap_or_default() + IDLE };
            if until > now {
                own.look_at = until;
            } else {
                self.leave_own(now, place);
            }
        }
    }
}

/// Where a peer is that connected to us.
fn addresses(session: &Connection) -> Vec<SocketAddr> {
    let paths = session.status().paths.into_iter().map(|path| path.route);
    let mut addresses: Vec<SocketAddr> =
        paths.filter(|route| matches!(route.via, Via::Direct)).map(|route| route.remote).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}
