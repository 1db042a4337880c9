//! The board as tables of text.

use crate::output::{Align, Table};
use byway_lab::acceptance::Acceptance;
use byway_lab::request_times;
use byway_lab::scoreboard::{Board, BoundResult, CellRow, Figure, Foreground};

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
pub(super) fn cells(board: &Board, laws: &[&str]) -> Vec<Table> {
    Foreground::ALL.into_iter().filter_map(|foreground| beside(board, laws, foreground)).collect()
}

fn beside(board: &Board, laws: &[&str], foreground: Foreground) -> Option<Table> {
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
    let heading = format!("beside {}", foreground.name());
    let left = [(heading.as_str(), Align::Left), ("transfers", Align::Right), ("law", Align::Left)];
    let mut table =
        Table::new(left.into_iter().chain(columns.iter().map(|(heading, _)| (*heading, Align::Right))))
            .keyed_by(3);
    for (scene, law, figures) in &all {
        let cells = columns.iter().map(|&column| shown(value(figures, column)));
        let left = [scene.line.to_string(), scene.who(), (*law).to_owned()];
        table.row(left.into_iter().chain(cells));
    }
    (!all.is_empty()).then_some(table)
}

/// A row for each law: the median of each figure over the scenes, and the worst harm.
pub(super) fn laws(board: &Board, laws: &[&str], rows: &[CellRow]) -> Table {
    let headings = [("law", Align::Left), ("scenes", Align::Right)];
    let figures = FIGURE_COLUMNS.map(|(heading, _)| (heading, Align::Right));
    let last = [("worst p90", Align::Right), ("CPU s", Align::Right)];
    let mut table = Table::new(headings.into_iter().chain(figures).chain(last));
    for law in laws {
        let values = |figure: Figure| {
            let of = board.of(law).filter_map(move |(scene, figures)| figure.of(figures, scene.foreground));
            of.collect::<Vec<f64>>()
        };
        let middle = |figure| shown(request_times::percentile(values(figure).into_iter().map(Some), 50.0));
        let worst = values(Figure::P90).into_iter().max_by(f64::total_cmp);
        let cpu: f64 = rows.iter().filter(|row| row.law == *law).map(|row| row.cpu_seconds).sum();
        let scenes = board.of(law).count();
        let cells = FIGURE_COLUMNS.map(|(_, figure)| middle(figure));
        let last = [shown(worst), format!("{cpu:.0}")];
        table.row([(*law).to_owned(), scenes.to_string()].into_iter().chain(cells).chain(last));
    }
    table
}

/// A row for each bound. The scenes that miss it are listed below the row.
pub(super) fn bounds(law: &str, judged: &[BoundResult]) -> Table {
    let mut table = Table::new([
        (format!("bounds of {law}"), Align::Left),
        ("figures".to_owned(), Align::Right),
        ("missed".to_owned(), Align::Right),
        (String::new(), Align::Left),
    ]);
    for bound in judged {
        let word = match (bound.missed.is_empty(), bound.holds()) {
            (true, _) => "pass",
            (_, true) => "known",
            _ => "FAIL",
        };
        let missed = bound.missed.len();
        table.row([bound.says.to_owned(), bound.figures.to_string(), missed.to_string(), word.to_owned()]);
        for miss in &bound.missed {
            let (value, limit) = (shown(Some(miss.value)), shown(Some(miss.limit)));
            let accepted = miss.known.map(|known| acceptance(known.acceptance)).unwrap_or_default();
            let reason = miss.known.map(|known| format!(": {}", known.reason)).unwrap_or_default();
            table.note(&format!("{}: {} {value}, bound {limit}{accepted}{reason}", miss.scene, miss.figure));
        }
    }
    table
}

/// How a known miss compares with the accepted one, where that is worth a word.
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
