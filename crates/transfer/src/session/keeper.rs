//! Keeps a session with a receiver: begins it, notices that it is lost, and begins another until
//! the receiver is back.

use crate::close::{code_of, error_of};
use crate::error::{NotConnected, TransferError};
use crate::events::TransferEvent;
use crate::hello_preamble::{ConnectionPurpose, Preamble};
use crate::pause_reason::Circumstances;
use crate::progress::{ProgressCounter, TransferAmount, TransferProgress};
use crate::registry::{FindPlan, Finder, goes_on_without};
use crate::session::connect_attempts::ConnectAttempts;
use crate::session::dialers::Dialers;
use crate::session::path_changes::PathChanges;
use crate::session::relay_outcomes::RelayLog;
use crate::session::restart_check::{RestartCheck, RestartQuestion};
use crate::session::unreached::not_connected;
use crate::ticket::{GreetedRelay, Ticket};
use byway_control::{Class, Controller};
use byway_engine::connection::{Event, close};
use byway_engine::handshake::PublicKey;
use byway_engine::{Connect, ConnectError, Connection, Endpoint, EndpointEvent, Handle, RelayRoute};
use byway_net::{Carrier, Ready, Watch};
use byway_wire::relay::{Reason, Word};
use byway_wire::{Duration, Instant};
use std::net::SocketAddr;

/// After a failure the receiver is tried again so much later, and ever later.
const AGAIN: Duration = Duration::from_millis(500);
const AGAIN_MOST: Duration = Duration::from_secs(15);
/// After so long a silence of the receiver a person is told.
const SILENCE: Duration = Duration::from_secs(5);
/// Relays remembered from one session to the next.
const RELAYS: usize = 1024;

/// With whom, and how.
pub(crate) struct SessionPlan {
    pub ticket: Ticket,
    pub relays: Vec<Word>,
    pub registry: Option<FindPlan>,
    pub class: Class,
    /// Whether TCP may take the place of UDP.
    pub tcp: bool,
    pub controller: Box<dyn Fn(u64) -> Box<dyn Controller> + Send>,
    /// Tells the receiver that another session is this program's.
    pub name: [u8; 16],
}

/// What happened to the session.
pub(crate) enum SessionEvent {
    /// The session begins.
    Connected,
    /// The session ended, or could not begin. Another is tried for.
    Lost(TransferError),
    /// The receiver does not serve this host.
    Refused(TransferError),
    Warning(String),
    News(TransferEvent),
}

/// Where the session is.
enum SessionState {
    /// A session is tried for from then on.
    Away(Instant),
    Trying(Handle),
    Connected(Handle),
}

/// Keeps a session.
pub(crate) struct SessionKeeper {
    plan: SessionPlan,
    question: RestartQuestion,
    relays: Vec<(Word, Option<RelayRoute>)>,
    stage: SessionState,
    /// How often in a row there was no answer.
    failures: u32,
    /// Whether that was said.
    told: bool,
    seed: u64,
    restart: RestartCheck,
    ways: ConnectAttempts,
    finder: Option<Finder>,
    counter: ProgressCounter,
    /// Of what the receiver sends.
    arrivals: ProgressCounter,
    paths: PathChanges,
    log: RelayLog,
    dialers: Dialers,
}

impl SessionKeeper {
    pub fn new(mut plan: SessionPlan, locals: &[SocketAddr], watch: &Watch) -> Self {
        let permission = plan.ticket.permission.clone();
        let ping = Preamble { kind: ConnectionPurpose::Ping, permission, transfer: plan.name };
        let reach = |relay: &GreetedRelay| RelayRoute {
            word: relay.word.clone(),
            destination: relay.address,
            consent: relay.consent,
        };
        let question = RestartQuestion {
            peer: PublicKey(plan.ticket.key.0),
            addresses: plan.ticket.addresses.clone(),
            relays: plan.ticket.relays.iter().map(reach).collect(),
            application: ping.to_bytes(),
        };
        let (finder, kept) = plan.registry.take().map(Finder::new).unzip();
        let told = question.relays.iter().map(|reach| (reach.word.clone(), Some(reach.clone())));
        let kept: Vec<Word> = kept.into_iter().flatten().collect();
        let serves_tcp = |word: &&Word| finder.as_ref().is_some_and(|finder| finder.serves_tcp(word));
        let met = question.relays.iter().map(|reach| &reach.word);
        let dialled = met.chain(&plan.relays).chain(kept.iter().filter(serves_tcp));
        let dialers = match plan.tcp {
            true => Dialers::new(watch, 0, &question.addresses, dialled),
            false => Dialers::never(watch),
        };
        let others = std::mem::take(&mut plan.relays).into_iter().chain(kept);
        let relays = told.chain(others.map(|word| (word, None))).collect();
        let seed = plan.name.iter().fold(0_u64, |seed, byte| seed.rotate_left(8) ^ u64::from(*byte));
        Self {
            restart: RestartCheck::new(question.clone()),
            ways: ways(&question, locals),
            plan,
            question,
            relays,
            stage: SessionState::Away(Instant::ZERO),
            failures: 0,
            told: false,
            seed,
            finder,
            counter: ProgressCounter::default(),
            arrivals: ProgressCounter::default(),
            paths: PathChanges::default(),
            log: RelayLog::default(),
            dialers,
        }
    }

    /// Takes in that a descriptor is ready. Whether it is one of this one's.
    pub fn ready(&mut self, ready: Ready) -> bool {
        self.dialers.ready(ready)
    }

    /// TCP connections for the driver.
    pub fn opened(&mut self) -> impl Iterator<Item = Carrier> + '_ {
        self.dialers.opened()
    }

    /// Whether there is a session.
    pub const fn is_connected(&self) -> bool {
        matches!(self.stage, SessionState::Connected(_))
    }

    /// The session, if there is one that may be used.
    pub fn session<'a>(&self, endpoint: &'a mut Endpoint) -> Option<&'a mut Connection> {
        let SessionState::Connected(handle) = self.stage else { return None };
        endpoint.connection_mut(handle).filter(|connection| !connection.is_closing())
    }

    /// What there is of the session.
    pub fn connection<'a>(&self, endpoint: &'a Endpoint) -> Option<&'a Connection> {
        let (SessionState::Connected(handle) | SessionState::Trying(handle)) = self.stage else {
            return None;
        };
        endpoint.connection(handle)
    }

    /// Ends the session.
    pub fn close(&self, endpoint: &mut Endpoint, ending: &Result<(), TransferError>, now: Instant) {
        let (SessionState::Connected(handle) | SessionState::Trying(handle)) = self.stage else { return };
        let (code, reason) = match ending {
            Ok(()) => (close::DONE, String::from("done")),
            Err(error) => (code_of(error).number(), error.to_string()),
        };
        endpoint.close(now, handle, code, &reason);
    }

    /// Does what there is to do; what happened.
    pub fn turn(
        &mut self,
        endpoint: &mut Endpoint,
        locals: &[SocketAddr],
        now: Instant,
    ) -> Vec<SessionEvent> {
        let mut kept = Vec::new();
        if let SessionState::Away(at) = self.stage
            && now >= at
        {
            self.begin(endpoint, locals, now, &mut kept);
        }
        while let Some(event) = endpoint.next_event() {
            if self.restart.on_event(endpoint, &event) {
                continue;
            }
            if let EndpointEvent::Closed(handle) = event
                && !self.is_own(handle)
            {
                endpoint.forget(handle);
            }
            self.on_event(endpoint, &event, locals, now, &mut kept);
        }
        self.find_relays(endpoint, now, &mut kept);
        if let SessionState::Trying(handle) = self.stage {
            self.ways.look(now);
            if self.ways.are_hopeless(now) {
                endpoint.close(now, handle, close::DONE, "nobody is there");
                self.fail(ConnectError::NoAnswer, now, &mut kept);
            }
        }
        self.follow(endpoint, locals, now, &mut kept);
        if let SessionState::Trying(handle) | SessionState::Connected(handle) = self.stage {
            let silence = self.is_connected().then(|| self.counter.silence(now));
            self.dialers.look(endpoint, handle, silence, now);
        }
        kept
    }

    /// How far it is, now and then; `bytes`: what was moved in all.
    pub fn look(
        &mut self,
        endpoint: &mut Endpoint,
        bytes: u64,
        locals: &[SocketAddr],
        now: Instant,
    ) -> Option<TransferProgress> {
        let SessionState::Connected(handle) = self.stage else { return None };
        let connection = endpoint.connection(handle).filter(|_| self.counter.is_due(now))?;
        let circumstances =
            Circumstances { used_up: self.paths.is_quota_used_up(), ..Circumstances::default() };
        let amount = TransferAmount { bytes, travelled: bytes, total: None };
        let arrivals = self.arrivals.look_at_arrivals(now, connection, locals, amount).paths;
        let tally = self.counter.look(now, connection, locals, circumstances, amount);
        Some(TransferProgress { arrivals, ..tally })
    }

    fn is_own(&self, handle: Handle) -> bool {
        matches!(self.stage, SessionState::Trying(own) | SessionState::Connected(own) if own == handle)
    }

    fn begin(
        &mut self,
        endpoint: &mut Endpoint,
        locals: &[SocketAddr],
        now: Instant,
        kept: &mut Vec<SessionEvent>,
    ) {
        let permission = self.plan.ticket.permission.clone();
        let preamble = Preamble {
            kind: ConnectionPurpose::Forward(self.plan.class),
            permission,
            transfer: self.plan.name,
        };
        self.seed = self.seed.wrapping_add(1);
        let connect = Connect {
            peer: self.question.peer,
            addresses: self.question.addresses.clone(),
            application: preamble.to_bytes(),
            controller: (self.plan.controller)(self.seed),
        };
        self.ways = ways(&self.question, locals);
        self.dialers.begin();
        match endpoint.connect(now, connect) {
            Ok(handle) => {
                self.stage = SessionState::Trying(handle);
                for (word, reach) in &self.relays {
                    endpoint.add_relay(now, handle, word, reach.as_ref());
                }
            }
            Err(error) => self.fail(error, now, kept),
        }
    }

    fn on_event(
        &mut self,
        endpoint: &mut Endpoint,
        event: &EndpointEvent,
        locals: &[SocketAddr],
        now: Instant,
        kept: &mut Vec<SessionEvent>,
    ) {
        if self.finder.as_mut().is_some_and(|finder| finder.on_event(event, now)) {
            return;
        }
        match event {
            EndpointEvent::Connected(handle) if self.is_own(*handle) => {
                (self.stage, self.failures, self.told) = (SessionState::Connected(*handle), 0, false);
                self.counter = ProgressCounter::default();
                self.counter.begin(now);
                self.arrivals = ProgressCounter::default();
                self.arrivals.begin(now);
                self.paths = PathChanges::default();
                kept.push(SessionEvent::Connected);
            }
            EndpointEvent::Failed(handle, error) if self.is_own(*handle) => self.fail(*error, now, kept),
            EndpointEvent::Closed(handle) if self.is_own(*handle) => {
                // The session itself says why.
                self.follow(endpoint, locals, now, kept);
                endpoint.forget(*handle);
                if self.is_own(*handle) {
                    self.lose(TransferError::ConnectionLost, now, kept);
                }
            }
            EndpointEvent::RelayTrouble(handle, relay, trouble) if self.is_own(*handle) => {
                self.ways.on_relay(*relay, *trouble);
                kept.extend(self.log.on_trouble(*relay, *trouble).map(SessionEvent::Warning));
            }
            _ => {}
        }
    }

    /// Looks at how the session does.
    fn follow(
        &mut self,
        endpoint: &mut Endpoint,
        locals: &[SocketAddr],
        now: Instant,
        kept: &mut Vec<SessionEvent>,
    ) {
        let SessionState::Connected(handle) = self.stage else { return };
        let mut closed = None;
        if let Some(connection) = endpoint.connection_mut(handle) {
            while let Some(event) = connection.next_event() {
                match (&event, &mut self.finder) {
                    (Event::RelaysUsedUp, Some(finder)) => finder.ask_for_more(),
                    (Event::Notice { reason: Reason::EpochOver, .. }, Some(finder)) => {
                        finder.on_epoch_over(now);
                    }
                    _ => {}
                }
                if let Event::Closed { code, reason, by_peer } = event {
                    closed = Some(self.paths.explain(error_of(code, &reason, by_peer)));
                } else {
                    kept.extend(self.paths.on_event(event, connection, locals).map(SessionEvent::News));
                }
            }
        }
        match closed {
            Some(error @ (TransferError::NotAdmitted(_) | TransferError::OtherKind(_))) => {
                kept.push(SessionEvent::Refused(error));
            }
            Some(error) => self.lose(error, now, kept),
            None if self.restart.look(endpoint, now, self.counter.silence(now)) => {
                endpoint.close(now, handle, close::DONE, "the receiver was started anew");
                self.lose(TransferError::ReceiverRestarted, now, kept);
            }
            None if self.counter.is_due(now) => {
                if self.counter.silence(now) >= SILENCE {
                    let sentence = "nothing is heard from the receiver: connections wait for it";
                    kept.push(SessionEvent::Warning(sentence.into()));
                }
                let relays = endpoint.relays(now, handle);
                self.finder.iter_mut().for_each(|finder| finder.on_relays(now, &relays));
                kept.extend(self.log.look(relays, locals).into_iter().map(SessionEvent::News));
            }
            None => {}
        }
    }

    fn find_relays(&mut self, endpoint: &mut Endpoint, now: Instant, kept: &mut Vec<SessionEvent>) {
        let Some(finder) = &mut self.finder else { return };
        let found = finder.look(endpoint, now);
        if let SessionState::Trying(handle) | SessionState::Connected(handle) = self.stage {
            for word in &found.words {
                endpoint.add_relay(now, handle, word, None);
            }
        }
        for word in found.words.iter().filter(|word| finder.serves_tcp(word)) {
            self.dialers.add(word);
        }
        for word in found.words {
            if self.relays.len() < RELAYS && !self.relays.iter().any(|(known, _)| *known == word) {
                self.relays.push((word, None));
            }
        }
        kept.extend(found.trouble.map(|trouble| SessionEvent::Warning(goes_on_without(&trouble))));
    }

    /// The receiver does not answer.
    fn fail(&mut self, error: ConnectError, now: Instant, kept: &mut Vec<SessionEvent>) {
        self.ways.on_tcp(self.dialers.accepted());
        let error = not_connected(error, &self.ways.tried());
        // Whoever is there will not be another one.
        if matches!(error, NotConnected::OtherVersion | NotConnected::ImpossibleKey) {
            kept.push(SessionEvent::Refused(error.into()));
            return;
        }
        self.lose(error.into(), now, kept);
    }

    /// Enters that there is no session. The time before the next attempt grows with each failure.
    fn lose(&mut self, error: TransferError, now: Instant, kept: &mut Vec<SessionEvent>) {
        let wait = (AGAIN * 2_u32.saturating_pow(self.failures.min(16))).min(AGAIN_MOST);
        self.failures += 1;
        self.stage = SessionState::Away(now + wait);
        self.restart = RestartCheck::new(self.question.clone());
        if !std::mem::replace(&mut self.told, true) {
            kept.push(SessionEvent::Lost(error));
        }
    }
}

fn ways(question: &RestartQuestion, locals: &[SocketAddr]) -> ConnectAttempts {
    let met = question.relays.iter().map(|reach| reach.word.clone());
    ConnectAttempts::new(&question.addresses, met, locals)
}
