//! Coupled algorithms like TCP: every path has a window of its own, whose growth depends on all
//! paths.

use super::paths::Paths;
use super::window::{Decrease, GrowthPhase, Window};
use crate::newreno::NewRenoOptions;
use crate::{Acked, Allowance, Congested, Controller, Opened, PathDemand, ProbeResult, Sent, Undo};
use byway_wire::{Duration, Instant, PathId};
use core::fmt::Debug;

/// The differences between coupled algorithms. All share slow start, recovery, timeouts and undo
/// (see [`Window`]).
pub trait Law: Debug + Send {
    /// The algorithm's state of a path, in addition to its window.
    type Memory: Debug + Default + Send;

    /// A path has been added to `paths`.
    fn opened(&mut self, paths: &mut Paths<CoupledPath<Self::Memory>>, path: PathId) {
        let _ = (paths, path);
    }

    /// A path has been removed from `paths`.
    fn closed(&mut self, paths: &mut Paths<CoupledPath<Self::Memory>>, path: PathId) {
        let _ = (paths, path);
    }

    /// Handles an ACK, before the algorithm decides whether the window may grow.
    fn heard(&mut self, paths: &mut Paths<CoupledPath<Self::Memory>>, path: PathId, acked: &Acked<'_>) {
        let _ = (paths, path, acked);
    }

    /// Packets by which the window of `path` grows for `packets` acknowledged in slow start.
    fn slow_start(&self, paths: &Paths<CoupledPath<Self::Memory>>, path: PathId, packets: f64) -> f64 {
        let _ = (paths, path);
        packets
    }

    /// Packets by which the window of `path` grows for `packets` acknowledged otherwise.
    fn increase(&self, paths: &Paths<CoupledPath<Self::Memory>>, path: PathId, packets: f64) -> f64;

    /// Returns the pacing rate of `path` in bytes per second. `None`: window and RTT pace the path.
    fn rate(&self, paths: &Paths<CoupledPath<Self::Memory>>, path: PathId) -> Option<u64> {
        let _ = (paths, path);
        None
    }

    /// A full packet of a path has another size from now on.
    fn resized(&mut self, paths: &Paths<CoupledPath<Self::Memory>>) {
        let _ = paths;
    }

    /// Runs the work due at `now`, as [`Controller::tick`] does.
    fn tick(&mut self, paths: &mut Paths<CoupledPath<Self::Memory>>, now: Instant) -> Option<Instant> {
        let _ = (paths, now);
        None
    }
}

/// A path of a coupled algorithm.
#[derive(Debug)]
pub struct CoupledPath<M> {
    /// The window of the path.
    pub window: Window,
    /// The smoothed RTT of the path. `None`: there is no sample yet, and the path does not count in
    /// the coupling of the other paths.
    pub rtt: Option<Duration>,
    /// The algorithm's state of the path.
    pub memory: M,
}

impl<M> CoupledPath<M> {
    /// RTT in seconds, at least a microsecond so that rates are finite; `None` if it is not known.
    #[must_use]
    pub fn seconds(&self) -> Option<f64> {
        self.rtt.map(|rtt| rtt.as_secs_f64().max(1e-6))
    }

    /// Window over RTT in packets per second; 0 if the RTT is not known.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.seconds().map_or(0.0, |seconds| self.window.packets() / seconds)
    }
}

/// Lifts a [`Law`] to a [`Controller`].
#[derive(Debug)]
pub struct Coupled<L: Law> {
    name: &'static str,
    law: L,
    options: NewRenoOptions,
    paths: Paths<CoupledPath<L::Memory>>,
}

impl<L: Law> Coupled<L> {
    /// A bundle without paths under `law`, to be called `name`, for byway's own receivers.
    #[must_use]
    pub fn new(name: &'static str, law: L) -> Self {
        Self::with_options(name, law, NewRenoOptions::BYWAY)
    }

    /// A controller with this law, and with other initial windows and slow starts.
    #[must_use]
    pub fn with_options(name: &'static str, law: L, options: NewRenoOptions) -> Self {
        Self { name, law, options, paths: Paths::default() }
    }

    /// The state of all paths, for observation.
    #[must_use]
    pub fn paths(&self) -> &Paths<CoupledPath<L::Memory>> {
        &self.paths
    }

    /// The window of `path` in packets.
    #[must_use]
    pub fn window(&self, path: PathId) -> Option<f64> {
        self.paths.get(path).map(|member| member.window.packets())
    }
}

impl<L: Law> Controller for Coupled<L> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn open(&mut self, path: PathId, opened: &Opened) {
        let window = Window::new(opened, self.options.initial);
        self.paths.insert(path, CoupledPath { window, rtt: opened.rtt, memory: L::Memory::default() });
        self.law.opened(&mut self.paths, path);
    }

    fn close(&mut self, path: PathId) {
        if self.paths.remove(path).is_some() {
            self.law.closed(&mut self.paths, path);
        }
    }

    fn on_sent(&mut self, _: PathId, _: &Sent) {}

    fn on_acked(&mut self, path: PathId, acked: &Acked<'_>) {
        let Some(member) = self.paths.get_mut(path) else { return };
        member.rtt = Some(acked.srtt);
        let packets = member.window.in_packets(acked.bytes);
        self.law.heard(&mut self.paths, path, acked);
        let Some(phase) = self.paths.get_mut(path).map(|member| member.window.on_acked(acked)) else {
            return;
        };
        let grown = match phase {
            GrowthPhase::Held => return,
            GrowthPhase::SlowStart => self.law.slow_start(&self.paths, path, packets.min(self.options.limit)),
            GrowthPhase::Avoidance => self.law.increase(&self.paths, path, packets),
        };
        match (phase, self.paths.get_mut(path)) {
            (GrowthPhase::SlowStart, Some(member)) => member.window.grow_slow_start(grown),
            (_, Some(member)) => member.window.grow(grown),
            (_, None) => {}
        }
    }

    fn on_congested(&mut self, path: PathId, congested: &Congested) {
        if let Some(member) = self.paths.get_mut(path) {
            member.window.on_congested(congested, Decrease::HALF);
        }
    }

    fn on_undo(&mut self, path: PathId, undo: &Undo) {
        if let Some(member) = self.paths.get_mut(path) {
            member.window.on_undo(undo);
        }
    }

    /// Does nothing: this controller chokes no path, so probes do not matter.
    fn on_probe(&mut self, _: PathId, _: &ProbeResult) {}

    fn on_route_change(&mut self, path: PathId, now: Instant) {
        if let Some(member) = self.paths.get_mut(path) {
            member.window.start_over(now);
            member.rtt = None;
            member.memory = L::Memory::default();
            self.law.opened(&mut self.paths, path);
        }
    }

    fn on_packet_size(&mut self, path: PathId, bytes: u32) {
        if let Some(member) = self.paths.get_mut(path) {
            member.window.resize(bytes);
            self.law.resized(&self.paths);
        }
    }

    fn tick(&mut self, now: Instant) -> Option<Instant> {
        self.law.tick(&mut self.paths, now)
    }

    fn allowance(&self, path: PathId) -> Allowance {
        let Some(member) = self.paths.get(path) else { return Allowance::default() };
        Allowance { rate: self.law.rate(&self.paths, path), ..member.window.allowance() }
    }

    fn wants(&self) -> PathDemand<'_> {
        PathDemand { open: usize::MAX, ..PathDemand::default() }
    }
}
