//! One HTML page with every experiment: its claims, the paper's numbers, the measured numbers, the
//! verdicts and the figures, and the command that runs it again.

use crate::expect::{ClaimResult, Holds, Outcome, Reading, Verdict, table};
use crate::experiment::Experiment;
use crate::headlines::HeadlineResult;
use std::fmt::Write as _;

/// An experiment and its results.
#[derive(Clone, Debug, Default)]
pub struct ReportEntry {
    /// The experiment.
    pub experiment: Experiment,
    /// The source of the claim: the paper and the place in it.
    pub paper: String,
    /// The results. `None`: the experiment was not run.
    pub outcome: Option<Outcome>,
    /// Whether the outcome is of another program than the one that ran the quick form since.
    pub stale: bool,
    /// Why claims are missed, in ten words.
    pub missed: Option<String>,
    /// Why the experiment cannot be run. `None`: it can be run.
    pub not_run: Option<String>,
    /// The figures of the experiment, as SVG.
    pub figures: Vec<String>,
}

const STYLE_SHEET: &str = "\
:root{color-scheme:light dark;--ink:#222;--soft:#666;--line:#ddd;--page:#fff;--pass:#0a7d4f;--known:#a66300;--fail:#b3261e}\
@media(prefers-color-scheme:dark){:root{--ink:#e8e8e8;--soft:#aaa;--line:#444;--page:#181818;--pass:#4cc38a;--known:#e0a33e;--fail:#f2827c}}\
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);max-width:60rem;margin:2rem auto;padding:0 1rem}\
table{border-collapse:collapse;width:100%;font-size:.9rem}td,th{text-align:left;vertical-align:top;padding:.35rem .6rem;border-bottom:1px solid var(--line)}\
td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}.v{font-weight:600;white-space:nowrap}\
.pass{color:var(--pass)}.known{color:var(--known)}.fail{color:var(--fail)}.soft{color:var(--soft)}\
svg{max-width:100%;height:auto;background:#fff}summary{cursor:pointer}h2{margin-top:3rem}code{font-size:.9em}";

/// The page of results. `headlines` come first.
#[must_use]
pub fn html(entries: &[ReportEntry], headlines: &[HeadlineResult]) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>byway: the papers' claims</title>\n<style>{STYLE_SHEET}</style>\n<h1>The papers' claims, held against byway's simulator</h1>\n"
    );
    page += &of_abstracts(headlines);
    page += &summary(entries);
    for entry in entries {
        section(&mut page, entry);
    }
    page
}

/// Returns the section with the sentences of the papers' abstracts and their verdicts.
fn of_abstracts(headlines: &[HeadlineResult]) -> String {
    if headlines.is_empty() {
        return String::new();
    }
    let mut text =
        "<h2>The five papers' headlines</h2>\n<table>\n<tr><th>paper<th>says<th>its figure<th>strict\
                    <th>second reading<th>byway's own<th>verdict\n"
            .to_owned();
    for HeadlineResult { headline, measured: [strict, second, ours], verdict } in headlines {
        let class = if verdict.starts_with("holds") { "pass" } else { "known" };
        let id = escape(&headline.experiment);
        let _ = writeln!(
            text,
            "<tr><td>{}<td>{} <a href=\"#{id}\">{id}</a><td>{}<td>{}<td>{}<td>{}<td class=\"v {class}\">{verdict}",
            escape(&headline.paper),
            escape(&headline.says),
            escape(&headline.figure),
            escape(strict),
            escape(second),
            escape(ours),
        );
    }
    text + "</table>\n"
}

/// Returns the text of a verdict, and the CSS class for its colour.
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

fn summary(entries: &[ReportEntry]) -> String {
    let mut text = format!(
        "<h2>The experiments</h2>\n<p>{}</p>\n<table>\n<tr><th>experiment<th>claim<th>source<th>as published\
         <th>by a second reading<th>missed<th>byway's own<th>why missed\n",
        whole(entries)
    );
    for entry in entries {
        let id = escape(&entry.experiment.id);
        let [published, second, missed, ours] = counts(entry);
        let _ = writeln!(
            text,
            "<tr><td><a href=\"#{id}\">{id}</a><td>{}<td>{}<td>{published}<td>{second}<td>{missed}<td>{ours}\
             <td class=\"soft\">{}",
            escape(title(&entry.experiment)),
            escape(&entry.paper),
            escape(&remark(entry)),
        );
    }
    text + "</table>\n"
}

/// Returns sentences with two numbers: experiments in which every claim of a paper holds, and
/// experiments about byway alone in which every claim holds.
#[must_use]
pub fn whole(entries: &[ReportEntry]) -> String {
    let outcomes = || entries.iter().filter_map(|entry| entry.outcome.as_ref());
    let count = |whole: fn(&Holds) -> Option<bool>| {
        let judged = outcomes().filter_map(|outcome| whole(&Holds::of(&outcome.claims)));
        judged.fold((0, 0), |(held, all), holds| (held + usize::from(holds), all + 1))
    };
    let (papers, of_papers) = count(Holds::paper_whole);
    let (own, of_own) = count(Holds::own_whole);
    format!(
        "{papers} of {of_papers} experiments that judge a paper hold whole: every claim of the paper holds, as published \
         or by a second reading. {own} of {of_own} of byway's own hold whole."
    )
}

/// Returns the numbers of an experiment's claims that hold as published, hold by a second reading,
/// are missed, and hold with byway's own law. A text is empty if there is nothing to count.
#[must_use]
pub fn counts(entry: &ReportEntry) -> [String; 4] {
    let Some(outcome) = &entry.outcome else { return Default::default() };
    let holds = Holds::of(&outcome.claims);
    let some = |count: usize| if count == 0 { String::new() } else { count.to_string() };
    let of = |held: usize, all: usize| if all == 0 { String::new() } else { format!("{held} of {all}") };
    [
        of(holds.published, holds.of_paper()),
        some(holds.by_reading),
        some(holds.missed),
        of(holds.ours, holds.ours + holds.ours_missed),
    ]
}

/// Returns a short remark about an experiment: why it was not run, that its result is stale, or why
/// claims are missed.
#[must_use]
pub fn remark(entry: &ReportEntry) -> String {
    let outcome = match (&entry.not_run, &entry.outcome) {
        // The clause before the colon says it in short.
        (Some(why), _) => return format!("not run: {}", why.split(':').next().unwrap_or(why)),
        (None, None) => return "never run".to_owned(),
        (None, Some(outcome)) => outcome,
    };
    let stale = entry.stale.then(|| "stale: the quick form has another trace".to_owned());
    let misses = |claim: &ClaimResult| matches!(claim.verdict, Verdict::KnownMiss | Verdict::Fail);
    let missed = entry.missed.clone().filter(|_| outcome.claims.iter().any(misses));
    let remarks: Vec<String> = stale.into_iter().chain(missed).collect();
    remarks.join("; ")
}

/// The text of the README's first line after the experiment's name.
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
        *page += "<table>\n<tr><th>claim<th>paper<th>bound<th>strict<th>second reading<th>byway's own\n";
        for question in questions(&outcome.claims) {
            row(page, &question);
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

/// Returns a claim's bounds in words.
#[must_use]
pub fn bound(claim: &ClaimResult) -> String {
    match (claim.at_least, claim.at_most) {
        (Some(least), Some(most)) => format!("{} to {}", table::number(least), table::number(most)),
        (Some(least), None) => format!("at least {}", table::number(least)),
        (None, Some(most)) => format!("at most {}", table::number(most)),
        (None, None) => String::new(),
    }
}

/// Groups of claims: each claim with its other readings.
fn questions(claims: &[ClaimResult]) -> Vec<Vec<&ClaimResult>> {
    let first = claims.iter().filter(|claim| claim.of.is_none());
    first
        .map(|first| {
            let others = claims.iter().filter(|claim| claim.of.as_ref() == Some(&first.id));
            std::iter::once(first).chain(others).collect()
        })
        .collect()
}

/// Writes a claim's row: its text, the paper's figure, and the value measured by each reading.
fn row(page: &mut String, question: &[&ClaimResult]) {
    let Some(first) = question.first() else { return };
    let said = question.iter().map(|claim| {
        let reasons = claim.known.iter().filter(|_| claim.verdict != Verdict::Pass).chain(&claim.note);
        let reasons = reasons.map(|text| format!("<br><span class=\"soft\">{}</span>", escape(text)));
        format!("{}{}", escape(&claim.says), reasons.collect::<String>())
    });
    let cell = |reading: Reading| {
        let of = question.iter().filter(|claim| claim.reading.unwrap_or(Reading::Strict) == reading);
        of.map(|claim| measured(claim)).collect::<Vec<_>>().join("<br>")
    };
    let _ = writeln!(
        page,
        "<tr><td>{}<td>{}<td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}",
        said.collect::<Vec<_>>().join("<br>"),
        escape(first.paper.as_deref().unwrap_or_default()),
        bound(first),
        cell(Reading::Strict),
        cell(Reading::Second),
        cell(Reading::Ours),
    );
}

/// Returns the measured value with the interval of its median, and the verdict.
fn measured(claim: &ClaimResult) -> String {
    let (word, class) = word(claim.verdict);
    let figure = claim.deciding().and_then(|measured| {
        let median = table::number(measured.median?);
        Some(match measured.interval {
            Some(interval) if measured.count > 1 => {
                format!("{median} ({} to {})", table::number(interval.low), table::number(interval.high))
            }
            _ => median,
        })
    });
    let figure = figure.unwrap_or_else(|| "-".into());
    format!("{figure} {} <span class=\"v {class}\">{word}</span>", escape(&claim.unit))
}

/// The README's paragraphs below the heading, as HTML.
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
            stale: false,
            missed: None,
            not_run: Some("needs <magic>".into()),
            figures: vec!["<svg></svg>".into()],
        };
        let page = html(&[entry], &[]);
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

    #[test]
    fn experiments_of_byway_stand_apart_from_those_of_papers() {
        let entry = |claims: &[(Reading, Verdict)]| {
            let claims = claims.iter().map(|&(reading, verdict)| ClaimResult {
                reading: Some(reading),
                verdict,
                ..ClaimResult::default()
            });
            let outcome = Outcome::of_claims(claims.collect());
            ReportEntry { outcome: Some(outcome), ..ReportEntry::default() }
        };
        let entries = [
            entry(&[(Reading::Strict, Verdict::Pass), (Reading::Ours, Verdict::KnownMiss)]),
            entry(&[(Reading::Strict, Verdict::KnownMiss), (Reading::Ours, Verdict::Pass)]),
            entry(&[(Reading::Ours, Verdict::Pass), (Reading::Strict, Verdict::Report)]),
            entry(&[(Reading::Strict, Verdict::Report)]),
            ReportEntry::default(),
        ];
        let said = whole(&entries);
        assert!(said.starts_with("1 of 2 experiments that judge a paper hold whole: "), "{said}");
        assert!(said.ends_with(" 1 of 1 of byway's own hold whole."), "{said}");
    }
}
