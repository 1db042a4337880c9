//! Senders complain of relays that swallow, and the registry finds out. Who complains of good ones
//! changes nothing.

use crate::common::*;
use byway_control::Class;
use byway_engine::handshake::{Identity, PublicKey};
use byway_engine::seal::Suites;
use byway_engine::{Admission, Admit, Config, Connect, Endpoint, EndpointConfig, EndpointEvent, RelayState};
use byway_registry::complaints::Complaints;
use byway_registry::message::{Answer, Reason, RelayList, Request};
use byway_registry::registry_client::{AskError, ClientExchange};
use byway_registry::store::{Memory, RelayRow};
use byway_registry::word::WordKind;
use byway_relay::Relay;
use byway_sim::{Handle, Node, PipeConfig};
use byway_wire::heartbeat::RelayId;
use byway_wire::relay::{MessageType as Packet, QuotaClass, RateClass};
use byway_wire::{Duration, Input, Instant, Machine, StreamId, Transmit, TransmitBuffer};
use std::collections::BTreeSet;
use std::net::SocketAddr;

const STREAM: StreamId = StreamId(0);

/// A relay that answers, beats, and forwards nothing if it does not want to.
struct Moody {
    relay: Relay,
    swallows: bool,
}

impl Machine for Moody {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        let forward = matches!(&input, Input::Datagram(datagram)
            if datagram.payload.first().copied().and_then(Packet::of) == Some(Packet::Forward));
        if !(forward && self.swallows) {
            self.relay.handle(now, input);
        }
    }

    fn wake(&mut self, now: Instant) {
        self.relay.wake(now);
    }

    fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        self.relay.transmit(now, out)
    }

    fn deadline(&self) -> Option<Instant> {
        self.relay.deadline()
    }
}

struct Moods(Moody);

impl Node for Moods {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.0
    }

    fn turn(&mut self, _: Instant) {
        self.0.relay.make_room();
    }
}

struct Everybody;

impl Admission for Everybody {
    fn admit(&mut self, _: PublicKey, _: &[u8]) -> Admit {
        Admit::Accept(Class::Normal.controller(0))
    }
}

/// One end of a stream without end. The sender asks nobody: it was told of relays.
struct End {
    endpoint: Endpoint,
    session: Option<byway_engine::Handle>,
    complaints: Complaints,
    exchange: Option<ClientExchange>,
    complained: BTreeSet<RelayId>,
    heard: u32,
    sends: bool,
    next: Instant,
}

impl End {
    fn new(seed: u8) -> Self {
        let admission: Option<Box<dyn Admission>> = Some(Box::new(Everybody));
        let endpoint = Endpoint::new(EndpointConfig {
            identity: Identity::from_secret([seed; 32]),
            suites: Suites::SECURE,
            seed: [seed; 32],
            connection: Config::default(),
            admission,
            greeting: Vec::new(),
        });
        let (complaints, next) = (Complaints::default(), Instant::ZERO);
        let complained = BTreeSet::new();
        Self { endpoint, session: None, complaints, exchange: None, complained, heard: 0, sends: false, next }
    }

    fn send_to(&mut self, now: Instant, peer: PublicKey, address: SocketAddr, list: &RelayList) {
        let addresses = vec![address];
        let controller = Class::Normal.controller(0);
        let connect = Connect { peer, addresses, application: Vec::new(), controller };
        let session = self.endpoint.connect(now, connect).unwrap();
        for listed in &list.relays {
            self.endpoint.add_relay(now, session, &listed.word, None);
        }
        self.complaints.learn(list);
        (self.session, self.sends) = (Some(session), true);
    }

    fn complain(&mut self, now: Instant, session: byway_engine::Handle) {
        self.complaints.look(now, &self.endpoint.relays(now, session));
        let relays = self.complaints.take(now);
        if relays.is_empty() || self.exchange.is_some() {
            return;
        }
        self.complained.extend(&relays);
        let word = word(USE, WordKind::Use);
        let mut exchange = ClientExchange::begin(&mut self.endpoint, now, &word).unwrap();
        exchange.ask(&Request::Complain { proof: word.proof, relays });
        exchange.finish();
        self.exchange = Some(exchange);
    }
}

impl Node for End {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.endpoint
    }

    fn turn(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.next_event() {
            if let Some(exchange) = &mut self.exchange {
                exchange.on_event(&event).unwrap();
            }
            match event {
                EndpointEvent::Accepted(handle) => self.session = Some(handle),
                EndpointEvent::Closed(handle) => self.endpoint.forget(handle),
                _ => {}
            }
        }
        if let Some(exchange) = &mut self.exchange
            && let Some(answer) = exchange.drive(&mut self.endpoint, now).unwrap()
        {
            assert_eq!(answer, Answer::Heard);
            self.heard += 1;
            self.exchange.take().unwrap().end(&mut self.endpoint, now);
        }
        let Some(session) = self.session else { return };
        if self.next <= now {
            self.next = now + Duration::from_millis(500);
            self.complain(now, session);
        }
        if let Some(connection) = self.endpoint.connection_mut(session) {
            while connection.next_event().is_some() {}
            if self.sends {
                connection.outgoing().open_stream(STREAM);
                while connection.outgoing().write(STREAM, &[7; 4096]) > 0 {}
            }
            while connection.incoming().next_event().is_some() {}
            while connection.incoming().read(STREAM, &mut [0; 4096]).is_some_and(|read| read.length > 0) {}
        }
    }

    fn alarm(&self) -> Option<Instant> {
        self.session.map(|_| self.next)
    }
}

/// Relays that are enrolled and beat; the first ones swallow.
fn fleet(net: &mut Net, relays: usize, swallow: usize) -> Vec<Handle<Moods>> {
    let begin = |index: usize| {
        let relay = relay(index, net.world.now(), 0);
        let address = relay_address(index);
        let moods = Moods(Moody { relay, swallows: index < swallow });
        let handle = net.world.add(&format!("relay {index}"), moods, &[address]);
        let line = PipeConfig::new(20_000_000, 10 * MS);
        net.world.connect(address, hub_address(), line.clone(), line);
        net.world.act(handle, |moods, now| {
            moods.0.relay.set_epoch(now, RANGE, 1, Duration::ZERO);
            assert!(moods.0.relay.watch(now, RANGE, vec![hub_address()], Duration::from_secs(1)));
        });
        handle
    };
    (0..relays).map(begin).collect()
}

fn row(index: usize) -> RelayRow {
    let told = enrol(index, &[relay_address(index)]);
    RelayRow {
        relay: told.relay,
        key: PublicKey([1; 32]),
        word: JOIN,
        range: RANGE,
        range_key: told.range_key,
        rate: RateClass::UNLIMITED,
        quota: QuotaClass::UNLIMITED,
        operator: told.operator,
        region: told.region,
        addresses: told.addresses,
        tcp: false,
        revoked: false,
    }
}

fn store(relays: usize) -> Memory {
    let mut store = memory();
    (0..relays).for_each(|index| store.put_relay(row(index)));
    store
}

fn names(list: &RelayList) -> BTreeSet<RelayId> {
    list.relays.iter().map(|listed| listed.relay).collect()
}

/// Two ends, each with a way to every relay, and a narrow one between them. The sender, the
/// receiver, and where that is.
fn ends(net: &mut Net, relays: usize) -> (Handle<End>, Handle<End>, SocketAddr) {
    let ends = [7_u8, 8].map(|host| {
        let address = SocketAddr::from(([10, 201, 0, host], 5000));
        let end = net.world.add(&format!("end {host}"), End::new(host), &[address]);
        let line = PipeConfig::new(2_000_000, 10 * MS);
        for index in 0..relays {
            net.world.connect(address, relay_address(index), line.clone(), line.clone());
        }
        net.world.connect(address, hub_address(), line.clone(), line);
        (end, address)
    });
    let [(sender, from), (receiver, to)] = ends;
    let narrow = PipeConfig::new(400_000, 10 * MS).queue_time(100 * MS);
    net.world.connect(from, to, narrow.clone(), narrow);
    (sender, receiver, to)
}

#[test]
fn a_sender_complains_by_itself_and_who_swallows_is_taken_off_the_list() {
    const RELAYS: usize = 8;
    let mut net = Net::new(41, store(RELAYS));
    let relays = fleet(&mut net, RELAYS, 2);
    let client = net.asker(Asker::new(2));
    net.run(Duration::from_secs(3));
    let list = net.list(client, 100, 0);
    assert_eq!(list.relays.len(), RELAYS, "who beats is listed");
    let (sender, receiver, to) = ends(&mut net, RELAYS);
    let peer = net.world[receiver].endpoint.public_key();
    net.world.act(sender, |end, now| end.send_to(now, peer, to, &list));
    net.run(Duration::from_secs(25));
    let name = |index: usize| enrol(index, &[]).relay;
    let swallow: BTreeSet<RelayId> = (0..2).map(name).collect();
    assert_eq!(net.world[sender].complained, swallow);
    assert!(net.world[sender].heard > 0);
    assert_eq!(names(&net.list(client, 100, 0)), (2..RELAYS).map(name).collect());
    // Three of those in use turn out to be no better; others are left.
    let now = net.world.now();
    let standing = net.world.act(sender, |end, _| end.endpoint.relays(now, end.session.unwrap()));
    let in_use = standing.iter().filter(|status| status.standing == RelayState::InUse);
    let in_use: Vec<SocketAddr> = in_use.map(|status| status.relay).take(3).collect();
    assert!(!in_use.is_empty(), "{standing:?}");
    let mut bad = swallow;
    for index in (0..RELAYS).filter(|index| in_use.contains(&relay_address(*index))) {
        net.world.act(relays[index], |moods, _| moods.0.swallows = true);
        bad.insert(name(index));
    }
    net.run(Duration::from_secs(60));
    assert_eq!(
        names(&net.list(client, 100, 0)),
        (0..RELAYS).map(name).filter(|it| !bad.contains(it)).collect()
    );
    // Who forwards again is listed again: each is tested with its heartbeats.
    for relay in &relays {
        net.world.act(*relay, |moods, _| moods.0.swallows = false);
    }
    net.run(Duration::from_secs(90));
    assert_eq!(net.list(client, 100, 0).relays.len(), RELAYS);
}

#[test]
fn no_number_of_complaints_takes_a_good_relay_off_the_list() {
    let mut store = store(4);
    store.put_word(crate::common::row(5, WordKind::Use, "alice"));
    let mut net = Net::new(42, store);
    let relays = fleet(&mut net, 4, 0);
    let (mallory, client) = (net.asker(Asker::new(1)), net.asker(Asker::new(2)));
    net.run(Duration::from_secs(3));
    let all = names(&net.list(client, 9, 0));
    let complain = |number| Request::Complain {
        proof: word(number, WordKind::Use).proof,
        relays: all.iter().copied().cycle().take(16).collect(),
    };
    let (mut heard, mut refused) = (0, 0);
    for _ in 0..60 {
        match net.ask(mallory, &word(USE, WordKind::Use), &complain(USE)) {
            Ok(Answer::Heard) => heard += 1,
            Err(AskError::Refused(Reason::TooOften)) => refused += 1,
            other => panic!("{other:?}"),
        }
        assert_eq!(names(&net.list(client, 9, 0)), all);
    }
    assert!(heard > 0 && refused > heard, "{heard} {refused}");
    let counters = net.world[net.hub].registry.counters().clone();
    assert_eq!((counters.complaints, counters.refused(Reason::TooOften)), (heard, refused));
    assert!(counters.tests <= 8, "{} tests, of each relay one a minute", counters.tests);
    assert_eq!(counters.tests_failed, 0);
    // Another word has its own.
    assert_eq!(net.ask(mallory, &word(5, WordKind::Use), &complain(5)), Ok(Answer::Heard));
    // Who drains and passes a test is not back on the list.
    net.run(Duration::from_secs(61));
    net.world.act(relays[0], |moods, now| moods.0.relay.drain(now));
    net.run(Duration::from_secs(1));
    assert_eq!(net.ask(mallory, &word(5, WordKind::Use), &complain(5)), Ok(Answer::Heard));
    net.run(Duration::from_secs(4));
    assert_eq!(net.list(client, 9, 0).relays.len(), 3);
}

#[test]
fn a_sender_that_gets_new_grants_when_the_epoch_ends_goes_on_by_the_same_relays() {
    const RELAYS: usize = 4;
    let mut store = store(RELAYS);
    (5..8).for_each(|number| {
        store.put_word(crate::common::row(number, WordKind::Use, &format!("word {number}")))
    });
    let mut net = Net::new(43, store);
    let relays = fleet(&mut net, RELAYS, 0);
    let client = net.asker(Asker::new(2));
    net.run(Duration::from_secs(3));
    let (sender, receiver, to) = ends(&mut net, RELAYS);
    let peer = net.world[receiver].endpoint.public_key();
    let list = net.list(client, 100, 0);
    net.world.act(sender, |end, now| end.send_to(now, peer, to, &list));
    net.run(Duration::from_secs(20));
    let carried = |net: &Net| -> u64 {
        relays.iter().map(|relay| net.world[*relay].0.relay.counters().forwarded_bytes).sum()
    };
    assert!(carried(&net) > 1 << 20);
    // Twice: grants of every second epoch have the same number.
    for number in 5..8_u32 {
        let hub = net.hub;
        let at = UNIX + net.world.now().as_nanos() / 1_000_000_000;
        net.world.act(hub, |hub, _| hub.store.revoke(&format!("word {number}"), at));
        net.run(Duration::from_secs(5));
        let list = net.list(client, 100, 0);
        assert_eq!(list.relays.len(), RELAYS);
        net.world.act(sender, |end, now| {
            let session = end.session.unwrap();
            list.relays.iter().for_each(|listed| end.endpoint.add_relay(now, session, &listed.word, None));
        });
        net.run(Duration::from_secs(20));
        let before = carried(&net);
        net.run(Duration::from_secs(20));
        let now = net.world.now();
        let standing = net.world.act(sender, |end, _| end.endpoint.relays(now, end.session.unwrap()));
        assert!(carried(&net) > before + (1 << 20), "{standing:?}");
    }
    assert_eq!(net.list(client, 100, 0).relays.len(), RELAYS, "whatever it complained of");
}
