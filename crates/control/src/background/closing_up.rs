//! Packets that close up on their way. They prove that a path has jitter: a line of fixed rate lets
//! a packet out of its queue at least one packet time after the packet before.

use super::constants::{
    CLOSING_FACTOR, CLOSING_FORGET_TIME, CLOSING_LEARN_TIME, FALL_MARGIN, MAX_BURST_TIME,
    MAX_TELLING_GAP_PACKETS, MIN_CLOSING_SHARE, MIN_QUEUE_DELAY,
};
use byway_wire::time::signed_nanos;
use byway_wire::{Duration, Instant};

/// How many windows of [`ClosingUp::FALL_WINDOW`] are kept, the present one too.
const FALL_WINDOW_COUNT: usize = 8;

/// Which part of the sending time passes in runs of packets that arrive together, and by how much
/// the delay falls in them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClosingUp {
    /// The part, from 0 to 1, of the recent sending time whose packets arrived together.
    share: f64,
    /// The sending time of the present run, in nanoseconds.
    run: i64,
    /// By how much the delay has fallen in the present run, in nanoseconds.
    fall: i64,
    /// The greatest fall of each of the latest windows, the present one first, in nanoseconds.
    falls: [i64; FALL_WINDOW_COUNT],
    /// When the present window began.
    window_at: Instant,
}

impl ClosingUp {
    /// The length of a window of which the greatest fall is kept.
    const FALL_WINDOW: Duration = Duration::from_millis(250);

    /// Two full packets, the later of which was sent at `sent_at`, were sent `gap` nanoseconds
    /// apart and arrived `apart` nanoseconds apart. `packet_time`: how long the line takes for a
    /// full packet, as far as known.
    pub fn sample(&mut self, sent_at: Instant, gap: i64, apart: i64, packet_time: Duration) {
        if sent_at.since(self.window_at) >= Self::FALL_WINDOW {
            self.falls.rotate_right(1);
            (self.falls[0], self.window_at) = (0, sent_at);
        }
        if gap <= 0 {
            return;
        }
        let together = apart < gap / CLOSING_FACTOR;
        self.fall = if together && gap <= signed_nanos(MAX_BURST_TIME) {
            self.fall.saturating_add(gap.saturating_sub(apart))
        } else {
            0
        };
        // Packets of a flow with a small share of the line also close up if a queue of others
        // drains, so packets far apart prove nothing.
        if gap > signed_nanos(packet_time.saturating_mul(MAX_TELLING_GAP_PACKETS)) {
            self.run = 0;
            return;
        }
        self.run = if together { self.run.saturating_add(gap) } else { 0 };
        let proves = self.run >= signed_nanos(MIN_QUEUE_DELAY);
        if proves {
            self.falls[0] = self.falls[0].max(self.fall);
        }
        let time = if proves { CLOSING_LEARN_TIME } else { CLOSING_FORGET_TIME };
        let part = (gap as f64 / signed_nanos(time) as f64).min(0.5);
        self.share += (f64::from(u8::from(proves)) - self.share) * part;
    }

    /// Whether the path has jitter for sure.
    pub fn is_proven(&self) -> bool {
        self.share > MIN_CLOSING_SHARE
    }

    /// By how much the delay has fallen in the run of packets that the latest packet ends, in
    /// nanoseconds.
    pub fn fall(&self) -> i64 {
        self.fall
    }

    /// By how much delays may be expected to fall at once, in nanoseconds: somewhat more than in
    /// the two seconds before.
    pub fn expected_fall(&self) -> f64 {
        let [_, before @ ..] = self.falls;
        FALL_MARGIN * before.into_iter().max().unwrap_or(0) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeded_random::Random;

    const MS: i64 = 1_000_000;
    const PACKET_TIME: Duration = Duration::from_micros(500);

    /// Sends a packet each millisecond for ten seconds, with the delay of that packet.
    fn sent(mut delay: impl FnMut(i64) -> i64) -> ClosingUp {
        let (mut closing_up, mut before) = (ClosingUp::default(), delay(0));
        for packet in 1..10_000 {
            let now = delay(packet);
            let at = Instant::from_millis(packet.unsigned_abs());
            closing_up.sample(at, MS, MS + now - before, PACKET_TIME);
            before = now;
        }
        closing_up
    }

    #[test]
    fn jitter_that_lets_none_overtake_is_proven() {
        let (mut random, mut arrived) = (Random::new(3), 0);
        let closing_up = sent(|packet| {
            arrived = arrived.max(packet * MS + (random.unit() * 10e6) as i64);
            arrived - packet * MS
        });
        assert!(closing_up.is_proven());
        assert!((2e6..13e6).contains(&closing_up.expected_fall()), "{}", closing_up.expected_fall());
    }

    #[test]
    fn stalls_and_steps_are_proven_and_say_how_deep_they_are() {
        // 40 ms each second, and a delay that changes by 8 ms ten times a second.
        let stalls = sent(|packet| (40 - packet % 1_000).max(0) * MS);
        let steps = sent(|packet| if packet % 200 < 100 { 8 - (packet % 200).min(8) } else { 8 } * MS);
        for (line, least) in [(stalls, 40e6), (steps, 8e6)] {
            assert!(line.is_proven(), "{}", line.share);
            assert!((least..1.5 * least).contains(&line.expected_fall()), "{}", line.expected_fall());
        }
    }

    #[test]
    fn a_queue_proves_nothing_however_fast_it_drains() {
        // A saw that falls by three quarters of the time, as where this flow has a fourth of the
        // line.
        let saw = sent(|packet| (packet % 80 - 40).abs() * 3 * MS / 4);
        assert!(saw.share == 0.0 && saw.expected_fall() == 0.0);
    }

    #[test]
    fn packets_far_apart_prove_nothing() {
        let mut closing_up = ClosingUp::default();
        for packet in 0..1_000 {
            closing_up.sample(Instant::from_millis(3 * packet), 3 * MS, 0, PACKET_TIME);
        }
        assert!(!closing_up.is_proven() && closing_up.fall() > 100 * MS);
    }
}
