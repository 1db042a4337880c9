//! Proteus-S: a sender that tries rates, and keeps what is of most use (Meng, Schiff, Godfrey,
//! Schapira: "PCC Proteus: Scavenger Transport And Beyond", SIGCOMM 2020). Of use is a rate, less
//! what its losses and its changes of the RTT cost. An RTT that deviates tells of others, so a
//! scavenger yields.
//!
//! Constants and rules are those of the authors' program (github.com/PCCproject/PCC-Uspace,
//! `src/pcc`). Their names there stand in backquotes. It numbers packets; here packets belong to an
//! interval by their time of sending. RTTs within one ACK come from its one-way delays. A timeout
//! means nothing there. Here it halves the rate, and the start begins again.

mod ack_filter;
mod interval;
mod noise;
mod rate_control;
mod regression;
mod trials;
mod utility;

use crate::seeded_random::Random;
use crate::{Acked, Allowance, Congested, Opened, PathController, Sent, Trigger, Undo};
use ack_filter::AckFilter;
use byway_wire::{Duration, Instant};
use interval::Interval;
use noise::{Noise, RttSignal};
use rate_control::{Mode, Outcome, RateControl};
use trials::{PAIRED_INTERVALS, Trials};
pub use utility::UtilityOptions;

/// The assumed RTT before the first sample (`kInitialRtt`).
const UNKNOWN_RTT: Duration = Duration::from_millis(100);
/// Bytes in flight, at most, in products of rate and smoothed RTT (`bytes_in_flight_gain`).
const WINDOW_GAIN: f64 = 2.5;
/// The least window in packets.
const MIN_WINDOW_PACKETS: f64 = 4.0;
/// An RTT that grows by less in an interval costs nothing in the start.
const START_RISE_SECONDS: f64 = 1e-3;
/// Bytes per second in a Mbit/s.
const BYTES_PER_MBIT: f64 = 125_000.0;

/// The parameters of Proteus. Each description ends with the value of the authors' program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProteusOptions {
    /// The utility. The scavenger's.
    pub utility: UtilityOptions,
    /// Initial window in packets, which sets the first rate. 10.
    pub initial: f64,
    /// The least rate in Mbit/s. .5.
    pub least_mbit: f64,
}

impl ProteusOptions {
    /// Proteus-S with its authors' options.
    pub const SCAVENGER: Self = Self { utility: UtilityOptions::SCAVENGER, initial: 10.0, least_mbit: 0.5 };
}

/// The congestion control of one path by Proteus.
#[derive(Clone, Debug)]
pub struct Proteus {
    options: ProteusOptions,
    random: Random,
    packet: f64,
    /// The smoothed RTT. `None`: no ACK had an RTT.
    smoothed: Option<Duration>,
    least_rtt: Duration,
    filter: AckFilter,
    noise: Noise,
    control: RateControl,
    trials: Trials,
}

impl Proteus {
    /// Makes a path with these options.
    #[must_use]
    pub fn new(opened: &Opened, options: ProteusOptions, seed: u64) -> Self {
        let rtt = opened.rtt.filter(|rtt| !rtt.is_zero());
        let packet = f64::from(opened.packet_size.max(1));
        let first = options.initial * packet / rtt.unwrap_or(UNKNOWN_RTT).as_secs_f64();
        let control = RateControl::new(first / BYTES_PER_MBIT, options.least_mbit);
        Self {
            options,
            random: Random::new(seed ^ opened.now.as_nanos()),
            packet,
            smoothed: rtt,
            least_rtt: rtt.unwrap_or(UNKNOWN_RTT),
            filter: AckFilter::default(),
            noise: Noise::default(),
            control,
            trials: Trials::one(control.rate() * BYTES_PER_MBIT),
        }
    }

    /// The rate between trials in Mbit/s.
    #[must_use]
    pub const fn rate(&self) -> f64 {
        self.control.rate()
    }

    fn begin_trials(&mut self) {
        let rate = self.control.rate() * BYTES_PER_MBIT;
        self.trials = match self.control.mode() {
            Mode::Probing => Trials::pairs(rate, &mut self.random),
            Mode::Starting | Mode::Moving => Trials::one(rate),
        };
    }

    /// Returns the utility of an interval.
    fn outcome(options: &ProteusOptions, noise: &mut Noise, mode: Mode, interval: &Interval) -> Outcome {
        let mut signal = noise.signal(interval.rtts());
        if mode == Mode::Starting {
            let rise = signal.gradient * interval.seconds();
            let gradient = if rise < START_RISE_SECONDS { 0.0 } else { signal.gradient };
            signal = RttSignal { gradient, deviation: 0.0 };
        }
        let utility = options.utility.of(interval, signal);
        Outcome { rate: interval.rate() / BYTES_PER_MBIT, utility }
    }

    /// Chooses the next rate, once the results of all intervals are known.
    fn decide(&mut self) {
        let Some(intervals) = self.trials.complete() else { return };
        let mut outcomes = [Outcome::default(); PAIRED_INTERVALS];
        let mut count = 0;
        let mode = self.control.mode();
        for (outcome, interval) in outcomes.iter_mut().zip(intervals) {
            *outcome = Self::outcome(&self.options, &mut self.noise, mode, interval);
            count += 1;
        }
        self.control.decide(outcomes.get(..count).unwrap_or_default());
        self.begin_trials();
    }

    /// Adds the packets that an ACK acknowledged, and their RTTs, to the intervals.
    fn enter(&mut self, acked: &Acked<'_>) {
        if acked.delays.len() == acked.packets as usize {
            for delay in acked.delays {
                if let Some(interval) = self.trials.of(delay.sent_at) {
                    interval.on_acked(f64::from(delay.bytes));
                }
            }
        } else if let Some(interval) = self.trials.of(acked.sent_at) {
            interval.on_acked(acked.bytes as f64);
        }
        let Some(rtt) = acked.rtt else { return };
        let smoothed = self.smoothed.unwrap_or(rtt);
        let is_reliable = self.filter.is_reliable(acked.now, rtt, smoothed);
        let micros = rtt.as_secs_f64() * 1e6;
        match acked.delays {
            [] => self.sample(acked.sent_at, micros, is_reliable),
            [delays @ .., last] => {
                for delay in delays.iter().chain([last]) {
                    let before = delay.one_way.saturating_sub(last.one_way) as f64 / 1e3;
                    self.sample(delay.sent_at, (micros + before).max(0.0), is_reliable);
                }
            }
        }
    }

    fn sample(&mut self, sent_at: Instant, micros: f64, is_reliable: bool) {
        if let Some(interval) = self.trials.of(sent_at) {
            interval.sample(sent_at, micros, is_reliable);
        }
    }
}

impl PathController for Proteus {
    fn yields(&self) -> bool {
        self.options.utility.deviation > 0.0
    }

    fn on_sent(&mut self, sent: &Sent) {
        if self.smoothed.is_some() {
            self.trials.on_sent(sent.now, f64::from(sent.bytes), self.least_rtt);
        }
    }

    fn on_acked(&mut self, acked: &Acked<'_>) {
        if self.smoothed.is_none()
            && let Some(rtt) = acked.rtt.filter(|rtt| !rtt.is_zero())
        {
            let first = self.options.initial * self.packet / rtt.as_secs_f64() / BYTES_PER_MBIT;
            self.control = RateControl::new(first, self.options.least_mbit);
            self.begin_trials();
        }
        if acked.rtt.is_some() {
            (self.smoothed, self.least_rtt) = (Some(acked.srtt), acked.min_rtt);
        }
        self.enter(acked);
        let smoothed = self.smoothed.unwrap_or(UNKNOWN_RTT);
        self.trials.intervals().for_each(|interval| interval.settle(acked.sent_at, smoothed));
        self.decide();
    }

    fn on_congested(&mut self, congested: &Congested) {
        match congested.trigger {
            Trigger::Ce => {}
            Trigger::Timeout => {
                self.control.restart();
                self.begin_trials();
            }
            Trigger::Loss => {
                // The losses of one report may be of several intervals.
                let (first, last) = (congested.first_sent_at, congested.sent_at);
                let among = self.trials.intervals().filter(|it| it.overlaps(first, last)).count();
                for interval in self.trials.intervals().filter(|it| it.overlaps(first, last)) {
                    interval.on_lost(congested.bytes as f64 / among as f64);
                }
                self.decide();
            }
        }
    }

    fn on_undo(&mut self, undo: &Undo) {
        if let Some(interval) = self.trials.of(undo.sent_at) {
            interval.on_found(self.packet);
        }
    }

    fn on_route_change(&mut self, now: Instant) {
        let opened = Opened { now, proxied: false, packet_size: self.packet as u32, rtt: None };
        *self = Self::new(&opened, self.options, self.random.bits());
    }

    fn on_packet_size(&mut self, bytes: u32) {
        self.packet = f64::from(bytes.max(1));
    }

    fn allowance(&self) -> Allowance {
        let rate = self.trials.rate();
        let product = rate * self.smoothed.unwrap_or(UNKNOWN_RTT).as_secs_f64();
        let window = (WINDOW_GAIN * product).max(MIN_WINDOW_PACKETS * self.packet);
        Allowance { window: window as u64, rate: Some((rate as u64).max(1)), ..Allowance::default() }
    }
}
