//! When a source's next bytes may leave: at the rate that it asks for.

use byway_wire::{Duration, Instant};

/// The burst that may leave at once, as a time at the rate.
const BURST_TIME: Duration = Duration::from_millis(100);
/// Bytes that may leave at once whatever the rate is: a packet.
const MIN_BURST_BYTES: f64 = 1_500.0;
/// The bytes that leave together, as a time at the rate.
const BATCH_TIME: Duration = Duration::from_millis(20);
/// Bytes that leave together whatever the rate is, but not more than a burst: a small packet.
const MIN_BATCH_BYTES: f64 = 1_200.0;

/// A token bucket whose tokens are bytes of payload.
#[derive(Clone, Debug)]
pub struct Bucket {
    rate: f64,
    tokens: f64,
    filled_at: Option<Instant>,
}

impl Bucket {
    /// A full bucket. `rate`: bytes per second.
    pub fn new(rate: u64) -> Self {
        let rate = rate as f64;
        Self { rate, tokens: Self::most(rate), filled_at: None }
    }

    fn most(rate: f64) -> f64 {
        (rate * BURST_TIME.as_secs_f64()).max(MIN_BURST_BYTES)
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

    /// Returns the bytes of a batch. Packets of single records would cost too much processor time.
    fn together(&self) -> f64 {
        let burst = self.rate * BURST_TIME.as_secs_f64();
        (self.rate * BATCH_TIME.as_secs_f64()).max(MIN_BATCH_BYTES.min(burst))
    }

    /// Returns the time of the next batch. `None`: it may be sent now.
    pub fn ready_at(&mut self, now: Instant) -> Option<Instant> {
        self.available(now);
        let lacking = self.together() - self.tokens;
        (lacking > 0.0).then(|| {
            let seconds = (lacking / self.rate.max(1.0)).min(BURST_TIME.as_secs_f64());
            now + Duration::try_from_secs_f64(seconds).unwrap_or(BURST_TIME).max(Duration::from_millis(1))
        })
    }

    /// Whether nothing left for as long as a burst lasts: the rate does not hold things back.
    pub fn is_full(&mut self, now: Instant) -> bool {
        self.available(now);
        self.tokens >= Self::most(self.rate)
    }

    /// Enters that `bytes` bytes left.
    pub fn spend(&mut self, bytes: usize) {
        self.tokens -= bytes as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_together() {
        let mut bucket = Bucket::new(150_000);
        let mut now = Instant::ZERO;
        assert_eq!(bucket.ready_at(now), None);
        let all = bucket.available(now);
        bucket.spend(all);
        let ready_at = bucket.ready_at(now).unwrap();
        assert_eq!(ready_at, Instant::from_millis(20));
        now = ready_at;
        assert!(bucket.ready_at(now).is_none_or(|at| at <= now + Duration::from_millis(1)));
        assert!(bucket.available(now + Duration::from_millis(1)) >= 3_000);
        let mut slow = Bucket::new(1_000);
        slow.spend(1_500);
        assert_eq!(slow.ready_at(Instant::ZERO), Some(Instant::from_millis(100)));
    }

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
