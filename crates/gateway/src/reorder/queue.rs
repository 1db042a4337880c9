//! The reorder queue of one direction of a flow.

use super::stats::{Release, WaitStats};
use alloc::collections::{BTreeMap, BTreeSet};
use byway_wire::{Duration, Instant};

/// The limits of one flow's queue. Beyond them packets leave out of order, and none is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowLimits {
    /// The most bytes that wait.
    pub bytes: usize,
    /// The most packets that wait.
    pub packets: usize,
}

impl Default for FlowLimits {
    fn default() -> Self {
        Self { bytes: 4 << 20, packets: 4_096 }
    }
}

/// The distance from the expected sequence number at which an entry gateway has restarted.
const RESTART_DISTANCE: u64 = 1 << 20;

#[derive(Debug)]
struct HeldPacket<T> {
    packet: T,
    bytes: usize,
    arrived: Instant,
    due: Instant,
}

/// The reorder queue of one direction of a flow.
#[derive(Debug)]
pub struct Reorder<T> {
    limits: FlowLimits,
    /// The sequence expected next, carried on beyond 32 bits; `None` before the first packet.
    next: Option<u64>,
    held: BTreeMap<u64, HeldPacket<T>>,
    due: BTreeSet<(Instant, u64)>,
    bytes: usize,
    /// The packets that were last given up: the first sequence number, one more than the last, and
    /// since when they were missing.
    given_up: Option<(u64, u64, Instant)>,
}

impl<T> Reorder<T> {
    /// A queue that has seen nothing. Whatever comes first is taken for the beginning.
    #[must_use]
    pub const fn new(limits: FlowLimits) -> Self {
        Self { limits, next: None, held: BTreeMap::new(), due: BTreeSet::new(), bytes: 0, given_up: None }
    }

    /// Bytes that wait.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Packets that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// When the next timer expires.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Handles a packet. It waits at most `arrival.wait` for missing packets before it. Packets
    /// that can leave go to `out`. Returns how late the packet is: the time since the arrival of
    /// the first packet that had to wait for it. `None` if no such packet is known.
    pub fn on_packet(
        &mut self,
        now: Instant,
        arrival: ArrivedPacket<T>,
        stats: &mut WaitStats,
        out: &mut impl FnMut(T),
    ) -> Option<Duration> {
        let ArrivedPacket { sequence, bytes, wait, packet } = arrival;
        let next = self.next.unwrap_or((1 << 32) + u64::from(sequence));
        let mut at = next.saturating_add_signed(i64::from(sequence.wrapping_sub(next as u32) as i32));
        if at.abs_diff(next) > RESTART_DISTANCE {
            self.flush(now, stats, out);
            stats.begun_anew += 1;
            at = (1 << 32) + u64::from(sequence);
            self.next = Some(at);
        }
        let next = *self.next.get_or_insert(next);
        let late = self.lateness(now, at, next);
        if at < next {
            // HIR, 4.4: "it represent that packet is retransmitted packet and hence it is forwarded
            // without any other action".
            stats.count(Duration::ZERO, Release::Late);
            out(packet);
        } else if at == next {
            stats.count(Duration::ZERO, Release::InOrder);
            out(packet);
            self.next = Some(next + 1);
            self.run_on(now, stats, out);
        } else if self.held.contains_key(&at) {
            stats.duplicates += 1;
        } else {
            let due = now + wait;
            self.due.insert((due, at));
            self.held.insert(at, HeldPacket { packet, bytes, arrived: now, due });
            self.bytes += bytes;
            while self.bytes > self.limits.bytes || self.held.len() > self.limits.packets {
                let Some((first, _)) = self.held.first_key_value() else { break };
                self.next = Some(*first);
                self.release(now, Release::Overflow, stats, out);
                self.run_on(now, stats, out);
            }
            self.expire(now, stats, out);
        }
        late
    }

    /// Returns the time that later packets have waited for packet `at`, or would have waited.
    fn lateness(&self, now: Instant, at: u64, next: u64) -> Option<Duration> {
        let since = if at < next {
            self.given_up.filter(|(first, end, _)| (*first..*end).contains(&at)).map(|(_, _, since)| since)
        } else if at == next {
            // The one whose timer expires first came first, or nearly so.
            let (_, first) = self.due.first()?;
            self.held.get(first).map(|held| held.arrived)
        } else {
            None
        };
        since.map(|since| now.since(since))
    }

    /// Releases packets whose waiting time is over.
    pub fn expire(&mut self, now: Instant, stats: &mut WaitStats, out: &mut impl FnMut(T)) {
        while let Some(&(due, last)) = self.due.first().filter(|(due, _)| *due <= now) {
            if let (Some(next), Some(held)) = (self.next, self.held.get(&last)) {
                self.given_up = Some((next, last, held.arrived));
            }
            while let Some((&first, held)) = self.held.first_key_value().filter(|(first, _)| **first <= last)
            {
                let why = if held.due <= due { Release::TimedOut } else { Release::Swept };
                self.next = Some(first);
                self.release(now, why, stats, out);
            }
            self.run_on(now, stats, out);
        }
    }

    /// Lets everything go, in order.
    pub fn flush(&mut self, now: Instant, stats: &mut WaitStats, out: &mut impl FnMut(T)) {
        while let Some((first, _)) = self.held.first_key_value() {
            self.next = Some(*first);
            self.release(now, Release::Overflow, stats, out);
        }
    }

    /// Releases packets that are in sequence now.
    fn run_on(&mut self, now: Instant, stats: &mut WaitStats, out: &mut impl FnMut(T)) {
        while self.held.first_key_value().is_some_and(|(first, _)| Some(*first) == self.next) {
            self.release(now, Release::InOrder, stats, out);
        }
    }

    /// Releases the first waiting packet. Earlier ones are given up.
    fn release(&mut self, now: Instant, why: Release, stats: &mut WaitStats, out: &mut impl FnMut(T)) {
        if let Some((at, held)) = self.held.pop_first() {
            self.due.remove(&(held.due, at));
            self.bytes -= held.bytes;
            self.next = Some(at + 1);
            stats.count(now.since(held.arrived), why);
            out(held.packet);
        }
    }
}

/// A packet that arrived at the exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivedPacket<T> {
    /// The sequence number of the packet in its flow and direction.
    pub sequence: u32,
    /// The size of the packet in bytes.
    pub bytes: usize,
    /// The time that the packet may wait, by the reorder timer.
    pub wait: Duration,
    /// The packet itself.
    pub packet: T,
}
