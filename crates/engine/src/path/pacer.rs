//! Spreads over time what the congestion window allows: a token bucket whose tokens are bytes. The
//! bucket holds what the path sends in about a millisecond, because larger bursts make queues, but
//! at least two packets.

use byway_wire::{Duration, Instant};

/// The time whose bytes a burst may hold.
const BURST_TIME: Duration = Duration::from_millis(1);
/// The least capacity of a bucket, in full packets, so that two may always leave together. TCP too
/// sends two packets at a time, if it gets an ACK for every second packet.
const BURST_PACKETS: u64 = 2;
/// The greatest capacity of a bucket in bytes.
const MAX_CAPACITY: u64 = 1 << 20;

/// A token bucket that paces one path.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// Bytes per second.
    rate: u64,
    capacity: u64,
    /// Nanobytes would be exact and overflow; bytes times 2^16 are fine enough.
    tokens: u64,
    filled_at: Instant,
}

/// Bits for fractions of a byte in the count of tokens.
const TOKEN_SHIFT: u32 = 16;

impl Pacer {
    /// A full bucket for a path of unknown rate.
    #[must_use]
    pub const fn new(now: Instant, packet: u64) -> Self {
        Self {
            rate: 0,
            capacity: packet * BURST_PACKETS,
            tokens: (packet * BURST_PACKETS) << TOKEN_SHIFT,
            filled_at: now,
        }
    }

    /// Sets the rate (bytes per second) and the size of a full packet.
    pub fn set_rate(&mut self, now: Instant, rate: u64, packet: u64) {
        self.set_rate_with(now, rate, packet, BURST_TIME);
    }

    /// Sets the rate (bytes per second), the size of a full packet in bytes, and the time whose
    /// bytes may leave as one burst.
    pub fn set_rate_with(&mut self, now: Instant, rate: u64, packet: u64, burst: Duration) {
        let capacity = bytes_in(rate, burst).clamp(packet * BURST_PACKETS, MAX_CAPACITY);
        self.set_bucket(now, rate, capacity);
    }

    /// Sets the rate (bytes per second), and a capacity of one packet and what the rate brings in
    /// `lateness`. So at most one packet leaves at once on a slow line, and whoever wakes late by
    /// so much loses nothing.
    pub fn set_single(&mut self, now: Instant, rate: u64, packet: u64, lateness: Duration) {
        self.set_bucket(now, rate, (packet + bytes_in(rate, lateness)).min(MAX_CAPACITY));
    }

    fn set_bucket(&mut self, now: Instant, rate: u64, capacity: u64) {
        self.fill(now);
        (self.rate, self.capacity) = (rate, capacity);
        self.tokens = self.tokens.min(capacity << TOKEN_SHIFT);
    }

    /// Brings the bucket up to date.
    pub fn fill(&mut self, now: Instant) {
        let elapsed = byway_wire::time::nanos(now.since(self.filled_at));
        let gained = scaled(self.rate, elapsed);
        if gained > 0 {
            self.tokens = self.tokens.saturating_add(gained).min(self.capacity << TOKEN_SHIFT);
            self.filled_at = now;
        }
    }

    /// Bytes that may leave now.
    pub fn available(&mut self, now: Instant) -> u64 {
        self.fill(now);
        self.tokens >> TOKEN_SHIFT
    }

    /// Bytes worth waiting for: half the bucket, so that a fast path leaves in runs and a slow one
    /// packet by packet.
    #[must_use]
    pub const fn burst(&self) -> u64 {
        self.capacity / 2
    }

    /// Takes the tokens for `bytes` sent bytes.
    pub const fn spend(&mut self, bytes: u64) {
        self.tokens = self.tokens.saturating_sub(bytes << TOKEN_SHIFT);
    }

    /// When `bytes` bytes may be sent. Not after now if they may already be.
    #[must_use]
    pub fn ready_at(&self, bytes: u64) -> Instant {
        let lacking = (bytes.min(self.capacity) << TOKEN_SHIFT).saturating_sub(self.tokens);
        if lacking == 0 {
            return self.filled_at;
        }
        if self.rate == 0 {
            return Instant::FAR_FUTURE;
        }
        let nanos = (u128::from(lacking) * 1_000_000_000).div_ceil(u128::from(self.rate) << TOKEN_SHIFT);
        self.filled_at + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// The bytes that a rate in bytes per second brings in this time.
fn bytes_in(rate: u64, time: Duration) -> u64 {
    u64::try_from(u128::from(rate) * time.as_nanos() / 1_000_000_000).unwrap_or(u64::MAX)
}

/// Returns the tokens that accrue in `nanos` nanoseconds at `rate` bytes per second. A fast 64-bit
/// division suffices for nearly all products.
fn scaled(rate: u64, nanos: u64) -> u64 {
    match rate.checked_mul(nanos) {
        Some(product) if product < 1 << (64 - TOKEN_SHIFT) => (product << TOKEN_SHIFT) / 1_000_000_000,
        _ => {
            let tokens = ((u128::from(rate) * u128::from(nanos)) << TOKEN_SHIFT) / 1_000_000_000;
            u64::try_from(tokens).unwrap_or(u64::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// At any rate, a sender that sends whenever it may gets that rate, and no larger bursts.
        #[test]
        fn the_rate_is_kept(rate in 2_000u64..2_000_000_000, packet in 200u64..9000) {
            let mut now = Instant::from_millis(5);
            let mut pacer = Pacer::new(now, packet);
            pacer.set_rate(now, rate, packet);
            pacer.spend(pacer.capacity);
            let begun = now;
            let mut sent = 0;
            for _ in 0..300 {
                now = now.max(pacer.ready_at(packet));
                prop_assert!(pacer.available(now) >= packet);
                pacer.spend(packet);
                sent += packet;
            }
            let ideal = sent as f64 / rate as f64;
            let took = now.since(begun).as_secs_f64();
            prop_assert!((took / ideal - 1.0).abs() < 0.02, "took {} instead of {}", took, ideal);
        }
    }

    #[test]
    fn a_burst_is_a_millisecond_or_two_packets() {
        let mut pacer = Pacer::new(Instant::ZERO, 1200);
        pacer.set_rate(Instant::ZERO, 1_250_000, 1200);
        assert_eq!(pacer.available(Instant::from_millis(10_000)), 2400);
        pacer.set_rate(Instant::from_millis(10_000), 125_000_000, 1200);
        assert_eq!(pacer.available(Instant::from_millis(20_000)), 125_000);
    }
}
