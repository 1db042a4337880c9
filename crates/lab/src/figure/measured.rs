//! Draws a measure over one axis (a setting that the plan varies) from left to right. Each
//! combination of values of the other axes is a line or a set of bars. Also draws the distribution
//! of a measure.

use super::chart::{self, Bars, DrawError, Line};
use super::{FigureKind, FigureSpec};
use crate::measure::{Measure, Records, Selection};
use crate::plan::units::leading_number;
use crate::stats;
use std::collections::BTreeMap;

/// A median, with the lower and upper end of its interval.
type MedianInterval = (f64, f64, f64);

/// Draws the measure of `spec` over the axis `spec.x`, a setting that the plan varies.
///
/// # Errors
/// In one of these cases: `spec.measure` or `spec.x` is missing, the measure has a syntax error,
/// the plan has no axis `spec.x`, or nothing was measured.
pub fn draw(spec: &FigureSpec, records: &Records<'_>) -> Result<String, DrawError> {
    let wrong = |why: String| DrawError::new(&spec.title, why);
    let text = spec.measure.as_deref().ok_or_else(|| wrong("`measure` is missing".into()))?;
    let axis =
        spec.x.as_deref().ok_or_else(|| wrong("`x`, the axis from left to right, is missing".into()))?;
    let measure = Measure::parse(text).map_err(|error| wrong(error.to_string()))?;
    let known = records.axes().iter().find(|known| known.name == axis);
    let labels = &known.ok_or_else(|| wrong(format!("`{axis}` is no axis")))?.labels;
    let mut series: BTreeMap<(usize, String), Vec<Option<MedianInterval>>> = BTreeMap::new();
    for variant in records.variants() {
        if spec.at.iter().any(|(axis, label)| variant.get(axis) != Some(label)) {
            continue;
        }
        let Some(place) = variant.get(axis).and_then(|label| labels.iter().position(|known| known == label))
        else {
            continue;
        };
        let name = name_of(spec, axis, &variant, records);
        let order = series.keys().find(|(_, known)| *known == name).map_or(series.len(), |(order, _)| *order);
        let points = series.entry((order, name)).or_insert_with(|| vec![None; labels.len()]);
        if let Some(slot) = points.get_mut(place) {
            *slot = point(&measure, records, &variant);
        }
    }
    let numbers: Option<Vec<f64>> = labels.iter().map(|label| leading_number(label)).collect();
    match numbers {
        Some(numbers) if spec.kind == FigureKind::Measure => {
            let lines: Vec<Line> = series
                .into_iter()
                .map(|((_, name), points)| {
                    let there = numbers.iter().zip(points).filter_map(|(x, point)| Some((*x, point?.0)));
                    let mut points: Vec<_> = there.collect();
                    points.sort_by(|a, b| a.0.total_cmp(&b.0));
                    Line { name, points }
                })
                .collect();
            chart::lines(&spec.title, axis, &spec.unit, &lines)
        }
        _ => {
            let bars: Vec<Bars> =
                series.into_iter().map(|((_, name), values)| Bars { name, values }).collect();
            chart::bars(&spec.title, axis, &spec.unit, labels, &bars)
        }
    }
}

/// Percentiles from one point of a distribution to the next.
const PERCENTILE_STEP: usize = 2;

/// Draws the distribution of a measure over `spec.over`: an axis (a setting that the plan varies)
/// or a group of transfers. Each percentile is computed for each seed separately. The drawn value
/// is the median of the seeds' values.
///
/// # Errors
/// If the measure or `spec.over` is missing or wrong, or if nothing was measured.
pub fn distribution(spec: &FigureSpec, records: &Records<'_>) -> Result<String, DrawError> {
    let wrong = |why: String| DrawError::new(&spec.title, why);
    let text = spec.measure.as_deref().ok_or_else(|| wrong("`measure` is missing".into()))?;
    let over = spec.over.as_deref().ok_or_else(|| wrong("`over`, an axis or a group, is missing".into()))?;
    let percentile = |percent: usize| {
        let text = format!("percentile_over({over}, {percent}, {text})");
        Measure::parse(&text).map_err(|error| wrong(error.to_string()))
    };
    let percentiles = (0..=100).step_by(PERCENTILE_STEP).map(|percent| Ok((percent, percentile(percent)?)));
    let percentiles = percentiles.collect::<Result<Vec<_>, DrawError>>()?;
    let mut lines: Vec<Line> = Vec::new();
    for variant in records.variants() {
        let other = spec.at.iter().any(|(axis, label)| variant.get(axis) != Some(label));
        let name = name_of(spec, over, &variant, records);
        if other || lines.iter().any(|line| line.name == name) {
            continue;
        }
        let points = percentiles.iter().filter_map(|(percent, measure)| {
            let (value, ..) = point(measure, records, &variant)?;
            Some((value, *percent as f64 / 100.0))
        });
        let points: Vec<_> = points.collect();
        if !points.is_empty() {
            lines.push(Line { name, points });
        }
    }
    chart::lines(&spec.title, &spec.unit, "share", &lines)
}

/// The labels of the axes that the figure leaves open and that have more than one value.
fn name_of(spec: &FigureSpec, x: &str, variant: &Selection, records: &Records<'_>) -> String {
    let open = records
        .axes()
        .iter()
        .filter(|axis| axis.name != x && axis.labels.len() > 1 && !spec.at.contains_key(&axis.name));
    let labels: Vec<_> = open.filter_map(|axis| variant.get(&axis.name).cloned()).collect();
    if labels.is_empty() { spec.measure.clone().unwrap_or_default() } else { labels.join(" ") }
}

fn point(measure: &Measure, records: &Records<'_>, variant: &Selection) -> Option<MedianInterval> {
    let values: Vec<f64> = measure.evaluate(records, variant).into_values().filter_map(Result::ok).collect();
    let median = stats::median(&values)?;
    let interval = stats::median_interval(&values);
    Some(interval.map_or((median, median, median), |interval| (median, interval.low, interval.high)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Record, TransferRecord};

    #[test]
    fn a_distribution_runs_over_an_axis_with_a_line_for_each_of_the_others() {
        let record = |who: &str, pair: u64| Record {
            axes: vec![("who".into(), who.into()), ("pair".into(), pair.to_string())],
            sample: 1.0,
            duration: 10.0,
            transfers: vec![TransferRecord {
                name: "t".into(),
                group: "t".into(),
                received: (0..=10).map(|at| at * pair * 125_000).collect(),
                ..TransferRecord::default()
            }],
            ..Record::default()
        };
        let records: Vec<Record> =
            ["a", "b"].into_iter().flat_map(|who| [1, 2, 3].map(|pair| record(who, pair))).collect();
        let mut spec = FigureSpec {
            title: "T".into(),
            kind: FigureKind::Distribution,
            of: vec![],
            at: BTreeMap::new(),
            measure: Some("goodput(t)".into()),
            x: None,
            over: Some("pair".into()),
            unit: "Mbit/s".into(),
        };
        let records = Records::new(&records).expect("records");
        let svg = distribution(&spec, &records).expect("a figure");
        assert!(svg.contains("\na\n") && svg.contains("\nb\n") && !svg.contains("a 1"), "{svg}");
        spec.over = Some("nobody".into());
        assert!(distribution(&spec, &records).is_err());
    }
}
