//! Sweeps on many machines: a plan is cut into tasks, a task leaves rows, and rows become a result.
//! Whoever places tasks on machines needs nothing of byway but these three.
//!
//! | module | what it does |
//! |---|---|
//! | `swept_plan` | a plan with its expectation and its identity |
//! | `tasks` | cuts a plan by the time that a run takes |
//! | `task_run` | runs a task |
//! | `row_files` | writes and reads files of rows |
//! | `gather` | makes a result of rows |

mod gather;
mod row_files;
mod swept_plan;
mod task_run;
mod tasks;

pub use gather::{GatherEvent, Gathered};
pub use row_files::RowTarget;
pub use swept_plan::Sweep;
pub use task_run::{FailedRun, TaskRows};
pub use tasks::{TaskLength, TaskList};
