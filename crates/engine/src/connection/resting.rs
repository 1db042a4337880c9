//! Of the direct paths over UDP and over TCP, those of one kind rest while the other answers: TCP, unless the owner prefers it.

use super::path::{Path, State};
use super::standing::End;
use super::{Connection, Event};
use crate::path::carriage::Carriage;
use alloc::vec::Vec;
use byway_control::Controller as _;
use byway_wire::{Duration, Instant, PathId};

/// What is preferred answers for so long before the others rest: one answer may be chance.
const STEADY: Duration = Duration::from_secs(2);
/// A TCP path that rested for so long ends, and with it the connection.
const REST: Duration = Duration::from_secs(30);

/// Which direct paths carry data.
#[derive(Debug, Default)]
pub(super) struct Resting {
    /// The kind that is preferred.
    preferred: Carriage,
    /// Since when a path of that kind is in use and answers.
    steady: Option<Instant>,
    /// Since when all of the other kind rest.
    resting: Option<Instant>,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    /// The others rest from now on.
    Rest,
    /// TCP paths that rest are given up.
    End,
}

impl Resting {
    pub const fn preferred(&self) -> Carriage {
        self.preferred
    }

    /// Prefers another kind. Whether that is a change.
    fn prefer(&mut self, preferred: Carriage) -> bool {
        let changed = self.preferred != preferred;
        if changed {
            *self = Self { preferred, ..Self::default() };
        }
        changed
    }

    /// `answers`: whether a path of the preferred kind is in use and answers. `others`: whether one of the other kind is in use.
    fn step(&mut self, now: Instant, answers: bool, others: bool) -> Step {
        if !answers {
            (self.steady, self.resting) = (None, None);
            return Step::Nothing;
        }
        let since = *self.steady.get_or_insert(now);
        if now.since(since) < STEADY {
            return Step::Nothing;
        }
        if others {
            self.resting = None;
            return Step::Rest;
        }
        let resting = *self.resting.get_or_insert(now);
        if self.preferred == Carriage::Datagrams && now.since(resting) >= REST {
            return Step::End;
        }
        Step::Nothing
    }
}

impl Connection {
    /// Of the direct paths, those over datagrams or those over TCP connections carry data from now on, as long as one of them answers.
    pub fn prefer(&mut self, now: Instant, carriage: Carriage) {
        if self.resting.prefer(carriage) {
            self.candidates.set_may_open();
            self.agenda.consult();
            self.settle(now);
        }
    }

    /// Has paths rest that are not preferred, or ends them.
    pub(super) fn see_to_resting(&mut self, now: Instant) {
        if !self.paths.has_connections() {
            return;
        }
        let preferred = self.resting.preferred();
        let is_other = |path: &&Path| !path.route.is_proxied() && path.route.carriage() != preferred;
        let others = self.paths.iter().filter(is_other).any(Path::is_governed);
        let answers = self.is_preferred_served();
        let step = self.resting.step(now, answers, others);
        if step == Step::Nothing {
            return;
        }
        let ids: Vec<PathId> = self.paths.iter().filter(is_other).map(Path::id).collect();
        for id in ids {
            match step {
                Step::Rest if self.paths.get(id).is_some_and(Path::is_governed) => self.rest(id),
                Step::End => self.drop_path(now, id, End::Rested),
                Step::Rest | Step::Nothing => {}
            }
        }
    }

    /// A path carries no data until it is activated again. What is under way is waited for.
    fn rest(&mut self, id: PathId) {
        let Some(path) = self.paths.edit(id) else { return };
        path.state = State::Available;
        (path.probe_at, path.probe) = (None, None);
        self.exchange.recall(&mut path.outbox);
        self.controller.close(id);
        self.candidates.on_resting(path.origin);
        let reason = match self.resting.preferred() {
            Carriage::Datagrams => End::Rested.text(),
            Carriage::Connection => "UDP carries far less than TCP",
        };
        self.news.raise(Event::PathResting { path: id, reason });
    }

    /// Whether a direct path of the preferred kind is in use and answers.
    pub(super) fn is_preferred_served(&self) -> bool {
        self.paths.iter().any(|path| {
            path.is_governed()
                && !path.route.is_proxied()
                && path.route.carriage() == self.resting.preferred()
                && path.send.is_proven()
                && path.send.timeouts() == 0
        })
    }

    /// Whether a direct path that is not preferred may be used: while no direct path in use answers.
    pub(super) fn may_stand_in(&self) -> bool {
        let answers = |path: &Path| path.send.timeouts() < super::life::SILENT;
        !self.paths.iter().any(|path| path.is_governed() && !path.route.is_proxied() && answers(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_rests_once_udp_answers_steadily_and_ends_after_a_while() {
        let at = |seconds: u64| Instant::from_millis(seconds * 1_000);
        let mut resting = Resting::default();
        assert_eq!(resting.step(at(1), false, true), Step::Nothing);
        assert_eq!(resting.step(at(2), true, true), Step::Nothing, "one answer is not enough");
        assert_eq!(resting.step(at(3), false, true), Step::Nothing, "nor one now and then");
        assert_eq!(resting.step(at(4), true, true), Step::Nothing);
        assert_eq!(resting.step(at(6), true, true), Step::Rest);
        assert_eq!(
            (resting.step(at(7), true, false), resting.step(at(36), true, false)),
            (Step::Nothing, Step::Nothing)
        );
        assert_eq!(resting.step(at(37), true, false), Step::End);
    }

    #[test]
    fn udp_rests_where_tcp_is_preferred_and_never_ends() {
        let at = |seconds: u64| Instant::from_millis(seconds * 1_000);
        let mut resting = Resting::default();
        assert!(resting.prefer(Carriage::Connection) && !resting.prefer(Carriage::Connection));
        assert_eq!(
            (resting.step(at(1), true, true), resting.step(at(3), true, true)),
            (Step::Nothing, Step::Rest)
        );
        assert_eq!(
            (resting.step(at(4), true, false), resting.step(at(900), true, false)),
            (Step::Nothing, Step::Nothing)
        );
        assert_eq!(
            resting.step(at(901), false, false),
            Step::Nothing,
            "it is silent: whatever answers is used"
        );
    }
}
