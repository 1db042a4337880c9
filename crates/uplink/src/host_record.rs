//! What the host had sent by its uplink at a past time.

use byway_wire::Instant;

/// The number of changes that are remembered. Looks are a millisecond apart, and only those that
/// show something new are changes.
const MAX_CHANGES: usize = 128;

/// Bytes that the host had sent at each of the latest changes.
#[derive(Clone, Debug)]
pub struct HostRecord {
    changes: [(Instant, u64); MAX_CHANGES],
    /// Where the next change goes.
    next: usize,
}

impl Default for HostRecord {
    fn default() -> Self {
        Self { changes: [(Instant::ZERO, 0); MAX_CHANGES], next: 0 }
    }
}

impl HostRecord {
    /// Notes that the host has sent `total` bytes so far.
    pub fn push(&mut self, now: Instant, total: u64) {
        if self.latest().1 == total {
            return;
        }
        if let Some(change) = self.changes.get_mut(self.next) {
            *change = (now, total);
        }
        self.next = (self.next + 1) % MAX_CHANGES;
    }

    fn latest(&self) -> (Instant, u64) {
        self.back().next().unwrap_or_default()
    }

    /// The changes, the latest first.
    fn back(&self) -> impl Iterator<Item = (Instant, u64)> + '_ {
        let (newer, older) = self.changes.split_at(self.next);
        newer.iter().rev().chain(older.iter().rev()).copied()
    }

    /// Bytes that the host had sent at this time. If that is forgotten: the least that is known.
    #[must_use]
    pub fn at(&self, time: Instant) -> u64 {
        let mut least = self.latest().1;
        for (at, total) in self.back() {
            if at <= time {
                return total.min(least);
            }
            least = total;
        }
        least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_past_is_remembered_up_to_a_number_of_changes() {
        let at = Instant::from_millis;
        let mut record = HostRecord::default();
        assert_eq!((record.at(at(0)), record.at(at(9))), (0, 0));
        for step in 1..=300 {
            record.push(at(step), step * 10);
            record.push(at(step) + byway_wire::Duration::from_micros(500), step * 10);
        }
        assert_eq!([300, 299, 250, 173].map(|millis| record.at(at(millis))), [3_000, 2_990, 2_500, 1_730]);
        assert_eq!(record.at(at(500)), 3_000);
        assert_eq!(record.at(at(5)), 1_730, "that is forgotten");
    }
}
