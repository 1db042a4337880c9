//! Algorithm 1 (Harp, III.A) by the paper's line numbers. Choking is from III.E. Windows are in
//! packets. Events count in bytes.

use super::delay::Delays;
use super::{Coupling, Harp, HarpOptions};
use crate::Opened;
use crate::bundle::UndoState;
use byway_wire::{Instant, PathId};

/// More than fits any path; keeps sums finite whatever is reported.
const MAX_WINDOW_PACKETS: f64 = 1e8;
/// The largest window of a path that was choked, in packets.
const MAX_CHOKED_WINDOW_PACKETS: f64 = 2.0;
/// Timeouts in a row after which a path counts as one that does not answer.
const SILENT_TIMEOUTS: u32 = 2;

/// The state of one path (lines 1 and 2 of the algorithm).
#[derive(Clone, Debug)]
pub(super) struct HarpPath {
    /// Bytes of a full packet.
    pub packet: f64,
    /// The window in packets, w_i in the paper.
    pub window: f64,
    /// The largest window in packets, M_i in the paper.
    pub largest: f64,
    pub delays: Delays,
    pub choked: bool,
    /// Timeouts in a row.
    pub timeouts: u32,
    /// Whether the last probe of the choked path came back.
    pub reached: bool,
    /// Packets sent before are of an RTT that has been answered.
    pub recover: Instant,
    /// w_i and M_i before the latest loss.
    pub undo_state: Option<UndoState<(f64, f64)>>,
}

impl HarpPath {
    pub fn new(opened: &Opened, options: &HarpOptions) -> Self {
        Self {
            packet: f64::from(opened.packet_size.max(1)),
            window: options.initial,
            largest: options.initial,
            delays: Delays::new(options.delay),
            choked: false,
            timeouts: 0,
            reached: false,
            recover: opened.now,
            undo_state: None,
        }
    }

    /// Harp's Algorithm 1, lines 5 and 6: `w_i <- w_i + alpha`, for each packet acknowledged.
    ///
    /// The caller leaves out packets sent before the latest decrease, because "the window is not
    /// incremented within one round-trip time" after a decrease (III.A).
    pub fn on_ack(&mut self, bytes: u64, options: &HarpOptions) {
        let packets = bytes as f64 / self.packet;
        self.window = (self.window + options.alpha * packets).min(MAX_WINDOW_PACKETS);
        self.largest = self.largest.max(self.window);
    }

    /// Opens the choked path again. Its M_i stays.
    pub fn unchoke(&mut self, now: Instant) {
        (self.choked, self.timeouts) = (false, 0);
        self.window = self.window.clamp(1.0, MAX_CHOKED_WINDOW_PACKETS);
        self.recover = now;
    }

    const fn is_silent(&self) -> bool {
        self.timeouts >= SILENT_TIMEOUTS
    }
}

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

    /// The choked path with the largest M_i. Paths whose probes come back go before the others.
    fn best_choked(&mut self) -> Option<&mut HarpPath> {
        let choked = self.paths.iter_mut().filter(|(_, path)| path.choked);
        let best = choked.max_by(|(a, one), (b, other)| {
            let by_window = one.largest.total_cmp(&other.largest);
            one.reached.cmp(&other.reached).then(by_window).then(b.cmp(a))
        });
        best.map(|(_, path)| path)
    }
}
