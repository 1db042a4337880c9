//! The language of measures: arithmetic over functions of runs, such as
//! `goodput(S1R1)[coupling=joint] / goodput(S1R1)[coupling=independent]`. `docs/lab.md` lists the
//! functions.
//!
//! A [`Measure`] is parsed once, and then evaluated over [`Records`], for one seed at a time.

mod evaluate;
mod functions;
mod gateways;
mod lexer;
mod parser;
mod records;
mod requests;
mod series;
mod transfers;
mod tree;

pub use records::{AxisLabels, Records, RecordsError, Selection};

use std::collections::BTreeMap;
use thiserror::Error;
use tree::Expr;

/// The longest measure, in bytes.
pub const MAX_TEXT_LEN: usize = 4096;

/// How the member is called that `members(group)` has come to.
const MEMBER_NAME: &str = "it";

/// A measure that is ready to be evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    text: String,
    root: Expr,
}

/// A mistake in a measure, and its place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("byte {}: {what}", at + 1)]
pub struct MeasureError {
    /// The byte of the measure where the mistake shows, counted from 0.
    pub at: usize,
    /// What was found, and what was expected.
    pub what: String,
}

/// Why a measure has no value for a seed. If several parts have none, the gravest reason counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The measured event did not happen. For example, the transfer did not finish.
    NoData,
    /// The records do not contain the variant, or this seed.
    NotRun,
    /// The question fits no run: no such transfer, a window after the end.
    Wrong,
}

/// A measure has no value, and why.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what}")]
pub struct Undefined {
    /// The kind of the reason.
    pub why: Why,
    /// A sentence for a person.
    pub what: String,
}

impl Undefined {
    fn no_data(what: impl Into<String>) -> Self {
        Self { why: Why::NoData, what: what.into() }
    }

    fn not_run(what: impl Into<String>) -> Self {
        Self { why: Why::NotRun, what: what.into() }
    }

    fn wrong(what: impl Into<String>) -> Self {
        Self { why: Why::Wrong, what: what.into() }
    }

    /// The graver of two reasons.
    fn or(self, other: Self) -> Self {
        if other.why > self.why { other } else { self }
    }
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
