//! Results for the terminal and for pages: cells in rows.

use super::{ClaimResult, ColumnResult, Measured, Verdict};
use crate::stats::Interval;

/// A table of cells with headings. The code that prints it chooses the widths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    /// The headings of the columns.
    pub headings: Vec<String>,
    /// Number of columns at the left that identify the row.
    pub keys: usize,
    /// The rows, from top to bottom.
    pub rows: Vec<GridRow>,
}

/// A row of a [`Grid`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GridRow {
    /// Cells from left to right. Missing cells at the end are empty.
    pub cells: Vec<String>,
    /// Sentences that belong below the row.
    pub notes: Vec<String>,
}

/// Every variant with every column: the median, and where it lies. Axes with one value only are
/// left out.
#[must_use]
pub fn variants(shows: &[ColumnResult]) -> Grid {
    let Some(first) = shows.first() else { return Grid::default() };
    let varies = |axis: usize| {
        let mut labels = first.at.iter().map(|measured| measured.variant.get(axis));
        let one = labels.next();
        labels.any(|label| Some(label) != one)
    };
    let count = first.at.first().map_or(0, |measured| measured.variant.len());
    let axes: Vec<usize> = (0..count).filter(|&axis| varies(axis)).collect();
    let label = |measured: &Measured, axis: usize, name: bool| {
        let pair = measured.variant.get(axis).cloned().unwrap_or_default();
        if name { pair.0 } else { pair.1 }
    };
    let heads = axes.iter().filter_map(|&axis| Some(label(first.at.first()?, axis, true)));
    let named = shows.iter().map(|shown| with_unit(&shown.name, &shown.unit, " in "));
    let rows = first.at.iter().enumerate().map(|(place, measured)| {
        let labels = axes.iter().map(|&axis| label(measured, axis, false));
        let cells = shows.iter().map(|shown| shown.at.get(place).map_or_else(String::new, cell));
        GridRow { cells: labels.chain(cells).collect(), notes: Vec::new() }
    });
    Grid { headings: heads.chain(named).collect(), keys: axes.len(), rows: rows.collect() }
}

/// All claims as a table: verdict, measured value, bounds, and the paper's number. Remarks follow
/// below.
#[must_use]
pub fn claims(claims: &[ClaimResult]) -> Grid {
    let headings = ["verdict", "claim", "measured", "bound", "paper"].map(str::to_owned).to_vec();
    Grid { headings, keys: 2, rows: claims.iter().flat_map(claim_rows).collect() }
}

/// The rows of a claim. A report has one for each variant.
fn claim_rows(claim: &ClaimResult) -> Vec<GridRow> {
    let shown: Vec<&Measured> = match claim.verdict {
        Verdict::Report => claim.at.iter().collect(),
        _ => claim.deciding().into_iter().collect(),
    };
    let mut rows = Vec::new();
    for place in 0..shown.len().max(1) {
        let mut measured = shown.get(place).map_or_else(|| "-".to_owned(), |measured| cell(measured));
        if measured != "-" {
            measured = with_unit(&measured, &claim.unit, " ");
        }
        if let Some(said) = shown.get(place).filter(|measured| !measured.variant.is_empty()) {
            measured = format!("{measured} at {}", variant(said));
        }
        let id = match claim.reading {
            Some(reading) => format!("{} ({reading})", claim.id),
            None => claim.id.clone(),
        };
        let paper = claim.paper.clone().unwrap_or_default();
        let cells = match place {
            0 => vec![claim.verdict.to_string(), id, measured, bound(claim), paper],
            _ => vec![String::new(), String::new(), measured],
        };
        rows.push(GridRow { cells, notes: Vec::new() });
    }
    let known = claim.known.as_ref().filter(|_| claim.verdict == Verdict::KnownMiss);
    if let Some(last) = rows.last_mut() {
        let notes = [Some(&claim.says), claim.note.as_ref(), known];
        last.notes.extend(notes.into_iter().flatten().cloned());
    }
    rows
}

fn variant(measured: &Measured) -> String {
    let pairs: Vec<String> = measured.variant.iter().map(|(axis, label)| format!("{axis}={label}")).collect();
    pairs.join(", ")
}

fn with_unit(text: &str, unit: &str, between: &str) -> String {
    if unit.is_empty() { text.to_owned() } else { format!("{text}{between}{unit}") }
}

fn bound(claim: &ClaimResult) -> String {
    match (claim.at_least, claim.at_most) {
        (Some(least), Some(most)) => format!("{} to {}", number(least), number(most)),
        (Some(least), None) => format!("at least {}", number(least)),
        (None, Some(most)) => format!("at most {}", number(most)),
        (None, None) => "-".to_owned(),
    }
}

/// Returns the median and its interval as text, or a dash.
fn cell(measured: &Measured) -> String {
    let Some(median) = measured.median else { return "-".to_owned() };
    let Some(Interval { low, high, .. }) = measured.interval else { return number(median) };
    if low == high {
        number(median)
    } else {
        format!("{} ({} to {})", number(median), number(low), number(high))
    }
}

/// A number with four digits that count, and none that do not.
#[must_use]
pub fn number(value: f64) -> String {
    let size = libm::fabs(value);
    let text = match size {
        0.0 => return "0".to_owned(),
        size if !(0.001..1e9).contains(&size) => return format!("{value:.3e}"),
        size if size >= 1000.0 => return format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 10.0 => format!("{value:.2}"),
        size if size >= 1.0 => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
