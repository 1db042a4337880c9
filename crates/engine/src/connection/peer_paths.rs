//! The paths that the peer sends on, as this side keeps them, and the connection ids by which they
//! arrive.

use super::ended_path_counters::{ArrivalStatus, EndedPaths};
use super::retired_path_ids::RetiredIds;
use super::timers::Armed;
use crate::numbered_map::NumberedMap;
use crate::path::receive::ReceivePath;
use crate::route::PacketSource;
use crate::seal::{ReplayWindow, connection_id};
use alloc::collections::VecDeque;
use byway_wire::{ConnectionId, Duration, Local, PathId};

/// The number of new path ids that a receiver accepts above the highest seen.
pub const PATH_LOOKAHEAD: u32 = 64;
/// The age, before the newest packet of all, up to which a path's latest packet shows that the path
/// still brings packets.
const MAX_ARRIVAL_AGE: Duration = Duration::from_secs(10);
/// The most paths that live at once, of either side.
pub(super) const MAX_PATHS: usize = 1024;

/// A path on which the peer sends, with its receiving state.
#[derive(Debug)]
pub(super) struct PeerPath {
    pub facts: ReceivePath,
    pub replay: ReplayWindow,
    /// The source of the path's newest packet, and this host's path back to it.
    pub source: PacketSource,
    pub way: Option<PathId>,
    /// The value of [`Paths::routes`](super::paths::Paths::routes) when the path back was last
    /// found unchanged.
    pub settled: Option<u64>,
    /// Whether the path's newest packet arrived on a TCP connection that has closed.
    pub is_cut: bool,
    /// Whether the path is in the queue of paths whose ACK is due.
    pub queued: bool,
    /// The earliest deadline of the path that is armed.
    pub armed: Armed,
}

impl PeerPath {
    pub fn new(facts: ReceivePath, source: PacketSource, way: Option<PathId>) -> Self {
        Self {
            facts,
            replay: ReplayWindow::new(),
            source,
            way,
            settled: None,
            is_cut: false,
            queued: false,
            armed: Armed::default(),
        }
    }
}

/// The former state of a path that the peer dropped.
#[derive(Debug)]
pub(super) enum DroppedPath {
    /// The path had already ended, or the peer may not use its id yet.
    Before,
    /// No packet of the path ever arrived.
    Unseen,
    /// The path was in use. The value is this side's path back to it.
    Lived(Option<PathId>),
}

/// The peer's paths, by id.
#[derive(Debug)]
pub(super) struct PeerPaths {
    /// The secret from which connection ids for the peer are derived.
    secret: [u8; 32],
    table: NumberedMap<PathId, PeerPath>,
    ended: RetiredIds,
    /// The last figures of paths that are over.
    last: EndedPaths<ArrivalStatus>,
    /// Paths that are over, whose connection ids the endpoint still knows.
    forgettable: VecDeque<PathId>,
    /// One more than the highest path id whose connection id the endpoint knows.
    told: u32,
}

impl PeerPaths {
    pub fn new(secret: [u8; 32]) -> Self {
        Self {
            secret,
            table: NumberedMap::default(),
            ended: RetiredIds::default(),
            last: EndedPaths::new(),
            forgettable: VecDeque::new(),
            told: 0,
        }
    }

    #[inline]
    pub fn get(&self, id: PathId) -> Option<&PeerPath> {
        self.table.get(id)
    }

    #[inline]
    pub fn get_mut(&mut self, id: PathId) -> Option<&mut PeerPath> {
        self.table.get_mut(id)
    }

    pub fn iter(&self) -> impl Iterator<Item = &PeerPath> {
        self.table.iter()
    }

    /// Whether a path of the peer's still arrives on this local socket or connection.
    pub fn come_by(&self, local: Local) -> bool {
        let newest = self.iter().map(|receiving| receiving.facts.last_arrival).max();
        let comes = |receiving: &PeerPath| {
            receiving.source.local == local
                && newest.is_some_and(|at| receiving.facts.last_arrival + MAX_ARRIVAL_AGE >= at)
        };
        self.iter().any(comes)
    }

    /// Whether a new path of the peer's with this id may begin.
    pub fn may_begin(&self, id: PathId) -> bool {
        !self.ended.contains(id) && self.table.len() < MAX_PATHS
    }

    /// The peer sends on a path that did not live.
    pub fn begin(&mut self, id: PathId, receiving: PeerPath) {
        self.table.insert(id, receiving);
        self.seen(id);
    }

    /// Notes that the peer dropped its path `id`, even if no packet of the path arrived. The id is
    /// never accepted again, because packet numbers must not repeat.
    pub fn on_dropped(&mut self, id: PathId) -> DroppedPath {
        let gone = self.table.remove(id);
        if gone.is_none() && (self.ended.contains(id) || id.0 >= self.told) {
            return DroppedPath::Before;
        }
        self.seen(id);
        self.ended.insert(id);
        self.forgettable.push_back(id);
        gone.map_or(DroppedPath::Unseen, |gone| DroppedPath::Lived(gone.way))
    }

    /// Keeps the last figures of a path that the peer drops.
    pub fn keep(&mut self, last: ArrivalStatus) {
        self.last.enter(last);
    }

    /// The last figures of the latest paths that the peer dropped, the oldest first.
    pub fn ended(&self) -> impl Iterator<Item = &ArrivalStatus> {
        self.last.iter()
    }

    /// A socket or TCP connection is gone. A socket may come back, but a connection does not:
    /// nothing leads back by it.
    pub fn on_local_down(&mut self, local: Local) {
        let by_it = |receiving: &&mut PeerPath| local.is_connection() && receiving.source.local == local;
        self.table.iter_mut().filter(by_it).for_each(|receiving| receiving.is_cut = true);
    }

    /// Handles the loss of this side's path `way`: removes it from all paths of the peer.
    pub fn on_way_gone(&mut self, way: PathId) {
        for receiving in self.table.iter_mut().filter(|receiving| receiving.way == Some(way)) {
            receiving.way = None;
        }
    }

    /// Notes that the peer uses the path `id`, or has dropped it.
    fn seen(&mut self, id: PathId) {
        let Self { ended, table, forgettable, .. } = self;
        ended.on_seen(id, |old| {
            if table.get(old).is_none() {
                forgettable.push_back(old);
            }
        });
    }

    /// Returns the next connection id for received packets that the endpoint does not know yet.
    pub fn next_id(&mut self) -> Option<(ConnectionId, PathId)> {
        if self.told >= self.ended.next().saturating_add(PATH_LOOKAHEAD) {
            return None;
        }
        let id = PathId(self.told);
        self.told += 1;
        Some((connection_id(&self.secret, id), id))
    }

    /// Returns a connection id that is no longer used to receive, so that the endpoint can forget
    /// it.
    pub fn next_id_over(&mut self) -> Option<ConnectionId> {
        self.forgettable.pop_front().map(|id| connection_id(&self.secret, id))
    }

    /// Returns all connection ids that the endpoint knows, so that it can forget them.
    pub fn ids(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        let floor = self.ended.floor();
        let old = self.table.iter().map(|receiving| receiving.facts.id).take_while(move |id| id.0 < floor);
        let newer = (floor..self.told).map(PathId).filter(|id| !self.ended.contains(*id));
        let known = old.chain(newer).chain(self.forgettable.iter().copied());
        known.map(|id| connection_id(&self.secret, id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Pnack;
    use crate::path::receive::PacketArrival;
    use byway_wire::{Ecn, Instant};

    #[test]
    fn a_connection_is_of_use_while_packets_come_by_it() {
        let mut peer_paths = PeerPaths::new([3; 32]);
        let remote = "192.0.2.1:1".parse().unwrap();
        let arrive = |peer_paths: &mut PeerPaths, number: u32, seconds| {
            let (id, at) = (PathId(number), Instant::from_millis(seconds * 1_000));
            if peer_paths.get(id).is_none() {
                let facts = ReceivePath::new(id, at, Pnack::Patient);
                let source = PacketSource::direct(Local(number as u16), remote);
                peer_paths.begin(id, PeerPath::new(facts, source, None));
            }
            let (number, bytes) = (seconds, 1_200);
            let arrival = PacketArrival { number, at, stamp: 0, bytes, ecn: Ecn::NotEct, eliciting: true };
            peer_paths.get_mut(id).unwrap().facts.on_packet(&arrival);
        };
        arrive(&mut peer_paths, 1, 0);
        arrive(&mut peer_paths, 2, 9);
        assert!(
            peer_paths.come_by(Local(1)) && peer_paths.come_by(Local(2)) && !peer_paths.come_by(Local(3))
        );
        arrive(&mut peer_paths, 2, 11);
        assert!(!peer_paths.come_by(Local(1)) && peer_paths.come_by(Local(2)));
    }

    #[test]
    fn ids_are_told_once_and_ahead_of_what_was_seen() {
        let mut peer_paths = PeerPaths::new([3; 32]);
        let told = core::iter::from_fn(|| peer_paths.next_id()).count();
        assert_eq!(told, PATH_LOOKAHEAD as usize);
        assert!(matches!(peer_paths.on_dropped(PathId(64)), DroppedPath::Before), "not told yet");
        assert!(matches!(peer_paths.on_dropped(PathId(9)), DroppedPath::Unseen));
        assert!(matches!(peer_paths.on_dropped(PathId(9)), DroppedPath::Before));
        assert!(!peer_paths.may_begin(PathId(9)) && peer_paths.may_begin(PathId(8)));
        assert_eq!(core::iter::from_fn(|| peer_paths.next_id()).count(), 10);
        assert_eq!(peer_paths.ids().count(), 74);
        assert!(peer_paths.next_id_over().is_some() && peer_paths.next_id_over().is_none());
        assert_eq!(peer_paths.ids().count(), 73);
    }
}
