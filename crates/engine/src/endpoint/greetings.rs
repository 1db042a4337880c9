//! Relays that are greeted: for what, how far that is, and when each is greeted again.

use super::greeting_failure::Failure;
use super::handle::Handle;
use crate::connection::RelayId;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use byway_wire::relay::{
    Consent, GREET_LEN, Greet, Greeted, Location, LocationAction, LocationKey, Notice, Reason, RelayClock,
};
use byway_wire::{Dscp, Duration, Ecn, Instant, Local, TcpRequest, Transmit, TransmitBuffer, Writer};
use core::net::SocketAddr;

/// Time after which a greeting without an answer is repeated. It doubles up to
/// `MAX_RETRY_INTERVAL`. After `MAX_TRIES` the greeting is given up.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);
const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(1);
const MAX_TRIES: u32 = 6;
/// Time after which a relay that answered is greeted again. This keeps a NAT of this side open for
/// packets through the relay. RFC 4787, requirement 5, wants NAT mappings to last two minutes; in
/// practice some last only 20 seconds. A relay that remembers where this side is learns of a new
/// address within this time.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// A relay that refuses is greeted again at once, but not sooner than this after the last greeting.
/// Who sees a packet of ours can forge a refusal, and must not make this side send more than that.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(1);
/// The least time between two greetings for the silence of peers. A host with many silent peers
/// greets its relays no more often.
const SILENCE_INTERVAL: Duration = Duration::from_secs(5);
/// A relay's clock counts as stepped if it differs from its earlier replies by this many seconds or
/// more.
const MAX_CLOCK_STEP_SECONDS: u64 = 5;
/// Seconds of a day. A cookie is good on its day (UTC) and on the next.
const DAY_SECONDS: u64 = 86_400;
/// Time after which an offer without an answer is repeated, up to `MAX_OFFERS` times.
const OFFER_INTERVAL: Duration = Duration::from_millis(1000);
const MAX_OFFERS: u32 = 8;
/// Time for which a greeting continues after a refusal. Refusals are not authenticated, so the
/// relay may still accept.
const REFUSAL_DELAY: Duration = Duration::from_millis(1000);
/// Time after which a consent is sent again, long before it expires
/// ([`byway_wire::relay::CONSENT_LIFE`]).
const CONSENT_INTERVAL: Duration = Duration::from_secs(3600);
/// Time that a relay may take to accept a TCP connection.
const DIAL_TIMEOUT: Duration = Duration::from_secs(5);
/// TCP connections that are asked for at once.
const MAX_DIALS: usize = 16;
/// The most packets that check one relay word. The next one follows after [`RETRY_INTERVAL`], and
/// each pause is twice as long.
const MAX_CHECK_PACKETS: u32 = 3;
/// The most relays greeted at once, for all purposes.
const MAX_GREETINGS: usize = 4096;

/// A relay's answer to a greeting.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnsweredRelay {
    pub clock: RelayClock,
    /// The cookie of the address that the relay saw.
    pub cookie: u64,
    /// The day of the cookie, in days of Unix time.
    cookie_day: u64,
    /// The address of this host as the relay saw it. `consent`: this host's consent.
    pub address: SocketAddr,
    pub consent: Consent,
    /// When the consent was last passed on. `None`: never.
    told_at: Option<Instant>,
}

/// Why a relay is greeted.
#[derive(Clone, Copy, Debug)]
pub(super) enum GreetingPurpose {
    /// To send through the relay. `reach`: the peer's address and consent, once they are known:
    /// from a ticket, from the relay, or because the peer consented.
    Send { handle: Handle, id: RelayId, reach: Option<(SocketAddr, Consent)> },
    /// To be reached through the relay, as a peer asked.
    Receive { handle: Handle, offer: u32 },
    /// To be reached through the relay by every peer that learns of it. `word`: the number of the
    /// relay word to check there first, if any.
    Standing { word: Option<usize> },
}

/// The packet that checks a relay word.
pub(super) type CheckToken = [u8; 16];

/// A test of this host's relay word at its relay: a packet that the relay must send back.
#[derive(Clone, Copy, Debug)]
pub(super) struct WordCheck {
    pub token: CheckToken,
    sent: u32,
    next_at: Instant,
    /// Why the relay seems to refuse the word.
    refused: Option<Reason>,
}

impl GreetingPurpose {
    /// The connection or attempt for which the relay is greeted.
    const fn handle(&self) -> Option<Handle> {
        match self {
            Self::Send { handle, .. } | Self::Receive { handle, .. } => Some(*handle),
            Self::Standing { .. } => None,
        }
    }
}

/// A relay that is greeted.
#[derive(Clone, Debug)]
pub(super) struct Greeting {
    /// The greeting's number, by which the relay is offered to a peer.
    pub number: u32,
    pub address: SocketAddr,
    /// The id of the grant under which the relay is greeted.
    pub grant: u32,
    pub local: Local,
    pub purpose: GreetingPurpose,
    pub known: Option<AnsweredRelay>,
    pub check: Option<WordCheck>,
    /// The key for requests to the relay about a receiver's location: this host's, or that of the
    /// peer to send to. `None`: the relay is not asked.
    pub location_key: Option<Arc<LocationKey>>,
    /// The cookie with which the relay was last asked about a location. `None`: it was not asked.
    asked_with: Option<u64>,
    /// Whether the relay was ever asked. The first question is sent at once and later ones after a
    /// while, as a relay may send a new cookie each time.
    has_asked: bool,
    /// Whether the relay answered the last request with a location.
    pub is_located: bool,
    /// Whether this greeting registers this host's location. Of this host's standing greetings at
    /// one relay, one does.
    registers: bool,
    nonce: [u8; 8],
    sent_at: Instant,
    next_at: Instant,
    tries: u32,
    /// The relay's reason for refusing the greeting, not authenticated. `None`: it did not refuse.
    refused: Option<Reason>,
    /// Number of times that the relay was offered to the peer. `offer_at`: when it may be offered
    /// again.
    offered: u32,
    offer_at: Instant,
}

impl Greeting {
    /// Returns the number of the relay word of the relay that is to remember this host's location.
    /// `None`: the greeting registers no location.
    fn standing_word(&self) -> Option<usize> {
        match self.purpose {
            GreetingPurpose::Standing { word } if self.location_key.is_some() => word,
            _ => None,
        }
    }

    /// Returns the next greeting's request about a location, if there is one. The relay's cookie
    /// must be known.
    const fn action(&self) -> Option<LocationAction> {
        match self.purpose {
            _ if self.location_key.is_none() || self.known.is_none() => None,
            GreetingPurpose::Send { .. } => Some(LocationAction::LookUp),
            GreetingPurpose::Standing { .. } if self.registers => Some(LocationAction::Register),
            GreetingPurpose::Standing { .. } | GreetingPurpose::Receive { .. } => None,
        }
    }

    /// Whether the relay is still to be asked with its latest cookie.
    fn is_to_ask(&self) -> bool {
        self.action().is_some() && self.asked_with != self.known.map(|known| known.cookie)
    }

    /// Whether an answer from this socket and address may belong to this greeting.
    fn is_answered_at(&self, (local, address): (Local, SocketAddr)) -> bool {
        let is_udp = !self.local.is_connection() && !local.is_connection();
        self.address == address && (self.local == local || is_udp)
    }

    fn is_offer(&self, handle: Handle, offer: u32) -> bool {
        matches!(self.purpose, GreetingPurpose::Receive { handle: by, offer: number } if by == handle && number == offer)
    }

    fn is_to_send(&self, handle: Handle, id: RelayId) -> bool {
        matches!(self.purpose, GreetingPurpose::Send { handle: by, id: number, .. } if by == handle && number == id)
    }

    /// Handles a relay's reply. The greeting is due again at the next keep-alive. Returns whether
    /// the consent is to be sent to the peer.
    fn answered(&mut self, now: Instant, local: Local, mut known: AnsweredRelay, nonce: [u8; 8]) -> bool {
        // A socket bound to all addresses may have others beside it, each for one address: what the
        // relay sends comes by the one of the address that it saw.
        self.local = local;
        let told = self.known.filter(|before| before.address == known.address);
        known.told_at = told.and_then(|before| before.told_at).filter(|at| *at + CONSENT_INTERVAL > now);
        self.known = Some(known);
        (self.tries, self.nonce, self.next_at) = (0, nonce, now + KEEPALIVE_INTERVAL);
        // Of several ways to one relay, the one that registers is told of, once that is settled.
        let leaves_it = self.standing_word().is_some() && !self.registers;
        let tells = known.told_at.is_none() && !leaves_it && (self.is_located || !self.is_to_ask());
        if tells && let Some(known) = &mut self.known {
            known.told_at = Some(now);
        }
        tells
    }

    /// An attempt to connect asks often, because the peer may be about to register.
    fn ask_again(&mut self, now: Instant, is_connected: impl Fn(Handle) -> bool) {
        if let GreetingPurpose::Send { handle, .. } = self.purpose
            && !is_connected(handle)
        {
            self.next_at = now + RENEWAL_INTERVAL;
        }
    }

    /// Runs the check of the greeting's relay word, if it is due. Returns when it is due next, if
    /// it continues.
    fn check_on(&mut self, now: Instant, turn: &mut DueGreetings) -> Option<Instant> {
        let check = self.check.as_mut()?;
        if check.next_at > now {
            return Some(check.next_at);
        }
        if check.refused.is_none() && check.sent < MAX_CHECK_PACKETS {
            check.next_at = now + RETRY_INTERVAL * (1 << check.sent);
            check.sent += 1;
            let at = check.next_at;
            turn.checks.push(self.clone());
            return Some(at);
        }
        match check.refused {
            Some(reason) => turn.failed.push((self.clone(), Failure::Refused(reason))),
            None => turn.unheard.push(self.clone()),
        }
        self.check = None;
        None
    }

    fn write(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let buffer = out.buffer.first_chunk_mut::<GREET_LEN>()?;
        // A cookie of yesterday is replaced: a plain greeting brings a new one.
        let fresh = self.known.filter(|known| known.clock.unix(now) / DAY_SECONDS == known.cookie_day);
        self.asked_with = self.asked_with.filter(|_| fresh.is_some());
        match (self.action(), &self.location_key, fresh) {
            (Some(action), Some(key), Some(known)) => {
                key.write(buffer, self.nonce, action, known.cookie, known.clock.unix(now));
                (self.asked_with, self.has_asked) = (Some(known.cookie), true);
            }
            _ => Greet { nonce: self.nonce, grant: self.grant }.write(&mut Writer::new(buffer)),
        }
        Some(Transmit {
            local: self.local,
            remote: self.address,
            ecn: Ecn::NotEct,
            dscp: Dscp::BestEffort,
            size: GREET_LEN,
            segment: GREET_LEN,
            phantom: 0,
        })
    }
}

/// Greetings that became due.
#[derive(Debug, Default)]
pub(super) struct DueGreetings {
    pub sent: Option<Transmit>,
    /// Relays to offer to their peers.
    pub offers: Vec<Greeting>,
    pub failed: Vec<(Greeting, Failure)>,
    /// Greetings whose relay words are to be checked by a packet.
    pub checks: Vec<Greeting>,
    /// Greetings whose checks were not answered.
    pub unheard: Vec<Greeting>,
}

/// All greetings of an endpoint.
#[derive(Debug, Default)]
pub(super) struct Greetings {
    all: Vec<Greeting>,
    /// Open TCP connections, and the address each leads to.
    connections: BTreeMap<Local, SocketAddr>,
    asks: VecDeque<TcpRequest>,
    next: u32,
    /// When something may be due.
    due: Option<Instant>,
    /// Number of relay words that are being checked.
    checking: usize,
}

impl Greetings {
    /// Greets a relay by a local socket. Returns whether there is room for one more.
    pub fn begin(
        &mut self,
        now: Instant,
        (local, address): (Local, SocketAddr),
        grant: u32,
        purpose: GreetingPurpose,
        location_key: Option<Arc<LocationKey>>,
        nonce: [u8; 8],
    ) -> bool {
        if self.all.len() >= MAX_GREETINGS {
            return false;
        }
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.all.push(Greeting {
            number,
            address,
            grant,
            local,
            purpose,
            known: None,
            check: None,
            location_key,
            asked_with: None,
            has_asked: false,
            is_located: false,
            registers: false,
            nonce,
            sent_at: now,
            next_at: now,
            tries: 0,
            refused: None,
            offered: 0,
            offer_at: now,
        });
        self.due = Some(now);
        true
    }

    /// When something may be due.
    pub const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Has all greetings checked at `at`, or earlier.
    pub fn look_at(&mut self, at: Instant) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// Has relays offered soon, because a peer is there.
    pub fn hurry(&mut self, now: Instant) {
        if !self.all.is_empty() {
            self.due = Some(now);
        }
    }

    /// Greets relays again by a local socket, as its address may have changed.
    pub fn again_by(&mut self, now: Instant, local: Local) {
        for greeting in self.all.iter_mut().filter(|greeting| greeting.local == local) {
            (greeting.tries, greeting.next_at) = (0, now);
            self.due = Some(now);
        }
    }

    /// A relay refuses packets under this grant: it is greeted again, and answers with a cookie and
    /// a consent that hold.
    pub fn renew(&mut self, now: Instant, relay: SocketAddr, grant: u32) {
        self.hasten(now, RENEWAL_INTERVAL, |it| it.address == relay && it.grant == grant);
    }

    /// Greets relays again after a peer's silence, as either host may have a new address: those
    /// asked for its location, and those that lead to this host.
    pub fn on_silence(&mut self, now: Instant, handle: Handle) {
        self.hasten(now, RENEWAL_INTERVAL, |it| {
            let is_offer = matches!(it.purpose, GreetingPurpose::Receive { .. });
            it.purpose.handle() == Some(handle) && (is_offer || it.location_key.is_some())
        });
        self.hasten(now, SILENCE_INTERVAL, |it| matches!(it.purpose, GreetingPurpose::Standing { .. }));
    }

    /// Handles the loss of a local socket: another socket registers this host with the same relay,
    /// if one reaches it.
    pub fn on_local_down(&mut self, now: Instant, local: Local) {
        for greeting in self.all.iter_mut().filter(|greeting| greeting.local == local) {
            (greeting.registers, greeting.asked_with) = (false, None);
        }
        self.replace_registering(now);
    }

    /// Greets relays by other sockets, if the socket that registered this host there is gone.
    fn replace_registering(&mut self, now: Instant) {
        let registering = self.all.iter().filter(|it| it.registers);
        let served: Vec<usize> = registering.filter_map(Greeting::standing_word).collect();
        self.hasten(now, RENEWAL_INTERVAL, |it| it.standing_word().is_some_and(|it| !served.contains(&it)));
    }

    /// Greets relays that have answered again, but none sooner than `interval` after the last
    /// greeting.
    fn hasten(&mut self, now: Instant, interval: Duration, is_meant: impl Fn(&Greeting) -> bool) {
        for greeting in self.all.iter_mut().filter(|it| it.known.is_some() && it.tries == 0 && is_meant(it)) {
            greeting.next_at = greeting.next_at.min((greeting.sent_at + interval).max(now));
            self.due = Some(self.due.map_or(greeting.next_at, |at| at.min(greeting.next_at)));
        }
    }

    /// A TCP connection is open.
    pub fn connection_opened(&mut self, local: Local, peer: SocketAddr) {
        self.connections.insert(local, peer);
    }

    /// Handles the end of a TCP connection, and ends its greetings.
    pub fn connection_over(&mut self, local: Local) {
        self.connections.remove(&local);
        self.all.retain(|greeting| greeting.local != local);
    }

    /// Open TCP connections, and the address each leads to.
    pub fn connections(&self) -> impl Iterator<Item = (Local, SocketAddr)> + '_ {
        self.connections.iter().map(|(local, peer)| (*local, *peer))
    }

    /// Whether a relay answered on this connection.
    pub fn is_answered_by(&self, local: Local) -> bool {
        self.all.iter().any(|greeting| greeting.local == local && greeting.known.is_some())
    }

    /// Returns the greetings of a relay that were not answered yet, except those to send: the grant
    /// of each, its purpose, and the key with which it asks about a location.
    pub fn unanswered(&self, relay: SocketAddr) -> Vec<(u32, GreetingPurpose, Option<Arc<LocationKey>>)> {
        let wanted = |it: &&Greeting| {
            it.address == relay && it.known.is_none() && !matches!(it.purpose, GreetingPurpose::Send { .. })
        };
        self.all.iter().filter(wanted).map(|it| (it.grant, it.purpose, it.location_key.clone())).collect()
    }

    /// The addresses at which relays see this side over UDP.
    pub fn outside_addresses(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        let over_udp = self.all.iter().filter(|greeting| !greeting.local.is_connection());
        over_udp.filter_map(|greeting| Some(greeting.known?.address))
    }

    /// Whether the relay has answered a greeting by which every peer that learns of the relay may
    /// reach this host.
    pub fn stands_at(&self, relay: SocketAddr) -> bool {
        let stands =
            |it: &Greeting| it.address == relay && matches!(it.purpose, GreetingPurpose::Standing { .. });
        self.all.iter().any(|it| stands(it) && it.known.is_some())
    }

    /// Has a TCP connection to a relay opened.
    pub fn dial(&mut self, relay: SocketAddr) {
        let ask = TcpRequest::Dial { peer: relay, patience: DIAL_TIMEOUT };
        if self.asks.len() < MAX_DIALS && !self.asks.contains(&ask) {
            self.asks.push_back(ask);
        }
    }

    /// The next request about TCP connections.
    pub fn next_ask(&mut self) -> Option<TcpRequest> {
        self.asks.pop_front()
    }

    /// The greeting by which a connection would send through a relay.
    pub fn to_send(&self, handle: Handle, id: RelayId) -> Option<&Greeting> {
        self.all.iter().find(|greeting| greeting.is_to_send(handle, id))
    }

    /// The greetings that a peer requested by this offer.
    pub fn of_offer(&self, handle: Handle, offer: u32) -> impl Iterator<Item = &Greeting> {
        self.all.iter().filter(move |greeting| greeting.is_offer(handle, offer))
    }

    /// Returns the number of relays that are greeted to send to a peer, and to be reached by it.
    pub fn count(&self, handle: Handle) -> (usize, usize) {
        let of = self.all.iter().filter(|greeting| greeting.purpose.handle() == Some(handle));
        of.fold((0, 0), |(send, receive), greeting| match greeting.purpose {
            GreetingPurpose::Send { .. } => (send + 1, receive),
            _ => (send, receive + 1),
        })
    }

    /// Whether an attempt to connect still waits for the answer of a relay by which the peer may be
    /// reached: the ticket tells how, or the relay is asked again and again. For all other relays
    /// the peer must first consent, over an open connection.
    pub fn awaited_by(&self, handle: Handle) -> bool {
        self.all.iter().any(|greeting| match greeting.purpose {
            GreetingPurpose::Send { handle: by, reach, .. } if by == handle => {
                greeting.location_key.is_some() || greeting.known.is_none() && reach.is_some()
            }
            _ => false,
        })
    }

    /// A connection does not send through a relay for now.
    pub fn release(&mut self, handle: Handle, id: RelayId) {
        self.all.retain(|greeting| !greeting.is_to_send(handle, id));
    }

    /// Removes all greetings of a connection that has ended.
    pub fn forget(&mut self, handle: Handle) {
        self.all.retain(|greeting| greeting.purpose.handle() != Some(handle));
    }

    /// Writes at most one due greeting to `out`. Returns failed greetings, and offers: relays that
    /// answered and are now proposed to a peer. `connected`: whether a connection to a peer is
    /// open. `needed`: whether a relay that answered must be greeted again.
    pub fn turn(
        &mut self,
        now: Instant,
        out: &mut TransmitBuffer<'_>,
        connected: impl Fn(Handle) -> bool,
        needed: impl Fn(&Greeting) -> bool,
    ) -> DueGreetings {
        let mut turn = DueGreetings::default();
        let (mut due, mut lost_registering): (Option<Instant>, bool) = (None, false);
        self.all.retain_mut(|greeting| {
            if let (Some(_), GreetingPurpose::Send { handle, reach: None, .. }) =
                (&greeting.known, greeting.purpose)
                && connected(handle)
            {
                if greeting.offer_at <= now {
                    if greeting.offered == MAX_OFFERS {
                        turn.failed.push((greeting.clone(), Failure::NotTaken));
                        return false;
                    }
                    greeting.offered += 1;
                    greeting.offer_at = now + OFFER_INTERVAL;
                    turn.offers.push(greeting.clone());
                }
                due = Some(due.map_or(greeting.offer_at, |at| at.min(greeting.offer_at)));
            }
            if greeting.next_at <= now {
                if greeting.known.is_some() && greeting.tries == 0 && !needed(greeting) {
                    return false;
                }
                if greeting.tries == MAX_TRIES {
                    if greeting.known.is_none() {
                        let failure = greeting.refused.take().map_or(Failure::Silent, Failure::Refused);
                        turn.failed.push((greeting.clone(), failure));
                        if !matches!(greeting.purpose, GreetingPurpose::Standing { .. }) {
                            return false;
                        }
                    }
                    lost_registering |= greeting.registers;
                    (greeting.tries, greeting.registers, greeting.asked_with) = (0, false, None);
                    greeting.next_at = now + KEEPALIVE_INTERVAL;
                } else if turn.sent.is_none() {
                    turn.sent = greeting.write(now, out);
                    greeting.sent_at = now;
                    greeting.next_at = now + (RETRY_INTERVAL * (1 << greeting.tries)).min(MAX_RETRY_INTERVAL);
                    greeting.tries += 1;
                }
            }
            due = Some(due.map_or(greeting.next_at, |at| at.min(greeting.next_at)));
            if let Some(at) = greeting.check_on(now, &mut turn) {
                due = due.map(|due| due.min(at));
            }
            true
        });
        self.due = due;
        if lost_registering {
            self.replace_registering(now);
        }
        self.checking = self.all.iter().filter(|greeting| greeting.check.is_some()).count();
        turn
    }

    /// Begins to check the relay word of a greeting that was answered.
    pub fn begin_check(&mut self, now: Instant, number: u32, token: CheckToken) {
        let check = WordCheck { token, sent: 0, next_at: now, refused: None };
        if let Some(greeting) = self.all.iter_mut().find(|greeting| greeting.number == number) {
            self.checking += usize::from(greeting.check.replace(check).is_none());
            self.due = Some(now);
        }
    }

    /// Whether a relay word is being checked, so that packets through relays may be checks.
    pub const fn is_checking(&self) -> bool {
        self.checking > 0
    }

    /// Handles a packet that came back through a relay. Returns the greeting whose relay word it
    /// checked, if it did.
    pub fn on_checked(&mut self, packet: &[u8]) -> Option<Greeting> {
        let checked = |it: &&mut Greeting| it.check.is_some_and(|check| check.token == packet);
        let greeting = self.all.iter_mut().find(checked)?;
        greeting.check = None;
        self.checking -= 1;
        Some(greeting.clone())
    }

    /// Handles a notice by which a relay seems to refuse a relay word. Returns whether it is one.
    /// As for [greetings](Self::on_notice), the packet may still come back.
    pub fn on_check_refused(&mut self, now: Instant, notice: &Notice) -> bool {
        let consent = |it: &Greeting| it.known.map(|known| known.consent.tag.to_be_bytes());
        let is_asked = |it: &&mut Greeting| it.grant == notice.grant && consent(it) == Some(notice.echo);
        let mut asked = self.all.iter_mut().filter(|greeting| greeting.check.is_some()).filter(is_asked);
        let Some(check) = asked.next().and_then(|greeting| greeting.check.as_mut()) else { return false };
        if notice.reason.is_of_word() && check.refused.replace(notice.reason).is_none() {
            check.next_at = now + REFUSAL_DELAY;
            self.due = Some(self.due.map_or(check.next_at, |at| at.min(check.next_at)));
        }
        true
    }

    /// Handles a relay's answer. It contains a consent: the permission to send to this host through
    /// the relay. `nonce` is for the next greeting. Returns the updated greeting, and whether the
    /// peer needs this consent. `None` if no greeting has the answer's address and nonce.
    pub fn on_greeted(
        &mut self,
        now: Instant,
        from: (Local, SocketAddr),
        greeted: &Greeted,
        nonce: [u8; 8],
    ) -> Option<(Greeting, bool)> {
        let is_answered =
            |it: &Greeting| it.is_answered_at(from) && it.nonce == greeted.nonce && it.tries > 0;
        let index = self.all.iter().position(is_answered)?;
        let registers = self.may_register(index);
        let greeting = self.all.get_mut(index)?;
        greeting.registers |= registers;
        let clock = RelayClock::learn(greeted.unix_millis, greeting.sent_at, now);
        let known = AnsweredRelay {
            clock,
            cookie: greeted.cookie,
            cookie_day: greeted.unix_millis / 1_000 / DAY_SECONDS,
            address: greeted.address,
            consent: greeted.consent,
            told_at: None,
        };
        greeting.is_located = false;
        // A relay whose clock has stepped refuses what seems to come from the future.
        let step = greeting.known.map(|before| before.clock.unix(now).abs_diff(clock.unix(now)));
        if step.is_some_and(|seconds| seconds >= MAX_CLOCK_STEP_SECONDS) {
            greeting.asked_with = None;
        }
        let told = greeting.answered(now, from.0, known, nonce);
        // The relay is asked about a location with the cookie that it has just given, at once where
        // it was not asked before.
        if greeting.is_to_ask() {
            let at = if greeting.has_asked { greeting.sent_at + RENEWAL_INTERVAL } else { now };
            greeting.next_at = at.max(now);
        }
        self.due = Some(now);
        Some((greeting.clone(), told))
    }

    /// Whether an answered greeting is to register this host at its relay.
    fn may_register(&self, index: usize) -> bool {
        let own = self.all.get(index).and_then(Greeting::standing_word);
        own.is_some() && !self.all.iter().any(|it| it.registers && it.standing_word() == own)
    }

    /// Handles a relay's answer about a location. `is_connected`: whether a connection to a peer is
    /// open. Returns as [`on_greeted`](Self::on_greeted) does.
    pub fn on_location(
        &mut self,
        now: Instant,
        from: (Local, SocketAddr),
        packet: &[u8],
        nonce: [u8; 8],
        is_connected: impl Fn(Handle) -> bool,
    ) -> Option<(Greeting, bool)> {
        let greeting = self
            .all
            .iter_mut()
            .find(|it| it.is_answered_at(from) && Location::answers(packet, it.nonce) && it.tries > 0)?;
        let (before, location) = (greeting.known?, greeting.location_key.as_ref()?.read(packet).ok()?);
        let clock = RelayClock::learn(location.unix_millis, greeting.sent_at, now);
        let mut known = AnsweredRelay { clock, ..before };
        match &mut greeting.purpose {
            GreetingPurpose::Send { reach, .. } => *reach = Some((location.address, location.consent)),
            _ => (known.address, known.consent) = (location.address, location.consent),
        }
        greeting.is_located = true;
        let told = greeting.answered(now, from.0, known, nonce);
        greeting.ask_again(now, is_connected);
        self.due = Some(now);
        Some((greeting.clone(), told))
    }

    /// Ends the other greetings for a relay that a peer offered under this number, since one was
    /// answered.
    pub fn settle(&mut self, handle: Handle, offer: u32) {
        self.all.retain(|other| other.known.is_some() || !other.is_offer(handle, offer));
    }

    /// Handles an authentic notice that a relay does not give or take a location. Returns the
    /// greeting that asked, and whether the reason is new.
    pub fn on_unlocated(
        &mut self,
        now: Instant,
        notice: &Notice,
        nonce: [u8; 8],
        is_connected: impl Fn(Handle) -> bool,
    ) -> Option<(Greeting, bool)> {
        let is_proven =
            |it: &Greeting| it.location_key.as_ref().is_some_and(|key| notice.is_authentic(key.mac_key()));
        let asked = |it: &&mut Greeting| {
            it.nonce == notice.echo && it.asked_with.is_some() && it.tries > 0 && is_proven(it)
        };
        let greeting = self.all.iter_mut().find(asked)?;
        (greeting.tries, greeting.nonce, greeting.next_at) = (0, nonce, now + KEEPALIVE_INTERVAL);
        greeting.is_located = false;
        greeting.ask_again(now, is_connected);
        self.due = Some(now);
        let is_news = greeting.refused.replace(notice.reason) != Some(notice.reason);
        Some((greeting.clone(), is_news))
    }

    /// Handles a notice by which a relay seems to refuse a greeting. Whoever saw the greeting's
    /// nonce can forge a notice, so a good answer within `REFUSAL_DELAY` still counts. Returns
    /// whether the notice belongs to a greeting.
    pub fn on_notice(&mut self, now: Instant, notice: &Notice) -> bool {
        let asked = self.all.iter_mut().find(|greeting| {
            greeting.nonce == notice.echo
                && greeting.grant == notice.grant
                && greeting.known.is_none()
                && greeting.tries > 0
        });
        let Some(greeting) = asked else { return false };
        if greeting.refused.replace(notice.reason).is_none() {
            greeting.tries = MAX_TRIES;
            greeting.next_at = now + REFUSAL_DELAY;
            self.due = Some(self.due.map_or(greeting.next_at, |at| at.min(greeting.next_at)));
        }
        true
    }

    /// Handles the peer's consent to a relay that was offered to it.
    pub fn on_consent(&mut self, handle: Handle, offer: u32, at: (SocketAddr, Consent)) -> Option<Greeting> {
        let greeting = self.all.iter_mut().find(|greeting| greeting.number == offer)?;
        match &mut greeting.purpose {
            GreetingPurpose::Send { handle: by, reach, .. } if *by == handle => *reach = Some(at),
            _ => return None,
        }
        Some(greeting.clone())
    }

    /// Handles the peer's refusal of a relay that was offered to it. The relay is no longer
    /// greeted.
    pub fn on_refused(&mut self, handle: Handle, offer: u32) -> Option<Greeting> {
        let waits = |it: &Greeting| {
            it.number == offer
                && matches!(it.purpose, GreetingPurpose::Send { handle: by, reach: None, .. } if by == handle)
        };
        let index = self.all.iter().position(waits)?;
        Some(self.all.remove(index))
    }
}
