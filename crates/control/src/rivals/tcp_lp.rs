//! TCP-LP: NewReno that halves its window when the smoothed one-way delay exceeds a limit. If this
//! happens again within three RTTs, the window falls to one packet.
//!
//! Source: Kuzmanovic, Knightly, "TCP-LP", INFOCOM 2003, from memory and Linux (`tcp_lp.c`).

use crate::bundle::{Decrease, GrowthPhase, PathController, Window};
use crate::detector::Extremes;
use crate::{Acked, Allowance, Congested, Delay, Opened, Undo};
use byway_wire::{Duration, Instant};

/// The parameters that the paper names or leaves open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpLpOptions {
    /// The paper's delta, a share of the range of delays; 0.15 in the paper. A smoothed delay above
    /// `min + delta (max - min)` is an early congestion indication. min and max are the extremes of
    /// the delay so far.
    pub threshold: f64,
    /// gamma, the share of a sample in the smoothed delay. 1/8.
    pub smoothing: f64,
    /// Duration of the inference phase in RTTs: 3.
    pub inference: u32,
    /// The least value of `max - min`, the range of delays; the paper has none. Without a least
    /// range, a flow alone on a line would yield to the delays of its own bursts.
    pub least_range: Duration,
    /// Whether the smoothed delay starts again after each decrease, with packets sent since; the
    /// paper leaves this open. Otherwise the smoothed delay still contains older delays, and almost
    /// every decrease is followed by a second one.
    pub afresh: bool,
    /// Initial window in packets. RFC 6928: 10.
    pub initial: f64,
    /// L of RFC 3465: the most packets that one ACK adds in slow start (see
    /// [`newreno`](crate::newreno)).
    pub limit: f64,
}

impl TcpLpOptions {
    /// The options as published, over the TCP of 2003.
    pub const LITERAL: Self = Self {
        threshold: 0.15,
        smoothing: 0.125,
        inference: 3,
        least_range: Duration::ZERO,
        afresh: false,
        initial: 2.0,
        limit: 2.0,
    };
    /// For byway's own receivers, and for a path that may be idle: a queueing delay of 7.5 ms is an
    /// indication.
    pub const RECOMMENDED: Self = Self {
        least_range: Duration::from_millis(50),
        afresh: true,
        initial: 10.0,
        limit: 10.0,
        ..Self::LITERAL
    };
}

/// The congestion window of one path by TCP-LP.
#[derive(Clone, Debug)]
pub struct TcpLp {
    options: TcpLpOptions,
    window: Window,
    extremes: Option<Extremes>,
    /// The smoothed excess over the smallest delay, in nanoseconds.
    smoothed: Option<f64>,
    /// Packets sent before belong to an indication that has been answered.
    answered: Instant,
    /// The inference phase ends here.
    inference: Instant,
}

impl TcpLp {
    /// A path with the recommended values.
    #[must_use]
    pub fn new(opened: &Opened) -> Self {
        Self::with_options(opened, TcpLpOptions::RECOMMENDED)
    }

    /// Makes a path with these options.
    #[must_use]
    pub fn with_options(opened: &Opened, options: TcpLpOptions) -> Self {
        Self {
            options,
            window: Window::new(opened, options.initial),
            extremes: None,
            smoothed: None,
            answered: opened.now,
            inference: opened.now,
        }
    }

    /// The window, in packets.
    #[must_use]
    pub fn packets(&self) -> f64 {
        self.window.packets()
    }

    /// Adds a delay `owd` to the smoothed one-way delay: `sowd = (1 - gamma) sowd + gamma owd`.
    /// Delays are stored as differences from the smallest delay, because the clocks' difference
    /// makes delays too large for an exact `f64`.
    fn sample(&mut self, delay: Delay) {
        let before = self.extremes.map(|extremes| extremes.min);
        let Extremes { min, .. } = Extremes::sample(&mut self.extremes, delay.one_way);
        if self.options.afresh && delay.sent_at < self.answered {
            return;
        }
        let fallen = before.map_or(0, |before| before.saturating_sub(min)) as f64;
        let above = delay.one_way.saturating_sub(min) as f64;
        self.smoothed = Some(self.smoothed.map_or(above, |smoothed| {
            let smoothed = smoothed + fallen;
            smoothed + self.options.smoothing * (above - smoothed)
        }));
    }

    /// Whether there is an early congestion indication: `sowd > min + delta (max - min)`.
    fn indicated(&self) -> bool {
        let TcpLpOptions { threshold, least_range, .. } = self.options;
        self.extremes
            .zip(self.smoothed)
            .is_some_and(|(extremes, smoothed)| smoothed > extremes.above_min(threshold, least_range))
    }
}

impl PathController for TcpLp {
    fn yields(&self) -> bool {
        true
    }

    fn on_acked(&mut self, acked: &Acked<'_>) {
        let phase = self.window.on_acked(acked);
        // Without one-way delays a path behaves like NewReno.
        for delay in acked.delays {
            self.sample(*delay);
        }
        let packets = self.window.packets();
        let bytes = self.window.in_packets(acked.bytes);
        if self.indicated() {
            // Packets sent before the last answer belong to the same RTT, so several indications of
            // an RTT count as one.
            if acked.sent_at >= self.answered {
                // In the inference phase: cwnd = 1. Else: cwnd = cwnd / 2, and an inference phase
                // begins.
                let left = if acked.now < self.inference { 1.0 } else { (packets / 2.0).max(1.0) };
                self.window.set(left, left);
                // Unlike Linux, this code keeps the smallest and the largest delay here.
                self.answered = acked.now;
                if self.options.afresh {
                    self.smoothed = None;
                }
                self.inference = acked.now + acked.srtt.saturating_mul(self.options.inference);
            }
        } else if acked.now >= self.inference {
            // Outside of the inference phase the window grows as NewReno's does. Within the phase
            // it stays.
            match phase {
                GrowthPhase::Held => {}
                GrowthPhase::SlowStart => self.window.grow_slow_start(bytes.min(self.options.limit)),
                GrowthPhase::Avoidance => self.window.grow(bytes / packets),
            }
        }
    }

    /// Answers a loss as NewReno does.
    fn on_congested(&mut self, congested: &Congested) {
        self.window.on_congested(congested, Decrease::HALF);
    }

    fn on_undo(&mut self, undo: &Undo) {
        self.window.on_undo(undo);
    }

    fn on_route_change(&mut self, now: Instant) {
        self.window.start_over(now);
        self.extremes = None;
        self.smoothed = None;
    }

    fn on_packet_size(&mut self, bytes: u32) {
        self.window.resize(bytes);
    }

    fn allowance(&self) -> Allowance {
        self.window.allowance()
    }
}
