//! What the owner lets a connection send at most, whatever its paths could carry: one bucket over all of them.

use super::Connection;
use crate::path::pacer::Pacer;
use byway_wire::packet::BASE_DATAGRAM;
use byway_wire::{Duration, Instant};

/// What may leave at once: enough that a driver that wakes late loses nothing, and too little to be seen in a rate.
const BURST: Duration = Duration::from_millis(10);

/// The bucket, and whether it is what limits.
#[derive(Debug, Default)]
pub(super) struct Cap {
    bucket: Option<Pacer>,
    /// Whether the bucket, and not a window, was the last to hold data back.
    holds: bool,
    /// When enough is in it again.
    pub(super) until: Option<Instant>,
}

impl Cap {
    pub(super) fn new(now: Instant, bytes_per_second: Option<u64>) -> Self {
        let bucket = bytes_per_second.map(|rate| {
            let mut bucket = Pacer::new(now, BASE_DATAGRAM as u64);
            bucket.set_rate_with(now, rate, BASE_DATAGRAM as u64, BURST);
            bucket
        });
        Self { bucket, ..Self::default() }
    }

    /// Datagrams of `size` bytes that may leave now; if none, notes until when.
    pub(super) fn allows(&mut self, now: Instant, size: u64) -> u64 {
        let Some(bucket) = &mut self.bucket else { return u64::MAX };
        let most = bucket.available(now) / size.max(1);
        self.holds |= most == 0;
        self.until = (most == 0).then(|| bucket.ready_at(size.max(bucket.burst())));
        most
    }

    /// What was waited for is there; the next look tells how long the next wait is.
    pub(super) fn wake(&mut self, now: Instant) {
        self.until = self.until.filter(|until| *until > now);
    }

    pub(super) const fn spend(&mut self, bytes: u64) {
        if let Some(bucket) = &mut self.bucket {
            bucket.spend(bytes);
        }
    }

    /// Something else held data back.
    pub(super) const fn yields(&mut self) {
        self.holds = false;
    }

    /// Whether it is what limits.
    pub(super) const fn holds(&self) -> bool {
        self.holds
    }
}

impl Connection {
    /// Sends data at no more than so many bytes per second (UDP payload) from now on, over all paths together. `None`: as
    /// fast as the paths carry. What a path could carry is then not known, and no window grows by it.
    pub fn set_cap(&mut self, now: Instant, bytes_per_second: Option<u64>) {
        self.cap = Cap::new(now, bytes_per_second);
        self.arm_whole(now);
    }
}
