//! The intervals in which rates are tried.

use super::interval::Interval;
use crate::seeded_random::Random;
use byway_wire::{Duration, Instant};

/// Intervals of a trial of two rates: two pairs, as for a scavenger
/// (`kNumIntervalGroupsInProbingScavenger`).
pub(super) const PAIRED_INTERVALS: usize = 4;
/// The distance of a pair's rates from their middle, as a share (`kProbingStepSize`).
pub(super) const TRIAL_STEP_SHARE: f64 = 0.05;

/// Intervals that are tried in turn. After the last, sending goes on at the middle rate until their
/// outcome is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trials {
    rates: [f64; PAIRED_INTERVALS],
    wanted: usize,
    middle: f64,
    intervals: [Option<Interval>; PAIRED_INTERVALS],
    begun: usize,
    is_open: bool,
}

impl Trials {
    const fn new(rates: [f64; PAIRED_INTERVALS], wanted: usize, middle: f64) -> Self {
        let intervals = [None; PAIRED_INTERVALS];
        Self { rates, wanted, middle, intervals, begun: 0, is_open: false }
    }

    /// One interval with `rate` bytes per second.
    pub(super) const fn one(rate: f64) -> Self {
        Self::new([rate; PAIRED_INTERVALS], 1, rate)
    }

    /// Two pairs of intervals with a higher and a lower rate, in an order that `random` draws.
    pub(super) fn pairs(middle: f64, random: &mut Random) -> Self {
        let mut rates = [middle; PAIRED_INTERVALS];
        for pair in rates.chunks_mut(2) {
            let step = if random.below(2) == 1 { TRIAL_STEP_SHARE } else { -TRIAL_STEP_SHARE };
            for (rate, step) in pair.iter_mut().zip([step, -step]) {
                *rate *= 1.0 + step;
            }
        }
        Self::new(rates, PAIRED_INTERVALS, middle)
    }

    /// Returns the present sending rate, in bytes per second.
    pub(super) fn rate(&self) -> f64 {
        if self.begun == 0 || self.is_open { self.rates[self.begun.saturating_sub(1)] } else { self.middle }
    }

    /// A packet was sent. `least`: how long an interval is.
    pub(super) fn on_sent(&mut self, now: Instant, bytes: f64, least: Duration) {
        if self.is_open
            && let Some(interval) = self.latest()
            && interval.end(now)
        {
            self.is_open = false;
        }
        if !self.is_open && self.begun < self.wanted {
            self.intervals[self.begun] = Some(Interval::new(now, self.rates[self.begun], least));
            (self.begun, self.is_open) = (self.begun + 1, true);
        }
        if self.is_open
            && let Some(interval) = self.latest()
        {
            interval.on_sent(now, bytes);
        }
    }

    fn latest(&mut self) -> Option<&mut Interval> {
        self.intervals.get_mut(self.begun.checked_sub(1)?)?.as_mut()
    }

    /// The intervals that began.
    pub(super) fn intervals(&mut self) -> impl Iterator<Item = &mut Interval> {
        self.intervals.iter_mut().flatten()
    }

    /// The interval of the packet that was sent at `at`.
    pub(super) fn of(&mut self, at: Instant) -> Option<&mut Interval> {
        self.intervals().find(|interval| interval.has(at))
    }

    /// Returns the intervals, once the results of all are known.
    pub(super) fn complete(&self) -> Option<impl Iterator<Item = &Interval>> {
        let complete = self.intervals.iter().flatten().filter(|interval| interval.is_complete()).count();
        (complete == self.wanted).then(|| self.intervals.iter().flatten())
    }
}
