//! Things by their number, where numbers are given in order and most things go in about that order.

use crate::invariant::Invariant as _;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use byway_wire::ObjectId;

/// The most numbers in the row, from the lowest to the highest: 128 KiB.
const MAX_ROW_LEN: usize = 16 << 10;

/// A map with numbers as keys. Entry `n` is at index `n - base` of a ring buffer, so a look-up
/// takes one step. If the numbers span more than `MAX_ROW_LEN`, the lowest entries move to a tree.
#[derive(Debug)]
pub struct Numbered<T> {
    /// The number of the first entry in the ring buffer.
    base: u32,
    row: VecDeque<Option<Box<T>>>,
    /// Entries with lower numbers than `base`.
    aside: BTreeMap<u32, Box<T>>,
    count: usize,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { base: 0, row: VecDeque::new(), aside: BTreeMap::new(), count: 0 }
    }
}

impl<T> Numbered<T> {
    /// The number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no entries.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether there is an entry with this number.
    #[must_use]
    pub fn contains_key(&self, id: &ObjectId) -> bool {
        self.get(id).is_some()
    }

    /// The entry with this number.
    #[must_use]
    pub fn get(&self, id: &ObjectId) -> Option<&T> {
        let near = self.place(*id).and_then(|place| self.row.get(place)?.as_deref());
        near.or_else(|| self.aside.get(&id.0).map(Box::as_ref))
    }

    /// The entry with this number, mutable.
    pub fn get_mut(&mut self, id: &ObjectId) -> Option<&mut T> {
        let place = self.place(*id);
        let near = place.and_then(|place| self.row.get_mut(place)?.as_deref_mut());
        near.or_else(|| self.aside.get_mut(&id.0).map(Box::as_mut))
    }

    /// Inserts an entry. Replaces an earlier one with the same number.
    pub fn insert(&mut self, id: ObjectId, thing: Box<T>) {
        self.remove(&id);
        self.count += 1;
        if self.row.is_empty() {
            self.base = id.0;
        }
        let Some(mut place) = self.place(id) else {
            self.aside.insert(id.0, thing);
            return;
        };
        while place >= MAX_ROW_LEN {
            match self.row.pop_front() {
                Some(oldest) => {
                    self.aside.extend(oldest.map(|oldest| (self.base, oldest)));
                    (self.base, place) = (self.base + 1, place - 1);
                }
                None => (self.base, place) = (id.0, 0),
            }
        }
        if place >= self.row.len() {
            self.row.resize_with(place + 1, || None);
        }
        if let Some(empty) = self.row.get_mut(place).sure() {
            *empty = Some(thing);
        }
    }

    /// Removes the entry with this number.
    pub fn remove(&mut self, id: &ObjectId) -> Option<Box<T>> {
        let near = self.place(*id).and_then(|place| self.row.get_mut(place)?.take());
        let thing = near.or_else(|| self.aside.remove(&id.0))?;
        self.count -= 1;
        while let Some(None) = self.row.front() {
            self.row.pop_front();
            self.base = self.base.saturating_add(1);
        }
        Some(thing)
    }

    /// All entries, in no particular order.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.row.iter().flatten().chain(self.aside.values()).map(Box::as_ref)
    }

    fn place(&self, id: ObjectId) -> Option<usize> {
        id.0.checked_sub(self.base).map(|place| place as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn one_that_stays_costs_no_row() {
        let mut all = Numbered::default();
        all.insert(ObjectId(0), Box::new(0));
        for id in 1..200_000 {
            all.insert(ObjectId(id), Box::new(id));
            assert_eq!(all.remove(&ObjectId(id)), Some(Box::new(id)));
        }
        assert!(all.row.len() <= MAX_ROW_LEN && all.row.capacity() <= 2 * MAX_ROW_LEN);
        assert_eq!((all.len(), all.get(&ObjectId(0))), (1, Some(&0)));
        all.insert(ObjectId(u32::MAX), Box::new(7));
        assert_eq!((all.row.len(), all.len(), all.get(&ObjectId(0))), (1, 2, Some(&0)));
        assert_eq!(all.remove(&ObjectId(u32::MAX)), Some(Box::new(7)));
        assert_eq!((all.remove(&ObjectId(0)), all.is_empty()), (Some(Box::new(0)), true));
    }

    proptest! {
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0..4u8, prop_oneof![0..20u32, 0..60_000u32, any::<u32>()]), 0..200)) {
            let (mut all, mut model) = (Numbered::default(), BTreeMap::new());
            for (at, (step, id)) in steps.into_iter().enumerate() {
                match step {
                    0 | 1 => {
                        all.insert(ObjectId(id), Box::new(at));
                        model.insert(id, at);
                    }
                    2 => prop_assert_eq!(all.remove(&ObjectId(id)).map(|it| *it), model.remove(&id)),
                    _ => {
                        let lowest = model.keys().next().copied().unwrap_or(id);
                        prop_assert_eq!(all.remove(&ObjectId(lowest)).map(|it| *it), model.remove(&lowest));
                    }
                }
                prop_assert_eq!(all.get(&ObjectId(id)), model.get(&id));
                prop_assert_eq!(all.get_mut(&ObjectId(id)).copied(), model.get(&id).copied());
                prop_assert_eq!((all.len(), all.is_empty()), (model.len(), model.is_empty()));
                prop_assert!(all.row.len() <= MAX_ROW_LEN);
            }
            let mut values: Vec<_> = all.values().copied().collect();
            values.sort_unstable();
            let mut expected: Vec<_> = model.into_values().collect();
            expected.sort_unstable();
            prop_assert_eq!(values, expected);
        }
    }
}
