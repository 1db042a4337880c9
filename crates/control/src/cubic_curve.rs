//! The growth of a CUBIC window: the window of one path, or the sum of the windows of several
//! paths. Windows are in packets, times in seconds. Section numbers are those of RFC 9438.

/// C and beta_cubic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// C in packets per cubic second. RFC 9438, 5.1: SHOULD be 0.4.
    pub c: f64,
    /// beta_cubic, the share of the window that a loss leaves. 4.6: SHOULD be 0.7.
    pub beta: f64,
}

impl Shape {
    /// The parameters that RFC 9438 recommends.
    pub const RFC9438: Self = Self { c: 0.4, beta: 0.7 };

    /// RFC 9438, 4.2, equation 2: `K = cbrt((W_max - cwnd_epoch) / C)`.
    pub(crate) fn time_to(self, w_max: f64, window: f64) -> f64 {
        libm::cbrt((w_max - window) / self.c)
    }

    /// RFC 9438, 4.7: W_max after a congestion event at `window` packets; `last` is the W_max
    /// before. With `fast_convergence`, a `window` below `last` sets W_max below `window`, to leave
    /// room for another flow.
    pub(crate) fn plateau(self, window: f64, last: f64, fast_convergence: bool) -> f64 {
        if window < last && fast_convergence { window * (1.0 + self.beta) / 2.0 } else { window }
    }

    /// RFC 9438, 4.3: alpha_cubic, the packets per RTT by which W_est (the estimate of Reno's
    /// window) grows. W_est falls to the part `beta` at a loss. With this alpha_cubic, its mean is
    /// still the mean of Reno's window.
    fn alpha(self) -> f64 {
        3.0 * (1.0 - self.beta) / (1.0 + self.beta)
    }
}

/// The window's growth curve since the last congestion event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Curve {
    /// W_max in packets: the window where the last congestion event happened, and the plateau.
    pub w_max: f64,
    /// cwnd_prior in packets: the window when ssthresh was set last.
    pub prior: f64,
    /// K in seconds: when the curve reaches W_max.
    pub k: f64,
    /// W_est in packets: the window that Reno would have.
    pub w_est: f64,
}

impl Curve {
    /// RFC 9438, 4.2, equation 1: `W_cubic(t) = C * (t - K)^3 + W_max`.
    fn at(&self, t: f64, c: f64) -> f64 {
        let from_plateau = t - self.k;
        c * from_plateau * from_plateau * from_plateau + self.w_max
    }

    /// By how many packets the window of `cwnd` packets grows at an ACK. `windows`: the number of
    /// packets that the ACK acknowledges, divided by `cwnd`. `t` (time since congestion avoidance
    /// began) and `rtt` (RTT of the path) are in seconds.
    pub fn growth(&mut self, shape: Shape, t: f64, rtt: f64, cwnd: f64, windows: f64) -> f64 {
        let c = shape.c;
        // 4.2: `target = W_cubic(t + RTT)`, not below cwnd and not above 1.5 cwnd.
        let target = self.at(t + rtt, c).clamp(cwnd, 1.5 * cwnd);
        // 4.3: alpha_cubic, and 1 once W_est has reached cwnd_prior.
        let alpha = if self.w_est >= self.prior { 1.0 } else { shape.alpha() };
        // 4.3, equation 4: `W_est += alpha_cubic * segments_acked / cwnd`.
        self.w_est += alpha * windows;
        if self.at(t, c) < self.w_est {
            // RFC 9438, 4.3, the Reno-friendly region: cwnd becomes W_est, the window that Reno
            // would have, unless cwnd is larger already.
            (self.w_est - cwnd).max(0.0)
        } else {
            // RFC 9438, 4.4 and 4.5: `cwnd += (target - cwnd) / cwnd` for each packet acknowledged.
            // If one ACK acknowledges more than a window, cwnd still grows no further than to
            // `target`.
            (target - cwnd) * windows.min(1.0)
        }
    }
}
