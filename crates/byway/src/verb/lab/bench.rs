//! `byway lab bench`: how fast the simulator is on this machine.

use crate::args::lab::LabBench;
use crate::exit::Exit;
use crate::output::{Align, Event, Outcome, Output, Table};
use anyhow::{Context as _, Result};
use byway_field::bench;
use serde::Serialize;

/// How fast the simulator ran a bench, for programs.
#[derive(Serialize)]
struct Told {
    id: &'static str,
    /// Packets of 1500 bytes over its bottlenecks per second of wall time.
    packets_per_second: f64,
    /// Packets over all links, ACKs included, per second of wall time.
    hops_per_second: f64,
    /// Goodput of all its transfers together, Mbit/s of simulated time.
    goodput_mbps: f64,
    /// Packets over its bottlenecks.
    packets: u64,
    /// Wall time of the best run.
    seconds: f64,
    /// Instructions of a packet on one link, as callgrind counts them, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions_per_hop: Option<f64>,
    /// Hash of all that happened, the same on every machine.
    trace: String,
}

/// Runs each bench on one core until its time is over, and says the best of its runs: what disturbs a run only slows it.
pub(super) fn run(arguments: &LabBench, output: &mut Output) -> Result<Exit> {
    let benches = bench::named(arguments.name.as_deref())?;
    if let (Some(seconds), [bench]) = (arguments.once, benches.as_slice()) {
        output.answer(&bench::once(bench, seconds)?.to_string())?;
        return Ok(Exit::Ok);
    }
    let mut table = Table::new([
        ("bench", Align::Left),
        ("packets/s", Align::Right),
        ("hops/s", Align::Right),
        ("goodput", Align::Right),
        ("instructions/hop", Align::Right),
        ("what", Align::Left),
    ]);
    for bench in benches {
        let (took, moved) = bench::best(&bench, arguments.seconds)?;
        let instructions = if arguments.instructions {
            let program = std::env::current_exe().context("where this program is")?;
            Some(bench::instructions_per_hop(&bench, &program)?)
        } else {
            None
        };
        let (packets, hops) = (moved.packets as f64 / took, moved.hops as f64 / took);
        let told = Told {
            id: bench.id,
            packets_per_second: packets,
            hops_per_second: hops,
            goodput_mbps: moved.goodput,
            packets: moved.packets,
            seconds: took,
            instructions_per_hop: instructions,
            trace: format!("{:016x}", moved.trace),
        };
        output.emit(&Event::told("bench", &told));
        table.row([
            bench.id.to_owned(),
            format!("{packets:.0}"),
            format!("{hops:.0}"),
            format!("{:.3} Mbit/s", moved.goodput),
            instructions.map_or_else(|| "-".to_owned(), |count| format!("{count:.0}")),
            bench.about.to_owned(),
        ]);
    }
    output.answer_table(&table)?;
    output.emit(&Event::result("lab", Exit::Ok, Outcome::Nothing {}));
    Ok(Exit::Ok)
}
