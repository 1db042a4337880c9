//! Where the peer of one session is dialled: at its addresses, and at those that its names lead
//! to. UDP goes to all of them. Over TCP the peer and its relays are dialled where UDP brings no
//! answer, or far less than TCP. In place of UDP, connections to them are kept all the time.

use super::name_lookup::{MAX_ADDRESSES_PER_NAME, NameLookup, NameStep, NoAddress};
use super::tcp_dialer::{DialNeed, NARROW_TIMEOUT, RetryDelays, TcpDialer};
use crate::host_name::NamedAddress;
use byway_engine::carrier_trials::{self, Sight, Trials};
use byway_engine::{Connection, Endpoint, Handle};
use byway_net::{Carrier, Control, Ready};
use byway_wire::relay::Word;
use byway_wire::{Duration, Instant};
use std::net::{IpAddr, SocketAddr};

/// The time without an answer to the first datagram after which TCP is dialled. Many networks take
/// no longer for two round trips.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);
/// The silence of a path that was in use after which TCP is dialled. Most shorter ones are no
/// outages.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(1);
/// The first token of dialled connections. Other descriptors of the owner have smaller tokens, and
/// listeners have larger ones.
const FIRST_TOKEN: u32 = 1 << 30;
/// The number of tokens of one session: first those for its peer's addresses, then those for
/// relays.
const TOKENS_PER_SESSION: u32 = 128;
/// The most addresses of a peer that are dialled beside UDP.
const MAX_PEER_ADDRESSES: usize = 8;
/// The most targets of either dialer where TCP is in place of UDP.
const MAX_KEPT: usize = (TOKENS_PER_SESSION / 2) as usize;
/// The waits between attempts where TCP is in place of UDP: there is nothing else.
const KEPT_DELAYS: RetryDelays =
    RetryDelays { first: Duration::from_millis(500), max: Duration::from_secs(5) };

/// When a session uses TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TcpUse {
    /// Nothing: the session has UDP alone.
    Never,
    /// The peer and its relays are dialled over TCP where UDP gets no answer, or far less
    /// throughput.
    BesideUdp,
    /// The session uses only TCP, with a connection from each of these local addresses to each
    /// remote address. If the list is empty, the system chooses.
    Alone(Vec<IpAddr>),
}

/// The addresses and names of a session's peer, before any name is looked up.
#[derive(Clone, Copy, Debug)]
pub struct PeerPlace<'a> {
    /// The addresses of the peer.
    pub addresses: &'a [SocketAddr],
    /// Names of the peer's host.
    pub names: &'a [NamedAddress],
}

/// The dialers of one session.
pub struct Dialers {
    /// The first token of this session.
    first_token: u32,
    tcp_use: TcpUse,
    /// The addresses of the peer that do not change.
    fixed: Vec<SocketAddr>,
    names: NameLookup,
    /// The addresses of the peer: the fixed ones, and the results of name lookups.
    addresses: Vec<SocketAddr>,
    /// Whether the attempt to connect goes on without a route, because names are still looked up.
    expects: bool,
    peer: TcpDialer,
    relays: TcpDialer,
    begun: Option<Instant>,
    trials: Trials,
    compared_at: Instant,
    warnings: Vec<String>,
}

impl Dialers {
    /// Dials for one session: the peer, and relays. Each item of `relays` is a relay word, which
    /// contains the addresses of one relay. `number` is different for each session of the same
    /// event loop, which `control` is of.
    pub fn new<'a>(
        control: &Control,
        number: u16,
        tcp_use: TcpUse,
        peer: PeerPlace<'_>,
        relays: impl Iterator<Item = &'a Word>,
    ) -> Self {
        let first_token = FIRST_TOKEN + u32::from(number) * TOKENS_PER_SESSION;
        let (max_peer, max_relays, delays) = match &tcp_use {
            TcpUse::Never => (0, 0, RetryDelays::TCP),
            TcpUse::BesideUdp => {
                let named = MAX_ADDRESSES_PER_NAME * peer.names.len();
                ((MAX_PEER_ADDRESSES + named).min(MAX_KEPT), MAX_KEPT, RetryDelays::TCP)
            }
            TcpUse::Alone(_) => (MAX_KEPT, MAX_KEPT, KEPT_DELAYS),
        };
        let watch = control.watch();
        let second_token = first_token + MAX_KEPT as u32;
        let mut dialers = Self {
            first_token,
            peer: TcpDialer::new(watch, first_token, max_peer, delays),
            relays: TcpDialer::new(watch, second_token, max_relays, delays),
            tcp_use,
            fixed: peer.addresses.to_vec(),
            names: NameLookup::new(peer.names, control.waker()),
            addresses: peer.addresses.to_vec(),
            expects: false,
            begun: None,
            trials: Trials::default(),
            compared_at: Instant::ZERO,
            warnings: Vec::new(),
        };
        peer.addresses.iter().for_each(|address| dialers.peer.add(*address, locals(&dialers.tcp_use)));
        relays.for_each(|word| dialers.add(word));
        for from in locals(&dialers.tcp_use) {
            // Nobody knows yet of which family the addresses of a name are.
            let is_known = dialers.names.len() == 0;
            if is_known && !dialers.peer.dials_from(*from) && !dialers.relays.dials_from(*from) {
                let family = if from.is_ipv4() { "IPv4" } else { "IPv6" };
                dialers.warnings.push(format!(
                    "no path from {from}: neither the other side nor a relay has an {family} address"
                ));
            }
        }
        dialers
    }

    /// Adds a relay to the addresses that are dialled.
    pub fn add(&mut self, relay: &Word) {
        self.relays.add_relay(relay, locals(&self.tcp_use));
    }

    /// The addresses of the peer that are known now.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Addresses to which the peer's names lead.
    pub fn named_addresses(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.names.addresses()
    }

    /// Names of the peer that lead to no address, and why.
    pub fn unresolved(&self) -> impl Iterator<Item = (NamedAddress, NoAddress)> + '_ {
        self.names.troubles()
    }

    /// Whether an address of a name may be found soon.
    #[must_use]
    pub fn awaits_addresses(&self, now: Instant) -> bool {
        self.names.are_awaited(now)
    }

    /// Looks up the peer's names, and adds the addresses found. To be called before an attempt.
    pub fn look_up(&mut self, now: Instant) {
        self.names.ask(now);
        self.take_found(None, now);
    }

    /// Starts again for a new session with the same peer.
    pub fn begin(&mut self) {
        (self.begun, self.trials, self.expects) = (None, Trials::default(), false);
        self.peer.begin();
        self.relays.begin();
    }

    /// Adds addresses that the peer's names lead to now. Opens TCP connections when UDP brings no
    /// answer. If both work, makes the session prefer the
    /// one that carries more. `silence`: how long the session has waited for an answer, or `None`
    /// if there is no session yet.
    pub fn look(
        &mut self,
        endpoint: &mut Endpoint,
        handle: Option<Handle>,
        silence: Option<Duration>,
        now: Instant,
    ) {
        if self.names.len() > 0 {
            self.look_at_names(endpoint, handle, silence, now);
        }
        if let TcpUse::Alone(_) = self.tcp_use {
            for dialer in [&mut self.peer, &mut self.relays] {
                dialer.look(now, false, |target| match target.is_open() {
                    true => DialNeed::Served,
                    false => DialNeed::Wanted,
                });
            }
            return;
        }
        let Some(handle) = handle else { return };
        let begun = *self.begun.get_or_insert(now);
        let is_unheard = silence.is_none_or(|silence| silence >= NARROW_TIMEOUT);
        let has_waited = match silence {
            Some(silence) => silence >= SILENCE_TIMEOUT,
            None => now.since(begun) >= ANSWER_TIMEOUT,
        };
        let need = |is_served, is_wanted| match (is_served, is_wanted) {
            (true, _) => DialNeed::Served,
            (false, true) => DialNeed::Wanted,
            (false, false) => DialNeed::Unwanted,
        };
        // One connection to the peer is enough.
        let leads_there = self.peer.addresses().any(|address| endpoint.leads_to(address));
        let compares = silence.is_some() && self.trials.wants_tcp();
        self.peer.look(now, is_unheard, |_| need(leads_there, has_waited || compares));
        let over_tcp = silence.is_some() && endpoint.goes_over_tcp(handle);
        self.relays
            .look(now, is_unheard, |target| need(endpoint.leads_to(target.address), has_waited || over_tcp));
        if let Some(connection) = endpoint.connection_mut(handle).filter(|_| silence.is_some()) {
            self.compare(now, connection);
        }
    }

    fn look_at_names(
        &mut self,
        endpoint: &mut Endpoint,
        handle: Option<Handle>,
        silence: Option<Duration>,
        now: Instant,
    ) {
        let is_answered = self.take_found(silence, now);
        let Some(handle) = handle else { return };
        if is_answered {
            self.names.addresses().for_each(|address| endpoint.add_address(now, handle, address));
        }
        if silence.is_none() {
            self.expect_addresses(endpoint, handle, now);
        }
    }

    /// Adds the addresses found for the peer's names to a new attempt to connect.
    pub fn enter_addresses(&mut self, endpoint: &mut Endpoint, handle: Handle, now: Instant) {
        self.names.addresses().for_each(|address| endpoint.add_address(now, handle, address));
        self.expect_addresses(endpoint, handle, now);
    }

    /// Sets whether an attempt to connect goes on without a route, which it does while the peer's
    /// names are looked up.
    fn expect_addresses(&mut self, endpoint: &mut Endpoint, handle: Handle, now: Instant) {
        let expects = self.names.are_awaited(now);
        if std::mem::replace(&mut self.expects, expects) != expects {
            endpoint.expect_addresses(handle, expects);
        }
    }

    /// Takes in answers about names. Returns whether there was one.
    fn take_found(&mut self, silence: Option<Duration>, now: Instant) -> bool {
        if !self.names.look(silence, now) {
            return false;
        }
        self.addresses.clone_from(&self.fixed);
        for address in self.names.addresses() {
            if !self.addresses.contains(&address) {
                self.addresses.push(address);
            }
        }
        self.peer.retain(&self.addresses);
        self.addresses.iter().for_each(|address| self.peer.add(*address, locals(&self.tcp_use)));
        true
    }

    /// Has the session prefer the carrier that carries more.
    fn compare(&mut self, now: Instant, connection: &mut Connection) {
        if now < self.compared_at || self.peer.addresses().next().is_none() {
            return;
        }
        self.compared_at = now + carrier_trials::CHECK_INTERVAL;
        let preferred = self.trials.look(now, Sight::of(&connection.status()));
        connection.prefer(now, preferred);
    }

    /// The addresses of the peer at which a TCP connection was accepted since the session was
    /// begun, by whomever.
    pub fn accepted(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.peer.accepted()
    }

    /// Whether the session uses TCP only.
    #[must_use]
    pub const fn is_alone(&self) -> bool {
        matches!(self.tcp_use, TcpUse::Alone(_))
    }

    /// The next sentence that a person should read.
    pub fn next_warning(&mut self) -> Option<String> {
        self.warnings.pop().or_else(|| self.peer.next_warning()).or_else(|| self.relays.next_warning())
    }

    /// The next sentence about a name without an address, for a session that has another way or
    /// waits for one.
    pub fn next_name_warning(&mut self) -> Option<String> {
        self.names.next_warning()
    }

    /// Returns the next step of a name lookup that was not reported yet.
    pub fn next_name_step(&mut self) -> Option<NameStep> {
        self.names.next_step()
    }

    /// Handles a ready descriptor. Returns whether it belongs to these dialers.
    pub fn ready(&mut self, ready: Ready) -> bool {
        let own = (self.first_token..self.first_token + TOKENS_PER_SESSION).contains(&ready.token.0);
        own && (self.peer.ready(ready) || self.relays.ready(ready))
    }

    /// Connections for the driver.
    pub fn opened(&mut self) -> impl Iterator<Item = Carrier> + '_ {
        self.peer.opened().chain(self.relays.opened())
    }
}

/// The local addresses to connect from; none: the system chooses.
fn locals(tcp_use: &TcpUse) -> &[IpAddr] {
    match tcp_use {
        TcpUse::Alone(from) => from,
        TcpUse::Never | TcpUse::BesideUdp => &[],
    }
}
