//! `byway lab list` and `byway lab report`: what was asked, and what came of it the last time.

use super::place;
use crate::args::lab::{LabList, LabReport, Where};
use crate::exit::Exit;
use crate::output::{Align, Event, Outcome, Output, Table};
use anyhow::{Context as _, Result};
use byway_lab::expect::Verdict;
use byway_lab::report::{self, Entry};
use std::fs;

fn entries(place: &Where, tags: &[String]) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for experiment in place::experiments(place)? {
        let expectation = place::expectation(&experiment)?;
        if place::tagged(&expectation, tags) {
            entries.push(Entry {
                paper: expectation.paper.clone().unwrap_or_default(),
                outcome: place::last(place, &experiment),
                not_run: expectation.not_run.clone(),
                figures: place::figures(place, &experiment.id),
                experiment,
            });
        }
    }
    Ok(entries)
}

/// How many claims have each verdict.
fn tally(entries: &[Entry]) -> Outcome {
    let claims =
        || entries.iter().filter_map(|entry| entry.outcome.as_ref()).flat_map(|outcome| &outcome.claims);
    let count = |verdict| claims().filter(|claim| claim.verdict == verdict).count();
    Outcome::Lab {
        experiments: entries.len(),
        passed: count(Verdict::Pass),
        known: count(Verdict::KnownMiss),
        failed: count(Verdict::Fail),
    }
}

/// A line for each experiment.
pub(super) fn list(arguments: &LabList, output: &mut Output) -> Result<Exit> {
    let entries = entries(&arguments.place, &arguments.tag)?;
    let mut table = Table::new([
        ("experiment", Align::Left),
        ("paper", Align::Left),
        ("claim", Align::Left),
        ("last verdict", Align::Left),
    ]);
    for entry in &entries {
        let verdict = match (&entry.outcome, &entry.not_run) {
            // The clause before the colon says it in short.
            (_, Some(why)) => why.split(':').next().unwrap_or(why).to_owned(),
            (None, None) => "never run".to_owned(),
            (Some(outcome), None) => {
                format!("{} ({}, {})", report::word(outcome.verdict).0, outcome.mode.name(), outcome.date)
            }
        };
        let title = report::title(&entry.experiment).to_owned();
        table.row([entry.experiment.id.clone(), entry.paper.clone(), title, verdict]);
        output.emit(&Event::Experiment(super::run::event(
            &entry.experiment.id,
            entry.outcome.as_ref(),
            entry.not_run.as_deref(),
        )));
    }
    output.answer(table.to_string().trim_end())?;
    output.emit(&Event::result("lab", Exit::Ok, tally(&entries)));
    Ok(Exit::Ok)
}

/// The page.
pub(super) fn report(arguments: &LabReport, output: &mut Output) -> Result<Exit> {
    let entries = entries(&arguments.place, &[])?;
    let file = arguments.html.clone().unwrap_or_else(|| arguments.place.out.join("report.html"));
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    }
    fs::write(&file, report::html(&entries)).with_context(|| file.display().to_string())?;
    output.answer(&file.display().to_string())?;
    output.emit(&Event::result("lab", Exit::Ok, tally(&entries)));
    Ok(Exit::Ok)
}
