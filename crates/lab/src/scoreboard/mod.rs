//! The scoreboard compares laws (congestion controls) for background transfers. All laws run on the
//! same lines, beside the same foreground traffic, with the same seeds.
//!
//! * `grid`: tables of lines, foregrounds and laws. `cases`: further scenes, one per row.
//! * `times`: how long a scene lasts. `world`: turns a scene into a plan. `cell`: runs the plan
//!   with a law and a seed, and makes a row of the result. `measure`: computes the figures of the
//!   row.
//! * `bounds`: the bounds that byway's class `background` must meet. `known`, `known_full`: the
//!   bounds that it is known to miss. `judge`: compares rows with the bounds.
//! * `selection`: which cells to run. `heatmap`: the results as a picture.

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
