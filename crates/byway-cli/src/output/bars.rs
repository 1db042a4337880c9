//! Bars on a terminal: for each transfer one, and one line per path below it.

use super::event::Event;
use super::plain::{BACK_PREFIX, describe, ended, seconds_left};
use super::transfer::{PathProgress, Progress};
use crate::messages::transfer;
use crate::units::{Bytes, Rate, Span};
use byway_terminal::Painter;
use byway_terminal::line_wrap::{breadth, cut, printable};
use std::collections::BTreeMap;

/// Columns of a transfer's bar: the most, and the least on a narrow screen.
const TOTAL_BAR_COLUMNS: (usize, usize) = (30, 4);
/// Columns of a path's bar: the most, and the least on a narrow screen.
const PATH_BAR_COLUMNS: (usize, usize) = (12, 4);
/// The smallest width of a path's name in columns.
const MIN_NAME_COLUMNS: usize = 12;
/// The frames of the spinner, shown if the total size is unknown.
const SPINNER_CHARS: [char; 4] = ['-', '\\', '|', '/'];

/// Draws progress bars. Progress arrives a few times a second.
pub(super) struct Bars {
    painter: Painter,
    /// The latest progress of each running transfer, by the transfer's number.
    running: BTreeMap<u32, Progress>,
    turn: usize,
    stopped: bool,
    verbose: bool,
}

impl Bars {
    pub(super) const fn new(painter: Painter, verbose: bool) -> Self {
        Self { painter, running: BTreeMap::new(), turn: 0, stopped: false, verbose }
    }

    pub(super) const fn is_verbose(&self) -> bool {
        self.verbose
    }

    pub(super) fn show(&mut self, event: &Event) {
        if let Event::Progress(progress) = event {
            if !self.stopped {
                let number = progress.origin.as_ref().map_or(0, |origin| origin.transfer);
                self.running.insert(number, progress.clone());
                self.turn += 1;
                self.draw();
            }
            return;
        }
        match event {
            Event::Result(_) if let Some(number) = ended(event) => _ = self.running.remove(&number),
            Event::Result(_) => self.running.clear(),
            _ => {}
        }
        if let Some(text) = describe(event, self.verbose) {
            self.line(&text);
        } else {
            self.draw();
        }
    }

    /// A line above the bars.
    pub(super) fn line(&mut self, text: &str) {
        let lines: Vec<String> = text.lines().map(printable).collect();
        self.painter.print(&lines.join("\n"));
        self.draw();
    }

    /// Replaces the lines that were drawn before.
    pub(super) fn redraw(&mut self, lines: &[String]) {
        let lines: Vec<String> = lines.iter().map(|line| printable(line)).collect();
        self.painter.draw(&lines);
    }

    /// Removes the bars and stops all drawing.
    pub(super) fn stop(&mut self) {
        self.stopped = true;
        self.running.clear();
        self.painter.clear();
    }

    fn draw(&mut self) {
        let columns = self.painter.columns();
        let turn = SPINNER_CHARS.get(self.turn % SPINNER_CHARS.len()).copied().unwrap_or_default();
        let lines: Vec<String> =
            self.running.values().flat_map(|progress| transfer(progress, turn, columns)).collect();
        self.painter.draw(&lines);
    }
}

/// Returns the lines of a transfer, for a screen of `columns` columns.
#[must_use]
pub fn transfer_lines(progress: &Progress, columns: usize) -> Vec<String> {
    let turn = SPINNER_CHARS.first().copied().unwrap_or_default();
    transfer(progress, turn, columns)
}

/// The lines of a transfer.
fn transfer(progress: &Progress, turn: char, columns: usize) -> Vec<String> {
    let heading = progress.origin.as_ref().map(ToString::to_string);
    let text = total_text(progress, columns.saturating_sub(TOTAL_BAR_COLUMNS.1 + " 100% ".len()));
    let total = match progress.total {
        Some(total) => {
            let share = share(progress.bytes, total);
            let rest = format!(" {:>3.0}% {text}", (share * 100.0).floor());
            bar(share, room(TOTAL_BAR_COLUMNS, columns, breadth(&rest))) + &rest
        }
        None => format!("{turn} {text}"),
    };
    let sent = progress.paths.iter().map(|path| (path, printable(&path.name)));
    let came = progress.arrivals.iter().map(|path| (path, format!("{BACK_PREFIX}{}", printable(&path.name))));
    let widest = sent.clone().chain(came.clone()).map(|(_, name)| breadth(&name)).max().unwrap_or(0);
    let sums = [&progress.paths, &progress.arrivals].map(|paths| paths.iter().map(|path| path.bytes).sum());
    let sent = sent.map(|(path, name)| path_row(path, &name, sums[0], widest, columns));
    let came = came.map(|(path, name)| path_row(path, &name, sums[1], widest, columns));
    let rows = heading.into_iter().chain([total]).chain(sent).chain(came);
    rows.map(|line| cut(&line, columns)).collect()
}

/// The line of a path. `sum`: the bytes that all paths together have carried.
fn path_row(path: &PathProgress, name: &str, sum: u64, widest: usize, columns: usize) -> String {
    let share = share(path.bytes, sum.max(1));
    let rest = format!(" {:>3.0}% {}", (share * 100.0).floor(), path_text(path));
    let left = columns.saturating_sub("   ".len() + breadth(&rest));
    let length = room(PATH_BAR_COLUMNS, left, widest);
    let place = left.saturating_sub(length).max(MIN_NAME_COLUMNS).min(widest);
    let name = cut(name, place);
    let space = " ".repeat(place.saturating_sub(breadth(&name)));
    format!("  {name}{space} {}{rest}", bar(share, length))
}

/// Returns the length of a bar that shares the screen with `beside` other columns.
fn room((most, least): (usize, usize), columns: usize, beside: usize) -> usize {
    columns.saturating_sub(beside).clamp(least, most)
}

fn share(bytes: u64, total: u64) -> f64 {
    if total == 0 { 1.0 } else { (bytes as f64 / total as f64).min(1.0) }
}

fn bar(share: f64, columns: usize) -> String {
    // Neither is more than the width of a terminal.
    let full = (share * columns as f64) as usize;
    let mut text = "━".repeat(full);
    if full < columns {
        text.push('╸');
        text += &" ".repeat(columns - full - 1);
    }
    text
}

/// Returns the line of a whole transfer. Less important parts are left out if the screen is narrow.
fn total_text(progress: &Progress, columns: usize) -> String {
    let mut text = Bytes(progress.bytes).to_string();
    let more = [
        progress.total.map(|total| format!(" of {}", Bytes(total))),
        Some(format!("  {}", Rate(progress.rate_bps))),
        seconds_left(progress).map(|left| format!("  {} left", Span(left))),
        progress.pause.map(|reason| format!("  {}", transfer::pause(reason))),
        progress.lends.as_ref().map(|lends| format!("  {lends}")),
    ];
    for more in more.into_iter().flatten() {
        if breadth(&text) + breadth(&more) <= columns {
            text += &more;
        }
    }
    text
}

fn path_text(path: &PathProgress) -> String {
    let mut text = format!("{:>11}", Rate(path.rate_bps));
    if let Some(rtt) = path.rtt_ms {
        text += &format!("  {rtt:.0} ms");
    }
    text += "  ";
    text +=
        &path.pause.map_or_else(|| printable(&path.state), |reason| transfer::pause_of_path(reason).into());
    text
}

#[cfg(test)]
mod tests;
