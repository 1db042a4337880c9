//! Algorithm 1 (Harp, III.A) by the paper's line numbers, for all paths together. Choking is from
//! III.E. Windows are in packets.

use super::Harp;
use super::harp_path::HarpPath;
use super::options::{Coupling, HarpOptions};
use byway_wire::{Instant, PathId};

impl Harp {
    /// Line 3: `W = sum of w_i`, in packets.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.paths.iter().filter(|(_, path)| !path.choked).map(|(_, path)| path.window).sum()
    }

    /// Lines 8 and 9: `w_i <- max(1, w_i - beta * (w_i * xi + W * (1 - xi)))`.
    pub(super) fn on_delay_signal(&mut self, id: PathId, now: Instant) {
        let (total, beta) = (self.total(), self.options.beta);
        let Some(path) = self.paths.get(id) else { return };
        let xi = match self.options.coupling {
            Coupling::Independent => 1.0,
            Coupling::Joint => 0.0,
            // M_i >= w_i > 0.
            Coupling::Adaptive => (path.window / path.largest).clamp(0.0, 1.0),
        };
        self.decrease(id, path.window - beta * (path.window * xi + total * (1.0 - xi)), now);
    }

    /// Lines 11 and 12: `w_i <- max(1, w_i - W / 2)`.
    pub(super) fn on_loss_signal(&mut self, id: PathId, now: Instant) {
        let Some(path) = self.paths.get(id) else { return };
        self.decrease(id, path.window - self.total() / 2.0, now);
    }

    /// Sets the window to `to` packets, but at least to `floor`. With the option `choke`, a path
    /// that falls to `floor` is choked: it sends only probes (Harp, III.E).
    fn decrease(&mut self, id: PathId, to: f64, now: Instant) {
        let HarpOptions { floor, choke, .. } = self.options;
        let others = self.paths.iter().any(|(other, path)| other != id && !path.choked);
        let Some(path) = self.paths.get_mut(id) else { return };
        path.largest = path.largest.max(to).max(floor);
        path.window = to.max(floor);
        // Packets sent before `now` cause no further decrease: windows are "decremented only once
        // per round-trip time" (III.A).
        path.recover = now;
        // The last path that carries data is never choked. The paper leaves that open.
        if to <= floor && choke && others {
            (path.choked, path.reached) = (true, !path.is_silent());
        }
    }

    /// Opens the choked path with the largest M_i, if all paths are choked.
    pub(super) fn unchoke_one(&mut self) {
        if self.paths.iter().any(|(_, path)| !path.choked) {
            return;
        }
        if let Some(best) = self.best_choked() {
            // No packet is in flight on a choked path, so any time will do.
            best.unchoke(Instant::ZERO);
        }
    }

    /// Opens a choked path whose probes come back, if no path that carries data answers any more.
    /// It takes the place of the path `id`, which is choked. The paper does not mention paths that
    /// die.
    pub(super) fn replace_silent(&mut self, id: PathId, now: Instant) {
        if self.paths.iter().any(|(_, path)| !path.choked && !path.is_silent()) {
            return;
        }
        let Some(best) = self.best_choked().filter(|path| path.reached) else { return };
        best.unchoke(now);
        if let Some(path) = self.paths.get_mut(id) {
            (path.choked, path.reached) = (true, false);
        }
    }

    /// Returns the choked path with the largest M_i. Paths whose probes are answered come first.
    fn best_choked(&mut self) -> Option<&mut HarpPath> {
        let choked = self.paths.iter_mut().filter(|(_, path)| path.choked);
        let best = choked.max_by(|(a, one), (b, other)| {
            let by_window = one.largest.total_cmp(&other.largest);
            one.reached.cmp(&other.reached).then(by_window).then(b.cmp(a))
        });
        best.map(|(_, path)| path)
    }
}
