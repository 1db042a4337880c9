//! When delays above a limit are a sign of congestion and not of jitter.

use byway_wire::Instant;

/// Signals congestion when at least a fraction of the packets of one RTT were delayed. Harp (III.A)
/// waits for "a threshold number of congestion indications". This type counts such packets per RTT,
/// as TCP Nice does (OSDI 2002, section 3).
#[derive(Clone, Copy, Debug)]
pub struct DelayedShare {
    fraction: f64,
    delayed: u32,
    /// Packets sent from here on belong to the next RTT.
    epoch: Instant,
}

impl DelayedShare {
    /// Signals once `max(1, ceil(fraction * window))` packets of an RTT were delayed. With a
    /// fraction of 0 the first delayed packet is a signal.
    #[must_use]
    pub const fn new(fraction: f64) -> Self {
        Self { fraction, delayed: 0, epoch: Instant::ZERO }
    }

    /// Counts a packet sent at `sent_at` and acknowledged at `now`, under a window of `window`
    /// packets. Returns whether this makes a signal.
    pub fn count(&mut self, delayed: bool, sent_at: Instant, now: Instant, window: f64) -> bool {
        if sent_at >= self.epoch {
            self.epoch = now;
            self.delayed = 0;
        }
        self.delayed += u32::from(delayed);
        delayed && f64::from(self.delayed) >= libm::ceil(self.fraction * window).max(1.0)
    }
}

/// Signals congestion when several packets in a row were delayed. A lasting queue delays all
/// packets, jitter only some. A few packets in a row are enough, so this type works even if only
/// one packet is sent per RTT.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConsecutiveDelays(u32);

impl ConsecutiveDelays {
    /// The longest row that is required, in packets: as many as the samples of HyStart++ (RFC 9406,
    /// N_RTT_SAMPLE).
    const MAX_ROW_PACKETS: f64 = 8.0;

    /// Counts a packet. `delayed`: whether the packet was delayed. `window`: the congestion window
    /// in packets. Signals congestion if the latest n packets were all delayed; n is a quarter of
    /// `window`, but at least two and at most eight.
    pub fn count(&mut self, delayed: bool, window: f64) -> bool {
        self.0 = if delayed { self.0.saturating_add(1) } else { 0 };
        delayed && f64::from(self.0) >= libm::ceil(window / 4.0).clamp(2.0, Self::MAX_ROW_PACKETS)
    }

    /// Ends the row of delayed packets.
    pub const fn reset(&mut self) {
        self.0 = 0;
    }
}

/// An exponential average. Each sample weighs one eighth, as in srtt (RFC 6298).
#[derive(Clone, Copy, Debug, Default)]
pub struct Smoothed(i64);

impl Smoothed {
    /// Takes a sample into account.
    pub const fn sample(&mut self, value: i64) {
        self.0 += value.saturating_sub(self.0) / 8;
    }

    /// The value of the average.
    #[must_use]
    pub const fn value(self) -> i64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_counts_within_one_rtt_only() {
        let at = Instant::from_millis;
        let mut share = DelayedShare::new(0.5);
        assert!(!share.count(true, at(1), at(21), 6.0));
        assert!(!share.count(true, at(2), at(22), 6.0));
        assert!(!share.count(true, at(22), at(42), 6.0), "sent after the first was answered: a new RTT");
        assert!(!share.count(true, at(23), at(43), 6.0));
        assert!(share.count(true, at(24), at(44), 6.0));
    }

    #[test]
    fn a_run_is_broken_by_one_packet_in_time() {
        let mut run = ConsecutiveDelays::default();
        for _ in 0..100 {
            assert!(!run.count(true, 1.0));
            assert!(!run.count(false, 1.0));
        }
        assert_eq!((0..8).filter(|_| run.count(true, 1_000.0)).count(), 1);
    }
}
