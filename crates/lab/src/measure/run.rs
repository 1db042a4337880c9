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
    /// By its record: it answers every question.
    Recorded(&'a Record),
    /// By the answers that it gave: it answers what it was asked then.
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

    /// What the run answers to `question`.
    pub(super) fn answer(self, question: &Question<'_>) -> Result<f64, Undefined> {
        match self {
            Self::Recorded(record) => question.ask(record),
            Self::Answered(answers) => answers.answer(question),
        }
    }

    /// The names of the transfers that a transfer's or a group's name stands for.
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
