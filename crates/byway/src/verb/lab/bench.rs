//! `byway lab bench`: how fast the simulator is on this machine.

use crate::args::lab::LabBench;
use crate::exit::{Exit, Failure};
use crate::output::{Align, Event, Outcome, Output, Table};
use anyhow::{Context as _, Result};
use byway_lab::bench;
use std::time::Instant;

/// Runs each bench on one core until its time is over, and says the best of its runs: what disturbs a run only slows it.
pub(super) fn run(arguments: &LabBench, output: &mut Output) -> Result<Exit> {
    let wanted = |id: &str| arguments.name.as_ref().is_none_or(|name| id.contains(name.as_str()));
    let benches: Vec<_> = bench::all().into_iter().filter(|bench| wanted(bench.id)).collect();
    if benches.is_empty() {
        let known: Vec<_> = bench::all().iter().map(|bench| bench.id).collect();
        return Err(
            Failure::new(Exit::NotFound, format!("no such bench: there are {}", known.join(", "))).into()
        );
    }
    let mut table = Table::new([
        ("bench", Align::Left),
        ("packets/s", Align::Right),
        ("hops/s", Align::Right),
        ("goodput", Align::Right),
        ("what", Align::Left),
    ]);
    for bench in benches {
        let begun = Instant::now();
        let mut best: Option<(f64, bench::Moved)> = None;
        while best.is_none() || begun.elapsed().as_secs_f64() < arguments.seconds {
            let before = Instant::now();
            let moved = bench.run().with_context(|| bench.id)?;
            let took = before.elapsed().as_secs_f64();
            if best.is_none_or(|(least, _)| took < least) {
                best = Some((took, moved));
            }
        }
        let Some((took, moved)) = best else { continue };
        let (packets, hops) = (moved.packets as f64 / took, moved.hops as f64 / took);
        output.emit(&Event::Bench {
            id: bench.id.to_owned(),
            packets_per_second: packets,
            hops_per_second: hops,
            goodput_mbps: moved.goodput,
            packets: moved.packets,
            seconds: took,
            trace: format!("{:016x}", moved.trace),
        });
        table.row([
            bench.id.to_owned(),
            format!("{packets:.0}"),
            format!("{hops:.0}"),
            format!("{:.3} Mbit/s", moved.goodput),
            bench.about.to_owned(),
        ]);
    }
    output.answer(table.to_string().trim_end())?;
    output.emit(&Event::result("lab", Exit::Ok, Outcome::Nothing {}));
    Ok(Exit::Ok)
}
