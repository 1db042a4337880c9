//! Checks claims about an experiment before it runs: whether the runs can give the numbers that a
//! claim is about. A claim may name settings that some modes (such as quick) leave out. But at
//! least one of the claim's modes must run them.

use super::{Claim, ExpectError, Expectation};
use crate::measure::{Measure, Records, Selection, Undefined, Why};
use crate::plan::{Mode, Plan};
use crate::record::{GatewayRecord, Record, RequestsRecord, TransferRecord};
use crate::setup::Setup;
use std::collections::BTreeSet;

impl Expectation {
    /// Returns an error for every expression that no run can evaluate, such as `goodput(x)` without
    /// a transfer `x`. `plans` are the plans of all modes, such as quick. Names of paths and links
    /// are not checked, because they are known only after a run.
    #[must_use]
    pub fn check(&self, plans: &[(Mode, &Plan)]) -> Vec<ExpectError> {
        if self.not_run.is_some() {
            return Vec::new();
        }
        let shadows: Vec<(Mode, Vec<Record>)> =
            plans.iter().map(|(mode, plan)| (*mode, plan.variants.iter().map(shadow).collect())).collect();
        let mut errors = Vec::new();
        let mut wrong = |byte, what| errors.push(ExpectError::at(&self.file, &self.source, byte, what));
        for claim in &self.claims {
            let held = || shadows.iter().filter(|(mode, _)| claim.modes.contains(mode));
            let asked = unanswerable(&claim.measure, held(), |records| claim.combinations(records), true);
            if let Some(what) = asked.or_else(|| unknown_label(claim, held())) {
                wrong(claim.span.start, format!("claim `{}`: {what}", claim.id));
            }
        }
        for show in &self.shows {
            if let Some(what) =
                unanswerable(&show.measure, shadows.iter(), |records| Ok(records.variants().collect()), false)
            {
                wrong(show.span.start, format!("`{}`: {what}", show.name));
            }
        }
        errors
    }
}

/// Makes a record of `setup` with its names and times, but without measurements.
fn shadow(setup: &Setup) -> Record {
    Record {
        axes: setup.axes.clone(),
        seed: 1,
        sample: setup.sample.as_secs_f64().max(1e-6),
        duration: setup.duration.as_secs_f64(),
        cut: setup.cut.as_secs_f64(),
        transfers: setup
            .transfers
            .iter()
            .map(|transfer| TransferRecord {
                name: transfer.name.clone(),
                group: transfer.group.clone(),
                ..TransferRecord::default()
            })
            .collect(),
        requests: setup
            .requests
            .iter()
            .map(|requests| RequestsRecord { name: requests.name.clone(), list: Vec::new() })
            .collect(),
        gateways: setup
            .gateways
            .iter()
            .map(|gateways| GatewayRecord { name: gateways.name.clone(), ..GatewayRecord::default() })
            .collect(),
        ..Record::default()
    }
}

/// Returns why no run can answer a measure. `everywhere`: every mode must answer it, as for a
/// claim; otherwise one must, as for a column.
fn unanswerable<'r>(
    measure: &Measure,
    shadows: impl Iterator<Item = &'r (Mode, Vec<Record>)>,
    variants: impl Fn(&Records<'_>) -> Result<Vec<Selection>, Undefined>,
    everywhere: bool,
) -> Option<String> {
    let (mut not_run, mut wrong, mut answered) = (None, None, false);
    for (_, records) in shadows {
        let records = match Records::new(records) {
            Ok(records) => records,
            Err(error) => return Some(error.to_string()),
        };
        let variants = match variants(&records) {
            Ok(variants) => variants,
            Err(undefined) => return Some(undefined.what),
        };
        for value in variants.iter().flat_map(|variant| measure.evaluate(&records, variant).into_values()) {
            match value {
                Err(undefined) if undefined.why == Why::Wrong => wrong = wrong.or(Some(undefined.what)),
                Err(undefined) if undefined.why == Why::NotRun => not_run = not_run.or(Some(undefined.what)),
                _ => answered = true,
            }
        }
    }
    match (everywhere, answered) {
        (true, true) => wrong,
        (false, true) => None,
        (_, false) => wrong.or(not_run),
    }
}

/// A value in `only` that no plan has.
fn unknown_label<'r>(
    claim: &Claim,
    shadows: impl Iterator<Item = &'r (Mode, Vec<Record>)>,
) -> Option<String> {
    let pairs = shadows.flat_map(|(_, records)| records).flat_map(|record| &record.axes);
    let known: BTreeSet<&(String, String)> = pairs.collect();
    let mut asked =
        claim.only.iter().flat_map(|(axis, labels)| labels.iter().map(move |label| (axis, label)));
    let (axis, label) = asked.find(|&(axis, label)| !known.contains(&(axis.clone(), label.clone())))?;
    Some(format!("only: no mode runs [{axis}={label}]"))
}
