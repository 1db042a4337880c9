//! The rows of one sweep.

use super::identity::SweepIdentity;
use super::task::SweepTask;
use crate::measure::RunAnswers;
use crate::plan::{Mode, Plan};
use crate::record::RunIdentity as _;
use core::ops::RangeInclusive;
use std::collections::BTreeMap;
use thiserror::Error;

/// Rows by variant and seed.
#[derive(Debug, Default)]
pub struct Collection {
    /// The number of each variant, from 1, by its labels.
    variants: BTreeMap<Vec<(String, String)>, usize>,
    rows: BTreeMap<(usize, u64), RunAnswers>,
}

/// Why a row does not belong to the others.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RowConflict {
    /// The plan does not have this variant.
    #[error("the plan has no variant {0}")]
    Variant(String),
    /// The same run came out in two ways. The simulator promises that it does not.
    #[error(
        "seed {seed} of variant {variant} has two different rows: the same program gave two results for one run, \
         which is a fault in the program or in a machine that ran it"
    )]
    Differs {
        /// The number of the variant, from 1.
        variant: usize,
        /// The seed.
        seed: u64,
    },
}

impl Collection {
    /// An empty collection for the variants of `plan`.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let numbered = plan.variants.iter().zip(1..).map(|(setup, number)| (setup.axes.clone(), number));
        Self { variants: numbered.collect(), rows: BTreeMap::new() }
    }

    /// Adds a row. One that is there already is left out.
    ///
    /// # Errors
    /// The row does not belong to the plan, or differs from the one that is there.
    pub fn add(&mut self, answers: RunAnswers) -> Result<(), RowConflict> {
        let Some(&variant) = self.variants.get(answers.axes()) else {
            let labels: Vec<String> =
                answers.axes().iter().map(|(axis, label)| format!("{axis}={label}")).collect();
            return Err(RowConflict::Variant(format!("[{}]", labels.join(", "))));
        };
        let seed = answers.seed;
        match self.rows.get(&(variant, seed)) {
            Some(there) if *there == answers => Ok(()),
            Some(_) => Err(RowConflict::Differs { variant, seed }),
            None => {
                self.rows.insert((variant, seed), answers);
                Ok(())
            }
        }
    }

    /// Whether there is a row for this run.
    #[must_use]
    pub fn has(&self, variant: usize, seed: u64) -> bool {
        self.rows.contains_key(&(variant, seed))
    }

    /// The runs of `seeds` that have no row, as tasks.
    #[must_use]
    pub fn missing(
        &self,
        identity: &SweepIdentity,
        mode: Mode,
        seeds: &RangeInclusive<u64>,
    ) -> Vec<SweepTask> {
        let mut tasks: Vec<SweepTask> = Vec::new();
        for variant in 1..=self.variants.len() {
            for seed in seeds.clone().filter(|&seed| !self.has(variant, seed)) {
                match tasks.last_mut() {
                    Some(last) if last.variant == variant && last.seeds.end() + 1 == seed => {
                        last.seeds = *last.seeds.start()..=seed;
                    }
                    _ => tasks.push(SweepTask {
                        identity: identity.clone(),
                        mode,
                        variant,
                        seeds: seed..=seed,
                    }),
                }
            }
        }
        tasks
    }

    /// The rows of `seeds`, in order of variant and seed.
    #[must_use]
    pub fn into_runs(self, seeds: &RangeInclusive<u64>) -> Vec<RunAnswers> {
        let wanted = self.rows.into_iter().filter(|((_, seed), _)| seeds.contains(seed));
        wanted.map(|(_, answers)| answers).collect()
    }
}
