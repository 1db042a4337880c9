//! `byway lab list`, `show` and `report`: what was asked, and what came of it the last time.

use crate::args::lab::{LabList, LabReport, LabShow};
use crate::exit::{Exit, Failure};
use crate::output::{Align, Event, Fields, Outcome, Output, Table};
use anyhow::Result;
use byway_field::experiment_list::{ClaimCounts, ExperimentSummary, entries, write_page};
use byway_lab::report::{self, ReportEntry};

/// Claims that hold of those that were judged, known misses, and others.
fn cells(tally: ClaimCounts) -> [String; 3] {
    let count = |number: usize| if number == 0 { "-".to_owned() } else { number.to_string() };
    let judged = tally.passed + tally.known + tally.failed;
    [format!("{} of {judged}", tally.passed), count(tally.known), count(tally.failed)]
}

/// What the entries came to, for programs.
fn result(entries: &[ReportEntry]) -> Outcome {
    let tally = ClaimCounts::of(entries.iter().filter_map(|entry| entry.outcome.as_ref()));
    Outcome::Told(Fields::of(&ClaimCounts { experiments: entries.len(), ..tally }))
}

/// A line for each experiment.
pub(super) fn list(arguments: &LabList, output: &mut Output) -> Result<Exit> {
    let entries = entries(&arguments.place.directories(), &arguments.tag)?;
    output.answer_table(&listed(&entries))?;
    output.answer_lines(
        "hold: claims that held in the last run. known: misses whose reason is written down. fail: other misses. \
         `byway lab show ID --expect` prints an experiment's claims and these reasons, `byway lab show ID` its plan.",
    )?;
    for entry in &entries {
        let told =
            ExperimentSummary::of(&entry.experiment.id, entry.outcome.as_ref(), entry.not_run.as_deref());
        output.emit(&Event::told("experiment", &told));
    }
    output.emit(&Event::result("lab", Exit::Ok, result(&entries)));
    Ok(Exit::Ok)
}

fn listed(entries: &[ReportEntry]) -> Table {
    let mut table = Table::new([
        ("experiment", Align::Left),
        ("hold", Align::Right),
        ("known", Align::Right),
        ("fail", Align::Right),
        ("claim", Align::Left),
        ("source", Align::Left),
    ]);
    for entry in entries {
        let [hold, known, fail] = match &entry.outcome {
            Some(outcome) => cells(ClaimCounts::of([outcome])),
            None => ["", "", ""].map(str::to_owned),
        };
        let title = report::title(&entry.experiment).to_owned();
        table.row([entry.experiment.id.clone(), hold, known, fail, title, entry.paper.clone()]);
        match (&entry.not_run, &entry.outcome) {
            // The clause before the colon says it in short.
            (Some(why), _) => table.note(&format!("not run: {}", why.split(':').next().unwrap_or(why))),
            (None, None) => table.note("never run"),
            (None, Some(_)) => {}
        }
    }
    table
}

/// `byway lab show`: a file of an experiment, as it stands.
pub(super) fn show(arguments: &LabShow, output: &mut Output) -> Result<Exit> {
    let experiment = arguments.place.directories().experiment(&arguments.experiment)?;
    let text = if arguments.expect {
        experiment.expect
    } else if arguments.readme {
        experiment.readme
    } else {
        let not_run = || format!("{} has no plan: `--readme` says why it is not run", arguments.experiment);
        experiment.plan.ok_or_else(|| Failure::new(Exit::NotFound, not_run()))?
    };
    output.answer(text.trim_end())?;
    let outcome = Outcome::Told(Fields::one("text", &text));
    output.emit(&Event::result("lab", Exit::Ok, outcome));
    Ok(Exit::Ok)
}

/// Writes the page of results of all experiments.
pub(super) fn report(arguments: &LabReport, output: &mut Output) -> Result<Exit> {
    let entries = entries(&arguments.place.directories(), &[])?;
    let file = arguments.html.clone().unwrap_or_else(|| arguments.place.out.join("report.html"));
    write_page(&entries, &file)?;
    output.answer(&file.display().to_string())?;
    output.emit(&Event::result("lab", Exit::Ok, result(&entries)));
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_field::directories::Directories;
    use byway_lab::expect::{ClaimResult, Verdict};

    #[test]
    fn a_list_counts_claims_and_fits_a_page() {
        let directories = Directories { out: "nowhere".into(), ..Directories::default() };
        let mut entries = entries(&directories, &[]).unwrap();
        let text = listed(&entries).fit(100);
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 100, "{widest} columns:\n{text}");
        assert!(!text.contains("FAIL"), "a known miss is not shown as a failure");

        let claims = [Verdict::Pass, Verdict::KnownMiss, Verdict::KnownMiss, Verdict::Report];
        let one = entries.iter_mut().find(|entry| entry.experiment.id == "harp-6a").unwrap();
        let outcome = one.outcome.as_mut().unwrap();
        let usual = outcome.claims[0].clone();
        outcome.claims = claims.map(|verdict| ClaimResult { verdict, ..usual.clone() }).to_vec();
        let text = listed(&entries).fit(100);
        let line = text.lines().find(|line| line.starts_with("harp-6a ")).unwrap();
        let words: Vec<_> = line.split_whitespace().take(6).collect();
        assert_eq!(words, ["harp-6a", "1", "of", "3", "2", "-"], "{line}");
    }
}
