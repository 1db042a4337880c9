//! BBR, version 1 (Cardwell et al., ACM Queue 14, 2016): paces at the largest delivery rate of ten
//! rounds. Section numbers: draft-cardwell-iccrg-bbr-congestion-control-00. Constants: Linux
//! (`tcp_bbr.c`). Linux's "long-term sampling", for policers, is left out.

use super::max_filter::MaxFilter;
use crate::seeded_random::Random;
use crate::{Acked, Allowance, Congested, Opened, PathController, Trigger, Undo};
use byway_wire::{Duration, Instant};

/// BBRHighGain (4.1.1.3) is 2/ln 2, the least gain that doubles the rate in each round.
const HIGH_GAIN: f64 = 2.885;
/// 4.3.4.1: the gains of a cycle; each lasts for about the smallest RTT.
const PACING_GAIN_CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// 4.2.3.2: the window's gain but in STARTUP.
const WINDOW_GAIN: f64 = 2.0;
/// 4.1.1.2 (BtlBwFilterLen): PACING_GAIN_CYCLE and two rounds.
const RATE_ROUNDS: u64 = 10;
/// The age after which the smallest RTT is measured again: RTpropFilterLen (4.1.2).
const MIN_RTT_AGE: Duration = Duration::from_secs(10);
/// The time at the least window to measure the smallest RTT: ProbeRTTDuration (4.3.5).
const PROBE_RTT: Duration = Duration::from_millis(200);
/// 4.2.3.1 (BBRMinPipeCwnd), in packets.
const MIN_WINDOW_PACKETS: f64 = 4.0;
/// `TCP_INIT_CWND` in packets. Until this number of packets is delivered, the window grows beyond
/// its target.
const INITIAL_WINDOW_PACKETS: f64 = 10.0;
/// 4.3.2: the line is full when the rate has not grown by `FULL_GROWTH` for `FULL_ROUNDS` rounds.
const FULL_ROUNDS: u32 = 3;
const FULL_GROWTH: f64 = 1.25;
/// `bbr_pacing_margin_percent`: the pacing rate is 1 % below the estimated rate, so that queues
/// drain.
const PACING_PART: f64 = 0.99;
/// `bbr_extra_acked_win_rtts` and `bbr_extra_acked_max_us`: the limits of the window that
/// aggregated ACKs add.
const EXTRA_ROUNDS: u64 = 5;
const EXTRA_TIME: Duration = Duration::from_millis(100);
/// The assumed RTT before the first sample (`bbr_init_pacing_rate_from_rtt`).
const UNKNOWN_RTT: Duration = Duration::from_millis(1);
/// A value above any window.
const MAX_WINDOW_PACKETS: f64 = 1e8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeRate,
    ProbeRtt,
}

/// The congestion control of one path by BBR.
#[derive(Clone, Debug)]
pub struct Bbr {
    random: Random,
    packet: f64,
    mode: Mode,
    /// Delivery rates in packets per second, by rounds.
    rate: MaxFilter,
    rounds: u64,
    /// Packets sent from here on belong to the next round.
    round: Instant,
    /// Zero: not known.
    min_rtt: Duration,
    min_rtt_at: Instant,
    /// When PROBE_RTT may end, known once the bytes in flight are few enough; and whether a round
    /// has passed since.
    probe_until: Option<Instant>,
    probed: bool,
    /// The end of the time in which PROBE_RTT limited sending. Packets sent until then give no rate
    /// samples.
    limited: Instant,
    /// The largest rate so far, and the number of rounds that brought little more. At three the
    /// line is full.
    full_rate: f64,
    full_rounds: u32,
    phase: usize,
    phase_at: Instant,
    /// The window in packets.
    window: f64,
    before: f64,
    /// In packets per second.
    pace: f64,
    /// Recovery ends when packets sent after this time are acknowledged. `None`: there is no
    /// recovery.
    recover: Option<Instant>,
    conserves: bool,
    /// Packets lost since the last ACK.
    lost: f64,
    delivered: f64,
    /// `extra`: how many packets more than the delivery rate explains were acknowledged, the
    /// maximum of five rounds. Such an excess comes from ACKs that arrive in bunches. `extra_acked`
    /// counts the packets acknowledged since `extra_at`, when the excess was last zero.
    extra: MaxFilter,
    extra_at: Instant,
    extra_acked: f64,
}

impl Bbr {
    /// A path that begins with `initial` packets.
    #[must_use]
    pub fn new(opened: &Opened, initial: f64, seed: u64) -> Self {
        let rtt = opened.rtt.filter(|rtt| !rtt.is_zero());
        let first = rtt.unwrap_or(UNKNOWN_RTT).as_secs_f64();
        Self {
            random: Random::new(seed ^ opened.now.as_nanos()),
            packet: f64::from(opened.packet_size.max(1)),
            mode: Mode::Startup,
            rate: MaxFilter::new(RATE_ROUNDS),
            rounds: 0,
            round: opened.now,
            min_rtt: rtt.unwrap_or(Duration::ZERO),
            min_rtt_at: opened.now,
            probe_until: None,
            probed: false,
            limited: Instant::ZERO,
            full_rate: 0.0,
            full_rounds: 0,
            phase: 0,
            phase_at: opened.now,
            window: initial,
            before: 0.0,
            pace: HIGH_GAIN * initial / first,
            recover: None,
            conserves: false,
            lost: 0.0,
            delivered: 0.0,
            extra: MaxFilter::new(EXTRA_ROUNDS),
            extra_at: opened.now,
            extra_acked: 0.0,
        }
    }

    /// The estimated rate of the bottleneck, in packets per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate.get()
    }

    fn is_full(&self) -> bool {
        self.full_rounds >= FULL_ROUNDS
    }

    fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => 1.0 / HIGH_GAIN,
            Mode::ProbeRate => PACING_GAIN_CYCLE.get(self.phase).copied().unwrap_or(1.0),
            Mode::ProbeRtt => 1.0,
        }
    }

    fn window_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeRate => WINDOW_GAIN,
            Mode::ProbeRtt => 1.0,
        }
    }

    /// The window in packets: `gain` bandwidth-delay products, and room for bursts of a millisecond
    /// (`bbr_inflight`).
    fn in_flight_for(&self, gain: f64, extra: f64) -> f64 {
        if self.min_rtt.is_zero() {
            return self.window;
        }
        let products = gain * self.rate.get() * self.min_rtt.as_secs_f64();
        let burst = libm::floor(self.pace / 1_000.0).clamp(2.0, 127.0);
        let probes = self.mode == Mode::ProbeRate && self.phase == 0;
        let even = libm::ceil((libm::ceil(products) + extra + 3.0 * burst) / 2.0) * 2.0;
        even + if probes { 2.0 } else { 0.0 }
    }

    /// 4.1.1: rounds and the rate. Whether a round began.
    fn update_rate(&mut self, acked: &Acked<'_>) -> bool {
        let begins = acked.sent_at >= self.round;
        if begins {
            self.round = acked.now;
            self.rounds += 1;
            self.conserves = false;
        }
        if let Some(rate) = acked.delivery_rate {
            let rate = rate as f64 / self.packet;
            let limited = acked.app_limited || acked.sent_at <= self.limited;
            if !limited || rate >= self.rate.get() {
                self.rate.add(rate, self.rounds);
            }
        }
        begins
    }

    /// Takes the extra packets of bunched ACKs into account (`bbr_update_ack_aggregation`).
    fn update_extra(&mut self, now: Instant, packets: f64) {
        let mut expected = self.rate.get() * now.since(self.extra_at).as_secs_f64();
        if self.extra_acked <= expected {
            (self.extra_at, self.extra_acked, expected) = (now, 0.0, 0.0);
        }
        self.extra_acked += packets;
        self.extra.add((self.extra_acked - expected).clamp(0.0, self.window), self.rounds);
    }

    /// 4.3.4.3: on to the next gain of the cycle?
    fn update_phase(&mut self, acked: &Acked<'_>, before: f64) {
        if self.mode != Mode::ProbeRate {
            return;
        }
        let long = acked.now.since(self.phase_at) > self.min_rtt;
        let gain = self.pacing_gain();
        let over = if gain > 1.0 {
            long && (self.lost > 0.0 || before >= self.in_flight_for(gain, 0.0))
        } else if gain < 1.0 {
            long || before <= self.in_flight_for(1.0, 0.0)
        } else {
            long
        };
        if over {
            (self.phase, self.phase_at) = ((self.phase + 1) % PACING_GAIN_CYCLE.len(), acked.now);
        }
    }

    /// 4.3.2.2: is the line full?
    fn update_full(&mut self, acked: &Acked<'_>, begins: bool) {
        if self.is_full() || !begins || acked.app_limited {
            return;
        }
        if self.rate.get() >= self.full_rate * FULL_GROWTH {
            (self.full_rate, self.full_rounds) = (self.rate.get(), 0);
        } else {
            self.full_rounds += 1;
        }
    }

    /// Begins and ends draining (4.3.3).
    fn update_drain(&mut self, acked: &Acked<'_>, in_flight: f64) {
        if self.mode == Mode::Startup && self.is_full() {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && in_flight <= self.in_flight_for(1.0, 0.0) {
            self.probe_rate(acked.now);
        }
    }

    /// 4.3.4.3: a cycle begins anywhere but where the rate is lowered.
    fn probe_rate(&mut self, now: Instant) {
        self.mode = Mode::ProbeRate;
        let lot = (self.random.unit() * (PACING_GAIN_CYCLE.len() - 1) as f64) as usize;
        (self.phase, self.phase_at) = ((PACING_GAIN_CYCLE.len() - lot) % PACING_GAIN_CYCLE.len(), now);
    }

    /// 4.1.2 and 4.3.5.
    fn update_min_rtt(&mut self, acked: &Acked<'_>, begins: bool, in_flight: f64) {
        let old = acked.now.since(self.min_rtt_at) > MIN_RTT_AGE;
        if let Some(rtt) = acked.rtt
            && (self.min_rtt.is_zero() || rtt < self.min_rtt || old)
        {
            (self.min_rtt, self.min_rtt_at) = (rtt, acked.now);
        }
        if old && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_window();
            self.probe_until = None;
        }
        if self.mode != Mode::ProbeRtt {
            return;
        }
        self.limited = acked.now;
        match self.probe_until {
            None if in_flight <= MIN_WINDOW_PACKETS => {
                (self.probe_until, self.probed) = (Some(acked.now + PROBE_RTT), false);
                self.round = acked.now;
            }
            None => {}
            Some(until) => {
                self.probed |= begins;
                if self.probed && acked.now > until {
                    self.min_rtt_at = acked.now;
                    self.window = self.window.max(self.before);
                    if self.is_full() { self.probe_rate(acked.now) } else { self.mode = Mode::Startup }
                }
            }
        }
    }

    fn save_window(&mut self) {
        let low = self.recover.is_some() || self.mode == Mode::ProbeRtt;
        self.before = if low { self.before.max(self.window) } else { self.window };
    }

    /// Sets the pace (4.2.1).
    fn update_pace(&mut self) {
        let pace = self.pacing_gain() * self.rate.get() * PACING_PART;
        if pace > 0.0 && (self.is_full() || pace > self.pace) {
            self.pace = pace;
        }
    }

    /// Sets the window (4.2.3).
    fn update_window(&mut self, acked: &Acked<'_>, packets: f64, in_flight: f64) {
        let lost = core::mem::take(&mut self.lost);
        self.window = (self.window - lost).max(1.0);
        if self.recover.is_some_and(|recover| acked.sent_at >= recover) {
            (self.recover, self.conserves) = (None, false);
            self.window = self.window.max(self.before);
        }
        if self.conserves {
            self.window = self.window.max(in_flight + packets);
            return;
        }
        let most = self.rate.get() * EXTRA_TIME.as_secs_f64();
        let extra = if self.is_full() { self.extra.get().min(most) } else { 0.0 };
        let target = self.in_flight_for(self.window_gain(), extra);
        if self.is_full() {
            self.window = (self.window + packets).min(target);
        } else if self.window < target || self.delivered < INITIAL_WINDOW_PACKETS {
            self.window += packets;
        }
        self.window = self.window.clamp(MIN_WINDOW_PACKETS, MAX_WINDOW_PACKETS);
    }
}

impl PathController for Bbr {
    fn on_acked(&mut self, acked: &Acked<'_>) {
        let packets = acked.bytes as f64 / self.packet;
        let in_flight = acked.in_flight as f64 / self.packet;
        self.delivered += packets;
        let begins = self.update_rate(acked);
        self.update_extra(acked.now, packets);
        self.update_phase(acked, in_flight + packets);
        self.update_full(acked, begins);
        self.update_drain(acked, in_flight);
        self.update_min_rtt(acked, begins, in_flight);
        self.update_pace();
        self.update_window(acked, packets, in_flight);
    }

    fn on_congested(&mut self, congested: &Congested) {
        let lost = congested.bytes as f64 / self.packet;
        match congested.trigger {
            Trigger::Ce => {}
            Trigger::Timeout => {
                self.save_window();
                self.window = 1.0;
                (self.recover, self.conserves) = (Some(congested.now), false);
                // `bbr_set_state`: the search for the rate is not over by what came late.
                self.full_rate = 0.0;
            }
            Trigger::Loss if self.recover.is_none() => {
                // 4.2.3.4: one round of packet conservation, and then as before.
                self.save_window();
                (self.recover, self.conserves) = (Some(congested.now), true);
                self.round = congested.now;
                self.window = (congested.in_flight as f64 / self.packet - lost).max(1.0);
            }
            Trigger::Loss => self.lost += lost,
        }
    }

    fn on_undo(&mut self, _: &Undo) {
        // `bbr_undo_cwnd`.
        (self.full_rate, self.recover, self.conserves) = (0.0, None, false);
        self.window = self.window.max(self.before);
    }

    fn on_route_change(&mut self, now: Instant) {
        let opened = Opened { now, proxied: false, packet_size: self.packet as u32, rtt: None };
        *self = Self::new(&opened, MIN_WINDOW_PACKETS, self.random.bits());
    }

    fn on_packet_size(&mut self, bytes: u32) {
        let bytes = f64::from(bytes.max(1));
        let factor = self.packet / bytes;
        self.packet = bytes;
        self.rate.scale(factor);
        self.extra.scale(factor);
        for packets in [
            &mut self.full_rate,
            &mut self.window,
            &mut self.before,
            &mut self.pace,
            &mut self.lost,
            &mut self.delivered,
            &mut self.extra_acked,
        ] {
            *packets *= factor;
        }
    }

    fn allowance(&self) -> Allowance {
        let window =
            if self.mode == Mode::ProbeRtt { self.window.min(MIN_WINDOW_PACKETS) } else { self.window };
        Allowance {
            window: (window * self.packet) as u64,
            rate: Some(((self.pace * self.packet) as u64).max(1)),
            ..Allowance::default()
        }
    }
}
