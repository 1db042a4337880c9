//! From the hosts to the sessions: packets wait for their paths, and each goes by the path that
//! suits it.

use super::carried_flow::CarriedFlows;
use super::config::Settings;
use super::host_packets::Hosts;
use super::index_vec::TunnelIdx;
use super::loss_repair::LossRepair;
use super::packet_buffer::PacketBuffer;
use super::site_flows::Flows;
use super::status::Counters;
use super::tunnel_sessions::QueuedPacket;
use super::tunnels::PeerSessions;
use crate::clamp::{clamp, mss_for};
use crate::encap::{Label, header_len};
use crate::entry::EntryQueue;
use crate::flow_table::{EndCause, FlowId};
use crate::icmp::too_big;
use crate::ip_header::Ip;
use crate::loss::LossRuleKind;
use crate::path_selection::{self, PathNeed, pick};
use crate::tcp_header::Flags;
use crate::tcp_segment::Segment;
use alloc::vec::Vec;
use byway_engine::connection::datagrams::{PathView, Refused};
use byway_wire::Instant;

/// The result of sending a packet from a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IngressResult {
    /// A session carries the packet.
    Carried,
    /// The packet goes by the plain route.
    Plain,
    /// The packet is dropped, because its flow waits for the session
    /// ([`Settings::fail_closed`](super::Settings::fail_closed)).
    Dropped,
}

/// Packets that come from hosts and enter the session.
#[derive(Debug)]
pub(super) struct Ingress {
    settings: Settings,
    counters: Counters,
    /// Scratch space, kept so that no packet allocates.
    views: Vec<path_selection::PathInfo>,
}

impl Ingress {
    /// Nothing came yet.
    pub fn new(settings: Settings) -> Self {
        Self { settings, counters: Counters::default(), views: Vec::new() }
    }

    /// The counts so far.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Drops a packet whose flow waits for a session. Its host will send it again.
    pub fn hold(&mut self, parcel: PacketBuffer, hosts: &mut Hosts) -> IngressResult {
        self.counters.held += 1;
        hosts.recycle(parcel.into_buffer());
        IngressResult::Dropped
    }

    /// Sends a packet by the plain route, for this reason.
    pub fn pass(&mut self, parcel: PacketBuffer, why: EndCause, hosts: &mut Hosts) -> IngressResult {
        self.counters.passed += 1;
        self.counters.mid_life += u64::from(why == EndCause::MidLife);
        self.counters.full += u64::from(why == EndCause::Full);
        hosts.put_out(parcel);
        IngressResult::Plain
    }

    /// Takes a packet of a carried flow into the flow's tunnel.
    pub fn carry(
        &mut self,
        now: Instant,
        (id, place): (FlowId, TunnelIdx),
        (mut parcel, mut segment): (PacketBuffer, Segment),
        links: &mut PeerSessions,
        flows: &mut Flows,
        hosts: &mut Hosts,
    ) -> IngressResult {
        let Some(flow) = flows.table.get_mut(id) else {
            debug_assert!(false, "a packet of a flow that left while it was looked at");
            return self.pass(parcel, EndCause::MidLife, hosts);
        };
        let data = &mut flow.data;
        data.on_opening(now, segment.tcp.flags);
        let tunnel = &mut links.tunnels[place];
        if segment.payload_len() > 0 && data.sent_at.replace(now).is_none() {
            tunnel.sending.push(id);
        }
        if tunnel.session().is_none() {
            if self.settings.fail_closed {
                return self.hold(parcel, hosts);
            }
            self.counters.failed_open += 1;
            hosts.put_out(parcel);
            return IngressResult::Plain;
        }
        let (most, best) = (tunnel.way.largest, tunnel.way.best);
        if segment.tcp.flags.any(Flags::SYN) {
            let clamped = clamp(parcel.packet_mut(), &segment, mss_for(best, segment.ip.is_v6()));
            self.counters.clamped += u64::from(clamped.is_some());
        }
        if parcel.len() > most {
            // Paths became smaller than when the flow began. The plain route takes it.
            return self.leave_large(parcel, most, hosts);
        }
        segment.complete(parcel.packet_mut());
        links.peers[data.peer].on_carried(parcel.len());
        data.sent += parcel.len() as u64;
        flows.tallies.on_bytes(data.rule, parcel.len());
        let want = if segment.only_acknowledges() { PathNeed::Soon } else { PathNeed::Room };
        let range = (segment.tcp.sequence, segment.sequence_end());
        tunnel.push(QueuedPacket { flow: id, parcel, want, range }, |buffer| hosts.recycle(buffer));
        links.note_waiting(place);
        IngressResult::Carried
    }

    /// Handles a packet larger than `most` bytes, the most that any path carries. It is forwarded
    /// outside the session. With `fail_closed` it is dropped, and its host is told to send smaller
    /// packets instead of repeating this one.
    fn leave_large(&mut self, parcel: PacketBuffer, most: usize, hosts: &mut Hosts) -> IngressResult {
        self.counters.too_large += 1;
        if !self.settings.fail_closed {
            hosts.put_out(parcel);
            return IngressResult::Plain;
        }
        let told = Ip::read(parcel.packet()).ok().and_then(|ip| too_big(parcel.packet(), &ip, most));
        hosts.recycle(parcel.into_buffer());
        if let Some(told) = told {
            let buffer = hosts.buffer();
            hosts.put_out(PacketBuffer::copy(buffer, &told));
        }
        IngressResult::Dropped
    }

    /// Passes waiting packets to paths, as many as these accept now.
    pub fn pump(
        &mut self,
        now: Instant,
        links: &mut PeerSessions,
        flows: &mut CarriedFlows,
        losses: &mut LossRepair,
        hosts: &mut Hosts,
    ) {
        let (views, policy, rule) = (&mut self.views, self.settings.policy, self.settings.loss);
        let header = header_len(rule);
        let mut large = Vec::new();
        links.for_waiting(|tunnel, endpoint| {
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
                let path = pick(views, policy, want, bytes);
                if path.is_none() && path_selection::carries(views, bytes) {
                    break;
                }
                let next = tunnel.returned.pop_front().or_else(|| {
                    let next = next_packet(&mut tunnel.entry, flows)?;
                    if let Some(loss_detector) = &mut tunnel.loss_detector {
                        loss_detector.begin(next.label, next.waiting.flow);
                    }
                    if let Some(number) = next.sequence {
                        let QueuedPacket { flow, range, ref parcel, .. } = next.waiting;
                        losses.keep(flow, number, range, parcel.packet());
                    }
                    Some(next.into_datagram(rule))
                });
                let Some(mut datagram) = next else { break };
                let loss_detector = &mut tunnel.loss_detector;
                let sent_bytes = datagram.len() as u64;
                let sent = match path {
                    Some(path) => {
                        let mark = loss_detector
                            .as_mut()
                            .map_or(0, |loss_detector| loss_detector.on_sent(now, path, &mut datagram));
                        connection.send_datagram(path, mark, datagram).map_err(|(refused, datagram)| {
                            if let Some(loss_detector) = loss_detector {
                                loss_detector.withdraw(mark);
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
                        large.extend(PacketBuffer::of_datagram(&datagram).zip(most));
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
            self.leave_large(parcel, most, hosts);
        }
    }
}

/// The next packet, and its place in the order. A packet that only acknowledges has no place.
struct ScheduledPacket {
    waiting: QueuedPacket,
    label: Label,
    sequence: Option<u32>,
}

/// Returns the next packet.
fn next_packet(entry: &mut EntryQueue<QueuedPacket>, flows: &mut CarriedFlows) -> Option<ScheduledPacket> {
    loop {
        let (_, waiting) = entry.pop()?;
        if let Some(flow) = flows.get_mut(waiting.flow) {
            let ordered = waiting.want == PathNeed::Room;
            let sequence = ordered.then_some(flow.data.sequence);
            flow.data.sequence = flow.data.sequence.wrapping_add(u32::from(ordered));
            return Some(ScheduledPacket { waiting, label: flow.data.label, sequence });
        }
    }
}

impl ScheduledPacket {
    /// The datagram of the packet.
    fn into_datagram(self, rule: LossRuleKind) -> Vec<u8> {
        match self.sequence {
            Some(sequence) => self.waiting.parcel.in_place(rule, self.label, sequence),
            None => self.waiting.parcel.unordered(),
        }
    }
}

/// Converts a path for the selection. The room beyond its window, which lets acknowledgments find
/// data to send, counts as window.
fn for_choice(view: &PathView) -> path_selection::PathInfo {
    path_selection::PathInfo {
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

#[cfg(test)]
mod tests {
    use super::super::testing::{Parts, parts, segment};
    use super::*;
    use crate::flow_table::FlowVerdict;

    const NOW: Instant = Instant::from_millis(5);

    #[test]
    fn without_a_session_a_packet_takes_the_plain_route_or_waits() {
        for fail_closed in [false, true] {
            let settings = Settings { fail_closed, ..Settings::default() };
            let Parts { mut links, mut flows, mut hosts, peer, site, .. } = parts(settings);
            let mut ingress = Ingress::new(settings);
            let (parcel, syn) = segment("S", 1, b"");
            let FlowVerdict::Carried { flow, .. } = flows.on_received(NOW, &syn, peer, &mut links) else {
                panic!("not taken")
            };
            let given = (parcel.clone(), syn);
            let taken = ingress.carry(NOW, (flow, site), given, &mut links, &mut flows, &mut hosts);
            let counters = ingress.counters();
            if fail_closed {
                assert_eq!((taken, counters.held, hosts.next_packet()), (IngressResult::Dropped, 1, None));
                assert!(hosts.buffer().capacity() > 0, "its buffer is there again");
            } else {
                let out = hosts.next_packet();
                assert_eq!((taken, counters.failed_open, out), (IngressResult::Plain, 1, Some(parcel)));
            }
        }
    }

    #[test]
    fn a_host_whose_packet_no_path_takes_is_told_if_there_is_no_plain_route() {
        let mut hosts = parts(Settings::default()).hosts;
        let (parcel, _) = segment("A", 1, &[7; 1_200]);
        let mut ingress = Ingress::new(Settings::default());
        assert_eq!(ingress.leave_large(parcel.clone(), 1_000, &mut hosts), IngressResult::Plain);
        assert_eq!(hosts.next_packet(), Some(parcel.clone()));
        let mut ingress = Ingress::new(Settings { fail_closed: true, ..Settings::default() });
        assert_eq!(ingress.leave_large(parcel, 1_000, &mut hosts), IngressResult::Dropped);
        let told = hosts.next_packet().unwrap();
        assert_eq!(Ip::read(told.packet()).unwrap().protocol, 1, "ICMP");
        assert_eq!(ingress.counters().too_large, 1);
    }
}
