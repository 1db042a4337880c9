//! The lab turns a plan, which is data, into a simulated world, and the records of this world into
//! tables, figures and verdicts. `docs/lab.md` describes what a plan may contain.
//!
//! | module | what it does |
//! |---|---|
//! | `plan` | reads a plan and expands it into variants; each is a [`Setup`] |
//! | `world` | runs a variant with a seed and returns a [`Record`] |
//! | `expect` | checks claims with records |
//! | `acceptance` | compares a known miss with the value at which it was accepted |
//! | `headlines` | the sentences of the papers' abstracts, held against results |
//! | `figure`, `html_report` | show the results |

pub mod acceptance;
pub mod expect;
pub mod experiment;
pub mod figure;
pub mod fuzz;
pub mod headlines;
pub mod html_report;
pub mod measure;
pub mod plan;
pub mod record;
pub mod request_times;
pub mod runner;
pub mod scoreboard;
pub mod setup;
pub mod spelling;
pub mod stats;
pub mod sweep;
pub mod trace;
pub mod utilization;
pub mod world;

pub use record::Record;
pub use setup::Setup;
