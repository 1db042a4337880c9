//! The arguments of `byway lab tasks`, `task` and `gather`.

use super::lab_options::{Where, parse_sweep};
use crate::units::parse_duration;
use byway_lab::plan::{Mode, Overrides, SeedChoice};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// What is swept. All three verbs take the same.
#[derive(Clone, Debug, Args)]
pub struct SweepChoice {
    /// A plan (a file that ends in .toml) or an experiment by name
    #[arg(value_name = "PLAN|EXPERIMENT")]
    pub what: String,
    /// Where experiments are.
    #[command(flatten)]
    pub place: Where,
    /// The quick form of the plan
    #[arg(long, conflicts_with = "full")]
    pub quick: bool,
    /// The plan at the scale of the paper
    #[arg(long)]
    pub full: bool,
    /// Other values for an axis of the sweep, as AXIS=VALUE,VALUE; repeatable
    #[arg(long, value_name = "AXIS=VALUES", value_parser = parse_sweep)]
    pub sweep: Vec<(String, Vec<String>)>,
}

impl SweepChoice {
    /// The mode of the plan.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        match (self.quick, self.full) {
            (true, _) => Mode::Quick,
            (_, true) => Mode::Full,
            _ => Mode::All,
        }
    }

    /// The plan's values and seeds that are replaced.
    #[must_use]
    pub fn overrides(&self, seeds: Option<SeedChoice>) -> Overrides {
        Overrides { seeds, sweep: self.sweep.clone() }
    }
}

/// `byway lab tasks`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/lab-tasks.txt").trim_end())]
pub struct LabTasks {
    /// What is swept.
    #[command(flatten)]
    pub choice: SweepChoice,
    /// How many seeds, or which: 10000, or 17..32 [default: as the plan says]
    #[arg(long, value_name = "N|FIRST..LAST")]
    pub seeds: Option<SeedChoice>,
    /// How long a task takes on one processor. One run of each variant is timed to know it
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    pub per: Duration,
    /// How many runs a task has; nothing is timed
    #[arg(long, value_name = "N", conflicts_with = "per", value_parser = clap::value_parser!(u64).range(1..))]
    pub runs: Option<u64>,
}

/// `byway lab task`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/lab-task.txt").trim_end())]
pub struct LabTask {
    /// What is swept.
    #[command(flatten)]
    pub choice: SweepChoice,
    /// A line of `byway lab tasks`, with or without quotes
    #[arg(value_name = "TASK", required = true)]
    pub task: Vec<String>,
    /// Directory for the rows, a file for each task; - prints them
    #[arg(long, value_name = "DIR")]
    pub rows: PathBuf,
    /// How many runs at once. Schedulers count on one
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub jobs: usize,
}

/// `byway lab gather`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/lab-gather.txt").trim_end())]
pub struct LabGather {
    /// What is swept.
    #[command(flatten)]
    pub choice: SweepChoice,
    /// Files of rows, or directories with such files
    #[arg(value_name = "ROWS", required = true)]
    pub rows: Vec<PathBuf>,
    /// How many seeds, or which: as given to `lab tasks` [default: as the plan says]
    #[arg(long, value_name = "N|FIRST..LAST")]
    pub seeds: Option<SeedChoice>,
    /// Write a row per variant and seed to this file
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the runs that are missing to this file, as tasks
    #[arg(long, value_name = "FILE")]
    pub missing: Option<PathBuf>,
}
