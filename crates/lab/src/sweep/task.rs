//! A task: some seeds of one variant, as a line that a shell takes as one word in quotes.

use super::identity::SweepIdentity;
use crate::plan::{MAX_SEED, MAX_SEEDS, Mode};
use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;
use thiserror::Error;

/// Some seeds of one variant of a plan. As text it is `PLAN PROGRAM MODE VARIANT FIRST..LAST`, for
/// example `3f2a91c04be877d1 6e6671cc90aa1b37 all 12 17..32`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepTask {
    /// The plan and the program of the task.
    pub identity: SweepIdentity,
    /// The mode of the plan.
    pub mode: Mode,
    /// The number of the variant in the plan, from 1.
    pub variant: usize,
    /// The seeds: at least one, at most [`MAX_SEEDS`].
    pub seeds: RangeInclusive<u64>,
}

/// A line is no task.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}`: expected a line of `byway lab tasks`, such as `{EXAMPLE_LINE}`")]
pub struct TaskError(String);

const EXAMPLE_LINE: &str = "3f2a91c04be877d1 6e6671cc90aa1b37 all 12 17..32";

impl fmt::Display for SweepTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SweepIdentity { plan, program } = &self.identity;
        let (first, last) = (self.seeds.start(), self.seeds.end());
        write!(f, "{plan} {program} {} {} {first}..{last}", self.mode.name(), self.variant)
    }
}

impl FromStr for SweepTask {
    type Err = TaskError;

    fn from_str(line: &str) -> Result<Self, TaskError> {
        Self::read(line).ok_or_else(|| TaskError(line.trim().chars().take(EXAMPLE_LINE.len() * 2).collect()))
    }
}

impl SweepTask {
    fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [plan, program, mode, variant, seeds] = words.as_slice() else { return None };
        let is_hash = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (first, last) = seeds.split_once("..")?;
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        let task = Self {
            identity: SweepIdentity { plan: (*plan).to_owned(), program: (*program).to_owned() },
            mode: Mode::EVERY.into_iter().find(|known| known.name() == *mode)?,
            variant: variant.parse().ok()?,
            seeds: first..=last,
        };
        let are_seeds = first <= last && last <= MAX_SEED && last - first < u64::from(MAX_SEEDS);
        (is_hash(plan) && is_hash(program) && task.variant > 0 && are_seeds).then_some(task)
    }

    /// The name of the file for the rows of this task. No two tasks of a sweep share one.
    #[must_use]
    pub fn file_name(&self) -> String {
        let SweepIdentity { plan, program } = &self.identity;
        let (first, last) = (self.seeds.start(), self.seeds.end());
        format!("{plan}-{program}-{}-{first}-{last}.ndjson", self.variant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_read_as_it_is_written() {
        let task: SweepTask = EXAMPLE_LINE.parse().expect("a task");
        assert_eq!(task.seeds, 17..=32);
        assert_eq!((task.mode, task.variant), (Mode::All, 12));
        assert_eq!(task.to_string(), EXAMPLE_LINE);
        assert_eq!(task.file_name(), "3f2a91c04be877d1-6e6671cc90aa1b37-12-17-32.ndjson");
    }

    #[test]
    fn what_is_no_task_is_refused() {
        for line in [
            "",
            "3f2a 6e66 all 12",
            "3f2a 6e66 all 12 17..32 more",
            "3f2a 6e66 some 12 17..32",
            "3f2a 6e66 all 0 17..32",
            "3f2a 6e66 all 12 32..17",
            "3f2a 6e66 all 12 17-32",
            "../x 6e66 all 12 17..32",
            "3f2a 6e66 all 12 17..99999999999999999999",
            "3f2a 6e66 all 12 0..1000000",
        ] {
            assert!(line.parse::<SweepTask>().is_err(), "{line}");
        }
    }
}
