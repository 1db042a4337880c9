//! A single-path algorithm on every path of a bundle, without coupling.

use super::paths::Paths;
use crate::{Acked, Allowance, Congested, Controller, Opened, PathDemand, ProbeResult, Sent, Undo};
use alloc::boxed::Box;
use byway_wire::{Instant, PathId};
use core::fmt::{self, Debug, Formatter};

/// A congestion control for one path, without knowledge of other paths. The events are those of
/// [`Controller`].
pub trait PathController: Debug + Send {
    /// Whether the controller yields as soon as packets wait ([`Controller::yields`]).
    fn yields(&self) -> bool {
        false
    }

    /// A packet that counts as in flight was sent.
    fn on_sent(&mut self, sent: &Sent) {
        let _ = sent;
    }

    /// Packets were acknowledged.
    fn on_acked(&mut self, acked: &Acked<'_>);

    /// Handles congestion: a loss or an ECN mark.
    fn on_congested(&mut self, congested: &Congested);

    /// A loss reported before turned out to be none.
    fn on_undo(&mut self, undo: &Undo);

    /// Handles a change of the route: measurements of the old route are invalid.
    fn on_route_change(&mut self, now: Instant);

    /// A full packet has another size from now on.
    fn on_packet_size(&mut self, bytes: u32);

    /// Returns the amount that the path may send now.
    fn allowance(&self) -> Allowance;
}

/// Makes a [`Controller`] of a [`PathController`]: every path is controlled as if it were alone.
/// Through one bottleneck, `n` paths take as much as `n` connections.
pub struct UncoupledPaths<C> {
    name: &'static str,
    make: Box<dyn Fn(&Opened) -> C + Send>,
    paths: Paths<C>,
}

impl<C: Debug> Debug for UncoupledPaths<C> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Each").field("name", &self.name).field("paths", &self.paths).finish_non_exhaustive()
    }
}

impl<C: PathController> UncoupledPaths<C> {
    /// Makes a bundle whose paths are independent. `make` makes the controller of each path when it
    /// opens.
    #[must_use]
    pub fn new(name: &'static str, make: impl Fn(&Opened) -> C + Send + 'static) -> Self {
        Self { name, make: Box::new(make), paths: Paths::default() }
    }

    /// The algorithm on `path`.
    #[must_use]
    pub fn single(&self, path: PathId) -> Option<&C> {
        self.paths.get(path)
    }
}

impl<C: PathController> Controller for UncoupledPaths<C> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn open(&mut self, path: PathId, opened: &Opened) {
        self.paths.insert(path, (self.make)(opened));
    }

    fn close(&mut self, path: PathId) {
        self.paths.remove(path);
    }

    fn on_sent(&mut self, path: PathId, sent: &Sent) {
        if let Some(single) = self.paths.get_mut(path) {
            single.on_sent(sent);
        }
    }

    fn on_acked(&mut self, path: PathId, acked: &Acked<'_>) {
        if let Some(single) = self.paths.get_mut(path) {
            single.on_acked(acked);
        }
    }

    fn on_congested(&mut self, path: PathId, congested: &Congested) {
        if let Some(single) = self.paths.get_mut(path) {
            single.on_congested(congested);
        }
    }

    fn on_undo(&mut self, path: PathId, undo: &Undo) {
        if let Some(single) = self.paths.get_mut(path) {
            single.on_undo(undo);
        }
    }

    /// Does nothing: this controller chokes no path, so probes do not matter.
    fn on_probe(&mut self, _: PathId, _: &ProbeResult) {}

    fn on_route_change(&mut self, path: PathId, now: Instant) {
        if let Some(single) = self.paths.get_mut(path) {
            single.on_route_change(now);
        }
    }

    fn on_packet_size(&mut self, path: PathId, bytes: u32) {
        if let Some(single) = self.paths.get_mut(path) {
            single.on_packet_size(bytes);
        }
    }

    fn allowance(&self, path: PathId) -> Allowance {
        self.paths.get(path).map(PathController::allowance).unwrap_or_default()
    }

    fn wants(&self) -> PathDemand<'_> {
        PathDemand { open: usize::MAX, ..PathDemand::default() }
    }
}
