//! A connection's reactions to segments, and to silence.

use super::bundle::Bundle;
use super::connection::{Connection, TcpState};
use super::scoreboard::{DetectedLosses, NewlyAcked};
use super::segment::{
    self, FLAG_ACK, FLAG_FIN, FLAG_PROBE, FLAG_REPLY, FLAG_SKIP, Segment, nanos_between, stamp, widen,
};
use byway_control::{Acked, Congested, Delay, ProbeResult, Trigger, Undo};
use byway_wire::{Duration, Instant};

/// Timeouts in a row after which a connection is given up. They are R2 of RFC 9293, 3.8.3, and take
/// at least 100 s.
const MAX_TIMEOUTS: u32 = 15;
/// Timeouts in a row after which a handshake is given up: `1 + 2 + 4 + ... + 32` s.
const MAX_SYNS: u32 = 6;
/// After so many timeouts in a row, a path's data are sent on another path, if there is one.
const DEAD_TIMEOUTS: u32 = 2;
/// Time for which a connection answers repeated segments after both directions have ended.
pub(super) const LINGER_TIME: Duration = Duration::from_secs(4);

/// The state of a connection after a segment or a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionFate {
    Lives,
    /// Both sides of the connection have ended.
    Over,
    /// The connection was given up, or the peer does not know it.
    Dead,
}

impl Connection {
    /// Takes a segment of an open connection with `len` bytes of data. How many bytes the
    /// application took.
    pub(super) fn on_segment(
        &mut self,
        now: Instant,
        segment: &Segment,
        len: u32,
        bundle: Option<&mut Bundle>,
        undone: &mut Vec<Instant>,
    ) -> u64 {
        if len > 0 || segment.has(FLAG_FIN | FLAG_SKIP | FLAG_PROBE) {
            (self.receive.echo, self.receive.arrived) = (segment.stamp, stamp(now));
        }
        let taken =
            if len > 0 || segment.has(FLAG_FIN | FLAG_SKIP) { self.on_data(now, segment, len) } else { 0 };
        if segment.has(FLAG_PROBE) {
            (self.receive.ack_now, self.receive.probed) = (true, true);
        }
        if segment.has(FLAG_ACK) {
            self.on_ack(now, segment, len, bundle, undone);
        }
        taken
    }

    #[inline]
    fn on_data(&mut self, now: Instant, segment: &Segment, len: u32) -> u64 {
        let Some(seq) = widen(self.receive.next, segment.seq) else { return 0 };
        let mut fresh = 0;
        if segment.has(FLAG_SKIP) {
            fresh += self.receive.skip_to(seq);
        }
        if len > 0 || segment.has(FLAG_FIN) {
            fresh += self.receive.on_data(now, seq, len, segment.has(FLAG_FIN));
        }
        self.receive.read(now, fresh)
    }

    #[inline]
    fn on_ack(
        &mut self,
        now: Instant,
        segment: &Segment,
        len: u32,
        mut bundle: Option<&mut Bundle>,
        undone: &mut Vec<Instant>,
    ) {
        let Some(ack) = widen(self.scoreboard.una, segment.ack) else { return };
        if ack > self.scoreboard.next {
            return;
        }
        let edge = ack + (u64::from(segment.window) << self.peer_shift);
        let wider = edge > self.peer_edge;
        if wider {
            self.peer_edge = edge;
            if self.persist {
                (self.persist, self.probe_due, self.probe_at) = (false, false, Instant::FAR_FUTURE);
                self.rtt.backoff = 0;
            }
        }
        if segment.has(FLAG_REPLY) {
            self.on_reply(now, segment, bundle.as_deref_mut());
        }
        if self.skip && ack == self.scoreboard.next {
            // What is skipped gives no sample, and a way that has become longer would seem dead for
            // ever. The ACK echoes the stamp of the SKIP.
            let rtt = nanos_between(segment.echo, stamp(now)).max(0).unsigned_abs();
            self.rtt.sample(Duration::from_nanos(rtt));
            (self.skip, self.skip_due, self.rtt.backoff) = (false, false, 0);
            self.retransmission_at = Instant::FAR_FUTURE;
        }
        undone.clear();
        let una = self.scoreboard.una;
        let blocks = segment.sacks().iter().filter_map(|&(from, to)| {
            let from = widen(una, from)?;
            Some((from, widen(from, to)?))
        });
        let in_flight = self.scoreboard.in_flight();
        let progress = self.scoreboard.on_ack(now, ack, blocks, segment.echo, undone);
        let duplicate = !progress.advanced
            && len == 0
            && !wider
            && ack == una
            && !segment.has(FLAG_FIN | FLAG_REPLY | FLAG_PROBE | FLAG_SKIP)
            && !self.scoreboard.is_empty();
        if let Some(rtt) = progress.rtt {
            self.rtt.sample(rtt);
        }
        let losses = self.scoreboard.find_losses(now, &progress, duplicate, &self.rtt, &mut self.judge_at);
        if progress.packets > 0 || progress.advanced {
            self.initial = u64::MAX;
            self.rtt.backoff = 0;
            if self.scoreboard.is_empty() {
                self.retransmission_at = Instant::FAR_FUTURE;
            } else if !self.scoreboard.keeps_timer() {
                self.retransmission_at = self.rtt.times_out(now);
            }
            self.fin_acked = self.fin_sent && self.scoreboard.is_empty();
            self.await_tail(now);
        }
        self.counters.acked += progress.in_order;
        let Some(bundle) = bundle else { return };
        bundle.supply.refresh(now, bundle.delivered);
        bundle.delivered += progress.in_order;
        for &sent_at in undone.iter() {
            bundle.controller.on_undo(self.path, &Undo { now, sent_at });
        }
        if progress.packets > 0 {
            self.tell_acked(now, segment, &progress, bundle);
        }
        if let Some(sent_at) = progress.tail_lost {
            // RFC 8985, 7.4: a loss that the probe repaired is one that the network caused.
            let bytes = self.mss;
            self.counters.losses += 1;
            let lost = DetectedLosses {
                packets: 1,
                bytes,
                first_sent_at: sent_at,
                last_sent_at: sent_at,
                in_flight,
            };
            self.tell_congested(now, Trigger::Loss, Some(lost), bundle);
        }
        if let Some(losses) = losses {
            let losses = DetectedLosses { in_flight: losses.in_flight.max(in_flight), ..losses };
            self.on_losses(now, losses, bundle);
        }
        if progress.packets > 0 {
            bundle.tick(now);
        }
    }

    fn on_losses(&mut self, now: Instant, losses: DetectedLosses, bundle: &mut Bundle) {
        self.counters.losses += u64::from(losses.packets);
        self.must_resend = true;
        self.tell_congested(now, Trigger::Loss, Some(losses), bundle);
    }

    fn tell_acked(&self, now: Instant, segment: &Segment, progress: &NewlyAcked, bundle: &mut Bundle) {
        // The stamps are of the segment on whose arrival this ACK was sent; only an ACK without
        // data carries the time of that arrival.
        let known = segment.echo == stamp(progress.sent_at) && !segment.has(FLAG_FIN);
        let one_way = nanos_between(segment.echo, segment.stamp);
        let delay = [Delay { sent_at: progress.sent_at, one_way, bytes: self.mss as u32 }];
        let acked = Acked {
            now,
            bytes: progress.bytes,
            packets: progress.packets,
            sent_at: progress.sent_at,
            rtt: progress.rtt,
            srtt: self.rtt.smoothed,
            min_rtt: self.rtt.min,
            delays: if known { &delay } else { &[] },
            in_flight: self.scoreboard.in_flight(),
            app_limited: progress.app_limited,
            delivery_rate: progress.rate,
            ce: 0,
        };
        bundle.controller.on_acked(self.path, &acked);
    }

    fn tell_congested(
        &self,
        now: Instant,
        trigger: Trigger,
        losses: Option<DetectedLosses>,
        bundle: &mut Bundle,
    ) {
        let none =
            DetectedLosses { packets: 0, bytes: 0, first_sent_at: now, last_sent_at: now, in_flight: 0 };
        let losses = losses.unwrap_or(none);
        let congested = Congested {
            trigger,
            first_sent_at: losses.first_sent_at,
            sent_at: losses.last_sent_at,
            now,
            bytes: losses.bytes,
            in_flight: losses.in_flight,
        };
        bundle.controller.on_congested(self.path, &congested);
    }

    /// Handles the answer to a probe.
    fn on_reply(&mut self, now: Instant, segment: &Segment, bundle: Option<&mut Bundle>) {
        let Some(sent_at) = self.probe_sent.filter(|&sent_at| stamp(sent_at) == segment.echo) else { return };
        self.probe_sent = None;
        let rtt = now.since(sent_at);
        self.rtt.sample(rtt);
        if let Some(bundle) = bundle
            && self.choked
        {
            let one_way = nanos_between(segment.echo, segment.stamp);
            let delay = Some(Delay { sent_at, one_way, bytes: self.mss as u32 });
            bundle.controller.on_probe(self.path, &ProbeResult { now, delay, rtt: Some(rtt) });
        }
    }

    /// Runs the due timers. `chance` is from 0 to 1. Returns the bytes that the application took,
    /// and the fate of the connection.
    pub(super) fn on_timer(
        &mut self,
        now: Instant,
        bundle: Option<&mut Bundle>,
        chance: f64,
    ) -> (u64, ConnectionFate) {
        let far = Instant::FAR_FUTURE;
        let mut taken = 0;
        if self.receive.ack_at <= now {
            (self.receive.ack_at, self.receive.ack_now) = (far, true);
        }
        if self.receive.reads_at() <= now {
            taken = self.receive.read(now, 0);
        }
        if self.pace_at <= now {
            self.pace_at = far;
        }
        if self.linger_at <= now {
            return (taken, ConnectionFate::Over);
        }
        let mut bundle = bundle;
        if self.probe_at <= now {
            self.probe_due = true;
            if self.persist {
                self.rtt.backoff += 1;
                self.probe_at = self.rtt.times_out(now);
            } else {
                self.probe_at = now + self.probe_gap(chance);
                if let (Some(_), Some(bundle)) = (self.probe_sent.take(), bundle.as_deref_mut()) {
                    let lost = ProbeResult { now, delay: None, rtt: None };
                    bundle.controller.on_probe(self.path, &lost);
                }
            }
        }
        if self.judge_at <= now {
            let losses = self.scoreboard.judge(now, &self.rtt, &mut self.judge_at);
            if let (Some(losses), Some(bundle)) = (losses, bundle.as_deref_mut()) {
                self.on_losses(now, losses, bundle);
                bundle.tick(now);
                self.retransmission_at = self.rtt.times_out(now);
            }
        }
        if self.tail_at <= now {
            // RFC 8985, 7.3: the timeout counts from the probe.
            (self.tail_at, self.tail_due) = (far, true);
            self.retransmission_at = self.rtt.times_out(now);
        }
        if self.retransmission_at <= now {
            self.rtt.backoff += 1;
            let most = if self.state == TcpState::Open { MAX_TIMEOUTS } else { MAX_SYNS };
            if self.rtt.backoff > most {
                return (taken, ConnectionFate::Dead);
            }
            self.on_timeout(now, bundle);
        }
        (taken, ConnectionFate::Lives)
    }

    fn on_timeout(&mut self, now: Instant, bundle: Option<&mut Bundle>) {
        self.retransmission_at = self.rtt.times_out(now);
        if self.state != TcpState::Open {
            self.syn_due = true;
            return;
        }
        if self.skip && !self.closing {
            self.skip_due = true;
            return;
        }
        (self.tail_at, self.judge_at) = (Instant::FAR_FUTURE, Instant::FAR_FUTURE);
        let losses = self.scoreboard.on_timeout(now);
        self.must_resend = true;
        let Some(bundle) = bundle else { return };
        self.counters.timeouts += 1;
        self.counters.losses += losses.map_or(0, |losses| u64::from(losses.packets));
        if losses.is_some_and(|losses| losses.bytes > 0) {
            self.tell_congested(now, Trigger::Timeout, losses, bundle);
            bundle.tick(now);
        }
        let others = bundle.connections.len() > 1;
        if self.rtt.backoff >= DEAD_TIMEOUTS && others && !self.closing {
            self.abandon(bundle);
            self.skip_due = true;
        }
    }

    /// Gives unacknowledged data to other paths. The peer need not wait for these data on this
    /// path.
    pub(super) fn abandon(&mut self, bundle: &mut Bundle) {
        bundle.supply.give_back(self.scoreboard.abandon());
        self.skip = true;
    }

    /// Takes the parameters from the peer's SYN: window scale, SACK and port.
    pub(super) fn agree(&mut self, segment: &Segment) {
        let segment::SynFields { port, shift, sack, .. } = segment.opening;
        self.peer_port = port;
        self.peer_shift = shift.min(14);
        self.peer_edge = u64::from(segment.window) << self.peer_shift;
        if !sack || !self.opening.sack {
            self.receive.without_sack();
            self.scoreboard.without_sack();
        }
    }
}
