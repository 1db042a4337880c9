//! Harp, a multipath controller for background transfers, as its paper describes it (Harp, III.A,
//! III.D and III.E). One option is the delay rule of the paper HIR (HIR, 7.1).
//!
//! | file | what of the papers it holds |
//! |---|---|
//! | `algorithm.rs`, `harp_path.rs` | Algorithm 1, and choking (III.A, E) |
//! | `delay.rs` | when delays are a signal (III.D) |
//! | `hir.rs` | the mean delay that HIR compares instead (HIR, 7.1) |
//! | `options.rs` | table I, and what the papers leave open |
//!
//! This file connects the algorithm with the events of a path.

mod algorithm;
mod delay;
mod harp_path;
mod hir;
mod options;

pub use options::{Coupling, DelayRule, HarpOptions};

use crate::bundle::{Paths, UndoState};
use crate::{Acked, Allowance, Congested, Controller, Opened, PathDemand, ProbeResult, Sent, Trigger, Undo};
use byway_wire::{Instant, PathId};
use harp_path::HarpPath;

/// Harp's Algorithm 1. Each path grows its window by a constant factor per RTT. When delays signal
/// congestion, the window shrinks by a share of itself, of the sum of all windows, or of a mix of
/// both (`Coupling`).
#[derive(Debug)]
pub struct Harp {
    name: &'static str,
    options: HarpOptions,
    paths: Paths<HarpPath>,
}

impl Harp {
    /// A bundle without paths, to be called `name`.
    #[must_use]
    pub fn new(name: &'static str, options: HarpOptions) -> Self {
        Self { name, options, paths: Paths::default() }
    }

    /// w_i and M_i of `path`, in packets.
    #[must_use]
    pub fn window(&self, path: PathId) -> Option<(f64, f64)> {
        self.paths.get(path).map(|path| (path.window, path.largest))
    }
}

impl Controller for Harp {
    fn name(&self) -> &'static str {
        self.name
    }

    fn yields(&self) -> bool {
        true
    }

    fn open(&mut self, id: PathId, opened: &Opened) {
        self.paths.insert(id, HarpPath::new(opened, &self.options));
    }

    fn close(&mut self, id: PathId) {
        self.paths.remove(id);
        self.unchoke_one();
    }

    fn on_sent(&mut self, _: PathId, _: &Sent) {}

    fn on_acked(&mut self, id: PathId, acked: &Acked<'_>) {
        let Some(path) = self.paths.get_mut(id) else { return };
        path.timeouts = 0;
        if path.delays.on_acked(acked, path.window, path.recover) {
            self.on_delay_signal(id, acked.now);
        } else if acked.sent_at >= path.recover {
            path.on_ack(acked.bytes, &self.options);
        }
    }

    fn on_congested(&mut self, id: PathId, congested: &Congested) {
        let Some(path) = self.paths.get_mut(id) else { return };
        let answered = congested.sent_at < path.recover;
        if congested.trigger == Trigger::Timeout {
            path.timeouts = path.timeouts.saturating_add(1);
        }
        match (congested.trigger, answered) {
            // A mark tells of a queue, as a delay does.
            (Trigger::Ce, false) => self.on_delay_signal(id, congested.now),
            (Trigger::Ce, true) => {}
            // A timeout counts as a loss; the paper does not mention timeouts.
            (Trigger::Loss | Trigger::Timeout, false) => {
                path.undo_state = Some(UndoState::new((path.window, path.largest), congested, path.packet));
                self.on_loss_signal(id, congested.now);
            }
            (Trigger::Loss | Trigger::Timeout, true) => {
                if let Some(undo_state) = &mut path.undo_state {
                    undo_state.extend(congested, path.packet);
                }
            }
        }
        if congested.trigger == Trigger::Timeout {
            self.replace_silent(id, congested.now);
        }
    }

    fn on_undo(&mut self, id: PathId, undo: &Undo) {
        let Some(path) = self.paths.get_mut(id) else { return };
        if let Some((window, largest)) =
            path.undo_state.as_mut().and_then(|undo_state| undo_state.undone(undo))
        {
            (path.window, path.largest) = (path.window.max(window), path.largest.max(largest));
            path.undo_state = None;
        }
    }

    fn on_probe(&mut self, id: PathId, probe: &ProbeResult) {
        let Some(path) = self.paths.get_mut(id).filter(|path| path.choked) else { return };
        path.reached = probe.delay.is_some() || probe.rtt.is_some();
        if probe.delay.is_some_and(|delay| path.delays.probe(delay.one_way)) {
            path.unchoke(probe.now);
        }
    }

    fn on_route_change(&mut self, id: PathId, now: Instant) {
        let options = self.options;
        let Some(path) = self.paths.get_mut(id) else { return };
        let opened = Opened { now, proxied: false, packet_size: path.packet as u32, rtt: None };
        let window = path.window.clamp(options.floor, options.initial);
        *path = HarpPath { window, ..HarpPath::new(&opened, &options) };
    }

    fn on_packet_size(&mut self, id: PathId, bytes: u32) {
        if let Some(path) = self.paths.get_mut(id) {
            path.resize(bytes);
        }
    }

    fn allowance(&self, id: PathId) -> Allowance {
        let Some(path) = self.paths.get(id) else { return Allowance::default() };
        let delay_limit = path.delays.one_way_limit();
        if path.choked {
            return Allowance { choked: true, delay_limit, ..Allowance::default() };
        }
        let window = ((path.window * path.packet) as u64).max(1);
        Allowance { window, delay_limit, ..Allowance::default() }
    }

    /// Opens all paths: Harp sends on every path it is given (III.G).
    fn wants(&self) -> PathDemand<'_> {
        PathDemand { open: usize::MAX, ..PathDemand::default() }
    }
}
