//! How soon losses are found.

use alloc::collections::VecDeque;
use byway_wire::Duration;

/// The times from sending to detection, for the latest [`CAPACITY`](Self::CAPACITY) losses.
#[derive(Clone, Debug, Default)]
pub struct DetectionDelays {
    after: VecDeque<Duration>,
}

impl DetectionDelays {
    /// Losses that are remembered.
    pub const CAPACITY: usize = 1_000;

    /// A list without losses yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { after: VecDeque::new() }
    }

    /// Notes a loss that was found the time `after` the packet was sent.
    pub fn note(&mut self, after: Duration) {
        if self.after.len() >= Self::CAPACITY {
            self.after.pop_front();
        }
        self.after.push_back(after);
    }

    /// The latest delays, in the order in which the losses were found.
    pub fn after(&self) -> impl Iterator<Item = Duration> + '_ {
        self.after.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_are_remembered() {
        let mut found = DetectionDelays::new();
        let all = DetectionDelays::CAPACITY as u64 + 5;
        (0..all).for_each(|ms| found.note(Duration::from_millis(ms)));
        assert!(found.after().eq((5..all).map(Duration::from_millis)));
    }
}
