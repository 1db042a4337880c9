//! Loss detection by time: RACK (RFC 8985, section 6) as in Linux (`tcp_recovery.c`). A segment is
//! lost if a later transmission has arrived, and if the segment was sent more than an RTT plus the
//! reordering window ago.

use super::rtt::Rtt;
use byway_wire::{Duration, Instant};

/// RFC 8985, section 4: as many arrivals out of order are a loss where no reordering was seen.
const DUP_THRESH: u32 = 3;
/// Recoveries for which a wider window lasts (RFC 8985, 6.2, step 4).
const PERSIST_RECOVERIES: u32 = 16;

/// The state of RACK for a connection.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// The transmission that was sent last, of all that arrived.
    pub latest: u64,
    /// When the latest transmission that arrived was sent.
    pub sent_at: Instant,
    /// The round trip of the segment.
    pub rtt: Duration,
    /// The sequence number after the highest byte that arrived (RACK.fack).
    forward: u64,
    /// Whether an original segment arrived after a segment with a higher sequence number.
    reordering_seen: bool,
    /// The window in quarters of the smallest RTT (RACK.reo_wnd_mult).
    quarters: u32,
    persist: u32,
    /// The reordering window grows at most once per round. The round ends when this number is
    /// acknowledged.
    round: u64,
    /// The sequence number whose acknowledgment ends recovery.
    recover: u64,
}

impl Rack {
    pub(super) const fn new() -> Self {
        Self {
            latest: 0,
            sent_at: Instant::ZERO,
            rtt: Duration::ZERO,
            forward: 0,
            reordering_seen: false,
            quarters: 1,
            persist: 0,
            round: 0,
            recover: 0,
        }
    }

    /// Notes that a transmission arrived (6.2, step 2). Timestamps tell which one it was.
    #[inline]
    pub(super) fn on_arrival(&mut self, now: Instant, transmission: u64, sent_at: Instant) {
        if transmission > self.latest {
            (self.latest, self.sent_at, self.rtt) = (transmission, sent_at, now.since(sent_at));
        }
    }

    /// A segment that was never sent again arrived, and ends at `end`. `forward` was the furthest
    /// before this ACK (6.2, step 3).
    #[inline]
    pub(super) fn on_order(&mut self, end: u64, forward: u64) {
        self.reordering_seen |= end < forward;
        self.forward = self.forward.max(end);
    }

    /// The end of the data that arrived and is the furthest.
    pub(super) fn forward(&self) -> u64 {
        self.forward
    }

    /// A segment was sent again although the original had arrived: the reordering window was too
    /// narrow (6.2, step 4). The RFC detects this by a D-SACK, these hosts by timestamps. As in
    /// Linux (`tcp_try_undo_partial`), this also counts as reordering.
    pub(super) fn on_spurious(&mut self, una: u64, next: u64) {
        self.reordering_seen = true;
        if una >= self.round {
            (self.round, self.quarters, self.persist) =
                (next, self.quarters.saturating_add(1), PERSIST_RECOVERIES);
        }
    }

    /// Notes that everything before `una` is acknowledged. Before, it was everything before `was`.
    #[inline]
    pub(super) fn on_advance(&mut self, was: u64, una: u64) {
        if was < self.recover && una >= self.recover {
            self.persist = self.persist.saturating_sub(1);
            if self.persist == 0 {
                self.quarters = 1;
            }
        }
    }

    /// Something was lost, and `next` is the next new byte.
    pub(super) fn on_loss(&mut self, una: u64, next: u64) {
        if !self.recovers(una) {
            self.recover = next;
        }
    }

    /// Whether the connection recovers from a loss or a timeout.
    pub(super) fn recovers(&self, una: u64) -> bool {
        una < self.recover
    }

    /// Returns the time beyond the RTT that a segment may be late (6.2, step 4). `sacked`: segments
    /// that arrived out of order.
    pub(super) fn window(&self, rtt: &Rtt, una: u64, sacked: u32) -> Duration {
        if !self.reordering_seen && (self.recovers(una) || sacked >= DUP_THRESH) {
            return Duration::ZERO;
        }
        (rtt.min / 4 * self.quarters).min(rtt.smoothed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::TcpConfig;

    const MS: Duration = Duration::from_millis(1);

    fn rtt() -> Rtt {
        let mut rtt = Rtt::new(&TcpConfig::default());
        for _ in 0..50 {
            rtt.sample(40 * MS);
        }
        rtt
    }

    #[test]
    fn the_window_is_a_quarter_of_the_smallest_rtt_until_three_arrived_out_of_order() {
        let rack = Rack::new();
        assert_eq!(rack.window(&rtt(), 0, 2), 10 * MS);
        assert_eq!(rack.window(&rtt(), 0, 3), Duration::ZERO);
    }

    #[test]
    fn recovery_closes_the_window_and_reordering_opens_it() {
        let mut rack = Rack::new();
        rack.on_loss(100, 5_000);
        assert_eq!(rack.window(&rtt(), 100, 1), Duration::ZERO);
        assert_eq!(rack.window(&rtt(), 5_000, 1), 10 * MS, "recovery is over");
        rack.on_order(3_000, 2_000);
        assert_eq!((rack.window(&rtt(), 100, 1), rack.forward()), (Duration::ZERO, 3_000));
        rack.on_order(1_000, 3_000);
        assert_eq!(rack.window(&rtt(), 100, 9), 10 * MS);
    }

    #[test]
    fn each_round_of_needless_repeats_widens_the_window_to_an_rtt_at_most_and_sixteen_recoveries_end_it() {
        let mut rack = Rack::new();
        rack.on_order(1_000, 2_000);
        for (una, quarters) in [(0, 2), (500, 2), (1_000, 3), (2_000, 4), (3_000, 4)] {
            rack.on_spurious(una, una + 1_000);
            assert_eq!(rack.window(&rtt(), una, 9), 10 * MS * quarters, "at {una}");
        }
        for recovery in 0..16 {
            assert_eq!(rack.window(&rtt(), 5_000, 9), 40 * MS, "recovery {recovery}");
            rack.on_loss(5_000 + recovery * 10, 5_010 + recovery * 10);
            rack.on_advance(5_000 + recovery * 10, 5_010 + recovery * 10);
        }
        assert_eq!(rack.window(&rtt(), 6_000, 9), 10 * MS);
    }
}
