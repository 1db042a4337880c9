//! The language of measures: arithmetic over functions of runs, such as
//! `goodput(S1R1)[coupling=joint] / goodput(S1R1)[coupling=independent]`. `docs/lab.md` lists the
//! functions.
//!
//! A [`Measure`] is parsed once, and then evaluated over [`Records`], for one seed at a time. What
//! it asks of one run is a question. [`RunAnswers`] has the answers of a run. With these, measures
//! can be evaluated without its record, and elsewhere.

mod evaluate;
mod functions;
mod gateways;
mod lexer;
mod measure_error;
mod measure_text;
mod parser;
mod question;
mod records;
mod requests;
mod run;
mod run_answers;
mod series;
mod transfers;
mod tree;
mod undefined_value;
mod written_answers;

pub use measure_error::MeasureError;
pub use measure_text::{Measure, PerSeed};
pub use parser::MAX_TEXT_LEN;
pub use records::{AxisLabels, Records, RecordsError, Selection};
pub use run_answers::{RunAnswers, SharedTexts};
pub use undefined_value::{Undefined, Why};
pub use written_answers::WrittenAnswers;
