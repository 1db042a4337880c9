//! `byway lab fuzz`: random worlds, random faults, and laws that must hold.

use crate::args::lab::LabFuzz;
use crate::exit::Exit;
use crate::output::{Event, Fields, Outcome, Output};
use crate::signals::Hangup;
use anyhow::{Context as _, Result};
use byway_field::Error;
use byway_field::fuzz::{self, FuzzCounts, FuzzEvent, WorldSeeds};
use byway_lab::fuzz::Finding;
use std::fs;
use std::path::Path;

/// Runs worlds by seed, and prints every seed that breaks a law.
pub(super) fn run(arguments: &LabFuzz, output: &mut Output) -> Result<Exit> {
    let seeds = seeds(arguments)?;
    let plan = match arguments.plan.as_deref() {
        Some(file) => Some((file, only(&seeds)?)),
        None => None,
    };
    if let Some((file, seed)) = plan {
        // Before the world runs: whoever looks for a world that does not end can stop it.
        write(file, seed, None)?;
    }
    let signals = output.catch_signals(Hangup::Stop)?;
    let stop = || signals.stop().is_some();
    let mut last = None;
    let counts = fuzz::run(&seeds, stop, |news| {
        match news {
            FuzzEvent::Found(finding) => {
                output.answer_lines(&format!("seed {}: {}", finding.seed, finding.what))?;
                output.emit(&Event::told("finding", &finding));
                last = Some(finding);
            }
            FuzzEvent::Progress(counts) => output.say(&progress(&counts, &seeds)),
        }
        Ok(())
    })?;
    let FuzzCounts { worlds, packets, found, seconds, .. } = &counts;
    output
        .answer_lines(&format!("{worlds} worlds, {packets} packets, {seconds:.0} s: {found} broke a law"))?;
    match (plan, last) {
        (Some((file, seed)), last) => {
            write(file, seed, last.as_ref().map(|finding| finding.what.as_str()))?;
            let file = file.display();
            output.say_lines(&format!(
                "{file} is the world of seed {seed}: `byway lab run {file}` runs it again, with `--trace` \
                 it writes what happened, and with `--seeds 20` 19 more seeds choose its chance"
            ));
        }
        (None, Some(Finding { seed, .. })) => output.say_lines(&format!(
            "`byway lab fuzz --first {seed} --seeds 1 --plan seed-{seed}.toml` writes that world as a plan"
        )),
        (None, None) => {}
    }
    let exit = signals.stop().unwrap_or(if *found == 0 { Exit::Ok } else { Exit::Error });
    output.emit(&Event::result("lab", exit, Outcome::Told(Fields::of(&counts))));
    Ok(exit)
}

/// Returns the seeds of the worlds to run.
fn seeds(arguments: &LabFuzz) -> Result<WorldSeeds> {
    let LabFuzz { first, seeds, time, seeds_file, .. } = arguments;
    Ok(match (seeds_file, time) {
        (Some(file), _) => WorldSeeds::in_file(file)?,
        (None, Some(time)) => WorldSeeds::Time { first: *first, time: *time },
        (None, None) => WorldSeeds::Count { first: *first, count: *seeds },
    })
}

/// Returns the seed, if there is only one. An error otherwise, since `--plan` writes the world of
/// one seed.
fn only(seeds: &WorldSeeds) -> Result<u64, Error> {
    let wrong = || "--plan writes the world of one seed: say which, as `--first SEED --seeds 1`".to_owned();
    seeds.only().ok_or_else(|| Error::Usage(wrong()))
}

fn write(file: &Path, seed: u64, finding: Option<&str>) -> Result<()> {
    fs::write(file, fuzz::world_plan(seed, finding)?).with_context(|| file.display().to_string())
}

fn progress(counts: &FuzzCounts, seeds: &WorldSeeds) -> String {
    let FuzzCounts { worlds, found, seconds, .. } = counts;
    match (seeds, seeds.count()) {
        (WorldSeeds::Time { time, .. }, _) => {
            format!("{worlds} worlds in {seconds:.0} of {} s, {found} found", time.as_secs())
        }
        (_, Some(all)) => format!("{worlds} of {all} worlds, {found} found"),
        (_, None) => format!("{worlds} worlds, {found} found"),
    }
}
