//! The lab turns a plan, which is data, into a simulated world, and the records of this world into
//! tables, figures and verdicts.
//!
//! `plan` reads a plan and expands it into variants. Each variant is a [`Setup`]. `world` runs a
//! variant with a seed and returns a [`Record`]. `expect` checks claims with records. `figure` and
//! `report` show the results. `docs/lab.md` describes what a plan may contain.

pub mod expect;
pub mod experiment;
pub mod figure;
pub mod fuzz;
pub mod measure;
pub mod plan;
pub mod record;
pub mod report;
pub mod request_times;
pub mod runner;
pub mod scoreboard;
pub mod setup;
pub mod spelling;
pub mod stats;
pub mod trace;
pub mod utilization;
pub mod world;

pub use record::Record;
pub use setup::Setup;
