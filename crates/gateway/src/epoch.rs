//! One penalty per path and epoch, whatever finds the losses.

use alloc::collections::BTreeMap;
use byway_wire::{Instant, PathId};

/// When each path was last penalised for a loss: its congestion window was reduced. The loss of a
/// packet sent before then has no effect: one reduction per round trip (Harp, III.A; NewReno's
/// recovery point, RFC 6582).
#[derive(Clone, Debug, Default)]
pub struct Epochs {
    recovery: BTreeMap<PathId, Instant>,
}

impl Epochs {
    /// No path was penalised yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { recovery: BTreeMap::new() }
    }

    /// Whether a signal about a packet that was sent on `path` at `sent_at` is a new one; if so,
    /// `path` is penalised now.
    pub fn admit(&mut self, path: PathId, sent_at: Instant, now: Instant) -> bool {
        let new = self.recovery.get(&path).is_none_or(|recovery| sent_at >= *recovery);
        if new {
            self.recovery.insert(path, now);
        }
        new
    }

    /// Forgets a path that is no more.
    pub fn close(&mut self, path: PathId) {
        self.recovery.remove(&path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_before_a_penalty_makes_no_second_one() {
        let at = Instant::from_millis;
        let mut epochs = Epochs::new();
        let (one, two) = (PathId(1), PathId(2));
        assert!(epochs.admit(one, at(10), at(50)));
        assert!(!epochs.admit(one, at(49), at(95)), "one round trip later, but sent before");
        assert!(epochs.admit(two, at(49), at(95)), "another path");
        assert!(epochs.admit(one, at(50), at(96)));
        epochs.close(one);
        assert!(epochs.admit(one, at(0), at(97)));
    }
}
