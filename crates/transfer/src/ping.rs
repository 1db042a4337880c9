//! Sees whether a receiver is there: connects a few times over every way there is, and moves
//! nothing.

use crate::close::error_of;
use crate::endpoint::endpoint;
use crate::error::{Error, TransferError};
use crate::hello_preamble::{ConnectionPurpose, Preamble};
use crate::identity::Identity;
use crate::path_names::{relay_name, route_name};
use crate::session::connect_attempts::{AttemptResult, ConnectAttempts};
use crate::session::dialers::Dialers;
use crate::session::unreached::not_connected;
use crate::ticket::Ticket;
use byway_control::Class;
use byway_engine::connection::path::PathState;
use byway_engine::connection::{Event, close};
use byway_engine::handshake::PublicKey;
use byway_engine::{
    Config, Connect, ConnectError, Endpoint, EndpointEvent, Handle, RelayRoute, RelayState, RelayTrouble,
};
use byway_net::{Carrier, Clock, Control, LoopControl, Owner, Ready, Socket};
use byway_wire::relay::Word;
use byway_wire::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Between the probes of two relays: nothing else is sent, and a person waits.
const PROBE: Duration = Duration::from_millis(50);
/// How long the first round waits for more paths, in addition to the time for probing all relays.
/// Before a relay can be a path, this host and the receiver must send it their first packets.
const FIRST: Duration = Duration::from_millis(2500);
/// How long the first round waits for more paths, where no relay is in play.
const FIRST_DIRECT: Duration = Duration::from_millis(1000);
/// How long a later round waits for the paths of those before.
const LATER: Duration = Duration::from_millis(1500);

/// Whom to ping, and how.
pub struct PingPlan {
    /// The key pair of this host.
    pub identity: Identity,
    /// The ticket of the receiver.
    pub ticket: Ticket,
    /// Relays besides those that the ticket names.
    pub relays: Vec<Word>,
    /// The sockets to send from.
    pub sockets: Vec<Socket>,
    /// Whether TCP takes the place of UDP where that brings no answer.
    pub tcp: bool,
    /// How often to connect.
    pub rounds: u32,
}

/// How one way answered.
#[derive(Clone, Debug, PartialEq)]
pub struct PingSummary {
    /// What to call it.
    pub name: String,
    /// How many rounds there were.
    pub sent: u32,
    /// The round-trip time of each round in which it worked.
    pub rtts: Vec<Duration>,
}

/// What a round of pings found out.
pub struct Pings {
    /// Every way that worked at least once.
    pub routes: Vec<PingSummary>,
    /// Relays that did not, and why.
    pub troubles: Vec<String>,
    /// Why nobody answered, if so, and what came back on each way.
    pub unreached: Option<(TransferError, Vec<AttemptResult>)>,
}

/// Pings; returns after the last round.
///
/// # Errors
/// The receiver does not let this host in, or cannot be asked.
pub fn ping(plan: PingPlan) -> Result<Pings, Error> {
    let config = Config { probe_interval: PROBE, ..Config::default() };
    let endpoint = endpoint(&plan.identity, config, None)?;
    let locals: Vec<SocketAddr> = plan.sockets.iter().map(Socket::address).collect();
    let met = plan.ticket.relays.iter().map(|relay| relay.word.clone());
    let ways = ConnectAttempts::new(&plan.ticket.addresses, met, &locals);
    let control = Control::new().map_err(Error::Descriptor)?;
    let words = plan.relays.iter().chain(plan.ticket.relays.iter().map(|relay| &relay.word));
    let dialers = match plan.tcp {
        true => Dialers::new(control.watch(), 0, &plan.ticket.addresses, words),
        false => Dialers::never(control.watch()),
    };
    let owner = Pinger {
        ways,
        dialers,
        unreached: None,
        ticket: plan.ticket,
        relays: plan.relays,
        rounds: plan.rounds,
        round: 0,
        handle: None,
        until: None,
        begun: 0,
        locals,
        found: BTreeMap::new(),
        troubles: Vec::new(),
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
    let (sent, unreached) = (owner.begun, owner.unreached);
    let routes = owner.found.into_iter().map(|(name, rtts)| PingSummary { name, sent, rtts }).collect();
    let mut troubles: Vec<String> = owner
        .troubles
        .into_iter()
        .filter(|(relay, _)| !owner.relays_up.contains(relay))
        .map(|(relay, trouble)| format!("relay {relay}: {trouble}"))
        .collect();
    // From several local sockets it looks the same.
    troubles.dedup();
    Ok(Pings { routes, troubles, unreached })
}

struct Pinger {
    ticket: Ticket,
    relays: Vec<Word>,
    rounds: u32,
    /// Rounds that are over.
    round: u32,
    /// Rounds that were begun.
    begun: u32,
    handle: Option<Handle>,
    /// When the round is over, once there is a connection.
    until: Option<Instant>,
    locals: Vec<SocketAddr>,
    found: BTreeMap<String, Vec<Duration>>,
    troubles: Vec<(SocketAddr, RelayTrouble)>,
    relays_up: BTreeSet<SocketAddr>,
    failure: Option<TransferError>,
    /// Before it answered for the first time.
    ways: ConnectAttempts,
    dialers: Dialers,
    unreached: Option<(TransferError, Vec<AttemptResult>)>,
}

impl Owner for Pinger {
    type Machine = Endpoint;

    fn ready(&mut self, _: &mut Endpoint, ready: Ready, _: Instant) {
        self.dialers.ready(ready);
    }

    fn opened(&mut self) -> Vec<Carrier> {
        self.dialers.opened().collect()
    }

    fn turn(&mut self, endpoint: &mut Endpoint, now: Instant) -> LoopControl {
        while let Some(event) = endpoint.next_event() {
            self.on_event(endpoint, event, now);
        }
        self.look(endpoint, now);
        if self.round == 0 && self.until.is_none() {
            self.ways.look(now);
            if self.ways.are_hopeless(now) {
                self.give_up(ConnectError::NoAnswer);
            }
        }
        let over = self.failure.is_some() || self.unreached.is_some();
        if !over && self.round < self.rounds && self.handle.is_none() {
            self.begin(endpoint, now);
        }
        if let Some(handle) = self.handle.filter(|_| !over) {
            let silence = self.until.map(|_| Duration::ZERO);
            self.dialers.look(endpoint, handle, silence, now);
        }
        let over = over || self.round == self.rounds;
        if over { LoopControl::Stop } else { LoopControl::Continue }
    }
}

impl Pinger {
    fn begin(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let permission = self.ticket.permission.clone();
        let preamble = Preamble { kind: ConnectionPurpose::Ping, permission, transfer: [0; 16] };
        let connect = Connect {
            peer: PublicKey(self.ticket.key.0),
            addresses: self.ticket.addresses.clone(),
            application: preamble.to_bytes(),
            controller: Class::Normal.controller(u64::from(self.begun)),
        };
        self.begun += 1;
        self.dialers.begin();
        match endpoint.connect(now, connect) {
            Ok(handle) => {
                self.handle = Some(handle);
                for relay in &self.ticket.relays {
                    let (word, destination, consent) = (relay.word.clone(), relay.address, relay.consent);
                    endpoint.add_relay(
                        now,
                        handle,
                        &relay.word,
                        Some(&RelayRoute { word, destination, consent }),
                    );
                }
                for word in &self.relays {
                    endpoint.add_relay(now, handle, word, None);
                }
            }
            Err(error) => self.give_up(error),
        }
    }

    fn give_up(&mut self, error: ConnectError) {
        self.ways.on_tcp(self.dialers.accepted());
        let tried = self.ways.tried();
        self.unreached = Some((not_connected(error, &tried).into(), tried));
    }

    fn on_event(&mut self, endpoint: &mut Endpoint, event: EndpointEvent, now: Instant) {
        match event {
            EndpointEvent::Connected(handle) if self.handle == Some(handle) => {
                let relays = self.relays.len() + self.ticket.relays.len();
                let probes = PROBE * u32::try_from(relays).unwrap_or(u32::MAX);
                let patience = match (self.round, relays) {
                    (0, 0) => FIRST_DIRECT,
                    (0, _) => FIRST + probes,
                    _ => LATER + probes,
                };
                self.until = Some(now + patience);
            }
            EndpointEvent::Failed(handle, error) if self.handle == Some(handle) => {
                if self.round == 0 {
                    self.give_up(error);
                }
                (self.handle, self.until) = (None, None);
                self.round += 1;
            }
            EndpointEvent::Closed(handle) => {
                // What it has to say goes with it.
                self.look(endpoint, now);
                endpoint.forget(handle);
            }
            EndpointEvent::RelayTrouble(_, relay, trouble) if self.round == 0 => {
                self.ways.on_relay(relay, trouble);
                self.troubles.push((relay, trouble));
            }
            _ => {}
        }
    }

    /// Notes what answered, and ends the round when nothing more is to be expected.
    fn look(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let (Some(handle), Some(until)) = (self.handle, self.until) else { return };
        let Some(connection) = endpoint.connection_mut(handle) else { return };
        while let Some(event) = connection.next_event() {
            if let Event::Closed { code, reason, by_peer } = event {
                self.failure = Some(error_of(code, &reason, by_peer));
                return;
            }
        }
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
        let relays = endpoint.relays(now, handle);
        let tried = !relays.iter().any(|it| matches!(it.standing, RelayState::Untried | RelayState::Trying));
        for relay in relays {
            let name = relay_name(relay.relay, relay.local, &self.locals);
            if let Some(rtt) = relay.rtt
                && !answered.iter().any(|(known, _)| *known == name)
            {
                answered.push((name, rtt));
                self.relays_up.insert(relay.relay);
            }
        }
        let complete = self.round > 0 && tried && answered.len() >= self.found.len();
        if now < until && !complete {
            return;
        }
        for (name, rtt) in answered {
            self.found.entry(name).or_default().push(rtt);
        }
        endpoint.close(now, handle, close::DONE, "pinged");
        (self.handle, self.until) = (None, None);
        self.round += 1;
    }
}
