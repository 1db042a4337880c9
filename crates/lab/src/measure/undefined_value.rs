//! Why a measure has no value.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a measure has no value for a seed. If several parts have none, the worst reason counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The measured event did not happen. For example, the transfer did not finish.
    NoData,
    /// The records do not contain the variant, or this seed.
    NotRun,
    /// The question fits no run. For example, it names an unknown transfer, or a window after the
    /// end.
    Wrong,
}

/// A measure has no value, and why.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("{what}")]
pub struct Undefined {
    /// The kind of the reason.
    pub why: Why,
    /// A sentence for a person.
    pub what: String,
}

impl Undefined {
    pub(super) fn no_data(what: impl Into<String>) -> Self {
        Self { why: Why::NoData, what: what.into() }
    }

    pub(super) fn not_run(what: impl Into<String>) -> Self {
        Self { why: Why::NotRun, what: what.into() }
    }

    pub(super) fn wrong(what: impl Into<String>) -> Self {
        Self { why: Why::Wrong, what: what.into() }
    }

    /// The graver of two reasons.
    pub(super) fn or(self, other: Self) -> Self {
        if other.why > self.why { other } else { self }
    }
}
