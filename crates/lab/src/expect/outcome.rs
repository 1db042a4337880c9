//! What came out, as data.

use super::Reading;
use crate::plan::Mode;
use crate::record::Record;
use crate::stats::Interval;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What became of a claim, from the least to the gravest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The variants that it speaks of were not run.
    NotRun,
    /// The claim has no bound.
    Report,
    /// The claim holds.
    Pass,
    /// The claim fails, and it is known why.
    KnownMiss,
    /// The claim fails.
    Fail,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `pad` so that a width in a format string counts.
        f.pad(match self {
            Self::NotRun => "not run",
            Self::Report => "report",
            Self::Pass => "PASS",
            Self::KnownMiss => "known miss",
            Self::Fail => "FAIL",
        })
    }
}

impl Verdict {
    /// The gravest; nothing at all was not run.
    pub fn worst(verdicts: impl IntoIterator<Item = Self>) -> Self {
        verdicts.into_iter().max().unwrap_or(Self::NotRun)
    }
}

/// A seed without a value, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The seed of the run that failed.
    pub seed: u64,
    /// The reason in one sentence.
    pub why: String,
}

/// The values of a measure in one variant, or for one combination of `each`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The labels, in the order of the axes.
    pub variant: Vec<(String, String)>,
    /// The seeds with a value.
    pub seeds: Vec<u64>,
    /// The seeds' values, in the order of `seeds`.
    pub values: Vec<f64>,
    /// The median of the values; `None` if there is none.
    pub median: Option<f64>,
    /// Where the median lies.
    pub interval: Option<Interval>,
    /// Seeds that ran and have no value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimResult {
    /// The id of the claim.
    pub id: String,
    /// The claim in words.
    pub says: String,
    /// The number that the paper has.
    pub paper: Option<String>,
    /// The measure as it stands in the file.
    pub measure: String,
    /// The unit of the measure.
    pub unit: String,
    /// The reading of the paper.
    pub reading: Option<Reading>,
    /// The lower bound of the claim.
    pub at_least: Option<f64>,
    /// The upper bound of the claim.
    pub at_most: Option<f64>,
    /// Why it is missed, where that is known.
    pub known: Option<String>,
    /// What became of it.
    pub verdict: Verdict,
    /// What else is to be said: why it could not be measured, that a known miss is none any more.
    pub note: Option<String>,
    /// For each combination of `each` that was run.
    pub at: Vec<Measured>,
    /// The place of the value that decides: the one nearest to its bound or furthest beyond it.
    pub worst: Option<usize>,
}

impl ClaimResult {
    /// The combination that decides.
    #[must_use]
    pub fn deciding(&self) -> Option<&Measured> {
        self.at.get(self.worst?)
    }
}

/// A column of the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnResult {
    /// The text above the column.
    pub name: String,
    /// The unit of the measure.
    pub unit: String,
    /// For every variant, in the order of the records.
    pub at: Vec<Measured>,
}

/// What came out of records: no more than what follows from them.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The worst of the claims.
    pub verdict: Verdict,
    /// The result of every claim.
    pub claims: Vec<ClaimResult>,
    /// The result of every column.
    pub shows: Vec<ColumnResult>,
}

/// What came out, when, and of what: kept as `result.json` beside the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The experiment's name.
    pub id: String,
    /// How much of it was run.
    pub mode: Mode,
    /// The seeds that were run.
    pub seeds: Vec<u64>,
    /// The commit that ran it.
    pub commit: String,
    /// The date, as the caller writes dates.
    pub date: String,
    /// Of all runs together; the same on every machine. See [`trace_of`].
    pub trace: String,
    /// The worst of the claims.
    pub verdict: Verdict,
    /// The result of every claim.
    pub claims: Vec<ClaimResult>,
    /// Every column of the table.
    pub shows: Vec<ColumnResult>,
}

impl Outcome {
    /// What came out of `records`, which `judged` judges.
    #[must_use]
    pub fn new(id: &str, mode: Mode, commit: &str, date: &str, records: &[Record], judged: Judged) -> Self {
        let mut seeds: Vec<u64> = records.iter().map(|record| record.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        Self {
            id: id.to_owned(),
            mode,
            seeds,
            commit: commit.to_owned(),
            date: date.to_owned(),
            trace: trace_of(records),
            verdict: judged.verdict,
            claims: judged.claims,
            shows: judged.shows,
        }
    }

    /// Writes the outcome as `result.json`.
    ///
    /// # Errors
    /// None that a value of this type can cause; those of the serializer.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// Reads the outcome from `result.json`.
    ///
    /// # Errors
    /// If it is none.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }
}

/// One hash over all runs, in whatever order: FNV-1a over variant, seed and trace (the hash of the
/// simulated world). If two computers have the same hash, their simulations gave the same results.
/// The hash does not protect against forgery.
#[must_use]
pub fn trace_of(records: &[Record]) -> String {
    let mut runs: Vec<_> = records.iter().map(|record| (&record.axes, record.seed, record.trace)).collect();
    runs.sort_unstable();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for &byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    };
    for (axes, seed, trace) in runs {
        for text in axes.iter().flat_map(|(axis, label)| [axis, label]) {
            add(&(text.len() as u64).to_le_bytes());
            add(text.as_bytes());
        }
        add(&seed.to_le_bytes());
        add(&trace.to_le_bytes());
    }
    format!("{hash:016x}")
}
