//! Text that fits a screen: lines are broken at blanks, and widths are those that a terminal shows.

use byway_wire::Printable;
use rustix::termios::tcgetwinsize;
use std::os::fd::AsFd;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The columns of a page that is no terminal.
pub const PAGE_COLUMNS: usize = 100;

/// The default number of rows, for a terminal that does not report it.
const DEFAULT_ROWS: usize = 24;

/// The number of columns of the terminal at `stream`. [`PAGE_COLUMNS`] if it is no terminal, or
/// does not tell.
#[must_use]
pub fn columns(stream: impl AsFd) -> usize {
    tcgetwinsize(stream)
        .map(|size| usize::from(size.ws_col))
        .ok()
        .filter(|&columns| columns > 0)
        .unwrap_or(PAGE_COLUMNS)
}

/// Returns the columns and rows of the terminal behind `stream`.
#[must_use]
pub fn size(stream: impl AsFd) -> (usize, usize) {
    let rows = |fd: &dyn AsFd| tcgetwinsize(fd.as_fd()).ok().map(|size| usize::from(size.ws_row));
    let rows = rows(&stream).filter(|&rows| rows > 0).unwrap_or(DEFAULT_ROWS);
    (columns(stream), rows)
}

/// Returns the columns that `text` takes on a terminal.
#[must_use]
pub fn breadth(text: &str) -> usize {
    text.width()
}

/// The line `text`, shortened to `columns` columns with an ellipsis.
#[must_use]
pub fn cut(text: &str, columns: usize) -> String {
    if breadth(text) <= columns {
        return text.to_owned();
    }
    let mut room = columns.saturating_sub(1);
    let kept = text.chars().take_while(|letter| {
        let left = room.checked_sub(letter.width().unwrap_or(0));
        room = left.unwrap_or(room);
        left.is_some()
    });
    let mut short: String = kept.collect();
    short.extend((columns > 0).then_some('…'));
    short
}

/// Returns the columns of the longest word.
#[must_use]
pub fn longest_word(text: &str) -> usize {
    text.split(' ').map(breadth).max().unwrap_or_default()
}

/// Wraps `text` into lines of `columns` columns. A longer word has a line of its own. There is
/// always one line.
#[must_use]
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    if breadth(text) <= columns {
        return vec![text.to_owned()];
    }
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if breadth(line) + 1 + breadth(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    if lines.is_empty() { vec![String::new()] } else { lines }
}

/// Wraps every line of `text` to `columns` columns. Continued lines are indented by two more
/// blanks.
#[must_use]
pub fn paragraphs(text: &str, columns: usize) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        if breadth(line) <= columns {
            lines.push(line.to_owned());
            continue;
        }
        let rest = line.trim_start();
        let blanks = line.len() - rest.len();
        let first = line.get(..blanks).unwrap_or_default();
        let below = " ".repeat(blanks + 2);
        for (place, line) in wrap(rest, columns.saturating_sub(below.len())).into_iter().enumerate() {
            lines.push(format!("{}{line}", if place == 0 { first } else { &below }));
        }
    }
    lines.join("\n")
}

/// Makes `text` safe to print on one line of a terminal. Control characters, and characters that
/// look like others, are printed as escapes.
#[must_use]
pub fn printable(text: &str) -> String {
    Printable(text.as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_blanks() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("one  two", 20), ["one  two"], "what fits is left alone");
        assert_eq!(wrap("unbreakable one", 6), ["unbreakable", "one"]);
        assert_eq!(wrap("路路路 路", 7), ["路路路", "路"], "two columns each");
        assert_eq!(wrap("", 0), [""]);
    }

    #[test]
    fn what_does_not_fit_is_cut() {
        for (text, columns, expected) in [
            ("direct", 6, "direct"),
            ("direct", 5, "dire…"),
            ("路路路路", 8, "路路路路"),
            ("路路路路", 7, "路路路…"),
            ("路路路路", 6, "路路…"),
            ("e\u{301}te\u{301}", 3, "e\u{301}te\u{301}"),
            ("x", 0, ""),
        ] {
            assert_eq!(cut(text, columns), expected, "{text} in {columns}");
            assert!(breadth(&cut(text, columns)) <= columns);
        }
    }

    #[test]
    fn what_goes_on_stands_further_in() {
        assert_eq!(paragraphs("short\n  one two three", 11), "short\n  one two\n    three");
        assert!(paragraphs(&"word ".repeat(99), 40).lines().all(|line| breadth(line) <= 40));
    }
}
