//! `byway lab run`: plans become runs on all cores, runs become tables, figures and verdicts.

use super::{emulation, place};
use crate::args::lab::{LabRun, Where};
use crate::exit::{Exit, Failure};
use crate::output::{self, Align, Event, Experiment as ExperimentEvent, Output, Table};
use crate::signals::{Hangup, Signals};
use anyhow::{Context as _, Result};
use byway_lab::expect::table::{self, Grid};
use byway_lab::expect::{ClaimResult, Expectation, Outcome, Verdict, write};
use byway_lab::experiment::Experiment;
use byway_lab::figure::{self, Kind};
use byway_lab::measure::Records;
use byway_lab::plan::{Mode, Overrides, Plan};
use byway_lab::setup::Demand;
use byway_lab::{Record, report, runner, trace, world};
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(5);

/// Something to run.
struct Task {
    experiment: Experiment,
    /// Where its plan stands, for messages.
    file: String,
}

/// Runs what was asked for. Ends with 1 if a bound breaks that is not known to.
pub(super) fn run(arguments: &LabRun, output: &mut Output) -> Result<Exit> {
    if let Some(jobs) = arguments.jobs {
        rayon::ThreadPoolBuilder::new().num_threads(jobs).build_global().context("--jobs")?;
    }
    let mode = match (arguments.quick, arguments.full, arguments.emulate) {
        (true, _, false) => Mode::Quick,
        (true, _, true) => Mode::EmulateQuick,
        (_, true, _) => Mode::Full,
        (_, _, true) => Mode::Emulate,
        _ => Mode::All,
    };
    let overrides = Overrides { seeds: arguments.seeds, sweep: arguments.sweep.clone() };
    let (cancel, signals) = cancellation()?;
    output.heed(&signals);
    let (mut passed, mut known, mut failed, mut experiments) = (0, 0, 0, 0);
    for task in tasks(arguments)? {
        if cancel.load(Ordering::Relaxed) {
            break;
        }
        let Some(outcome) = one(arguments, &task, mode, &overrides, cancel, output)? else { continue };
        experiments += 1;
        let count = |verdict| outcome.claims.iter().filter(|claim| claim.verdict == verdict).count();
        passed += count(Verdict::Pass);
        known += count(Verdict::KnownMiss);
        failed += count(Verdict::Fail);
    }
    let exit = signals.stop().unwrap_or(if failed == 0 { Exit::Ok } else { Exit::Error });
    if experiments > 1 {
        output.answer_lines(&format!(
            "{experiments} experiments: {passed} claims hold, {known} known misses, {failed} fail"
        ))?;
    }
    let tally = output::Outcome::Lab { experiments, passed, known, failed };
    output.emit(&Event::result("lab", exit, tally));
    Ok(exit)
}

/// A flag that SIGINT sets. It lives as long as the process, as do the threads that look at it.
pub(super) fn cancellation() -> Result<(&'static AtomicBool, Signals)> {
    static CANCEL: AtomicBool = AtomicBool::new(false);
    let signals = Signals::install(Hangup::Stop, || CANCEL.store(true, Ordering::Relaxed))?;
    Ok((&CANCEL, signals))
}

/// What is to be run, in order of name, plans as they were given.
fn tasks(arguments: &LabRun) -> Result<Vec<Task>> {
    let (plans, names): (Vec<_>, Vec<_>) = arguments.what.iter().partition(|what| what.ends_with(".toml"));
    let mut tasks = Vec::new();
    for plan in plans {
        tasks.push(own_plan(Path::new(plan))?);
    }
    if !arguments.what.is_empty() && names.is_empty() {
        return Ok(tasks);
    }
    for name in &names {
        place::experiment(&arguments.place, name)?;
    }
    for experiment in place::experiments(&arguments.place)? {
        let wanted = names.is_empty() || names.iter().any(|name| **name == experiment.id);
        if wanted && place::tagged(&place::expectation(&experiment)?, &arguments.tag) {
            let file = format!("{}/plan.toml", experiment.id);
            tasks.push(Task { experiment, file });
        }
    }
    Ok(tasks)
}

/// A plan of one's own; an `expect.toml` beside a `plan.toml` belongs to it.
fn own_plan(file: &Path) -> Result<Task> {
    let plan = fs::read_to_string(file).with_context(|| file.display().to_string())?;
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
    Ok(Task { experiment, file: file.display().to_string() })
}

/// Runs one; `None` if it has no form for this mode.
fn one(
    arguments: &LabRun,
    task: &Task,
    mode: Mode,
    overrides: &Overrides,
    cancel: &AtomicBool,
    output: &mut Output,
) -> Result<Option<Outcome>> {
    let id = &task.experiment.id;
    let mut expectation = place::expectation(&task.experiment)?;
    let Some(source) = &task.experiment.plan else {
        let why = expectation.not_run.as_deref().unwrap_or("it has no plan");
        output.say_lines(&format!("{id}: not run: {why}"));
        output.emit(&Event::Experiment(event(id, None, Some(why))));
        return Ok(None);
    };
    let usage = |what: String| Failure::new(Exit::Usage, what);
    let plan = Plan::read(&task.file, source, mode, overrides).map_err(|error| usage(error.to_string()))?;
    let Some(plan) = plan else { return Ok(None) };
    if let (Some(why), true) = (&plan.only_simulated, arguments.emulate) {
        output.say_lines(&format!("{id}: not emulated: {why}"));
        output.emit(&Event::Experiment(event(id, None, Some(why))));
        return Ok(None);
    }
    if expectation.shows.is_empty() {
        expectation.shows = usual_columns(&plan)?.shows;
    }
    output.say_lines(&format!("{id}: {}", plan.title));
    let begun = Instant::now();
    let outcome = if arguments.emulate {
        emulated(arguments, task, &plan, cancel, output)?
    } else {
        simulated(id, &plan, cancel, output)
    };
    if let Some(error) = outcome.error {
        return Err(usage(format!("{}: {error}", task.file)).into());
    }
    let records = outcome.records;
    if records.len() < outcome.planned {
        let message = format!(
            "{id}: stopped after {} of {} runs; what finished is kept",
            records.len(),
            outcome.planned
        );
        output.emit(&Event::Warning { message });
    }
    if records.is_empty() {
        return Ok(None);
    }
    let indexed = Records::new(&records)?;
    let judged = expectation.judge(&indexed, mode);
    let commit = commit(&arguments.place);
    let result = Outcome::new(id, mode, &commit, &place::today(), &records, judged);
    write_results(arguments, &expectation, &indexed, &records, &result, output)?;
    if arguments.trace {
        write_traces(&arguments.place, &plan, id, &records, cancel)?;
    }
    for grid in [table::variants(&result.shows), table::claims(&result.claims)] {
        if !grid.rows.is_empty() {
            output.answer_table(&printable(&grid))?;
        }
    }
    let (word, _) = report::word(result.verdict);
    let packets: u64 = records.iter().map(|record| record.packets).sum();
    let seconds = begun.elapsed().as_secs_f64();
    let verdict = if result.claims.is_empty() { String::new() } else { format!("{word}, ") };
    output.answer_lines(&format!(
        "{id}: {verdict}{} runs, {packets} packet hops, {seconds:.1} s, trace {}",
        records.len(),
        result.trace
    ))?;
    output.emit(&Event::Experiment(event(id, Some(&result), None)));
    Ok(Some(result))
}

/// Runs a plan on all cores, in the simulator.
fn simulated(id: &str, plan: &Plan, cancel: &AtomicBool, output: &mut Output) -> runner::Outcome {
    let teller = Mutex::new((output, Instant::now()));
    runner::run(plan, cancel, &|done, of| {
        if let Ok(mut teller) = teller.lock()
            && teller.1.elapsed() >= PROGRESS
        {
            teller.1 = Instant::now();
            teller.0.say(&format!("{id}: {done} of {of} runs"));
        }
    })
}

/// Runs a plan on this machine, in real time.
fn emulated(
    arguments: &LabRun,
    task: &Task,
    plan: &Plan,
    cancel: &AtomicBool,
    output: &mut Output,
) -> Result<runner::Outcome> {
    let id = &task.experiment.id;
    let what = if Path::new(&task.file).is_file() { &task.file } else { id };
    let experiments = arguments.place.experiments.as_deref();
    let records =
        emulation::run(what, experiments, plan, cancel, |line| output.say_lines(&format!("{id}: {line}")))
            .with_context(|| id.clone())?;
    Ok(runner::Outcome { records, planned: plan.variants.len() * plan.seeds as usize, error: None })
}

/// `grid` as a table: numbers lean to the right, with or without the range that they lie in.
fn printable(grid: &Grid) -> Table {
    let number = |cell: &String| {
        let (median, range) = cell.split_once(" (").unwrap_or((cell, ")"));
        range.ends_with(')') && (median == "-" || median.parse::<f64>().is_ok())
    };
    let columns = grid.headings.iter().enumerate().map(|(column, heading)| {
        let numbers = grid.rows.iter().filter_map(|row| row.cells.get(column)).all(number);
        (heading.as_str(), if numbers { Align::Right } else { Align::Left })
    });
    let mut table = Table::new(columns).keyed_by(grid.keys);
    for row in &grid.rows {
        table.row(row.cells.iter().cloned());
        row.notes.iter().for_each(|note| table.note(note));
    }
    table
}

/// What is shown where nobody says what (no `[[show]]`): goodput of transfers, times of those that end, times of requests.
fn usual_columns(plan: &Plan) -> Result<Expectation> {
    let mut source = String::new();
    let mut column = |name: &str, measure: String, unit: &str| {
        let row = format!("[[show]]\nname = \"{name}\"\nmeasure = \"{measure}\"\nunit = \"{unit}\"\n");
        if !source.contains(&row) {
            source += &row;
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
    Ok(Expectation::read("the plan's columns", &source)?)
}

fn write_results(
    arguments: &LabRun,
    expectation: &Expectation,
    indexed: &Records<'_>,
    records: &[Record],
    result: &Outcome,
    output: &mut Output,
) -> Result<()> {
    let directory = place::results(&arguments.place, &result.id);
    fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
    fs::write(directory.join("result.json"), result.to_json()?)?;
    let mut rows = BufWriter::new(File::create(directory.join("runs.csv"))?);
    write::csv(&result.shows, &mut rows)?;
    if let Some(file) = &arguments.csv {
        let mut rows = BufWriter::new(File::create(file).with_context(|| file.display().to_string())?);
        write::csv(&result.shows, &mut rows)?;
    }
    for (number, spec) in expectation.figures.iter().enumerate() {
        let drawn = match spec.kind {
            Kind::Measure | Kind::Bars => figure::measured::draw(spec, indexed),
            _ => figure::draw(spec, records),
        };
        match drawn {
            Ok(svg) => fs::write(directory.join(format!("figure-{}.svg", number + 1)), svg)?,
            Err(error) => output.detail(&error.to_string()),
        }
    }
    if arguments.keep
        && let Some(experiments) = &arguments.place.experiments
    {
        fs::write(experiments.join(&result.id).join("result.json"), result.to_json()?)?;
    }
    Ok(())
}

/// Every run by sample, and the packets of the first variant and seed.
fn write_traces(place: &Where, plan: &Plan, id: &str, records: &[Record], cancel: &AtomicBool) -> Result<()> {
    let directory = place::results(place, id);
    let mut lines = BufWriter::new(File::create(directory.join("trace.jsonl"))?);
    for record in records {
        trace::jsonl::write(record, &mut lines)?;
    }
    if let Some(setup) = plan.variants.first() {
        let packets = BufWriter::new(File::create(directory.join("packets.pcapng"))?);
        world::run_captured(setup, 1, cancel, Box::new(packets))?;
    }
    Ok(())
}

/// The commit of the experiments where git knows it, else the version of the program.
fn commit(place: &Where) -> String {
    let version = || format!("byway {}", env!("CARGO_PKG_VERSION"));
    let Some(directory) = &place.experiments else { return version() };
    let asked = Command::new("git").arg("-C").arg(directory).args(["rev-parse", "--short", "HEAD"]).output();
    match asked {
        Ok(answer) if answer.status.success() => String::from_utf8_lossy(&answer.stdout).trim().to_owned(),
        _ => version(),
    }
}

/// An experiment's result as an event.
pub(super) fn event(id: &str, outcome: Option<&Outcome>, not_run: Option<&str>) -> ExperimentEvent {
    let word = |verdict: Verdict| match verdict {
        Verdict::Pass => "pass",
        Verdict::KnownMiss => "known",
        Verdict::Fail => "fail",
        Verdict::Report => "report",
        Verdict::NotRun => "not-run",
    };
    let median = |claim: &ClaimResult| claim.deciding().and_then(|measured| measured.median);
    let claims: Vec<output::Claim> = outcome
        .iter()
        .flat_map(|outcome| &outcome.claims)
        .map(|claim| output::Claim {
            id: claim.id.clone(),
            verdict: word(claim.verdict).into(),
            measured: median(claim),
            bound: report::bound(claim),
            paper: claim.paper.clone().unwrap_or_default(),
            reason: claim.known.clone().or_else(|| claim.note.clone()),
        })
        .collect();
    let verdict = outcome.map_or(Verdict::NotRun, |outcome| outcome.verdict);
    let decides = claims.iter().find(|claim| claim.verdict == word(verdict));
    ExperimentEvent {
        id: id.to_owned(),
        verdict: word(verdict).into(),
        measured: decides.and_then(|claim| claim.measured),
        bound: decides
            .map(|claim| claim.bound.clone())
            .or_else(|| not_run.map(str::to_owned))
            .unwrap_or_default(),
        claims,
    }
}
