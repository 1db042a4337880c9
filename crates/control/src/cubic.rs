//! CUBIC: the window as a cubic function of the time since the last congestion event. RFC 9438.
//!
//! Source: the last draft of the RFC (draft-ietf-tcpm-rfc8312bis), read in full; its sections are numbered as the RFC's.

use crate::bundle::{Decrease, Phase, Single, Window};
use crate::hystart::{self, HyStart};
use crate::{Acked, Allowance, Congested, Opened, Trigger, Undo};
use byway_wire::Instant;

/// What RFC 9438 names or leaves to choose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// C in packets per cubic second. 5.1: SHOULD be 0.4.
    pub c: f64,
    /// beta_cubic, the part of the window that a loss leaves. 4.6: SHOULD be 0.7.
    pub beta: f64,
    /// 4.7: gives up room for flows that begin. SHOULD be on, except for a single flow without any others.
    pub fast_convergence: bool,
    /// 4.10: SHOULD use HyStart++, MAY use the slow start of RFC 5681 where that is not suitable. Off here: its samples are
    /// RTTs, and an ACK delay of 10 ms is as long as what it looks for.
    pub hystart: Option<hystart::Options>,
    /// Initial window in packets. RFC 6928: 10.
    pub initial: f64,
    /// L of RFC 3465: at most so many packets are added for one ACK in slow start (see [`newreno`](crate::newreno)).
    pub limit: f64,
}

impl Options {
    /// For byway's own receivers: the recommended values, without HyStart++.
    pub const BYWAY: Self =
        Self { c: 0.4, beta: 0.7, fast_convergence: true, hystart: None, initial: 10.0, limit: 10.0 };
    /// As the RFC recommends, to the letter: with HyStart++, whose L a paced sender need not limit (RFC 9406, 4.2).
    pub const LITERAL: Self =
        Self { hystart: Some(hystart::Options::RFC9406), limit: f64::INFINITY, ..Self::BYWAY };
}

/// What follows from the last congestion event. Windows in packets, times in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Curve {
    /// W_max: the window where the last event happened, and the plateau.
    w_max: f64,
    /// cwnd_prior: the window when ssthresh was set last.
    prior: f64,
    /// K: when the curve reaches W_max.
    k: f64,
    /// W_est: the window that Reno would have.
    w_est: f64,
    /// t_epoch: when this stage of congestion avoidance began.
    epoch: Option<Instant>,
}

impl Curve {
    /// 4.2: (2), K = cbrt((W_max - cwnd_epoch) / C). 4.3: W_est is set to cwnd_epoch at the start of the stage.
    ///
    /// 4.8 and 4.10: after a timeout, and after a slow start without loss, K is 0 and W_max the window now.
    fn begin(&mut self, now: Instant, window: f64, c: f64) {
        self.epoch = Some(now);
        self.w_est = window;
        self.w_max = self.w_max.max(window);
        self.k = libm::cbrt((self.w_max - window) / c);
    }

    /// 4.2: (1), W_cubic(t) = C * (t - K)^3 + W_max.
    fn at(&self, t: f64, c: f64) -> f64 {
        let from_plateau = t - self.k;
        c * from_plateau * from_plateau * from_plateau + self.w_max
    }
}

/// The congestion window of one path by CUBIC.
#[derive(Clone, Debug)]
pub struct Cubic {
    options: Options,
    window: Window,
    curve: Curve,
    /// 4.9.2: what a loss that was none gives back.
    before: Curve,
    hystart: Option<HyStart>,
    /// The latest ACK.
    seen: Instant,
}

impl Cubic {
    /// A path of byway's.
    #[must_use]
    pub fn new(opened: &Opened) -> Self {
        Self::with_options(opened, Options::BYWAY)
    }

    /// A path with `options`.
    #[must_use]
    pub fn with_options(opened: &Opened, options: Options) -> Self {
        Self {
            options,
            window: Window::new(opened, options.initial),
            curve: Curve::default(),
            before: Curve::default(),
            hystart: options.hystart.map(|options| HyStart::new(options, opened.now)),
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
        // RFC 9406, 4.3: HyStart++ is for the first slow start.
        let part = match &mut self.hystart {
            Some(hystart) if self.window.threshold().is_infinite() => hystart.on_acked(acked),
            _ => Some(1.0),
        };
        match part {
            Some(part) => self.window.grow_slow_start(packets * part),
            None => {
                // 4.10: cwnd_prior = cwnd, and on to congestion avoidance.
                let window = self.window.packets();
                self.window.set(window, window);
                self.curve = Curve { prior: window, ..Curve::default() };
            }
        }
    }

    fn avoid(&mut self, acked: &Acked<'_>) {
        let Options { c, beta, .. } = self.options;
        let cwnd = self.window.packets();
        let windows = self.window.in_packets(acked.bytes) / cwnd;
        let curve = &mut self.curve;
        if curve.epoch.is_none() {
            curve.begin(acked.now, cwnd, c);
        }
        let t = curve.epoch.map_or(0.0, |epoch| acked.now.since(epoch).as_secs_f64());
        // 4.2: target = W_cubic(t + RTT), not below cwnd and not above 1.5 cwnd.
        let target = curve.at(t + acked.srtt.as_secs_f64(), c).clamp(cwnd, 1.5 * cwnd);
        // 4.3: alpha_cubic = 3 (1 - beta) / (1 + beta), and 1 once W_est has reached cwnd_prior.
        let alpha = if curve.w_est >= curve.prior { 1.0 } else { 3.0 * (1.0 - beta) / (1.0 + beta) };
        // 4.3: (4), W_est += alpha_cubic * segments_acked / cwnd.
        curve.w_est += alpha * windows;
        let growth = if curve.at(t, c) < curve.w_est {
            // 4.3, the Reno-friendly region: cwnd is set to W_est. Not below itself, where the target of an RTT ahead led.
            (curve.w_est - cwnd).max(0.0)
        } else {
            // 4.4 and 4.5: cwnd += (target - cwnd) / cwnd for each packet. An ACK of more than a window does not lead
            // beyond the target.
            (target - cwnd) * windows.min(1.0)
        };
        self.window.grow(growth);
    }
}

impl Single for Cubic {
    fn on_acked(&mut self, acked: &Acked<'_>) {
        // 4.2: t MUST NOT include periods in which cwnd was not updated because the application was the limit.
        if let (true, Some(epoch)) = (acked.app_limited, &mut self.curve.epoch) {
            *epoch += acked.now.since(self.seen);
        }
        self.seen = acked.now;
        match self.window.on_acked(acked) {
            Phase::Held => {}
            Phase::SlowStart => self.slow_start(acked),
            Phase::Avoidance => self.avoid(acked),
        }
    }

    fn on_congested(&mut self, congested: &Congested) {
        let Options { beta, fast_convergence, .. } = self.options;
        let cwnd = self.window.packets();
        // 4.6: ssthresh = flight_size * beta_cubic, at least 2 packets.
        if self.window.on_congested(congested, Decrease { keep: beta, least: 2.0 }) {
            self.before = self.curve;
            // 4.7: an event below the last plateau tells of a flow that begins.
            let smaller = cwnd < self.curve.w_max && fast_convergence;
            self.curve.w_max = if smaller { cwnd * (1.0 + beta) / 2.0 } else { cwnd };
            self.curve.prior = cwnd;
            if congested.trigger == Trigger::Ce {
                // 4.6: a mark reduces cwnd to 1 packet at least, where a loss leaves 2.
                let flight = self.window.in_packets(congested.in_flight).min(cwnd);
                self.window.set(flight * beta, self.window.threshold());
            }
            if congested.trigger == Trigger::Timeout {
                // 4.8: W_max will be the window at the beginning of congestion avoidance.
                self.curve.w_max = 0.0;
            }
            self.curve.epoch = None;
        }
    }

    fn on_undo(&mut self, undo: &Undo) {
        // 4.9.2: everything is restored if cwnd < cwnd_prior.
        let behind = self.window.packets() < self.curve.prior;
        if self.window.on_undo(undo) && behind {
            self.curve = self.before;
        }
    }

    fn on_route_change(&mut self, now: Instant) {
        self.window.start_over(now);
        self.curve = Curve::default();
        self.hystart = self.options.hystart.map(|options| HyStart::new(options, now));
    }

    fn allowance(&self) -> Allowance {
        self.window.allowance()
    }
}
