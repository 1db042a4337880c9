//! Which of the peer's path ids are over. A packet number of a path must never begin again, so an id that is over is refused for ever;
//! and yet no list of such ids may grow with every path that ever was.

use super::{Connection, PATH_LOOKAHEAD};
use crate::seal::connection_id;
use alloc::collections::BTreeSet;
use byway_wire::{ConnectionId, Instant, PathId};

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

impl Connection {
    /// Connection ids by which this side receives that the endpoint does not know yet.
    pub(crate) fn next_receive_id(&mut self) -> Option<(ConnectionId, PathId)> {
        if self.receive_ids_wanted >= self.settled.next().saturating_add(PATH_LOOKAHEAD) {
            return None;
        }
        let id = PathId(self.receive_ids_wanted);
        self.receive_ids_wanted += 1;
        Some((connection_id(&self.receive_ids, id), id))
    }

    /// Connection ids by which this side receives no more, so that the endpoint can forget them.
    pub(crate) fn next_id_over(&mut self) -> Option<ConnectionId> {
        self.over.pop_front().map(|id| connection_id(&self.receive_ids, id))
    }

    /// All connection ids that the endpoint knows, so that it can forget them.
    pub(crate) fn receive_ids(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        let floor = self.settled.floor();
        let old = self.receive.iter().map(|receiving| receiving.facts.id).take_while(move |id| id.0 < floor);
        let newer = (floor..self.receive_ids_wanted).map(PathId).filter(|id| !self.settled.contains(*id));
        let known = old.chain(newer).chain(self.over.iter().copied());
        known.map(|id| connection_id(&self.receive_ids, id))
    }

    /// The peer's path is no more, whether or not anything of it ever arrived: its numbers must not begin again, and ids above
    /// it are expected from now on.
    pub(super) fn on_path_dropped(&mut self, now: Instant, id: PathId) {
        let gone = self.receive.remove(id);
        if gone.is_none() && (self.settled.contains(id) || id.0 >= self.receive_ids_wanted) {
            return;
        }
        self.seen(id);
        self.settled.insert(id);
        self.over.push_back(id);
        if let Some(gone) = gone {
            self.ack_way_until = Instant::ZERO;
            if let Some(way) = gone.way {
                self.drop_orphan(now, way);
            }
        }
    }

    /// The peer uses this id, or has dropped it.
    pub(super) fn seen(&mut self, id: PathId) {
        let Self { settled, receive, over, .. } = self;
        settled.on_seen(id, |old| {
            if receive.get(old).is_none() {
                over.push_back(old);
            }
        });
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
