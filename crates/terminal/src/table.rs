//! A table of text: columns as wide as they need to be, or as the screen lets them.

use crate::line_wrap::{breadth, longest_word, printable, wrap};
use std::fmt;

/// Blanks between two columns.
const COLUMN_GAP: usize = 2;
/// Blanks before a note below a row.
const NOTE_INDENT: usize = 4;

/// To which side a column's cells lean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text. It continues on the next line if it does not fit.
    Left,
    /// Numbers. They stay on one line, but their heading may take several.
    Right,
}

impl Align {
    /// The side to which these cells of a column lean: the right one if each is a number, with or
    /// without a unit and the range that it lies in, or says that there is none.
    #[must_use]
    pub fn of<'a>(mut cells: impl Iterator<Item = &'a str>) -> Self {
        let is_number = |cell: &str| {
            let (median, range) = cell.split_once(" (").unwrap_or((cell, ")"));
            let median = median.split_once(" of ").map_or(median, |(count, _)| count);
            let units = [" ms", "x", " %", " s"];
            let figure = units.iter().find_map(|unit| median.strip_suffix(unit)).unwrap_or(median);
            range.ends_with(')') && (["", "-", "never"].contains(&figure) || figure.parse::<f64>().is_ok())
        };
        if cells.all(is_number) { Self::Right } else { Self::Left }
    }
}

/// Rows under headings. `Display` makes each column as wide as its contents, and ends without a
/// line feed.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Row>,
    keys: usize,
}

#[derive(Clone, Debug)]
struct Row {
    cells: Vec<String>,
    notes: Vec<String>,
}

impl Table {
    /// Makes a table with these columns and no row.
    #[must_use]
    pub fn new<T: Into<String>>(columns: impl IntoIterator<Item = (T, Align)>) -> Self {
        let columns = columns.into_iter().map(|(heading, align)| (heading.into(), align));
        Self { columns: columns.collect(), rows: Vec::new(), keys: 1 }
    }

    /// Sets how many columns at the left identify a row (1 by default). A table that is too wide is
    /// printed in several pieces, one below the other. Each piece repeats these columns.
    #[must_use]
    pub const fn keyed_by(mut self, keys: usize) -> Self {
        self.keys = keys;
        self
    }

    /// Adds a row. Cells that are missing at its end are empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut cells: Vec<_> = cells.into_iter().map(|cell| printable(&cell)).collect();
        debug_assert!(cells.len() <= self.columns.len(), "a cell without a column: {cells:?}");
        cells.resize(self.columns.len(), String::new());
        self.rows.push(Row { cells, notes: Vec::new() });
    }

    /// Adds a sentence below the last row.
    pub fn note(&mut self, text: &str) {
        debug_assert!(!self.rows.is_empty(), "a note without a row: {text}");
        if let Some(row) = self.rows.last_mut() {
            row.notes.push(printable(text));
        }
    }

    /// Returns the table in `columns` columns of the screen, if words and numbers are short enough.
    /// It ends without a line feed.
    #[must_use]
    pub fn fit(&self, columns: usize) -> String {
        let pieces: Vec<_> =
            self.pieces(columns).iter().map(|piece| self.piece(piece, columns).join("\n")).collect();
        let mut text = pieces.join("\n\n");
        if pieces.len() == 1 {
            text.truncate(text.trim_end().len());
        }
        text
    }

    fn column(&self, column: usize) -> impl Iterator<Item = &String> {
        self.rows.iter().filter_map(move |row| row.cells.get(column))
    }

    /// The width of a column if there is room.
    fn wanted(&self, column: usize) -> usize {
        let heading = breadth(&self.columns[column].0);
        self.column(column).map(|cell| breadth(cell)).fold(heading, usize::max)
    }

    /// How wide a column is at least.
    fn least(&self, column: usize) -> usize {
        let (heading, align) = &self.columns[column];
        let cells = self.column(column).map(|cell| match align {
            Align::Left => longest_word(cell),
            Align::Right => breadth(cell),
        });
        cells.fold(longest_word(heading), usize::max)
    }

    /// The columns of each piece: as few pieces as fit.
    fn pieces(&self, columns: usize) -> Vec<Vec<usize>> {
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let (keys, rest) = all.split_at(self.keys.min(all.len()));
        let width = |piece: &[usize]| {
            piece
                .iter()
                .map(|&column| self.least(column) + COLUMN_GAP)
                .sum::<usize>()
                .saturating_sub(COLUMN_GAP)
        };
        let mut pieces: Vec<Vec<usize>> = Vec::new();
        let mut piece = keys.to_vec();
        for &column in rest {
            piece.push(column);
            if width(&piece) > columns && piece.len() > keys.len() + 1 {
                piece.pop();
                pieces.push(piece);
                piece = [keys, &[column]].concat();
            }
        }
        pieces.push(piece);
        pieces
    }

    /// The widths of a piece's columns. Where they do not fit, the widest is cut first.
    fn widths(&self, piece: &[usize], columns: usize) -> Vec<usize> {
        let mut widths: Vec<_> = piece.iter().map(|&column| self.wanted(column)).collect();
        let least: Vec<_> = piece.iter().map(|&column| self.least(column)).collect();
        let total = |widths: &[usize]| widths.iter().map(|width| width + COLUMN_GAP).sum::<usize>();
        while total(&widths) > columns.saturating_add(COLUMN_GAP) {
            let narrower = (0..widths.len()).filter(|&place| widths[place] > least[place]);
            let Some(widest) = narrower.max_by_key(|&place| widths[place]) else { break };
            widths[widest] -= 1;
        }
        widths
    }

    fn piece(&self, piece: &[usize], columns: usize) -> Vec<String> {
        let widths = self.widths(piece, columns);
        let mut lines = Vec::new();
        let headings: Vec<_> = self.columns.iter().map(|(heading, _)| heading.clone()).collect();
        self.lines(piece, &widths, &headings, &mut lines);
        for row in &self.rows {
            self.lines(piece, &widths, &row.cells, &mut lines);
            // The first piece has them.
            if piece.get(self.keys).is_none_or(|&column| column == self.keys) {
                let room = columns.saturating_sub(NOTE_INDENT);
                let notes = row.notes.iter().flat_map(|note| wrap(note, room));
                lines.extend(notes.map(|line| format!("{:NOTE_INDENT$}{line}", "")));
            }
        }
        lines
    }

    /// Appends the lines of one row.
    fn lines(&self, piece: &[usize], widths: &[usize], cells: &[String], lines: &mut Vec<String>) {
        let cells: Vec<Vec<String>> =
            piece.iter().zip(widths).map(|(&column, &width)| wrap(&cells[column], width)).collect();
        for at in 0..cells.iter().map(Vec::len).max().unwrap_or_default() {
            let mut line = String::new();
            for ((cell, &width), &column) in cells.iter().zip(widths).zip(piece) {
                let text = cell.get(at).map_or("", String::as_str);
                let blanks = " ".repeat(width.saturating_sub(breadth(text)));
                line += &match self.columns[column].1 {
                    Align::Left => format!("{text}{blanks}{:COLUMN_GAP$}", ""),
                    Align::Right => format!("{blanks}{text}{:COLUMN_GAP$}", ""),
                };
            }
            lines.push(line.trim_end().to_owned());
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fit(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_numbers_leans_right() {
        assert_eq!(
            Align::of(["1.5 (1 to 2)", "-", "12 ms", "3 of 5", "3 %", "never", ""].into_iter()),
            Align::Right
        );
        assert_eq!(Align::of(["1.5", "direct"].into_iter()), Align::Left);
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new([("path", Align::Left), ("bytes", Align::Right), ("rate", Align::Right)]);
        table.row(["direct".into(), "12.0 MiB".into(), "9.10 Mbit/s".into()]);
        table.row(["é\u{1b}[1m".into(), "8 B".into(), "90 bit/s".into()]);
        table.row(["路".into(), "1 B".into()]);
        let expected = [
            "path           bytes         rate",
            "direct      12.0 MiB  9.10 Mbit/s",
            "é\\u{1b}[1m       8 B     90 bit/s",
            "路               1 B",
        ];
        assert_eq!(table.to_string(), expected.join("\n"));
    }

    fn wide() -> Table {
        let mut table = Table::new([("name", Align::Left), ("what it is", Align::Left), ("n", Align::Right)]);
        table.row(["harp".into(), "fills what is idle and makes way".into(), "12 (9 to 14)".into()]);
        table.note("a sentence that says why this is so");
        table.row(["lia".into(), "short".into(), "8".into()]);
        table
    }

    #[test]
    fn text_goes_on_below_and_numbers_stay_whole() {
        let expected = [
            "name  what it is              n",
            "harp  fills what   12 (9 to 14)",
            "      is idle and",
            "      makes way",
            "    a sentence that says why",
            "    this is so",
            "lia   short                   8",
        ];
        assert_eq!(wide().fit(31), expected.join("\n"));
        assert!(wide().to_string().lines().all(|line| !line.starts_with("      ")));
    }

    #[test]
    fn what_fits_in_no_way_is_printed_in_pieces() {
        let expected = [
            "name  what it",
            "      is",
            "harp  fills",
            "      what is",
            "      idle and",
            "      makes",
            "      way",
            "    a sentence",
            "    that says",
            "    why this",
            "    is so",
            "lia   short",
            "",
            "name             n",
            "harp  12 (9 to 14)",
            "lia              8",
        ];
        assert_eq!(wide().fit(14), expected.join("\n"));
    }
}
