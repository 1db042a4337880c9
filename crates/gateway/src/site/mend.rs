//! What is done about losses that are found here: the controller hears of them, and what is kept is sent again.

use super::carry::is_acknowledgment;
use super::places::TunnelIdx;
use super::{Gateway, Parcel};
use crate::cache::{Ack, Fate};
use crate::encap::{Label, Message};
use crate::flow::FlowId;
use crate::loss::Rule;
use crate::segment::Segment;
use crate::tcp::Flags;
use alloc::vec::Vec;
use byway_engine::Handle;
use byway_wire::{Duration, Instant, Writer};

/// Reports of losses that wait for a path at most.
const MOST_REPORTS: usize = 1_024;

impl Gateway {
    /// What a session of a tunnel tells of the packets that were sent.
    pub(super) fn judge(&mut self, now: Instant, index: TunnelIdx, session: Handle) {
        let Self { endpoint, tunnels, lost, counters, .. } = self;
        let tunnel = &mut tunnels[index];
        let newest = tunnel.session() == Some(session);
        let (Some(judge), Some(connection)) = (&mut tunnel.judge, endpoint.connection_mut(session)) else {
            return;
        };
        let before = judge.spurious();
        // An ACK tells the latest first, which would look like packets that are overtaken.
        let mut fates: Vec<_> = core::iter::from_fn(|| connection.next_fate()).collect();
        fates.sort_by_key(|fate| fate.mark);
        fates.into_iter().for_each(|fate| judge.on_fate(fate, lost));
        if newest {
            let silent = |id| connection.path_views().find(|view| view.id == id).map(|view| view.silent);
            judge.on_paths(silent, lost);
        }
        counters.spurious += judge.spurious() - before;
        self.settle(now, index);
    }

    /// The peer misses packets of ours, by what it says in a tunnel.
    pub(super) fn on_reported(&mut self, now: Instant, index: TunnelIdx, missing: (Label, u32, u32)) {
        let tunnel = &mut self.tunnels[index];
        let least = tunnel.way.rtt;
        if let Some(judge) = &mut tunnel.judge {
            judge.on_reported(now, missing, least, &mut self.lost);
        }
        self.settle(now, index);
    }

    /// A packet of a peer's came with its map: what is missing by it is reported.
    pub(super) fn on_map(&mut self, index: TunnelIdx, label: Label, sequence: u32, map: u32) {
        let tunnel = &mut self.tunnels[index];
        let returned = &mut tunnel.returned;
        let before = returned.len();
        tunnel.holes.on_arrived(label, sequence, map, |first, end| {
            if returned.len() < MOST_REPORTS {
                let mut datagram = alloc::vec![0; 12];
                Message::Loss { label, first, end }.write(&mut Writer::new(&mut datagram));
                returned.push_back(datagram);
            }
        });
        if returned.len() > before {
            self.note_waiting(index);
        }
    }

    /// An ACK of the receiver's on its way to the sender, whose flow is `flow`. Whether it goes on.
    pub(super) fn on_ack(&mut self, now: Instant, flow: FlowId, segment: &Segment, in_order: bool) -> bool {
        let Some(cache) = self.cache.as_mut().filter(|_| segment.tcp.flags.any(Flags::ACK)) else {
            return true;
        };
        // One that has a place in the order would be waited for.
        let pure = !in_order && is_acknowledgment(segment);
        let ack = Ack { acknowledgment: segment.tcp.acknowledgment, window: segment.tcp.window, pure };
        match cache.on_ack(now, flow.slot(), ack) {
            Fate::Pass => true,
            Fate::Suppress => false,
            Fate::Mend(number) => {
                let label = self.flows.get_mut(flow).map(|flow| flow.data.label);
                if let Some(label) = label {
                    self.send_again(now, (flow, label, number));
                }
                false
            }
        }
    }

    /// Deals with what was found.
    fn settle(&mut self, now: Instant, index: TunnelIdx) {
        let mut lost = core::mem::take(&mut self.lost);
        for lost in lost.drain(..) {
            self.counters.lost += 1;
            self.found.note(now.since(lost.sent_at));
            let tunnel = &mut self.tunnels[index];
            if lost.tell
                && tunnel.epochs.admit(lost.path, lost.sent_at, now)
                && let Some(connection) =
                    tunnel.session().and_then(|session| self.endpoint.connection_mut(session))
            {
                self.counters.penalties += 1;
                connection.judge_lost(now, lost.path, lost.sent_at, lost.bytes);
            }
            self.send_again(now, (lost.flow, lost.label, lost.sequence));
        }
        self.lost = lost;
    }

    /// Sends once more what is kept of a packet, in its old place in the order, so that it mends the gap if the exit still waits.
    fn send_again(&mut self, now: Instant, (flow, label, sequence): (FlowId, Label, u32)) {
        let Some(index) = self.flows.get(flow).map(|flow| flow.data.tunnel) else { return };
        let buffer = self.spare.pop().unwrap_or_default();
        let (Some(cache), tunnel) = (&mut self.cache, &mut self.tunnels[index]) else { return };
        // Until it can have arrived and been acknowledged.
        let patience = tunnel.way.rtt * 2 + tunnel.way.reorder_wait + Duration::from_millis(20);
        let Some(packet) = cache.resend(now, flow.slot(), sequence, sequence, patience) else { return };
        let parcel = Parcel::copy(buffer, packet);
        tunnel.returned.push_back(parcel.in_place(self.settings.loss, label, sequence));
        self.note_waiting(index);
    }

    /// What was sent is kept and watched, where that is wanted.
    pub(super) const fn watches(settings: &super::Settings) -> bool {
        !matches!(settings.loss, Rule::PathNumbers) || settings.cache.is_some()
    }
}

/// What is kept of a packet: its bytes.
pub(super) type Kept = Vec<u8>;
