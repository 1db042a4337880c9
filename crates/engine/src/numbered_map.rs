//! A map by ids that are given in order, most of whose entries go in about that order. The newest
//! ids index a row of slots, so a look-up takes one step. The entries that outlive their time move
//! to a tree, so memory follows the number of entries and not the ids that were passed over.

use crate::invariant::Invariant as _;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use byway_wire::{ObjectId, PathId};

/// The most slots of a row that may be all gaps: 16 KiB.
const MAX_EMPTY_SLOTS: usize = 2_048;
/// Slots for each entry, beyond `MAX_EMPTY_SLOTS`.
const SLOTS_PER_ENTRY: usize = 4;

/// An id that is a number.
pub trait Number: Copy + Ord {
    /// The number.
    fn number(self) -> u32;
    /// The id with this number.
    fn of(number: u32) -> Self;
}

/// Values by number, iterated in the order of numbers.
#[derive(Debug)]
pub struct NumberedMap<K, T> {
    /// Entries with numbers below `base`.
    older: BTreeMap<K, Box<T>>,
    /// The number of the first slot.
    base: u32,
    slots: Vec<Option<Box<T>>>,
    /// Number of slots that are taken.
    taken: usize,
}

impl Number for PathId {
    #[inline]
    fn number(self) -> u32 {
        self.0
    }

    fn of(number: u32) -> Self {
        Self(number)
    }
}

impl Number for ObjectId {
    #[inline]
    fn number(self) -> u32 {
        self.0
    }

    fn of(number: u32) -> Self {
        Self(number)
    }
}

impl<K, T> Default for NumberedMap<K, T> {
    fn default() -> Self {
        Self { older: BTreeMap::new(), base: 0, slots: Vec::new(), taken: 0 }
    }
}

impl<K, T> NumberedMap<K, T> {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.older.len() + self.taken
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All values. Not for the hot path.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.older.values().chain(self.slots.iter().flatten()).map(Box::as_ref)
    }

    /// All values, mutable. Not for the hot path.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.older.values_mut().chain(self.slots.iter_mut().flatten()).map(Box::as_mut)
    }
}

impl<K: Number, T> NumberedMap<K, T> {
    /// One more than the highest id that was ever in the map.
    pub fn next_id(&self) -> K {
        K::of(self.base.saturating_add(self.slots.len() as u32))
    }

    /// Whether there is an entry with this id.
    pub fn contains(&self, id: K) -> bool {
        self.get(id).is_some()
    }

    /// The value with this id.
    #[inline]
    #[must_use]
    pub fn get(&self, id: K) -> Option<&T> {
        match self.slots.get(self.slot(id)) {
            Some(slot) => slot.as_deref(),
            None => self.older.get(&id).map(Box::as_ref),
        }
    }

    /// The value with this id, mutable.
    #[inline]
    pub fn get_mut(&mut self, id: K) -> Option<&mut T> {
        let slot = self.slot(id);
        match self.slots.get_mut(slot) {
            Some(slot) => slot.as_deref_mut(),
            None => self.older.get_mut(&id).map(Box::as_mut),
        }
    }

    /// Returns the slot of an id. For an id below the row, the slot is beyond the row's end.
    #[inline]
    fn slot(&self, id: K) -> usize {
        id.number().wrapping_sub(self.base) as usize
    }

    /// Inserts a value. Replaces an earlier one with the same id.
    pub fn insert(&mut self, id: K, value: T) {
        let value = Box::new(value);
        if id.number() < self.base {
            self.older.insert(id, value);
            return;
        }
        // A slot beyond the row is the highest of all: what moves to the tree is below it.
        if self.slot(id) >= self.slots.len() {
            while self.slot(id) > MAX_EMPTY_SLOTS + SLOTS_PER_ENTRY * self.taken {
                self.shorten(id);
            }
            self.slots.resize_with(self.slot(id) + 1, || None);
        }
        let slot = self.slot(id);
        if let Some(place) = self.slots.get_mut(slot).sure() {
            self.taken += usize::from(place.is_none());
            *place = Some(value);
        }
    }

    /// Moves the entries of the older half of the row to the tree. A row without slots begins at
    /// `id`.
    #[cold]
    fn shorten(&mut self, id: K) {
        let half = self.slots.len().div_ceil(2);
        for (number, slot) in (self.base..).zip(self.slots.drain(..half)) {
            if let Some(value) = slot {
                self.taken -= 1;
                self.older.insert(K::of(number), value);
            }
        }
        self.base = if half == 0 { id.number() } else { self.base + half as u32 };
    }

    /// Removes the entry with this id.
    pub fn remove(&mut self, id: K) -> Option<Box<T>> {
        let slot = self.slot(id);
        let Some(place) = self.slots.get_mut(slot) else {
            return self.older.remove(&id);
        };
        let value = place.take()?;
        self.taken -= 1;
        Some(value)
    }

    /// Returns the lowest id above `last`, or the lowest of all for `None`. So a loop over all ids
    /// may change the map.
    pub fn next_after(&self, last: Option<K>) -> Option<K> {
        let least = match last {
            Some(last) => K::of(last.number().checked_add(1)?),
            None => K::of(0),
        };
        if least.number() < self.base
            && let Some((id, _)) = self.older.range(least..).next()
        {
            return Some(*id);
        }
        let first = least.number().saturating_sub(self.base) as usize;
        let found = self.slots.iter().skip(first).position(Option::is_some)?;
        Some(K::of(self.base + (first + found) as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_that_stays_costs_no_row() {
        let mut all = NumberedMap::default();
        all.insert(ObjectId(0), 0);
        for id in 1..200_000 {
            all.insert(ObjectId(id), id);
            assert_eq!(all.remove(ObjectId(id)), Some(Box::new(id)));
        }
        assert!(all.slots.capacity() <= 2 * (MAX_EMPTY_SLOTS + SLOTS_PER_ENTRY));
        assert_eq!((all.len(), all.get(ObjectId(0))), (1, Some(&0)));
        all.insert(ObjectId(u32::MAX), 7);
        assert_eq!((all.slots.len(), all.len(), all.get(ObjectId(0))), (1, 2, Some(&0)));
        assert_eq!(all.next_id(), ObjectId(u32::MAX), "there is no higher one");
        assert_eq!(all.remove(ObjectId(u32::MAX)), Some(Box::new(7)));
        assert_eq!((all.remove(ObjectId(0)), all.is_empty()), (Some(Box::new(0)), true));
    }

    /// However long some entries live and however many went.
    #[test]
    fn a_map_is_as_small_as_what_lives() {
        let (mut all, mut model) = (NumberedMap::default(), BTreeMap::new());
        let mut chance = 1_u64;
        for round in 0..100_000_u32 {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Mostly the next id, at times one that was passed over.
            let behind = if chance >> 61 == 0 { (chance >> 40) as u32 % 8_000 } else { 0 };
            let id = (2 * round).saturating_sub(behind) | 1;
            all.insert(PathId(id), round);
            model.insert(id, round);
            let next = all.next_id();
            let keep = if round / 1000 % 2 == 0 { 30 } else { 3 };
            while model.len() > keep {
                let gone = *model.keys().nth((chance >> 33) as usize % model.len()).unwrap();
                assert_eq!(all.remove(PathId(gone)).map(|it| *it), model.remove(&gone));
            }
            assert_eq!((all.get(PathId(id)), all.len()), (model.get(&id), model.len()));
            assert_eq!((all.next_id(), next.0 > id), (next, true), "{id}");
            assert!(all.slots.len() <= 1 + MAX_EMPTY_SLOTS + SLOTS_PER_ENTRY * 30, "{}", all.slots.len());
            if round % 100 == 0 {
                assert!(all.iter().eq(model.values()));
            }
        }
        assert_eq!(all.remove(PathId(0)), None);
    }

    proptest! {
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0..4u8, prop_oneof![0..20u32, 0..20_000u32, any::<u32>()]), 0..200)) {
            let (mut all, mut model) = (NumberedMap::default(), BTreeMap::new());
            let mut highest = None;
            for (at, (step, id)) in steps.into_iter().enumerate() {
                match step {
                    0 | 1 => {
                        all.insert(PathId(id), at);
                        model.insert(id, at);
                        highest = highest.max(Some(id));
                    }
                    2 => prop_assert_eq!(all.remove(PathId(id)).map(|it| *it), model.remove(&id)),
                    _ => {
                        let lowest = model.keys().next().copied().unwrap_or(id);
                        prop_assert_eq!(all.remove(PathId(lowest)).map(|it| *it), model.remove(&lowest));
                    }
                }
                prop_assert_eq!(all.next_id().0, highest.map_or(0, |id| id.saturating_add(1)));
                prop_assert_eq!(all.get(PathId(id)), model.get(&id));
                prop_assert_eq!(all.get_mut(PathId(id)).copied(), model.get(&id).copied());
                prop_assert_eq!(all.contains(PathId(id)), model.contains_key(&id));
                prop_assert_eq!((all.len(), all.is_empty()), (model.len(), model.is_empty()));
                prop_assert!(all.slots.len() <= 1 + MAX_EMPTY_SLOTS + SLOTS_PER_ENTRY * 200);
                let next = model.range(id / 2..).find(|(number, _)| **number > id / 2);
                prop_assert_eq!(all.next_after(Some(PathId(id / 2))).map(|id| id.0), next.map(|(id, _)| *id));
            }
            prop_assert!(all.iter().eq(model.values()) && all.iter_mut().eq(model.values_mut()));
            let mut ids = Vec::new();
            while let Some(PathId(id)) = all.next_after(ids.last().copied().map(PathId)) {
                ids.push(id);
            }
            prop_assert!(ids.iter().eq(model.keys()));
        }
    }
}
