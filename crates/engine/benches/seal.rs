//! Measures how long encryption takes.
//!
//! ```text
//! cargo bench -p byway-engine --bench seal
//! ```
//!
//! | name | what is measured |
//! |---|---|
//! | seal | seals and opens packets of three sizes (bytes of UDP payload) with each cipher suite |
//! | hello | a responder answers a handshake's first message (HELLO), or asks for a cookie |
#![allow(missing_docs, clippy::unwrap_used, reason = "criterion's macros make an undocumented function")]

use std::hint::black_box;
use std::net::SocketAddr;

use byway_engine::handshake::{Identity, Initiator, Responder};
use byway_engine::seal::{Opener, Sealer, Secret, Suite, Suites};
use byway_wire::packet::HEADER_LEN;
use byway_wire::{Instant, PathId};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn seal(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("seal");
    for suite in [Suite::Aes256Gcm, Suite::ChaCha20Poly1305, Suite::Null] {
        // 1437 is 1452 without the rest that is no whole block of AES.
        for size in [1200_usize, 1437, 1452] {
            let secret = Secret::new([7; 32]);
            let mut packet = vec![0x5a; size];
            group.throughput(Throughput::Bytes(size as u64));
            group.bench_function(format!("{suite:?}/{size}/seal"), |bencher| {
                let mut sealer = Sealer::new(suite, secret.clone()).unwrap();
                let mut number = 0;
                bencher.iter(|| {
                    number += 1;
                    let epoch = sealer.epoch(Instant::from_nanos(number));
                    sealer.seal(PathId(1), number, black_box(&mut packet), HEADER_LEN).unwrap();
                    epoch
                });
            });
            group.bench_function(format!("{suite:?}/{size}/seal_and_open"), |bencher| {
                let mut sealer = Sealer::new(suite, secret.clone()).unwrap();
                let mut opener = Opener::new(suite, &secret).unwrap();
                let mut number = 0;
                bencher.iter(|| {
                    number += 1;
                    let now = Instant::from_nanos(number);
                    let epoch = sealer.epoch(now);
                    sealer.seal(PathId(1), number, black_box(&mut packet), HEADER_LEN).unwrap();
                    opener.open(now, PathId(1), number, epoch, black_box(&mut packet), HEADER_LEN).unwrap();
                });
            });
        }
    }
    group.finish();
}

fn hello(criterion: &mut Criterion) {
    let bob = Identity::from_secret([2; 32]);
    let initiator =
        Initiator::new(&Identity::from_secret([1; 32]), bob.public(), &[0; 100], Suites::SECURE, [3; 32])
            .unwrap();
    let hello = initiator.hello();
    let remote = SocketAddr::from(([192, 0, 2, 1], 4433));
    let mut responder = Responder::new(bob, Suites::SECURE, [4; 16], [5; 32]);
    for (name, demand_cookie) in [("hello/answered", false), ("hello/asked_for_cookie", true)] {
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| {
                responder.on_hello(Instant::ZERO, remote, black_box(&hello), demand_cookie, &[0; 100])
            });
        });
    }
}

criterion_group!(benches, seal, hello);
criterion_main!(benches);
