//! Figures of an experiment: what `[[figure]]` in its expectation asks for, drawn from records as SVG.

pub mod chart;
pub mod measured;

use crate::record::{PathRecord, Record};
use chart::{DrawError, Line};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A figure over time, or a distribution, of one variant and its first seed. (Figures of measures over an axis are made
/// of what claims evaluate.)
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureSpec {
    /// Above the figure.
    pub title: String,
    /// What is shown.
    pub kind: Kind,
    /// Transfers, groups, requests, or links as "A>B". All if empty.
    #[serde(default)]
    pub of: Vec<String>,
    /// Which variants: labels of axes; those not named may have any value, each variant is a series then.
    #[serde(default, rename = "where")]
    pub at: BTreeMap<String, String>,
    /// For `measure`: the measure.
    pub measure: Option<String>,
    /// For `measure`: the axis that runs from left to right.
    pub x: Option<String>,
    /// Unit of the measure.
    #[serde(default)]
    pub unit: String,
}

/// What a figure shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Goodput over time.
    Goodput,
    /// Rate of each path over time.
    Paths,
    /// Congestion window of each path over time.
    Window,
    /// Smoothed RTT of each path over time.
    Rtt,
    /// Queue of links over time.
    Queue,
    /// Share of each path over time.
    Share,
    /// Distribution of request times.
    Cdf,
    /// A measure over an axis, lines; the other axes make the series.
    Measure,
    /// The same as bars.
    Bars,
}

/// The most series of one figure: more cannot be told apart.
const MOST_SERIES: usize = 12;
/// The most points of one line: more are not seen.
const MOST_POINTS: usize = 600;

/// Draws a figure over time or a distribution from `records`, which are in order of variant and seed.
///
/// # Errors
/// If nothing of what the figure asks for is there.
pub fn draw(spec: &FigureSpec, records: &[Record]) -> Result<String, DrawError> {
    let mut seen: Vec<&Record> = Vec::new();
    for record in records {
        let wanted = spec.at.iter().all(|(axis, label)| label_of(record, axis) == Some(label));
        if wanted && !seen.iter().any(|first| first.axes == record.axes) {
            seen.push(record);
        }
    }
    let several = seen.len() > 1;
    let mut lines: Vec<Line> = Vec::new();
    for record in seen {
        let suffix = if several { format!(" {}", free_labels(record, spec)) } else { String::new() };
        lines.extend(
            lines_of(spec, record).into_iter().map(|line| Line { name: line.name + &suffix, ..line }),
        );
    }
    lines.truncate(MOST_SERIES);
    let (x, y) = match spec.kind {
        Kind::Goodput => ("time (s)", "goodput (Mbit/s)"),
        Kind::Paths => ("time (s)", "rate of the path (Mbit/s)"),
        Kind::Window => ("time (s)", "congestion window (packets)"),
        Kind::Rtt => ("time (s)", "smoothed RTT (ms)"),
        Kind::Queue => ("time (s)", "queue (packets)"),
        Kind::Share => ("time (s)", "share of the transfer's bytes"),
        Kind::Cdf => ("completion time (s)", "share of requests"),
        Kind::Measure | Kind::Bars => (spec.x.as_deref().unwrap_or(""), spec.unit.as_str()),
    };
    chart::lines(&spec.title, x, y, &lines)
}

fn label_of<'a>(record: &'a Record, axis: &str) -> Option<&'a String> {
    record.axes.iter().find(|(name, _)| name == axis).map(|(_, label)| label)
}

/// The labels of the axes that the figure leaves open.
fn free_labels(record: &Record, spec: &FigureSpec) -> String {
    let free = record.axes.iter().filter(|(axis, _)| !spec.at.contains_key(axis));
    free.map(|(_, label)| label.as_str()).collect::<Vec<_>>().join(" ")
}

fn lines_of(spec: &FigureSpec, record: &Record) -> Vec<Line> {
    let wanted =
        |name: &str, group: &str| spec.of.is_empty() || spec.of.iter().any(|of| of == name || of == group);
    let transfers = || record.transfers.iter().filter(|transfer| wanted(&transfer.name, &transfer.group));
    let alone = transfers().count() == 1;
    let paths = |line: &dyn Fn(&PathRecord) -> Vec<(f64, f64)>| {
        transfers()
            .flat_map(|transfer| {
                transfer.paths.iter().map(|path| {
                    let name =
                        if alone { path.name.clone() } else { format!("{}/{}", transfer.name, path.name) };
                    Line { name, points: line(path) }
                })
            })
            .collect::<Vec<_>>()
    };
    match spec.kind {
        Kind::Goodput => transfers()
            .map(|transfer| Line {
                name: transfer.name.clone(),
                points: rates(&transfer.received, record.sample),
            })
            .collect(),
        Kind::Paths => paths(&|path| rates(&path.acked, record.sample)),
        Kind::Window => {
            paths(&|path| samples(path.window.iter().map(|&value| f64::from(value)), record.sample))
        }
        Kind::Rtt => paths(&|path| {
            let known = samples(path.rtt.iter().map(|&value| f64::from(value)), record.sample);
            known.into_iter().filter(|(_, rtt)| *rtt > 0.0).collect()
        }),
        Kind::Share => transfers().flat_map(|transfer| shares(&transfer.paths, record.sample)).collect(),
        Kind::Queue => record
            .links
            .iter()
            .map(|link| (format!("{}>{}", link.from, link.to), link))
            .filter(|(name, _)| wanted(name, name))
            .map(|(name, link)| Line {
                name,
                points: samples(link.queue.iter().map(|&packets| f64::from(packets)), record.sample),
            })
            .collect(),
        Kind::Cdf => record
            .requests
            .iter()
            .filter(|requests| wanted(&requests.name, &requests.name))
            .map(|requests| {
                let took = requests.list.iter().filter_map(|request| request.took).collect();
                Line { name: requests.name.clone(), points: distribution(took) }
            })
            .collect(),
        Kind::Measure | Kind::Bars => Vec::new(),
    }
}

/// Samples as points, at most [`MOST_POINTS`] of them, each the mean of its bin.
fn samples(values: impl ExactSizeIterator<Item = f64>, every: f64) -> Vec<(f64, f64)> {
    let bin = values.len().div_ceil(MOST_POINTS).max(1);
    let all: Vec<f64> = values.collect();
    all.chunks(bin)
        .enumerate()
        .map(|(index, chunk)| {
            let middle = (index * bin) as f64 + (chunk.len() - 1) as f64 / 2.0;
            (middle * every, chunk.iter().sum::<f64>() / chunk.len() as f64)
        })
        .collect()
}

/// Mbit/s between samples of cumulative bytes, over bins of at least half a second.
fn rates(cumulative: &[u64], every: f64) -> Vec<(f64, f64)> {
    let least = libm::ceil(0.5 / every.max(1e-6)) as usize;
    let bin = cumulative.len().div_ceil(MOST_POINTS).max(least).max(1);
    let marks: Vec<u64> = cumulative.iter().copied().step_by(bin).collect();
    let seconds = bin as f64 * every;
    marks
        .windows(2)
        .enumerate()
        .filter_map(|(index, pair)| match pair {
            [before, after] => {
                let bits = after.saturating_sub(*before) as f64 * 8.0;
                Some(((index as f64 + 0.5) * seconds, bits / seconds / 1e6))
            }
            _ => None,
        })
        .collect()
}

/// What part of a transfer each path carried, over bins of at least two seconds.
fn shares(paths: &[PathRecord], every: f64) -> Vec<Line> {
    let rates: Vec<_> = paths.iter().map(|path| rates(&path.acked, every)).collect();
    let total =
        |index: usize| -> f64 { rates.iter().filter_map(|rate| rate.get(index)).map(|point| point.1).sum() };
    paths
        .iter()
        .zip(&rates)
        .map(|(path, rate)| {
            let points = rate.iter().enumerate().filter(|(index, _)| total(*index) > 0.0);
            Line {
                name: path.name.clone(),
                points: points.map(|(index, (x, y))| (*x, y / total(index))).collect(),
            }
        })
        .collect()
}

/// The empirical distribution function.
fn distribution(mut values: Vec<f64>) -> Vec<(f64, f64)> {
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let step = values.len().div_ceil(MOST_POINTS).max(1);
    let last = values.len().saturating_sub(1);
    let shown = values.iter().enumerate().filter(|(index, _)| index % step == 0 || *index == last);
    shown.map(|(index, &value)| (value, (index + 1) as f64 / count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{RequestRecord, RequestsRecord, TransferRecord};

    fn record() -> Record {
        let path = |name: &str, rate: u64| PathRecord {
            name: name.into(),
            acked: (0..100).map(|at| at * rate).collect(),
            window: vec![10.0; 100],
            ..PathRecord::default()
        };
        let transfer = TransferRecord {
            name: "t".into(),
            group: "t".into(),
            received: (0..100).map(|at| at * 125_000).collect(),
            paths: vec![path("direct", 100_000), path("R", 25_000)],
            ..TransferRecord::default()
        };
        let took = |took: f64| RequestRecord { size: 1, began: Some(0.0), took: Some(took) };
        Record {
            axes: vec![("n".into(), "1".into())],
            sample: 0.1,
            transfers: vec![transfer],
            requests: vec![RequestsRecord { name: "web".into(), list: vec![took(2.0), took(1.0)] }],
            ..Record::default()
        }
    }

    fn spec(kind: Kind) -> FigureSpec {
        FigureSpec {
            title: "T".into(),
            kind,
            of: vec![],
            at: BTreeMap::new(),
            measure: None,
            x: None,
            unit: String::new(),
        }
    }

    #[test]
    fn rates_and_shares_and_distributions() {
        let record = record();
        // 125 000 bytes in 0.1 s.
        let [goodput] = lines_of(&spec(Kind::Goodput), &record).try_into().expect("one");
        assert!(goodput.points.iter().all(|point| (point.1 - 10.0).abs() < 1e-9), "{goodput:?}");
        let [direct, relay] = lines_of(&spec(Kind::Share), &record).try_into().expect("two");
        assert!(direct.points.iter().all(|point| (point.1 - 0.8).abs() < 1e-9));
        assert!(relay.points.iter().all(|point| (point.1 - 0.2).abs() < 1e-9));
        let [requests] = lines_of(&spec(Kind::Cdf), &record).try_into().expect("one");
        assert_eq!(requests.points, [(1.0, 0.5), (2.0, 1.0)]);
    }

    #[test]
    fn every_kind_over_time_is_drawn() {
        for kind in [Kind::Goodput, Kind::Paths, Kind::Window, Kind::Share, Kind::Cdf] {
            assert!(draw(&spec(kind), &[record()]).expect("a figure").contains("</svg>"));
        }
        let mut none = spec(Kind::Goodput);
        none.of = vec!["nobody".into()];
        assert!(draw(&none, &[record()]).is_err());
    }
}
