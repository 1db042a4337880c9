//! Measures how many relays and questions one registry can serve. One process is the registry,
//! another plays all relays and clients.
//!
//! ```text
//! taskset -c 0 load serve DIRECTORY 10000 &         # makes a store with so many relays, and serves it on 127.0.0.1:4750
//! taskset -c 1 load ask DIRECTORY 300 20            # all relays beat; so many questions a second, for so many seconds
//! ```
//!
//! Each question asks for 100 relays in its own session, and is timed from first packet to answer.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "an experiment ends where it cannot go on"
)]

use byway_engine::handshake::{Identity, PublicKey};
use byway_engine::seal::Suites;
use byway_engine::{Config, Endpoint, EndpointConfig, EndpointEvent, Handle};
use byway_net::{Clock, LoopControl, Owner, Socket, unix_seconds};
use byway_registry::message::{Answer, Label, RelayQuery, Request};
use byway_registry::registry_client::ClientExchange;
use byway_registry::store::{self, LastHeartbeat, RelayRow};
use byway_registry::word::{RegistryWord, WordKind};
use byway_registry_store::operator_store::Words;
use byway_registry_store::{Issue, OperatorStore, RegistryPlan, Running, open};
use byway_wire::heartbeat::{ANSWERED_TYPE, BEAT_LEN, Heartbeat, HeartbeatReport};
use byway_wire::relay::{QuotaClass, RateClass, RelayKey};
use byway_wire::{Dscp, Duration, Ecn, Input, Instant, Local, Machine, Transmit, TransmitBuffer, Writer};
use std::collections::BTreeMap;
use std::net::SocketAddr;

const RANGE: u8 = 9;
/// Words that the questions are spread over: one alone may not ask so often.
const WORDS: usize = 100;
/// Between two heartbeats of a relay.
const BEAT: Duration = Duration::from_secs(10);

fn hub() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 4750))
}

fn key(index: usize) -> RelayKey {
    let mut key = [0x33; 32];
    key[..8].copy_from_slice(&(index as u64).to_be_bytes());
    RelayKey::new(&key)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments[at].parse::<usize>().expect("a number");
    match arguments.first().map(String::as_str) {
        Some("serve") => serve(&arguments[1], number(2)),
        Some("ask") => ask(&arguments[1], number(2), number(3)),
        _ => panic!("serve DIRECTORY RELAYS, or ask DIRECTORY RATE SECONDS"),
    }
}

fn serve(directory: &str, relays: usize) {
    let mut keeper = open(&format!("{directory}/registry.db")).unwrap();
    let known = keeper.everything().unwrap().relays.len();
    let any = |kind, name: String| Issue { kind, name, uses: None, rate: None, quota: None, expires: None };
    if known == 0 {
        let join = keeper.issue(&any(WordKind::Join, "load".into()), 1).unwrap().number;
        for word in 0..WORDS {
            keeper.issue(&any(WordKind::Use, format!("client {word}")), 1).unwrap();
        }
        let mut seen = Vec::new();
        for index in 0..relays {
            let (key, at) = (key(index), [20 + (index % 200) as u8, (index / 200) as u8, 0, 1]);
            let row = RelayRow {
                relay: key.id(),
                key: PublicKey([1; 32]),
                word: join,
                range: RANGE,
                range_key: key.range_key(RANGE),
                rate: RateClass::UNLIMITED,
                quota: QuotaClass::UNLIMITED,
                operator: Label::new(&format!("operator {}", index % 500)),
                region: Label::new("somewhere"),
                addresses: vec![SocketAddr::from((at, 4748))],
                tcp: false,
                revoked: false,
            };
            keeper.answer(store::StoreRequest::Enrol { row, at: 2 });
            seen.push(LastHeartbeat { relay: key.id(), at: unix_seconds(), counter: 0, load: 0 });
        }
        keeper.answer(store::StoreRequest::Note { seen, entries: Vec::new() });
    }
    let sockets = vec![Socket::bind(hub()).unwrap()];
    let running =
        Running::start(RegistryPlan { keeper, sockets, addresses: vec![hub()], probe_from: Vec::new() })
            .unwrap();
    println!("serves {relays} relays");
    let view = running.view();
    while !running.is_over() {
        std::thread::sleep(std::time::Duration::from_secs(5));
        let view = view.lock().unwrap();
        let (counters, listed) = (&view.counters, view.relays.iter().filter(|relay| relay.listed).count());
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        println!(
            "listed {listed}, beats {}, questions {}, grants {}, processor {}.{:03} s",
            counters.beats,
            counters.questions,
            counters.grants,
            cpu.tv_sec,
            cpu.tv_nsec / 1_000_000
        );
    }
}

/// All relays' heartbeats, by one socket, and all clients, by another.
struct Load {
    endpoint: Endpoint,
    relays: Vec<RelayKey>,
    beat_at: Instant,
    next: usize,
    counter: u64,
    answered: u64,
}

impl Machine for Load {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Datagram(datagram) if datagram.payload.first() == Some(&ANSWERED_TYPE) => {
                self.answered += 1
            }
            input => self.endpoint.handle(now, input),
        }
    }

    fn wake(&mut self, now: Instant) {
        self.endpoint.wake(now);
    }

    fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        if self.beat_at <= now {
            self.beat_at += BEAT / self.relays.len() as u32;
            let key = &self.relays[self.next];
            self.next = (self.next + 1) % self.relays.len();
            self.counter += 1;
            let report = HeartbeatReport {
                relay: key.id(),
                range: RANGE,
                counter: self.counter,
                epoch: 1,
                rate: 0,
                grants: 0,
                today: 0,
                month: 0,
                left: u64::MAX,
                flags: 0,
            };
            let beat = Heartbeat::new(report, &key.range_key(RANGE).heartbeat_key());
            beat.write(&mut Writer::new(out.buffer));
            let (ecn, dscp, size) = (Ecn::NotEct, Dscp::BestEffort, BEAT_LEN);
            return Some(Transmit {
                local: Local(0),
                remote: hub(),
                ecn,
                dscp,
                size,
                segment: size,
                phantom: 0,
            });
        }
        self.endpoint.transmit(now, out)
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.endpoint.deadline().map_or(self.beat_at, |at| at.min(self.beat_at)))
    }
}

struct Clients {
    words: Vec<RegistryWord>,
    gap: Duration,
    next: Instant,
    until: Instant,
    asked: usize,
    running: BTreeMap<Handle, (ClientExchange, Instant)>,
    took: Vec<Duration>,
    failed: usize,
}

impl Clients {
    fn begin(&mut self, load: &mut Load, now: Instant) {
        let word = &self.words[self.asked % self.words.len()];
        self.asked += 1;
        let mut exchange = ClientExchange::begin(&mut load.endpoint, now, word).unwrap();
        exchange.ask(&Request::Ask(RelayQuery { proof: word.proof.clone(), most: 100, skip: 0 }));
        exchange.finish();
        // When it should have begun: what this program is late by counts.
        self.running.insert(exchange.handle(), (exchange, self.next));
    }

    fn drive(&mut self, load: &mut Load, handle: Handle, now: Instant) {
        let Some((exchange, _)) = self.running.get_mut(&handle) else { return };
        let outcome = match exchange.drive(&mut load.endpoint, now) {
            Ok(None) => return,
            outcome => outcome,
        };
        let Some((exchange, since)) = self.running.remove(&handle) else { return };
        exchange.end(&mut load.endpoint, now);
        match outcome {
            Ok(Some(Answer::List(list))) if list.relays.len() == 100 => self.took.push(now.since(since)),
            _ => self.failed += 1,
        }
    }
}

impl Owner for Clients {
    type Machine = Load;

    fn turn(&mut self, load: &mut Load, now: Instant) -> LoopControl {
        while self.next <= now && now < self.until {
            self.begin(load, now);
            self.next += self.gap;
        }
        while let Some(event) = load.endpoint.next_event() {
            let handle = match event {
                EndpointEvent::Connected(handle) | EndpointEvent::Failed(handle, _) => handle,
                EndpointEvent::Closed(handle) => {
                    load.endpoint.forget(handle);
                    continue;
                }
                _ => continue,
            };
            let gone =
                self.running.get_mut(&handle).is_some_and(|(exchange, _)| exchange.on_event(&event).is_err());
            if gone {
                self.running.remove(&handle);
                self.failed += 1;
            } else {
                self.drive(load, handle, now);
            }
        }
        while let Some(handle) = load.endpoint.next_with_streams() {
            self.drive(load, handle, now);
        }
        let over =
            now >= self.until && (self.running.is_empty() || now.since(self.until) > Duration::from_secs(5));
        if over { LoopControl::Stop } else { LoopControl::Continue }
    }
}

fn ask(directory: &str, rate: usize, seconds: usize) {
    let mut keeper: Box<dyn OperatorStore> = open(&format!("{directory}/registry.db")).unwrap();
    let everything = keeper.everything().unwrap();
    let relays = (0..everything.relays.len()).map(key).collect();
    let words = Words::of(&mut *keeper).unwrap();
    let clients = everything.words.iter().filter(|word| word.name.starts_with("client"));
    let words: Vec<RegistryWord> = clients.map(|row| words.word(row)).collect();
    drop(keeper);
    let endpoint = Endpoint::new(EndpointConfig {
        identity: Identity::from_secret(byway_net::seed().unwrap()),
        suites: Suites::SECURE,
        seed: byway_net::seed().unwrap(),
        connection: Config::default(),
        admission: None,
        greeting: Vec::new(),
    });
    let clock = Clock::new();
    let (now, counter) = (clock.now(), unix_seconds() * 1_000_000);
    let load = Load { endpoint, relays, beat_at: now, next: 0, counter, answered: 0 };
    let owner = Clients {
        words,
        gap: Duration::from_secs(1) / rate as u32,
        next: now,
        until: now + Duration::from_secs(seconds as u64),
        asked: 0,
        running: BTreeMap::new(),
        took: Vec::new(),
        failed: 0,
    };
    let sockets = vec![Socket::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap()];
    let driver = byway_net::spawn("load", load, owner, sockets, clock).unwrap();
    while !driver.is_finished() {
        std::thread::sleep(std::time::Duration::from_millis(1));
        driver.waker().wake();
    }
    let finished = driver.join().unwrap();
    let mut took = finished.owner.took;
    took.sort_unstable();
    let at =
        |percent: usize| took.get(took.len() * percent / 100).map_or(0.0, |took| took.as_secs_f64() * 1e3);
    println!(
        "asked {}, answered {} with 100 grants each, failed {}, left {}; ms: median {:.2}, p90 {:.2}, p99 {:.2}; heartbeats {} of which answered {}",
        finished.owner.asked,
        took.len(),
        finished.owner.failed,
        finished.owner.running.len(),
        at(50),
        at(90),
        at(99),
        finished.machine.counter - counter,
        finished.machine.answered
    );
}
