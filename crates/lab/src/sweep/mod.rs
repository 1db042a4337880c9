//! Sweeps that outgrow one machine: a plan's runs are cut into tasks, and each run leaves a row.
//! Rows of any machines, in any order, make the table and the verdicts of a local run.
//!
//! | module | what it holds |
//! |---|---|
//! | `identity` | of which plan and program tasks and rows are |
//! | `task` | a task as a line of text |
//! | `cut` | how many seeds a task has |
//! | `row` | what a run leaves, as a line of JSON |
//! | `part` | a part of a list that all machines know |
//! | `collection` | rows of one sweep, and the runs that are missing |

mod collection;
mod cut;
mod identity;
mod part;
mod row;
mod task;

pub use collection::{Collection, RowConflict};
pub use cut::{cut, seeds_per_task};
pub use identity::SweepIdentity;
pub use part::Part;
pub use row::{Row, RowError};
pub use task::{SweepTask, TaskError};
