//! From the session to the hosts: packets are put in order, and the windows in them say what the way back to their host can carry.

use super::carry::Carriage;
use super::places::{PeerIdx, TunnelIdx};
use super::tunnel::Way;
use super::{By, Gateway, HEADROOM, Parcel};
use crate::checksum::State;
use crate::clamp::{best_packet, clamp, mss_for};
use crate::encap::{BATCHED_LEN, Label, Message, ORDERED_LEN, UNORDERED_LEN, header_len};
use crate::flow::Seen;
use crate::reorder::{Arrived, Timer};
use crate::rules::{Action, Origin, classify};
use crate::segment::Segment;
use crate::serves::{Given, Part};
use crate::tcp::Flags;
use crate::window::{PathWindow, View, share, total};
use byway_engine::connection::datagrams::Received;
use byway_engine::{Connection, Handle};
use byway_wire::{Duration, Instant};

/// How long what is known of the way to a peer holds, and how much longer for each flow that sends: with ten thousand, looking
/// at all of them every ten milliseconds would take a good part of the time.
const WAY_HOLDS: Duration = Duration::from_millis(10);
const WAY_HOLDS_PER_FLOW: Duration = Duration::from_micros(10);
/// A flow counts as sending this long after its last data.
const SENDING: Duration = Duration::from_secs(1);
/// After a flow changed over to another tunnel what it sent by the one before is waited for so long.
const CHANGING: Duration = Duration::from_secs(1);
/// A flow may always have this many bytes in flight: ten segments (RFC 6928).
const LEAST_SHARE: u64 = 14_600;

impl Gateway {
    /// Takes what the sessions have received, and what their paths gave back.
    pub(super) fn collect(&mut self, now: Instant) {
        while let Some(session) = self.endpoint.next_with_datagrams() {
            self.collect_from(now, session);
        }
    }

    pub(super) fn collect_from(&mut self, now: Instant, session: Handle) {
        let Some(index) = self.sessions.get(&session).copied() else { return };
        while let Some(received) = self.endpoint.connection_mut(session).and_then(Connection::next_datagram) {
            self.on_datagram(now, index, session, received);
        }
        let Some(connection) = self.endpoint.connection_mut(session) else { return };
        let tunnel = &mut self.tunnels[index];
        while let Some((mark, datagram)) = connection.next_returned() {
            if let Some(judge) = &mut tunnel.judge {
                judge.withdraw(mark);
            }
            tunnel.returned.push_back(datagram);
        }
        let returned = !tunnel.returned.is_empty();
        if returned {
            self.note_waiting(index);
        }
        self.judge(now, index, session);
    }

    fn on_datagram(&mut self, now: Instant, index: TunnelIdx, session: Handle, received: Received) {
        let Received { path, at, stamp, data } = received;
        let delay = i64::from((at.as_micros() as u32).wrapping_sub(stamp) as i32) * 1_000;
        self.look_at_way(now, index);
        let tunnel = &mut self.tunnels[index];
        tunnel.on_delay(now, session, path, delay);
        let (by, site) = (By { peer: tunnel.peer, tunnel: index }, !tunnel.is_dedicated());
        match Message::read(&data) {
            Ok(Message::Ordered { label, sequence, .. }) => {
                self.on_packet(now, by, Some((label, sequence)), ORDERED_LEN, data);
            }
            Ok(Message::Batched { label, sequence, map, .. }) => {
                self.on_map(index, label, sequence, map);
                self.on_packet(now, by, Some((label, sequence)), BATCHED_LEN, data);
            }
            Ok(Message::Unordered { .. }) => {
                self.on_packet(now, by, None, UNORDERED_LEN, data);
            }
            Ok(Message::Serves { part }) if site => {
                if let Ok(part) = Part::read(part) {
                    let peer = &mut self.peers[by.peer];
                    if let Given::Complete { refused } =
                        self.directory.on_part(by.peer, part, &peer.config.allowed)
                    {
                        peer.refused = refused;
                    }
                } else {
                    self.counters.malformed += 1;
                }
                self.give_back(session, data);
            }
            Ok(Message::Loss { label, first, end }) => {
                self.on_reported(now, index, (label, first, end));
                self.give_back(session, data);
            }
            // Whom it serves a peer says in the session for all flows.
            Ok(Message::Serves { .. }) | Err(_) => {
                self.counters.malformed += 1;
                self.give_back(session, data);
            }
        }
    }

    pub(super) fn give_back(&mut self, session: Handle, buffer: alloc::vec::Vec<u8>) {
        if let Some(connection) = self.endpoint.connection_mut(session) {
            connection.recycle(buffer);
        }
    }

    /// The packet that stands `header` bytes into a datagram.
    fn unpack(&mut self, header: usize, mut data: alloc::vec::Vec<u8>) -> Parcel {
        if header != HEADROOM {
            let copy = Parcel::copy(self.buffer(), data.get(header..).unwrap_or_default()).into_buffer();
            self.recycle(core::mem::replace(&mut data, copy));
        }
        Parcel::new(data)
    }

    /// A packet for a host of this site.
    fn on_packet(
        &mut self,
        now: Instant,
        by: By,
        place: Option<(Label, u32)>,
        header: usize,
        data: alloc::vec::Vec<u8>,
    ) {
        let mut parcel = self.unpack(header, data);
        // The session vouches for the bytes; that the host's checksum is right the other host will see for itself.
        let Ok(segment) = Segment::read(parcel.packet(), State::Checked) else {
            self.counters.malformed += 1;
            return self.recycle(parcel.into_buffer());
        };
        if !self.may_deliver(by.peer, &segment) {
            self.counters.forbidden += 1;
            return self.recycle(parcel.into_buffer());
        }
        let Self { flows, peers, rules, tallies, .. } = self;
        let seen = flows.on_segment(now, &segment, |key| {
            let peer = &mut peers[by.peer];
            peer.label = peer.label.next();
            // The peer has decided. What this side would have said only names the flow.
            let verdict = classify(rules, key, Origin::There, segment.ip.dscp);
            let rule = verdict.rule.filter(|_| verdict.action == Action::Background);
            tallies.on_flow(rule);
            Some(Carriage::new(by.peer, peer.site, rule, peer.label))
        });
        self.clear_gone(now);
        let mut changed_at = None;
        if let Seen::Carried { flow: id, from, .. } = seen {
            if !self.on_ack(now, id, &segment, place.is_some()) {
                return self.recycle(parcel.into_buffer());
            }
            if self.tunnels[by.tunnel].is_dedicated()
                && self.flows.get(id).is_some_and(|flow| flow.data.own.is_none())
            {
                self.adopt(by.tunnel, id);
            }
            let wanted = self.settings.window.is_some();
            let (mut best, ordered) = (usize::MAX, place.is_some());
            if let Some(flow) = self.flows.get_mut(id) {
                let way = self.tunnels[flow.data.tunnel].way;
                best = way.best;
                let scale = flow.scale(from);
                let receiver = u64::from(flow.side(from).window);
                let data = &mut flow.data;
                if ordered && core::mem::replace(&mut data.came_by, by.tunnel) != by.tunnel {
                    data.changed_at = Some(now);
                }
                changed_at = data.changed_at;
                data.received += parcel.len() as u64;
                self.tallies.on_bytes(data.rule, parcel.len());
                data.on_opening(now, segment.tcp.flags);
                if segment.tcp.flags.any(Flags::SYN) {
                    data.told = data.told.max(Some(best));
                }
                data.receiver = receiver;
                if wanted && data.advertised.rewrite(parcel.packet_mut(), &segment, scale, way.flow_limit) {
                    self.counters.rewritten += 1;
                }
            }
            if segment.tcp.flags.any(Flags::SYN) {
                // What the host here sends back must fit as well.
                clamp(parcel.packet_mut(), &segment, mss_for(best, segment.ip.is_v6()));
            }
        }
        self.counters.delivered += 1;
        self.counters.delivered_bytes += parcel.len() as u64;
        let Some((label, sequence)) = place else { return self.put_out(parcel) };
        let changing = changed_at.is_some_and(|at| now.since(at) < CHANGING);
        let wait = self.reorder_wait(by, changing);
        let arrived = Arrived { sequence, bytes: parcel.len(), wait, packet: parcel };
        let out = &mut self.out;
        let late =
            self.exit.on_packet(now, (by.peer, label), arrived, &mut |_, parcel| out.push_back(parcel));
        let tunnel = &mut self.tunnels[by.tunnel];
        tunnel.lateness.on_packet(now, late, tunnel.way.longest);
        self.trim_out();
    }

    /// How long a packet may wait for those before it, `changing`: which may come by another tunnel.
    fn reorder_wait(&self, by: By, changing: bool) -> Duration {
        let tunnel = &self.tunnels[by.tunnel];
        let wait = match self.settings.timer {
            Timer::Peak { cap } => tunnel.way.reorder_wait.max(tunnel.lateness.wait()).min(cap),
            _ => tunnel.way.reorder_wait,
        };
        if !changing {
            return wait;
        }
        // What a path took on may wait there for an acknowledgment, a round trip at most.
        let ways = [self.peers[by.peer].site, by.tunnel].map(|tunnel| self.tunnels[tunnel].way);
        ways.into_iter().map(|way| way.rtt.max(way.longest)).fold(wait, Duration::max)
    }

    /// Whether a peer may send this to a host of this site: from hosts that it speaks for, to hosts that are served here.
    fn may_deliver(&self, index: PeerIdx, segment: &Segment) -> bool {
        let (source, destination) = (segment.ip.source, segment.ip.destination);
        let speaks = self.peers[index].config.allowed.iter().any(|prefix| prefix.contains(source));
        speaks && self.serves.iter().any(|served| served.hosts.contains(destination))
    }

    /// Works out anew what is known of the way by a tunnel, if that is due.
    pub(super) fn look_at_way(&mut self, now: Instant, index: TunnelIdx) {
        if now < self.tunnels[index].way.until {
            return;
        }
        let way = self.way(now, index);
        let tunnel = &mut self.tunnels[index];
        // While no path is usable, what was known holds: packets wait for one, and need not be smaller.
        let way = way.unwrap_or(tunnel.way);
        let flows = u32::try_from(tunnel.sending.len()).unwrap_or(u32::MAX);
        tunnel.way = Way { until: now + WAY_HOLDS + WAY_HOLDS_PER_FLOW * flows, ..way };
    }

    fn way(&mut self, now: Instant, index: TunnelIdx) -> Option<Way> {
        let Self { tunnels, endpoint, flows, windows, receivers, settings, .. } = self;
        let tunnel = &mut tunnels[index];
        let connection = endpoint.connection(tunnel.session()?)?;
        let usable = || connection.path_views().filter(|view| view.usable);
        let rtt = usable().map(|view| view.srtt).min()?;
        let largest = || usable().map(|view| view.largest.saturating_sub(header_len(settings.loss)));
        let (best, largest) = (best_packet(largest), largest().max()?);
        windows.clear();
        windows.extend(usable().map(|view| PathWindow { window: view.window, rtt: view.srtt }));
        // What leaves together arrives as far apart as the paths differ: acknowledgments of all come back by the same way.
        let longest = usable().map(|view| view.srtt).max()?;
        let apart = longest.saturating_sub(rtt);
        // On a single path nothing waits where it cannot be seen.
        let longest = if usable().nth(1).is_some() { longest } else { Duration::ZERO };
        let heard = settings.timer.wait(tunnel.delays(now));
        let reorder_wait = match settings.timer {
            // Of a path of the peer's by which nothing came of late, ours beside it tells what there may be to wait for.
            Timer::Peak { cap } => heard.max(apart.min(cap)),
            _ => heard,
        };
        receivers.clear();
        let mut inner_rtt = rtt;
        tunnel.sending.retain(|id| {
            let flow = flows.get_mut(*id).filter(|flow| flow.data.tunnel == index);
            let Some(data) = flow.map(|flow| &mut flow.data) else { return false };
            if data.sent_at.is_none_or(|at| now.since(at) >= SENDING) {
                data.sent_at = None;
                return false;
            }
            receivers.push(data.receiver);
            inner_rtt = inner_rtt.max(data.rtt.unwrap_or_default());
            true
        });
        if receivers.is_empty() {
            receivers.push(u64::MAX); // whoever begins
        }
        let flow_limit = settings.window.map_or(u64::MAX, |rule| {
            let total = total(rule, &View { paths: windows, inner_rtt, reorder_wait: apart });
            // It waits at the entry, which is not to drop what was asked for.
            let most = settings.entry.flow_bytes as u64 / 2;
            let headroom = (total / 100 * u64::from(settings.headroom_percent)).min(most);
            share(total.saturating_add(headroom), receivers, LEAST_SHARE)
        });
        Some(Way { until: now, flow_limit, largest, best, rtt, longest, reorder_wait })
    }
}
