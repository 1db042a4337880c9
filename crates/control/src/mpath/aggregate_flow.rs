//! All paths together as one CUBIC flow (RFC 9438). Packet loss on a path reduces the flow only by
//! this path's share of all windows. So frequent losses on a path with a small window do not slow a
//! path with a large window.

use crate::cubic_curve::{Curve, Shape};
use byway_wire::{Duration, Instant};

/// The flow that all paths form together. Windows are in packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct AggregateFlow {
    shape: Shape,
    curve: Curve,
    /// Seconds since the present stage began.
    t: f64,
    /// The window at the latest event.
    window: f64,
    /// When the latest ACK arrived.
    seen: Instant,
    /// The window when the latest loss event began.
    at_loss: f64,
    /// W_max of that event.
    plateau: f64,
}

impl AggregateFlow {
    /// A flow without paths. RFC 9438, 4.10: after a slow start that ends without loss, W_max is
    /// the window and K is 0.
    pub fn new(shape: Shape) -> Self {
        Self {
            shape,
            curve: Curve::default(),
            t: 0.0,
            window: 0.0,
            seen: Instant::ZERO,
            at_loss: 0.0,
            plateau: 0.0,
        }
    }

    /// C and beta_cubic.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Sets the window to `window` packets after a change that is not by CUBIC, for example a newly
    /// opened path. W_max, W_est and cwnd_prior change by the same number of packets.
    pub fn follow(&mut self, window: f64) {
        let by = window - self.window;
        self.curve.w_max += by;
        self.curve.w_est += by;
        self.curve.prior += by;
        self.window = window;
    }

    /// Takes note of an ACK that lets no window grow, because the path recovers from a loss or the
    /// application limits the rate. RFC 9438, 4.2: t, the time since this stage of growth began,
    /// MUST NOT include such periods.
    pub fn pause(&mut self, now: Instant) {
        self.seen = now;
    }

    /// Packets by which the flow of `window` grows for `packets` acknowledged on a path of `rtt`.
    pub fn grow(&mut self, now: Instant, window: f64, packets: f64, rtt: Duration) -> f64 {
        self.follow(window);
        // At most an RTT counts: with packets in flight, an ACK arrives in each RTT.
        self.t += now.since(self.seen).min(rtt).as_secs_f64();
        self.seen = now;
        // An ACK stands for a few RTTs of packets at most. What exceeds four windows does not
        // count.
        let windows = (packets / window.max(1.0)).min(4.0);
        let growth = self.curve.growth(self.shape, self.t, rtt.as_secs_f64(), window, windows);
        self.window += growth;
        growth
    }

    /// Answers the loss of a path. `window`: the sum of all windows before this decrease. `first`:
    /// whether a loss event begins. `share`: the path's window, divided by the windows of all paths
    /// not yet decreased in this loss event.
    pub fn lose(&mut self, window: f64, share: f64, first: bool) {
        self.follow(window);
        if first {
            self.at_loss = window;
            self.plateau = self.shape.plateau(window, self.curve.w_max, true);
        }
        let after = self.shape.beta * self.at_loss;
        self.go_back(share, self.shape.time_to(self.plateau, after));
    }

    /// Answers the timeout of a path with the share `share` of the window. 4.8: the next stage of
    /// congestion avoidance begins on the plateau.
    pub fn time_out(&mut self, window: f64, share: f64) {
        self.follow(window);
        self.at_loss = window;
        self.plateau = window;
        self.go_back(share, 0.0);
    }

    /// Begins CUBIC's next growth after packet loss on a path. `share`: the path's part, 0 to 1, of
    /// the flow's window. `k`: K (RFC 9438), in seconds, after loss on all paths. The new K lies
    /// between the old K's rest (share 0) and `k` (share 1).
    fn go_back(&mut self, share: f64, k: f64) {
        let mean = |whole: f64, before: f64| share * whole + (1.0 - share) * before;
        // Beyond the plateau the curve has grown by the whole window at most, even if the window
        // could not follow the curve.
        let furthest = libm::cbrt(self.window / self.shape.c);
        let k = mean(k, (self.curve.k - self.t).max(-furthest));
        let behind = (self.curve.prior - self.curve.w_est).max(0.0);
        let behind = mean((1.0 - self.shape.beta) * self.at_loss, behind);
        self.curve = Curve {
            w_max: self.window + self.shape.c * k * k * k,
            prior: self.window + behind,
            k,
            w_est: self.window,
        };
        self.t = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);
    /// K of a flow of 1000 packets: cbrt(300 / .4).
    const K: f64 = 9.0856;

    /// A flow of `window` packets that has gone through a slow start.
    fn of(window: f64) -> AggregateFlow {
        let mut flow = AggregateFlow::new(Shape::RFC9438);
        flow.follow(window);
        flow
    }

    /// Runs for `seconds`, with an ACK of a tenth of a window every 10 ms. Returns the window then.
    fn run(flow: &mut AggregateFlow, seconds: f64) -> f64 {
        for _ in 0..(seconds * 100.0).round() as u32 {
            let (now, window) = (flow.seen + Duration::from_millis(10), flow.window);
            flow.grow(now, window, window / 10.0, RTT);
        }
        flow.window
    }

    /// A path of `share` loses.
    fn lose(flow: &mut AggregateFlow, share: f64) {
        let window = flow.window;
        flow.lose(window, share, true);
        flow.follow(window * (1.0 - 0.3 * share));
    }

    fn cube(x: f64) -> f64 {
        x * x * x
    }

    fn near(value: f64, expected: f64, within: f64) {
        assert!((value - expected).abs() <= within, "{value}, not {expected}");
    }

    #[test]
    fn a_loss_of_all_is_a_loss_of_one_flow() {
        let mut flow = of(1_000.0);
        lose(&mut flow, 1.0);
        near(flow.window, 700.0, 1e-9);
        // RFC 9438, 4.2: the window grows within one RTT to the value that the curve
        // `C (t - K)^3 + W_max` has one RTT later. So the window may exceed the curve by the growth
        // of one RTT.
        for second in 1..=14 {
            let t = f64::from(second);
            let window = run(&mut flow, 1.0);
            near(window, 0.4 * cube(t - K) + 1_000.0, 0.4 * 3.0 * (t - K) * (t - K) * 0.1 + 0.5);
        }
    }

    #[test]
    fn paths_that_lose_together_are_one_flow_in_whatever_order() {
        let mut whole = of(1_000.0);
        lose(&mut whole, 1.0);
        let mut parts = of(1_000.0);
        parts.lose(1_000.0, 0.25, true);
        parts.follow(925.0);
        // What is left of 750 that have not lost.
        parts.lose(925.0, 1.0, false);
        parts.follow(700.0);
        near(parts.curve.k, whole.curve.k, 1e-9);
        near(parts.curve.w_max, whole.curve.w_max, 1e-9);
        near(parts.curve.prior, whole.curve.prior, 1e-9);
    }

    #[test]
    fn a_part_of_a_loss_goes_back_a_part_of_the_way() {
        let mut flow = of(1_000.0);
        lose(&mut flow, 1.0);
        run(&mut flow, 4.0);
        let before = flow.curve.k - flow.t;
        near(before, K - 4.0, 0.01);
        let window = flow.window;
        lose(&mut flow, 0.1);
        near(flow.window, 0.97 * window, 1e-9);
        // Fast convergence (4.7): the plateau of a whole loss here would be at .85 of the window.
        let whole = libm::cbrt(0.15 * window / 0.4);
        near(flow.curve.k, 0.9 * before + 0.1 * whole, 1e-9);
        // The curve continues from the present window, with K seconds to the plateau.
        let k = flow.curve.k;
        let from = flow.window;
        near(run(&mut flow, k) - from, 0.4 * cube(k), 1.0);
    }

    #[test]
    fn a_small_path_that_loses_often_does_not_hold_a_large_one_back() {
        let (mut alone, mut together) = (of(1_000.0), of(1_000.0));
        lose(&mut alone, 1.0);
        lose(&mut together, 1.0);
        for _ in 0..12 {
            run(&mut alone, 1.0);
            run(&mut together, 1.0);
            lose(&mut together, 0.002);
        }
        // It has itself lost 12 times .06 % of the window.
        near(together.window, alone.window - 0.3 * 0.002 * 12.0 * 1_000.0, 25.0);
    }

    #[test]
    fn reno_s_estimate_is_the_least_where_curves_are_slow() {
        // With 20 packets, the curve alone would go from 14 to 16.3 packets in a second, and reach
        // the plateau in 2.5 s.
        let mut flow = of(20.0);
        lose(&mut flow, 1.0);
        run(&mut flow, 1.0);
        near(flow.window, 14.0 + 10.0 * 0.9 / 1.7, 0.2);
        // 4.3: one packet per RTT beyond cwnd_prior.
        run(&mut flow, 0.2);
        let before = flow.window;
        near(run(&mut flow, 1.0) - before, 10.0, 0.2);
    }

    #[test]
    fn neither_pauses_nor_silence_are_time_to_grow_in() {
        let mut flow = of(1_000.0);
        lose(&mut flow, 1.0);
        run(&mut flow, 2.0);
        let t = flow.t;
        let mut now = flow.seen;
        for _ in 0..100 {
            now += RTT;
            flow.pause(now);
        }
        assert_eq!(flow.t, t);
        let window = flow.window;
        flow.grow(now + Duration::from_secs(100), window, 1.0, RTT);
        near(flow.t - t, 0.1, 1e-9);
    }

    #[test]
    fn what_comes_and_goes_by_other_laws_leaves_what_is_ahead() {
        let mut flow = of(1_000.0);
        lose(&mut flow, 1.0);
        let mut other = flow;
        other.follow(900.0);
        let (a, b) = (run(&mut flow, 3.0) - 700.0, run(&mut other, 3.0) - 900.0);
        near(a, b, 1e-6);
    }

    #[test]
    fn after_a_timeout_the_window_is_the_plateau() {
        let mut flow = of(1_000.0);
        flow.time_out(1_000.0, 1.0);
        flow.follow(0.0);
        flow.follow(700.0);
        near(flow.curve.k, 0.0, 1e-9);
        near(flow.curve.w_max, 700.0, 1e-9);
    }
}
