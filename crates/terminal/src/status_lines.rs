//! Status lines at the bottom of a terminal, which are erased and redrawn below the permanent
//! output. The cursor stays at the end of the last status line.

use crate::line_wrap::{breadth, cut};
use std::fmt::Write as _;
use std::io::Write;

/// Columns that stay free behind each line. The terminal prints a pressed key (`^C`) at the cursor.
/// In a full row the key would move the cursor down, and the next redraw would begin too low.
const MARGIN_COLUMNS: usize = 4;
/// Columns that a terminal is taken to have at least. On a narrower one the lines wrap.
const MIN_COLUMNS: usize = 20;

/// Draws and erases status lines on a terminal.
pub struct Painter {
    out: Box<dyn Write + Send>,
    /// Columns and rows of the terminal.
    size: Box<dyn Fn() -> (usize, usize) + Send>,
    /// The number of columns of each line that is drawn now.
    drawn: Vec<usize>,
}

impl Painter {
    /// A painter that draws on `out`, and asks `size` how many columns and rows there are.
    #[must_use]
    pub fn new(out: Box<dyn Write + Send>, size: Box<dyn Fn() -> (usize, usize) + Send>) -> Self {
        Self { out, size, drawn: Vec::new() }
    }

    /// Columns that a line may take.
    #[must_use]
    pub fn columns(&self) -> usize {
        (self.size)().0.max(MIN_COLUMNS) - MARGIN_COLUMNS
    }

    /// Replaces the drawn lines by `lines`, as far as the terminal has room.
    pub fn draw(&mut self, lines: &[String]) {
        let (columns, (_, rows)) = (self.columns(), (self.size)());
        let mut text = self.erased();
        for line in lines.iter().take(rows.saturating_sub(1).max(1)) {
            let line = cut(line, columns);
            let start = if self.drawn.is_empty() { "" } else { "\r\n" };
            // Formatting into a string cannot fail.
            let _ = write!(text, "{start}{line}");
            self.drawn.push(breadth(&line));
        }
        self.put(&text);
    }

    /// Prints lines above the status lines, which are drawn again.
    pub fn print(&mut self, lines: &str) {
        let mut text = self.erased();
        for line in lines.lines() {
            let _ = write!(text, "{line}\r\n");
        }
        self.put(&text);
    }

    /// Erases all drawn lines.
    pub fn clear(&mut self) {
        let text = self.erased();
        self.put(&text);
    }

    /// Returns the control sequence that erases the drawn lines, even if a narrower terminal has
    /// wrapped them.
    fn erased(&mut self) -> String {
        if self.drawn.is_empty() {
            return String::new();
        }
        let columns = (self.size)().0.max(1);
        let rows: usize = self.drawn.drain(..).map(|line| line.max(1).div_ceil(columns)).sum();
        match rows {
            1 => "\r\x1b[J".into(),
            rows => format!("\r\x1b[{}A\x1b[J", rows - 1),
        }
    }

    fn put(&mut self, text: &str) {
        if !text.is_empty() {
            // The terminal may be gone; what is drawn there is for whoever looks.
            let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        }
    }
}

impl Drop for Painter {
    fn drop(&mut self) {
        self.clear();
    }
}
