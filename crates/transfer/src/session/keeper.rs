//! Keeps a session with a receiver: connects over every way that there is, follows paths and
//! relays, and connects again when the session is lost.
//!
//! ```text
//!           time to try               the receiver answers
//!   Away ──────────────────> Trying ──────────────────────> Connected
//!    ^                         │ nobody answers                 │ lost, left, or restarted
//!    └─────────────────────────┴────────────────────────────────┘
//! ```
//!
//! What differs between owners is their policy. `send` ends when the first session is lost, and
//! `forward` and sources go on. `ping` leaves each session and begins another. The library keeps a
//! session itself once it is connected.

use super::connect_attempts::{AttemptResult, ConnectAttempts};
use super::dialers::{Dialers, PeerPlace, TcpUse};
use super::not_connected::not_connected;
use super::path_changes::PathChanges;
use super::relay_outcomes::RelayLog;
use super::restart_check::{RestartCheck, RestartQuestion};
use super::tcp_dialer::{RetryDelays, dialled_addresses};
use super::uplink_watch::UplinkWatch;
use crate::close::error_of;
use crate::error::{NotConnected, TransferError};
use crate::events::TransferEvent;
use crate::host_name::NamedAddress;
use crate::progress::limiting_factor::Circumstances;
use crate::progress::{ProgressCounter, TransferAmount, TransferProgress};
use crate::registry::{FindPlan, Finder, goes_on_without};
use crate::secret::Secret;
use crate::ticket::{GreetedRelay, Ticket};
use byway_control::Controller;
use byway_engine::connection::{Event, close};
use byway_engine::handshake::PublicKey;
use byway_engine::{
    Connect, ConnectError, Connection, Endpoint, EndpointEvent, Handle, RelayRoute, RelayTrouble,
};
use byway_net::{Carrier, Control, Ready};
use byway_wire::relay::{LocationKey, Reason, Word};
use byway_wire::{Duration, Instant};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The wait before another session is tried for.
const RETRY_DELAYS: RetryDelays =
    RetryDelays { first: Duration::from_millis(500), max: Duration::from_secs(15) };
/// The most relays that are carried over from one session to the next.
const MAX_RELAYS: usize = 1024;

/// A relay, and how it leads to the receiver, if the ticket contains that.
#[derive(Clone, Debug)]
pub struct KnownRelay {
    /// The relay word: the permission to use the relay.
    pub word: Word,
    /// The receiver's address behind the relay, from the ticket. `None`: the ticket has none.
    pub route: Option<RelayRoute>,
}

impl KnownRelay {
    /// Makes a relay of which only the relay word is known.
    #[must_use]
    pub const fn of_word(word: Word) -> Self {
        Self { word, route: None }
    }

    /// Makes a relay from a ticket. `permission`: the ticket's, for which the relay gives the
    /// receiver's location.
    #[must_use]
    pub fn greeted(relay: &GreetedRelay, permission: &Secret<[u8; 16]>) -> Self {
        let GreetedRelay { word, reach } = relay;
        let location_key = Some(Arc::new(LocationKey::new(word, permission.expose())));
        let route = RelayRoute { word: word.clone(), reach: *reach, location_key };
        Self { word: word.clone(), route: Some(route) }
    }

    /// The addresses at which the relay is dialled over TCP: its first one of each family.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        dialled_addresses(&self.word)
    }

    /// Takes the word of the same relay that is good for longer, if there is one. A consent of the
    /// receiver is of the word that it came with, so that word stays.
    fn renew(&mut self, words: &[Word]) -> bool {
        let is_longer = |word: &&Word| {
            word.relays() == self.word.relays() && word.terms().expiry > self.word.terms().expiry
        };
        let Some(word) = words.iter().find(is_longer).filter(|_| self.route.is_none()) else { return false };
        self.word = word.clone();
        true
    }
}

/// With whom, and how.
pub struct SessionPlan {
    /// The receiver's public key.
    pub peer: PublicKey,
    /// The receiver's own addresses.
    pub addresses: Vec<SocketAddr>,
    /// Names of the receiver's host. They are looked up before each attempt, and while the receiver
    /// is silent.
    pub names: Vec<NamedAddress>,
    /// Relays that may lead to the receiver.
    pub relays: Vec<KnownRelay>,
    /// A registry to ask for more.
    pub registry: Option<FindPlan>,
    /// When the session uses TCP.
    pub tcp: TcpUse,
    /// The number of this keeper in the event loop. The tokens of its descriptors follow from it.
    pub number: u16,
    /// The data in the HELLO, for the receiver's application.
    pub hello: Vec<u8>,
    /// The first message of a second connection that asks the receiver whether it still has the
    /// session. `None`: no such question.
    pub restart_question: Option<Vec<u8>>,
    /// Makes the congestion controller of a session from a seed.
    pub controller: Box<dyn FnMut(u64) -> Box<dyn Controller> + Send>,
    /// Whether data wait for what this host itself sends by the same uplink. It takes a controller
    /// that yields.
    pub yields_to_host: bool,
    /// The seed of the first session's controller. Each later one's is greater by 1.
    pub seed: u64,
    /// The wait before another session is tried for.
    pub retry: RetryDelays,
}

impl SessionPlan {
    /// Makes a plan for the receiver that printed `ticket`, over UDP, with the ticket's relays and
    /// those of `words`.
    pub fn new(
        ticket: &Ticket,
        words: Vec<Word>,
        hello: Vec<u8>,
        controller: Box<dyn FnMut(u64) -> Box<dyn Controller> + Send>,
    ) -> Self {
        let greeted = ticket.relays.iter().map(|relay| KnownRelay::greeted(relay, &ticket.permission));
        Self {
            peer: PublicKey(ticket.key.0),
            addresses: ticket.addresses.clone(),
            names: ticket.names.clone(),
            relays: greeted.chain(words.into_iter().map(KnownRelay::of_word)).collect(),
            registry: None,
            tcp: TcpUse::Never,
            number: 0,
            hello,
            restart_question: None,
            controller,
            yields_to_host: false,
            seed: 0,
            retry: RETRY_DELAYS,
        }
    }
}

/// An event of a kept session, for its owner.
#[derive(Debug)]
pub enum SessionEvent {
    /// The session is established.
    Connected,
    /// The session ended, or could not begin. Another is tried for.
    Lost(LostSession),
    /// The receiver refused this host for good.
    Refused(LostSession),
    /// A relay cannot be used, with a warning for a person if it is worth one.
    RelayTrouble(SocketAddr, RelayTrouble, Option<String>),
    /// Something that a person should know.
    Warning(String),
    /// A change of paths or relays, or a step in looking a name up.
    News(TransferEvent),
}

/// Why a session ended, or could not begin.
#[derive(Debug)]
pub struct LostSession {
    /// The error that ended the session.
    pub error: TransferError,
    /// The CLOSE that ended the session. `None`: no CLOSE was sent or received.
    pub close: Option<SessionClose>,
    /// The reply on each path, if the receiver did not answer.
    pub tried: Vec<AttemptResult>,
}

/// A CLOSE that ended a session: its code and reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionClose {
    /// The code. Codes of [`CloseCode`](crate::close::CloseCode) and of the application are below
    /// 65536.
    pub code: u64,
    /// The reason in the CLOSE, as text.
    pub reason: String,
    /// Whether the peer sent the CLOSE.
    pub by_peer: bool,
}

/// The stage of the session.
#[derive(Clone, Copy)]
enum Stage {
    /// A session is tried for from then on.
    Away(Instant),
    Trying(Handle),
    Connected(Handle),
}

/// A relay, and whether the present session or attempt knows it.
struct EnteredRelay {
    relay: KnownRelay,
    is_entered: bool,
}

/// Keeps a session.
pub struct SessionKeeper {
    plan: SessionPlan,
    stage: Stage,
    relays: Vec<EnteredRelay>,
    /// Whether the session lacks relays that are known.
    lacks_relays: bool,
    /// Sessions in a row that did not begin.
    failures: u32,
    /// The question to a silent receiver whether it still has the session. `None`: it cannot be
    /// asked.
    question: Option<RestartQuestion>,
    restart: Option<RestartCheck>,
    /// The attempts to reach a receiver that has not answered yet.
    attempts: ConnectAttempts,
    finder: Option<Finder>,
    counter: ProgressCounter,
    paths: PathChanges,
    log: RelayLog,
    dialers: Dialers,
    /// Governs what the session sends. `None`: nobody does.
    uplink: Option<UplinkWatch>,
    events: VecDeque<SessionEvent>,
}

impl SessionKeeper {
    /// A keeper without a session yet. `locals`: the local addresses that this side sends from.
    /// `control`: that of the event loop.
    #[must_use]
    pub fn new(mut plan: SessionPlan, locals: &[SocketAddr], control: &Control) -> Self {
        let mut relays = std::mem::take(&mut plan.relays);
        let routes = relays.iter().filter_map(|relay| relay.route.clone()).collect();
        let question = plan.restart_question.take().map(|application| RestartQuestion {
            peer: plan.peer,
            relays: routes,
            application,
        });
        let (finder, kept) = plan.registry.take().map(Finder::new).unzip();
        let kept: Vec<Word> = kept.into_iter().flatten().collect();
        let serves_tcp = |word: &&Word| finder.as_ref().is_some_and(|finder| finder.serves_tcp(word));
        let dialled = relays.iter().map(|relay| &relay.word).chain(kept.iter().filter(serves_tcp));
        let peer = PeerPlace { addresses: &plan.addresses, names: &plan.names };
        let dialers = Dialers::new(control, plan.number, plan.tcp.clone(), peer, dialled);
        relays.extend(kept.into_iter().map(KnownRelay::of_word));
        let relays: Vec<EnteredRelay> =
            relays.into_iter().map(|relay| EnteredRelay { relay, is_entered: false }).collect();
        Self {
            uplink: plan.yields_to_host.then(UplinkWatch::default),
            restart: question.clone().map(RestartCheck::new),
            attempts: attempts(&plan.tcp, &plan.addresses, &relays, locals),
            plan,
            stage: Stage::Away(Instant::ZERO),
            relays,
            lacks_relays: true,
            failures: 0,
            question,
            finder,
            counter: ProgressCounter::default(),
            paths: PathChanges::default(),
            log: RelayLog::default(),
            dialers,
            events: VecDeque::new(),
        }
    }

    /// Handles a ready descriptor. Returns whether it belongs to this keeper.
    pub fn ready(&mut self, ready: Ready) -> bool {
        self.dialers.ready(ready)
    }

    /// TCP connections for the driver.
    pub fn opened(&mut self) -> impl Iterator<Item = Carrier> + '_ {
        self.dialers.opened()
    }

    /// Whether a session is established.
    #[must_use]
    pub const fn is_connected(&self) -> bool {
        matches!(self.stage, Stage::Connected(_))
    }

    /// The session that is established or being established.
    #[must_use]
    pub const fn handle(&self) -> Option<Handle> {
        match self.stage {
            Stage::Away(_) => None,
            Stage::Trying(handle) | Stage::Connected(handle) => Some(handle),
        }
    }

    /// The established session. `None`: there is none that can be used.
    pub fn session<'a>(&self, endpoint: &'a mut Endpoint) -> Option<&'a mut Connection> {
        let Stage::Connected(handle) = self.stage else { return None };
        endpoint.connection_mut(handle).filter(|connection| !connection.is_closing())
    }

    /// Whether there is no session, or it is over and needs to send nothing more.
    #[must_use]
    pub fn is_gone(&self, endpoint: &Endpoint) -> bool {
        self.handle().and_then(|handle| endpoint.connection(handle)).is_none_or(Connection::is_closed)
    }

    /// The time for which nothing has been heard of the receiver though something was waited for.
    #[must_use]
    pub fn silence(&self, now: Instant) -> Duration {
        self.counter.silence(now)
    }

    /// The session's progress at the last look: payload bytes, seconds, and paths.
    #[must_use]
    pub const fn counter(&self) -> &ProgressCounter {
        &self.counter
    }

    /// The states of the relays.
    pub(crate) const fn log(&self) -> &RelayLog {
        &self.log
    }

    /// IP addresses to which the receiver's names lead.
    pub fn named_destinations(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.dialers.named_addresses().map(|address| address.ip())
    }

    /// The relays that are known.
    pub fn relays(&self) -> impl ExactSizeIterator<Item = &KnownRelay> {
        self.relays.iter().map(|entered| &entered.relay)
    }

    /// Whether a registry is asked for relays and has not answered yet.
    #[must_use]
    pub fn is_asking(&self) -> bool {
        self.finder.as_ref().is_some_and(Finder::is_asking)
    }

    /// The dialers of TCP, for an owner that keeps the session itself from now on.
    #[must_use]
    pub fn into_dialers(self) -> Dialers {
        self.dialers
    }

    /// The next thing that happened.
    pub fn next_event(&mut self) -> Option<SessionEvent> {
        self.events.pop_front()
    }

    /// Runs all due work of an owner with one session, and takes all events of the endpoint.
    pub fn turn(&mut self, endpoint: &mut Endpoint, locals: &[SocketAddr], now: Instant) {
        if matches!(self.stage, Stage::Away(at) if now >= at) {
            self.begin(endpoint, locals, now);
        }
        while let Some(event) = endpoint.next_event() {
            let is_known = self.on_event(endpoint, &event, locals, now);
            if let (EndpointEvent::Closed(handle), false) = (event, is_known) {
                endpoint.forget(handle);
            }
        }
        self.look(endpoint, locals, now);
    }

    /// Tries for a session now.
    pub fn begin(&mut self, endpoint: &mut Endpoint, locals: &[SocketAddr], now: Instant) {
        self.dialers.look_up(now);
        if self.dialers.is_alone() && !self.has_way(endpoint) {
            return;
        }
        let connect = Connect {
            peer: self.plan.peer,
            addresses: self.plan.addresses.clone(),
            application: self.plan.hello.clone(),
            controller: (self.plan.controller)(self.plan.seed),
        };
        self.plan.seed = self.plan.seed.wrapping_add(1);
        self.attempts = attempts(&self.plan.tcp, self.dialers.addresses(), &self.relays, locals);
        self.dialers.begin();
        self.relays.iter_mut().for_each(|entered| entered.is_entered = false);
        self.lacks_relays = true;
        match endpoint.connect(now, connect) {
            Ok(handle) => {
                self.stage = Stage::Trying(handle);
                self.dialers.enter_addresses(endpoint, handle, now);
                self.enter_relays(endpoint, now);
            }
            Err(error) => self.fail(error, now),
        }
    }

    /// Whether a TCP connection leads to the receiver, or to a relay that leads to it.
    fn has_way(&self, endpoint: &Endpoint) -> bool {
        let by_relay = |relay: &KnownRelay| {
            relay.route.is_some() && relay.addresses().any(|address| endpoint.leads_to(address))
        };
        self.dialers.addresses().iter().any(|address| endpoint.leads_to(*address))
            || self.relays().any(by_relay)
    }

    /// Adds relays to the session that it does not know. If it uses only TCP, it adds those with a
    /// connection.
    fn enter_relays(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let Some(handle) = self.handle().filter(|_| self.lacks_relays) else { return };
        self.lacks_relays = false;
        for EnteredRelay { relay, is_entered } in self.relays.iter_mut().filter(|relay| !relay.is_entered) {
            *is_entered = !self.dialers.is_alone() || relay.addresses().any(|it| endpoint.leads_to(it));
            self.lacks_relays |= !*is_entered;
            if *is_entered {
                endpoint.add_relay(now, handle, &relay.word, relay.route.as_ref());
            }
        }
    }

    /// Replaces relay words of the same relays by `words`, which expire later.
    pub fn renew(&mut self, words: &[Word]) {
        for EnteredRelay { relay, is_entered } in &mut self.relays {
            *is_entered &= !relay.renew(words);
        }
        self.lacks_relays = true;
    }

    /// Handles an event of the endpoint. Returns whether it was about this keeper's connections.
    pub fn on_event(
        &mut self,
        endpoint: &mut Endpoint,
        event: &EndpointEvent,
        locals: &[SocketAddr],
        now: Instant,
    ) -> bool {
        if self.restart.as_mut().is_some_and(|restart| restart.on_event(endpoint, event))
            || self.finder.as_mut().is_some_and(|finder| finder.on_event(event, now))
        {
            return true;
        }
        let own = self.handle();
        match event {
            EndpointEvent::Connected(handle) if Some(*handle) == own => {
                (self.stage, self.failures) = (Stage::Connected(*handle), 0);
                self.counter = ProgressCounter::default();
                self.counter.begin(now);
                self.paths = PathChanges::default();
                self.events.push_back(SessionEvent::Connected);
            }
            EndpointEvent::Failed(handle, error) if Some(*handle) == own => self.fail(*error, now),
            EndpointEvent::Closed(handle) if Some(*handle) == own => {
                // The session itself says why.
                self.follow(endpoint, locals, now);
                endpoint.forget(*handle);
                if self.handle() == Some(*handle) {
                    self.lose(TransferError::ConnectionLost, None, now);
                }
            }
            EndpointEvent::RelayTrouble(handle, relay, trouble) if Some(*handle) == own => {
                self.attempts.on_relay(*relay, *trouble);
                let warning = self.log.on_trouble(*relay, *trouble);
                self.events.push_back(SessionEvent::RelayTrouble(*relay, *trouble, warning));
            }
            _ => return false,
        }
        true
    }

    /// Runs all due work: asks the registry, dials, and checks the session.
    pub fn look(&mut self, endpoint: &mut Endpoint, locals: &[SocketAddr], now: Instant) {
        self.find_relays(endpoint, now);
        self.enter_relays(endpoint, now);
        if let Stage::Trying(handle) = self.stage {
            if !self.dialers.is_alone() {
                self.attempts.learn(self.dialers.addresses());
            }
            self.attempts.look(now);
            if self.attempts.are_hopeless(now) && !self.dialers.awaits_addresses(now) {
                endpoint.close(now, handle, close::DONE_CODE, "nobody is there");
                self.fail(ConnectError::NoAnswer, now);
            }
        }
        self.follow(endpoint, locals, now);
        let silence = self.is_connected().then(|| self.counter.silence(now));
        self.dialers.look(endpoint, self.handle(), silence, now);
        while let Some(step) = self.dialers.next_name_step() {
            self.events.push_back(SessionEvent::News(TransferEvent::Name(step)));
        }
        while let Some(warning) = self.dialers.next_warning() {
            self.events.push_back(SessionEvent::Warning(warning));
        }
        // Without a session, what was tried tells of the names. TCP alone is tried without an end.
        while self.is_connected() || self.dialers.is_alone() {
            let Some(warning) = self.dialers.next_name_warning() else { break };
            self.events.push_back(SessionEvent::Warning(warning));
        }
    }

    /// Returns the progress of the session, for an owner whose [`counter`](Self::counter) is due.
    /// `amount`: the bytes moved so far.
    pub fn progress(
        &mut self,
        endpoint: &Endpoint,
        locals: &[SocketAddr],
        circumstances: Circumstances,
        amount: TransferAmount,
        now: Instant,
    ) -> Option<TransferProgress> {
        let Stage::Connected(handle) = self.stage else { return None };
        let connection = endpoint.connection(handle)?;
        let circumstances = Circumstances { used_up: self.paths.is_quota_used_up(), ..circumstances };
        Some(self.counter.look(now, connection, locals, circumstances, amount))
    }

    /// Enters the session's last figures. They stay in the [`counter`](Self::counter)
    /// until the next session.
    pub fn settle(&mut self, endpoint: &Endpoint, locals: &[SocketAddr], now: Instant) {
        if let Stage::Connected(handle) = self.stage
            && let Some(connection) = endpoint.connection(handle)
        {
            self.counter.settle(now, connection, locals);
        }
    }

    /// Reports changes of relays since the last call.
    pub fn look_at_relays(&mut self, endpoint: &Endpoint, locals: &[SocketAddr], now: Instant) {
        let Stage::Connected(handle) = self.stage else { return };
        let relays = endpoint.relays(now, handle);
        self.finder.iter_mut().for_each(|finder| finder.on_relays(now, &relays));
        self.events.extend(self.log.look(relays, locals).into_iter().map(SessionEvent::News));
    }

    /// Ends the session for good, and sends the receiver the reason.
    pub fn close(&self, endpoint: &mut Endpoint, code: u64, reason: &str, now: Instant) {
        if let Some(handle) = self.handle() {
            endpoint.close(now, handle, code, reason);
        }
    }

    /// Ends the session, and tries for another from `again_at` on.
    pub fn leave(
        &mut self,
        endpoint: &mut Endpoint,
        code: u64,
        reason: &str,
        again_at: Instant,
        now: Instant,
    ) {
        self.close(endpoint, code, reason, now);
        self.away_until(again_at);
    }

    /// Handles the events of the session.
    fn follow(&mut self, endpoint: &mut Endpoint, locals: &[SocketAddr], now: Instant) {
        let Stage::Connected(handle) = self.stage else { return };
        let mut closed = None;
        if let Some(connection) = endpoint.connection_mut(handle) {
            if let Some(uplink) = &mut self.uplink {
                uplink.turn(connection, locals, now);
            }
            while let Some(event) = connection.next_event() {
                match (&event, &mut self.finder) {
                    (Event::RelaysUsedUp, Some(finder)) => finder.ask_for_more(),
                    (Event::Notice { reason: Reason::EpochOver, .. }, Some(finder)) => {
                        finder.on_epoch_over(now);
                    }
                    _ => {}
                }
                if let Event::Closed { code, reason, by_peer } = event {
                    let error = self.paths.explain(error_of(code, &reason, by_peer));
                    closed = Some((error, SessionClose { code, reason, by_peer }));
                } else {
                    let news = self.paths.on_event(event, connection, locals);
                    self.events.extend(news.map(SessionEvent::News));
                }
            }
        }
        if closed.is_some() {
            self.settle(endpoint, locals, now);
        }
        let (silence, addresses) = (self.counter.silence(now), self.dialers.addresses());
        match closed {
            Some((error @ (TransferError::NotAdmitted(_) | TransferError::OtherKind(_)), close)) => {
                self.try_later(now);
                let lost = LostSession { error, close: Some(close), tried: Vec::new() };
                self.events.push_back(SessionEvent::Refused(lost));
            }
            Some((error, close)) => self.lose(error, Some(close), now),
            None if self.restart.as_mut().is_some_and(|it| it.look(endpoint, addresses, now, silence)) => {
                self.settle(endpoint, locals, now);
                endpoint.close(now, handle, close::DONE_CODE, "the receiver does not know the session");
                self.lose(TransferError::SessionForgotten, None, now);
            }
            None if self.counter.is_due(now) => self.look_at_relays(endpoint, locals, now),
            None => {}
        }
    }

    /// Adds the relays that the registry offers, if there is a registry.
    fn find_relays(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let Some(finder) = &mut self.finder else { return };
        let found = finder.look(endpoint, now);
        self.lacks_relays |= !found.words.is_empty();
        for word in found.words {
            if finder.serves_tcp(&word) {
                self.dialers.add(&word);
            }
            // A word that is known is entered again: its relay may have failed since.
            if let Some(known) = self.relays.iter_mut().find(|entered| entered.relay.word == word) {
                known.is_entered = false;
            } else if self.relays.len() < MAX_RELAYS {
                let relay = KnownRelay::of_word(word);
                self.relays.push(EnteredRelay { relay, is_entered: false });
            }
        }
        self.events.extend(found.trouble.map(|trouble| SessionEvent::Warning(goes_on_without(&trouble))));
    }

    /// The receiver does not answer.
    fn fail(&mut self, error: ConnectError, now: Instant) {
        self.attempts.on_tcp(self.dialers.accepted());
        let names = self.dialers.unresolved().map(|(host, why)| AttemptResult::of_name(host, why));
        let mut tried = self.attempts.tried();
        tried.extend(names);
        let error = not_connected(error, &tried);
        // Whoever is there will not be another one.
        let is_final = matches!(error, NotConnected::OtherVersion | NotConnected::ImpossibleKey);
        let lost = LostSession { error: error.into(), close: None, tried };
        self.try_later(now);
        self.events.push_back(if is_final { SessionEvent::Refused(lost) } else { SessionEvent::Lost(lost) });
    }

    /// There is no session any more.
    fn lose(&mut self, error: TransferError, close: Option<SessionClose>, now: Instant) {
        self.try_later(now);
        self.events.push_back(SessionEvent::Lost(LostSession { error, close, tried: Vec::new() }));
    }

    /// The wait before the next attempt grows with each failure.
    fn try_later(&mut self, now: Instant) {
        let again_at = now + self.plan.retry.after(self.failures);
        self.failures = self.failures.saturating_add(1);
        self.away_until(again_at);
    }

    fn away_until(&mut self, again_at: Instant) {
        self.stage = Stage::Away(again_at);
        self.restart = self.question.clone().map(RestartCheck::new);
    }
}

fn attempts(
    tcp: &TcpUse,
    addresses: &[SocketAddr],
    relays: &[EnteredRelay],
    locals: &[SocketAddr],
) -> ConnectAttempts {
    // Without UDP nobody knocks.
    if let TcpUse::Alone(_) = tcp {
        return ConnectAttempts::new(&[], std::iter::empty(), locals);
    }
    let met = relays.iter().map(|entered| &entered.relay).filter(|relay| relay.route.is_some());
    ConnectAttempts::new(addresses, met.map(|relay| relay.word.clone()), locals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_wire::relay::{Grant, Minute, QuotaClass, RateClass, RelayKey, Scope, Terms};

    fn word(port: u16, expiry: u64) -> Word {
        let terms = Terms {
            expiry: Minute::from_unix(expiry),
            rate: RateClass::UNLIMITED,
            quota: QuotaClass::UNLIMITED,
            scope: Scope::ALL,
        };
        RelayKey::new(&[1; 32]).issue(Grant { id: 1, terms }, vec![([192, 0, 2, 1], port).into()]).unwrap()
    }

    #[test]
    fn a_word_makes_place_for_one_that_is_good_for_longer() {
        let [sooner, now, later] = [1, 2, 3].map(|hour| 2_000_000_000 + hour * 3_600);
        let mut relay = KnownRelay::of_word(word(1, now));
        assert!(!relay.renew(&[word(2, later), word(1, sooner), word(1, now)]));
        assert!(relay.renew(&[word(2, later), word(1, later)]));
        assert_eq!(relay.word, word(1, later));
    }
}
