//! Trials of load aggregation (mPath, 2.3): the direct path must carry what proxied paths lend it.

use crate::bundle::Rate;
use byway_wire::{Duration, Instant};

/// Time for which a proxied path gives half of its window to the direct path, as a test of a shared
/// queue. In a shared queue, half the window means half the throughput. Otherwise only the proxied
/// path's own queue shrinks, and its throughput stays.
const HALF_LOAN_TIME: Duration = Duration::from_millis(2_800);
/// Time for which the whole load is lent after that. Delays are compared over twice this time.
const FULL_LOAN_TIME: Duration = Duration::from_millis(5_600);
/// The first part of each trial, in which the windows settle. It is not measured.
const SETTLING_TIME: Duration = Duration::from_millis(1_400);
/// The pause after a trial that showed no shared bottleneck. In a trial, proxied paths give their
/// windows to the direct path, for at most 8.4 s. So trials take at most an eighth of the time.
/// Failures double the pause, up to 16 minutes.
pub(super) const TRIAL_INTERVAL: Duration = Duration::from_secs(60);
pub(super) const MAX_TRIAL_INTERVAL: Duration = Duration::from_secs(960);
/// The age from which a path counts as useful, unless it seems to wait in the direct path's queue.
pub(super) const USEFUL_PATH_AGE: Duration = Duration::from_secs(60);
/// Twice the time over which delays are compared.
pub(super) const COMPARISON_TIME: Duration = Duration::from_secs(21);
/// The time for which no paths are requested after some paths added nothing. It doubles each time,
/// until a path stays for a minute.
pub(super) const REQUEST_PAUSE: Duration = Duration::from_secs(4);
pub(super) const MAX_REQUEST_PAUSE: Duration = Duration::from_secs(256);
/// The share of the throughput with the dropped paths, below which they are needed after all.
const MISSED_PATHS_SHARE: f64 = 0.9;

/// The results of moving load to the direct path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trials {
    pub now: Option<Trial>,
    /// Whether the direct path carried the load that was last lent to it.
    pub trust: bool,
    /// The time before which no trial begins, and the pause after the next trial that fails.
    pub not_before: Instant,
    pub apart: Duration,
    /// The time before which no paths are requested, and the pause after the next paths that add
    /// nothing.
    pub quiet_until: Instant,
    pub pause: Duration,
    /// The highest throughput of all paths with the ones that added nothing, in bytes per second.
    pub with_them: f64,
}

/// A trial that runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    pub began_at: Instant,
    pub settled_at: Instant,
    pub ends_at: Instant,
    pub part: LoadPart,
    /// Bytes per second that the direct path must reach with all of the load.
    pub needed: f64,
    /// When counting began, and the bytes that the judged paths had carried by then.
    pub from: Option<(Instant, f64)>,
}

/// The part of the load that is lent.
#[derive(Clone, Copy, Debug)]
pub(super) enum LoadPart {
    /// Half of the load, from paths that carried this many bytes per second.
    Half(f64),
    All,
}

impl Trial {
    /// A trial that begins at `now`.
    pub fn new(now: Instant, part: LoadPart, needed: f64) -> Self {
        let lasts = if matches!(part, LoadPart::All) { FULL_LOAN_TIME } else { HALF_LOAN_TIME };
        Self {
            began_at: now,
            settled_at: now + SETTLING_TIME,
            ends_at: now + lasts,
            part,
            needed,
            from: None,
        }
    }
}

impl Trials {
    pub const fn new() -> Self {
        Self {
            now: None,
            trust: false,
            not_before: Instant::ZERO,
            apart: TRIAL_INTERVAL,
            quiet_until: Instant::ZERO,
            pause: REQUEST_PAUSE,
            with_them: 0.0,
        }
    }

    /// Whether similar delays of two paths are, at present, no evidence of a shared bottleneck.
    /// This is so for a pause after the direct path failed to carry the load of paths with similar
    /// delays.
    pub fn doubt(&self, now: Instant) -> bool {
        now < self.not_before
    }

    /// Whether more paths may be requested: the pause after useless paths is over, or the
    /// throughput is clearly lower without them.
    pub fn allow_wishes(&self, now: Instant, carried: &Rate) -> bool {
        let missed = || carried.of_late(now).is_some_and(|rate| rate < MISSED_PATHS_SHARE * self.with_them);
        self.now.is_none() && (now >= self.quiet_until || missed())
    }
}
