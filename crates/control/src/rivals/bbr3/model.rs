//! The model of the path: what ACKs and losses tell of its rate, its RTT and its volume.

use super::aggregation::Aggregation;
use super::flight_log::{FlightLog, Sending};
use super::full_pipe::FullPipe;
use super::long_term::{self, LongTerm};
use super::max_bandwidth::MaxBandwidth;
use super::min_rtt::MinRtt;
use super::phase::Phase;
use super::short_term::ShortTerm;
use crate::{Acked, Congested, Opened, Sent};
use alloc::boxed::Box;
use byway_wire::{Duration, Instant};

/// 2.8 (`MinPipeCwnd`): the least window in packets.
pub(super) const MIN_WINDOW_PACKETS: f64 = 4.0;
/// 5.6.2: the assumed RTT before the first sample.
pub(super) const UNKNOWN_RTT: Duration = Duration::from_millis(1);
/// The time in which the pacing rate sends a burst, of 2 packets to 64 KB (5.6.3).
const BURST_SECONDS: f64 = 1e-3;
const MAX_BURST_BYTES: f64 = 65_536.0;
/// 5.3.1.3 (`BBRStartupFullLossCnt`): losses in a round that end STARTUP.
const STARTUP_LOSS_EVENTS: u32 = 6;

/// The measurements of an ACK (2.3).
#[derive(Clone, Copy)]
pub(super) struct Sample {
    /// Bytes per second. `None`: unknown.
    pub(super) rate: Option<f64>,
    /// Bytes delivered since the packet was sent.
    pub(super) delivered: f64,
    /// Bytes lost since then.
    pub(super) lost: f64,
    /// Bytes in flight when the packet was sent.
    pub(super) in_flight: f64,
    /// Whether the application, or PROBE_RTT, limited the amount sent.
    pub(super) limited: bool,
}

/// How a round of losses ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LossRound {
    /// The round goes on.
    Open,
    Over,
    /// The round ended STARTUP by its losses (5.3.1.3).
    Full,
}

/// The model of the path. Volumes are in bytes, rates in bytes per second.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// Bytes of a full packet, and of the initial window.
    pub(super) packet: f64,
    pub(super) initial: f64,
    /// The smaller of the long-term and the short-term rate.
    pub(super) rate: f64,
    pub(super) bandwidth: MaxBandwidth,
    pub(super) min_rtt: MinRtt,
    pub(super) extra: Aggregation,
    pub(super) full: FullPipe,
    pub(super) short: ShortTerm,
    pub(super) long: LongTerm,
    log: Box<FlightLog>,
    delivered: f64,
    lost: f64,
    /// Packets sent from here on belong to the next round of losses.
    loss_round: Instant,
    loss_events: u32,
}

impl Model {
    pub(super) fn new(opened: &Opened, initial: f64) -> Self {
        let (now, packet) = (opened.now, f64::from(opened.packet_size.max(1)));
        Self {
            packet,
            initial: initial * packet,
            rate: 0.0,
            bandwidth: MaxBandwidth::default(),
            min_rtt: MinRtt::new(now, opened.rtt.filter(|rtt| !rtt.is_zero())),
            extra: Aggregation::new(now),
            full: FullPipe::default(),
            short: ShortTerm::new(),
            long: LongTerm::new(),
            log: Box::new(FlightLog::new(now)),
            delivered: 0.0,
            lost: 0.0,
            loss_round: now,
            loss_events: 0,
        }
    }

    /// Bytes delivered so far.
    pub(super) const fn delivered(&self) -> f64 {
        self.delivered
    }

    /// The least window.
    pub(super) fn least(&self) -> f64 {
        MIN_WINDOW_PACKETS * self.packet
    }

    fn products_at(&self, rate: f64, gain: f64) -> f64 {
        self.min_rtt.get().map_or(self.initial, |rtt| gain * rate * rtt.as_secs_f64())
    }

    /// `gain` bandwidth-delay products (`BDPMultiple`).
    pub(super) fn products(&self, gain: f64) -> f64 {
        self.products_at(self.rate, gain)
    }

    /// `volume`, with room for a burst and for pipelining (`QuantizationBudget`).
    pub(super) fn quantized(&self, volume: f64, pace: f64) -> f64 {
        let burst = (pace * BURST_SECONDS).min(MAX_BURST_BYTES).max(2.0 * self.packet);
        volume.max(burst).max(self.least())
    }

    /// Returns the long-term bound minus the headroom for other flows.
    pub(super) fn with_headroom(&self) -> f64 {
        self.long.with_headroom(self.packet, self.least())
    }

    /// Returns the bytes in flight at the end of DOWN: no queue, and headroom for other flows.
    pub(super) fn cruise_volume(&self, pace: f64) -> f64 {
        self.quantized(self.products_at(self.bandwidth.get(), 1.0), pace).min(self.with_headroom())
    }

    /// The window of PROBE_RTT.
    pub(super) fn probe_rtt_window(&self) -> f64 {
        self.products(Phase::ProbeRtt.window_gain()).max(self.least())
    }

    pub(super) fn on_sent(&mut self, sent: &Sent) {
        let rtt = self.min_rtt.get().unwrap_or(UNKNOWN_RTT);
        let totals = (self.delivered, self.lost);
        self.log.note(sent.now, rtt, totals, sent.in_flight as f64, sent.app_limited);
    }

    /// Takes an ACK in. Packets sent until `limited` tell no rate.
    pub(super) fn deliver(&mut self, acked: &Acked<'_>, limited: Instant) -> Sample {
        self.delivered += acked.bytes as f64;
        let sending = self.log.at(acked.sent_at);
        let sample = Sample {
            rate: acked.delivery_rate.map(|rate| rate as f64),
            delivered: self.delivered - sending.delivered(),
            lost: self.lost - sending.lost(),
            in_flight: sending.in_flight(),
            limited: acked.app_limited || sending.app_limited() || acked.sent_at <= limited,
        };
        self.short.sample(sample.rate.unwrap_or(0.0), sample.delivered);
        if let Some(rate) = sample.rate
            && (!sample.limited || rate >= self.bandwidth.get())
        {
            self.bandwidth.add(rate);
        }
        sample
    }

    /// 5.5.10.3: at the end of a round, its losses lower the short-term bounds.
    pub(super) fn end_loss_round(
        &mut self,
        acked: &Acked<'_>,
        sample: &Sample,
        phase: Phase,
        window: f64,
    ) -> LossRound {
        if acked.sent_at < self.loss_round {
            return LossRound::Open;
        }
        self.loss_round = acked.now;
        let many = core::mem::take(&mut self.loss_events) >= STARTUP_LOSS_EVENTS;
        let bounds = (!phase.accelerates()).then_some((self.bandwidth.get(), window));
        self.short.end_round(bounds);
        if phase == Phase::Startup && many && long_term::is_too_lossy(sample.lost, sample.in_flight) {
            self.full.set_was_full(true);
            self.long.set(self.products(1.0).max(self.short.latest_volume()));
            return LossRound::Full;
        }
        LossRound::Over
    }

    /// Handles losses. If there are too many, it returns the state at the sending of the latest
    /// packet, and the bytes in flight at that loss.
    pub(super) fn lose(&mut self, congested: &Congested) -> Option<(Sending, f64)> {
        let burst = congested.bytes as f64;
        self.lost += burst;
        self.loss_events = self.loss_events.saturating_add(1);
        if self.short.note_loss() {
            self.loss_round = congested.now;
        }
        let sending = self.log.at(congested.sent_at);
        let (lost, in_flight) = (self.lost - sending.lost(), sending.in_flight());
        long_term::is_too_lossy(lost, in_flight)
            .then(|| (sending, long_term::in_flight_at_loss(lost, in_flight, burst)))
    }
}
