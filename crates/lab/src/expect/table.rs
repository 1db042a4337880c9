//! Results for the terminal: plain text in columns.

use super::{ClaimResult, Measured, Shown, Verdict};
use crate::stats::Interval;

/// Every variant with every column: the median, and where it lies. Axes with one value only are left out.
#[must_use]
pub fn variants(shows: &[Shown]) -> String {
    let Some(first) = shows.first() else { return String::new() };
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
    let mut rows = vec![heads.chain(named).collect::<Vec<_>>()];
    for (place, measured) in first.at.iter().enumerate() {
        let labels = axes.iter().map(|&axis| label(measured, axis, false));
        let cells = shows.iter().map(|shown| shown.at.get(place).map_or_else(String::new, cell));
        rows.push(labels.chain(cells).collect());
    }
    columns(&rows)
}

/// Every claim: its verdict, what was measured, its bounds, what the paper says; below it what there is to say.
#[must_use]
pub fn claims(claims: &[ClaimResult]) -> String {
    let head = ["verdict", "claim", "measured", "bound", "paper"].map(str::to_owned);
    let mut rows = vec![head.to_vec()];
    let mut notes = Vec::new();
    for claim in claims {
        let shown: Vec<&Measured> = match claim.verdict {
            Verdict::Report => claim.at.iter().collect(),
            _ => claim.deciding().into_iter().collect(),
        };
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
            rows.push(match place {
                0 => vec![claim.verdict.to_string(), id, measured, bound(claim), paper],
                _ => vec![String::new(), String::new(), measured],
            });
        }
        let known = claim.known.as_ref().filter(|_| claim.verdict == Verdict::KnownMiss);
        notes.extend(
            [Some(&claim.says), claim.note.as_ref(), known]
                .into_iter()
                .flatten()
                .map(|note| (rows.len() - 1, format!("    {note}"))),
        );
    }
    let table = columns(&rows);
    let mut out = String::new();
    for (place, line) in table.lines().enumerate() {
        out += line;
        out.push('\n');
        for (_, note) in notes.iter().filter(|(behind, _)| *behind == place) {
            out += note;
            out.push('\n');
        }
    }
    out
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

/// The median and where it lies, or a dash.
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

/// Rows as columns, two blanks between; a column of numbers stands to the right.
fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or_default();
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let width: Vec<usize> = (0..count)
        .map(|column| cells(column).map(|cell| cell.chars().count()).max().unwrap_or_default())
        .collect();
    let numbers: Vec<bool> =
        (0..count).map(|column| cells(column).skip(1).all(|cell| cell.parse::<f64>().is_ok())).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let (width, gap) = (width[column], if column == 0 { "" } else { "  " });
            line += gap;
            line += &if numbers[column] { format!("{cell:>width$}") } else { format!("{cell:<width$}") };
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}
