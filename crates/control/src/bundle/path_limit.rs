//! The limit on proxied paths in use: as many as raise the throughput. The limit rises in steps by
//! half: from 8 to 12, 18, 27. A step is kept if the throughput rises by at least 10 %.

use byway_wire::{Duration, Instant};

/// The number of proxied paths that are opened at first.
pub(crate) const INITIAL_PATH_LIMIT: usize = 8;
/// The factor by which the throughput must rise after a step of half as many paths more.
const MIN_STEP_GAIN: f64 = 1.1;
/// The pause after a step without a gain. Each such step doubles the next pause, up to
/// `MAX_STEP_PAUSE`.
const STEP_PAUSE: Duration = Duration::from_secs(30);
const MAX_STEP_PAUSE: Duration = Duration::from_secs(480);

/// The limit of proxied paths in use, and the effect of the last step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathLimit {
    most: usize,
    /// The number before the last step, and the bytes per second at the time.
    before: Option<(usize, f64)>,
    not_before: Instant,
    rest: Duration,
}

impl PathLimit {
    pub const fn new() -> Self {
        Self { most: INITIAL_PATH_LIMIT, before: None, not_before: Instant::ZERO, rest: STEP_PAUSE }
    }

    /// Returns the number of further paths that may be opened. `in_use`: the number of paths in
    /// use. `unproven`: whether a path is too new to be judged, so that the limit stays. `rate`:
    /// the throughput in bytes per second.
    pub fn room(&mut self, now: Instant, in_use: usize, unproven: bool, rate: Option<f64>) -> usize {
        if in_use >= self.most
            && !unproven
            && let Some(rate) = rate
        {
            match self.before.take() {
                Some((most, before)) if rate < MIN_STEP_GAIN * before => {
                    self.most = most;
                    self.not_before = now + self.rest;
                    self.rest = self.rest.saturating_mul(2).min(MAX_STEP_PAUSE);
                }
                Some(_) => self.rest = STEP_PAUSE,
                None => {}
            }
            if now >= self.not_before {
                self.before = Some((self.most, rate));
                self.most += self.most.div_ceil(2);
            }
        }
        self.most.saturating_sub(in_use)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates ten minutes and returns the number of paths in use at the end. The total
    /// throughput is `each` times the number of paths, but at most `most`, in bytes per second.
    /// Every two seconds, as many paths are opened as `PathLimit` allows.
    fn reached(each: f64, most: f64) -> usize {
        let (mut path_limit, mut in_use, mut opened_at) = (PathLimit::new(), INITIAL_PATH_LIMIT, 0);
        for second in (0..600).step_by(2) {
            let rate = (each * in_use as f64).min(most);
            let room = path_limit.room(
                Instant::from_millis(second * 1_000),
                in_use,
                second < opened_at + 20,
                Some(rate),
            );
            if room > 0 {
                (in_use, opened_at) = (in_use + room, second);
            }
        }
        in_use
    }

    #[test]
    fn it_grows_while_that_gains() {
        assert!(reached(1.0, f64::MAX) > 450);
        assert_eq!(reached(1.0, 5.0), 12, "one step beyond what is enough");
        assert_eq!(reached(1.0, 20.0), 41, "18, 27, and one step more");
    }
}
