//! The congestion controller `my-law`. As it stands, it adds a packet to the window of each path in
//! each round trip, and halves the window when packets are lost.

use byway_control::catalogue::OwnController;
use byway_control::{Acked, Allowance, Congested, Opened, PathController, Undo, UncoupledPaths};
use byway_wire::Instant;

/// How the controller is named and made.
pub const CONTROLLER: OwnController = OwnController {
    name: "my-law",
    about: "a packet more each round trip, half of the window at a loss",
    make: |_seed| Box::new(UncoupledPaths::new("my-law", Path::new)),
};

/// The law on one path. Sizes are in bytes.
#[derive(Debug)]
struct Path {
    packet: f64,
    window: f64,
    /// When the window was last halved.
    halved: Instant,
}

impl Path {
    fn new(opened: &Opened) -> Self {
        let packet = f64::from(opened.packet_size.max(1));
        Self { packet, window: 10.0 * packet, halved: opened.now }
    }
}

impl PathController for Path {
    fn on_acked(&mut self, acked: &Acked<'_>) {
        if !acked.app_limited {
            let windows = (acked.bytes as f64 / self.window).min(1.0);
            self.window += self.packet * windows;
        }
    }

    fn on_congested(&mut self, congested: &Congested) {
        // Packets that were sent before the last cut tell nothing new.
        if congested.sent_at > self.halved {
            self.window = (self.window / 2.0).max(2.0 * self.packet);
            self.halved = congested.now;
        }
    }

    fn on_undo(&mut self, _undo: &Undo) {}

    fn on_route_change(&mut self, now: Instant) {
        (self.window, self.halved) = (10.0 * self.packet, now);
    }

    fn on_packet_size(&mut self, bytes: u32) {
        self.packet = f64::from(bytes.max(1));
    }

    fn allowance(&self) -> Allowance {
        Allowance { window: self.window as u64, ..Allowance::default() }
    }
}
