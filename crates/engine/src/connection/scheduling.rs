//! Which path sends next, and when the connection wakes. This is the one place that fills queues
//! and arms timers.

use super::packet_purpose::RunRemainder;
use super::path::{Path, PathState};
#[cfg(debug_assertions)]
use super::paths::Paths;
use super::peer_paths::PeerPath;
use super::rate_limit::RateLimit;
use super::timers::{Armed, TimerOwner, Timers, claim};
use super::uplink_gate::UplinkGate;
use crate::config::Config;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use byway_wire::{Duration, Instant, PathId};
#[cfg(debug_assertions)]
use smallvec::SmallVec;

/// The shortest delay of the connection's own timer, so that a timer that is due at once cannot
/// make an endless loop.
const MIN_TIMER_DELAY: Duration = Duration::from_micros(100);

/// The most entries of a queue that an assertion looks at.
#[cfg(debug_assertions)]
const MAX_CHECKED_ENTRIES: usize = 64;
/// The largest number of paths with which an assertion examines each path after every call.
#[cfg(debug_assertions)]
const MAX_CHECKED_PATHS: usize = 8;

/// The queues and timers of a connection.
#[derive(Debug)]
pub(super) struct Scheduler {
    /// The queue of paths that may send data.
    ready: VecDeque<PathId>,
    /// Paths with something pending.
    urgent: VecDeque<PathId>,
    /// Paths of both queues whose socket is full. They return to their queue when it has room.
    held: [Vec<PathId>; 2],
    /// The rest of a run whose datagrams are sent one by one.
    rest: Option<RunRemainder>,
    /// The owner's rate limit.
    cap: RateLimit,
    /// What a governor of the host's uplink allows.
    gate: UplinkGate,
    timers: Timers<TimerOwner>,
    armed: Armed,
    /// When the controller wants to be called.
    tick_at: Option<Instant>,
    /// Whether a deadline of the connection as a whole may have become earlier.
    whole: bool,
    /// Whether the controller may want something done about the bundle.
    consult: bool,
    /// The rule of others, if one chooses the path of each packet.
    #[cfg(feature = "studies")]
    rule: super::path_choosing::ActiveRule,
}

impl Scheduler {
    pub fn new(now: Instant, config: &Config) -> Self {
        Self {
            ready: VecDeque::new(),
            urgent: VecDeque::new(),
            held: [Vec::new(), Vec::new()],
            rest: None,
            cap: RateLimit::new(now, config.cap),
            gate: UplinkGate::new(now),
            timers: Timers::default(),
            armed: Armed::default(),
            tick_at: None,
            whole: false,
            consult: false,
            #[cfg(feature = "studies")]
            rule: super::path_choosing::ActiveRule::new(config.path_rule),
        }
    }

    /// The rule of others that chooses the path of each packet.
    #[cfg(feature = "studies")]
    pub const fn rule(&mut self) -> &mut super::path_choosing::ActiveRule {
        &mut self.rule
    }

    /// Datagrams of `size` bytes that the owner's rate limit and the governor of the uplink let
    /// leave now. If none may, notes until when.
    pub fn allows(&mut self, now: Instant, size: u64) -> u64 {
        self.cap.allows(now, size).min(self.gate.allows(now, size))
    }

    /// Notes a packet of `bytes` bytes that was sent. `is_data`: whether limits count it.
    pub const fn on_sent(&mut self, bytes: u64, is_data: bool) {
        if is_data {
            self.cap.spend(bytes);
        }
        self.gate.on_sent(bytes, is_data);
    }

    /// Something other than a limit held data back.
    pub const fn yields(&mut self) {
        self.cap.yields();
        self.gate.yields();
    }

    /// Whether the owner's rate limit or the governor of the uplink holds data back.
    pub const fn is_limited(&self) -> bool {
        self.cap.holds() || self.gate.holds()
    }

    /// Ends waits for limits, if their time has come.
    pub fn wake_limits(&mut self, now: Instant) {
        self.cap.wake(now);
        self.gate.wake(now);
    }

    /// What a governor of the host's uplink allows.
    pub const fn gate(&self) -> &UplinkGate {
        &self.gate
    }

    /// The same, to change it.
    pub const fn gate_mut(&mut self) -> &mut UplinkGate {
        &mut self.gate
    }

    /// Whether the owner's rate limit holds data back.
    pub const fn is_capped(&self) -> bool {
        self.cap.holds()
    }

    pub fn set_cap(&mut self, now: Instant, bytes_per_second: Option<u64>) {
        self.cap = RateLimit::new(now, bytes_per_second);
        self.whole = true;
    }

    // Queues.

    /// Adds an active path to the queue of paths that may send data.
    #[inline]
    pub fn make_ready(&mut self, path: &mut Path) {
        if !path.ready && path.state == PathState::Active {
            path.ready = true;
            path.paced = false;
            self.ready.push_back(path.id());
        }
    }

    /// Returns the number of paths that may send data.
    pub fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Removes the next path from the queue of paths that may send data. The caller resets its
    /// `ready`.
    #[inline]
    pub fn next_ready(&mut self) -> Option<PathId> {
        self.ready.pop_front()
    }

    /// Adds a path to the queue of paths with pending frames, if it has any.
    #[inline]
    pub fn make_urgent(&mut self, path: &mut Path) {
        if !path.urgent && path.pending.any() {
            path.urgent = true;
            self.urgent.push_back(path.id());
        }
    }

    /// Returns the number of paths with pending frames.
    pub fn urgent(&self) -> usize {
        self.urgent.len()
    }

    /// Removes the next path from the queue of paths with pending frames. The caller resets its
    /// `urgent`.
    #[inline]
    pub fn next_urgent(&mut self) -> Option<PathId> {
        self.urgent.pop_front()
    }

    /// Sets a path that may send data aside until its full socket has room.
    pub fn hold_ready(&mut self, id: PathId) {
        self.held[0].push(id);
        #[cfg(debug_assertions)]
        self.check();
    }

    /// Sets a path with pending frames aside until its full socket has room.
    pub fn hold_urgent(&mut self, id: PathId) {
        self.held[1].push(id);
        #[cfg(debug_assertions)]
        self.check();
    }

    /// Whether something waits for a socket.
    pub fn holds(&self) -> bool {
        self.held.iter().any(|held| !held.is_empty())
    }

    /// Returns paths that waited for full sockets to their queues.
    pub fn release(&mut self) {
        let Self { ready, urgent, held: [held_ready, held_urgent], .. } = self;
        ready.extend(held_ready.drain(..));
        urgent.extend(held_urgent.drain(..));
        #[cfg(debug_assertions)]
        self.check();
    }

    /// Removes a path from the queues and timers, with the rest of a run on it.
    pub fn forget(&mut self, path: &Path) {
        let id = path.id();
        self.rest = self.rest.filter(|rest| rest.path != id);
        if path.ready {
            self.ready.retain(|waiting| *waiting != id);
            self.held[0].retain(|waiting| *waiting != id);
        }
        #[cfg(debug_assertions)]
        self.check();
    }

    /// Takes the rest of a run.
    pub const fn take_rest(&mut self) -> Option<RunRemainder> {
        self.rest.take()
    }

    /// Stores the rest of a run.
    pub fn leave(&mut self, rest: Option<RunRemainder>) {
        debug_assert!(rest.is_none_or(|rest| rest.most > 0), "what is left is something: {rest:?}");
        self.rest = rest;
    }

    /// Whether a run is unfinished. Nothing else may be sent before the rest of it.
    pub const fn is_amid_run(&self) -> bool {
        self.rest.is_some()
    }

    // Timers.

    /// The earliest deadline.
    pub fn deadline(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Returns the next owner of a timer that is due, and the deadline for which it was armed.
    pub fn next_due(&mut self, now: Instant) -> Option<(Instant, TimerOwner)> {
        self.timers.pop(now)
    }

    /// Whether the connection as a whole is due for a deadline that was popped.
    pub fn claim_whole(&mut self, at: Instant) -> bool {
        claim(&mut self.armed, at)
    }

    /// Queues a path's pending frames, and arms its deadline.
    #[inline]
    pub fn place(&mut self, path: &mut Path) {
        self.make_urgent(path);
        self.arm(path);
    }

    /// Wakes for a path's deadline.
    #[inline]
    pub fn arm(&mut self, path: &mut Path) {
        let (owner, at) = (TimerOwner::Send(path.id()), path.deadline());
        match at {
            Some(_) => self.timers.arm(owner, &mut path.armed, at),
            None => self.timers.disarm(owner, &mut path.armed),
        }
        debug_assert!(path.armed.covers(at), "a path is woken in time: {path:?}");
    }

    /// Wakes for the ACK of a path of the peer's.
    #[inline]
    pub fn arm_receiving(&mut self, receiving: &mut PeerPath) {
        let at = receiving.facts.deadline();
        self.timers.arm(TimerOwner::Receive(receiving.facts.id), &mut receiving.armed, at);
    }

    /// Wakes the connection as a whole at `at`.
    pub fn arm_whole(&mut self, now: Instant, at: Option<Instant>) {
        let at = at.map(|at| at.max(now + MIN_TIMER_DELAY));
        self.timers.arm(TimerOwner::Whole, &mut self.armed, at);
        debug_assert!(self.armed.covers(at), "the connection is woken in time");
        #[cfg(debug_assertions)]
        self.check();
    }

    /// Wakes the connection as a whole once the limits let more leave.
    pub fn arm_limits(&mut self, now: Instant) {
        self.arm_whole(now, self.limited_until());
    }

    /// When the limits let more leave. `None`: data do not wait for them.
    fn limited_until(&self) -> Option<Instant> {
        self.cap.until().max(self.gate.until())
    }

    /// A deadline of the connection as a whole may have become earlier.
    pub const fn reconsider(&mut self) {
        self.whole = true;
    }

    /// Whether neither the connection's own timer nor the controller has to be seen to.
    #[inline]
    pub const fn is_settled(&self) -> bool {
        !(self.whole || self.consult)
    }

    /// Whether a deadline of the connection as a whole may have become earlier. Resets the mark.
    #[inline]
    pub const fn take_reconsider(&mut self) -> bool {
        core::mem::replace(&mut self.whole, false)
    }

    /// When the scheduler itself wants the connection as a whole to wake.
    pub fn own_deadline(&self) -> Option<Instant> {
        self.tick_at.into_iter().chain(self.limited_until()).min()
    }

    // Assertions.

    /// Asserts that no path is twice in a queue, and that the heap holds the connection's own
    /// deadline. Examines short queues and heaps only.
    #[cfg(debug_assertions)]
    fn check(&self) {
        let [held_ready, held_urgent] = &self.held;
        for queue in [self.ready.iter().chain(held_ready), self.urgent.iter().chain(held_urgent)] {
            let ids: SmallVec<[PathId; MAX_CHECKED_ENTRIES]> =
                queue.take(MAX_CHECKED_ENTRIES).copied().collect();
            let mut sorted = ids.clone();
            sorted.sort_unstable();
            debug_assert!(sorted.windows(2).all(|pair| pair[0] < pair[1]), "a path stands twice: {ids:?}");
        }
        debug_assert!(self.timers.holds(TimerOwner::Whole, self.armed), "the connection's deadline is lost");
    }

    /// Asserts what must hold of paths and queues once a call is over. A path that may send data
    /// stands in its queue, one with something pending in the other, each once. The deadline for
    /// which a path is armed stands in the heap. Looks at all paths, if they are few.
    #[cfg(debug_assertions)]
    pub fn check_with(&self, paths: &Paths) {
        self.check();
        debug_assert!(self.is_settled(), "what was to be seen to was seen to");
        if paths.len() > MAX_CHECKED_PATHS {
            return;
        }
        let standing = |id: &PathId| (*id, paths.get(*id));
        let [held_ready, held_urgent] = &self.held;
        for (id, path) in self.ready.iter().chain(held_ready).map(standing) {
            debug_assert!(path.is_some_and(|path| path.ready), "path {id:?} stands for data: {path:?}");
        }
        let mut urgent = 0;
        for (id, path) in self.urgent.iter().chain(held_urgent).map(standing) {
            debug_assert!(path.is_none_or(|path| path.urgent), "path {id:?} stands as pending: {path:?}");
            urgent += usize::from(path.is_some());
        }
        let count = |flag: fn(&Path) -> bool| paths.iter().filter(|path| flag(path)).count();
        let ready = self.ready.len() + held_ready.len();
        debug_assert_eq!(ready, count(|path| path.ready), "paths with data stand in the queue");
        debug_assert_eq!(
            urgent,
            count(|path| path.urgent),
            "paths with something pending stand in the queue"
        );
        for path in paths.iter() {
            let owner = TimerOwner::Send(path.id());
            debug_assert!(self.timers.holds(owner, path.armed), "a deadline is lost: {path:?}");
        }
        let rest = self.rest.map(|rest| standing(&rest.path));
        debug_assert!(rest.is_none_or(|(_, path)| path.is_some()), "the path of a run is gone: {rest:?}");
    }

    // The controller.

    /// The controller may want something done about the bundle.
    pub const fn consult(&mut self) {
        self.consult = true;
    }

    /// Whether the controller may want to change the set of paths. Resets the mark.
    #[inline]
    pub const fn take_consult(&mut self) -> bool {
        core::mem::replace(&mut self.consult, false)
    }

    /// Whether the controller is to be called now.
    pub fn ticks(&self, now: Instant) -> bool {
        self.tick_at.is_some_and(|at| at <= now)
    }

    /// The controller wants to be called then.
    pub const fn set_tick(&mut self, at: Option<Instant>) {
        self.tick_at = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::path::PathOrigin;
    use crate::path::send::SendPath;
    use crate::route::Route;
    use byway_wire::{ConnectionId, Local};

    fn path(id: u32, state: PathState) -> Path {
        let send = SendPath::new(PathId(id), Instant::ZERO, None, 1200);
        let route = Route::direct(Local(0), "192.0.2.1:1".parse().unwrap());
        Path::new(Instant::ZERO, send, route, state, PathOrigin::Handshake, ConnectionId::default())
    }

    #[test]
    fn a_path_stands_in_a_queue_once_and_leaves_it_when_it_goes() {
        let mut scheduler = Scheduler::new(Instant::ZERO, &Config::default());
        let (mut active, mut choked) = (path(1, PathState::Active), path(2, PathState::Choked));
        for _ in 0..2 {
            scheduler.make_ready(&mut active);
            scheduler.make_ready(&mut choked);
            scheduler.place(&mut active);
        }
        assert_eq!((scheduler.ready(), scheduler.urgent()), (1, 0));
        active.pending.ping = true;
        scheduler.place(&mut active);
        scheduler.place(&mut active);
        assert_eq!((scheduler.urgent(), scheduler.next_urgent()), (1, Some(PathId(1))));
        scheduler.forget(&active);
        assert_eq!(scheduler.next_ready(), None);
    }

    #[test]
    fn a_path_that_waits_for_its_socket_is_in_no_queue_twice() {
        let mut scheduler = Scheduler::new(Instant::ZERO, &Config::default());
        let mut path = path(1, PathState::Active);
        path.pending.ping = true;
        scheduler.make_ready(&mut path);
        scheduler.place(&mut path);
        assert!(scheduler.next_ready().is_some() && scheduler.next_urgent().is_some());
        scheduler.hold_ready(path.id());
        scheduler.hold_urgent(path.id());
        scheduler.make_ready(&mut path);
        scheduler.place(&mut path);
        assert!(scheduler.holds() && (scheduler.ready(), scheduler.urgent()) == (0, 0));
        scheduler.release();
        assert!(!scheduler.holds() && (scheduler.ready(), scheduler.urgent()) == (1, 1));
        assert_eq!(scheduler.next_ready(), Some(path.id()));
        scheduler.hold_ready(path.id());
        scheduler.forget(&path);
        assert!(!scheduler.holds() && scheduler.ready() == 0);
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "stands twice"))]
    fn a_path_that_stands_twice_stops_a_debug_build() {
        let mut scheduler = Scheduler::new(Instant::ZERO, &Config::default());
        scheduler.make_ready(&mut path(1, PathState::Active));
        scheduler.hold_ready(PathId(1));
    }

    #[test]
    fn what_is_due_already_is_looked_at_in_a_moment() {
        let mut scheduler = Scheduler::new(Instant::ZERO, &Config::default());
        let now = Instant::from_millis(5);
        scheduler.arm_whole(now, Some(Instant::from_millis(1)));
        assert_eq!(scheduler.deadline(), Some(now + MIN_TIMER_DELAY));
        let (at, owner) = scheduler.next_due(now + MIN_TIMER_DELAY).unwrap();
        assert!(owner == TimerOwner::Whole && scheduler.claim_whole(at) && scheduler.deadline().is_none());
    }
}
