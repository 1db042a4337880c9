//! A queue that somebody else fills at once.

use byway_wire::time::nanos;
use byway_wire::{Duration, Instant};

/// Notices bursts of others: what a packet waited behind them grew within [`LOOK`](Self::LOOK) by some packets.
///
/// What it waited behind the sender's own packets is what they would have waited on a line of that rate without anybody else
/// (Lindley's recursion); the rest is the others' doing. How long the line takes for a packet is known only roughly, and the error
/// adds up over a window that grows too fast: in doubt a queue is one's own. Of a steady sender that grows slowly hardly anything
/// changes in that time; a transfer of a few packets comes as fast as its own line sends it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Burst {
    /// When the latest packet was sent; how long it waited for those before of the same sender until it was sent whole, and how
    /// long for others, in nanoseconds.
    sent_at: Instant,
    own: i64,
    latest: Waits,
    /// When this half of the time looked back upon began, the least waits in it, and in the half before.
    began: Instant,
    least: Waits,
    before: Waits,
}

/// How long packets waited, and how long for others, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    all: i64,
    others: i64,
}

impl Waits {
    fn least(self, other: Self) -> Self {
        Self { all: self.all.min(other.all), others: self.others.min(other.others) }
    }
}

impl Burst {
    /// Looks back so far, and half as far at least. If packets are further apart, to the one before.
    pub const LOOK: Duration = Duration::from_millis(25);
    /// A growth by less is none, in nanoseconds, nor one by less than so many packets.
    const LEAST: i64 = 4_000_000;
    const LEAST_PACKETS: i64 = 2;
    /// The same where nothing of one's own can have waited, so that nothing is in doubt. It is no more than what counts as a queue
    /// in company at 10 Mbit/s: of the few packets that end a request a queue remains that is shorter than `LEAST`, and who sends little
    /// took it for its own.
    const LEAST_ALONE: i64 = 3_000_000;
    /// A packet may take longer on the line than thought by such a part of its time.
    const IN_DOUBT: i64 = 4;

    /// A packet sent at `sent_at`, which the line sends in `packet` nanoseconds, waited `wait` nanoseconds in a queue; `spread` is no
    /// queue but the trembling of the line. Whether it tells of a burst.
    pub fn sample(&mut self, wait: i64, sent_at: Instant, packet: i64, spread: i64) -> bool {
        let age = sent_at.since(self.began);
        if age >= Self::LOOK / 2 {
            self.before = if age < Self::LOOK { self.least } else { self.latest };
            self.least = self.latest;
            self.began = sent_at;
        }
        let gap = i64::try_from(nanos(sent_at.since(self.sent_at))).unwrap_or(i64::MAX);
        self.sent_at = sent_at;
        // If the line is faster than thought, it has not waited for all of it.
        let own = self.own.saturating_sub(gap).clamp(0, wait.max(0));
        self.own = own.saturating_add(packet).saturating_add(packet / Self::IN_DOUBT);
        self.latest = Waits { all: wait, others: wait.saturating_sub(own) };
        let least = self.least.least(self.before);
        self.least = self.least.least(self.latest);
        let grown =
            self.latest.all.saturating_sub(least.all).min(self.latest.others.saturating_sub(least.others));
        let least = if own == 0 { Self::LEAST_ALONE } else { Self::LEAST };
        let steady = least.max(packet.saturating_mul(Self::LEAST_PACKETS));
        grown > steady.saturating_add(spread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    /// What a packet of 1500 bytes takes at 10 Mbit/s.
    const PACKET: i64 = 12 * MS / 10;

    /// Packets each `gap` ms for a second, which wait by their time; when a burst was seen first, in ms.
    fn look(gap: u64, wait: impl Fn(i64) -> i64) -> Option<i64> {
        let mut burst = Burst::default();
        (0..1_000 / gap)
            .map(|at| (at * gap) as i64)
            .find(|at| burst.sample(wait(*at), Instant::from_millis(*at as u64), PACKET, 0))
    }

    /// Ten packets come within 4 ms at 500 ms and drain as the line allows, beside a sender with half of it.
    fn ten_packets(at: i64) -> i64 {
        if at < 500 { 0 } else { (3 * (at - 500)).min(12 - (at - 504) / 2).max(0) * MS }
    }

    #[test]
    fn ten_packets_of_somebody_are_seen_at_once_even_by_who_sends_little() {
        for (gap, by) in [(1, 503), (2, 504), (10, 520), (24, 528)] {
            let seen = look(gap, ten_packets).unwrap_or(0);
            assert!((500..=by).contains(&seen), "{gap} ms apart: {seen}");
        }
    }

    #[test]
    fn the_few_packets_that_end_a_request_are_seen_by_who_sends_little_and_meets_their_queue() {
        // Five packets at 500 ms, beside a sender with half of the line and a packet each 10 ms.
        let five = |at: i64| if at < 500 { 0 } else { (12 - (at - 500)).max(0) * MS / 2 };
        for (after, seen) in [(0, true), (5, true), (8, false)] {
            let mut burst = Burst::default();
            let found = (0..100)
                .map(|number| after + 10 * number)
                .any(|at: i64| burst.sample(five(at), Instant::from_millis(at as u64), PACKET, 0));
            assert_eq!(found, seen, "{after} ms after");
        }
    }

    #[test]
    fn a_slow_growth_is_none() {
        assert_eq!(look(2, |at| at * MS / 10), None);
    }

    #[test]
    fn a_queue_of_ones_own_is_none() {
        // Twice as many packets as the line takes, after a time without any, as when a drain ends.
        let mut burst = Burst::default();
        let seen = (0..40_u64).any(|number| {
            let (wait, sent) = (number as i64 * PACKET / 2, Duration::from_micros(600 * number));
            burst.sample(wait, Instant::from_millis(500) + sent, PACKET, 0)
        });
        assert!(!seen);
    }

    #[test]
    fn a_queue_of_ones_own_is_none_where_packets_take_longer_than_thought() {
        // Thirty packets within 18 ms, each of which takes two ninths longer than thought: 1.32 ms and not 1.08.
        let mut burst = Burst::default();
        let seen = (0..30_u64).any(|number| {
            let (wait, sent) = (number as i64 * PACKET * 6 / 10, Duration::from_micros(600 * number));
            burst.sample(wait, Instant::from_millis(500) + sent, PACKET * 9 / 10, 0)
        });
        assert!(!seen);
    }

    #[test]
    fn trembling_is_none() {
        assert_eq!(look(2, |at| at * 7 % 5 * MS / 2), None);
    }
}
