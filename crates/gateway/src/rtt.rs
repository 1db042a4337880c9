//! The round trip of an inner flow, as the entry sees it: from data that passes it to the receiver's acknowledgment.
//!
//! It is what [`window::View`](crate::window::View) asks for: paths, waiting at both gateways and the far site included, the short
//! way between sender and entry left out.

use crate::tcp::{before, later};
use byway_wire::{Duration, Instant};

/// Times one direction of a flow: one sample at a time, about one per round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InnerRtt {
    /// One past the bytes that are timed, and when they passed.
    timed: Option<(u32, Instant)>,
    /// One past the last byte that passed.
    highest: Option<u32>,
    smoothed: Option<Duration>,
    least: Option<Duration>,
}

impl InnerRtt {
    /// Nothing timed yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { timed: None, highest: None, smoothed: None, least: None }
    }

    /// Smoothed as TCP's own (RFC 6298: a sample counts one eighth). `None` before the first.
    #[must_use]
    pub const fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// The smallest.
    #[must_use]
    pub const fn least(&self) -> Option<Duration> {
        self.least
    }

    /// Sequence numbers from `start` to `end` pass on their way to the receiver (a SYN counts).
    pub fn on_data(&mut self, now: Instant, start: u32, end: u32) {
        if start == end {
            return;
        }
        if self.highest.is_some_and(|highest| before(start, highest)) {
            // Sent again: nobody can tell which of the two is acknowledged (Karn's algorithm).
            self.timed = self.timed.filter(|(timed, _)| !before(start, *timed));
        } else {
            self.timed.get_or_insert((end, now));
        }
        self.highest = Some(self.highest.map_or(end, |highest| later(highest, end)));
    }

    /// The receiver acknowledges all before `acknowledgment`. Returns the sample, if this made one.
    pub fn on_ack(&mut self, now: Instant, acknowledgment: u32) -> Option<Duration> {
        let (_, since) = self.timed.take_if(|(end, _)| !before(acknowledgment, *end))?;
        let sample = now.since(since);
        self.smoothed = Some(self.smoothed.map_or(sample, |smoothed| (smoothed * 7 + sample) / 8));
        self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
        Some(sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    const fn ms(millis: u64) -> Option<Duration> {
        Some(Duration::from_millis(millis))
    }

    #[test]
    fn one_sample_at_a_time_over_the_turn_of_the_numbers() {
        let mut rtt = InnerRtt::new();
        rtt.on_data(at(0), u32::MAX, 0);
        rtt.on_data(at(5), 0, 1_000);
        rtt.on_data(at(6), 1_000, 1_000);
        assert_eq!((rtt.on_ack(at(9), u32::MAX), rtt.on_ack(at(40), 0)), (None, ms(40)));
        assert_eq!(rtt.on_ack(at(45), 1_000), None, "that was not timed");
        rtt.on_data(at(50), 1_000, 2_000);
        assert_eq!(rtt.on_ack(at(170), 5_000), ms(120));
        assert_eq!((rtt.smoothed(), rtt.least()), (ms(50), ms(40)));
    }

    #[test]
    fn what_was_sent_twice_tells_nothing() {
        let mut rtt = InnerRtt::new();
        rtt.on_data(at(0), 0, 1_000);
        rtt.on_data(at(1), 1_000, 2_000);
        rtt.on_data(at(300), 0, 1_000);
        assert_eq!(rtt.on_ack(at(310), 2_000), None);
        // Behind the bytes that are timed it does not matter.
        rtt.on_data(at(400), 2_000, 3_000);
        rtt.on_data(at(401), 3_000, 4_000);
        rtt.on_data(at(402), 3_000, 4_000);
        assert_eq!(rtt.on_ack(at(430), 3_000), ms(30));
    }
}
