//! Doubly linked lists of small numbers, stored in one array. Each number is in at most one of the
//! lists. Every operation takes constant time, and allocates memory only for a number larger than
//! all before.

use alloc::vec::Vec;

const NO_NODE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    before: u32,
    after: u32,
    list: Option<u8>,
}

/// `N` lists, at most 256.
#[derive(Clone, Debug)]
pub(crate) struct Lists<const N: usize> {
    nodes: Vec<Node>,
    ends: [(u32, u32); N],
}

impl<const N: usize> Lists<N> {
    pub(crate) const fn new() -> Self {
        Self { nodes: Vec::new(), ends: [(NO_NODE, NO_NODE); N] }
    }

    /// The first number of `list`.
    pub(crate) fn front(&self, list: u8) -> Option<u32> {
        self.ends.get(usize::from(list)).map(|ends| ends.0).filter(|first| *first != NO_NODE)
    }

    /// Returns the number after `index` in its list.
    #[cfg(test)]
    pub(crate) fn after(&self, index: u32) -> Option<u32> {
        self.nodes.get(index as usize).map(|node| node.after).filter(|after| *after != NO_NODE)
    }

    /// The list that `index` is in.
    pub(crate) fn list_of(&self, index: u32) -> Option<u8> {
        self.nodes.get(index as usize)?.list
    }

    /// Moves `index` to the end of `list`, out of its present list.
    pub(crate) fn put(&mut self, index: u32, list: u8) {
        self.remove(index);
        let place = index as usize;
        if self.nodes.len() <= place {
            self.nodes.resize(place + 1, Node { before: NO_NODE, after: NO_NODE, list: None });
        }
        let ends = &mut self.ends[usize::from(list)];
        let last = core::mem::replace(&mut ends.1, index);
        if last == NO_NODE {
            ends.0 = index;
        }
        if let Some(last) = self.nodes.get_mut(last as usize) {
            last.after = index;
        }
        if let Some(node) = self.nodes.get_mut(place) {
            *node = Node { before: last, after: NO_NODE, list: Some(list) };
        }
    }

    /// Removes `index` from its list, if it is in one.
    pub(crate) fn remove(&mut self, index: u32) {
        let Some(node) = self.nodes.get_mut(index as usize) else { return };
        let Some(list) = node.list.take() else { return };
        let (before, after) = (node.before, node.after);
        if let Some(ends) = self.ends.get_mut(usize::from(list)) {
            if before == NO_NODE {
                ends.0 = after;
            }
            if after == NO_NODE {
                ends.1 = before;
            }
        }
        if let Some(before) = self.nodes.get_mut(before as usize) {
            before.after = after;
        }
        if let Some(after) = self.nodes.get_mut(after as usize) {
            after.before = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn they_are_lists(steps in prop::collection::vec((0u32..12, prop::option::of(0u8..3)), 0..200)) {
            let (mut lists, mut model) = (Lists::<3>::new(), [const { VecDeque::new() }; 3]);
            for (index, list) in steps {
                model.iter_mut().for_each(|list| list.retain(|other| *other != index));
                match list {
                    Some(list) => {
                        lists.put(index, list);
                        model[usize::from(list)].push_back(index);
                    }
                    None => lists.remove(index),
                }
                prop_assert_eq!(lists.list_of(index), list);
                for (list, model) in (0u8..).zip(&model) {
                    let mut at = lists.front(list);
                    for expected in model {
                        prop_assert_eq!(at, Some(*expected));
                        at = lists.after(*expected);
                    }
                    prop_assert_eq!(at, None);
                }
            }
        }
    }
}
