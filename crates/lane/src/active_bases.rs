//! The RTTs without a queue of the targets that bytes go to at present.

use byway_wire::{Duration, Instant};

/// A target counts for this time at least after its last sample, and for twice this time at most.
const ACTIVE_TIME: Duration = Duration::from_secs(1);

/// The least and the greatest base RTT of the targets that are active.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActiveBases {
    /// Least and greatest of the present window and of the one before.
    windows: [Option<(Duration, Duration)>; 2],
    since: Instant,
}

impl ActiveBases {
    /// No target is active.
    pub const fn new(now: Instant) -> Self {
        Self { windows: [None; 2], since: now }
    }

    /// A sample of a target with this base RTT came.
    pub fn sample(&mut self, base: Duration, now: Instant) {
        if now.since(self.since) >= ACTIVE_TIME {
            self.windows = [None, self.windows[0]];
            self.since = now;
        }
        let (near, far) = self.windows[0].unwrap_or((base, base));
        self.windows[0] = Some((near.min(base), far.max(base)));
    }

    /// The base RTT of the nearest active target.
    pub fn near(&self) -> Option<Duration> {
        self.windows.iter().flatten().map(|(near, _)| *near).min()
    }

    /// The base RTT of the farthest active target.
    pub fn far(&self) -> Option<Duration> {
        self.windows.iter().flatten().map(|(_, far)| *far).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sends_no_more_counts_no_more() {
        let [near, far] = [20, 150].map(Duration::from_millis);
        let mut bases = ActiveBases::new(Instant::from_millis(0));
        assert_eq!((bases.near(), bases.far()), (None, None));
        for millis in (0..3_000).step_by(100) {
            let now = Instant::from_millis(millis);
            bases.sample(far, now);
            if millis < 500 {
                bases.sample(near, now);
            }
            let nearest = if millis < 2_000 { near } else { far };
            assert_eq!((bases.near(), bases.far()), (Some(nearest), Some(far)), "{millis} ms");
        }
    }
}
