//! Walks a measure for one seed.

use super::functions::{Function, TRANSFER_NAME};
use super::question::Question;
use super::records::{ChosenLabels, Records, Selection};
use super::requests;
use super::run::Run;
use super::series::Window;
use super::tree::{Argument, Call, Expr, MEMBER_NAME, Op, Over};
use super::undefined_value::{Undefined, Why};
use crate::stats;

/// The context in which an expression is evaluated.
#[derive(Clone)]
pub(super) struct Scope<'a> {
    records: &'a Records<'a>,
    text: &'a str,
    seed: u64,
    chosen: ChosenLabels,
    /// The member that the name `it` denotes.
    it: Option<&'a str>,
}

/// Evaluates the expression `root` for one seed.
pub(super) fn evaluate(
    root: &Expr,
    text: &str,
    records: &Records<'_>,
    seed: u64,
    at: &Selection,
) -> Result<f64, Undefined> {
    Scope::new(records, text, seed, at)?.value(root)
}

/// Both values. If both are undefined, the graver reason.
fn both<T, U>(one: Result<T, Undefined>, other: Result<U, Undefined>) -> Result<(T, U), Undefined> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(one), Err(other)) => Err(one.or(other)),
        (Err(why), Ok(_)) | (Ok(_), Err(why)) => Err(why),
    }
}

/// All values. If some are undefined, the gravest reason.
fn all<T>(values: impl IntoIterator<Item = Result<T, Undefined>>) -> Result<Vec<T>, Undefined> {
    let (mut gathered, mut gravest) = (Vec::new(), None::<Undefined>);
    for value in values {
        match (value, gravest.take()) {
            (Ok(value), before) => {
                gathered.push(value);
                gravest = before;
            }
            (Err(why), None) => gravest = Some(why),
            (Err(why), Some(before)) => gravest = Some(before.or(why)),
        }
    }
    gravest.map_or(Ok(gathered), Err)
}

impl<'a> Scope<'a> {
    /// The scope of one seed in the variants that `at` leaves. `text` is the measure as it was
    /// written.
    pub(super) fn new(
        records: &'a Records<'a>,
        text: &'a str,
        seed: u64,
        at: &Selection,
    ) -> Result<Self, Undefined> {
        Ok(Self { records, text, seed, chosen: records.chosen(at)?, it: None })
    }

    fn value(&self, expr: &Expr) -> Result<f64, Undefined> {
        let value = match expr {
            Expr::Number(number) => *number,
            Expr::Negate(inner) => -self.value(inner)?,
            Expr::Binary(op, left, right, place) => {
                let (left, right) = both(self.value(left), self.value(right))?;
                match op {
                    Op::Add => left + right,
                    Op::Subtract => left - right,
                    Op::Multiply => left * right,
                    Op::Divide if right == 0.0 => {
                        let divisor = self.text.get(place.clone()).unwrap_or_default();
                        return Err(Undefined::no_data(format!(
                            "`{divisor}` is 0: nothing can be divided by it"
                        )));
                    }
                    Op::Divide => left / right,
                }
            }
            Expr::At(inner, choices) => {
                let chosen = self.records.changed(&self.chosen, choices)?;
                Scope { chosen, ..self.clone() }.value(inner)?
            }
            Expr::Call(call) => self.call(call)?,
        };
        if value.is_finite() { Ok(value) } else { Err(Undefined::wrong("the value is beyond all numbers")) }
    }

    /// Returns this scope with `it` denoting `name`.
    pub(super) fn of_member(&self, name: &'a str) -> Self {
        Self { it: Some(name), ..self.clone() }
    }

    /// The transfer or group that `name` means here.
    pub(super) fn resolved<'q>(&self, name: &'q str) -> &'q str
    where
        'a: 'q,
    {
        self.it.filter(|_| name == MEMBER_NAME).unwrap_or(name)
    }

    fn run(&self) -> Result<Run<'a>, Undefined> {
        self.records.find(&self.chosen, self.seed)
    }

    fn call(&self, call: &Call) -> Result<f64, Undefined> {
        let arguments = Arguments { scope: self, call };
        match call.function {
            Function::Min => arguments.all()?.into_iter().reduce(f64::min),
            Function::Max => arguments.all()?.into_iter().reduce(f64::max),
            Function::Abs => Some(libm::fabs(arguments.number(0)?)),
            Function::AtLeast | Function::AtMost => {
                let (value, bound) = both(arguments.number(0), arguments.number(1))?;
                let holds = if call.function == Function::AtLeast { value >= bound } else { value <= bound };
                Some(f64::from(u8::from(holds)))
            }
            Function::Otherwise => match arguments.number(0) {
                Err(Undefined { why: Why::NoData, .. }) => Some(arguments.number(1)?),
                value => Some(value?),
            },
            Function::Axis => Some(self.axis(arguments.name(0))?),
            Function::MeanOver => stats::mean(&self.over(call, 1)?),
            Function::MaxOver => self.over(call, 1)?.into_iter().reduce(f64::max),
            Function::MinOver => self.over(call, 1)?.into_iter().reduce(f64::min),
            Function::PercentileOver => {
                let (percent, values) = both(arguments.number(1), self.over(call, 2))?;
                stats::quantile(&values, percent / 100.0)
            }
            Function::Spearman => Some(self.spearman(call)?),
            Function::Stretch => Some(arguments.stretch().map_err(|why| self.about(call, why))?),
            _ => Some(self.asked(call).map_err(|why| self.about(call, why))?),
        }
        .ok_or_else(|| {
            Undefined::wrong(format!(
                "`{}`: expected numbers, and a percentile from 0 to 100",
                self.written(call)
            ))
        })
    }

    fn written(&self, call: &Call) -> &'a str {
        self.text.get(call.place.clone()).unwrap_or_default()
    }

    /// `why` with the call that has no value.
    fn about(&self, call: &Call, why: Undefined) -> Undefined {
        Undefined { what: format!("`{}`: {}", self.written(call), why.what), ..why }
    }

    /// Evaluates a call that asks one run.
    fn asked(&self, call: &Call) -> Result<f64, Undefined> {
        let run = self.run()?;
        run.answer(&self.question(call)?)
    }

    /// Makes the question of a call, with its arguments evaluated.
    pub(super) fn question<'q>(&self, call: &'q Call) -> Result<Question<'q>, Undefined>
    where
        'a: 'q,
    {
        let mut question = Question { function: call.function, names: Vec::new(), numbers: Vec::new() };
        let takes_transfer = |place| call.function.signature().parameter(place) == Some(TRANSFER_NAME);
        for (place, argument) in call.arguments.iter().enumerate() {
            match argument {
                Argument::Name(name) if takes_transfer(place) => question.names.push(self.resolved(name)),
                Argument::Name(name) => question.names.push(name),
                Argument::Value(value) => question.numbers.push(self.value(value)?),
                Argument::Over(_) | Argument::Variant(_) => {}
            }
        }
        Ok(question)
    }

    fn axis(&self, name: &str) -> Result<f64, Undefined> {
        let axis = self.records.axis(name)?;
        match self.chosen.get(axis).copied().flatten() {
            Some(label) => self.records.number(axis, label),
            None => match &*self.records.labels_beside(&self.chosen, axis).into_iter().collect::<Vec<_>>() {
                [label] => self.records.number(axis, *label),
                _ => Err(Undefined::wrong(format!(
                    "`axis({name})`: which value? Say [{name}=…], put `{name}` into `each`, or run over it"
                ))),
            },
        }
    }

    /// The scopes that `over` runs through.
    fn each(&self, over: &Over) -> Result<Vec<Scope<'a>>, Undefined> {
        match over {
            Over::Axis(name) => {
                let axis = self.records.axis(name)?;
                let labels = self.records.labels_beside(&self.chosen, axis);
                if labels.is_empty() {
                    let variant = self.records.describe(&self.chosen);
                    return Err(Undefined::not_run(format!("{variant} was not run")));
                }
                let scope = |label| {
                    let mut scope = self.clone();
                    scope.chosen[axis] = Some(label);
                    scope
                };
                Ok(labels.into_iter().map(scope).collect())
            }
            Over::Members(group) => {
                let members = self.run()?.members(self.resolved(group))?;
                Ok(members.into_iter().map(|name| self.of_member(name)).collect())
            }
        }
    }

    /// The values of the argument at `place`, one for each element that the first argument runs
    /// over.
    fn over(&self, call: &Call, place: usize) -> Result<Vec<f64>, Undefined> {
        let (Some(Argument::Over(over)), Some(Argument::Value(measure))) =
            (call.arguments.first(), call.arguments.get(place))
        else {
            return Err(Undefined::wrong("expected what to run over, and a measure"));
        };
        all(self.each(over)?.iter().map(|scope| scope.value(measure)))
    }

    fn spearman(&self, call: &Call) -> Result<f64, Undefined> {
        let (left, right) = match (call.arguments.first(), call.arguments.len()) {
            (Some(Argument::Over(Over::Axis(axis))), 2) => {
                let numbers = self.each(&Over::Axis(axis.clone()))?;
                both(all(numbers.iter().map(|scope| scope.axis(axis))), self.over(call, 1))?
            }
            _ => both(self.over(call, 1), self.over(call, 2))?,
        };
        stats::spearman(&left, &right).ok_or_else(|| {
            let text = self.written(call);
            Undefined::no_data(format!("`{text}`: ranks need two values that differ"))
        })
    }
}

/// The numbers among the arguments of a function call, read one by one.
struct Arguments<'s, 'a> {
    scope: &'s Scope<'a>,
    call: &'s Call,
}

impl Arguments<'_, '_> {
    fn name(&self, place: usize) -> &str {
        match self.call.arguments.get(place) {
            Some(Argument::Name(name)) => name,
            _ => "",
        }
    }

    fn optional(&self, place: usize) -> Result<Option<f64>, Undefined> {
        match self.call.arguments.get(place) {
            Some(Argument::Value(value)) => self.scope.value(value).map(Some),
            _ => Ok(None),
        }
    }

    fn number(&self, place: usize) -> Result<f64, Undefined> {
        self.optional(place)?.ok_or_else(|| Undefined::wrong("a number is missing"))
    }

    fn all(&self) -> Result<Vec<f64>, Undefined> {
        all((0..self.call.arguments.len()).map(|place| self.number(place)))
    }

    /// A percentile over the requests of two runs.
    fn stretch(&self) -> Result<f64, Undefined> {
        let Some(Argument::Variant(choices)) = self.call.arguments.get(2) else {
            return Err(Undefined::wrong("expected the other variant"));
        };
        let other = self.scope.records.changed(&self.scope.chosen, choices)?;
        let other = self.scope.records.find(&other, self.scope.seed);
        let (run, there) = both(self.scope.run(), other)?;
        let (here, there) = both(run.requests(self.name(0)), there.requests(self.name(0)))?;
        let window = Window::of(run.times(), self.optional(3)?, self.optional(4)?)?;
        requests::stretch(here, there, self.number(1)?, window)
    }
}
