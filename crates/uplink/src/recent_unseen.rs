//! What byway sent a moment ago and the interface's counters have yet to show.

use crate::unseen_bytes::UnseenBytes;
use byway_wire::{Duration, Instant};

/// What was sent is forgotten after one to two of these times. Interfaces count a packet when they
/// have sent it: on Wi-Fi some milliseconds later.
const GENERATION_TIME: Duration = Duration::from_millis(10);

/// Bytes that byway handed to the interface in the last 10 to 20 ms and that its counter has not
/// shown. How an interface counts the headers of what it segments itself is not known: what a
/// sender counts too much is forgotten soon, and hides little of what the host sends.
#[derive(Clone, Copy, Debug)]
pub struct RecentUnseen {
    older: UnseenBytes,
    newer: UnseenBytes,
    since: Instant,
}

impl RecentUnseen {
    /// Nothing was sent.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self { older: UnseenBytes::default(), newer: UnseenBytes::default(), since: now }
    }

    fn advance(&mut self, now: Instant) {
        let age = now.since(self.since);
        if age < GENERATION_TIME {
            return;
        }
        self.older = if age < GENERATION_TIME * 2 { self.newer } else { UnseenBytes::default() };
        (self.newer, self.since) = (UnseenBytes::default(), now);
    }

    /// Notes that byway handed these bytes to the interface, as its counter counts them.
    pub fn on_sent(&mut self, bytes: u64, now: Instant) {
        self.advance(now);
        self.newer.on_sent(bytes);
    }

    /// Splits what the counter showed: returns what of it is not byway's.
    pub fn split(&mut self, shown: u64, now: Instant) -> u64 {
        let rest = self.older.split(shown);
        let rest = self.newer.split(rest);
        self.advance(now);
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows_within_ten_milliseconds_is_byways_and_what_never_shows_is_forgotten() {
        let mut now = Instant::from_millis(1);
        let mut unseen = RecentUnseen::new(now);
        for step in 0..200 {
            unseen.on_sent(3_000, now);
            now += Duration::from_millis(10 - step % 5);
            assert_eq!(unseen.split(3_000, now), 0, "{step}");
        }
        unseen.on_sent(50_000, now);
        now += Duration::from_millis(12);
        assert_eq!(unseen.split(0, now), 0);
        now += Duration::from_millis(12);
        assert_eq!(unseen.split(0, now), 0);
        assert_eq!(unseen.split(9_000, now), 9_000);
    }
}
