//! Packets per second through a relay, beside a forwarder that only copies: each datagram once into a queue and once out
//! of it. 1200-byte packets arrive in batches of 64, interleaved from 1, 16 or 64 senders; what `handle` rewrites is
//! restored by a copy that both sides pay for.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)] // criterion's macros, and setup that must not fail

#[path = "../tests/common/mod.rs"]
mod common;

use byway_relay::Config;
use byway_wire::{Datagram, Ecn, Input, Instant, Local, Machine, Out};
use common::{World, at, config, seal, terms};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

const BATCH: usize = 64;

fn forward(c: &mut Criterion) {
    let mut group = c.benchmark_group("forward");
    group.throughput(Throughput::Elements(BATCH as u64));
    let mut buffer = vec![0u8; 65_535];
    let mut payload = vec![0u8; 1200];
    for senders in [1u16, 16, 64] {
        let mut world = World::new(&Config { accounts: 4096, ..config() });
        let packets: Vec<_> = (0..BATCH as u16)
            .map(|number| {
                let port = 1000 + number % senders;
                let (from, to) = (at(&format!("8.8.8.8:{port}")), at(&format!("9.9.9.9:{port}")));
                let word = world.word(port.into(), terms());
                let hop = world.hop(&word, from, to);
                (from, seal(&hop, Instant::ZERO, &vec![0; 1200 - hop.room()]))
            })
            .collect();
        group.bench_function(format!("relay, {senders} senders"), |b| {
            b.iter(|| {
                for (remote, packet) in &packets {
                    payload.copy_from_slice(packet);
                    let (local, ecn, arrival) = (Local(0), Ecn::NotEct, Instant::ZERO);
                    let datagram =
                        Datagram { local, remote: *remote, ecn, arrival, payload: &mut payload, phantom: 0 };
                    world.relay.handle(Instant::ZERO, Input::Datagram(datagram));
                }
                let mut out = Out { buffer: &mut buffer, max_segments: 64 };
                while let Some(sent) = world.relay.transmit(Instant::ZERO, &mut out) {
                    black_box(sent);
                }
            });
        });
        assert_eq!(world.relay.counters().dropped_in_all(), 0);
    }
    // The sender's side, which is little but the MAC over the packet: what of the above is SipHash.
    let mut world = World::new(&config());
    let word = world.word(1, terms());
    let hop = world.hop(&word, at("8.8.8.8:1"), at("9.9.9.9:1"));
    group.bench_function("sealing alone", |b| {
        b.iter(|| {
            for _ in 0..BATCH {
                assert!(hop.seal(Instant::ZERO, black_box(&mut payload)));
            }
        });
    });
    let packet = vec![7u8; 1200];
    let mut queue = vec![0u8; BATCH * 1200];
    group.bench_function("only copying", |b| {
        b.iter(|| {
            for room in queue.chunks_exact_mut(1200) {
                payload.copy_from_slice(black_box(&packet));
                room.copy_from_slice(black_box(&payload));
            }
            for run in queue.chunks(54 * 1200) {
                buffer[..run.len()].copy_from_slice(run);
                black_box(&mut buffer);
            }
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).warm_up_time(std::time::Duration::from_millis(500)).measurement_time(std::time::Duration::from_secs(2));
    targets = forward
}
criterion_main!(benches);
