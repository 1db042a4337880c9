//! When a source's next bytes may leave: at the rate that it asks for.

use byway_wire::{Duration, Instant};

/// Bytes that may leave at once: those of so long, and a packet at least.
const BURST: Duration = Duration::from_millis(100);
const PACKET: f64 = 1_500.0;

/// A token bucket whose tokens are bytes of payload.
#[derive(Clone, Debug)]
pub struct Bucket {
    rate: f64,
    tokens: f64,
    filled_at: Option<Instant>,
}

impl Bucket {
    /// Full, for so many bytes per second.
    pub fn new(rate: u64) -> Self {
        let rate = rate as f64;
        Self { rate, tokens: Self::most(rate), filled_at: None }
    }

    fn most(rate: f64) -> f64 {
        (rate * BURST.as_secs_f64()).max(PACKET)
    }

    /// Sets the rate.
    pub fn set_rate(&mut self, rate: u64) {
        self.rate = rate as f64;
    }

    /// Bytes that may leave now.
    pub fn available(&mut self, now: Instant) -> usize {
        if let Some(before) = self.filled_at {
            let gained = self.rate * now.since(before).as_secs_f64();
            self.tokens = (self.tokens + gained).min(Self::most(self.rate));
        }
        self.filled_at = Some(now);
        self.tokens.max(0.0) as usize
    }

    /// Whether nothing left for as long as a burst lasts: it is not the rate that holds things back.
    pub fn is_full(&mut self, now: Instant) -> bool {
        self.available(now);
        self.tokens >= Self::most(self.rate)
    }

    /// So many left.
    pub fn spend(&mut self, bytes: usize) {
        self.tokens -= bytes as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_kept_whatever_the_turns() {
        let mut bucket = Bucket::new(40_000);
        let mut sent = 0;
        for millis in (0..10_000).step_by(7) {
            let bytes = bucket.available(Instant::from_millis(millis));
            bucket.spend(bytes);
            sent += bytes;
        }
        assert!((400_000..=405_000).contains(&sent), "{sent}");
        assert!(!bucket.is_full(Instant::from_millis(10_000)));
        assert!(bucket.is_full(Instant::from_millis(10_200)));
        bucket.set_rate(1);
        assert!(bucket.available(Instant::from_millis(11_000)) <= 1_500);
    }
}
