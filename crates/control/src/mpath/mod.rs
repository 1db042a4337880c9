//! mPath's multipath AIMD with load aggregation (mPath, 2.3). One preset follows the paper to the
//! letter, another is for production.

mod aggregate_flow;
mod aggregation;
mod growth;
mod options;
mod path;
mod trials;

pub use options::{Growth, Increase, MPathOptions};

use crate::bundle::{PathLimit, Paths, Rate};
use crate::seeded_random::Random;
use crate::{
    Acked, Allowance, Congested, Controller, Opened, PathDemand, ProbeResult, Sent, Shape, Trigger, Undo,
};
use aggregate_flow::AggregateFlow;
use alloc::vec::Vec;
use byway_wire::{Instant, PathId};
use path::Path;
use trials::Trials;

/// A proxied path whose window falls below this number of packets after a decrease is dropped. The
/// paper says "reduced to zero", which halving never reaches.
const MIN_WINDOW: f64 = 0.5;
/// The share of the proxied paths' mean rate below which a path is dropped for good at a timeout.
/// The rates are over the whole lifetime.
const SIGNIFICANT_RATE_SHARE: f64 = 0.25;

/// Why a proxied path is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dropping {
    /// The path timed out, or had too many losses. It may be used again.
    ForNow,
    /// The path shares the direct path's bottleneck: load aggregation took its whole window.
    Shares,
    /// The path is dropped for good, because it carried too little in its whole life.
    ForGood,
}

/// mPath: all paths together grow as one TCP flow, and a path that loses packets gives up part of
/// its window. The load (window) of a proxied path that loses together with the direct path moves
/// to the direct path.
#[derive(Debug)]
pub struct MPath {
    name: &'static str,
    options: MPathOptions,
    paths: Paths<Path>,
    /// W in packets: the sum of all windows. It is kept up to date, so that the cost of an ACK does
    /// not depend on the number of paths.
    total: f64,
    /// The part of W on paths that are not in slow start.
    avoiding: f64,
    /// The flow that the paths outside slow start form together, for growth by CUBIC.
    flow: AggregateFlow,
    /// When the bundle's latest loss event began. A path that loses packets sent before this time
    /// takes part in that event.
    event_at: Instant,
    events: u64,
    /// The number of decreases so far.
    losses: u64,
    /// Growth earned and not yet handed out, in packets.
    earned: f64,
    /// Number of further proxied paths that are requested.
    open: usize,
    drop: Vec<PathId>,
    shares: Vec<PathId>,
    forget: Vec<PathId>,
    trials: Trials,
    /// The limit on proxied paths, as many as raise the throughput; `None` with the paper's rule.
    path_limit: Option<PathLimit>,
    /// Bytes acknowledged on all paths.
    carried: Rate,
    random: Random,
}

impl MPath {
    /// A bundle without paths, to be called `name`.
    #[must_use]
    pub fn new(name: &'static str, options: MPathOptions, seed: u64) -> Self {
        let shape = match options.increase {
            Increase::Cubic(shape) => shape,
            Increase::Reno => Shape::RFC9438,
        };
        Self {
            name,
            options,
            paths: Paths::default(),
            total: 0.0,
            avoiding: 0.0,
            flow: AggregateFlow::new(shape),
            event_at: Instant::ZERO,
            events: 0,
            losses: 0,
            earned: 0.0,
            open: options.open_at_start,
            drop: Vec::new(),
            shares: Vec::new(),
            forget: Vec::new(),
            trials: Trials::new(),
            path_limit: (options.open_at_start > 0).then(PathLimit::new),
            carried: Rate::new(Instant::ZERO),
            random: Random::new(seed),
        }
    }

    /// W: the sum of all windows, in packets.
    #[must_use]
    pub const fn total(&self) -> f64 {
        self.total
    }

    /// Computes both sums again, after any event that is rarer than an ACK.
    fn sum_up(&mut self) {
        let (mut total, mut avoiding) = (0.0, 0.0);
        for (_, path) in self.alive() {
            total += path.window;
            avoiding += if path.in_slow_start() { 0.0 } else { path.window };
        }
        (self.total, self.avoiding) = (total, avoiding);
    }

    /// w_i of `path`, in packets.
    #[must_use]
    pub fn window(&self, path: PathId) -> Option<f64> {
        self.paths.get(path).map(|path| path.window)
    }

    fn alive(&self) -> impl Iterator<Item = (PathId, &Path)> {
        self.paths.iter().filter(|(_, path)| path.takes_part())
    }

    fn direct(&self) -> Option<PathId> {
        self.alive().find(|(_, path)| !path.proxied).map(|(id, _)| id)
    }

    /// Updates `flow`, the CUBIC state of all paths together, by a loss that path `id` reports. The
    /// path's own window decreases afterwards. Returns `flow` from before the update, to be
    /// restored if the loss is spurious.
    fn tell_flow(&mut self, id: PathId, congested: &Congested) -> AggregateFlow {
        let before = self.flow;
        let first = congested.sent_at >= self.event_at || congested.trigger == Trigger::Timeout;
        if first {
            self.events += 1;
            self.event_at = congested.now;
        }
        self.losses += 1;
        let (events, earned) = (self.events, self.earned);
        let (mut window, mut others) = (earned, 0.0);
        for (_, path) in self.alive().filter(|(other, path)| *other != id && !path.in_slow_start()) {
            window += path.window;
            others += if path.event == events { 0.0 } else { path.window };
        }
        if let Some(path) = self.paths.get_mut(id) {
            path.event = events;
            // A loss ends the slow start, so the path is part of the flow now.
            let share = path.window / (path.window + others).max(MIN_WINDOW);
            let window = window + path.window;
            match congested.trigger {
                Trigger::Timeout => self.flow.time_out(window, share),
                Trigger::Loss | Trigger::Ce => self.flow.lose(window, share, first),
            }
        }
        before
    }

    /// Grows the window of a path whose packets were acknowledged.
    fn grow(&mut self, id: PathId, acked: &Acked<'_>) {
        let options = self.options;
        let Some(path) = self.paths.get_mut(id) else { return };
        let packets = acked.bytes as f64 / path.packet;
        if path.in_slow_start() {
            let before = path.window;
            let part = if options.start_everywhere { path.sense_rise(acked) } else { 1.0 };
            path.grow_slow_start(part * packets);
            self.total += path.window - before;
            if !path.in_slow_start() {
                self.sum_up();
            }
        } else {
            self.earn(packets, acked.now, acked.srtt);
        }
    }

    fn on_loss(&mut self, id: PathId, congested: &Congested) {
        let Some(path) = self.paths.get_mut(id) else { return };
        if !path.takes_part() || path.covered(congested.sent_at) {
            path.on_more_lost(congested);
            self.move_interval(id, congested);
            return;
        }
        let flow = self.tell_flow(id, congested);
        let (keep, losses, last) = (self.options.keep, self.losses, self.options.last_lost);
        let Some(path) = self.paths.get_mut(id) else { return };
        let (proxied, before, threshold) = (path.proxied, path.window, path.lowered(keep));
        path.remember(congested, flow, losses);
        path.met_congestion = true;
        let sent_at = if last { congested.sent_at } else { congested.first_sent_at };
        (path.interval, path.moved) = (Some((sent_at, congested.now)), false);
        // "the congestion window of the affected path [is] halved". The direct path keeps at least
        // one packet, since it is never dropped.
        path.window = if proxied { path.window * keep } else { (path.window * keep).max(1.0) };
        path.threshold = path.window.max(threshold);
        if proxied {
            self.compare_with_direct(id);
        } else {
            self.wish_for_more(before, congested.now);
            self.compare_all(id);
        }
        self.drop_smallest(congested.now);
    }

    /// Drops proxied paths that have shrunk away, but never the last path.
    fn drop_smallest(&mut self, now: Instant) {
        let smallest = |(_, path): &(PathId, &Path)| path.proxied && path.window < MIN_WINDOW;
        let small: Vec<PathId> = self.alive().filter(smallest).map(|(id, _)| id).collect();
        for id in small {
            let shares = self.paths.get(id).is_some_and(|path| path.coincident >= self.options.evidence);
            self.drop_path(id, if shares { Dropping::Shares } else { Dropping::ForNow });
            if self.options.start_everywhere {
                self.pause_wishes(now);
            }
        }
    }

    fn drop_path(&mut self, id: PathId, why: Dropping) -> bool {
        if !self.alive().any(|(other, _)| other != id) {
            if let Some(path) = self.paths.get_mut(id) {
                path.window = path.window.max(1.0);
            }
            return false;
        }
        if let Some(path) = self.paths.get_mut(id) {
            path.dropped = true;
            match why {
                Dropping::ForNow => self.drop.push(id),
                Dropping::Shares => self.shares.push(id),
                Dropping::ForGood => self.forget.push(id),
            }
        }
        true
    }

    /// Whether a path carried too little in its whole life. The paper: "If the path's contribution
    /// to the throughput is significantly below average compared to other proxied paths in its
    /// lifetime, it will be marked as unavailable and dropped permanently."
    fn is_insignificant(&self, id: PathId, now: Instant) -> bool {
        let rate = |path: &Path| path.contributed.total / now.since(path.opened_at).as_secs_f64().max(1e-3);
        let others = self.alive().filter(|(other, path)| path.proxied && *other != id);
        let (sum, count) = others.fold((0.0, 0.0), |(sum, count), (_, path)| (sum + rate(path), count + 1.0));
        let is_small = |path: &Path| rate(path) < SIGNIFICANT_RATE_SHARE * sum / count;
        count > 0.0 && self.paths.get(id).is_some_and(is_small)
    }

    /// Answers a timeout. The paper: "The direct path reacts to a timeout by reverting to the
    /// slow-start state. However, when a timeout occurs for a proxied path, we drop it".
    fn on_timeout(&mut self, id: PathId, congested: &Congested) {
        let Some(path) = self.paths.get_mut(id) else { return };
        if !path.takes_part() {
            return;
        }
        let direct = !path.proxied;
        let flow = if path.timeouts == 0 { self.tell_flow(id, congested) } else { self.flow };
        let (keep, losses) = (self.options.keep, self.losses);
        let Some(path) = self.paths.get_mut(id) else { return };
        path.time_out(congested, keep, flow, losses);
        path.met_congestion = true;
        if path.proxied && path.timeouts >= self.options.patience {
            let why =
                if self.is_insignificant(id, congested.now) { Dropping::ForGood } else { Dropping::ForNow };
            if self.drop_path(id, why) && self.options.open_at_start > 0 {
                self.open = self.open.saturating_add(1).min(self.options.open_at_start);
            }
        }
        if direct {
            self.give_back(congested.now);
        }
    }
}

impl Controller for MPath {
    fn name(&self) -> &'static str {
        self.name
    }

    fn asks_once_probed(&self) -> bool {
        self.options.ask_once_probed
    }

    fn open(&mut self, id: PathId, opened: &Opened) {
        self.paths.insert(id, Path::new(opened, &self.options));
        if opened.proxied {
            self.open = self.open.saturating_sub(1);
        }
        self.sum_up();
    }

    fn close(&mut self, id: PathId) {
        self.paths.remove(id);
        self.drop.retain(|dropped| *dropped != id);
        self.shares.retain(|shares| *shares != id);
        self.forget.retain(|forgotten| *forgotten != id);
        if self.alive().next().is_none() {
            // Only paths that were about to be dropped are left, so these paths are kept.
            for (_, path) in self.paths.iter_mut() {
                path.dropped = false;
                path.take_back(Instant::ZERO);
                path.window = path.window.max(1.0);
            }
            self.drop.clear();
            self.shares.clear();
            self.forget.clear();
        }
        self.sum_up();
    }

    fn on_sent(&mut self, _: PathId, _: &Sent) {}

    fn on_acked(&mut self, id: PathId, acked: &Acked<'_>) {
        let options = self.options;
        let Some(path) = self.paths.get_mut(id) else { return };
        path.alive(acked.now);
        path.contributed.add(acked.now, acked.bytes);
        self.carried.add(acked.now, acked.bytes);
        let compares = options.start_everywhere && path.note_delays(acked.delays) && path.proxied;
        if (options.validate && acked.app_limited) || path.answered(acked.sent_at) || !path.takes_part() {
            self.flow.pause(acked.now);
        } else {
            self.grow(id, acked);
        }
        if compares {
            self.compare_queues(id, acked.now);
        }
        self.judge(acked.now);
    }

    fn on_congested(&mut self, id: PathId, congested: &Congested) {
        match congested.trigger {
            Trigger::Loss | Trigger::Ce => self.on_loss(id, congested),
            Trigger::Timeout => self.on_timeout(id, congested),
        }
        self.sum_up();
    }

    fn on_undo(&mut self, id: PathId, undo: &Undo) {
        if let Some(path) = self.paths.get_mut(id) {
            if let Some((before, losses)) = path.on_undo(undo)
                && losses == self.losses
            {
                // RFC 9438, 4.9.2: restores the flow, if no path has lost since.
                self.flow = before;
            }
            self.sum_up();
        }
    }

    /// Ignores probes. Only paths that are about to be closed, or that have lent all their load,
    /// are choked.
    fn on_probe(&mut self, _: PathId, _: &ProbeResult) {}

    fn on_route_change(&mut self, id: PathId, now: Instant) {
        let options = self.options;
        if let Some(path) = self.paths.get_mut(id).filter(|path| !path.dropped) {
            let opened = Opened { now, proxied: path.proxied, packet_size: path.packet as u32, rtt: None };
            let window = path.window;
            *path = Path::new(&opened, &options);
            path.window = path.window.min(window);
            self.sum_up();
            if self.avoiding == 0.0 {
                self.flow = AggregateFlow::new(self.flow.shape());
            }
        }
    }

    fn on_packet_size(&mut self, id: PathId, bytes: u32) {
        if let Some(path) = self.paths.get_mut(id) {
            path.resize(f64::from(bytes.max(1)));
            self.sum_up();
        }
    }

    fn allowance(&self, id: PathId) -> Allowance {
        match self.paths.get(id) {
            Some(path) if path.takes_part() => {
                // A proxied path with a window below one packet still sends one packet at a time.
                // Its next loss drops it.
                let window = libm::ceil(path.window.max(1.0) * path.packet) as u64;
                Allowance { window, ..Allowance::default() }
            }
            Some(_) => Allowance { choked: true, ..Allowance::default() },
            None => Allowance::default(),
        }
    }

    fn wants(&self) -> PathDemand<'_> {
        PathDemand { open: self.open, drop: &self.drop, shares: &self.shares, forget: &self.forget }
    }
}
