//! One run's answers to measures: a few numbers instead of all its samples.

use super::question::Question;
use super::series::RunTimes;
use super::undefined_value::{Undefined, Why};
use crate::record::{RequestsRecord, RunIdentity};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Texts that the answers of many runs share.
#[derive(Debug, Default)]
pub struct SharedTexts {
    texts: BTreeSet<Arc<str>>,
    variants: BTreeSet<Arc<[(String, String)]>>,
}

impl SharedTexts {
    pub(super) fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&new));
        new
    }

    pub(super) fn variant(&mut self, axes: Vec<(String, String)>) -> Arc<[(String, String)]> {
        if let Some(known) = self.variants.get(axes.as_slice()) {
            return Arc::clone(known);
        }
        let new: Arc<[(String, String)]> = axes.into();
        self.variants.insert(Arc::clone(&new));
        new
    }
}

/// The answers of a run to the questions of some measures, which can then be evaluated without the
/// run's record.
#[derive(Clone, Debug, PartialEq)]
pub struct RunAnswers {
    /// The label of this variant on each axis.
    pub axes: Arc<[(String, String)]>,
    /// The seed of the run.
    pub seed: u64,
    /// The world's hash: the same for the same seed, on every machine.
    pub trace: u64,
    /// Packets that links delivered.
    pub packets: u64,
    pub(super) times: RunTimes,
    /// The answers by the text of the question.
    pub(super) answers: Box<[(Arc<str>, Answer)]>,
    /// The transfers of each group, by the group's name.
    pub(super) members: Box<[(Arc<str>, Names)]>,
    /// Workloads that measures compare with another variant, request by request.
    pub(super) requests: Box<[RequestsRecord]>,
}

/// The names of a group's transfers.
pub(super) type Names = Box<[Arc<str>]>;

/// The box keeps the usual answer, a number, small.
pub(super) type Answer = Result<f64, Box<Undefined>>;

impl RunIdentity for RunAnswers {
    fn axes(&self) -> &[(String, String)] {
        &self.axes
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn trace(&self) -> u64 {
        self.trace
    }
}

impl RunAnswers {
    fn unknown(&self, what: &str) -> Undefined {
        Undefined {
            why: Why::Wrong,
            what: format!("the run was not asked for {what}: its measures were others"),
        }
    }

    pub(super) fn answer(&self, question: &Question<'_>) -> Result<f64, Undefined> {
        let text = question.to_string();
        match self.answers.binary_search_by(|(known, _)| (**known).cmp(text.as_str())) {
            Ok(place) => self.answers[place].1.clone().map_err(|why| *why),
            Err(_) => Err(self.unknown(&format!("`{text}`"))),
        }
    }

    pub(super) fn members(&self, name: &str) -> Result<Vec<&str>, Undefined> {
        let known = self.members.iter().find(|(group, _)| **group == *name);
        let (_, members) = known.ok_or_else(|| self.unknown(&format!("the members of `{name}`")))?;
        Ok(members.iter().map(|member| &**member).collect())
    }

    pub(super) fn requests(&self, name: &str) -> Result<&RequestsRecord, Undefined> {
        let known = self.requests.iter().find(|requests| requests.name == name);
        known.ok_or_else(|| self.unknown(&format!("the requests of `{name}`")))
    }
}
