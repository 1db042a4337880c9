//! Makes a result of rows: the table and the verdicts of a local run.

use super::row_files;
use super::swept_plan::Sweep;
use crate::date::today;
use crate::error::{Error, Result};
use crate::experiment_run::{ExperimentResult, commit};
use crate::result_files::{ResultPlaces, RunResults};
use byway_lab::expect::{Outcome, Verdict};
use byway_lab::measure::{Records, SharedTexts};
use byway_lab::sweep::{Collection, SweepTask};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time between two lines of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
/// The most refused lines of one file that are named, and of all files.
const MAX_NAMED_LINES: usize = 3;
const MAX_NAMED_LINES_IN_ALL: usize = 30;

/// An event while rows are gathered.
#[derive(Clone, Debug)]
pub enum GatherEvent {
    /// Lines of a file are left out, and why.
    Refused(String),
    /// Files that were read, and of how many.
    Progress(usize, usize),
    /// A figure cannot be drawn, and why.
    NoFigure(String),
}

/// The result of gathering rows.
#[derive(Clone, Debug, Serialize)]
pub struct Gathered {
    /// The result. `None`: there is no row of this sweep.
    #[serde(skip)]
    pub result: Option<Box<ExperimentResult>>,
    /// The runs that have no row, as tasks.
    #[serde(skip)]
    pub tasks: Vec<SweepTask>,
    /// Number of runs without a row.
    pub missing: u64,
    /// Number of lines that were left out.
    pub refused: usize,
}

impl Gathered {
    /// Whether no run is missing and no claim fails.
    #[must_use]
    pub fn is_whole_and_holds(&self) -> bool {
        let verdict = self.result.as_ref().map(|result| result.outcome.verdict);
        self.missing == 0 && verdict.is_some_and(|verdict| verdict < Verdict::Fail)
    }
}

impl Sweep {
    /// Reads rows from files and directories, and writes the result: `csv` gets a row for each run.
    ///
    /// # Errors
    /// A file cannot be read or written, or a run has two rows that differ.
    pub fn gather(
        &self,
        places: &[PathBuf],
        csv: Option<&Path>,
        mut tell: impl FnMut(GatherEvent),
    ) -> Result<Gathered> {
        let begun = Instant::now();
        let mut told = begun;
        let files = row_files::files(places)?;
        let (mut collection, mut texts) = (Collection::new(&self.plan), SharedTexts::default());
        let mut refused = 0;
        for (number, file) in files.iter().enumerate() {
            let mut named = 0;
            let take = |_: &str, row: byway_lab::sweep::Row| {
                let name = file.display();
                collection.add(row.answers).map_err(|conflict| Error::Failed(format!("{name}: {conflict}")))
            };
            self.read_rows(file, &mut texts, take, |line| {
                refused += 1;
                named += 1;
                let more =
                    if named == MAX_NAMED_LINES { "; further lines of this file are not named" } else { "" };
                if named <= MAX_NAMED_LINES && refused <= MAX_NAMED_LINES_IN_ALL {
                    let place = format!("{}:{}", file.display(), line.number);
                    tell(GatherEvent::Refused(format!("{place}: left out: {}{more}", line.why)));
                }
            })?;
            if told.elapsed() >= PROGRESS_INTERVAL {
                told = Instant::now();
                tell(GatherEvent::Progress(number + 1, files.len()));
            }
        }
        if refused > MAX_NAMED_LINES_IN_ALL {
            tell(GatherEvent::Refused(format!("{refused} lines are left out in all")));
        }
        let seeds = self.seeds();
        let tasks = collection.missing(&self.identity, self.mode, &seeds);
        let missing = tasks.iter().map(|task| task.seeds.end() - task.seeds.start() + 1).sum();
        let runs = collection.into_runs(&seeds);
        if runs.is_empty() {
            return Ok(Gathered { result: None, tasks, missing, refused });
        }
        let indexed = Records::of_answers(&runs)?;
        let judged = self.expectation.judge(&indexed, self.mode);
        let commit = commit(&self.directories);
        let mut outcome = Outcome::new(self.id(), self.mode, &commit, &today(), &runs, judged);
        outcome.whole = missing == 0 && self.overrides.is_empty();
        let places = ResultPlaces { directory: self.directories.results(self.id()), csv, kept: None };
        let written = RunResults { indexed: &indexed, records: &[], outcome: &outcome };
        written.write(&places, &self.expectation, |why| tell(GatherEvent::NoFigure(why)))?;
        let packets = runs.iter().fold(0, |sum: u64, run| sum.saturating_add(run.packets));
        let seconds = begun.elapsed().as_secs_f64();
        let result = ExperimentResult { outcome, not_kept: None, runs: runs.len(), packets, seconds };
        Ok(Gathered { result: Some(Box::new(result)), tasks, missing, refused })
    }
}
