//! Connections by number, those whose turn it is, and those whose time is up.

use byway_wire::Instant;
use std::collections::{BTreeSet, VecDeque};

/// The number of a connection. It is given again once the connection is over.
pub type Number = u32;

#[derive(Debug)]
struct Slot<T> {
    inside: T,
    /// Whether the slot is in the queue of connections that have a turn.
    due: bool,
    /// Whether the slot is in the list of connections that wait for the budget.
    blocked: bool,
    until: Option<Instant>,
}

/// Connections by number, with the queue of those that have a turn and the deadlines of the others.
#[derive(Debug)]
pub struct Slots<T> {
    slots: Vec<Option<Slot<T>>>,
    free: Vec<Number>,
    due: VecDeque<Number>,
    blocked: Vec<Number>,
    ends: BTreeSet<(Instant, Number)>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            due: VecDeque::new(),
            blocked: Vec::new(),
            ends: BTreeSet::new(),
        }
    }
}

impl<T> Slots<T> {
    /// The number of connections.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Adds a connection, which has no turn yet. Returns its number.
    pub fn insert(&mut self, inside: T) -> Number {
        let slot = Some(Slot { inside, due: false, blocked: false, until: None });
        match self.free.pop() {
            Some(number) => {
                if let Some(place) = self.slots.get_mut(number as usize) {
                    *place = slot;
                }
                number
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as Number - 1
            }
        }
    }

    /// The connection with this number.
    pub fn get_mut(&mut self, number: Number) -> Option<&mut T> {
        Some(&mut self.slots.get_mut(number as usize)?.as_mut()?.inside)
    }

    /// Removes a connection.
    pub fn remove(&mut self, number: Number) -> Option<T> {
        let slot = self.slots.get_mut(number as usize)?.take()?;
        self.free.push(number);
        if let Some(until) = slot.until {
            self.ends.remove(&(until, number));
        }
        Some(slot.inside)
    }

    /// Adds a connection to the queue of connections that have a turn.
    pub fn hurry(&mut self, number: Number) {
        let Some(Some(slot)) = self.slots.get_mut(number as usize) else { return };
        if !std::mem::replace(&mut slot.due, true) {
            self.due.push_back(number);
        }
    }

    /// Adds a connection to the list of connections that wait for the budget.
    pub fn block(&mut self, number: Number) {
        let Some(Some(slot)) = self.slots.get_mut(number as usize) else { return };
        if !std::mem::replace(&mut slot.blocked, true) {
            self.blocked.push(number);
        }
    }

    /// The budget allows more again: gives a turn to all connections that waited for it.
    pub fn unblock(&mut self) {
        for number in std::mem::take(&mut self.blocked) {
            if let Some(Some(slot)) = self.slots.get_mut(number as usize)
                && std::mem::take(&mut slot.blocked)
            {
                self.hurry(number);
            }
        }
    }

    /// Whether there is no connection.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of connections that have a turn now.
    #[must_use]
    pub fn count_due(&self) -> usize {
        self.due.len()
    }

    /// Removes and returns the next connection that has a turn.
    pub fn next_due(&mut self) -> Option<Number> {
        loop {
            let number = self.due.pop_front()?;
            // One that is over left its number in the queue. Whoever has that now may have a turn
            // too many.
            if let Some(Some(slot)) = self.slots.get_mut(number as usize) {
                slot.due = false;
                return Some(number);
            }
        }
    }

    /// Gives the slot time until `until`, or without a limit.
    pub fn set_end(&mut self, number: Number, until: Option<Instant>) {
        let Some(Some(slot)) = self.slots.get_mut(number as usize) else { return };
        if let Some(before) = std::mem::replace(&mut slot.until, until) {
            self.ends.remove(&(before, number));
        }
        if let Some(until) = until {
            self.ends.insert((until, number));
        }
    }

    /// The earliest deadline of a connection.
    #[must_use]
    pub fn first_end(&self) -> Option<Instant> {
        self.ends.first().map(|(until, _)| *until)
    }

    /// Returns a connection whose deadline has passed, and removes the deadline.
    pub fn next_end(&mut self, now: Instant) -> Option<Number> {
        let (until, number) = *self.ends.first()?;
        if until > now {
            return None;
        }
        self.set_end(number, None);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_one_turn_until_it_is_taken_and_none_when_it_is_over() {
        let mut slots = Slots::default();
        let [a, b] = ['a', 'b'].map(|it| slots.insert(it));
        slots.hurry(b);
        slots.hurry(a);
        slots.hurry(b);
        assert_eq!((slots.len(), slots.count_due()), (2, 2));
        assert_eq!(slots.next_due(), Some(b));
        assert_eq!(slots.remove(a), Some('a'));
        assert_eq!((slots.next_due(), slots.len()), (None, 1));
        slots.block(b);
        slots.block(b);
        slots.unblock();
        slots.unblock();
        assert_eq!((slots.next_due(), slots.next_due()), (Some(b), None));
        let c = slots.insert('c');
        assert_eq!((c, slots.len()), (a, 2));
    }

    #[test]
    fn time_is_up_once() {
        let mut slots = Slots::default();
        let [a, b, c] = ['a', 'b', 'c'].map(|it| slots.insert(it));
        let at = Instant::from_millis;
        slots.set_end(a, Some(at(5)));
        slots.set_end(b, Some(at(3)));
        slots.set_end(c, Some(at(1)));
        slots.set_end(c, Some(at(9)));
        slots.set_end(a, Some(at(4)));
        assert_eq!(slots.next_end(at(2)), None);
        assert_eq!(
            (slots.next_end(at(4)), slots.next_end(at(4)), slots.next_end(at(4))),
            (Some(b), Some(a), None)
        );
        slots.remove(c);
        assert_eq!(slots.next_end(at(10)), None);
    }
}
