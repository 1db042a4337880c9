//! What happens when: the one queue of the world.

use byway_wire::{Ecn, Instant};

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

/// How many children a place in the heap has: fewer levels to go down than with two, and siblings lie side by side.
const WIDTH: usize = 4;

/// Events in order, as a heap. Of each link only the first arrival stands here, so it stays as small as there are links and
/// nodes.
#[derive(Debug, Default)]
pub(super) struct Events(Vec<Event>);

impl Events {
    pub(super) fn push(&mut self, event: Event) {
        let mut place = self.0.len();
        self.0.push(event);
        // Up, while the parent is later.
        while place > 0 {
            let parent = (place - 1) / WIDTH;
            let above = self.0[parent];
            if above.key() <= event.key() {
                break;
            }
            self.0[place] = above;
            place = parent;
        }
        self.0[place] = event;
    }

    pub(super) fn peek(&self) -> Option<&Event> {
        self.0.first()
    }

    /// Lets the first event happen again at `at`, or takes it off. Cheaper than a removal and a push.
    pub(super) fn again(&mut self, at: Option<Instant>) {
        match (at, self.0.first()) {
            (Some(at), Some(&first)) => self.sink(Event { at, ..first }),
            _ => {
                if let Some(last) = self.0.pop()
                    && !self.0.is_empty()
                {
                    self.sink(last);
                }
            }
        }
    }

    /// Puts an event in the place of the first, and down, while a child is earlier.
    fn sink(&mut self, event: Event) {
        let (heap, key) = (&mut self.0, event.key());
        let mut place = 0;
        loop {
            let first = place * WIDTH + 1;
            let Some(children) = heap.get(first..heap.len().min(first + WIDTH)) else { break };
            let mut least = (key, place);
            for (offset, child) in children.iter().enumerate() {
                let candidate = child.key();
                if candidate < least.0 {
                    least = (candidate, first + offset);
                }
            }
            if least.1 == place {
                break;
            }
            heap[place] = heap[least.1];
            place = least.1;
        }
        heap[place] = event;
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
            expected.push(event.key());
            if random.below(3) == 0 {
                // The first once more, later.
                let first = *events.peek().unwrap();
                let later = first.at + byway_wire::Duration::from_nanos(random.below(30));
                events.again(Some(later));
                let place = expected.iter().position(|&key| key == first.key()).unwrap();
                expected[place] = Event { at: later, ..first }.key();
            }
        }
        expected.sort_unstable();
        let mut found = Vec::new();
        while let Some(first) = events.peek() {
            found.push(first.key());
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
        assert!(kinds.is_sorted_by_key(Event::key));
    }
}
