//! Measures how many data packets a simulated network's sender sends per second of real time.
//! Sender, relays, receiver and links run on one core, without encryption. Objects have a length
//! and no bytes. The measurement begins after 4 simulated seconds.
//!
//! ```text
//! cargo bench -p byway-engine --bench world [-- RELAYS CONGESTION MILLISECONDS]
//! # Instructions: divide callgrind's count by the packets printed.
//! valgrind --tool=callgrind --toggle-collect='*measured_span*' \
//!     target/release/deps/world-… 4 newreno 500
//! ```
//!
//! | argument | meaning |
//! |---|---|
//! | `RELAYS` | number of relays |
//! | `CONGESTION` | a congestion controller, for instance `newreno` |
//! | `MILLISECONDS` | simulated time of the measurement |
//! | none | 3, 4, 255 and 450 relays, each with `newreno`, `mpath` and `background` |
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a bench that cannot run should say where")]
#![expect(clippy::disallowed_types, reason = "a bench looks at the clock")]

#[path = "../tests/it/common/many.rs"]
mod many;

use byway_engine::connection::path::PathState;
use byway_engine::handshake::PublicKey;
use byway_engine::{Endpoint, EndpointEvent, Handle};
use byway_sim::{Node, PipeConfig, World};
use byway_wire::relay::Word;
use byway_wire::{Duration, Instant, Machine, ObjectId};
use std::net::SocketAddr;
use std::time::Instant as Clock;

/// Of every path.
const MBIT: u64 = 25;
const ONE_WAY: Duration = Duration::from_millis(10);

struct Host {
    endpoint: Endpoint,
    /// Whom a sender connects to.
    peer: Option<(PublicKey, SocketAddr, &'static str, Vec<Word>)>,
    handle: Option<Handle>,
    received: u64,
}

impl Host {
    fn new(seed: u8, peer: Option<(PublicKey, SocketAddr, &'static str, Vec<Word>)>) -> Self {
        Self { endpoint: many::endpoint(seed, peer.is_none()), peer, handle: None, received: 0 }
    }
}

impl Node for Host {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.endpoint
    }

    fn turn(&mut self, now: Instant) {
        if let Some((peer, address, congestion, words)) = self.peer.take() {
            many::connect(&mut self.endpoint, now, peer, vec![address], congestion, &words);
        }
        while let Some(event) = self.endpoint.next_event() {
            match event {
                EndpointEvent::Connected(handle) => {
                    self.handle = Some(handle);
                    let connection = self.endpoint.connection_mut(handle).unwrap();
                    connection.outgoing().add_object(ObjectId(0), 1 << 50);
                }
                EndpointEvent::Accepted(handle) => self.handle = Some(handle),
                other => panic!("{other:?}"),
            }
        }
        if let Some(handle) = self.handle {
            let incoming = self.endpoint.connection_mut(handle).unwrap().incoming();
            while let Some(arrival) = incoming.next_arrival() {
                self.received += arrival.length;
            }
        }
    }
}

fn world(
    relays: usize,
    congestion: &'static str,
) -> (World, byway_sim::Handle<Host>, byway_sim::Handle<Host>) {
    let (from, to) = (SocketAddr::from(([10, 0, 0, 1], 5000)), SocketAddr::from(([10, 0, 1, 1], 4000)));
    let mut world = World::new(1);
    world.stop_trace();
    let receiver = world.add("receiver", Host::new(9, None), &[to]);
    let relays: Vec<_> = (0..relays).map(|_| many::relay(8, 1 << 18, 256)).collect();
    let words = relays.iter().enumerate().map(|(index, relay)| many::word(relay, index)).collect();
    let peer = world[receiver].endpoint.public_key();
    let sender = world.add("sender", Host::new(7, Some((peer, to, congestion, words))), &[from]);
    let line = |delay| PipeConfig::new(MBIT * 1_000_000, delay).queue(50);
    world.connect(from, to, line(ONE_WAY), line(ONE_WAY));
    for (index, relay) in relays.into_iter().enumerate() {
        let at = many::relay_address(index);
        world.add(&format!("relay {index}"), relay, &[at]);
        let fast = PipeConfig::new(1_000_000_000, ONE_WAY / 2).queue(500);
        world.connect(from, at, line(ONE_WAY / 2), fast.clone());
        world.connect(at, to, fast.clone(), fast);
    }
    (world, sender, receiver)
}

fn sent(world: &World, sender: byway_sim::Handle<Host>) -> (u64, usize) {
    let host = &world[sender];
    let status = host.endpoint.connection(host.handle.expect("connected")).expect("a connection").status();
    let active = status.paths.iter().filter(|path| path.state == PathState::Active).count();
    (status.paths.iter().map(|path| path.totals.packets).sum(), active)
}

#[inline(never)]
fn measured_span(world: &mut World, time: Duration) {
    world.run_for(time);
}

fn measure(relays: usize, congestion: &'static str, time: Duration) {
    let (mut world, sender, receiver) = world(relays, congestion);
    world.run_for(Duration::from_secs(4));
    let (before, _) = sent(&world, sender);
    let (received, events) = (world[receiver].received, world.events());
    let begun = Clock::now();
    measured_span(&mut world, time);
    let seconds = begun.elapsed().as_secs_f64();
    let (after, active) = sent(&world, sender);
    let packets = (after - before) as f64;
    let rate = (world[receiver].received - received) as f64 * 8.0 / time.as_secs_f64() / 1e6;
    println!(
        "{relays:>4} relays {congestion:<8} {active:>4} active {packets:>9} packets {:>9.0} packets/s {:>6.0} ns each \
         {:>5.2} events each {rate:>7.0} Mbit/s simulated",
        packets / seconds,
        seconds / packets * 1e9,
        (world.events() - events) as f64 / packets,
    );
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let time = words.get(2).map(|word| Duration::from_millis(word.parse().expect("milliseconds")));
    let wanted = |index: usize, word: &str| words.get(index).is_none_or(|only| only == word);
    for congestion in ["newreno", "mpath", "background"] {
        for (relays, millis) in [(3, 20_000), (4, 20_000), (255, 2_000), (450, 2_000)] {
            if wanted(0, &relays.to_string()) && wanted(1, congestion) {
                measure(relays, congestion, time.unwrap_or(Duration::from_millis(millis)));
            }
        }
    }
}
