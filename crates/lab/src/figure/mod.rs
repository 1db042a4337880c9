//! Figures of an experiment: what `[[figure]]` in its expectation asks for, drawn from records as
//! SVG.

pub mod chart;
pub mod measured;

use crate::record::{LinkRecord, PathRecord, Record, RequestRecord, TransferRecord};
use chart::{DrawError, Line, Panel};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The contents of a figure: a quantity over time, a distribution of request times, or a measure
/// over a setting that the plan varies. A quantity over time and request times are drawn from the
/// first seed only.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureSpec {
    /// The title above the figure.
    pub title: String,
    /// The kind of figure.
    pub kind: FigureKind,
    /// Transfers, groups, requests, or links as "A>B". All if empty.
    #[serde(default)]
    pub of: Vec<String>,
    /// The variants to show, by labels of axes. Axes not named may have any value, and each variant
    /// is a series then.
    #[serde(default, rename = "where")]
    pub at: BTreeMap<String, String>,
    /// For `measure`: the measure.
    pub measure: Option<String>,
    /// For `measure`: the axis that runs from left to right.
    pub x: Option<String>,
    /// For `distribution`: the axis or `members(GROUP)` over whose values the measure is
    /// distributed.
    pub over: Option<String>,
    /// Unit of the measure.
    #[serde(default)]
    pub unit: String,
}

impl FigureSpec {
    /// Returns the measure that the figure needs from each run. `None`: the figure shows samples.
    #[must_use]
    pub fn question(&self) -> Option<String> {
        let measure = self.measure.as_ref()?;
        match self.kind {
            FigureKind::Measure | FigureKind::Bars => Some(measure.clone()),
            FigureKind::Distribution => {
                self.over.as_ref().map(|over| format!("percentile_over({over}, 50, {measure})"))
            }
            _ => None,
        }
    }
}

/// The contents of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FigureKind {
    /// Goodput over time, in Mbit/s over seconds.
    Goodput,
    /// Rate of each path over time.
    Paths,
    /// Congestion window of each path over time.
    Window,
    /// Smoothed RTT of each path over time.
    Rtt,
    /// Queue of links over time.
    Queue,
    /// Rates of transfers and requests over time, and below them the queues of links in
    /// milliseconds.
    Trace,
    /// Share of each path over time.
    Share,
    /// Distribution of request times.
    Cdf,
    /// Lines of a measure over an axis. The other axes make the series.
    Measure,
    /// The columns as bars.
    Bars,
    /// Distribution of a measure over the values of an axis or the members of a group; the other
    /// axes make the series.
    Distribution,
    /// The number of paths found usable so far, and the number of paths in use, over time.
    Sets,
}

/// The most series of one figure. The eye cannot distinguish more.
const MAX_SERIES: usize = 12;
/// The most points of one line: more are not seen.
const MAX_POINTS: usize = 600;
/// Seconds over which rates are taken: less shows packets.
const RATE_BIN_SECONDS: f64 = 0.5;
/// Seconds over which rates are taken in a trace, where the reaction to a queue is to be seen.
const TRACE_BIN_SECONDS: f64 = 0.1;
/// Bytes on the wire of the packets that a queue in milliseconds is taken to hold.
const FULL_PACKET_BYTES: f64 = 1500.0;

/// Draws a series over time, or a distribution of request times. Records of one variant differ only
/// in their seed; the first per variant is drawn.
///
/// # Errors
/// If the records have none of the data of the figure.
pub fn draw(spec: &FigureSpec, records: &[Record]) -> Result<String, DrawError> {
    let mut seen: Vec<&Record> = Vec::new();
    for record in records {
        let wanted = spec.at.iter().all(|(axis, label)| label_of(record, axis) == Some(label));
        if wanted && !seen.iter().any(|first| first.axes == record.axes) {
            seen.push(record);
        }
    }
    let several = seen.len() > 1;
    let (mut lines, mut beneath): (Vec<Line>, Vec<Line>) = Default::default();
    for record in seen {
        let suffix = if several { format!(" {}", free_labels(record, spec)) } else { String::new() };
        let named = |line: Line| Line { name: line.name + &suffix, ..line };
        lines.extend(lines_of(spec, record).into_iter().map(named));
        if spec.kind == FigureKind::Trace {
            beneath.extend(queues(spec, record, packet_time).into_iter().map(named));
        }
    }
    lines.truncate(MAX_SERIES);
    if spec.kind == FigureKind::Trace {
        beneath.truncate(MAX_SERIES);
        let panels =
            [Panel { y: "rate (Mbit/s)", lines: &lines }, Panel { y: "queue (ms)", lines: &beneath }];
        return chart::panels(&spec.title, "time (s)", &panels);
    }
    let (x, y) = match spec.kind {
        FigureKind::Goodput => ("time (s)", "goodput (Mbit/s)"),
        FigureKind::Paths => ("time (s)", "rate of the path (Mbit/s)"),
        FigureKind::Window => ("time (s)", "congestion window (packets)"),
        FigureKind::Rtt => ("time (s)", "smoothed RTT (ms)"),
        FigureKind::Queue => ("time (s)", "queue (packets)"),
        FigureKind::Share => ("time (s)", "share of the transfer's bytes"),
        FigureKind::Cdf => ("completion time (s)", "share of requests"),
        FigureKind::Sets => ("time (s)", "paths"),
        FigureKind::Trace | FigureKind::Measure | FigureKind::Bars | FigureKind::Distribution => {
            (spec.x.as_deref().unwrap_or(""), spec.unit.as_str())
        }
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
    let goodput = |bin| {
        let line = move |transfer: &TransferRecord| Line {
            name: transfer.name.clone(),
            points: rates(&transfer.received, record.sample, bin),
        };
        transfers().map(line)
    };
    match spec.kind {
        FigureKind::Goodput => goodput(RATE_BIN_SECONDS).collect(),
        FigureKind::Trace => {
            let requests = record.requests.iter().filter(|requests| wanted(&requests.name, &requests.name));
            let requests = requests.map(|requests| Line {
                name: requests.name.clone(),
                points: rate_of(&requests.list, record.duration, TRACE_BIN_SECONDS),
            });
            goodput(TRACE_BIN_SECONDS).chain(requests).collect()
        }
        FigureKind::Paths => paths(&|path| rates(&path.acked, record.sample, RATE_BIN_SECONDS)),
        FigureKind::Window => {
            paths(&|path| samples(path.window.iter().map(|&value| f64::from(value)), record.sample))
        }
        FigureKind::Rtt => paths(&|path| {
            let known = samples(path.rtt.iter().map(|&value| f64::from(value)), record.sample);
            known.into_iter().filter(|(_, rtt)| *rtt > 0.0).collect()
        }),
        FigureKind::Share => {
            transfers().flat_map(|transfer| shares(&transfer.paths, record.sample)).collect()
        }
        FigureKind::Queue => queues(spec, record, |_| 1.0),
        FigureKind::Cdf => record
            .requests
            .iter()
            .filter(|requests| wanted(&requests.name, &requests.name))
            .map(|requests| {
                let took = requests.list.iter().filter_map(|request| request.took).collect();
                Line { name: requests.name.clone(), points: distribution(took) }
            })
            .collect(),
        FigureKind::Sets => transfers().flat_map(|transfer| sets(transfer, record.sample)).collect(),
        FigureKind::Measure | FigureKind::Bars | FigureKind::Distribution => Vec::new(),
    }
}

/// A line for each link that is wanted: its queue, a packet counting `unit` of the link.
fn queues(spec: &FigureSpec, record: &Record, unit: impl Fn(&LinkRecord) -> f64) -> Vec<Line> {
    let all = record.links.iter().map(|link| (format!("{}>{}", link.from, link.to), link));
    let wanted = all.filter(|(name, _)| spec.of.is_empty() || spec.of.contains(name));
    wanted
        .map(|(name, link)| {
            let unit = unit(link);
            let queue = link.queue.iter().map(|&packets| f64::from(packets) * unit);
            Line { name, points: samples(queue, record.sample) }
        })
        .collect()
}

/// Returns the milliseconds that a full packet takes on a link, at the link's initial rate.
fn packet_time(link: &LinkRecord) -> f64 {
    if link.rate == 0 { 0.0 } else { FULL_PACKET_BYTES * 8e3 / link.rate as f64 }
}

/// Mbit/s of requests over bins of `bin` seconds: a request's bytes come evenly from its
/// beginning to its end.
fn rate_of(requests: &[RequestRecord], duration: f64, bin: f64) -> Vec<(f64, f64)> {
    let mut bits = vec![0.0; libm::ceil(duration / bin).max(0.0) as usize];
    for request in requests {
        let (Some(began), Some(took)) = (request.began, request.took) else { continue };
        let rate = request.size as f64 * 8.0 / took.max(1e-6);
        let (from, until) = (libm::floor(began / bin) as usize, libm::ceil((began + took) / bin) as usize);
        for (index, bits) in bits.iter_mut().enumerate().take(until).skip(from) {
            let [start, end] = [index, index + 1].map(|edge| edge as f64 * bin);
            *bits += rate * (end.min(began + took) - start.max(began)).max(0.0);
        }
    }
    bits.iter().enumerate().map(|(index, bits)| ((index as f64 + 0.5) * bin, bits / bin / 1e6)).collect()
}

/// Returns samples as points, at most [`MAX_POINTS`]. Each point is the mean of its bin.
fn samples(values: impl ExactSizeIterator<Item = f64>, every: f64) -> Vec<(f64, f64)> {
    let bin = values.len().div_ceil(MAX_POINTS).max(1);
    let all: Vec<f64> = values.collect();
    all.chunks(bin)
        .enumerate()
        .map(|(index, chunk)| {
            let middle = (index * bin) as f64 + (chunk.len() - 1) as f64 / 2.0;
            (middle * every, chunk.iter().sum::<f64>() / chunk.len() as f64)
        })
        .collect()
}

/// Mbit/s between samples of cumulative bytes, over bins of at least `least` seconds.
fn rates(cumulative: &[u64], every: f64, least: f64) -> Vec<(f64, f64)> {
    let least = libm::ceil(least / every.max(1e-6)) as usize;
    let bin = cumulative.len().div_ceil(MAX_POINTS).max(least).max(1);
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

/// Returns the number of relays that answered in time so far, and of paths in use. Without data
/// about relays, paths found usable are counted instead.
fn sets(transfer: &TransferRecord, every: f64) -> [Line; 2] {
    let is_told = !transfer.available.is_empty();
    let found = if is_told { &transfer.available } else { &transfer.found };
    let found = found.iter().map(|found| f64::from(*found));
    let used = |at: usize| {
        let open = |path: &&PathRecord| path.window.get(at).is_some_and(|window| *window > 0.0);
        transfer.paths.iter().filter(open).count() as f64
    };
    let used = (0..transfer.found.len()).map(used);
    let line = |name: &str, points| Line { name: format!("{} {name}", transfer.name), points };
    [line("found", samples(found, every)), line("in use", samples(used, every))]
}

/// Returns the share of a transfer's bytes on each path, over bins of at least two seconds.
fn shares(paths: &[PathRecord], every: f64) -> Vec<Line> {
    let rates: Vec<_> = paths.iter().map(|path| rates(&path.acked, every, RATE_BIN_SECONDS)).collect();
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
    let step = values.len().div_ceil(MAX_POINTS).max(1);
    let last = values.len().saturating_sub(1);
    let shown = values.iter().enumerate().filter(|(index, _)| index % step == 0 || *index == last);
    shown.map(|(index, &value)| (value, (index + 1) as f64 / count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RequestsRecord;

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
        let took = |took: f64| RequestRecord { size: 1, began: Some(0.0), took: Some(took), given_up: false };
        Record {
            axes: vec![("n".into(), "1".into())],
            sample: 0.1,
            transfers: vec![transfer],
            requests: vec![RequestsRecord { name: "web".into(), list: vec![took(2.0), took(1.0)] }],
            ..Record::default()
        }
    }

    fn spec(kind: FigureKind) -> FigureSpec {
        FigureSpec {
            title: "T".into(),
            kind,
            of: vec![],
            at: BTreeMap::new(),
            measure: None,
            x: None,
            over: None,
            unit: String::new(),
        }
    }

    #[test]
    fn rates_and_shares_and_distributions() {
        let record = record();
        // 125 000 bytes in 0.1 s.
        let [goodput] = lines_of(&spec(FigureKind::Goodput), &record).try_into().expect("one");
        assert!(goodput.points.iter().all(|point| (point.1 - 10.0).abs() < 1e-9), "{goodput:?}");
        let [direct, relay] = lines_of(&spec(FigureKind::Share), &record).try_into().expect("two");
        assert!(direct.points.iter().all(|point| (point.1 - 0.8).abs() < 1e-9));
        assert!(relay.points.iter().all(|point| (point.1 - 0.2).abs() < 1e-9));
        let [requests] = lines_of(&spec(FigureKind::Cdf), &record).try_into().expect("one");
        assert_eq!(requests.points, [(1.0, 0.5), (2.0, 1.0)]);
    }

    #[test]
    fn a_trace_has_rates_above_and_queues_in_milliseconds_beneath() {
        let mut record = record();
        record.duration = 4.0;
        let queue = vec![5; 100];
        record.links = vec![LinkRecord {
            from: "S".into(),
            to: "D".into(),
            rate: 12_000_000,
            queue,
            ..LinkRecord::default()
        }];
        let [queue] = queues(&spec(FigureKind::Trace), &record, packet_time).try_into().expect("one");
        assert!(queue.points.iter().all(|point| (point.1 - 5.0).abs() < 1e-9), "{queue:?}");
        let lines = lines_of(&spec(FigureKind::Trace), &record);
        assert_eq!(lines.iter().map(|line| line.name.as_str()).collect::<Vec<_>>(), ["t", "web"]);
        let svg = draw(&spec(FigureKind::Trace), &[record]).expect("a figure");
        for text in ["rate (Mbit/s)", "queue (ms)", "S&gt;D"] {
            assert!(svg.contains(text), "{text}");
        }
    }

    #[test]
    fn a_request_is_a_rate_while_it_is_under_way() {
        let one = RequestRecord { size: 10_000, began: Some(0.15), took: Some(0.2), given_up: false };
        let never = RequestRecord { size: 10_000, began: Some(0.1), took: None, given_up: false };
        let rates: Vec<f64> = rate_of(&[one, never], 0.5, 0.1).into_iter().map(|(_, rate)| rate).collect();
        let expected = [0.0, 0.2, 0.4, 0.2, 0.0];
        assert!(
            rates.iter().zip(expected).all(|(rate, expected)| (rate - expected).abs() < 1e-9),
            "{rates:?}"
        );
    }

    #[test]
    fn every_kind_over_time_is_drawn() {
        for kind in
            [FigureKind::Goodput, FigureKind::Paths, FigureKind::Window, FigureKind::Share, FigureKind::Cdf]
        {
            assert!(draw(&spec(kind), &[record()]).expect("a figure").contains("</svg>"));
        }
        let mut none = spec(FigureKind::Goodput);
        none.of = vec!["nobody".into()];
        assert!(draw(&none, &[record()]).is_err());
    }
}
