//! `byway lab fuzz`: random worlds, random faults, and laws that must hold.

use crate::args::lab::LabFuzz;
use crate::exit::Exit;
use crate::output::{Event, Fields, Outcome, Output};
use crate::signals::{Hangup, Signals};
use anyhow::Result;
use byway_field::fuzz::{self, FuzzCounts, FuzzEvent};
use serde::Serialize;

#[derive(Serialize)]
struct FuzzFinding {
    seed: u64,
    what: String,
}

/// What was run and found, for programs.
#[derive(Serialize)]
struct FuzzReport {
    worlds: u64,
    packets: u64,
    found: u64,
}

/// Runs worlds by seed, and prints every seed that breaks a law.
pub(super) fn run(arguments: &LabFuzz, output: &mut Output) -> Result<Exit> {
    let signals = Signals::install(Hangup::Stop, || {})?;
    output.heed(&signals);
    let stop = || signals.stop().is_some();
    let FuzzCounts { worlds, packets, found, seconds } =
        fuzz::run(arguments.first, arguments.seeds, stop, |news| {
            match news {
                FuzzEvent::Found(finding) => {
                    output.answer_lines(&format!("seed {}: {}", finding.seed, finding.what))?;
                    let finding = FuzzFinding { seed: finding.seed, what: finding.what };
                    output.emit(&Event::told("finding", &finding));
                }
                FuzzEvent::Progress(tally) => output
                    .say(&format!("{} of {} worlds, {} found", tally.worlds, arguments.seeds, tally.found)),
            }
            Ok(())
        })?;
    output
        .answer_lines(&format!("{worlds} worlds, {packets} packets, {seconds:.0} s: {found} broke a law"))?;
    let exit = signals.stop().unwrap_or(if found == 0 { Exit::Ok } else { Exit::Error });
    let told = FuzzReport { worlds, packets, found };
    output.emit(&Event::result("lab", exit, Outcome::Told(Fields::of(&told))));
    Ok(exit)
}
