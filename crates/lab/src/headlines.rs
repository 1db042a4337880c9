//! The sentences of the papers' abstracts, each with the claims that it is held against. They stand
//! in `experiments/headlines.toml`.

use crate::expect::{ClaimResult, Outcome, Reading, Verdict, table};
use serde::Deserialize;

/// A sentence of a paper's abstract.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Headline {
    /// The name of the paper, as in experiments.
    pub paper: String,
    /// The sentence, quoted.
    pub says: String,
    /// The figure as the paper states it.
    pub figure: String,
    /// The experiment whose results the sentence is compared with.
    pub experiment: String,
    /// The claims of the experiment, of any reading.
    pub claims: Vec<String>,
    /// Whether no sentence of the paper supports the second reading, so that the set-up is ours.
    #[serde(default)]
    pub is_our_set_up: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    headline: Vec<Headline>,
}

/// Reads `headlines.toml`.
///
/// # Errors
/// The text is not such a file; the message has the line.
pub fn read(text: &str) -> Result<Vec<Headline>, toml::de::Error> {
    Ok(toml::from_str::<File>(text)?.headline)
}

/// The result for a headline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadlineResult {
    /// The sentence of the paper, and the ids of its claims.
    pub headline: Headline,
    /// The values measured as published, by a second reading, and with byway's own law. A dash:
    /// there is no such claim.
    pub measured: [String; 3],
    /// Whether the sentence holds, and by which reading.
    pub verdict: &'static str,
}

/// Compares each headline with the outcome of its experiment. `outcome` returns the outcome by the
/// experiment's name.
pub fn results<'a>(
    headlines: &[Headline],
    outcome: impl Fn(&str) -> Option<&'a Outcome>,
) -> Vec<HeadlineResult> {
    headlines.iter().map(|headline| result(headline, outcome(&headline.experiment))).collect()
}

fn result(headline: &Headline, outcome: Option<&Outcome>) -> HeadlineResult {
    let claims = || {
        let all = outcome.into_iter().flat_map(|outcome| &outcome.claims);
        all.filter(|claim| headline.claims.contains(&claim.id))
    };
    let of =
        |reading: Reading| claims().filter(move |claim| claim.reading.unwrap_or(Reading::Strict) == reading);
    let readings = [Reading::Strict, Reading::Second, Reading::Ours];
    // Several claims of one reading hold together or not at all.
    let holds = |reading| of(reading).count() > 0 && of(reading).all(|claim| claim.verdict == Verdict::Pass);
    let verdict = match readings.map(holds) {
        [true, ..] => "holds",
        [_, true, _] if headline.is_our_set_up => "holds in our set-up alone",
        [_, true, _] => "holds by the second reading",
        [_, _, true] if of(Reading::Strict).next().is_none() => "holds with byway's own law",
        _ if claims().all(|claim| claim.verdict == Verdict::NotRun) => "not run",
        _ => "missed",
    };
    let measured = readings.map(|reading| {
        let texts: Vec<String> = of(reading).map(measured).collect();
        if texts.is_empty() { "-".to_owned() } else { texts.join("; ") }
    });
    HeadlineResult { headline: headline.clone(), measured, verdict }
}

/// Returns the decisive median as text, with a mark if it misses its bounds.
fn measured(claim: &ClaimResult) -> String {
    let Some(median) = claim.deciding().and_then(|measured| measured.median) else {
        return "not run".to_owned();
    };
    let unit = if claim.unit.is_empty() { String::new() } else { format!(" {}", claim.unit) };
    let missed = if claim.verdict == Verdict::Pass { "" } else { " (missed)" };
    format!("{}{unit}{missed}", table::number(median))
}

/// The table of headlines in Markdown.
#[must_use]
pub fn markdown(results: &[HeadlineResult]) -> String {
    let mut text = "| paper | says | its figure | strict | second reading | byway's own | verdict |\n\
                    |---|---|---|---|---|---|---|\n"
        .to_owned();
    for HeadlineResult { headline, measured: [strict, second, ours], verdict } in results {
        let Headline { paper, says, figure, experiment, .. } = headline;
        text += &format!(
            "| {paper} | \"{says}\" (`{experiment}`) | {figure} | {strict} | {second} | {ours} | {verdict} |\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expect::Measured;

    fn claim(id: &str, reading: Reading, verdict: Verdict) -> ClaimResult {
        let at = vec![Measured { count: 1, median: Some(2.5), ..Measured::default() }];
        let reading = Some(reading);
        ClaimResult { id: id.into(), reading, verdict, at, worst: Some(0), ..ClaimResult::default() }
    }

    #[test]
    fn a_headline_holds_as_published_or_by_the_second_reading() {
        let text = "[[headline]]\npaper = \"P\"\nsays = \"s\"\nfigure = \"2\"\nexperiment = \"x\"\nclaims = [\"a\", \"b\", \"c\"]\n";
        let headlines = read(text).expect("a file");
        let verdict = |claims| {
            let outcome = Outcome::of_claims(claims);
            results(&headlines, |_| Some(&outcome)).remove(0)
        };
        let strict = |verdict| claim("a", Reading::Strict, verdict);
        let second = claim("b", Reading::Second, Verdict::Pass);
        let ours = claim("c", Reading::Ours, Verdict::Pass);
        assert_eq!(verdict(vec![strict(Verdict::Pass)]).verdict, "holds");
        let by_reading = verdict(vec![strict(Verdict::KnownMiss), second.clone()]);
        assert_eq!(by_reading.verdict, "holds by the second reading");
        let mut chosen = headlines.clone();
        chosen[0].is_our_set_up = true;
        let outcome = Outcome::of_claims(vec![strict(Verdict::KnownMiss), second]);
        assert_eq!(results(&chosen, |_| Some(&outcome))[0].verdict, "holds in our set-up alone");
        assert_eq!(by_reading.measured, ["2.5 (missed)", "2.5", "-"]);
        assert_eq!(verdict(vec![strict(Verdict::KnownMiss), ours.clone()]).verdict, "missed");
        assert_eq!(verdict(vec![ours]).verdict, "holds with byway's own law");
        assert!(
            markdown(&results(&headlines, |_| None))
                .contains("| P | \"s\" (`x`) | 2 | - | - | - | not run |")
        );
    }
}
