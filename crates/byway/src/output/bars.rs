//! Bars on a terminal: one for the transfer, and one line per path below it.

use super::event::{Event, PathProgress, Progress};
use super::plain::{describe, seconds_left};
use super::printable;
use crate::units::{Bytes, Rate, Span};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;

/// Draws at most ten times a second, whatever comes.
pub(super) struct Bars {
    area: MultiProgress,
    total: Option<ProgressBar>,
    paths: BTreeMap<u32, ProgressBar>,
    verbose: bool,
}

impl Bars {
    pub(super) fn new(verbose: bool) -> Self {
        Self::on(ProgressDrawTarget::stderr_with_hz(10), verbose)
    }

    fn on(target: ProgressDrawTarget, verbose: bool) -> Self {
        Self { area: MultiProgress::with_draw_target(target), total: None, paths: BTreeMap::new(), verbose }
    }

    pub(super) const fn is_verbose(&self) -> bool {
        self.verbose
    }

    pub(super) fn show(&mut self, event: &Event) {
        if let Event::Progress(progress) = event {
            self.draw(progress);
            return;
        }
        if matches!(event, Event::Result(_)) {
            self.clear();
        }
        if let Some(text) = describe(event, self.verbose) {
            self.line(&text);
        }
    }

    /// A line above the bars.
    pub(super) fn line(&mut self, text: &str) {
        for line in text.lines() {
            if self.total.is_none() || self.area.println(printable(line)).is_err() {
                eprintln_quietly(&printable(line));
            }
        }
    }

    fn draw(&mut self, progress: &Progress) {
        let area = &self.area;
        let total = self.total.get_or_insert_with(|| area.add(ProgressBar::new(0)));
        match progress.total {
            Some(bytes) => {
                total.set_style(style("{bar:30} {percent:>3}% {msg}"));
                total.set_length(bytes);
            }
            None => total.set_style(style("{spinner} {msg}")),
        }
        total.set_position(progress.bytes);
        total.set_message(total_text(progress));
        self.paths.retain(|id, bar| {
            let stays = progress.paths.iter().any(|path| path.path == *id);
            if !stays {
                area.remove(bar);
            }
            stays
        });
        let widest = progress.paths.iter().map(|path| path.name.chars().count()).max().unwrap_or(0);
        for path in &progress.paths {
            let bar = self.paths.entry(path.path).or_insert_with(|| area.add(ProgressBar::new(0)));
            // Its share of what has been sent so far.
            bar.set_style(style("  {prefix} {bar:12} {percent:>3}% {msg}"));
            bar.set_prefix(format!("{:widest$}", printable(&path.name)));
            bar.set_length(progress.paths.iter().map(|path| path.bytes).sum::<u64>().max(1));
            bar.set_position(path.bytes);
            bar.set_message(path_text(path));
        }
    }

    fn clear(&mut self) {
        for bar in std::mem::take(&mut self.paths).into_values().chain(self.total.take()) {
            bar.finish_and_clear();
            self.area.remove(&bar);
        }
    }
}

impl Drop for Bars {
    /// Leaves no half-drawn bar above the shell's prompt.
    fn drop(&mut self) {
        self.clear();
    }
}

fn total_text(progress: &Progress) -> String {
    let mut text = Bytes(progress.bytes).to_string();
    if let Some(total) = progress.total {
        text += &format!(" of {}", Bytes(total));
    }
    text += &format!("  {}", Rate(progress.rate_bps));
    if let Some(left) = seconds_left(progress) {
        text += &format!("  {} left", Span(left));
    }
    if let Some(pause) = progress.pause {
        text += &format!("  {pause}");
    }
    text
}

fn path_text(path: &PathProgress) -> String {
    let mut text = format!("{:>11}", Rate(path.rate_bps));
    if let Some(rtt) = path.rtt_ms {
        text += &format!("  {rtt:.0} ms");
    }
    text += &match path.pause {
        Some(pause) => format!("  {pause}"),
        None => format!("  {}", printable(&path.state)),
    };
    text
}

/// The templates are constants of this file, and the tests render each; a bad one would fall back to the plain bar.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("━╸ ")
}

fn eprintln_quietly(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Pause;
    use indicatif::InMemoryTerm;

    fn path(path: u32, name: &str, bytes: u64) -> PathProgress {
        PathProgress {
            path,
            name: name.into(),
            state: "active".into(),
            bytes,
            rate_bps: 9e6,
            ..Default::default()
        }
    }

    #[test]
    fn bars_show_the_transfer_and_each_path_and_go_away() {
        let screen = InMemoryTerm::new(12, 100);
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(screen.clone()), 255);
        let mut bars = Bars::on(target, false);
        let mut progress = Progress {
            seconds: 2.0,
            bytes: 12 << 20,
            total: Some(48 << 20),
            rate_bps: 27e6,
            pause: None,
            paths: vec![path(0, "direct", 3), path(1, "relay-1", 1)],
        };
        bars.show(&Event::Progress(progress.clone()));
        std::thread::sleep(std::time::Duration::from_millis(30));
        progress.paths[1].pause = Some(Pause::Yielding);
        bars.show(&Event::Progress(progress.clone()));
        let drawn = screen.contents();
        assert!(drawn.contains("25% 12.0 MiB of 48.0 MiB  27.0 Mbit/s  11.2 s left"), "{drawn}");
        assert!(drawn.contains("direct  ━━━━━━━━━") && drawn.contains("75%"), "{drawn}");
        assert!(drawn.contains("yielding to others"), "{drawn}");
        bars.show(&Event::Warning { message: "relay-2 does not answer".into() });
        assert!(screen.contents().contains("warning: relay-2 does not answer"));
        progress.paths.remove(0);
        std::thread::sleep(std::time::Duration::from_millis(30));
        bars.show(&Event::Progress(progress));
        assert!(!screen.contents().contains("direct"), "{}", screen.contents());
        drop(bars);
        assert!(!screen.contents().contains("Mbit/s"), "{}", screen.contents());
    }
}
