//! A small ordered table from path to whatever a controller keeps of it.

use alloc::vec::Vec;
use byway_wire::PathId;

/// A map from [`PathId`] to what is kept of the path, in one vector sorted by ID. A look-up is a
/// binary search over a few dozen entries. The order is the same on every machine.
#[derive(Clone, Debug)]
pub struct Paths<T>(Vec<(PathId, T)>);

impl<T> Default for Paths<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Paths<T> {
    /// Returns the value of `path`. `None`: the path has none.
    #[must_use]
    pub fn get(&self, path: PathId) -> Option<&T> {
        let at = self.position(path).ok()?;
        self.0.get(at).map(|(_, value)| value)
    }

    /// The value of `path`, mutable.
    #[must_use]
    pub fn get_mut(&mut self, path: PathId) -> Option<&mut T> {
        let at = self.position(path).ok()?;
        self.0.get_mut(at).map(|(_, value)| value)
    }

    /// Sets the value of `path`. Replaces an earlier one.
    pub fn insert(&mut self, path: PathId, value: T) {
        match self.position(path) {
            Ok(at) => {
                if let Some(entry) = self.0.get_mut(at) {
                    entry.1 = value;
                }
            }
            Err(at) => self.0.insert(at, (path, value)),
        }
    }

    /// Forgets `path`.
    pub fn remove(&mut self, path: PathId) -> Option<T> {
        let at = self.position(path).ok()?;
        Some(self.0.remove(at).1)
    }

    /// All entries by ascending path.
    pub fn iter(&self) -> impl Iterator<Item = (PathId, &T)> {
        self.0.iter().map(|(path, value)| (*path, value))
    }

    /// All entries by ascending path, mutable.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (PathId, &mut T)> {
        self.0.iter_mut().map(|(path, value)| (*path, value))
    }

    /// The number of paths.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no paths.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn position(&self, path: PathId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&path, |(kept, _)| *kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_order_whatever_the_order_of_insertion() {
        let mut paths = Paths::default();
        for id in [5, 1, 3] {
            paths.insert(PathId(id), id * 10);
        }
        paths.insert(PathId(3), 31);
        assert_eq!(paths.remove(PathId(1)), Some(10));
        assert_eq!(paths.get(PathId(1)), None);
        assert_eq!(paths.iter().collect::<Vec<_>>(), [(PathId(3), &31), (PathId(5), &50)]);
    }
}
