//! A gateway: an entry for packets that leave its site, and an exit for packets of other gateways
//! (peers). The caller first takes all packets for hosts from
//! [`next_packet`](Gateway::next_packet), then the datagrams for peers. Packets to a peer without a
//! connection are forwarded unchanged (fail-open).
//!
//! | part | what it owns |
//! |---|---|
//! | `tunnels` | sessions, tunnels and peers |
//! | `learned_relays` | relays that no file names |
//! | `announcement_forwarding` | what other gateways have announced |
//! | `announcements` | nothing: passes announcements that arrive to the parts above |
//! | `tunnel_estimator` | estimates the way to a peer by a tunnel |
//! | `served_guests` | hosts that asked to be served |
//! | `flows` | the flows that are carried, the rules, and what is counted of each |
//! | `ingress` | from hosts to sessions: packets that wait are given to paths |
//! | `egress` | from sessions to hosts: packets are put in order, windows rewritten |
//! | `loss_repair` | what is found lost here, and sent again from the cache |
//! | `host_packets` | packets that wait to go out to the hosts' side, and buffers |

mod announcement_forwarding;
mod announcements;
mod carried_flow;
mod config;
mod dedicated_limit;
mod egress;
mod host_packets;
mod index_vec;
mod ingress;
mod learned_relays;
mod loss_detection;
mod loss_repair;
mod missing_packets;
mod observed_flows;
mod packet_buffer;
mod peer;
mod peer_overview;
mod rule_counters;
mod served_guests;
mod site_flows;
mod status;
#[cfg(test)]
mod testing;
mod tunnel_estimate;
mod tunnel_estimator;
mod tunnel_sessions;
mod tunnels;

pub use config::{Bundle, GuestConfig, MachineConfig, PeerConfig, Settings};
pub use ingress::IngressResult;
pub use packet_buffer::{HEADROOM_BYTES, PacketBuffer};
pub use rule_counters::{FlowStatus, RuleCount};
pub use status::{
    BundleStatus, Counters, GuestStatus, PathStatus, PeerState, PeerStatus, RuleStatus, Status,
};

use crate::bypass::BypassCounters;
use crate::cache::AckAction;
use crate::checksum::ChecksumState;
use crate::encap::{BATCHED_LEN, Label, Message, ORDERED_LEN, TYPE_SPEAKS, UNORDERED_LEN};
use crate::flow_table::{EndCause, FlowEnd, FlowId, FlowVerdict};
use crate::joining::{NOT_ALLOWED, is_request};
use crate::loss::LossRuleKind;
use crate::rules::Rules;
use crate::serves::announce;
use crate::tcp_segment::Segment;
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec::Vec;
use byway_control::{ChoiceError, SenderKind, controller};
use byway_engine::connection::Event;
use byway_engine::connection::datagrams::ReceivedDatagram;
use byway_engine::handshake::PublicKey;
use byway_engine::{Connection, Endpoint, EndpointConfig, EndpointEvent, Handle};
use byway_wire::relay::Word;
use byway_wire::{DecodeError, Input, Instant, Machine, Transmit, TransmitBuffer};
use core::net::IpAddr;
use core::sync::atomic::AtomicU64;
use egress::{ArrivalInfo, Egress};
use host_packets::Hosts;
use index_vec::TunnelIdx;
use ingress::Ingress;
use loss_repair::LossRepair;
use served_guests::Guests;
use site_flows::{Flows, HostSegment};
use tunnels::{PeerSessions, watches};

/// A gateway of a site.
pub struct Gateway {
    settings: Settings,
    links: PeerSessions,
    flows: Flows,
    ingress: Ingress,
    egress: Egress,
    losses: LossRepair,
    hosts: Hosts,
    guests: Guests,
    /// Why packets were left alone.
    passed: BypassCounters,
}

/// Why a gateway cannot be made from its configuration.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InvalidConfig {
    /// The congestion controller is unknown, or does not have these options.
    #[error(transparent)]
    Congestion(#[from] ChoiceError),
    /// The served hosts cannot be announced, because there are too many.
    #[error("more hosts and ports are served than can be announced; use wider prefixes")]
    Serves,
}

impl Gateway {
    /// A gateway without sessions yet.
    ///
    /// # Errors
    /// See [`InvalidConfig`].
    pub fn new(config: MachineConfig) -> Result<Self, InvalidConfig> {
        controller(&config.congestion, SenderKind::Session, 0)?;
        let announcement = announce(config.serial, &config.serves).ok_or(InvalidConfig::Serves)?;
        let settings = config.settings;
        let connection = byway_engine::Config {
            idle_timeout: settings.dead_after,
            datagrams: settings.outbox,
            datagram_fates: watches(&settings),
            owner_judges_losses: settings.loss != LossRuleKind::PathNumbers,
            ..config.connection
        };
        let strangers = Arc::new(AtomicU64::new(0));
        let guests = Guests::new(config.guests, config.serves.clone(), config.serial, Arc::clone(&strangers));
        let known = peer::KnownPeers {
            guests: guests.keys(),
            strangers,
            keys: config.peers.iter().map(|peer| peer.key).collect(),
            congestion: config.congestion.clone(),
        };
        let endpoint = Endpoint::new(EndpointConfig {
            identity: config.identity,
            suites: config.suites,
            seed: config.seed,
            connection,
            admission: Some(alloc::boxed::Box::new(known)),
            greeting: peer::FOR_SITE.to_vec(),
        });
        // A gateway that restarts gives other labels than before.
        let label = Label::new(config.serial.wrapping_mul(0x9e37_79b1) >> 8);
        Ok(Self {
            settings,
            links: PeerSessions::new(
                endpoint,
                config.congestion,
                (announcement, label),
                config.peers,
                settings,
            ),
            flows: Flows::new(config.rules, settings.flows),
            ingress: Ingress::new(settings),
            egress: Egress::new(&settings, config.serves),
            losses: LossRepair::new(&settings),
            hosts: Hosts::new(settings.outbox),
            guests,
            passed: BypassCounters::default(),
        })
    }

    /// Whether bundles of paths serve all flows of a site, or one flow each.
    #[must_use]
    pub const fn bundle(&self) -> Bundle {
        self.settings.bundle
    }

    /// The endpoint of the sessions. The owner registers it with [relays](Endpoint::stand_at).
    pub const fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.links.endpoint
    }

    /// Tells the peer with this key about a relay that runs beside this gateway. `word` (a relay
    /// word) holds the relay's addresses, and the grant and secret with which the peer may use it.
    /// A later call for the same peer replaces `word`.
    pub fn lend_relay(&mut self, now: Instant, peer: PublicKey, word: Word) {
        announcements::lend(&mut self.links, now, peer, word);
    }

    /// Adds relays from a registry for every peer. They are tried in turn, and used if they help.
    pub fn add_relays(&mut self, now: Instant, words: Vec<Word>) {
        announcements::on_found(&mut self.links, now, words);
    }

    /// Replaces the rules. Flows that are already carried stay carried.
    pub fn set_rules(&mut self, rules: Rules) {
        self.flows.set_rules(rules);
    }

    /// Returns the next packet to send to the hosts: a packet of a carried flow, or one that takes
    /// the plain route.
    pub fn next_packet(&mut self) -> Option<PacketBuffer> {
        self.hosts.next_packet()
    }

    /// A buffer for a packet, used before if there is one.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.hosts.buffer()
    }

    /// Gives back the buffer of a packet.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        self.hosts.recycle(buffer);
    }

    /// Handles a packet of a host of this site. A packet that is not carried is [put out
    /// again](Gateway::next_packet) unchanged.
    pub fn packet(&mut self, now: Instant, parcel: PacketBuffer, checksum: ChecksumState) -> IngressResult {
        let segment = match Segment::read(parcel.packet(), checksum) {
            Ok(segment) => segment,
            Err(reason) => {
                self.passed.count(reason);
                self.hosts.put_out(parcel);
                return IngressResult::Plain;
            }
        };
        let entered = self.flows.on_sent(now, &segment, &mut self.links, &self.settings);
        self.clear_gone(now);
        match entered {
            HostSegment::Seen(FlowVerdict::Carried { flow, from, .. }) => {
                self.carry(now, (flow, from), parcel, segment)
            }
            HostSegment::Held => self.ingress.hold(parcel, &mut self.hosts),
            HostSegment::Seen(FlowVerdict::PassThrough(why)) => {
                if self.settings.observe {
                    self.flows.observe(&segment, &self.links);
                }
                self.ingress.pass(parcel, why, &mut self.hosts)
            }
        }
    }

    fn carry(
        &mut self,
        now: Instant,
        (id, from): (FlowId, FlowEnd),
        parcel: PacketBuffer,
        segment: Segment,
    ) -> IngressResult {
        let Self { links, flows, ingress, hosts, .. } = self;
        let Some(place) = links.tunnel_for(now, (id, from), &segment, &mut flows.table, hosts) else {
            debug_assert!(false, "a packet of a flow that left while it was looked at");
            return ingress.pass(parcel, EndCause::MidLife, hosts);
        };
        links.look_at_way(now, place, &mut flows.table);
        ingress.carry(now, (id, place), (parcel, segment), links, flows, hosts)
    }

    /// Handles events of the sessions, such as peers that connect or leave.
    fn attend(&mut self, now: Instant) {
        while let Some(event) = self.links.endpoint.next_event() {
            match event {
                EndpointEvent::Accepted(handle) if self.is_guest(handle) => self.on_guest(now, handle),
                EndpointEvent::Connected(handle) | EndpointEvent::Accepted(handle) => {
                    let Self { links, flows, hosts, .. } = self;
                    if links.on_session(now, handle, &mut flows.table, hosts) {
                        self.collect_from(now, handle);
                    }
                    self.links.note_due();
                }
                EndpointEvent::Failed(handle, error) => self.session_gone(now, handle, error.to_string()),
                EndpointEvent::Closed(handle) => {
                    let why = self.links.endpoint.connection_mut(handle).and_then(why_closed);
                    let (why, left) = why.unwrap_or_default();
                    if !self.guests.on_gone(now, handle, left) {
                        self.session_gone(now, handle, why);
                    }
                    self.links.endpoint.forget(handle);
                    self.tend_guests(now);
                }
                EndpointEvent::RelayTrouble(..)
                | EndpointEvent::Reachable(_)
                | EndpointEvent::StandingTrouble(..) => {}
            }
        }
    }

    fn is_guest(&self, handle: Handle) -> bool {
        let connection = self.links.endpoint.connection(handle);
        connection.is_some_and(|connection| is_request(connection.application()))
    }

    /// A host asks to be served.
    fn on_guest(&mut self, now: Instant, handle: Handle) {
        let Some(connection) = self.links.endpoint.connection(handle) else { return };
        match self.guests.on_session(handle, connection) {
            Ok(Some(before)) => self.links.endpoint.close(now, before, 0, "a newer session took its place"),
            Ok(None) => {}
            Err(why) => self.links.endpoint.close(now, handle, NOT_ALLOWED, &why),
        }
        self.tend_guests(now);
    }

    /// Serves the hosts that asked for it, and stops serving hosts that left.
    fn tend_guests(&mut self, now: Instant) {
        let Self { links, egress, guests, .. } = self;
        for session in guests.take_moved(now, &links.endpoint) {
            links.endpoint.close(
                now,
                session,
                NOT_ALLOWED,
                "you come from another address now: ask for that one",
            );
        }
        if let Some(announcement) = guests.tend(now) {
            links.set_announcement(now, announcement);
        }
        if guests.take_news() {
            egress.set_guests(guests.hosts());
        }
    }

    /// Increases whenever [`peer_states`](Self::peer_states) may have changed.
    #[must_use]
    pub const fn peers_version(&self) -> u64 {
        self.links.version
    }

    /// The state of each peer, in the order of the configuration.
    #[must_use]
    pub fn peer_states(&self) -> Vec<PeerState> {
        peer_overview::states(&self.links)
    }

    /// Increases whenever the served [guests](Status::guests) change.
    #[must_use]
    pub const fn guests_version(&self) -> u64 {
        self.guests.version()
    }

    /// The addresses of hosts that asked to be served, and are.
    #[must_use]
    pub fn guest_hosts(&self) -> BTreeSet<IpAddr> {
        self.guests.hosts()
    }

    fn session_gone(&mut self, now: Instant, handle: Handle, why: String) {
        let Self { links, flows, egress, hosts, .. } = self;
        if let Some(peer) = links.on_gone(now, handle, why, &mut flows.table, hosts) {
            egress.forget(now, peer, hosts);
            links.on_lost(now, peer, &mut flows.table, hosts);
        }
    }

    /// Handles datagrams that sessions received, and datagrams that their paths returned.
    fn collect(&mut self, now: Instant) {
        while let Some(session) = self.links.endpoint.next_with_datagrams() {
            self.collect_from(now, session);
        }
    }

    fn collect_from(&mut self, now: Instant, session: Handle) {
        let Some(place) = self.links.tunnel_of(session) else { return };
        let next = |links: &mut PeerSessions| links.endpoint.connection_mut(session)?.next_datagram();
        while let Some(received) = next(&mut self.links) {
            self.on_datagram(now, place, session, received);
        }
        let Self { links, flows, losses, hosts, .. } = self;
        if links.take_returned(place, session) {
            losses.judge(now, place, session, links, &flows.table, hosts);
        }
    }

    fn on_datagram(&mut self, now: Instant, place: TunnelIdx, session: Handle, received: ReceivedDatagram) {
        let ReceivedDatagram { path, at, stamp, data } = received;
        let delay = i64::from((at.as_micros() as u32).wrapping_sub(stamp) as i32) * 1_000;
        let Self { links, flows, losses, hosts, .. } = self;
        links.look_at_way(now, place, &mut flows.table);
        let tunnel = &mut links.tunnels[place];
        tunnel.on_delay(now, session, path, delay);
        let came = ArrivalInfo { peer: tunnel.peer, tunnel: place, place: None };
        let is_understood = match Message::read(&data) {
            Ok(Message::Ordered { label, sequence, .. }) => {
                let came = ArrivalInfo { place: Some((label, sequence)), ..came };
                return self.on_packet(now, came, ORDERED_LEN, data);
            }
            Ok(Message::Batched { label, sequence, map, .. }) => {
                if tunnel.on_map(label, sequence, map) {
                    links.note_waiting(place);
                }
                let came = ArrivalInfo { place: Some((label, sequence)), ..came };
                return self.on_packet(now, came, BATCHED_LEN, data);
            }
            Ok(Message::Unordered { .. }) => return self.on_packet(now, came, UNORDERED_LEN, data),
            // Whom it serves a peer says in the session for all flows.
            Ok(Message::Serves { part }) => {
                !tunnel.is_dedicated() && announcements::on_serves(links, now, came.peer, part)
            }
            Ok(Message::Relay { word }) => {
                !tunnel.is_dedicated() && announcements::on_relay(links, now, came.peer, word)
            }
            Ok(Message::Table { table }) => {
                !tunnel.is_dedicated() && announcements::on_table(links, now, came.peer, table)
            }
            Ok(Message::Loss { label, first, end }) => {
                losses.on_reported(now, place, (label, first, end), links, &flows.table, hosts);
                true
            }
            Err(error) => error == DecodeError::UnknownType(TYPE_SPEAKS),
        };
        if !is_understood {
            self.egress.on_malformed();
        }
        if let Some(connection) = self.links.endpoint.connection_mut(session) {
            connection.recycle(data);
        }
    }

    /// Handles a packet for a host of this site, which begins `header` bytes into a datagram.
    fn on_packet(&mut self, now: Instant, came: ArrivalInfo, header: usize, data: Vec<u8>) {
        let mut parcel = self.hosts.unpack(header, data);
        // The session vouches for the bytes; that the host's checksum is right the other host will
        // see for itself.
        let Ok(segment) = Segment::read(parcel.packet(), ChecksumState::Checked) else {
            self.egress.on_malformed();
            return self.hosts.recycle(parcel.into_buffer());
        };
        if !self.egress.may_deliver(&self.links.peers[came.peer], &segment) {
            return self.hosts.recycle(parcel.into_buffer());
        }
        let seen = self.flows.on_received(now, &segment, came.peer, &mut self.links);
        self.clear_gone(now);
        let Self { links, flows, egress, losses, hosts, .. } = self;
        let mut changing = false;
        if let FlowVerdict::Carried { flow: id, from, .. } = seen {
            match losses.on_ack(now, id, &segment, came.place.is_some()) {
                AckAction::Pass => {}
                AckAction::Suppress => return hosts.recycle(parcel.into_buffer()),
                AckAction::Mend(number) => {
                    losses.send_again(now, (id, number), links, &flows.table, hosts);
                    return hosts.recycle(parcel.into_buffer());
                }
            }
            links.adopt(came.tunnel, id, &mut flows.table);
            changing = egress.rewrite(now, came, (id, from), (&mut parcel, &segment), links, flows);
        }
        egress.deliver(now, came, parcel, changing, links, hosts);
    }

    /// Forgets the state of flows that left the table.
    fn clear_gone(&mut self, now: Instant) {
        let Self { links, flows, losses, hosts, .. } = self;
        while let Some((id, data)) = flows.table.next_gone() {
            links.on_flow_gone(now, id, &data, &mut flows.table, hosts);
            losses.forget(id);
        }
    }

    fn expire(&mut self, now: Instant) {
        self.egress.expire(now, &mut self.hosts);
        self.flows.table.expire(now);
        self.clear_gone(now);
    }

    /// The counts so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let Self { links, flows, ingress, egress, losses, hosts, guests, .. } = self;
        let hosts = Counters { overrun: hosts.overrun(), ..Counters::default() };
        let parts =
            [links.counters(), flows.counters(), ingress.counters(), egress.counters(), losses.counters()];
        parts.into_iter().chain([hosts, guests.counters(), links.tables.counters()]).sum()
    }

    /// The state of the gateway.
    #[must_use]
    pub fn status(&self) -> Status {
        let Self { settings, links, flows, egress, losses, passed, .. } = self;
        let (rules, others) = flows.decided();
        Status {
            settings: *settings,
            peers: peer_overview::peers(links, &flows.table),
            guests: self.guests.status(),
            flows: flows.table.len(),
            table: flows.table.counters(),
            counters: self.counters(),
            rules,
            others,
            largest: flows.largest(),
            passed: *passed,
            waits: *egress.stats(),
            reordering: egress.bytes(),
            found: losses.found().clone(),
            cache: losses.cache(),
        }
    }
}

/// Returns why a session was closed, and whether the peer closed it without an error.
fn why_closed(connection: &mut Connection) -> Option<(String, bool)> {
    core::iter::from_fn(|| connection.next_event()).find_map(|event| match event {
        Event::Closed { code, reason, by_peer } => Some((reason, by_peer && code == 0)),
        _ => None,
    })
}

impl Machine for Gateway {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.links.endpoint.handle(now, input);
        self.attend(now);
        self.collect(now);
    }

    fn wake(&mut self, now: Instant) {
        self.links.endpoint.wake(now);
        self.attend(now);
        self.collect(now);
        self.tend_guests(now);
        announcements::tend(&mut self.links, now);
        self.links.tend(now, &mut self.flows.table, &mut self.hosts);
        self.expire(now);
    }

    fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        self.collect(now);
        let Self { links, flows, ingress, losses, hosts, .. } = self;
        ingress.pump(now, links, &mut flows.table, losses, hosts);
        links.endpoint.transmit(now, out)
    }

    fn deadline(&self) -> Option<Instant> {
        let Self { links, flows, egress, guests, .. } = self;
        let own = [links.endpoint.deadline(), egress.deadline(), flows.table.deadline(), links.due()];
        own.into_iter().chain([guests.deadline()]).flatten().min()
    }
}
