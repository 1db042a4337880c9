//! When a path carries nothing but probes, and what ends that.

use super::BackgroundPath;
use crate::Delay;
use byway_wire::time::signed_nanos;
use byway_wire::{Duration, Instant};

impl BackgroundPath {
    /// Whether an empty probe met no queue. A probe without a one-way delay is judged by its RTT.
    pub fn is_free(&mut self, delay: Option<Delay>, rtt: Option<Duration>, now: Instant) -> bool {
        match (delay, rtt) {
            (Some(delay), _) => self.queue_delay.waits(delay, now, self.srtt) <= self.queue_delay.threshold(),
            (None, Some(rtt)) => {
                signed_nanos(rtt) <= signed_nanos(self.min_rtt).saturating_add(self.queue_delay.threshold())
            }
            (None, None) => false,
        }
    }

    /// Whether the path fell to its floor and still meets a queue.
    pub fn is_futile(&self) -> bool {
        self.level <= self.floor() && self.queue.is_some()
    }

    /// Whether a queue stands.
    pub const fn is_queued(&self) -> bool {
        self.queue.is_some()
    }

    /// Whether the path carries only probes.
    pub const fn is_out(&self) -> bool {
        self.choked || self.loan.lends
    }

    /// Opens the path again.
    pub fn unchoke(&mut self, now: Instant) {
        self.choked = false;
        self.timeouts = 0;
        self.start = false;
        let one = self.one_per_rtt();
        self.set(self.level.clamp(one, 2.0 * one));
        (self.recover, self.met, self.queue, self.above) = (now, now, None, 0);
    }
}
