//! What happens when: the one queue of the world.

use byway_wire::{Ecn, Instant};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// A packet on its way, with all that links need to know of it. Its addresses and bytes are in the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flight {
    /// When it reaches the end of its link.
    pub(super) at: Instant,
    /// Where its bytes are.
    pub(super) slot: u32,
    /// Where in the list of all chains it is: which link it is on.
    pub(super) place: u32,
    /// Bytes of UDP payload, real or not.
    pub(super) size: u32,
    pub(super) ecn: Ecn,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// A link decides about what it holds.
    Decision(u32),
    /// The first packet in line reaches the end of its link.
    Line(u32),
    /// A packet that overtakes, or none that is on a link, reaches its end: its place among the loose ones.
    Loose(u32),
    /// A node wanted to be woken.
    Wake(u32),
}

/// Something that happens at a time. What happens at one time happens in this order: links by number (a link's decisions
/// before its arrivals, arrivals in the order of acceptance), injected packets, wakes by node. It does not depend on when
/// an event was scheduled: a wake more or less (they may be spurious), or a packet that was looked at later, changes
/// nobody's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) at: Instant,
    order: u64,
    pub(super) subject: Subject,
}

const INJECTED: u64 = 1 << 62;
const WAKE: u64 = 2 << 62;
const LINE: u64 = 1 << 30;
const LOOSE: u64 = 2 << 30;

impl Event {
    pub(super) fn decision(at: Instant, link: u32) -> Self {
        Self { at, order: u64::from(link) << 32, subject: Subject::Decision(link) }
    }

    pub(super) fn line(at: Instant, link: u32) -> Self {
        Self { at, order: u64::from(link) << 32 | LINE, subject: Subject::Line(link) }
    }

    /// The `count`-th packet of this link that overtakes.
    pub(super) fn loose(at: Instant, link: u32, count: u64, place: u32) -> Self {
        let order = u64::from(link) << 32 | LOOSE | (count & (LINE - 1));
        Self { at, order, subject: Subject::Loose(place) }
    }

    /// The `count`-th injected packet.
    pub(super) fn injected(at: Instant, count: u64, place: u32) -> Self {
        Self { at, order: INJECTED | count, subject: Subject::Loose(place) }
    }

    pub(super) fn wake(at: Instant, node: u32) -> Self {
        Self { at, order: WAKE | u64::from(node), subject: Subject::Wake(node) }
    }

    /// One number, so that a comparison has no branch.
    fn key(&self) -> u128 {
        u128::from(self.at.as_nanos()) << 64 | u128::from(self.order)
    }
}

impl Ord for Event {
    /// The earliest is the greatest, for the heap.
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        other.key().cmp(&self.key())
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Events in order. Of each link only the first arrival stands here, so it stays as small as there are links and nodes.
#[derive(Debug, Default)]
pub(super) struct Events(BinaryHeap<Event>);

impl Events {
    pub(super) fn push(&mut self, event: Event) {
        self.0.push(event);
    }

    pub(super) fn peek(&self) -> Option<&Event> {
        self.0.peek()
    }

    /// Lets the first event happen again at `at`, or takes it off. Cheaper than a pop and a push.
    pub(super) fn again(&mut self, at: Option<Instant>) {
        let Some(mut first) = self.0.peek_mut() else { return };
        match at {
            Some(at) => first.at = at,
            None => {
                PeekMut::pop(first);
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Event> {
        self.0.iter()
    }
}
