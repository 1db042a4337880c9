//! From the hosts to the session: which packets are carried, and by which path each goes.

use super::mend::Kept;
use super::peers::behind;
use super::places::{PeerIdx, TunnelIdx};
use super::tunnel::Waiting;
use super::{Gateway, Parcel};
use crate::cache::{Cache, Sent};
use crate::checksum::State;
use crate::clamp::{clamp, mss_for};
use crate::encap::{Label, Message, header_len};
use crate::flow::{End, FlowId, Seen, Why};
use crate::icmp::too_big;
use crate::ip::Ip;
use crate::loss::Rule;
use crate::pick::{self, Want, pick};
use crate::rules::{Action, Origin, classify};
use crate::segment::Segment;
use crate::tcp::Flags;
use crate::window::Advertised;
use alloc::vec::Vec;
use byway_engine::connection::datagrams::{PathView, Refused};
use byway_wire::{Duration, Instant, Writer};

/// What is kept with a flow that is carried.
#[derive(Clone, Debug)]
pub(super) struct Carriage {
    /// The gateway of its other end.
    pub peer: PeerIdx,
    /// The tunnel that its packets take, and the one that is its own, if it has one or is to have one.
    pub tunnel: TunnelIdx,
    pub own: Option<TunnelIdx>,
    /// The rule that decided, by its place; `None`: the peer did.
    pub rule: Option<usize>,
    /// Bytes of its packets from the host here, and to it.
    pub sent: u64,
    pub received: u64,
    /// Its name on the way to the peer.
    pub label: Label,
    /// The place of its next packet.
    pub sequence: u32,
    /// The tunnel by which packets of the other direction come, and since when it is not the one before.
    pub came_by: TunnelIdx,
    pub changed_at: Option<Instant>,
    /// What was advertised to the host on this side.
    pub advertised: Advertised,
    /// When its host last sent data, if that was of late: then the peer has it among those that are sending.
    pub sent_at: Option<Instant>,
    /// The window that the host at the other end allows; until it is known, any.
    pub receiver: u64,
    /// The largest packets that its host here was told to send, once it was told.
    pub told: Option<usize>,
    /// When its SYN and the answer to it passed, and the round trip of the whole way, once it is known.
    pub opening: [Option<Instant>; 2],
    pub rtt: Option<Duration>,
}

impl Carriage {
    pub fn new(peer: PeerIdx, site: TunnelIdx, rule: Option<usize>, label: Label) -> Self {
        Self {
            peer,
            tunnel: site,
            own: None,
            rule,
            sent: 0,
            received: 0,
            label,
            sequence: 0,
            came_by: site,
            changed_at: None,
            advertised: Advertised::default(),
            sent_at: None,
            receiver: u64::MAX,
            told: None,
            opening: [None; 2],
            rtt: None,
        }
    }

    /// The handshake shows the round trip: SYN to SYN, and that to its acknowledgment.
    pub fn on_opening(&mut self, now: Instant, flags: Flags) {
        match (self.opening, flags.any(Flags::SYN), flags.any(Flags::ACK)) {
            ([None, _], true, false) => self.opening[0] = Some(now),
            ([Some(_), None], true, true) => self.opening[1] = Some(now),
            ([Some(syn), Some(_)], false, true) if self.rtt.is_none() => self.rtt = Some(now.since(syn)),
            _ => {}
        }
    }
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The session carries it.
    Carried,
    /// It goes by the plain route.
    Plain,
    /// It was dropped: its flow waits for the session ([`Settings::fail_closed`](super::Settings::fail_closed)).
    Dropped,
}

impl Gateway {
    /// Takes a packet of a host of this site. What is not carried is [put out again](Gateway::next_packet) as it came.
    pub fn packet(&mut self, now: Instant, parcel: Parcel, checksum: State) -> Taken {
        let segment = match Segment::read(parcel.packet(), checksum) {
            Ok(segment) => segment,
            Err(reason) => {
                self.passed.count(reason);
                self.put_out(parcel);
                return Taken::Plain;
            }
        };
        let Self { flows, rules, directory, peers, tunnels, counters, tallies, settings, .. } = self;
        let mut held = false;
        let seen = flows.on_segment(now, &segment, |key| {
            let verdict = classify(rules, key, Origin::Here, segment.ip.dscp);
            if verdict.action == Action::Pass {
                if verdict.rule.is_some() {
                    tallies.on_flow(verdict.rule);
                }
                return None;
            }
            let far = (key.destination, key.destination_port);
            let announced = directory.find(far.0, far.1);
            let index = announced.or_else(|| behind(directory, peers, far))?;
            let peer = &mut peers[index];
            let tunnel = &tunnels[peer.site];
            // Behind whom it would be if the peer said so is good enough to keep it off the plain route, but not to carry it.
            held = settings.fail_closed
                && !settings.observe
                && (announced.is_none() || tunnel.session().is_none());
            if held {
                return None;
            }
            counters.flows += 1;
            if settings.observe || announced.is_none() || tunnel.session().is_none() {
                counters.flows_left += 1;
                return None;
            }
            tallies.on_flow(verdict.rule);
            peer.label = peer.label.next();
            Some(Carriage::new(index, peer.site, verdict.rule, peer.label))
        });
        self.clear_gone(now);
        match seen {
            Seen::Carried { flow, from, .. } => self.carry(now, (flow, from), parcel, segment),
            Seen::PassThrough(_) if held => {
                // Its host will try again.
                self.counters.held += 1;
                self.recycle(parcel.into_buffer());
                Taken::Dropped
            }
            Seen::PassThrough(why) => {
                if self.settings.observe {
                    self.watch(&segment);
                }
                self.counters.passed += 1;
                self.counters.mid_life += u64::from(why == Why::MidLife);
                self.counters.full += u64::from(why == Why::Full);
                self.put_out(parcel);
                Taken::Plain
            }
        }
    }

    fn carry(
        &mut self,
        now: Instant,
        (id, from): (FlowId, End),
        mut parcel: Parcel,
        mut segment: Segment,
    ) -> Taken {
        let Some(index) = self.tunnel_for(now, id, from, &segment) else { return Taken::Dropped };
        self.look_at_way(now, index);
        let Some(flow) = self.flows.get_mut(id) else { return Taken::Dropped };
        let data = &mut flow.data;
        data.on_opening(now, segment.tcp.flags);
        let (peer, tunnel) = (&mut self.peers[data.peer], &mut self.tunnels[index]);
        if segment.payload_len() > 0 && data.sent_at.replace(now).is_none() {
            tunnel.sending.push(id);
        }
        if tunnel.session().is_none() {
            if self.settings.fail_closed {
                self.counters.held += 1;
                self.recycle(parcel.into_buffer());
                return Taken::Dropped;
            }
            self.counters.failed_open += 1;
            self.put_out(parcel);
            return Taken::Plain;
        }
        let (most, best) = (tunnel.way.largest, tunnel.way.best);
        if segment.tcp.flags.any(Flags::SYN) {
            let clamped = clamp(parcel.packet_mut(), &segment, mss_for(best, segment.ip.is_v6()));
            self.counters.clamped += u64::from(clamped.is_some());
        }
        if parcel.len() > most {
            // Paths became smaller than when the flow began. The plain route takes it.
            return self.leave_large(parcel, most);
        }
        segment.complete(parcel.packet_mut());
        peer.carried += 1;
        peer.carried_bytes += parcel.len() as u64;
        data.sent += parcel.len() as u64;
        self.tallies.on_bytes(data.rule, parcel.len());
        let spare = &mut self.spare;
        let want = if is_acknowledgment(&segment) { Want::Soon } else { Want::Room };
        let range = (segment.tcp.sequence, segment.sequence_end());
        let waiting = Waiting { flow: id, parcel, want, range };
        tunnel.entry.push(tunnel.slot(id), waiting.parcel.len(), waiting, |_, dropped| {
            if spare.len() < super::SPARE {
                spare.push(dropped.parcel.into_buffer());
            }
        });
        self.note_waiting(index);
        Taken::Carried
    }

    /// Leaves a packet that no path carries: none takes more than `most` bytes. The plain route does, unless it is not to be taken; then
    /// its host is told to send smaller ones, or else it would send the same again and again.
    fn leave_large(&mut self, parcel: Parcel, most: usize) -> Taken {
        self.counters.too_large += 1;
        if !self.settings.fail_closed {
            self.put_out(parcel);
            return Taken::Plain;
        }
        let told = Ip::read(parcel.packet()).ok().and_then(|ip| too_big(parcel.packet(), &ip, most));
        self.recycle(parcel.into_buffer());
        if let Some(told) = told {
            let buffer = self.buffer();
            self.put_out(Parcel::copy(buffer, &told));
        }
        Taken::Dropped
    }

    /// Notes that something waits for the paths of a tunnel.
    pub(super) fn note_waiting(&mut self, index: TunnelIdx) {
        if !core::mem::replace(&mut self.tunnels[index].waits, true) {
            self.waiting.push(index);
        }
    }

    /// Hands paths what they take now.
    pub(super) fn pump(&mut self, now: Instant) {
        let Self { endpoint, tunnels, waiting, flows, views, settings, cache, .. } = self;
        let header = header_len(settings.loss);
        let mut large = Vec::new();
        waiting.retain(|index| {
            let tunnel = &mut tunnels[*index];
            tunnel.waits = tunnel.next_want(header).is_some();
            // Without a session it waits for the next, which is announced to and so looked at.
            let Some(connection) = tunnel.session().filter(|_| tunnel.waits) else {
                tunnel.waits = false;
                return false;
            };
            let Some(connection) = endpoint.connection_mut(connection) else { return true };
            views.clear();
            views.extend(connection.path_views().map(|view| for_choice(&view)));
            while let Some((want, bytes)) = tunnel.next_want(header) {
                let path = pick(views, settings.policy, want, bytes);
                if path.is_none() && pick::carries(views, bytes) {
                    break;
                }
                let next = tunnel.returned.pop_front().or_else(|| {
                    let next = next_packet(&mut tunnel.entry, flows)?;
                    if let Some(judge) = &mut tunnel.judge {
                        judge.begin(next.label, next.waiting.flow);
                    }
                    if let Some(cache) = cache {
                        next.keep(cache);
                    }
                    Some(next.into_datagram(settings.loss))
                });
                let Some(mut datagram) = next else { break };
                let judge = &mut tunnel.judge;
                let sent_bytes = datagram.len() as u64;
                let sent = match path {
                    Some(path) => {
                        let mark = judge.as_mut().map_or(0, |judge| judge.on_sent(now, path, &mut datagram));
                        connection.send_datagram(path, mark, datagram).map_err(|(refused, datagram)| {
                            if let Some(judge) = judge {
                                judge.withdraw(mark);
                            }
                            (refused, datagram)
                        })
                    }
                    None => Err((Refused::TooLarge(0), datagram)),
                };
                let view = views.iter_mut().find(|view| Some(view.id) == path);
                match (sent, view) {
                    (Ok(()), Some(view)) => view.in_flight += sent_bytes,
                    (Ok(()), None) => {}
                    (Err((Refused::TooLarge(_), datagram)), _) => {
                        let most = views.iter().map(|view| view.largest.saturating_sub(header)).max();
                        large.extend(recover(&datagram).zip(most));
                    }
                    (Err((Refused::NoRoom | Refused::NotActive, datagram)), view) => {
                        tunnel.returned.push_front(datagram);
                        let Some(view) = view else { break };
                        view.paced = false;
                    }
                }
            }
            tunnel.waits = tunnel.next_want(header).is_some();
            tunnel.waits
        });
        for (parcel, most) in large {
            self.leave_large(parcel, most);
        }
    }

    /// Tells a peer which hosts are served here.
    pub(super) fn announce(&mut self, index: TunnelIdx) {
        let tunnel = &mut self.tunnels[index];
        for part in &self.announcement {
            let mut datagram = alloc::vec![0; part.len() + 1];
            Message::Serves { part }.write(&mut Writer::new(&mut datagram));
            tunnel.returned.push_back(datagram);
        }
        self.note_waiting(index);
    }

    /// The session is gone: what waits for it goes by the plain route.
    pub(super) fn release(&mut self, index: TunnelIdx) {
        let tunnel = &mut self.tunnels[index];
        let returned = core::mem::take(&mut tunnel.returned);
        let mut released: Vec<Parcel> = returned.iter().filter_map(|datagram| recover(datagram)).collect();
        while let Some((_, waiting)) = tunnel.entry.pop() {
            released.push(waiting.parcel);
        }
        self.counters.failed_open += released.len() as u64;
        released.into_iter().for_each(|parcel| self.put_out(parcel));
    }

    /// Forgets what waits of flows that left the table.
    pub(super) fn clear_gone(&mut self, now: Instant) {
        while let Some((id, data)) = self.flows.next_gone() {
            let tunnel = &mut self.tunnels[data.tunnel];
            tunnel.entry.clear(tunnel.slot(id));
            for tunnel in [Some(self.peers[data.peer].site), data.own].into_iter().flatten() {
                if let Some(judge) = &mut self.tunnels[tunnel].judge {
                    judge.forget(data.label);
                }
            }
            if let Some(own) = data.own {
                self.leave_own(now, own);
            }
            if let Some(cache) = &mut self.cache {
                cache.clear(id.slot());
            }
        }
    }
}

/// A packet whose turn it is, and its place in the order; what only acknowledges has none.
struct Next {
    waiting: Waiting,
    label: Label,
    sequence: Option<u32>,
}

/// The next packet whose turn it is.
fn next_packet(
    entry: &mut crate::entry::EntryQueue<Waiting>,
    flows: &mut crate::flow::FlowTable<Carriage>,
) -> Option<Next> {
    loop {
        let (_, waiting) = entry.pop()?;
        if let Some(flow) = flows.get_mut(waiting.flow) {
            let ordered = waiting.want == Want::Room;
            let sequence = ordered.then_some(flow.data.sequence);
            flow.data.sequence = flow.data.sequence.wrapping_add(u32::from(ordered));
            return Some(Next { waiting, label: flow.data.label, sequence });
        }
    }
}

impl Next {
    /// The datagram of the packet.
    fn into_datagram(self, rule: Rule) -> Vec<u8> {
        match self.sequence {
            Some(sequence) => self.waiting.parcel.in_place(rule, self.label, sequence),
            None => self.waiting.parcel.unordered(),
        }
    }

    /// Keeps a copy of data until it is acknowledged.
    fn keep(&self, cache: &mut Cache<Kept>) {
        let (Some(number), (sequence, end)) = (self.sequence, self.waiting.range) else { return };
        let packet = self.waiting.parcel.packet();
        if sequence != end {
            let kept = Sent { number, sequence, end, bytes: packet.len(), packet: packet.to_vec() };
            cache.on_sent(self.waiting.flow.slot(), kept);
        }
    }
}

/// The packet that a datagram to a peer carries; `None` if it carries none.
fn recover(datagram: &[u8]) -> Option<Parcel> {
    match Message::read(datagram).ok()? {
        Message::Ordered { packet, .. } | Message::Batched { packet, .. } | Message::Unordered { packet } => {
            Some(Parcel::copy(Vec::new(), packet))
        }
        Message::Serves { .. } | Message::Loss { .. } => None,
    }
}

/// Whether a packet only acknowledges: it carries no data and changes nothing of the flow's life.
pub(super) const fn is_acknowledgment(segment: &Segment) -> bool {
    let flags = segment.tcp.flags;
    let life = Flags::SYN.0 | Flags::FIN.0 | Flags::RST.0;
    segment.payload_len() == 0 && flags.any(Flags::ACK) && flags.0 & life == 0
}

/// A path as the choice sees it: what it takes beyond its window, so that acknowledgments find something to send, counts as window.
fn for_choice(view: &PathView) -> pick::PathView {
    pick::PathView {
        id: view.id,
        in_flight: view.in_flight,
        window: view.in_flight + view.room,
        delay: i64::try_from(view.min_rtt.as_nanos() / 2).unwrap_or(i64::MAX),
        rtt: view.min_rtt,
        relayed: view.proxied,
        choked: !view.usable,
        paced: true,
        largest: view.largest,
    }
}
