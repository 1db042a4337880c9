//! Laws for the background against each other: cells that have no row yet are run, and rows are
//! kept.

use crate::date::today;
use crate::error::{About as _, Error, Result};
use crate::program_hash::own_hash;
use crate::result_store::Store;
use crate::thread_time::thread_seconds;
use byway_lab::scoreboard::{self, Board, BoundResult, Cell, CellRow, CellSelection, Form, Program, heatmap};
use byway_lab::sweep::Part;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between two lines of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// An event while cells are run.
#[derive(Clone, Debug)]
pub enum ScoreboardEvent {
    /// The run begins. The fields: the number of cells, and the number of cells that already have a
    /// row.
    Begins {
        /// The number of selected cells.
        cells: usize,
        /// Number of selected cells that already have a row.
        there: usize,
    },
    /// A cell has ended, with this row.
    Row(Box<CellRow>),
    /// The progress of the run.
    Progress {
        /// Cells that were run.
        done: usize,
        /// Cells that are to be run.
        of: usize,
        /// Seconds since the run began.
        seconds: f64,
    },
}

/// The files of rows, and the part of rows to make.
#[derive(Clone, Copy, Debug)]
pub struct RowPlaces<'a> {
    /// The directory with the rows of this run.
    pub own: &'a Path,
    /// Directories of runs elsewhere, whose rows are taken over.
    pub others: &'a [PathBuf],
    /// The part of the cells that is run.
    pub part: Part,
}

/// A scoreboard in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct BoardSummary {
    /// Cells that have a row.
    pub cells: usize,
    /// Number of seeds of which figures are the median.
    pub seeds: u64,
    /// The number of cells that were run now.
    pub ran: usize,
    /// Number of bounds that hold.
    pub held: usize,
    /// Bounds that are missed for a reason that is known.
    pub known: usize,
    /// Bounds that are missed.
    pub missed: usize,
}

impl FilledBoard {
    /// Returns the totals of the board, with its judged bounds.
    #[must_use]
    pub fn summary(&self, selection: &CellSelection, judged: &[BoundResult]) -> BoardSummary {
        let count = |holds: fn(&BoundResult) -> bool| judged.iter().filter(|judged| holds(judged)).count();
        BoardSummary {
            cells: self.rows.len(),
            seeds: selection.seeds,
            ran: self.ran,
            held: count(|judged| judged.missed.is_empty()),
            known: count(is_known),
            missed: count(|judged| !judged.holds()),
        }
    }

    /// The last line of the board.
    #[must_use]
    pub fn sentence(&self, selection: &CellSelection, summary: &BoardSummary) -> String {
        let BoardSummary { cells, ran, held, known, missed, .. } = summary;
        let processor: f64 = self.rows.iter().map(|row| row.cpu_seconds).sum();
        format!(
            "{cells} cells, {ran} of them run in {:.0} s (all took {processor:.0} s of a processor), {}: {held} bounds \
             hold, {known} are known misses, {missed} are missed; rows are in {}",
            self.seconds,
            seeds(selection),
            self.file.display(),
        )
    }
}

/// The rows of all selected cells.
#[derive(Debug)]
pub struct FilledBoard {
    /// The rows of all cells.
    pub rows: Vec<CellRow>,
    /// The scoreboard made from these rows.
    pub board: Board,
    /// Number of cells that were run now.
    pub ran: usize,
    /// The duration of the run in seconds.
    pub seconds: f64,
    /// The file of rows.
    pub file: PathBuf,
}

/// Runs the cells (simulations) of `selection` that have no result in `directory` yet. Stores each
/// result there as a row, then writes a table and a picture of all rows. Once `cancel` is set, this
/// function ends soon.
///
/// # Errors
/// A cell could not run, or a row could not be stored.
pub fn fill(
    selection: &CellSelection,
    places: &RowPlaces<'_>,
    cancel: &AtomicBool,
    mut tell: impl FnMut(ScoreboardEvent) + Send,
) -> Result<FilledBoard> {
    let cells = selection.cells();
    let program = Program { commit: commit(), program: own_hash()?, cpu: thread_seconds };
    let mut store = Store::open(places.own, &program.program)?;
    for other in places.others {
        store.import(other)?;
    }
    let in_part = cells.iter().enumerate().filter(|(place, _)| places.part.takes(*place));
    let wanted: Vec<Cell> =
        in_part.map(|(_, cell)| cell).filter(|cell| !store.has(&cell.key())).cloned().collect();
    tell(ScoreboardEvent::Begins { cells: cells.len(), there: cells.len() - wanted.len() });
    let begun = Instant::now();
    let taker = Mutex::new(RowWriter {
        tell,
        store: &mut store,
        begun,
        told: begun,
        done: 0,
        of: wanted.len(),
        failed: None,
    });
    let ran = scoreboard::run(&wanted, &program, cancel, &|row| {
        taker.lock().unwrap_or_else(PoisonError::into_inner).take(row);
    });
    let RowWriter { done, failed, .. } = taker.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = failed {
        return Err(error).about(|| store.file().display().to_string());
    }
    ran?;
    let rows = store.rows(&cells);
    let board = Board::new(&selection.scenes(), &rows);
    let laws: Vec<&str> = selection.laws().map(|law| law.name.as_str()).collect();
    store.write_table(&rows)?;
    store.write_picture(&heatmap::draw(&board, &laws, &below(selection, &program)))?;
    Ok(FilledBoard { rows, board, ran: done, seconds: begun.elapsed().as_secs_f64(), file: store.file() })
}

/// Whether a bound is missed for a reason that is known.
#[must_use]
pub fn is_known(judged: &BoundResult) -> bool {
    judged.holds() && !judged.missed.is_empty()
}

/// The seeds of a selection, as text for figures.
#[must_use]
pub fn seeds(selection: &CellSelection) -> String {
    match selection.seeds {
        1 => "seed 1".to_owned(),
        seeds => format!("medians of seeds 1 to {seeds}"),
    }
}

/// The caption of the picture.
fn below(selection: &CellSelection, program: &Program) -> String {
    let form = match selection.form {
        Form::Quick => "quick form",
        Form::Full => "full form",
    };
    format!("byway lab scoreboard, {form}, {}, {}, {}", seeds(selection), program.commit, today())
}

/// Stores the rows of finished cells, and reports them.
struct RowWriter<'a, T> {
    tell: T,
    store: &'a mut Store,
    begun: Instant,
    told: Instant,
    done: usize,
    of: usize,
    failed: Option<Error>,
}

impl<T: FnMut(ScoreboardEvent)> RowWriter<'_, T> {
    fn take(&mut self, row: CellRow) {
        self.done += 1;
        (self.tell)(ScoreboardEvent::Row(Box::new(row.clone())));
        if let Err(error) = self.store.add(row) {
            self.failed.get_or_insert(error);
        }
        if self.told.elapsed() >= PROGRESS_INTERVAL {
            self.told = Instant::now();
            let seconds = self.begun.elapsed().as_secs_f64();
            (self.tell)(ScoreboardEvent::Progress { done: self.done, of: self.of, seconds });
        }
    }
}

/// The commit that is checked out where this was started, with a `+` if more was changed; the
/// version where there is none.
fn commit() -> String {
    let asked = Command::new("git").args(["describe", "--always", "--exclude", "*", "--dirty=+"]).output();
    match asked {
        Ok(answer) if answer.status.success() => String::from_utf8_lossy(&answer.stdout).trim().to_owned(),
        _ => format!("byway {}", env!("CARGO_PKG_VERSION")),
    }
}
