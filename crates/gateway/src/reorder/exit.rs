//! The reorder queues of all flows of an exit gateway: found by name, bounded together.

use super::queue::{ArrivedPacket, FlowLimits, Reorder};
use super::stats::WaitStats;
use crate::linked_lists::Lists;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use byway_wire::{Duration, Instant};

/// The limits of an exit gateway's reorder queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitLimits {
    /// The limits of one flow.
    pub flow: FlowLimits,
    /// Bytes of all flows.
    pub bytes: usize,
    /// The most flows that are remembered. The flow that was idle longest makes room.
    pub flows: usize,
    /// The time without a packet after which a flow is forgotten.
    pub idle_for: Duration,
}

impl Default for ExitLimits {
    fn default() -> Self {
        Self {
            flow: FlowLimits::default(),
            bytes: 64 << 20,
            flows: 32_768,
            idle_for: Duration::from_secs(300),
        }
    }
}

#[derive(Debug)]
struct FlowQueue<K, T> {
    key: K,
    queue: Reorder<T>,
    /// When the queue's timer expires, as entered among all timers.
    due: Option<Instant>,
    last: Instant,
}

/// The reorder queues of an exit gateway. `K` names a direction of a flow: the peer that sends it,
/// and its [`Label`](crate::encap::Label).
#[derive(Debug)]
pub struct ReorderQueues<K, T> {
    limits: ExitLimits,
    by_key: BTreeMap<K, u32>,
    slots: Vec<Option<FlowQueue<K, T>>>,
    free: Vec<u32>,
    due: BTreeSet<(Instant, u32)>,
    ages: Lists<1>,
    bytes: usize,
    stats: WaitStats,
}

impl<K: Ord + Copy, T> ReorderQueues<K, T> {
    /// No flows yet.
    #[must_use]
    pub fn new(limits: ExitLimits) -> Self {
        Self {
            limits,
            by_key: BTreeMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            due: BTreeSet::new(),
            ages: Lists::new(),
            bytes: 0,
            stats: WaitStats::default(),
        }
    }

    /// Bytes that wait.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Flows that are remembered.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.by_key.len()
    }

    /// Returns the times that packets waited.
    #[must_use]
    pub const fn stats(&self) -> &WaitStats {
        &self.stats
    }

    /// Handles an arrived packet. Packets that are ready are passed to `out`, in the order of their
    /// flow. See [`Reorder::on_packet`].
    pub fn on_packet(
        &mut self,
        now: Instant,
        key: K,
        arrival: ArrivedPacket<T>,
        out: &mut impl FnMut(&K, T),
    ) -> Option<Duration> {
        let index = match self.by_key.get(&key) {
            Some(index) => *index,
            None => self.insert(now, key, out),
        };
        self.ages.put(index, 0);
        let mut late = None;
        self.with(index, |slot, stats| {
            slot.last = now;
            let key = slot.key;
            late = slot.queue.on_packet(now, arrival, stats, &mut |packet| out(&key, packet));
        });
        if self.bytes > self.limits.bytes {
            // The flow that fills it goes on out of order; the others are not disturbed.
            self.release(now, index, out);
        }
        late
    }

    /// Releases the packets that have waited long enough, and forgets flows that were idle for
    /// long.
    pub fn expire(&mut self, now: Instant, out: &mut impl FnMut(&K, T)) {
        while let Some(&(_, index)) = self.due.first().filter(|(due, _)| *due <= now) {
            self.with(index, |slot, stats| {
                let key = slot.key;
                slot.queue.expire(now, stats, &mut |packet| out(&key, packet));
            });
        }
        while let Some(index) = self.ages.front(0) {
            let slot = self.slots.get(index as usize).and_then(Option::as_ref);
            if slot.is_none_or(|slot| slot.last + self.limits.idle_for > now) {
                break;
            }
            self.remove(now, index, out);
        }
    }

    /// When [`expire`](Self::expire) has something to do.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let timer = self.due.first().map(|(due, _)| *due);
        let eldest = self.ages.front(0).and_then(|index| self.slots.get(index as usize)?.as_ref());
        let idle = eldest.map(|slot| slot.last + self.limits.idle_for);
        timer.into_iter().chain(idle).min()
    }

    /// Forgets the flows for which `gone` is true, as their peer's session ended. Their waiting
    /// packets are released first.
    pub fn forget(&mut self, now: Instant, gone: impl Fn(&K) -> bool, out: &mut impl FnMut(&K, T)) {
        let those: Vec<u32> =
            self.by_key.iter().filter(|(key, _)| gone(key)).map(|(_, index)| *index).collect();
        those.into_iter().for_each(|index| self.remove(now, index, out));
    }

    fn insert(&mut self, now: Instant, key: K, out: &mut impl FnMut(&K, T)) -> u32 {
        while self.by_key.len() >= self.limits.flows.max(1) {
            let Some(eldest) = self.ages.front(0) else { break };
            self.remove(now, eldest, out);
        }
        let slot = Some(FlowQueue { key, queue: Reorder::new(self.limits.flow), due: None, last: now });
        let index = match self.free.pop() {
            Some(index) => {
                if let Some(place) = self.slots.get_mut(index as usize) {
                    *place = slot;
                }
                index
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        self.by_key.insert(key, index);
        index
    }

    fn remove(&mut self, now: Instant, index: u32, out: &mut impl FnMut(&K, T)) {
        self.release(now, index, out);
        self.ages.remove(index);
        if let Some(slot) = self.slots.get_mut(index as usize).and_then(Option::take) {
            self.by_key.remove(&slot.key);
            self.free.push(index);
        }
    }

    fn release(&mut self, now: Instant, index: u32, out: &mut impl FnMut(&K, T)) {
        self.with(index, |slot, stats| {
            let key = slot.key;
            slot.queue.flush(now, stats, &mut |packet| out(&key, packet));
        });
    }

    /// Runs `act` on a queue, and updates the sums of bytes and timers.
    fn with(&mut self, index: u32, act: impl FnOnce(&mut FlowQueue<K, T>, &mut WaitStats)) {
        let Some(slot) = self.slots.get_mut(index as usize).and_then(Option::as_mut) else { return };
        let before = slot.queue.bytes();
        act(slot, &mut self.stats);
        self.bytes = self.bytes - before + slot.queue.bytes();
        let due = slot.queue.deadline();
        if due != slot.due {
            if let Some(old) = core::mem::replace(&mut slot.due, due) {
                self.due.remove(&(old, index));
            }
            if let Some(due) = due {
                self.due.insert((due, index));
            }
        }
    }
}
