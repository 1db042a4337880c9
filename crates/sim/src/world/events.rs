//! The one queue of a world's events.

use byway_wire::{Ecn, Instant};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// A packet in flight, with what links need to know. Its addresses and bytes are in the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketInFlight {
    /// The time at which the packet reaches the end of its link.
    pub(super) at: Instant,
    /// The slot with the packet's addresses and bytes.
    pub(super) slot: u32,
    /// The index of the packet's link in the list of all chains.
    pub(super) place: u32,
    /// Bytes of UDP payload, real or not.
    pub(super) size: u32,
    pub(super) ecn: Ecn,
}

/// The subject of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventSubject {
    /// A link decides about waiting packets.
    Decision(u32),
    /// The first packet in a link's line reaches the link's end.
    Line(u32),
    /// A packet that overtakes, or that is on no link, reaches its end. The value is the event's
    /// order.
    Loose(u64),
    /// A node asked to be woken.
    Wake(u32),
}

/// An event: time in the upper 64 bits, rank among the events of the same time in the lower 64
/// bits. All bits are inverted, since the heap returns the greatest number first. The ranks are as
/// in this table:
///
/// | events of the same time | order among them |
/// |---|---|
/// | 1. links | by number; on one link decisions, then arrivals in order of acceptance |
/// | 2. injected packets | in order of injection |
/// | 3. wakes of nodes | by number |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event(u128);

const INJECTED_ORDER: u64 = 1 << 62;
const WAKE_ORDER: u64 = 2 << 62;
const LINE_BIT: u64 = 1 << 30;
const LOOSE_BIT: u64 = 2 << 30;

impl Event {
    fn new(at: Instant, order: u64) -> Self {
        Self(!(u128::from(at.as_nanos()) << 64 | u128::from(order)))
    }

    pub(super) fn at(&self) -> Instant {
        Instant::from_nanos(!((self.0 >> 64) as u64))
    }

    /// Returns the order of the event among events at the same time.
    pub(super) fn order(&self) -> u64 {
        !(self.0 as u64)
    }

    pub(super) fn subject(&self) -> EventSubject {
        let order = self.order();
        let link = (order >> 32) as u32;
        match order & (LINE_BIT | LOOSE_BIT) {
            _ if order >= WAKE_ORDER => EventSubject::Wake(order as u32),
            _ if order >= INJECTED_ORDER => EventSubject::Loose(order),
            LINE_BIT => EventSubject::Line(link),
            LOOSE_BIT => EventSubject::Loose(order),
            _ => EventSubject::Decision(link),
        }
    }

    /// The event at another time.
    fn moved(self, at: Instant) -> Self {
        Self::new(at, self.order())
    }

    pub(super) fn decision(at: Instant, link: u32) -> Self {
        Self::new(at, u64::from(link) << 32)
    }

    pub(super) fn line(at: Instant, link: u32) -> Self {
        Self::new(at, u64::from(link) << 32 | LINE_BIT)
    }

    /// The event of the `count`-th overtaking packet of this link.
    pub(super) fn loose(at: Instant, link: u32, count: u64) -> Self {
        Self::new(at, u64::from(link) << 32 | LOOSE_BIT | (count & (LINE_BIT - 1)))
    }

    /// The event of the `count`-th injected packet.
    pub(super) fn injected(at: Instant, count: u64) -> Self {
        Self::new(at, INJECTED_ORDER | count)
    }

    pub(super) fn wake(at: Instant, node: u32) -> Self {
        Self::new(at, WAKE_ORDER | u64::from(node))
    }
}

/// The queue of events. Of the packets that follow each other on a link, only the first has an
/// event here. So the heap grows with the number of links and nodes, not of packets.
#[derive(Debug, Default)]
pub(super) struct Events(BinaryHeap<Event>);

impl Events {
    pub(super) fn push(&mut self, event: Event) {
        self.0.push(event);
    }

    pub(super) fn peek(&self) -> Option<&Event> {
        self.0.peek()
    }

    /// Lets `event`, which was the first, happen again at `at`, or takes it off. Cheaper than a
    /// removal and a push, unless what happened brought another event of the same instant that
    /// comes before it.
    pub(super) fn again(&mut self, event: Event, at: Option<Instant>) {
        let Some(mut first) = self.0.peek_mut() else { return };
        assert!(
            first.at() >= event.at(),
            "law broken: {:?} is to happen at {:?}, before {:?} at {:?}, which is now",
            first.subject(),
            first.at(),
            event.subject(),
            event.at()
        );
        if *first != event {
            drop(first);
            self.0.retain(|other| *other != event);
            self.0.extend(at.map(|at| event.moved(at)));
            return;
        }
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

    /// A new event may come before the present event in the order of the same instant.
    #[test]
    fn an_event_happens_again_though_another_of_its_instant_comes_first() {
        let (mut events, now) = (Events::default(), Instant::from_millis(5));
        let [early, late] = [3, 12].map(|link| Event::line(now, link));
        events.push(late);
        assert_eq!(events.peek(), Some(&late));
        events.push(early);
        events.again(late, Some(Instant::from_millis(7)));
        assert_eq!(events.peek(), Some(&early));
        events.again(early, None);
        assert_eq!(events.peek().map(Event::at), Some(Instant::from_millis(7)));
        events.again(late.moved(Instant::from_millis(7)), None);
        assert_eq!(events.peek(), None);
    }

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
                _ => Event::injected(at, u64::from(number)),
            };
            events.push(event);
            expected.push(event);
            if random.below(3) == 0 {
                // The first once more, later.
                let first = *events.peek().unwrap();
                let later = first.at() + byway_wire::Duration::from_nanos(random.below(30));
                events.again(first, Some(later));
                let place = expected.iter().position(|&event| event == first).unwrap();
                expected[place] = first.moved(later);
            }
        }
        expected.sort_unstable_by(|a, b| b.cmp(a));
        let mut found = Vec::new();
        while let Some(&first) = events.peek() {
            found.push(first);
            events.again(first, None);
        }
        assert_eq!(found, expected);
        let kinds = [
            Event::decision(Instant::ZERO, 3),
            Event::line(Instant::ZERO, 3),
            Event::loose(Instant::ZERO, 3, 1),
            Event::loose(Instant::ZERO, 3, 2),
            Event::decision(Instant::ZERO, 4),
            Event::injected(Instant::ZERO, 1),
            Event::wake(Instant::ZERO, 0),
        ];
        assert!(kinds.is_sorted_by(|a, b| a > b));
        let subjects = [
            EventSubject::Decision(3),
            EventSubject::Line(3),
            EventSubject::Loose(3 << 32 | LOOSE_BIT | 1),
            EventSubject::Loose(3 << 32 | LOOSE_BIT | 2),
            EventSubject::Decision(4),
            EventSubject::Loose(INJECTED_ORDER | 1),
            EventSubject::Wake(0),
        ];
        assert_eq!(kinds.map(|event| event.subject()), subjects);
    }
}
