//! How many packets per second of real time the dumbbells of TCP hosts carry over their bottleneck on one core, hosts
//! included: `cargo bench -p byway-sim --bench tcp`. With an argument `d2` or `d100`, that one alone and briefly, to count
//! instructions under `valgrind --tool=callgrind`.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark reads the real clock")]

#[path = "../tests/tcp_common/mod.rs"]
mod tcp_common;

use byway_wire::Instant;
use tcp_common::{Dumbbell, at, d2, d100};

fn run(name: &str, mut dumbbell: Dumbbell, end: Instant) -> f64 {
    dumbbell.world.stop_trace();
    let begun = std::time::Instant::now();
    dumbbell.world.run_until(end);
    let took = begun.elapsed().as_secs_f64();
    let packets = dumbbell.world.counters(dumbbell.bottleneck).delivered as f64;
    let rate = packets / took;
    println!(
        "{name:<5} {packets:>9} packets, {:>6.3} M packets/s, {:>6.0} ns each, {:.1} events each",
        rate / 1e6,
        took / packets * 1e9,
        dumbbell.world.events() as f64 / packets
    );
    rate
}

fn main() {
    let alone = std::env::args().find(|argument| argument == "d2" || argument == "d100");
    match alone.as_deref() {
        Some("d2") => drop(run("D2", d2(), at(60_000))),
        Some(_) => drop(run("D100", d100(), at(1_000))),
        None => {
            let one = run("D2", d2(), at(4_000_000));
            let many = run("D100", d100(), at(10_000));
            println!("D100 at {:.2} of D2", many / one);
        }
    }
}
