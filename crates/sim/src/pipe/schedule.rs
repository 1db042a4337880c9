//! The changes of a line over a run, as data that is known beforehand.

use byway_wire::{Duration, Instant};

/// Something about a line that changes at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The world time from which the change applies.
    pub at: Instant,
    /// The change at this time.
    pub change: Change,
}

/// A property of a line that changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Bits per second, for packets whose service begins from then on. `None`: no limit.
    Rate(Option<u64>),
    /// Propagation, for packets whose last bit leaves from then on. Where it shrinks they still
    /// overtake none.
    Delay(Duration),
    /// Probability of loss, for packets that are offered from then on.
    Loss(f64),
    /// All packets offered from then on are dropped.
    Down,
    /// The line works again.
    Up,
}

/// A value that follows the clock. It is asked about times that never go back, so a look costs one
/// comparison.
#[derive(Clone, Debug)]
pub(super) struct TimedValue<T> {
    value: T,
    steps: Vec<(Instant, T)>,
    next: usize,
    /// When the value changes next.
    changes: Instant,
}

impl<T: Copy> TimedValue<T> {
    /// Begins with `first`, then follows the steps that `choose` finds in a schedule.
    pub(super) fn new(first: T, schedule: &[Step], choose: impl Fn(Change) -> Option<T>) -> Self {
        let mut steps: Vec<(Instant, T)> =
            schedule.iter().filter_map(|step| choose(step.change).map(|value| (step.at, value))).collect();
        // Stable: of two steps at one time the later in the list holds.
        steps.sort_by_key(|step| step.0);
        let changes = steps.first().map_or(Instant::FAR_FUTURE, |step| step.0);
        Self { value: first, steps, next: 0, changes }
    }

    /// The value at `time`, which is not before any time asked about earlier.
    pub(super) fn at(&mut self, time: Instant) -> T {
        while time >= self.changes {
            let Some(&(_, value)) = self.steps.get(self.next) else { break };
            self.value = value;
            self.next += 1;
            self.changes = self.steps.get(self.next).map_or(Instant::FAR_FUTURE, |step| step.0);
        }
        self.value
    }

    /// Sets the value from now on, and removes all later steps.
    pub(super) fn set(&mut self, value: T) {
        *self = Self { value, steps: Vec::new(), next: 0, changes: Instant::FAR_FUTURE };
    }
}
