//! Ways back: which path leads to where the peer's packets come from, what happens when they come from somewhere else, and which
//! path the ACKs take.

use super::path::{Address, Moving, Origin, Path, State};
use super::table::after;
use super::{Connection, PATH_LOOKAHEAD, Receiving, Role};
use crate::config::AckWay;
use crate::route::{Route, Source};
use alloc::boxed::Box;
use byway_wire::{Duration, Instant, PathId};

/// A way that carries only ACKs is measured this often while in use, and this often while it is not.
const PING_IN_USE: Duration = Duration::from_secs(1);
const PING_IDLE: Duration = Duration::from_secs(5);
/// How long a choice of the way for ACKs holds.
const WAY_HOLDS: Duration = Duration::from_millis(50);

impl Connection {
    /// The path of ours that leads to where a packet came from. A responder makes one if there is none.
    pub(super) fn way_to(&mut self, now: Instant, source: &Source) -> Option<PathId> {
        let known = self.paths.iter().find(|path| source.is_end_of(&path.route)).map(Path::id);
        if known.is_some() || self.role == Role::Initiator || !self.has_name(2 * PATH_LOOKAHEAD) {
            return known;
        }
        let first = self.paths.next_id() == PathId(0);
        let id = self.add_path(now, source.route()?, None, State::Probing, Origin::Return);
        if let Some(path) = self.paths.get_mut(id) {
            if first {
                // The peer's packet shows that it received our handshake message at this address.
                path.address = Address::Valid;
                path.pending.ping = true;
            } else {
                path.pending.challenge = true;
            }
        }
        self.make_urgent(id);
        Some(id)
    }

    /// The newest packet of a peer's path came from somewhere else than the one before.
    pub(super) fn source_changed(&mut self, now: Instant, id: PathId, source: Source) {
        let Some(receiving) = self.receive.get_mut(id) else { return };
        receiving.source = source;
        self.routes += 1;
        let old = receiving.way;
        let existing = self.paths.iter().find(|path| source.is_end_of(&path.route)).map(Path::id);
        let moves = |old: &PathId| self.paths.get(*old).is_some_and(|path| path.origin == Origin::Return);
        let way = match (existing, old.filter(moves), source.route()) {
            (Some(existing), ..) => Some(existing),
            // The peer moved, or somebody plays its packets from elsewhere.
            (None, Some(old), Some(route)) => {
                self.maybe_moved(now, old, route);
                Some(old)
            }
            _ => self.way_to(now, &source),
        };
        if let Some(receiving) = self.receive.get_mut(id) {
            receiving.way = way.or(old);
        }
        self.ack_way_until = Instant::ZERO;
    }

    /// The peer may have moved, and somebody who copies its packets faster than the network carries them looks the same. So a
    /// path whose address is proven goes on to lead there until the new one is proven too (RFC 9000 section 9.3.3 has a
    /// sender ask both, and return to the old one if that still works; to move only then costs one RTT and needs no return).
    fn maybe_moved(&mut self, now: Instant, id: PathId, route: Route) {
        let token = self.random.token();
        self.routes += 1;
        let Some(path) = self.paths.get_mut(id) else { return };
        if path.address != Address::Valid {
            path.route = route;
            path.address = Address::Unproven { token, credit: 0 };
            path.pending.challenge = true;
            self.settle_in(now, id);
        } else if path.moving.as_ref().is_none_or(|moving| moving.again_at <= now) {
            let again_at = now + path.challenge_interval();
            path.moving = Some(Box::new(Moving { route, token, credit: 0, again_at }));
            path.pending.ask = true;
            self.make_urgent(id);
        }
    }

    /// Bytes came from where a path may lead in future: as many may be spent on asking there.
    pub(super) fn credit_move(&mut self, now: Instant, id: PathId, source: &Source, bytes: usize) {
        let Some(path) = self.paths.get_mut(id) else { return };
        let interval = path.challenge_interval();
        let Some(moving) = path.moving.as_mut().filter(|moving| source.is_end_of(&moving.route)) else {
            return;
        };
        moving.credit = moving.credit.saturating_add(bytes as u64);
        if moving.again_at <= now {
            moving.again_at = now + interval;
            path.pending.ask = true;
        }
        self.make_urgent(id);
    }

    /// A challenge was answered from where a path may lead. It leads there from now on, unless newer packets of the peer's came
    /// from elsewhere meanwhile.
    pub(super) fn move_proven(&mut self, now: Instant, token: [u8; 8]) {
        let asked = |path: &&mut Path| path.moving.as_ref().is_some_and(|moving| moving.token == token);
        let Some(path) = self.paths.iter_mut().find(asked) else { return };
        let Some(moving) = path.moving.take() else { return };
        let id = path.id();
        let newest =
            |receiving: &Receiving| receiving.way == Some(id) && receiving.source.is_end_of(&moving.route);
        if self.receive.iter().any(newest) {
            path.route = moving.route;
            path.pending.ask = false;
            path.pending.ping = true;
            self.settle_in(now, id);
        }
    }

    /// A path leads elsewhere: it keeps its name, but what it learnt is void.
    fn settle_in(&mut self, now: Instant, id: PathId) {
        self.routes += 1;
        let Some(path) = self.paths.get_mut(id) else { return };
        path.moving = None;
        path.send.route_changed();
        if path.state == State::Active {
            self.controller.on_route_change(id, now);
        }
        self.ack_way_until = Instant::ZERO;
        self.make_urgent(id);
        self.arm_path(id); // what is under way is waited for as on a new route
    }

    /// The path over which ACKs go now: the fastest that lives.
    pub(super) fn ack_way(&mut self, now: Instant) -> Option<PathId> {
        if now < self.ack_way_until && self.ack_way.is_some_and(|id| self.paths.get(id).is_some()) {
            return self.ack_way;
        }
        self.ack_way_until = now + WAY_HOLDS;
        let newest = self.receive.iter().map(|receiving| receiving.facts.last_arrival).max()?;
        // When a packet last came by each way, in one pass over the peer's paths.
        self.paths.iter_mut().for_each(|path| path.heard = None);
        for receiving in self.receive.iter() {
            if let Some(path) = receiving.way.and_then(|way| self.paths.get_mut(way)) {
                path.heard = path.heard.max(Some(receiving.facts.last_arrival));
            }
        }
        // What no packet came by for long, while packets came by others, may be dead although it was fast.
        let silence = |path: &Path| {
            let allowed = path.send.rtt.smoothed() * 2 + Duration::from_millis(200);
            path.heard.is_none_or(|at| at + allowed < newest)
        };
        let best = self.paths.iter().min_by_key(|path| {
            let unproven = path.address != Address::Valid;
            let unmeasured = !path.send.rtt.is_sampled();
            // Each change costs the peer its RTT estimates: another way must be faster by a quarter.
            let handicap = if self.ack_way == Some(path.id()) { 3 } else { 4 };
            let slowness = path.send.rtt.smoothed() * handicap;
            (path.send.timeouts() > 0, unproven, silence(path), unmeasured, slowness, path.id())
        });
        let direct = || self.paths.iter().find(|path| !path.route.is_proxied());
        self.ack_way = match self.config.ack_way {
            AckWay::Fastest => best.map(Path::id),
            AckWay::Direct => direct().or(best).map(Path::id),
        };
        let chosen = self.ack_way;
        let mut next = PathId(0);
        while let Some(id) = self.paths.from(next) {
            next = after(id);
            let Some(path) = self.paths.get_mut(id) else { continue };
            let interval = if chosen == Some(id) { PING_IN_USE } else { PING_IDLE };
            if path.state != State::Choked
                && path.send.outstanding() == 0
                && path.send.last_sent_at() + interval <= now
            {
                path.pending.ping = true;
                self.make_urgent(id);
            }
        }
        chosen
    }
}
