//! A bounded set of open files: a tree of a million files must not need a million descriptors.

use byway_wire::ObjectId;
use std::collections::BTreeMap;
use std::fs::File;

/// Open files by object. Beyond the limit, the file that was used longest ago is closed.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    limit: usize,
    files: BTreeMap<ObjectId, (u64, File)>,
    /// The open objects, ordered by their last use.
    turns: BTreeMap<u64, ObjectId>,
    turn: u64,
}

impl OpenFiles {
    /// A set of at most `limit` files, at least one.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), files: BTreeMap::new(), turns: BTreeMap::new(), turn: 0 }
    }

    /// Whether another file fits without closing one.
    pub(crate) fn has_room(&self) -> bool {
        self.files.len() < self.limit
    }

    /// Returns the open file of `object`. `None`: it is not open.
    pub(crate) fn get(&mut self, object: ObjectId) -> Option<&File> {
        let (turn, file) = self.files.get_mut(&object)?;
        if *turn != self.turn {
            // Runs of reads on one file are the common case, and change no order.
            self.turns.remove(turn);
            self.turn += 1;
            *turn = self.turn;
            self.turns.insert(self.turn, object);
        }
        Some(file)
    }

    /// Adds the file of `object`. Closes another one if there are too many.
    pub(crate) fn insert(&mut self, object: ObjectId, file: File) {
        self.remove(object);
        if self.files.len() >= self.limit
            && let Some((_, oldest)) = self.turns.pop_first()
        {
            self.files.remove(&oldest);
        }
        self.turn += 1;
        self.turns.insert(self.turn, object);
        self.files.insert(object, (self.turn, file));
    }

    /// Closes the file of `object`.
    pub(crate) fn remove(&mut self, object: ObjectId) {
        if let Some((turn, _)) = self.files.remove(&object) {
            self.turns.remove(&turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_used_longest_ago_is_closed() {
        let mut open = OpenFiles::new(2);
        let file = || tempfile::tempfile().unwrap();
        open.insert(ObjectId(1), file());
        open.insert(ObjectId(2), file());
        assert!(open.get(ObjectId(1)).is_some());
        open.insert(ObjectId(3), file());
        assert!(open.get(ObjectId(2)).is_none());
        assert!(open.get(ObjectId(1)).is_some() && open.get(ObjectId(3)).is_some());
        open.insert(ObjectId(3), file());
        assert_eq!((open.files.len(), open.turns.len()), (2, 2));
        open.remove(ObjectId(3));
        open.remove(ObjectId(3));
        assert_eq!((open.files.len(), open.turns.len()), (1, 1));
    }
}
