//! The most bytes per second that a receiver accepts from all senders together (`--bwlimit`). The
//! receiver tells each sender its share. If a sender exceeds its share, the receiver leaves its
//! bytes unread, and flow control stops the sender.

use byway_wire::{Duration, Instant, Meter};

/// The burst that may be received at once after a pause, as a time at the limit. Owners get a turn
/// a few times a second.
const BURST_TIME: Duration = Duration::from_millis(250);
/// The fewest bytes for a turn of a waiting transfer, if the limit permits them within an eighth of
/// a second.
const MIN_TURN_BYTES: usize = 16 << 10;
/// The smallest and the largest window of a receiver with a limit, in bytes. A sender may have a
/// window of data in flight before it learns of the limit.
const WINDOW_RANGE_BYTES: std::ops::RangeInclusive<u64> = 256 << 10..=32 << 20;

/// A limit on received bytes. The last piece may exceed it, and later pieces wait longer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveLimit {
    /// Bytes per second, at least 1.
    rate: u64,
    meter: Meter,
    /// When the limit was last asked.
    at: Instant,
}

impl ReceiveLimit {
    pub fn new(bytes_per_second: u64) -> Self {
        Self { rate: bytes_per_second.max(1), meter: Meter::default(), at: Instant::ZERO }
    }

    /// Sets `limit` to `wanted` bytes per second. Returns whether the limit changed. A new limit
    /// ignores the bytes that were received before.
    pub fn change(limit: &mut Option<Self>, wanted: Option<u64>) -> bool {
        let wanted = wanted.map(Self::new);
        let is_other = limit.as_ref().map(Self::rate) != wanted.as_ref().map(Self::rate);
        if is_other {
            *limit = wanted;
        }
        is_other
    }

    /// Bytes per second.
    pub const fn rate(&self) -> u64 {
        self.rate
    }

    /// Whether anything may be taken now.
    pub fn allows(&mut self, now: Instant) -> bool {
        self.at = now;
        self.meter.debt(now) < BURST_TIME
    }

    /// Bytes that may be taken now: none, or enough to be worth while.
    pub fn room(&mut self, now: Instant) -> usize {
        self.at = now;
        let room =
            BURST_TIME.saturating_sub(self.meter.debt(now)).as_micros().saturating_mul(self.rate.into())
                / 1_000_000;
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        if room >= MIN_TURN_BYTES.min((self.rate / 8).max(1) as usize) { room } else { 0 }
    }

    /// Enters that `bytes` were taken.
    pub fn spend(&mut self, bytes: usize) {
        self.meter.take(self.at, bytes as u64, self.rate);
    }
}

/// Returns the flow-control window for senders in bytes: the amount that the limit permits in a
/// second.
pub(crate) fn window(bytes_per_second: u64) -> usize {
    // The range is far below what any usize holds.
    bytes_per_second.clamp(*WINDOW_RANGE_BYTES.start(), *WINDOW_RANGE_BYTES.end()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_second_sees_more_than_the_rate_and_one_burst() {
        for (rate, piece) in [(1_000u64, 100), (1 << 20, 128 << 10), (100 << 20, 128 << 10)] {
            let mut limit = ReceiveLimit::new(rate);
            let (mut taken, mut state) = (0u64, 1u64);
            let mut now = Instant::from_millis(5);
            for _ in 0..1_000 {
                while limit.allows(now) {
                    limit.spend(piece);
                    taken += piece as u64;
                }
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                now += Duration::from_millis(state >> 60);
            }
            let seconds = now.since(Instant::from_millis(5)).as_secs_f64();
            let most = rate as f64 * (seconds + 0.25) + piece as f64;
            assert!(taken as f64 <= most, "{taken} in {seconds}");
            assert!(taken as f64 >= rate as f64 * seconds * 0.95 - piece as f64, "{taken} in {seconds}");
        }
    }

    #[test]
    fn what_is_metered_out_is_the_rate() {
        for rate in [1_000_u64, 1 << 20, 100 << 20] {
            let (mut limit, mut taken, mut turns) = (ReceiveLimit::new(rate), 0, 0);
            let worth = (rate / 8).min(MIN_TURN_BYTES as u64);
            for millis in 0..10_000 {
                let room = limit.room(Instant::from_millis(5 + millis));
                limit.spend(room);
                taken += room as u64;
                turns += u64::from(room > 0);
            }
            assert!((rate * 9..=rate * 11).contains(&taken), "{taken} at {rate}");
            assert!(turns > 50 && taken >= turns * worth, "{taken} in {turns} turns at {rate}");
        }
    }

    #[test]
    fn a_long_pause_is_worth_one_burst() {
        let mut limit = ReceiveLimit::new(1_000);
        assert!(limit.allows(Instant::from_millis(1)));
        limit.spend(2_000);
        assert!(!limit.allows(Instant::from_millis(1_000)));
        assert!(limit.allows(Instant::from_millis(100_000)));
        limit.spend(250);
        assert!(!limit.allows(Instant::from_millis(100_000)));
    }

    #[test]
    fn a_limit_that_changes_holds_at_once() {
        let (mut limit, now) = (None, Instant::from_millis(5));
        assert!(!ReceiveLimit::change(&mut limit, None));
        assert!(
            ReceiveLimit::change(&mut limit, Some(1_000)) && !ReceiveLimit::change(&mut limit, Some(1_000))
        );
        let allows = |limit: &mut Option<ReceiveLimit>| {
            let limit = limit.as_mut().unwrap();
            let allows = limit.allows(now);
            limit.spend(1_000_000);
            allows
        };
        assert!(allows(&mut limit) && !allows(&mut limit), "a quarter of an hour ahead");
        assert!(ReceiveLimit::change(&mut limit, Some(1 << 20)) && allows(&mut limit));
        assert!(!allows(&mut limit));
        assert!(ReceiveLimit::change(&mut limit, None) && limit.is_none());
    }

    #[test]
    fn a_window_is_a_second_within_bounds() {
        assert_eq!([1, 1 << 20, 1 << 40].map(window), [256 << 10, 1 << 20, 32 << 20]);
    }
}
