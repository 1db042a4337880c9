//! RACK-TLP (RFC 8985) on a scoreboard. It finds losses by time, and probes the tail.

use super::tail_probe::{TIMER_SLACK, TailProbe};
use super::{DetectedLosses, OutgoingSegment, Scoreboard};
use crate::tcp::rtt::Rtt;
use byway_wire::Instant;
use byway_wire::time::nanos;

impl Scoreboard {
    /// Finds losses with RACK (RFC 8985, 6.2, step 5). It does so also when nothing came and
    /// `judge_at` is now.
    #[inline(never)]
    pub(in crate::tcp) fn judge(
        &mut self,
        now: Instant,
        rtt: &Rtt,
        judge_at: &mut Instant,
    ) -> Option<DetectedLosses> {
        let rack = self.rack.as_ref()?;
        let patience = rack.rtt + rack.window(rtt, self.una, self.sacked_segments);
        // What was sent before this is late.
        let late = now.as_nanos().saturating_sub(nanos(patience)).saturating_add(1);
        let (latest, rack_sent) = (rack.latest, rack.sent_at);
        let (losses, waits) = self.lose_before(latest, Instant::from_nanos(late));
        *judge_at = if waits { rack_sent + patience + TIMER_SLACK } else { Instant::FAR_FUTURE };
        losses
    }

    /// Whether the sender may answer silence with a tail loss probe (RFC 8985, 7.2). Some data must
    /// be unacknowledged, but none of it reported by SACK or counted as lost. No other probe and no
    /// recovery may be under way.
    #[inline]
    pub(in crate::tcp) fn may_probe(&self) -> bool {
        let Some(rack) = &self.rack else { return false };
        !self.records.is_empty()
            && self.sacked_segments == 0
            && self.tail.is_none()
            && self.lost.is_empty()
            && !rack.recovers(self.una)
    }

    /// Whether exactly one segment is unacknowledged.
    pub(in crate::tcp) fn is_single(&self) -> bool {
        self.records.len() == 1
    }

    /// The probe of the tail was new data.
    pub(in crate::tcp) fn probed_by_new(&mut self) {
        self.tail = Some(TailProbe { end: self.next, again: None });
    }

    /// Sends the last segment again as the probe of the tail (RFC 8985, 7.3).
    pub(in crate::tcp) fn probe_again(&mut self, now: Instant) -> Option<OutgoingSegment> {
        let number = self.base + (self.records.len() as u64).checked_sub(1)?;
        self.transmissions += 1;
        let (transmission, delivered, end) = (self.transmissions, self.delivered, self.next);
        let before = self.delivered_sent_at;
        let record = self.get_mut(number)?;
        (record.transmission, record.sent_at, record.delivered) = (transmission, now, delivered);
        (record.resent, record.delivered_sent_at) = (true, before);
        let piece = OutgoingSegment { seq: record.seq, len: record.len, fin: record.fin };
        self.resent.push_back((transmission, number));
        self.tail = Some(TailProbe { end, again: Some(transmission) });
        Some(piece)
    }
}
