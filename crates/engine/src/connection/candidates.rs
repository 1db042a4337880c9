//! Routes that may become paths: which is tried when.

use super::path::Origin;
use crate::random::Random;
use crate::route::Route;
use alloc::vec::Vec;
use byway_wire::{Duration, Instant, Local};

/// When an unusable candidate is tried again; doubles with every failure, up to `RETRY_AT_MOST`.
const RETRY: Duration = Duration::from_secs(10);
/// The same for one that has worked: an outage may be short.
const RETRY_WORKED: Duration = Duration::from_secs(2);
const RETRY_AT_MOST: Duration = Duration::from_secs(160);

/// A route that may become a path.
#[derive(Clone, Debug)]
struct Candidate {
    route: Route,
    /// Whether it is a path now.
    used: bool,
    failures: u32,
    worked: bool,
    retry_at: Instant,
    forgotten: bool,
}

impl Candidate {
    const fn new(now: Instant, route: Route, used: bool) -> Self {
        Self { route, used, failures: 0, worked: false, retry_at: now, forgotten: false }
    }

    const fn waits(&self) -> bool {
        !self.used && !self.forgotten
    }

    /// Its path was dropped: when it is tried again.
    fn on_dropped(&mut self, now: Instant, worked: bool, forget: bool) {
        self.used = false;
        self.forgotten |= forget;
        self.worked |= worked;
        let first = if self.worked { RETRY_WORKED } else { RETRY };
        let wait = first.saturating_mul(1 << self.failures.min(4)).min(RETRY_AT_MOST);
        self.failures = self.failures.saturating_add(1);
        self.retry_at = now + wait;
    }
}

/// The routes that may become paths. The first is the one that the handshake went over.
#[derive(Debug)]
pub(super) struct Candidates {
    all: Vec<Candidate>,
    /// Time between two that are tried, and when the next may be.
    interval: Duration,
    next_at: Instant,
    /// Whether a path may have become available since the controller was last offered one.
    may_open: bool,
}

impl Candidates {
    pub const fn new(now: Instant, interval: Duration) -> Self {
        Self { all: Vec::new(), interval, next_at: now, may_open: true }
    }

    /// The handshake went over this route, which is a path already.
    pub fn begin(&mut self, now: Instant, route: Route) {
        self.all.push(Candidate::new(now, route, true));
    }

    /// One more route; one that is known is tried again now.
    pub fn add(&mut self, now: Instant, route: Route) {
        match self.all.iter_mut().find(|known| known.route == route) {
            Some(known) => known.retry_at = known.retry_at.min(now),
            None => self.all.push(Candidate::new(now, route, false)),
        }
    }

    /// One more route, or fresh papers for one that is known. Returns whether it may be tried sooner than before.
    pub fn renew(&mut self, now: Instant, route: Route) -> bool {
        let Some(known) = self.all.iter_mut().find(|known| known.route == route) else {
            self.add(now, route);
            return true;
        };
        known.route = route;
        let back = known.retry_at == Instant::FAR_FUTURE;
        if back {
            known.retry_at = now; // its local address is back
        }
        back
    }

    /// When one may be tried next.
    pub fn due_at(&self) -> Option<Instant> {
        let waiting = self.all.iter().filter(|candidate| candidate.waits());
        waiting.map(|candidate| candidate.retry_at).min().map(|at| at.max(self.next_at))
    }

    /// Whether any may be tried at `now`, as far as time is concerned.
    pub fn is_time(&self, now: Instant) -> bool {
        now >= self.next_at
    }

    /// Takes one, chosen at random among those due, to be tried.
    pub fn take(&mut self, now: Instant, random: &mut Random) -> Option<(Route, Origin)> {
        let due = |candidate: &Candidate| candidate.waits() && candidate.retry_at <= now;
        let count = self.all.iter().filter(|candidate| due(candidate)).count();
        if count == 0 {
            return None;
        }
        let chosen = random.below(count as u64) as usize;
        let (index, candidate) =
            self.all.iter_mut().enumerate().filter(|(_, candidate)| due(candidate)).nth(chosen)?;
        self.next_at = now + self.interval;
        candidate.used = true;
        let origin = if index == 0 { Origin::Handshake } else { Origin::Candidate(index) };
        Some((candidate.route.clone(), origin))
    }

    /// The path that one became works.
    pub fn on_proven(&mut self, origin: Origin) {
        self.may_open = true;
        if let Origin::Candidate(index) = origin
            && let Some(candidate) = self.all.get_mut(index)
        {
            candidate.failures = 0;
        }
    }

    /// The path that one became is gone.
    pub fn on_dropped(&mut self, now: Instant, origin: Origin, worked: bool, forget: bool) {
        let index = match origin {
            Origin::Candidate(index) => index,
            Origin::Handshake => 0,
            Origin::Return => return,
        };
        if let Some(candidate) = self.all.get_mut(index) {
            candidate.on_dropped(now, worked, forget);
        }
    }

    /// A local socket is gone: what leaves by it waits until it is back.
    pub fn local_down(&mut self, local: Local) {
        self.all.iter_mut().filter(|candidate| candidate.route.local == local).for_each(|gone| {
            gone.retry_at = Instant::FAR_FUTURE;
        });
    }

    /// Whether a path may have become available since the controller was last offered one.
    pub const fn may_open(&self) -> bool {
        self.may_open
    }

    /// A path may have become available, or none is.
    pub const fn set_may_open(&mut self, may_open: bool) {
        self.may_open = may_open;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(port: u16) -> Route {
        Route::direct(Local(0), ([192, 0, 2, 1], port).into())
    }

    #[test]
    fn what_failed_is_tried_later_and_what_worked_sooner() {
        let mut random = Random::new([1; 32]);
        let at = Instant::from_millis;
        let mut candidates = Candidates::new(at(0), Duration::from_millis(250));
        candidates.begin(at(0), route(1));
        assert_eq!(candidates.due_at(), None);
        candidates.add(at(0), route(2));
        let (taken, origin) = candidates.take(at(0), &mut random).unwrap();
        assert_eq!((taken, origin), (route(2), Origin::Candidate(1)));
        assert!(!candidates.is_time(at(249)) && candidates.is_time(at(250)));
        candidates.on_dropped(at(1_000), origin, false, false);
        assert_eq!(candidates.due_at(), Some(at(11_000)));
        assert!(candidates.take(at(10_999), &mut random).is_none());
        assert!(candidates.take(at(11_000), &mut random).is_some());
        candidates.on_proven(origin);
        candidates.on_dropped(at(20_000), origin, true, false);
        assert_eq!(candidates.due_at(), Some(at(22_000)));
        candidates.local_down(Local(0));
        assert!(candidates.renew(at(21_000), route(2)) && !candidates.renew(at(21_000), route(2)));
        assert_eq!(candidates.due_at(), Some(at(21_000)));
        candidates.take(at(30_000), &mut random).unwrap();
        candidates.on_dropped(at(30_000), origin, true, true);
        assert_eq!(candidates.due_at(), None, "forgotten");
    }
}
