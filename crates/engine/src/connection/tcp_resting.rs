//! A path rests while one that is preferred leads the same way and answers: one over UDP, unless
//! the owner prefers TCP.

use byway_wire::{Duration, Instant};

/// Time that a preferred path must answer before other paths rest: one answer may be chance.
const STEADY_TIME: Duration = Duration::from_secs(2);
/// Time that a path over TCP may rest. Then the path and its connection end.
const REST_TIMEOUT: Duration = Duration::from_secs(30);

/// Measures for how long the preferred path has answered, and for how long this path has rested.
#[derive(Debug, Default)]
pub(super) struct TcpResting {
    /// The time since which the preferred path answers. `None`: it does not answer.
    steady: Option<Instant>,
    /// The time since which the path rests. `None`: it does not rest.
    resting: Option<Instant>,
}

/// The step for a path that is not preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RestAction {
    Nothing,
    /// The path rests from now on.
    Rest,
    /// Drop the path, if it goes over TCP.
    End,
}

impl TcpResting {
    /// Returns the next step. `answers`: whether a preferred path to the same destination is in use
    /// and answers. `in_use`: whether this path is in use.
    pub fn step(&mut self, now: Instant, answers: bool, in_use: bool) -> RestAction {
        if !answers {
            (self.steady, self.resting) = (None, None);
            return RestAction::Nothing;
        }
        let since = *self.steady.get_or_insert(now);
        if now.since(since) < STEADY_TIME {
            return RestAction::Nothing;
        }
        if in_use {
            self.resting = None;
            return RestAction::Rest;
        }
        let resting = *self.resting.get_or_insert(now);
        if now.since(resting) >= REST_TIMEOUT {
            return RestAction::End;
        }
        RestAction::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_rests_once_udp_answers_steadily_and_ends_after_a_while() {
        let at = |seconds: u64| Instant::from_millis(seconds * 1_000);
        let mut resting = TcpResting::default();
        assert_eq!(resting.step(at(1), false, true), RestAction::Nothing);
        assert_eq!(resting.step(at(2), true, true), RestAction::Nothing, "one answer is not enough");
        assert_eq!(resting.step(at(3), false, true), RestAction::Nothing, "nor one now and then");
        assert_eq!(resting.step(at(4), true, true), RestAction::Nothing);
        assert_eq!(resting.step(at(6), true, true), RestAction::Rest);
        assert_eq!(
            (resting.step(at(7), true, false), resting.step(at(36), true, false)),
            (RestAction::Nothing, RestAction::Nothing)
        );
        assert_eq!(resting.step(at(37), true, false), RestAction::End);
    }
}
