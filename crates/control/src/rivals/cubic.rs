//! CUBIC: the window as a cubic function of the time since the last congestion event. RFC 9438.
//!
//! Source: the last draft of RFC 9438 (draft-ietf-tcpm-rfc8312bis), read in full. The draft numbers
//! its sections as the RFC does.

use super::hystart_linux;
use crate::bundle::{Decrease, GrowthPhase, PathController, Window};
use crate::cubic_curve::{Curve, Shape};
use crate::detector::{HyStart, HyStartOptions, RoundDelay};
use crate::{Acked, Allowance, Congested, Opened, Trigger, Undo};
use byway_wire::Instant;

/// The parameters that RFC 9438 names or leaves open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CubicOptions {
    /// C in packets per cubic second. 5.1: SHOULD be 0.4.
    pub c: f64,
    /// beta_cubic, the share of the window that a loss leaves. 4.6: SHOULD be 0.7.
    pub beta: f64,
    /// 4.7: whether a flow gives up room for flows that begin. SHOULD be on, except for a flow that
    /// is alone.
    pub fast_convergence: bool,
    /// When slow start ends. RFC 9438, 4.10, says that it SHOULD be by HyStart++ and MAY be by the
    /// first loss (RFC 5681). byway takes the first loss: HyStart++ would take the ACK delay of
    /// byway's receivers (up to 10 ms) for a queue.
    pub slow_start: SlowStart,
    /// Initial window in packets. RFC 6928: 10.
    pub initial: f64,
    /// L of RFC 3465: the most packets that one ACK adds in slow start (see
    /// [`newreno`](crate::newreno)).
    pub limit: f64,
}

/// When slow start ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SlowStart {
    /// With the first loss.
    UntilLoss,
    /// HyStart++ (RFC 9406), in the first slow start only.
    HyStartPlusPlus(HyStartOptions),
    /// Linux's HyStart, in every slow start.
    HyStart,
}

impl CubicOptions {
    /// For byway's own receivers: the recommended values, without HyStart++.
    pub const BYWAY: Self = Self {
        c: 0.4,
        beta: 0.7,
        fast_convergence: true,
        slow_start: SlowStart::UntilLoss,
        initial: 10.0,
        limit: 10.0,
    };
    /// CUBIC exactly as the RFC recommends, with HyStart++. The L of HyStart++ has no limit here,
    /// since the sender is paced (RFC 9406, 4.2).
    pub const LITERAL: Self = Self {
        slow_start: SlowStart::HyStartPlusPlus(HyStartOptions::RFC9406),
        limit: f64::INFINITY,
        ..Self::BYWAY
    };

    const fn shape(self) -> Shape {
        Shape { c: self.c, beta: self.beta }
    }
}

/// How the end of slow start is detected.
#[derive(Clone, Debug)]
enum SlowStartExit {
    Nothing,
    PlusPlus(HyStart),
    Linux(hystart_linux::LinuxHyStart),
}

impl SlowStartExit {
    const fn new(slow_start: SlowStart, now: Instant) -> Self {
        match slow_start {
            SlowStart::UntilLoss => Self::Nothing,
            SlowStart::HyStartPlusPlus(options) => Self::PlusPlus(HyStart::new(options, now)),
            SlowStart::HyStart => Self::Linux(hystart_linux::LinuxHyStart::new(now)),
        }
    }
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug, Default)]
struct AvoidanceStage {
    curve: Curve,
    /// `t_epoch`: the beginning of the present stage. `None`: the stage has not begun.
    epoch: Option<Instant>,
}

impl AvoidanceStage {
    /// Converts the state to packets of another size: `factor` of them are an old one. C is in
    /// packets too, so the curve begins anew at the present window.
    fn scale(&mut self, factor: f64) {
        self.curve.w_max *= factor;
        self.curve.prior *= factor;
        self.epoch = None;
    }

    /// Begins congestion avoidance with a window of `window` packets (cwnd_epoch in RFC 9438). K is
    /// the time in seconds until the curve reaches W_max (4.2). If W_max is 0, as after a timeout,
    /// W_max becomes `window` (4.8).
    fn begin(&mut self, now: Instant, window: f64, shape: Shape) {
        self.epoch = Some(now);
        self.curve.w_est = window;
        self.curve.w_max = self.curve.w_max.max(window);
        self.curve.k = shape.time_to(self.curve.w_max, window);
    }
}

/// The congestion window of one path by CUBIC.
#[derive(Clone, Debug)]
pub struct Cubic {
    options: CubicOptions,
    window: Window,
    stage: AvoidanceStage,
    /// 4.9.2: the state that is restored after a spurious loss.
    before: AvoidanceStage,
    watch: SlowStartExit,
    /// When the latest ACK came.
    seen: Instant,
}

impl Cubic {
    /// A path of byway, with the recommended options.
    #[must_use]
    pub fn new(opened: &Opened) -> Self {
        Self::with_options(opened, CubicOptions::BYWAY)
    }

    /// Makes a path with these options.
    #[must_use]
    pub fn with_options(opened: &Opened, options: CubicOptions) -> Self {
        Self {
            options,
            window: Window::new(opened, options.initial),
            stage: AvoidanceStage::default(),
            before: AvoidanceStage::default(),
            watch: SlowStartExit::new(options.slow_start, opened.now),
            seen: opened.now,
        }
    }

    /// The window, in packets.
    #[must_use]
    pub fn packets(&self) -> f64 {
        self.window.packets()
    }

    fn slow_start(&mut self, acked: &Acked<'_>) {
        let packets = self.window.in_packets(acked.bytes).min(self.options.limit);
        let window = self.window.packets();
        let part = match &mut self.watch {
            // RFC 9406, 4.3: HyStart++ is for the first slow start.
            SlowStartExit::PlusPlus(watch) if self.window.threshold().is_infinite() => {
                watch.on_acked(acked, acked.rtt.map(RoundDelay::RoundTrip))
            }
            SlowStartExit::Linux(watch) => (!watch.on_acked(acked, window)).then_some(1.0),
            _ => Some(1.0),
        };
        match part {
            Some(part) => self.window.grow_slow_start(packets * part),
            None => {
                // 4.10: cwnd_prior = cwnd, and on to congestion avoidance.
                self.window.set(window, window);
                let curve = Curve { prior: window, ..Curve::default() };
                self.stage = AvoidanceStage { curve, epoch: None };
            }
        }
    }

    fn avoid(&mut self, acked: &Acked<'_>) {
        let shape = self.options.shape();
        let cwnd = self.window.packets();
        let windows = self.window.in_packets(acked.bytes) / cwnd;
        let stage = &mut self.stage;
        if stage.epoch.is_none() {
            stage.begin(acked.now, cwnd, shape);
        }
        let t = stage.epoch.map_or(0.0, |epoch| acked.now.since(epoch).as_secs_f64());
        let growth = stage.curve.growth(shape, t, acked.srtt.as_secs_f64(), cwnd, windows);
        self.window.grow(growth);
    }
}

impl PathController for Cubic {
    fn on_acked(&mut self, acked: &Acked<'_>) {
        // 4.2: t MUST NOT include periods in which cwnd was not updated because the application
        // limited the rate.
        if let (true, Some(epoch)) = (acked.app_limited, &mut self.stage.epoch) {
            *epoch += acked.now.since(self.seen);
        }
        self.seen = acked.now;
        match self.window.on_acked(acked) {
            GrowthPhase::Held => {}
            GrowthPhase::SlowStart => self.slow_start(acked),
            GrowthPhase::Avoidance => self.avoid(acked),
        }
    }

    fn on_congested(&mut self, congested: &Congested) {
        let CubicOptions { beta, fast_convergence, .. } = self.options;
        let cwnd = self.window.packets();
        // 4.6: ssthresh = flight_size * beta_cubic, at least 2 packets.
        if self.window.on_congested(congested, Decrease { keep: beta, least: 2.0 }) {
            self.before = self.stage;
            self.stage.curve.w_max =
                self.options.shape().plateau(cwnd, self.stage.curve.w_max, fast_convergence);
            self.stage.curve.prior = cwnd;
            if congested.trigger == Trigger::Ce {
                // 4.6: a mark reduces cwnd to 1 packet at least, where a loss leaves 2.
                let flight = self.window.in_packets(congested.in_flight).min(cwnd);
                self.window.set(flight * beta, self.window.threshold());
            }
            if congested.trigger == Trigger::Timeout {
                // 4.8: W_max will be the window at the beginning of congestion avoidance.
                self.stage.curve.w_max = 0.0;
            }
            self.stage.epoch = None;
        }
    }

    fn on_undo(&mut self, undo: &Undo) {
        // 4.9.2: everything is restored if cwnd < cwnd_prior.
        let behind = self.window.packets() < self.stage.curve.prior;
        if self.window.on_undo(undo) && behind {
            self.stage = self.before;
        }
    }

    fn on_route_change(&mut self, now: Instant) {
        self.window.start_over(now);
        self.stage = AvoidanceStage::default();
        self.watch = SlowStartExit::new(self.options.slow_start, now);
    }

    fn on_packet_size(&mut self, bytes: u32) {
        let factor = self.window.resize(bytes);
        self.stage.scale(factor);
        self.before.scale(factor);
    }

    fn allowance(&self) -> Allowance {
        self.window.allowance()
    }
}
