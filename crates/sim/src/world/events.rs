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
    /// Time, then order: one number, so that a comparison has no branch.
    key: u128,
    pub(super) subject: Subject,
}

const INJECTED: u64 = 1 << 62;
const WAKE: u64 = 2 << 62;
const LINE: u64 = 1 << 30;
const LOOSE: u64 = 2 << 30;

impl Event {
    fn new(at: Instant, order: u64, subject: Subject) -> Self {
        Self { key: u128::from(at.as_nanos()) << 64 | u128::from(order), subject }
    }

    pub(super) fn at(&self) -> Instant {
        Instant::from_nanos((self.key >> 64) as u64)
    }

    /// The same at another time.
    fn moved(self, at: Instant) -> Self {
        Self::new(at, self.key as u64, self.subject)
    }

    pub(super) fn decision(at: Instant, link: u32) -> Self {
        Self::new(at, u64::from(link) << 32, Subject::Decision(link))
    }

    pub(super) fn line(at: Instant, link: u32) -> Self {
        Self::new(at, u64::from(link) << 32 | LINE, Subject::Line(link))
    }

    /// The `count`-th packet of this link that overtakes.
    pub(super) fn loose(at: Instant, link: u32, count: u64, place: u32) -> Self {
        let order = u64::from(link) << 32 | LOOSE | (count & (LINE - 1));
        Self::new(at, order, Subject::Loose(place))
    }

    /// The `count`-th injected packet.
    pub(super) fn injected(at: Instant, count: u64, place: u32) -> Self {
        Self::new(at, INJECTED | count, Subject::Loose(place))
    }

    pub(super) fn wake(at: Instant, node: u32) -> Self {
        Self::new(at, WAKE | u64::from(node), Subject::Wake(node))
    }
}

impl Ord for Event {
    /// The earliest is the greatest, for the heap.
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        other.key.cmp(&self.key)
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Events in order. Of each link only the first arrival stands here, so it stays as small as there are links and nodes. (A
/// heap with four children per place was measured: no faster.)
#[derive(Debug, Default)]
pub(super) struct Events(BinaryHeap<Event>);

impl Events {
    pub(super) fn push(&mut self, event: Event) {
        self.0.push(event);
    }

    pub(super) fn peek(&self) -> Option<&Event> {
        self.0.peek()
    }

    /// Lets the first event happen again at `at`, or takes it off. Cheaper than a removal and a push.
    pub(super) fn again(&mut self, at: Option<Instant>) {
        let Some(mut first) = self.0.peek_mut() else { return };
        match at {
            Some(at) => *first = first.moved(at),
            None => {
                PeekMut::pop(first);
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Event> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_order_of_time_then_links_then_nodes() {
        let mut random = crate::Random::new(1);
        let mut events = Events::default();
        let mut expected = Vec::new();
        for _ in 0..2_000 {
            let (at, number) = (Instant::from_nanos(random.below(50)), random.below(20) as u32);
            let event = match random.below(4) {
                0 => Event::decision(at, number),
                1 => Event::line(at, number),
                2 => Event::wake(at, number),
                _ => Event::injected(at, u64::from(number), 0),
            };
            events.push(event);
            expected.push(event.key);
            if random.below(3) == 0 {
                // The first once more, later.
                let first = *events.peek().unwrap();
                let later = first.at() + byway_wire::Duration::from_nanos(random.below(30));
                events.again(Some(later));
                let place = expected.iter().position(|&key| key == first.key).unwrap();
                expected[place] = first.moved(later).key;
            }
        }
        expected.sort_unstable();
        let mut found = Vec::new();
        while let Some(first) = events.peek() {
            found.push(first.key);
            events.again(None);
        }
        assert_eq!(found, expected);
        let kinds = [
            Event::decision(Instant::ZERO, 3),
            Event::line(Instant::ZERO, 3),
            Event::loose(Instant::ZERO, 3, 1, 9),
            Event::loose(Instant::ZERO, 3, 2, 8),
            Event::decision(Instant::ZERO, 4),
            Event::injected(Instant::ZERO, 1, 0),
            Event::wake(Instant::ZERO, 0),
        ];
        assert!(kinds.is_sorted_by_key(|event| event.key));
    }
}
