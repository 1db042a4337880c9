//! The arguments of `byway lab`.

use super::lab_options::{Where, parse_sweep};
use super::sweep::{LabGather, LabTask, LabTasks};
use crate::units::parse_duration;
use byway_field::network::NetworkRequest;
use byway_lab::plan::SeedChoice;
use byway_lab::scoreboard::{CellFilter, LineHalf, LineSet};
use byway_lab::sweep::Part;
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// `byway lab`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/lab.txt").trim_end())]
pub struct Lab {
    /// What to do.
    #[command(subcommand)]
    pub command: LabCommand,
}

/// What the lab does.
#[derive(Clone, Debug, Subcommand)]
pub enum LabCommand {
    /// List the experiments: what is claimed, and how many claims held in the last run
    List(LabList),
    /// Print the plan of an experiment, for instance to change a copy of it
    Show(LabShow),
    /// Run experiments or plans of your own, and hold what is claimed against what comes out
    Run(LabRun),
    /// Cut a plan into tasks for many machines, a line each
    Tasks(LabTasks),
    /// Run a task of a plan, anywhere, and leave a row for each run
    Task(LabTask),
    /// Make the table and the verdicts of a local run from rows
    Gather(LabGather),
    /// Write one HTML page with claims, figures and verdicts
    Report(LabReport),
    /// Run random worlds with random faults; every law is asserted at every event
    Fuzz(LabFuzz),
    /// Measure what small requests wait for beside bulk transfers, on an emulated link
    Harm(LabHarm),
    /// Hold laws for the background against each other on a grid of simulated lines
    Scoreboard(LabScoreboard),
    /// List the networks that a plan can name
    #[command(before_help = include_str!("examples/lab-topologies.txt").trim_end())]
    Topologies,
    /// List the congestion controllers that a plan, `--congestion` and gateways can name, with
    /// their options
    #[command(before_help = include_str!("examples/lab-controllers.txt").trim_end())]
    Controllers,
    /// Write a crate to begin with for a congestion controller of your own
    NewController(LabNewController),
    /// Build the network of a plan on this machine, with real kernels and the simulator's links
    Up(LabUp),
    /// Run a program on a host of a lab that is up
    Exec(LabExec),
    /// Say how labs that are up are doing
    Status(LabStatus),
    /// Take a lab down, with all that runs in it
    Down(LabDown),
    /// Be a lab (what `up` starts)
    #[command(hide = true)]
    Keep(LabUp),
    /// Be a program on a host (what `exec` starts)
    #[command(hide = true)]
    Inside(LabInside),
    /// Answer requests of `fetch`, for emulated runs
    #[command(hide = true)]
    Serve(LabServe),
    /// Run the requests that standard input names, for emulated runs
    #[command(hide = true)]
    Fetch(LabFetch),
}

/// `byway lab new-controller`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/lab-new-controller.txt").trim_end())]
pub struct LabNewController {
    /// The name of the controller, and of the folder that is made
    #[arg(value_name = "NAME")]
    pub name: String,
    /// A clone of byway to build with [default: from where it is published]
    #[arg(long, value_name = "DIR")]
    pub byway: Option<PathBuf>,
}

/// `byway lab up`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/lab-up.txt").trim_end())]
pub struct LabUp {
    /// A plan (a file that ends in .toml), an experiment or a topology by name
    #[arg(value_name = "PLAN|EXPERIMENT|TOPOLOGY")]
    pub what: String,
    /// Call it so [default: after the plan]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The seed of all that is random about the links
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Of a plan with a sweep: which variant, as AXIS=VALUE; repeatable
    #[arg(long, value_name = "AXIS=VALUE", value_parser = parse_sweep)]
    pub sweep: Vec<(String, Vec<String>)>,
    /// Of a topology: a parameter, as NAME=NUMBER; repeatable
    #[arg(long, value_name = "NAME=NUMBER", value_parser = parse_parameter)]
    pub set: Vec<(String, f64)>,
    /// Where experiments are [default: those that came with the program]
    #[arg(long, value_name = "DIR", env = "BYWAY_EXPERIMENTS")]
    pub experiments: Option<PathBuf>,
    /// End when standard input does (labs of `run --emulate` and `harm`)
    #[arg(long, hide = true)]
    pub owned: bool,
}

impl LabUp {
    /// The network that is asked for.
    #[must_use]
    pub fn wanted(&self) -> NetworkRequest {
        NetworkRequest {
            what: self.what.clone(),
            name: self.name.clone(),
            seed: self.seed,
            sweep: self.sweep.clone(),
            set: self.set.clone(),
            experiments: self.experiments.clone(),
        }
    }
}

/// `byway lab exec`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/lab-exec.txt").trim_end())]
pub struct LabExec {
    /// The host
    #[arg(value_name = "HOST")]
    pub host: String,
    /// The lab [default: the only one that is up]
    #[arg(long, value_name = "NAME")]
    pub lab: Option<String>,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub program: Vec<OsString>,
}

/// `byway lab status`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/lab-status.txt").trim_end())]
pub struct LabStatus {
    /// The lab [default: all that are up]
    #[arg(value_name = "NAME")]
    pub lab: Option<String>,
}

/// `byway lab down`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/lab-down.txt").trim_end())]
pub struct LabDown {
    /// The lab [default: the only one that is up]
    #[arg(value_name = "NAME")]
    pub lab: Option<String>,
    /// All of them
    #[arg(long, conflicts_with = "lab")]
    pub all: bool,
}

/// `byway lab harm`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/lab-harm.txt").trim_end())]
pub struct LabHarm {
    /// Who transfers. cubic, bbr and reno are the kernel's TCP. byway is its background class, and
    /// byway:NAME another controller of byway's. ledbat is libtorrent's µTP, left out where no
    /// python3 has libtorrent. gateways is the kernel's CUBIC between hosts behind byway's
    /// gateways. gateways:NAME is the same with another controller between these
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "cubic,bbr,reno,ledbat,byway")]
    pub against: Vec<String>,
    /// How many transfers at once; each number is a run
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "1,8", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub bulk: Vec<u32>,
    /// How many requests
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(10..=100_000))]
    pub requests: u32,
    /// Packets that wait before the link, in each direction; each number is a series of runs
    #[arg(long, value_name = "PACKETS", value_delimiter = ',', default_value = "50", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub queue: Vec<u32>,
    /// The link's rate in Mbit/s, with headers. Not simulated, beyond 200 the machine may be too
    /// slow, which is told, and byway's files are as large as what the link carries
    #[arg(long, value_name = "MBIT/S", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rate: u32,
    /// The link's round-trip time in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=2_000))]
    pub rtt: u32,
    /// When requests begin follows from this seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Measure in the simulator, where no time passes: reference TCP hosts instead of the kernel's,
    /// and byway's own sessions and gateways
    #[arg(long)]
    pub simulated: bool,
    /// Also write what happened on every path and link, by sample, and of each request, to this
    /// directory. It is JSON lines
    #[arg(long, value_name = "DIR")]
    pub trace: Option<PathBuf>,
}

/// `byway lab scoreboard`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/lab-scoreboard.txt").trim_end())]
pub struct LabScoreboard {
    /// Some 150 scenes instead of the whole board
    #[arg(long)]
    pub quick: bool,
    /// Which lines: the grid, or those whose delays jump without a queue (jitter)
    #[arg(long, value_name = "SET", default_value = "grid", value_parser = parse_lines)]
    pub lines: LineSet,
    /// Who transfers: laws of the board, session:CONTROLLER or tcp:CONTROLLER [default: all of the
    /// board]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub laws: Vec<String>,
    /// Only these cells: line=PREFIX, beside=NAME, transfers=N, among=NAME or law=NAME. Commas
    /// separate values; repeatable
    #[arg(long, value_name = "KEY=VALUES")]
    pub only: Vec<CellFilter>,
    /// Only the lines on which constants may be chosen (tune), or on which they are judged (judge)
    #[arg(long, value_name = "HALF", value_parser = parse_half)]
    pub half: Option<LineHalf>,
    /// How many seeds; what is shown and judged is the median
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub seeds: u64,
    /// Hold the bounds against this law [default: that of the class background]
    #[arg(long, value_name = "NAME")]
    pub judged: Option<String>,
    /// How many cells at once [default: one per core]
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Print each cell's figures, however many there are
    #[arg(long)]
    pub rows: bool,
    /// Print the plans of the cells instead of running them
    #[arg(long)]
    pub plan: bool,
    /// Directory for rows and the picture
    #[arg(long, value_name = "DIR", default_value = "byway-lab/scoreboard")]
    pub out: PathBuf,
    /// Run only a part of the cells, as one of 16 machines: 3/16. Nothing is judged
    #[arg(long, value_name = "I/N", default_value = "1/1", hide_default_value = true)]
    pub part: Part,
    /// Take over the rows in this directory, as of a part; repeatable
    #[arg(long, value_name = "DIR")]
    pub rows_from: Vec<PathBuf>,
}

/// `byway lab serve`
#[derive(Clone, Debug, Args)]
pub struct LabServe {
    /// The port to answer at
    pub port: u16,
    /// The kernel's congestion controller for the answers
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub congestion: String,
}

/// `byway lab fetch`
#[derive(Clone, Debug, Args)]
pub struct LabFetch {
    /// Whom to ask
    pub server: SocketAddr,
}

/// `byway lab inside`
#[derive(Clone, Debug, Args)]
pub struct LabInside {
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub program: Vec<OsString>,
}

/// `byway lab list`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/lab-list.txt").trim_end())]
pub struct LabList {
    /// Where experiments are.
    #[command(flatten)]
    pub place: Where,
    /// Only those with this tag; repeatable
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// End with 1 if a kept result is stale: its quick form, run by this program (`byway lab run
    /// --quick`), has another trace. A release refuses such results
    #[arg(long)]
    pub refuse_stale: bool,
}

/// `byway lab show`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/lab-show.txt").trim_end())]
pub struct LabShow {
    /// The experiment's name, as `byway lab list` prints it
    #[arg(value_name = "EXPERIMENT")]
    pub experiment: String,
    /// Print what is claimed (expect.toml), with its columns and figures
    #[arg(long, conflicts_with = "readme")]
    pub expect: bool,
    /// Print the claim in words, its source, and what had to be reconstructed (README.md)
    #[arg(long)]
    pub readme: bool,
    /// Where experiments are.
    #[command(flatten)]
    pub place: Where,
}

/// `byway lab run`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/lab-run.txt").trim_end())]
pub struct LabRun {
    /// Experiments by name, or plans (files that end in .toml) [default: all experiments]
    #[arg(value_name = "EXPERIMENT|PLAN")]
    pub what: Vec<String>,
    /// Where experiments are.
    #[command(flatten)]
    pub place: Where,
    /// The quick form of the experiments: minutes for all together
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
    /// How many seeds, or which: 20, or 17..32 [default: as the plan says]
    #[arg(long, value_name = "N|FIRST..LAST")]
    pub seeds: Option<SeedChoice>,
    /// Write a row per variant and seed to this file
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Keep the verdicts in the experiments' own folders (needs --experiments). Only whole results
    /// are kept: of all runs, with the plan's seeds and values
    #[arg(long, requires = "experiments")]
    pub keep: bool,
    /// Go on with a run that was stopped: leave out what --out has of this commit and mode
    #[arg(long)]
    pub resume: bool,
    /// Also write what happened on every path, by sample, as JSON lines, and the packets of the
    /// first run as pcapng
    #[arg(long)]
    pub trace: bool,
    /// Also write each transfer of the first variant as a qlog file: windows, RTTs and losses of
    /// its paths, by sample, in the directory qlog beside the results
    #[arg(long)]
    pub qlog: bool,
    /// Run on this machine and not in the simulator: in real time, one run after the other, over a
    /// network that `lab up` builds. Transfers are by real programs: iperf3 over the kernel's TCP,
    /// and byway itself
    #[arg(long, conflicts_with_all = ["trace", "qlog", "keep", "jobs"])]
    pub emulate: bool,
    /// How many runs at once [default: one per core]
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
}

/// `byway lab report`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/lab-report.txt").trim_end())]
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
#[command(before_help = include_str!("examples/lab-fuzz.txt").trim_end())]
pub struct LabFuzz {
    /// How many worlds
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub seeds: u64,
    /// The first seed, to see one again
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub first: u64,
    /// Run worlds for so long, however many they are. The last of them may end some seconds later
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration, conflicts_with = "seeds")]
    pub time: Option<Duration>,
    /// Run exactly the seeds in this file: one in a line, comments behind #
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seeds", "first", "time"])]
    pub seeds_file: Option<PathBuf>,
    /// Write the world of the only seed to this file, as a plan for `byway lab run`
    #[arg(long, value_name = "FILE", conflicts_with = "time")]
    pub plan: Option<PathBuf>,
}

fn parse_half(text: &str) -> Result<LineHalf, String> {
    match text {
        "tune" => Ok(LineHalf::Tune),
        "judge" => Ok(LineHalf::Judge),
        _ => Err("expected tune or judge".to_owned()),
    }
}

fn parse_lines(text: &str) -> Result<LineSet, String> {
    match text {
        "grid" => Ok(LineSet::Grid),
        "jitter" => Ok(LineSet::Jitter),
        _ => Err("expected grid or jitter".to_owned()),
    }
}

fn parse_parameter(text: &str) -> Result<(String, f64), String> {
    let number =
        text.split_once('=').and_then(|(name, value)| Some((name.to_owned(), value.trim().parse().ok()?)));
    number
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| format!("`{text}`: expected for example queue=50"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches as _;

    #[test]
    fn a_parameter_is_a_name_and_a_number() {
        assert_eq!(parse_parameter("queue=50"), Ok(("queue".into(), 50.0)));
        for wrong in ["queue", "=5", "queue=many", "queue="] {
            assert!(parse_parameter(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn seeds_of_random_worlds_are_chosen_in_one_way() {
        let parsed = |words: &str| {
            let words = ["fuzz"].into_iter().chain(words.split_whitespace());
            let found = LabFuzz::augment_args(clap::Command::new("fuzz")).try_get_matches_from(words);
            found.and_then(|found| LabFuzz::from_arg_matches(&found))
        };
        let timed = parsed("--for 1h30m --first 7").expect("time");
        assert_eq!((timed.time, timed.first), (Some(Duration::from_secs(5_400)), 7));
        assert_eq!(parsed("--plan w.toml --seeds 1").expect("a plan").plan, Some("w.toml".into()));
        for wrong in ["--for 1m --seeds 5", "--seeds-file f --first 2", "--seeds-file f --for 1m"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
        assert!(parsed("--for 1m --plan w.toml").is_err());
    }
}
