//! The simulated world's registry (service that lists relays): the code of a real one, with a store
//! in memory. The store contains the relays from the start. For each sender, a second simulated
//! host beside the sender queries the registry, and passes the relays on.

use byway_engine::handshake::Identity;
use byway_engine::seal::Suites;
use byway_engine::{Config as Connection, Endpoint, EndpointConfig, EndpointEvent};
use byway_registry::message::{Answer, Label, RelayList, RelayQuery, Request};
use byway_registry::registry_client::{ClientExchange, FIRST_ASK_RELAYS, MAX_ASKED_RELAYS, NEXT_ASK_RELAYS};
use byway_registry::secrets::Secrets;
use byway_registry::store::{
    LastHeartbeat, Memory, RelayRow, Store, StoreReply, StoreRequest as Wish, WordRow,
};
use byway_registry::word::{RegistryWord, WordKind, WordProof};
use byway_registry::{Registry, RegistryConfig};
use byway_relay::Relay;
use byway_sim::{Node, Random};
use byway_wire::relay::{self, QuotaClass, RateClass};
use byway_wire::{Duration, Instant, Machine};
use core::net::SocketAddr;
use std::cell::RefCell;
use std::rc::Rc;

/// The clocks of the registry and the relays when the world begins, in Unix seconds: an arbitrary
/// day.
pub(super) const START_UNIX_SECONDS: u64 = 1_800_057_600;
/// The range of grant ids that every relay gives this registry.
pub(super) const REGISTRY_RANGE: u8 = 1;
/// The number of the word with which the relays enrolled. Clients have the words after it.
const JOIN_WORD: u32 = 1;
/// Time between two checks whether a sender wants more relays.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// A registry that is being made.
#[derive(Debug)]
pub(super) struct RegistryBuilder {
    address: SocketAddr,
    secret: [u8; 32],
    store: Memory,
    words: u32,
}

impl RegistryBuilder {
    pub(super) fn new(address: SocketAddr, seed: u64) -> Self {
        let mut secret = [0; 32];
        Random::component(seed, "registry").fill(&mut secret);
        let mut store = Memory::new(START_UNIX_SECONDS - 60);
        store.put_word(row(JOIN_WORD, WordKind::Join));
        Self { address, secret, store, words: JOIN_WORD }
    }

    /// The registry's address.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Adds a relay with an operator of its own, which was alive a second ago.
    pub(super) fn enrol(&mut self, node: &str, relay: &Relay, address: SocketAddr) {
        let id = relay.id();
        self.store.put_relay(RelayRow {
            relay: id,
            key: Identity::from_secret(self.secret).public(),
            word: JOIN_WORD,
            range: REGISTRY_RANGE,
            range_key: relay.range_key(REGISTRY_RANGE),
            rate: RateClass::UNLIMITED,
            quota: QuotaClass::UNLIMITED,
            operator: Label::new(node),
            region: Label::default(),
            addresses: vec![address],
            tcp: false,
            revoked: false,
        });
        let seen = vec![LastHeartbeat { relay: id, at: START_UNIX_SECONDS - 1, counter: 0, load: 0 }];
        let _ = self.store.answer(Wish::Note { seen, entries: Vec::new() });
    }

    /// Makes a new registry word for a client.
    pub(super) fn word(&mut self) -> RegistryWord {
        self.words += 1;
        self.store.put_word(row(self.words, WordKind::Use));
        let secrets = Secrets::new(&self.secret);
        let proof = WordProof { number: self.words, secret: secrets.word(self.words) };
        RegistryWord {
            kind: WordKind::Use,
            key: secrets.identity().public(),
            proof,
            addresses: vec![self.address],
        }
    }

    /// Returns the number of clients that have a word.
    pub(super) const fn clients(&self) -> u32 {
        self.words - JOIN_WORD
    }

    /// Makes the running registry.
    pub(super) fn open(self, seed: u64) -> RegistryNode {
        let Self { secret, mut store, .. } = self;
        let begin = match store.answer(Wish::Changes { since: 0 }) {
            StoreReply::Changes(changes) => changes,
            _ => unreachable!("a store in memory answers what it is asked"),
        };
        let mut entropy = [0; 32];
        Random::component(seed, "entropy of the registry").fill(&mut entropy);
        let config = RegistryConfig {
            secret,
            seed: entropy,
            unix_millis: START_UNIX_SECONDS * 1_000,
            suites: Suites::SECURE,
            begin,
        };
        RegistryNode { registry: Registry::new(config, Instant::ZERO), store }
    }
}

fn row(number: u32, kind: WordKind) -> WordRow {
    let (rate, quota) = (RateClass::UNLIMITED, QuotaClass::UNLIMITED);
    WordRow {
        number,
        kind,
        name: format!("word {number}"),
        uses: None,
        rate,
        quota,
        expires: u64::MAX,
        revoked: false,
    }
}

/// The registry and its store.
pub(super) struct RegistryNode {
    registry: Registry,
    store: Memory,
}

impl Node for RegistryNode {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.registry
    }

    fn turn(&mut self, now: Instant) {
        while let Some((number, wish)) = self.registry.next_request() {
            let reply = self.store.answer(wish);
            self.registry.answer(now, number, reply);
        }
    }
}

/// The relay words that an asker has received, and whether the sender tried them all. A sender and
/// the asker on its host share this.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedOffers(Rc<RefCell<RelayOffers>>);

#[derive(Debug, Default)]
struct RelayOffers {
    /// Relay words, in the order in which they became known.
    words: Vec<relay::Word>,
    /// Whether the sender tried them all.
    used_up: bool,
    /// No more will come.
    complete: bool,
}

impl SharedOffers {
    /// Returns the relay words after the first `taken`.
    pub(super) fn after(&self, taken: usize) -> Vec<relay::Word> {
        self.0.borrow().words.iter().skip(taken).cloned().collect()
    }

    /// Whether no more will come.
    pub(super) fn is_complete(&self) -> bool {
        self.0.borrow().complete
    }

    /// Notes that the sender tried all relay words.
    pub(super) fn use_up(&self) {
        self.0.borrow_mut().used_up = true;
    }
}

/// Asks a registry for a sender.
pub(super) struct RegistryClient {
    endpoint: Endpoint,
    word: RegistryWord,
    exchange: Option<ClientExchange>,
    offers: SharedOffers,
    /// Number of relays of the draw that have been received.
    had: usize,
    next: Option<Instant>,
}

impl RegistryClient {
    /// Asks for the first time at `start`.
    pub(super) fn new(word: RegistryWord, offers: SharedOffers, start: Instant, random: &mut Random) -> Self {
        let (mut secret, mut seed) = ([0; 32], [0; 32]);
        random.fill(&mut secret);
        random.fill(&mut seed);
        let endpoint = Endpoint::new(EndpointConfig {
            identity: Identity::from_secret(secret),
            suites: Suites::SECURE,
            seed,
            connection: Connection::default(),
            admission: None,
            greeting: Vec::new(),
        });
        Self { endpoint, word, exchange: None, offers, had: 0, next: Some(start) }
    }

    fn ask(&mut self, now: Instant) {
        let most = if self.had == 0 { FIRST_ASK_RELAYS } else { NEXT_ASK_RELAYS };
        let ask = RelayQuery {
            proof: self.word.proof.clone(),
            most: u8::try_from(most).unwrap_or(u8::MAX),
            skip: u16::try_from(self.had).unwrap_or(u16::MAX),
        };
        self.exchange =
            ClientExchange::begin(&mut self.endpoint, now, &self.word).ok().map(|mut exchange| {
                exchange.ask(&Request::Ask(ask));
                exchange.finish();
                exchange
            });
    }

    fn take(&mut self, list: RelayList) {
        let mut offers = self.offers.0.borrow_mut();
        self.had += list.relays.len();
        // A registry that just came back knows of nobody yet.
        offers.complete = !list.more && self.had > 0 || self.had >= MAX_ASKED_RELAYS;
        offers.used_up = false;
        offers.words.extend(list.relays.into_iter().map(|listed| listed.word));
    }

    fn look(&mut self, now: Instant) {
        if self.exchange.is_none() && self.next.is_some_and(|next| next <= now) {
            let (used_up, complete) = {
                let offers = self.offers.0.borrow();
                (offers.used_up, offers.complete)
            };
            self.next = (!complete).then_some(now + LOOK_INTERVAL);
            if self.had == 0 || used_up && !complete {
                self.ask(now);
            }
        }
        let Some(exchange) = &mut self.exchange else { return };
        let answer = exchange.drive(&mut self.endpoint, now);
        match answer {
            Ok(None) => return,
            Ok(Some(Answer::List(list))) => self.take(list),
            // It is asked again with the next look.
            Ok(Some(_)) | Err(_) => {}
        }
        if let Some(exchange) = self.exchange.take() {
            exchange.end(&mut self.endpoint, now);
        }
    }
}

impl Node for RegistryClient {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.endpoint
    }

    fn turn(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.next_event() {
            if let Some(exchange) = &mut self.exchange
                && exchange.on_event(&event).is_err()
            {
                self.exchange = None;
            }
            if let EndpointEvent::Closed(handle) = event {
                self.endpoint.forget(handle);
            }
        }
        self.look(now);
    }

    fn alarm(&self) -> Option<Instant> {
        self.exchange.as_ref().map(ClientExchange::deadline).or(self.next)
    }
}
