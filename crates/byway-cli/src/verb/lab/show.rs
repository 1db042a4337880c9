//! `byway lab list`, `show` and `report`: experiments, and the results of their last runs.

use super::run::printable;
use crate::args::lab::{LabList, LabReport, LabShow};
use crate::exit::{Exit, Failure};
use crate::output::{Event, Fields, Outcome, Output};
use anyhow::Result;
use byway_field::experiment_list::{ClaimCounts, ExperimentSummary, entries, headlines, table, write_page};
use byway_lab::html_report::{self, ReportEntry};

/// The counts of all entries, as JSON.
fn result(entries: &[ReportEntry]) -> Outcome {
    let tally = ClaimCounts::of(entries.iter().filter_map(|entry| entry.outcome.as_ref()));
    Outcome::Told(Fields::of(&ClaimCounts { experiments: entries.len(), ..tally }))
}

/// A line for each experiment.
pub(super) fn list(arguments: &LabList, output: &mut Output) -> Result<Exit> {
    let entries = entries(&arguments.place.directories(), &arguments.tag)?;
    output.answer_table(&printable(&table(&entries)))?;
    output.answer_lines(&html_report::whole(&entries))?;
    output.answer_lines(
        "published: claims of the paper that hold word by word. second: more of them that hold by another reading, \
         which the experiment's README declares. missed: those that hold by neither. byway: claims about byway's own \
         law. `byway lab show ID --expect` prints an experiment's claims and why they are missed.",
    )?;
    for entry in &entries {
        let told =
            ExperimentSummary::of(&entry.experiment.id, entry.outcome.as_ref(), entry.not_run.as_deref());
        let told = ExperimentSummary { stale: entry.stale, ..told };
        output.emit(&Event::told("experiment", &told));
    }
    let stale: Vec<&str> =
        entries.iter().filter(|entry| entry.stale).map(|entry| entry.experiment.id.as_str()).collect();
    let exit = if arguments.refuse_stale && !stale.is_empty() { Exit::Error } else { Exit::Ok };
    if exit != Exit::Ok {
        output.answer_lines(&format!(
            "stale, run them again with `byway lab run --keep`: {}",
            stale.join(", ")
        ))?;
    }
    output.emit(&Event::result("lab", exit, result(&entries)));
    Ok(exit)
}

/// Prints a file of an experiment unchanged (`byway lab show`).
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
    let headlines = headlines(&arguments.place.directories(), &entries)?;
    write_page(&entries, &headlines, &file)?;
    output.answer(&file.display().to_string())?;
    output.emit(&Event::result("lab", Exit::Ok, result(&entries)));
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_field::directories::Directories;
    use byway_lab::expect::{ClaimResult, Reading, Verdict};

    #[test]
    fn a_list_counts_claims_and_fits_a_page() {
        let directories = Directories { out: "nowhere".into(), ..Directories::default() };
        let mut entries = entries(&directories, &[]).unwrap();
        let text = printable(&table(&entries)).fit(100);
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 100, "{widest} columns:\n{text}");

        let verdicts = [
            (Verdict::Pass, Reading::Strict),
            (Verdict::KnownMiss, Reading::Strict),
            (Verdict::Pass, Reading::Ours),
            (Verdict::KnownMiss, Reading::Ours),
            (Verdict::Report, Reading::Strict),
        ];
        let one = entries.iter_mut().find(|entry| entry.experiment.id == "harp-6a").unwrap();
        one.missed = Some("reasoned".into());
        let outcome = one.outcome.as_mut().unwrap();
        outcome.claims = verdicts
            .map(|(verdict, reading)| ClaimResult {
                verdict,
                reading: Some(reading),
                ..ClaimResult::default()
            })
            .to_vec();
        let text = printable(&table(&entries)).fit(100);
        let line = text.lines().find(|line| line.starts_with("harp-6a ")).unwrap();
        let words: Vec<_> = line.split_whitespace().take(8).collect();
        assert_eq!(words, ["harp-6a", "1", "of", "2", "1", "1", "of", "2"], "{line}");
        assert!(text.contains("reasoned"), "{text}");
    }
}
