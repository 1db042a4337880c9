//! Plans become runs, in the simulator on all cores or on this machine, and runs become verdicts,
//! figures and files.

use crate::date::today;
use crate::directories::{Directories, expectation, tagged};
use crate::emulation::{self, RunContext};
use crate::error::{About as _, Error, Result};
use crate::result_files::{self, ResultPlaces, RunResults};
use byway_lab::expect::{Expectation, Outcome};
use byway_lab::experiment::Experiment;
use byway_lab::measure::Records;
use byway_lab::plan::{Mode, Overrides, Plan};
use byway_lab::runner;
use byway_lab::setup::Demand;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Time between two lines of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
/// The remaining seconds of a task above which a person is asked before the task continues.
const LONG_TASK_SECONDS: f64 = 3_600.0;
/// The fewest completed runs that show how long the others take.
const MIN_TIMED_RUNS: usize = 4;

/// How experiments are run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The directories of experiments and of results.
    pub directories: Directories,
    /// The mode in which plans run, such as quick or full.
    pub mode: Mode,
    /// Values and seeds instead of the plan's.
    pub overrides: Overrides,
    /// Whether to run with real programs on this machine, instead of in the simulator.
    pub emulate: bool,
    /// A file for a row per variant and seed.
    pub csv: Option<PathBuf>,
    /// Whether verdicts are kept in the experiments' own folders.
    pub keep: bool,
    /// Whether to skip tasks that this commit has already run in this mode.
    pub resume: bool,
    /// Whether samples and packets are written.
    pub trace: bool,
    /// Whether the transfers of the first variant are written as qlog.
    pub qlog: bool,
}

/// A plan or an experiment to run.
#[derive(Clone, Debug)]
pub struct Task {
    experiment: Experiment,
    /// The path of the plan, for messages.
    file: String,
}

/// An event while a task runs.
#[derive(Clone, Debug)]
pub enum ExperimentEvent {
    /// A task with this title begins.
    Begins(String),
    /// The number of completed runs, the number of all runs, and about how many seconds the rest
    /// takes.
    Progress(usize, usize, f64),
    /// The task takes more than an hour: about this number of seconds. It waits until this was
    /// heard, and can be cancelled then.
    Long(f64),
    /// A run with real programs begins, or its measurements are not valid. The text says which.
    Run(String),
    /// The task was stopped: the runs until then, and all runs.
    Stopped(usize, usize),
    /// A figure cannot be drawn, and why.
    NoFigure(String),
}

/// The result of a task.
#[derive(Clone, Debug)]
pub enum TaskResult {
    /// The task was cancelled before its first run ended.
    Nothing,
    /// The plan does not define this mode.
    NoForm(Mode),
    /// This commit has already run the task in this mode, so it was skipped.
    AlreadyRun,
    /// The task cannot be run, for this reason.
    NotRun(String),
    /// The task can only be simulated, for this reason.
    NotEmulated(String),
    /// The task was run, with this result.
    Done(Box<ExperimentResult>),
}

/// The results of the runs of a task.
#[derive(Clone, Debug)]
pub struct ExperimentResult {
    /// The measures and verdicts of the run.
    pub outcome: Outcome,
    /// Why the outcome is not saved, although this was requested.
    pub not_kept: Option<String>,
    /// Number of runs.
    pub runs: usize,
    /// Packets sent over all links, in all runs.
    pub packets: u64,
    /// The duration of all runs in seconds.
    pub seconds: f64,
}

/// Sets how many runs go on at once.
///
/// # Errors
/// Runs have begun already.
pub fn limit_jobs(jobs: usize) -> Result<()> {
    let built = rayon::ThreadPoolBuilder::new().num_threads(jobs).build_global();
    built.map_err(|error| Error::Failed(error.to_string())).about(|| "--jobs")
}

/// The sentence for the task `id`, whose plan does not define this mode.
#[must_use]
pub fn no_form(id: &str, mode: Mode) -> String {
    let mode = mode.name();
    format!("{id}: not run: the plan has no [mode.{mode}] for --quick: leave out --quick, or write one")
}

/// Returns the tasks to run: plans (names in `what` that end in `.toml`), then experiments. An
/// empty `what` means all experiments. Nonempty `tags` leave only experiments with such a tag.
///
/// # Errors
/// There is no such plan or experiment.
pub fn tasks(directories: &Directories, what: &[String], tags: &[String]) -> Result<Vec<Task>> {
    let (plans, names): (Vec<_>, Vec<_>) = what.iter().partition(|what| what.ends_with(".toml"));
    let mut tasks = Vec::new();
    for plan in plans {
        tasks.push(Task::own(Path::new(plan))?);
    }
    if !what.is_empty() && names.is_empty() {
        return Ok(tasks);
    }
    for name in &names {
        directories.experiment(name)?;
    }
    for experiment in directories.experiments()? {
        let wanted = names.is_empty() || names.iter().any(|name| **name == experiment.id);
        if wanted && tagged(&expectation(&experiment)?, tags) {
            let file = format!("{}/plan.toml", experiment.id);
            tasks.push(Task { experiment, file });
        }
    }
    Ok(tasks)
}

/// A task that was read.
pub(crate) enum Prepared {
    /// The task can be run.
    Ready(Box<(Plan, Expectation)>),
    /// The task cannot be run, with this result.
    Not(TaskResult),
}

impl Task {
    /// The name of the task.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.experiment.id
    }

    /// A plan from a file. If it is a `plan.toml`, the `expect.toml` beside it belongs to it.
    fn own(file: &Path) -> Result<Self> {
        let plan = fs::read_to_string(file).about(|| file.display().to_string())?;
        let beside = file.with_file_name("expect.toml");
        let expect = if file.ends_with("plan.toml") { fs::read_to_string(beside).ok() } else { None };
        let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or("plan");
        let id = match (stem, file.canonicalize()) {
            ("plan", Ok(path)) => {
                path.parent().and_then(Path::file_name).and_then(|name| name.to_str()).map(str::to_owned)
            }
            _ => None,
        };
        let experiment = Experiment {
            id: id.unwrap_or_else(|| stem.to_owned()),
            plan: Some(plan),
            expect: expect.unwrap_or_default(),
            ..Experiment::default()
        };
        Ok(Self { experiment, file: file.display().to_string() })
    }

    /// Runs the task and writes results. `program` is byway's path. Once `cancel` is set, the task
    /// ends soon, with the results so far.
    ///
    /// # Errors
    /// The plan or expectation is wrong, a program failed, or a file is not writable.
    pub fn run(
        &self,
        how: &RunOptions,
        program: &Path,
        cancel: &AtomicBool,
        mut tell: impl FnMut(ExperimentEvent) + Send,
    ) -> Result<TaskResult> {
        let (plan, expectation) = match self.prepared(how.mode, &how.overrides)? {
            Prepared::Ready(ready) => *ready,
            Prepared::Not(result) => return Ok(result),
        };
        if let (Some(why), true) = (&plan.only_simulated, how.emulate) {
            return Ok(TaskResult::NotEmulated(why.clone()));
        }
        let commit = commit(&how.directories);
        if how.resume && self.is_done(how, &commit) {
            return Ok(TaskResult::AlreadyRun);
        }
        tell(ExperimentEvent::Begins(plan.title.clone()));
        let begun = Instant::now();
        let outcome = if how.emulate {
            self.emulated(&how.directories, program, &plan, cancel, &mut tell)?
        } else {
            simulated(&plan, cancel, &mut tell)
        };
        if let Some(error) = outcome.error {
            return Err(Error::Usage(format!("{}: {error}", self.file)));
        }
        let (records, planned) = (outcome.records, outcome.planned);
        if records.len() < planned {
            tell(ExperimentEvent::Stopped(records.len(), planned));
        }
        if records.is_empty() {
            return Ok(TaskResult::Nothing);
        }
        let indexed = Records::new(&records)?;
        let judged = expectation.judge(&indexed, how.mode);
        let mut outcome = Outcome::new(self.id(), how.mode, &commit, &today(), &records, judged);
        outcome.whole = records.len() == planned && how.overrides.is_empty();
        let not_kept = if how.keep { not_kept(&plan, &outcome) } else { None };
        if how.keep {
            outcome.quick = self.quick_trace(how.mode, &outcome, cancel)?;
        }
        let written = RunResults { indexed: &indexed, records: &records, outcome: &outcome };
        let folder = how.directories.experiments.as_ref().map(|experiments| experiments.join(self.id()));
        let places = ResultPlaces {
            directory: how.directories.results(self.id()),
            csv: how.csv.as_deref(),
            kept: folder.filter(|_| how.keep && not_kept.is_none()),
        };
        written.write(&places, &expectation, |why| tell(ExperimentEvent::NoFigure(why)))?;
        if how.trace {
            result_files::write_traces(&how.directories.results(self.id()), &plan, &records, cancel)?;
        }
        if how.qlog {
            result_files::write_qlogs(&how.directories.results(self.id()), &plan, &records)?;
        }
        Ok(TaskResult::Done(Box::new(ExperimentResult {
            outcome,
            not_kept,
            runs: records.len(),
            packets: records.iter().map(|record| record.packets).sum(),
            seconds: begun.elapsed().as_secs_f64(),
        })))
    }

    /// Returns the plan and its expectation. Without columns, it gets the usual ones.
    pub(crate) fn prepared(&self, mode: Mode, overrides: &Overrides) -> Result<Prepared> {
        let mut expectation = expectation(&self.experiment)?;
        let Some(source) = &self.experiment.plan else {
            let why = expectation.not_run.unwrap_or_else(|| "it has no plan".to_owned());
            return Ok(Prepared::Not(TaskResult::NotRun(why)));
        };
        let plan = Plan::read(&self.file, source, mode, overrides);
        let Some(plan) = plan.map_err(|error| Error::Usage(error.to_string()))? else {
            return Ok(Prepared::Not(TaskResult::NoForm(mode)));
        };
        if expectation.shows.is_empty() {
            expectation.shows = usual_columns(&plan)?.shows;
        }
        Ok(Prepared::Ready(Box::new((plan, expectation))))
    }

    /// Whether `commit` has run the task in this mode already.
    fn is_done(&self, how: &RunOptions, commit: &str) -> bool {
        let here = fs::read_to_string(how.directories.results(self.id()).join("result.json"));
        let here = here.ok().and_then(|text| Outcome::from_json(&text).ok());
        how.overrides.is_empty()
            && here.is_some_and(|here| here.whole && here.commit == commit && here.mode == how.mode)
    }

    /// The trace of the plan's quick form, in the simulator.
    fn quick_trace(&self, mode: Mode, outcome: &Outcome, cancel: &AtomicBool) -> Result<Option<String>> {
        if mode == Mode::Quick {
            return Ok(Some(outcome.trace.clone()));
        }
        let Some(source) = &self.experiment.plan else { return Ok(None) };
        let plan = Plan::read(&self.file, source, Mode::Quick, &Overrides::default());
        let Some(plan) = plan.map_err(|error| Error::Usage(error.to_string()))? else { return Ok(None) };
        let quick = runner::run(&plan, cancel, &|_, _| {});
        Ok((quick.records.len() == quick.planned).then(|| byway_lab::expect::trace_of(&quick.records)))
    }

    /// Runs a plan with real programs on this machine, in real time.
    fn emulated(
        &self,
        directories: &Directories,
        program: &Path,
        plan: &Plan,
        cancel: &AtomicBool,
        tell: &mut impl FnMut(ExperimentEvent),
    ) -> Result<runner::RunOutcome> {
        let what = if Path::new(&self.file).is_file() { self.file.as_str() } else { self.id() };
        let ground = RunContext { program, what, experiments: directories.experiments.as_deref() };
        let records =
            emulation::run(ground, plan, cancel, |line| tell(ExperimentEvent::Run(line.to_owned())))
                .about(|| self.id())?;
        Ok(runner::RunOutcome { records, planned: plan.variants.len() * plan.seeds as usize, error: None })
    }
}

/// Returns why a result is not saved: it is of a part of the plan, or most of its variants repeat
/// one run.
fn not_kept(plan: &Plan, outcome: &Outcome) -> Option<String> {
    if !outcome.whole {
        return Some("it is not of all runs with the plan's seeds and values".to_owned());
    }
    let (agree, variants) = (outcome.agree, outcome.variants());
    (plan.seeds_agree.is_none() && 2 * agree >= variants.max(1)).then(|| {
        format!(
            "in {agree} of {variants} variants all figures of all seeds agree to 0.1 %. Seeds change start_jitter, \
             access_jitter and loss. If the figures may agree, `seeds_agree` in the plan says why"
        )
    })
}

/// Runs a plan on all cores, in the simulator.
fn simulated(
    plan: &Plan,
    cancel: &AtomicBool,
    tell: &mut (impl FnMut(ExperimentEvent) + Send),
) -> runner::RunOutcome {
    let begun = Instant::now();
    let teller = Mutex::new((tell, begun, false));
    runner::run(plan, cancel, &|done, of| {
        if let Ok(mut teller) = teller.lock()
            && teller.1.elapsed() >= PROGRESS_INTERVAL
        {
            let (tell, told, is_asked) = &mut *teller;
            let left = seconds_left(begun.elapsed().as_secs_f64(), done, of);
            if done >= MIN_TIMED_RUNS && left > LONG_TASK_SECONDS && !std::mem::replace(is_asked, true) {
                tell(ExperimentEvent::Long(left));
            }
            tell(ExperimentEvent::Progress(done, of, left));
            *told = Instant::now();
        }
    })
}

/// Returns about how many seconds the remaining runs take, if they are as long as those before.
fn seconds_left(elapsed: f64, done: usize, of: usize) -> f64 {
    elapsed * of.saturating_sub(done) as f64 / done.max(1) as f64
}

/// The columns for a plan without `[[show]]`: goodput of transfers, their durations, and times of
/// requests.
fn usual_columns(plan: &Plan) -> Result<Expectation> {
    let mut shows = Vec::new();
    let mut column = |name: &str, measure: String, unit: &str| {
        let row = json!({ "name": name, "measure": measure, "unit": unit });
        if !shows.contains(&row) {
            shows.push(row);
        }
    };
    for setup in &plan.variants {
        for transfer in &setup.transfers {
            let group = &transfer.group;
            column(group, format!("goodput({group})"), "Mbit/s");
            if matches!(transfer.demand, Demand::Size(_)) {
                column(&format!("{group} in"), format!("completion({group})"), "s");
            }
        }
        for requests in &setup.requests {
            let name = &requests.name;
            column(&format!("{name} p50"), format!("requests({name}, 50)"), "s");
            column(&format!("{name} p90"), format!("requests({name}, 90)"), "s");
        }
    }
    // Nothing to show is no table at all.
    let source = if shows.is_empty() { String::new() } else { toml::to_string(&json!({ "show": shows }))? };
    Ok(Expectation::read("the plan's columns", &source)?)
}

/// Returns the git commit of the experiments, or else the version of the program.
pub(crate) fn commit(directories: &Directories) -> String {
    let version = || format!("byway {}", env!("CARGO_PKG_VERSION"));
    let Some(directory) = &directories.experiments else { return version() };
    let asked = Command::new("git").arg("-C").arg(directory).args(["rev-parse", "--short", "HEAD"]).output();
    match asked {
        Ok(answer) if answer.status.success() => String::from_utf8_lossy(&answer.stdout).trim().to_owned(),
        _ => version(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_lab::plan::PlanError;

    fn requests(name: &str) -> std::result::Result<Plan, PlanError> {
        let plan = json!({
            "title": "t", "duration": "1 s", "seeds": 1,
            "link": [{ "between": ["a", "b"] }],
            "requests": [{ "name": name, "client": "b", "server": "a", "count": 1, "every": "1 s", "size": "1 KB" }],
        });
        let text = toml::to_string(&plan).unwrap();
        Ok(Plan::read("t.toml", &text, Mode::All, &Overrides::default())?.unwrap())
    }

    #[test]
    fn time_that_is_left_follows_from_what_is_done() {
        assert!((seconds_left(30.0, 10, 40) - 90.0).abs() < 1e-9);
        assert!(seconds_left(30.0, 40, 40).abs() < 1e-9);
    }

    /// Names are letters of any script, digits, `-` and `_`: nothing else comes to the file of
    /// columns.
    #[test]
    fn columns_are_named_as_what_they_show() {
        let name = "å-路_1";
        assert!(requests("\"quoted\"").is_err());
        let plan = requests(name).unwrap();
        let shows = usual_columns(&plan).unwrap().shows;
        let names: Vec<_> = shows.iter().map(|show| show.name.as_str()).collect();
        assert_eq!(names, [format!("{name} p50"), format!("{name} p90")]);
    }
}
