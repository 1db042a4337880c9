//! Load aggregation (mPath, 2.3). Paths that share the direct path's bottleneck give it their load,
//! and end. Others are wished for.
//!
//! The paper tells such paths by losses that fall together. Of forty paths in one queue each loses
//! alone, so that moves little. Delays tell more: packets of such paths wait in one queue
//! ([`Delays`](crate::detector::Delays)). Yet a queue in common need not be what holds the direct
//! path back, and queues of equal lines can look alike. So load is lent to it for some seconds, and
//! comes back unless the direct path gains from it. Half of the load comes first: a path that
//! carries as much with half of its window waits in a queue of its own.

use super::{Dropping, MPath, Path};
use crate::bundle::Rate;
use alloc::vec::Vec;
use byway_wire::{Duration, Instant, PathId};

/// Paths share a queue if at least three quarters of the variance of the direct path's delay is
/// theirs too.
const SAME: f64 = 0.25;
/// How long half of the load is lent. In one queue a path with half of its window carries half; a
/// queue of its own it only empties.
const HALF_LENT: Duration = Duration::from_millis(2_800);
const CARRIES: f64 = 0.9;
/// Packets of a window whose half carries half: of one packet there is no half.
const HALVES: f64 = 8.0;
/// How long all of it is lent then: the rows by which delays are compared are twice as long.
const LENT: Duration = Duration::from_millis(5_600);
/// The first part of either trial, which is not judged because windows settle.
const SETTLES: Duration = Duration::from_millis(1_400);
/// The time between trials after the direct path could not carry the load. It doubles each time. So
/// load is lent for a tenth of the time at most.
const APART: Duration = Duration::from_secs(60);
const APART_AT_MOST: Duration = Duration::from_secs(960);
/// A path that stays for so long adds something.
pub(super) const STAYS: Duration = Duration::from_secs(60);
/// Two rows of the slots by which delays are compared.
pub(super) const ROWS: Duration = Duration::from_secs(21);
/// After paths that added nothing, others are wished for so much later, and twice as late each time
/// until one stays.
const PAUSE: Duration = Duration::from_secs(4);
const PAUSE_AT_MOST: Duration = Duration::from_secs(256);

/// Paths that are gone are missed if the others carry less than this part of what all did.
const MISSED: f64 = 0.9;

/// What moving load to the direct path has shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trials {
    now: Option<Trial>,
    /// Whether the direct path carried what was lent to it the last time.
    trust: bool,
    /// The time before which no trial begins, and how much later the next one is after one that
    /// fails.
    not_before: Instant,
    apart: Duration,
    /// Paths are wished for from then on; and how much later after some that added nothing.
    quiet_until: Instant,
    pause: Duration,
    /// Bytes per second that all paths carried with those that added nothing, at most.
    with_them: f64,
}

#[derive(Clone, Copy, Debug)]
struct Trial {
    began_at: Instant,
    settled_at: Instant,
    ends_at: Instant,
    part: LoadPart,
    /// Bytes per second that the direct path must reach with all of the load.
    needed: f64,
    /// When counting began, and the bytes that those who are judged had carried by then.
    from: Option<(Instant, f64)>,
}

/// How much of the load is lent.
#[derive(Clone, Copy, Debug)]
enum LoadPart {
    /// Half, of paths that carried so many bytes per second.
    Half(f64),
    All,
}

impl Trial {
    fn new(now: Instant, part: LoadPart, needed: f64) -> Self {
        let lasts = if matches!(part, LoadPart::All) { LENT } else { HALF_LENT };
        Self { began_at: now, settled_at: now + SETTLES, ends_at: now + lasts, part, needed, from: None }
    }
}

impl Trials {
    pub const fn new() -> Self {
        Self {
            now: None,
            trust: false,
            not_before: Instant::ZERO,
            apart: APART,
            quiet_until: Instant::ZERO,
            pause: PAUSE,
            with_them: 0.0,
        }
    }

    /// Whether paths seemed to share the direct path's queue of late, and it did not carry their
    /// load.
    pub fn doubt(&self, now: Instant) -> bool {
        now < self.not_before
    }

    /// Whether paths may be wished for: others than those that added nothing, or those if they are
    /// missed.
    pub fn allow_wishes(&self, now: Instant, carried: &Rate) -> bool {
        let missed = || carried.of_late(now).is_some_and(|rate| rate < MISSED * self.with_them);
        self.now.is_none() && (now >= self.quiet_until || missed())
    }
}

impl MPath {
    /// A proxied path has lost: does it share a bottleneck with the direct one?
    pub(super) fn compare_with_direct(&mut self, id: PathId) {
        let Some(direct) = self.direct().and_then(|direct| self.paths.get(direct)) else { return };
        let (interval, window) = (direct.interval, direct.window);
        let Some(path) = self.paths.get_mut(id) else { return };
        if !path.coincides(interval) {
            path.coincident = path.coincident.saturating_sub(1);
            return;
        }
        path.coincident = path.coincident.saturating_add(1);
        // w0 before the direct path decreased; it has, since its interval is of a loss.
        self.aggregate(&[id], window / self.options.keep);
    }

    /// The direct path has lost: which proxied paths lost at the same time?
    pub(super) fn compare_all(&mut self, direct_id: PathId) {
        let Some(direct) = self.paths.get(direct_id) else { return };
        let (interval, window) = (direct.interval, direct.window);
        let mut shared = Vec::new();
        for (id, path) in self.paths.iter_mut().filter(|(_, path)| path.proxied && !path.dropped) {
            if path.coincides(interval) {
                path.coincident = path.coincident.saturating_add(1);
                shared.push(id);
            }
        }
        self.aggregate(&shared, window / self.options.keep);
    }

    /// Load aggregation. Each of `shared` gives `min(alpha, w0 / sum w_j)` of what is left to the
    /// direct path. It has decreased already, so w_j/2 is left. The sum is of windows before the
    /// decrease. So all together move at most w0/2, which is what the direct path has lost. The
    /// paper: "the upper bound guarantees that the congestion window of the direct path will not be
    /// more than w0".
    fn aggregate(&mut self, shared: &[PathId], direct_window: f64) {
        let evidence = self.options.evidence;
        let convinced = |path: &Path| path.coincident >= evidence;
        let left: f64 = shared
            .iter()
            .filter_map(|id| self.paths.get(*id))
            .filter(|p| convinced(p))
            .map(|p| p.window)
            .sum();
        if left <= 0.0 {
            return;
        }
        let fraction = self.options.alpha.min((1.0 - self.options.keep) * direct_window / left);
        let mut moved = 0.0;
        for id in shared {
            if let Some(path) = self.paths.get_mut(*id).filter(|path| convinced(path)) {
                moved += path.window * fraction;
                path.window *= 1.0 - fraction;
                path.threshold = path.threshold.min(path.window);
                // Each pair of losses counts once.
                path.interval = None;
            }
        }
        if let Some(direct) = self.direct().and_then(|id| self.paths.get_mut(id)) {
            direct.grow(moved);
            direct.threshold = direct.threshold.min(direct.window);
        }
    }

    /// How many proxied paths to add after a loss. The paper: "The number of new proxied paths to
    /// be created when a loss is detected is a proportion beta of the direct path's congestion
    /// window". It adds them "only after all existing paths have encountered loss".
    pub(super) fn wish_for_more(&mut self, direct_window: f64, now: Instant) {
        if self.trials.allow_wishes(now, &self.carried)
            && self.alive().all(|(_, path)| path.met_congestion || !path.proxied)
        {
            let more = libm::ceil(self.options.beta * direct_window) as usize;
            let doubt = self.trials.doubt(now);
            let room = self.reach.as_mut().map_or(usize::MAX, |reach| {
                let proxied = || self.paths.iter().filter(|(_, path)| path.takes_part() && path.proxied);
                let unproven = proxied().any(|(_, path)| !path.proven(now, doubt));
                reach.room(now, proxied().count(), unproven, self.carried.of_late(now))
            });
            self.open = more.min(room);
        }
    }

    /// A slot of a proxied path's delays is over: does it wait in the direct path's queue?
    pub(super) fn compare_queues(&mut self, id: PathId, now: Instant) {
        let Some(direct) = self.direct().and_then(|direct| self.paths.get(direct)) else { return };
        let apart = self.paths.get(id).and_then(|path| path.delays.apart(&direct.delays));
        let Some(path) = self.paths.get_mut(id) else { return };
        path.same_queue = apart.is_some_and(|apart| apart <= SAME);
        path.differs = apart.map_or(path.differs, |apart| apart > SAME);
        if !path.same_queue && !path.stays && now.since(path.opened_at) >= STAYS {
            path.stays = true;
            (self.trials.pause, self.trials.with_them) = (PAUSE, 0.0);
        }
        let Some(path) = self.paths.get(id) else { return };
        if path.same_queue {
            self.lend(now);
        }
    }

    /// Moves the load of paths that wait in the direct path's queue to it for a trial, the largest
    /// first. It takes half of its own rate, so that its gain shows.
    fn lend(&mut self, now: Instant) {
        if self.trials.now.is_some() || now < self.trials.not_before {
            return;
        }
        let Some((direct, before)) =
            self.direct().and_then(|id| Some((id, self.paths.get(id)?.contributed.of_late(now)?)))
        else {
            return;
        };
        let same = self.alive().filter(|(_, path)| path.proxied && path.same_queue);
        let mut lenders: Vec<(f64, PathId)> =
            same.filter_map(|(id, path)| Some((path.contributed.of_late(now)?, id))).collect();
        lenders.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut sum = 0.0;
        let enough = lenders.iter().position(|(rate, _)| {
            sum += rate;
            sum >= before / 2.0
        });
        match enough {
            Some(last) => lenders.truncate(last + 1),
            // Too little to show.
            None if !self.trials.trust => return,
            None => {}
        }
        let windows = lenders.iter().filter_map(|(_, id)| Some(self.paths.get(*id)?.window));
        let halves = enough.is_some() && windows.fold(f64::INFINITY, f64::min) >= HALVES;
        for (_, id) in &lenders {
            if let Some(path) = self.paths.get_mut(*id) {
                let packets = path.lend(if halves { 0.5 } else { 1.0 });
                self.give_to_direct(direct, packets);
            }
        }
        if enough.is_none() {
            self.end_lenders(now);
        } else {
            let part = if halves { LoadPart::Half(sum) } else { LoadPart::All };
            self.trials.now = Some(Trial::new(now, part, before + sum / 2.0));
        }
        self.sum_up();
    }

    /// Paths that lent half of their windows carry less: the direct path gets the rest.
    fn lend_rest(&mut self, now: Instant, needed: f64) {
        let lenders = self.paths.iter_mut().filter(|(_, path)| path.lent.is_some());
        let moved = lenders.map(|(_, path)| path.lend(1.0)).sum();
        if let Some(direct) = self.direct() {
            self.give_to_direct(direct, moved);
        }
        self.trials.now = Some(Trial::new(now, LoadPart::All, needed));
        self.sum_up();
    }

    fn give_to_direct(&mut self, direct: PathId, moved: f64) {
        if let Some(direct) = self.paths.get_mut(direct) {
            direct.grow(moved);
            direct.threshold = direct.threshold.min(direct.window);
        }
    }

    /// Looks what paths carry while load is lent: those that lent half of it, or the direct path
    /// with all of it.
    pub(super) fn judge(&mut self, now: Instant) {
        if self.trials.now.is_some() && self.direct().is_none() {
            return self.give_back(now);
        }
        let Some(trial) = self.trials.now.as_mut() else { return };
        if now < trial.settled_at || trial.from.is_some() && now < trial.ends_at {
            return;
        }
        let judged = |path: &Path| match trial.part {
            LoadPart::Half(_) => path.lent.is_some(),
            LoadPart::All => !path.proxied,
        };
        let contributed: f64 =
            self.paths.iter().filter(|(_, path)| judged(path)).map(|(_, path)| path.contributed.total).sum();
        let Some((since, had)) = trial.from else {
            trial.from = Some((now, contributed));
            return;
        };
        let carried = (contributed - had) / now.since(since).as_secs_f64().max(1e-3);
        match trial.part {
            LoadPart::Half(before) if carried < CARRIES * before => {
                let needed = trial.needed;
                return self.lend_rest(now, needed);
            }
            LoadPart::All if carried >= trial.needed => {}
            LoadPart::Half(_) | LoadPart::All => return self.give_back(now),
        }
        let trials = &mut self.trials;
        (trials.now, trials.trust, trials.apart) = (None, true, APART);
        self.end_lenders(now);
        self.sum_up();
    }

    /// What was lent comes back: the direct path does not carry it.
    pub(super) fn give_back(&mut self, now: Instant) {
        let trials = &mut self.trials;
        let Some(trial) = trials.now.take() else { return };
        (trials.trust, trials.not_before) = (false, now + trials.apart);
        trials.apart = trials.apart.saturating_mul(2).min(APART_AT_MOST);
        (trials.quiet_until, trials.pause) = (now, PAUSE);
        for (_, path) in self.paths.iter_mut() {
            path.take_back(trial.began_at);
        }
        self.sum_up();
    }

    /// Paths were opened and added nothing.
    pub(super) fn pause_wishes(&mut self, now: Instant) {
        let rate = self.carried.of_late(now).unwrap_or(0.0);
        let trials = &mut self.trials;
        self.open = 0;
        trials.with_them = trials.with_them.max(rate);
        if now >= trials.quiet_until {
            trials.quiet_until = now + trials.pause;
            trials.pause = trials.pause.saturating_mul(2).min(PAUSE_AT_MOST);
        }
    }

    fn end_lenders(&mut self, now: Instant) {
        self.pause_wishes(now);
        let lenders: Vec<PathId> = self
            .paths
            .iter()
            .filter(|(_, path)| path.lent.is_some() && !path.dropped)
            .map(|(id, _)| id)
            .collect();
        for id in lenders {
            self.drop_path(id, Dropping::Shares);
        }
    }
}
