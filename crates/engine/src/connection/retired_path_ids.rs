//! The ids of the peer's paths that are over, and must not be used again.

use alloc::collections::BTreeSet;
use byway_wire::PathId;

/// Closed path ids are listed one by one only among the newest 1024 ids. Every older id without a
/// live path counts as closed, even if it was never used. A sender uses each new id within seconds,
/// long before it has assigned 1024 more.
pub(super) const ID_WINDOW: u32 = 1024;

/// The peer's closed ids. A closed id is refused for ever, because a path's packet numbers must
/// never begin again. Below `floor`, all ids without a live path are closed. From `floor` on,
/// `above` lists each closed id.
#[derive(Debug, Default)]
pub(super) struct RetiredIds {
    floor: u32,
    above: BTreeSet<PathId>,
    /// One more than the highest id that was seen in use or dropped.
    next: u32,
}

impl RetiredIds {
    /// Whether the id is retired. The caller knows that no live path has it.
    pub fn contains(&self, id: PathId) -> bool {
        id.0 < self.floor || self.above.contains(&id)
    }

    /// One more than the highest path id that was seen.
    pub const fn next(&self) -> u32 {
        self.next
    }

    /// The lowest number of a path id that neither lives nor is over.
    pub const fn floor(&self) -> u32 {
        self.floor
    }

    /// The id is over from now on.
    pub fn insert(&mut self, id: PathId) {
        if id.0 >= self.floor {
            self.above.insert(id);
        }
    }

    /// Notes that `id` was seen in use, or was reported as dropped. From then on, ids at least
    /// `ID_WINDOW` below the highest seen id count as closed. Calls `passed` for each of them that
    /// did not count as closed before.
    pub fn on_seen(&mut self, id: PathId, mut passed: impl FnMut(PathId)) {
        self.next = self.next.max(id.0.saturating_add(1));
        while self.floor < self.next.saturating_sub(ID_WINDOW) {
            let id = PathId(self.floor);
            self.floor += 1;
            if !self.above.remove(&id) {
                passed(id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn what_is_over_stays_over_and_is_not_remembered_one_by_one() {
        let mut ended = RetiredIds::default();
        let mut passed = Vec::new();
        for id in (0..100_000).filter(|id| id % 7 != 0) {
            ended.on_seen(PathId(id), |id| passed.push(id));
            ended.insert(PathId(id));
            assert!(ended.above.len() <= ID_WINDOW as usize);
        }
        assert_eq!((ended.next(), ended.floor()), (100_000, 100_000 - ID_WINDOW));
        let old: Vec<_> = (0..ended.floor()).filter(|id| id % 7 == 0).map(PathId).collect();
        assert_eq!(passed, old);
        for id in 0..100_000 {
            assert_eq!(ended.contains(PathId(id)), id < ended.floor() || id % 7 != 0);
        }
        ended.insert(PathId(3));
        assert!(!ended.contains(PathId(100_100)));
    }
}
