//! Measures how many packets per second two endpoints handle in one thread, without sockets.
//! Packets pass between the endpoints without loss, with an RTT of 0.1 ms.
//!
//! ```text
//! cargo bench -p byway-engine --bench session [-- MEGABYTES [CLASS [CIPHER [MBIT]]]]
//! benches/instructions.sh    counts instructions instead of time
//! ```
//!
//! | argument | meaning | without it |
//! |---|---|---|
//! | `MEGABYTES` | size of the object in MiB | 512 |
//! | `CLASS` | `normal` or `background` | both |
//! | `CIPHER` | AES-256-GCM (`aes`) or no encryption (`null`) | both |
//! | `MBIT` | the highest rate in Mbit/s | no limit |
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a bench that cannot run should say where")]

use bytes::Bytes;
use byway_control::Class;
use byway_engine::handshake::{Identity, PublicKey};
use byway_engine::seal::{Suite, Suites};
use byway_engine::{Admission, Admit, Config, Connect, Endpoint, EndpointConfig, EndpointEvent, Handle};
use byway_wire::{Datagram, Duration, Input, Instant, LinkChange, Local, Machine, ObjectId, TransmitBuffer};
use std::collections::VecDeque;
use std::hint::black_box;
use std::net::SocketAddr;

const ONE_WAY: Duration = Duration::from_micros(50);
/// As the driver in `byway-net` does it: runs, and bytes of a run, between two looks at what came
/// in.
const BURST_RUNS: usize = 64;
const SEGMENTS: usize = 44;

struct Everybody(Class);

impl Admission for Everybody {
    fn admit(&mut self, _: PublicKey, _: &[u8]) -> Admit {
        Admit::Accept(self.0.controller(2))
    }
}

/// Datagrams in flight, one after another in the first `size` bytes of `bytes`. The vector `bytes`
/// always keeps its full length, because resizing it would cost more time than the work that is
/// measured.
struct Run {
    arrival: Instant,
    bytes: Vec<u8>,
    size: usize,
    segment: usize,
    ecn: byway_wire::Ecn,
}

/// An end of the pipe, and what is on its way there.
struct End {
    endpoint: Endpoint,
    address: SocketAddr,
    handle: Option<Handle>,
    arriving: VecDeque<Run>,
    spare: Vec<Vec<u8>>,
    packets: u64,
}

impl End {
    fn new(
        seed: u8,
        port: u16,
        suite: Suite,
        cap: Option<u64>,
        admission: Option<Box<dyn Admission>>,
    ) -> Self {
        let mut connection = Config::default();
        // What an ideal pipe does not limit, the receiver must.
        connection.incoming.memory = 4 << 20;
        connection.outgoing.memory = 4 << 20;
        connection.cap = cap;
        let mut endpoint = Endpoint::new(EndpointConfig {
            identity: Identity::from_secret([seed; 32]),
            suites: Suites::only(suite),
            seed: [seed; 32],
            connection,
            admission,
            greeting: Vec::new(),
        });
        let address = SocketAddr::from(([10, 0, 0, seed], port));
        endpoint.handle(Instant::ZERO, Input::Link(LinkChange { local: Local(0), address, up: true }));
        Self { endpoint, address, handle: None, arriving: VecDeque::new(), spare: Vec::new(), packets: 0 }
    }

    fn receive(&mut self, now: Instant, from: SocketAddr) {
        while self.arriving.front().is_some_and(|run| run.arrival <= now)
            && let Some(Run { arrival, mut bytes, size, segment, ecn }) = self.arriving.pop_front()
        {
            for payload in bytes[..size].chunks_mut(segment) {
                self.packets += 1;
                let datagram = Datagram { local: Local(0), remote: from, ecn, arrival, payload, phantom: 0 };
                self.endpoint.handle(now, Input::Datagram(datagram));
            }
            self.spare.push(bytes);
        }
        if self.endpoint.deadline().is_some_and(|at| at <= now) {
            self.endpoint.wake(now);
        }
    }

    fn send(&mut self, now: Instant, to: &mut End) -> bool {
        for _ in 0..BURST_RUNS {
            let mut bytes = to.spare.pop().unwrap_or_else(|| vec![0; 65_535]);
            let mut out = TransmitBuffer { buffer: &mut bytes, max_segments: SEGMENTS };
            let Some(sent) = self.endpoint.transmit(now, &mut out) else {
                to.spare.push(bytes);
                return false;
            };
            let (arrival, size, segment, ecn) = (now + ONE_WAY, sent.size, sent.segment, sent.ecn);
            to.arriving.push_back(Run { arrival, bytes, size, segment, ecn });
        }
        true
    }

    fn next(&self) -> Option<Instant> {
        let arrival = self.arriving.front().map(|run| run.arrival);
        [arrival, self.endpoint.deadline()].into_iter().flatten().min()
    }
}

/// The sender's turn: it takes what arrived, provides bytes of the object, and sends. Returns
/// whether there is more to send, and whether the receiver has acknowledged all `size` bytes. Not
/// inlined, so that callgrind shows its cost.
#[inline(never)]
fn sending_end(now: Instant, sender: &mut End, receiver: &mut End, size: u64, piece: &Bytes) -> (bool, bool) {
    sender.receive(now, receiver.address);
    while let Some(event) = sender.endpoint.next_event() {
        if let EndpointEvent::Connected(handle) = event {
            sender.handle = Some(handle);
            let connection = sender.endpoint.connection_mut(handle).unwrap();
            connection.outgoing().add_object(ObjectId(0), size);
        }
    }
    if let Some(handle) = sender.handle {
        let out = sender.endpoint.connection_mut(handle).unwrap().outgoing();
        while let Some(read) = out.next_read() {
            out.provide(read.object, read.offset, piece.slice(..read.length));
        }
        while out.next_event().is_some() {}
        if out.all_acked() {
            return (false, true);
        }
    }
    (sender.send(now, receiver), false)
}

/// What the receiver does in its turn. Whether it has more to send.
#[inline(never)]
fn receiving_end(now: Instant, receiver: &mut End, sender: &mut End) -> bool {
    receiver.receive(now, sender.address);
    while let Some(event) = receiver.endpoint.next_event() {
        if let EndpointEvent::Accepted(handle) = event {
            receiver.handle = Some(handle);
        }
    }
    if let Some(handle) = receiver.handle {
        let incoming = receiver.endpoint.connection_mut(handle).unwrap().incoming();
        while let Some(write) = incoming.next_write() {
            incoming.written(black_box(write.data));
        }
        while incoming.next_event().is_some() {}
    }
    receiver.send(now, sender)
}

/// Moves an object of `size` bytes, at no more than `cap` bytes a second; returns the packets that
/// carried it.
fn transfer(class: Class, suite: Suite, cap: Option<u64>, size: u64) -> u64 {
    let mut sender = End::new(1, 1000, suite, cap, None);
    let mut receiver = End::new(2, 2000, suite, None, Some(Box::new(Everybody(class))));
    let mut now = Instant::ZERO;
    let connect = Connect {
        peer: receiver.endpoint.public_key(),
        addresses: vec![receiver.address],
        application: Vec::new(),
        controller: class.controller(1),
    };
    sender.endpoint.connect(now, connect).unwrap();
    let piece = Bytes::from(vec![7; 256 << 10]);
    let mut more = true;
    loop {
        if !more {
            let next = [sender.next(), receiver.next()].into_iter().flatten().min().expect("a deadline");
            now = now.max(next);
        } else {
            now += Duration::from_micros(10);
        }
        assert!(now < Instant::ZERO + Duration::from_secs(3600), "nothing moves");
        let (sends, done) = sending_end(now, &mut sender, &mut receiver, size, &piece);
        if done {
            return receiver.packets;
        }
        more = sends | receiving_end(now, &mut receiver, &mut sender);
    }
}

#[expect(clippy::disallowed_types, reason = "a bench looks at the clock")]
fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let size = words.first().map_or(512, |word| word.parse().expect("megabytes")) << 20;
    let cap = words.get(3).map(|word| word.parse::<u64>().expect("Mbit/s") * 125_000);
    for (class, called, suite, name) in [
        (Class::Normal, "normal", Suite::Aes256Gcm, "aes"),
        (Class::Normal, "normal", Suite::Null, "null"),
        (Class::Background, "background", Suite::Aes256Gcm, "aes"),
        (Class::Background, "background", Suite::Null, "null"),
    ] {
        if words.get(1).is_some_and(|word| word != called) || words.get(2).is_some_and(|word| word != name) {
            continue;
        }
        let begun = std::time::Instant::now();
        let packets = transfer(class, suite, cap, size);
        let seconds = begun.elapsed().as_secs_f64();
        let (rate, bits) = (packets as f64 / seconds, size as f64 * 8.0 / seconds);
        println!(
            "{called:<10} {name:<5} {packets:>8} packets {:>10.0} packets/s {:>7.0} ns each {:>7.2} Gbit/s",
            rate,
            1e9 / rate,
            bits / 1e9
        );
    }
}
