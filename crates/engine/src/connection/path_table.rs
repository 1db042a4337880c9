//! A table by path id. Ids only grow and are never used twice. The newest ids index a row of slots.
//! Live paths with older ids move to a sorted list, so memory follows the number of live paths.

use crate::invariant::Invariant as _;
use alloc::boxed::Box;
use alloc::vec::Vec;
use byway_wire::PathId;

/// The length of a row that may be all gaps.
const MAX_EMPTY_SLOTS: usize = 256;

/// The number of hints, a power of two: more than most connections have old paths.
const HINT_COUNT: usize = 256;

/// Values by path id, iterated in the order of ids.
#[derive(Debug)]
pub(super) struct PathTable<T> {
    /// Things with ids below `base`.
    older_paths: OlderPaths<T>,
    /// The id of the first slot.
    base: u32,
    slots: Vec<Option<Box<T>>>,
    /// How many slots are taken.
    taken: usize,
}

impl<T> Default for PathTable<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> PathTable<T> {
    pub const fn new() -> Self {
        Self { older_paths: OlderPaths::new(), base: 0, slots: Vec::new(), taken: 0 }
    }

    /// One more than the highest id that was ever in the table.
    pub const fn next_id(&self) -> PathId {
        PathId(self.base.saturating_add(self.slots.len() as u32))
    }

    /// Inserts a value. Replaces an earlier value with the same id.
    pub fn insert(&mut self, id: PathId, value: T) {
        let value = Box::new(value);
        let Some(index) = id.0.checked_sub(self.base) else {
            return self.older_paths.insert(id, value);
        };
        let index = index as usize;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        if let Some(slot) = self.slots.get_mut(index).sure() {
            self.taken += usize::from(slot.is_none());
            *slot = Some(value);
        }
        if self.slots.len() > MAX_EMPTY_SLOTS + 4 * self.taken {
            self.shorten();
        }
    }

    #[inline]
    pub fn get(&self, id: PathId) -> Option<&T> {
        match self.slots.get(self.index(id)) {
            Some(slot) => slot.as_deref(),
            None => self.older_paths.get(id),
        }
    }

    #[inline]
    pub fn get_mut(&mut self, id: PathId) -> Option<&mut T> {
        let index = self.index(id);
        if index >= self.slots.len() {
            return self.older_paths.get_mut(id);
        }
        self.slots.get_mut(index)?.as_deref_mut()
    }

    /// The slot of an id; that of an id below the row is beyond its end.
    const fn index(&self, id: PathId) -> usize {
        id.0.wrapping_sub(self.base) as usize
    }

    /// Takes something out for good.
    pub fn remove(&mut self, id: PathId) -> Option<T> {
        let Some(index) = id.0.checked_sub(self.base) else {
            return self.older_paths.remove(id).map(|value| *value);
        };
        let value = self.slots.get_mut(index as usize)?.take()?;
        self.taken -= 1;
        Some(*value)
    }

    /// All values. Not for the hot path.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let older_paths = self.older_paths.all.iter().map(|(_, value)| &**value);
        older_paths.chain(self.slots.iter().filter_map(|slot| slot.as_deref()))
    }

    /// All values, mutable. Not for the hot path.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let older_paths = self.older_paths.all.iter_mut().map(|(_, value)| &mut **value);
        older_paths.chain(self.slots.iter_mut().filter_map(|slot| slot.as_deref_mut()))
    }

    /// The lowest id in it that is `least` or more: for a walk through all during which it changes.
    pub fn from(&self, least: PathId) -> Option<PathId> {
        if least.0 < self.base
            && let Some(id) = self.older_paths.from(least)
        {
            return Some(id);
        }
        let first = least.0.saturating_sub(self.base) as usize;
        let found = self.slots.get(first..)?.iter().position(Option::is_some)?;
        Some(PathId(self.base + (first + found) as u32))
    }

    /// How many paths live.
    pub const fn len(&self) -> usize {
        self.older_paths.all.len() + self.taken
    }

    /// Moves live values in the older half of the row of slots to the sorted list.
    #[cold]
    fn shorten(&mut self) {
        let half = self.slots.len() / 2;
        for (index, slot) in self.slots.drain(..half).enumerate() {
            if let Some(value) = slot {
                self.older_paths.all.push((PathId(self.base + index as u32), value));
                self.taken -= 1;
            }
        }
        self.older_paths.settle();
        self.base += half as u32;
    }
}

/// The paths with the oldest ids, as a list sorted by id. The newest ids index `PathTable::slots`
/// instead. Old paths may carry all the data of a connection. So `hints` stores where in the list
/// an id may stand, and a search is rarely necessary.
#[derive(Debug)]
struct OlderPaths<T> {
    /// The things in the order of their ids.
    all: Vec<(PathId, Box<T>)>,
    /// The probable index of a value, by the last bits of its id.
    hints: [u16; HINT_COUNT],
}

impl<T> OlderPaths<T> {
    const fn new() -> Self {
        Self { all: Vec::new(), hints: [0; HINT_COUNT] }
    }

    /// The index of a value, or where it would be inserted.
    #[inline]
    fn find(&self, id: PathId) -> Result<usize, usize> {
        let at = usize::from(self.hints[id.0 as usize % HINT_COUNT]);
        match self.all.get(at) {
            Some((found, _)) if *found == id => Ok(at),
            _ => self.search(id),
        }
    }

    #[cold]
    fn search(&self, id: PathId) -> Result<usize, usize> {
        self.all.binary_search_by_key(&id, |(id, _)| *id)
    }

    #[inline]
    fn get(&self, id: PathId) -> Option<&T> {
        self.all.get(self.find(id).ok()?).map(|(_, value)| &**value)
    }

    #[inline]
    fn get_mut(&mut self, id: PathId) -> Option<&mut T> {
        let at = self.find(id).ok()?;
        self.all.get_mut(at).map(|(_, value)| &mut **value)
    }

    /// The lowest id that is `least` or more.
    fn from(&self, least: PathId) -> Option<PathId> {
        self.all.get(self.find(least).unwrap_or_else(|at| at)).map(|(id, _)| *id)
    }

    fn insert(&mut self, id: PathId, value: Box<T>) {
        match self.find(id) {
            Ok(at) => drop(self.all.get_mut(at).map(|known| core::mem::replace(&mut known.1, value))),
            Err(at) => {
                self.all.insert(at, (id, value));
                self.settle();
            }
        }
    }

    fn remove(&mut self, id: PathId) -> Option<Box<T>> {
        let (_, value) = self.all.remove(self.find(id).ok()?);
        self.settle();
        Some(value)
    }

    /// Makes all hints again.
    fn settle(&mut self) {
        for (at, (id, _)) in self.all.iter().enumerate() {
            self.hints[id.0 as usize % HINT_COUNT] = at as u16;
        }
    }
}

/// The id after this one: where a walk through a table goes on ([`PathTable::from`]).
pub(super) const fn after(id: PathId) -> PathId {
    PathId(id.0.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    /// What a table does is what a map does, however long some live and however many went.
    #[test]
    fn a_table_is_a_map_and_as_small_as_what_lives() {
        let (mut table, mut map) = (PathTable::default(), BTreeMap::new());
        let mut chance = 1_u64;
        for round in 0..100_000_u32 {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Mostly the next id, at times one that was passed over.
            let behind = if chance >> 61 == 0 { (chance >> 40) as u32 % 600 } else { 0 };
            let id = PathId((2 * round).saturating_sub(behind) | 1);
            table.insert(id, round);
            map.insert(id, round);
            let keep = if round / 1000 % 2 == 0 { 20 } else { 3 };
            while map.len() > keep {
                let gone = *map.keys().nth((chance >> 33) as usize % map.len()).unwrap();
                assert_eq!(table.remove(gone), map.remove(&gone));
            }
            assert_eq!((table.get(id), table.len()), (map.get(&id), map.len()));
            assert!(table.next_id() > id || behind > 0, "{id:?}");
            let longest = 2 * (MAX_EMPTY_SLOTS + 4 * 20);
            assert!(
                table.slots.len() <= longest && table.older_paths.all.len() <= 20,
                "{}",
                table.slots.len()
            );
            if round % 100 == 0 {
                assert!(table.iter().eq(map.values()) && table.iter_mut().eq(map.values_mut()));
                let mut ids = Vec::new();
                while let Some(id) = table.from(PathId(ids.last().map_or(0, |id: &PathId| id.0 + 1))) {
                    assert_eq!(table.get_mut(id).copied(), map.get(&id).copied());
                    ids.push(id);
                }
                assert!(ids.iter().eq(map.keys()));
            }
        }
        assert_eq!(table.remove(PathId(0)), None);
    }
}
