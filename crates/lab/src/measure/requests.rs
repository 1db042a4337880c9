//! What is asked of requests: how long people waited.

use super::Undefined;
use super::series::Window;
use crate::record::{Record, RequestRecord, RequestsRecord};
use crate::spelling;
use crate::stats;

/// The requests called `name`.
pub(super) fn named<'r>(record: &'r Record, name: &str) -> Result<&'r RequestsRecord, Undefined> {
    record.requests.iter().find(|requests| requests.name == name).ok_or_else(|| {
        let names = record.requests.iter().map(|requests| requests.name.as_str());
        Undefined::wrong(spelling::unknown("list of requests", name, names))
    })
}

fn began_within(request: &RequestRecord, window: Window) -> bool {
    request.began.is_some_and(|began| window.from <= began && began < window.to)
}

fn none_began(window: Window) -> Undefined {
    Undefined::no_data(format!("no request began between the seconds {} and {}", window.from, window.to))
}

/// A percentile of `values`, of which so many more are as large as the largest.
fn percentile(mut values: Vec<f64>, longest: usize, percent: f64, none: Undefined) -> Result<f64, Undefined> {
    let Some(most) = values.iter().copied().reduce(f64::max) else { return Err(none) };
    values.extend(core::iter::repeat_n(most, longest));
    stats::quantile(&values, percent / 100.0)
        .ok_or_else(|| Undefined::wrong(format!("percentile {percent}: expected 0 to 100")))
}

/// A percentile of the completion times. One that did not finish took as long as the longest, or as it has been waiting if
/// that is longer.
pub(super) fn times(
    requests: &RequestsRecord,
    percent: f64,
    window: Window,
    end: f64,
) -> Result<f64, Undefined> {
    let began = || requests.list.iter().filter(|request| began_within(request, window));
    if !began().any(|request| request.took.is_some()) {
        return Err(if began().next().is_some() {
            Undefined::no_data("no request finished")
        } else {
            none_began(window)
        });
    }
    let longest = began().map(|request| waited(request, end)).fold(0.0, f64::max);
    let times = began().map(|request| request.took.unwrap_or(longest)).collect();
    percentile(times, 0, percent, none_began(window))
}

/// How long a request took, or has been waiting at the end.
fn waited(request: &RequestRecord, end: f64) -> f64 {
    request.took.unwrap_or_else(|| request.began.map_or(0.0, |began| end - began))
}

/// A percentile of each request's time over its time in another variant; see `docs/lab.md`.
pub(super) fn stretch(
    here: &RequestsRecord,
    there: &RequestsRecord,
    percent: f64,
    window: Window,
) -> Result<f64, Undefined> {
    let (mut ratios, mut unfinished) = (Vec::new(), 0);
    for (here, there) in here.list.iter().zip(&there.list) {
        if here.size != there.size {
            return Err(Undefined::wrong("the two variants have different lists of requests"));
        }
        if !began_within(here, window) {
            continue;
        }
        match (here.took, there.took) {
            (Some(here), Some(there)) if there > 0.0 => ratios.push(here / there),
            (None, Some(_)) => unfinished += 1,
            _ => {}
        }
    }
    let none = Undefined::no_data("no request finished in both variants");
    percentile(ratios, unfinished, percent, none)
}

/// The part of the requests that finished.
pub(super) fn finished(requests: &RequestsRecord, window: Window) -> Result<f64, Undefined> {
    let began: Vec<_> = requests.list.iter().filter(|request| began_within(request, window)).collect();
    if began.is_empty() {
        return Err(none_began(window));
    }
    let finished = began.iter().filter(|request| request.took.is_some()).count();
    Ok(finished as f64 / began.len() as f64)
}
