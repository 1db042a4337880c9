//! Routes that may become paths: which is tried when, and how far path ids may run ahead of what the peer knows.

use super::path::{Origin, State};
use super::table::after;
use super::{Connection, MOST_PATHS, PATH_LOOKAHEAD};
use crate::route::Route;
use alloc::collections::VecDeque;
use byway_wire::{Duration, Instant, PathId};

/// When an unusable candidate is tried again; doubles with every failure, up to `RETRY_AT_MOST`.
const RETRY: Duration = Duration::from_secs(10);
/// The same for one that has worked: an outage may be short.
const RETRY_WORKED: Duration = Duration::from_secs(2);
const RETRY_AT_MOST: Duration = Duration::from_secs(160);

/// A route that may become a path.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub route: Route,
    pub path: Option<PathId>,
    pub failures: u32,
    pub worked: bool,
    pub retry_at: Instant,
    pub forgotten: bool,
}

impl Candidate {
    /// A route that is to be tried at `now`, or is in use as `path`.
    pub const fn new(now: Instant, route: Route, path: Option<PathId>) -> Self {
        Self { route, path, failures: 0, worked: false, retry_at: now, forgotten: false }
    }

    /// Its path was dropped: when it is tried again.
    pub fn on_dropped(&mut self, now: Instant, worked: bool, forget: bool) {
        self.path = None;
        self.forgotten |= forget;
        self.worked |= worked;
        let first = if self.worked { RETRY_WORKED } else { RETRY };
        let wait = first.saturating_mul(1 << self.failures.min(4)).min(RETRY_AT_MOST);
        self.failures = self.failures.saturating_add(1);
        self.retry_at = now + wait;
    }
}

/// What the peer is told about path ids, and what it is known to know.
///
/// It expects new ids only so far above the highest that it has seen or was told is dropped. So PATH_DROPPED is repeated until
/// it is acknowledged, and the window of ids moves on even if nothing sent on any new path ever arrives.
#[derive(Clone, Debug, Default)]
pub(super) struct Farewells {
    /// Dropped paths that the peer is to be told of.
    pub due: VecDeque<PathId>,
    /// One above the highest id that the peer acknowledged a packet or the PATH_DROPPED of.
    pub known: u32,
}

impl Farewells {
    /// The peer has seen this id.
    pub fn on_known(&mut self, id: PathId) {
        self.known = self.known.max(id.0.saturating_add(1));
    }
}

impl Connection {
    /// A route that may become a path. It is probed in its turn.
    pub(crate) fn add_candidate(&mut self, now: Instant, route: Route) {
        if let Some(known) = self.candidates.iter_mut().find(|known| known.route == route) {
            known.retry_at = known.retry_at.min(now);
            return self.arm_whole(now);
        }
        self.candidates.push(Candidate::new(now, route, None));
        self.arm_whole(now);
    }

    /// The same, or fresh papers for a route that is known: a relay's clock, cookie or consent was renewed.
    pub(crate) fn offer_route(&mut self, now: Instant, route: Route) {
        for path in self.paths.iter_mut().filter(|path| path.route == route) {
            path.route = route.clone();
        }
        if let Some(candidate) = self.candidates.iter_mut().find(|candidate| candidate.route == route) {
            candidate.route = route;
            if candidate.retry_at == Instant::FAR_FUTURE {
                candidate.retry_at = now; // its local address is back
                self.arm_whole(now);
            }
        } else {
            self.add_candidate(now, route);
        }
    }

    /// Whether one more path may live, under an id at most so far `ahead` of those that the peer is known to know.
    pub(super) fn has_name(&self, ahead: u32) -> bool {
        let next = self.paths.next_id().0;
        next < u32::MAX && next < self.farewells.known.saturating_add(ahead) && self.paths.len() < MOST_PATHS
    }

    pub(super) fn next_candidate_at(&self) -> Option<Instant> {
        let waiting =
            self.candidates.iter().filter(|candidate| candidate.path.is_none() && !candidate.forgotten);
        waiting.map(|candidate| candidate.retry_at).min()
    }

    /// Probes one candidate, chosen at random among those due.
    pub(super) fn probe_candidates(&mut self, now: Instant) {
        if now < self.next_probe_at || !self.confirmed {
            return;
        }
        if !self.has_name(PATH_LOOKAHEAD) {
            return; // the peer does not expect it yet
        }
        let due = |candidate: &Candidate| {
            candidate.path.is_none() && !candidate.forgotten && candidate.retry_at <= now
        };
        let count = self.candidates.iter().filter(|candidate| due(candidate)).count();
        if count == 0 {
            return;
        }
        let chosen = self.random.below(count as u64) as usize;
        let Some(index) = self
            .candidates
            .iter()
            .enumerate()
            .filter(|(_, candidate)| due(candidate))
            .nth(chosen)
            .map(|(index, _)| index)
        else {
            return;
        };
        self.next_probe_at = now + self.config.probe_interval;
        let Some(candidate) = self.candidates.get_mut(index) else { return };
        let route = candidate.route.clone();
        candidate.path = Some(self.paths.next_id());
        let origin = if index == 0 { Origin::Handshake } else { Origin::Candidate(index) };
        let id = self.add_path(now, route, None, State::Probing, origin);
        if let Some(path) = self.paths.get_mut(id) {
            path.pending.ping = true;
        }
        self.make_urgent(id);
    }

    /// A local socket is gone, and with it the paths that left by it.
    pub(crate) fn local_down(&mut self, now: Instant, local: byway_wire::Local) {
        let mut next = PathId(0);
        while let Some(id) = self.paths.from(next) {
            next = after(id);
            if self.paths.get(id).is_some_and(|path| path.route.local == local) {
                self.drop_path(now, id, "its local address is gone", false);
            }
        }
        self.candidates.iter_mut().filter(|candidate| candidate.route.local == local).for_each(|gone| {
            gone.retry_at = Instant::FAR_FUTURE;
        });
    }
}
