//! Runs every variant of a plan with every seed, on all cores; what comes out does not depend on
//! how many there are.

use crate::plan::Plan;
use crate::record::Record;
use crate::setup::Setup;
use crate::world::{self, RunError};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use rayon::prelude::*;

/// What came of a plan.
#[derive(Debug, Default)]
pub struct RunOutcome {
    /// What finished, in order of variant and seed.
    pub records: Vec<Record>,
    /// How many runs there should have been.
    pub planned: usize,
    /// The first thing that was wrong with the plan's world, if any.
    pub error: Option<RunError>,
}

/// Runs `plan`; `progress` hears how many of how many are done. Once `cancel` is set no further run
/// begins, those under way stop, and what has finished is kept.
#[must_use]
pub fn run(plan: &Plan, cancel: &AtomicBool, progress: &(dyn Fn(usize, usize) + Sync)) -> RunOutcome {
    let jobs: Vec<(&Setup, u64)> = plan
        .variants
        .iter()
        .flat_map(|setup| (1..=u64::from(plan.seeds)).map(move |seed| (setup, seed)))
        .collect();
    let done = AtomicUsize::new(0);
    let results: Vec<Option<Result<Record, RunError>>> = jobs
        .par_iter()
        // One at a time: runs differ much in length, and a whole block of long ones would keep one
        // core busy alone.
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
