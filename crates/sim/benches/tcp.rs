//! ```text
//! cargo bench -p byway-sim --bench tcp [-- d2 | d100 | --help]
//! ```
//!
//! Measures how many packets per second of real time the simulator carries over the bottleneck of a
//! dumbbell with 2 or 100 TCP flows, on one core. `--help` tells how to count instructions,
//! independent of the machine's load.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark reads the real clock")]

#[path = "../tests/it/tcp_common/mod.rs"]
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

const HELP: &str = "tcp [d2 | d100 | --help]
Packets per second of CPU over the bottlenecks of two dumbbells; d2 or d100: that one, briefly.
valgrind --tool=callgrind BINARY d2: instructions collected by packets printed, setup included.
Last counted: 6,708 per packet of D2 with its ACK, both hosts and six hops; 1,123 per hop, hosts included.";

fn main() {
    if std::env::args().any(|argument| argument == "--help") {
        println!("{HELP}");
        return;
    }
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
