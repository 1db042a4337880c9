//! `byway lab fuzz`: random worlds, random faults, and laws that must hold.

use crate::args::lab::LabFuzz;
use crate::exit::Exit;
use crate::output::{Event, Outcome, Output};
use crate::signals::{Hangup, Signals};
use anyhow::Result;
use byway_lab::fuzz;
use rayon::prelude::*;
use std::time::Instant;

/// How many worlds run between two lines of progress.
const BATCH: u64 = 50;

/// Runs worlds by seed, and prints every seed that breaks a law.
pub(super) fn run(arguments: &LabFuzz, output: &mut Output) -> Result<Exit> {
    let signals = Signals::install(Hangup::Stop, || {})?;
    output.heed(&signals);
    // A law that breaks is told once, by its seed, and not by each thread that meets it.
    std::panic::set_hook(Box::new(|_| {}));
    let begun = Instant::now();
    let end = arguments.first.saturating_add(arguments.seeds);
    let (mut from, mut found, mut packets) = (arguments.first, 0_u64, 0_u64);
    while from < end && signals.stop().is_none() {
        let until = end.min(from.saturating_add(BATCH));
        let seeds: Vec<u64> = (from..until).collect();
        let judged: Vec<_> = seeds.into_par_iter().with_max_len(1).map(fuzz::judge).collect();
        for result in judged {
            match result {
                Ok(record) => packets += record.packets,
                Err(finding) => {
                    found += 1;
                    output.answer_lines(&format!("seed {}: {}", finding.seed, finding.what))?;
                    output.emit(&Event::Finding { seed: finding.seed, what: finding.what });
                }
            }
        }
        from = until;
        output.say(&format!("{} of {} worlds, {found} found", from - arguments.first, arguments.seeds));
    }
    let _ = std::panic::take_hook();
    let seconds = begun.elapsed().as_secs_f64();
    let worlds = from - arguments.first;
    output
        .answer_lines(&format!("{worlds} worlds, {packets} packets, {seconds:.0} s: {found} broke a law"))?;
    let exit = signals.stop().unwrap_or(if found == 0 { Exit::Ok } else { Exit::Error });
    output.emit(&Event::result("lab", exit, Outcome::Fuzz { worlds, packets, found }));
    Ok(exit)
}
