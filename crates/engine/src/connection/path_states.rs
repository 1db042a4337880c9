//! The states of paths. A candidate that answers its probe becomes available. An available path
//! that the controller wants becomes active, and carries data. On a path that the controller
//! chokes, only probes are sent. A useless path is dropped.

use super::audit::audit;
use super::candidates::{CandidateAction, PathHistory};
use super::carrier_choice::{SILENT_TIMEOUTS, is_served, may_stand_in};
use super::loss_response::{Evidence, LossOutcome, judge};
use super::packet_contents::PacketContents;
use super::path::{AddressValidation, ChangeMark, Path, PathOrigin, PathState};
use super::peer_paths::{MAX_PATHS, PATH_LOOKAHEAD};
use super::pending_events::RelayEvent;
use super::relay_states::{PathEndReason, RelayId, UNOPENED_TEXT};
use super::scheduling::Scheduler;
use super::tcp_resting::RestAction;
use super::{Connection, Event};
use crate::path::send::SendPath;
use crate::path::transport::PathTransport;
use crate::random::Random;
use crate::route::{Route, Via};
use byway_control::{Controller, Opened, ProbeResult};
use byway_wire::relay::{Notice, NoticeTrust, Reason};
use byway_wire::{Duration, Instant, Local, PathId};
use core::net::SocketAddr;

/// Lost probes after which a candidate is unusable for now (mPath section 2.1: two consecutive
/// attempts).
const MAX_LOST_PROBES: u32 = 2;
/// Relays are preferred whose RTT is within this factor of the direct path's (Harp section III-G),
/// in percent.
const PREFERRED_PERCENT: u32 = 150;

impl Connection {
    /// Opens the first path: the handshake went over it, and it may carry data at once.
    pub(crate) fn open_first(
        &mut self,
        now: Instant,
        route: Route,
        relay: Option<RelayId>,
        rtt: Option<Duration>,
    ) {
        self.candidates.begin(now, route.clone(), relay);
        let mut path = self.new_path(now, route, rtt, PathState::Available, PathOrigin::Handshake);
        path.pending.ping = true; // the responder must hear from us before it may speak
        let id = self.paths.insert(path);
        self.activate(now, id);
        self.scheduler.consult();
        self.scheduler.reconsider();
        self.settle(now);
    }

    /// Adds a direct route that may become a path. It is probed when its turn comes.
    pub(crate) fn add_candidate(&mut self, now: Instant, route: Route) {
        self.candidates.add(now, route);
        self.scheduler.reconsider();
        self.settle(now);
    }

    /// Adds a relay that may become a path by this local socket. A known relay that was given up
    /// may be tried again. When the relay is chosen, the endpoint is asked to greet it.
    pub(crate) fn add_relay(&mut self, now: Instant, relay: RelayId, local: Local) {
        self.candidates.add_relay(now, relay, local);
        self.scheduler.reconsider();
        self.settle(now);
    }

    /// Sets the route through a relay. It may be new, or its clock, cookie or consent was renewed,
    /// or the peer has another address behind it. A path that still answers stays where it is: two
    /// hosts with the same ticket may register with the relay in turn.
    pub(crate) fn offer_route(&mut self, now: Instant, relay: RelayId, route: Route) {
        self.move_silent(now, &route);
        self.paths.edit_each(|path| {
            let same = path.route == route;
            if same {
                path.route = route.clone();
                // The relay may have refused what was sent: the next packet gets through. Without
                // this one it would wait for a timeout, which has doubled with each before.
                path.pending.ping |= path.send.timeouts() > 0;
            }
            same
        });
        if let Some(origin) = self.candidates.on_route(relay, &route) {
            if self.has_name(PATH_LOOKAHEAD) {
                self.probe(now, route, origin);
            } else if let Some(relay) =
                self.candidates.on_dropped(now, origin, PathEndReason::NotNeeded, PathHistory::default())
            {
                self.pending_events.want(RelayEvent::Release(relay)); // another time
            }
            self.scheduler.reconsider();
        }
        self.settle(now);
    }

    /// Enters that no route leads through a relay, which was asked for at `asked_at`. Returns
    /// whether the relay is not tried again.
    pub(crate) fn relay_failed(&mut self, now: Instant, relay: RelayId, asked_at: Instant) -> bool {
        let over = self.candidates.on_no_route(now, relay, self.session.heard_since(asked_at));
        self.scheduler.consult();
        self.scheduler.reconsider();
        self.settle(now);
        over
    }

    /// Handles the loss of a local socket: drops the paths that use it.
    pub(crate) fn local_down(&mut self, now: Instant, local: Local) {
        self.peer_paths.on_local_down(local);
        let mut last = None;
        while let Some(id) = self.paths.next_after(last) {
            last = Some(id);
            if self.paths.get(id).is_some_and(|path| path.route.local == local) {
                self.drop_path(now, id, PathEndReason::LocalGone);
            }
        }
        for relay in self.candidates.local_down(local) {
            self.pending_events.want(RelayEvent::Release(relay));
        }
        self.scheduler.reconsider();
        self.settle(now);
    }

    /// Whether any path of either host uses this local socket or connection.
    pub(crate) fn goes_by(&self, local: Local) -> bool {
        self.paths.iter().any(|path| path.route.local == local) || self.peer_paths.come_by(local)
    }

    /// Whether a path of either side goes over a TCP connection.
    pub(crate) fn goes_over_tcp(&self) -> bool {
        self.paths.iter().any(|path| path.route.local.is_connection())
    }

    /// Handles a relay's notice that it does not forward. Returns the relay, if a path of this host
    /// uses it.
    pub(crate) fn on_notice(&mut self, now: Instant, notice: &Notice) -> Option<SocketAddr> {
        let (id, relay, verdict) = self.paths.iter().find_map(|path| match &path.route.via {
            Via::Relay(hop) => hop.judge(notice, now).map(|verdict| (path.id(), hop.relay(), verdict)),
            _ => None,
        })?;
        // The next greeting mends that, and nothing is wrong with the word.
        if notice.reason == Reason::StaleCookie {
            return Some(relay);
        }
        let proven = verdict == NoticeTrust::Proven;
        self.pending_events.raise(Event::Notice { path: id, reason: notice.reason, proven });
        if proven && !matches!(notice.reason, Reason::Clock | Reason::OverRate | Reason::Busy) {
            self.drop_path(now, id, PathEndReason::Refused(notice.reason));
        }
        self.settle(now);
        Some(relay)
    }

    /// Handles an error of sending a datagram on a path.
    pub(crate) fn on_send_error(&mut self, now: Instant, error: &byway_wire::SendError) {
        let mut last = None;
        while let Some(id) = self.paths.next_after(last) {
            last = Some(id);
            let Some(path) = self.paths.get(id) else { continue };
            if path.route.local == error.local
                && path.route.remote == error.remote
                && let Some(path) = self.paths.judge(id)
                && error.kind == byway_wire::SendErrorKind::TooLarge
            {
                path.send.mtu.refused(now, error.size);
            }
        }
        self.settle(now);
    }

    /// Whether a new path may be opened. Its id may exceed the ids known to the peer by at most
    /// `ahead`.
    pub(super) fn has_name(&self, ahead: u32) -> bool {
        let next = self.paths.next_id().0;
        let expected = self.contents.known_ids().saturating_add(ahead);
        next < u32::MAX && next < expected && self.paths.len() < MAX_PATHS
    }

    /// Tries one candidate: probes a direct route, or has a relay greeted.
    pub(super) fn try_candidate(&mut self, now: Instant) {
        if !self.session.is_confirmed() || !self.candidates.is_time(now) || !self.has_name(PATH_LOOKAHEAD) {
            return;
        }
        if let Some(path) = self.paths.iter().find(|path| !path.route.is_proxied() && path.send.is_proven()) {
            self.candidates.note_direct(now, path.send.rtt.minimum());
        }
        match self.candidates.next(now, &mut self.random) {
            Some(CandidateAction::Probe(route, origin)) => self.probe(now, route, origin),
            Some(CandidateAction::Greet(relay)) => self.pending_events.want(RelayEvent::Greet(relay)),
            None => {}
        }
    }

    /// Sends a PING as a probe, with data if there are any (mPath, section 2.1).
    fn probe(&mut self, now: Instant, route: Route, origin: PathOrigin) {
        let mut path = self.new_path(now, route, None, PathState::Probing, origin);
        path.pending.ping = true;
        self.paths.insert(path);
    }

    /// A path that is to be inserted next.
    pub(super) fn new_path(
        &mut self,
        now: Instant,
        route: Route,
        rtt: Option<Duration>,
        state: PathState,
        origin: PathOrigin,
    ) -> Path {
        let id = self.paths.next_id();
        let mut send = SendPath::new(id, now, rtt, self.config.max_datagram);
        self.controller.entrust(&mut send, &route);
        let mut path = Path::new(now, send, route, state, origin, self.paths.connection_id(id));
        if origin == PathOrigin::Return {
            path.address = AddressValidation::Unproven { challenge: self.random.unguessable(), credit: 0 };
        }
        path
    }

    /// Notes that a packet on this path was acknowledged.
    pub(super) fn proven(&mut self, now: Instant, id: PathId) {
        let Some(path) = self.paths.edit(id) else { return };
        if path.state != PathState::Probing || path.address != AddressValidation::Valid {
            return;
        }
        path.probe_at = None;
        let (origin, rtt) = (path.origin, path.send.rtt.smoothed());
        self.paths.set_state(id, PathState::Available);
        let waits = self.common_wait();
        self.paths.ways_changed();
        self.scheduler.consult();
        self.scheduler.reconsider();
        if !self.candidates.on_proven(now, origin, rtt.saturating_sub(waits)) {
            self.drop_path(now, id, PathEndReason::NotNeeded);
        } else if self.candidates.makes_room_for(origin) {
            // The relay that led to the peer until now need not carry what the peer's own line
            // takes.
            let meeting = |path: &&Path| path.origin == PathOrigin::Handshake && path.route.is_proxied();
            let meeting = self.paths.iter().find(meeting).map(Path::id);
            if let Some(meeting) = meeting {
                self.activate(now, id);
                self.drop_path(now, meeting, PathEndReason::Opened);
            }
        }
    }

    /// The least queueing delay (smoothed RTT less minimum RTT) of the active paths. If all of them
    /// have a queue, the queue is in the line that they share. With fewer than two active paths,
    /// the result is 0.
    fn common_wait(&self) -> Duration {
        let rtts =
            self.paths.iter().filter(|path| path.state == PathState::Active).map(|path| &path.send.rtt);
        let mut waits = rtts.map(|rtt| rtt.smoothed().saturating_sub(rtt.minimum()));
        match (waits.next(), waits.min()) {
            (Some(first), Some(least)) => first.min(least),
            _ => Duration::ZERO,
        }
    }

    /// The controller takes the path.
    fn activate(&mut self, now: Instant, id: PathId) {
        self.paths.set_state(id, PathState::Active);
        let Some(path) = self.paths.judge(id) else { return };
        path.used = Some(now);
        self.candidates.on_used(path.origin);
        path.told_size = path.send.mtu.current();
        let opened = Opened {
            now,
            proxied: path.route.is_proxied(),
            packet_size: path.told_size as u32,
            rtt: Some(path.send.rtt.smoothed()),
        };
        self.controller.take(id, path.send.carriage(), &opened);
        self.scheduler.make_ready(path);
        self.scheduler.set_tick(self.controller.tick(now));
        self.scheduler.reconsider();
        self.pending_events.raise(Event::PathUp(id));
    }

    /// Sets which direct paths carry data from now on: those over UDP datagrams (the default), or
    /// those over TCP connections. Direct paths of the other kind carry data only while none of the
    /// preferred kind answers.
    pub fn prefer(&mut self, now: Instant, carriage: PathTransport) {
        let now = self.session.own_time(now);
        if self.paths.prefer(carriage) {
            self.scheduler.consult();
            self.settle(now);
        }
    }

    /// Lets paths rest where a preferred path answers. Ends resting paths over TCP after a while.
    fn see_to_resting(&mut self, now: Instant) {
        if !self.paths.has_connections() {
            return;
        }
        let mut last = None;
        while let Some(id) = self.paths.next_after(last) {
            last = Some(id);
            let Some(path) = self.paths.get(id) else { continue };
            let answers = !self.paths.is_preferred(path) && is_served(&self.paths, path);
            let Some(path) = self.paths.quietly(id) else { continue };
            match path.rest_step(now, answers) {
                RestAction::Rest => self.rest(id),
                RestAction::End => self.drop_path(now, id, PathEndReason::Rested),
                RestAction::Nothing => {}
            }
        }
    }

    /// Stops data on a path until it is activated again. ACKs for packets in flight are still
    /// handled.
    fn rest(&mut self, id: PathId) {
        self.paths.judge_all();
        self.paths.set_state(id, PathState::Available);
        let Some(path) = self.paths.edit(id) else { return };
        (path.probe_at, path.probe) = (None, None);
        self.contents.recall(&mut path.outbox);
        self.controller.close(id);
        self.candidates.on_resting(path.origin);
        let is_tcp = path.route.local.is_connection();
        let reason = if is_tcp { PathEndReason::Rested.text() } else { "UDP carries far less than TCP" };
        self.pending_events.raise(Event::PathResting { path: id, reason });
    }

    /// Whether a path that is not preferred is needed: no preferred path leads directly to the
    /// peer, or to it at all.
    fn stands_in(&self) -> bool {
        let direct =
            |path: &Path| path.is_governed() && !path.route.is_proxied() && path.send.timeouts() == 0;
        let is_reached = self.paths.iter().any(direct);
        self.paths.iter().any(|path| {
            let led = self.paths.is_preferred(path) || is_served(&self.paths, path);
            !(led || is_reached && path.route.is_proxied())
        })
    }

    /// Applies the controller's decisions about the set of paths.
    pub(super) fn consult(&mut self, now: Instant) {
        self.see_to_resting(now);
        while self.session.is_open() {
            let wants = self.controller.wants();
            // While no path in use answers, at least one more is wanted, whatever the controller
            // asks for. The same holds while a transport that is not preferred (see `prefer`)
            // replaces the preferred one.
            let stands_in = self.paths.has_connections() && self.stands_in();
            let answers = self.has_answering();
            self.candidates.note_answers(now, answers);
            let open = wants.open.max(usize::from(stands_in || !answers));
            let open = if self.needs_paths() { open } else { 0 };
            if let Some(id) = wants.forget.first().copied() {
                self.drop_path(now, id, PathEndReason::CarriedLittle);
            } else if let Some(id) = wants.shares.first().copied() {
                self.drop_path(now, id, PathEndReason::Shares);
            } else if let Some(id) = wants.drop.first().copied() {
                self.drop_path(now, id, PathEndReason::GivenUp);
            } else if open > 0
                && self.paths.has_available()
                && let Some(id) = self.best_available(now)
            {
                self.activate(now, id);
            } else {
                if self.candidates.wish(open) {
                    self.scheduler.reconsider();
                }
                return;
            }
        }
    }

    /// The available path to open next, among the paths with the best `Rank`: a random path whose
    /// RTT is at most `PREFERRED_PERCENT` of the direct path's RTT, or else the path with the
    /// lowest RTT.
    fn best_available(&mut self, now: Instant) -> Option<PathId> {
        let direct =
            self.paths.iter().find(|path| !path.route.is_proxied()).map(|path| path.send.rtt.smoothed());
        let limit = direct.map(|rtt| rtt * PREFERRED_PERCENT / 100);
        let near = |path: &Path| limit.is_none_or(|limit| path.send.rtt.smoothed() <= limit);
        let each = self.controller.governs_connections() && !self.controller.yields();
        let available = |path: &&Path| {
            path.state == PathState::Available
                && path.address == AddressValidation::Valid
                && (self.paths.is_preferred(path) || may_stand_in(&self.paths, path, each))
        };
        let rank = |path: &Path| self.candidates.rank(now, path.origin);
        let best = self.paths.iter().filter(available).map(rank).max()?;
        if !self.candidates.allows(now, best) {
            return None;
        }
        let usable = |path: &&Path| available(path) && rank(path) == best;
        let count = self.paths.iter().filter(usable).filter(|path| near(path)).count();
        if count > 0 {
            let chosen = self.random.below(count as u64) as usize;
            return self.paths.iter().filter(usable).filter(|path| near(path)).nth(chosen).map(Path::id);
        }
        self.paths.iter().filter(usable).min_by_key(|path| path.send.rtt.smoothed()).map(Path::id)
    }

    /// Gives a path up. Its data goes out again elsewhere; its name is never used again.
    pub(super) fn drop_path(&mut self, now: Instant, id: PathId, end: PathEndReason) {
        let Self { paths, scheduler, contents, controller, .. } = self;
        let Some(mut path) = paths.remove(id) else {
            controller.close(id);
            return;
        };
        if path.is_governed() {
            controller.close(id);
            // Another may carry data in its place.
            paths.judge_all();
            scheduler.consult();
        }
        scheduler.forget(&path);
        scheduler.reconsider();
        contents.recall(&mut path.outbox);
        path.send.abandon(now, |carried| contents.lost(carried));
        contents.farewells().push(id);
        let lived = PathHistory {
            worked: path.send.is_proven(),
            goodput: path.goodput(now),
            heard: self.session.heard_since(path.began),
        };
        if let Some(relay) = self.candidates.on_dropped(now, path.origin, end, lived) {
            self.pending_events.want(RelayEvent::Release(relay));
        }
        self.peer_paths.on_way_gone(id);
        if end == PathEndReason::Unanswered && !lived.worked && self.candidates.is_opened(path.origin) {
            let (remote, reason) = (path.route.remote, UNOPENED_TEXT);
            self.pending_events.raise(Event::PathUnopened { path: id, remote, reason });
        } else if end != PathEndReason::NotNeeded {
            self.pending_events.raise(Event::PathDown { path: id, reason: end.text() });
        }
    }

    /// Drops a silent path back that no path of the peer's needs any more. Returns whether it did.
    pub(super) fn drop_orphan(&mut self, now: Instant, id: PathId) -> bool {
        let Some(path) = self.paths.get(id) else { return false };
        let silent = path.send.outstanding() == 0 && path.route.is_proxied()
            || path.send.timeouts() >= MAX_LOST_PROBES
            || path.address != AddressValidation::Valid;
        if path.origin != PathOrigin::Return
            || !silent
            || self.peer_paths.iter().any(|receiving| receiving.way == Some(id))
        {
            return false;
        }
        self.drop_path(now, id, PathEndReason::Orphan);
        true
    }

    /// Updates all that this call changed: first the paths, then the controller's wishes, then the
    /// connection's own timer.
    #[inline]
    pub(super) fn settle(&mut self, now: Instant) {
        if !(self.paths.is_settled() && self.scheduler.is_settled()) {
            self.settle_changes(now);
        }
    }

    fn settle_changes(&mut self, now: Instant) {
        self.settle_paths(now);
        if self.scheduler.take_consult() {
            self.consult(now);
            // Asked until there was nothing more to do, whatever was dropped meanwhile.
            self.scheduler.take_consult();
            self.settle_paths(now);
        }
        if self.scheduler.take_reconsider() {
            if self.candidates.is_used_up(now, self.controller.asks_once_probed()) {
                self.pending_events.raise(Event::RelaysUsedUp);
            }
            let at = self.own_deadline(now);
            self.scheduler.arm_whole(now, at);
        }
        audit(&self.paths);
        #[cfg(debug_assertions)]
        self.scheduler.check_with(&self.paths);
    }

    /// Updates the paths that changed, in the order of their changes. A change may alter how much
    /// the congestion controller lets other paths send. Then every path whose limits changed is
    /// updated first.
    #[inline]
    fn settle_paths(&mut self, now: Instant) {
        while !self.paths.is_settled() {
            if self.paths.take_all() {
                let mut last = None;
                while let Some(id) = self.paths.next_after(last) {
                    last = Some(id);
                    self.settle_path(now, id, true);
                }
            }
            while let Some(id) = self.paths.next_marked() {
                self.settle_path(now, id, false);
            }
        }
    }

    #[inline]
    fn settle_path(&mut self, now: Instant, id: PathId, doubted: bool) {
        let Self { paths, controller, contents, scheduler, random, .. } = self;
        let Some(path) = paths.quietly(id) else { return };
        let mark = core::mem::take(&mut path.mark);
        if mark == ChangeMark::Changed {
            scheduler.place(path);
        }
        if mark == ChangeMark::Judged || doubted && !path.is_fresh(now, || controller.allowance(id)) {
            let before = path.state;
            refresh(now, path, controller, contents, scheduler, random);
            if before == PathState::Active && path.state == PathState::Choked {
                // A silent path sends nothing while another answers. This one does not any more.
                paths.judge_all();
            }
        }
    }

    pub(super) fn wake_path(&mut self, now: Instant, id: PathId) {
        let Self { paths, contents, controller, config, .. } = self;
        let Some(path) = paths.edit(id) else { return };
        let mut trouble =
            judge(now, path, Evidence::Holes, contents, controller, config) != LossOutcome::Nothing;
        let mut asked = false;
        if path.send.timeout_deadline().is_some_and(|at| at <= now) {
            asked = judge(now, path, Evidence::Timeout, contents, controller, config) != LossOutcome::Nothing;
            trouble |= asked;
            if !self.on_timeout(now, id) {
                return;
            }
        }
        // Where data can go nowhere else, it is what asks whether the path lives (RFC 9002 section
        // 6.2.4).
        let other = asked && self.has_other(id);
        let under_way = self.paths.get(id).is_some_and(|path| path.send.in_flight > 0);
        // A small packet passes where large ones do not. It and data take turns, since data may be
        // what passes again.
        let by_turns = |path: &Path| path.send.mtu.is_suspected() && path.send.timeouts().is_multiple_of(2);
        let narrow = self.paths.get(id).is_some_and(by_turns);
        // What is under way still is not repeated, so it does not ask.
        let ping = asked && (other || under_way || narrow || !self.contents.has_any());
        let Self { paths, contents, scheduler, random, .. } = self;
        let Some(path) = paths.edit(id) else { return };
        if other {
            contents.recall(&mut path.outbox);
        }
        path.pending.ping |= ping;
        if path.probe_at.is_some_and(|at| at <= now) {
            path.probe_at = None;
            match (path.state, path.address) {
                (PathState::Choked, _) => {
                    path.pending.ping = true;
                    path.probe_at = Some(now + path.choke_interval(random.next()));
                }
                (_, AddressValidation::Unproven { .. }) => path.pending.challenge = true,
                _ => {}
            }
        }
        if path.paced && path.send.pacer.ready_at(path.send.pacer.burst()) <= now {
            path.paced = false;
            scheduler.make_ready(path);
        }
        if trouble {
            paths.judge(id);
            paths.judge_all();
            scheduler.consult();
            self.end_standstill(now);
        }
    }

    /// Nothing was acknowledged on a path for a whole timeout. Returns whether it lives on.
    fn on_timeout(&mut self, now: Instant, id: PathId) -> bool {
        let Self { paths, scheduler, .. } = self;
        let Some(path) = paths.edit(id) else { return false };
        if path.is_governed() && path.send.timeouts() >= SILENT_TIMEOUTS {
            scheduler.consult();
            self.pending_events.want(RelayEvent::Silence);
        }
        if path.send.is_as_good_as_gone() && self.has_other(id) {
            self.drop_path(now, id, PathEndReason::Held);
            return false;
        }
        let Self { paths, controller, .. } = self;
        let Some(path) = paths.edit(id) else { return false };
        match path.state {
            PathState::Probing
                if path.origin != PathOrigin::Return && path.send.timeouts() >= MAX_LOST_PROBES =>
            {
                self.drop_path(now, id, PathEndReason::Unanswered);
                return false;
            }
            PathState::Choked => {
                if path.probe.take().is_some() {
                    controller.on_probe(id, &ProbeResult { now, delay: None, rtt: None });
                }
            }
            PathState::Active => {}
            PathState::Probing | PathState::Available => {
                path.pending.ping |= path.address == AddressValidation::Valid
            }
        }
        self.paths.ways_changed();
        !self.drop_orphan(now, id)
    }

    /// Whether a path other than this is active and answers.
    pub(super) fn has_other(&self, id: PathId) -> bool {
        self.paths
            .iter()
            .any(|path| path.id() != id && path.state == PathState::Active && path.send.timeouts() == 0)
    }
}

/// Applies the controller's present allowance to a path.
fn refresh(
    now: Instant,
    path: &mut Path,
    controller: &mut dyn Controller,
    contents: &mut PacketContents,
    scheduler: &mut Scheduler,
    random: &mut Random,
) {
    if path.is_governed() {
        let size = path.send.mtu.current();
        if path.told_size != size {
            path.told_size = size;
            controller.on_packet_size(path.id(), size as u32);
        }
        path.set_allowance(now, controller.allowance(path.id()));
        match (path.state, path.allowance.choked) {
            (PathState::Active, true) => {
                path.state = PathState::Choked;
                contents.recall(&mut path.outbox);
                path.probe_at = Some(now + path.choke_interval(random.next()));
            }
            (PathState::Choked, false) => {
                path.state = PathState::Active;
                (path.probe_at, path.probe) = (None, None);
            }
            _ => {}
        }
    }
    // The search for the packet size costs packets: it waits until the path is used.
    if path.is_governed() && path.send.timeouts() == 0 && path.send.is_proven() {
        path.pending.mtu = path.pending.mtu.or_else(|| path.send.mtu.wanted(now));
    }
    if path.state == PathState::Active && path.has_room() && !path.paced {
        scheduler.make_ready(path);
    }
    scheduler.place(path);
}
