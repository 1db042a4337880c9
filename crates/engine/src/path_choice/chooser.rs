//! A rule by its name, with what it remembers.

use super::blest::{Lambda, blest};
use super::ecf::ecf;
use super::facts::{Choice, PathFacts, SessionFacts};
use super::min_rtt::min_rtt;
use super::weighted::{Passes, weighted};
use byway_wire::Instant;

/// A rule of others that chooses the path of the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathRule {
    /// The path with the least RTT of those with room.
    MinRtt,
    /// As minRTT, but not where the packet would block the send window.
    Blest,
    /// As minRTT, but not where the fastest path completes earlier.
    Ecf,
    /// Turns in proportion to window over RTT.
    Weighted,
}

impl PathRule {
    /// All rules.
    pub const ALL: [Self; 4] = [Self::MinRtt, Self::Blest, Self::Ecf, Self::Weighted];

    /// The name in plans.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MinRtt => "min-rtt",
            Self::Blest => "blest",
            Self::Ecf => "ecf",
            Self::Weighted => "weighted",
        }
    }
}

/// A rule at work in one session.
#[derive(Clone, Debug)]
pub(crate) struct Chooser {
    rule: PathRule,
    lambda: Lambda,
    waiting: bool,
    passes: Passes,
}

impl Chooser {
    /// The rule before its first packet.
    pub(crate) fn new(rule: PathRule) -> Self {
        Self { rule, lambda: Lambda::new(), waiting: false, passes: Passes::default() }
    }

    /// Notes that data wait only for the receive window.
    pub(crate) const fn on_blocked(&mut self) {
        self.lambda.on_blocked();
    }

    /// Decides which path carries the next packet.
    pub(crate) fn choose(&mut self, now: Instant, paths: &[PathFacts], session: &SessionFacts) -> Choice {
        match self.rule {
            PathRule::MinRtt => min_rtt(paths),
            PathRule::Blest => blest(now, paths, session, &mut self.lambda),
            PathRule::Ecf => ecf(paths, session, &mut self.waiting),
            PathRule::Weighted => weighted(paths, &mut self.passes),
        }
    }
}
