//! The congestion window of one path, by the rules that loss-based algorithms share: slow start,
//! one decrease per loss event, timeouts, and undoing a decrease after a spurious loss. The
//! algorithm itself sets the growth in congestion avoidance.

use super::undo::UndoState;
use crate::{Acked, Allowance, Congested, Opened, Trigger, Undo};
use byway_wire::Instant;

/// The largest window, more than fits any path: it keeps sums finite whatever is reported.
const MAX_WINDOW_PACKETS: f64 = 1e8;

/// The effect of an ACK on the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrowthPhase {
    /// Nothing: the window recovers from a loss, or was not used up.
    Held,
    /// The window grows exponentially.
    SlowStart,
    /// The algorithm determines the growth (congestion avoidance).
    Avoidance,
}

/// The factors by which a decrease reduces the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decrease {
    /// The share of the bytes in flight that is kept.
    pub keep: f64,
    /// The least number of packets that a decrease leaves.
    pub least: f64,
}

impl Decrease {
    /// RFC 5681, equation 4: `ssthresh = max (FlightSize / 2, 2*SMSS)`.
    pub const HALF: Self = Self { keep: 0.5, least: 2.0 };
}

/// A congestion window in packets.
#[derive(Clone, Debug)]
pub struct Window {
    /// Bytes of a full packet.
    packet: f64,
    initial: f64,
    packets: f64,
    threshold: f64,
    /// Losses of packets sent before this time belong to a loss event that was already answered.
    recover: Instant,
    undo_state: Option<UndoState<(f64, f64)>>,
    /// Timeouts since something was acknowledged.
    timeouts: u32,
}

impl Window {
    /// The window of a new path, with `initial` packets, in slow start.
    #[must_use]
    pub fn new(opened: &Opened, initial: f64) -> Self {
        Self {
            packet: f64::from(opened.packet_size.max(1)),
            initial,
            packets: initial,
            threshold: f64::INFINITY,
            recover: opened.now,
            undo_state: None,
            timeouts: 0,
        }
    }

    /// Sets the size of a full packet. Returns the number of new packets in an old one: a window
    /// keeps its size in bytes.
    pub fn resize(&mut self, bytes: u32) -> f64 {
        let bytes = f64::from(bytes.max(1));
        let factor = self.packet / bytes;
        self.packet = bytes;
        self.packets *= factor;
        self.threshold *= factor;
        // The saved window counts packets of the old size. To lose it costs little.
        self.undo_state = None;
        factor
    }

    /// Bytes of a full packet.
    #[must_use]
    pub fn packet(&self) -> f64 {
        self.packet
    }

    /// The window, in packets.
    #[must_use]
    pub fn packets(&self) -> f64 {
        self.packets
    }

    /// The window, in bytes.
    #[must_use]
    pub fn bytes(&self) -> f64 {
        self.packets * self.packet
    }

    /// `bytes` in full packets.
    #[must_use]
    pub fn in_packets(&self, bytes: u64) -> f64 {
        bytes as f64 / self.packet
    }

    /// The slow start threshold, in packets; infinite before the first loss.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Whether the window is below the slow start threshold.
    #[must_use]
    pub fn in_slow_start(&self) -> bool {
        self.packets < self.threshold
    }

    /// Takes an ACK into account. Returns by which rule the window may grow. The window does not
    /// grow if it was not used up (RFC 7661), nor in recovery (RFC 6582).
    pub fn on_acked(&mut self, acked: &Acked<'_>) -> GrowthPhase {
        self.timeouts = 0;
        if acked.app_limited || !self.recovered(acked) {
            GrowthPhase::Held
        } else if self.in_slow_start() {
            GrowthPhase::SlowStart
        } else {
            GrowthPhase::Avoidance
        }
    }

    /// Whether a packet sent after the last decrease is acknowledged.
    #[must_use]
    pub fn recovered(&self, acked: &Acked<'_>) -> bool {
        acked.sent_at >= self.recover
    }

    /// Grows by `packets` in slow start: to the threshold, and one packet beyond it at most.
    pub fn grow_slow_start(&mut self, packets: f64) {
        let room = (self.threshold - self.packets).max(1.0);
        self.grow(packets.min(room));
    }

    /// Grows or shrinks the window by `packets`. At least one packet remains.
    pub fn grow(&mut self, packets: f64) {
        self.packets = (self.packets + packets).clamp(1.0, MAX_WINDOW_PACKETS);
    }

    /// Sets window and slow start threshold, both in packets.
    pub fn set(&mut self, packets: f64, threshold: f64) {
        self.packets = packets.clamp(1.0, MAX_WINDOW_PACKETS);
        self.threshold = threshold;
    }

    /// Answers a loss, a CE mark or a timeout. Returns whether this began a loss event. Packets
    /// sent before the last decrease, and a second timeout in a row, belong to the earlier loss
    /// event.
    pub fn on_congested(&mut self, congested: &Congested, decrease: Decrease) -> bool {
        let timeout = congested.trigger == Trigger::Timeout;
        let answered = if timeout { self.timeouts > 0 } else { congested.sent_at < self.recover };
        match &mut self.undo_state {
            Some(undo_state) if answered => undo_state.extend(congested, self.packet),
            _ => {
                self.undo_state = Some(UndoState::new((self.packets, self.threshold), congested, self.packet))
            }
        }
        if !answered {
            let flight = self.in_packets(congested.in_flight).min(self.packets);
            self.threshold = (flight * decrease.keep).max(decrease.least);
            self.packets = self.threshold;
        }
        if timeout {
            // RFC 5681, 3.1: the loss window is one segment.
            self.timeouts = self.timeouts.saturating_add(1);
            self.packets = 1.0;
        }
        if timeout || !answered {
            self.recover = congested.now;
        }
        !answered
    }

    /// Undoes a decrease if `undo` shows that it was spurious. Returns whether it did, since the
    /// algorithm may have more state to restore.
    pub fn on_undo(&mut self, undo: &Undo) -> bool {
        let Some((packets, threshold)) =
            self.undo_state.as_mut().and_then(|undo_state| undo_state.undone(undo))
        else {
            return false;
        };
        self.packets = self.packets.max(packets);
        self.threshold = threshold;
        self.undo_state = None;
        true
    }

    /// Starts again after a change of the route.
    pub fn start_over(&mut self, now: Instant) {
        self.packets = self.packets.min(self.initial);
        self.threshold = f64::INFINITY;
        self.recover = now;
        self.undo_state = None;
    }

    /// Returns the amount that the path may send.
    #[must_use]
    pub fn allowance(&self) -> Allowance {
        Allowance { window: (self.bytes() as u64).max(1), ..Allowance::default() }
    }
}
