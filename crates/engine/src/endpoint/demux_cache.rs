//! Which connection and path a packet belongs to, for the latest ids that were seen: found at one
//! place, however many there are.

use super::handle::Handle;
use alloc::vec;
use alloc::vec::Vec;
use byway_wire::{ConnectionId, PathId};

/// The number of places. Ids are keyed hashes, so those of 256 paths rarely share a place. If they
/// do, the map of all ids is used.
const PLACE_COUNT: usize = 1024;

/// The last result for each hash of a connection id. All are also in the main table.
#[derive(Debug)]
pub(super) struct DemuxCache {
    places: Vec<Option<(ConnectionId, (Handle, PathId))>>,
}

impl DemuxCache {
    pub fn new() -> Self {
        Self { places: vec![None; PLACE_COUNT] }
    }

    pub fn get(&self, id: ConnectionId) -> Option<(Handle, PathId)> {
        self.places
            .get(place(id))
            .copied()
            .flatten()
            .filter(|(known, _)| *known == id)
            .map(|(_, found)| found)
    }

    pub fn put(&mut self, id: ConnectionId, found: (Handle, PathId)) {
        if let Some(place) = self.places.get_mut(place(id)) {
            *place = Some((id, found));
        }
    }

    /// Removes the id, which no connection uses any more.
    pub fn forget(&mut self, id: ConnectionId) {
        if self.get(id).is_some()
            && let Some(place) = self.places.get_mut(place(id))
        {
            *place = None;
        }
    }
}

fn place(id: ConnectionId) -> usize {
    let [a, b, ..] = id.0;
    usize::from(u16::from_be_bytes([a, b])) % PLACE_COUNT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_at_the_same_place_are_told_apart() {
        let (one, other) = (ConnectionId([1; 8]), ConnectionId([1, 1, 1, 1, 1, 1, 1, 2]));
        assert_eq!(place(one), place(other));
        let mut recent = DemuxCache::new();
        recent.put(one, (Handle::new(1), PathId(1)));
        assert_eq!(recent.get(one), Some((Handle::new(1), PathId(1))));
        assert_eq!(recent.get(other), None);
        recent.put(other, (Handle::new(2), PathId(2)));
        assert_eq!((recent.get(one), recent.get(other)), (None, Some((Handle::new(2), PathId(2)))));
        recent.forget(one);
        assert_eq!(recent.get(other), Some((Handle::new(2), PathId(2))));
        recent.forget(other);
        assert_eq!(recent.get(other), None);
    }
}
