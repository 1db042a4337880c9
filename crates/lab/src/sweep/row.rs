//! The row of a run: its key and its answers, as a line of JSON.

use super::identity::SweepIdentity;
use crate::measure::{Measure, RecordsError, RunAnswers, SharedTexts, WrittenAnswers};
use crate::record::Record;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A row as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The plan and the program of the row.
    pub identity: SweepIdentity,
    /// The answers of the run.
    pub answers: RunAnswers,
}

/// Why a line is no row.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RowError {
    /// The text is not the JSON of a row, as when a line was cut off.
    #[error("it is no row, or a part of one")]
    NoRow,
    /// The trace is not a hash.
    #[error("its trace is no hexadecimal number")]
    Trace,
}

#[derive(Serialize, Deserialize)]
struct WrittenRow {
    plan: String,
    program: String,
    #[serde(flatten)]
    answers: WrittenAnswers,
}

impl Row {
    /// Returns the line for a run, without a line feed. The same run gives the same bytes
    /// everywhere.
    ///
    /// # Errors
    /// The times of the record are no times.
    pub fn line<'m>(
        identity: &SweepIdentity,
        record: &Record,
        measures: impl IntoIterator<Item = &'m Measure>,
    ) -> Result<String, RecordsError> {
        let SweepIdentity { plan, program } = identity.clone();
        let row = WrittenRow { plan, program, answers: WrittenAnswers::of(record, measures)? };
        // A struct of texts and finite numbers always has a JSON form.
        Ok(serde_json::to_string(&row).unwrap_or_default())
    }

    /// Reads a line that [`line`](Self::line) wrote.
    ///
    /// # Errors
    /// The line is no row.
    pub fn read(line: &str, texts: &mut SharedTexts) -> Result<Self, RowError> {
        let row: WrittenRow = serde_json::from_str(line).map_err(|_| RowError::NoRow)?;
        let identity = SweepIdentity { plan: row.plan, program: row.program };
        Ok(Self { identity, answers: row.answers.shared(texts).ok_or(RowError::Trace)? })
    }
}
