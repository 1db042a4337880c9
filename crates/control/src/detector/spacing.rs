//! How close packets follow each other where the line lets them out.

use byway_wire::Duration;

/// The time that one packet takes on the line, from the packets that arrived closest to each other.
///
/// However many share a line, what waits in its queue leaves it one by one: no two packets arrive closer than the line takes to
/// send one. The rate at which somebody's own packets are delivered says the same only to who has the line for himself: to one of
/// ten it seems ten times as slow. A pair that was joined in one batch behind the line, or whose second packet was short, would be
/// believed for ever; so the least of all counts only when there are three as close.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spacing {
    /// The smallest distances in nanoseconds, ascending; zero where there is none yet.
    least: [i64; Self::PAIRS],
    seen: usize,
}

impl Spacing {
    /// So many pairs as close as that are believed.
    const PAIRS: usize = 3;

    /// Two packets, one sent after the other, arrived `apart` nanoseconds from each other.
    pub fn sample(&mut self, apart: i64) {
        if apart <= 0 {
            return;
        }
        if let Some(place) = self.least.get_mut(self.seen) {
            *place = apart;
            self.seen += 1;
        } else if let Some(last) = self.least.last_mut().filter(|last| apart < **last) {
            *last = apart;
        } else {
            return;
        }
        if let Some(seen) = self.least.get_mut(..self.seen) {
            seen.sort_unstable();
        }
    }

    /// The time that a packet takes, or longer if packets never met in a queue; `None` until pairs were seen.
    #[must_use]
    pub fn packet(&self) -> Option<Duration> {
        let known = self.seen == Self::PAIRS;
        let least = self.least.last().filter(|_| known)?;
        Some(Duration::from_nanos(least.unsigned_abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn pairs_that_met_in_the_queue_tell_the_line_and_one_outlier_does_not() {
        let mut spacing = Spacing::default();
        for apart in [0, -MS, 12 * MS, MS / 100, 15 * MS] {
            spacing.sample(apart);
        }
        assert_eq!(spacing.packet(), Some(Duration::from_millis(15)), "of three, the largest");
        for apart in [2 * MS, 14 * MS, 2 * MS, 30 * MS] {
            spacing.sample(apart);
        }
        assert_eq!(spacing.packet(), Some(Duration::from_millis(2)));
    }

    #[test]
    fn two_pairs_are_too_few() {
        let mut spacing = Spacing::default();
        spacing.sample(MS);
        spacing.sample(MS);
        assert_eq!(spacing.packet(), None);
    }
}
