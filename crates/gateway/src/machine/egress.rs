//! Handles packets from the sessions to hosts of this site. Restores the order of each flow's
//! packets. Lowers the receive window in their TCP headers. So the local host that gets them sends
//! no more than the paths carry.

use super::config::Settings;
use super::host_packets::Hosts;
use super::index_vec::{PeerIdx, TunnelIdx};
use super::packet_buffer::PacketBuffer;
use super::peer::Peer;
use super::site_flows::Flows;
use super::status::Counters;
use super::tunnels::PeerSessions;
use crate::clamp::{clamp, mss_for};
use crate::encap::Label;
use crate::flow_table::{FlowEnd, FlowId};
use crate::reorder::{ArrivedPacket, ReorderQueues, Timer, WaitStats};
use crate::serves::Served;
use crate::tcp_header::Flags;
use crate::tcp_segment::Segment;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use byway_wire::{Duration, Instant};
use core::net::IpAddr;

/// Time for which packets of a flow's previous tunnel are awaited after a change of tunnels.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(1);

/// The peer and the tunnel of an arrived packet, and its place in its flow's order, if it has one.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrivalInfo {
    pub peer: PeerIdx,
    pub tunnel: TunnelIdx,
    pub place: Option<(Label, u32)>,
}

/// Packets that leave the session towards hosts.
#[derive(Debug)]
pub(super) struct Egress {
    /// The packets that wait to be put in order, by the peer that sent them and their label.
    queues: ReorderQueues<(PeerIdx, Label), PacketBuffer>,
    serves: Vec<Served>,
    /// Hosts that asked to be served.
    guests: BTreeSet<IpAddr>,
    timer: Timer,
    /// Whether windows are rewritten.
    windows: bool,
    counters: Counters,
}

impl Egress {
    /// Nothing came yet; the hosts of `serves` are here.
    pub fn new(settings: &Settings, serves: Vec<Served>) -> Self {
        Self {
            queues: ReorderQueues::new(settings.exit),
            serves,
            guests: BTreeSet::new(),
            timer: settings.timer,
            windows: settings.window.is_some(),
            counters: Counters::default(),
        }
    }

    /// The counts so far.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns the times that packets waited.
    pub const fn stats(&self) -> &WaitStats {
        self.queues.stats()
    }

    /// Bytes that wait.
    pub const fn bytes(&self) -> usize {
        self.queues.bytes()
    }

    /// Counts a malformed datagram.
    pub const fn on_malformed(&mut self) {
        self.counters.malformed += 1;
    }

    /// Sets the hosts that asked to be served, and are.
    pub fn set_guests(&mut self, guests: BTreeSet<IpAddr>) {
        self.guests = guests;
    }

    /// Whether a peer may send this to a host of this site: from hosts that it speaks for, to hosts
    /// that are served here.
    pub fn may_deliver(&mut self, peer: &Peer, segment: &Segment) -> bool {
        let (source, destination) = (segment.ip.source, segment.ip.destination);
        let here = self.serves.iter().any(|served| served.hosts.contains(destination))
            || self.guests.contains(&destination);
        let may = peer.speaks_for(source) && here;
        self.counters.forbidden += u64::from(!may);
        may
    }

    /// Rewrites a packet of a carried flow, and updates the flow. Returns whether the flow changed
    /// its tunnel within `CHANGE_TIMEOUT`.
    pub fn rewrite(
        &mut self,
        now: Instant,
        came: ArrivalInfo,
        (id, from): (FlowId, FlowEnd),
        (parcel, segment): (&mut PacketBuffer, &Segment),
        links: &PeerSessions,
        flows: &mut Flows,
    ) -> bool {
        let Some(flow) = flows.table.get_mut(id) else {
            debug_assert!(false, "a packet of a flow that left while it was looked at");
            return false;
        };
        let way = &links.tunnels[flow.data.tunnel].way;
        let (scale, receiver) = (flow.scale(from), u64::from(flow.side(from).window));
        let data = &mut flow.data;
        if came.place.is_some() && core::mem::replace(&mut data.came_by, came.tunnel) != came.tunnel {
            data.changed_at = Some(now);
        }
        data.received += parcel.len() as u64;
        flows.tallies.on_bytes(data.rule, parcel.len());
        data.on_opening(now, segment.tcp.flags);
        data.receiver = receiver;
        if self.windows && data.advertised.rewrite(parcel.packet_mut(), segment, scale, way.flow_limit) {
            self.counters.rewritten += 1;
        }
        if segment.tcp.flags.any(Flags::SYN) {
            // What the host here sends back must fit as well.
            data.told = data.told.max(Some(way.best));
            clamp(parcel.packet_mut(), segment, mss_for(way.best, segment.ip.is_v6()));
        }
        data.changed_at.is_some_and(|at| now.since(at) < CHANGE_TIMEOUT)
    }

    /// Puts a packet out to the hosts, in its turn. `changing`: whether earlier packets may still
    /// arrive by another tunnel.
    pub fn deliver(
        &mut self,
        now: Instant,
        came: ArrivalInfo,
        parcel: PacketBuffer,
        changing: bool,
        links: &mut PeerSessions,
        hosts: &mut Hosts,
    ) {
        self.counters.delivered += 1;
        self.counters.delivered_bytes += parcel.len() as u64;
        let Some((label, sequence)) = came.place else { return hosts.put_out(parcel) };
        let wait = self.wait(came, changing, links);
        let arrived = ArrivedPacket { sequence, bytes: parcel.len(), wait, packet: parcel };
        let key = (came.peer, label);
        let late = self.queues.on_packet(now, key, arrived, &mut |_, parcel| hosts.put_out(parcel));
        let tunnel = &mut links.tunnels[came.tunnel];
        tunnel.lateness.on_packet(now, late, tunnel.way.longest);
    }

    /// Returns the time that a packet may wait for earlier ones.
    fn wait(&self, came: ArrivalInfo, changing: bool, links: &PeerSessions) -> Duration {
        let tunnel = &links.tunnels[came.tunnel];
        let wait = self.timer.at_arrival(tunnel.way.reorder_wait, &tunnel.lateness);
        if !changing {
            return wait;
        }
        // What a path took on may wait there for an acknowledgment, a round trip at most.
        let ways = [links.peers[came.peer].site, came.tunnel].map(|tunnel| links.tunnels[tunnel].way);
        ways.into_iter().map(|way| way.rtt.max(way.longest)).fold(wait, Duration::max)
    }

    /// The last session with a peer is over: nothing that it sent is waited for any more.
    pub fn forget(&mut self, now: Instant, gone: PeerIdx, hosts: &mut Hosts) {
        self.queues.forget(now, |(peer, _)| *peer == gone, &mut |_, parcel| hosts.put_out(parcel));
    }

    /// Releases packets whose waiting time is over.
    pub fn expire(&mut self, now: Instant, hosts: &mut Hosts) {
        self.queues.expire(now, &mut |_, parcel| hosts.put_out(parcel));
    }

    /// When the next waiting time ends.
    pub fn deadline(&self) -> Option<Instant> {
        self.queues.deadline()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Parts, parts, segment};
    use super::*;

    const AT: fn(u64) -> Instant = Instant::from_millis;

    #[test]
    fn packets_leave_in_order_or_when_they_waited_long_enough() {
        let settings = Settings { timer: Timer::Hir { cap: Duration::ZERO }, ..Settings::default() };
        let Parts { mut links, mut hosts, peer, site, .. } = parts(settings);
        links.tunnels[site].way.reorder_wait = Duration::from_millis(30);
        let mut egress = Egress::new(&settings, Vec::new());
        let mut give = |at, place: Option<u32>, egress: &mut Egress| {
            let came = ArrivalInfo { peer, tunnel: site, place: place.map(|place| (Label::new(1), place)) };
            let parcel = PacketBuffer::copy(Vec::new(), &[place.unwrap_or(99) as u8]);
            egress.deliver(AT(at), came, parcel, false, &mut links, &mut hosts);
            core::iter::from_fn(|| hosts.next_packet()).map(|out| out.packet()[0]).collect::<Vec<_>>()
        };
        assert_eq!(give(0, Some(0), &mut egress), [0]);
        assert_eq!(give(1, Some(2), &mut egress), []);
        assert_eq!(give(2, None, &mut egress), [99], "it has no place");
        assert_eq!(give(3, Some(1), &mut egress), [1, 2]);
        assert_eq!(give(4, Some(5), &mut egress), []);
        assert_eq!((egress.deadline(), egress.bytes()), (Some(AT(34)), 1));
        let mut hosts = Hosts::new(10);
        egress.expire(AT(34), &mut hosts);
        assert_eq!(hosts.next_packet().unwrap().packet(), [5]);
        assert_eq!((egress.counters().delivered, egress.stats().timed_out), (5, 1));
    }

    #[test]
    fn a_peer_speaks_for_its_hosts_and_to_those_that_are_served() {
        let Parts { links, peer, .. } = parts(Settings::default());
        let (_, from_here) = segment("A", 1, b"");
        let peer = &links.peers[peer];
        let served = |hosts| Served { hosts: byway_wire::Prefix::of(hosts, 24), ports: Vec::new() };
        let (near, far) = (from_here.ip.source, from_here.ip.destination);
        let mut egress = Egress::new(&Settings::default(), alloc::vec![served(near)]);
        assert!(!egress.may_deliver(peer, &from_here), "from a host of this site");
        let mut back = from_here;
        (back.ip.source, back.ip.destination) = (far, near);
        assert!(egress.may_deliver(peer, &back));
        back.ip.destination = far;
        assert!(!egress.may_deliver(peer, &back), "not served here");
        assert_eq!(egress.counters().forbidden, 2);
    }
}
