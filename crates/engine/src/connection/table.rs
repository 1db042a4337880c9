//! What is kept by path id. Ids only grow and are never used twice, so the table is a vector with gaps: finding a path costs the
//! same however many there are.

use alloc::boxed::Box;
use alloc::vec::Vec;
use byway_wire::PathId;

/// Things by path id, in its order.
#[derive(Debug)]
pub(super) struct Table<T> {
    slots: Vec<Option<Box<T>>>,
    count: usize,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), count: 0 }
    }
}

impl<T> Table<T> {
    /// One above the highest id that ever was in it.
    pub const fn next_id(&self) -> PathId {
        PathId(self.slots.len() as u32)
    }

    /// Puts something in; what had the id before goes.
    pub fn insert(&mut self, id: PathId, value: T) {
        let index = id.0 as usize;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        if let Some(slot) = self.slots.get_mut(index) {
            self.count += usize::from(slot.is_none());
            *slot = Some(Box::new(value));
        }
    }

    pub fn get(&self, id: PathId) -> Option<&T> {
        self.slots.get(id.0 as usize)?.as_deref()
    }

    pub fn get_mut(&mut self, id: PathId) -> Option<&mut T> {
        self.slots.get_mut(id.0 as usize)?.as_deref_mut()
    }

    /// Takes something out for good.
    pub fn remove(&mut self, id: PathId) -> Option<T> {
        let value = self.slots.get_mut(id.0 as usize)?.take()?;
        self.count -= 1;
        Some(*value)
    }

    /// All of them. Not for the hot path.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| slot.as_deref())
    }

    /// All of them, to be changed. Not for the hot path.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.as_deref_mut())
    }

    pub const fn len(&self) -> usize {
        self.count
    }

    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}
