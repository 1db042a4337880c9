//! The arguments of `byway lab`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `byway lab`
#[derive(Clone, Debug, Args)]
#[command(before_help = "\
Examples:
  byway lab list                          every experiment: paper, claim, last verdict
  byway lab run harp-6a                   its seeds on all cores; table, verdict, figures
  byway lab run --quick                   all experiments in their quick form
  byway lab run my-plan.toml --sweep congestion=harp,mpath,lia,cubic --seeds 20 --csv out.csv
  byway lab report                        one HTML page of everything that was run and kept
  byway lab fuzz --seeds 1000             random worlds and faults; prints the seed that fails
  byway lab bench                         how fast the simulator is on this machine")]
pub struct Lab {
    /// What to do.
    #[command(subcommand)]
    pub command: LabCommand,
}

/// What the lab does.
#[derive(Clone, Debug, Subcommand)]
pub enum LabCommand {
    /// List the experiments with the verdict of their last run
    List(LabList),
    /// Run experiments or plans of your own, and hold what is claimed against what comes out
    Run(LabRun),
    /// Write one HTML page with claims, figures and verdicts
    Report(LabReport),
    /// Run random worlds with random faults; every law is asserted at every event
    Fuzz(LabFuzz),
    /// Measure how many packets per second the simulator moves on one core
    Bench(LabBench),
    /// List the networks that a plan can name
    Topologies,
    /// List the congestion controllers that a plan can name, with their options
    Controllers,
}

/// Where experiments are.
#[derive(Clone, Debug, Default, Args)]
pub struct Where {
    /// Directory with a folder for each experiment [default: those that came with the program]
    #[arg(long, value_name = "DIR", env = "BYWAY_EXPERIMENTS")]
    pub experiments: Option<PathBuf>,
    /// Directory for results and figures
    #[arg(long, value_name = "DIR", default_value = "byway-lab")]
    pub out: PathBuf,
}

/// `byway lab list`
#[derive(Clone, Debug, Args)]
pub struct LabList {
    /// Where experiments are.
    #[command(flatten)]
    pub place: Where,
    /// Only those with this tag; repeatable
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
}

/// `byway lab run`
#[derive(Clone, Debug, Args)]
#[command(before_help = "\
Examples:
  byway lab run harp-6a hir-10
  byway lab run --quick --tag mpath
  byway lab run plan.toml --sweep congestion=harp,cubic --seeds 20 --csv out.csv
  byway lab run harp-fig3 --trace")]
pub struct LabRun {
    /// Experiments by name, or plans (files that end in .toml) [default: all experiments]
    #[arg(value_name = "EXPERIMENT|PLAN")]
    pub what: Vec<String>,
    /// Where experiments are.
    #[command(flatten)]
    pub place: Where,
    /// Their quick form: minutes for all together
    #[arg(long, conflicts_with_all = ["all", "full"])]
    pub quick: bool,
    /// The plans as they stand: what is run without --quick and --full
    #[arg(long, conflicts_with = "full")]
    pub all: bool,
    /// At the scale of the papers: hours
    #[arg(long)]
    pub full: bool,
    /// Only those with this tag; repeatable
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// Other values for an axis of the sweep, as AXIS=VALUE,VALUE; repeatable
    #[arg(long, value_name = "AXIS=VALUES", value_parser = parse_sweep)]
    pub sweep: Vec<(String, Vec<String>)>,
    /// How many seeds [default: as the plan says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub seeds: Option<u32>,
    /// Write a row per variant and seed to this file
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Keep the verdicts in the experiments' own folders (needs --experiments)
    #[arg(long, requires = "experiments")]
    pub keep: bool,
    /// Also write what happened on every path, by sample, as JSON lines, and the packets of the first run as pcapng
    #[arg(long)]
    pub trace: bool,
    /// How many runs at once [default: one per core]
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
}

/// `byway lab report`
#[derive(Clone, Debug, Args)]
pub struct LabReport {
    /// Where experiments are.
    #[command(flatten)]
    pub place: Where,
    /// The page [default: report.html in the directory of results]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// `byway lab fuzz`
#[derive(Clone, Debug, Args)]
pub struct LabFuzz {
    /// How many worlds
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub seeds: u64,
    /// The first seed, to see one again
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub first: u64,
}

/// `byway lab bench`
#[derive(Clone, Debug, Args)]
pub struct LabBench {
    /// Only the benches whose name contains this
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Seconds of wall time for each
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0)]
    pub seconds: f64,
    /// Also count the instructions of a packet-hop, which no other program disturbs (needs valgrind; a minute or two)
    #[arg(long)]
    pub instructions: bool,
    /// Run once for so many simulated seconds, and only say how many hops that were
    #[arg(long, hide = true, value_name = "SECONDS")]
    pub once: Option<u32>,
}

fn parse_sweep(text: &str) -> Result<(String, Vec<String>), String> {
    match text.split_once('=') {
        Some((axis, values)) if !axis.is_empty() && !values.is_empty() => {
            Ok((axis.to_owned(), values.split(',').map(|value| value.trim().to_owned()).collect()))
        }
        _ => Err(format!("`{text}`: expected for example congestion=harp,mpath")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_is_an_axis_and_values() {
        assert_eq!(parse_sweep("n=1, 2"), Ok(("n".into(), vec!["1".into(), "2".into()])));
        for wrong in ["n", "=1", "n="] {
            assert!(parse_sweep(wrong).is_err(), "{wrong}");
        }
    }
}
