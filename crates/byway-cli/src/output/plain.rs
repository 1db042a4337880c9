//! Lines on standard error: one every few seconds while a transfer runs, and one for whatever else
//! happens.

use super::event::{Event, Outcome, ResultEvent};
use super::transfer::Progress;
use crate::messages::recv;
use crate::messages::transfer::{self, Totals};
use crate::units::{Bytes, Rate, Span};
use byway_terminal::line_wrap::printable;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

/// Writes each message as a line, without drawing.
pub(super) struct Plain {
    out: Box<dyn Write + Send>,
    /// Seconds between two lines of progress.
    interval: f64,
    verbose: bool,
    /// The time at which each running transfer's last line was written, in seconds of the transfer,
    /// by its number.
    last: BTreeMap<u32, f64>,
}

impl Plain {
    pub(super) fn new(out: Box<dyn Write + Send>, interval: f64, verbose: bool) -> Self {
        Self { out, interval, verbose, last: BTreeMap::new() }
    }

    pub(super) const fn is_verbose(&self) -> bool {
        self.verbose
    }

    pub(super) fn show(&mut self, event: &Event) {
        if let Event::Progress(progress) = event {
            let number = progress.origin.as_ref().map_or(0, |origin| origin.transfer);
            // Less than the last time: a sender's next transfer has begun.
            let due = |last: &f64| progress.seconds < *last || progress.seconds >= *last + self.interval;
            if self.last.get(&number).is_none_or(due) {
                self.last.insert(number, progress.seconds);
                self.line(&progress_line(progress));
            }
            return;
        }
        if let Some(number) = ended(event) {
            self.last.remove(&number);
        }
        if let Some(text) = describe(event, self.verbose) {
            self.line(&text);
        }
    }

    pub(super) fn line(&mut self, text: &str) {
        // Standard error may be closed; what is written there is for whoever looks.
        // A line is one write, so that what other programs write there does not come in between.
        let mut lines = text.lines().map(|line| printable(line) + "\n");
        let _ = lines.try_for_each(|line| self.out.write_all(line.as_bytes()));
    }
}

/// Returns the line for an event other than progress. `None`: the event is not shown.
pub(super) fn describe(event: &Event, verbose: bool) -> Option<String> {
    match event {
        Event::Ready(ready) => Some(transfer::listening(&ready.listen)),
        Event::Bound { sender } => Some(recv::ticket_gets_owner(sender)),
        Event::Warning { message } => Some(transfer::warning(printable(message))),
        Event::Path(change) if verbose => {
            let (name, reason) = (printable(&change.name), change.reason.as_deref().map(printable));
            Some(transfer::path_changed(change.path, name, &change.state, reason))
        }
        Event::Relay(change) if verbose => {
            let (name, reason) = (printable(&change.name), change.reason.as_deref().map(printable));
            Some(transfer::relay_changed(name, change.standing, reason))
        }
        Event::Limit { directions: Some(both), .. } => Some(transfer::limits_changed(both.up, both.down)),
        Event::Limit { bytes_per_second, .. } => Some(transfer::limit_changed(*bytes_per_second)),
        Event::Result(result) => summary(result),
        Event::Counters(counters) => Some(counters.to_string()),
        // Whoever tells of its own matters answers people with tables.
        Event::Progress(_) | Event::Path(_) | Event::Relay(_) | Event::Told { .. } => None,
    }
}

/// Returns the number of the transfer that `event` ends, 0 for a sender's. `None`: the event ends
/// no transfer.
pub(super) fn ended(event: &Event) -> Option<u32> {
    match event {
        Event::Result(ResultEvent { outcome: Outcome::Transfer(done), .. }) => {
            Some(done.origin.as_ref().map_or(0, |origin| origin.transfer))
        }
        _ => None,
    }
}

fn summary(result: &ResultEvent) -> Option<String> {
    let Outcome::Transfer(done) = &result.outcome else { return None };
    let origin = done.origin.as_ref().map(|origin| format!("{origin}: ")).unwrap_or_default();
    let totals = Totals {
        bytes: done.bytes,
        entries: done.entries,
        seconds: done.seconds,
        goodput_bps: done.goodput_bps,
        // What has the wrong hash is not in place: it is among the entries that failed. A stream
        // has but one.
        verified: done.verified || done.failed > 0,
        failed_entries: done.failed,
        kept_bytes: done.kept,
        unchanged_files: done.unchanged,
        newer_files: done.newer,
        excluded_entries: done.excluded,
        deleted: (done.deleted, done.trash.as_deref()),
        undeleted_entries: done.undeleted,
    };
    let how = match done.arrived {
        Some(arrived) => transfer::broken_off(arrived, done.total, &totals),
        None => transfer::complete(&totals),
    };
    let mut text = format!("{origin}{how}");
    for path in &done.paths {
        let _ = write!(text, "\n{}", transfer::path_carried(&path.route, path.bytes, path.lost));
    }
    if done.not_copied.sum() > 0 {
        let _ = write!(text, "\n  {}", transfer::not_copied(&done.not_copied));
    }
    if let Some(verdict) = &done.relays_verdict {
        let _ = write!(text, "\n  {}", printable(verdict));
    }
    Some(text)
}

/// The prefix of a path's name, for a path on which the other host sends.
pub(super) const BACK_PREFIX: &str = "back: ";

/// Returns the progress as one line: `12.0 MiB of 48.0 MiB (25%), 27.1 Mbit/s, 11.2 s left; direct
/// 9.10 Mbit/s, r1 8.90 Mbit/s (yielding to others)`
pub(super) fn progress_line(progress: &Progress) -> String {
    let mut text = progress.origin.as_ref().map(|origin| format!("{origin}: ")).unwrap_or_default();
    let _ = write!(text, "{}", Bytes(progress.bytes));
    if let Some(total) = progress.total {
        let percent = if total == 0 { 100.0 } else { progress.bytes as f64 * 100.0 / total as f64 };
        let _ = write!(text, " of {} ({:.0}%)", Bytes(total), percent.min(100.0).floor());
    }
    let _ = write!(text, ", {}", Rate(progress.rate_bps));
    if let Some(left) = seconds_left(progress) {
        let _ = write!(text, ", {} left", Span(left));
    }
    if let Some(reason) = progress.pause {
        let _ = write!(text, " ({})", transfer::pause(reason));
    }
    if let Some(lends) = &progress.lends {
        let _ = write!(text, ", {lends}");
    }
    for (index, path) in progress.paths.iter().enumerate() {
        let separator = if index == 0 { ';' } else { ',' };
        let _ = write!(text, "{separator} {} {}", path.name, Rate(path.rate_bps));
        if let Some(reason) = path.pause {
            let _ = write!(text, " ({})", transfer::pause_of_path(reason));
        }
    }
    for (index, path) in progress.arrivals.iter().enumerate() {
        let separator = if index == 0 { ';' } else { ',' };
        let _ = write!(text, "{separator} {BACK_PREFIX}{} {}", path.name, Rate(path.rate_bps));
    }
    text
}

/// Returns the seconds until the end at the present rate. `None`: the size or the rate is not
/// known.
pub(super) fn seconds_left(progress: &Progress) -> Option<f64> {
    let left = progress.total?.saturating_sub(progress.bytes);
    // At the end nothing is left, whatever the rate.
    (progress.rate_bps > 0.0 && left > 0).then(|| left as f64 * 8.0 / progress.rate_bps)
}
