//! ```text
//! cargo bench -p byway-sim --bench world [-- hops LINKS FLOWS PACKETS]
//! ```
//!
//! Measures the cost of a packet in a simulated world, on one core. `hops` runs one case, to count
//! instructions with callgrind. For one link, divide the difference between 6 links and 1 link by 5
//! × PACKETS.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark reads the real clock")]

#[path = "../tests/it/common/mod.rs"]
mod common;

use byway_sim::{LinkId, PipeConfig, World};
use byway_wire::{Dscp, Duration, Ecn, Input, Instant, Local, Machine, Transmit, TransmitBuffer};
use common::{Flood, address};
use std::net::SocketAddr;

/// Sends packets of 1 472 bytes that are only a length, one at a time.
#[derive(Debug)]
struct Source {
    to: SocketAddr,
    every: Duration,
    left: u64,
    pending: bool,
    due: Option<Instant>,
}

impl Machine for Source {
    fn handle(&mut self, _: Instant, _: Input<'_>) {}
    fn wake(&mut self, now: Instant) {
        if let Some(due) = self.due.filter(|&due| due <= now) {
            self.pending = self.left > 0;
            self.left = self.left.saturating_sub(1);
            self.due = (self.left > 0).then(|| due + self.every);
        }
    }
    fn transmit(&mut self, _: Instant, _: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        core::mem::take(&mut self.pending).then_some(Transmit {
            local: Local(0),
            remote: self.to,
            ecn: Ecn::NotEct,
            dscp: Dscp::BestEffort,
            size: 0,
            segment: 0,
            phantom: 1_472,
        })
    }
    fn deadline(&self) -> Option<Instant> {
        self.due
    }
}

/// Runs `flows` sources that together load a bottleneck of 1 Gbit/s to 96 %. Each flow has `links`
/// links: the bottleneck in the middle, others of 10 Gbit/s for this flow alone. Returns how many
/// packets the sinks received.
fn hops(links: usize, flows: u8, packets: u64, traced: bool) -> (u64, World) {
    let mut world = World::new(1);
    if !traced {
        world.stop_trace();
    }
    let bottleneck = world.link("bottleneck", PipeConfig::new(1_000_000_000, Duration::from_millis(8)));
    let mut sinks = Vec::new();
    for flow in 0..flows {
        let (from, to) = (address(flow, 1), ([10, 0, 1, flow], 1).into());
        let every = Duration::from_nanos(12_500 * u64::from(flows));
        let due = Some(Instant::from_nanos(12_500 * u64::from(flow)));
        let left = packets / u64::from(flows);
        let source = Source { to, every, left, pending: false, due };
        world.add(&format!("source {flow}"), source, &[from]);
        sinks.push(world.add(&format!("sink {flow}"), Flood::sink(), &[to]));
        let route: Vec<LinkId> = (0..links)
            .map(|link| match link == links / 2 {
                true => bottleneck,
                false => {
                    let own = PipeConfig::new(10_000_000_000, Duration::from_millis(1));
                    world.link(&format!("{flow} {link}"), own)
                }
            })
            .collect();
        world.route(from, to.ip(), &route);
    }
    world.run_until(Instant::from_millis(3_600_000));
    (sinks.iter().map(|&sink| world[sink].heard).sum(), world)
}

fn timed_hops(links: usize, flows: u8, packets: u64, traced: bool) -> f64 {
    let begun = std::time::Instant::now();
    let (heard, world) = hops(links, flows, packets, traced);
    let took = begun.elapsed().as_secs_f64();
    println!(
        "{links} links, {flows:>3} flows{}: {:>6.2} M packets/s, {:>6.1} ns per packet, {:.2} events per packet",
        if traced { ", traced" } else { "        " },
        heard as f64 / took / 1e6,
        took / heard as f64 * 1e9,
        world.events() as f64 / heard as f64,
    );
    took / heard as f64 * 1e9
}

/// So many sources, each at 80 % of a line of its own, for so many packets with real bytes in all.
fn bytes(name: &str, sources: u8, packets: u64, run: usize, traced: bool) {
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
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["hops", links, flows, packets] = words[..] {
        let number = |word: &str| word.parse::<u64>().unwrap_or(0);
        hops(number(links) as usize, number(flows) as u8, number(packets), false);
        return;
    }
    for traced in [false, true] {
        for flows in [1, 100] {
            let [first, _, last] = [1, 3, 6].map(|links| timed_hops(links, flows, 2_000_000, traced));
            println!("    {:.1} ns per further link", (last - first) / 5.0);
        }
    }
    bytes("one line, with bytes", 1, 2_000_000, 1, true);
    bytes("one line, with bytes, no trace", 1, 2_000_000, 1, false);
    bytes("one line, with bytes, runs of 10, no trace", 1, 2_000_000, 10, false);
    bytes("100 lines, with bytes", 100, 2_000_000, 1, true);
    bytes("100 lines, with bytes, no trace", 100, 2_000_000, 1, false);
}
