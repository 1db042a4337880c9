//! A table of text for the end of a run: columns as wide as they need to be.

use super::printable;
use std::fmt;

/// To which side a column's cells lean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Rows under headings, two spaces between columns. `Display` ends without a line feed.
#[derive(Clone, Debug)]
pub struct Table<const N: usize> {
    columns: [(&'static str, Align); N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// A table with these columns and no row.
    #[must_use]
    pub const fn new(columns: [(&'static str, Align); N]) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| printable(&cell)));
    }
}

impl<const N: usize> fmt::Display for Table<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headings = self.columns.map(|(heading, _)| heading.to_owned());
        let rows = || std::iter::once(&headings).chain(&self.rows);
        let mut widths = [0; N];
        for row in rows() {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        for (index, row) in rows().enumerate() {
            let mut line = String::new();
            for ((cell, width), (_, align)) in row.iter().zip(widths).zip(self.columns) {
                match align {
                    Align::Left => line += &format!("{cell:<width$}  "),
                    Align::Right => line += &format!("{cell:>width$}  "),
                }
            }
            let line = line.trim_end();
            if index == 0 { f.write_str(line)? } else { write!(f, "\n{line}")? }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new([("path", Align::Left), ("bytes", Align::Right), ("rate", Align::Right)]);
        table.row(["direct".into(), "12.0 MiB".into(), "9.10 Mbit/s".into()]);
        table.row(["é\u{1b}[1m".into(), "8 B".into(), "90 bit/s".into()]);
        let expected = [
            "path           bytes         rate",
            "direct      12.0 MiB  9.10 Mbit/s",
            "é\\u{1b}[1m       8 B     90 bit/s",
        ];
        assert_eq!(table.to_string(), expected.join("\n"));
    }
}
