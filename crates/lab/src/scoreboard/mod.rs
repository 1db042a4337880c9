//! The scoreboard compares laws (congestion controls) for background transfers. A scene is a line,
//! the traffic of others, and the transfers. A cell is one simulation of a scene with a law and a
//! seed. Its result is a row.
//!
//! | module | what it holds |
//! |---|---|
//! | `grid` | the lines, who else is on them, and the laws |
//! | `transfer_mix` | how the transfers of one scene differ |
//! | `scenes`, `cases` | which scenes there are: the grid, and those beside it |
//! | `jitter` | the scenes on lines whose delays jump without a queue |
//! | `times` | how long a scene lasts |
//! | `world` | turns a scene into a plan |
//! | `cell`, `measure` | runs cells; computes the values of a row |
//! | `bound` | what a bound is: a figure of a scene and its limit |
//! | `bounds` | the bounds that byway's class `background` must meet |
//! | `known` | the bounds that `background` is known to miss |
//! | `known_full` | more such bounds, for scenes that a quick scoreboard leaves out |
//! | `known_jitter` | more such bounds, for lines whose delays jump |
//! | `accepted` | the values at which known misses were accepted |
//! | `judge` | compares rows with the bounds |
//! | `selection` | which cells to run |
//! | `heatmap` | a picture of all rows |

mod accepted;
pub mod bound;
pub mod bounds;
mod cases;
pub mod cell;
pub mod grid;
pub mod heatmap;
mod jitter;
pub mod judge;
pub mod known;
pub mod known_full;
pub mod known_jitter;
pub mod measure;
mod scenes;
pub mod selection;
pub mod tables;
mod times;
mod transfer_mix;
pub mod world;

pub use bound::Figure;
pub use cell::{Cell, CellError, CellRow, Key, Program, rows, run};
pub use grid::{Bottleneck, Foreground, GRID_LINES, Law, LineHalf, PRODUCT_LAW, Scene, TRANSFER_COUNTS};
pub use judge::{Board, BoundMiss, BoundResult, judge};
pub use measure::Figures;
pub use scenes::{Form, scenes};
pub use selection::{CellFilter, CellSelection, LineSet};
pub use transfer_mix::TransferMix;
