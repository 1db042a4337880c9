//! Tells apart what comes in: answers to attempts, HELLOs, and packets of connections.

use super::connect_attempt::Success;
use super::hello_limit::HelloDecision;
use super::unconfirmed_peers::{NewcomerDecision, PeerPriority};
use super::{
    Admit, COOKIE_THRESHOLD, ConnectionEntry, ConnectionSlot, Endpoint, EndpointEvent, Handle, MAX_ANSWERS,
    MAX_DIRECT_ROUTES,
};
use crate::config::Params;
use crate::connection::{Connection, Inbound, Rejected, Role, close};
use crate::handshake::{HelloResponse, PublicKey, digest, refuse};
use crate::route::{PacketSource, Route, Through};
use alloc::string::String;
use alloc::vec::Vec;
use byway_wire::packet::{BASE_DATAGRAM, Handshake, Header, RefuseReason};
use byway_wire::relay::{Delivered, MessageType, ReturnedPacket};
use byway_wire::{
    ConnectionChange, Datagram, Ecn, Instant, LinkChange, Local, NetworkPrefix, RoomChange, SendError,
};
use core::net::SocketAddr;

/// The facts about a packet before it is decrypted.
#[derive(Clone, Copy)]
struct DatagramInfo {
    source: PacketSource,
    ecn: Ecn,
    at: Instant,
    bytes: usize,
    phantom: usize,
}

impl Endpoint {
    pub(super) fn on_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let at = self.steady.own(datagram.arrival).min(now);
        let Datagram { local, remote, ecn, payload, phantom, .. } = datagram;
        let bytes = payload.len() + phantom;
        let mut source = PacketSource::direct(local, remote);
        let kind = payload.first().copied().and_then(MessageType::of);
        let inner = match kind {
            None => 0,
            Some(MessageType::Greeted) => return self.on_greeted(now, local, remote, payload),
            Some(MessageType::Notice) => return self.on_notice(now, payload),
            Some(MessageType::Opening) => return self.on_opening(now, local, remote, payload),
            Some(MessageType::Location) => return self.on_location(now, local, remote, payload),
            Some(MessageType::Delivered) => match Delivered::read(payload) {
                Ok(delivered) => {
                    let packet = payload.get(delivered.inner..).unwrap_or_default();
                    if self.greetings.is_checking() && self.on_checked(packet) {
                        return;
                    }
                    source.through = Through::Delivered(delivered);
                    delivered.inner
                }
                Err(_) => usize::MAX,
            },
            Some(MessageType::Back) => match ReturnedPacket::read(payload) {
                Ok(back) => {
                    source.through = Through::Back(back.from);
                    back.inner
                }
                Err(_) => usize::MAX,
            },
            // What only a relay understands.
            Some(MessageType::Forward | MessageType::Return | MessageType::Greet) => usize::MAX,
        };
        match payload.get_mut(inner..) {
            Some(packet) => {
                self.on_session_packet(now, &DatagramInfo { source, ecn, at, bytes, phantom }, packet)
            }
            None => self.dropped.unknown += 1,
        }
    }

    fn on_session_packet(&mut self, now: Instant, arrived: &DatagramInfo, packet: &mut [u8]) {
        let DatagramInfo { source, ecn, at, bytes, phantom } = *arrived;
        let Some(first) = packet.first() else {
            self.dropped.unknown += 1;
            return;
        };
        if Handshake::is(*first) {
            self.on_handshake(now, &source, packet);
            return;
        }
        let Ok(header) = Header::read(packet) else {
            self.dropped.unknown += 1;
            return;
        };
        let (handle, path) = match self.recent.get(header.connection) {
            Some(found) => found,
            None => {
                let Some(found) = self.ids.get(&header.connection).copied() else {
                    self.dropped.stray += 1;
                    return;
                };
                self.recent.put(header.connection, found);
                found
            }
        };
        self.on_packet(now, handle, Inbound { path, source, ecn, at, bytes, packet, phantom });
    }

    fn on_packet(&mut self, now: Instant, handle: Handle, inbound: Inbound<'_>) {
        let Some(ConnectionSlot::Connection { connection, .. }) =
            self.entries.get_mut(&handle).map(|entry| &mut entry.slot)
        else {
            self.dropped.stray += 1;
            return;
        };
        match connection.on_packet(now, inbound) {
            Ok(()) => {
                self.touch(handle);
                self.settle(now, handle);
            }
            Err(Rejected::Replayed) => self.dropped.replayed += 1,
            Err(Rejected::Forged) => self.dropped.forged += 1,
            Err(Rejected::Malformed | Rejected::Unexpected) => self.dropped.stray += 1,
        }
    }

    fn on_handshake(&mut self, now: Instant, source: &PacketSource, packet: &mut [u8]) {
        match Handshake::read(packet) {
            Ok(Handshake::Hello { .. }) => self.on_hello(now, source, packet),
            Ok(
                answer @ (Handshake::Retry { reply, .. }
                | Handshake::Reply { reply, .. }
                | Handshake::Refuse { reply, .. }),
            ) => {
                let Some(handle) = self.attempts.get(&reply).copied() else {
                    self.dropped.stray += 1;
                    return;
                };
                let Some(ConnectionSlot::Attempt(attempt)) =
                    self.entries.get_mut(&handle).map(|entry| &mut entry.slot)
                else {
                    return;
                };
                if let Some(success) = attempt.on_packet(now, source, &answer) {
                    self.attempts.remove(&reply);
                    self.connected(now, handle, success);
                }
                self.touch(handle);
                self.settle(now, handle);
            }
            // A HELLO of another version is refused politely.
            Err(_) => self.on_hello(now, source, packet),
        }
    }

    fn connected(&mut self, now: Instant, handle: Handle, mut success: Success) {
        let route = success.route.clone();
        let (rtt, others) = (success.rtt, core::mem::take(&mut success.others));
        let relay = self.entries.get(&handle).and_then(|entry| entry.pool.of(&route));
        let theirs = success.params.payload;
        let mut connection = self.new_connection(now, Role::Initiator, success);
        connection.open_first(now, route, relay, rtt);
        for other in others.into_iter().filter(|route| !route.is_proxied()) {
            connection.add_candidate(now, other);
        }
        if theirs != self.config.payload {
            connection.close_at(now, close::PAYLOAD_CODE, close::PAYLOAD_REASON);
        }
        if let Some(entry) = self.entries.get_mut(&handle) {
            for (relay, local) in entry.pool.numbers() {
                connection.add_relay(now, relay, local);
            }
            entry.slot = ConnectionSlot::Connection { connection, announced: true, digest: None };
        }
        self.confirmed += 1;
        self.share_memory();
        self.greetings.hurry(now);
        self.ask_for_direct_path(now, handle);
        self.events.push_back(EndpointEvent::Connected(handle));
    }

    fn on_hello(&mut self, now: Instant, source: &PacketSource, packet: &[u8]) {
        if self.admission.is_some() && self.is_full() {
            return self.refuse_full(source, packet);
        }
        let (Some(admission), Some(route)) = (&mut self.admission, source.route()) else {
            self.dropped.hellos += 1;
            return;
        };
        if self.answers.len() >= MAX_ANSWERS {
            self.dropped.hellos += 1;
            return;
        }
        if let Some(bytes) = digest(packet).and_then(|digest| self.answered.get(&digest)) {
            self.answers.push_back((route.clone(), bytes.clone()));
            return;
        }
        let greeting = Params::of(&self.config).payload(&self.greeting);
        let network = NetworkPrefix::of(source.remote.ip());
        let shown = self.responder.shows_cookie(now, source.remote, packet).then_some(network);
        let care = self.hello_limiter.care(now, shown);
        if care == HelloDecision::Drop {
            self.dropped.hellos += 1;
            return;
        }
        let demand_cookie = self.waiting.len() >= COOKIE_THRESHOLD || care == HelloDecision::Cookie;
        let computed = self.responder.computed();
        let answer = self.responder.on_hello(now, source.remote, packet, demand_cookie, &greeting);
        if self.responder.computed() != computed {
            self.hello_limiter.spend(now, shown);
        }
        match answer {
            HelloResponse::Retry(bytes) | HelloResponse::Refuse { bytes, .. } => {
                self.answers.push_back((route.clone(), bytes))
            }
            HelloResponse::Ignore => self.dropped.hellos += 1,
            HelloResponse::Reply { bytes, mut established, digest, .. } => {
                let payload = core::mem::take(&mut established.payload);
                let Ok((params, application)) = Params::read(&payload) else {
                    self.dropped.hellos += 1;
                    return;
                };
                let (controller, rejected) = match admission.admit(established.peer, application) {
                    Admit::Accept(controller) => (controller, None),
                    Admit::Reject { code, reason } => {
                        (byway_control::Class::Background.controller(0), Some((code, reason)))
                    }
                };
                let own = self.sessions_of(established.peer);
                if !self.may_have_another(own) {
                    return self.refuse_full(source, packet);
                }
                let standing = match rejected {
                    Some(_) => PeerPriority::Refused,
                    None if own > 0 => PeerPriority::Known,
                    None => PeerPriority::Welcome,
                };
                match self.waiting.judge(network, standing, |most| self.random.below(most)) {
                    NewcomerDecision::Room => {}
                    NewcomerDecision::Instead(other) => self.remove(other),
                    NewcomerDecision::Full => {
                        self.dropped.hellos += 1;
                        return;
                    }
                }
                let success = Success {
                    established,
                    params,
                    application: application.to_vec(),
                    route: route.clone(),
                    rtt: None,
                    others: Vec::new(),
                    controller,
                };
                let mut connection = self.new_connection(now, Role::Responder, success);
                connection.begin(now);
                let rejected = rejected.or_else(|| {
                    let other = params.payload != self.config.payload;
                    other.then(|| (close::PAYLOAD_CODE, String::from(close::PAYLOAD_REASON)))
                });
                if let Some((code, reason)) = rejected {
                    connection.reject(now, code, &reason);
                }
                let handle = self.new_handle();
                self.insert(
                    handle,
                    ConnectionSlot::Connection { connection, announced: false, digest: Some(digest) },
                    Vec::new(),
                );
                if let Some(entry) = self.entries.get_mut(&handle) {
                    entry.network = Some(network);
                }
                self.waiting.insert(handle, network, standing);
                self.answered.insert(digest, bytes.clone());
                self.answers.push_back((route.clone(), bytes));
                self.settle(now, handle);
            }
        }
    }

    /// Refuses a new connection, because there is no memory for more sessions.
    fn refuse_full(&mut self, source: &PacketSource, packet: &[u8]) {
        self.dropped.hellos += 1;
        // Never more bytes than came.
        if packet.len() >= BASE_DATAGRAM
            && self.answers.len() < MAX_ANSWERS
            && let (Some(reply), Some(route)) = (Handshake::hello_reply_id(packet), source.route())
        {
            self.answers.push_back((route, refuse(reply, RefuseReason::Full)));
        }
    }

    /// The number of confirmed sessions of the peer with this key.
    pub(super) fn sessions_of(&self, peer: PublicKey) -> usize {
        let is_its = |entry: &&ConnectionEntry| match &entry.slot {
            ConnectionSlot::Connection { connection, .. } => {
                connection.is_confirmed() && connection.peer() == peer
            }
            ConnectionSlot::Attempt(_) => false,
        };
        self.entries.values().filter(is_its).count()
    }

    pub(super) fn on_send_error(&mut self, now: Instant, error: &SendError) {
        let handles: Vec<Handle> = self.entries.keys().copied().collect();
        for handle in handles {
            match self.entries.get_mut(&handle).map(|entry| &mut entry.slot) {
                Some(ConnectionSlot::Attempt(attempt)) => attempt.on_send_error(error),
                Some(ConnectionSlot::Connection { connection, .. }) => connection.on_send_error(now, error),
                None => {}
            }
            self.touch(handle);
            self.settle(now, handle);
        }
    }

    pub(super) fn on_link(&mut self, now: Instant, change: &LinkChange) {
        if change.up {
            self.locals.insert(change.local, change.address);
            self.greet_by(now, change.local, change.address);
        } else {
            self.locals.remove(&change.local);
            self.greetings.on_local_down(now, change.local);
        }
        let handles: Vec<Handle> = self.entries.keys().copied().collect();
        for handle in handles {
            let Some(entry) = self.entries.get(&handle) else { continue };
            let routes = self.direct_routes(&entry.addresses);
            match self.entries.get_mut(&handle).map(|entry| &mut entry.slot) {
                Some(ConnectionSlot::Attempt(attempt)) => {
                    for route in routes {
                        attempt.add_route(now, route);
                    }
                }
                Some(ConnectionSlot::Connection { connection, .. }) => {
                    on_link(connection, now, change, routes)
                }
                None => {}
            }
            self.touch(handle);
            self.settle(now, handle);
        }
    }

    /// A TCP connection was opened, or is gone. One that leads to an address of a peer's may become
    /// a path to it.
    pub(super) fn on_connection(&mut self, now: Instant, change: &ConnectionChange) {
        let ConnectionChange { local, peer, open, .. } = *change;
        if open {
            self.greet_over(now, local, peer);
        } else {
            self.greetings.connection_over(local);
            self.room.change(RoomChange { local, room: true });
        }
        let handles: Vec<_> = self.entries.keys().copied().collect();
        for handle in handles {
            let Some(entry) = self.entries.get_mut(&handle) else { continue };
            if open && !entry.addresses.contains(&peer) {
                continue;
            }
            match &mut entry.slot {
                ConnectionSlot::Attempt(attempt) if open => {
                    attempt.add_route(now, Route::direct(local, peer))
                }
                ConnectionSlot::Attempt(attempt) => attempt.local_down(local),
                ConnectionSlot::Connection { connection, .. } if open => {
                    connection.add_candidate(now, Route::direct(local, peer));
                }
                ConnectionSlot::Connection { connection, .. } => connection.local_down(now, local),
            }
            self.touch(handle);
            self.settle(now, handle);
        }
    }

    /// Whether any TCP connection carries datagrams.
    #[must_use]
    pub fn has_connections(&self) -> bool {
        self.greetings.connections().next().is_some()
    }

    /// Returns routes to these addresses over the present TCP connections and local sockets.
    pub(super) fn routes_now(&self, addresses: &[SocketAddr]) -> Vec<Route> {
        let leads = |(_, peer): &(Local, SocketAddr)| addresses.contains(peer);
        let over_tcp =
            self.greetings.connections().filter(leads).map(|(local, peer)| Route::direct(local, peer));
        over_tcp.chain(self.direct_routes(addresses)).collect()
    }

    /// Adds a direct address of the peer that was found after the beginning. An attempt tries it at
    /// once, and a connection when its turn comes. An attempt takes at most 16. A connection
    /// forgets the oldest of more.
    pub fn add_address(&mut self, now: Instant, handle: Handle, address: SocketAddr) {
        let now = self.own_time(now);
        let Some(entry) = self.entries.get_mut(&handle) else { return };
        if entry.addresses.contains(&address) {
            return;
        }
        if entry.added < MAX_DIRECT_ROUTES {
            entry.added += 1;
        } else if matches!(entry.slot, ConnectionSlot::Attempt(_)) {
            return;
        } else if let Some(oldest) = entry.addresses.len().checked_sub(entry.added) {
            entry.addresses.remove(oldest);
        }
        entry.addresses.push(address);
        let routes = self.routes_now(&[address]).into_iter();
        match self.entries.get_mut(&handle).map(|entry| &mut entry.slot) {
            Some(ConnectionSlot::Attempt(attempt)) => routes.for_each(|it| attempt.add_route(now, it)),
            Some(ConnectionSlot::Connection { connection, .. }) => {
                routes.for_each(|it| connection.add_candidate(now, it));
            }
            None => {}
        }
        self.touch(handle);
    }

    /// Sets whether more addresses of the peer may be [added](Self::add_address) soon. While they
    /// may, an attempt does not fail for lack of a route.
    pub fn expect_addresses(&mut self, handle: Handle, are_expected: bool) {
        if let Some(ConnectionSlot::Attempt(attempt)) =
            self.entries.get_mut(&handle).map(|entry| &mut entry.slot)
        {
            attempt.expect_addresses(are_expected);
        }
        self.touch(handle);
    }

    /// Whether a path of this session uses a TCP connection.
    #[must_use]
    pub fn goes_over_tcp(&self, handle: Handle) -> bool {
        self.connection(handle).is_some_and(Connection::goes_over_tcp)
    }

    /// Whether a TCP connection to this address is open.
    #[must_use]
    pub fn leads_to(&self, address: SocketAddr) -> bool {
        self.greetings.connections().any(|(_, peer)| peer == address)
    }

    /// Whether this TCP connection leads to a peer, or may lead to one.
    pub(super) fn is_of_use(&self, local: Local) -> bool {
        let by_a_session = self.entries.values().any(|entry| match &entry.slot {
            ConnectionSlot::Attempt(attempt) => attempt.goes_by(local),
            ConnectionSlot::Connection { connection, .. } => connection.goes_by(local),
        });
        by_a_session || self.greetings.is_answered_by(local)
    }
}

fn on_link(connection: &mut Connection, now: Instant, change: &LinkChange, routes: Vec<Route>) {
    if change.up {
        for route in routes {
            connection.add_candidate(now, route);
        }
    } else {
        connection.local_down(now, change.local);
    }
}
