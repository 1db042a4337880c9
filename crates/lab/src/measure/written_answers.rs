//! The answers of a run as they are written: how they are noted, and how they are read.

use super::evaluate::Scope;
use super::functions::Function;
use super::measure_text::Measure;
use super::records::{Records, RecordsError, Selection};
use super::requests;
use super::run::Run;
use super::run_answers::{Answer, Names, RunAnswers, SharedTexts};
use super::series::RunTimes;
use super::tree::{Argument, Call, Expr, Over};
use super::undefined_value::Undefined;
use crate::record::{Record, RequestRecord, RequestsRecord};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The bytes of a request, its start, and its duration in seconds.
type WrittenRequest = (u64, Option<f64>, Option<f64>);

/// The answers of a run in their written form.
#[derive(Debug, Serialize, Deserialize)]
pub struct WrittenAnswers {
    variant: Vec<(String, String)>,
    seed: u64,
    /// Hexadecimal: it has more digits than some readers of JSON keep of a number.
    trace: String,
    packets: u64,
    times: RunTimes,
    answers: BTreeMap<String, f64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    undefined: BTreeMap<String, Undefined>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    members: BTreeMap<String, Vec<String>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    requests: BTreeMap<String, Vec<WrittenRequest>>,
}

impl WrittenAnswers {
    /// Answers all questions of `measures` about the run from its `record`.
    ///
    /// # Errors
    /// The times of the record are no times.
    pub fn of<'m>(
        record: &Record,
        measures: impl IntoIterator<Item = &'m Measure>,
    ) -> Result<Self, RecordsError> {
        let records = Records::new(std::slice::from_ref(record))?;
        let mut noted = Self {
            variant: record.axes.clone(),
            seed: record.seed,
            trace: format!("{:016x}", record.trace),
            packets: record.packets,
            times: RunTimes::of(record),
            answers: BTreeMap::new(),
            undefined: BTreeMap::new(),
            members: BTreeMap::new(),
            requests: BTreeMap::new(),
        };
        for measure in measures {
            if let Ok(scope) = Scope::new(&records, measure.text(), record.seed, &Selection::new()) {
                noted.note(&scope, &measure.root, record);
            }
        }
        Ok(noted)
    }

    /// Answers all questions of `expr`. They are put to this run, whatever variant the expression
    /// names: the other variants get the same questions.
    fn note(&mut self, scope: &Scope<'_>, expr: &Expr, record: &Record) {
        match expr {
            Expr::Number(_) => {}
            Expr::Negate(inner) | Expr::At(inner, _) => self.note(scope, inner, record),
            Expr::Binary(_, left, right, _) => {
                self.note(scope, left, record);
                self.note(scope, right, record);
            }
            Expr::Call(call) => self.note_call(scope, call, record),
        }
    }

    fn note_call(&mut self, scope: &Scope<'_>, call: &Call, record: &Record) {
        let run = Run::Recorded(record);
        let mut inner = vec![scope.clone()];
        if let Some(Argument::Over(Over::Members(group))) = call.arguments.first() {
            let group = scope.resolved(group);
            let Ok(members) = run.members(group) else { return };
            self.members.insert(group.to_owned(), members.iter().map(|&name| name.to_owned()).collect());
            inner = members.into_iter().map(|name| scope.of_member(name)).collect();
        }
        for scope in &inner {
            for argument in &call.arguments {
                if let Argument::Value(value) = argument {
                    self.note(scope, value, record);
                }
            }
        }
        if call.function == Function::Stretch {
            self.note_requests(call, record);
        } else if call.function.is_asked_of_a_run()
            && let Ok(question) = scope.question(call)
        {
            match question.ask(record).and_then(finite) {
                Ok(value) => drop(self.answers.insert(question.to_string(), value)),
                Err(why) => drop(self.undefined.insert(question.to_string(), why)),
            }
        }
    }

    fn note_requests(&mut self, call: &Call, record: &Record) {
        if let Some(Argument::Name(name)) = call.arguments.first()
            && let Ok(requests) = requests::named(record, name)
        {
            let list = requests.list.iter().map(|request| (request.size, request.began, request.took));
            self.requests.insert(name.clone(), list.collect());
        }
    }

    /// Converts the answers for measures. `None`: the trace is not a hexadecimal number.
    #[must_use]
    pub fn shared(self, texts: &mut SharedTexts) -> Option<RunAnswers> {
        let trace = u64::from_str_radix(&self.trace, 16).ok()?;
        let mut answers: Vec<(Arc<str>, Answer)> = Vec::new();
        answers.extend(self.answers.into_iter().map(|(question, value)| (texts.text(&question), Ok(value))));
        answers.extend(
            self.undefined.into_iter().map(|(question, why)| (texts.text(&question), Err(Box::new(why)))),
        );
        answers.sort_by(|(one, _), (other, _)| one.cmp(other));
        let members = self.members.into_iter().map(|(group, names)| {
            (texts.text(&group), names.iter().map(|name| texts.text(name)).collect::<Names>())
        });
        let members: Box<[_]> = members.collect();
        let requests = self.requests.into_iter().map(|(name, list)| RequestsRecord {
            name,
            list: list
                .into_iter()
                .map(|(size, began, took)| RequestRecord { size, began, took, given_up: false })
                .collect(),
        });
        Some(RunAnswers {
            axes: texts.variant(self.variant),
            seed: self.seed,
            trace,
            packets: self.packets,
            times: self.times,
            answers: answers.into(),
            members,
            requests: requests.collect(),
        })
    }
}

/// A value that JSON can hold.
fn finite(value: f64) -> Result<f64, Undefined> {
    if value.is_finite() { Ok(value) } else { Err(Undefined::wrong("the value is beyond all numbers")) }
}
