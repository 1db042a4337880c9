//! The counters of paths that are over, so that whoever looks later misses none of their bytes.

use super::path::Path;
use crate::path::send::Totals;
use crate::route::Route;
use alloc::collections::VecDeque;
use byway_wire::{Duration, PathId};

/// The most ended paths that are kept for each direction. With more, the oldest are forgotten.
const MAX_ENDED_PATHS: usize = 64;

/// A path on which this host sent, at the end of the path.
#[derive(Clone, Debug)]
pub struct EndedPath {
    /// The id of the path.
    pub id: PathId,
    /// How the path's datagrams travelled.
    pub route: Route,
    /// Whether the path carried data when it ended.
    pub is_used: bool,
    /// The smoothed RTT. `None`: not measured.
    pub srtt: Option<Duration>,
    /// Packets and bytes sent, acknowledged and lost.
    pub totals: Totals,
}

/// A path that the peer sends on, or sent on.
#[derive(Clone, Debug)]
pub struct ArrivalStatus {
    /// The path's id, which the peer chose.
    pub id: PathId,
    /// The route back to the source of the path's newest packet.
    pub route: Route,
    /// The smoothed RTT that the peer reported. `None`: the peer reported none.
    pub srtt: Option<Duration>,
    /// Bytes that arrived (UDP payload).
    pub bytes: u64,
}

impl EndedPath {
    /// The last figures of a path.
    pub(super) fn of(path: &Path) -> Self {
        Self {
            id: path.id(),
            route: path.route.clone(),
            is_used: path.is_governed(),
            srtt: path.send.rtt.measured(),
            totals: path.send.totals,
        }
    }
}

/// The latest paths of one direction that are over.
#[derive(Debug)]
pub(super) struct EndedPaths<T>(VecDeque<T>);

impl<T> EndedPaths<T> {
    pub const fn new() -> Self {
        Self(VecDeque::new())
    }

    /// Enters a path.
    pub fn enter(&mut self, path: T) {
        if self.0.len() >= MAX_ENDED_PATHS {
            self.0.pop_front();
        }
        self.0.push_back(path);
    }

    /// The paths, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use byway_wire::Local;

    #[test]
    fn the_latest_are_kept() {
        let mut ended = EndedPaths::new();
        for number in 0..100 {
            let route = Route::direct(Local(0), ([127, 0, 0, 1], 1).into());
            ended.enter(ArrivalStatus { id: PathId(number), route, srtt: None, bytes: 1 });
        }
        let kept: Vec<u32> = ended.iter().map(|path| path.id.0).collect();
        assert_eq!(kept, (36..100).collect::<Vec<_>>());
    }
}
