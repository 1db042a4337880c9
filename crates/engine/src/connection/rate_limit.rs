//! The owner's rate limit for a connection: one token bucket for all its paths.

use crate::path::pacer::Pacer;
use byway_wire::packet::BASE_DATAGRAM;
use byway_wire::{Duration, Instant};

/// The time whose bytes may leave at once: enough that a driver that wakes late loses nothing, and
/// too little to be seen in a rate.
const BURST_TIME: Duration = Duration::from_millis(10);

/// The rate limit that the owner sets: a token bucket, and whether it holds data back.
#[derive(Debug, Default)]
pub(super) struct RateLimit {
    bucket: Option<Pacer>,
    /// Whether the bucket, and not a window, was the last to hold data back.
    holds: bool,
    /// When the bucket has enough tokens again. `None`: data do not wait for it.
    until: Option<Instant>,
}

impl RateLimit {
    pub fn new(now: Instant, bytes_per_second: Option<u64>) -> Self {
        let bucket = bytes_per_second.map(|rate| {
            let mut bucket = Pacer::new(now, BASE_DATAGRAM as u64);
            bucket.set_rate_with(now, rate, BASE_DATAGRAM as u64, BURST_TIME);
            bucket
        });
        Self { bucket, ..Self::default() }
    }

    /// Datagrams of `size` bytes that may leave now; if none, notes until when.
    pub fn allows(&mut self, now: Instant, size: u64) -> u64 {
        let Some(bucket) = &mut self.bucket else { return u64::MAX };
        let most = bucket.available(now) / size.max(1);
        self.holds |= most == 0;
        self.until = (most == 0).then(|| bucket.ready_at(size.max(bucket.burst())));
        most
    }

    /// When the bucket has enough tokens again. `None`: data do not wait for it.
    pub const fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Ends the wait for tokens, if its time has come.
    pub fn wake(&mut self, now: Instant) {
        self.until = self.until.filter(|until| *until > now);
    }

    pub const fn spend(&mut self, bytes: u64) {
        if let Some(bucket) = &mut self.bucket {
            bucket.spend(bytes);
        }
    }

    /// Something else held data back.
    pub const fn yields(&mut self) {
        self.holds = false;
    }

    /// Whether the limit holds data back.
    pub const fn holds(&self) -> bool {
        self.holds
    }
}
