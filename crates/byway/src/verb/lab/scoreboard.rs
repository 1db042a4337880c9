//! `byway lab scoreboard`: laws for the background against each other on a grid of lines, beside a grid of others.

mod store;
mod tables;

use crate::args::lab::LabScoreboard;
use crate::exit::{Exit, Failure};
use crate::output::{Event, Outcome, Output};
use anyhow::{Context as _, Result};
use byway_lab::scoreboard::{self, Board, Cell, Form, Judged, Law, PRODUCT, Program, Selection, heat, world};
use rustix::time::{ClockId, clock_gettime};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use store::Store;

/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(5);
/// More rows than this are printed only if that was asked for.
const ROWS: usize = 40;

/// Runs the cells that have no row yet, then shows and judges all. Ends with 1 if a bound is missed that is not known to be.
pub(super) fn run(arguments: &LabScoreboard, output: &mut Output) -> Result<Exit> {
    let selection = selection(arguments)?;
    let cells = selection.cells();
    if cells.is_empty() {
        return Err(Failure::new(Exit::Usage, "no cell of the board is all of that".to_owned()).into());
    }
    if arguments.plan {
        for cell in &cells {
            output.answer(&format!("# {}, {}, seed {}", cell.scene, cell.law.name, cell.seed))?;
            output.answer(&world::plan(&cell.scene, Some(&cell.law)))?;
        }
        return Ok(Exit::Ok);
    }
    if let Some(jobs) = arguments.jobs {
        rayon::ThreadPoolBuilder::new().num_threads(jobs).build_global().context("--jobs")?;
    }
    let (cancel, signals) = super::run::cancellation()?;
    output.heed(&signals);
    let program = Program { commit: commit(), program: own_hash()?, cpu };
    let mut store = Store::open(&arguments.out, &program.program)?;
    let wanted: Vec<Cell> = cells.iter().filter(|cell| !store.has(&cell.key())).cloned().collect();
    output.say_lines(&format!(
        "{} cells, {} of them are there already",
        cells.len(),
        cells.len() - wanted.len()
    ));
    let begun = Instant::now();
    let progress = Progress { of: wanted.len(), begun };
    let teller = Mutex::new(Teller { output, store: &mut store, told: begun, done: 0, failed: None });
    let ran = scoreboard::run(&wanted, &program, cancel, &|row| {
        teller.lock().unwrap_or_else(PoisonError::into_inner).take(row, &progress);
    });
    let Teller { done, failed, .. } = teller.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = failed {
        return Err(error).context(store.file().display().to_string());
    }
    ran?;
    let rows = store.rows(&cells);
    let scenes = selection.scenes();
    let board = Board::new(&scenes, &rows);
    let laws: Vec<&str> = selection.laws().map(|law| law.name.as_str()).collect();
    store.write_table(&rows)?;
    store.write_picture(&heat::draw(&board, &laws, &below(arguments, &program)))?;
    if arguments.rows || scenes.len() * laws.len() <= ROWS {
        for table in tables::cells(&board, &laws) {
            output.answer_table(&table)?;
        }
    }
    output.answer_table(&tables::laws(&board, &laws, &rows))?;
    let law = arguments.judged.as_deref().unwrap_or(PRODUCT);
    let judged = scoreboard::judge(&board, law);
    if !judged.is_empty() {
        output.answer_table(&tables::bounds(law, &judged))?;
    }
    let held = judged.iter().filter(|judged| judged.missed.is_empty()).count();
    let missed = judged.iter().filter(|judged| !judged.holds()).count();
    let processor: f64 = rows.iter().map(|row| row.cpu_seconds).sum();
    output.answer_lines(&format!(
        "{} cells, {done} of them run in {:.0} s (all took {processor:.0} s of a processor), {}: {held} bounds hold, {} are known misses, {missed} are missed; rows are in {}",
        rows.len(),
        begun.elapsed().as_secs_f64(),
        seeds(arguments),
        judged.len() - held - missed,
        store.file().display(),
    ))?;
    let exit = signals.stop().unwrap_or(if missed == 0 { Exit::Ok } else { Exit::Error });
    let outcome = Outcome::Scoreboard {
        cells: rows.len(),
        seeds: arguments.seeds,
        ran: done,
        held,
        known: judged.iter().filter(|judged| is_known(judged)).count(),
        missed,
    };
    output.emit(&Event::result("lab", exit, outcome));
    Ok(exit)
}

fn is_known(judged: &Judged) -> bool {
    judged.holds() && !judged.missed.is_empty()
}

fn selection(arguments: &LabScoreboard) -> Result<Selection> {
    let named = |name: &String| Law::named(name).map_err(|sentence| Failure::new(Exit::Usage, sentence));
    let laws = match &arguments.laws {
        names if names.is_empty() => Law::all(),
        names => names.iter().map(named).collect::<Result<_, _>>()?,
    };
    Ok(Selection {
        form: if arguments.quick { Form::Quick } else { Form::Full },
        laws,
        seeds: arguments.seeds,
        half: arguments.half,
        only: arguments.only.clone(),
    })
}

/// What stands below the picture.
fn below(arguments: &LabScoreboard, program: &Program) -> String {
    let form = if arguments.quick { "quick form" } else { "full form" };
    let (seeds, today) = (seeds(arguments), super::place::today());
    format!("byway lab scoreboard, {form}, {seeds}, {}, {today}", program.commit)
}

/// What figures are of.
fn seeds(arguments: &LabScoreboard) -> String {
    match arguments.seeds {
        1 => "seed 1".to_owned(),
        seeds => format!("medians of seeds 1 to {seeds}"),
    }
}

/// How far it is.
struct Progress {
    of: usize,
    begun: Instant,
}

/// Takes rows from whoever ran their cells.
struct Teller<'a, 'b> {
    output: &'a mut Output,
    store: &'b mut Store,
    told: Instant,
    done: usize,
    failed: Option<anyhow::Error>,
}

impl Teller<'_, '_> {
    fn take(&mut self, row: scoreboard::Row, progress: &Progress) {
        self.done += 1;
        self.output.emit(&Event::Cell(row.clone()));
        if let Err(error) = self.store.add(row) {
            self.failed.get_or_insert(error);
        }
        if self.told.elapsed() >= PROGRESS {
            self.told = Instant::now();
            let seconds = progress.begun.elapsed().as_secs_f64();
            self.output.say(&format!("{} of {} cells, {seconds:.0} s", self.done, progress.of));
        }
    }
}

/// Seconds of a processor that this thread has taken.
fn cpu() -> f64 {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default().as_secs_f64()
}

/// The commit that is checked out where this was started, with a `+` if more was changed; the version where there is none.
fn commit() -> String {
    let asked = Command::new("git").args(["describe", "--always", "--exclude", "*", "--dirty=+"]).output();
    match asked {
        Ok(answer) if answer.status.success() => String::from_utf8_lossy(&answer.stdout).trim().to_owned(),
        _ => format!("byway {}", env!("CARGO_PKG_VERSION")),
    }
}

/// What tells this program from any other.
fn own_hash() -> Result<String> {
    let own = std::env::current_exe().and_then(std::fs::read).context("the program itself cannot be read")?;
    Ok(blake3::hash(&own).to_hex().chars().take(16).collect())
}
