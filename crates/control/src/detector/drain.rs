//! A short forced drain of one path's own queue, to see the base again.

use byway_wire::{Duration, Instant};

/// One drain from its beginning to its end.
///
/// The window is held down until the bytes in flight have fallen below it, and then until a packet sent after that is
/// acknowledged: it has met no queue of this sender's. That takes about one and a half RTT at half the rate. Only paths
/// need it whose sawtooth does not empty the queue by itself, that is whose RTT is short against the delay threshold
/// (below 35 ms at 5 ms and a decrease of 1/8): every ten seconds it costs them less than half a percent.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    cap: u64,
    emptied: Option<Instant>,
    until: Instant,
}

impl Drain {
    /// A drain that holds the window at `cap` bytes and is given up after four RTTs.
    #[must_use]
    pub fn new(cap: u64, now: Instant, rtt: Duration) -> Self {
        Self { cap, emptied: None, until: now + rtt.saturating_mul(4) }
    }

    /// The window meanwhile.
    #[must_use]
    pub const fn cap(&self) -> u64 {
        self.cap
    }

    /// When it is given up.
    #[must_use]
    pub const fn until(&self) -> Instant {
        self.until
    }

    /// A packet sent at `sent_at` was acknowledged and left `in_flight` bytes. Whether the drain is over.
    pub fn on_acked(&mut self, now: Instant, sent_at: Instant, in_flight: u64) -> bool {
        if self.emptied.is_none() && in_flight <= self.cap {
            self.emptied = Some(now);
        }
        now >= self.until || self.emptied.is_some_and(|emptied| sent_at >= emptied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_when_a_packet_that_met_no_own_queue_is_back() {
        let at = Instant::from_millis;
        let mut drain = Drain::new(5_000, at(100), Duration::from_millis(20));
        assert!(!drain.on_acked(at(105), at(80), 9_000));
        assert!(!drain.on_acked(at(115), at(90), 5_000));
        assert!(!drain.on_acked(at(120), at(114), 4_000));
        assert!(drain.on_acked(at(136), at(115), 4_000));
    }

    #[test]
    fn is_given_up_in_time() {
        let mut drain = Drain::new(0, Instant::from_millis(100), Duration::from_millis(20));
        assert!(!drain.on_acked(Instant::from_millis(179), Instant::ZERO, 9_000));
        assert!(drain.on_acked(Instant::from_millis(180), Instant::ZERO, 9_000));
    }
}
