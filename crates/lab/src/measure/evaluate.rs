//! Walks a measure for one seed.

use super::functions::Function;
use super::records::{ChosenLabels, Records, Selection};
use super::series::{self, Window};
use super::transfers::Transfers;
use super::tree::{Argument, Call, Expr, MEMBER_NAME, Op, Over};
use super::undefined_value::{Undefined, Why};
use super::{gateways, requests};
use crate::record::{GatewayRecord, LinkRecord, Record};
use crate::spelling;
use crate::stats;

/// Where an expression is evaluated.
#[derive(Clone)]
struct Scope<'a> {
    records: &'a Records<'a>,
    text: &'a str,
    seed: u64,
    chosen: ChosenLabels,
    /// The member for which the name `it` stands.
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
    let scope = Scope { records, text, seed, chosen: records.chosen(at)?, it: None };
    scope.value(root)
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

    fn record(&self) -> Result<&'a Record, Undefined> {
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
            _ => Some(arguments.asked().map_err(|why| {
                let text = self.text.get(call.place.clone()).unwrap_or_default();
                Undefined { what: format!("`{text}`: {}", why.what), ..why }
            })?),
        }
        .ok_or_else(|| {
            let text = self.text.get(call.place.clone()).unwrap_or_default();
            Undefined::wrong(format!("`{text}`: expected numbers, and a percentile from 0 to 100"))
        })
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
                let members = self.transfers(group)?;
                Ok(members.names().map(|name| Scope { it: Some(name), ..self.clone() }).collect())
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
            let text = self.text.get(call.place.clone()).unwrap_or_default();
            Undefined::no_data(format!("`{text}`: ranks need two values that differ"))
        })
    }

    fn transfers(&self, name: &str) -> Result<Transfers<'a>, Undefined> {
        let name = match self.it {
            Some(it) if name == MEMBER_NAME => it,
            _ => name,
        };
        Transfers::named(self.record()?, name)
    }
}

/// The arguments of a function call, read one by one.
struct Arguments<'s, 'a> {
    scope: &'s Scope<'a>,
    call: &'s Call,
}

impl<'a> Arguments<'_, 'a> {
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

    fn transfers(&self) -> Result<Transfers<'a>, Undefined> {
        self.scope.transfers(self.name(0))
    }

    /// The time window whose first second is the argument at `place`. The default is from the cut
    /// to the end.
    fn window(&self, place: usize) -> Result<Window, Undefined> {
        Window::of(self.scope.record()?, self.optional(place)?, self.optional(place + 1)?)
    }

    fn link(&self) -> Result<(&'a Record, &'a LinkRecord), Undefined> {
        let record = self.scope.record()?;
        let (from, to) = (self.name(0), self.name(1));
        if record.links.is_empty() {
            return Err(Undefined::no_data("no link was noted"));
        }
        let found = record.links.iter().find(|link| link.from == from && link.to == to);
        let wrong = || {
            let names: Vec<_> =
                record.links.iter().map(|link| format!("{}, {}", link.from, link.to)).collect();
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            Undefined::wrong(spelling::unknown("link", &format!("{from}, {to}"), names))
        };
        found.map(|link| (record, link)).ok_or_else(wrong)
    }

    /// The value of a function of one run.
    fn asked(&self) -> Result<f64, Undefined> {
        match self.call.function {
            Function::Goodput => self.transfers()?.goodput(self.window(1)?),
            Function::Path => self.transfers()?.path(self.name(1), self.window(2)?),
            Function::Share => self.transfers()?.share(self.name(1), self.window(2)?),
            Function::Window => self.transfers()?.window(self.name(1), self.window(2)?),
            Function::Rtt => self.transfers()?.rtt(self.name(1), self.window(2)?),
            Function::Completion => self.transfers()?.completion(),
            Function::DroppedAt => self.transfers()?.dropped_at(self.name(1)),
            Function::Deviation => self.transfers()?.deviation(self.window(1)?),
            Function::Settles => self.transfers()?.settles(self.number(1)?, self.optional(2)?),
            Function::Reaches => self.transfers()?.reaches(self.number(1)?, self.optional(2)?),
            Function::Fairness => self.transfers()?.fairness(self.window(1)?),
            Function::FairnessWorst => self.transfers()?.fairness_worst(self.number(1)?, self.window(2)?),
            Function::Least => self.member(f64::min),
            Function::Most => self.member(f64::max),
            Function::Below => self.transfers()?.below(self.number(1)?, self.window(2)?),
            Function::Losses => self.transfers()?.losses(),
            Function::Reorder => Ok(self.transfers()?.reorder()),
            Function::Usable => self.transfers()?.usable(self.optional(1)?, self.optional(2)?),
            Function::Opened => self.transfers()?.opened(self.optional(1)?),
            Function::Available => self.transfers()?.available(self.optional(1)?),
            Function::Abroad => self.transfers()?.abroad(),
            Function::BaseRtt => Ok(self.transfers()?.base_rtt()),
            Function::Requests => {
                let record = self.scope.record()?;
                let list = requests::named(record, self.name(0))?;
                requests::times(list, self.number(1)?, self.window(2)?)
            }
            Function::Stretch => self.stretch(),
            Function::Finished => {
                requests::finished(requests::named(self.scope.record()?, self.name(0))?, self.window(1)?)
            }
            Function::Utilisation => self.utilisation(),
            Function::Queue => self.queue(),
            Function::Drops => {
                let (record, link) = self.link()?;
                series::grown(&link.dropped, record.sample, self.window(2)?)
            }
            Function::Waits => gateways::waits(self.gateways()?, self.number(1)?),
            Function::InVain => gateways::in_vain(self.gateways()?),
            Function::Refused => Ok(gateways::refused(self.gateways()?)),
            Function::Found => gateways::found(self.gateways()?, self.number(1)?),
            Function::Optimum => {
                let none = || Undefined::no_data("this world has no optimum");
                self.scope.record()?.optimum.map(|rate| rate / 1e6).ok_or_else(none)
            }
            Function::End => Ok(series::end(self.scope.record()?)),
            Function::Cut => Ok(self.scope.record()?.cut),
            // Those that are no question to one run are answered by `Scope::call`.
            _ => Err(Undefined::wrong("no function of one run")),
        }
    }

    fn gateways(&self) -> Result<&'a GatewayRecord, Undefined> {
        gateways::named(self.scope.record()?, self.name(0))
    }

    fn member(&self, pick: fn(f64, f64) -> f64) -> Result<f64, Undefined> {
        let goodputs = self.transfers()?.goodputs(self.window(1)?)?;
        goodputs.into_iter().reduce(pick).ok_or_else(|| Undefined::wrong("a group of nobody"))
    }

    fn stretch(&self) -> Result<f64, Undefined> {
        let Some(Argument::Variant(choices)) = self.call.arguments.get(2) else {
            return Err(Undefined::wrong("expected the other variant"));
        };
        let other = self.scope.records.changed(&self.scope.chosen, choices)?;
        let other = self.scope.records.find(&other, self.scope.seed);
        let (here, there) = both(self.scope.record(), other)?;
        let name = self.name(0);
        let (here, there) = both(requests::named(here, name), requests::named(there, name))?;
        requests::stretch(here, there, self.number(1)?, self.window(3)?)
    }

    fn utilisation(&self) -> Result<f64, Undefined> {
        let (record, link) = self.link()?;
        let window = self.window(2)?;
        if link.rate == 0 {
            return Err(Undefined::wrong("a link without a rate is never full"));
        }
        let bits = series::grown(&link.sent, record.sample, window)? * 8.0;
        Ok(bits / (link.rate as f64 * window.seconds()))
    }

    fn queue(&self) -> Result<f64, Undefined> {
        let (record, link) = self.link()?;
        let window = self.window(2)?;
        let lengths: Vec<f64> = series::within(&link.queue, record.sample, window)
            .iter()
            .map(|&packets| f64::from(packets))
            .collect();
        stats::mean(&lengths).ok_or_else(|| Undefined::no_data("no sample lies in this window"))
    }
}
