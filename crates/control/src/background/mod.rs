//! How the class `background` sets its rates: its flows use what is idle on a line, yield to other
//! traffic, and share fairly. `docs/background.md` derives the rules.
//!
//! A path's *level* is its sending rate in bytes per second while its packets wait in no queue of
//! the network. During a queue the path may send more slowly than its level.
//!
//! | a queue that | means that | so |
//! |---|---|---|
//! | grew slowly | the path has built the queue | the level falls |
//! | appeared at once | another flow has sent a burst | the rate falls, the level stays |
//! | lasts | another flow needs the line | the level decays |
//!
//! | file | what it holds |
//! |---|---|
//! | `constants.rs` | every constant with its unit and reason |
//! | `queue_delay.rs` | what delays tell: waits, what counts as a queue, growth |
//! | `jitter.rs` | how late packets are without a queue |
//! | `closing_up.rs` | what proves that a path has jitter |
//! | `law.rs` | one path: delay, queue, reaction |
//! | `load_aggregation.rs` | whether relays add anything to the direct path |
//! | `loss_cause.rs` | whether losses are more than chance, and how deep the queue is then |
//! | here | the bundle: coupling, choking, and how many relays it asks for |

mod closing_up;
mod constants;
mod jitter;
mod law;
mod load_aggregation;
mod loss_cause;
mod queue_delay;
#[cfg(test)]
mod tests;

use crate::bundle::{INITIAL_PATH_LIMIT, PathLimit, Paths, Rate};
use crate::{Acked, Allowance, Congested, Controller, Opened, PathDemand, ProbeResult, Sent, Trigger, Undo};
use alloc::vec::Vec;
use byway_wire::{Duration, Instant, PathId};
use law::BackgroundPath;
use load_aggregation::{LoanOutcome, Loans};

/// New proxied paths per packet of the direct path's window (mPath, 4.1).
const BETA_PATHS: f64 = 0.25;
/// The time after which a path has shown whether it is of use.
const PATH_TRIAL_TIME: Duration = Duration::from_secs(21);
/// The time after which a choked path is dropped, if there are more proxied paths than
/// `INITIAL_PATH_LIMIT`.
const CHOKED_TIMEOUT: Duration = Duration::from_secs(60);

/// The controller of the class `background` for all paths of a session, the bundle.
///
/// | rule | what it does |
/// |---|---|
/// | coupling (Harp, III.A) | all paths together grow as fast as one flow would |
/// | coupling | if a path has built a queue, all paths with waiting packets lower their rates |
/// | relays (mPath, 2.3) | opens eight paths by relays, and more as long as the throughput rises |
/// | choking (Harp, III.E) | a path with a queue even at its least rate carries only probes |
/// | choking | a path with two timeouts in a row carries only probes |
/// | choking | ends when a probe meets no queue; one path always stays open |
/// | loans (mPath, 2.3) | relays that share the direct path's queue lend it their rates; if nothing is missed, they are dropped |
#[derive(Debug)]
pub struct Background {
    name: &'static str,
    paths: Paths<BackgroundPath>,
    /// Bytes acknowledged on all paths, by which the bundle judges whether more proxied paths gain
    /// something.
    carried: Rate,
    path_limit: PathLimit,
    /// How many more proxied paths the bundle asks for.
    open: usize,
    drop: Vec<PathId>,
    loans: Loans,
    /// Relays that share the direct path's bottleneck.
    shares: Vec<PathId>,
}

impl Background {
    /// A bundle without paths, to be called `name`.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            paths: Paths::default(),
            carried: Rate::new(Instant::ZERO),
            path_limit: PathLimit::new(),
            open: INITIAL_PATH_LIMIT,
            drop: Vec::new(),
            loans: Loans::new(),
            shares: Vec::new(),
        }
    }

    /// The bundle's rate without a queue, in bytes per second.
    #[must_use]
    pub fn level(&self) -> f64 {
        self.paths.iter().filter(|(_, path)| !path.is_out()).map(|(_, path)| path.level).sum()
    }

    /// The part of the bundle's rate that a path has.
    fn share(&self, id: PathId) -> f64 {
        let total = self.level();
        self.paths.get(id).map_or(1.0, |path| if total > 0.0 { (path.level / total).min(1.0) } else { 1.0 })
    }

    /// Asks for more paths when the direct path met a queue of its own. Without a direct path, any
    /// path counts.
    fn wish_for_more(&mut self, id: PathId, now: Instant) {
        let proxied = || self.paths.iter().map(|(_, path)| path).filter(|path| path.proxied);
        let is_direct = self.paths.get(id).is_some_and(|path| !path.proxied);
        let has_direct = self.paths.iter().any(|(_, path)| !path.proxied);
        if self.open > 0 || has_direct && !is_direct || proxied().any(|path| path.start) {
            return;
        }
        let carried = self.carried.of_late(now);
        let allowed = self.loans.allowed_wishes(now, carried);
        if allowed == 0 {
            return;
        }
        let window = self.paths.get(id).map_or(0.0, BackgroundPath::window_packets);
        let in_use = proxied().filter(|path| !path.choked).count();
        let unproven = proxied().any(|path| now.since(path.opened_at) < PATH_TRIAL_TIME);
        let room = self.path_limit.room(now, in_use, unproven, carried);
        self.open = (libm::ceil(BETA_PATHS * window) as usize).min(room).min(allowed);
    }

    /// The first path that leads to the peer directly and is in use. Its bottleneck is the one that
    /// others may share: relays, and further direct paths, as over IPv6.
    fn direct(&self) -> Option<(PathId, &BackgroundPath)> {
        self.paths.iter().find(|(_, path)| !path.proxied && !path.is_out())
    }

    /// Path `id` built a queue: notes which others and the direct path built their queues before at
    /// the same time.
    fn note_company(&mut self, id: PathId, now: Instant) {
        let Some((direct, path)) = self.direct() else { return };
        let lender = path.loan;
        if self.paths.get(id).is_some_and(|path| path.loan.begins_queue(now)) {
            let others = self.paths.iter_mut().filter(|(other, path)| *other != direct && !path.is_out());
            let compared = others.filter(|(other, _)| id == direct || id == *other);
            compared.for_each(|(_, path)| path.loan.compare(&lender, now));
        }
    }

    /// Has others that seem to share the direct path's queue lend their rates to the direct path.
    fn lend(&mut self, now: Instant) {
        let Some(before) = self.carried.of_late(now).filter(|_| self.loans.may_begin(now)) else { return };
        let Some(direct) = self.direct().filter(|(_, path)| !path.start).map(|(id, _)| id) else { return };
        let is_other = |id: PathId, path: &BackgroundPath| id != direct && !path.is_out();
        if !self.paths.iter().any(|(id, path)| is_other(id, path) && path.loan.shared().are_many()) {
            return;
        }
        let mut lent = 0.0;
        for (id, path) in self.paths.iter_mut() {
            if is_other(id, path) && path.loan.shared().are_some() {
                path.loan.lends = true;
                lent += path.level;
            }
        }
        if let Some(direct) = self.paths.get_mut(direct) {
            direct.loan.borrowed = direct.level + lent;
            self.loans.begin(now, before, direct.loan.rtt());
        }
    }

    /// Ends a loan whose outcome is clear. Relays that are of no use are dropped, and direct paths
    /// that are of none rest. Others get their rates back.
    fn judge_loan(&mut self, now: Instant) {
        if !self.loans.is_under_way() {
            return;
        }
        let is_queued = self.direct().is_some_and(|(_, path)| path.is_queued());
        let failed = if is_queued { self.loans.on_queue(now, self.level()) } else { None };
        let Some(outcome) = failed.or_else(|| self.loans.judge(now, self.carried.total)) else { return };
        match outcome {
            LoanOutcome::Missed => self.paths.iter_mut().for_each(|(_, path)| path.loan.end()),
            LoanOutcome::Carried => {
                self.open = 0;
                let dropped = self.paths.iter().filter(|(_, path)| path.loan.lends && path.proxied);
                self.shares.extend(dropped.map(|(id, _)| id));
                self.paths.iter_mut().for_each(|(_, path)| path.loan.borrowed = 0.0);
            }
        }
    }

    /// The direct path met a queue of its own. Direct paths that rest carry data again if they may
    /// be of use by now.
    fn wake(&mut self, now: Instant) {
        if !self.loans.is_under_way() && !self.loans.keep_resting(now, self.level()) {
            self.paths.iter_mut().filter(|(_, path)| !path.proxied).for_each(|(_, path)| path.loan.end());
        }
    }

    /// Gives rates back that the direct path cannot carry any more.
    fn end_loan_without_direct(&mut self) {
        if self.direct().is_none() {
            self.loans.cancel();
            self.paths.iter_mut().for_each(|(_, path)| path.loan.end());
        }
    }

    /// Drops a path that has been choked for long, if there are more proxied paths than
    /// `INITIAL_PATH_LIMIT`.
    fn drop_choked(&mut self, id: PathId, now: Instant) {
        let many =
            self.paths.iter().filter(|(_, path)| path.proxied).count() > INITIAL_PATH_LIMIT + self.drop.len();
        let long = |path: &BackgroundPath| {
            path.proxied && path.choked && now.since(path.choked_at) >= CHOKED_TIMEOUT
        };
        if many && self.paths.get(id).is_some_and(long) && !self.drop.contains(&id) {
            self.drop.push(id);
        }
    }

    /// Chokes path `id`: it carries only probes from now on. The last open path is choked only
    /// after two timeouts in a row, and only if another path's probes come back. This other path is
    /// then opened.
    fn choke(&mut self, id: PathId, now: Instant) {
        let silent = self.paths.get(id).is_some_and(|path| path.timeouts >= 2);
        if !self.paths.iter().any(|(other, path)| other != id && !path.choked) {
            let Some(best) = self.best_choked().filter(|path| silent && path.reached) else { return };
            best.unchoke(now);
        }
        if let Some(path) = self.paths.get_mut(id) {
            (path.choked, path.reached, path.choked_at) = (true, !silent, now);
        }
        self.end_loan_without_direct();
    }

    /// The choked path with the greatest rate. Paths whose probes come back go before the others.
    fn best_choked(&mut self) -> Option<&mut BackgroundPath> {
        let choked = self.paths.iter_mut().map(|(_, path)| path).filter(|path| path.choked);
        choked.max_by(|a, b| a.reached.cmp(&b.reached).then(a.level.total_cmp(&b.level)))
    }
}

impl Controller for Background {
    fn name(&self) -> &'static str {
        self.name
    }

    fn yields(&self) -> bool {
        true
    }

    fn own_rate(&self) -> Option<u64> {
        Some(self.level() as u64)
    }

    fn open(&mut self, id: PathId, opened: &Opened) {
        self.loans.on_opened(opened.now);
        self.paths.insert(id, BackgroundPath::new(opened));
        if opened.proxied {
            self.open = self.open.saturating_sub(1);
        }
    }

    fn close(&mut self, id: PathId) {
        self.paths.remove(id);
        let shared = self.shares.contains(&id);
        self.drop.retain(|dropped| *dropped != id);
        self.shares.retain(|shares| *shares != id);
        let proxied = self.paths.iter().filter(|(_, path)| path.proxied).count();
        if !shared {
            self.open = self.open.max(INITIAL_PATH_LIMIT.saturating_sub(proxied));
        }
        self.end_loan_without_direct();
        if self.paths.iter().all(|(_, path)| path.choked)
            && let Some(best) = self.best_choked()
        {
            // No packet is in flight on a choked path, so any time will do.
            best.unchoke(Instant::ZERO);
        }
    }

    fn on_sent(&mut self, _: PathId, _: &Sent) {}

    fn on_acked(&mut self, id: PathId, acked: &Acked<'_>) {
        let share = self.share(id);
        let Some(path) = self.paths.get_mut(id) else { return };
        let own = path.on_acked(acked, share);
        self.carried.add(acked.now, acked.bytes);
        let (futile, free_at) = (path.is_futile(), path.free_at());
        self.judge_loan(acked.now);
        if own {
            self.note_company(id, acked.now);
            self.lend(acked.now);
            self.wake(acked.now);
            let others = self.paths.iter_mut().filter(|(other, _)| *other != id);
            let waiting = others.filter(|(_, path)| path.waits_since(free_at));
            waiting.for_each(|(_, path)| path.answer(acked.now, 0));
            self.wish_for_more(id, acked.now);
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
        self.drop_choked(id, probe.now);
    }

    fn on_route_change(&mut self, id: PathId, now: Instant) {
        if let Some(path) = self.paths.get_mut(id) {
            path.start_over(now);
        }
    }

    /// Does nothing: levels and their growth are in bytes, and how long a packet takes on the line
    /// is measured.
    fn on_packet_size(&mut self, _: PathId, _: u32) {}

    fn allowance(&self, id: PathId) -> Allowance {
        self.paths.get(id).map(BackgroundPath::allowance).unwrap_or_default()
    }

    fn wants(&self) -> PathDemand<'_> {
        PathDemand { open: self.open, drop: &self.drop, shares: &self.shares, ..PathDemand::default() }
    }
}
