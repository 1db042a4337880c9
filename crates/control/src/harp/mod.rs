//! Harp's multipath controller for background transfers (Harp, III.A, D, E) as published, and HIR's reading of it.
//!
//! It is what papers' claims are held against. The class `background` is [another law](crate::background).

mod delays;
mod options;

pub use options::{Coupling, DelayRule, Options};

use crate::bundle::{Memento, Paths};
use crate::{Acked, Allowance, Congested, Controller, Opened, ProbeResult, Sent, Trigger, Undo, Wants};
use byway_wire::{Instant, PathId};
use delays::Delays;

/// More than fits any path; keeps sums finite whatever is reported.
const LARGEST_WINDOW: f64 = 1e8;

/// One path of the bundle.
#[derive(Clone, Debug)]
struct Path {
    /// Bytes of a full packet.
    packet: f64,
    /// w_i and M_i, in packets.
    window: f64,
    largest: f64,
    delays: Delays,
    choked: bool,
    /// Packets sent before are of an RTT that has been answered.
    recover: Instant,
    /// w_i and M_i before the latest loss.
    memento: Option<Memento<(f64, f64)>>,
}

impl Path {
    fn new(opened: &Opened, options: &Options) -> Self {
        Self {
            packet: f64::from(opened.packet_size.max(1)),
            window: options.initial,
            largest: options.initial,
            delays: Delays::new(options.delay),
            choked: false,
            recover: opened.now,
            memento: None,
        }
    }

    /// Sets the window after a decrease and begins an epoch. Whether the window has reached its floor.
    fn decrease(&mut self, to: f64, now: Instant, floor: f64) -> bool {
        self.largest = self.largest.max(to).max(floor);
        self.window = to.max(floor);
        self.recover = now;
        to <= floor
    }

    fn unchoke(&mut self, now: Instant) {
        self.choked = false;
        self.window = self.window.clamp(1.0, 2.0);
        self.recover = now;
    }
}

/// Algorithm 1: multiplicative increase on every path by itself, multiplicative decrease by delay, coupled over all.
///
/// A path that decreases to its floor is choked (III.E), unless it is the last one that is not. The paper knows no timeout: it is a loss.
#[derive(Debug)]
pub struct Harp {
    name: &'static str,
    options: Options,
    paths: Paths<Path>,
}

impl Harp {
    /// A bundle without paths, to be called `name`.
    #[must_use]
    pub fn new(name: &'static str, options: Options) -> Self {
        Self { name, options, paths: Paths::default() }
    }

    /// W: the sum of all windows, in packets.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.paths.iter().filter(|(_, path)| !path.choked).map(|(_, path)| path.window).sum()
    }

    /// w_i and M_i of `path`, in packets.
    #[must_use]
    pub fn window(&self, path: PathId) -> Option<(f64, f64)> {
        self.paths.get(path).map(|path| (path.window, path.largest))
    }

    /// Line 9: `w_i <- max(1, w_i - beta (w_i xi + W (1 - xi)))`, with W before the decrease.
    fn on_delay_signal(&mut self, id: PathId, now: Instant) {
        let (total, options) = (self.total(), self.options);
        let Some(path) = self.paths.get_mut(id) else { return };
        let xi = match options.coupling {
            Coupling::Independent => 1.0,
            Coupling::Joint => 0.0,
            // M_i >= w_i > 0.
            Coupling::Adaptive => (path.window / path.largest).clamp(0.0, 1.0),
        };
        let to = path.window - options.beta * (path.window * xi + total * (1.0 - xi));
        if path.decrease(to, now, options.floor) {
            self.choke(id);
        }
    }

    /// Line 12: `w_i <- max(1, w_i - W/2)`.
    fn on_loss(&mut self, id: PathId, congested: &Congested) {
        let (total, floor) = (self.total(), self.options.floor);
        let Some(path) = self.paths.get_mut(id) else { return };
        if congested.sent_at < path.recover {
            if let Some(memento) = &mut path.memento {
                memento.extend(congested, path.packet);
            }
            return;
        }
        path.memento = Some(Memento::new((path.window, path.largest), congested, path.packet));
        if path.decrease(path.window - total / 2.0, congested.now, floor) {
            self.choke(id);
        }
    }

    fn choke(&mut self, id: PathId) {
        let others = self.paths.iter().any(|(other, path)| other != id && !path.choked);
        if self.options.choke
            && others
            && let Some(path) = self.paths.get_mut(id)
        {
            path.choked = true;
        }
    }
}

impl Controller for Harp {
    fn name(&self) -> &'static str {
        self.name
    }

    fn open(&mut self, id: PathId, opened: &Opened) {
        self.paths.insert(id, Path::new(opened, &self.options));
    }

    fn close(&mut self, id: PathId) {
        self.paths.remove(id);
        if self.paths.iter().all(|(_, path)| path.choked) {
            let better = |a: &(PathId, &mut Path), b: &(PathId, &mut Path)| {
                a.1.largest.total_cmp(&b.1.largest).then(b.0.cmp(&a.0))
            };
            if let Some((_, best)) = self.paths.iter_mut().max_by(better) {
                // No packet is in flight on a choked path, so any time will do.
                best.unchoke(Instant::ZERO);
            }
        }
    }

    fn on_sent(&mut self, _: PathId, _: &Sent) {}

    fn on_acked(&mut self, id: PathId, acked: &Acked<'_>) {
        let options = self.options;
        let Some(path) = self.paths.get_mut(id) else { return };
        if path.delays.on_acked(acked, path.window, path.recover) {
            self.on_delay_signal(id, acked.now);
        } else if acked.sent_at >= path.recover {
            // "Further, the window is not incremented within one round-trip time of the previous decrement" (III.A).
            // Line 6: w_i <- w_i + alpha, for each packet acknowledged.
            let packets = acked.bytes as f64 / path.packet;
            path.window = (path.window + options.alpha * packets).min(LARGEST_WINDOW);
            path.largest = path.largest.max(path.window);
        }
    }

    fn on_congested(&mut self, id: PathId, congested: &Congested) {
        match congested.trigger {
            Trigger::Loss | Trigger::Timeout => self.on_loss(id, congested),
            // A mark tells of a queue, as a delay does.
            Trigger::Ce => {
                if self.paths.get(id).is_some_and(|path| congested.sent_at >= path.recover) {
                    self.on_delay_signal(id, congested.now);
                }
            }
        }
    }

    fn on_undo(&mut self, id: PathId, undo: &Undo) {
        let Some(path) = self.paths.get_mut(id) else { return };
        if let Some((window, largest)) = path.memento.as_mut().and_then(|memento| memento.undone(undo)) {
            (path.window, path.largest) = (path.window.max(window), path.largest.max(largest));
            path.memento = None;
        }
    }

    /// III.E: a probe that "does not perceive delay greater than Delta_i" unchokes.
    fn on_probe(&mut self, id: PathId, probe: &ProbeResult) {
        let Some(path) = self.paths.get_mut(id).filter(|path| path.choked) else { return };
        if probe.delay.is_some_and(|delay| path.delays.probe(delay.one_way)) {
            path.unchoke(probe.now);
        }
    }

    fn on_route_change(&mut self, id: PathId, now: Instant) {
        let options = self.options;
        let Some(path) = self.paths.get_mut(id) else { return };
        let opened = Opened { now, proxied: false, packet_size: path.packet as u32, rtt: None };
        let window = path.window.clamp(options.floor, options.initial);
        *path = Path { window, ..Path::new(&opened, &options) };
    }

    fn allowance(&self, id: PathId) -> Allowance {
        let Some(path) = self.paths.get(id) else { return Allowance::default() };
        let delay_limit = path.delays.one_way_limit();
        if path.choked {
            return Allowance { choked: true, delay_limit, ..Allowance::default() };
        }
        let window = ((path.window * path.packet) as u64).max(1);
        Allowance { window, rate: None, choked: false, delay_limit }
    }

    /// Harp sends over all paths it is given (III.G).
    fn wants(&self) -> Wants<'_> {
        Wants { open: usize::MAX, ..Wants::default() }
    }
}
