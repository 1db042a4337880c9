//! Peers and tunnels have numbers of types of their own, so that neither is taken for the other.

use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ops::{Index, IndexMut};

/// A number that identifies an item of [`IndexVec`].
pub(super) trait TypedIndex: Copy {
    /// The number of the item at `index`.
    fn at(index: usize) -> Self;

    /// The index of the item.
    fn index(self) -> usize;
}

/// The number of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PeerIdx(usize);

/// The number of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TunnelIdx(usize);

impl TypedIndex for PeerIdx {
    fn at(index: usize) -> Self {
        Self(index)
    }

    fn index(self) -> usize {
        self.0
    }
}

impl TypedIndex for TunnelIdx {
    fn at(index: usize) -> Self {
        Self(index)
    }

    fn index(self) -> usize {
        self.0
    }
}

/// Items that stay for good. Only [`push`](Self::push) makes their numbers, so each number has its
/// item.
#[derive(Debug)]
pub(super) struct IndexVec<I, T> {
    items: Vec<T>,
    numbers: PhantomData<I>,
}

impl<I: TypedIndex, T> IndexVec<I, T> {
    /// No items yet.
    pub const fn new() -> Self {
        Self { items: Vec::new(), numbers: PhantomData }
    }

    /// The number of the item that is pushed next.
    pub fn next(&self) -> I {
        I::at(self.items.len())
    }

    /// Appends an item. Returns its number.
    pub fn push(&mut self, item: T) -> I {
        self.items.push(item);
        I::at(self.items.len() - 1)
    }

    /// All numbers, in order.
    pub fn numbers(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..self.items.len()).map(I::at)
    }

    /// Returns all items with their numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = (I, &T)> + Clone {
        self.items.iter().enumerate().map(|(index, item)| (I::at(index), item))
    }

    /// Returns two items, mutable. `None`: both are the same item.
    pub fn pair_mut(&mut self, one: I, other: I) -> Option<[&mut T; 2]> {
        self.items.get_disjoint_mut([one.index(), other.index()]).ok()
    }
}

impl<I: TypedIndex, T> Index<I> for IndexVec<I, T> {
    type Output = T;

    fn index(&self, number: I) -> &T {
        &self.items[number.index()]
    }
}

impl<I: TypedIndex, T> IndexMut<I> for IndexVec<I, T> {
    fn index_mut(&mut self, number: I) -> &mut T {
        &mut self.items[number.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_its_item() {
        let mut places: IndexVec<TunnelIdx, u32> = IndexVec::new();
        let numbers = [7, 8].map(|item| places.push(item));
        assert_eq!(places.numbers().collect::<Vec<_>>(), numbers);
        let [one, other] = places.pair_mut(numbers[1], numbers[0]).unwrap();
        core::mem::swap(one, other);
        places[numbers[1]] += 1;
        let items: Vec<_> = places.iter().map(|(number, item)| (number.index(), *item)).collect();
        assert_eq!(items, [(0, 8), (1, 8)]);
        assert!(places.pair_mut(numbers[0], numbers[0]).is_none());
    }
}
