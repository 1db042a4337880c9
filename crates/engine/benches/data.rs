//! Measures how fast `Outgoing` and `Incoming` process the bytes of objects, without encryption,
//! sockets and disk.
//!
//! ```text
//! cargo bench -p byway-engine --bench data
//! ```
//!
//! | name | what is measured |
//! |---|---|
//! | fill and acknowledge | the sender alone |
//! | send and receive, in order | the sender and the receiver |
//! | send and receive, alternating | each packet swaps with its neighbour, as over unequal paths |
#![allow(missing_docs)] // criterion's macros

use byway_engine::data::{Carried, Incoming, IncomingLimits, Outgoing, OutgoingLimits};
use byway_wire::frame::{Frame, Frames};
use byway_wire::{Duration, Instant, ObjectId, Writer};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use smallvec::SmallVec;

const PACKET: usize = 1_400;
const OBJECT: u64 = 8 << 20;

type List = SmallVec<[Carried; 2]>;

/// The packets in flight: bytes, how many, what they carried.
struct Flight {
    packets: Vec<(Box<[u8; PACKET]>, usize, List)>,
    used: usize,
}

impl Flight {
    fn new(count: usize) -> Self {
        Self { packets: (0..count).map(|_| (Box::new([0; PACKET]), 0, List::new())).collect(), used: 0 }
    }

    /// Fills packets until there is nothing to send or no packet is left.
    fn fill(&mut self, out: &mut Outgoing) {
        self.used = 0;
        for (buffer, length, carried) in &mut self.packets {
            carried.clear();
            let mut writer = Writer::new(&mut buffer[..]);
            out.fill(&mut writer, carried);
            *length = writer.len();
            if *length == 0 {
                break;
            }
            self.used += 1;
        }
    }
}

fn feed(out: &mut Outgoing, spare: &mut Vec<Vec<u8>>) {
    while let Some(read) = out.next_read() {
        let mut buffer = spare.pop().unwrap_or_default();
        buffer.resize(read.length, 7);
        out.provide(read.object, read.offset, buffer);
    }
}

fn send(out: &mut Outgoing, id: u32, flight: &mut Flight, mut deliver: impl FnMut(&mut Outgoing, &Flight)) {
    out.add_object(ObjectId(id), OBJECT);
    while !out.all_acked() {
        feed(out, &mut Vec::new());
        flight.fill(out);
        deliver(out, flight);
        for (_, _, carried) in &flight.packets[..flight.used] {
            carried.iter().for_each(|carried| out.on_acked(carried));
        }
    }
    while out.next_event().is_some() {}
}

fn receive(inc: &mut Incoming, out: &mut Outgoing, flight: &Flight, swap: usize) {
    for index in 0..flight.used {
        let (buffer, length, _) =
            &flight.packets[if (index ^ swap) < flight.used { index ^ swap } else { index }];
        for frame in Frames::new(&buffer[..*length]) {
            if let Ok(Frame::Object(object)) = frame {
                inc.on_object(Instant::ZERO, &object).ok();
            }
        }
        while let Some(write) = inc.next_write() {
            inc.written(write.data);
        }
    }
    while inc.next_event().is_some() {}
    let mut buffer = [0; 32];
    let mut writer = Writer::new(&mut buffer);
    inc.fill(Instant::ZERO, Duration::from_millis(20), &mut writer, &mut List::new());
    for frame in Frames::new(writer.written()) {
        if let Ok(Frame::MaxData(limit)) = frame {
            out.on_max_data(limit);
        }
    }
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("data");
    group.throughput(Throughput::Bytes(OBJECT));
    group.bench_function("fill and acknowledge", |bench| {
        let (mut out, mut flight, mut id) = (Outgoing::new(OutgoingLimits::default()), Flight::new(256), 0);
        out.on_max_data(u64::MAX);
        bench.iter(|| {
            send(&mut out, id, &mut flight, |_, _| ());
            id += 1;
        });
    });
    for (name, swap) in [("in order", 0), ("alternating", 1), ("runs of eight swapped", 8)] {
        group.bench_function(format!("send and receive, {name}"), |bench| {
            let (mut out, mut inc) =
                (Outgoing::new(OutgoingLimits::default()), Incoming::new(IncomingLimits::default()));
            let (mut flight, mut id) = (Flight::new(256), 0);
            out.on_max_data(inc.initial_limits().0);
            bench.iter(|| {
                send(&mut out, id, &mut flight, |out, flight| receive(&mut inc, out, flight, swap));
                id += 1;
            });
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("data, small objects");
    group.throughput(Throughput::Elements(10_000));
    group.bench_function("10 000 of 200 bytes", |bench| {
        let mut flight = Flight::new(256);
        bench.iter(|| {
            let (mut out, mut inc) =
                (Outgoing::new(OutgoingLimits::default()), Incoming::new(IncomingLimits::default()));
            out.on_max_data(inc.initial_limits().0);
            (0..10_000).for_each(|id| out.add_object(ObjectId(id), 200));
            while !out.all_acked() {
                feed(&mut out, &mut Vec::new());
                flight.fill(&mut out);
                receive(&mut inc, &mut out, &flight, 0);
                for (_, _, carried) in &flight.packets[..flight.used] {
                    carried.iter().for_each(|carried| out.on_acked(carried));
                }
            }
        });
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
