//! Load aggregation (mPath, 2.3): paths that lose together with the direct one share its bottleneck, and give their load to it.

use super::{MPath, Path};
use alloc::vec::Vec;
use byway_wire::PathId;

impl MPath {
    /// A proxied path has lost: does it share a bottleneck with the direct one?
    pub(super) fn compare_with_direct(&mut self, id: PathId) {
        let Some(direct) = self.direct().and_then(|direct| self.paths.get(direct)).cloned() else { return };
        let Some(path) = self.paths.get_mut(id) else { return };
        if !path.coincides(&direct) {
            path.coincident = path.coincident.saturating_sub(1);
            return;
        }
        path.coincident = path.coincident.saturating_add(1);
        // w0 before the direct path decreased; it has, since its interval is of a loss.
        self.aggregate(&[id], direct.window / self.options.keep);
    }

    /// The direct path has lost: which proxied paths lost at the same time?
    pub(super) fn compare_all(&mut self, direct_id: PathId) {
        let Some(direct) = self.paths.get(direct_id).cloned() else { return };
        let mut shared = Vec::new();
        for (id, path) in self.paths.iter_mut().filter(|(_, path)| path.proxied && !path.dropped) {
            if path.coincides(&direct) {
                path.coincident = path.coincident.saturating_add(1);
                shared.push(id);
            }
        }
        self.aggregate(&shared, direct.window / self.options.keep);
    }

    /// Load aggregation: each of `shared` (decreased already, w_j/2 is left) gives `min(alpha, w0 / sum w_j)` of what is left
    /// to the direct path. The sum is of windows before the decrease, so all together move at most w0/2: what the direct path has lost,
    /// "the upper bound guarantees that the congestion window of the direct path will not be more than w0".
    fn aggregate(&mut self, shared: &[PathId], direct_window: f64) {
        let evidence = self.options.evidence;
        let convinced = |path: &Path| path.coincident >= evidence;
        let left: f64 = shared
            .iter()
            .filter_map(|id| self.paths.get(*id))
            .filter(|p| convinced(p))
            .map(|p| p.window)
            .sum();
        if left <= 0.0 {
            return;
        }
        let fraction = self.options.alpha.min((1.0 - self.options.keep) * direct_window / left);
        let mut moved = 0.0;
        for id in shared {
            if let Some(path) = self.paths.get_mut(*id).filter(|path| convinced(path)) {
                moved += path.window * fraction;
                path.window *= 1.0 - fraction;
                path.threshold = path.threshold.min(path.window);
                // Each pair of losses counts once.
                path.interval = None;
            }
        }
        if let Some(direct) = self.direct().and_then(|id| self.paths.get_mut(id)) {
            direct.grow(moved);
            direct.threshold = direct.threshold.min(direct.window);
        }
    }
}
