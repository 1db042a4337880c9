//! An endpoint's relays: it greets them, offers them to peers, and consents to be reached through
//! them.
//!
//! | step | host | does |
//! |---|---|---|
//! | 1 | sender | greets a relay, and offers the relay to the receiver |
//! | 2 | receiver | greets the relay too, which opens the receiver's NAT |
//! | 3 | relay | sends a consent: a proof that the receiver wants packets through this relay |
//! | 4 | receiver | passes the consent on to the sender |
//! | 5 | sender | tries the relay as a path |

use super::greeting_failure::Failure;
use super::greetings::{AnsweredRelay, Greeting, GreetingPurpose};
use super::openings::{DueQuestion, OpeningToken};
use super::relay_addresses::{AddressProblem, unfit};
use super::relay_pool::{RelayRoute, RelayStatus, RelayTrouble};
use super::{ConnectionEntry, ConnectionSlot, Endpoint, EndpointEvent, Handle, MIN_TIMER_DELAY, Reachable};
use crate::connection::{Connection, RelayEvent, RelayId, RelayMessage};
use crate::route::Route;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use byway_wire::frame::{AddressList, MAX_LISTED_ADDRESSES, RelayOffer};
use byway_wire::relay::{Consent, Greeted, Hop, LocationKey, Notice, OPENING_LEN, Opening, Word};
use byway_wire::{Dscp, Ecn, Instant, Local, Transmit, TransmitBuffer, Writer};
use core::net::SocketAddr;

/// The most relays that are greeted for an attempt to connect, which may find its peer through
/// them.
const MAX_AWAITED_RELAYS: usize = 16;
/// A peer may make `OFFERS_PER_INTERVAL` offers of relays in each `probe_interval` of the
/// configuration, and up to `MAX_BURST_OFFERS` offers at once. For each offer, this host sends a
/// greeting to an address whose host did not ask for it.
const OFFERS_PER_INTERVAL: u32 = 4;
const MAX_BURST_OFFERS: u32 = 32;
/// Bytes of the longest list of addresses in a frame.
const MAX_LIST_BYTES: usize = 1 + MAX_LISTED_ADDRESSES * 19;

impl Endpoint {
    /// Makes this side reachable through a relay for every peer that learns of the relay, for
    /// example from a ticket. For each local socket from which the relay can be reached,
    /// [`EndpointEvent::Reachable`] or [`EndpointEvent::StandingTrouble`] follows. Returns the
    /// relay's addresses that are tried.
    pub fn stand_at(&mut self, now: Instant, word: &Word) -> Result<Vec<SocketAddr>, RelayTrouble> {
        self.stand(now, word, None, None)
    }

    /// Like [`stand_at`](Self::stand_at), and has the relay remember where this side is, for
    /// senders that know the secret `ticket`. The relay also carries a packet from this side to
    /// itself before [`EndpointEvent::Reachable`] follows. So a word that has expired or was
    /// revoked is found here, and not by whoever uses it.
    pub fn stand_at_for(
        &mut self,
        now: Instant,
        word: &Word,
        ticket: &[u8; 16],
    ) -> Result<Vec<SocketAddr>, RelayTrouble> {
        self.standing.push(word.clone());
        let key = Arc::new(LocationKey::new(word, ticket));
        self.stand(now, word, Some(self.standing.len() - 1), Some(key))
    }

    fn stand(
        &mut self,
        now: Instant,
        word: &Word,
        number: Option<usize>,
        key: Option<Arc<LocationKey>>,
    ) -> Result<Vec<SocketAddr>, RelayTrouble> {
        let now = self.own_time(now);
        let ways = self.ways_to_relay(word.relays());
        if ways.is_empty() {
            return Err(why_no_way(word.relays()));
        }
        for way in &ways {
            self.greet(now, *way, word.grant().id, GreetingPurpose::Standing { word: number }, key.clone());
        }
        let mut addresses: Vec<SocketAddr> = ways.into_iter().map(|(_, address)| address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        Ok(addresses)
    }

    /// Returns, for each local socket, the relay's first address that the socket can reach.
    fn ways_to_relay(&self, relays: &[SocketAddr]) -> Vec<(Local, SocketAddr)> {
        let reachable = |bound: &SocketAddr| fit(relays).find(|relay| relay.is_ipv4() == bound.is_ipv4());
        let sockets = self.locals.iter().filter_map(|(local, bound)| Some((*local, *reachable(bound)?)));
        let connections = self.greetings.connections().filter(|(_, peer)| relays.contains(peer));
        sockets.chain(connections).collect()
    }

    /// Handles a local socket that is new, or may have another address now. Relays that were
    /// greeted by this socket are greeted again. Every connection may use this socket to reach its
    /// relays.
    pub(super) fn greet_by(&mut self, now: Instant, local: Local, bound: SocketAddr) {
        self.greetings.again_by(now, local);
        let mut reached: Vec<(Handle, SocketAddr, Word, Option<RelayRoute>)> = Vec::new();
        for (handle, entry) in &self.entries {
            for (word, reach) in entry.pool.words() {
                let address = fit(word.relays()).find(|relay| relay.is_ipv4() == bound.is_ipv4());
                reached.extend(address.map(|address| (*handle, *address, word.clone(), reach)));
            }
        }
        for (handle, address, word, reach) in reached {
            self.enter_relay(now, handle, (local, address), &word, reach.as_ref());
        }
    }

    /// Handles a TCP connection that was opened. If it leads to a relay, greets the relay over it.
    pub(super) fn greet_over(&mut self, now: Instant, local: Local, peer: SocketAddr) {
        self.greetings.connection_opened(local, peer);
        for (grant, purpose, key) in self.greetings.unanswered(peer) {
            self.greet(now, (local, peer), grant, purpose, key);
        }
        let mut reached: Vec<(Handle, Word, Option<RelayRoute>)> = Vec::new();
        for (handle, entry) in &self.entries {
            let words = entry.pool.words().filter(|(word, _)| word.relays().contains(&peer));
            // It is there once for each local socket.
            for (word, reach) in words {
                let is_same = |it: &(Handle, Word, _)| it.0 == *handle && it.1.grant().id == word.grant().id;
                if !reached.iter().any(is_same) {
                    reached.push((*handle, word.clone(), reach));
                }
            }
        }
        for (handle, word, reach) in reached {
            self.enter_relay(now, handle, (local, peer), &word, reach.as_ref());
        }
    }

    /// Whether a relay at which this host is [registered](Self::stand_at) has answered.
    #[must_use]
    pub fn stands_at(&self, relay: SocketAddr) -> bool {
        self.greetings.stands_at(relay)
    }

    /// Greets a relay. Returns false if there is no room for one more.
    fn greet(
        &mut self,
        now: Instant,
        way: (Local, SocketAddr),
        grant: u32,
        purpose: GreetingPurpose,
        key: Option<Arc<LocationKey>>,
    ) -> bool {
        let nonce = self.random.unguessable();
        self.greetings.begin(now, way, grant, purpose, key, nonce)
    }

    /// Sends the next greeting that is due.
    pub(super) fn send_greeting(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        if self.greetings.due().is_none_or(|at| at > now) {
            return None;
        }
        let entries = &self.entries;
        let connection = |handle: Handle| match entries.get(&handle).map(|entry| &entry.slot) {
            Some(ConnectionSlot::Connection { connection, .. }) => Some(connection),
            _ => None,
        };
        // One that a peer offered is needed while a path of the peer's comes by it.
        let needed = |greeting: &Greeting| match greeting.purpose {
            GreetingPurpose::Receive { handle, .. } => {
                connection(handle).is_some_and(|it| it.is_reached_by(greeting.local, greeting.address))
            }
            GreetingPurpose::Send { .. } | GreetingPurpose::Standing { .. } => true,
        };
        let told_before = self.events.len();
        let turn = self.greetings.turn(now, out, |handle| connection(handle).is_some(), needed);
        for Greeting { number, address, grant, purpose, .. } in turn.offers {
            if let GreetingPurpose::Send { handle, .. } = purpose {
                self.tell_peer(
                    handle,
                    RelayMessage::Offer(RelayOffer { offer: number, relay: address, grant }),
                );
            }
        }
        for (greeting, failure) in turn.failed {
            let trouble = match failure {
                Failure::Silent => RelayTrouble::Silent,
                Failure::Refused(reason) => RelayTrouble::Refused(reason),
                Failure::NotTaken => RelayTrouble::PeerCannot,
            };
            self.relay_failed(now, &greeting, trouble);
        }
        turn.checks.iter().for_each(|greeting| self.send_check(greeting));
        turn.unheard.iter().for_each(|greeting| self.on_reachable(greeting));
        if self.events.len() > told_before {
            // Told by a wake, after which owners look for news; after a transmission they need not.
            self.greetings.look_at(now + MIN_TIMER_DELAY);
        }
        turn.sent
    }

    /// Sends a packet from this host to itself, through the relay at which it is registered.
    fn send_check(&mut self, greeting: &Greeting) {
        let GreetingPurpose::Standing { word: Some(number) } = greeting.purpose else { return };
        let (Some(known), Some(check)) = (greeting.known, greeting.check) else { return };
        let Some(word) = self.standing.get(number) else { return };
        let mut hop = Hop::new(word, greeting.address, known.address, known.consent, known.clock);
        hop.set_cookie(known.cookie);
        self.answers.push_back((Route::relayed(greeting.local, hop), check.token.to_vec()));
    }

    /// Handles a packet that came through a relay. Returns whether it was a
    /// [check](Self::send_check) of a relay word.
    pub(super) fn on_checked(&mut self, packet: &[u8]) -> bool {
        let greeting = self.greetings.on_checked(packet);
        greeting.iter().for_each(|greeting| self.on_reachable(greeting));
        greeting.is_some()
    }

    /// Reports that this side can be reached through the relay.
    fn on_reachable(&mut self, greeting: &Greeting) {
        let Some(known) = greeting.known else { return };
        self.events.push_back(EndpointEvent::Reachable(Reachable {
            relay: greeting.address,
            grant: greeting.grant,
            address: known.address,
            consent: known.consent,
            is_remembered: greeting.is_located,
        }));
    }

    fn relay_failed(&mut self, now: Instant, greeting: &Greeting, trouble: RelayTrouble) {
        match greeting.purpose {
            GreetingPurpose::Send { handle, id, .. } => self.pooled_failed(now, handle, id, trouble),
            GreetingPurpose::Receive { handle, offer } => {
                if self.greetings.of_offer(handle, offer).next().is_none() {
                    self.tell_peer(handle, RelayMessage::Refuse(offer));
                }
            }
            GreetingPurpose::Standing { .. } => {
                let trouble = EndpointEvent::StandingTrouble(greeting.address, greeting.grant, trouble);
                self.events.push_back(trouble);
            }
        }
    }

    pub(super) fn on_greeted(&mut self, now: Instant, local: Local, remote: SocketAddr, packet: &[u8]) {
        let Ok(greeted) = Greeted::read(packet) else {
            self.dropped.unknown += 1;
            return;
        };
        let nonce = self.random.unguessable();
        let Some((greeting, told)) = self.greetings.on_greeted(now, (local, remote), &greeted, nonce) else {
            self.dropped.stray += 1;
            return;
        };
        self.on_answered(now, &greeting, told);
    }

    /// Handles a relay's answer about the location of this side, or of a peer.
    pub(super) fn on_location(&mut self, now: Instant, local: Local, remote: SocketAddr, packet: &[u8]) {
        let nonce = self.random.unguessable();
        let Self { entries, greetings, .. } = self;
        let is_connected = |handle| is_connection(entries.get(&handle));
        match greetings.on_location(now, (local, remote), packet, nonce, is_connected) {
            Some((greeting, told)) => self.on_answered(now, &greeting, told),
            None => self.dropped.stray += 1,
        }
    }

    /// Handles a relay's answer to a greeting. `told`: whether the consent is to be sent to the
    /// peer.
    fn on_answered(&mut self, now: Instant, greeting: &Greeting, told: bool) {
        let Some(known) = greeting.known else { return };
        match greeting.purpose {
            GreetingPurpose::Send { .. } => self.use_relay(now, greeting),
            GreetingPurpose::Receive { handle, offer } if told => {
                self.greetings.settle(handle, offer);
                self.consent(handle, offer, &known);
            }
            GreetingPurpose::Standing { word: Some(_) } if told => {
                let token = self.random.unguessable();
                self.greetings.begin_check(now, greeting.number, token);
            }
            GreetingPurpose::Standing { word: None } if told => self.on_reachable(greeting),
            GreetingPurpose::Receive { .. } | GreetingPurpose::Standing { .. } => {}
        }
    }

    /// Adds the route through a relay to the connection, after both the relay and the peer agreed.
    fn use_relay(&mut self, now: Instant, greeting: &Greeting) {
        let Greeting { address, local, known: Some(known), .. } = greeting else { return };
        let GreetingPurpose::Send { handle, id, reach: Some((destination, consent)) } = greeting.purpose
        else {
            return;
        };
        let Some(entry) = self.entries.get_mut(&handle) else { return };
        let Some(word) = entry.pool.word(id) else { return };
        let mut hop = Hop::new(word, *address, destination, consent, known.clock);
        hop.set_cookie(known.cookie);
        let route = Route::relayed(*local, hop);
        match &mut entry.slot {
            ConnectionSlot::Attempt(attempt) => attempt.add_route(now, route),
            ConnectionSlot::Connection { connection, .. } => connection.offer_route(now, id, route),
        }
        self.touch(handle);
    }

    /// Handles a connection's request about relays, or its peer's message about them.
    pub(super) fn on_relay_news(&mut self, now: Instant, handle: Handle, news: RelayEvent) {
        match news {
            RelayEvent::Greet(id) => self.greet_pooled(now, handle, id),
            RelayEvent::Release(id) => self.greetings.release(handle, id),
            RelayEvent::Silence => self.greetings.on_silence(now, handle),
            RelayEvent::Addresses { is_answer, token, addresses } => {
                self.on_addresses(now, handle, is_answer, token, &addresses);
            }
            RelayEvent::Offered(offer) => self.on_offer(now, handle, &offer),
            RelayEvent::Consented { offer, address, consent } => {
                let Ok(consented) = Consent::from_bytes(&consent) else { return };
                if let Some(greeting) = self.greetings.on_consent(handle, offer, (address, consented)) {
                    self.use_relay(now, &greeting);
                }
            }
            RelayEvent::Refused(offer) => {
                if let Some(greeting) = self.greetings.on_refused(handle, offer) {
                    self.relay_failed(now, &greeting, RelayTrouble::PeerCannot);
                }
            }
        }
    }

    /// Asks the peer to open its NAT for a direct path, unless one opens soon.
    pub(super) fn ask_for_direct_path(&mut self, now: Instant, handle: Handle) {
        if self.connection(handle).is_some_and(Connection::takes_addresses) {
            let token = self.random.unguessable();
            self.openings.begin(now, handle, token);
        }
    }

    /// Asks peers for direct paths, and sends the next packet that opens a way for a peer.
    pub(super) fn send_opening(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        if self.openings.due().is_none_or(|at| at > now) {
            return None;
        }
        let Self { entries, openings, .. } = self;
        let is_direct = |handle| match entries.get(&handle).map(|entry| &entry.slot) {
            Some(ConnectionSlot::Connection { connection, .. }) => connection.is_reached_directly(),
            _ => true,
        };
        if let Some(DueQuestion { handle, token }) = openings.next_question(now, is_direct) {
            self.tell_addresses(handle, false, token);
        }
        let (local, remote, token) = self.openings.next_packet(now)?;
        let mut writer = Writer::new(out.buffer.get_mut(..OPENING_LEN)?);
        Opening { token }.write(&mut writer);
        let (ecn, dscp) = (Ecn::NotEct, Dscp::BestEffort);
        Some(Transmit { local, remote, ecn, dscp, size: OPENING_LEN, segment: OPENING_LEN, phantom: 0 })
    }

    /// Sends a peer the addresses at which relays see this host.
    fn tell_addresses(&mut self, handle: Handle, is_answer: bool, token: OpeningToken) {
        let mut addresses: Vec<SocketAddr> = self.greetings.outside_addresses().collect();
        addresses.sort_unstable();
        addresses.dedup();
        // Who asks and is seen nowhere has nothing to ask for.
        if !is_answer && addresses.is_empty() {
            return;
        }
        let mut encoded = vec![0; MAX_LIST_BYTES];
        let mut writer = Writer::new(&mut encoded);
        AddressList::write_addresses(&mut writer, &addresses);
        let length = writer.len();
        encoded.truncate(length);
        self.tell_peer(handle, RelayMessage::Addresses { is_answer, token, encoded });
    }

    /// Handles a peer's addresses: opens this host's NAT for them, or tries them as direct paths.
    fn on_addresses(
        &mut self,
        now: Instant,
        handle: Handle,
        is_answer: bool,
        token: OpeningToken,
        addresses: &[SocketAddr],
    ) {
        if is_answer {
            if !self.openings.on_answer(now, handle, token) {
                return;
            }
        } else {
            let pace = self.config.probe_interval / OFFERS_PER_INTERVAL;
            let Some(entry) = self.entries.get_mut(&handle) else { return };
            if entry.offers.debt(now) > pace * MAX_BURST_OFFERS {
                return; // the peer asks again
            }
            entry.offers.lend(now, pace * MAX_LISTED_ADDRESSES as u32);
        }
        let is_here = self.is_here(handle);
        let fit: Vec<SocketAddr> =
            addresses.iter().copied().filter(|address| unfit(*address, is_here).is_none()).collect();
        let routes = self.direct_routes(&fit);
        if is_answer {
            if let Some(connection) = self.connection_mut(handle) {
                routes.into_iter().for_each(|route| connection.add_seen(now, route));
            }
            return;
        }
        let targets = routes.into_iter().map(|route| (route.local, route.remote));
        self.openings.open(now, handle, token, targets.take(MAX_LISTED_ADDRESSES).collect());
        self.tell_addresses(handle, true, token);
    }

    /// Handles a packet with which a peer opened its NAT. The packet's source becomes an address of
    /// the peer.
    pub(super) fn on_opening(&mut self, now: Instant, local: Local, remote: SocketAddr, packet: &[u8]) {
        let opening = Opening::read(packet).ok();
        let handle = opening.and_then(|opening| self.openings.peer_of(opening.token));
        match handle.and_then(|handle| self.connection_mut(handle)) {
            Some(connection) => connection.add_seen(now, Route::direct(local, remote)),
            None => self.dropped.stray += 1,
        }
    }

    /// Handles a peer's offer of a relay through which the peer would send to this side. This side
    /// greets the relay by every local socket that fits, and uses the first socket on which an
    /// answer comes.
    fn on_offer(&mut self, now: Instant, handle: Handle, offer: &RelayOffer) {
        let greeted: Vec<Option<AnsweredRelay>> =
            self.greetings.of_offer(handle, offer.offer).map(|greeting| greeting.known).collect();
        if !greeted.is_empty() {
            if let Some(known) = greeted.into_iter().flatten().next() {
                self.consent(handle, offer.offer, &known);
            }
            return;
        }
        if let Some(why) = unfit(offer.relay, self.is_here(handle)) {
            let trouble = RelayTrouble::Unfit(why);
            self.events.push_back(EndpointEvent::RelayTrouble(handle, offer.relay, trouble));
            self.tell_peer(handle, RelayMessage::Refuse(offer.offer));
            return;
        }
        let Some(entry) = self.entries.get_mut(&handle) else { return };
        let pace = self.config.probe_interval / OFFERS_PER_INTERVAL;
        if entry.offers.debt(now) > pace * MAX_BURST_OFFERS {
            return; // it is offered again
        }
        entry.offers.lend(now, pace);
        let room = self.config.relays_per_peer.saturating_sub(self.greetings.count(handle).1);
        let ways = self.ways_to_relay(&[offer.relay]);
        if ways.is_empty() || room == 0 {
            self.tell_peer(handle, RelayMessage::Refuse(offer.offer));
            return;
        }
        for way in ways.into_iter().take(room) {
            self.greet(now, way, offer.grant, GreetingPurpose::Receive { handle, offer: offer.offer }, None);
        }
        let over_tcp = self.connection(handle).is_some_and(Connection::goes_over_tcp);
        if over_tcp && !self.leads_to(offer.relay) {
            self.greetings.dial(offer.relay);
        }
    }

    /// Whether a peer is on this very host, as far as addresses tell.
    fn is_here(&self, handle: Handle) -> bool {
        let connection = self.connection(handle);
        connection.is_some_and(|it| it.status().paths.iter().any(|path| path.route.remote.ip().is_loopback()))
    }

    /// Sends a peer the consent to reach this host through a relay that it offered.
    fn consent(&mut self, handle: Handle, offer: u32, known: &AnsweredRelay) {
        let (address, consent) = (known.address, known.consent.to_bytes().to_vec());
        self.tell_peer(handle, RelayMessage::Consent { offer, address, consent });
    }

    fn tell_peer(&mut self, handle: Handle, answer: RelayMessage) {
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
        let mut ours = self.greetings.on_notice(now, &notice)
            || self.greetings.on_check_refused(now, &notice)
            || self.on_unlocated(now, &notice);
        for handle in handles {
            let told = match self.entries.get_mut(&handle).map(|entry| &mut entry.slot) {
                Some(ConnectionSlot::Connection { connection, .. }) => connection.on_notice(now, &notice),
                Some(ConnectionSlot::Attempt(attempt)) => {
                    attempt.on_notice(now, &notice).map(|(relay, is_news)| {
                        let trouble =
                            EndpointEvent::RelayTrouble(handle, relay, RelayTrouble::Refused(notice.reason));
                        self.events.extend(is_news.then_some(trouble));
                        relay
                    })
                }
                None => None,
            };
            if let Some(relay) = told {
                ours = true;
                // A refusal for the sake of the cookie or the consent ends with the answer.
                self.greetings.renew(now, relay, notice.grant);
                self.touch(handle);
            }
        }
        self.dropped.stray += u64::from(!ours);
    }

    /// Handles a notice by which a relay refuses a location. Returns whether it is such a notice.
    fn on_unlocated(&mut self, now: Instant, notice: &Notice) -> bool {
        let nonce = self.random.unguessable();
        let Self { entries, greetings, .. } = self;
        let is_connected = |handle| is_connection(entries.get(&handle));
        let Some((greeting, is_news)) = greetings.on_unlocated(now, notice, nonce, is_connected) else {
            return false;
        };
        let (address, trouble) = (greeting.address, RelayTrouble::Refused(notice.reason));
        let event = match greeting.purpose {
            GreetingPurpose::Send { handle, .. } => EndpointEvent::RelayTrouble(handle, address, trouble),
            _ => EndpointEvent::StandingTrouble(address, greeting.grant, trouble),
        };
        self.events.extend(is_news.then_some(event));
        true
    }

    /// Adds a relay through which this side may send to a peer. `reach`: how the relay leads to the
    /// peer, as a ticket tells. `None`: that is unknown, and the peer is asked over an open
    /// connection.
    pub fn add_relay(&mut self, now: Instant, handle: Handle, word: &Word, reach: Option<&RelayRoute>) {
        let now = self.own_time(now);
        let ways = self.ways_to_relay(word.relays());
        let Some(first) = word.relays().first() else { return };
        if ways.is_empty() {
            let trouble = why_no_way(word.relays());
            self.events.push_back(EndpointEvent::RelayTrouble(handle, *first, trouble));
        }
        for way in ways {
            self.enter_relay(now, handle, way, word, reach);
        }
    }

    fn enter_relay(
        &mut self,
        now: Instant,
        handle: Handle,
        way: (Local, SocketAddr),
        word: &Word,
        reach: Option<&RelayRoute>,
    ) {
        let awaited = self.greetings.count(handle).0;
        let Some(entry) = self.entries.get_mut(&handle) else { return };
        let Some(id) = entry.pool.enter(now, way, word, reach) else {
            self.events.push_back(EndpointEvent::RelayTrouble(handle, way.1, RelayTrouble::TooMany));
            return;
        };
        match &mut entry.slot {
            ConnectionSlot::Connection { connection, .. } => {
                connection.add_relay(now, id, way.0);
                self.touch(handle);
            }
            ConnectionSlot::Attempt(_) if reach.is_some() && awaited < MAX_AWAITED_RELAYS => {
                self.greet_pooled(now, handle, id)
            }
            ConnectionSlot::Attempt(_) => {}
        }
    }

    /// Greets a relay in order to send through it. If the relay has already answered such a
    /// greeting, it is used at once.
    fn greet_pooled(&mut self, now: Instant, handle: Handle, id: RelayId) {
        let Some(wanted) = self.entries.get_mut(&handle).and_then(|entry| entry.pool.ask(now, id)) else {
            return;
        };
        if let Some(greeting) = self.greetings.to_send(handle, id).cloned() {
            self.use_relay(now, &greeting);
        } else if !self.greet(
            now,
            wanted.way,
            wanted.grant,
            GreetingPurpose::Send { handle, id, reach: wanted.reach },
            wanted.location_key,
        ) {
            self.pooled_failed(now, handle, id, RelayTrouble::Busy);
        }
    }

    /// A relay by which a peer was to be reached is no way there.
    fn pooled_failed(&mut self, now: Instant, handle: Handle, id: RelayId, trouble: RelayTrouble) {
        let Some(entry) = self.entries.get_mut(&handle) else { return };
        let Some((address, asked_at)) = entry.pool.on_trouble(id, trouble) else { return };
        let over = match &mut entry.slot {
            ConnectionSlot::Connection { connection, .. } => connection.relay_failed(now, id, asked_at),
            ConnectionSlot::Attempt(_) => true,
        };
        if over {
            self.events.push_back(EndpointEvent::RelayTrouble(handle, address, trouble));
        }
        self.touch(handle); // an attempt may have waited for it
    }

    /// Returns the state of each relay that may lead to a connection's peer. Too slow to call per
    /// packet.
    #[must_use]
    pub fn relays(&self, now: Instant, handle: Handle) -> Vec<RelayStatus> {
        let Some(entry) = self.entries.get(&handle) else { return Vec::new() };
        let ConnectionSlot::Connection { connection, .. } = &entry.slot else { return Vec::new() };
        connection.relays(self.steady.own(now)).filter_map(|tried| entry.pool.status(tried)).collect()
    }
}

fn is_connection(entry: Option<&ConnectionEntry>) -> bool {
    entry.is_some_and(|entry| matches!(entry.slot, ConnectionSlot::Connection { .. }))
}

/// Returns the addresses that a relay may have. A loopback address is valid: it means this host.
fn fit(relays: &[SocketAddr]) -> impl Iterator<Item = &SocketAddr> {
    relays.iter().filter(|relay| unfit(**relay, true).is_none())
}

/// Returns the trouble of a relay to which no route leads.
fn why_no_way(relays: &[SocketAddr]) -> RelayTrouble {
    let why: Option<Vec<AddressProblem>> = relays.iter().map(|relay| unfit(*relay, true)).collect();
    why.and_then(|why| why.first().copied()).map_or(RelayTrouble::NoRoute, RelayTrouble::Unfit)
}
