//! The pause of `send --retry` between two attempts, with messages about the receiver's absence.

use crate::exit::Exit;
use crate::messages;
use crate::output::{Event, Output};
use crate::signals::SIGNAL_POLL_INTERVAL;
use byway_net::Clock;
use byway_wire::{Duration, Instant};
use serde::Serialize;

/// The wait after the first try that failed.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(500);
/// The longest wait. A receiver that is back is noticed within this time and that of a try.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);
/// The receiver's absence after which the user is told again. The time doubles with each message.
const MIN_REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// A receiver that does not answer.
#[derive(Clone, Copy, Debug)]
struct Absence {
    /// The time at which the first attempt failed.
    since: Instant,
    /// The wait after the next try that fails.
    delay: Duration,
    /// The receiver's absence after which the user is told next.
    report_after: Duration,
}

/// The steps after a failed attempt: a pause, and perhaps a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NextTry {
    delay: Duration,
    away_for: Duration,
    is_told: bool,
}

/// The attempts of one command to transfer.
#[derive(Debug, Default)]
pub(super) struct Retry {
    /// The clock for all attempts, as each attempt has an epoch of its own.
    clock: Clock,
    absence: Option<Absence>,
}

/// The event for an absent receiver.
#[derive(Serialize)]
struct Away<'a> {
    reason: &'a str,
    /// The receiver's absence so far, in seconds.
    seconds: f64,
    retry_seconds: f64,
}

impl Retry {
    /// Waits until the next attempt is due. `had_session`: whether the receiver answered in the
    /// failed attempt. Returns the exit code of `stop`, if it ends the wait.
    pub fn wait(
        &mut self,
        reason: &str,
        had_session: bool,
        mut stop: impl FnMut() -> Option<Exit>,
        output: &mut Output,
    ) -> Option<Exit> {
        let begun = self.clock.now();
        let NextTry { delay, away_for, is_told } = self.failed(begun, had_session);
        let (seconds, retry_seconds) = (away_for.as_secs_f64(), delay.as_secs_f64());
        output.emit(&Event::told("away", &Away { reason, seconds, retry_seconds }));
        if is_told {
            output.say_lines(&messages::send::away(reason, away_for.as_secs()));
        }
        while self.clock.now().since(begun) < delay {
            if let Some(exit) = stop() {
                return Some(exit);
            }
            std::thread::sleep(SIGNAL_POLL_INTERVAL);
        }
        None
    }

    fn failed(&mut self, now: Instant, had_session: bool) -> NextTry {
        let new = Absence { since: now, delay: MIN_RETRY_DELAY, report_after: Duration::ZERO };
        let absence = self.absence.get_or_insert(new);
        if had_session {
            *absence = new;
        }
        let (delay, away_for) = (absence.delay, now.since(absence.since));
        absence.delay = (2 * delay).min(MAX_RETRY_DELAY);
        let is_told = away_for >= absence.report_after;
        if is_told {
            absence.report_after = MIN_REPORT_INTERVAL.max(2 * away_for);
        }
        NextTry { delay, away_for, is_told }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_half_a_minute_and_begin_anew_after_a_session() {
        let mut retry = Retry::default();
        let mut now = Instant::from_millis(5_000);
        let mut delays = Vec::new();
        for had_session in [false, false, false, false, false, false, false, false, true, false] {
            let next = retry.failed(now, had_session);
            delays.push(next.delay.as_millis());
            now += next.delay;
        }
        assert_eq!(delays, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 500, 1_000]);
    }

    #[test]
    fn a_day_of_absence_is_told_in_a_dozen_lines() {
        let (mut retry, mut now, mut told) = (Retry::default(), Instant::ZERO, Vec::new());
        while now < Instant::from_millis(86_400_000) {
            let next = retry.failed(now, false);
            if next.is_told {
                told.push(next.away_for.as_secs());
            }
            now += next.delay;
        }
        assert_eq!(told[0], 0);
        assert!((60..95).contains(&told[1]), "{told:?}");
        assert!(told.len() <= 13, "{told:?}");
    }
}
