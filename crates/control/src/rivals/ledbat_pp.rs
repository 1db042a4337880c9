//! LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus, section 4): LEDBAT that measures RTTs in place of
//! one-way delays. In regular slowdowns a flow falls to 2 packets. Then the queue drains, and the
//! RTT of the empty path is measured.
//!
//! Written from memory of the draft, from a Linux module, and from freenet's implementation.

use super::ledbat::DelayHistory;
use crate::bundle::{Decrease, GrowthPhase, PathController, Window};
use crate::{Acked, Allowance, Congested, Opened, Undo};
use byway_wire::time::signed_nanos;
use byway_wire::{Duration, Instant};

/// The parameters of LEDBAT++. Windows are in packets. Each description ends with the value that
/// the draft recommends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LedbatPpOptions {
    /// TARGET: the queueing delay that the window is steered to. 60 ms.
    pub target: Duration,
    /// The reciprocal of the smallest GAIN, a factor. 16.
    pub slowest: f64,
    /// Constant, a factor: how fast the window falls when the queue is above the target. 1.
    pub constant: f64,
    /// The share of the target that the queue exceeds when the first slow start ends. 3/4.
    pub leave: f64,
    /// The time from a slowdown to the next, as a factor of the slowdown's length. 9.
    pub interval: u32,
    /// The number of RTTs between the first slow start and the first slowdown. Also the number of
    /// RTTs for which each slowdown keeps the window at its smallest. Both are 2 in the draft.
    pub pause: u32,
    /// Initial and smallest window in packets. 2.
    pub least: f64,
    /// Minutes after which a base delay is forgotten (RFC 6817). 10.
    pub history: usize,
    /// The number of latest samples, of which the smallest is the present delay (RFC 6817). 4.
    pub filter: usize,
}

impl LedbatPpOptions {
    /// The options that the draft recommends, literally.
    pub const DRAFT: Self = Self {
        target: Duration::from_millis(60),
        slowest: 16.0,
        constant: 1.0,
        leave: 0.75,
        interval: 9,
        pause: 2,
        least: 2.0,
        history: 10,
        filter: 4,
    };
}

/// The state of a path between two slowdowns.
#[derive(Clone, Copy, Debug)]
enum SlowdownState {
    /// The first slow start of the path.
    Start,
    /// Steering, until the next slowdown is due.
    Steering { due: Instant },
    /// At the bottom of a slowdown that began `since`.
    Bottom { since: Instant, until: Instant },
    /// In slow start, back to the window before the slowdown.
    Return { since: Instant },
}

/// The congestion window of one path by LEDBAT++.
#[derive(Clone, Debug)]
pub struct LedbatPp {
    options: LedbatPpOptions,
    window: Window,
    rtts: DelayHistory,
    stage: SlowdownState,
    /// Packets sent from `round` on belong to the next RTT. In the present RTT the window may not
    /// fall below `floor` packets.
    round: Instant,
    floor: f64,
}

impl LedbatPp {
    /// A path with the values of the draft.
    #[must_use]
    pub fn new(opened: &Opened) -> Self {
        Self::with_options(opened, LedbatPpOptions::DRAFT)
    }

    /// Makes a path with these options.
    #[must_use]
    pub fn with_options(opened: &Opened, options: LedbatPpOptions) -> Self {
        Self {
            options,
            window: Window::new(opened, options.least),
            rtts: DelayHistory::new(options.history, options.filter),
            stage: SlowdownState::Start,
            round: opened.now,
            floor: options.least,
        }
    }

    /// The window, in packets.
    #[must_use]
    pub fn packets(&self) -> f64 {
        self.window.packets()
    }

    /// Section 4.2 of the draft: `GAIN = 1 / min(16, CEIL(2 * TARGET / base))`, where base is the
    /// RTT of the empty path. On short paths GAIN is below 1, so the flow grows more slowly than
    /// TCP.
    fn gain(&self) -> f64 {
        let base = self.rtts.base().unwrap_or(0).max(1) as f64 / 1e9;
        1.0 / libm::ceil(2.0 * self.options.target.as_secs_f64() / base).clamp(1.0, self.options.slowest)
    }

    /// Changes the window W, in packets, by the queueing delay (LEDBAT++, 4.2). While the delay is
    /// at most TARGET, W grows by GAIN packets per RTT. Otherwise W changes, per RTT, by this
    /// number of packets: `max(GAIN - Constant * W * (delay / TARGET - 1), -W / 2)`.
    fn steer(&mut self, acked: &Acked<'_>, may_grow: bool) {
        let Some(queue) = self.rtts.queue() else { return };
        let (gain, packets) = (self.gain(), self.window.packets());
        if acked.sent_at >= self.round {
            self.round = acked.now;
            self.floor = (packets / 2.0).max(self.options.least);
        }
        let windows = self.window.in_packets(acked.bytes) / packets;
        let over = queue as f64 / 1e9 / self.options.target.as_secs_f64() - 1.0;
        let change = if over <= 0.0 { gain } else { gain - self.options.constant * packets * over };
        if change < 0.0 {
            let floor = self.floor.min(packets);
            self.window.set((packets + change * windows).max(floor), floor);
        } else if may_grow {
            self.window.grow(change * windows);
        }
    }

    /// 4.3: slow start grows by GAIN for each packet acknowledged.
    fn slow_start(&mut self, acked: &Acked<'_>) {
        self.window.grow_slow_start(self.gain() * self.window.in_packets(acked.bytes));
    }

    fn first_slow_start(&mut self, acked: &Acked<'_>, phase: GrowthPhase) {
        let late = self.options.target.mul_f64(self.options.leave).as_nanos();
        let full = self.rtts.queue().is_some_and(|queue| i128::from(queue) > late as i128);
        if self.window.in_slow_start() && !full {
            if phase == GrowthPhase::SlowStart {
                self.slow_start(acked);
            }
            return;
        }
        // The first slow start ends when the queueing delay exceeds 3/4 of the target, or at a loss
        // (section 4.3 of the draft). The first slowdown follows two RTTs later (4.4).
        let packets = self.window.packets();
        self.window.set(packets, packets);
        self.stage =
            SlowdownState::Steering { due: acked.now + acked.srtt.saturating_mul(self.options.pause) };
    }
}

impl PathController for LedbatPp {
    fn yields(&self) -> bool {
        true
    }

    fn on_acked(&mut self, acked: &Acked<'_>) {
        let phase = self.window.on_acked(acked);
        if let Some(rtt) = acked.rtt {
            self.rtts.sample(signed_nanos(rtt), acked.now);
        }
        match self.stage {
            SlowdownState::Start => self.first_slow_start(acked, phase),
            SlowdownState::Steering { due } if acked.now >= due && !self.window.in_slow_start() => {
                // 4.4: ssthresh remembers the window, which falls to 2 packets and stays there for
                // two RTT.
                self.window.set(self.options.least, self.window.packets());
                let until = acked.now + acked.srtt.saturating_mul(self.options.pause);
                self.stage = SlowdownState::Bottom { since: acked.now, until };
            }
            SlowdownState::Steering { .. } => match phase {
                // After a timeout.
                GrowthPhase::SlowStart => self.slow_start(acked),
                _ => self.steer(acked, phase == GrowthPhase::Avoidance),
            },
            SlowdownState::Bottom { since, until } => {
                if acked.now >= until {
                    self.stage = SlowdownState::Return { since };
                }
            }
            SlowdownState::Return { since } => {
                if phase == GrowthPhase::SlowStart {
                    self.slow_start(acked);
                }
                if !self.window.in_slow_start() {
                    // 4.4: the next slowdown comes after nine times the length of this one. So
                    // slowdowns take 10 % of the time at most.
                    let due = acked.now + acked.now.since(since).saturating_mul(self.options.interval);
                    self.stage = SlowdownState::Steering { due };
                }
            }
        }
    }

    /// Halves the window, as TCP does.
    fn on_congested(&mut self, congested: &Congested) {
        self.window.on_congested(congested, Decrease::HALF);
    }

    fn on_undo(&mut self, undo: &Undo) {
        self.window.on_undo(undo);
    }

    fn on_route_change(&mut self, now: Instant) {
        self.window.start_over(now);
        self.rtts.clear();
        self.stage = SlowdownState::Start;
    }

    fn on_packet_size(&mut self, bytes: u32) {
        self.floor *= self.window.resize(bytes);
    }

    fn allowance(&self) -> Allowance {
        self.window.allowance()
    }
}
