//! A path rests while one that is preferred leads the same way and answers: one over UDP, unless
//! the owner prefers TCP.

use byway_wire::{Duration, Instant};

/// How long what is preferred must answer before others rest: one answer may be chance.
const STEADY_TIME: Duration = Duration::from_secs(2);
/// How long a path over TCP may rest. Then it ends, and with it the connection.
const REST_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the preferred path has answered, and how long this path has rested.
#[derive(Debug, Default)]
pub(super) struct TcpResting {
    /// Since when the preferred path answers. `None`: it does not.
    steady: Option<Instant>,
    /// Since when the path rests. `None`: it does not.
    resting: Option<Instant>,
}

/// What to do about a path that is not preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RestAction {
    Nothing,
    /// The path rests from now on.
    Rest,
    /// Drop the path, if it goes over TCP.
    End,
}

impl TcpResting {
    /// What to do now. `answers`: whether a preferred path to the same destination is in use and
    /// answers. `in_use`: whether this path is.
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
