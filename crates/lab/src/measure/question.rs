//! A question to one run: a function of the language, its names, and its numbers.

use super::functions::Function;
use super::series::{self, RunTimes, Window};
use super::transfers::Transfers;
use super::undefined_value::Undefined;
use super::{gateways, requests};
use crate::record::{LinkRecord, Record};
use crate::{spelling, stats};
use core::fmt;

/// A function of one run and its arguments: names, then numbers. Its text has the form of a
/// measure, so that equal questions have equal texts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Question<'q> {
    pub(super) function: Function,
    pub(super) names: Vec<&'q str>,
    /// The number arguments. Omitted arguments at the end are missing.
    pub(super) numbers: Vec<f64>,
}

impl fmt::Display for Question<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.names.iter().map(|name| (*name).to_owned());
        let arguments: Vec<String> = names.chain(self.numbers.iter().map(f64::to_string)).collect();
        write!(f, "{}({})", self.function.signature().name, arguments.join(", "))
    }
}

impl Question<'_> {
    fn name(&self, place: usize) -> &str {
        self.names.get(place).copied().unwrap_or_default()
    }

    fn optional(&self, place: usize) -> Option<f64> {
        self.numbers.get(place).copied()
    }

    fn number(&self, place: usize) -> Result<f64, Undefined> {
        self.optional(place).ok_or_else(|| Undefined::wrong("a number is missing"))
    }

    /// The time window whose first second is the number at `place`. The default is from the cut to
    /// the end.
    fn window(&self, record: &Record, place: usize) -> Result<Window, Undefined> {
        Window::of(RunTimes::of(record), self.optional(place), self.optional(place + 1))
    }

    fn link<'r>(&self, record: &'r Record) -> Result<&'r LinkRecord, Undefined> {
        let (from, to) = (self.name(0), self.name(1));
        if record.links.is_empty() {
            return Err(Undefined::no_data("no link was noted"));
        }
        record.links.iter().find(|link| link.from == from && link.to == to).ok_or_else(|| {
            let names: Vec<_> =
                record.links.iter().map(|link| format!("{}, {}", link.from, link.to)).collect();
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            Undefined::wrong(spelling::unknown("link", &format!("{from}, {to}"), names))
        })
    }

    /// Returns the answer from `record`.
    pub(super) fn ask(&self, record: &Record) -> Result<f64, Undefined> {
        let transfers = || Transfers::named(record, self.name(0));
        let window = |place| self.window(record, place);
        let gateways = || gateways::named(record, self.name(0));
        match self.function {
            Function::Goodput => transfers()?.goodput(window(0)?),
            Function::Path => transfers()?.path(self.name(1), window(0)?),
            Function::Share => transfers()?.share(self.name(1), window(0)?),
            Function::Window => transfers()?.window(self.name(1), window(0)?),
            Function::Rtt => transfers()?.rtt(self.name(1), window(0)?),
            Function::Completion => transfers()?.completion(),
            Function::DroppedAt => transfers()?.dropped_at(self.name(1)),
            Function::Deviation => transfers()?.deviation(window(0)?),
            Function::Settles => transfers()?.settles(self.number(0)?, self.optional(1)),
            Function::Reaches => transfers()?.reaches(self.number(0)?, self.optional(1)),
            Function::Fairness => transfers()?.fairness(window(0)?),
            Function::FairnessWorst => transfers()?.fairness_worst(self.number(0)?, window(1)?),
            Function::Least => member(&transfers()?, window(0)?, f64::min),
            Function::Most => member(&transfers()?, window(0)?, f64::max),
            Function::Below => transfers()?.below(self.number(0)?, window(1)?),
            Function::Losses => transfers()?.losses(),
            Function::Reorder => Ok(transfers()?.reorder()),
            Function::OrderWait => transfers()?.order_wait(self.number(0)?),
            Function::Usable => transfers()?.usable(self.optional(0), self.optional(1)),
            Function::Opened => transfers()?.opened(self.optional(0)),
            Function::Available => transfers()?.available(self.optional(0)),
            Function::Abroad => transfers()?.abroad(),
            Function::BaseRtt => Ok(transfers()?.base_rtt()),
            Function::Requests => {
                let list = requests::named(record, self.name(0))?;
                requests::times(list, self.number(0)?, window(1)?)
            }
            Function::Finished => requests::finished(requests::named(record, self.name(0))?, window(0)?),
            Function::Utilisation => utilisation(self.link(record)?, record.sample, window(0)?),
            Function::Queue => queue(self.link(record)?, record.sample, window(0)?),
            Function::Drops => series::grown(&self.link(record)?.dropped, record.sample, window(0)?),
            Function::Waits => gateways::waits(gateways()?, self.number(0)?),
            Function::InVain => gateways::in_vain(gateways()?),
            Function::Refused => Ok(gateways::refused(gateways()?)),
            Function::Found => gateways::found(gateways()?, self.number(0)?),
            Function::Optimum => {
                let none = || Undefined::no_data("this world has no optimum");
                record.optimum.map(|rate| rate / 1e6).ok_or_else(none)
            }
            Function::End => Ok(RunTimes::of(record).end()),
            Function::Cut => Ok(record.cut),
            // Those that are no question to one run are answered by whoever walks the measure.
            _ => Err(Undefined::wrong("no function of one run")),
        }
    }
}

fn member(transfers: &Transfers<'_>, window: Window, pick: fn(f64, f64) -> f64) -> Result<f64, Undefined> {
    let goodputs = transfers.goodputs(window)?;
    goodputs.into_iter().reduce(pick).ok_or_else(|| Undefined::wrong("a group of nobody"))
}

fn utilisation(link: &LinkRecord, sample: f64, window: Window) -> Result<f64, Undefined> {
    if link.rate == 0 {
        return Err(Undefined::wrong("a link without a rate is never full"));
    }
    let bits = series::grown(&link.sent, sample, window)? * 8.0;
    Ok(bits / (link.rate as f64 * window.seconds()))
}

fn queue(link: &LinkRecord, sample: f64, window: Window) -> Result<f64, Undefined> {
    let within = series::within(&link.queue, sample, window).iter();
    let lengths: Vec<f64> = within.map(|&packets| f64::from(packets)).collect();
    stats::mean(&lengths).ok_or_else(|| Undefined::no_data("no sample lies in this window"))
}
