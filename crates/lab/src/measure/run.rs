//! A run as measures see it: its whole record, or what it answered.

use super::question::Question;
use super::requests;
use super::run_answers::RunAnswers;
use super::series::RunTimes;
use super::transfers::Transfers;
use super::undefined_value::Undefined;
use crate::record::{Record, RequestsRecord};

/// A run that can be asked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Run<'a> {
    /// A run with its record, which answers every question.
    Recorded(&'a Record),
    /// A run with saved answers, which answers only the questions asked before.
    Answered(&'a RunAnswers),
}

impl<'a> Run<'a> {
    /// The label of the run's variant on each axis.
    pub(super) fn axes(self) -> &'a [(String, String)] {
        match self {
            Self::Recorded(record) => &record.axes,
            Self::Answered(answers) => &answers.axes,
        }
    }

    pub(super) const fn seed(self) -> u64 {
        match self {
            Self::Recorded(record) => record.seed,
            Self::Answered(answers) => answers.seed,
        }
    }

    pub(super) const fn times(self) -> RunTimes {
        match self {
            Self::Recorded(record) => RunTimes::of(record),
            Self::Answered(answers) => answers.times,
        }
    }

    /// Answers `question` from the run.
    pub(super) fn answer(self, question: &Question<'_>) -> Result<f64, Undefined> {
        match self {
            Self::Recorded(record) => question.ask(record),
            Self::Answered(answers) => answers.answer(question),
        }
    }

    /// Returns the names of the transfers that a name of a transfer or group denotes.
    pub(super) fn members(self, name: &str) -> Result<Vec<&'a str>, Undefined> {
        match self {
            Self::Recorded(record) => Ok(Transfers::named(record, name)?.names().collect()),
            Self::Answered(answers) => answers.members(name),
        }
    }

    /// The requests with this name, one by one.
    pub(super) fn requests(self, name: &str) -> Result<&'a RequestsRecord, Undefined> {
        match self {
            Self::Recorded(record) => requests::named(record, name),
            Self::Answered(answers) => answers.requests(name),
        }
    }
}
