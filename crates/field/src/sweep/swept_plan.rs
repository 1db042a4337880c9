//! A plan that is swept: with its expectation, and what its rows are known by.

use crate::directories::Directories;
use crate::error::{About as _, Error, Result};
use crate::experiment_run::{self, Prepared, TaskResult};
use crate::program_hash::{hash, own_hash};
use byway_lab::expect::Expectation;
use byway_lab::measure::Measure;
use byway_lab::plan::{Mode, Overrides, Plan};
use byway_lab::sweep::{SweepIdentity, SweepTask};
use std::ops::RangeInclusive;

/// A plan that is swept, with its expectation.
#[derive(Debug)]
pub struct Sweep {
    task: experiment_run::Task,
    pub(super) directories: Directories,
    pub(super) mode: Mode,
    pub(super) overrides: Overrides,
    pub(super) plan: Plan,
    pub(super) expectation: Expectation,
    /// All that is asked of a run.
    pub(super) measures: Vec<Measure>,
    pub(super) identity: SweepIdentity,
}

impl Sweep {
    /// Reads the sweep of `what`: a plan (a file that ends in .toml) or the name of an experiment.
    ///
    /// # Errors
    /// There is no such plan, it is wrong, or it cannot be cut into runs.
    pub fn read(directories: Directories, what: &str, mode: Mode, overrides: Overrides) -> Result<Self> {
        let mut tasks = experiment_run::tasks(&directories, &[what.to_owned()], &[])?;
        let task = tasks.pop().ok_or_else(|| Error::NotFound(format!("there is no experiment {what}")))?;
        let (plan, expectation) = match task.prepared(mode, &overrides)? {
            Prepared::Ready(ready) => *ready,
            Prepared::Not(TaskResult::NotRun(why)) => {
                return Err(Error::Usage(format!("{what} is not run: {why}")));
            }
            Prepared::Not(_) => {
                return Err(Error::Usage(format!("{what} has no form for the mode {}", mode.name())));
            }
        };
        let measures = measures(&expectation)?;
        if let Some(measure) = measures.iter().find(|measure| !measure.asks_single_runs()) {
            return Err(Error::Usage(format!(
                "{what} cannot be cut into tasks: in `{}` the numbers of a question come from another variant",
                measure.text()
            )));
        }
        let identity = SweepIdentity::new(&plan, &measures, &own_hash()?, |text| hash(text.as_bytes()));
        Ok(Self { task, directories, mode, overrides, plan, expectation, measures, identity })
    }

    /// The name of the plan or experiment.
    #[must_use]
    pub fn id(&self) -> &str {
        self.task.id()
    }

    /// Returns the number of variants of the plan.
    #[must_use]
    pub fn variants(&self) -> usize {
        self.plan.variants.len()
    }

    /// The first and the last seed.
    #[must_use]
    pub fn seeds(&self) -> RangeInclusive<u64> {
        let range = self.plan.seed_range();
        range.start..=range.end.saturating_sub(1)
    }

    /// Refuses a task of another plan or program.
    pub(super) fn check(&self, task: &SweepTask) -> Result<()> {
        let (own, other) = (&self.identity, &task.identity);
        if other.program != own.program {
            return Err(Error::Usage(format!(
                "the task was cut by the program {}, and this is {}: all machines need one and the same file of byway",
                other.program, own.program
            )));
        }
        if task.mode != self.mode {
            let (theirs, ours) = (task.mode.name(), self.mode.name());
            return Err(Error::Usage(format!(
                "the task is of the mode {theirs}, and this is {ours}: give --quick or --full as to `lab tasks`"
            )));
        }
        if other.plan != own.plan {
            return Err(Error::Usage(format!(
                "the task is of the plan {}, and this is {}: the plan or what is measured was changed, or --sweep is not \
                 that of `lab tasks`",
                other.plan, own.plan
            )));
        }
        if task.variant > self.variants() {
            let variants = self.variants();
            return Err(Error::Usage(format!("the task is of variant {} of {variants}", task.variant)));
        }
        Ok(())
    }
}

/// All that is asked of a run: by claims, columns and figures.
fn measures(expectation: &Expectation) -> Result<Vec<Measure>> {
    let claims = expectation.claims.iter().map(|claim| claim.measure.clone());
    let shows = expectation.shows.iter().map(|show| show.measure.clone());
    let mut measures: Vec<Measure> = claims.chain(shows).collect();
    for figure in &expectation.figures {
        let measure = figure.question().map(|text| Measure::parse(&text)).transpose();
        measures.extend(measure.map_err(|error| Error::Usage(error.to_string())).about(|| &*figure.title)?);
    }
    Ok(measures)
}
