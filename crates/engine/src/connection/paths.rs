//! The paths that this side sends on. Whoever changes one marks it thereby, and what is marked is
//! settled once the call is over.

use super::ended_path_counters::{EndedPath, EndedPaths};
use super::full_sockets::FullSockets;
use super::path::{ChangeMark, Path, PathState};
use crate::numbered_map::NumberedMap;
use crate::path::transport::PathTransport;
use crate::route::Route;
use crate::seal::connection_id;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use byway_wire::{ConnectionId, PathId};

/// The paths, by id.
///
/// A path is changed by one of the first three calls. The others say that more may have changed.
/// `consult` and `reconsider` are of the scheduler, and `settle` is of the connection.
///
/// | call | when | what is evaluated again, and when | cost |
/// |---|---|---|---|
/// | [`edit`](Self::edit) | what the path has pending or waits for changes | in `settle`: the queue of paths with something pending, and the path's timer | a push to a queue, and at most one to the heap |
/// | [`judge`](Self::judge) | the path's controller was told of it, or its packets in flight or packet size changed | in `settle`: packet size, allowance, pace, MTU search, the queue of paths that may send data, and all of `edit` | that of `edit`, and a question to the controller |
/// | [`quietly`](Self::quietly) | nothing becomes due by the change, or the caller queues and arms the path itself | nothing | a look-up |
/// | [`judge_all`](Self::judge_all) | what the controller was told may change what it allows other paths | in `settle`: each path is compared with its allowance, and judged if that differs | a walk over all paths, with a question for each |
/// | [`ways_changed`](Self::ways_changed) | another path may be the best way for ACKs | with the next ACK: the way for ACKs | a few walks over all paths |
/// | [`routes_changed`](Self::routes_changed) | a route, a way back or a return tag changed | with the next packet of each of the peer's paths: whether its way back leads to its source | a look-up for each |
/// | `consult` | a path begins, ends, falls silent or was acknowledged | in `settle`, after the paths: which path is to be opened or dropped | at least one question to the controller, and a walk for each answer |
/// | `reconsider` | a deadline of the connection as a whole may be earlier | in `settle`, last: the connection's own timer | a look at each such deadline |
/// | `settle` | at the end of each call that may have said any of these | all that was said to be evaluated in it | nothing if nothing was said |
///
/// [`edit_each`](Self::edit_each) and [`edit_first`](Self::edit_first) are `edit` for paths that a
/// walk finds. [`set_state`](Self::set_state) and [`set_route`](Self::set_route) are `edit` for
/// what is counted. [`moved`](Self::moved) is `routes_changed` and `ways_changed`.
#[derive(Debug)]
pub(super) struct Paths {
    /// The secret from which the peer's connection ids are derived.
    secret: [u8; 32],
    table: NumberedMap<PathId, Path>,
    /// Whether direct paths over UDP or over TCP carry data while both answer.
    preferred: PathTransport,
    /// Changed and not settled, in the order of the changes.
    marked: VecDeque<PathId>,
    /// Whether the controller may allow any path something else than before.
    all: bool,
    /// Number of paths over TCP connections.
    connections: usize,
    /// Number of available paths.
    available: usize,
    routes: u64,
    ways: u64,
    /// Sockets by which nothing can be sent now.
    full: FullSockets,
    /// The last figures of paths that are over.
    ended: EndedPaths<EndedPath>,
}

impl Paths {
    pub fn new(secret: [u8; 32]) -> Self {
        Self {
            secret,
            table: NumberedMap::default(),
            preferred: PathTransport::Datagrams,
            marked: VecDeque::new(),
            all: false,
            connections: 0,
            available: 0,
            routes: 0,
            ways: 0,
            full: FullSockets::default(),
            ended: EndedPaths::new(),
        }
    }

    /// Sockets by which nothing can be sent now.
    #[inline]
    pub const fn full(&self) -> &FullSockets {
        &self.full
    }

    /// Sets which sockets are full.
    pub fn set_full(&mut self, full: &FullSockets) {
        self.full.follow(full);
        debug_assert!(self.full.is_as(full), "the copy is one");
        self.ways_changed();
    }

    /// Whether nothing can be sent on a path now.
    #[inline]
    pub fn is_held(&self, id: PathId) -> bool {
        self.get(id).is_some_and(|path| self.full.has(path.route.local))
    }

    /// The id of the next path.
    pub fn next_id(&self) -> PathId {
        self.table.next_id()
    }

    /// The peer's name for a path.
    pub fn connection_id(&self, id: PathId) -> ConnectionId {
        connection_id(&self.secret, id)
    }

    /// A path begins, under the [next id](Self::next_id).
    pub fn insert(&mut self, mut path: Path) -> PathId {
        let id = path.id();
        debug_assert!(id == self.next_id(), "an id is used once");
        debug_assert!(path.connection_id == self.connection_id(id), "path {id:?} has the peer's name");
        mark(&mut path, ChangeMark::Changed, &mut self.marked);
        self.connections += usize::from(path.route.local.is_connection());
        self.available += usize::from(path.state == PathState::Available);
        self.table.insert(id, path);
        #[cfg(debug_assertions)]
        self.check();
        id
    }

    /// The last figures of the latest paths that were taken out, the oldest first.
    pub fn ended(&self) -> impl Iterator<Item = &EndedPath> {
        self.ended.iter()
    }

    /// Takes a path out for good.
    pub fn remove(&mut self, id: PathId) -> Option<Box<Path>> {
        let removed = self.table.remove(id);
        if let Some(path) = &removed {
            self.connections -= usize::from(path.route.local.is_connection());
            self.available -= usize::from(path.state == PathState::Available);
            self.ended.enter(EndedPath::of(path));
            self.moved();
        }
        #[cfg(debug_assertions)]
        self.check();
        removed
    }

    /// Sets the state of a path, and keeps the count of available paths. While a path
    /// is in the table, no other function makes it available or ends that.
    pub fn set_state(&mut self, id: PathId, state: PathState) {
        let Some(path) = self.marked(id, ChangeMark::Changed) else { return };
        let before = core::mem::replace(&mut path.state, state);
        self.available -= usize::from(before == PathState::Available);
        self.available += usize::from(state == PathState::Available);
        #[cfg(debug_assertions)]
        self.check();
    }

    /// A path leads elsewhere, perhaps by another kind of socket.
    pub fn set_route(&mut self, id: PathId, route: Route) {
        let Some(path) = self.marked(id, ChangeMark::Changed) else { return };
        let before = core::mem::replace(&mut path.route, route);
        let is_connection = path.route.local.is_connection();
        self.connections -= usize::from(before.local.is_connection());
        self.connections += usize::from(is_connection);
        self.moved();
        #[cfg(debug_assertions)]
        self.check();
    }

    /// Sets which direct paths carry data while they answer: those over UDP, or those over TCP.
    /// Returns whether this is a change.
    pub fn prefer(&mut self, carriage: PathTransport) -> bool {
        core::mem::replace(&mut self.preferred, carriage) != carriage
    }

    /// Whether a path of this side uses the [preferred](Route::is_preferred) transport.
    pub fn is_preferred(&self, path: &Path) -> bool {
        path.route.is_preferred(self.preferred)
    }

    /// Whether any goes over a TCP connection.
    #[inline]
    pub fn has_connections(&self) -> bool {
        debug_assert!(self.counts_are_right(), "paths over TCP and available ones are counted");
        self.connections > 0
    }

    /// Whether any is available.
    #[inline]
    pub fn has_available(&self) -> bool {
        debug_assert!(self.counts_are_right(), "paths over TCP and available ones are counted");
        self.available > 0
    }

    #[inline]
    pub fn get(&self, id: PathId) -> Option<&Path> {
        self.table.get(id)
    }

    /// Returns all paths, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Path> {
        self.table.iter()
    }

    /// The first path whose id is larger than `last`: for a walk during which paths change.
    pub fn next_after(&self, last: Option<PathId>) -> Option<PathId> {
        self.table.next_after(last)
    }

    /// Returns the number of paths.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// To change a path.
    #[inline]
    pub fn edit(&mut self, id: PathId) -> Option<&mut Path> {
        self.marked(id, ChangeMark::Changed)
    }

    /// Returns a path for a change of which the controller knows. The path's allowance is asked for
    /// again.
    #[inline]
    pub fn judge(&mut self, id: PathId) -> Option<&mut Path> {
        self.marked(id, ChangeMark::Judged)
    }

    /// Has the allowances of all paths asked again, because any may have changed.
    pub const fn judge_all(&mut self) {
        self.all = true;
    }

    /// Changes all paths in the order of their ids. `change` returns whether it changed the path.
    pub fn edit_each(&mut self, mut change: impl FnMut(&mut Path) -> bool) {
        let Self { table, marked, .. } = self;
        for path in table.iter_mut() {
            if change(path) {
                mark(path, ChangeMark::Changed, marked);
            }
        }
        #[cfg(debug_assertions)]
        self.check();
    }

    /// To change the first path that is `wanted`.
    pub fn edit_first(&mut self, wanted: impl Fn(&Path) -> bool) -> Option<&mut Path> {
        let Self { table, marked, .. } = self;
        let path = table.iter_mut().find(|path| wanted(path))?;
        mark(path, ChangeMark::Changed, marked);
        Some(path)
    }

    /// A path, for a change that makes nothing due and sends nothing.
    #[inline]
    pub fn quietly(&mut self, id: PathId) -> Option<&mut Path> {
        self.table.get_mut(id)
    }

    #[inline]
    fn marked(&mut self, id: PathId, strength: ChangeMark) -> Option<&mut Path> {
        let Self { table, marked, .. } = self;
        let path = table.get_mut(id)?;
        mark(path, strength, marked);
        Some(path)
    }

    /// Whether a recount finds as many available paths, and paths over TCP, as are counted. For
    /// assertions.
    fn counts_are_right(&self) -> bool {
        let (mut connections, mut available) = (0, 0);
        for path in self.iter() {
            connections += usize::from(path.route.local.is_connection());
            available += usize::from(path.state == PathState::Available);
        }
        (connections, available) == (self.connections, self.available)
    }

    /// Asserts that ids are unique, counts are right, and each changed path is in the queue of
    /// changed paths. Examines all paths, if they are few.
    #[cfg(debug_assertions)]
    fn check(&self) {
        const MAX_CHECKED_PATHS: usize = 64;
        debug_assert!(self.connections.max(self.available) <= self.len(), "{self:?}");
        if self.len() > MAX_CHECKED_PATHS {
            return;
        }
        debug_assert!(self.counts_are_right(), "paths over TCP and available ones are counted: {self:?}");
        debug_assert_eq!(self.iter().count(), self.len(), "paths are counted");
        let mut last = None;
        for path in self.iter() {
            let id = path.id();
            debug_assert!(last < Some(id) && id < self.next_id(), "path {id:?} is in the order of ids");
            debug_assert!(
                path.mark == ChangeMark::Settled || self.marked.contains(&id),
                "path {id:?} was changed, and nobody will see to it"
            );
            last = Some(id);
        }
        debug_assert!(self.marked.iter().all(|id| *id < self.next_id()), "what was changed exists: {self:?}");
    }

    /// The next path that was changed and may have to be settled.
    #[inline]
    pub fn next_marked(&mut self) -> Option<PathId> {
        self.marked.pop_front()
    }

    /// Whether no path was changed since the last was settled.
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.marked.is_empty() && !self.all
    }

    /// Whether all paths are to be updated. Resets the request.
    #[inline]
    pub const fn take_all(&mut self) -> bool {
        core::mem::replace(&mut self.all, false)
    }

    /// Counts changes of the routes by which this side answers the peer. A new return tag, which a
    /// relay demands in answers, counts too. This side checks the route back to a packet's source
    /// again only if the count or the source changed.
    pub const fn routes(&self) -> u64 {
        self.routes
    }

    /// Counts that a route, a return path or a relay's return tag changed.
    pub const fn routes_changed(&mut self) {
        self.routes += 1;
    }

    /// Notes that a path's route changed.
    pub const fn moved(&mut self) {
        self.routes_changed();
        self.ways_changed();
    }

    /// Counts changes that may make another path the best for ACKs.
    pub const fn ways(&self) -> u64 {
        self.ways
    }

    /// Notes a change that may make another path the best for ACKs.
    pub const fn ways_changed(&mut self) {
        self.ways += 1;
    }
}

#[inline]
fn mark(path: &mut Path, strength: ChangeMark, marked: &mut VecDeque<PathId>) {
    if path.mark == ChangeMark::Settled {
        marked.push_back(path.id());
    }
    path.mark = path.mark.max(strength);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::path::PathOrigin;
    use crate::path::send::SendPath;
    use byway_wire::{Instant, Local};

    fn paths(count: u32) -> Paths {
        let mut paths = Paths::new([7; 32]);
        for id in (0..count).map(PathId) {
            let send = SendPath::new(id, Instant::ZERO, None, 1200);
            let route = Route::direct(Local(0), "192.0.2.1:1".parse().unwrap());
            let name = paths.connection_id(id);
            paths.insert(Path::new(
                Instant::ZERO,
                send,
                route,
                PathState::Active,
                PathOrigin::Handshake,
                name,
            ));
        }
        paths
    }

    #[test]
    fn a_change_marks_its_path_once_and_in_order() {
        let mut paths = paths(4);
        while let Some(id) = paths.next_marked() {
            paths.quietly(id).unwrap().mark = ChangeMark::Settled;
        }
        assert!(paths.quietly(PathId(1)).is_some());
        paths.edit(PathId(3));
        paths.judge(PathId(0));
        paths.judge(PathId(3));
        paths.edit(PathId(3));
        assert_eq!(
            paths.get(PathId(3)).map(|path| path.mark),
            Some(ChangeMark::Judged),
            "the stronger mark stays"
        );
        assert_eq!(
            [paths.next_marked(), paths.next_marked(), paths.next_marked()],
            [Some(PathId(3)), Some(PathId(0)), None]
        );
    }

    #[test]
    fn paths_that_are_available_or_go_over_tcp_are_counted() {
        let route = |local| Route::direct(local, "192.0.2.1:1".parse().unwrap());
        let mut paths = paths(2);
        assert!(!paths.has_available() && !paths.has_connections());
        for _ in 0..2 {
            paths.set_state(PathId(0), PathState::Available);
            paths.set_state(PathId(9), PathState::Available);
            paths.set_route(PathId(1), route(Local::connection(3).unwrap()));
            assert!(paths.has_available() && paths.has_connections());
        }
        paths.set_state(PathId(0), PathState::Active);
        paths.set_route(PathId(1), route(Local(2)));
        assert!(!paths.has_available() && !paths.has_connections());
        paths.set_state(PathId(1), PathState::Available);
        paths.set_route(PathId(1), route(Local::connection(4).unwrap()));
        paths.remove(PathId(1));
        assert!(!paths.has_available() && !paths.has_connections());
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "are counted"))]
    fn a_state_that_is_entered_past_the_count_stops_a_debug_build() {
        let mut paths = paths(2);
        paths.quietly(PathId(0)).unwrap().state = PathState::Available;
        paths.set_state(PathId(1), PathState::Choked);
    }

    #[test]
    fn a_path_that_goes_makes_another_way_the_best() {
        let mut paths = paths(2);
        let before = (paths.ways(), paths.routes());
        assert!(paths.remove(PathId(1)).is_some() && paths.remove(PathId(1)).is_none());
        assert_eq!((paths.ways(), paths.routes()), (before.0 + 1, before.1 + 1));
        assert_eq!((paths.len(), paths.next_id(), paths.next_after(Some(PathId(0)))), (1, PathId(2), None));
    }
}
