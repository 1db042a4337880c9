//! Hosts of simulated worlds: a registry with its store, relays, and those who ask.

use byway_engine::handshake::Identity;
use byway_engine::seal::Suites;
use byway_engine::{Config, Connect, Endpoint, EndpointConfig};
use byway_registry::message::{Answer, Enrol, Label, RelayList, RelayQuery, Request};
use byway_registry::registry_client::{AskError, ClientExchange};
use byway_registry::secrets::Secrets;
use byway_registry::store::{self, Memory, Store, StoreReply, WordRow};
use byway_registry::word::{RegistryWord, WordKind, WordProof};
use byway_registry::{Registry, RegistryConfig};
use byway_relay::{Config as RelayConfig, Policy, Relay};
use byway_sim::{Handle, Node, PipeConfig, World};
use byway_wire::relay::{QuotaClass, RateClass, RelayKey};
use byway_wire::{Duration, Instant, Machine, StreamId};
use std::net::SocketAddr;

pub const UNIX: u64 = 1_800_057_600;
pub const SECRET: [u8; 32] = [5; 32];
pub const MS: Duration = Duration::from_millis(1);
pub const RANGE: u8 = 9;

pub fn hub_address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 4750))
}

pub fn relay_address(index: usize) -> SocketAddr {
    SocketAddr::from(([20 + (index % 200) as u8, (index / 200) as u8, 0, 1], 4748))
}

/// The words that a registry begins with.
pub const JOIN: u32 = 1;
pub const USE: u32 = 2;

pub fn row(number: u32, kind: WordKind, name: &str) -> WordRow {
    WordRow {
        number,
        kind,
        name: name.into(),
        uses: None,
        rate: RateClass::UNLIMITED,
        quota: QuotaClass::UNLIMITED,
        expires: u64::MAX,
        revoked: false,
    }
}

pub fn memory() -> Memory {
    let mut memory = Memory::new(UNIX);
    memory.put_word(row(JOIN, WordKind::Join, "join"));
    memory.put_word(row(USE, WordKind::Use, "use"));
    memory
}

pub fn word(number: u32, kind: WordKind) -> RegistryWord {
    let secrets = Secrets::new(&SECRET);
    let proof = WordProof { number, secret: secrets.word(number) };
    RegistryWord { kind, key: secrets.identity().public(), proof, addresses: vec![hub_address()] }
}

/// A registry and its store, which may be away.
pub struct Hub {
    pub registry: Registry,
    pub store: Memory,
    pub away: bool,
}

impl Hub {
    pub fn new(mut store: Memory, now: Instant) -> Self {
        let StoreReply::Changes(begin) = store.answer(store::StoreRequest::Changes { since: 0 }) else {
            unreachable!()
        };
        let unix_millis = UNIX * 1000 + now.as_nanos() / 1_000_000;
        let config =
            RegistryConfig { secret: SECRET, seed: [6; 32], unix_millis, suites: Suites::SECURE, begin };
        Self { registry: Registry::new(config, now), store, away: false }
    }
}

impl Node for Hub {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.registry
    }

    fn turn(&mut self, now: Instant) {
        while let Some((number, request)) = self.registry.next_request() {
            let reply = if self.away { StoreReply::Gone } else { self.store.answer(request) };
            self.registry.answer(now, number, reply);
        }
    }
}

/// A host that asks a registry.
pub struct Asker {
    pub endpoint: Endpoint,
    exchange: Option<ClientExchange>,
    raw: Option<byway_engine::Handle>,
    pub answers: Vec<Answer>,
    pub error: Option<AskError>,
}

impl Asker {
    pub fn new(seed: u8) -> Self {
        let mut secret = [seed; 32];
        secret[1] = 0x77;
        Self::with(secret)
    }

    pub fn with(secret: [u8; 32]) -> Self {
        let endpoint = Endpoint::new(EndpointConfig {
            identity: Identity::from_secret(secret),
            suites: Suites::SECURE,
            seed: secret,
            connection: Config::default(),
            admission: None,
            greeting: Vec::new(),
        });
        Self { endpoint, exchange: None, raw: None, answers: Vec::new(), error: None }
    }

    pub fn begin(&mut self, now: Instant, word: &RegistryWord, request: &Request, more: bool) {
        self.answers.clear();
        self.error = None;
        let mut exchange = ClientExchange::begin(&mut self.endpoint, now, word).unwrap();
        exchange.ask(request);
        if !more {
            exchange.finish();
        }
        self.exchange = Some(exchange);
    }

    pub fn go_on(&mut self, request: &Request) {
        let exchange = self.exchange.as_mut().unwrap();
        exchange.ask(request);
        exchange.finish();
    }

    pub fn ask(&mut self, request: &Request) {
        self.exchange.as_mut().unwrap().ask(request);
    }

    /// Opens a session, and says nothing in it that is understood.
    pub fn open(&mut self, now: Instant, word: &RegistryWord) {
        let connect = Connect {
            peer: word.key,
            addresses: word.addresses.clone(),
            application: Vec::new(),
            controller: byway_control::Class::Normal.controller(0),
        };
        self.raw = Some(self.endpoint.connect(now, connect).unwrap());
    }

    /// Writes bytes into it; how many were taken.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let Some(connection) = self.raw.and_then(|raw| self.endpoint.connection_mut(raw)) else { return 0 };
        connection.outgoing().open_stream(StreamId(0));
        connection.outgoing().write(StreamId(0), bytes)
    }

    /// Bytes of it that went out.
    pub fn sent(&mut self) -> u64 {
        let connection = self.raw.and_then(|raw| self.endpoint.connection_mut(raw));
        connection.map_or(0, |connection| connection.outgoing().progress().sent)
    }

    pub fn has_ended(&self) -> bool {
        self.error.is_some()
    }
}

impl Node for Asker {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.endpoint
    }

    fn turn(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.next_event() {
            if let Some(exchange) = &mut self.exchange
                && let Err(error) = exchange.on_event(&event)
            {
                self.error.get_or_insert(error);
            }
            if let byway_engine::EndpointEvent::Closed(handle) = event {
                self.endpoint.forget(handle);
            }
        }
        let Some(exchange) = &mut self.exchange else { return };
        loop {
            match exchange.drive(&mut self.endpoint, now) {
                Ok(Some(answer)) => self.answers.push(answer),
                Ok(None) => return,
                Err(error) => {
                    self.error.get_or_insert(error);
                    if let Some(exchange) = self.exchange.take() {
                        exchange.end(&mut self.endpoint, now);
                    }
                    return;
                }
            }
        }
    }

    fn alarm(&self) -> Option<Instant> {
        self.exchange.as_ref().map(ClientExchange::deadline)
    }
}

pub fn relay_key(index: usize) -> [u8; 32] {
    let mut key = [0x33; 32];
    key[..8].copy_from_slice(&(index as u64).to_be_bytes());
    key
}

pub fn relay(index: usize, now: Instant, off: i64) -> Relay {
    let unix = UNIX.saturating_add_signed(off);
    let mut config = RelayConfig::new(relay_key(index), unix * 1000 + now.as_nanos() / 1_000_000);
    config.policy = Policy::public().allow("10.0.0.0/8".parse().unwrap());
    Relay::new(&config, now)
}

pub fn enrol(index: usize, addresses: &[SocketAddr]) -> Enrol {
    let key = RelayKey::new(&relay_key(index));
    Enrol {
        proof: word(JOIN, WordKind::Join).proof,
        relay: key.id(),
        range: RANGE,
        range_key: key.range_key(RANGE),
        rate: RateClass::UNLIMITED,
        quota: QuotaClass::UNLIMITED,
        operator: Label::new(&format!("operator {index}")),
        region: Label::new("eu"),
        addresses: addresses.to_vec(),
        seen: false,
    }
}

pub fn ask(most: u8, skip: u16) -> Request {
    Request::Ask(RelayQuery { proof: word(USE, WordKind::Use).proof, most, skip })
}

/// A world with a registry, and lines to it.
pub struct Net {
    pub world: World,
    pub hub: Handle<Hub>,
    hosts: u8,
}

impl Net {
    pub fn new(seed: u64, store: Memory) -> Self {
        Self::at(seed, Hub::new(store, Instant::ZERO), &[hub_address()])
    }

    pub fn at(seed: u64, hub: Hub, addresses: &[SocketAddr]) -> Self {
        let mut world = World::new(seed);
        let hub = world.add("registry", hub, addresses);
        Self { world, hub, hosts: 0 }
    }

    fn line(&mut self, address: SocketAddr) {
        let line = PipeConfig::new(100_000_000, 10 * MS);
        self.world.connect(address, hub_address(), line.clone(), line);
    }

    pub fn asker(&mut self, asker: Asker) -> Handle<Asker> {
        self.hosts += 1;
        self.asker_at(asker, SocketAddr::from(([10, 200, 0, self.hosts], 5000)))
    }

    pub fn asker_at(&mut self, asker: Asker, address: SocketAddr) -> Handle<Asker> {
        let handle = self.world.add(&format!("asker at {address}"), asker, &[address]);
        self.line(address);
        handle
    }

    pub fn relay(&mut self, index: usize) -> Handle<Relay> {
        self.relay_whose_clock_is_off(index, 0)
    }

    pub fn relay_whose_clock_is_off(&mut self, index: usize, off: i64) -> Handle<Relay> {
        let address = relay_address(index);
        let handle =
            self.world.add(&format!("relay {index}"), relay(index, self.world.now(), off), &[address]);
        self.line(address);
        handle
    }

    pub fn run(&mut self, time: Duration) {
        self.world.run_for(time);
    }

    /// Asks, and waits for the end.
    pub fn ask(
        &mut self,
        asker: Handle<Asker>,
        word: &RegistryWord,
        request: &Request,
    ) -> Result<Answer, AskError> {
        self.world.act(asker, |asker, now| asker.begin(now, word, request, false));
        let limit = self.world.now() + Duration::from_secs(30);
        let _ =
            self.world.run_while(|world| !world[asker].has_ended() && world[asker].answers.is_empty(), limit);
        match (self.world[asker].answers.first(), &self.world[asker].error) {
            (Some(answer), _) => Ok(answer.clone()),
            (None, error) => Err(error.clone().expect("an end")),
        }
    }

    pub fn list(&mut self, asker: Handle<Asker>, most: u8, skip: u16) -> RelayList {
        match self.ask(asker, &word(USE, WordKind::Use), &ask(most, skip)) {
            Ok(Answer::List(list)) => list,
            other => panic!("{other:?}"),
        }
    }

    /// Enrols a relay as its program does: it learns the epoch, opens its range, and is tested.
    pub fn enrol(
        &mut self,
        relay: Handle<Relay>,
        asker: Handle<Asker>,
        word: &RegistryWord,
        enrol: Enrol,
    ) -> Result<Answer, AskError> {
        let range = enrol.range;
        self.world.act(asker, |asker, now| asker.begin(now, word, &Request::Enrol(enrol.into()), true));
        let limit = self.world.now() + Duration::from_secs(30);
        let _ =
            self.world.run_while(|world| !world[asker].has_ended() && world[asker].answers.is_empty(), limit);
        let Some(Answer::Epoch { epoch, last_holds }) = self.world[asker].answers.first().cloned() else {
            return Err(self.world[asker].error.clone().expect("an end"));
        };
        self.world.act(relay, |relay, now| {
            relay.set_epoch(now, range, epoch, Duration::from_secs(last_holds.into()));
        });
        self.world.act(asker, |asker, _| asker.go_on(&Request::Ready));
        let _ =
            self.world.run_while(|world| !world[asker].has_ended() && world[asker].answers.len() < 2, limit);
        match (self.world[asker].answers.get(1), &self.world[asker].error) {
            (Some(answer), _) => Ok(answer.clone()),
            (None, error) => Err(error.clone().expect("an end")),
        }
    }
}
