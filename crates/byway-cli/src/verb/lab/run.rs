//! `byway lab run`: runs experiments, and shows their tables and verdicts.

use super::stop_flag::cancellation;
use crate::args::lab::LabRun;
use crate::exit::{Exit, Failure};
use crate::output::{Align, Event, Fields, Outcome, Output, Table};
use crate::units::Span;
use anyhow::{Context as _, Result};
use byway_field::experiment_list::{ClaimCounts, ExperimentSummary};
use byway_field::experiment_run::{self, ExperimentEvent, ExperimentResult, RunOptions, TaskResult};
use byway_lab::expect::table::{self, Grid};
use byway_lab::html_report;
use byway_lab::plan::{Mode, Overrides};
use std::io::{self, IsTerminal as _};
use std::sync::atomic::Ordering;

/// Runs the chosen experiments. Ends with exit code 1 if a claim fails that is not marked as known.
pub(super) fn run(arguments: &LabRun, output: &mut Output) -> Result<Exit> {
    if let Some(jobs) = arguments.jobs {
        experiment_run::limit_jobs(jobs)?;
    }
    let program = std::env::current_exe().context("where this program is")?;
    let how = how(arguments);
    let (cancel, signals) = cancellation(output)?;
    let mut tally = ClaimCounts::default();
    let mut not_kept = 0;
    let tasks = experiment_run::tasks(&how.directories, &arguments.what, &arguments.tag)?;
    let is_alone = tasks.len() == 1;
    for task in tasks {
        if cancel.load(Ordering::Relaxed) {
            break;
        }
        let id = task.id();
        let told = |news| {
            if !tell(id, news, output) {
                cancel.store(true, Ordering::Relaxed);
            }
        };
        match task.run(&how, &program, cancel, told)? {
            TaskResult::Nothing => {}
            TaskResult::NoForm(mode) if is_alone => {
                return Err(Failure::new(Exit::Usage, experiment_run::no_form(id, mode)).into());
            }
            TaskResult::NoForm(mode) => output.say_lines(&experiment_run::no_form(id, mode)),
            TaskResult::AlreadyRun => output.say_lines(&format!("{id}: this commit has run it already")),
            TaskResult::NotRun(why) => {
                output.say_lines(&format!("{id}: not run: {why}"));
                output.emit(&Event::told("experiment", &ExperimentSummary::of(id, None, Some(&why))));
            }
            TaskResult::NotEmulated(why) => {
                output.say_lines(&format!("{id}: not emulated: {why}"));
                output.emit(&Event::told("experiment", &ExperimentSummary::of(id, None, Some(&why))));
            }
            TaskResult::Done(done) => {
                show(id, &done, output)?;
                tally.add(&done.outcome);
                if let Some(why) = &done.not_kept {
                    not_kept += 1;
                    output.emit(&Event::Warning { message: format!("{id}: the result is not kept: {why}") });
                }
            }
        }
    }
    let ClaimCounts { experiments, passed, known, failed } = tally;
    let exit = signals.stop().unwrap_or(if failed + not_kept == 0 { Exit::Ok } else { Exit::Error });
    if experiments > 1 {
        output.answer_lines(&format!(
            "{experiments} experiments: {passed} claims hold, {known} known misses, {failed} fail"
        ))?;
    }
    output.emit(&Event::result("lab", exit, Outcome::Told(Fields::of(&tally))));
    Ok(exit)
}

fn how(arguments: &LabRun) -> RunOptions {
    let mode = match (arguments.quick, arguments.full, arguments.emulate) {
        (true, _, false) => Mode::Quick,
        (true, _, true) => Mode::EmulateQuick,
        (_, true, _) => Mode::Full,
        (_, _, true) => Mode::Emulate,
        _ => Mode::All,
    };
    RunOptions {
        directories: arguments.place.directories(),
        mode,
        overrides: Overrides { seeds: arguments.seeds, sweep: arguments.sweep.clone() },
        emulate: arguments.emulate,
        csv: arguments.csv.clone(),
        keep: arguments.keep,
        resume: arguments.resume,
        trace: arguments.trace,
        qlog: arguments.qlog,
    }
}

/// Prints an event of an experiment. Returns whether the experiment is to go on.
fn tell(id: &str, news: ExperimentEvent, output: &mut Output) -> bool {
    match news {
        ExperimentEvent::Begins(title) => output.say_lines(&format!("{id}: {title}")),
        ExperimentEvent::Progress(done, of, left) => {
            output.say(&format!("{id}: {done} of {of} runs, about {} left", Span(left)));
        }
        ExperimentEvent::Long(left) => {
            return goes_on(&format!("{id} takes about {} more", Span(left)), output);
        }
        ExperimentEvent::Run(line) => output.say_lines(&format!("{id}: {line}")),
        ExperimentEvent::Stopped(done, of) => {
            let message = format!("{id}: stopped after {done} of {of} runs; what finished is kept");
            output.emit(&Event::Warning { message });
        }
        ExperimentEvent::NoFigure(why) => output.detail(&why),
    }
    true
}

/// Prints how long the experiment takes, and asks a person at a terminal whether to go on.
fn goes_on(takes: &str, output: &mut Output) -> bool {
    output.say_lines(&format!("{takes}; `byway lab tasks` spreads it over machines"));
    if io::stdin().is_terminal() {
        output.say_lines("go on? [Y/n]");
    }
    // At a stop there is no answer, and the runs see the stop themselves.
    let answer = byway_terminal::answer_line(|| output.is_stopped()).ok().flatten();
    !answer.unwrap_or_default().trim_start().to_lowercase().starts_with('n')
}

/// Prints the results of a task.
pub(super) fn show(id: &str, done: &ExperimentResult, output: &mut Output) -> Result<()> {
    let ExperimentResult { outcome, runs, packets, seconds, .. } = done;
    for grid in [table::variants(&outcome.shows), table::claims(&outcome.claims)] {
        if !grid.rows.is_empty() {
            output.answer_table(&printable(&grid))?;
        }
    }
    let (word, _) = html_report::word(outcome.verdict);
    let verdict = if outcome.claims.is_empty() { String::new() } else { format!("{word}, ") };
    output.answer_lines(&format!(
        "{id}: {verdict}{runs} runs, {packets} packet hops, {seconds:.1} s, trace {}",
        outcome.trace
    ))?;
    output.emit(&Event::told("experiment", &ExperimentSummary::of(id, Some(outcome), None)));
    Ok(())
}

/// `grid` as a table.
pub(super) fn printable(grid: &Grid) -> Table {
    let columns = grid.headings.iter().enumerate().map(|(column, heading)| {
        let cells = grid.rows.iter().filter_map(|row| row.cells.get(column));
        (heading.as_str(), Align::of(cells.map(String::as_str)))
    });
    let mut table = Table::new(columns).keyed_by(grid.keys);
    for row in &grid.rows {
        table.row(row.cells.iter().cloned());
        row.notes.iter().for_each(|note| table.note(note));
    }
    table
}
