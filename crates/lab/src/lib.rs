//! The lab. A plan, which is data, becomes a simulated world, then tables, figures and verdicts.
//!
//! `plan` reads a plan and expands it into variants. Each is a [`Setup`] with nothing left to
//! choose but the seed. `world` builds and runs one and yields a [`Record`]. `expect` checks claims
//! with records. `figure` and `report` show them. What a plan may say stands in `docs/lab.md`.

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
