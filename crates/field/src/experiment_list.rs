//! Experiments, what is claimed, and what came of it the last time.

use crate::directories::{Directories, expectation, tagged};
use crate::error::{About as _, Result};
use byway_lab::expect::table::{Grid, GridRow};
use byway_lab::expect::{ClaimResult, Holds, Outcome, Reading, Verdict};
use byway_lab::headlines::{self, HeadlineResult};
use byway_lab::html_report::{self, ReportEntry};
use serde::Serialize;
use std::fs;
use std::path::Path;

/// Number of claims that hold, that are missed for a known reason, and that fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClaimCounts {
    /// Experiments that were run or listed.
    pub experiments: usize,
    /// Number of claims that hold.
    pub passed: usize,
    /// Claims that are missed for a reason that is known.
    pub known: usize,
    /// Claims that are missed.
    pub failed: usize,
}

impl ClaimCounts {
    /// Counts the claims in these outcomes.
    #[must_use]
    pub fn of<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Self {
        let mut tally = Self::default();
        for outcome in outcomes {
            tally.add(outcome);
        }
        tally
    }

    /// Adds the outcome of one experiment.
    pub fn add(&mut self, outcome: &Outcome) {
        self.experiments += 1;
        for claim in &outcome.claims {
            match claim.verdict {
                Verdict::Pass => self.passed += 1,
                Verdict::KnownMiss => self.known += 1,
                Verdict::Fail => self.failed += 1,
                Verdict::Report | Verdict::NotRun => {}
            }
        }
    }
}

/// Returns the experiments that have one of `tags`, each with its newest result. Without tags, all
/// experiments.
///
/// # Errors
/// The directory cannot be read, or an `expect.toml` is not valid.
pub fn entries(directories: &Directories, tags: &[String]) -> Result<Vec<ReportEntry>> {
    let mut entries = Vec::new();
    for experiment in directories.experiments()? {
        let expectation = expectation(&experiment)?;
        if tagged(&expectation, tags) {
            let (outcome, stale) = directories.last(&experiment, &expectation);
            entries.push(ReportEntry {
                paper: expectation.paper.clone().unwrap_or_default(),
                outcome,
                stale,
                missed: expectation.missed.clone(),
                not_run: expectation.not_run.clone(),
                figures: directories.figures(&experiment.id),
                experiment,
            });
        }
    }
    Ok(entries)
}

/// The sentences of the papers' abstracts, held against the results in `entries`.
///
/// # Errors
/// `headlines.toml` is not valid.
pub fn headlines(directories: &Directories, entries: &[ReportEntry]) -> Result<Vec<HeadlineResult>> {
    let outcome = |id: &str| {
        let entry = entries.iter().find(|entry| entry.experiment.id == id)?;
        entry.outcome.as_ref()
    };
    Ok(headlines::results(&directories.headlines()?, outcome))
}

/// Returns a row for each experiment: the number of its claims that hold, and why others are
/// missed.
#[must_use]
pub fn table(entries: &[ReportEntry]) -> Grid {
    let headings = ["experiment", "published", "second", "missed", "byway", "claim, and why it is missed"];
    let row = |entry: &ReportEntry| {
        let short = html_report::remark(entry);
        let title = html_report::title(&entry.experiment);
        let said = if short.is_empty() { title.to_owned() } else { format!("{title}: {short}") };
        let [published, second, missed, ours] = html_report::counts(entry);
        let cells = vec![entry.experiment.id.clone(), published, second, missed, ours, said];
        GridRow { cells, notes: Vec::new() }
    };
    Grid { headings: headings.map(str::to_owned).into(), keys: 1, rows: entries.iter().map(row).collect() }
}

/// Writes one page of HTML with claims, figures and verdicts.
///
/// # Errors
/// The file cannot be written.
pub fn write_page(entries: &[ReportEntry], headlines: &[HeadlineResult], file: &Path) -> Result<()> {
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory).about(|| directory.display().to_string())?;
    }
    fs::write(file, html_report::html(entries, headlines)).about(|| file.display().to_string())
}

/// The result of an experiment, for programs.
#[derive(Clone, Debug, Serialize)]
pub struct ExperimentSummary {
    /// The experiment's name.
    pub id: String,
    /// The worst verdict of the experiment's claims: pass, known, fail, not-run.
    pub verdict: &'static str,
    /// The measured value of the decisive claim. `None`: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// The bound of the deciding claim.
    pub bound: String,
    /// Whether the kept result is of a program whose quick form had another trace.
    pub stale: bool,
    /// Number of the paper's claims that hold as published.
    pub published: usize,
    /// Number of further claims that hold by a declared second reading.
    pub second: usize,
    /// Number of claims that hold by no reading.
    pub missed: usize,
    /// Number of claims about byway's own law that hold.
    pub ours: usize,
    /// Number of claims about byway's own law that are missed.
    pub ours_missed: usize,
    /// The results of all claims.
    pub claims: Vec<ClaimSummary>,
}

/// The result of a claim, for programs.
#[derive(Clone, Debug, Serialize)]
pub struct ClaimSummary {
    /// The claim's name.
    pub id: String,
    /// strict, second or ours: the reading of the paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reading: Option<Reading>,
    /// pass, known, fail, report or not-run.
    pub verdict: &'static str,
    /// The median of the measured values, at the worst value of the axes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// The claim's bound.
    pub bound: String,
    /// The paper's value, as the paper states it.
    pub paper: String,
    /// Why the claim is missed or was not run. `None`: it passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::KnownMiss => "known",
        Verdict::Fail => "fail",
        Verdict::Report => "report",
        Verdict::NotRun => "not-run",
    }
}

impl ClaimSummary {
    fn of(claim: &ClaimResult) -> Self {
        Self {
            id: claim.id.clone(),
            reading: claim.reading,
            verdict: word(claim.verdict),
            measured: claim.deciding().and_then(|measured| measured.median),
            bound: html_report::bound(claim),
            paper: claim.paper.clone().unwrap_or_default(),
            reason: claim.known.clone().or_else(|| claim.note.clone()),
        }
    }
}

impl ExperimentSummary {
    /// The summary of the experiment `id`: its outcome, or why it was not run.
    #[must_use]
    pub fn of(id: &str, outcome: Option<&Outcome>, not_run: Option<&str>) -> Self {
        let all = outcome.iter().flat_map(|outcome| &outcome.claims);
        let claims: Vec<ClaimSummary> = all.map(ClaimSummary::of).collect();
        let verdict = word(outcome.map_or(Verdict::NotRun, |outcome| outcome.verdict));
        let decides = claims.iter().find(|claim| claim.verdict == verdict);
        let bound = decides.map(|claim| claim.bound.clone()).or_else(|| not_run.map(str::to_owned));
        let holds = outcome.map(|outcome| Holds::of(&outcome.claims)).unwrap_or_default();
        Self {
            id: id.to_owned(),
            verdict,
            stale: false,
            published: holds.published,
            second: holds.by_reading,
            missed: holds.missed,
            ours: holds.ours,
            ours_missed: holds.ours_missed,
            measured: decides.and_then(|claim| claim.measured),
            bound: bound.unwrap_or_default(),
            claims,
        }
    }
}
