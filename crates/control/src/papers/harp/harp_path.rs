//! One path of Algorithm 1 (Harp, III.A). Windows are in packets. Events count in bytes.

use super::delay::Delays;
use super::options::HarpOptions;
use crate::Opened;
use crate::bundle::UndoState;
use byway_wire::Instant;

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

    /// Sets the size of a full packet. The windows keep their size in bytes.
    pub fn resize(&mut self, bytes: u32) {
        let bytes = f64::from(bytes.max(1));
        let factor = self.packet / bytes;
        self.packet = bytes;
        self.window *= factor;
        self.largest *= factor;
        self.undo_state = None;
    }

    /// Opens the choked path again. Its M_i stays.
    pub fn unchoke(&mut self, now: Instant) {
        (self.choked, self.timeouts) = (false, 0);
        self.window = self.window.clamp(1.0, MAX_CHOKED_WINDOW_PACKETS);
        self.recover = now;
    }

    /// Whether the path does not answer any more.
    pub const fn is_silent(&self) -> bool {
        self.timeouts >= SILENT_TIMEOUTS
    }
}
