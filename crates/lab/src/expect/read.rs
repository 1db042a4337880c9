//! Reads `expect.toml`.

use super::{Claim, ExpectError, Expectation, Reading, Show};
use crate::figure::FigureSpec;
use crate::measure::Measure;
use crate::plan::Mode;
use core::ops::Range;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: Option<String>,
    paper: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    not_run: Option<String>,
    missed: Option<Spanned<String>>,
    #[serde(default)]
    claim: Vec<RawClaim>,
    #[serde(default)]
    show: Vec<RawShow>,
    #[serde(default)]
    figure: Vec<Spanned<FigureSpec>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClaim {
    id: Spanned<String>,
    says: String,
    paper: Option<String>,
    measure: Spanned<String>,
    at_least: Option<f64>,
    at_most: Option<f64>,
    #[serde(default)]
    unit: String,
    reading: Option<Reading>,
    of: Option<Spanned<String>>,
    #[serde(default)]
    each: Vec<Spanned<String>>,
    #[serde(default)]
    only: BTreeMap<Spanned<String>, Vec<Label>>,
    known: Option<Spanned<String>>,
    #[serde(default)]
    accepted: BTreeMap<Mode, f64>,
    #[serde(default)]
    report: bool,
    #[serde(default = "every_mode")]
    modes: Vec<Mode>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawShow {
    name: Spanned<String>,
    measure: Spanned<String>,
    #[serde(default)]
    unit: String,
}

/// A value of an axis. As in the plan, a number may be written in place of its label.
#[derive(Deserialize)]
#[serde(untagged)]
enum Label {
    Text(String),
    Truth(bool),
    Number(f64),
}

impl Label {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Truth(truth) => truth.to_string(),
            Self::Number(number) => number.to_string(),
        }
    }
}

fn every_mode() -> Vec<Mode> {
    Mode::EVERY.to_vec()
}

/// A mistake: its byte in the file, and its description.
type Wrong = (usize, String);

impl Expectation {
    /// Parses `source`, the text of the expectation `file`.
    ///
    /// # Errors
    /// The text has an unknown key, a claim with neither a bound nor `report = true`, or a measure
    /// that cannot be parsed. The error has line and column.
    pub fn read(file: &str, source: &str) -> Result<Self, ExpectError> {
        expectation(file, source).map_err(|(byte, what)| ExpectError::at(file, source, byte, what))
    }
}

fn expectation(file: &str, source: &str) -> Result<Expectation, Wrong> {
    let raw: File = toml::from_str(source)
        .map_err(|error| (error.span().unwrap_or_default().start, error.message().to_owned()))?;
    let not_run = raw.not_run.is_some();
    let mut claims: Vec<Claim> = Vec::new();
    for raw in raw.claim {
        let place = raw.id.span().start;
        let claim = claim(raw, source, not_run)?;
        if claims.iter().any(|known| known.id == claim.id) {
            return Err((place, format!("there are two claims `{}`: expected another id", claim.id)));
        }
        claims.push(claim);
    }
    let of_none = |of: &&String| !claims.iter().any(|base| base.id == **of && base.of.is_none());
    if let Some((claim, of)) =
        claims.iter().find_map(|claim| Some((claim, claim.of.as_ref().filter(of_none)?)))
    {
        let what = format!("claim `{}` is another reading of `{of}`, and there is no such claim", claim.id);
        return Err((claim.span.start, what));
    }
    let mut shows: Vec<Show> = Vec::new();
    for raw in raw.show {
        let (place, span) = (raw.name.span().start, raw.measure.span());
        let show = Show {
            name: raw.name.into_inner(),
            measure: measure(&raw.measure, source)?,
            unit: raw.unit,
            span,
        };
        if shows.iter().any(|known| known.name == show.name) {
            return Err((place, format!("`{}` is shown already: expected another name", show.name)));
        }
        shows.push(show);
    }
    for figure in &raw.figure {
        if let Some(text) = &figure.get_ref().measure {
            Measure::parse(text).map_err(|error| (figure.span().start, format!("`{text}`: {error}")))?;
        }
    }
    if let Some(missed) =
        raw.missed.as_ref().filter(|missed| missed.get_ref().split_whitespace().count() > 10)
    {
        return Err((missed.span().start, "`missed`: expected at most ten words".to_owned()));
    }
    Ok(Expectation {
        missed: raw.missed.map(Spanned::into_inner),
        title: raw.title,
        paper: raw.paper,
        tags: raw.tags,
        not_run: raw.not_run,
        claims,
        shows,
        figures: raw.figure.into_iter().map(Spanned::into_inner).collect(),
        file: file.to_owned(),
        source: source.to_owned(),
    })
}

/// Reads a claim. With `not_run`, it needs no bound.
fn claim(raw: RawClaim, source: &str, not_run: bool) -> Result<Claim, Wrong> {
    let place = raw.id.span().start;
    let id = raw.id.into_inner();
    let wrong = |what: &str| Err((place, format!("claim `{id}`: {what}")));
    let bounds = [raw.at_least, raw.at_most];
    if bounds.iter().flatten().any(|bound| !bound.is_finite()) {
        return wrong("expected finite bounds");
    }
    match (raw.report, raw.at_least, raw.at_most) {
        (false, None, None) if !not_run => {
            return wrong("no bound: expected at_least, at_most, or report = true");
        }
        (_, None, None) => {}
        (true, ..) => return wrong("a report has no bound: expected one or the other"),
        (false, Some(least), Some(most)) if least > most => {
            return wrong("nothing is at_least more than at_most");
        }
        (false, ..) => {}
    }
    if raw.of.is_some() && !matches!(raw.reading, Some(Reading::Second | Reading::Ours)) {
        return wrong("the strict reading is not another reading `of` a claim");
    }
    if let Some(known) = raw.known.as_ref().filter(|_| raw.report) {
        return Err((known.span().start, format!("claim `{id}`: a report cannot be missed")));
    }
    if let Some(known) = raw.known.as_ref().filter(|known| known.get_ref().trim().is_empty()) {
        return Err((known.span().start, format!("claim `{id}`: expected the reason why it is missed")));
    }
    if raw.known.is_none() && !raw.accepted.is_empty() {
        return wrong("`accepted` without `known`: expected the reason of a miss that is accepted");
    }
    for (at, axis) in raw.each.iter().enumerate() {
        if raw.each[..at].iter().any(|other| other.get_ref() == axis.get_ref()) {
            return Err((axis.span().start, format!("`{}` stands in `each` already", axis.get_ref())));
        }
    }
    for axis in raw.only.keys() {
        if !raw.each.iter().any(|each| each.get_ref() == axis.get_ref()) {
            let what = format!("`{}` does not stand in `each`: expected one of those", axis.get_ref());
            return Err((axis.span().start, what));
        }
    }
    let labels = |labels: Vec<Label>| labels.into_iter().map(Label::into_text).collect();
    Ok(Claim {
        measure: measure(&raw.measure, source)?,
        span: raw.measure.span(),
        id,
        says: raw.says,
        paper: raw.paper,
        at_least: raw.at_least,
        at_most: raw.at_most,
        unit: raw.unit,
        reading: raw.reading,
        of: raw.of.map(Spanned::into_inner),
        each: raw.each.into_iter().map(Spanned::into_inner).collect(),
        only: raw.only.into_iter().map(|(axis, only)| (axis.into_inner(), labels(only))).collect(),
        known: raw.known.map(Spanned::into_inner),
        accepted: raw.accepted,
        modes: raw.modes,
    })
}

fn measure(text: &Spanned<String>, source: &str) -> Result<Measure, Wrong> {
    Measure::parse(text.get_ref()).map_err(|error| {
        let start = contents(source, &text.span(), text.get_ref());
        // Where escapes shift the bytes, the text as a whole is the place.
        let place = start.map_or(text.span().start, |start| start + error.at);
        (place, error.what)
    })
}

/// The byte at which the contents of a TOML string begin. `None`: the string has escapes.
fn contents(source: &str, span: &Range<usize>, text: &str) -> Option<usize> {
    let written = source.get(span.clone())?;
    let quotes = ["\"\"\"", "'''", "\"", "'"].iter().find(|quotes| written.starts_with(**quotes))?.len();
    let mut start = span.start + quotes;
    if quotes == 3 {
        // A line break right behind the quotes is not part of the text.
        let rest = source.get(start..)?;
        start += rest.len() - rest.strip_prefix("\r\n").or(rest.strip_prefix('\n')).unwrap_or(rest).len();
    }
    source.get(start..)?.starts_with(text).then_some(start)
}
