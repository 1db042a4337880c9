//! Measures transfers in simulated networks of different rate, RTT and loss: too slow for tests.
//! The results do not depend on the computer. `NAME` runs one measurement; without a name, all run.
//!
//! ```text
//! cargo bench -p byway-engine --bench grids [NAME]
//! NAME: best | idle | ten | harm | pages | shares
//! ```
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a bench says so when it cannot go on")]
#![allow(clippy::print_stdout, reason = "what a bench is for")]

#[path = "../tests/it/common/mod.rs"]
mod common;

use byway_sim::PipeConfig;
use byway_wire::{Duration, Instant};
use common::harm::{PAYLOAD, asked, endless, fetches, percentile, requested};
use common::shared::Shared;
use common::{MS, both, line, parallel};

/// Both classes.
const CLASSES: [&str; 2] = ["background", "mpath"];

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Mbit/s of object bytes over these lines between two times in seconds.
fn rate(seed: u64, congestion: &'static str, pipes: &[PipeConfig], from: u64, until: u64) -> f64 {
    let pipes: Vec<_> = pipes.iter().cloned().map(both).collect();
    let mut world = parallel(seed, endless(congestion), &pipes);
    world.world.stop_trace();
    world.world.run_until(Instant::ZERO + seconds(until + 1));
    world.world[world.receiver].goodput(seconds(from), seconds(until)) / 1e6
}

/// Two paths, and the better of them alone, for a minute. Rates 1:1 to 1:20, RTTs 10 to 300 ms.
fn best() {
    let mut worst = f64::MAX;
    for congestion in CLASSES {
        for ratio in [1, 2, 5, 10, 20] {
            for (fast, slow) in [
                (10, 10),
                (10, 50),
                (50, 10),
                (100, 100),
                (10, 150),
                (150, 10),
                (10, 300),
                (300, 10),
                (300, 300),
            ] {
                let fast_line = line(20, MS * fast / 2).queue(100);
                let slow_line = PipeConfig::new(20_000_000 / ratio, MS * slow / 2).queue(100);
                let of = |pipes: &[PipeConfig]| rate(1, congestion, pipes, 1, 61);
                let together = of(&[fast_line.clone(), slow_line.clone()]);
                let best = of(&[fast_line]).max(of(&[slow_line]));
                let share = together / best;
                worst = worst.min(share);
                println!(
                    "{congestion:6} 1:{ratio:<2} RTT {fast:3} and {slow:3} ms: {together:6.2} Mbit/s, best alone {best:6.2}: {share:.3}"
                );
            }
        }
    }
    println!("worst: {worst:.3} (at least 0.95 is wanted)");
}

/// One background transfer on an idle line of 10 Mbit/s. Prints which share of the line the
/// transfer gets in two periods: 8 s to 10 s, and 10 s to 40 s after its start.
fn idle() {
    for rtt in [5, 10, 20, 30, 50, 100, 150, 200, 300] {
        for loss in [0.0, 0.001, 0.0025, 0.005] {
            let of = |from, until| {
                let mut shares: Vec<f64> = (1..=5)
                    .map(|seed| {
                        let pipe = line(10, MS * rtt / 2).loss(loss);
                        rate(seed, "background", &[pipe], from, until) / 10.0 / PAYLOAD
                    })
                    .collect();
                shares.sort_by(f64::total_cmp);
                shares
            };
            let (soon, later) = (of(8, 10), of(10, 40));
            println!(
                "RTT {rtt:3} ms, loss {loss:.4}: {:.3} at 10 s, {:.3} after (worst of 5: {:.3}, {:.3}; 0.9 is wanted)",
                soon[2], later[2], soon[0], later[0]
            );
        }
    }
}

/// Fetches over TCP beside no, one and ten background transfers: how long they take.
fn ten() {
    for (mbit, delay) in [(10, 10), (10, 50), (50, 10)] {
        let pipe = line(mbit, delay * MS).queue(100);
        let mut before = None;
        for others in [0, 1, 10] {
            let took = fetches(&pipe, others);
            let (median, p90) = (percentile(&took, 50), percentile(&took, 90));
            let (one, one_p90) = before.replace((median, p90)).unwrap_or((median, p90));
            println!(
                "{mbit} Mbit/s, {delay} ms, {others:2} background: median {median:.3} s ({:.3}), p90 {p90:.3} s ({:.3})",
                median / one,
                p90 / one_p90
            );
        }
    }
}

/// Requests of 20 kB beside one and eight background transfers, and what is left to these.
fn harm() {
    for queue in [50, 300] {
        for others in [1, 8] {
            let [median, p90, share, back] = requested(3, queue, others);
            println!(
                "queue of {queue:3}, {others} background: median {median:.3}, p90 {p90:.3} of alone; {share:.3} of the rest; full after {back:.1} s"
            );
        }
    }
}

/// Prints how much longer requests over TCP take beside one background transfer, and beside eight.
/// The times are multiples of the time without transfers, as means over six seeds. The line has a
/// queue of 50 packets, and a jitter of 0 or 1 ms.
fn ask() {
    for jitter in [0, 1] {
        for others in [1, 8] {
            let [median, p90, share, back] = asked(6, jitter * MS, others);
            println!(
                "jitter {jitter} ms, {others} background: median {median:.3}, p90 {p90:.3} of alone; {share:.3} of the rest; full after {back:.1} s"
            );
        }
    }
}

/// Two background transfers from different hosts, the second ten seconds later: what each gets,
/// minute by minute.
fn shares() {
    for (mbit, delay) in [(10, 5), (10, 10), (10, 50), (50, 10), (20, 100)] {
        let mut world = Shared::new(1, &line(mbit, delay * MS).queue(100));
        world.session(1, endless("background"));
        let mut later = endless("background");
        later.start = seconds(10);
        world.session(2, later);
        world.rates(seconds(20));
        let minutes: Vec<String> = (0..3)
            .map(|minute| {
                let rates = world.rates(seconds(80 + 60 * minute));
                format!("{:.1}/{:.1}", rates[0], rates[1])
            })
            .collect();
        println!("{mbit} Mbit/s, {delay} ms: {}", minutes.join(", "));
    }
}

fn main() {
    let named: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect();
    for (name, grid) in [
        ("best", best as fn()),
        ("idle", idle),
        ("ten", ten),
        ("harm", harm),
        ("pages", ask),
        ("shares", shares),
    ] {
        if named.is_empty() || named.iter().any(|wanted| wanted == name) {
            println!("{name}:");
            grid();
        }
    }
}
