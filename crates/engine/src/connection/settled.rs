//! Which of the peer's path ids are over. A packet number of a path must never begin again, so an id that is over is refused for ever;
//! and yet no list of such ids may grow with every path that ever was.

use alloc::collections::BTreeSet;
use byway_wire::PathId;

/// So many ids below the highest are told apart one by one. Of those below, all that do not live are over: a sender tries a path
/// within seconds, and makes so many ids in minutes at least.
pub(super) const WINDOW: u32 = 1024;

/// The ids that are over: all those of a low-water mark that do not live, and some above it.
#[derive(Debug, Default)]
pub(super) struct Settled {
    floor: u32,
    above: BTreeSet<PathId>,
    /// One above the highest id that was seen in use or told to be over.
    next: u32,
}

impl Settled {
    /// Whether the id is over, or lives: who asks knows that it does not.
    pub fn contains(&self, id: PathId) -> bool {
        id.0 < self.floor || self.above.contains(&id)
    }

    /// One above the highest id that was seen.
    pub const fn next(&self) -> u32 {
        self.next
    }

    /// Ids that neither live nor are over begin here.
    pub const fn floor(&self) -> u32 {
        self.floor
    }

    /// The id is over from now on.
    pub fn insert(&mut self, id: PathId) {
        if id.0 >= self.floor {
            self.above.insert(id);
        }
    }

    /// The id was seen in use, or told to be over. `passed` hears of each id that is over since, for no other reason than that it is old,
    /// or lives.
    pub fn on_seen(&mut self, id: PathId, mut passed: impl FnMut(PathId)) {
        self.next = self.next.max(id.0.saturating_add(1));
        while self.floor < self.next.saturating_sub(WINDOW) {
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
        let mut settled = Settled::default();
        let mut passed = Vec::new();
        for id in (0..100_000).filter(|id| id % 7 != 0) {
            settled.on_seen(PathId(id), |id| passed.push(id));
            settled.insert(PathId(id));
            assert!(settled.above.len() <= WINDOW as usize);
        }
        assert_eq!((settled.next(), settled.floor()), (100_000, 100_000 - WINDOW));
        let old: Vec<_> = (0..settled.floor()).filter(|id| id % 7 == 0).map(PathId).collect();
        assert_eq!(passed, old);
        for id in 0..100_000 {
            assert_eq!(settled.contains(PathId(id)), id < settled.floor() || id % 7 != 0);
        }
        settled.insert(PathId(3));
        assert!(!settled.contains(PathId(100_100)));
    }
}
