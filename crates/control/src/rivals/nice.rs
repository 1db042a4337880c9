//! TCP Nice: TCP Vegas that halves its window if more than half of the packets of an RTT were
//! delayed by a queue. Queues are detected by one-way delays.
//!
//! Source: Venkataramani, Kokku, Dahlin, "TCP Nice: a mechanism for background transfers", OSDI
//! 2002, sections 3, 5.

use crate::bundle::{Decrease, GrowthPhase, PathController, Window};
use crate::detector::Extremes;
use crate::{Acked, Allowance, Congested, Opened, Undo};
use byway_wire::{Duration, Instant};

/// The parameters that the papers name or leave open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NiceOptions {
    /// The paper's t, a share of the range of delays. Delays above `min + t (max - min)` are late.
    /// The paper takes 0.1.
    pub threshold: f64,
    /// f: if more than this share of an RTT's packets is late, the path is congested. The paper
    /// takes 0.5.
    pub fraction: f64,
    /// The least value of `max - min`, the range of delays; the paper has none. Without a least
    /// range, a flow alone on a line would yield to the delays of its own bursts.
    pub least_range: Duration,
    /// Whether the delays of packets sent before the window was halved are ignored. If they count,
    /// they halve the window a second time, in the next RTT. The paper leaves this open.
    pub afresh: bool,
    /// Vegas: the window grows while it keeps fewer packets than this in the queue. The rule is by
    /// Brakmo and Peterson, "TCP Vegas", JSAC 13(8), 1995. It is written from memory of that paper
    /// and from Linux's code.
    pub alpha: f64,
    /// Vegas: the window shrinks while more packets than this are in the queue.
    pub beta: f64,
    /// Vegas: slow start ends when more packets than this are in the queue.
    pub gamma: f64,
    /// Vegas: whether slow start doubles the window every other RTT and compares in between.
    /// Otherwise it doubles and compares in each RTT.
    pub every_other: bool,
    /// Initial window in packets.
    pub initial: f64,
    /// Smallest window in packets.
    pub floor: f64,
}

impl NiceOptions {
    /// The options of the paper.
    pub const LITERAL: Self = Self {
        threshold: 0.1,
        fraction: 0.5,
        least_range: Duration::ZERO,
        afresh: false,
        alpha: 1.0,
        beta: 3.0,
        gamma: 1.0,
        every_other: true,
        initial: 2.0,
        floor: 1.0 / 48.0,
    };
    /// For a path that may be idle. A packet is late from 5 ms of queueing delay on.
    pub const RECOMMENDED: Self =
        Self { least_range: Duration::from_millis(50), afresh: true, ..Self::LITERAL };
}

/// The congestion window of one path by TCP Nice.
#[derive(Clone, Debug)]
pub struct Nice {
    options: NiceOptions,
    window: Window,
    /// The part of a window of one packet that is left. 1: the window is one packet or more.
    part: f64,
    srtt: Duration,
    extremes: Option<Extremes>,
    /// Packets sent from here on belong to the next round.
    round: Instant,
    /// Whether the round began with a halved window. Then it counts from the first packet sent
    /// since.
    halved: bool,
    /// Number of packets of this round. The next fields: those of them that were late, and the
    /// smallest delay.
    packets: u32,
    late: u32,
    least: i64,
    odd: bool,
}

impl Nice {
    /// A path with the recommended values.
    #[must_use]
    pub fn new(opened: &Opened) -> Self {
        Self::with_options(opened, NiceOptions::RECOMMENDED)
    }

    /// Makes a path with these options.
    #[must_use]
    pub fn with_options(opened: &Opened, options: NiceOptions) -> Self {
        Self {
            options,
            window: Window::new(opened, options.initial),
            part: 1.0,
            srtt: opened.rtt.unwrap_or(Duration::from_millis(100)),
            extremes: None,
            round: opened.now,
            halved: false,
            packets: 0,
            late: 0,
            least: i64::MAX,
            odd: false,
        }
    }

    /// The window, in packets; it may be less than one.
    #[must_use]
    pub fn packets(&self) -> f64 {
        self.window.packets() * self.part
    }

    fn set(&mut self, packets: f64) {
        self.part = packets.clamp(self.options.floor, 1.0);
        self.window.set(packets, packets.max(1.0));
    }

    /// Section 3, "per ack operation". A packet counts when its delay exceeds
    /// `min + (max - min) t`.
    fn count(&mut self, one_way: i64) {
        let NiceOptions { threshold, least_range, .. } = self.options;
        let extremes = Extremes::sample(&mut self.extremes, one_way);
        let limit = extremes.min.saturating_add(extremes.above_min(threshold, least_range) as i64);
        self.packets = self.packets.saturating_add(1);
        self.late = self.late.saturating_add(u32::from(one_way > limit));
        self.least = self.least.min(one_way);
    }

    /// Section 3, "per round operation".
    fn end_round(&mut self, acked: &Acked<'_>, phase: GrowthPhase) {
        if f64::from(self.late) > self.options.fraction * f64::from(self.packets) {
            self.set(self.packets() / 2.0);
            self.halved = self.options.afresh;
        } else if phase != GrowthPhase::Held {
            self.vegas(acked, phase);
        }
        self.begin_round(acked.now);
    }

    fn begin_round(&mut self, now: Instant) {
        (self.packets, self.late, self.least) = (0, 0, i64::MAX);
        self.round = now;
    }

    fn vegas(&mut self, acked: &Acked<'_>, phase: GrowthPhase) {
        let NiceOptions { alpha, beta, gamma, every_other, .. } = self.options;
        let packets = self.packets();
        // Vegas: `Diff = (window/base - window/rtt) * base`. rtt is the smallest RTT of the round,
        // as in Linux.
        let waited = match self.extremes {
            Some(Extremes { min, .. }) if self.packets > 0 => self.least.saturating_sub(min) as f64 / 1e9,
            _ => 0.0,
        };
        let queued = packets * waited / (acked.min_rtt.as_secs_f64() + waited).max(f64::MIN_POSITIVE);
        if phase == GrowthPhase::SlowStart {
            self.odd = !self.odd;
            if queued > gamma {
                // Linux: on with the window that keeps one packet in the queue.
                self.set(packets - queued + 1.0);
            } else if self.odd || !every_other {
                self.window.grow_slow_start(packets);
            }
        } else if queued > beta {
            self.set((packets - 1.0).max(1.0));
        } else if queued < alpha {
            // A window below one packet grows by one packet too. There a round is one packet and
            // takes 1/window RTTs.
            self.set(packets + 1.0);
        }
    }
}

impl PathController for Nice {
    fn yields(&self) -> bool {
        true
    }

    fn on_acked(&mut self, acked: &Acked<'_>) {
        self.srtt = acked.srtt;
        let phase = self.window.on_acked(acked);
        let over = acked.sent_at >= self.round;
        if self.halved && over {
            self.halved = false;
            self.begin_round(acked.now);
            return;
        }
        for delay in acked.delays {
            self.count(delay.one_way);
        }
        if over {
            self.end_round(acked, phase);
        }
    }

    /// Section 3: a loss halves the window, as in Reno. This includes a window of one packet or
    /// less.
    fn on_congested(&mut self, congested: &Congested) {
        let packets = self.packets();
        if self.window.on_congested(congested, Decrease { keep: 0.5, least: 1.0 }) && packets <= 1.0 {
            self.part = (packets / 2.0).max(self.options.floor);
        }
    }

    fn on_undo(&mut self, undo: &Undo) {
        if self.window.on_undo(undo) {
            self.part = 1.0;
        }
    }

    fn on_route_change(&mut self, now: Instant) {
        self.window.start_over(now);
        self.part = 1.0;
        self.extremes = None;
    }

    fn on_packet_size(&mut self, bytes: u32) {
        self.window.resize(bytes);
    }

    fn allowance(&self) -> Allowance {
        if self.part >= 1.0 {
            return self.window.allowance();
        }
        let bytes = self.part * self.window.packet();
        let rate = bytes / self.srtt.as_secs_f64().max(1e-3);
        Allowance { window: (bytes as u64).max(1), rate: Some((rate as u64).max(1)), ..Allowance::default() }
    }
}
