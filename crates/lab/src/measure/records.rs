//! All runs of an experiment, found by variant and seed.

use super::run::Run;
use super::run_answers::RunAnswers;
use super::tree::AxisChoice;
use super::undefined_value::Undefined;
use crate::plan::units;
use crate::record::Record;
use crate::spelling;
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// Labels of some axes: which variants are meant.
pub type Selection = BTreeMap<String, String>;

/// An axis, and its labels in the order of their first occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisLabels {
    /// The name of the axis.
    pub name: String,
    /// The labels of the axis.
    pub labels: Vec<String>,
}

/// The records of an experiment, one per variant and seed.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    axes: Vec<AxisLabels>,
    /// The records of each variant by seed, in the order of the records.
    variants: Vec<(Vec<usize>, BTreeMap<u64, Run<'a>>)>,
    /// The index of each variant in `variants`, by its labels on all axes.
    places: BTreeMap<Vec<usize>, usize>,
    seeds: BTreeSet<u64>,
}

/// Why records do not belong to one experiment.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecordsError {
    /// Two records have different axes.
    #[error("records of different plans: one has the axes [{}], another [{}]", .0.join(", "), .1.join(", "))]
    Axes(Vec<String>, Vec<String>),
    /// A variant has two records with the same seed.
    #[error("two records of seed {1} of {0}")]
    Twice(String, u64),
    /// A record's times are no times: a sample of zero, or something that is not finite.
    #[error("seed {1} of {0}: sample, duration and cut must be finite, sample above 0")]
    Times(String, u64),
}

/// The chosen label of each axis. `None`: no label is chosen.
pub(super) type ChosenLabels = Vec<Option<usize>>;

impl<'a> Records<'a> {
    /// Indexes `records` by variant and seed.
    ///
    /// # Errors
    /// If they cannot be of one experiment.
    pub fn new(records: &'a [Record]) -> Result<Self, RecordsError> {
        Self::index(records.iter().map(Run::Recorded))
    }

    /// Indexes the answers of runs by variant and seed. Only measures whose answers were saved have
    /// values.
    ///
    /// # Errors
    /// If they cannot be of one experiment.
    pub fn of_answers(answers: &'a [RunAnswers]) -> Result<Self, RecordsError> {
        Self::index(answers.iter().map(Run::Answered))
    }

    fn index(runs: impl Iterator<Item = Run<'a>> + Clone) -> Result<Self, RecordsError> {
        let names = |run: Run<'_>| run.axes().iter().map(|(axis, _)| axis.clone()).collect::<Vec<_>>();
        let first = runs.clone().next().map(names).unwrap_or_default();
        let mut axes: Vec<AxisLabels> =
            first.iter().map(|name| AxisLabels { name: name.clone(), labels: Vec::new() }).collect();
        let mut known: Vec<BTreeMap<&str, usize>> = vec![BTreeMap::new(); axes.len()];
        let mut found =
            Self { axes: Vec::new(), variants: Vec::new(), places: BTreeMap::new(), seeds: BTreeSet::new() };
        for run in runs {
            if !run.axes().iter().map(|(axis, _)| axis).eq(&first) {
                return Err(RecordsError::Axes(first, names(run)));
            }
            let labels: Vec<usize> = (run.axes().iter().zip(&mut axes).zip(&mut known))
                .map(|(((_, label), axis), known)| {
                    *known.entry(label).or_insert_with(|| {
                        axis.labels.push(label.clone());
                        axis.labels.len() - 1
                    })
                })
                .collect();
            let variant = || written(run.axes().iter().map(|(axis, label)| (axis.as_str(), label.as_str())));
            if !run.times().are_valid() {
                return Err(RecordsError::Times(variant(), run.seed()));
            }
            let place = *found.places.entry(labels.clone()).or_insert(found.variants.len());
            if place == found.variants.len() {
                found.variants.push((labels, BTreeMap::new()));
            }
            if found.variants[place].1.insert(run.seed(), run).is_some() {
                return Err(RecordsError::Twice(variant(), run.seed()));
            }
            found.seeds.insert(run.seed());
        }
        found.axes = axes;
        Ok(found)
    }

    /// Returns the axes of the sweep, with their labels.
    #[must_use]
    pub fn axes(&self) -> &[AxisLabels] {
        &self.axes
    }

    /// Every seed that any variant ran.
    pub fn seeds(&self) -> impl Iterator<Item = u64> + '_ {
        self.seeds.iter().copied()
    }

    /// Every variant, in the order of the records.
    pub fn variants(&self) -> impl Iterator<Item = Selection> + '_ {
        self.variants.iter().map(|(labels, _)| {
            let pairs = self.axes.iter().zip(labels);
            pairs.map(|(axis, &label)| (axis.name.clone(), axis.labels[label].clone())).collect()
        })
    }

    /// Every combination of values of the settings `axes` that was run, in the order of the
    /// records. For example, for `rtt` and `loss`: `20 ms` with `0 %`, then `20 ms` with `1 %`.
    ///
    /// # Errors
    /// If one of `axes` does not exist.
    pub fn combinations(&self, axes: &[String]) -> Result<Vec<Selection>, Undefined> {
        let places = axes.iter().map(|axis| self.axis(axis)).collect::<Result<Vec<_>, _>>()?;
        let mut seen = BTreeSet::new();
        let mut combinations = Vec::new();
        for (labels, _) in &self.variants {
            let combination: Vec<usize> = places.iter().map(|&place| labels[place]).collect();
            if seen.insert(combination.clone()) {
                let pairs = places.iter().zip(combination).map(|(&place, label)| {
                    (self.axes[place].name.clone(), self.axes[place].labels[label].clone())
                });
                combinations.push(pairs.collect());
            }
        }
        Ok(combinations)
    }

    pub(super) fn axis(&self, name: &str) -> Result<usize, Undefined> {
        self.axes.iter().position(|axis| axis.name == name).ok_or_else(|| {
            Undefined::wrong(spelling::unknown("axis", name, self.axes.iter().map(|axis| axis.name.as_str())))
        })
    }

    fn label(&self, axis: usize, label: &str) -> Result<usize, Undefined> {
        let AxisLabels { name, labels } = &self.axes[axis];
        labels.iter().position(|known| known == label).ok_or_else(|| {
            let known = labels.join(", ");
            Undefined::not_run(format!("[{name}={label}] was not run: `{name}` has the values {known}"))
        })
    }

    /// The label that `selection` chooses on each axis.
    pub(super) fn chosen(&self, selection: &Selection) -> Result<ChosenLabels, Undefined> {
        let mut chosen = vec![None; self.axes.len()];
        for (axis, label) in selection {
            let axis = self.axis(axis)?;
            chosen[axis] = Some(self.label(axis, label)?);
        }
        Ok(chosen)
    }

    /// `chosen` with the labels that `choices` name.
    pub(super) fn changed(
        &self,
        chosen: &ChosenLabels,
        choices: &[AxisChoice],
    ) -> Result<ChosenLabels, Undefined> {
        let mut chosen = chosen.clone();
        for AxisChoice { axis, label } in choices {
            let axis = self.axis(axis)?;
            chosen[axis] = Some(self.label(axis, label)?);
        }
        Ok(chosen)
    }

    /// The run of `seed` in the variant that `chosen` determines.
    pub(super) fn find(&self, chosen: &ChosenLabels, seed: u64) -> Result<Run<'a>, Undefined> {
        let (labels, runs) = match chosen.iter().copied().collect::<Option<Vec<usize>>>() {
            Some(labels) => match self.places.get(&labels) {
                Some(&place) => &self.variants[place],
                None => return Err(Undefined::not_run(format!("{} was not run", self.describe(chosen)))),
            },
            None => self.only(chosen)?,
        };
        runs.get(&seed).copied().ok_or_else(|| {
            let chosen: ChosenLabels = labels.iter().copied().map(Some).collect();
            Undefined::not_run(format!("seed {seed} of {} was not run", self.describe(&chosen)))
        })
    }

    /// The only variant that `chosen` leaves.
    fn only(&self, chosen: &ChosenLabels) -> Result<&(Vec<usize>, BTreeMap<u64, Run<'a>>), Undefined> {
        let fits = |labels: &[usize]| {
            labels.iter().zip(chosen).all(|(label, chosen)| chosen.is_none_or(|chosen| chosen == *label))
        };
        let mut fitting = self.variants.iter().filter(|(labels, _)| fits(labels));
        let Some(first) = fitting.next() else {
            return Err(Undefined::not_run(format!("{} was not run", self.describe(chosen))));
        };
        let Some(second) = fitting.next() else { return Ok(first) };
        let differs = first.0.iter().zip(&second.0).position(|(one, other)| one != other).unwrap_or_default();
        let AxisLabels { name, labels } = &self.axes[differs];
        Err(Undefined::wrong(format!(
            "`{name}` has several values here ({}): say which as [{name}=…], or put `{name}` into `each`",
            labels.join(", ")
        )))
    }

    /// Returns the labels of an axis in the variants that have all other chosen labels.
    pub(super) fn labels_beside(&self, chosen: &ChosenLabels, axis: usize) -> BTreeSet<usize> {
        let fits = |labels: &[usize]| {
            let mut pairs = labels.iter().zip(chosen).enumerate();
            pairs
                .all(|(place, (label, chosen))| place == axis || chosen.is_none_or(|chosen| chosen == *label))
        };
        self.variants.iter().filter(|(labels, _)| fits(labels)).map(|(labels, _)| labels[axis]).collect()
    }

    /// The number that a label of an axis is; a quantity in base units.
    pub(super) fn number(&self, axis: usize, label: usize) -> Result<f64, Undefined> {
        let AxisLabels { name, labels } = &self.axes[axis];
        let text = labels[label].as_str();
        let number = text.parse().ok().or_else(|| units::parse(text).map(|(_, number)| number));
        let wrong = || Undefined::wrong(format!("`{text}`, a value of the axis `{name}`, is no number"));
        number.filter(|number: &f64| number.is_finite()).ok_or_else(wrong)
    }

    /// `[axis=label, …]` for messages.
    pub(super) fn describe(&self, chosen: &ChosenLabels) -> String {
        let said =
            self.axes.iter().zip(chosen).filter_map(|(axis, label)| {
                label.map(|label| (axis.name.as_str(), axis.labels[label].as_str()))
            });
        written(said)
    }
}

/// Writes labels as `[axis=label, …]`.
fn written<'s>(pairs: impl Iterator<Item = (&'s str, &'s str)>) -> String {
    let pairs: Vec<String> = pairs.map(|(axis, label)| format!("{axis}={label}")).collect();
    if pairs.is_empty() { "the only variant".to_owned() } else { format!("[{}]", pairs.join(", ")) }
}
