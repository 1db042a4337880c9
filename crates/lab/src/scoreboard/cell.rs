//! A cell: a scene, a law and a seed. It becomes a row.

use super::grid::{Law, LineHalf, Scene};
use super::measure::{Figures, figures};
use super::world::{compared, plan, setup};
use crate::record::Record;
use crate::world::{self, RunError};
use core::sync::atomic::{AtomicBool, Ordering};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// One run of the scoreboard: a scene, a law and a seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The line, the foreground and the transfers.
    pub scene: Scene,
    /// The law that governs the transfers.
    pub law: Law,
    /// The seed of the run.
    pub seed: u64,
}

/// Why a cell has no row.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CellError {
    /// The plan of the scene is none, so the board is wrong.
    #[error("{0}")]
    Plan(String),
    /// The world of the scene cannot be made or run, or the run was cancelled.
    #[error("{scene}, {law}: {error}")]
    Run {
        /// The scene that failed.
        scene: String,
        /// The law of the run.
        law: String,
        /// The reason of the failure.
        error: Box<RunError>,
    },
}

/// The result of a cell. The same cell and program give the same row, except for `cpu_seconds`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellRow {
    /// The commit of the program, for people.
    pub commit: String,
    /// The identity of the program.
    pub program: String,
    /// The cell: a hash of its plan, in which its law is.
    pub cell: String,
    /// The line's name.
    pub line: String,
    /// The half of the grid that the scene is in.
    pub half: LineHalf,
    /// The foreground traffic.
    pub foreground: String,
    /// Number of transfers in the scene.
    pub transfers: u32,
    /// The differences among the transfers.
    pub among: String,
    /// The law of the background transfers.
    pub law: String,
    /// The seed of the run.
    pub seed: u64,
    /// The figures of the run.
    #[serde(flatten)]
    pub figures: Figures,
    /// Hash of all that happened.
    pub trace: String,
    /// Packets that links delivered.
    pub packets: u64,
    /// Duration of the run, in simulated seconds.
    pub seconds: f64,
    /// Processor time of the run in seconds.
    pub cpu_seconds: f64,
}

/// The identity of a row: a hash of its plan, and its seed.
pub type Key = (String, u64);

impl CellRow {
    /// See [`Cell::key`].
    #[must_use]
    pub fn key(&self) -> Key {
        (self.cell.clone(), self.seed)
    }

    /// See [`Scene::who`].
    #[must_use]
    pub fn who(&self) -> String {
        match self.among.as_str() {
            "alike" => self.transfers.to_string(),
            among => format!("{}-{among}", self.transfers),
        }
    }
}

impl Cell {
    /// Returns the cell's identity.
    #[must_use]
    pub fn key(&self) -> Key {
        (hash(&plan(&self.scene, Some(&self.law)).to_string()), self.seed)
    }

    fn error(&self) -> impl FnOnce(RunError) -> CellError {
        let (scene, law) = (self.scene.to_string(), self.law.name.clone());
        |error| CellError::Run { scene, law, error: Box::new(error) }
    }
}

/// FNV-1a of 64 bits, in hexadecimal.
fn hash(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// The identity of the program that runs cells, and its processor clock.
#[derive(Clone, Debug)]
pub struct Program {
    /// See [`CellRow::commit`].
    pub commit: String,
    /// See [`CellRow::program`].
    pub program: String,
    /// Seconds of a processor that this thread has taken so far.
    pub cpu: fn() -> f64,
}

/// A run with which cells are compared. The first thread that needs it runs it, and the others
/// wait.
type SharedRun = Arc<Mutex<Option<Arc<Record>>>>;

/// Runs to compare with: foregrounds alone, each run once for all transfers and laws, and transfers
/// over one path.
#[derive(Debug, Default)]
struct BaselineRuns(Mutex<BTreeMap<Key, SharedRun>>);

impl BaselineRuns {
    fn of(&self, plan: &Value, cell: &Cell, cancel: &AtomicBool) -> Result<Arc<Record>, CellError> {
        // Whoever panicked in between has left nothing half done: a record is put there whole.
        let place = Arc::clone(
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .entry((hash(&plan.to_string()), cell.seed))
                .or_default(),
        );
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(record) = &*place {
            return Ok(Arc::clone(record));
        }
        let record = Arc::new(run_plan(plan, cell, cancel)?);
        *place = Some(Arc::clone(&record));
        Ok(record)
    }
}

fn run_plan(plan: &Value, cell: &Cell, cancel: &AtomicBool) -> Result<Record, CellError> {
    let setup = setup(plan).map_err(|error| CellError::Plan(error.to_string()))?;
    world::run(&setup, cell.seed, cancel).map_err(cell.error())
}

fn row(
    cell: &Cell,
    alone: &BaselineRuns,
    program: &Program,
    cancel: &AtomicBool,
) -> Result<CellRow, CellError> {
    let before = (program.cpu)();
    let alone = match compared(&cell.scene, &cell.law) {
        Some(plan) => Some(alone.of(&plan, cell, cancel)?),
        None => None,
    };
    let plan = plan(&cell.scene, Some(&cell.law));
    let beside = run_plan(&plan, cell, cancel)?;
    Ok(CellRow {
        commit: program.commit.clone(),
        program: program.program.clone(),
        cell: hash(&plan.to_string()),
        line: cell.scene.line.to_string(),
        half: cell.scene.line.half,
        foreground: cell.scene.foreground.name().to_owned(),
        transfers: cell.scene.transfers,
        among: cell.scene.among.to_string(),
        law: cell.law.name.clone(),
        seed: cell.seed,
        figures: figures(&cell.scene, alone.as_deref(), &beside),
        trace: format!("{:016x}", beside.trace),
        packets: beside.packets,
        seconds: beside.duration,
        cpu_seconds: (program.cpu)() - before,
    })
}

/// Runs cells (simulations) on all cores, the most expensive first. `done` gets the row of each
/// finished cell. Once `cancel` is set, no further cell begins, and active cells stop.
///
/// # Errors
/// The first cell that could not be run.
pub fn run(
    cells: &[Cell],
    program: &Program,
    cancel: &AtomicBool,
    done: &(dyn Fn(CellRow) + Sync),
) -> Result<(), CellError> {
    let mut order: Vec<&Cell> = cells.iter().collect();
    order.sort_by_key(|cell| core::cmp::Reverse(cell.scene.cost()));
    let alone = BaselineRuns::default();
    order.into_par_iter().with_max_len(1).try_for_each(|cell| {
        if cancel.load(Ordering::Relaxed) {
            return Ok(());
        }
        match row(cell, &alone, program, cancel) {
            Ok(row) => done(row),
            Err(CellError::Run { error, .. }) if *error == RunError::Cancelled => {}
            Err(error) => return Err(error),
        }
        Ok(())
    })
}

/// Reads the rows of a text of JSON lines. An invalid line is left out, such as the incomplete last
/// line of a killed program.
#[must_use]
pub fn rows(text: &str) -> Vec<CellRow> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::grid::{Foreground, GRID_LINES};
    use super::super::scenes::Form;
    use super::super::selection::LineSet;
    use super::super::transfer_mix::TransferMix;
    use super::*;

    fn program() -> Program {
        Program { commit: "c".into(), program: "p".into(), cpu: || 1.0 }
    }

    /// The cells of the slowest line and one law: they take a second.
    fn cells(foregrounds: &[Foreground]) -> Vec<Cell> {
        let law = Law::named("cubic").expect("a law");
        foregrounds
            .iter()
            .map(|&foreground| Scene {
                line: GRID_LINES[0],
                foreground,
                transfers: 1,
                among: TransferMix::Alike,
            })
            .map(|scene| Cell { scene, law: law.clone(), seed: 3 })
            .collect()
    }

    fn rows_of(cells: &[Cell]) -> Vec<CellRow> {
        let rows = Mutex::new(Vec::new());
        run(cells, &program(), &AtomicBool::new(false), &|row| rows.lock().expect("rows").push(row))
            .expect("rows");
        let mut rows = rows.into_inner().expect("rows");
        rows.sort_by_key(CellRow::key);
        rows
    }

    #[test]
    fn the_same_cell_gives_the_same_row() {
        let cells = cells(&[Foreground::Nobody, Foreground::Cubic]);
        let first = rows_of(&cells);
        assert_eq!(first.len(), 2);
        assert_eq!(first, rows_of(&cells));
        let mut keys: Vec<Key> = cells.iter().map(Cell::key).collect();
        keys.sort();
        assert_eq!(first.iter().map(CellRow::key).collect::<Vec<_>>(), keys);
        let text: String =
            first.iter().map(|row| serde_json::to_string(row).expect("a line") + "\n").collect();
        assert_eq!(rows(&text), first);
        // The last line of a program that was killed.
        assert_eq!(rows(&text[..text.len() - 20]), first[..1]);
    }

    #[test]
    fn a_cell_is_known_by_all_that_makes_it() {
        let base = &cells(&[Foreground::Requests])[0];
        let (mut seed, mut law, mut transfers, mut line) =
            (base.clone(), base.clone(), base.clone(), base.clone());
        seed.seed += 1;
        law.law = Law::named("nice").expect("a law");
        transfers.scene.transfers = 2;
        line.scene.line.queue += 1;
        for other in [seed, law, transfers, line] {
            assert_ne!(other.key(), base.key());
        }
        assert_eq!(base.clone().key(), base.key());
    }

    #[test]
    fn who_is_stopped_leaves_no_row() {
        let cells = cells(&[Foreground::Nobody]);
        let none = |_| panic!("a row");
        assert_eq!(run(&cells, &program(), &AtomicBool::new(true), &none), Ok(()));
    }

    #[test]
    fn every_scene_is_a_plan() {
        let laws = Law::all();
        let sets = [LineSet::Grid, LineSet::Jitter].map(|lines| lines.scenes(Form::Full)).concat();
        for (place, scene) in sets.iter().enumerate() {
            let text = plan(scene, laws.get(place % laws.len()));
            setup(&text).unwrap_or_else(|error| panic!("{scene}: {error}"));
            let times = scene.times();
            assert!(times.begin <= times.end && times.end <= times.stop, "{scene}");
        }
    }
}
