//! The pacing rate and the window, by the model and the state (5.6).

use super::model::Model;
use super::phase::Phase;
use crate::{Acked, Allowance};
use byway_wire::Instant;

/// A value above any window.
const MAX_WINDOW_BYTES: f64 = 1e11;
/// 5.6.2 (`PacingMarginPercent`): the pacing rate is 1 % below the estimated rate.
const PACING_PART: f64 = 0.99;

/// The limits on sending. Volumes are in bytes, rates in bytes per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    window: f64,
    /// The window before a recovery or PROBE_RTT.
    before: f64,
    pace: f64,
    /// Recovery ends when packets sent after this time are acknowledged.
    recover: Option<Instant>,
}

impl Output {
    pub(super) const fn new(window: f64, pace: f64) -> Self {
        Self { window, before: 0.0, pace, recover: None }
    }

    pub(super) const fn window(&self) -> f64 {
        self.window
    }

    pub(super) const fn pace(&self) -> f64 {
        self.pace
    }

    pub(super) const fn recovers(&self) -> bool {
        self.recover.is_some()
    }

    /// Saves the window before it falls (`SaveCwnd`).
    pub(super) fn save(&mut self, phase: Phase) {
        let low = self.recover.is_some() || phase == Phase::ProbeRtt;
        self.before = if low { self.before.max(self.window) } else { self.window };
    }

    /// Has the window of before again (`RestoreCwnd`).
    pub(super) const fn restore(&mut self) {
        self.window = self.window.max(self.before);
    }

    /// Recovery from losses begins.
    pub(super) const fn recover(&mut self, now: Instant) {
        self.recover = Some(now);
    }

    /// 5.6.4.4: after a timeout one packet may be sent.
    pub(super) const fn time_out(&mut self, packet: f64) {
        self.window = packet;
    }

    /// The losses were none: the window is at least `before`.
    pub(super) const fn undo(&mut self, before: f64) {
        self.recover = None;
        self.window = self.window.max(before);
    }

    /// 5.6.2.
    pub(super) fn set_pace(&mut self, gain: f64, model: &Model) {
        let pace = gain * model.rate * PACING_PART;
        if pace > 0.0 && (model.full.was_full() || pace > self.pace) {
            self.pace = pace;
        }
    }

    /// 5.6.4.
    pub(super) fn set_window(&mut self, acked: &Acked<'_>, phase: Phase, model: &Model) {
        if self.recover.is_some_and(|recover| acked.sent_at >= recover) {
            self.recover = None;
            self.restore();
        }
        let bytes = acked.bytes as f64;
        let probes = if phase == Phase::Up { 2.0 * model.packet } else { 0.0 };
        let volume = model.products(phase.window_gain()) + model.extra.get();
        let wanted = model.quantized(volume, self.pace) + probes;
        if model.full.was_full() {
            self.window = (self.window + bytes).min(wanted);
        } else if self.window < wanted || model.delivered() < model.initial {
            self.window += bytes;
        }
        let cap = match phase {
            Phase::Startup | Phase::Drain => f64::INFINITY,
            Phase::Down | Phase::Refill | Phase::Up => model.long.volume(),
            Phase::Cruise => model.with_headroom(),
            Phase::ProbeRtt => model.with_headroom().min(model.probe_rtt_window()),
        };
        let cap = cap.min(model.short.volume()).clamp(model.least(), MAX_WINDOW_BYTES);
        self.window = self.window.max(model.least()).min(cap);
    }

    pub(super) fn allowance(&self) -> Allowance {
        Allowance {
            window: self.window as u64,
            rate: Some((self.pace as u64).max(1)),
            ..Allowance::default()
        }
    }
}
