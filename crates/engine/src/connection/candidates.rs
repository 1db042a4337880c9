//! Candidates: routes and relays that may become paths (mPath, section 2.1). This module decides
//! when each candidate is tried, and remembers the results. At most `MAX_KEPT_RELAYS` relays that
//! answered are kept ready without being used.

use super::path::PathOrigin;
use super::relay_rtt_limit::{MinRtt, limit};
use super::relay_states::{PathEndReason, RelayAttempt, RelayId, RelayState};
use crate::config::Tau;
use crate::random::Random;
use crate::route::Route;
use alloc::vec::Vec;
use byway_wire::{Duration, Instant, Local};

/// The most relays that are tried or kept for later, in addition to those in use.
const MAX_SPARE_RELAYS: usize = 16;
/// The most spare relays that have answered and are kept.
const MAX_KEPT_RELAYS: usize = 6;
/// Time after which a failed candidate is tried again, unless it is given up. Each failure doubles
/// the time, up to `MAX_RETRY_DELAY`.
const RETRY_DELAY: Duration = Duration::from_secs(10);
/// Time after which a candidate that has worked is tried again after its first failure. It is
/// sooner than `RETRY_DELAY` because an outage may be short.
const WORKED_RETRY_DELAY: Duration = Duration::from_secs(2);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(160);
/// The longest wait before a failed direct route is tried again. While a path over TCP replaces
/// failed UDP routes, it is also the longest wait for failed relays. The wait is short, because UDP
/// may work again at any time.
const MAX_DIRECT_RETRY_DELAY: Duration = Duration::from_secs(10);
/// The most candidates for which a debug build checks each of them at every change.
const MAX_AUDITED_CANDIDATES: usize = 32;
/// Time for which a relay rests that led to the peer until a direct path was opened. By then the
/// direct path is at its full rate, and it shows whether the relay adds to it.
const OPENED_REST: Duration = Duration::from_secs(30);
/// The most addresses that are tried only because the peer's packets came from them. An attacker
/// who forwards copies of packets can forge such addresses.
const MAX_SEEN_ADDRESSES: usize = 8;

/// The results of a path at its end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathHistory {
    /// Whether a packet on the path was ever acknowledged.
    pub worked: bool,
    /// Bytes per second that the path carried while it was in use; zero if it never was.
    pub goodput: u64,
    /// Whether the peer was heard on any path since this one began.
    pub heard: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CandidateState {
    /// The candidate is tried at this time or later.
    Waits(Instant),
    /// The endpoint is to greet the relay, and to offer it to the peer.
    Asked,
    /// The candidate is a path that nothing came back on yet.
    Probing,
    /// The candidate is a path that works and is not used.
    Kept,
    /// The candidate is a path in use.
    InUse,
    /// The candidate is not tried again.
    Over,
}

/// A route or relay that may become a path.
#[derive(Clone, Debug)]
struct Candidate {
    local: Local,
    relay: Option<RelayId>,
    /// The candidate's route. A relay has one only while the endpoint keeps it greeted.
    route: Option<Route>,
    phase: CandidateState,
    /// RTT of the candidate's latest probe, without the queueing delay that packets of every path
    /// had then.
    rtt: Option<Duration>,
    failures: u32,
    silences: u32,
    worked: bool,
    /// Whether the candidate is known only because the peer was seen there.
    is_seen: bool,
    /// Whether the peer was seen there, or opened the way there.
    is_opened: bool,
    /// Whether the candidate was ever a path in use. `goodput`: its best rate in bytes per second.
    used: bool,
    goodput: u64,
    end: Option<PathEndReason>,
}

impl Candidate {
    const fn new(now: Instant, local: Local, relay: Option<RelayId>, route: Option<Route>) -> Self {
        Self {
            local,
            relay,
            route,
            phase: CandidateState::Waits(now),
            rtt: None,
            failures: 0,
            silences: 0,
            worked: false,
            is_seen: false,
            is_opened: false,
            used: false,
            goodput: 0,
            end: None,
        }
    }

    const fn waits_until(&self) -> Option<Instant> {
        if let CandidateState::Waits(from) = self.phase { Some(from) } else { None }
    }

    /// Whether the candidate is to be probed when its turn comes. Direct routes always are.
    const fn is_to_probe(&self) -> bool {
        matches!(self.phase, CandidateState::Waits(_)) && (self.relay.is_none() || self.rtt.is_none())
    }

    /// Whether the candidate is a relay that answered a probe and has no path now.
    const fn is_at_rest(&self) -> bool {
        matches!(self.phase, CandidateState::Waits(_)) && self.relay.is_some() && self.rtt.is_some()
    }

    const fn is_spare(&self) -> bool {
        matches!(self.phase, CandidateState::Asked | CandidateState::Probing | CandidateState::Kept)
    }

    /// Whether the candidate is a relay that may become useful: untried, or answered in time and
    /// not yet used.
    fn is_choice(&self, limit: Option<Duration>) -> bool {
        match self.phase {
            CandidateState::Waits(_) if self.rtt.is_none() => self.end.is_none(),
            CandidateState::Waits(_) | CandidateState::Kept => !self.used && in_time(self, limit),
            CandidateState::Asked | CandidateState::Probing => !self.used,
            CandidateState::InUse | CandidateState::Over => false,
        }
    }

    /// Whether the candidate is a relay of which no probe has brought a result yet.
    fn is_unprobed(&self) -> bool {
        self.relay.is_some()
            && self.rtt.is_none()
            && self.end.is_none()
            && !matches!(self.phase, CandidateState::InUse | CandidateState::Over)
    }

    fn rest(&mut self, now: Instant, first: Duration, stood_in: bool) {
        let most = if self.relay.is_some() && !stood_in { MAX_RETRY_DELAY } else { MAX_DIRECT_RETRY_DELAY };
        let wait = first.saturating_mul(1 << self.failures.min(4)).min(most.max(first));
        self.failures = self.failures.saturating_add(1);
        self.phase = CandidateState::Waits(now + wait);
    }
}

/// The next step for a candidate.
#[derive(Clone, Debug)]
pub(super) enum CandidateAction {
    /// Probe a new path on this route.
    Probe(Route, PathOrigin),
    /// Ask the endpoint to greet this relay.
    Greet(RelayId),
}

/// The preference among paths that work and are not in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// The path's probe came back late.
    Reserve,
    /// The path was in use before, and carried this many bytes per second at best.
    Used(u64),
    /// The path was never in use.
    Fresh,
}

/// The routes and relays that may become paths. The first is the one that the handshake went over.
#[derive(Debug)]
pub(super) struct Candidates {
    all: Vec<Candidate>,
    /// Time between two that are tried, and when the next may be.
    interval: Duration,
    next_at: Instant,
    /// The limit within which a relay must answer: the rule, and the direct path's RTT.
    rule: Tau,
    direct: MinRtt,
    /// Paths that the controller wishes for while none is available.
    wanted: usize,
    /// When a candidate may be tried next, as of the last change. `None`: none waits.
    due: Option<Instant>,
    /// Whether the owner was asked for more relays since the last new one was added.
    asked: bool,
    /// Whether all candidates may be used up, because they changed since the last check.
    may_be_used_up: bool,
    /// Whether no path in use answers.
    nothing_answers: bool,
    /// Whether a relay has once made room for a direct path that was opened. A direct path that
    /// comes and goes makes no relay rest again and again.
    has_made_room: bool,
}

impl Candidates {
    pub const fn new(now: Instant, interval: Duration, rule: Tau) -> Self {
        Self {
            all: Vec::new(),
            interval,
            next_at: now,
            rule,
            direct: MinRtt::NONE,
            wanted: 0,
            due: None,
            asked: false,
            may_be_used_up: true,
            nothing_answers: false,
            has_made_room: false,
        }
    }

    /// Notes the route of the handshake, which is already a path in use.
    pub fn begin(&mut self, now: Instant, route: Route, relay: Option<RelayId>) {
        let mut first = Candidate::new(now, route.local, relay, Some(route));
        (first.phase, first.used, first.worked) = (CandidateState::InUse, true, true);
        self.all.push(first);
    }

    /// Adds a direct route. A known route that waits for its next try becomes due now. The route of
    /// a new TCP connection replaces the route of a closed one to the same address, so the list
    /// does not grow.
    pub fn add(&mut self, now: Instant, route: Route) {
        let replaces = |known: &&mut Candidate| {
            let gone =
                known.phase == CandidateState::Waits(Instant::FAR_FUTURE) && known.local.is_connection();
            gone && known.route.as_ref().is_some_and(|it| it.remote == route.remote)
        };
        if route.local.is_connection()
            && let Some(known) = self.all.iter_mut().find(replaces)
        {
            *known = Candidate::new(now, route.local, None, Some(route));
            return self.changed();
        }
        match self.all.iter_mut().find(|known| known.route.as_ref() == Some(&route)) {
            Some(known) => {
                if let CandidateState::Waits(from) = known.phase {
                    known.phase = CandidateState::Waits(from.min(now));
                }
            }
            None => self.all.push(Candidate::new(now, route.local, None, Some(route))),
        }
        self.changed();
    }

    /// Adds a direct route to where a packet of the peer came from: the peer may have moved there.
    /// It takes the place of the first one that does not answer, if there are too many.
    pub fn add_seen(&mut self, now: Instant, route: Route) {
        let is_full = self.all.iter().filter(|it| it.is_seen).count() >= MAX_SEEN_ADDRESSES;
        let is_known = self.all.iter().any(|known| known.route.as_ref() == Some(&route));
        let rests = |it: &&mut Candidate| it.is_seen && matches!(it.phase, CandidateState::Waits(_));
        if !is_full || is_known {
            self.add(now, route.clone());
            if let Some(it) = self.all.iter_mut().find(|it| it.route.as_ref() == Some(&route)) {
                (it.is_seen, it.is_opened) = (it.is_seen || !is_known, true);
            }
        } else if let Some(place) = self.all.iter_mut().find(rests) {
            let new = Candidate::new(now, route.local, None, Some(route));
            *place = Candidate { is_seen: true, is_opened: true, ..new };
            self.changed();
        }
    }

    /// Adds a relay. A known one gets back its uplink, or gets a new relay word.
    pub fn add_relay(&mut self, now: Instant, relay: RelayId, local: Local) {
        match self.all.iter_mut().find(|known| known.relay == Some(relay)) {
            Some(known) => {
                let refused = known.phase == CandidateState::Over
                    && matches!(known.end, Some(PathEndReason::Refused(_)));
                if refused
                    || known.phase == CandidateState::Waits(Instant::FAR_FUTURE)
                    || known.end == Some(PathEndReason::Unanswered)
                {
                    (known.phase, known.failures) = (CandidateState::Waits(now), 0);
                }
            }
            None => {
                self.all.push(Candidate::new(now, local, Some(relay), None));
                self.asked = false;
            }
        }
        self.changed();
    }

    /// Sets the route to a relay. Returns the origin of a path to probe, if the candidate waited
    /// for the route.
    pub fn on_route(&mut self, relay: RelayId, route: &Route) -> Option<PathOrigin> {
        let (index, known) = self.find(relay)?;
        known.route = Some(route.clone());
        let asked = known.phase == CandidateState::Asked;
        if asked {
            known.phase = CandidateState::Probing;
            self.changed();
        }
        asked.then_some(if index == 0 { PathOrigin::Handshake } else { PathOrigin::Candidate(index) })
    }

    /// Notes that the endpoint found no route through `relay`. `heard`: whether anything came from
    /// the peer since the relay was greeted. If nothing came, this host was perhaps offline, and
    /// the relay is tried again. Returns whether the relay is given up.
    pub fn on_no_route(&mut self, now: Instant, relay: RelayId, heard: bool) -> bool {
        let stood_in = self.is_stood_in();
        let Some((_, known)) = self.find(relay) else { return false };
        known.route = None;
        let never_worked = heard && !known.worked;
        if never_worked {
            known.end = Some(PathEndReason::Unanswered);
        }
        let over = never_worked && !stood_in;
        if over {
            known.phase = CandidateState::Over;
        } else {
            known.rest(now, WORKED_RETRY_DELAY, stood_in);
        }
        self.changed();
        over
    }

    /// Notes the direct path's present least RTT.
    pub fn note_direct(&mut self, now: Instant, rtt: Duration) {
        self.direct.note(now, rtt);
    }

    /// When a candidate may be tried next. `None`: none waits.
    pub fn due_at(&self) -> Option<Instant> {
        debug_assert!(
            self.all.len() > MAX_AUDITED_CANDIDATES || self.due == self.first_due(),
            "what is due is known: {self:?}"
        );
        self.due
    }

    /// Whether a candidate is due to be tried.
    pub fn is_time(&self, now: Instant) -> bool {
        self.due.is_some_and(|at| at <= now)
    }

    /// Returns the next candidate to try. Untried direct routes come first. A relay that answered
    /// before comes second, if the congestion controller wants more paths. Untried relays come
    /// last.
    pub fn next(&mut self, now: Instant, random: &mut Random) -> Option<CandidateAction> {
        self.next_at = now + self.interval;
        let untried = |it: &Candidate| it.is_to_probe() && it.waits_until().is_some_and(|from| from <= now);
        let direct = self.any(random, |it| it.relay.is_none() && untried(it));
        let chosen = match direct {
            None if self.spare() < MAX_SPARE_RELAYS => {
                self.chosen_for_wish(now, random).or_else(|| self.any(random, untried))
            }
            direct => direct,
        };
        let next = chosen.and_then(|index| {
            let origin = if index == 0 { PathOrigin::Handshake } else { PathOrigin::Candidate(index) };
            let chosen = self.all.get_mut(index)?;
            let (phase, next) = match (chosen.relay, &chosen.route) {
                (Some(relay), _) => (CandidateState::Asked, CandidateAction::Greet(relay)),
                (None, Some(route)) => {
                    (CandidateState::Probing, CandidateAction::Probe(route.clone(), origin))
                }
                (None, None) => return None,
            };
            chosen.phase = phase;
            Some(next)
        });
        self.changed();
        next
    }

    /// Chooses a relay to open a path through, and returns its index. Only relays that answered are
    /// considered. Relays whose RTT is short enough come first: never-used ones at random, then
    /// used ones by goodput. Otherwise the relay with the lowest RTT is chosen.
    fn chosen_for_wish(&self, now: Instant, random: &mut Random) -> Option<usize> {
        let under_way = |it: &&Candidate| {
            matches!(it.phase, CandidateState::Asked | CandidateState::Probing) && it.rtt.is_some()
        };
        if self.wanted <= self.all.iter().filter(under_way).count() {
            return None;
        }
        let limit = self.limit(now);
        let rests = |it: &Candidate| it.is_at_rest() && it.waits_until().is_some_and(|from| from <= now);
        let fresh = self.any(random, |it| rests(it) && !it.used && in_time(it, limit));
        fresh
            .or_else(|| {
                let used = self.all.iter().enumerate().filter(|(_, it)| rests(it) && in_time(it, limit));
                used.max_by_key(|(index, it)| (it.goodput, core::cmp::Reverse(*index)))
                    .map(|(index, _)| index)
            })
            .or_else(|| {
                let late = self.all.iter().enumerate().filter(|(_, it)| rests(it));
                late.min_by_key(|(_, it)| it.rtt).map(|(index, _)| index).filter(|_| self.needs_reserve(now))
            })
    }

    /// Returns a random candidate among those that `will_do` accepts.
    fn any(&self, random: &mut Random, will_do: impl Fn(&Candidate) -> bool) -> Option<usize> {
        let count = self.all.iter().filter(|it| will_do(it)).count();
        let chosen = if count == 0 { return None } else { random.below(count as u64) as usize };
        self.all.iter().enumerate().filter(|(_, it)| will_do(it)).nth(chosen).map(|(index, _)| index)
    }

    /// Returns the RTT within which a relay must answer. RTT₀ is the direct path's, or else the
    /// fastest relay's.
    fn limit(&self, now: Instant) -> Option<Duration> {
        let fastest = || self.all.iter().filter(|it| it.relay.is_some()).filter_map(|it| it.rtt).min();
        self.direct.get(now).or_else(fastest).map(|rtt| limit(self.rule, rtt))
    }

    /// Whether late relays are used, because all relays were tried and none that answers in time is
    /// left. Beside a direct path, mPath's literal τ never uses them: "only paths with RTTs less
    /// than τ seconds are used as proxies" (section 2.2).
    fn needs_reserve(&self, now: Instant) -> bool {
        if matches!(self.rule, Tau::Direct(_)) && self.direct.get(now).is_some() {
            return false;
        }
        let limit = self.limit(now);
        !self.all.iter().filter(|it| it.relay.is_some()).any(|it| match it.phase {
            CandidateState::Over => false,
            CandidateState::Waits(from) if it.rtt.is_some() => from <= now && in_time(it, limit),
            CandidateState::Waits(from) => from <= now,
            CandidateState::Asked | CandidateState::Probing => true,
            CandidateState::Kept => in_time(it, limit),
            CandidateState::InUse => !self.nothing_answers && in_time(it, limit),
        })
    }

    /// Notes that a candidate's path works, with this RTT. Returns whether the path is kept.
    pub fn on_proven(&mut self, now: Instant, origin: PathOrigin, rtt: Duration) -> bool {
        let limit = self.limit(now);
        let kept =
            self.all.iter().filter(|it| it.phase == CandidateState::Kept && it.relay.is_some()).count();
        let wanted = self.wanted > 0;
        let Some(it) = self.of(origin) else { return true };
        let (relay, local, came_back) = (it.relay, it.local, it.failures > 0);
        (it.phase, it.rtt, it.worked, it.failures, it.end) = (CandidateState::Kept, Some(rtt), true, 0, None);
        it.silences = 0;
        let timely = in_time(it, limit);
        let keep =
            relay.is_none() || timely && (wanted || kept < MAX_KEPT_RELAYS) || kept < MAX_KEPT_RELAYS / 2;
        if relay.is_none() && came_back {
            self.revive(now, local);
        }
        self.changed();
        keep
    }

    /// Whether the relay that led to the peer is to make room for this candidate, which was opened.
    pub fn makes_room_for(&self, origin: PathOrigin) -> bool {
        !self.has_made_room && self.is_opened(origin)
    }

    /// Whether a candidate is an address at which the peer was seen, or for which it opened its
    /// NAT.
    pub fn is_opened(&self, origin: PathOrigin) -> bool {
        index_of(origin).and_then(|index| self.all.get(index)).is_some_and(|it| it.is_opened)
    }

    /// Notes that a candidate's path is in use.
    pub fn on_used(&mut self, origin: PathOrigin) {
        if let Some(it) = self.of(origin) {
            (it.phase, it.used) = (CandidateState::InUse, true);
            self.changed();
        }
    }

    /// Notes that a candidate's path works and is no longer in use.
    pub fn on_resting(&mut self, origin: PathOrigin) {
        if let Some(it) = self.of(origin) {
            it.phase = CandidateState::Kept;
            self.changed();
        }
    }

    /// The path that one became is gone. The relay that the endpoint need not know for now.
    pub fn on_dropped(
        &mut self,
        now: Instant,
        origin: PathOrigin,
        end: PathEndReason,
        lived: PathHistory,
    ) -> Option<RelayId> {
        let stood_in = self.is_stood_in();
        self.has_made_room |= end == PathEndReason::Opened;
        let it = self.of(origin)?;
        it.worked |= lived.worked;
        it.goodput = it.goodput.max(lived.goodput);
        it.end = Some(end);
        it.silences = it
            .silences
            .saturating_add(u32::from(matches!(end, PathEndReason::Unanswered | PathEndReason::GivenUp)));
        match end {
            PathEndReason::LocalGone | PathEndReason::Held | PathEndReason::Rested => {
                it.phase = CandidateState::Waits(Instant::FAR_FUTURE)
            }
            PathEndReason::CarriedLittle => it.phase = CandidateState::Over,
            PathEndReason::Shares => it.rest(now, RETRY_DELAY, false),
            PathEndReason::Opened => it.phase = CandidateState::Waits(now + OPENED_REST),
            PathEndReason::NotNeeded | PathEndReason::Orphan => it.phase = CandidateState::Waits(now),
            PathEndReason::Refused(_) if it.relay.is_some() && it.failures > 0 => {
                it.phase = CandidateState::Over
            }
            PathEndReason::Unanswered if it.relay.is_some() && !it.worked && lived.heard && !stood_in => {
                it.phase = CandidateState::Over;
            }
            PathEndReason::Refused(_) | PathEndReason::Unanswered | PathEndReason::GivenUp => {
                it.rest(now, if it.worked { WORKED_RETRY_DELAY } else { RETRY_DELAY }, stood_in);
            }
        }
        if it.relay.is_some() {
            it.route = None;
        }
        let relay = it.relay;
        self.changed();
        relay
    }

    /// Whether a path over TCP is in use: UDP that does not answer may be back at any time.
    fn is_stood_in(&self) -> bool {
        self.all.iter().any(|it| it.phase == CandidateState::InUse && it.local.is_connection())
    }

    /// Handles the loss of a local socket: its candidates wait until it is back. Returns relays
    /// that the endpoint may forget for now.
    pub fn local_down(&mut self, local: Local) -> Vec<RelayId> {
        let mut asked = Vec::new();
        for gone in self.all.iter_mut().filter(|it| it.local == local && it.phase != CandidateState::Over) {
            asked.extend(gone.relay.filter(|_| gone.phase == CandidateState::Asked));
            gone.phase = CandidateState::Waits(Instant::FAR_FUTURE);
        }
        self.changed();
        asked
    }

    /// An uplink leads somewhere again: relays that did not answer by it are tried once more.
    fn revive(&mut self, now: Instant, local: Local) {
        let silent = |it: &&mut Candidate| it.local == local && it.end == Some(PathEndReason::Unanswered);
        for it in self.all.iter_mut().filter(silent).filter(|it| it.phase == CandidateState::Over) {
            (it.phase, it.failures) = (CandidateState::Waits(now), 0);
        }
    }

    /// Takes in whether any path in use answers. If none does, the network may have changed. Then
    /// relays are tried again that were given up for silence, or for carrying too little. None
    /// rests for long, and relays that answer late are used, too.
    pub fn note_answers(&mut self, now: Instant, any_answers: bool) {
        self.nothing_answers = !any_answers;
        if any_answers {
            return;
        }
        let latest = now + MAX_DIRECT_RETRY_DELAY;
        let mut any = false;
        for it in self.all.iter_mut().filter(|it| it.relay.is_some()) {
            match (it.phase, it.end) {
                (CandidateState::Over, Some(PathEndReason::CarriedLittle | PathEndReason::Unanswered)) => {
                    it.rest(now, WORKED_RETRY_DELAY, true)
                }
                (CandidateState::Waits(from), Some(PathEndReason::Opened)) if from > now => {
                    (it.phase, it.end) = (CandidateState::Waits(now), None);
                }
                (CandidateState::Waits(from), _) if from > latest && from < Instant::FAR_FUTURE => {
                    it.phase = CandidateState::Waits(latest);
                }
                _ => continue,
            }
            any = true;
        }
        if any {
            self.changed();
        }
    }

    /// The preference of a path that works and is not in use.
    pub fn rank(&self, now: Instant, origin: PathOrigin) -> Rank {
        let Some(it) = index_of(origin).and_then(|index| self.all.get(index)) else { return Rank::Fresh };
        match it.relay {
            Some(_) if !in_time(it, self.limit(now)) => Rank::Reserve,
            Some(_) if it.used => Rank::Used(it.goodput),
            _ => Rank::Fresh,
        }
    }

    /// Whether a path of this rank may be used now.
    pub fn allows(&self, now: Instant, rank: Rank) -> bool {
        rank != Rank::Reserve || self.needs_reserve(now)
    }

    /// The controller wishes for `paths` more paths than are available. Whether that is another
    /// wish than before.
    pub fn wish(&mut self, paths: usize) -> bool {
        let changed = self.wanted != paths;
        if changed {
            self.wanted = paths;
            self.may_be_used_up = true;
            self.find_due();
        }
        changed
    }

    /// Whether to ask the application for more relays: the controller wants more paths, and no
    /// known relay can become one (`is_choice`). With `once_probed` it is as soon as every known
    /// relay has been probed, wanted or not (mPath, section 2.1). Once this returned true, it
    /// returns false until a new relay is added.
    pub fn is_used_up(&mut self, now: Instant, once_probed: bool) -> bool {
        let is_pointless = self.wanted == 0 && !once_probed;
        if self.asked || is_pointless || !core::mem::take(&mut self.may_be_used_up) {
            return false;
        }
        let limit = self.limit(now);
        let mut relays = self.all.iter().filter(|it| it.relay.is_some()).peekable();
        let is_left = |it: &Candidate| if once_probed { it.is_unprobed() } else { it.is_choice(limit) };
        self.asked = relays.peek().is_some() && !relays.any(is_left);
        self.asked
    }

    /// Returns the state of each relay.
    pub fn relays(&self, now: Instant) -> impl Iterator<Item = RelayAttempt> + '_ {
        let limit = self.limit(now);
        self.all.iter().filter_map(move |it| {
            let standing = match (it.phase, it.end) {
                (CandidateState::InUse, _) => RelayState::InUse,
                (CandidateState::Asked | CandidateState::Probing, _) => RelayState::Trying,
                (CandidateState::Over, Some(PathEndReason::CarriedLittle)) => RelayState::CarriedLittle,
                (CandidateState::Over, _) => RelayState::Unusable,
                (_, Some(PathEndReason::Shares)) => RelayState::Shares,
                _ if it.rtt.is_none() => RelayState::Untried,
                _ if in_time(it, limit) => RelayState::Available,
                _ => RelayState::Reserve,
            };
            Some(RelayAttempt {
                relay: it.relay?,
                standing,
                rtt: it.rtt,
                in_time: it.rtt.is_some() && in_time(it, limit),
                goodput: it.goodput,
                silences: it.silences,
            })
        })
    }

    fn find(&mut self, relay: RelayId) -> Option<(usize, &mut Candidate)> {
        self.all.iter_mut().enumerate().find(|(_, it)| it.relay == Some(relay))
    }

    fn of(&mut self, origin: PathOrigin) -> Option<&mut Candidate> {
        index_of(origin).and_then(|index| self.all.get_mut(index))
    }

    /// Returns the number of relays that are tried or kept for later.
    fn spare(&self) -> usize {
        self.all.iter().filter(|it| it.is_spare() && it.relay.is_some()).count()
    }

    fn changed(&mut self) {
        self.may_be_used_up = true;
        self.find_due();
    }

    fn find_due(&mut self) {
        self.due = self.first_due();
    }

    fn first_due(&self) -> Option<Instant> {
        let spare = self.spare();
        let will_do = |it: &&Candidate| {
            it.is_to_probe() && (it.relay.is_none() || spare < MAX_SPARE_RELAYS)
                || self.wanted > 0 && it.is_at_rest() && spare < MAX_SPARE_RELAYS
        };
        let first = self.all.iter().filter(will_do).filter_map(Candidate::waits_until).min();
        first.filter(|at| *at != Instant::FAR_FUTURE).map(|at| at.max(self.next_at))
    }
}

/// Whether a relay answered within the limit.
fn in_time(candidate: &Candidate, limit: Option<Duration>) -> bool {
    match (candidate.rtt, limit) {
        (Some(rtt), Some(limit)) => candidate.relay.is_none() || rtt <= limit,
        _ => true,
    }
}

const fn index_of(origin: PathOrigin) -> Option<usize> {
    match origin {
        PathOrigin::Candidate(index) => Some(index),
        PathOrigin::Handshake => Some(0),
        PathOrigin::Return => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGO: PathHistory = PathHistory { worked: false, goodput: 0, heard: true };

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn route(port: u16) -> Route {
        Route::direct(Local(0), ([192, 0, 2, 1], port).into())
    }

    /// A connection over a direct path whose RTT is 50 ms, and so many relays.
    fn candidates(relays: u32) -> (Candidates, Random) {
        let mut candidates = Candidates::new(at(0), ms(250), Tau::Adaptive);
        candidates.begin(at(0), route(1), None);
        candidates.note_direct(at(0), ms(50));
        for relay in 0..relays {
            candidates.add_relay(at(0), RelayId(relay), Local(0));
        }
        (candidates, Random::new([1; 32]))
    }

    fn standing(candidates: &Candidates, now: Instant, relay: RelayId) -> RelayState {
        candidates.relays(now).find(|it| it.relay == relay).unwrap().standing
    }

    /// Tries the next relay, which answers its probe after `rtt`. Returns the relay, the origin of
    /// its path, and whether it is kept.
    fn probe(
        candidates: &mut Candidates,
        random: &mut Random,
        now: Instant,
        rtt: Duration,
    ) -> (RelayId, PathOrigin, bool) {
        let Some(CandidateAction::Greet(relay)) = candidates.next(now, random) else {
            panic!("a relay is due")
        };
        let origin = candidates.on_route(relay, &route(1_000 + relay.0 as u16)).unwrap();
        let keep = candidates.on_proven(now, origin, rtt);
        if !keep {
            assert_eq!(
                candidates.on_dropped(
                    now,
                    origin,
                    PathEndReason::NotNeeded,
                    PathHistory { worked: true, ..AGO }
                ),
                Some(relay)
            );
        }
        (relay, origin, keep)
    }

    #[test]
    fn a_direct_route_that_failed_is_tried_later_and_one_that_worked_sooner() {
        let (mut candidates, mut random) = candidates(0);
        assert_eq!(candidates.due_at(), None);
        candidates.add(at(0), route(2));
        let Some(CandidateAction::Probe(taken, origin)) = candidates.next(at(0), &mut random) else {
            panic!()
        };
        assert_eq!((taken, origin), (route(2), PathOrigin::Candidate(1)));
        candidates.on_dropped(at(1_000), origin, PathEndReason::Unanswered, AGO);
        assert_eq!(candidates.due_at(), Some(at(11_000)));
        assert!(candidates.next(at(10_900), &mut random).is_none());
        assert!(candidates.next(at(11_200), &mut random).is_some());
        assert!(candidates.on_proven(at(11_300), origin, ms(20)));
        candidates.on_dropped(
            at(20_000),
            origin,
            PathEndReason::GivenUp,
            PathHistory { worked: true, ..AGO },
        );
        assert_eq!(candidates.due_at(), Some(at(22_000)));
        candidates.local_down(Local(0));
        assert_eq!(candidates.due_at(), None, "its socket is gone");
        candidates.add(at(21_000), route(2));
        assert_eq!(candidates.due_at(), Some(at(21_000)));
        candidates.next(at(30_000), &mut random).unwrap();
        candidates.on_dropped(at(30_000), origin, PathEndReason::CarriedLittle, AGO);
        assert_eq!(candidates.due_at(), None, "dropped for good");
    }

    #[test]
    fn connections_to_one_address_that_come_and_go_take_one_place() {
        let (mut candidates, mut random) = candidates(0);
        for number in 0..1_000 {
            let local = Local::connection(number).unwrap();
            candidates.add(at(0), Route::direct(local, ([192, 0, 2, 1], 9).into()));
            let Some(CandidateAction::Probe(taken, origin)) = candidates.next(at(0), &mut random) else {
                panic!()
            };
            assert_eq!((taken.local, origin), (local, PathOrigin::Candidate(1)));
            candidates.on_dropped(at(0), origin, PathEndReason::LocalGone, AGO);
            candidates.local_down(local);
        }
        assert_eq!(candidates.all.len(), 2);
    }

    #[test]
    fn relays_are_tried_one_per_interval_and_few_are_kept() {
        let (mut candidates, mut random) = candidates(40);
        let mut kept = 0;
        for turn in 0..40 {
            let now = candidates.due_at().unwrap();
            assert_eq!(now, at(turn * 250));
            kept += usize::from(probe(&mut candidates, &mut random, now, ms(60)).2);
        }
        assert_eq!(
            (kept, candidates.due_at()),
            (MAX_KEPT_RELAYS, None),
            "nothing more is sent to the others"
        );
        assert!(candidates.relays(at(10_000)).all(|it| it.standing == RelayState::Available));
    }

    #[test]
    fn no_more_are_tried_at_once_than_the_limit() {
        let (mut candidates, mut random) = candidates(1_000);
        let mut asked = 0;
        while let Some(now) = candidates.due_at() {
            assert!(matches!(candidates.next(now, &mut random), Some(CandidateAction::Greet(_))));
            asked += 1;
        }
        assert_eq!(asked, MAX_SPARE_RELAYS);
    }

    #[test]
    fn who_answers_late_is_used_only_if_nobody_answers_in_time() {
        let (mut candidates, mut random) = candidates(2);
        let (late, origin, _) = probe(&mut candidates, &mut random, at(0), ms(101));
        assert_eq!(standing(&candidates, at(0), late), RelayState::Reserve, "twice the direct RTT is 100 ms");
        let rank = candidates.rank(at(0), origin);
        assert!(rank == Rank::Reserve && !candidates.allows(at(0), rank), "another may answer in time");
        let (other, second, _) = probe(&mut candidates, &mut random, at(250), ms(100));
        assert_eq!(standing(&candidates, at(250), other), RelayState::Available);
        let in_time = |relay| candidates.relays(at(250)).any(|it| it.relay == relay && it.in_time);
        assert!(in_time(other) && !in_time(late));
        assert_eq!(candidates.rank(at(250), second), Rank::Fresh);
        candidates.on_used(second);
        candidates.on_dropped(at(9_000), second, PathEndReason::CarriedLittle, AGO);
        assert!(candidates.allows(at(9_000), rank), "no other is left");
    }

    #[test]
    fn by_the_literal_tau_who_answers_late_is_never_used() {
        for (rule, is_used) in [(Tau::Adaptive, true), (Tau::Direct(200), false)] {
            let (mut candidates, mut random) = candidates(1);
            candidates.rule = rule;
            let (_, late, _) = probe(&mut candidates, &mut random, at(0), ms(101));
            let rank = candidates.rank(at(0), late);
            assert_eq!((rank, candidates.allows(at(0), rank)), (Rank::Reserve, is_used));
        }
    }

    #[test]
    fn who_answers_late_is_used_while_who_answered_in_time_is_silent() {
        let (mut candidates, mut random) = candidates(2);
        let (_, origin, _) = probe(&mut candidates, &mut random, at(0), ms(100));
        candidates.on_used(origin);
        let (_, late, _) = probe(&mut candidates, &mut random, at(250), ms(101));
        let rank = candidates.rank(at(300), late);
        assert!(rank == Rank::Reserve && !candidates.allows(at(300), rank), "another is in use");
        candidates.note_answers(at(9_000), false);
        assert!(candidates.allows(at(9_000), rank), "what is in use is silent");
        candidates.note_answers(at(9_500), true);
        assert!(!candidates.allows(at(9_500), rank));
    }

    #[test]
    fn who_does_not_answer_is_not_tried_again_unless_nothing_was_heard_at_all() {
        let (mut candidates, mut random) = candidates(1);
        let Some(CandidateAction::Greet(relay)) = candidates.next(at(0), &mut random) else { panic!() };
        assert!(!candidates.on_no_route(at(5_000), relay, false), "perhaps this host was cut off");
        let now = candidates.due_at().unwrap();
        candidates.next(now, &mut random).unwrap();
        let origin = candidates.on_route(relay, &route(9)).unwrap();
        candidates.on_dropped(now + ms(3_000), origin, PathEndReason::Unanswered, AGO);
        assert_eq!(standing(&candidates, now, relay), RelayState::Unusable);
        assert_eq!(candidates.due_at(), None);
        candidates.add_relay(now + ms(9_000), relay, Local(0));
        assert!(candidates.due_at().is_some(), "its uplink was away and is back");
    }

    #[test]
    fn a_wish_is_met_by_relays_never_used_then_by_the_best() {
        let (mut candidates, mut random) = candidates(12);
        let mut kept = Vec::new();
        for _ in 0..12 {
            let now = candidates.due_at().unwrap();
            let (_, origin, keep) = probe(&mut candidates, &mut random, now, ms(60));
            kept.extend(keep.then_some(origin));
        }
        for (origin, goodput) in kept.iter().zip([5, 9, 7, 1, 2, 3]) {
            candidates.on_used(*origin);
            let lived = PathHistory { worked: true, goodput, heard: true };
            candidates.on_dropped(at(10_000), *origin, PathEndReason::GivenUp, lived);
        }
        assert!(candidates.wish(8));
        let mut goodput = Vec::new();
        while let Some(now) = candidates.due_at() {
            let Some(CandidateAction::Greet(relay)) = candidates.next(now, &mut random) else { panic!() };
            goodput.push(candidates.relays(now).find(|it| it.relay == relay).unwrap().goodput);
            if goodput.len() == 8 {
                break;
            }
        }
        assert_eq!(goodput, [0, 0, 0, 0, 0, 0, 9, 7]);
        assert!(candidates.next(at(60_000), &mut random).is_none(), "the wish is for eight");
    }

    #[test]
    fn the_owner_is_asked_once_for_more_relays() {
        let (mut candidates, mut random) = candidates(1);
        candidates.wish(3);
        assert!(!candidates.is_used_up(at(0), false), "one is untried");
        let (relay, origin, _) = probe(&mut candidates, &mut random, at(0), ms(60));
        candidates.on_used(origin);
        assert!(candidates.is_used_up(at(0), false) && !candidates.is_used_up(at(1), false));
        candidates.add_relay(at(2), relay, Local(0));
        assert!(!candidates.is_used_up(at(2), false), "it was named before");
        candidates.add_relay(at(3), RelayId(relay.0 + 1), Local(0));
        assert!(!candidates.is_used_up(at(3), false));
    }

    /// Some of many always rest, or are tried again.
    #[test]
    fn a_relay_that_is_due_again_does_not_keep_the_owner_from_being_asked() {
        let (mut candidates, mut random) = candidates(3);
        candidates.wish(3);
        for _ in 0..3 {
            let now = candidates.due_at().unwrap();
            let (_, origin, _) = probe(&mut candidates, &mut random, now, ms(60));
            candidates.on_used(origin);
            candidates.on_dropped(now, origin, PathEndReason::GivenUp, PathHistory { worked: true, ..AGO });
        }
        let again = at(9_000);
        assert!(candidates.is_time(again), "each is due again");
        assert!(matches!(candidates.next(again, &mut random), Some(CandidateAction::Greet(_))));
        assert!(candidates.is_used_up(again, false));
    }

    #[test]
    fn one_that_answered_and_was_never_used_is_left() {
        let (mut candidates, mut random) = candidates(2);
        let (_, used, _) = probe(&mut candidates, &mut random, at(0), ms(60));
        candidates.on_used(used);
        let (_, unused, _) = probe(&mut candidates, &mut random, at(250), ms(60));
        candidates.wish(1);
        assert!(!candidates.is_used_up(at(300), false));
        candidates.on_used(unused);
        assert!(candidates.is_used_up(at(300), false));
    }

    /// mPath, section 2.1: "Once all the proxies in the list have been probed, mPath will request
    /// for more proxies from the RS." No relay is in use here, and none is wanted.
    #[test]
    fn by_the_paper_the_owner_is_asked_once_all_are_probed() {
        let (mut candidates, mut random) = candidates(3);
        for turn in 0..2 {
            assert!(!candidates.is_used_up(at(turn * 250), true), "{turn} of three are probed");
            probe(&mut candidates, &mut random, at(turn * 250), ms(60));
        }
        let Some(CandidateAction::Greet(last)) = candidates.next(at(500), &mut random) else { panic!() };
        assert!(!candidates.is_used_up(at(500), true), "the last one is asked");
        let origin = candidates.on_route(last, &route(9)).unwrap();
        assert!(!candidates.is_used_up(at(600), true), "the last one is being probed");
        candidates.on_dropped(at(2_000), origin, PathEndReason::Unanswered, AGO);
        assert!(!candidates.is_used_up(at(2_000), false), "none is wanted");
        assert!(candidates.is_used_up(at(2_000), true) && !candidates.is_used_up(at(2_100), true));
        candidates.add_relay(at(3_000), RelayId(3), Local(0));
        assert!(!candidates.is_used_up(at(3_000), true));
        probe(&mut candidates, &mut random, at(3_000), ms(60));
        assert!(candidates.is_used_up(at(3_100), true), "asked again, once the new one is probed");
    }
}
