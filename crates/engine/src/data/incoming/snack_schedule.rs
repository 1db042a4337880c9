//! When a SNACK frame reports a hole (missing bytes) in a stream or object to the sender. Example:
//! byte 2000 arrives after bytes 0 to 999, so 1000 to 1999 are missing. After a delay τ, a SNACK
//! reports those that are still missing.

use crate::data::data_frames::DataId;
use alloc::collections::VecDeque;
use byway_wire::{Duration, Instant};

/// Holes of one stream or object that appear within this time share a timer.
const TIMER_GRANULARITY: Duration = Duration::from_millis(1);
/// The most regions timed. Holes beyond are left to the sender's own loss detection.
const MAX_REGIONS: usize = 8192;

/// A part of a stream or object that had holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    /// When the first was seen, or named last.
    pub since: Instant,
    pub id: DataId,
    /// The offset of the region's first byte.
    pub start: u64,
    /// One more than the offset of the region's last byte.
    pub end: u64,
}

/// Regions in the order in which they come due.
#[derive(Debug, Default)]
pub(super) struct Holes {
    /// Due at once: their stream's window is half full.
    urgent: VecDeque<Region>,
    /// Regions that were not named to the sender yet.
    fresh: VecDeque<Region>,
    /// Named, and due for another time.
    named: VecDeque<Region>,
}

impl Holes {
    /// Data arrived beyond a hole.
    pub fn born(&mut self, since: Instant, id: DataId, start: u64, end: u64, urgent: bool) {
        let queue = if urgent { &mut self.urgent } else { &mut self.fresh };
        if let Some(last) = queue.back_mut()
            && last.id == id
            && last.end <= start
            && since.since(last.since) < TIMER_GRANULARITY
        {
            last.end = end;
        } else if queue.len() < MAX_REGIONS {
            queue.push_back(Region { since, id, start, end });
        }
    }

    /// Makes the holes of `id` due at once, because the window of `id` is half full.
    pub fn hurry(&mut self, id: DataId) {
        let urgent = &mut self.urgent;
        self.fresh.retain(|region| {
            if region.id == id {
                urgent.push_back(*region);
            }
            region.id != id
        });
    }

    /// Drops regions at the front of which nothing is open any more.
    pub fn sweep(&mut self, mut open: impl FnMut(&Region) -> bool) {
        for queue in [&mut self.urgent, &mut self.fresh, &mut self.named] {
            while queue.front().is_some_and(|region| !open(region)) {
                queue.pop_front();
            }
        }
    }

    /// When the first region is due.
    pub fn deadline(&self, tau: Duration, all_at_once: bool) -> Option<Instant> {
        let tau = tau.max(TIMER_GRANULARITY);
        let fresh = if all_at_once { Duration::ZERO } else { tau };
        [(&self.urgent, Duration::ZERO), (&self.fresh, fresh), (&self.named, tau)]
            .into_iter()
            .filter_map(|(queue, wait)| queue.front().map(|region| region.since + wait))
            .min()
    }

    /// Takes the next region that is due.
    pub fn take_due(&mut self, now: Instant, tau: Duration, all_at_once: bool) -> Option<Region> {
        let tau = tau.max(TIMER_GRANULARITY); // or what was just named would be due again
        if let Some(region) = self.urgent.pop_front() {
            return Some(region);
        }
        if self.fresh.front().is_some_and(|region| all_at_once || region.since + tau <= now) {
            return self.fresh.pop_front();
        }
        if self.named.front().is_some_and(|region| region.since + tau <= now) {
            return self.named.pop_front();
        }
        None
    }

    /// Returns a due region that did not fit into the packet, or the rest of it.
    pub fn put_back(&mut self, region: Region) {
        self.urgent.push_front(region);
    }

    /// `region` was named: again after another τ.
    pub fn named(&mut self, now: Instant, region: Region) {
        if self.named.len() < MAX_REGIONS {
            self.named.push_back(Region { since: now, ..region });
        }
    }
}
