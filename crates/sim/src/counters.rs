//! The fates of the packets that were offered to a link, as counts that must balance.

use crate::link::{Delivery, DropReason, Offer, PacketOutcome};
use byway_wire::{Duration, Ecn, Instant};
use core::ops::AddAssign;

/// The fates of the packets that were offered to a link.
///
/// The counts always balance: `sent + duplicated = delivered + dropped + queued + in_flight`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LinkCounters {
    /// Number of packets offered.
    pub sent: u64,
    /// UDP payload bytes offered.
    pub sent_bytes: u64,
    /// Packets that arrived at the far end, copies included.
    pub delivered: u64,
    /// UDP payload bytes that arrived at the far end.
    pub delivered_bytes: u64,
    /// Copies that the link made.
    pub duplicated: u64,
    /// Packets whose bits were flipped.
    pub corrupted: u64,
    /// Packets that were marked CE on this link.
    pub marked: u64,
    /// Packets dropped, in the order of [`DropReason::ALL`].
    pub dropped: [u64; DropReason::ALL.len()],
    /// Packets in the queue that will arrive. Those that will be lost on the wire count as dropped
    /// already.
    pub queued: u64,
    /// Packets being sent or propagating.
    pub in_flight: u64,
    /// Packets without copies that will not be lost, and whose waiting time is known.
    pub served: u64,
    /// The total waiting time of packets in nanoseconds.
    pub waited: u64,
}

impl LinkCounters {
    /// Packets dropped for this reason.
    #[must_use]
    pub fn dropped_for(&self, reason: DropReason) -> u64 {
        self.dropped.get(reason as usize).copied().unwrap_or(0)
    }

    /// Packets dropped for any reason.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Whether the counts balance if `under_way` packets are in flight.
    #[must_use]
    pub fn balance_with(&self, under_way: u64) -> bool {
        self.sent + self.duplicated == self.delivered + self.dropped() + under_way
    }

    /// Returns the mean waiting time of a packet.
    #[must_use]
    pub fn mean_wait(&self) -> Duration {
        Duration::from_nanos(self.waited.checked_div(self.served).unwrap_or(0))
    }

    /// Counts an offered packet and its outcome.
    pub fn note(&mut self, now: Instant, offer: &Offer, fate: &PacketOutcome) {
        self.sent += 1;
        self.sent_bytes += offer.size as u64;
        self.note_fate(now, offer.ecn, fate);
    }

    /// Notes the fate of a packet that was offered, with the mark `ecn`, at `offered`.
    pub fn note_fate(&mut self, offered: Instant, ecn: Ecn, fate: &PacketOutcome) {
        match fate {
            PacketOutcome::Dropped(reason) => self.note_drop(*reason),
            PacketOutcome::Delivered(delivery) => self.note_served(offered, ecn, delivery),
            PacketOutcome::Duplicated(first, second) => {
                self.duplicated += 1;
                self.note_served(offered, ecn, first);
                self.note_faults(ecn, second);
            }
            PacketOutcome::Queued => {}
        }
    }

    pub(crate) fn note_drop(&mut self, reason: DropReason) {
        if let Some(count) = self.dropped.get_mut(reason as usize) {
            *count += 1;
        }
    }

    fn note_served(&mut self, offered: Instant, ecn: Ecn, delivery: &Delivery) {
        self.note_wait(offered, delivery.begins);
        self.note_faults(ecn, delivery);
    }

    /// Notes how long a packet waits.
    pub(crate) fn note_wait(&mut self, offered: Instant, begins: Instant) {
        self.served += 1;
        self.waited += begins.as_nanos().saturating_sub(offered.as_nanos());
    }

    fn note_faults(&mut self, ecn: Ecn, delivery: &Delivery) {
        self.corrupted += u64::from(delivery.corruption.is_some());
        self.marked += u64::from(delivery.ecn == Ecn::Ce && ecn != Ecn::Ce);
    }

    /// Notes a packet that arrived at the far end.
    pub fn note_arrival(&mut self, size: usize) {
        self.delivered += 1;
        self.delivered_bytes += size as u64;
    }
}

impl AddAssign for LinkCounters {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.sent_bytes += other.sent_bytes;
        self.delivered += other.delivered;
        self.delivered_bytes += other.delivered_bytes;
        self.duplicated += other.duplicated;
        self.corrupted += other.corrupted;
        self.marked += other.marked;
        self.queued += other.queued;
        self.in_flight += other.in_flight;
        self.served += other.served;
        self.waited += other.waited;
        for (count, more) in self.dropped.iter_mut().zip(other.dropped) {
            *count += more;
        }
    }
}
