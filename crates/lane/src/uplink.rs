//! The uplink as one path: the law of the class `background` on what all connections tell. A pure
//! state machine.
//!
//! ```text
//! acknowledged runs of all connections ──> wait = RTT less the target's least RTT
//!     ──> Background, one path: delay = the wait ──> rate, window ──> pacer
//! ```
//!
//! Targets are at different distances. So a far one tells of a queue later than a near one. The law
//! gets the waits in the order in which the runs were written: one that was written before another
//! that is told already says nothing of the queue now.

use crate::active_bases::ActiveBases;
use crate::base_rtts::{BaseRtts, RttReading};
use crate::pacer::Pacer;
use crate::write_ledger::{MIN_HELD_BACK, RunAcknowledged, WrittenContext};
use byway_control::{Acked, Background, Congested, Controller as _, Delay, Opened, Sent, Trigger};
use byway_uplink::{HostTraffic, InterfaceCounters, LineRate, LineShare, OtherSessions, Way};
use byway_wire::time::signed_nanos;
use byway_wire::{Duration, Instant, PathId};
use std::net::IpAddr;

/// The uplink is the only path of its controller.
const UPLINK_PATH: PathId = PathId(0);
/// The RTT that the law sees until a target tells.
const FIRST_BASE: Duration = Duration::from_millis(50);
/// Segments of a run at least. A receiver acknowledges every second segment at once. A single one
/// it acknowledges later, by up to 500 ms (RFC 9293, section 3.8.6.3): Linux by 40 ms.
const RUN_SEGMENTS: usize = 2;
/// The lane grows as this many transfers of the class together. It stands for all uploads of a
/// host, and grows from half of a line to all of it in a second or two between two requests.
/// Measured at 4, 8 and 12 Mbit/s beside requests: with 1 it uses .49 to .86 of the rest. With 4
/// to 16 it uses .85 to .87. At 3 Mbit/s requests take 1.80 times as long as alone. With 1 they
/// take 1.54 times as long.
const GROWTH_FLOWS: f64 = 8.0;
/// On a line of a lower known rate, in bytes per second, a run is one segment, and two of them in
/// a row are one connection's: whatever the host sends then waits for one segment at most.
const MAX_THIN_RATE: u64 = 2_000_000;
/// At high rates a run is what is sent in this time, so that the processor keeps up.
const RUN_TIME: Duration = Duration::from_micros(250);
/// Bytes of a run at most, if two segments are not more: what a network card cuts into segments.
const MAX_RUN_LEN: usize = 64 << 10;
/// Bytes of a full segment on Ethernet: 1,500 less the headers of IPv4 and TCP with a time stamp.
const USUAL_SEGMENT_LEN: usize = 1_448;
/// If the nearest target is this many times as far as the nearest was, the law begins anew: it
/// would double its rate in each of the shorter RTTs.
const MAX_BASE_RISE: u32 = 2;
/// Weight of a new RTT in the smoothed one (RFC 6298, section 2).
const SRTT_WEIGHT: f64 = 0.125;
/// If nothing at all is acknowledged for this time and four RTTs, the uplink has a timeout.
const MIN_TIMEOUT: Duration = Duration::from_secs(1);
/// Bytes of the headers of Ethernet, IPv4 and TCP with a time stamp.
const HEADER_BYTES: u64 = 14 + 20 + 32;
/// The law has seen a queue of its own if its level falls by this part at once.
const MIN_FALL_SHARE: f64 = 0.03;
/// The law's rate may grow to this multiple of what the line's rate allows.
const HELD_LEVEL: f64 = 1.02;

/// What all connections together may write, and when.
#[derive(Debug)]
pub struct Uplink {
    law: Background,
    pacer: Pacer,
    bases: BaseRtts,
    /// The least RTT that the law has seen. `None`: no target has told.
    law_base: Option<Duration>,
    active_bases: ActiveBases,
    /// When the latest run was written whose wait the law has seen.
    latest_written: Instant,
    srtt: Duration,
    in_flight: u64,
    delivered: u64,
    delivered_at: Instant,
    /// What the host itself sends by the uplink.
    host: HostTraffic,
    /// The host's bytes that were on the uplink before the latest acknowledged run.
    host_delivered: u64,
    line: LineRate,
    share: LineShare,
    /// Bytes that the lane handed to the interface since they were last taken.
    wire_sent: u64,
    /// When a timeout was counted, or the first byte was written after a time without any.
    silent_since: Instant,
    /// Whether there was credit that nobody used when connections were last asked.
    app_limited: bool,
    /// The level of the law when it was last asked, in bytes per second of one flow.
    law_level: f64,
    /// Whether the line's rate limits what is written, and not the law.
    is_held: bool,
    figures: UplinkFigures,
}

/// What the uplink does, for people.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UplinkFigures {
    /// The rate that the law allows, in bytes per second.
    pub rate: u64,
    /// How long the latest packet waited in queues.
    pub wait: Duration,
    /// Runs that the kernels of connections sent again.
    pub lost_runs: u64,
}

/// An acknowledged run of a connection.
#[derive(Clone, Copy, Debug)]
pub struct TargetAcknowledged {
    /// The address of the connection's target.
    pub target: IpAddr,
    /// Bytes of a full segment of the connection.
    pub segment: usize,
    /// What was acknowledged.
    pub acknowledged: RunAcknowledged,
}

impl Uplink {
    /// An uplink of which nothing is known.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        let mut law = Background::new("background");
        law.open(UPLINK_PATH, &opened(now));
        let rate = allowed_rate(&law);
        Self {
            law,
            pacer: Pacer::new(RUN_SEGMENTS * USUAL_SEGMENT_LEN, rate as f64, now),
            bases: BaseRtts::default(),
            law_base: None,
            active_bases: ActiveBases::new(now),
            latest_written: now,
            srtt: FIRST_BASE,
            in_flight: 0,
            delivered: 0,
            delivered_at: now,
            host: HostTraffic::new(now),
            host_delivered: 0,
            line: LineRate::new(now),
            share: LineShare::new(now),
            wire_sent: 0,
            silent_since: now,
            app_limited: true,
            law_level: 0.0,
            is_held: false,
            figures: UplinkFigures { rate, ..UplinkFigures::default() },
        }
    }

    /// What the uplink does now.
    #[must_use]
    pub const fn figures(&self) -> UplinkFigures {
        self.figures
    }

    /// Bytes sent and not acknowledged, of all connections.
    #[must_use]
    pub const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Leases a run to a connection whose full segment has `segment` bytes. 0: not yet.
    pub fn lease(&mut self, segment: usize, now: Instant) -> usize {
        if !self.may_write(segment, now) {
            return 0;
        }
        if self.host.way(now) == Way::Trial {
            self.host.on_trial(now);
        }
        self.pacer.lease(self.run_len(segment), now)
    }

    /// Whether a connection with these segments may write a run now.
    pub fn may_write(&mut self, segment: usize, now: Instant) -> bool {
        if let Way::BusyUntil(until) = self.host.way(now) {
            self.pacer.pause(now, until);
            return false;
        }
        self.in_flight < self.window(segment) && self.pacer.has_credit(self.run_len(segment), now)
    }

    /// When a connection with these segments may write a run. `None`: once something is
    /// acknowledged.
    #[must_use]
    pub fn next_lease(&self, segment: usize) -> Option<Instant> {
        (self.in_flight < self.window(segment)).then(|| self.pacer.next_lease(self.run_len(segment)))
    }

    /// Bytes that may be in flight. The law's window is for the nearest target; farther ones have
    /// more in flight at the same rate.
    fn window(&self, segment: usize) -> u64 {
        let window = self.law.allowance(UPLINK_PATH).window as f64 * GROWTH_FLOWS;
        let times = match (self.active_bases.far(), self.law_base) {
            (Some(far), Some(base)) => far.as_secs_f64() / base.as_secs_f64().max(1e-3),
            _ => 1.0,
        };
        // Less than two runs would leave ACKs to the receiver's timer.
        ((window * times.max(1.0)) as u64).max(2 * (RUN_SEGMENTS * segment) as u64)
    }

    /// Takes back what a connection leased and did not write.
    pub fn give_back(&mut self, bytes: usize) {
        self.pacer.give_back(bytes);
    }

    /// Notes that all connections with something to write have written, and whether there was
    /// credit left.
    pub fn on_turn_over(&mut self, others_wait: bool, now: Instant) {
        self.app_limited = !others_wait && self.may_write(USUAL_SEGMENT_LEN, now);
    }

    /// What is true of bytes that a connection writes now. It belongs in the connection's ledger.
    #[must_use]
    pub fn written_context(&self, now: Instant) -> WrittenContext {
        // Before the first of a row of bytes, the line was idle.
        let is_first = self.in_flight == 0;
        let host_sent = self.host.total() + self.share.total();
        WrittenContext {
            at: now,
            delivered: self.delivered + if is_first { host_sent } else { self.host_delivered },
            delivered_at: if is_first { now } else { self.delivered_at },
            host_sent,
            host_backlog: self.host.backlog(),
            app_limited: self.app_limited || self.is_held,
        }
    }

    /// Takes what the lane handed to the interface since the last call, as its counter counts it.
    pub fn take_wire_sent(&mut self) -> u64 {
        core::mem::take(&mut self.wire_sent)
    }

    /// Notes what other sessions of byway on this host did.
    pub fn on_others(&mut self, others: OtherSessions, now: Instant) {
        self.host.on_sent(others.sent, now);
        let is_closed = !self.host.backlog().is_zero();
        self.share.on_others(others, is_closed, now);
    }

    /// Takes in what the counters of the uplink's interface show. `None`: they cannot be read.
    pub fn look(&mut self, shown: Option<InterfaceCounters>, now: Instant) {
        self.host.look(shown, now);
    }

    /// The uplink's interface is another from now on.
    pub fn move_on(&mut self, now: Instant) {
        self.host.move_on(now);
        self.line = LineRate::new(now);
    }

    /// Notes that a kernel sent bytes for the first time, in segments of `segment` bytes.
    pub fn on_sent(&mut self, bytes: u64, segment: usize, now: Instant) {
        let wire_bytes = bytes + bytes.div_ceil(segment as u64) * HEADER_BYTES;
        self.wire_sent += wire_bytes;
        self.host.on_sent(wire_bytes, now);
        if self.in_flight == 0 {
            self.delivered_at = now;
            self.silent_since = now;
        }
        self.in_flight += bytes;
        let (sent, in_flight) = (of_one_flow(bytes), of_one_flow(self.in_flight));
        let app_limited = self.app_limited;
        self.law.on_sent(UPLINK_PATH, &Sent { now, bytes: sent as u32, in_flight, app_limited });
    }

    /// Notes that bytes will not be acknowledged: their connection is over, or its kernel stamps no
    /// more.
    pub fn on_forgotten(&mut self, bytes: u64) {
        self.in_flight = self.in_flight.saturating_sub(bytes);
    }

    /// Takes acknowledged runs into account, of all connections, in any order.
    pub fn on_acknowledged(&mut self, runs: &mut [TargetAcknowledged], now: Instant) {
        runs.sort_by_key(|it| it.acknowledged.context.at);
        for run in runs.iter() {
            self.take(run, now);
        }
        self.follow_law(now);
    }

    fn take(&mut self, told: &TargetAcknowledged, now: Instant) {
        let RunAcknowledged { bytes, sent_bytes, context, covered, is_followed, rtt } = told.acknowledged;
        let segment = told.segment;
        self.in_flight = self.in_flight.saturating_sub(sent_bytes);
        let host = context.host_sent.saturating_sub(self.host_delivered);
        self.host_delivered += host;
        self.delivered += bytes;
        self.delivered_at = now;
        self.silent_since = now;
        // A short segment takes less time on the line. The ACK of less than two segments may have
        // been held back.
        let is_pair = covered >= (RUN_SEGMENTS * segment) as u64;
        let is_told_at_once =
            |reading: &RttReading| is_pair || is_followed || reading.waited < signed_nanos(MIN_HELD_BACK);
        let reading = rtt
            .filter(|_| bytes >= segment as u64)
            .map(|rtt| self.bases.sample(told.target, rtt, now))
            .filter(is_told_at_once);
        if let Some(reading) = reading {
            self.active_bases.sample(reading.base, now);
        }
        let reading = reading.filter(|_| context.at >= self.latest_written);
        let rtt = reading.map(|reading| {
            self.latest_written = context.at;
            let whole = Duration::from_nanos(reading.waited.unsigned_abs());
            self.host.on_waited(context.host_backlog, whole, now);
            // What waited behind the host's own bytes is no news.
            let wait = whole.saturating_sub(context.host_backlog);
            self.figures.wait = wait;
            self.line.on_delivered(context.at + reading.base + whole, self.delivered + self.host_delivered);
            self.follow_base(reading.base, now);
            let rtt = reading.base + wait;
            self.srtt = self.srtt.mul_f64(1.0 - SRTT_WEIGHT) + rtt.mul_f64(SRTT_WEIGHT);
            rtt
        });
        let taken = now.since(context.delivered_at).as_secs_f64();
        let delivered = self.delivered + self.host_delivered;
        let rate = delivered.saturating_sub(context.delivered) as f64 / taken.max(1e-6);
        let delay = reading.map(|reading| Delay {
            sent_at: context.at,
            one_way: reading.waited.saturating_sub(signed_nanos(context.host_backlog)).max(0),
            // What waits may stand behind a full segment of anybody.
            bytes: of_one_flow(USUAL_SEGMENT_LEN as u64) as u32,
        });
        self.law.on_acked(
            UPLINK_PATH,
            &Acked {
                now,
                bytes: of_one_flow(bytes + host),
                packets: bytes.div_ceil(segment as u64) as u32,
                sent_at: context.at,
                rtt,
                srtt: self.srtt,
                min_rtt: self.law_base.unwrap_or(FIRST_BASE),
                delays: delay.as_slice(),
                in_flight: of_one_flow(self.in_flight),
                app_limited: context.app_limited,
                delivery_rate: Some(of_one_flow(rate as u64)),
                ce: 0,
            },
        );
    }

    /// Has the law begin anew if all targets near this one's distance have fallen silent.
    fn follow_base(&mut self, base: Duration, now: Instant) {
        let law_base = *self.law_base.get_or_insert(base);
        let near = self.active_bases.near().unwrap_or(base);
        if near > law_base * MAX_BASE_RISE {
            self.srtt = near;
            self.law_base = Some(near);
            self.law.on_route_change(UPLINK_PATH, now);
        } else {
            self.law_base = Some(law_base.min(base));
        }
    }

    /// Notes that a kernel sent a run again.
    pub fn on_lost(&mut self, bytes: usize, written_at: Instant, now: Instant) {
        self.figures.lost_runs += 1;
        self.congested(Trigger::Loss, bytes as u64, written_at, now);
    }

    /// Notes the time. Returns when it must be noted again.
    pub fn on_time(&mut self, now: Instant) -> Option<Instant> {
        if self.in_flight == 0 {
            return None;
        }
        let patience = MIN_TIMEOUT.max(self.srtt * 4);
        if now.since(self.silent_since) >= patience {
            self.congested(Trigger::Timeout, self.in_flight, self.silent_since, now);
            self.silent_since = now;
        }
        Some(self.silent_since + patience)
    }

    fn congested(&mut self, trigger: Trigger, bytes: u64, sent_at: Instant, now: Instant) {
        let (bytes, in_flight) = (of_one_flow(bytes), of_one_flow(self.in_flight));
        let congested = Congested { trigger, first_sent_at: sent_at, sent_at, now, bytes, in_flight };
        self.law.on_congested(UPLINK_PATH, &congested);
        self.follow_law(now);
    }

    /// Bytes of a run at the present rate.
    fn run_len(&self, segment: usize) -> usize {
        let in_time = self.figures.rate as f64 * RUN_TIME.as_secs_f64() / segment as f64;
        let most = (MAX_RUN_LEN / segment).max(RUN_SEGMENTS);
        let is_thin = self.line.rate().is_some_and(|rate| rate < MAX_THIN_RATE);
        (in_time as usize).clamp(if is_thin { 1 } else { RUN_SEGMENTS }, most) * segment
    }

    fn follow_law(&mut self, now: Instant) {
        let rate = allowed_rate(&self.law);
        let level = self.law.level();
        if level < self.law_level * (1.0 - MIN_FALL_SHARE) {
            self.line.on_queue(self.is_held, now);
            self.host.set_rate(self.line.drain(), now);
        }
        self.law_level = level;
        let wanted = (level * GROWTH_FLOWS) as u64;
        let wants_more = !self.app_limited && self.line.held().is_some_and(|held| wanted >= held);
        if self.line.on_wanted(wants_more, now) {
            self.host.set_rate(self.line.drain(), now);
        }
        let limit = self.line.limit(now).map_or(u64::MAX, |limit| self.share.of(limit));
        self.is_held = level * GROWTH_FLOWS >= limit as f64 * HELD_LEVEL;
        self.figures.rate = rate.min(limit);
        self.pacer.set_rate(self.figures.rate as f64, now);
    }
}

fn opened(now: Instant) -> Opened {
    let packet_size = of_one_flow(USUAL_SEGMENT_LEN as u64) as u32;
    Opened { now, proxied: false, packet_size, rtt: Some(FIRST_BASE) }
}

/// The law governs one of [`GROWTH_FLOWS`] equal flows: it sees their part of all bytes. A level of
/// `L` bytes per second grows with its square root, so all together grow `sqrt(GROWTH_FLOWS)` times
/// as fast as one flow of the same level.
fn of_one_flow(bytes: u64) -> u64 {
    (bytes as f64 / GROWTH_FLOWS) as u64
}

/// What the law allows all flows together, in bytes per second.
fn allowed_rate(law: &Background) -> u64 {
    (law.allowance(UPLINK_PATH).rate.unwrap_or_default() as f64 * GROWTH_FLOWS) as u64
}

#[cfg(test)]
mod tests;
