//! What READMEs of experiments, and the page of the papers, say of results: each figure is one that
//! was kept.

use byway_lab::expect::{Expectation, Measured, Outcome, missed_of_paper};
use byway_lab::experiment::{Experiment, in_directory};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The first word of a paragraph about the result.
const RESULT_HEADING: &str = "**Read.**";

/// Why a claim is missed, as docs/papers.md names it.
const CAUSES: [&str; 3] = ["law", "set-up", "open"];

/// Sentences of all READMEs that must have been compared. With fewer, sentences are not found.
const LEAST_SENTENCES: usize = 15;

/// A figure as it is written: `0.95`, or `32 %`.
#[derive(Debug, PartialEq)]
struct Figure {
    text: String,
    value: f64,
    decimals: usize,
    percent: bool,
}

impl Figure {
    /// Whether `kept`, rounded as the figure is, is the figure.
    fn is(&self, kept: f64) -> bool {
        let kept = if self.percent { kept * 100.0 } else { kept };
        let half = (0..self.decimals).fold(0.5, |half, _| half / 10.0);
        // Values are kept with six digits.
        (kept - self.value).abs() <= half + kept.abs() * 1e-6
    }

    /// Whether the set-up has this very number. `95 %` is 0.95 there, or 95.
    fn is_exactly(&self, asked: f64) -> bool {
        let same = |scale: f64| (asked * scale - self.value).abs() < 1e-9;
        same(1.0) || self.percent && same(100.0)
    }
}

/// `text` without what stands between two of the character `mark`.
fn without(text: &str, mark: char) -> String {
    text.split(mark).step_by(2).collect::<Vec<_>>().join(" ")
}

/// The words of `text` between two backquotes.
fn named(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// All numbers in `text`, as they are written. A number within a name is none.
fn numbers(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    let mut inside = false;
    std::iter::from_fn(move || {
        loop {
            let first = rest.chars().next()?;
            if !first.is_ascii_digit() || inside {
                inside = first.is_alphanumeric() || matches!(first, '.' | '-' | '_');
                rest = &rest[first.len_utf8()..];
                continue;
            }
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            let number = rest[..end].trim_end_matches('.');
            rest = &rest[number.len()..];
            inside = rest.starts_with(|c: char| c.is_alphabetic());
            if !inside {
                return Some((number, rest));
            }
        }
    })
}

/// The figures of a sentence that a result can have: those with decimals, and percentages. Whole
/// numbers count things of the set-up.
fn figures(sentence: &str) -> Vec<Figure> {
    let plain = without(&without(sentence, '`'), '"');
    let figure = |(text, rest): (&str, &str)| {
        let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let percent = rest.starts_with(" %");
        let value = text.parse().ok()?;
        (decimals > 0 || percent).then(|| Figure { text: text.to_owned(), value, decimals, percent })
    };
    numbers(&plain).filter_map(figure).collect()
}

/// The medians and the ends of their intervals.
fn values(at: &[Measured]) -> Vec<f64> {
    let ends = at.iter().filter_map(|measured| measured.interval.as_ref());
    let ends = ends.flat_map(|interval| [interval.low, interval.high]);
    at.iter().filter_map(|measured| measured.median).chain(ends).collect()
}

/// What an experiment's README may say.
struct Known {
    /// The kept values of claims and columns, by name.
    kept: BTreeMap<String, Vec<f64>>,
    /// The numbers of the set-up: of the plan, the bounds and the paper.
    asked: Vec<f64>,
}

impl Known {
    fn of(experiment: &Experiment, outcome: &Outcome, expectation: &Expectation) -> Self {
        let mut kept: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for claim in &outcome.claims {
            kept.entry(claim.id.clone()).or_default().extend(values(&claim.at));
        }
        for column in &outcome.shows {
            kept.entry(column.name.clone()).or_default().extend(values(&column.at));
        }
        let mut texts = vec![experiment.plan.clone().unwrap_or_default()];
        for claim in &expectation.claims {
            texts.extend([claim.paper.clone().unwrap_or_default(), claim.measure.text().to_owned()]);
            texts
                .extend([claim.at_least, claim.at_most].into_iter().flatten().map(|bound| bound.to_string()));
        }
        let asked = texts.iter().flat_map(|text| numbers(text)).filter_map(|(number, _)| number.parse().ok());
        Self { kept, asked: asked.collect() }
    }

    /// Figures of `readme` that were not kept, and how many sentences were compared.
    fn wrong(&self, readme: &str) -> (Vec<String>, usize) {
        let (mut wrong, mut compared) = (Vec::new(), 0);
        for paragraph in readme.split("\n\n") {
            let text = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
            for sentence in text.split(". ") {
                let names = named(sentence);
                let of: Vec<&Vec<f64>> = names.iter().filter_map(|name| self.kept.get(*name)).collect();
                if of.is_empty() && !text.starts_with(RESULT_HEADING) {
                    continue;
                }
                let of = if of.is_empty() { self.kept.values().collect() } else { of };
                let figures = figures(sentence);
                compared += usize::from(!figures.is_empty());
                let said = |figure: &Figure| {
                    of.iter().copied().flatten().any(|kept| figure.is(*kept))
                        || self.asked.iter().any(|asked| figure.is_exactly(*asked))
                };
                let missing = figures.iter().filter(|figure| !said(figure));
                wrong.extend(missing.map(|figure| format!("{}: {sentence}", figure.text)));
            }
        }
        (wrong, compared)
    }
}

#[test]
fn a_readme_is_true_of_its_own_result() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for experiment in in_directory(&folder).expect("readable") {
        let Some(result) = &experiment.result else { continue };
        let outcome = Outcome::from_json(result).expect("a result");
        let expectation = Expectation::read(&experiment.id, &experiment.expect).expect("an expectation");
        let (found, sentences) = Known::of(&experiment, &outcome, &expectation).wrong(&experiment.readme);
        compared += sentences;
        wrong.extend(found.iter().map(|found| format!("experiments/{}/README.md: {found}", experiment.id)));
    }
    assert!(wrong.is_empty(), "result.json has no such value:\n{}", wrong.join("\n"));
    assert!(compared >= LEAST_SENTENCES, "{compared} sentences");
}

#[test]
fn the_page_of_the_papers_names_each_missed_claim_with_its_cause() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/papers.md")).expect("readable");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let (mut wrong, mut missed_wholly) = (Vec::new(), 0);
    for experiment in in_directory(&root.join("experiments")).expect("readable") {
        let Some(result) = &experiment.result else { continue };
        let expectation = Expectation::read(&experiment.id, &experiment.expect).expect("an expectation");
        let outcome = expectation.recall(Outcome::from_json(result).expect("a result"));
        let missed: Vec<_> = missed_of_paper(&outcome.claims).map(|id| format!("`{id}`")).collect();
        if missed.is_empty() {
            continue;
        }
        missed_wholly += 1;
        let begin = format!("| `{}` | {} | ", experiment.id, missed.join(", "));
        let Some(rest) = rows.iter().find_map(|row| row.strip_prefix(&begin)) else {
            wrong.push(format!("no row begins with: {begin}"));
            continue;
        };
        let (cause, why) = rest.split_once(" | ").expect("four columns");
        if !cause.split(", ").all(|cause| CAUSES.contains(&cause)) {
            wrong.push(format!("{}: {cause} is none of {CAUSES:?}", experiment.id));
        }
        let known = Known::of(&experiment, &outcome, &expectation);
        let (figures, _) = known.wrong(&format!("{RESULT_HEADING} {}", why.trim_end_matches(" |")));
        wrong.extend(figures.iter().map(|figure| format!("{}: {figure}", experiment.id)));
    }
    assert!(wrong.is_empty(), "docs/papers.md:\n{}", wrong.join("\n"));
    assert_eq!(rows.len(), missed_wholly, "a row of docs/papers.md names an experiment that holds");
}

#[test]
fn a_figure_that_was_not_kept_is_found() {
    let kept = [("twice".to_owned(), vec![0.3211]), ("worst".to_owned(), vec![0.9411])].into();
    let known = Known { kept, asked: vec![1.2] };
    let wrong = |readme: &str| {
        let (wrong, _) = known.wrong(readme);
        wrong.iter().map(|it| it.split_once(':').expect("a colon").0.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(wrong("**Read.** 32 % reach twice TCP. The worst has 0.94, which is\nbelow 1.2."), [""; 0]);
    assert_eq!(wrong("**Read.** 33 % reach twice TCP. The worst has 0.95."), ["33", "0.95"]);
    assert_eq!(wrong("The worst has 0.32 (`worst`), and 0.95 beside RFC 9.41."), ["0.32", "0.95", "9.41"]);
    assert_eq!(wrong("The worst has 0.7 (`other`), \"0.7\" and `0.7`."), [""; 0]);
    assert_eq!(wrong("**Read.** The 450 of v0.7, p0.7 and 0.7x."), [""; 0]);
}
