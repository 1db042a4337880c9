//! How sessions of byway on one host share its line: each has an equal part, or what others leave.

use crate::host_traffic::PAYLOAD_SHARE;
use byway_wire::{Duration, Instant};

/// The time over which the rate of other sessions is averaged.
const OTHERS_RATE_TIME: Duration = Duration::from_millis(200);

/// What other sessions of byway on this host did since they were last looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OtherSessions {
    /// Bytes that they handed to the interface, as its counter counts them.
    pub sent: u64,
    /// The number of them that share the line.
    pub active: u32,
    /// The number of those whose turn comes before this session's.
    pub before: u32,
}

/// What one session knows of the others.
#[derive(Clone, Copy, Debug)]
pub struct LineShare {
    /// Payload that they sent so far.
    total: u64,
    /// Their rate in bytes of payload per second over the latest time, and when it was updated.
    rate: f64,
    rated_at: Instant,
    latest: OtherSessions,
}

impl LineShare {
    /// Nothing is known of others.
    #[must_use]
    pub const fn new(now: Instant) -> Self {
        let latest = OtherSessions { sent: 0, active: 0, before: 0 };
        Self { total: 0, rate: 0.0, rated_at: now, latest }
    }

    /// Notes what other sessions did. `is_closed`: whether all have waited for what the host itself
    /// sent. Their silence then says nothing of what they send afterwards.
    pub fn on_others(&mut self, others: OtherSessions, is_closed: bool, now: Instant) {
        let payload = (others.sent as f64 * PAYLOAD_SHARE) as u64;
        self.total += payload;
        let age = if is_closed { 0.0 } else { now.since(self.rated_at).as_secs_f64() };
        self.rated_at = now;
        let time = OTHERS_RATE_TIME.as_secs_f64();
        self.rate = self.rate * (1.0 - (age / time).min(1.0)) + payload as f64 / time;
        self.latest = others;
    }

    /// Payload that other sessions sent so far.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The number of sessions whose turn comes before this one's.
    #[must_use]
    pub const fn before(&self) -> u32 {
        self.latest.before
    }

    /// What of a limit for all sessions, in bytes per second, is this one's.
    #[must_use]
    pub fn of(&self, limit: u64) -> u64 {
        let equal = limit / (u64::from(self.latest.active) + 1);
        limit.saturating_sub(self.rate as u64).max(equal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_an_equal_part_or_what_others_leave() {
        let mut now = Instant::from_millis(1);
        let mut share = LineShare::new(now);
        assert_eq!(share.of(900), 900);
        for (sent, active, least, most) in [(1_000, 1, 480_000, 520_000), (100, 2, 850_000, 920_000)] {
            for _ in 0..1_000 {
                now += Duration::from_millis(1);
                share.on_others(OtherSessions { sent, active, before: 1 }, false, now);
            }
            let part = share.of(1_000_000);
            assert!((least..=most).contains(&part), "{sent}: {part}");
        }
        let (before, total) = (share.of(1_000_000), share.total());
        for _ in 0..100 {
            now += Duration::from_millis(1);
            share.on_others(OtherSessions { sent: 0, active: 2, before: 1 }, true, now);
        }
        assert_eq!((share.of(1_000_000), share.total(), share.before()), (before, total, 1));
    }
}
