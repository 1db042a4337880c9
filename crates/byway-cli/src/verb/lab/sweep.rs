//! `byway lab tasks`, `task` and `gather`: sweeps on many machines.

use super::run::show;
use super::stop_flag::cancellation;
use crate::args::sweep::{LabGather, LabTask, LabTasks, SweepChoice};
use crate::exit::{Exit, Failure};
use crate::output::{Event, Fields, Outcome, Output};
use anyhow::{Context as _, Result};
use byway_field::experiment_run::limit_jobs;
use byway_field::sweep::{GatherEvent, RowTarget, Sweep, TaskLength};
use byway_lab::plan::SeedChoice;
use byway_lab::sweep::{SweepTask, TaskError};
use std::path::Path;

fn swept(choice: &SweepChoice, seeds: Option<SeedChoice>) -> Result<Sweep> {
    let directories = choice.place.directories();
    Ok(Sweep::read(directories, &choice.what, choice.mode(), choice.overrides(seeds))?)
}

/// Prints the tasks of a plan.
pub(super) fn tasks(arguments: &LabTasks, output: &mut Output) -> Result<Exit> {
    let sweep = swept(&arguments.choice, arguments.seeds)?;
    let (cancel, signals) = cancellation(output)?;
    let length = arguments.runs.map_or(TaskLength::Time(arguments.per), TaskLength::Runs);
    let tasks = sweep.tasks(length, cancel)?;
    for task in &tasks.list {
        output.answer(&task.to_string())?;
        output.emit(&Event::Told { event: "task", fields: Fields::one("task", &task.to_string()) });
    }
    output.say_lines(&tasks.to_string());
    let exit = signals.stop().unwrap_or(Exit::Ok);
    output.emit(&Event::result("lab", exit, Outcome::Told(Fields::of(&tasks))));
    Ok(exit)
}

/// Runs a task.
pub(super) fn task(arguments: &LabTask, output: &mut Output) -> Result<Exit> {
    let usage = |error: TaskError| Failure::new(Exit::Usage, error.to_string());
    let task: SweepTask = arguments.task.join(" ").parse().map_err(usage)?;
    let runs = task.seeds.end() - task.seeds.start() + 1;
    limit_jobs(arguments.jobs.clamp(1, runs as usize))?;
    // A task names its seeds itself.
    let sweep = swept(&arguments.choice, None)?;
    let (cancel, signals) = cancellation(output)?;
    let target = match arguments.rows.as_path() {
        output if output == Path::new("-") => RowTarget::Output,
        directory => RowTarget::Directory(directory.to_owned()),
    };
    let rows =
        sweep.run_task(&task, &target, cancel, |done, of| output.say(&format!("{done} of {of} runs")))?;
    for failed in &rows.failed {
        let message = format!("variant {}, seed {}: panicked: {}", task.variant, failed.seed, failed.what);
        output.emit(&Event::Warning { message });
    }
    let (ran, there, failed) = (rows.ran, rows.there, rows.failed.len());
    output.say_lines(&format!("{ran} runs, {there} rows were there, {failed} failed"));
    let exit = signals.stop().unwrap_or(if failed == 0 { Exit::Ok } else { Exit::Error });
    if target != RowTarget::Output {
        output.emit(&Event::result("lab", exit, Outcome::Told(Fields::of(&rows))));
    }
    Ok(exit)
}

/// Makes a result of rows.
pub(super) fn gather(arguments: &LabGather, output: &mut Output) -> Result<Exit> {
    let sweep = swept(&arguments.choice, arguments.seeds)?;
    let gathered = sweep.gather(&arguments.rows, arguments.csv.as_deref(), |news| match news {
        GatherEvent::Refused(message) => output.emit(&Event::Warning { message }),
        GatherEvent::Progress(done, of) => output.say(&format!("{done} of {of} files")),
        GatherEvent::NoFigure(why) => output.detail(&why),
    })?;
    if let Some(file) = &arguments.missing {
        let lines: String = gathered.tasks.iter().map(|task| format!("{task}\n")).collect();
        std::fs::write(file, lines).with_context(|| file.display().to_string())?;
    }
    let Some(result) = &gathered.result else {
        let what = &arguments.choice.what;
        return Err(Failure::new(Exit::NotFound, format!("there is no row of {what}")).into());
    };
    show(sweep.id(), result, output)?;
    if let Some(first) = gathered.tasks.first() {
        let more = if arguments.missing.is_some() { "" } else { "; --missing FILE writes them as tasks" };
        let message = format!("{} runs are missing, the first in the task `{first}`{more}", gathered.missing);
        output.emit(&Event::Warning { message });
    }
    let exit = if gathered.is_whole_and_holds() { Exit::Ok } else { Exit::Error };
    output.emit(&Event::result("lab", exit, Outcome::Told(Fields::of(&gathered))));
    Ok(exit)
}
