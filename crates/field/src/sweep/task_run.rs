//! Runs a task.

use super::row_files::{self, RowTarget};
use super::swept_plan::Sweep;
use crate::error::{Error, Result};
use crate::quiet_panics::QuietPanics;
use byway_lab::measure::SharedTexts;
use byway_lab::runner::run_caught;
use byway_lab::sweep::{Row, SweepTask};
use byway_lab::world::RunError;
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time between two reports of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// A run that panicked. It leaves no row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedRun {
    /// The seed of the run.
    pub seed: u64,
    /// The message of the panic.
    pub what: String,
}

/// The result of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TaskRows {
    /// Rows that were there already.
    pub there: usize,
    /// Runs that were made now.
    pub ran: usize,
    /// Runs that panicked.
    pub failed: Vec<FailedRun>,
    /// Runs that were not made, since the task was stopped.
    pub stopped: usize,
}

/// The result of one run.
enum RunRow {
    Line(String),
    Panicked(String),
    Stopped,
}

impl Sweep {
    /// Runs the seeds of `task` that have no row yet, and writes all rows of the task at once. Once
    /// `cancel` is set, no further run begins, and the rows of finished runs are written.
    /// `progress` hears every few seconds how many runs are done, and of how many.
    ///
    /// # Errors
    /// The task is of another plan or program, the plan's world is wrong, or rows cannot be
    /// written.
    pub fn run_task(
        &self,
        task: &SweepTask,
        target: &RowTarget,
        cancel: &AtomicBool,
        progress: impl FnMut(usize, usize) + Send,
    ) -> Result<TaskRows> {
        self.check(task)?;
        let mut lines = match target {
            RowTarget::Directory(directory) => self.there(&directory.join(task.file_name()), task)?,
            RowTarget::Output => BTreeMap::new(),
        };
        let mut outcome = TaskRows { there: lines.len(), ..TaskRows::default() };
        let wanted: Vec<u64> = task.seeds.clone().filter(|seed| !lines.contains_key(seed)).collect();
        if wanted.is_empty() {
            return Ok(outcome);
        }
        let _quiet = QuietPanics::begin();
        let teller = Mutex::new((progress, Instant::now(), 0));
        let rows: Vec<(u64, RunRow)> = wanted
            .par_iter()
            .with_max_len(1)
            .map(|&seed| {
                let row = self.run_seed(task.variant, seed, cancel)?;
                if let Ok(mut teller) = teller.lock() {
                    teller.2 += 1;
                    if teller.1.elapsed() >= PROGRESS_INTERVAL {
                        let (progress, told, done) = &mut *teller;
                        *told = Instant::now();
                        progress(*done, wanted.len());
                    }
                }
                Ok((seed, row))
            })
            .collect::<Result<_>>()?;
        for (seed, row) in rows {
            match row {
                RunRow::Line(line) => {
                    outcome.ran += 1;
                    lines.insert(seed, line);
                }
                RunRow::Panicked(what) => outcome.failed.push(FailedRun { seed, what }),
                RunRow::Stopped => outcome.stopped += 1,
            }
        }
        let lines: Vec<String> = lines.into_values().collect();
        match target {
            RowTarget::Directory(_) if outcome.ran == 0 => {}
            RowTarget::Directory(directory) => row_files::write(directory, &task.file_name(), &lines)?,
            RowTarget::Output => row_files::print(&lines)?,
        }
        Ok(outcome)
    }

    /// Returns the rows of the task that its file already has, by seed. From a damaged file, it
    /// returns the complete rows.
    fn there(&self, file: &Path, task: &SweepTask) -> Result<BTreeMap<u64, String>> {
        let mut lines = BTreeMap::new();
        if !file.exists() {
            return Ok(lines);
        }
        let axes = &self.plan.variants[task.variant - 1].axes;
        let take = |line: &str, row: Row| {
            if *row.answers.axes == **axes && task.seeds.contains(&row.answers.seed) {
                lines.insert(row.answers.seed, line.to_owned());
            }
            Ok(())
        };
        self.read_rows(file, &mut SharedTexts::default(), take, drop)?;
        Ok(lines)
    }

    fn run_seed(&self, variant: usize, seed: u64, cancel: &AtomicBool) -> Result<RunRow> {
        if cancel.load(Ordering::Relaxed) {
            return Ok(RunRow::Stopped);
        }
        match run_caught(&self.plan.variants[variant - 1], seed, cancel) {
            Ok(Ok(record)) => Ok(RunRow::Line(Row::line(&self.identity, &record, &self.measures)?)),
            Ok(Err(RunError::Cancelled)) => Ok(RunRow::Stopped),
            Ok(Err(error)) => Err(Error::Usage(format!("{}: {error}", self.id()))),
            Err(said) => Ok(RunRow::Panicked(said)),
        }
    }
}
