//! Relays that are greeted: for what, how far that is, and when each is greeted again.

use super::handle::Handle;
use crate::connection::RelayId;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use byway_wire::relay::{Consent, GREET_LEN, Greet, Greeted, Notice, Reason, RelayClock};
use byway_wire::{Dscp, Duration, Ecn, Instant, Local, TcpRequest, Transmit, TransmitBuffer, Writer};
use core::net::SocketAddr;

/// Time after which a greeting without an answer is repeated. It doubles up to
/// `MAX_RETRY_INTERVAL`. After `MAX_TRIES` the greeting is given up.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);
const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(1);
const MAX_TRIES: u32 = 6;
/// Time after which a relay that answered is greeted again. This keeps a NAT of this side open for
/// packets through the relay. RFC 4787, requirement 5, wants NAT mappings to last two minutes; in
/// practice some last only 30 seconds.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(20);
/// A relay that refuses is greeted again at once, but not sooner than this after the last greeting.
/// Who sees a packet of ours can forge a refusal, and must not make this side send more than that.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(1);
/// Time after which an offer without an answer is repeated, up to `MAX_OFFERS` times.
const OFFER_INTERVAL: Duration = Duration::from_millis(1000);
const MAX_OFFERS: u32 = 8;
/// How long a greeting continues after a refusal. Refusals are not authenticated, so the relay may
/// still answer.
const REFUSAL_DELAY: Duration = Duration::from_millis(1000);
/// Time after which a consent is passed on again, long before it runs out
/// ([`byway_wire::relay::CONSENT_LIFE`]).
const CONSENT_INTERVAL: Duration = Duration::from_secs(3600);
/// How long a relay may take to accept a TCP connection.
const DIAL_TIMEOUT: Duration = Duration::from_secs(5);
/// TCP connections that are asked for at once.
const MAX_DIALS: usize = 16;
/// Packets by which one word is checked at most. The next one follows after [`RETRY_INTERVAL`], and
/// twice as long each time.
const MAX_CHECK_PACKETS: u32 = 3;
/// The most relays greeted at once, for all purposes.
const MAX_GREETINGS: usize = 4096;

/// A relay's answer to a greeting.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnsweredRelay {
    pub clock: RelayClock,
    /// The cookie of the address that the relay saw.
    pub cookie: u64,
    /// The address of this side as the relay saw it. `consent`: the consent of this side.
    pub address: SocketAddr,
    pub consent: Consent,
    /// When the consent was last passed on.
    told_at: Instant,
}

/// Why a relay is greeted.
#[derive(Clone, Copy, Debug)]
pub(super) enum GreetingPurpose {
    /// To send through the relay. `reach`: the peer's address and consent, once it consented.
    Send { handle: Handle, id: RelayId, reach: Option<(SocketAddr, Consent)> },
    /// To be reached through the relay, as a peer asked.
    Receive { handle: Handle, offer: u32 },
    /// To be reached through it by whoever is told. `word`: the number of the word to be checked at
    /// the relay first, if one is.
    Standing { word: Option<usize> },
}

/// The packet by which a word is checked.
pub(super) type CheckToken = [u8; 16];

/// A test of this side's word at its relay: a packet that the relay must send back.
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
#[derive(Clone, Copy, Debug)]
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
    nonce: [u8; 8],
    sent_at: Instant,
    next_at: Instant,
    tries: u32,
    /// The relay's reason for refusing the greeting, not authenticated. `None`: it did not refuse.
    refused: Option<Reason>,
    /// How often the relay was offered to the peer. `offer_at`: when it may be offered again.
    offered: u32,
    offer_at: Instant,
}

impl Greeting {
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

    /// Does what is due for the check of its word. When it is due next, if it goes on.
    fn check_on(&mut self, now: Instant, turn: &mut DueGreetings) -> Option<Instant> {
        let check = self.check.as_mut()?;
        if check.next_at > now {
            return Some(check.next_at);
        }
        if check.refused.is_none() && check.sent < MAX_CHECK_PACKETS {
            check.next_at = now + RETRY_INTERVAL * (1 << check.sent);
            check.sent += 1;
            let at = check.next_at;
            turn.checks.push(*self);
            return Some(at);
        }
        match check.refused {
            Some(reason) => turn.failed.push((*self, Failure::Refused(reason))),
            None => turn.unheard.push(*self),
        }
        self.check = None;
        None
    }

    fn write(&self, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let mut writer = Writer::new(out.buffer.get_mut(..GREET_LEN)?);
        Greet { nonce: self.nonce, grant: self.grant }.write(&mut writer);
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

/// Why a greeting failed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Failure {
    /// The relay does not answer.
    Silent,
    /// The relay refuses this side, for this reason.
    Refused(Reason),
    /// The peer does not answer the offer.
    NotTaken,
}

/// Greetings that became due.
#[derive(Debug, Default)]
pub(super) struct DueGreetings {
    pub sent: Option<Transmit>,
    /// To be offered to their peers.
    pub offers: Vec<Greeting>,
    pub failed: Vec<(Greeting, Failure)>,
    /// Whose words are to be checked by a packet.
    pub checks: Vec<Greeting>,
    /// Whose checks brought no answer at all.
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
    /// How many words are being checked.
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

    /// A local socket may be at another address: what was greeted by it is greeted again.
    pub fn again_by(&mut self, now: Instant, local: Local) {
        for greeting in self.all.iter_mut().filter(|greeting| greeting.local == local) {
            (greeting.tries, greeting.next_at) = (0, now);
            self.due = Some(now);
        }
    }

    /// A relay refuses packets under this grant: it is greeted again, and answers with a cookie and
    /// a consent that hold.
    pub fn renew(&mut self, now: Instant, relay: SocketAddr, grant: u32) {
        let refused = |it: &&mut Greeting| it.address == relay && it.grant == grant;
        for greeting in self.all.iter_mut().filter(refused) {
            if greeting.known.is_some() && greeting.tries == 0 {
                greeting.next_at = greeting.next_at.min((greeting.sent_at + RENEWAL_INTERVAL).max(now));
                self.due = Some(self.due.map_or(greeting.next_at, |at| at.min(greeting.next_at)));
            }
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

    /// The greetings of a relay that did not answer yet: the grant and the purpose of each.
    pub fn unanswered(&self, relay: SocketAddr) -> Vec<(u32, GreetingPurpose)> {
        let wanted = |it: &&Greeting| {
            it.address == relay && it.known.is_none() && !matches!(it.purpose, GreetingPurpose::Send { .. })
        };
        self.all.iter().filter(wanted).map(|greeting| (greeting.grant, greeting.purpose)).collect()
    }

    /// Whether a relay has answered through which other hosts may reach this side.
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

    /// Relays that are greeted in order to send to a peer, and in order to be reached by it.
    pub fn count(&self, handle: Handle) -> (usize, usize) {
        let of = self.all.iter().filter(|greeting| greeting.purpose.handle() == Some(handle));
        of.fold((0, 0), |(send, receive), greeting| match greeting.purpose {
            GreetingPurpose::Send { .. } => (send + 1, receive),
            _ => (send, receive + 1),
        })
    }

    /// Whether an attempt to connect still waits for the answer of a relay whose ticket names the
    /// peer's address and consent (`reach`). For all other relays the peer must first consent, over
    /// an open connection.
    pub fn awaited_by(&self, handle: Handle) -> bool {
        self.all.iter().any(|greeting| {
            greeting.known.is_none()
                && matches!(greeting.purpose, GreetingPurpose::Send { handle: by, reach: Some(_), .. } if by == handle)
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
        let mut due: Option<Instant> = None;
        self.all.retain_mut(|greeting| {
            if let (Some(_), GreetingPurpose::Send { handle, reach: None, .. }) =
                (&greeting.known, greeting.purpose)
                && connected(handle)
            {
                if greeting.offer_at <= now {
                    if greeting.offered == MAX_OFFERS {
                        turn.failed.push((*greeting, Failure::NotTaken));
                        return false;
                    }
                    greeting.offered += 1;
                    greeting.offer_at = now + OFFER_INTERVAL;
                    turn.offers.push(*greeting);
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
                        turn.failed.push((*greeting, failure));
                        if !matches!(greeting.purpose, GreetingPurpose::Standing { .. }) {
                            return false;
                        }
                    }
                    greeting.tries = 0;
                    greeting.next_at = now + KEEPALIVE_INTERVAL;
                } else if turn.sent.is_none() {
                    turn.sent = greeting.write(out);
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
        self.checking = self.all.iter().filter(|greeting| greeting.check.is_some()).count();
        turn
    }

    /// Begins to check the word of a greeting that was answered.
    pub fn begin_check(&mut self, now: Instant, number: u32, token: CheckToken) {
        let check = WordCheck { token, sent: 0, next_at: now, refused: None };
        if let Some(greeting) = self.all.iter_mut().find(|greeting| greeting.number == number) {
            self.checking += usize::from(greeting.check.replace(check).is_none());
            self.due = Some(now);
        }
    }

    /// Whether a word is being tested, so that packets through relays may be tests.
    pub const fn is_checking(&self) -> bool {
        self.checking > 0
    }

    /// A packet came back through a relay. The greeting whose word it was to check, if it was.
    pub fn on_checked(&mut self, packet: &[u8]) -> Option<Greeting> {
        let checked = |it: &&mut Greeting| it.check.is_some_and(|check| check.token == packet);
        let greeting = self.all.iter_mut().find(checked)?;
        greeting.check = None;
        self.checking -= 1;
        Some(*greeting)
    }

    /// Handles a notice by which a relay seems to refuse a word that is checked. Returns whether it
    /// is one. As for [greetings](Self::on_notice), the packet may come back after all.
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
        let greeting = self
            .all
            .iter_mut()
            .find(|it| it.is_answered_at(from) && it.nonce == greeted.nonce && it.tries > 0)?;
        // A socket bound to all addresses may have others beside it, each for one address: what the
        // relay sends comes by the one of the address that it saw.
        greeting.local = from.0;
        let clock = RelayClock::learn(greeted, greeting.sent_at, now);
        let told = greeting.known.filter(|before| before.address == greeted.address);
        let told_at = told.map(|before| before.told_at).filter(|at| *at + CONSENT_INTERVAL > now);
        let (cookie, address, consent) = (greeted.cookie, greeted.address, greeted.consent);
        let known = AnsweredRelay { clock, cookie, address, consent, told_at: told_at.unwrap_or(now) };
        greeting.known = Some(known);
        (greeting.tries, greeting.nonce, greeting.next_at) = (0, nonce, now + KEEPALIVE_INTERVAL);
        self.due = Some(now);
        Some((*greeting, told_at.is_none()))
    }

    /// Of the relays that a peer asked for under this number one answered: the others need not.
    pub fn settle(&mut self, handle: Handle, offer: u32) {
        self.all.retain(|other| other.known.is_some() || !other.is_offer(handle, offer));
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

    /// Handles the peer's consent to a relay that it was offered.
    pub fn on_consent(&mut self, handle: Handle, offer: u32, at: (SocketAddr, Consent)) -> Option<Greeting> {
        let greeting = self.all.iter_mut().find(|greeting| greeting.number == offer)?;
        match &mut greeting.purpose {
            GreetingPurpose::Send { handle: by, reach, .. } if *by == handle => *reach = Some(at),
            _ => return None,
        }
        Some(*greeting)
    }

    /// The peer cannot be reached through a relay that it was offered, which is therefore greeted
    /// no more.
    pub fn on_refused(&mut self, handle: Handle, offer: u32) -> Option<Greeting> {
        let waits = |it: &Greeting| {
            it.number == offer
                && matches!(it.purpose, GreetingPurpose::Send { handle: by, reach: None, .. } if by == handle)
        };
        let index = self.all.iter().position(waits)?;
        Some(self.all.remove(index))
    }
}
