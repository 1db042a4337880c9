//! What an endpoint does about relays: greets them, offers them to peers, consents to be reached through them.
//!
//! A sender greets a relay to learn its clock, then offers it to the receiver; the receiver greets it too, which
//! opens its NAT, and passes the consent that it gets on to the sender; then the relay is a candidate for a path.

use super::fit::{Unfit, unfit};
use super::{Endpoint, EndpointEvent, Handle, Slot};
use crate::connection::{Answer, RelayNews};
use crate::route::Route;
use alloc::vec;
use alloc::vec::Vec;
use byway_wire::frame::RelayOffer;
use byway_wire::relay::{Consent, GREET_LEN, Greet, Greeted, Hop, Notice, Reason, RelayClock, Word};
use byway_wire::{Dscp, Duration, Ecn, Instant, Local, Out, Transmit, Writer};
use core::net::SocketAddr;

/// A greeting that is not answered is repeated after this, doubling, and given up after `TRIES`.
const REPEAT: Duration = Duration::from_millis(250);
const TRIES: u32 = 6;
/// A relay through which this side may be reached is greeted again this often, which keeps a NAT open (RFC 4787
/// requirement 5: mappings last two minutes or more, in practice as little as thirty seconds).
const KEEP_OPEN: Duration = Duration::from_secs(20);
/// An offer without an answer is repeated after this.
const REPEAT_OFFER: Duration = Duration::from_millis(1000);
const OFFERS: u32 = 8;
/// How long a relay that seems to refuse is given to answer after all: nothing proves that the refusal is its own.
const SECOND_THOUGHTS: Duration = Duration::from_millis(1000);
/// A consent is passed on again after this, long before it runs out ([`byway_wire::relay::CONSENT_LIFE`]).
const RENEW_CONSENT: Duration = Duration::from_secs(3600);
/// Relays in use at once, for all purposes.
const MOST: usize = 1024;

/// What an endpoint knows of a relay that answered.
#[derive(Clone, Copy, Debug)]
struct Known {
    clock: RelayClock,
    cookie: u64,
    /// This side's address as the relay saw it, and its consent.
    address: SocketAddr,
    consent: Consent,
    /// When the consent was last passed on.
    told_at: Instant,
}

/// Why a relay is greeted.
#[derive(Clone, Debug)]
enum Purpose {
    /// To send through it; where to, once the peer consented.
    Send { handle: Handle, word: Word, reach: Option<(SocketAddr, Consent)>, offered: u32, offer_at: Instant },
    /// To be reached through it, as a peer asked.
    Receive { handle: Handle, offer: u32 },
    /// To be reached through it by whoever is told.
    Standing,
}

/// A relay in use.
#[derive(Clone, Debug)]
pub(super) struct Relay {
    number: u32,
    address: SocketAddr,
    grant: u32,
    local: Local,
    purpose: Purpose,
    nonce: [u8; 8],
    sent_at: Instant,
    next_at: Instant,
    tries: u32,
    /// What it seems to say against the greeting.
    refused: Option<Reason>,
    known: Option<Known>,
}

impl Relay {
    /// Whether it is greeted because this peer offered it under this number.
    fn is_offer(&self, handle: Handle, offer: u32) -> bool {
        matches!(self.purpose, Purpose::Receive { handle: by, offer: number } if by == handle && number == offer)
    }

    /// Whether it is greeted in order to send to the same peer.
    fn is_for(&self, purpose: &Purpose) -> bool {
        matches!((&self.purpose, purpose), (Purpose::Send { handle: a, .. }, Purpose::Send { handle: b, .. }) if a == b)
    }
}

/// A way for a peer to be reached through a relay, from a ticket.
#[derive(Clone, Debug)]
pub struct Reach {
    /// The relay and the grant to use it under.
    pub word: Word,
    /// The peer's address as the relay saw it.
    pub destination: SocketAddr,
    /// The peer's consent.
    pub consent: Consent,
}

/// Why a relay is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RelayTrouble {
    /// It does not answer.
    #[error("it does not answer")]
    Silent,
    /// It answers that it does not serve this side, or this way.
    #[error("it refuses: {0}")]
    Refused(Reason),
    /// The peer could not greet it, or did not answer.
    #[error("the peer cannot reach it")]
    PeerCannot,
    /// No local socket can reach it.
    #[error("no local socket can reach it")]
    NoRoute,
    /// No relay can be at the address.
    #[error("no relay can be there: {0}")]
    Unfit(Unfit),
}

impl Endpoint {
    /// Sends to this peer through this relay too, as soon as relay and peer agree.
    pub fn add_relay(&mut self, now: Instant, handle: Handle, word: &Word, reach: Option<&Reach>) {
        let now = self.own_time(now);
        let reach = reach.map(|reach| (reach.destination, reach.consent));
        let ways = self.ways_to_relay(word.relays());
        if ways.is_empty()
            && let Some(relay) = word.relays().first()
        {
            let trouble = why_no_way(word.relays());
            self.events.push_back(EndpointEvent::RelayTrouble(handle, *relay, trouble));
        }
        for (local, relay) in ways {
            let purpose = Purpose::Send { handle, word: word.clone(), reach, offered: 0, offer_at: now };
            self.greet(now, local, relay, word.grant().id, purpose);
        }
    }

    /// Lets this side be reached through a relay by whoever is told. [`EndpointEvent::Reachable`] follows, or
    /// [`EndpointEvent::StandingTrouble`], for each local socket that fits an address of the relay.
    pub fn stand_at(&mut self, now: Instant, word: &Word) -> Result<(), RelayTrouble> {
        let now = self.own_time(now);
        let ways = self.ways_to_relay(word.relays());
        if ways.is_empty() {
            return Err(why_no_way(word.relays()));
        }
        for (local, relay) in ways {
            self.greet(now, local, relay, word.grant().id, Purpose::Standing);
        }
        Ok(())
    }

    /// For each local socket the relay's first address that it can reach.
    fn ways_to_relay(&self, relays: &[SocketAddr]) -> Vec<(Local, SocketAddr)> {
        let reachable = |bound: &SocketAddr| fit(relays).find(|relay| relay.is_ipv4() == bound.is_ipv4());
        self.locals.iter().filter_map(|(local, bound)| Some((*local, *reachable(bound)?))).collect()
    }

    /// A local socket is there, perhaps again and at another address: relays are greeted by it too.
    pub(super) fn greet_by(&mut self, now: Instant, local: Local, bound: SocketAddr) {
        let mut missing: Vec<(SocketAddr, u32, Purpose)> = Vec::new();
        for relay in &mut self.relays {
            if relay.local == local {
                (relay.tries, relay.next_at) = (0, now);
                self.relays_at = Some(now);
            } else if let Purpose::Send { handle, word, reach, .. } = &relay.purpose
                && let Some(address) = fit(word.relays()).find(|relay| relay.is_ipv4() == bound.is_ipv4())
            {
                let (handle, word, reach) = (*handle, word.clone(), *reach);
                let purpose = Purpose::Send { handle, word, reach, offered: 0, offer_at: now };
                missing.push((*address, relay.grant, purpose));
            }
        }
        for (address, grant, purpose) in missing {
            let known = self.relays.iter().any(|relay| {
                relay.local == local
                    && relay.address == address
                    && relay.grant == grant
                    && relay.is_for(&purpose)
            });
            if !known {
                self.greet(now, local, address, grant, purpose);
            }
        }
    }

    fn greet(&mut self, now: Instant, local: Local, address: SocketAddr, grant: u32, purpose: Purpose) {
        if self.relays.len() >= MOST {
            return;
        }
        let number = self.next_relay;
        self.next_relay += 1;
        let nonce = self.random.token();
        let relay = Relay {
            number,
            address,
            grant,
            local,
            purpose,
            nonce,
            sent_at: now,
            next_at: now,
            tries: 0,
            refused: None,
            known: None,
        };
        self.relays.push(relay);
        self.relays_at = Some(now);
    }

    /// Sends the next greeting that is due.
    pub(super) fn send_greeting(&mut self, now: Instant, out: &mut Out<'_>) -> Option<Transmit> {
        if self.relays_at.is_none_or(|at| at > now) {
            return None;
        }
        let mut sent = None;
        let mut troubles: Vec<(Relay, RelayTrouble)> = Vec::new();
        let mut offers = Vec::new();
        let mut next: Option<Instant> = None;
        let entries = &self.entries;
        let connected = |handle: &Handle| entries.get(handle).is_some_and(|entry| entry.slot.is_connection());
        self.relays.retain_mut(|relay| {
            if let (Some(_), Purpose::Send { handle, reach: None, offered, offer_at, .. }) =
                (&relay.known, &mut relay.purpose)
                && connected(handle)
            {
                if *offer_at <= now {
                    if *offered == OFFERS {
                        troubles.push((relay.clone(), RelayTrouble::PeerCannot));
                        return false;
                    }
                    *offered += 1;
                    *offer_at = now + REPEAT_OFFER;
                    offers.push((*handle, relay.number, relay.address, relay.grant));
                }
                next = Some(next.map_or(*offer_at, |at| at.min(*offer_at)));
            }
            if relay.next_at <= now && sent.is_none() {
                if relay.tries == TRIES {
                    if relay.known.is_none() {
                        let trouble =
                            relay.refused.take().map_or(RelayTrouble::Silent, RelayTrouble::Refused);
                        troubles.push((relay.clone(), trouble));
                        if !matches!(relay.purpose, Purpose::Standing) {
                            return false;
                        }
                    }
                    relay.tries = 0;
                    relay.next_at = now + KEEP_OPEN;
                } else {
                    sent = write_greeting(relay, out);
                    relay.sent_at = now;
                    relay.next_at = now + REPEAT * (1 << relay.tries);
                    relay.tries += 1;
                }
            }
            next = Some(next.map_or(relay.next_at, |at| at.min(relay.next_at)));
            true
        });
        self.relays_at = next;
        for (handle, offer, relay, grant) in offers {
            if let Some(connection) = self.connection_mut(handle) {
                connection.answer(Answer::Offer(RelayOffer { offer, relay, grant }));
            }
        }
        for (relay, trouble) in troubles {
            self.relay_failed(&relay, trouble);
        }
        sent
    }

    /// There is a peer to offer relays to now.
    pub(super) fn offer_relays(&mut self, now: Instant) {
        if !self.relays.is_empty() {
            self.relays_at = Some(now);
        }
    }

    fn relay_failed(&mut self, relay: &Relay, trouble: RelayTrouble) {
        match relay.purpose {
            Purpose::Send { handle, .. } => {
                self.events.push_back(EndpointEvent::RelayTrouble(handle, relay.address, trouble));
                self.touch(handle); // an attempt may have waited for it
            }
            Purpose::Receive { handle, offer } => {
                if !self.relays.iter().any(|other| other.is_offer(handle, offer)) {
                    self.tell_peer(handle, Answer::Refuse(offer));
                }
            }
            Purpose::Standing => {
                self.events.push_back(EndpointEvent::StandingTrouble(relay.address, trouble))
            }
        }
    }

    pub(super) fn on_greeted(&mut self, now: Instant, local: Local, remote: SocketAddr, packet: &[u8]) {
        let Ok(greeted) = Greeted::read(packet) else {
            self.dropped.unknown += 1;
            return;
        };
        let found = self.relays.iter_mut().find(|relay| {
            relay.local == local && relay.address == remote && relay.nonce == greeted.nonce && relay.tries > 0
        });
        let Some(relay) = found else {
            self.dropped.stray += 1;
            return;
        };
        let clock = RelayClock::learn(&greeted, relay.sent_at, now);
        let told = relay.known.filter(|before| before.address == greeted.address);
        let told_at = told.map(|before| before.told_at).filter(|at| *at + RENEW_CONSENT > now);
        let known = Known {
            clock,
            cookie: greeted.cookie,
            address: greeted.address,
            consent: greeted.consent,
            told_at: told_at.unwrap_or(now),
        };
        relay.known = Some(known);
        relay.tries = 0;
        relay.nonce = self.random.token();
        relay.next_at = now + KEEP_OPEN;
        self.relays_at = Some(now);
        let relay = relay.clone();
        match &relay.purpose {
            Purpose::Send { .. } => self.use_relay(now, &relay),
            Purpose::Receive { handle, offer } if told_at.is_none() => {
                let (handle, offer) = (*handle, *offer);
                self.relays.retain(|other| other.known.is_some() || !other.is_offer(handle, offer));
                self.consent(handle, offer, &known);
            }
            Purpose::Standing if told_at.is_none() => {
                let event = EndpointEvent::Reachable {
                    relay: remote,
                    address: known.address,
                    consent: known.consent,
                };
                self.events.push_back(event);
            }
            Purpose::Receive { .. } | Purpose::Standing => {}
        }
    }

    /// Relay and peer agree: the relay is a way to the peer.
    fn use_relay(&mut self, now: Instant, relay: &Relay) {
        let (Some(known), Purpose::Send { handle, word, reach: Some((destination, consent)), .. }) =
            (&relay.known, &relay.purpose)
        else {
            return;
        };
        let mut hop = Hop::new(word, relay.address, *destination, *consent, known.clock);
        hop.set_cookie(known.cookie);
        let route = Route::relayed(relay.local, hop);
        match self.entries.get_mut(handle).map(|entry| &mut entry.slot) {
            Some(Slot::Attempt(attempt)) => attempt.add_route(now, route),
            Some(Slot::Connection { connection, .. }) => connection.offer_route(now, route),
            None => {}
        }
        self.touch(*handle);
    }

    /// Does what a connection's peer said about relays.
    pub(super) fn on_relay_news(&mut self, now: Instant, handle: Handle, news: RelayNews) {
        match news {
            RelayNews::Offered(offer) => self.on_offer(now, handle, &offer),
            RelayNews::Consented { offer, address, consent } => {
                let Ok(consented) = Consent::from_bytes(&consent) else { return };
                let found = self.relays.iter_mut().find(|relay| relay.number == offer);
                let Some(relay) = found else { return };
                if let Purpose::Send { handle: by, reach, .. } = &mut relay.purpose
                    && *by == handle
                {
                    *reach = Some((address, consented));
                    let relay = relay.clone();
                    self.use_relay(now, &relay);
                }
            }
            RelayNews::Refused(offer) => {
                let Some(index) = self.relays.iter().position(|relay| relay.number == offer) else { return };
                if matches!(self.relays.get(index).map(|relay| &relay.purpose), Some(Purpose::Send { handle: by, reach: None, .. }) if *by == handle)
                {
                    let relay = self.relays.remove(index);
                    self.relay_failed(&relay, RelayTrouble::PeerCannot);
                }
            }
        }
    }

    /// A peer would like to reach this side through a relay: it is greeted by every local socket that fits, since only one of
    /// them may lead there, and the first that it answers counts.
    fn on_offer(&mut self, now: Instant, handle: Handle, offer: &RelayOffer) {
        let by_peer =
            |relay: &&Relay| matches!(relay.purpose, Purpose::Receive { handle: by, .. } if by == handle);
        let mut greeted = self.relays.iter().filter(|relay| relay.is_offer(handle, offer.offer)).peekable();
        if greeted.peek().is_some() {
            if let Some(known) = greeted.find_map(|relay| relay.known) {
                self.consent(handle, offer.offer, &known);
            }
            return;
        }
        if let Some(why) = unfit(offer.relay, self.is_here(handle)) {
            let trouble = RelayTrouble::Unfit(why);
            self.events.push_back(EndpointEvent::RelayTrouble(handle, offer.relay, trouble));
            self.tell_peer(handle, Answer::Refuse(offer.offer));
            return;
        }
        let room = self.config.relays_per_peer.saturating_sub(self.relays.iter().filter(by_peer).count());
        let ways = self.ways_to_relay(&[offer.relay]);
        if ways.is_empty() || room == 0 {
            self.tell_peer(handle, Answer::Refuse(offer.offer));
            return;
        }
        for (local, relay) in ways.into_iter().take(room) {
            self.greet(now, local, relay, offer.grant, Purpose::Receive { handle, offer: offer.offer });
        }
    }

    /// Whether a peer is on this very host, as far as addresses tell.
    fn is_here(&self, handle: Handle) -> bool {
        let connection = self.connection(handle);
        connection.is_some_and(|it| it.status().paths.iter().any(|path| path.route.remote.ip().is_loopback()))
    }

    /// Tells a peer how it may reach this side through a relay that it offered.
    fn consent(&mut self, handle: Handle, offer: u32, known: &Known) {
        let (address, consent) = (known.address, known.consent.to_bytes().to_vec());
        self.tell_peer(handle, Answer::Consent { offer, address, consent });
    }

    fn tell_peer(&mut self, handle: Handle, answer: Answer) {
        if let Some(connection) = self.connection_mut(handle) {
            connection.answer(answer);
        }
    }

    pub(super) fn on_notice(&mut self, now: Instant, packet: &[u8]) {
        let Ok(notice) = Notice::read(packet) else {
            self.dropped.unknown += 1;
            return;
        };
        let handles: Vec<Handle> = self.entries.keys().copied().collect();
        let mut ours = self.on_greeting_refused(now, &notice);
        for handle in handles {
            let told = match self.entries.get_mut(&handle).map(|entry| &mut entry.slot) {
                Some(Slot::Connection { connection, .. }) => connection.on_notice(now, &notice),
                Some(Slot::Attempt(attempt)) => attempt.on_notice(now, &notice).is_some_and(|relay| {
                    let trouble = RelayTrouble::Refused(notice.reason);
                    self.events.push_back(EndpointEvent::RelayTrouble(handle, relay, trouble));
                    true
                }),
                None => false,
            };
            if told {
                ours = true;
                self.touch(handle);
            }
        }
        self.dropped.stray += u64::from(!ours);
    }

    /// Whether a notice answers a greeting. It is proven by nothing but the greeting's nonce, so an answer that comes soon counts
    /// more.
    fn on_greeting_refused(&mut self, now: Instant, notice: &Notice) -> bool {
        let asked = self.relays.iter_mut().find(|relay| {
            relay.nonce == notice.echo
                && relay.grant == notice.grant
                && relay.known.is_none()
                && relay.tries > 0
        });
        let Some(relay) = asked else { return false };
        if relay.refused.replace(notice.reason).is_none() {
            relay.tries = TRIES;
            relay.next_at = now + SECOND_THOUGHTS;
            self.relays_at = Some(self.relays_at.map_or(relay.next_at, |at| at.min(relay.next_at)));
        }
        true
    }

    /// A connection is gone, and with it the reason to know its relays.
    pub(super) fn forget_relays(&mut self, handle: Handle) {
        self.relays.retain(|relay| match relay.purpose {
            Purpose::Send { handle: by, .. } | Purpose::Receive { handle: by, .. } => by != handle,
            Purpose::Standing => true,
        });
    }
}

/// Whether a relay is still being greeted through which an attempt may reach its peer: one that a ticket speaks of, since
/// another could only be offered to the peer once there is a connection.
pub(super) fn awaited_by(relays: &[Relay], handle: Handle) -> bool {
    relays.iter().any(|relay| {
        relay.known.is_none()
            && matches!(&relay.purpose, Purpose::Send { handle: by, reach: Some(_), .. } if *by == handle)
    })
}

fn write_greeting(relay: &Relay, out: &mut Out<'_>) -> Option<Transmit> {
    let mut greeting = vec![0; GREET_LEN];
    let mut writer = Writer::new(&mut greeting);
    Greet { nonce: relay.nonce, grant: relay.grant }.write(&mut writer);
    out.buffer.get_mut(..GREET_LEN)?.copy_from_slice(&greeting);
    let (local, remote) = (relay.local, relay.address);
    Some(Transmit {
        local,
        remote,
        ecn: Ecn::NotEct,
        dscp: Dscp::BestEffort,
        size: GREET_LEN,
        segment: GREET_LEN,
        phantom: 0,
    })
}

/// Addresses of a relay that can be one's. Who names a relay on loopback to this side means this host.
fn fit(relays: &[SocketAddr]) -> impl Iterator<Item = &SocketAddr> {
    relays.iter().filter(|relay| unfit(**relay, true).is_none())
}

/// What to say of a relay to which nothing leads.
fn why_no_way(relays: &[SocketAddr]) -> RelayTrouble {
    let why: Option<Vec<Unfit>> = relays.iter().map(|relay| unfit(*relay, true)).collect();
    why.and_then(|why| why.first().copied()).map_or(RelayTrouble::NoRoute, RelayTrouble::Unfit)
}
