//! How soon losses are found.

use alloc::collections::VecDeque;
use byway_wire::Duration;

/// How long after it was sent each packet was held for lost, of the newest
/// [`CAPACITY`](Self::CAPACITY).
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

    /// A packet counts as lost, the time `after` it was sent.
    pub fn note(&mut self, after: Duration) {
        if self.after.len() >= Self::CAPACITY {
            self.after.pop_front();
        }
        self.after.push_back(after);
    }

    /// The newest, in the order in which they were found.
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
