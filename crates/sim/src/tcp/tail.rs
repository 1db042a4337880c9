//! Tail loss probes (TLP; RFC 8985, section 7) as in Linux (`tcp_schedule_loss_probe`). No later
//! segments reveal the loss of a flow's last segments. So after two RTTs of silence the sender
//! sends one more segment, whose ACK reveals the loss.

use super::bundle::Bundle;
use super::connection::Connection;
use super::scoreboard::{OutgoingSegment, TIMER_SLACK};
use byway_wire::Instant;

impl Connection {
    /// Something was sent or acknowledged: the time of the probe (7.2) counts from now. A timeout
    /// that is due earlier is preceded by the probe.
    #[inline]
    pub(super) fn await_tail(&mut self, now: Instant) {
        self.tail_at = if !self.scoreboard.may_probe() {
            Instant::FAR_FUTURE
        } else if self.rtt.smoothed.is_zero() {
            self.retransmission_at
        } else {
            let alone = if self.scoreboard.is_single() { self.rtt.worst_ack_delay() } else { TIMER_SLACK };
            (now + 2 * self.rtt.smoothed + alone).min(self.retransmission_at)
        };
    }

    /// The tail loss probe (RFC 8985, section 7.3): new data if the peer's window admits any, else
    /// the last segment again. The congestion window does not limit the probe.
    pub(super) fn probe_tail(&mut self, now: Instant, bundle: &mut Bundle) -> Option<OutgoingSegment> {
        if let Some(piece) = self.fresh_piece(now, bundle, u64::MAX, None) {
            self.scoreboard.probed_by_new();
            return Some(piece);
        }
        let piece = self.scoreboard.probe_again(now)?;
        self.counters.retransmits += 1;
        self.note_sent(now, bundle, piece.len, false, None);
        Some(piece)
    }
}
