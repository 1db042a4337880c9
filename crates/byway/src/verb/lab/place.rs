//! Where experiments and their results are.

use crate::args::lab::Where;
use crate::exit::{Exit, Failure};
use anyhow::{Context as _, Result};
use byway_lab::expect::{Expectation, Outcome};
use byway_lab::experiment::{self, Experiment};
use byway_lab::spelling;
use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// The experiments, by name.
pub(super) fn experiments(place: &Where) -> Result<Vec<Experiment>> {
    match &place.experiments {
        None => Ok(experiment::embedded()),
        Some(directory) => {
            experiment::in_directory(directory).with_context(|| directory.display().to_string())
        }
    }
}

/// The experiment called `id`; if there is none, a sentence that names what may have been meant.
pub(super) fn experiment(place: &Where, id: &str) -> Result<Experiment> {
    let mut all = experiments(place)?;
    if let Some(found) = all.iter().position(|experiment| experiment.id == id) {
        return Ok(all.swap_remove(found));
    }
    let sentence = match spelling::closest(id, all.iter().map(|experiment| experiment.id.as_str())) {
        Some(close) => format!("there is no experiment {id}: did you mean {close}?"),
        None => format!("there is no experiment {id}: `byway lab list` names them, a plan ends in .toml"),
    };
    Err(Failure::new(Exit::NotFound, sentence).into())
}

/// The expectation of an experiment.
pub(super) fn expectation(experiment: &Experiment) -> Result<Expectation> {
    let file = format!("{}/expect.toml", experiment.id);
    Expectation::read(&file, &experiment.expect)
        .map_err(|error| Failure::new(Exit::Usage, error.to_string()).into())
}

/// Whether one of `tags` is among those of an expectation; no tags: whether it is any at all.
pub(super) fn tagged(expectation: &Expectation, tags: &[String]) -> bool {
    tags.is_empty() || tags.iter().any(|tag| expectation.tags.contains(tag))
}

/// The directory for what comes of `id`.
pub(super) fn results(place: &Where, id: &str) -> PathBuf {
    place.out.join(id)
}

/// What came of an experiment the last time: here, or when it was last kept.
pub(super) fn last(place: &Where, experiment: &Experiment) -> Option<Outcome> {
    let here = fs::read_to_string(results(place, &experiment.id).join("result.json")).ok();
    let here = here.and_then(|text| Outcome::from_json(&text).ok());
    here.or_else(|| Outcome::from_json(experiment.result.as_ref()?).ok())
}

/// The figures that were drawn here, in order.
pub(super) fn figures(place: &Where, id: &str) -> Vec<String> {
    (1..)
        .map_while(|number| fs::read_to_string(results(place, id).join(format!("figure-{number}.svg"))).ok())
        .collect()
}

/// Today, in UTC, as 2026-01-31.
pub(super) fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Year, month and day of a day since 1970, by counting off years and months.
fn civil(mut days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        for (day, date) in [
            (0, (1970, 1, 1)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (20_778, (2026, 11, 21)),
            (19_722, (2023, 12, 31)),
        ] {
            assert_eq!(civil(day), date, "{day}");
        }
    }
}
