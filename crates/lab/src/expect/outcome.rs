//! The outcome of an experiment, as data.

use super::reading::Reading;
use crate::plan::Mode;
#[cfg(test)]
use crate::record::Record;
use crate::record::RunIdentity;
use crate::stats::{self, Interval};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// The verdict on a claim, from the mildest to the gravest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The variants of the claim were not run.
    #[default]
    NotRun,
    /// The claim has no bound.
    Report,
    /// The claim holds.
    Pass,
    /// The claim fails, for a known reason.
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

/// A run for which a measure has no value, and the reason.
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
    /// The seeds with a value. Empty in a kept result, which has only their number.
    #[serde(skip)]
    pub seeds: Vec<u64>,
    /// The seeds' values, in the order of `seeds`.
    #[serde(skip)]
    pub values: Vec<f64>,
    /// Number of seeds with a value.
    #[serde(rename = "seeds")]
    pub count: usize,
    /// The median of the values, to six digits. `None`: there is no value.
    pub median: Option<f64>,
    /// The interval of the median, to six digits.
    pub interval: Option<Interval>,
    /// Seeds that ran and have no value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
}

impl Measured {
    /// Computes count, median and interval of the values.
    pub(super) fn sum_up(&mut self) {
        self.count = self.values.len();
        self.median = stats::median(&self.values).map(rounded);
        self.interval = stats::median_interval(&self.values).map(|interval| Interval {
            low: rounded(interval.low),
            high: rounded(interval.high),
            coverage: rounded(interval.coverage),
        });
    }

    /// Whether three seeds or more have values that agree to a thousandth.
    fn agrees(&self) -> bool {
        let least = self.values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        self.values.len() >= 3 && most - least <= 0.001 * libm::fabs(most)
    }
}

/// `value` to six digits that count.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// The result of a claim. A kept result stores only measured values. The rest comes from the
/// expectation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClaimResult {
    /// The id of the claim.
    pub id: String,
    /// The text of the claim.
    #[serde(skip)]
    pub says: String,
    /// The number that the paper has.
    #[serde(skip)]
    pub paper: Option<String>,
    /// The unit of the measure.
    #[serde(skip)]
    pub unit: String,
    /// The reading of the paper.
    #[serde(skip)]
    pub reading: Option<Reading>,
    /// The id of the claim of which this one is another reading. `None`: this claim stands alone.
    #[serde(skip)]
    pub of: Option<String>,
    /// The lower bound of the claim.
    #[serde(skip)]
    pub at_least: Option<f64>,
    /// The upper bound of the claim.
    #[serde(skip)]
    pub at_most: Option<f64>,
    /// Why the claim is missed. `None`: not known, or not missed.
    #[serde(skip)]
    pub known: Option<String>,
    /// The verdict on the claim.
    pub verdict: Verdict,
    /// A remark: why the claim could not be measured, or that a known miss now passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The measure, as written in the file.
    pub measure: String,
    /// For each combination of `each` that was run.
    pub at: Vec<Measured>,
    /// The place of the value that decides: the one nearest to its bound or furthest beyond it.
    #[serde(skip)]
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

/// The results of judging records, without what an [`Outcome`] adds, such as the commit and the
/// date.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The worst of the claims.
    pub verdict: Verdict,
    /// The result of every claim.
    pub claims: Vec<ClaimResult>,
    /// The result of every column.
    pub shows: Vec<ColumnResult>,
}

/// The results of running an experiment, with date and commit. They are kept as `result.json`
/// beside the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The experiment's name.
    pub id: String,
    /// The mode of the run.
    pub mode: Mode,
    /// The seeds that were run.
    pub seeds: Vec<u64>,
    /// The commit of the code that ran the experiment.
    pub commit: String,
    /// The date, as the caller writes dates.
    pub date: String,
    /// The trace of all runs together, which is the same on every machine. See [`trace_of`].
    pub trace: String,
    /// The trace of the plan's quick form by the same program. If a later program has another one,
    /// this result is stale. `None`: there is no quick form, or it was not run.
    #[serde(default)]
    pub quick: Option<String>,
    /// Whether all runs of the plan in this mode were run, with the plan's seeds and values.
    #[serde(default)]
    pub whole: bool,
    /// Number of variants in which all figures agree to a thousandth between three seeds or more.
    #[serde(default)]
    pub agree: usize,
    /// The worst of the claims.
    pub verdict: Verdict,
    /// The result of every claim.
    pub claims: Vec<ClaimResult>,
    /// Every column of the table.
    pub shows: Vec<ColumnResult>,
}

impl Outcome {
    /// Makes an outcome with one seed and these claims, for tests.
    #[cfg(test)]
    pub(crate) fn of_claims(claims: Vec<ClaimResult>) -> Self {
        let judged = Judged { verdict: Verdict::Pass, claims, shows: Vec::new() };
        Self { seeds: vec![1], ..Self::new::<Record>("x", Mode::All, "", "", &[], judged) }
    }

    /// The outcome of `runs`, with the verdicts in `judged`.
    #[must_use]
    pub fn new<R: RunIdentity>(
        id: &str,
        mode: Mode,
        commit: &str,
        date: &str,
        runs: &[R],
        judged: Judged,
    ) -> Self {
        let mut seeds: Vec<u64> = runs.iter().map(RunIdentity::seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        Self {
            id: id.to_owned(),
            mode,
            seeds,
            commit: commit.to_owned(),
            date: date.to_owned(),
            trace: trace_of(runs),
            quick: None,
            whole: false,
            agree: agreeing(&judged.shows),
            verdict: judged.verdict,
            claims: judged.claims,
            shows: judged.shows,
        }
    }

    /// Returns the number of variants that were run.
    #[must_use]
    pub fn variants(&self) -> usize {
        self.shows.first().map_or(0, |shown| shown.at.len())
    }

    /// Writes the outcome as `result.json`: a line for each value.
    ///
    /// # Errors
    /// None that a value of this type can cause; those of the serializer.
    pub fn to_json(&self) -> serde_json::Result<String> {
        let mut text = String::new();
        lines(&mut text, &serde_json::to_value(self)?, 0);
        Ok(text + "\n")
    }

    /// Reads the text that [`to_json`](Self::to_json) wrote.
    /// [`Expectation::recall`](super::Expectation::recall) then adds the claims' texts from the
    /// expectation.
    ///
    /// # Errors
    /// If it is none.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }
}

/// Returns the number of variants in which all columns agree between seeds.
fn agreeing(shows: &[ColumnResult]) -> usize {
    let variants = shows.first().map_or(0, |shown| shown.at.len());
    let same = |place: &usize| shows.iter().filter_map(|shown| shown.at.get(*place)).all(Measured::agrees);
    (0..variants).filter(same).count()
}

/// Writes a JSON value with a line for each measured value, so that a difference shows which one
/// changed.
fn lines(text: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) if map.contains_key("claims") || map.contains_key("at") => {
            let mut before = "{";
            for (key, value) in map {
                *text += &format!("{before}\n{indent}  \"{key}\": ");
                lines(text, value, depth + 1);
                before = ",";
            }
            *text += &format!("\n{indent}}}");
        }
        Value::Array(list) if list.iter().any(Value::is_object) => {
            let mut before = "[";
            for value in list {
                *text += &format!("{before}\n{indent}  ");
                lines(text, value, depth + 1);
                before = ",";
            }
            *text += &format!("\n{indent}]");
        }
        plain => *text += &plain.to_string(),
    }
}

/// One hash over all runs, in whatever order: FNV-1a over variant, seed and trace (the hash of the
/// simulated world). If two computers have the same hash, their simulations gave the same results.
/// The hash does not protect against forgery.
#[must_use]
pub fn trace_of<R: RunIdentity>(runs: &[R]) -> String {
    let mut runs: Vec<_> = runs.iter().map(|run| (run.axes(), run.seed(), run.trace())).collect();
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
