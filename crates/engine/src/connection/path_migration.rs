//! Ways back: which path leads to where the peer's packets come from, and what happens when they
//! come from somewhere else.

use super::Connection;
use super::carrier_choice::SILENT_TIMEOUTS;
use super::path::{AddressValidation, Migration, Path, PathOrigin, PathState};
use super::peer_paths::{DroppedPath, PATH_LOOKAHEAD, PeerPath};
use crate::invariant::Invariant as _;
use crate::path::receive::ReceivePath;
use crate::role::Role;
use crate::route::{PacketSource, Route, Through};
use alloc::boxed::Box;
use byway_control::Controller;
use byway_wire::{Instant, PathId};

impl Connection {
    /// Makes sure that a path of the peer's is known, and has a path back.
    pub(super) fn enter(&mut self, now: Instant, id: PathId, source: &PacketSource) {
        if self.peer_paths.get(id).is_some() {
            return;
        }
        let facts = ReceivePath::new(id, now, self.config.pnack).with_ack_after(self.config.ack_after);
        let way = self.way_to(now, source);
        self.peer_paths.begin(id, PeerPath::new(facts, *source, way));
        self.paths.ways_changed();
    }

    /// The peer dropped a path.
    pub(super) fn on_path_dropped(&mut self, now: Instant, id: PathId) {
        let last = self.peer_paths.get(id).and_then(|receiving| self.arrival(receiving));
        if let Some(last) = last {
            self.peer_paths.keep(last);
        }
        if let DroppedPath::Lived(way) = self.peer_paths.on_dropped(id) {
            self.paths.ways_changed();
            if let Some(way) = way {
                self.drop_orphan(now, way);
            }
        }
    }

    /// Handles the peer's answer to a PATH_CHALLENGE.
    pub(super) fn on_path_response(&mut self, now: Instant, challenge: [u8; 8]) {
        let asked = |path: &Path| matches!(path.address, AddressValidation::Unproven { challenge: ours, .. } if ours == challenge);
        let Some(path) = self.paths.edit_first(asked) else { return self.move_proven(now, challenge) };
        path.address = AddressValidation::Valid;
        path.probe_at = None;
        let id = path.id();
        self.paths.ways_changed();
        self.proven(now, id);
    }

    /// Allows as many bytes to an unproved address as have arrived from it.
    pub(super) fn credit_way(&mut self, now: Instant, id: PathId, source: &PacketSource, bytes: usize) {
        let Self { peer_paths, paths, .. } = self;
        let Some(receiving) = peer_paths.get_mut(id).sure() else { return };
        let Some(way) = receiving.way else { return };
        let Some(path) = paths.quietly(way).sure() else { return };
        if !source.is_end_of(&path.route) {
            let is_newest = receiving.source == *source && path.origin == PathOrigin::Return;
            let moves_here = path.moving.as_ref().is_some_and(|moving| source.is_end_of(&moving.route));
            // A peer that moves on before it has answered is challenged at its newest address.
            if let Some(route) = source.route().filter(|_| is_newest && !moves_here) {
                self.maybe_moved(now, way, route);
            }
            return self.credit_move(now, way, source, bytes);
        }
        let (valid, renewed) = (path.address == AddressValidation::Valid, path.refresh_return_tag(source));
        if renewed {
            paths.routes_changed();
        }
        if !valid {
            if let Some(path) = paths.edit(way).sure() {
                path.earn(bytes as u64);
            }
        } else if receiving.source == *source {
            (receiving.source, receiving.settled) = (*source, Some(paths.routes()));
        }
    }

    /// The path of ours that leads to where a packet came from. If there is none, a responder makes
    /// one, and an initiator tries the address as it tries others of the peer.
    pub(super) fn way_to(&mut self, now: Instant, source: &PacketSource) -> Option<PathId> {
        let known = self.paths.iter().find(|path| source.is_end_of(&path.route)).map(Path::id);
        if known.is_none() && self.peer.role == Role::Initiator && matches!(source.through, Through::Nothing)
        {
            self.candidates.add_seen(now, Route::direct(source.local, source.remote));
            self.scheduler.reconsider();
        }
        if known.is_some() || self.peer.role == Role::Initiator || !self.has_name(2 * PATH_LOOKAHEAD) {
            return known;
        }
        let mut path = self.new_path(now, source.route()?, None, PathState::Probing, PathOrigin::Return);
        if path.id() == PathId(0) {
            // The peer's packet shows that it received our handshake message at this address.
            path.address = AddressValidation::Valid;
            path.pending.ping = true;
        } else {
            path.pending.challenge = true;
        }
        Some(self.paths.insert(path))
    }

    /// Makes a new path back for a path of the peer's that still brings packets.
    pub(super) fn restore_way(&mut self, now: Instant, id: PathId) {
        let Some(source) = self.peer_paths.get(id).map(|receiving| receiving.source) else { return };
        let way = self.way_to(now, &source);
        if let Some(receiving) = self.peer_paths.get_mut(id).sure() {
            (receiving.way, receiving.settled) = (way, None);
            self.paths.ways_changed();
        }
    }

    /// The newest packet of a peer's path came from somewhere else than the one before.
    pub(super) fn source_changed(&mut self, now: Instant, id: PathId, source: PacketSource) {
        let Some(receiving) = self.peer_paths.get_mut(id).sure() else { return };
        (receiving.source, receiving.is_cut) = (source, false);
        self.paths.routes_changed();
        let old = receiving.way;
        let existing = self.paths.iter().find(|path| source.is_end_of(&path.route)).map(Path::id);
        let moves = |old: &PathId| self.paths.get(*old).is_some_and(|path| path.origin == PathOrigin::Return);
        let way = match (existing, old.filter(moves), source.route()) {
            (Some(existing), ..) => Some(existing),
            // The peer moved, or somebody plays its packets from elsewhere.
            (None, Some(old), Some(route)) => {
                self.maybe_moved(now, old, route);
                Some(old)
            }
            _ => self.way_to(now, &source),
        };
        if let Some(receiving) = self.peer_paths.get_mut(id).sure() {
            receiving.way = way.or(old);
        }
        self.paths.ways_changed();
    }

    /// Handles packets of the peer from a new address: the peer moved, or an attacker forwards
    /// copies. A path keeps its validated address until the new address is validated too. (RFC 9000
    /// section 9.3.3 challenges both addresses instead.)
    fn maybe_moved(&mut self, now: Instant, id: PathId, route: Route) {
        let challenge = self.random.unguessable();
        self.paths.routes_changed();
        let Self { paths, controller, .. } = self;
        let Some(path) = paths.edit(id).sure() else { return };
        if path.address != AddressValidation::Valid {
            path.address = AddressValidation::Unproven { challenge, credit: 0 };
            path.pending.challenge = true;
            settle_in(path, controller, now);
            paths.set_route(id, route);
        } else if path.moving.as_ref().is_none_or(|moving| moving.again_at <= now) {
            let again_at = now + path.challenge_interval();
            path.moving = Some(Box::new(Migration { route, challenge, credit: 0, again_at }));
            path.pending.ask = true;
        }
    }

    /// Bytes came from where a path may lead in future: as many may be spent on asking there.
    pub(super) fn credit_move(&mut self, now: Instant, id: PathId, source: &PacketSource, bytes: usize) {
        let Some(path) = self.paths.edit(id).sure() else { return };
        let interval = path.challenge_interval();
        let Some(moving) = path.moving.as_mut().filter(|moving| source.is_end_of(&moving.route)) else {
            return;
        };
        moving.credit = moving.credit.saturating_add(bytes as u64);
        if moving.again_at <= now {
            moving.again_at = now + interval;
            path.pending.ask = true;
        }
    }

    /// Adds a direct route to where the peer was seen. It is probed when its turn comes.
    pub(crate) fn add_seen(&mut self, now: Instant, route: Route) {
        self.candidates.add_seen(now, route);
        self.scheduler.reconsider();
        self.settle(now);
    }

    /// The peer is at another address behind a relay. Silent paths through the relay lead there
    /// from now on.
    pub(super) fn move_silent(&mut self, now: Instant, route: &Route) {
        let moves = |path: &&Path| path.route.is_moved(route) && path.send.timeouts() >= SILENT_TIMEOUTS;
        loop {
            let found = self.paths.iter().find(moves).map(Path::id);
            let Some(id) = found else { return };
            let Self { paths, controller, .. } = self;
            let Some(path) = paths.edit(id).sure() else { return };
            path.pending.ping = true;
            settle_in(path, controller, now);
            paths.set_route(id, route.clone());
            // It counts as answering again, and may send.
            paths.judge(id);
            self.scheduler.consult();
        }
    }

    /// Handles the answer to a challenge that was sent to the possible new address of a path. The
    /// path leads to that address from now on, unless newer packets of the peer came from elsewhere
    /// meanwhile.
    pub(super) fn move_proven(&mut self, now: Instant, challenge: [u8; 8]) {
        let asked = |path: &Path| path.moving.as_ref().is_some_and(|moving| moving.challenge == challenge);
        let Some(path) = self.paths.edit_first(asked) else { return };
        let id = path.id();
        let Some(moving) = path.moving.take().sure() else { return };
        let newest =
            |receiving: &PeerPath| receiving.way == Some(id) && receiving.source.is_end_of(&moving.route);
        if self.peer_paths.iter().any(newest) {
            path.pending.ask = false;
            path.pending.ping = true;
            settle_in(path, &mut self.controller, now);
            self.paths.set_route(id, moving.route);
            self.paths.judge(id);
            self.scheduler.consult();
        }
    }
}

/// Resets a path that now leads to another address. The path keeps its id and its packets in
/// flight. RTT, delays and other measurements start afresh.
fn settle_in(path: &mut Path, controller: &mut dyn Controller, now: Instant) {
    path.moving = None;
    path.send.route_changed();
    if path.state == PathState::Active {
        controller.on_route_change(path.id(), now);
    }
}
