//! Repairs losses that the gateway finds: reports them to the controller, and sends cached packets
//! again.

use super::carried_flow::CarriedFlows;
use super::config::Settings;
use super::host_packets::Hosts;
use super::index_vec::TunnelIdx;
use super::loss_detection::Lost;
use super::packet_buffer::PacketBuffer;
use super::status::Counters;
use super::tunnels::PeerSessions;
use crate::cache::{self, Ack, AckAction, Cache, DataPacket};
use crate::encap::Label;
use crate::flow_table::FlowId;
use crate::loss::{DetectionDelays, LossRuleKind};
use crate::tcp_header::Flags;
use crate::tcp_segment::Segment;
use alloc::vec::Vec;
use byway_engine::Handle;
use byway_wire::{Duration, Instant};

/// Losses that are found here.
#[derive(Debug)]
pub(super) struct LossRepair {
    rule: LossRuleKind,
    /// The cache of sent packets. `None`: it is off.
    cache: Option<Cache<Vec<u8>>>,
    found: DetectionDelays,
    counters: Counters,
    /// Scratch space, kept so that no packet allocates.
    lost: Vec<Lost>,
}

impl LossRepair {
    /// Nothing is lost yet.
    pub fn new(settings: &Settings) -> Self {
        Self {
            rule: settings.loss,
            cache: settings.cache.map(Cache::new),
            found: DetectionDelays::new(),
            counters: Counters::default(),
            lost: Vec::new(),
        }
    }

    /// The counts so far.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns the times from sending to detection of lost packets.
    pub const fn found(&self) -> &DetectionDelays {
        &self.found
    }

    /// Returns the counters of the cache, and the bytes in it. `None`: the cache is off.
    pub fn cache(&self) -> Option<(cache::CacheCounters, usize)> {
        self.cache.as_ref().map(|cache| (cache.counters(), cache.bytes()))
    }

    /// Keeps a copy of `packet` until the receiver acknowledges it. `number`: the sequence number
    /// that this gateway gave the packet. The packet's data has the TCP sequence numbers from
    /// `sequence` to before `end`. A packet without data is not kept.
    pub fn keep(&mut self, flow: FlowId, number: u32, (sequence, end): (u32, u32), packet: &[u8]) {
        if let Some(cache) = self.cache.as_mut().filter(|_| sequence != end) {
            let kept = DataPacket { number, sequence, end, bytes: packet.len(), packet: packet.to_vec() };
            cache.on_sent(flow.slot(), kept);
        }
    }

    /// A flow is no more.
    pub fn forget(&mut self, flow: FlowId) {
        if let Some(cache) = &mut self.cache {
            cache.clear(flow.slot());
        }
    }

    /// Handles the results that a tunnel's session reports of sent packets.
    pub fn judge(
        &mut self,
        now: Instant,
        place: TunnelIdx,
        session: Handle,
        links: &mut PeerSessions,
        flows: &CarriedFlows,
        hosts: &mut Hosts,
    ) {
        let PeerSessions { endpoint, tunnels, .. } = links;
        let tunnel = &mut tunnels[place];
        let newest = tunnel.session() == Some(session);
        let (Some(loss_detector), Some(connection)) =
            (&mut tunnel.loss_detector, endpoint.connection_mut(session))
        else {
            return;
        };
        let before = loss_detector.spurious();
        // An ACK tells the latest first, which would look like packets that are overtaken.
        let mut fates: Vec<_> = core::iter::from_fn(|| connection.next_fate()).collect();
        fates.sort_by_key(|fate| fate.mark);
        fates.into_iter().for_each(|fate| loss_detector.on_fate(fate, &mut self.lost));
        if newest {
            let silent = |id| connection.path_views().find(|view| view.id == id).map(|view| view.silent);
            loss_detector.on_paths(silent, &mut self.lost);
        }
        self.counters.spurious += loss_detector.spurious() - before;
        self.settle(now, place, links, flows, hosts);
    }

    /// Handles a peer's report of missing packets.
    pub fn on_reported(
        &mut self,
        now: Instant,
        place: TunnelIdx,
        missing: (Label, u32, u32),
        links: &mut PeerSessions,
        flows: &CarriedFlows,
        hosts: &mut Hosts,
    ) {
        let tunnel = &mut links.tunnels[place];
        if let Some(loss_detector) = &mut tunnel.loss_detector {
            loss_detector.on_reported(now, missing, tunnel.way.rtt, &mut self.lost);
        }
        self.settle(now, place, links, flows, hosts);
    }

    /// Decides whether the receiver's ACK is passed on to the sender of `flow`. `in_order`: the
    /// peer gateway gave the ACK's packet a number for restoring order. Such an ACK is not dropped
    /// as a duplicate, because the reorder queue would wait for its number.
    pub fn on_ack(&mut self, now: Instant, flow: FlowId, segment: &Segment, in_order: bool) -> AckAction {
        let Some(cache) = self.cache.as_mut().filter(|_| segment.tcp.flags.any(Flags::ACK)) else {
            return AckAction::Pass;
        };
        let pure = !in_order && segment.only_acknowledges();
        let ack = Ack { acknowledgment: segment.tcp.acknowledgment, window: segment.tcp.window, pure };
        cache.on_ack(now, flow.slot(), ack)
    }

    /// Handles the losses that were found: reports them to the controller, and sends cached packets
    /// again.
    fn settle(
        &mut self,
        now: Instant,
        place: TunnelIdx,
        links: &mut PeerSessions,
        flows: &CarriedFlows,
        hosts: &mut Hosts,
    ) {
        let mut all = core::mem::take(&mut self.lost);
        for lost in all.drain(..) {
            self.counters.lost += 1;
            self.found.note(now.since(lost.sent_at));
            let PeerSessions { endpoint, tunnels, .. } = &mut *links;
            let tunnel = &mut tunnels[place];
            if lost.tell
                && tunnel.epochs.admit(lost.path, lost.sent_at, now)
                && let Some(connection) =
                    tunnel.session().and_then(|session| endpoint.connection_mut(session))
            {
                self.counters.penalties += 1;
                connection.judge_lost(now, lost.path, lost.sent_at, lost.bytes);
            }
            self.send_again(now, (lost.flow, lost.sequence), links, flows, hosts);
        }
        self.lost = all;
    }
    /// Sends the kept copy of a packet with the packet's old `number`. If the exit gateway still
    /// waits for that number, the copy fills the gap.
    pub fn send_again(
        &mut self,
        now: Instant,
        (flow, number): (FlowId, u32),
        links: &mut PeerSessions,
        flows: &CarriedFlows,
        hosts: &mut Hosts,
    ) {
        let (Some(cache), Some(data)) = (&mut self.cache, flows.get(flow).map(|flow| &flow.data)) else {
            return;
        };
        let tunnel = &mut links.tunnels[data.tunnel];
        // Until it can have arrived and been acknowledged.
        let patience = tunnel.way.rtt * 2 + tunnel.way.reorder_wait + Duration::from_millis(20);
        let Some(packet) = cache.resend(now, flow.slot(), number, number, patience) else { return };
        let parcel = PacketBuffer::copy(hosts.buffer(), packet);
        tunnel.returned.push_back(parcel.in_place(self.rule, data.label, number));
        links.note_waiting(data.tunnel);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Parts, parts, segment};
    use super::*;
    use crate::encap::Message;
    use crate::flow_table::FlowVerdict;

    #[test]
    fn what_is_kept_goes_once_more_in_its_place_until_its_flow_is_gone() {
        let now = Instant::from_millis(5);
        let settings = Settings { cache: Some(cache::CacheLimits::default()), ..Settings::default() };
        let Parts { mut links, mut flows, mut losses, mut hosts, peer, site } = parts(settings);
        let (_, syn) = segment("S", 1, b"");
        let FlowVerdict::Carried { flow, .. } = flows.on_received(now, &syn, peer, &mut links) else {
            panic!("not taken")
        };
        losses.keep(flow, 3, (2, 6), b"data");
        losses.keep(flow, 4, (6, 6), b"");
        assert_eq!(losses.cache().unwrap().0.kept, 1, "no data, nothing to keep");
        losses.send_again(now, (flow, 3), &mut links, &flows.table, &mut hosts);
        let sent = links.tunnels[site].returned.pop_front().unwrap();
        let label = flows.table.get(flow).unwrap().data.label;
        assert_eq!(Message::read(&sent), Ok(Message::Ordered { label, sequence: 3, packet: b"data" }));
        losses.forget(flow);
        losses.send_again(now, (flow, 3), &mut links, &flows.table, &mut hosts);
        assert!(links.tunnels[site].returned.is_empty());
    }
}
