//! The tunnels to other gateways (peers). A tunnel's session is opened again whenever it is lost.
//! Each flow direction has a label, a number of 24 bits. Labels and packets' sequence numbers are
//! per peer, so the receiving gateway can order packets from several tunnels.
//!
//! | tunnel | flows |
//! |---|---|
//! | a site's tunnel | by default all flows to a peer (HIR); also new flows, so that they do not wait for a handshake |
//! | a flow's own tunnel, with `bundle = "flow"` | one flow (Harp, section III), as soon as the tunnel carries packets of the size that the host was told; opened by the gateway at which the flow enters |

use super::announcement_forwarding::AnnouncementForwarder;
use super::carried_flow::{CarriedFlow, CarriedFlows};
use super::config::{self, Bundle, Settings};
use super::host_packets::Hosts;
use super::index_vec::{IndexVec, PeerIdx, TunnelIdx};
use super::learned_relays::{LearnedRelays, SessionRef};
use super::loss_detection::LossDetector;
use super::peer::{FOR_FLOW, Peer};
use super::status::Counters;
use super::tunnel_estimator::TunnelEstimator;
use super::tunnel_sessions::{Dedicated, Tunnel};
use crate::encap::{Label, Message};
use crate::entry;
use crate::flow_table::{FlowEnd, FlowId, FlowState};
use crate::loss::LossRuleKind;
use crate::serves::Directory;
use crate::tcp_header::Flags;
use crate::tcp_segment::Segment;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use byway_control::ControllerChoice;
use byway_engine::handshake::PublicKey;
use byway_engine::{Connection, Endpoint, Handle, Via};
use byway_wire::{Duration, Instant, Writer};
use core::net::SocketAddr;

/// Time without a packet after which a flow gives up its tunnel. It gets another with the next
/// packet.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// The reason in the CLOSE of a tunnel that is no longer needed.
const NEEDLESS_REASON: &str = "its flow needs it no more";

/// All peers of this gateway, the tunnels to each peer, and the sessions of each tunnel.
pub(super) struct PeerSessions {
    pub endpoint: Endpoint,
    pub peers: IndexVec<PeerIdx, Peer>,
    /// All tunnels: one to each peer for all flows, and those for single flows.
    pub tunnels: IndexVec<TunnelIdx, Tunnel>,
    /// The hosts that each peer serves.
    pub directory: Directory<PeerIdx>,
    pub detours: LearnedRelays,
    /// The announcements that are passed on.
    pub tables: AnnouncementForwarder,
    settings: Settings,
    congestion: ControllerChoice,
    /// The announcement of the hosts served here, in parts.
    announcement: Vec<Vec<u8>>,
    /// The tunnel that a session is of.
    sessions: BTreeMap<Handle, TunnelIdx>,
    /// Tunnels for whose paths something waits.
    waiting: Vec<TunnelIdx>,
    /// When a peer or a tunnel next needs attention.
    due: Option<Instant>,
    dials: u64,
    estimator: TunnelEstimator,
    counters: Counters,
    /// Increases whenever a peer comes or goes, or an attempt to reach one fails.
    pub version: u64,
}

/// Whether this gateway tracks the packets that it sends: it finds losses by a rule other than the
/// session's, or repairs them.
pub(super) const fn watches(settings: &Settings) -> bool {
    !matches!(settings.loss, LossRuleKind::PathNumbers) || settings.cache.is_some()
}

impl PeerSessions {
    /// The peers, without sessions yet. The first label is the one after `label`.
    pub fn new(
        endpoint: Endpoint,
        congestion: ControllerChoice,
        (announcement, label): (Vec<Vec<u8>>, Label),
        known: Vec<config::PeerConfig>,
        settings: Settings,
    ) -> Self {
        let (mut peers, mut tunnels) = (IndexVec::new(), IndexVec::new());
        for peer in known {
            // Each has a tunnel for all flows.
            let site = tunnels.next();
            let index = peers.push(Peer::new(peer, label, site));
            tunnels.push(Tunnel::new(index, settings.entry, judge(&settings)));
        }
        let mut links = Self {
            endpoint,
            peers,
            tunnels,
            directory: Directory::new(),
            detours: LearnedRelays::new(settings.detours),
            tables: AnnouncementForwarder::default(),
            settings,
            congestion,
            announcement,
            sessions: BTreeMap::new(),
            waiting: Vec::new(),
            due: None,
            dials: 0,
            estimator: TunnelEstimator::default(),
            counters: Counters::default(),
            version: 0,
        };
        links.note_due();
        links
    }

    /// The counts so far.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// When [`tend`](Self::tend) has something to do.
    pub const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The tunnel that a session is of.
    pub fn tunnel_of(&self, session: Handle) -> Option<TunnelIdx> {
        self.sessions.get(&session).copied()
    }

    /// Notes that something waits for the paths of a tunnel.
    pub fn note_waiting(&mut self, place: TunnelIdx) {
        if !core::mem::replace(&mut self.tunnels[place].waits, true) {
            self.waiting.push(place);
        }
    }

    /// Calls `pump` for each tunnel with waiting packets. Tunnels for which it returns true stay in
    /// the list.
    pub fn for_waiting(&mut self, mut pump: impl FnMut(&mut Tunnel, &mut Endpoint) -> bool) {
        let Self { endpoint, tunnels, waiting, .. } = self;
        waiting.retain(|place| pump(&mut tunnels[*place], endpoint));
    }

    /// Updates the estimate of a tunnel, if that is due.
    pub fn look_at_way(&mut self, now: Instant, place: TunnelIdx, flows: &mut CarriedFlows) {
        let Self { tunnels, endpoint, estimator, settings, .. } = self;
        let tunnel = &mut tunnels[place];
        let connection = tunnel.session().and_then(|session| endpoint.connection(session));
        estimator.look(now, (place, tunnel), connection, flows, settings);
    }

    /// Takes the datagrams that the paths of a session returned. They are sent first, unchanged.
    /// Returns whether the session exists.
    pub fn take_returned(&mut self, place: TunnelIdx, session: Handle) -> bool {
        let Some(connection) = self.endpoint.connection_mut(session) else { return false };
        let tunnel = &mut self.tunnels[place];
        while let Some((mark, datagram)) = connection.next_returned() {
            if let Some(loss_detector) = &mut tunnel.loss_detector {
                loss_detector.withdraw(mark);
            }
            tunnel.returned.push_back(datagram);
        }
        if !tunnel.returned.is_empty() {
            self.note_waiting(place);
        }
        true
    }

    /// The peer that has this key.
    pub fn peer_of(&self, key: PublicKey) -> Option<PeerIdx> {
        self.peers.iter().find(|(_, peer)| peer.config.key == key).map(|(index, _)| index)
    }

    /// Returns the addresses of a peer, as its session shows them.
    pub fn addresses_of(&self, index: PeerIdx) -> Vec<SocketAddr> {
        let session = self.tunnels[self.peers[index].site].session();
        session.and_then(|session| self.endpoint.connection(session)).map(addresses).unwrap_or_default()
    }

    /// Whether this gateway tells peers of each other.
    pub const fn introduces(&self) -> bool {
        self.settings.introduce
    }

    /// Handles a new session. Returns whether datagrams that arrived before it was identified are
    /// to be handled.
    pub fn on_session(
        &mut self,
        now: Instant,
        handle: Handle,
        flows: &mut CarriedFlows,
        hosts: &mut Hosts,
    ) -> bool {
        if let Some(place) = self.tunnel_of(handle) {
            self.begin_own(now, handle, place, flows, hosts);
            return false;
        }
        let Some(connection) = self.endpoint.connection(handle) else { return false };
        let (key, single) = (connection.peer(), connection.application() == FOR_FLOW);
        let Some(index) = self.peer_of(key) else {
            self.endpoint.close(now, handle, 6, "not a peer");
            return false;
        };
        if single {
            return self.on_own_accepted(now, handle, index, flows, hosts);
        }
        let peer = &mut self.peers[index];
        peer.on_session(now);
        self.version += 1;
        self.tunnels[peer.site].on_session(now, handle, &mut self.endpoint);
        self.detours.lead(now, SessionRef { handle, peer: index }, peer, &mut self.endpoint);
        self.sessions.insert(handle, peer.site);
        // A peer that makes another may have restarted, and knows nothing of what stood beside the
        // one before.
        self.close_all_own(now, index, flows, hosts);
        true
    }

    /// A session, or the attempt at one, is over. If it was the last for all flows of a peer,
    /// which: then see [`on_lost`](Self::on_lost).
    pub fn on_gone(
        &mut self,
        now: Instant,
        handle: Handle,
        why: String,
        flows: &mut CarriedFlows,
        hosts: &mut Hosts,
    ) -> Option<PeerIdx> {
        // Of attempts only those at tunnels of single flows are among the sessions.
        let known = self.sessions.remove(&handle);
        let place = known.or_else(|| {
            let mut sites = self.peers.iter().map(|(_, peer)| peer.site);
            sites.find(|site| self.tunnels[*site].dialling == Some(handle))
        });
        let place = place.filter(|place| self.tunnels[*place].has(handle))?;
        let tunnel = &mut self.tunnels[place];
        if tunnel.is_dedicated() {
            self.on_own_gone(now, place, flows, hosts);
            self.note_due();
            return None;
        }
        let (lost, index) = (tunnel.on_gone(handle), tunnel.peer);
        if tunnel.sessions.is_empty() {
            self.peers[index].on_gone(now, why);
            self.version += 1;
        }
        self.note_due();
        lost.then_some(index)
    }

    /// The last session for all flows of a peer is over.
    pub fn on_lost(&mut self, now: Instant, index: PeerIdx, flows: &mut CarriedFlows, hosts: &mut Hosts) {
        self.counters.lost_sessions += 1;
        if !self.tables.has_heard(index) {
            self.directory.forget(index);
        }
        self.detours.forget(index);
        self.close_all_own(now, index, flows, hosts);
        if !self.settings.fail_closed {
            self.release(self.peers[index].site, hosts);
        }
        self.note_due();
    }

    /// Notes when something is to be done next.
    pub fn note_due(&mut self) {
        let peers = self.peers.iter().filter_map(|(_, peer)| peer.deadline());
        let tunnels = self.tunnels.iter().filter_map(|(_, tunnel)| tunnel.deadline());
        self.due = peers.chain(tunnels).chain(self.tables.deadline()).min();
    }

    /// Runs the due work for peers: dialling and announcing.
    pub fn tend(&mut self, now: Instant, flows: &mut CarriedFlows, hosts: &mut Hosts) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        for index in self.peers.numbers() {
            let peer = &mut self.peers[index];
            let site = peer.site;
            let tunnel = &mut self.tunnels[site];
            self.dials += 1;
            let busy = tunnel.dialling.is_some() || !tunnel.sessions.is_empty();
            let dialled = peer.dial(now, busy, &mut self.endpoint, (&self.congestion, self.dials));
            tunnel.dialling = dialled.or(tunnel.dialling);
            if peer.announcing.is_some_and(|announcing| announcing.at <= now) {
                peer.on_announced(now);
                tunnel.forget_delays(now);
                self.announce(site);
            }
        }
        self.tend_own(now, flows, hosts);
        self.note_due();
    }

    /// Queues the announcement of the hosts served here for a peer.
    fn announce(&mut self, place: TunnelIdx) {
        let tunnel = &mut self.tunnels[place];
        for part in &self.announcement {
            let mut datagram = alloc::vec![0; part.len() + 1];
            Message::Serves { part }.write(&mut Writer::new(&mut datagram));
            tunnel.returned.push_back(datagram);
        }
        tunnel.returned.extend(self.detours.announcement(tunnel.peer));
        self.note_waiting(place);
    }

    /// Sets the announcement of the hosts served here, and has it sent to peers with a session.
    pub fn set_announcement(&mut self, now: Instant, announcement: Vec<Vec<u8>>) {
        self.announcement = announcement;
        for index in self.peers.numbers() {
            self.peers[index].announce_anew(now);
        }
        self.note_due();
    }

    /// Handles the end of a session: its waiting packets go by the plain route.
    fn release(&mut self, place: TunnelIdx, hosts: &mut Hosts) {
        let released = self.tunnels[place].release();
        self.counters.failed_open += released.len() as u64;
        released.into_iter().for_each(|parcel| hosts.put_out(parcel));
    }

    /// A flow left the table.
    pub fn on_flow_gone(
        &mut self,
        now: Instant,
        id: FlowId,
        data: &CarriedFlow,
        flows: &mut CarriedFlows,
        hosts: &mut Hosts,
    ) {
        let tunnel = &mut self.tunnels[data.tunnel];
        tunnel.entry.clear(tunnel.slot(id));
        for tunnel in [Some(self.peers[data.peer].site), data.own].into_iter().flatten() {
            if let Some(loss_detector) = &mut self.tunnels[tunnel].loss_detector {
                loss_detector.forget(data.label);
            }
        }
        if let Some(own) = data.own {
            self.leave_own(now, own, flows, hosts);
        }
    }

    /// The tunnel that a packet of a flow takes, which `from` sent behind this gateway.
    pub fn tunnel_for(
        &mut self,
        now: Instant,
        (id, from): (FlowId, FlowEnd),
        segment: &Segment,
        flows: &mut CarriedFlows,
        hosts: &mut Hosts,
    ) -> Option<TunnelIdx> {
        let flow = flows.get(id)?;
        let (peer, tunnel, told) = (flow.data.peer, flow.data.tunnel, flow.data.told);
        let Some(own) = flow.data.own else {
            let ends =
                flow.phase == FlowState::Closed || segment.tcp.flags.any(Flags(Flags::FIN.0 | Flags::RST.0));
            if self.settings.bundle == Bundle::Flow && from == FlowEnd::Opener && !ends {
                self.open_own(now, id, peer, flows);
            }
            return Some(tunnel);
        };
        self.look_at_way(now, own, flows);
        // The host was told in TCP's MSS option to send packets of up to `wanted` bytes. New paths
        // of the flow's own tunnel carry only smaller ones until larger ones were probed. Until
        // then the flow uses the site's shared tunnel.
        let site = self.peers[peer].site;
        let wanted = told.unwrap_or(self.tunnels[site].way.best);
        let ready = self.tunnels[own].way.largest >= wanted && self.is_taken(own);
        let right = if ready { own } else { site };
        if right != tunnel {
            self.switch(id, right, flows, hosts);
        }
        Some(right)
    }

    /// Whether a tunnel of a single flow has a session that the peer accepts.
    fn is_taken(&mut self, place: TunnelIdx) -> bool {
        let Self { tunnels, endpoint, counters, .. } = self;
        let tunnel = &mut tunnels[place];
        let session = tunnel.session();
        let Some(own) = &mut tunnel.dedicated else { return false };
        let connection = || endpoint.connection(session?);
        if !own.taken && connection().is_some_and(Connection::is_acknowledged) {
            own.taken = true;
            counters.bundles += 1;
        }
        own.taken
    }

    /// Moves a flow to another tunnel, together with its waiting packets.
    fn switch(&mut self, id: FlowId, to: TunnelIdx, flows: &mut CarriedFlows, hosts: &mut Hosts) {
        let Some(data) = flows.get_mut(id).map(|flow| &mut flow.data) else { return };
        let from = core::mem::replace(&mut data.tunnel, to);
        // It is not yet among those that send by the other.
        data.sent_at = None;
        let Some([old, new]) = self.tunnels.pair_mut(from, to) else { return };
        while let Some(waiting) = old.entry.withdraw(old.slot(id)) {
            new.push(waiting, |buffer| hosts.recycle(buffer));
        }
        self.note_waiting(to);
    }

    /// Opens a tunnel for one flow, if one may be opened now.
    fn open_own(&mut self, now: Instant, id: FlowId, index: PeerIdx, flows: &mut CarriedFlows) {
        let peer = &self.peers[index];
        let site = &self.tunnels[peer.site];
        if !peer.dedicated_limit.is_open(now, self.settings.bundles) {
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
        let dedicated_limit = &mut self.peers[index].dedicated_limit;
        let Some(handle) = handle else { return dedicated_limit.shut(now) };
        dedicated_limit.on_dialled(now);
        let own = Dedicated { flow: Some(id), opened_here: true, taken: false, look_at: now + IDLE_TIMEOUT };
        let place = self.settle_own(index, own);
        self.tunnels[place].dialling = Some(handle);
        self.sessions.insert(handle, place);
        if let Some(flow) = flows.get_mut(id) {
            flow.data.own = Some(place);
        }
        self.due = self.due.into_iter().chain([own.look_at]).min();
    }

    /// A place for a tunnel of a single flow.
    fn settle_own(&mut self, peer: PeerIdx, own: Dedicated) -> TunnelIdx {
        let vacant = self.peers[peer].dedicated_limit.begin(own.opened_here);
        let place = vacant.unwrap_or_else(|| {
            let entry = entry::EntryLimits { bytes: self.settings.entry.flow_bytes, ..self.settings.entry };
            self.tunnels.push(Tunnel::new(peer, entry, None))
        });
        let tunnel = &mut self.tunnels[place];
        tunnel.dedicated = Some(own);
        tunnel.loss_detector = judge(&self.settings);
        place
    }

    /// Handles a tunnel for one flow that a peer opened. Returns whether it is accepted.
    fn on_own_accepted(
        &mut self,
        now: Instant,
        handle: Handle,
        index: PeerIdx,
        flows: &mut CarriedFlows,
        hosts: &mut Hosts,
    ) -> bool {
        if !self.peers[index].dedicated_limit.takes(self.settings.bundles) {
            self.endpoint.close(now, handle, 8, "no more bundles for single flows");
            return false;
        }
        let own = Dedicated { flow: None, opened_here: false, taken: true, look_at: now };
        let place = self.settle_own(index, own);
        self.sessions.insert(handle, place);
        self.begin_own(now, handle, place, flows, hosts);
        self.counters.bundles += 1;
        true
    }

    /// Handles the new session of a tunnel for one flow.
    fn begin_own(
        &mut self,
        now: Instant,
        handle: Handle,
        place: TunnelIdx,
        flows: &mut CarriedFlows,
        hosts: &mut Hosts,
    ) {
        let tunnel = &mut self.tunnels[place];
        tunnel.on_session(now, handle, &mut self.endpoint);
        let peer = tunnel.peer;
        self.detours.lead(now, SessionRef { handle, peer }, &self.peers[peer], &mut self.endpoint);
        if tunnel.dedicated.is_some_and(|own| own.opened_here && own.flow.is_none()) {
            self.close_own(now, place, NEEDLESS_REASON, flows, hosts);
        }
    }

    /// Notes that a packet of the flow `id` came through the tunnel `place`. If the peer opened
    /// this tunnel for a single flow and no flow is known yet, `id` becomes the tunnel's flow.
    pub fn adopt(&mut self, place: TunnelIdx, id: FlowId, flows: &mut CarriedFlows) {
        let tunnel = &mut self.tunnels[place];
        let Some(own) = &mut tunnel.dedicated else { return };
        if own.flow == Some(id) {
            return;
        }
        let taken = own.opened_here || own.flow.is_some_and(|other| flows.get(other).is_some());
        let peer = tunnel.peer;
        let flow = flows.get_mut(id).filter(|flow| flow.data.own.is_none() && flow.data.peer == peer);
        if let Some(flow) = flow.filter(|_| !taken) {
            flow.data.own = Some(place);
            own.flow = Some(id);
        }
    }

    /// Handles the failure of a single flow's session that is still needed.
    fn on_own_gone(&mut self, now: Instant, place: TunnelIdx, flows: &mut CarriedFlows, hosts: &mut Hosts) {
        let tunnel = &self.tunnels[place];
        if tunnel.dedicated.is_some_and(|own| own.opened_here) {
            self.peers[tunnel.peer].dedicated_limit.shut(now);
            self.counters.lost_bundles += 1;
        }
        self.end_own(place, flows, hosts);
    }

    /// The flow of a tunnel is no more, or is idle.
    fn leave_own(&mut self, now: Instant, place: TunnelIdx, flows: &mut CarriedFlows, hosts: &mut Hosts) {
        let tunnel = &mut self.tunnels[place];
        match &mut tunnel.dedicated {
            Some(own) if own.opened_here && tunnel.dialling.is_none() => {
                self.peers[tunnel.peer].dedicated_limit.on_success();
                self.close_own(now, place, NEEDLESS_REASON, flows, hosts);
            }
            // The tunnel is still being opened. If the handshake were aborted now, the peer might
            // have a session that exists only at the peer, and would keep it for a long time. So
            // the tunnel is closed after the handshake.
            Some(own) => own.flow = None,
            None => {}
        }
    }

    fn close_own(
        &mut self,
        now: Instant,
        place: TunnelIdx,
        why: &str,
        flows: &mut CarriedFlows,
        hosts: &mut Hosts,
    ) {
        let tunnel = &mut self.tunnels[place];
        for handle in core::mem::take(&mut tunnel.sessions).into_iter().chain(tunnel.dialling.take()) {
            self.sessions.remove(&handle);
            self.endpoint.close(now, handle, 0, why);
        }
        self.end_own(place, flows, hosts);
    }

    /// A tunnel of a single flow is no more. The flow goes on by the site's.
    fn end_own(&mut self, place: TunnelIdx, flows: &mut CarriedFlows, hosts: &mut Hosts) {
        let tunnel = &self.tunnels[place];
        let (Some(own), index) = (tunnel.dedicated, tunnel.peer) else { return };
        let site = self.peers[index].site;
        let flow = own.flow.and_then(|id| Some((id, flows.get_mut(id)?)));
        if let Some((id, flow)) = flow.filter(|(_, flow)| flow.data.own == Some(place)) {
            flow.data.own = None;
            if flow.data.tunnel == place {
                self.switch(id, site, flows, hosts);
            }
        }
        self.tunnels[place].vacate();
        self.peers[index].dedicated_limit.end(own.opened_here, place);
        if self.tunnels[site].session().is_none() && !self.settings.fail_closed {
            self.release(site, hosts);
        }
    }

    /// The session for all flows is no more, or another: with it all is over that stood beside it.
    fn close_all_own(&mut self, now: Instant, index: PeerIdx, flows: &mut CarriedFlows, hosts: &mut Hosts) {
        for place in self.tunnels.numbers() {
            let tunnel = &self.tunnels[place];
            if tunnel.is_dedicated() && tunnel.peer == index {
                self.close_own(now, place, "the session beside it is over", flows, hosts);
            }
        }
    }

    /// Closes tunnels of flows that are idle.
    fn tend_own(&mut self, now: Instant, flows: &mut CarriedFlows, hosts: &mut Hosts) {
        for place in self.tunnels.numbers() {
            let tunnel = &mut self.tunnels[place];
            if tunnel.deadline().is_none_or(|at| at > now) {
                continue;
            }
            tunnel.forget_delays(now);
            let Some(own) = &mut tunnel.dedicated else { continue };
            let last = own.flow.and_then(|id| flows.get(id)).map(|flow| flow.last);
            let until = if tunnel.dialling.is_some() {
                now + IDLE_TIMEOUT
            } else {
                last.unwrap_or_default() + IDLE_TIMEOUT
            };
            if until > now {
                own.look_at = until;
            } else {
                self.leave_own(now, place, flows, hosts);
            }
        }
    }
}

/// Makes a detector of lost packets. `None`: the sessions find losses.
fn judge(settings: &Settings) -> Option<LossDetector> {
    watches(settings).then(|| LossDetector::new(settings.loss))
}

/// The addresses of a peer that connected.
fn addresses(session: &Connection) -> Vec<SocketAddr> {
    let paths = session.status().paths.into_iter().map(|path| path.route);
    let mut addresses: Vec<SocketAddr> =
        paths.filter(|route| matches!(route.via, Via::Direct)).map(|route| route.remote).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Parts, parts, segment};
    use super::*;
    use crate::flow_table::FlowVerdict;

    const NOW: Instant = Instant::from_millis(5);

    #[test]
    fn a_tunnel_waits_once_and_as_long_as_it_says_so() {
        let Parts { mut links, site, .. } = parts(Settings::default());
        links.note_waiting(site);
        links.note_waiting(site);
        let mut seen = 0;
        links.for_waiting(|tunnel, _| {
            seen += 1;
            tunnel.waits = false;
            false
        });
        links.for_waiting(|_, _| panic!("nothing waits"));
        assert_eq!(seen, 1);
    }

    #[test]
    fn a_flow_goes_by_the_site_s_tunnel_while_it_has_none_of_its_own() {
        let settings = Settings { bundle: Bundle::Flow, ..Settings::default() };
        let Parts { mut links, mut flows, mut hosts, peer, site, .. } = parts(settings);
        let (_, syn) = segment("S", 1, b"");
        let FlowVerdict::Carried { flow, from, .. } = flows.on_received(NOW, &syn, peer, &mut links) else {
            panic!("not taken")
        };
        // Without a session of the site none is opened beside it.
        let place = links.tunnel_for(NOW, (flow, from), &syn, &mut flows.table, &mut hosts);
        assert_eq!((place, links.tunnels.numbers().count()), (Some(site), 1));
        // A peer opened one, and the flow's packet came by it.
        let own = Dedicated { flow: None, opened_here: false, taken: true, look_at: NOW };
        let place = links.settle_own(peer, own);
        links.adopt(place, flow, &mut flows.table);
        assert_eq!(flows.table.get(flow).unwrap().data.own, Some(place));
        links.tunnels[site].way.best = 1_138;
        for (told, largest, expected) in [(1_373, 1_138, site), (1_373, 1_373, place), (1_138, 1_138, place)]
        {
            flows.table.get_mut(flow).unwrap().data.told = Some(told);
            links.tunnels[place].way.largest = largest;
            let chosen = links.tunnel_for(NOW, (flow, from), &syn, &mut flows.table, &mut hosts);
            assert_eq!(chosen, Some(expected), "{told} {largest}");
        }
        links.end_own(place, &mut flows.table, &mut hosts);
        let data = &flows.table.get(flow).unwrap().data;
        assert_eq!((data.own, data.tunnel, links.tunnels[place].is_dedicated()), (None, site, false));
        assert_eq!(links.settle_own(peer, own), place, "the place is used again");
    }
}
