//! Holds claims against records.

use super::{Claim, ClaimResult, ColumnResult, Expectation, Judged, Measured, Missing, Outcome, Verdict};
use crate::acceptance::{Acceptance, MissedBounds};
use crate::measure::{Measure, Records, Selection, Why};
use crate::plan::Mode;
use crate::stats::Interval;

/// A combination of which no seed was run, and why.
struct NotRun(String);

/// The measured values. `fits`: whether the question suits its runs. A question that does not is a
/// mistake in the claim.
struct Evaluated {
    measured: Measured,
    fits: bool,
}

impl Expectation {
    /// Holds every claim against `records`, which were run in `mode`.
    #[must_use]
    pub fn judge(&self, records: &Records<'_>, mode: Mode) -> Judged {
        let judged = |claim: &Claim| match &self.not_run {
            None => claim.judge(records, mode),
            Some(why) => ClaimResult { note: Some(why.clone()), ..claim.unjudged() },
        };
        let claims: Vec<ClaimResult> = self.claims.iter().map(judged).collect();
        let shown = |show: &super::Show| ColumnResult {
            name: show.name.clone(),
            unit: show.unit.clone(),
            at: records
                .variants()
                .map(|variant| {
                    let none = || Measured { variant: labels(records, &variant), ..Measured::default() };
                    measured(&show.measure, records, &variant)
                        .map_or_else(|NotRun(_)| none(), |asked| asked.measured)
                })
                .collect(),
        };
        Judged {
            verdict: Verdict::worst(claims.iter().map(|claim| claim.verdict)),
            shows: self.shows.iter().map(shown).collect(),
            claims,
        }
    }

    /// Judges a saved result again, with the bounds and known reasons of this expectation.
    #[must_use]
    pub fn recall(&self, kept: Outcome) -> Outcome {
        let claims: Vec<ClaimResult> = self
            .claims
            .iter()
            .map(|claim| claim.recall(kept.claims.iter().find(|kept| kept.id == claim.id), kept.mode))
            .collect();
        let verdict = Verdict::worst(claims.iter().map(|claim| claim.verdict));
        Outcome { verdict, claims, ..kept }
    }
}

impl Claim {
    /// Returns the claim's result before it is evaluated.
    fn unjudged(&self) -> ClaimResult {
        ClaimResult {
            id: self.id.clone(),
            says: self.says.clone(),
            paper: self.paper.clone(),
            measure: self.measure.text().to_owned(),
            unit: self.unit.clone(),
            reading: self.reading,
            of: self.of.clone(),
            at_least: self.at_least,
            at_most: self.at_most,
            known: self.known.clone(),
            verdict: Verdict::NotRun,
            note: None,
            at: Vec::new(),
            worst: None,
        }
    }

    fn judge(&self, records: &Records<'_>, mode: Mode) -> ClaimResult {
        let mut result = self.unjudged();
        if !self.modes.contains(&mode) {
            result.note = Some(format!("is not held in the mode {}", mode.name()));
            return result;
        }
        let combinations = match self.combinations(records) {
            Ok(combinations) => combinations,
            Err(undefined) => {
                result.note = Some(undefined.what);
                result.verdict = Verdict::Fail;
                return result;
            }
        };
        let mut fits = true;
        for combination in combinations {
            match measured(&self.measure, records, &combination) {
                Ok(asked) => {
                    fits &= asked.fits;
                    result.at.push(asked.measured);
                }
                Err(NotRun(why)) => result.note = result.note.or(Some(why)),
            }
        }
        if result.at.is_empty() {
            result.note = result.note.or_else(|| Some("nothing was run".to_owned()));
            return result;
        }
        self.decide(&mut result, fits, mode);
        result
    }

    /// Sets the verdict from the measured values. `fits`: whether every question suited its runs.
    fn decide(&self, result: &mut ClaimResult, fits: bool, mode: Mode) {
        let margins = result.at.iter().map(|measured| self.margin(measured)).enumerate();
        let worst = margins.min_by(|(_, one), (_, other)| one.total_cmp(other));
        result.worst = worst.map(|(place, _)| place);
        // What a part of the combinations lacks is no news beside what the others say.
        result.note = None;
        if self.is_report() {
            result.verdict = Verdict::Report;
        } else if worst.is_some_and(|(_, margin)| margin >= 0.0) {
            result.verdict = Verdict::Pass;
            if self.known.is_some() {
                result.note = Some("known miss now passes: remove the mark `known`".to_owned());
            }
        } else if let (true, true, Some(decides)) = (self.known.is_some(), fits, result.deciding()) {
            (result.verdict, result.note) = self.accept(decides, mode);
        } else {
            result.verdict = Verdict::Fail;
        }
        let missing = result.deciding().and_then(|measured| Some((measured, measured.missing.first()?)));
        if let Some((measured, Missing { seed, why })) = missing {
            let more = match measured.missing.len() - 1 {
                0 => String::new(),
                more => format!(" ({more} more like it)"),
            };
            let why = format!("seed {seed}: {why}{more}");
            result.note = Some(result.note.take().map_or(why.clone(), |note| format!("{note}; {why}")));
        }
    }

    /// The verdict on a known miss, by the value at which it was accepted, and what else is to be
    /// said. That value is the end of the interval that lies beyond the bound.
    fn accept(&self, decides: &Measured, mode: Mode) -> (Verdict, Option<String>) {
        let bounds = MissedBounds { at_least: self.at_least, at_most: self.at_most };
        let interval = decides.interval.filter(|_| decides.missing.is_empty());
        let (value, width) = interval.map_or((f64::NAN, 0.0), |Interval { low, high, .. }| {
            (if bounds.beyond(low) >= bounds.beyond(high) { low } else { high }, high - low)
        });
        let told =
            |value: f64| if value.is_nan() { "no value".to_owned() } else { super::table::number(value) };
        let sentence = |word: &str, accepted| {
            Some(format!("{word} than accepted: {} instead of {}", told(value), told(accepted)))
        };
        match bounds.compare(value, self.accepted.get(&mode).copied(), width) {
            Acceptance::Alike => (Verdict::KnownMiss, None),
            Acceptance::Worse(accepted) => (Verdict::Fail, sentence("worse", accepted)),
            Acceptance::Better(accepted) => (Verdict::KnownMiss, sentence("better", accepted)),
            Acceptance::Missing => {
                // CI runs the quick form, and results are kept of the plan as it stands. Nobody
                // accepts values of other modes.
                let is_held = matches!(mode, Mode::Quick | Mode::All);
                let verdict = if is_held { Verdict::Fail } else { Verdict::KnownMiss };
                (verdict, Some(format!("no value is accepted in the mode {}", mode.name())))
            }
        }
    }

    /// The result of the claim, from the measured values in a kept result.
    fn recall(&self, kept: Option<&ClaimResult>, mode: Mode) -> ClaimResult {
        let mut result = self.unjudged();
        let Some(kept) = kept else {
            result.note = Some("is not in the kept result".to_owned());
            return result;
        };
        if kept.measure != result.measure {
            result.note = Some("its measure is not that of the kept result".to_owned());
            return result;
        }
        let spoken_of = |measured: &&Measured| {
            self.only.iter().all(|(axis, labels)| {
                measured.variant.iter().any(|(name, label)| name == axis && labels.contains(label))
            })
        };
        result.at = kept.at.iter().filter(spoken_of).cloned().collect();
        if result.at.is_empty() || !self.modes.contains(&mode) {
            result.note = kept.note.clone();
            return result;
        }
        self.decide(&mut result, true, mode);
        result
    }

    /// Returns the distance of the interval's worst end from the bounds. Negative: it is beyond
    /// them. With a missing value it is minus infinity.
    fn margin(&self, measured: &Measured) -> f64 {
        let Some(interval) = measured.interval.filter(|_| measured.missing.is_empty()) else {
            return f64::NEG_INFINITY;
        };
        let above = self.at_least.map(|least| interval.low - least);
        let below = self.at_most.map(|most| most - interval.high);
        above.into_iter().chain(below).fold(f64::INFINITY, f64::min)
    }
}

/// The values of all seeds that were run; `Err`: none was.
fn measured(measure: &Measure, records: &Records<'_>, at: &Selection) -> Result<Evaluated, NotRun> {
    let mut fits = true;
    let mut measured = Measured { variant: labels(records, at), ..Measured::default() };
    let mut not_run = None;
    for (seed, value) in measure.evaluate(records, at) {
        match value {
            Ok(value) => {
                measured.seeds.push(seed);
                measured.values.push(value);
            }
            Err(undefined) if undefined.why == Why::NotRun => not_run = not_run.or(Some(undefined.what)),
            Err(undefined) => {
                fits &= undefined.why != Why::Wrong;
                measured.missing.push(Missing { seed, why: undefined.what });
            }
        }
    }
    if measured.values.is_empty() && measured.missing.is_empty() {
        return Err(NotRun(not_run.unwrap_or_else(|| "nothing was run".to_owned())));
    }
    measured.sum_up();
    Ok(Evaluated { measured, fits })
}

/// The labels that `at` names, in the order of the axes.
fn labels(records: &Records<'_>, at: &Selection) -> Vec<(String, String)> {
    let axes = records.axes().iter();
    axes.filter_map(|axis| at.get(&axis.name).map(|label| (axis.name.clone(), label.clone()))).collect()
}
