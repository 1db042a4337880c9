//! Cuts a sweep into tasks.

use super::swept_plan::Sweep;
use crate::error::{Error, Result};
use crate::thread_time::thread_seconds;
use byway_lab::runner::run_caught;
use byway_lab::sweep::{SweepTask, cut, seeds_per_task};
use byway_lab::world::RunError;
use rayon::prelude::*;
use serde::Serialize;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The length of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskLength {
    /// This time of a processor. One run of each variant is timed.
    Time(Duration),
    /// This number of runs. Nothing is timed.
    Runs(u64),
}

/// The tasks of a sweep.
#[derive(Clone, Debug, Serialize)]
pub struct TaskList {
    /// The tasks, by variant and seed.
    #[serde(skip)]
    pub list: Vec<SweepTask>,
    /// The number of tasks.
    pub tasks: usize,
    /// The number of runs.
    pub runs: u64,
    /// Processor seconds of all tasks, estimated from one timed run per variant. `None`: no run was
    /// timed.
    pub seconds: Option<f64>,
}

impl fmt::Display for TaskList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tasks, {} runs", self.tasks, self.runs)?;
        let Some(seconds) = self.seconds else { return Ok(()) };
        let (time, unit) = match seconds {
            short if short < 120.0 => (seconds, "seconds"),
            long if long < 7_200.0 => (seconds / 60.0, "minutes"),
            _ => (seconds / 3_600.0, "hours"),
        };
        write!(f, ", about {time:.1} {unit} of one processor")
    }
}

impl Sweep {
    /// The tasks of the sweep. To time runs takes one run of each variant, on all cores.
    ///
    /// # Errors
    /// A run could not be timed.
    pub fn tasks(&self, length: TaskLength, cancel: &AtomicBool) -> Result<TaskList> {
        let seeds = u64::from(self.plan.seeds);
        let (per_task, seconds) = match length {
            TaskLength::Runs(runs) => (vec![runs; self.variants()], None),
            TaskLength::Time(time) => {
                let timed = self.timed(cancel)?;
                let per_task = |&run: &f64| seeds_per_task(run, time.as_secs_f64());
                (timed.iter().map(per_task).collect(), Some(timed.iter().sum::<f64>() * seeds as f64))
            }
        };
        let list: Vec<_> = cut(&self.identity, self.mode, self.seeds(), &per_task).collect();
        Ok(TaskList { tasks: list.len(), list, runs: seeds * self.variants() as u64, seconds })
    }

    /// Seconds of a processor that one run of each variant takes.
    fn timed(&self, cancel: &AtomicBool) -> Result<Vec<f64>> {
        let seed = *self.seeds().start();
        let timed = |setup: &_| {
            let begun = thread_seconds();
            let ran = run_caught(setup, seed, cancel);
            match ran {
                // A run that panics is a task's to tell.
                Ok(Ok(_)) | Err(_) => Ok(thread_seconds() - begun),
                Ok(Err(RunError::Cancelled)) => Err(Error::Failed("stopped".to_owned())),
                Ok(Err(error)) => Err(Error::Usage(format!("{}: {error}", self.id()))),
            }
        };
        self.plan.variants.par_iter().with_max_len(1).map(timed).collect()
    }
}
