//! The scoreboard compares laws (congestion controls) for background transfers. All laws run on the
//! same lines, beside the same foreground traffic, with the same seeds.
//!
//! * `grid`: lines, foregrounds, numbers of transfers, and laws. Each line and each law is one row
//!   of a table.
//! * `cases`: single scenes outside the grid, one per row.
//! * `times` and `world`: turn a scene into a plan. `cell`: runs the plan with a law and a seed,
//!   and makes a row of the result. `measure`: computes the figures of the row.
//! * `bounds`: the bounds that the product's law must meet. `known` and `known_full`: the bounds
//!   that it is known to miss. `judge`: compares rows with the bounds.
//! * `selection`: which cells to run. `heatmap`: a picture of harm and use.

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
