//! What a person, or a program, gets to read.
//!
//! Standard output holds what was asked for: the stream of `recv -`, a ticket, a key, or with `--json` one event per line.
//! Everything else goes to standard error: bars on a terminal, plain lines elsewhere.

mod bars;
mod event;
mod fit;
mod plain;
mod table;

pub use event::{
    Claim, DemoPath, EmulatedLab, Event, Experiment, Harm, Outcome, PathChange, PathProgress, PathTotal,
    Pause, PingPath, Progress, Reach, Ready, RelayCounters, ResultEvent, VERSION,
};
pub use table::{Align, Table};

use crate::args::Global;
use crate::exit::Exit;
use bars::Bars;
use plain::Plain;
use std::io::{self, IsTerminal, Write};

/// Where events go. Owned by the thread that runs the verb.
pub struct Output {
    /// Standard output as NDJSON; `None` without `--json`, or once its reader has gone.
    json: Option<Box<dyn Write + Send>>,
    /// Standard output for answers; `None` with `--json`.
    answers: Option<Box<dyn Write + Send>>,
    person: Person,
    /// How wide the screens behind standard output and standard error are.
    columns: Columns,
}

/// Columns of the two streams.
#[derive(Clone, Copy)]
struct Columns {
    answers: usize,
    person: usize,
}

/// How standard error is written.
enum Person {
    /// Errors only.
    Quiet(Plain),
    /// Lines.
    Plain(Plain),
    /// Bars, and lines above them.
    Bars(Bars),
}

impl Output {
    /// Standard output and standard error, as the flags and the terminal want them.
    #[must_use]
    pub fn new(global: &Global) -> Self {
        let terminal = io::stderr().is_terminal();
        let interval = if global.progress { 1.0 } else { 5.0 };
        let plain = Plain::new(Box::new(io::stderr()), interval, global.verbose);
        let person = match (global.quiet || global.json && !global.progress, terminal) {
            (true, _) => Person::Quiet(plain),
            (false, true) => Person::Bars(Bars::new(global.verbose)),
            (false, false) => Person::Plain(plain),
        };
        let out = || -> Box<dyn Write + Send> { Box::new(io::stdout()) };
        let columns = Columns { answers: fit::columns(io::stdout()), person: fit::columns(io::stderr()) };
        Self { json: global.json.then(out), answers: (!global.json).then(out), person, columns }
    }

    /// Writes to the given places, as off a terminal.
    #[must_use]
    pub fn to(stdout: Box<dyn Write + Send>, stderr: Box<dyn Write + Send>, global: &Global) -> Self {
        let plain = Plain::new(stderr, if global.progress { 1.0 } else { 5.0 }, global.verbose);
        let quiet = global.quiet || global.json && !global.progress;
        let person = if quiet { Person::Quiet(plain) } else { Person::Plain(plain) };
        let (json, answers) = if global.json { (Some(stdout), None) } else { (None, Some(stdout)) };
        Self { json, answers, person, columns: Columns { answers: fit::PAGE, person: fit::PAGE } }
    }

    /// From now on standard output carries a transfer's own bytes: what would have been answered there goes to standard
    /// error. With `--json` this cannot be; the verb refuses the combination.
    pub fn stdout_is_data(&mut self) {
        self.answers = None;
    }

    /// Prints what was asked for: to standard output or, when that carries data, to standard error. With `--json` the
    /// answer is in an event instead.
    pub fn answer(&mut self, text: &str) -> io::Result<()> {
        match (&mut self.answers, &self.json) {
            (Some(out), _) => {
                writeln!(out, "{text}")?;
                out.flush()
            }
            (None, None) => {
                self.person.line(text);
                Ok(())
            }
            (None, Some(_)) => Ok(()),
        }
    }

    /// [`answer`](Self::answer) for sentences and short lines: those that are too long for the screen go on below.
    pub fn answer_lines(&mut self, text: &str) -> io::Result<()> {
        self.answer(&fit::paragraphs(text, self.columns.answers))
    }

    /// [`answer`](Self::answer) for a table, as wide as the screen or, where there is none, a page.
    pub fn answer_table(&mut self, table: &Table) -> io::Result<()> {
        self.answer(&table.fit(self.columns.answers))
    }

    /// Tells what happened. Never fails: a transfer does not end because nobody reads about it.
    pub fn emit(&mut self, event: &Event) {
        if let Some(out) = &mut self.json
            && write_event(out, event).is_err()
        {
            self.json = None;
        }
        self.person.show(event);
    }

    /// A line for the person alone, above the bars if there are any; silent with `-q`.
    pub fn say(&mut self, text: &str) {
        if !matches!(self.person, Person::Quiet(_)) {
            self.person.line(text);
        }
    }

    /// [`say`](Self::say) for sentences: those that are too long for the screen go on below.
    pub fn say_lines(&mut self, text: &str) {
        self.say(&fit::paragraphs(text, self.columns.person));
    }

    /// A line for the person who asked for everything (`-v`).
    pub fn detail(&mut self, text: &str) {
        if self.person.is_verbose() {
            self.person.line(text);
        }
    }

    /// Whether events go to standard output.
    #[must_use]
    pub const fn is_json(&self) -> bool {
        self.json.is_some()
    }

    /// What went wrong although there is a result: on standard error whatever the flags.
    pub fn complain(&mut self, sentence: &str) {
        self.person.line(&format!("byway: {sentence}"));
    }

    /// Tells a failure: `sentence` on standard error whatever the flags, and the result with `--json`.
    pub fn failed(&mut self, verb: &'static str, exit: Exit, sentence: &str) {
        let event = Event::failure(verb, exit, sentence);
        if let Some(out) = &mut self.json {
            // The exit code tells it too.
            let _ = write_event(out, &event);
        }
        self.person.line(&format!("byway: {sentence}"));
    }
}

impl Person {
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

/// Writes a failure that came before there was an [`Output`], as its only event.
pub(crate) fn print_failure(verb: &'static str, exit: Exit, sentence: &str) {
    // Nobody there to read it: the exit code remains.
    let _ = write_event(&mut io::stdout(), &Event::failure(verb, exit, sentence));
}

fn write_event(out: &mut dyn Write, event: &Event) -> io::Result<()> {
    let mut line = event.to_line();
    line.push('\n');
    out.write_all(line.as_bytes())?;
    out.flush()
}

/// `text` for a terminal: control characters, which a peer's file names may hold, are spelled out.
fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown
}

#[cfg(test)]
mod tests;
