//! Load aggregation (mPath, 2.3): a proxied path that shares the direct path's bottleneck gives its
//! window to the direct path. Losses at the same time prove a shared bottleneck. Similar delays
//! only suggest it: in a trial, the direct path must carry the proxied path's load.

use super::path::Path;
use super::trials::{
    LoadPart, MAX_REQUEST_PAUSE, MAX_TRIAL_INTERVAL, REQUEST_PAUSE, TRIAL_INTERVAL, Trial, USEFUL_PATH_AGE,
};
use super::{Dropping, MPath};
use crate::Congested;
use alloc::vec::Vec;
use byway_wire::{Instant, PathId};

/// A path that shares all but this part of the variance of the direct path's delay waits in the
/// same queue.
const SAME_QUEUE_VARIANCE_SHARE: f64 = 0.25;
/// The share of their earlier load below which proxied paths show that they share the queue.
const MIN_CARRIED_SHARE: f64 = 0.9;
/// The least window, in packets, of which half is lent: a window of one packet cannot be halved.
const MIN_HALVED_PACKETS: f64 = 8.0;

impl MPath {
    /// Compares the loss of a proxied path with the direct path's latest loss: do both share a
    /// bottleneck?
    pub(super) fn compare_with_direct(&mut self, id: PathId) {
        let Some(direct) = self.direct().and_then(|direct| self.paths.get(direct)) else { return };
        let (interval, window) = (direct.interval, direct.window);
        let Some(path) = self.paths.get_mut(id) else { return };
        if !path.coincides(interval) {
            path.coincident = path.coincident.saturating_sub(1);
            return;
        }
        path.coincident = path.coincident.saturating_add(1);
        // w0 before the direct path decreased. It has decreased, since its interval is of a loss.
        self.aggregate(&[id], window / self.options.keep);
    }

    /// Compares the loss of the direct path with the latest losses of all proxied paths.
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

    /// Further packets of a loss that was answered are found lost. The loss interval becomes that
    /// of the last one, unless the loss has moved load already.
    pub(super) fn move_interval(&mut self, id: PathId, congested: &Congested) {
        let last = self.options.last_lost;
        let Some(path) = self.paths.get_mut(id).filter(|path| last && path.takes_part() && !path.moved)
        else {
            return;
        };
        path.interval = Some((congested.sent_at, congested.now));
        if path.proxied {
            self.compare_with_direct(id);
        } else {
            self.compare_all(id);
        }
        self.drop_smallest(congested.now);
    }

    /// Moves load to the direct path from the `shared` proxied paths, whose losses coincided with
    /// its loss. Each moves the same part of its window, at most `alpha`. Together they move at
    /// most as many packets as that loss took from `direct_window`.
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
        // The paper, with the windows before the losses: `min(alpha, w0 / sum w_j)` (w0: direct).
        let fraction = self.options.alpha.min((1.0 - self.options.keep) * direct_window / left);
        let mut moved = 0.0;
        for id in shared {
            if let Some(path) = self.paths.get_mut(*id).filter(|path| convinced(path)) {
                moved += path.window * fraction;
                path.window *= 1.0 - fraction;
                path.threshold = path.threshold.min(path.window);
                // A coincidence of two losses counts only once.
                (path.interval, path.moved) = (None, true);
            }
        }
        if let Some(direct) = self.direct().and_then(|id| self.paths.get_mut(id)) {
            direct.grow(moved);
            direct.threshold = direct.threshold.min(direct.window);
        }
    }

    /// Called after packet loss on the direct path. Requests more proxied paths if packets were
    /// lost on all proxied paths too. mPath limits the number of requested paths to "a proportion
    /// beta of the direct path's congestion window" (`direct_window`, in packets).
    pub(super) fn wish_for_more(&mut self, direct_window: f64, now: Instant) {
        if self.trials.allow_wishes(now, &self.carried)
            && self.alive().all(|(_, path)| path.met_congestion || !path.proxied)
        {
            let more = libm::ceil(self.options.beta * direct_window) as usize;
            let doubt = self.trials.doubt(now);
            let room = self.path_limit.as_mut().map_or(usize::MAX, |path_limit| {
                let proxied = || self.paths.iter().filter(|(_, path)| path.takes_part() && path.proxied);
                let unproven = proxied().any(|(_, path)| !path.proven(now, doubt));
                path_limit.room(now, proxied().count(), unproven, self.carried.of_late(now))
            });
            self.open = more.min(room);
        }
    }

    /// Finds whether a proxied path waits in the direct path's queue, after each slot of its
    /// delays.
    pub(super) fn compare_queues(&mut self, id: PathId, now: Instant) {
        let Some(direct) = self.direct().and_then(|direct| self.paths.get(direct)) else { return };
        let apart = self.paths.get(id).and_then(|path| path.delays.apart(&direct.delays));
        let Some(path) = self.paths.get_mut(id) else { return };
        path.same_queue = apart.is_some_and(|apart| apart <= SAME_QUEUE_VARIANCE_SHARE);
        path.differs = apart.map_or(path.differs, |apart| apart > SAME_QUEUE_VARIANCE_SHARE);
        if !path.same_queue && !path.stays && now.since(path.opened_at) >= USEFUL_PATH_AGE {
            path.stays = true;
            (self.trials.pause, self.trials.with_them) = (REQUEST_PAUSE, 0.0);
        }
        let Some(path) = self.paths.get(id) else { return };
        if path.same_queue {
            self.lend(now);
        }
    }

    /// Begins a trial: proxied paths that seem to share the direct path's queue lend their windows
    /// to the direct path. If the trial fails, they get them back. The fastest paths lend, until
    /// their rates sum to half of the direct path's rate.
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
            // The load is too small for the gain to show.
            None if !self.trials.trust => return,
            // The latest trial succeeded, so a small load moves without a trial.
            None => {}
        }
        let windows = lenders.iter().filter_map(|(_, id)| Some(self.paths.get(*id)?.window));
        let halves = enough.is_some() && windows.fold(f64::INFINITY, f64::min) >= MIN_HALVED_PACKETS;
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

    /// Lends the rest of the load to the direct path. The paths that lent half of their windows
    /// carry less, so they share the direct path's queue.
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

    /// Judges the present trial: do the proxied paths that lend their windows to the direct path
    /// share its bottleneck? If so, lending half lowers their throughput, and lending all raises
    /// that of the direct path. Otherwise the trial fails, and the windows are given back.
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
            LoadPart::Half(before) if carried < MIN_CARRIED_SHARE * before => {
                let needed = trial.needed;
                return self.lend_rest(now, needed);
            }
            LoadPart::All if carried >= trial.needed => {}
            LoadPart::Half(_) | LoadPart::All => return self.give_back(now),
        }
        let trials = &mut self.trials;
        (trials.now, trials.trust, trials.apart) = (None, true, TRIAL_INTERVAL);
        self.end_lenders(now);
        self.sum_up();
    }

    /// Returns the lent load to its paths, because the direct path does not carry it.
    pub(super) fn give_back(&mut self, now: Instant) {
        let trials = &mut self.trials;
        let Some(trial) = trials.now.take() else { return };
        (trials.trust, trials.not_before) = (false, now + trials.apart);
        trials.apart = trials.apart.saturating_mul(2).min(MAX_TRIAL_INTERVAL);
        (trials.quiet_until, trials.pause) = (now, REQUEST_PAUSE);
        for (_, path) in self.paths.iter_mut() {
            path.take_back(trial.began_at);
        }
        self.sum_up();
    }

    /// Stops requesting paths for a while, because the latest ones did not raise the throughput.
    pub(super) fn pause_wishes(&mut self, now: Instant) {
        let rate = self.carried.of_late(now).unwrap_or(0.0);
        let trials = &mut self.trials;
        self.open = 0;
        trials.with_them = trials.with_them.max(rate);
        if now >= trials.quiet_until {
            trials.quiet_until = now + trials.pause;
            trials.pause = trials.pause.saturating_mul(2).min(MAX_REQUEST_PAUSE);
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
