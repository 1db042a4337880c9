//! The language of measures: arithmetic over functions of runs, such as
//! `goodput(S1R1)[coupling=joint] / goodput(S1R1)[coupling=independent]`. `docs/lab.md` lists the
//! functions.
//!
//! A [`Measure`] is parsed once, and then evaluated over [`Records`], for one seed at a time.

mod evaluate;
mod functions;
mod gateways;
mod lexer;
mod measure_error;
mod parser;
mod records;
mod requests;
mod series;
mod transfers;
mod tree;
mod undefined_value;

pub use measure_error::MeasureError;
pub use parser::MAX_TEXT_LEN;
pub use records::{AxisLabels, Records, RecordsError, Selection};
pub use undefined_value::{Undefined, Why};

use std::collections::BTreeMap;
use tree::Expr;

/// A measure that is ready to be evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    text: String,
    root: Expr,
}

/// For each seed the value, or why there is none.
pub type PerSeed = BTreeMap<u64, Result<f64, Undefined>>;

impl Measure {
    /// Reads a measure.
    ///
    /// # Errors
    /// The text is not in the language, names an unknown function, gives a function arguments that
    /// do not fit, is longer than `MAX_TEXT_LEN` bytes, or is nested too deeply.
    pub fn parse(text: &str) -> Result<Self, MeasureError> {
        Ok(Self { text: text.to_owned(), root: parser::parse(text)? })
    }

    /// The measure as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Evaluates the measure separately for each seed of `records`. A variant is a combination of
    /// values of the plan's axes (varied settings). The measure sets some axes, as in
    /// `goodput(t)[coupling=joint]` (`t`: a transfer); `at` sets others. Together they must select
    /// exactly one variant.
    #[must_use]
    pub fn evaluate(&self, records: &Records<'_>, at: &Selection) -> PerSeed {
        let value = |seed| evaluate::evaluate(&self.root, &self.text, records, seed, at);
        records.seeds().map(|seed| (seed, value(seed))).collect()
    }
}
