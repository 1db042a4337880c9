//! Output for a person or a program. Standard output holds the result, such as a ticket, or with
//! `--json` one event per line. Standard error holds everything else: progress bars on a terminal,
//! plain lines elsewhere.

mod bars;
mod event;
mod event_stream;
mod json_fields;
mod plain;
mod transfer;

use byway_terminal::line_wrap;
pub use byway_terminal::{Align, Table, printable};
pub use event::{
    BothLimits, DemoPath, EVENT_VERSION, Event, Found, Outcome, PingPath, Reach, Ready, RelayCounters,
    ResultEvent, TriedAddress,
};
pub use json_fields::Fields;
pub use transfer::{
    LendingReport, Origin, PathChange, PathProgress, PathTotal, Progress, RelayChange, RelayTotal,
    Transferred, short_key,
};

use crate::exit::Exit;
use crate::messages;
use crate::signals::{Hangup, Signals};
pub use bars::transfer_lines;

use anyhow::{Context as _, Result};
use bars::Bars;
use byway_net::{NOTIFY_READY, notify};
use byway_terminal::Painter;
use byway_transfer::host_status::StatusBoard;
use byway_transfer::state_directory::StateDir;
use event_stream::EventStream;
use plain::{Plain, ended};
use serde_json::json;
use std::io::{self, IsTerminal, Write};

/// The events that other processes of this host may see. Other events may hold secrets.
const SHOWN_EVENTS: [&str; 4] = ["connected", "away", "forwarded", "enrolled"];

/// The amount and form of the output.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// NDJSON on standard output.
    pub json: bool,
    /// Progress, also off a terminal and with `json`, each second.
    pub progress: bool,
    /// Whether only errors and requested results are printed.
    pub quiet: bool,
    /// Whether changes of each path are printed too.
    pub verbose: bool,
}

/// The destinations of events and results. The thread that runs the verb owns it.
pub struct Output {
    /// Standard output as NDJSON; `None` without `--json`.
    json: Option<EventStream>,
    /// Standard output for answers; `None` with `--json`.
    answers: Option<Box<dyn Write + Send>>,
    stderr: StderrStyle,
    /// The widths of the terminals behind standard output and standard error, in columns.
    columns: Columns,
    /// The signals that tell when to stop waiting for the reader of standard output.
    signals: Option<Signals>,
    /// The board from which other processes of this host read the status. `None`: nothing is
    /// published.
    status: Option<StatusBoard>,
}

/// Columns of the two streams.
#[derive(Clone, Copy)]
struct Columns {
    answers: usize,
    person: usize,
}

/// The style in which standard error is written.
enum StderrStyle {
    /// Writes errors only.
    Quiet(Plain),
    /// Writes lines, without drawing.
    Plain(Plain),
    /// Progress bars, with permanent lines above them.
    Bars(Bars),
}

impl Output {
    /// The output for these flags and this terminal.
    #[must_use]
    pub fn new(style: Style) -> Self {
        let terminal = io::stderr().is_terminal() && can_draw(std::env::var("TERM").ok().as_deref());
        let interval = if style.progress { 1.0 } else { 5.0 };
        let plain = Plain::new(Box::new(io::stderr()), interval, style.verbose);
        let person = match (style.quiet || style.json && !style.progress, terminal) {
            (true, _) => StderrStyle::Quiet(plain),
            (false, true) => StderrStyle::Bars(Bars::new(painter(), style.verbose)),
            (false, false) => StderrStyle::Plain(plain),
        };
        let columns =
            Columns { answers: line_wrap::columns(io::stdout()), person: line_wrap::columns(io::stderr()) };
        Self::with(Box::new(io::stdout()), person, columns, style)
    }

    /// Writes to the given places, as off a terminal.
    #[must_use]
    pub fn to(stdout: Box<dyn Write + Send>, stderr: Box<dyn Write + Send>, style: Style) -> Self {
        let plain = Plain::new(stderr, if style.progress { 1.0 } else { 5.0 }, style.verbose);
        let quiet = style.quiet || style.json && !style.progress;
        let person = if quiet { StderrStyle::Quiet(plain) } else { StderrStyle::Plain(plain) };
        let columns = Columns { answers: line_wrap::PAGE_COLUMNS, person: line_wrap::PAGE_COLUMNS };
        Self::with(stdout, person, columns, style)
    }

    fn with(stdout: Box<dyn Write + Send>, person: StderrStyle, columns: Columns, style: Style) -> Self {
        let (json, answers) =
            if style.json { (Some(EventStream::new(stdout)), None) } else { (None, Some(stdout)) };
        Self { json, answers, stderr: person, columns, signals: None, status: None }
    }

    /// Catches signals. After one that stops, a slow reader delays the program only shortly.
    ///
    /// # Errors
    /// The system refuses a handler or a thread.
    pub fn catch_signals(&mut self, hangup: Hangup) -> Result<Signals> {
        let signals = Signals::install(hangup).context(messages::common::CANNOT_CATCH_SIGNALS)?;
        self.signals = Some(signals.clone());
        Ok(signals)
    }

    /// Whether a signal that was caught asks for a stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.signals.as_ref().is_some_and(|signals| signals.stop().is_some())
    }

    /// Reserves standard output for the bytes of a transfer. From now on the method `answer` prints
    /// on standard error, and no event is printed.
    pub fn stdout_is_data(&mut self) {
        (self.answers, self.json) = (None, None);
    }

    /// Prints a result on standard output, or on standard error after `stdout_is_data`. With
    /// `--json` nothing is printed, because an event holds the result.
    pub fn answer(&mut self, text: &str) -> io::Result<()> {
        match (&mut self.answers, &self.json) {
            (Some(out), _) => {
                out.write_all(format!("{text}\n").as_bytes())?;
                out.flush()
            }
            (None, None) => {
                self.stderr.line(text);
                Ok(())
            }
            (None, Some(_)) => Ok(()),
        }
    }

    /// Prints sentences and short lines as [`answer`](Self::answer) does, wrapped at the terminal's
    /// width.
    pub fn answer_lines(&mut self, text: &str) -> io::Result<()> {
        self.answer(&line_wrap::paragraphs(text, self.columns.answers))
    }

    /// Prints a table as [`answer`](Self::answer) does, as wide as the terminal or, without a
    /// terminal, as a page.
    pub fn answer_table(&mut self, table: &Table) -> io::Result<()> {
        self.answer(&table.fit(self.columns.answers))
    }

    /// Prints an event. Never fails, because a transfer must not end for lack of a reader. A
    /// service manager that started this process is told when the process is ready for peers.
    pub fn emit(&mut self, event: &Event) {
        self.note(event);
        self.put(event);
        self.stderr.show(event);
        if matches!(event, Event::Ready(_) | Event::Told { event: "ready", .. }) {
            notify(NOTIFY_READY);
        }
    }

    /// Publishes what `verb` does with `peer`, so that `byway status` shows it. If that fails, only
    /// `-v` says so.
    pub fn publish(&mut self, verb: &'static str, peer: Option<String>, state: &StateDir) {
        match StatusBoard::open(verb, peer, state) {
            Ok(board) => self.status = Some(board),
            Err(error) => self.detail(&messages::status::not_published(error)),
        }
    }

    /// Returns the board from which other processes of this host read the status. `None`: nothing
    /// is published.
    #[must_use]
    pub const fn status(&self) -> Option<&StatusBoard> {
        self.status.as_ref()
    }

    /// Notes an event on the status board, for other processes of this host. [`emit`](Self::emit)
    /// does this too.
    pub fn note(&mut self, event: &Event) {
        let Some(board) = &self.status else { return };
        match event {
            Event::Ready(ready) => board.listens(&ready.listen),
            Event::Progress(progress) => {
                let number = progress.origin.as_ref().map_or(0, |origin| origin.transfer);
                board.progress(number, json!(progress));
            }
            Event::Counters(counters) => board.told("counters", json!(counters)),
            Event::Told { event: name, fields } if SHOWN_EVENTS.contains(name) => {
                board.told(name, json!(fields));
            }
            Event::Result(result) => {
                if let Err(error) = board.ended(ended(event).unwrap_or_default(), json!(result)) {
                    self.detail(&messages::status::history_not_written(error));
                }
            }
            _ => {}
        }
    }

    fn put(&mut self, event: &Event) {
        let signals = self.signals.as_ref();
        if let Some(out) = &mut self.json {
            out.put(event, || is_stopped(signals));
        }
    }

    /// With `--json`, waits until the reader of standard output has read all events or has closed
    /// standard output. After a requested stop, the wait is 2 seconds at most. The caller must
    /// print nothing afterwards.
    pub fn finish(&self) {
        if let Some(out) = &self.json {
            out.finish(|| is_stopped(self.signals.as_ref()));
        }
    }

    /// Prints a line for a person on standard error, above progress bars. Silent with `-q`.
    pub fn say(&mut self, text: &str) {
        if !matches!(self.stderr, StderrStyle::Quiet(_)) {
            self.stderr.line(text);
        }
    }

    /// Like [`say`](Self::say), but wraps sentences that are too long for the screen.
    pub fn say_lines(&mut self, text: &str) {
        self.say(&line_wrap::paragraphs(text, self.columns.person));
    }

    /// Prints a line only with `-v`.
    pub fn detail(&mut self, text: &str) {
        if self.stderr.is_verbose() {
            self.stderr.line(text);
        }
    }

    /// Whether events go to standard output.
    #[must_use]
    pub const fn is_json(&self) -> bool {
        self.json.is_some()
    }

    /// Removes the progress bars and shows no more progress, since a stop was asked for.
    pub fn stopping(&mut self) {
        if let StderrStyle::Bars(bars) = &mut self.stderr {
            bars.stop();
        }
    }

    /// Columns of the screen behind standard output, or of a page.
    #[must_use]
    pub const fn answer_columns(&self) -> usize {
        self.columns.answers
    }

    /// Replaces the lines that were drawn before by `lines`. Without a terminal, `lines` are
    /// printed below; with `--json`, events replace them.
    pub fn redraw(&mut self, lines: &[String]) -> io::Result<()> {
        match &mut self.stderr {
            StderrStyle::Bars(bars) if self.json.is_none() && io::stdout().is_terminal() => {
                bars.redraw(lines);
                Ok(())
            }
            _ => self.answer(&lines.join("\n")),
        }
    }

    /// Prints a problem that occurred despite a result. It goes to standard error even with `-q`.
    pub fn complain(&mut self, sentence: &str) {
        self.stderr.line(&format!("byway: {sentence}"));
    }

    /// Reports a failure: prints `sentence` on standard error even with `-q`, and the result as an
    /// event with `--json`.
    pub fn failed(&mut self, verb: &'static str, exit: Exit, sentence: &str) {
        let event = Event::failure(verb, exit, sentence);
        self.note(&event);
        self.put(&event);
        self.stderr.line(&format!("byway: {sentence}"));
    }
}

impl StderrStyle {
    fn show(&mut self, event: &Event) {
        match self {
            Self::Quiet(_) => {}
            Self::Plain(plain) => plain.show(event),
            Self::Bars(bars) => bars.show(event),
        }
    }

    fn is_verbose(&self) -> bool {
        match self {
            Self::Quiet(_) => false,
            Self::Plain(plain) => plain.is_verbose(),
            Self::Bars(bars) => bars.is_verbose(),
        }
    }

    fn line(&mut self, text: &str) {
        match self {
            Self::Quiet(plain) | Self::Plain(plain) => plain.line(text),
            Self::Bars(bars) => bars.line(text),
        }
    }
}

/// Whether a terminal of this kind can move its cursor. If not, lines are printed instead of bars.
fn can_draw(kind: Option<&str>) -> bool {
    kind.is_some_and(|kind| !kind.is_empty() && kind != "dumb")
}

fn painter() -> Painter {
    Painter::new(Box::new(io::stderr()), Box::new(|| line_wrap::size(io::stderr())))
}

fn is_stopped(signals: Option<&Signals>) -> bool {
    signals.is_some_and(|signals| signals.stop().is_some())
}

/// Prints a failure before there is an [`Output`]. It is the only event.
pub(crate) fn print_failure(verb: &'static str, exit: Exit, sentence: &str) {
    // Nobody there to read it: the exit code remains.
    let _ = writeln!(io::stdout(), "{}", Event::failure(verb, exit, sentence).to_line());
}

#[cfg(test)]
mod tests {
    use super::can_draw;

    #[test]
    fn bars_need_a_terminal_that_moves_its_cursor() {
        assert!([Some("xterm-256color"), Some("linux"), Some("screen")].into_iter().all(can_draw));
        assert!(![None, Some(""), Some("dumb")].into_iter().any(can_draw));
    }
}
