//! The life of paths: candidates are probed, what works becomes available, what the controller wants becomes active, what
//! it chokes is probed until it breathes, and what is of no use is dropped.

use super::path::{Address, Origin, Path, State};
use super::probing::Candidate;
use super::table::after;
use super::{Connection, Event, Phase, lost};
use crate::path::send::{ACK_DELAY, SendPath};
use crate::route::{Route, Source, Through, Via};
use crate::seal::connection_id;
use byway_control::{Allowance, Congested, Opened, ProbeResult, Trigger};
use byway_wire::relay::{Notice, Reason, ReturnHop, Verdict};
use byway_wire::{Duration, Instant, PathId};

/// Lost probes after which a candidate is unusable for now (mPath section 2.1: two consecutive attempts).
const PROBES: u32 = 2;
/// A choked path is probed this often, or every four RTTs if that is longer (readings, Harp 11).
const CHOKE_PROBE: Duration = Duration::from_millis(500);
/// With nothing heard for this long, ask; earlier if the connection would be given up soon.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Relays are preferred whose RTT is within this factor of the direct path's (Harp section III-G), in percent.
const PREFERRED_PERCENT: u32 = 150;
/// Pacing goes this much faster than window over RTT, in percent, so that the window and not the pacer is the limit.
const PACING_PERCENT: u64 = 125;

impl Connection {
    /// Opens the first path: the handshake went over it, and it may carry data at once.
    pub(crate) fn open_first(&mut self, now: Instant, route: Route, rtt: Option<Duration>) {
        self.candidates.push(Candidate::new(now, route.clone(), Some(self.paths.next_id())));
        let id = self.add_path(now, route, rtt, State::Available, Origin::Handshake);
        if let Some(path) = self.paths.get_mut(id) {
            path.pending.ping = true; // the responder must hear from us before it may speak
        }
        self.make_urgent(id);
        self.activate(now, id);
        self.consult(now);
        self.arm_whole(now);
    }

    /// A relay says why it does not forward. Returns whether it was about a path of ours.
    pub(crate) fn on_notice(&mut self, now: Instant, notice: &Notice) -> bool {
        let judged = self.paths.iter().find_map(|path| match &path.route.via {
            Via::Relay(hop) => hop.judge(notice, now).map(|verdict| (path.id(), verdict)),
            _ => None,
        });
        let Some((id, verdict)) = judged else { return false };
        self.raise(Event::Notice { path: id, reason: notice.reason, proven: verdict == Verdict::Proven });
        if verdict == Verdict::Proven
            && !matches!(notice.reason, Reason::Clock | Reason::OverRate | Reason::Busy)
        {
            self.drop_path(now, id, "its relay refuses", false);
        }
        true
    }

    pub(super) fn add_path(
        &mut self,
        now: Instant,
        route: Route,
        rtt: Option<Duration>,
        state: State,
        origin: Origin,
    ) -> PathId {
        let id = self.paths.next_id();
        let send = SendPath::new(id, now, rtt, self.max_datagram);
        let mut path = Path::new(send, route, state, origin, connection_id(&self.send_ids, id));
        if origin == Origin::Return {
            path.address = Address::Unproven { token: self.random.token(), credit: 0 };
        }
        self.paths.insert(id, path);
        id
    }

    /// Something sent on this path came through.
    pub(super) fn proven(&mut self, now: Instant, id: PathId) {
        let Some(path) = self.paths.get_mut(id) else { return };
        if path.state != State::Probing || path.address != Address::Valid {
            return;
        }
        path.state = State::Available;
        path.probe_at = None;
        if let Origin::Candidate(index) = path.origin
            && let Some(candidate) = self.candidates.get_mut(index)
        {
            candidate.failures = 0;
        }
        (self.ack_way_until, self.may_open) = (Instant::ZERO, true);
        self.consult(now);
        self.arm_path(id);
    }

    /// The controller takes the path.
    fn activate(&mut self, now: Instant, id: PathId) {
        let Some(path) = self.paths.get_mut(id) else { return };
        path.state = State::Active;
        path.told_size = path.send.mtu.current();
        let opened = Opened {
            now,
            proxied: path.route.is_proxied(),
            packet_size: path.told_size as u32,
            rtt: Some(path.send.rtt.smoothed()),
        };
        self.controller.open(id, &opened);
        self.raise(Event::PathUp(id));
        self.refresh(now, id);
        self.make_ready(id);
        self.tick_at = self.controller.tick(now);
        self.arm_whole(now);
    }

    /// Does what the controller wants done about the bundle.
    pub(super) fn consult(&mut self, now: Instant) {
        if self.phase != Phase::Open {
            return;
        }
        loop {
            let wants = self.controller.wants();
            if let Some(id) = wants.forget.first().copied() {
                self.drop_path(now, id, "its share of the work was too small", true);
            } else if let Some(id) = wants.drop.first().copied() {
                self.drop_path(now, id, "it timed out", false);
            } else if wants.open > 0
                && let Some(id) = self.best_available()
            {
                self.activate(now, id);
            } else {
                return;
            }
        }
    }

    /// The available path to open next: those near the direct path's RTT first, among them any.
    fn best_available(&mut self) -> Option<PathId> {
        if !self.may_open {
            return None;
        }
        let direct =
            self.paths.iter().find(|path| !path.route.is_proxied()).map(|path| path.send.rtt.smoothed());
        let limit = direct.map(|rtt| rtt * PREFERRED_PERCENT / 100);
        let near = |path: &Path| limit.is_none_or(|limit| path.send.rtt.smoothed() <= limit);
        let usable = |path: &&Path| path.state == State::Available && path.address == Address::Valid;
        let count = self.paths.iter().filter(usable).filter(|path| near(path)).count();
        if count > 0 {
            let chosen = self.random.below(count as u64) as usize;
            return self.paths.iter().filter(usable).filter(|path| near(path)).nth(chosen).map(Path::id);
        }
        let nearest =
            self.paths.iter().filter(usable).min_by_key(|path| path.send.rtt.smoothed()).map(Path::id);
        self.may_open = nearest.is_some();
        nearest
    }

    /// Gives a path up. Its data goes out again elsewhere; its name is never used again.
    pub(super) fn drop_path(&mut self, now: Instant, id: PathId, reason: &'static str, forget: bool) {
        let Self { paths, ready, out, incoming, farewells, datagrams, controller, .. } = self;
        if paths.get(id).is_some_and(|path| matches!(path.state, State::Active | State::Choked)) {
            controller.close(id);
        }
        let Some(mut path) = paths.remove(id) else {
            controller.close(id);
            return;
        };
        if path.ready {
            ready.retain(|waiting| *waiting != id);
        }
        datagrams.recall(&mut path.outbox);
        path.send.abandon(now, |carried| lost(out, incoming, farewells, datagrams, carried));
        let index = match path.origin {
            Origin::Candidate(index) => Some(index),
            Origin::Handshake => Some(0),
            Origin::Return => None,
        };
        if let Some(candidate) = index.and_then(|index| self.candidates.get_mut(index)) {
            candidate.on_dropped(now, path.send.is_proven(), forget);
        }
        self.routes += 1;
        for receiving in self.receive.iter_mut() {
            if receiving.way == Some(id) {
                receiving.way = None;
            }
        }
        self.farewells.due.push_back(id);
        self.ack_way_until = Instant::ZERO;
        self.raise(Event::PathDown { path: id, reason });
        self.arm_whole(now);
    }

    /// Gives a way back up by which no path of the peer's comes any more, once it is silent. Returns whether it did.
    pub(super) fn drop_orphan(&mut self, now: Instant, id: PathId) -> bool {
        let Some(path) = self.paths.get(id) else { return false };
        let silent = path.send.timeouts() >= PROBES || path.address != Address::Valid;
        if path.origin != Origin::Return
            || !silent
            || self.receive.iter().any(|receiving| receiving.way == Some(id))
        {
            return false;
        }
        self.drop_path(now, id, "no path of the peer's comes by it any more", false);
        true
    }

    /// Takes over what the controller allows a path now.
    pub(super) fn refresh(&mut self, now: Instant, id: PathId) {
        let Some(path) = self.paths.get_mut(id) else { return };
        if !matches!(path.state, State::Active | State::Choked) {
            if path.send.is_proven() {
                path.pending.mtu = path.pending.mtu.or_else(|| path.send.mtu.wanted(now));
            }
            self.make_urgent(id);
            self.arm_path(id);
            return;
        }
        let size = path.send.mtu.current();
        if path.told_size != size {
            path.told_size = size;
            self.controller.on_packet_size(id, size as u32);
        }
        let allowance = self.controller.allowance(id);
        path.allowance = allowance;
        let packet = size as u64;
        let rate = allowance.rate.unwrap_or_else(|| {
            let rtt = path.send.rtt.smoothed().as_nanos().max(1_000);
            let rate = u128::from(allowance.window.max(packet)) * 1_000_000_000 / rtt;
            u64::try_from(rate * u128::from(PACING_PERCENT) / 100).unwrap_or(u64::MAX)
        });
        path.send.pacer.set_rate(now, rate, packet);
        match (path.state, allowance.choked) {
            (State::Active, true) => {
                path.state = State::Choked;
                self.datagrams.recall(&mut path.outbox);
                path.probe_at = Some(now + path.choke_interval(self.random.next()));
            }
            (State::Choked, false) => {
                path.state = State::Active;
                (path.probe_at, path.probe) = (None, None);
            }
            _ => {}
        }
        if path.send.timeouts() == 0 && path.send.is_proven() {
            path.pending.mtu = path.pending.mtu.or_else(|| path.send.mtu.wanted(now));
        }
        if path.state == State::Active && path.has_room() && !path.paced {
            self.make_ready(id);
        }
        self.make_urgent(id);
        self.arm_path(id);
    }

    /// The same for all paths: one's trouble may be another's gain. `changed` is whose trouble it is. Mostly nobody gains, and of
    /// hundreds of paths each is looked at for that alone.
    pub(super) fn refresh_all(&mut self, now: Instant, changed: Option<PathId>) {
        let mut next = PathId(0);
        while let Some(id) = self.paths.from(next) {
            next = after(id);
            let Self { paths, controller, .. } = self;
            let Some(path) = paths.get_mut(id) else { continue };
            if changed == Some(id) || !path.is_fresh(now, || controller.allowance(id)) {
                self.refresh(now, id);
            }
        }
    }

    pub(super) fn wake_path(&mut self, now: Instant, id: PathId) {
        let Self { paths, out, incoming, farewells, datagrams, controller, config, .. } = self;
        let Some(path) = paths.get_mut(id) else { return };
        let (mut trouble, mut asked) = (false, false);
        if let Some(losses) =
            path.send.detect_losses(now, |carried| lost(out, incoming, farewells, datagrams, carried))
            && path.state == State::Active
        {
            if !config.owner_judges_losses {
                let losses = super::input::congested(now, Trigger::Loss, &losses);
                controller.on_congested(id, &losses);
            }
            trouble = true;
        }
        if path.send.timeout_deadline().is_some_and(|at| at <= now) {
            let losses =
                path.send.on_timeout(now, |carried| lost(out, incoming, farewells, datagrams, carried));
            match path.state {
                State::Probing if path.origin != Origin::Return && path.send.timeouts() >= PROBES => {
                    self.drop_path(now, id, "two probes in a row were lost", false);
                    return;
                }
                State::Choked => {
                    if path.probe.take().is_some() {
                        controller.on_probe(id, &ProbeResult { now, delay: None, rtt: None });
                    }
                }
                State::Active => {
                    let empty = Congested {
                        trigger: Trigger::Timeout,
                        first_sent_at: now,
                        sent_at: now,
                        now,
                        bytes: 0,
                        in_flight: 0,
                    };
                    let congested = losses
                        .map_or(empty, |losses| super::input::congested(now, Trigger::Timeout, &losses));
                    controller.on_congested(id, &congested);
                    asked = true;
                    trouble = true;
                }
                State::Probing | State::Available => path.pending.ping |= path.address == Address::Valid,
            }
            self.ack_way_until = Instant::ZERO;
            if self.drop_orphan(now, id) {
                return;
            }
        }
        // Where data can go nowhere else, it is what asks whether the path lives (RFC 9002 section 6.2.4).
        let other = asked && self.has_other(id);
        if other {
            self.recall(id);
        }
        let wanted = self.out.wants_to_send() || self.datagrams.waiting > 0;
        let ping = asked && (other || !wanted);
        let Some(path) = self.paths.get_mut(id) else { return };
        path.pending.ping |= ping;
        if path.probe_at.is_some_and(|at| at <= now) {
            path.probe_at = None;
            match (path.state, path.address) {
                (State::Choked, _) => {
                    path.pending.ping = true;
                    path.probe_at = Some(now + path.choke_interval(self.random.next()));
                }
                (_, Address::Unproven { .. }) => path.pending.challenge = true,
                _ => {}
            }
        }
        if path.paced && path.send.pacer.ready_at(path.send.pacer.burst()) <= now {
            path.paced = false;
            self.make_ready(id);
        }
        if trouble {
            self.refresh_all(now, Some(id));
            self.consult(now);
        }
        self.make_urgent(id);
        self.arm_path(id);
    }

    pub(super) fn keep_alive_at(&self) -> Instant {
        self.last_heard.max(self.last_keep_alive) + KEEP_ALIVE.min(self.config.idle_timeout / 4)
    }

    pub(super) fn keep_alive(&mut self, now: Instant) {
        if self.keep_alive_at() <= now {
            self.last_keep_alive = now;
            let mut next = PathId(0);
            while let Some(id) = self.paths.from(next) {
                next = after(id);
                if let Some(path) = self.paths.get_mut(id) {
                    path.pending.ping = true;
                }
                self.make_urgent(id);
            }
        }
    }

    /// A datagram to this path could not be sent.
    pub(crate) fn on_send_error(&mut self, now: Instant, error: &byway_wire::SendError) {
        let mut next = PathId(0);
        while let Some(id) = self.paths.from(next) {
            next = after(id);
            let Some(path) = self.paths.get_mut(id) else { continue };
            if path.route.local == error.local && path.route.remote == error.remote {
                if error.kind == byway_wire::SendErrorKind::TooLarge {
                    path.send.mtu.refused(now, error.size);
                }
                self.refresh(now, id);
            }
        }
    }
}

impl Path {
    /// Whether [`Connection::refresh`] would find all as it was when it was last called for this path, and all that is to be done
    /// under way.
    fn is_fresh(&mut self, now: Instant, allowance: impl FnOnce() -> Allowance) -> bool {
        let unasked = !self.urgent && self.pending.any();
        if unasked || self.send.mtu.wanted(now).is_some() {
            return false;
        }
        if matches!(self.state, State::Active | State::Choked) {
            if self.told_size != self.send.mtu.current() || self.allowance != allowance() {
                return false;
            }
            if self.state == State::Active && !self.ready && !self.paced && self.has_room() {
                return false;
            }
            // As if its rate were set once more: what is rounded off must not depend on who looked.
            self.send.pacer.fill(now);
        }
        debug_assert!(self.armed.covers(self.deadline()), "what is as it was is waited for");
        true
    }

    /// Whether the window has room for a full packet.
    const fn has_room(&self) -> bool {
        let (in_flight, packet) = (self.send.in_flight, self.send.mtu.current() as u64);
        in_flight == 0 || in_flight + packet <= self.allowance.window
    }

    /// A relay's tickets back expire: takes the one of the newest packet that proved to be the peer's.
    /// Returns whether it is another than it was.
    pub(super) fn refresh_ticket(&mut self, source: &Source) -> bool {
        if let (Via::Return(hop), Through::Delivered(delivered)) = (&mut self.route.via, &source.through)
            && source.remote == hop.relay()
        {
            let newest = ReturnHop::new(source.remote, delivered);
            return core::mem::replace(&mut **hop, newest) != newest;
        }
        false
    }

    fn choke_interval(&self, random: u64) -> Duration {
        let interval = (self.send.rtt.smoothed() * 4).max(CHOKE_PROBE);
        // ±10 %, so that probes of many paths do not meet.
        interval * 9 / 10 + interval / 5 * (random % 1024) as u32 / 1024
    }

    /// When a challenge without an answer is repeated.
    pub(super) fn challenge_interval(&self) -> Duration {
        self.send.rtt.probe_timeout(ACK_DELAY).max(Duration::from_millis(100))
    }
}
