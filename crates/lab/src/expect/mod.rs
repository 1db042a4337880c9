//! Claims about a plan, and whether they hold. `expect.toml` is parsed, and each claim is evaluated
//! over the records of the runs. The results are written as JSON (`result.json`), as a table, and
//! as CSV.

mod check;
mod holds;
mod judge;
mod outcome;
mod read;
mod reading;
pub mod table;
pub mod write;

pub use holds::{Holds, missed_of_paper};
pub use outcome::{ClaimResult, ColumnResult, Judged, Measured, Missing, Outcome, Verdict, trace_of};
pub use reading::Reading;

use crate::figure::FigureSpec;
use crate::measure::{Measure, Records, Selection, Undefined};
use crate::plan::Mode;
use core::ops::Range;
use std::collections::BTreeMap;
use thiserror::Error;

/// The claims about the results of a plan.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// The subject in one line.
    pub title: Option<String>,
    /// The source of the claims, such as "Harp, figure 6(a)".
    pub paper: Option<String>,
    /// Tags by which experiments are chosen.
    pub tags: Vec<String>,
    /// Why claims are missed, in ten words.
    pub missed: Option<String>,
    /// Why the experiment is not run: a few words, a colon, and details. `None` if it is run.
    pub not_run: Option<String>,
    /// The claims, in the order of the file.
    pub claims: Vec<Claim>,
    /// Columns of the table.
    pub shows: Vec<Show>,
    /// The figures that are drawn.
    pub figures: Vec<FigureSpec>,
    file: String,
    source: String,
}

/// A sentence of a paper with a bound on a measure.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Unique within the file.
    pub id: String,
    /// The text of the claim.
    pub says: String,
    /// The figure as the paper states it.
    pub paper: Option<String>,
    /// The expression over records that the bound is for.
    pub measure: Measure,
    /// The claim holds if the measure is no less.
    pub at_least: Option<f64>,
    /// The claim holds if the measure is no more.
    pub at_most: Option<f64>,
    /// The unit of the measure.
    pub unit: String,
    /// The reading of the paper that the claim concerns.
    pub reading: Option<Reading>,
    /// The id of the claim of which this one is another reading. `None`: this claim stands alone.
    pub of: Option<String>,
    /// The axes for each value of which the claim must hold.
    pub each: Vec<String>,
    /// The values of some axes for which alone the claim is made.
    pub only: BTreeMap<String, Vec<String>>,
    /// Why the claim is missed. `None`: not known, or not missed.
    pub known: Option<String>,
    /// The value at which a known miss was accepted, by mode. NaN: a seed had no value.
    pub accepted: BTreeMap<Mode, f64>,
    /// The modes in which the claim is evaluated.
    pub modes: Vec<Mode>,
    /// The byte range of the measure in the file.
    span: Range<usize>,
}

impl Claim {
    /// Whether the claim has no bound, so that its value is only shown.
    #[must_use]
    pub const fn is_report(&self) -> bool {
        self.at_least.is_none() && self.at_most.is_none()
    }

    /// The combinations of `each` about which the claim is.
    fn combinations(&self, records: &Records<'_>) -> Result<Vec<Selection>, Undefined> {
        let mut combinations = records.combinations(&self.each)?;
        combinations.retain(|combination| {
            let mut only = self.only.iter();
            only.all(|(axis, labels)| combination.get(axis).is_some_and(|label| labels.contains(label)))
        });
        Ok(combinations)
    }
}

/// A column of the table: evaluated for every variant.
#[derive(Clone, Debug)]
pub struct Show {
    /// The column's heading.
    pub name: String,
    /// The expression over records that the column shows.
    pub measure: Measure,
    /// The unit of the measure.
    pub unit: String,
    span: Range<usize>,
}

/// A mistake in an expectation, and its place in the file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}:{line}:{column}: {what}")]
pub struct ExpectError {
    /// The file that is wrong.
    pub file: String,
    /// The line of the mistake, counted from 1.
    pub line: usize,
    /// The character of the line, from 1.
    pub column: usize,
    /// The text that was found, and the text that was expected.
    pub what: String,
}

impl ExpectError {
    /// An error at a byte of `source`.
    fn at(file: &str, source: &str, byte: usize, what: String) -> Self {
        let before = source.get(..byte).unwrap_or(source);
        let line = before.rsplit('\n').next().unwrap_or_default();
        Self {
            file: file.to_owned(),
            line: 1 + before.bytes().filter(|&byte| byte == b'\n').count(),
            column: 1 + line.chars().count(),
            what,
        }
    }
}
