//! The times that packets waited at the exit, and why they left.

use byway_wire::Duration;

/// Upper bounds of the histogram, ms. Waits beyond the last are in a place of their own.
pub const BOUNDS_MS: [u64; 10] = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500];

/// Why a packet left the reorder queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// All earlier packets had arrived.
    InOrder,
    /// The packet arrived after later ones were released.
    Late,
    /// The timer of the packet expired.
    TimedOut,
    /// A later packet had waited long enough.
    Swept,
    /// More packets waited than the buffer holds.
    Overflow,
}

/// Counters of a reorder queue, or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitStats {
    /// Number of packets by waiting time: at most each of [`BOUNDS_MS`], and longer than all of
    /// these.
    pub waits: [u64; BOUNDS_MS.len() + 1],
    /// The sum of all waiting times.
    pub waited: Duration,
    /// Packets that left in order.
    pub in_order: u64,
    /// Packets that arrived after later ones were released.
    pub late: u64,
    /// Packets whose timer expired.
    pub timed_out: u64,
    /// Packets that were released because a later one's timer expired.
    pub swept: u64,
    /// Packets that were released early because too much was waiting.
    pub overflowed: u64,
    /// Packets dropped because a copy was already waiting.
    pub duplicates: u64,
    /// Flows whose entry gateway began to count again.
    pub begun_anew: u64,
}

impl WaitStats {
    /// Counts a packet that leaves.
    pub fn count(&mut self, waited: Duration, why: Release) {
        let place = BOUNDS_MS.iter().position(|bound| waited <= Duration::from_millis(*bound));
        if let Some(count) = self.waits.get_mut(place.unwrap_or(BOUNDS_MS.len())) {
            *count += 1;
        }
        self.waited = self.waited.saturating_add(waited);
        match why {
            Release::InOrder => self.in_order += 1,
            Release::Late => self.late += 1,
            Release::TimedOut => self.timed_out += 1,
            Release::Swept => self.swept += 1,
            Release::Overflow => self.overflowed += 1,
        }
    }

    /// Packets that left.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.waits.iter().sum()
    }

    /// The share of packets that waited for at most `millis`, one of [`BOUNDS_MS`] (else the next
    /// smaller one counts). 1 if there were none.
    #[must_use]
    pub fn share_within(&self, millis: u64) -> f64 {
        let within = BOUNDS_MS.iter().zip(&self.waits).filter(|(bound, _)| **bound <= millis);
        share(within.map(|(_, count)| count).sum(), self.packets()).unwrap_or(1.0)
    }

    /// The share of packets whose timer expired.
    #[must_use]
    pub fn share_timed_out(&self) -> f64 {
        share(self.timed_out, self.packets()).unwrap_or(0.0)
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        self.waits.iter_mut().zip(other.waits).for_each(|(own, other)| *own += other);
        self.waited = self.waited.saturating_add(other.waited);
        self.in_order += other.in_order;
        self.late += other.late;
        self.timed_out += other.timed_out;
        self.swept += other.swept;
        self.overflowed += other.overflowed;
        self.duplicates += other.duplicates;
        self.begun_anew += other.begun_anew;
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_paper_claims_can_be_read_off() {
        let mut stats = WaitStats::default();
        assert_eq!((stats.share_within(20), stats.share_timed_out()), (1.0, 0.0));
        (0..90).for_each(|_| stats.count(Duration::ZERO, Release::InOrder));
        (0..5).for_each(|_| stats.count(Duration::from_millis(20), Release::InOrder));
        (0..4).for_each(|_| stats.count(Duration::from_micros(20_001), Release::Swept));
        stats.count(Duration::from_secs(2), Release::TimedOut);
        assert_eq!((stats.share_within(0), stats.share_within(20)), (0.9, 0.95));
        assert_eq!(
            (stats.share_within(30), stats.share_within(500), stats.share_timed_out()),
            (0.95, 0.99, 0.01)
        );
        let mut twice = stats;
        twice.add(&stats);
        assert_eq!((twice.packets(), twice.share_within(20), twice.waited), (200, 0.95, 2 * stats.waited));
    }
}
