//! The law of the class `background`: it fills what is idle on a line, makes way for others, and shares with its own.
//!
//! Each path has a rate of its own. It grows with the square root of itself while no packet waits. It falls in proportion when a queue
//! creeps up, which is the path's own. It steps back without memory from a queue that comes at once, which is somebody's burst. If the
//! queue stands, somebody needs the line, and the rate decays. `docs/background.md` derives the law and tells what it cannot do.
//!
//! | file | what it holds |
//! |---|---|
//! | `constants.rs` | every constant with its unit and reason |
//! | `sense.rs` | what delays tell: waits, jitter, growth |
//! | `law.rs` | one path: delay, queue, reaction |
//! | `losses.rs` | whether losses are more than chance |
//! | here | the bundle: coupling and choking |

mod constants;
mod law;
mod losses;
mod sense;
#[cfg(test)]
mod tests;

use crate::bundle::Paths;
use crate::{Acked, Allowance, Congested, Controller, Opened, ProbeResult, Sent, Trigger, Undo, Wants};
use byway_wire::{Instant, PathId};
use law::Path;

/// The class `background` over a bundle of paths.
///
/// - **Coupling**: the bundle grows as one flow, each path by its part of the sum (Harp's joint growth, III.A). Packets that wait on several
///   paths at once count together, and all of these paths lower their rates: they seem to share the bottleneck. A path that waits
///   alone answers alone.
/// - **Choking** (Harp, III.E): a path at its least rate that still meets a queue carries only probes until one meets none. So does a path
///   with two timeouts in a row. One path always stays open.
#[derive(Debug)]
pub struct Background {
    name: &'static str,
    paths: Paths<Path>,
}

impl Background {
    /// A bundle without paths, to be called `name`.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self { name, paths: Paths::default() }
    }

    /// The part of the bundle's rate that a path has.
    fn share(&self, id: PathId) -> f64 {
        let open = self.paths.iter().filter(|(_, path)| !path.choked);
        let total: f64 = open.map(|(_, path)| path.level).sum();
        self.paths.get(id).map_or(1.0, |path| if total > 0.0 { (path.level / total).min(1.0) } else { 1.0 })
    }

    /// Packets in a row that wait on other paths.
    fn company(&self, id: PathId) -> u32 {
        let others = self.paths.iter().filter(|(other, _)| *other != id);
        others.fold(0, |sum, (_, path)| sum.saturating_add(path.waits()))
    }

    /// Chokes `id` unless it is the last that is open. A last one that is silent gives way to one whose probes come back.
    fn choke(&mut self, id: PathId, now: Instant) {
        let silent = self.paths.get(id).is_some_and(|path| path.timeouts >= 2);
        if !self.paths.iter().any(|(other, path)| other != id && !path.choked) {
            let Some(best) = self.best_choked().filter(|path| silent && path.reached) else { return };
            best.unchoke(now);
        }
        if let Some(path) = self.paths.get_mut(id) {
            (path.choked, path.reached) = (true, !silent);
        }
    }

    /// The choked path with the greatest rate, of those whose probes come back if there are any.
    fn best_choked(&mut self) -> Option<&mut Path> {
        let choked = self.paths.iter_mut().map(|(_, path)| path).filter(|path| path.choked);
        choked.max_by(|a, b| a.reached.cmp(&b.reached).then(a.level.total_cmp(&b.level)))
    }
}

impl Controller for Background {
    fn name(&self) -> &'static str {
        self.name
    }

    fn open(&mut self, id: PathId, opened: &Opened) {
        self.paths.insert(id, Path::new(opened));
    }

    fn close(&mut self, id: PathId) {
        self.paths.remove(id);
        if self.paths.iter().all(|(_, path)| path.choked)
            && let Some(best) = self.best_choked()
        {
            // No packet is in flight on a choked path, so any time will do.
            best.unchoke(Instant::ZERO);
        }
    }

    fn on_sent(&mut self, _: PathId, _: &Sent) {}

    fn on_acked(&mut self, id: PathId, acked: &Acked<'_>) {
        let (share, company) = (self.share(id), self.company(id));
        let Some(path) = self.paths.get_mut(id) else { return };
        let own = path.on_acked(acked, share, company);
        let futile = path.is_futile();
        if own {
            let waiting = self.paths.iter_mut().filter(|(other, path)| *other != id && path.waits() > 0);
            waiting.for_each(|(_, path)| path.answer(acked.now, 0));
        }
        if futile {
            self.choke(id, acked.now);
        }
    }

    fn on_congested(&mut self, id: PathId, congested: &Congested) {
        let Some(path) = self.paths.get_mut(id) else { return };
        if congested.trigger != Trigger::Timeout {
            path.on_congested(congested);
            return;
        }
        path.on_timeout(congested);
        if path.timeouts >= 2 {
            self.choke(id, congested.now);
        }
    }

    fn on_undo(&mut self, id: PathId, undo: &Undo) {
        if let Some(path) = self.paths.get_mut(id) {
            path.on_undo(undo);
        }
    }

    fn on_probe(&mut self, id: PathId, probe: &ProbeResult) {
        let Some(path) = self.paths.get_mut(id).filter(|path| path.choked) else { return };
        path.reached = probe.delay.is_some() || probe.rtt.is_some();
        if path.is_free(probe.delay, probe.rtt, probe.now) {
            path.unchoke(probe.now);
        }
    }

    fn on_route_change(&mut self, id: PathId, now: Instant) {
        if let Some(path) = self.paths.get_mut(id) {
            path.start_over(now);
        }
    }

    fn allowance(&self, id: PathId) -> Allowance {
        self.paths.get(id).map(Path::allowance).unwrap_or_default()
    }

    /// It sends over all paths it is given (Harp, III.G).
    fn wants(&self) -> Wants<'_> {
        Wants { open: usize::MAX, ..Wants::default() }
    }
}
