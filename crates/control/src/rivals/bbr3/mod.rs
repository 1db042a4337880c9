//! BBR, version 3 (draft-ietf-ccwg-bbr-06; section numbers are of that draft). It paces by a model
//! of the path: rate, smallest RTT, and the volume in flight at which a probe loses 2 %. Beside
//! CUBIC it probes seldom, and it answers losses.
//!
//! An ACK names its packet by the time of sending. What was known then comes from a log of some 32
//! entries per round trip. CE marks count as losses (3.6). The draft counts ranges of lost
//! packets in STARTUP; here each report of losses counts. The offload budget is QUIC's (5.5.8.2).

mod aggregation;
mod flight_log;
mod full_pipe;
mod long_term;
mod max_bandwidth;
mod min_rtt;
mod model;
mod output;
mod phase;
mod probe;
mod probe_wait;
mod short_term;

use crate::bundle::UndoState;
use crate::seeded_random::Random;
use crate::{Acked, Allowance, Congested, Opened, PathController, Sent, Trigger, Undo};
use byway_wire::{Duration, Instant};
use long_term::LongTerm;
use model::{LossRound, MIN_WINDOW_PACKETS, Model, Sample, UNKNOWN_RTT};
use output::Output;
use phase::Phase;
use probe::Probe;
use probe_wait::ProbeWait;
use short_term::ShortTerm;

/// 5.3.2: DRAIN ends after this many rounds.
const MAX_DRAIN_ROUNDS: u64 = 3;
/// 2.16.2 (`ProbeRTTDuration`): the time at half of the window.
const PROBE_RTT: Duration = Duration::from_millis(200);

/// The state before a loss, which a spurious loss restores (2.15).
#[derive(Clone, Copy, Debug)]
struct Saved {
    window: f64,
    short: ShortTerm,
    long: LongTerm,
}

/// The congestion control of one path by BBR, version 3. Volumes are in bytes, rates in bytes per
/// second.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    random: Random,
    model: Model,
    phase: Phase,
    probe: Probe,
    wait: ProbeWait,
    rounds: u64,
    /// Packets sent from here on belong to the next round.
    round: Instant,
    drain_round: u64,
    /// When PROBE_RTT may end, known once few enough bytes are in flight; and the round then.
    probe_until: Option<(Instant, u64)>,
    /// The end of the time in which PROBE_RTT limited sending. Packets sent until then give no rate
    /// samples.
    limited: Instant,
    idle_restart: bool,
    /// The last round in which the window limited the amount sent.
    window_round: Option<u64>,
    output: Output,
    undo: Option<UndoState<Saved>>,
    /// The state that the losses of this recovery ended.
    ended: Option<Phase>,
}

impl Bbr3 {
    /// A path that begins with `initial` packets.
    #[must_use]
    pub fn new(opened: &Opened, initial: f64, seed: u64) -> Self {
        let now = opened.now;
        let model = Model::new(opened, initial);
        let rtt = model.min_rtt.get().unwrap_or(UNKNOWN_RTT).as_secs_f64();
        let window = model.initial;
        Self {
            random: Random::new(seed ^ now.as_nanos()),
            model,
            phase: Phase::Startup,
            probe: Probe::new(),
            wait: ProbeWait::new(now),
            rounds: 0,
            round: now,
            drain_round: 0,
            probe_until: None,
            limited: Instant::ZERO,
            idle_restart: false,
            window_round: None,
            output: Output::new(window, Phase::Startup.pacing_gain() * window / rtt),
            undo: None,
            ended: None,
        }
    }

    /// The rate of the bottleneck in bytes per second, by the samples of two cycles.
    #[must_use]
    pub const fn max_bandwidth(&self) -> f64 {
        self.model.bandwidth.get()
    }

    /// The most bytes that may be in flight, by the losses of probes. Infinite: none lost too much.
    #[must_use]
    pub const fn long_term_volume(&self) -> f64 {
        self.model.long.volume()
    }

    /// Returns the bytes in flight that the flow wants (`TargetInflight`).
    fn target(&self) -> f64 {
        self.model.products(1.0).min(self.output.window())
    }

    /// 5.5.1: whether a round begins.
    fn update_round(&mut self, acked: &Acked<'_>) -> bool {
        let begins = acked.sent_at >= self.round;
        if begins {
            self.round = acked.now;
            self.rounds += 1;
            self.wait.count_round();
        }
        begins
    }

    /// 5.3.1 and 5.3.2.
    fn update_start(&mut self, now: Instant, in_flight: f64) {
        if self.phase == Phase::Startup && self.model.full.was_full() {
            (self.phase, self.drain_round) = (Phase::Drain, self.rounds);
            self.model.extra.leave_startup();
        }
        let is_drained = in_flight <= self.model.quantized(self.model.products(1.0), self.output.pace());
        let is_long = self.rounds > self.drain_round + MAX_DRAIN_ROUNDS;
        if self.phase == Phase::Drain && (is_drained || is_long) {
            self.start_down(now);
        }
    }

    fn start_down(&mut self, now: Instant) {
        self.model.short.forget_round();
        self.model.long.hold();
        self.wait.draw(now, &mut self.random);
        self.probe.stop();
        (self.round, self.phase) = (now, Phase::Down);
    }

    fn start_refill(&mut self, now: Instant) {
        self.model.short.lift();
        self.model.long.refill();
        self.probe.refill();
        (self.round, self.phase) = (now, Phase::Refill);
    }

    fn start_up(&mut self, now: Instant, rate: f64) {
        self.probe.start();
        self.model.full.restart(rate);
        self.model.long.steepen(self.output.window(), self.model.packet);
        (self.round, self.phase) = (now, Phase::Up);
    }

    /// Whether the window limits the amount sent, and the long-term bound limits the window.
    fn is_bound(&self) -> bool {
        let limits = self.window_round.is_some_and(|round| self.rounds - round <= 1);
        limits && self.output.window() >= self.model.long.volume()
    }

    /// Raises the long-term bound (`AdaptLongTermModel`). Whether it chose the next state.
    fn update_long_term(&mut self, now: Instant, sample: &Sample, begins: bool, bytes: f64) -> bool {
        if begins && self.probe.begin_round() && self.phase.is_cycle() {
            if !sample.limited {
                self.model.bandwidth.advance();
            }
            if self.probe.may_repeat() {
                self.start_refill(now);
                return true;
            }
        }
        if !long_term::is_too_lossy(sample.lost, sample.in_flight) {
            self.model.long.admit(sample.in_flight);
            if self.phase == Phase::Up && self.is_bound() {
                self.model.long.grow(bytes, self.model.packet);
                if begins {
                    self.model.long.steepen(self.output.window(), self.model.packet);
                }
            }
        }
        false
    }

    /// 5.3.3.6: on to the next state of ProbeBW?
    fn update_cycle(&mut self, acked: &Acked<'_>, sample: &Sample, begins: bool) {
        let (now, in_flight, bytes) = (acked.now, acked.in_flight as f64, acked.bytes as f64);
        if !self.model.full.was_full() || self.update_long_term(now, sample, begins, bytes) {
            return;
        }
        let is_due = self.wait.is_over(now, self.target() / self.model.packet);
        match self.phase {
            Phase::Down | Phase::Cruise if is_due => self.start_refill(now),
            Phase::Down if in_flight <= self.model.cruise_volume(self.output.pace()) => {
                self.phase = Phase::Cruise
            }
            Phase::Refill if begins => self.start_up(now, sample.rate.unwrap_or(0.0)),
            Phase::Up => {
                // Whole packets: one more would pass the bound.
                let is_risky = in_flight + bytes + self.model.packet > self.model.long.volume();
                let cautious = self.probe.was_too_high() && is_risky;
                if !cautious && self.is_bound() {
                    self.model.full.restart(sample.rate.unwrap_or(0.0));
                }
                if cautious || self.model.full.is_full() {
                    self.probe.pass(cautious);
                    self.start_down(now);
                }
            }
            _ => {}
        }
    }

    /// 5.3.4.3.
    fn update_probe_rtt(&mut self, now: Instant, in_flight: f64) {
        if self.phase != Phase::ProbeRtt && self.model.min_rtt.is_due() && !self.idle_restart {
            self.output.save(self.phase);
            self.phase = Phase::ProbeRtt;
            self.probe_until = None;
            self.probe.stop();
            self.round = now;
        }
        self.idle_restart = false;
        if self.phase != Phase::ProbeRtt {
            return;
        }
        self.limited = now;
        match self.probe_until {
            None if in_flight <= self.model.probe_rtt_window() => {
                self.probe_until = Some((now + PROBE_RTT, self.rounds));
                self.round = now;
            }
            Some((_, round)) if self.rounds > round => self.end_probe_rtt(now),
            _ => {}
        }
    }

    /// Ends PROBE_RTT, if its time is over.
    fn end_probe_rtt(&mut self, now: Instant) {
        if self.probe_until.is_none_or(|(until, _)| now <= until) {
            return;
        }
        self.model.min_rtt.probed(now);
        self.output.restore();
        self.model.short.lift();
        if self.model.full.was_full() {
            self.start_down(now);
            self.phase = Phase::Cruise;
        } else {
            self.phase = Phase::Startup;
        }
    }
}

impl PathController for Bbr3 {
    fn on_sent(&mut self, sent: &Sent) {
        if sent.app_limited && sent.in_flight <= u64::from(sent.bytes) {
            // 5.4: sending begins again after a pause.
            self.idle_restart = true;
            self.model.extra.restart(sent.now);
            if self.phase.is_cycle() {
                self.output.set_pace(1.0, &self.model);
            } else if self.phase == Phase::ProbeRtt {
                self.end_probe_rtt(sent.now);
            }
        }
        if !sent.app_limited && sent.in_flight as f64 + self.model.packet > self.output.window() {
            self.window_round = Some(self.rounds);
        }
        self.model.on_sent(sent);
    }

    fn on_acked(&mut self, acked: &Acked<'_>) {
        let (now, in_flight) = (acked.now, acked.in_flight as f64);
        let sample = self.model.deliver(acked, self.limited);
        let begins = self.update_round(acked);
        let loss_round = self.model.end_loss_round(acked, &sample, self.phase, self.output.window());
        if loss_round == LossRound::Full {
            self.ended = Some(Phase::Startup);
        }
        self.model.extra.update(now, self.rounds, acked.bytes as f64, self.model.rate, self.output.window());
        if let Some(rate) = sample.rate.filter(|_| begins && !sample.limited) {
            self.model.full.end_round(rate);
        }
        self.update_start(now, in_flight);
        self.update_cycle(acked, &sample, begins);
        self.model.min_rtt.update(now, acked.rtt);
        self.update_probe_rtt(now, in_flight);
        if loss_round != LossRound::Open {
            self.model.short.begin_round(sample.rate.unwrap_or(0.0), sample.delivered);
        }
        self.model.rate = self.model.bandwidth.get().min(self.model.short.rate());
        self.output.set_pace(self.phase.pacing_gain(), &self.model);
        self.output.set_window(acked, self.phase, &self.model);
    }

    fn on_congested(&mut self, congested: &Congested) {
        let saved = Saved { window: self.output.window(), short: self.model.short, long: self.model.long };
        match &mut self.undo {
            Some(undo) if self.output.recovers() => undo.extend(congested, self.model.packet),
            undo => {
                *undo = Some(UndoState::new(saved, congested, self.model.packet));
                self.ended = None;
            }
        }
        if !self.output.recovers() || congested.trigger == Trigger::Timeout {
            self.output.save(self.phase);
            self.output.recover(congested.now);
        }
        if congested.trigger == Trigger::Timeout {
            self.output.time_out(self.model.packet);
        }
        let Some((sending, in_flight)) = self.model.lose(congested) else { return };
        if !self.probe.has_samples() {
            return;
        }
        self.probe.lose();
        if !sending.app_limited() {
            let target = self.target();
            self.model.long.lower(in_flight, target);
        }
        if self.phase == Phase::Up {
            self.ended = Some(Phase::Up);
            self.start_down(congested.now);
        }
    }

    /// 5.5.11.
    fn on_undo(&mut self, undo: &Undo) {
        let Some(saved) = self.undo.as_mut().and_then(|state| state.undone(undo)) else { return };
        self.undo = None;
        self.output.undo(saved.window);
        self.model.full.restart(0.0);
        self.model.short.restore(&saved.short);
        self.model.long.restore(&saved.long);
        match self.ended.take() {
            Some(Phase::Startup) if self.phase != Phase::Startup => {
                self.model.full.set_was_full(false);
                if self.phase != Phase::ProbeRtt {
                    self.phase = Phase::Startup;
                }
            }
            Some(Phase::Up) if self.phase != Phase::Up && self.phase != Phase::ProbeRtt => {
                self.start_refill(undo.now);
            }
            _ => {}
        }
    }

    fn on_route_change(&mut self, now: Instant) {
        let packet_size = self.model.packet as u32;
        let opened = Opened { now, proxied: false, packet_size, rtt: None };
        *self = Self::new(&opened, MIN_WINDOW_PACKETS, self.random.bits());
    }

    fn on_packet_size(&mut self, bytes: u32) {
        self.model.packet = f64::from(bytes.max(1));
        // It counts packets of the old size. To lose it costs little.
        self.undo = None;
    }

    fn allowance(&self) -> Allowance {
        self.output.allowance()
    }
}
