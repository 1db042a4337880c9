//! The board as tables to print.

use super::{Board, BoundResult, CellRow, Figure, Foreground};
use crate::acceptance::Acceptance;
use crate::expect::table::{Grid, GridRow};
use crate::request_times;

/// The figures of a cell, by heading.
const FIGURE_COLUMNS: [(&str, Figure); 11] = [
    ("median", Figure::Median),
    ("p90", Figure::P90),
    ("late", Figure::Late),
    ("share", Figure::Share),
    ("fill", Figure::Fill),
    ("Jain 1", Figure::JainFirst),
    ("Jain 2", Figure::Jain),
    ("least", Figure::Least),
    ("of one", Figure::OfOne),
    ("keeps", Figure::Keeps),
    ("again", Figure::Regain),
];

/// A table for each foreground: a row for each line, number of transfers and law.
#[must_use]
pub fn cells(board: &Board, laws: &[&str]) -> Vec<Grid> {
    Foreground::ALL.into_iter().filter_map(|foreground| beside(board, laws, foreground)).collect()
}

fn beside(board: &Board, laws: &[&str], foreground: Foreground) -> Option<Grid> {
    let places: Vec<_> =
        board.scenes().iter().enumerate().filter(|(_, scene)| scene.foreground == foreground).collect();
    let all = places.iter().flat_map(|&(place, scene)| {
        laws.iter().filter_map(move |&law| Some((scene, law, board.at(place, law)?)))
    });
    let all: Vec<_> = all.collect();
    let value = |figures, (_, figure): (&str, Figure)| figure.of(figures, foreground);
    let columns = FIGURE_COLUMNS.into_iter();
    let columns: Vec<_> =
        columns.filter(|&column| all.iter().any(|(.., figures)| value(figures, column).is_some())).collect();
    let left = [format!("beside {}", foreground.name()), "transfers".into(), "law".into()];
    let headings = left.into_iter().chain(columns.iter().map(|(heading, _)| (*heading).to_owned()));
    let rows = all.iter().map(|(scene, law, figures)| {
        let left = [scene.line.to_string(), scene.who(), (*law).to_owned()];
        let cells = columns.iter().map(|&column| shown(value(figures, column)));
        GridRow { cells: left.into_iter().chain(cells).collect(), notes: Vec::new() }
    });
    let grid = Grid { headings: headings.collect(), keys: 3, rows: rows.collect() };
    (!all.is_empty()).then_some(grid)
}

/// A row for each law: the median of each figure over the scenes, and the worst harm.
#[must_use]
pub fn laws(board: &Board, laws: &[&str], rows: &[CellRow]) -> Grid {
    let headings = ["law", "scenes"].into_iter().chain(FIGURE_COLUMNS.map(|(heading, _)| heading));
    let headings = headings.chain(["worst p90", "CPU s"]).map(str::to_owned).collect();
    let row = |law: &&str| {
        let values = |figure: Figure| {
            let of = board.of(law).filter_map(move |(scene, figures)| figure.of(figures, scene.foreground));
            of.collect::<Vec<f64>>()
        };
        let middle = |figure| shown(request_times::percentile(values(figure).into_iter().map(Some), 50.0));
        let worst = values(Figure::P90).into_iter().max_by(f64::total_cmp);
        let cpu: f64 = rows.iter().filter(|row| row.law == *law).map(|row| row.cpu_seconds).sum();
        let first = [(*law).to_owned(), board.of(law).count().to_string()];
        let last = [shown(worst), format!("{cpu:.0}")];
        let cells = first.into_iter().chain(FIGURE_COLUMNS.map(|(_, figure)| middle(figure))).chain(last);
        GridRow { cells: cells.collect(), notes: Vec::new() }
    };
    Grid { headings, keys: 1, rows: laws.iter().map(row).collect() }
}

/// A row for each bound. The scenes that miss it are listed below the row.
#[must_use]
pub fn bounds(law: &str, judged: &[BoundResult]) -> Grid {
    let headings = vec![format!("bounds of {law}"), "figures".into(), "missed".into(), String::new()];
    let row = |bound: &BoundResult| {
        let word = match (bound.missed.is_empty(), bound.holds()) {
            (true, _) => "pass",
            (_, true) => "known",
            _ => "FAIL",
        };
        let (figures, missed) = (bound.figures.to_string(), bound.missed.len().to_string());
        let notes = bound.missed.iter().map(|miss| {
            let (value, limit) = (shown(Some(miss.value)), shown(Some(miss.limit)));
            let accepted = miss.known.map(|known| acceptance(known.acceptance)).unwrap_or_default();
            let reason = miss.known.map(|known| format!(": {}", known.reason)).unwrap_or_default();
            format!("{}: {} {value}, bound {limit}{accepted}{reason}", miss.scene, miss.figure)
        });
        GridRow {
            cells: vec![bound.says.to_owned(), figures, missed, word.to_owned()],
            notes: notes.collect(),
        }
    };
    Grid { headings, keys: 1, rows: judged.iter().map(row).collect() }
}

/// Returns the comparison of a known miss with the accepted value, in words. Empty if they are
/// alike.
fn acceptance(acceptance: Acceptance) -> String {
    match acceptance {
        Acceptance::Missing => ", and no value is accepted".to_owned(),
        Acceptance::Worse(accepted) => format!(", worse than {}, which is accepted", shown(Some(accepted))),
        Acceptance::Better(accepted) => format!(", better than {}, which is accepted", shown(Some(accepted))),
        Acceptance::Alike => String::new(),
    }
}

/// A figure with two digits.
fn shown(value: Option<f64>) -> String {
    match value {
        None => String::new(),
        Some(value) if value.is_infinite() => "never".to_owned(),
        Some(value) => format!("{value:.2}"),
    }
}
