//! Measures of requests: the times that people waited.

use super::series::Window;
use super::undefined_value::Undefined;
use crate::record::{Record, RequestRecord, RequestsRecord};
use crate::{request_times, spelling};

/// The record of the requests with this name.
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

/// A percentile of request times ([`request_times::percentile`]). It is undefined if it falls on a
/// request that did not end.
fn percentile(
    times: impl IntoIterator<Item = Option<f64>>,
    percent: f64,
    none: Undefined,
) -> Result<f64, Undefined> {
    if !(0.0..=100.0).contains(&percent) {
        return Err(Undefined::wrong(format!("percentile {percent}: expected 0 to 100")));
    }
    match request_times::percentile(times, percent) {
        Some(time) if time.is_finite() => Ok(time),
        Some(_) => {
            Err(Undefined::no_data(format!("percentile {percent} falls on a request that did not finish")))
        }
        None => Err(none),
    }
}

/// A percentile of the completion times.
pub(super) fn times(requests: &RequestsRecord, percent: f64, window: Window) -> Result<f64, Undefined> {
    let began = requests.list.iter().filter(|request| began_within(request, window));
    percentile(began.map(|request| request.took), percent, none_began(window))
}

/// Returns a percentile of each request's time, divided by its time in another variant; see
/// `docs/lab.md`.
pub(super) fn stretch(
    here: &RequestsRecord,
    there: &RequestsRecord,
    percent: f64,
    window: Window,
) -> Result<f64, Undefined> {
    let pairs = || here.list.iter().zip(&there.list);
    if pairs().any(|(here, there)| here.size != there.size) {
        return Err(Undefined::wrong("the two variants have different lists of requests"));
    }
    let (here, there): (Vec<_>, Vec<_>) = pairs().filter(|(here, _)| began_within(here, window)).unzip();
    let none = Undefined::no_data("no request finished in the other variant");
    percentile(request_times::ratios(here, there), percent, none)
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
