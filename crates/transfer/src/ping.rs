//! Sees whether a receiver is there: connects a few times over every way there is, and moves
//! nothing.

use crate::endpoint::endpoint;
use crate::error::{Error, TransferError};
use crate::events::TransferEvent;
use crate::hello_preamble::{ConnectionPurpose, Preamble};
use crate::identity::Identity;
use crate::path_names::{relay_name, route_name};
use crate::registry::FindPlan;
use crate::session::connect_attempts::AttemptResult;
use crate::session::dialers::TcpUse;
use crate::session::keeper::{LostSession, SessionEvent, SessionKeeper, SessionPlan};
use crate::session::name_lookup::NameStep;
use crate::ticket::Ticket;
use byway_control::Class;
use byway_engine::connection::close;
use byway_engine::connection::path::PathState;
use byway_engine::{Config, Endpoint, RelayState, RelayTrouble};
use byway_net::{Carrier, Clock, Control, LoopControl, Owner, Ready, Socket};
use byway_wire::relay::Word;
use byway_wire::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Time between the probes of two relays. Nothing else is sent, and a person waits.
const PROBE_INTERVAL: Duration = Duration::from_millis(50);
/// Time that the first round waits for more paths, in addition to the time for probing all relays.
/// Before a relay can be a path, this host and the receiver must send it their first packets.
const FIRST_ROUND: Duration = Duration::from_millis(2500);
/// Time that the first round waits for more paths, if there is no relay.
const FIRST_DIRECT_ROUND: Duration = Duration::from_millis(1000);
/// Time that a later round waits for replies on the paths of earlier rounds.
const LATER_ROUND: Duration = Duration::from_millis(1500);
/// Time that the first round waits for the reply of a registry.
const REGISTRY_TIMEOUT: Duration = Duration::from_secs(5);

/// The settings of a ping: the receiver, the relays and the rounds.
pub struct PingPlan {
    /// The key pair of this host.
    pub identity: Identity,
    /// The ticket of the receiver.
    pub ticket: Ticket,
    /// Relays in addition to those that the ticket names.
    pub relays: Vec<Word>,
    /// A registry to ask for more.
    pub registry: Option<FindPlan>,
    /// The sockets to send from.
    pub sockets: Vec<Socket>,
    /// Whether TCP takes the place of UDP where that brings no answer.
    pub tcp: bool,
    /// Number of rounds. Each connects once.
    pub rounds: u32,
}

/// The answers on one path: direct or through a relay.
#[derive(Clone, Debug, PartialEq)]
pub struct PingSummary {
    /// The name of the path, for a person.
    pub name: String,
    /// The number of rounds.
    pub sent: u32,
    /// The round-trip time in each round in which the path answered.
    pub rtts: Vec<Duration>,
}

/// The result of all rounds.
pub struct Pings {
    /// Every path that answered at least once.
    pub routes: Vec<PingSummary>,
    /// Relays that did not work, or a registry that does not help, and why.
    pub troubles: Vec<String>,
    /// The lookups of host names, and their results.
    pub names: Vec<NameStep>,
    /// The error and the reply on each path, if the receiver did not answer. `None`: the receiver
    /// answered.
    pub unreached: Option<(TransferError, Vec<AttemptResult>)>,
}

/// Pings; returns after the last round.
///
/// # Errors
/// The receiver does not let this host in, or cannot be asked.
pub fn ping(plan: PingPlan) -> Result<Pings, Error> {
    let config = Config { probe_interval: PROBE_INTERVAL, ..Config::default() };
    let endpoint = endpoint(&plan.identity, config, None)?;
    let locals: Vec<SocketAddr> = plan.sockets.iter().map(Socket::address).collect();
    let control = Control::new().map_err(Error::Descriptor)?;
    let permission = plan.ticket.permission.clone();
    let hello = Preamble { kind: ConnectionPurpose::Ping, permission, transfer: [0; 16] };
    let controller = Box::new(|seed| Class::Normal.controller(seed));
    let session = SessionPlan {
        registry: plan.registry,
        tcp: if plan.tcp { TcpUse::BesideUdp } else { TcpUse::Never },
        ..SessionPlan::new(&plan.ticket, plan.relays, hello.to_bytes(), controller)
    };
    let owner = Pinger {
        keeper: SessionKeeper::new(session, &locals, &control),
        unreached: None,
        rounds: plan.rounds,
        round: 0,
        connected_at: Instant::ZERO,
        asks_until: Instant::ZERO,
        locals,
        found: BTreeMap::new(),
        troubles: Vec::new(),
        warnings: Vec::new(),
        names: Vec::new(),
        relays_up: BTreeSet::new(),
        failure: None,
    };
    let driver = byway_net::spawn_with(control, "byway ping", endpoint, owner, plan.sockets, Clock::new())
        .map_err(Error::Thread)?;
    while !driver.is_finished() {
        std::thread::sleep(Duration::from_millis(20));
        driver.waker().wake();
    }
    let finished = driver.join()?;
    finished.outcome?;
    let owner = finished.owner;
    if let Some(error) = owner.failure {
        return Err(error.into());
    }
    let (sent, unreached) = (owner.round, owner.unreached);
    let routes = owner.found.into_iter().map(|(name, rtts)| PingSummary { name, sent, rtts }).collect();
    let mut troubles: Vec<String> = owner
        .troubles
        .into_iter()
        .filter(|(relay, _)| !owner.relays_up.contains(relay))
        .map(|(relay, trouble)| format!("relay {relay}: {trouble}"))
        .collect();
    // From several local sockets it looks the same.
    troubles.dedup();
    troubles.extend(owner.warnings);
    Ok(Pings { routes, troubles, names: owner.names, unreached })
}

struct Pinger {
    keeper: SessionKeeper,
    rounds: u32,
    /// Rounds that are over.
    round: u32,
    /// When the session of this round was established.
    connected_at: Instant,
    /// The end of the first round's wait for the registry.
    asks_until: Instant,
    locals: Vec<SocketAddr>,
    found: BTreeMap<String, Vec<Duration>>,
    troubles: Vec<(SocketAddr, RelayTrouble)>,
    warnings: Vec<String>,
    names: Vec<NameStep>,
    relays_up: BTreeSet<SocketAddr>,
    failure: Option<TransferError>,
    unreached: Option<(TransferError, Vec<AttemptResult>)>,
}

impl Owner for Pinger {
    type Machine = Endpoint;

    fn ready(&mut self, _: &mut Endpoint, ready: Ready, _: Instant) {
        self.keeper.ready(ready);
    }

    fn opened(&mut self) -> Vec<Carrier> {
        self.keeper.opened().collect()
    }

    fn turn(&mut self, endpoint: &mut Endpoint, now: Instant) -> LoopControl {
        self.keeper.turn(endpoint, &self.locals, now);
        while let Some(event) = self.keeper.next_event() {
            self.on_event(event, now);
        }
        self.look(endpoint, now);
        let is_over = self.failure.is_some() || self.unreached.is_some() || self.round >= self.rounds;
        if is_over { LoopControl::Stop } else { LoopControl::Continue }
    }
}

impl Pinger {
    fn on_event(&mut self, event: SessionEvent, now: Instant) {
        match event {
            SessionEvent::Connected => {
                self.connected_at = now;
                if self.round == 0 {
                    self.asks_until = now + REGISTRY_TIMEOUT;
                }
            }
            // A session that ends by itself did not let this host in, or broke.
            SessionEvent::Lost(LostSession { error, close: Some(_), .. }) => self.failure = Some(error),
            SessionEvent::Lost(LostSession { error, tried, .. }) if self.round == 0 => {
                self.unreached = Some((error, tried));
            }
            SessionEvent::Lost(_) => self.round += 1,
            SessionEvent::Refused(LostSession { error, tried, close: None }) => {
                self.unreached = Some((error, tried));
            }
            SessionEvent::Refused(LostSession { error, .. }) => self.failure = Some(error),
            SessionEvent::RelayTrouble(relay, trouble, _) if self.round == 0 => {
                self.troubles.push((relay, trouble));
            }
            SessionEvent::Warning(warning) => self.warnings.push(warning),
            SessionEvent::News(TransferEvent::Name(step)) => self.names.push(step),
            SessionEvent::RelayTrouble(..) | SessionEvent::News(_) => {}
        }
    }

    /// Returns the time that this round waits for replies on more paths.
    fn patience(&self) -> Duration {
        let relays = self.keeper.relays().len();
        let probes = PROBE_INTERVAL * u32::try_from(relays).unwrap_or(u32::MAX);
        match (self.round, relays) {
            (0, 0) => FIRST_DIRECT_ROUND,
            (0, _) => FIRST_ROUND + probes,
            _ => LATER_ROUND + probes,
        }
    }

    /// Notes the paths that answered, and ends the round when no more are expected.
    fn look(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let Some(connection) = self.keeper.session(endpoint) else { return };
        let paths = connection.status().paths.into_iter();
        let mut answered: Vec<(String, Duration)> = paths
            .filter(|path| path.state != PathState::Probing)
            .map(|path| {
                if path.route.is_proxied() {
                    self.relays_up.insert(path.route.remote);
                }
                (route_name(&path.route, &self.locals), path.srtt)
            })
            .collect();
        // The path through a relay may be closed again once it is probed, so what its probe took is
        // asked for here.
        let relays = self.keeper.handle().map(|handle| endpoint.relays(now, handle)).unwrap_or_default();
        let is_tried = |state| !matches!(state, RelayState::Untried | RelayState::Trying);
        let all_tried = relays.iter().all(|relay| is_tried(relay.standing));
        for relay in relays {
            let name = relay_name(relay.relay, relay.local, &self.locals);
            if let Some(rtt) = relay.rtt
                && !answered.iter().any(|(known, _)| *known == name)
            {
                answered.push((name, rtt));
                self.relays_up.insert(relay.relay);
            }
        }
        let is_complete = self.round > 0 && all_tried && answered.len() >= self.found.len();
        if self.keeper.is_asking() && now < self.asks_until {
            // Its relays are waited for as those of the ticket are.
            self.connected_at = now;
            return;
        }
        if now < self.connected_at + self.patience() && !is_complete {
            return;
        }
        for (name, rtt) in answered {
            self.found.entry(name).or_default().push(rtt);
        }
        self.keeper.leave(endpoint, close::DONE_CODE, "pinged", now, now);
        self.round += 1;
    }
}
