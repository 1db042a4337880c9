//! `byway lab bench`: how fast the simulator is on this machine.

use crate::args::lab::LabBench;
use crate::exit::{Exit, Failure};
use crate::output::{Align, Event, Outcome, Output, Table};
use anyhow::{Context as _, Result};
use byway_lab::bench;
use std::process::Command;
use std::time::Instant;

/// Runs each bench on one core until its time is over, and says the best of its runs: what disturbs a run only slows it.
pub(super) fn run(arguments: &LabBench, output: &mut Output) -> Result<Exit> {
    let mut benches = bench::all();
    if let Some(name) = &arguments.name {
        let exact = benches.iter().any(|bench| bench.id == name);
        benches.retain(|bench| if exact { bench.id == name } else { bench.id.contains(name.as_str()) });
    }
    if benches.is_empty() {
        let known: Vec<_> = bench::all().iter().map(|bench| bench.id).collect();
        return Err(
            Failure::new(Exit::NotFound, format!("no such bench: there are {}", known.join(", "))).into()
        );
    }
    if let (Some(seconds), [bench]) = (arguments.once, benches.as_slice()) {
        let moved = bench.run_for(seconds).with_context(|| bench.id)?;
        output.answer(&moved.hops.to_string())?;
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
        let instructions = if arguments.instructions { Some(instructions_per_hop(&bench)?) } else { None };
        let (packets, hops) = (moved.packets as f64 / took, moved.hops as f64 / took);
        output.emit(&Event::Bench {
            id: bench.id.to_owned(),
            packets_per_second: packets,
            hops_per_second: hops,
            goodput_mbps: moved.goodput,
            packets: moved.packets,
            seconds: took,
            instructions_per_hop: instructions,
            trace: format!("{:016x}", moved.trace),
        });
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

/// What two runs of different length differ by: so the world's building does not count.
fn instructions_per_hop(bench: &bench::Bench) -> Result<f64> {
    let [short, long] = bench.brief();
    let (less, few) = count(bench.id, short)?;
    let (more, many) = count(bench.id, long)?;
    Ok((more - less) / (many - few))
}

/// Instructions and hops of a run in a process of its own under callgrind.
fn count(id: &str, seconds: u32) -> Result<(f64, f64)> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.arg(std::env::current_exe().context("where this program is")?);
    valgrind.args(["lab", "bench", id, "--once", &seconds.to_string()]);
    let missing = "instructions are counted by valgrind, which cannot be run here: install it, or leave out --instructions";
    let output = valgrind.output().context(missing)?;
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let told = String::from_utf8_lossy(&output.stderr);
    let collected = told.lines().find_map(|line| number(line.split_once("Collected : ")?.1));
    let hops = number(&String::from_utf8_lossy(&output.stdout));
    collected
        .zip(hops)
        .with_context(|| format!("valgrind did not count: {}", told.lines().last().unwrap_or_default()))
}
