//! Runs every variant of a plan with every seed, on all cores; what comes out does not depend on
//! how many there are.

use crate::plan::Plan;
use crate::record::Record;
use crate::setup::Setup;
use crate::world::{self, RunError};
use core::any::Any;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use rayon::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The results of running a plan.
#[derive(Debug, Default)]
pub struct RunOutcome {
    /// The records of finished runs, in order of variant and seed.
    pub records: Vec<Record>,
    /// The number of runs in the plan.
    pub planned: usize,
    /// The first thing that was wrong with the plan's world, if any.
    pub error: Option<RunError>,
}

/// Runs a variant with a seed, as [`world::run`] does. `Err`: it panicked, with this message.
///
/// # Errors
/// The message of the panic.
pub fn run_caught(setup: &Setup, seed: u64, cancel: &AtomicBool) -> Result<Result<Record, RunError>, String> {
    catch_unwind(AssertUnwindSafe(|| world::run(setup, seed, cancel))).map_err(|panic| sentence(&*panic))
}

fn sentence(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message").to_owned()
}

/// Runs every variant of `plan` with every seed. `progress` gets how many runs are done, and how
/// many there are. Once `cancel` is set, no further run begins, active runs stop, and finished runs
/// are kept.
#[must_use]
pub fn run(plan: &Plan, cancel: &AtomicBool, progress: &(dyn Fn(usize, usize) + Sync)) -> RunOutcome {
    let jobs: Vec<(&Setup, u64)> =
        plan.variants.iter().flat_map(|setup| plan.seed_range().map(move |seed| (setup, seed))).collect();
    let done = AtomicUsize::new(0);
    let results: Vec<Option<Result<Record, RunError>>> = jobs
        .par_iter()
        // Each thread takes one run at a time. Runs differ much in length, so a fixed block of long
        // runs would keep one core busy while the others idle.
        .with_max_len(1)
        .map(|(setup, seed)| {
            if cancel.load(Ordering::Relaxed) {
                return None;
            }
            let result = world::run(setup, *seed, cancel);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
            Some(result)
        })
        .collect();
    let mut outcome = RunOutcome { planned: jobs.len(), ..RunOutcome::default() };
    for result in results.into_iter().flatten() {
        match result {
            Ok(record) => outcome.records.push(record),
            Err(RunError::Cancelled) => {}
            Err(error) => outcome.error = outcome.error.or(Some(error)),
        }
    }
    outcome
}
