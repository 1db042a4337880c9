//! Runs of `byway lab harm` as a table to print.

use crate::harm::{HarmRow, HarmVerdict};
use byway_lab::expect::table::{Grid, GridRow};

/// A row for each run.
#[must_use]
pub fn table(rows: &[HarmRow]) -> Grid {
    let headings = ["beside", "transfers", "median", "p90", "of the rest", "has it after", ""];
    let shown = |value: Option<f64>, text: fn(f64) -> String| value.map_or_else(|| "never".to_owned(), text);
    let row = |row: &HarmRow| {
        let verdict = match (row.verdict, row.accurate) {
            (HarmVerdict::Fail, _) => format!("FAIL: {}", row.missed.join(", ")),
            (HarmVerdict::Inaccurate, _) | (HarmVerdict::Shown, false) => "inaccurate".to_owned(),
            (HarmVerdict::Shown, true) => String::new(),
            (HarmVerdict::Pass, _) => "pass".to_owned(),
        };
        let cells = vec![
            row.against.clone(),
            row.bulk.to_string(),
            shown(row.median, |ratio| format!("{ratio:.2}x")),
            shown(row.p90, |ratio| format!("{ratio:.2}x")),
            shown(row.share, |share| format!("{:.0} %", 100.0 * share)),
            shown(row.regain_seconds, |seconds| format!("{seconds:.1} s")),
            verdict,
        ];
        GridRow { cells, notes: Vec::new() }
    };
    Grid { headings: headings.map(str::to_owned).into(), keys: 1, rows: rows.iter().map(row).collect() }
}
