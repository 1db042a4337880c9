//! How many packets per second of real time a world carries on one core: `cargo bench -p byway-sim`.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark reads the real clock")]

#[path = "../tests/common/mod.rs"]
mod common;

use byway_sim::{PipeConfig, World};
use byway_wire::{Duration, Instant};
use common::{Flood, address};

/// So many sources, each at 80 % of a line of its own, for so many packets in all.
fn run(name: &str, sources: u8, packets: u64, run: usize, traced: bool) {
    let mut world = World::new(1);
    let sink = address(250, 1);
    if !traced {
        world.stop_trace();
    }
    let node = world.add("sink", Flood::sink(), &[sink]);
    for host in 0..sources {
        let own = address(host, 1);
        // 1200 bytes at 100 Mbit/s are 96 microseconds.
        let every = Duration::from_micros(120 * run as u64);
        let mut flood = Flood::new(sink, every, 1_172, packets / u64::from(sources));
        flood.run = run;
        world.add(&format!("source {host}"), flood, &[own]);
        let line = PipeConfig::new(100_000_000, Duration::from_millis(20)).loss(0.001);
        world.connect(own, sink, line, PipeConfig::default());
    }
    let begun = std::time::Instant::now();
    world.run_until(Instant::from_millis(3_600_000));
    let took = begun.elapsed().as_secs_f64();
    let heard = world[node].heard as f64;
    println!("{name:<40} {:>7.2} M packets/s, {:>6.1} ns each", heard / took / 1e6, took / heard * 1e9);
}

fn main() {
    run("one line", 1, 2_000_000, 1, true);
    run("one line, no trace", 1, 2_000_000, 1, false);
    run("one line, runs of 10, no trace", 1, 2_000_000, 10, false);
    run("100 lines", 100, 2_000_000, 1, true);
    run("100 lines, no trace", 100, 2_000_000, 1, false);
}
