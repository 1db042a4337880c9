//! The scoreboard compares laws (congestion controls) for background transfers. A scene is a line,
//! the traffic of others on it, and the transfers. A cell is one simulation of a scene with a law
//! and a seed. The result of a cell is a row.
//!
//! * `grid`: the scenes and the laws. `cases`: further scenes. `times`: how long a scene lasts.
//! * `world`: turns a scene into a plan. `cell`: runs cells. `measure`: computes the values of a
//!   row.
//! * `bounds`: the bounds that byway's class `background` must meet. `known`: the bounds that it is
//!   known to miss. `known_full`: more such bounds, for scenes that a quick scoreboard leaves out.
//!   `judge`: compares rows with the bounds.
//! * `selection`: which cells to run. `heatmap`: a picture of all rows.

pub mod bounds;
mod cases;
pub mod cell;
pub mod grid;
pub mod heatmap;
pub mod judge;
pub mod known;
pub mod known_full;
pub mod measure;
pub mod selection;
mod times;
pub mod world;

pub use cases::TransferMix;
pub use cell::{Cell, CellError, CellRow, Key, Program, rows, run};
pub use grid::{Bottleneck, Foreground, Form, LINES, Law, LineHalf, PRODUCT, Scene, TRANSFERS, scenes};
pub use judge::{Board, BoundMiss, BoundResult, Figure, judge};
pub use measure::Figures;
pub use selection::{CellFilter, CellSelection};
