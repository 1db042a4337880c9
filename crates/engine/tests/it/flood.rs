//! Strangers by the million: what they send costs no memory, next to no answers, and no more work than was meant for them.

use crate::common::liar::{Bench, liar};
use crate::common::{MS, strangers::hello};
use crate::heap::Heap;
use byway_engine::Config;
use byway_sim::Random;
use byway_wire::frame::{self, Frame, Object};
use byway_wire::packet::{Handshake, RefuseReason};
use byway_wire::{Datagram, Ecn, Input, Local, Machine, ObjectId, Out, Writer};
use std::net::SocketAddr;

const MANY: u64 = 1_000_000;

/// Any host's address, by its number.
fn somebody(number: u64) -> SocketAddr {
    SocketAddr::from(([99, (number >> 16) as u8, (number >> 8) as u8, number as u8], 6000))
}

/// What was sent back where a datagram came from. Counting it allocates nothing.
#[derive(Default)]
struct Sent {
    datagrams: usize,
    bytes: usize,
    refused: usize,
    retries: usize,
}

struct Flood {
    bench: Bench,
    payload: Vec<u8>,
    buffer: Vec<u8>,
}

impl Flood {
    fn new() -> Self {
        let bench = Bench::new(Config::default());
        let mut flood = Self { bench, payload: vec![0; 2_000], buffer: vec![0; 65_536] };
        flood.rest();
        flood
    }

    /// Ten seconds in which what there is to do anyway is done, and then a while for the last ACK.
    fn rest(&mut self) {
        for step in 0..110 {
            self.bench.now += 100 * MS;
            if step < 100 {
                self.bench.say(0, |writer| Frame::Ping.write(writer));
            }
            self.wake();
        }
    }

    fn wake(&mut self) {
        let now = self.bench.now;
        self.bench.honest.wake(now);
        let mut out = Out { buffer: &mut self.buffer, max_segments: 16 };
        while self.bench.honest.transmit(now, &mut out).is_some() {}
    }

    fn put(&mut self, from: SocketAddr, bytes: &[u8]) -> Sent {
        let payload = &mut self.payload[..bytes.len()];
        payload.copy_from_slice(bytes);
        let now = self.bench.now;
        let (local, ecn) = (Local(0), Ecn::NotEct);
        let datagram = Datagram { local, remote: from, ecn, arrival: now, payload, phantom: 0 };
        self.bench.honest.handle(now, Input::Datagram(datagram));
        let mut sent = Sent::default();
        while let Some(transmit) =
            self.bench.honest.transmit(now, &mut Out { buffer: &mut self.buffer, max_segments: 16 })
        {
            if transmit.remote != from {
                continue; // the session's own
            }
            sent.datagrams += 1;
            sent.bytes += transmit.size;
            match Handshake::read(&self.buffer[..transmit.size]) {
                Ok(Handshake::Refuse { reason: RefuseReason::WrongKey, .. }) => sent.refused += 1,
                Ok(Handshake::Retry { .. }) => sent.retries += 1,
                _ => {}
            }
        }
        assert!(sent.bytes <= bytes.len(), "{} bytes for {}", sent.bytes, bytes.len());
        sent
    }

    /// Of datagrams that are dropped unread, all reasons together.
    fn dropped(&self) -> u64 {
        let dropped = self.bench.honest.dropped();
        dropped.unknown + dropped.stray + dropped.forged + dropped.replayed + dropped.hellos
    }
}

#[test]
fn garbage() {
    let mut flood = Flood::new();
    let (state, before) = (flood.bench.state(), flood.dropped());
    let mut random = Random::component(1, "garbage");
    let mut garbage = vec![0; 1_500];
    let heap = Heap::new();
    let mut answers = 0;
    for number in 0..MANY {
        let length = if number % 64 == 0 { random.below(1_500) } else { random.below(80) } as usize;
        garbage[..length].chunks_mut(8).for_each(|bytes| {
            let word = random.below(u64::MAX).to_le_bytes();
            bytes.copy_from_slice(&word[..bytes.len()]);
        });
        let from = if number % 3 == 0 { liar() } else { somebody(number) };
        answers += flood.put(from, &garbage[..length]).datagrams as u64;
    }
    assert!(heap.held() <= 0 && heap.most() < 4_096, "{} held, {} at most", heap.held(), heap.most());
    assert_eq!(flood.bench.state(), state);
    assert_eq!(flood.dropped() - before + answers, MANY);
    // Only what looks like a HELLO of another version is answered.
    assert!(answers < MANY / 10_000, "{answers}");
}

#[test]
fn copies_and_forgeries_of_one_packet_from_everywhere() {
    let mut flood = Flood::new();
    let data = [7; 900];
    let packet = flood.bench.packet(0, |writer: &mut Writer<'_>| {
        frame::write_object(writer, &Object { id: ObjectId(0), offset: 0, data: &data, fin: true }, true);
    });
    flood.put(liar(), &packet);
    flood.rest();
    let (state, before) = (flood.bench.state(), flood.dropped());
    let mut forged = packet.clone();
    let heap = Heap::new();
    for number in 0..MANY {
        // Right but for one byte of the tag, under the newest numbers; and the very packet.
        forged.copy_from_slice(&packet);
        let last = forged.len() - 1;
        let bytes = if number % 2 == 0 {
            &packet
        } else {
            forged[last] ^= 1 + (number % 255) as u8;
            forged[9..13].iter_mut().zip((number as u32).to_be_bytes()).for_each(|(to, byte)| *to ^= byte);
            &forged
        };
        let from = if number % 3 == 0 { liar() } else { somebody(number) };
        let sent = flood.put(from, bytes);
        assert_eq!(sent.datagrams, 0, "datagram {number} is answered");
    }
    assert_eq!((heap.calls(), heap.held()), (0, 0), "a packet that is not taken costs no memory");
    assert_eq!(flood.bench.state(), state);
    assert_eq!(flood.dropped() - before, MANY);
}

/// The first message can be replayed by who saw it, in anybody's name: one place, one computation, and never more bytes back.
#[test]
fn one_first_message_from_everywhere() {
    let mut flood = Flood::new();
    let first = hello(1);
    let places = flood.bench.honest.handles().count();
    let heap = Heap::new();
    for number in 0..MANY {
        assert!(flood.put(somebody(number), &first).datagrams <= 1);
        if number % 100 == 0 {
            flood.bench.now += MS;
            flood.wake();
        }
    }
    let held = heap.most();
    println!("{held} bytes for a connection that nobody confirms");
    assert!(flood.bench.honest.handles().count() <= places + 1);
    assert!(held < 128 << 10, "{held}");
    assert!(flood.bench.honest.next_event().is_none(), "nothing is accepted");
}

/// Whoever knows the receiver's key can make first messages that fit, and whoever does not, ones that do not: those cost the same
/// multiplications. Both are counted, and beyond a few a cookie is asked for.
#[test]
fn forged_first_messages_cost_few_computations() {
    let mut flood = Flood::new();
    let mut forged = hello(2);
    let (places, heap) = (flood.bench.honest.handles().count(), Heap::new());
    let (begun, mut computed, mut retries) = (flood.bench.now, 0, 0);
    let count = MANY / 20;
    for number in 0..count {
        let at = forged.len() / 2;
        forged[at..at + 8].copy_from_slice(&number.to_be_bytes());
        forged[20..28].copy_from_slice(&number.to_le_bytes());
        let sent = flood.put(somebody(number), &forged);
        (computed, retries) = (computed + sent.refused, retries + sent.retries);
        if number % 20 == 0 {
            flood.bench.now += MS;
        }
    }
    let seconds = flood.bench.now.since(begun).as_secs_f64();
    println!("{computed} computed on of {count} in {seconds} s, {retries} asked for a cookie");
    assert!(computed as f64 <= 64.0 + 200.0 * seconds + 1.0, "{computed} in {seconds} s");
    assert!(retries as u64 > count * 9 / 10, "{retries}");
    assert_eq!(flood.bench.honest.handles().count(), places);
    assert!(heap.held() < 4_096 && heap.most() < 64 << 10, "{} held, {} at most", heap.held(), heap.most());
}

/// First messages that fit, each another one, from hosts that do not receive at their addresses: 64 places, and those are given
/// back.
#[test]
fn first_messages_that_fit_take_few_places_and_for_seconds() {
    let mut flood = Flood::new();
    let places = flood.bench.honest.handles().count();
    let heap = Heap::new();
    for number in 0..2_000 {
        flood.put(somebody(number.into()), &hello(number));
        if number % 2 == 0 {
            flood.bench.now += MS;
            flood.wake();
        }
    }
    let taken = flood.bench.honest.handles().count() - places;
    println!("{taken} places, {} bytes", heap.most());
    assert!(taken <= 64 && heap.most() < 16 << 20, "{taken} places, {} bytes", heap.most());
    (0..3).for_each(|_| flood.rest());
    assert_eq!(flood.bench.honest.handles().count(), places);
    assert!(heap.held() < 256 << 10, "{} bytes are kept", heap.held());
    assert!(flood.bench.is_open());
}
