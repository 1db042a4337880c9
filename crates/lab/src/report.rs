//! One HTML page with every experiment: its claims, the paper's numbers, the measured numbers, the
//! verdicts and the figures, and the command that runs it again.

use crate::expect::{ClaimResult, Outcome, Verdict, table};
use crate::experiment::Experiment;
use std::fmt::Write as _;

/// An experiment and what came of it.
#[derive(Clone, Debug)]
pub struct ReportEntry {
    /// The experiment.
    pub experiment: Experiment,
    /// Where it was claimed.
    pub paper: String,
    /// What came out, if it was run.
    pub outcome: Option<Outcome>,
    /// Why it is not run, if it cannot be.
    pub not_run: Option<String>,
    /// The figures of the experiment, as SVG.
    pub figures: Vec<String>,
}

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#222;--soft:#666;--line:#ddd;--page:#fff;--pass:#0a7d4f;--known:#a66300;--fail:#b3261e}\
@media(prefers-color-scheme:dark){:root{--ink:#e8e8e8;--soft:#aaa;--line:#444;--page:#181818;--pass:#4cc38a;--known:#e0a33e;--fail:#f2827c}}\
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);max-width:60rem;margin:2rem auto;padding:0 1rem}\
table{border-collapse:collapse;width:100%;font-size:.9rem}td,th{text-align:left;vertical-align:top;padding:.35rem .6rem;border-bottom:1px solid var(--line)}\
td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}.v{font-weight:600;white-space:nowrap}\
.pass{color:var(--pass)}.known{color:var(--known)}.fail{color:var(--fail)}.soft{color:var(--soft)}\
svg{max-width:100%;height:auto;background:#fff}summary{cursor:pointer}h2{margin-top:3rem}code{font-size:.9em}";

/// The page of results.
#[must_use]
pub fn html(entries: &[ReportEntry]) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>byway: the papers' claims</title>\n<style>{STYLE}</style>\n<h1>The papers' claims, held against byway's simulator</h1>\n"
    );
    page += &summary(entries);
    for entry in entries {
        section(&mut page, entry);
    }
    page
}

/// A verdict as a word and the class that colours it.
#[must_use]
pub const fn word(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Pass => ("PASS", "pass"),
        Verdict::KnownMiss => ("FAIL (known)", "known"),
        Verdict::Fail => ("FAIL", "fail"),
        Verdict::Report => ("shown", "soft"),
        Verdict::NotRun => ("not run", "soft"),
    }
}

fn verdict_of(entry: &ReportEntry) -> Verdict {
    entry.outcome.as_ref().map_or(Verdict::NotRun, |outcome| outcome.verdict)
}

fn summary(entries: &[ReportEntry]) -> String {
    let claims =
        || entries.iter().filter_map(|entry| entry.outcome.as_ref()).flat_map(|outcome| &outcome.claims);
    let count = |verdict| claims().filter(|claim| claim.verdict == verdict).count();
    let mut text = format!(
        "<p>{} experiments; of their claims {} hold, {} are missed for a reason that is told, {} are missed.</p>\n<table>\n\
         <tr><th>experiment<th>claim<th>source<th>verdict\n",
        entries.len(),
        count(Verdict::Pass),
        count(Verdict::KnownMiss),
        count(Verdict::Fail),
    );
    for entry in entries {
        let (word, class) = word(verdict_of(entry));
        let id = escape(&entry.experiment.id);
        let _ = writeln!(
            text,
            "<tr><td><a href=\"#{id}\">{id}</a><td>{}<td>{}<td class=\"v {class}\">{word}",
            escape(title(&entry.experiment)),
            escape(&entry.paper),
        );
    }
    text + "</table>\n"
}

/// What the README's first line says after the name.
#[must_use]
pub fn title(experiment: &Experiment) -> &str {
    let first = experiment.readme.lines().next().unwrap_or_default();
    first.split_once(": ").map_or(first, |(_, title)| title)
}

fn section(page: &mut String, entry: &ReportEntry) {
    let id = escape(&entry.experiment.id);
    let _ = writeln!(page, "<h2 id=\"{id}\">{id}: {}</h2>", escape(title(&entry.experiment)));
    *page += &prose(&entry.experiment.readme);
    if let Some(why) = &entry.not_run {
        let _ = writeln!(page, "<p class=\"soft\">Not run: {}.</p>", escape(why.trim_end_matches('.')));
    }
    if let Some(outcome) = &entry.outcome {
        *page += "<table>\n<tr><th>claim<th>reading<th>paper<th>bound<th>measured<th>verdict\n";
        for claim in &outcome.claims {
            row(page, claim);
        }
        *page += "</table>\n";
        if !outcome.shows.is_empty() {
            *page += "<details><summary>every variant</summary>\n<table>\n";
            let grid = table::variants(&outcome.shows);
            let rows = grid.rows.iter().map(|row| &row.cells);
            for (place, cells) in std::iter::once(&grid.headings).chain(rows).enumerate() {
                let tag = if place == 0 { "<th>" } else { "<td>" };
                let cells: Vec<_> = cells.iter().map(|cell| format!("{tag}{}", escape(cell))).collect();
                let _ = writeln!(page, "<tr>{}", cells.concat());
            }
            *page += "</table></details>\n";
        }
        let _ = writeln!(
            page,
            "<p class=\"soft\">{} seeds, mode {}, {} at {}, trace {}. Again: <code>byway lab run {id}</code></p>",
            outcome.seeds.len(),
            outcome.mode.name(),
            escape(&outcome.date),
            escape(&outcome.commit),
            escape(&outcome.trace),
        );
    }
    for figure in &entry.figures {
        // Drawn by byway itself: everything in it is escaped.
        *page += figure;
        *page += "\n";
    }
}

/// A claim's bounds in words.
#[must_use]
pub fn bound(claim: &ClaimResult) -> String {
    match (claim.at_least, claim.at_most) {
        (Some(least), Some(most)) => format!("{} to {}", table::number(least), table::number(most)),
        (Some(least), None) => format!("at least {}", table::number(least)),
        (None, Some(most)) => format!("at most {}", table::number(most)),
        (None, None) => String::new(),
    }
}

fn row(page: &mut String, claim: &ClaimResult) {
    let (word, class) = word(claim.verdict);
    let measured = claim.deciding().and_then(|measured| {
        let median = table::number(measured.median?);
        Some(match measured.interval {
            Some(interval) if measured.values.len() > 1 => {
                format!("{median} ({} to {})", table::number(interval.low), table::number(interval.high))
            }
            _ => median,
        })
    });
    let reason = claim
        .known
        .iter()
        .chain(&claim.note)
        .map(|text| format!("<br><span class=\"soft\">{}</span>", escape(text)));
    let _ = writeln!(
        page,
        "<tr><td>{}{}<td>{}<td>{}<td>{}<td class=\"n\">{} {}<td class=\"v {class}\">{word}",
        escape(&claim.says),
        reason.collect::<String>(),
        claim.reading.map(|reading| reading.to_string()).unwrap_or_default(),
        escape(claim.paper.as_deref().unwrap_or_default()),
        bound(claim),
        measured.unwrap_or_else(|| "-".into()),
        escape(&claim.unit),
    );
}

/// The README's paragraphs below its heading, with its bold words and code.
fn prose(readme: &str) -> String {
    let body = readme.split_once('\n').map_or("", |(_, rest)| rest);
    let mut text = String::new();
    for paragraph in body.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()) {
        let escaped = escape(paragraph).replace('\n', " ");
        let _ = writeln!(text, "<p>{}</p>", paired(&paired(&escaped, "**", "strong"), "`", "code"));
    }
    text
}

/// `mark`ed text as `element`s.
fn paired(text: &str, mark: &str, element: &str) -> String {
    let mut out = String::new();
    for (index, piece) in text.split(mark).enumerate() {
        match index % 2 {
            0 => out += piece,
            _ => out += &format!("<{element}>{piece}</{element}>"),
        }
    }
    out
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_names_what_was_not_run_and_escapes_everything() {
        let experiment = Experiment {
            id: "x-1".into(),
            readme: "# x-1: a <b> question\n\n**Claim** (`x`). It is & it is.\n".into(),
            ..Experiment::default()
        };
        let entry = ReportEntry {
            experiment,
            paper: "X".into(),
            outcome: None,
            not_run: Some("needs <magic>".into()),
            figures: vec!["<svg></svg>".into()],
        };
        let page = html(&[entry]);
        for text in [
            "a &lt;b&gt; question",
            "<strong>Claim</strong> (<code>x</code>). It is &amp; it is.",
            "needs &lt;magic&gt;",
            "<svg></svg>",
            "not run",
        ] {
            assert!(page.contains(text), "{text}");
        }
    }
}
