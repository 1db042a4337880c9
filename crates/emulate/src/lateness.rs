//! How late frames left, and whether the machine was too busy for what the lab promises.

use byway_wire::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// The promise: a round trip is right within a millisecond, so each of its two directions within
/// half of one.
pub const MAX_LATENESS: Duration = Duration::from_micros(500);

/// The largest share of frames (0 to 1) that may leave later than `MAX_LATENESS` or be dropped by
/// the kernel. Beyond this share, the links did not behave as configured, so measurements are not
/// valid.
pub const MAX_LATE_SHARE: f64 = 0.01;

/// How late frames left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// Number of frames that were sent on.
    pub frames: u64,
    /// Number of frames that were sent later than [`MAX_LATENESS`] after they were due.
    pub late: u64,
    /// The largest delay of a frame after its due time, in microseconds.
    pub worst_us: u64,
    /// The sum of all, in microseconds.
    pub total_us: u64,
    /// Frames that the kernel dropped before they entered a link, because the keeper did not read
    /// them in time.
    pub missed: u64,
    /// Frames that the kernel did not take from a line.
    pub refused: u64,
}

impl Lateness {
    /// Notes a frame that was due at `due` and left at `now`.
    pub fn note(&mut self, due: Instant, now: Instant) {
        let late = now.since(due);
        let micros = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
        self.frames += 1;
        self.late += u64::from(late > MAX_LATENESS);
        self.worst_us = self.worst_us.max(micros);
        self.total_us = self.total_us.saturating_add(micros);
    }

    /// The part of all frames that left too late, or not at all through no fault of the plan's.
    #[must_use]
    pub fn share(&self) -> f64 {
        let all = self.frames + self.missed + self.refused;
        if all == 0 { 0.0 } else { (self.late + self.missed + self.refused) as f64 / all as f64 }
    }

    /// How late a frame left on average, in microseconds.
    #[must_use]
    pub fn mean_us(&self) -> f64 {
        if self.frames == 0 { 0.0 } else { self.total_us as f64 / self.frames as f64 }
    }

    /// Whether few enough frames were late or dropped ([`MAX_LATE_SHARE`]) that the links behaved
    /// as the plan says.
    #[must_use]
    pub fn accurate(&self) -> bool {
        self.share() <= MAX_LATE_SHARE
    }

    /// A sentence that warns of measurements in this lab. `None`: the links were accurate.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        (!self.accurate()).then(|| {
            format!(
                "this machine was too busy to be accurate: of {} packets {} left more than {} ms late (the latest {:.1} ms) and {} were lost beside the plan",
                self.frames + self.missed + self.refused,
                self.late,
                MAX_LATENESS.as_secs_f64() * 1e3,
                self.worst_us as f64 / 1e3,
                self.missed + self.refused,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_a_hundred_may_be_late() {
        let mut lateness = Lateness::default();
        assert!(lateness.accurate() && lateness.warning().is_none());
        let due = Instant::from_millis(1);
        for _ in 0..99 {
            lateness.note(due, due + MAX_LATENESS);
        }
        lateness.note(due, due + MAX_LATENESS + Duration::from_micros(1));
        assert!(lateness.accurate(), "{lateness:?}");
        lateness.missed = 1;
        assert!(!lateness.accurate());
        assert!(lateness.warning().is_some_and(|warning| warning.contains("of 101 packets 1 left")));
        assert_eq!((lateness.worst_us, lateness.mean_us() as u64), (501, 500));
    }
}
