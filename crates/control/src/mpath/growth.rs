//! How the growth of all paths together is divided among them (mPath, 2.3, eq. 1 and 3).

use super::{Growth, Increase, MPath, Path};
use byway_wire::{Duration, Instant};

impl MPath {
    /// Adds up the growth that `packets` acknowledged packets earn, and hands it out to the paths
    /// in whole packets. ACKs of as many packets as the sum of all windows (one RTT) earn the
    /// growth of one RTT.
    pub(super) fn earn(&mut self, packets: f64, now: Instant, rtt: Duration) {
        self.earned += match self.options.increase {
            // An ACK stands for a few RTTs of packets at most. What exceeds four windows does not
            // count.
            Increase::Reno => (packets / self.total.max(1.0)).min(4.0),
            Increase::Cubic(_) => self.flow.grow(now, self.avoiding + self.earned, packets, rtt),
        };
        // Growth is handed out in whole packets: a grant looks at all paths, and so is not needed
        // at each ACK.
        let grants = libm::floor(self.earned);
        if grants < 1.0 {
            return;
        }
        self.earned -= grants;
        match self.options.growth {
            Growth::Lot => (0..grants as u32).for_each(|_| self.grant_by_lot(now, rtt)),
            Growth::Shares => self.grant_in_shares(grants, now, rtt),
        }
        self.sum_up();
    }

    /// The probability that a unit of growth goes to a proxied path: `(w0/W) rho + (W - w0)/W`
    /// (mPath, eq. 1). `w0` is the direct path's window. `W` is the sum of all windows. `rho` is
    /// the share of proxied paths that have not met loss.
    #[must_use]
    pub fn probability(&self) -> f64 {
        let (mut direct, mut total, mut proxied, mut clean) = (0.0, 0.0, 0.0, 0.0);
        for (_, path) in self.alive() {
            total += path.window;
            if path.proxied {
                proxied += 1.0;
                clean += f64::from(u8::from(!path.met_congestion));
            } else {
                direct += path.window;
            }
        }
        // Without proxied paths rho is undefined, and P must be 0. Without a direct path P is 1 by
        // the formula.
        if proxied == 0.0 || total <= 0.0 {
            0.0
        } else {
            direct / total * (clean / proxied) + (total - direct) / total
        }
    }

    fn grant_by_lot(&mut self, now: Instant, rtt: Duration) {
        let to_proxied = self.random.unit() < self.probability();
        // "an active path that has recently received an ACK": within the last RTT.
        let recent = |path: &Path| {
            path.proxied && path.acked_at.is_some_and(|at| now.since(at) <= rtt) && !path.in_slow_start()
        };
        let chosen = match self.direct() {
            Some(direct) if !to_proxied => Some(direct),
            _ => {
                // "Paths that have never encountered loss are given higher priority": each alike.
                // Else by window.
                let clean = self.alive().any(|(_, path)| recent(path) && !path.met_congestion);
                let weight = |path: &Path| match (recent(path), clean) {
                    (false, _) => 0.0,
                    (true, true) => f64::from(u8::from(!path.met_congestion)),
                    (true, false) => path.window,
                };
                let sum: f64 = self.alive().map(|(_, path)| weight(path)).sum();
                let mut lot = self.random.unit() * sum;
                self.paths.iter().filter(|(_, path)| !path.dropped && weight(path) > 0.0).find_map(
                    |(id, path)| {
                        lot -= weight(path);
                        (lot < 0.0).then_some(id)
                    },
                )
            }
        };
        if let Some(path) = chosen.and_then(|id| self.paths.get_mut(id))
            && !path.in_slow_start()
        {
            path.grow(1.0);
        }
    }

    /// Eq. 3 of mPath: path i, with the window w_i, grows by the part `w_i/W` of `packets`. W is
    /// the sum of the windows of paths outside slow start with an ACK in the last two RTTs.
    fn grant_in_shares(&mut self, packets: f64, now: Instant, rtt: Duration) {
        let member = |path: &Path| {
            !path.dropped
                && !path.in_slow_start()
                && path.acked_at.is_some_and(|at| now.since(at) <= rtt.saturating_mul(2))
        };
        let sum: f64 = self.paths.iter().filter(|(_, path)| member(path)).map(|(_, path)| path.window).sum();
        for (_, path) in self.paths.iter_mut().filter(|(_, path)| member(path)) {
            path.grow(packets * path.window / sum);
        }
    }
}
