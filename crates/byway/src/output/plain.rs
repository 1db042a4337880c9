//! Lines on standard error: one every few seconds while a transfer runs, and one for whatever else happens.

use super::event::{Event, Outcome, Progress, ResultEvent};
use super::printable;
use crate::units::{Bytes, Rate, Span};
use std::fmt::Write as _;
use std::io::Write;

/// Writes lines.
pub(super) struct Plain {
    out: Box<dyn Write + Send>,
    /// Seconds between two lines of progress.
    interval: f64,
    verbose: bool,
    /// When, in the transfer's seconds, the last line of progress was written.
    last: Option<f64>,
}

impl Plain {
    pub(super) fn new(out: Box<dyn Write + Send>, interval: f64, verbose: bool) -> Self {
        Self { out, interval, verbose, last: None }
    }

    pub(super) const fn is_verbose(&self) -> bool {
        self.verbose
    }

    pub(super) fn show(&mut self, event: &Event) {
        if let Event::Progress(progress) = event {
            // Less than the last time: the next transfer has begun.
            let due = self
                .last
                .is_none_or(|last| progress.seconds < last || progress.seconds >= last + self.interval);
            if !due {
                return;
            }
            self.last = Some(progress.seconds);
            self.line(&progress_line(progress));
        } else if let Some(text) = describe(event, self.verbose) {
            self.line(&text);
        }
    }

    pub(super) fn line(&mut self, text: &str) {
        // Standard error may be closed; what is written there is for whoever looks.
        let _ = text.lines().try_for_each(|line| writeln!(self.out, "{}", printable(line)));
    }
}

/// What a person is told of an event other than progress, if anything.
pub(super) fn describe(event: &Event, verbose: bool) -> Option<String> {
    match event {
        Event::Ready(ready) => Some(format!("listening on {}", ready.listen.join(", "))),
        Event::Bound { sender } => Some(format!(
            "from now on the ticket admits {sender} alone; for another sender: --allow KEY, or --new-ticket"
        )),
        Event::Warning { message } => Some(format!("warning: {}", printable(message))),
        Event::Path(change) if verbose => {
            let reason = change.reason.as_ref().map(|reason| format!(": {}", printable(reason)));
            let (name, reason) = (printable(&change.name), reason.unwrap_or_default());
            Some(format!("path {} ({name}) is {}{reason}", change.path, change.state))
        }
        Event::Result(result) => summary(result),
        Event::Counters(counters) => Some(counters.to_string()),
        Event::Progress(_) | Event::Path(_) => None,
        // The lab answers with tables.
        Event::Experiment(_) | Event::Harm(_) | Event::Bench { .. } | Event::Finding { .. } => None,
    }
}

fn summary(result: &ResultEvent) -> Option<String> {
    let Outcome::Transfer { bytes, kept, entries, seconds, goodput_bps, verified, paths } = &result.outcome
    else {
        return None;
    };
    let (bytes, rate, span) = (Bytes(*bytes), Rate(*goodput_bps), Span(*seconds));
    let verified = if *verified { "verified" } else { "NOT verified" };
    let noun = if *entries == 1 { "entry" } else { "entries" };
    let mut text = format!("{bytes} in {entries} {noun}, {span}, {rate}, {verified}");
    if *kept > 0 {
        let _ = write!(text, "; {} of it had arrived before", Bytes(*kept));
    }
    for path in paths {
        let _ = write!(text, "\n  {}: {}, {} packets lost", path.route, Bytes(path.bytes), path.lost);
    }
    Some(text)
}

/// `12.0 MiB of 48.0 MiB (25%), 27.1 Mbit/s, 11.2 s left; direct 9.10 Mbit/s, r1 8.90 Mbit/s (yielding to others)`
pub(super) fn progress_line(progress: &Progress) -> String {
    let mut text = Bytes(progress.bytes).to_string();
    if let Some(total) = progress.total {
        let percent = if total == 0 { 100.0 } else { progress.bytes as f64 * 100.0 / total as f64 };
        let _ = write!(text, " of {} ({:.0}%)", Bytes(total), percent.min(100.0).floor());
    }
    let _ = write!(text, ", {}", Rate(progress.rate_bps));
    if let Some(left) = seconds_left(progress) {
        let _ = write!(text, ", {} left", Span(left));
    }
    if let Some(pause) = progress.pause {
        let _ = write!(text, " ({pause})");
    }
    for (index, path) in progress.paths.iter().enumerate() {
        let separator = if index == 0 { ';' } else { ',' };
        let _ = write!(text, "{separator} {} {}", path.name, Rate(path.rate_bps));
        if let Some(pause) = path.pause {
            let _ = write!(text, " ({pause})");
        }
    }
    text
}

/// Time to the end at the present rate, if both are known.
pub(super) fn seconds_left(progress: &Progress) -> Option<f64> {
    let left = progress.total?.saturating_sub(progress.bytes);
    (progress.rate_bps > 0.0).then(|| left as f64 * 8.0 / progress.rate_bps)
}
