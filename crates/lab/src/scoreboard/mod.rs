//! The scoreboard compares laws for the background. They run on the same lines, beside the same
//! others, with the same seeds.
//!
//! * `grid`: lines, foregrounds, numbers of transfers and laws. A line or a law is one row of a
//!   table.
//! * `cases`: scenes that are no cells of the grid, one a row.
//! * `times` and `world`: a scene of them as a plan. `cell`: runs it, and makes a row of it.
//!   `measure`: what it says.
//! * `bounds`: what is promised of the product. `known` and `known_full` have what is known to be
//!   missed. `judge` compares the one with the other.
//! * `selection`: which cells are wanted. `heatmap`: a picture of harm and use.

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
