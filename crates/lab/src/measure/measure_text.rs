//! A measure: its text, and the expression that it is.

use super::evaluate;
use super::functions::Function;
use super::measure_error::MeasureError;
use super::parser;
use super::records::{Records, Selection};
use super::tree::{Argument, Expr, Over};
use super::undefined_value::Undefined;
use std::collections::BTreeMap;

/// A measure that is ready to be evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    text: String,
    pub(super) root: Expr,
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

    /// Returns the text of the measure, as it was written.
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

    /// Whether all that the measure asks of a run depends on this run alone. If so, the answers of
    /// each run suffice for its value. The numbers in a question must not come from other variants.
    #[must_use]
    pub fn asks_single_runs(&self) -> bool {
        fn all_single(expr: &Expr, is_within_question: bool) -> bool {
            match expr {
                Expr::Number(_) => true,
                Expr::Negate(inner) => all_single(inner, is_within_question),
                Expr::At(inner, _) => !is_within_question && all_single(inner, false),
                Expr::Binary(_, left, right, _) => {
                    all_single(left, is_within_question) && all_single(right, is_within_question)
                }
                Expr::Call(call) => {
                    let compares = call.function == Function::Stretch
                        || matches!(call.arguments.first(), Some(Argument::Over(Over::Axis(_))));
                    let within = is_within_question || call.function.is_asked_of_a_run();
                    !(is_within_question && compares)
                        && call.arguments.iter().all(|argument| match argument {
                            Argument::Value(value) => all_single(value, within),
                            _ => true,
                        })
                }
            }
        }
        all_single(&self.root, false)
    }
}
