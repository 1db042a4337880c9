//! Decides what a connection sends next.

use super::bundle::Bundle;
use super::connection::{Connection, TcpState};
use super::scoreboard::OutgoingSegment;
use super::segment::{FLAG_ACK, FLAG_FIN, FLAG_PROBE, FLAG_REPLY, FLAG_SKIP, FLAG_SYN, Segment};
use byway_control::Sent;
use byway_wire::{Dscp, Duration, Ecn, Instant, Transmit, TransmitBuffer};

/// The time between probes of a choked path, unless four RTTs are longer.
const PROBE_INTERVAL: Duration = Duration::from_millis(500);

impl Connection {
    /// Writes the next segment to send. `None`: there is none.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        bundle: Option<&mut Bundle>,
        out: &mut TransmitBuffer<'_>,
    ) -> Option<Transmit> {
        match self.state {
            TcpState::SynSent | TcpState::SynReceived => {
                return core::mem::take(&mut self.syn_due).then(|| self.send_syn(now, bundle, out))?;
            }
            TcpState::Open => {}
            TcpState::Lingering => return self.send_empty(now, out),
            TcpState::Closed => return None,
        }
        let piece = match bundle {
            Some(bundle) => self.next_piece(now, bundle),
            None if core::mem::take(&mut self.tail_due) && self.scoreboard.may_probe() => {
                self.scoreboard.probe_again(now)
            }
            None => self.next_lost_end(now).or_else(|| self.end(now)),
        };
        let Some(piece) = piece else { return self.send_empty(now, out) };
        if self.retransmission_at == Instant::FAR_FUTURE {
            self.retransmission_at = self.rtt.times_out(now);
        }
        self.await_tail(now);
        let mut segment = self.blank(now, if piece.fin { FLAG_ACK | FLAG_FIN } else { FLAG_ACK });
        segment.seq = piece.seq as u32;
        if piece.fin && self.skip {
            segment.flags |= FLAG_SKIP;
        }
        self.receive.acknowledge(&mut segment);
        self.write(&segment, piece.len, out)
    }

    fn write(&self, segment: &Segment, len: u32, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let size = segment.encode(len as usize, out.buffer)?;
        Some(Transmit {
            local: self.local,
            remote: self.remote,
            ecn: Ecn::NotEct,
            dscp: Dscp::BestEffort,
            size,
            segment: size,
            phantom: len as usize,
        })
    }

    fn send_syn(
        &mut self,
        now: Instant,
        bundle: Option<&mut Bundle>,
        out: &mut TransmitBuffer<'_>,
    ) -> Option<Transmit> {
        let flags = if self.state == TcpState::SynSent { FLAG_SYN } else { FLAG_SYN | FLAG_ACK };
        let mut segment = self.blank(now, flags);
        segment.opening = self.opening;
        self.receive.acknowledge(&mut segment);
        self.retransmission_at = self.rtt.times_out(now);
        (self.syn_sent, self.syns) = (Some(now), self.syns.saturating_add(1));
        if let Some(bundle) = bundle {
            bundle.started.get_or_insert(now);
        }
        self.write(&segment, 0, out)
    }

    /// Writes a segment without data, if one is due.
    fn send_empty(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let mut segment;
        if self.skip_due {
            self.skip_due = false;
            segment = self.blank(now, FLAG_ACK | FLAG_SKIP);
        } else if self.receive.ack_now {
            segment = self.blank(now, FLAG_ACK);
            segment.stamp = self.receive.arrived;
            if core::mem::take(&mut self.receive.probed) {
                segment.flags |= FLAG_REPLY;
            }
        } else if self.probe_due {
            self.probe_due = false;
            self.probe_sent = Some(now);
            segment = self.blank(now, FLAG_ACK | FLAG_PROBE);
        } else {
            return None;
        }
        self.receive.acknowledge(&mut segment);
        self.write(&segment, 0, out)
    }

    /// The end of a side that sends no data.
    fn end(&mut self, now: Instant) -> Option<OutgoingSegment> {
        (self.closing && !self.fin_sent).then(|| {
            self.fin_sent = true;
            self.scoreboard.push(now, 0, true, true)
        })
    }

    fn next_lost_end(&mut self, now: Instant) -> Option<OutgoingSegment> {
        let piece = self.scoreboard.next_lost()?;
        self.scoreboard.resend(now);
        Some(piece)
    }

    /// The next data to send: lost data before new data.
    fn next_piece(&mut self, now: Instant, bundle: &mut Bundle) -> Option<OutgoingSegment> {
        if core::mem::take(&mut self.tail_due) && self.scoreboard.may_probe() {
            return self.probe_tail(now, bundle);
        }
        if self.closing {
            return self.next_lost_end(now).or_else(|| self.end(now));
        }
        if self.skip {
            return None;
        }
        let allowance = bundle.controller.allowance(self.path);
        if allowance.choked != self.choked {
            self.choked = allowance.choked;
            self.probe_at = if self.choked { now + self.probe_gap(0.5) } else { Instant::FAR_FUTURE };
        }
        let window = allowance.window.min(self.initial.saturating_mul(self.mss));
        if allowance.window == 0 && allowance.rate.is_none() {
            self.windowless = true;
        } else if core::mem::take(&mut self.windowless) {
            // What was sent again meanwhile left at a byte a second: that pace is over.
            self.next_send = self.next_send.min(now);
        }
        let flight = self.scoreboard.in_flight();
        let rate = match allowance.rate {
            Some(rate) => Some(rate.max(1)),
            None if window < self.mss || bundle.options.paced => self.window_rate(window),
            None => None,
        };
        if let Some(piece) = self.scoreboard.next_lost() {
            let fits = flight + u64::from(piece.len) <= window || flight == 0 || self.must_resend;
            if !fits || !self.may_send_at(now, rate) {
                return None;
            }
            self.must_resend = false;
            self.scoreboard.resend(now);
            self.counters.retransmits += 1;
            self.note_sent(now, bundle, piece.len, false, rate);
            return Some(piece);
        }
        self.must_resend = false;
        self.fresh_piece(now, bundle, window, rate)
    }

    /// New data, as far as the window, the peer and the pace allow.
    #[inline]
    pub(super) fn fresh_piece(
        &mut self,
        now: Instant,
        bundle: &mut Bundle,
        window: u64,
        rate: Option<u64>,
    ) -> Option<OutgoingSegment> {
        if self.choked || self.fin_sent {
            return None;
        }
        let flight = self.scoreboard.in_flight();
        let available = bundle.supply.available(bundle.delivered);
        let ended = bundle.supply.has_ended();
        let mut len = available.min(self.mss);
        // An application that goes on writing is waited for until a segment is full.
        if len < self.mss
            && !ended
            && !bundle.options.no_delay
            && len < bundle.options.send_buffer.unwrap_or(u64::MAX)
        {
            bundle.hungry = true;
            return None;
        }
        // Over several paths the end has to wait: what one of them loses may go another way.
        let alone = bundle.connections.len() <= 1;
        if len == 0 {
            return (ended && alone).then(|| {
                self.fin_sent = true;
                self.scoreboard.push(now, 0, true, true)
            });
        }
        if flight + len > window && flight > 0 {
            return None;
        }
        let unacked = self.scoreboard.unacknowledged();
        let room =
            self.peer_edge.saturating_sub(self.scoreboard.next).min(bundle.limit.saturating_sub(unacked));
        if room < len {
            // RFC 9293, 3.8.6.2.1: no small segments as long as others are under way.
            if unacked > 0 {
                return None;
            }
            if room == 0 {
                if !self.persist && self.peer_edge <= self.scoreboard.next {
                    self.persist = true;
                    self.probe_at = self.rtt.times_out(now);
                }
                return None;
            }
            len = room;
        }
        if !self.may_send_at(now, rate) {
            return None;
        }
        bundle.supply.take(len);
        let left = available - len;
        let fin = alone && ended && left == 0;
        self.fin_sent = fin;
        // The window has room for another, and something else has not.
        let starved = left < if ended { 1 } else { self.mss } || room - len < self.mss;
        let app_limited = starved && (flight + len).saturating_add(self.mss) <= window;
        let piece = self.scoreboard.push(now, len as u32, fin, app_limited);
        self.note_sent(now, bundle, piece.len, app_limited, rate);
        Some(piece)
    }

    /// The pacing rate in bytes per second that spreads `window` bytes over a round trip. If
    /// `window` is at least a segment, the rate is a quarter higher (RFC 9002, 7.7), to leave no
    /// window unused. `None`: unknown RTT.
    fn window_rate(&self, window: u64) -> Option<u64> {
        let nanos = self.rtt.smoothed.as_nanos();
        (nanos > 0).then(|| {
            let quarters = if window < self.mss { 4 } else { 5 };
            let rate = u128::from(window) * quarters * 250_000_000 / nanos;
            u64::try_from(rate).unwrap_or(u64::MAX).max(1)
        })
    }

    /// Whether the pace allows a segment now; if not, when.
    fn may_send_at(&mut self, now: Instant, rate: Option<u64>) -> bool {
        if rate.is_none() || now >= self.next_send {
            self.pace_at = Instant::FAR_FUTURE;
            return true;
        }
        self.pace_at = self.next_send;
        false
    }

    #[inline]
    pub(super) fn note_sent(
        &mut self,
        now: Instant,
        bundle: &mut Bundle,
        len: u32,
        app_limited: bool,
        rate: Option<u64>,
    ) {
        self.counters.segments += 1;
        if let Some(rate) = rate {
            let nanos = u128::from(len) * 1_000_000_000 / u128::from(rate);
            let gap = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            self.next_send = self.next_send.max(now) + gap;
        }
        let in_flight = self.scoreboard.in_flight();
        bundle.controller.on_sent(self.path, &Sent { now, bytes: len, in_flight, app_limited });
    }

    /// Returns the time until the next probe of a choked path. `chance` from 0 to 1 changes it by
    /// up to a tenth.
    pub(super) fn probe_gap(&self, chance: f64) -> Duration {
        PROBE_INTERVAL.max(4 * self.rtt.smoothed).mul_f64(0.9 + chance / 5.0)
    }
}
