//! How soon a responder's first answers come, counted in round trips, and how many come unasked.

use crate::common::identity;
use byway_control::Class;
use byway_engine::handshake::PublicKey;
use byway_engine::seal::Suites;
use byway_engine::{Admission, Admit, Config, Connect, Endpoint, EndpointConfig, EndpointEvent, Handle};
use byway_wire::TransmitBuffer;
use byway_wire::{Datagram, Duration, Ecn, Input, Instant, LinkChange, Local, Machine as _, StreamId};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// How long a datagram travels.
const DELAY: Duration = Duration::from_millis(100);
/// Time between two answers.
const PAUSE: Duration = Duration::from_millis(2);
/// The stream that the initiator opens.
const STREAM: StreamId = StreamId(0);
/// Answers of the responder, each in a packet of its own.
const ANSWERS: usize = 20;

struct Everybody(Class);

impl Admission for Everybody {
    fn admit(&mut self, _: PublicKey, _: &[u8]) -> Admit {
        Admit::Accept(self.0.controller(1))
    }
}

fn endpoint(number: u8, listens: Option<Class>) -> Endpoint {
    let mut endpoint = Endpoint::new(EndpointConfig {
        identity: identity(number),
        suites: Suites::SECURE,
        seed: [number; 32],
        connection: Config::default(),
        admission: listens.map(|class| -> Box<dyn Admission> { Box::new(Everybody(class)) }),
        greeting: Vec::new(),
    });
    let link = LinkChange { local: Local(0), address: address(number), up: true };
    endpoint.handle(Instant::ZERO, Input::Link(link));
    endpoint
}

fn address(number: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, number], 4747))
}

/// Bytes that the initiator has read by a time.
type Arrivals = Vec<(Instant, usize)>;

/// A request, and `ANSWERS` answers a `PAUSE` apart, each of `length` bytes.
fn talk(class: Class, length: usize) -> Arrivals {
    let mut hosts = [endpoint(1, None), endpoint(2, Some(class))];
    let connect = Connect {
        peer: hosts[1].public_key(),
        addresses: vec![address(2)],
        application: Vec::new(),
        controller: class.controller(2),
    };
    let mut now = Instant::ZERO;
    hosts[0].connect(now, connect).unwrap();
    let mut handles: [Option<Handle>; 2] = [None; 2];
    let mut flying: VecDeque<(Instant, usize, Vec<u8>)> = VecDeque::new();
    let (mut answered, mut answer_at, mut arrivals) = (0, None, Arrivals::new());
    while arrivals.iter().map(|(_, length)| length).sum::<usize>() < ANSWERS * length {
        for (from, host) in hosts.iter_mut().enumerate() {
            let mut buffer = vec![0; 64 << 10];
            let mut out = TransmitBuffer { buffer: &mut buffer, max_segments: 1 };
            while let Some(transmit) = host.transmit(now, &mut out) {
                flying.push_back((now + DELAY, 1 - from, out.buffer[..transmit.size].to_vec()));
            }
        }
        let deadlines = hosts.iter().filter_map(Endpoint::deadline);
        now = deadlines.chain(flying.front().map(|next| next.0)).chain(answer_at).min().unwrap().max(now);
        while flying.front().is_some_and(|next| next.0 <= now)
            && let Some((_, to, mut bytes)) = flying.pop_front()
        {
            let remote = address(2 - to as u8);
            let datagram = Datagram {
                local: Local(0),
                remote,
                ecn: Ecn::NotEct,
                arrival: now,
                payload: &mut bytes,
                phantom: 0,
            };
            hosts[to].handle(now, Input::Datagram(datagram));
        }
        for (host, handle) in hosts.iter_mut().zip(&mut handles) {
            if host.deadline().is_some_and(|deadline| deadline <= now) {
                host.wake(now);
            }
            while let Some(event) = host.next_event() {
                match event {
                    EndpointEvent::Connected(new) => {
                        *handle = Some(new);
                        let out = host.connection_mut(new).unwrap().outgoing();
                        assert!(out.open_stream(STREAM) && out.write(STREAM, b"?") == 1);
                    }
                    EndpointEvent::Accepted(new) => *handle = Some(new),
                    _ => {}
                }
            }
        }
        let [asks, answers] = [0, 1].map(|side: usize| handles[side]);
        if let Some(connection) = answers.and_then(|handle| hosts[1].connection_mut(handle)) {
            let asked = connection.incoming().next_event().is_some();
            if asked && answered == 0 && answer_at.is_none() {
                connection.outgoing().open_stream(STREAM);
                answer_at = Some(now);
            }
            if answer_at.is_some_and(|at| at <= now) {
                assert_eq!(connection.outgoing().write(STREAM, &vec![7; length]), length);
                answered += 1;
                answer_at = (answered < ANSWERS).then_some(now + PAUSE);
            }
        }
        if let Some(connection) = asks.and_then(|handle| hosts[0].connection_mut(handle)) {
            let mut buffer = vec![0; 64 << 10];
            let read = connection.incoming().read(STREAM, &mut buffer);
            if let Some(read) = read.filter(|read| read.length > 0) {
                arrivals.push((now, read.length));
            }
        }
    }
    arrivals
}

/// A request and its answers take two round trips with the handshake. What a responder says without
/// an acknowledgment is little.
#[test]
fn the_first_answers_come_two_round_trips_after_the_beginning() {
    let begin = Instant::ZERO + DELAY * 4;
    for class in [Class::Background, Class::Normal] {
        for length in [1, 1_000] {
            let arrivals = talk(class, length);
            let early = arrivals.iter().filter(|(at, _)| *at < begin + DELAY * 2).count();
            assert!(arrivals[0].0 <= begin + PAUSE && arrivals[1].0 <= begin + PAUSE * 2, "{arrivals:?}");
            assert!((3..=4).contains(&early), "{early}: {arrivals:?}");
        }
    }
}
