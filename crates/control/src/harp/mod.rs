//! Harp's multipath controller for background transfers (Harp, III.A, D, E), literal and fit for use.

mod beside;
mod company;
mod losses;
mod options;
mod path;
mod sense;

pub use options::{Coupling, DelayRule, LossRule, Options};

use crate::bundle::Paths;
use crate::random::Random;
use crate::{Acked, Allowance, Congested, Controller, Opened, ProbeResult, Sent, Trigger, Undo, Wants};
use byway_wire::{Duration, Instant, PathId};
use path::{Loss, Path};

/// A base that nothing confirmed for so long is looked for by a drain. Each path adds up to a tenth of its own, so that
/// the paths of a bundle, and bundles, do not drain in step.
const REFRESH: Duration = Duration::from_secs(10);
/// Between the drains of two paths.
const BETWEEN_DRAINS: Duration = Duration::from_millis(100);

/// Harp: multiplicative increase on every path by itself, multiplicative decrease by delay, coupled over all.
///
/// The literal presets are Algorithm 1. Those for production keep its increase, its decrease by delay and its coupling,
/// and differ in six things.
/// - **Threshold**: 5 ms over the base, or the time of three packets on a slow line; and beyond the jitter of the line.
/// - **Start**: twice per RTT until the first delay signal, then the window that would have delivered what was
///   delivered. After six RTTs without a queue growth doubles, up to a quarter per RTT, so that what others leave is
///   found within seconds.
/// - **Base**: see [`Base`](crate::detector::Base); paths drain in turn, one at a time. Where delays leap as no queue does
///   ([`Leap`](crate::detector::Leap)), the route got longer: the window is what it was before.
/// - **Loss** is judged by the delays at the time. Beyond twice the threshold a queue has overflowed: the path loses half
///   of its window, and no path more than half of its own (`W/2` leaves one packet on each of three equal paths).
///   Between one threshold and two it counts as a delay signal. Below, no queue stood and the loss was chance: it takes
///   off three packets for each lost, so that growth ends at 1 % of loss at any RTT, and much less where losses are
///   rarer. But if more than 2 % of some 200
///   packets are lost, it is congestion: a policer or a queue too short to be sensed.
/// - **Timeout**: one packet, slow start to half, and all of it taken back if the packets turn up. Two in a row choke the
///   path if there is another.
/// - **Company**: beside requests that come and go the window stays a little below the one that fills the line, gives a
///   third to each of them at once, whatever the other paths have, and takes it back when it is over (`company.rs`, `beside.rs`).
///
/// A path that decreases to its floor is choked (III.E), unless it is the last one that is not.
#[derive(Debug)]
pub struct Harp {
    name: &'static str,
    options: Options,
    paths: Paths<Path>,
    draining: Option<PathId>,
    next_drain: Instant,
    random: Random,
}

impl Harp {
    /// A bundle without paths, to be called `name`.
    #[must_use]
    pub fn new(name: &'static str, options: Options, seed: u64) -> Self {
        Self {
            name,
            options,
            paths: Paths::default(),
            draining: None,
            next_drain: Instant::ZERO,
            random: Random::new(seed),
        }
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

    /// Algorithm 1, line 9: `w_i <- max(1, w_i - beta (w_i xi + W (1 - xi)))`, with W before the decrease.
    fn on_delay_signal(&mut self, id: PathId, now: Instant) {
        let total = self.total();
        let options = self.options;
        let Some(path) = self.paths.get_mut(id) else { return };
        let yields = path.on_queue(now, &options);
        let before = path.company.lent().unwrap_or(path.window);
        let to = if path.rushing(&options) {
            path.fitting(&options)
        } else {
            let xi = match options.coupling {
                // What a path gives for a while moves no load to others.
                _ if yields.is_some() => 1.0,
                Coupling::Independent => 1.0,
                Coupling::Joint => 0.0,
                // M_i >= w_i > 0.
                Coupling::Adaptive => (path.window / path.largest).clamp(0.0, 1.0),
            };
            let beta = yields.unwrap_or_else(|| path.by_the_time(path.beta(&options), &options));
            path.window - beta * (path.window * xi + total * (1.0 - xi))
        };
        let least = path.decrease(to, now, &options);
        if yields.is_some() {
            path.company.lend(before);
        }
        if least {
            self.choke(id, now);
        }
    }

    fn on_loss(&mut self, id: PathId, congested: &Congested) {
        let (total, options) = (self.total(), self.options);
        let Some(path) = self.paths.get_mut(id) else { return };
        if path.answered(congested.sent_at) {
            path.on_more_lost(congested);
            return;
        }
        let loss = path.judge(congested, &options);
        let to = match (options.loss, loss) {
            // Algorithm 1, line 12: w_i <- max(1, w_i - W/2).
            (LossRule::HalfOfAll, _) => path.window - total / 2.0,
            // While it grows fast the window is far beyond the mark; what was delivered is the better measure.
            (LossRule::ByDelay { .. }, Loss::Heavy) if path.rushing(&options) => {
                path.fitting(&options).max(path.window / 2.0)
            }
            (LossRule::ByDelay { .. }, Loss::Heavy) => path.window - (total / 2.0).min(path.window / 2.0),
            (LossRule::ByDelay { .. }, Loss::Delayed) => {
                path.remember(congested);
                self.on_delay_signal(id, congested.now);
                return;
            }
            (LossRule::ByDelay { gentle, .. }, Loss::Gentle) => {
                path.decrease_gently(congested, gentle, &options);
                return;
            }
        };
        path.remember(congested);
        if path.decrease(to, congested.now, &options) {
            self.choke(id, congested.now);
        }
    }

    fn on_timeout(&mut self, id: PathId, congested: &Congested) {
        if !self.options.agile {
            // The paper knows no timeout of a path: to it, this is a loss.
            self.on_loss(id, congested);
            return;
        }
        let options = self.options;
        let Some(path) = self.paths.get_mut(id) else { return };
        path.on_timeout(congested, &options);
        self.end_drain(id, congested.now);
        if self.paths.get(id).is_some_and(|path| path.timeouts >= 2) {
            self.choke(id, congested.now);
        }
    }

    /// Chokes `id` unless it is the last that is not. The last one is given up only when it seems dead and the probes of
    /// another come back.
    fn choke(&mut self, id: PathId, now: Instant) {
        let dead = self.paths.get(id).is_some_and(|path| path.timeouts >= 2);
        let others = self.paths.iter().any(|(other, path)| other != id && !path.choked);
        if !self.options.choke && !dead {
            return;
        }
        if !others {
            match self.best_choked() {
                Some((best, true)) if dead => self.unchoke(best, now),
                _ => return,
            }
        }
        if let Some(path) = self.paths.get_mut(id) {
            path.choke();
            path.reached = !dead;
        }
        self.end_drain(id, now);
    }

    /// The choked path that once had the largest window, of those whose probes come back if there are any; and whether
    /// they do.
    fn best_choked(&self) -> Option<(PathId, bool)> {
        let choked = self.paths.iter().filter(|(_, path)| path.choked);
        let better = |a: &(PathId, &Path), b: &(PathId, &Path)| {
            a.1.reached.cmp(&b.1.reached).then(a.1.largest.total_cmp(&b.1.largest)).then(b.0.cmp(&a.0))
        };
        choked.max_by(better).map(|(id, path)| (id, path.reached))
    }

    fn unchoke(&mut self, id: PathId, now: Instant) {
        if let Some(path) = self.paths.get_mut(id) {
            path.unchoke(now);
        }
    }

    fn end_drain(&mut self, id: PathId, now: Instant) {
        if self.draining == Some(id) {
            self.draining = None;
            self.next_drain = now + BETWEEN_DRAINS;
        }
        if let Some(path) = self.paths.get_mut(id) {
            path.drain = None;
        }
    }

    /// Ends the drain of `id` when it is done, begins one when it is its turn.
    fn drain(&mut self, id: PathId, acked: &Acked<'_>) {
        let Some(path) = self.paths.get_mut(id) else { return };
        if let Some(drain) = &mut path.drain {
            let seen = path.sense.unconfirmed(acked.now) == Duration::ZERO;
            if drain.on_acked(acked.now, acked.sent_at, acked.in_flight) || seen {
                self.end_drain(id, acked.now);
            }
        } else if self.draining.is_none() && acked.now >= self.next_drain {
            let every = REFRESH.mul_f64(1.0 + self.random.unit() / 10.0);
            if path.drain_if_due(acked.now, every) {
                self.draining = Some(id);
            }
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
        let now = self.next_drain;
        self.end_drain(id, now);
        self.paths.remove(id);
        if self.paths.iter().all(|(_, path)| path.choked)
            && let Some((best, _)) = self.best_choked()
        {
            // Of an epoch that began in the past no packet is in flight on a choked path, so any time will do.
            self.unchoke(best, Instant::ZERO);
        }
    }

    fn on_sent(&mut self, _: PathId, _: &Sent) {}

    fn on_acked(&mut self, id: PathId, acked: &Acked<'_>) {
        let options = self.options;
        let Some(path) = self.paths.get_mut(id) else { return };
        if path.on_acked(acked, &options) {
            self.on_delay_signal(id, acked.now);
        }
        if let (true, DelayRule::Absolute { .. }) = (options.agile, options.delay) {
            self.drain(id, acked);
        }
    }

    fn on_congested(&mut self, id: PathId, congested: &Congested) {
        match congested.trigger {
            Trigger::Loss => self.on_loss(id, congested),
            Trigger::Timeout => self.on_timeout(id, congested),
            // A mark tells of a queue, as a delay does.
            Trigger::Ce => {
                if self.paths.get(id).is_some_and(|path| !path.answered(congested.sent_at)) {
                    self.on_delay_signal(id, congested.now);
                }
            }
        }
    }

    fn on_undo(&mut self, id: PathId, undo: &Undo) {
        let Some(path) = self.paths.get_mut(id) else { return };
        if path.on_undo(undo) && path.timeouts > 0 {
            path.timeouts = 0;
            path.choked = false;
        }
    }

    /// Harp, III.E: a probe that "does not perceive delay greater than Delta_i" unchokes. Of one that came back without
    /// its one-way delay the round trip is judged.
    fn on_probe(&mut self, id: PathId, probe: &ProbeResult) {
        let Some(path) = self.paths.get_mut(id) else { return };
        if !path.choked {
            return;
        }
        path.reached = probe.delay.is_some() || probe.rtt.is_some();
        let rtt = probe.rtt.unwrap_or_default();
        let free = match (probe.delay, probe.rtt) {
            (Some(delay), _) => path.sense.probe(delay, probe.now, rtt),
            (None, Some(rtt)) => path.sense.is_prompt(rtt, path.min_rtt),
            (None, None) => false,
        };
        if free {
            path.unchoke(probe.now);
        }
    }

    fn on_route_change(&mut self, id: PathId, now: Instant) {
        self.end_drain(id, now);
        if let Some(path) = self.paths.get_mut(id) {
            path.start_over(now, &self.options);
        }
    }

    fn tick(&mut self, now: Instant) -> Option<Instant> {
        let id = self.draining?;
        let until = self.paths.get(id).and_then(|path| path.drain).map(|drain| drain.until());
        if until.is_none_or(|until| now >= until) {
            self.end_drain(id, now);
            return None;
        }
        until
    }

    fn allowance(&self, id: PathId) -> Allowance {
        self.paths.get(id).map(|path| path.allowance(&self.options)).unwrap_or_default()
    }

    /// Harp sends over all paths it is given (III.G).
    fn wants(&self) -> Wants<'_> {
        Wants { open: usize::MAX, ..Wants::default() }
    }
}
