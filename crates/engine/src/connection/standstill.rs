//! Whether what this side sends still gets through, although the peer answers: small packets may
//! pass where those with data do not.

use byway_wire::{Duration, Instant};

/// The number of losses or vain waits in a row that make a standstill. A path that yields sends
/// little, and fails less often.
const MIN_FAILURES: u32 = 10;

/// Detects that streams and objects make no progress.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standstill {
    /// The sending time of the first packet that failed since data last arrived, and the number of
    /// failures since then. `None`: nothing failed since.
    since: Option<Instant>,
    failures: u32,
    /// Whether data were lost since [`on_failure`](Self::on_failure) was called.
    lost: bool,
}

impl Standstill {
    /// Data arrived.
    #[inline]
    pub const fn on_arrived(&mut self) {
        (self.since, self.failures, self.lost) = (None, 0, false);
    }

    /// Data are lost.
    pub const fn on_lost(&mut self) {
        self.lost = true;
    }

    /// Notes lost packets, of which the first was sent at `sent_at`. `waits`: data wait in a
    /// connection that repeats them by itself.
    pub fn on_failure(&mut self, sent_at: Instant, waits: bool) {
        if core::mem::take(&mut self.lost) || waits {
            self.since.get_or_insert(sent_at);
            self.failures = self.failures.saturating_add(1);
        }
    }

    /// Whether no data got through for `time`, despite enough attempts.
    pub fn is_longer_than(&self, now: Instant, time: Duration) -> bool {
        self.failures >= MIN_FAILURES && self.since.is_some_and(|since| since + time <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn at(second: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(second)
    }

    #[test]
    fn data_that_never_arrive_are_a_standstill_after_a_minute() {
        let mut data = Standstill::default();
        for second in 0..60 {
            data.on_lost();
            data.on_failure(at(second), false);
            assert!(!data.is_longer_than(at(second), MINUTE));
        }
        assert!(data.is_longer_than(at(60), MINUTE));
        data.on_arrived();
        assert!(!data.is_longer_than(at(100), MINUTE));
    }

    #[test]
    fn packets_without_data_and_rare_losses_are_none() {
        let mut data = Standstill::default();
        (0..100).for_each(|second| data.on_failure(at(second), false));
        assert!(!data.is_longer_than(at(100), MINUTE));
        for second in [100, 130, 170] {
            data.on_lost();
            data.on_failure(at(second), false);
        }
        assert!(!data.is_longer_than(at(200), MINUTE));
    }
}
