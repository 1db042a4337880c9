//! NewReno, the controller that others are compared with: RFC 5681, with one reduction of the
//! window per loss event (RFC 6582). Duplicate ACKs do not inflate the window, because a path of
//! byway knows how many bytes are in flight.

use crate::bundle::uncoupled::PathController;
use crate::bundle::window::{Decrease, GrowthPhase, Window};
use crate::{Acked, Allowance, Congested, Opened, Undo};
use byway_wire::Instant;

/// The parts of NewReno that the RFCs leave open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewRenoOptions {
    /// Initial window in packets. RFC 6928: 10. RFC 5681: 2 to 4.
    pub initial: f64,
    /// L of RFC 3465: the most packets by which one ACK grows the window in slow start. The RFC
    /// says 2; byway's receivers acknowledge up to 10 packets with one ACK. Pacing prevents bursts.
    pub limit: f64,
}

impl NewRenoOptions {
    /// For byway's own receivers.
    pub const BYWAY: Self = Self { initial: 10.0, limit: 10.0 };
    /// For a TCP receiver, as the simulator's reference hosts use them.
    pub const TCP: Self = Self { initial: 2.0, limit: 2.0 };
}

/// The congestion window of one path by NewReno.
#[derive(Clone, Debug)]
pub struct NewReno {
    options: NewRenoOptions,
    window: Window,
}

impl NewReno {
    /// A path of byway, with the recommended options.
    #[must_use]
    pub fn new(opened: &Opened) -> Self {
        Self::with_options(opened, NewRenoOptions::BYWAY)
    }

    /// Makes a path with these options.
    #[must_use]
    pub fn with_options(opened: &Opened, options: NewRenoOptions) -> Self {
        Self { options, window: Window::new(opened, options.initial) }
    }

    /// Whether the window is below the slow start threshold.
    #[must_use]
    pub fn in_slow_start(&self) -> bool {
        self.window.in_slow_start()
    }
}

impl PathController for NewReno {
    fn on_acked(&mut self, acked: &Acked<'_>) {
        let packets = self.window.in_packets(acked.bytes);
        match self.window.on_acked(acked) {
            GrowthPhase::Held => {}
            // RFC 5681, equation 2: `cwnd += min (N, SMSS)`, with RFC 3465's L in place of 1.
            GrowthPhase::SlowStart => self.window.grow_slow_start(packets.min(self.options.limit)),
            // RFC 5681, 3.1: one SMSS per window of bytes acknowledged.
            GrowthPhase::Avoidance => self.window.grow(packets / self.window.packets()),
        }
    }

    fn on_congested(&mut self, congested: &Congested) {
        self.window.on_congested(congested, Decrease::HALF);
    }

    fn on_undo(&mut self, undo: &Undo) {
        self.window.on_undo(undo);
    }

    fn on_route_change(&mut self, now: Instant) {
        self.window.start_over(now);
    }

    fn on_packet_size(&mut self, bytes: u32) {
        self.window.resize(bytes);
    }

    fn allowance(&self) -> Allowance {
        self.window.allowance()
    }
}
