//! What sealing costs: one packet sealed, and sealed and opened again, by suite and size (UDP payload).
//!
//! `cargo bench -p byway-engine --bench seal`
#![allow(missing_docs, clippy::unwrap_used, reason = "criterion's macros make an undocumented function")]

use std::hint::black_box;

use byway_engine::seal::{Opener, Sealer, Secret, Suite};
use byway_wire::packet::HEADER_LEN;
use byway_wire::{Instant, PathId};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn seal(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("seal");
    for suite in [Suite::Aes256Gcm, Suite::ChaCha20Poly1305, Suite::Null] {
        for size in [1200_usize, 1452] {
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

criterion_group!(benches, seal);
criterion_main!(benches);
