//! The figures of a scene: pure functions of its record, and of the record of the foreground alone.

use super::grid::{Foreground, Scene};
use super::times::SceneTimes;
use super::transfer_mix::TransferMix;
use super::world::{BACKGROUND_NAME, CALL_BYTES, DIRECT_LINKS, FOREGROUND_NAME, LAST_NAME, rates};
use crate::record::{Record, RequestsRecord, TransferRecord};
use crate::utilization::{between, filled_after};
use crate::{request_times, stats};
use serde::{Deserialize, Serialize};

/// Seconds by which a call's packet may be late: two packets, as much as phones hold back.
const LATE_SECONDS: f64 = 0.04;
/// The window in seconds for which the least share of a transfer is measured.
const STARVATION_SECONDS: f64 = 10.0;
/// Seconds at the beginning in which a transfer may starve.
const WARM_UP_SECONDS: f64 = 5.0;

/// The figures of a scene. `None`: the figure makes no sense in the scene.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The median of the times that the foreground waits, each divided by the same time alone.
    /// `None` for a foreground that waits: infinite.
    pub median: Option<f64>,
    /// The 90th percentile of the times that the foreground waits, each divided by the same time
    /// alone.
    pub p90: Option<f64>,
    /// The part of a call's packets that are lost, or later than alone by more than 40 ms.
    #[serde(default)]
    pub late: Option<f64>,
    /// The share of the line's free capacity that the background transfers use, until the last
    /// request is answered. Free capacity excludes what other traffic, such as requests, takes
    /// without the transfers. Headers do not count, so a full line gives about 0.96.
    pub share: Option<f64>,
    /// Only if the transfers share the line with no other traffic: seconds from the start until the
    /// transfers have filled the line for one second. `None`: they never did, or there is other
    /// traffic.
    pub fill: Option<f64>,
    /// Jain's index of the transfers' bytes, in the first half of the time in which all are active.
    pub jain_first: Option<f64>,
    /// Jain's index of the transfers' bytes in the second half of that time.
    pub jain: Option<f64>,
    /// The least that any transfer got in any ten seconds, as a multiple of an equal share of the
    /// line: 1 is an equal share. Ten-second windows that begin in the first five seconds do not
    /// count.
    pub least: Option<f64>,
    /// Bytes of a transfer over several paths, divided by bytes of a transfer over the direct path
    /// only. The two transfers run at the same time or in two simulations, as the test case says.
    #[serde(default)]
    pub of_one: Option<f64>,
    /// Bytes of a foreground bulk flow, divided by its bytes without the transfers.
    pub keeps: Option<f64>,
    /// Seconds from the end of a competing bulk flow until the line was full for one second.
    /// `None`: it never was, or there is no such flow.
    pub regain: Option<f64>,
}

/// Returns the figures of `beside`. `alone` is the run to compare with: the same foreground without
/// transfers, or one path.
#[must_use]
pub fn figures(scene: &Scene, alone: Option<&Record>, beside: &Record) -> Figures {
    let times = scene.times();
    let line = Capacity::of(scene, &times);
    let (begin, end) = (seconds(times.begin), seconds(times.end));
    let transfers: Vec<&TransferRecord> = background(beside).collect();
    let sent = sent(beside);
    let mut figures = Figures::default();
    if scene.foreground.waits() {
        let ratios = alone.map(|alone| ratios(scene.foreground, alone, beside)).unwrap_or_default();
        let percentile = |percent| {
            request_times::percentile(ratios.iter().copied(), percent).filter(|ratio| ratio.is_finite())
        };
        (figures.median, figures.p90) = (percentile(50.0), percentile(90.0));
    }
    if scene.foreground == Foreground::Call {
        figures.late = alone.and_then(|alone| late(alone, beside));
    }
    if scene.foreground.is_bulk() {
        figures.keeps = alone.and_then(|alone| {
            let had = |record| -> u64 {
                group(record, FOREGROUND_NAME)
                    .map(|flow| between(&flow.received, record.sample, begin, end))
                    .sum()
            };
            Some(had(beside) as f64 / had(alone) as f64).filter(|keeps| keeps.is_finite())
        });
        figures.regain = filled_after(&sent, beside.sample, end, |from, to| line.bytes(from, to));
    } else {
        // Until the last has what it asked for: transfers that hold them up have to let them have
        // it later.
        let end = last(beside).unwrap_or(end);
        let needed = match scene.foreground {
            Foreground::Nobody => 0.0,
            Foreground::Call => f64::from(CALL_BYTES * times.count),
            _ => alone
                .map_or(0.0, |alone| between(&self::sent(alone), alone.sample, begin, f64::INFINITY) as f64),
        };
        let left = line.bytes(begin, end) - needed;
        let came: u64 =
            transfers.iter().map(|transfer| between(&transfer.received, beside.sample, begin, end)).sum();
        figures.share = (left > 0.0).then(|| came as f64 / left);
    }
    let came = |transfers: &mut dyn Iterator<Item = &TransferRecord>| -> f64 {
        transfers.map(|transfer| between(&transfer.received, beside.sample, begin, end) as f64).sum()
    };
    let one = match scene.among {
        TransferMix::Single => Some(came(&mut group(beside, LAST_NAME))),
        _ if scene.instead_of_one_path() => alone.map(|alone| came(&mut background(alone))),
        _ => None,
    };
    figures.of_one =
        one.map(|one| came(&mut group(beside, BACKGROUND_NAME)) / one).filter(|of_one| of_one.is_finite());
    if scene.foreground == Foreground::Nobody {
        figures.fill = filled_after(&sent, beside.sample, 0.0, |from, to| line.bytes(from, to));
        if transfers.len() > 1 {
            let had = |from, to| -> Vec<f64> {
                transfers
                    .iter()
                    .map(|transfer| between(&transfer.received, beside.sample, from, to) as f64)
                    .collect()
            };
            let middle = f64::midpoint(begin, end);
            figures.jain_first = stats::jain(&had(begin, middle));
            figures.jain = stats::jain(&had(middle, end));
            let fair = |from: f64| line.bytes(from, from + STARVATION_SECONDS) / transfers.len() as f64;
            figures.least = ((begin + WARM_UP_SECONDS) as u32..=(end - STARVATION_SECONDS) as u32)
                .map(f64::from)
                .filter_map(|from| {
                    let least = had(from, from + STARVATION_SECONDS).into_iter().min_by(f64::total_cmp)?;
                    Some(least / fair(from))
                })
                .min_by(f64::total_cmp);
        }
    }
    figures
}

fn seconds(milliseconds: u32) -> f64 {
    f64::from(milliseconds) / 1e3
}

fn group<'a>(record: &'a Record, name: &'a str) -> impl Iterator<Item = &'a TransferRecord> {
    record.transfers.iter().filter(move |transfer| transfer.group == name)
}

/// The records of all background transfers.
fn background(record: &Record) -> impl Iterator<Item = &TransferRecord> {
    group(record, BACKGROUND_NAME).chain(group(record, LAST_NAME))
}

/// Returns the time of the last reply, or of the end if a reply is missing.
fn last(record: &Record) -> Option<f64> {
    let ends = record.requests.iter().flat_map(|requests| &requests.list).map(|request| {
        match (request.began, request.took) {
            (Some(began), Some(took)) => began + took,
            _ => record.duration,
        }
    });
    ends.max_by(f64::total_cmp)
}

/// Each time over the same time alone.
fn ratios(foreground: Foreground, alone: &Record, beside: &Record) -> Vec<Option<f64>> {
    let over = |(here, there): (Option<f64>, Option<f64>)| {
        let there = there.filter(|&there| there > 0.0)?;
        Some(here.map(|here| here / there))
    };
    match foreground {
        Foreground::Call => delays(beside).zip(delays(alone)).filter_map(over).collect(),
        Foreground::Page => {
            let pages = beside.requests.iter().map(page).zip(alone.requests.iter().map(page));
            pages.filter_map(over).collect()
        }
        _ => {
            let lists = beside.requests.iter().zip(&alone.requests);
            lists.flat_map(|(here, there)| request_times::ratios(&here.list, &there.list)).collect()
        }
    }
}

/// Returns the seconds from the first request for an object to the last reply. `None`: a reply is
/// missing.
fn page(objects: &RequestsRecord) -> Option<f64> {
    let began = objects.list.iter().filter_map(|object| object.began).min_by(f64::total_cmp)?;
    let came = objects.list.iter().map(|object| Some(object.began? + object.took?));
    let came: Option<Vec<f64>> = came.collect();
    Some(came?.into_iter().max_by(f64::total_cmp)? - began)
}

/// The one-way delay of each packet of a call.
fn delays(record: &Record) -> impl Iterator<Item = Option<f64>> {
    record.cross.iter().flat_map(|call| call.delays.iter().copied())
}

/// The part of a call's packets that are lost, or later than alone by more than [`LATE_SECONDS`].
fn late(alone: &Record, beside: &Record) -> Option<f64> {
    let pairs: Vec<_> = delays(beside).zip(delays(alone)).collect();
    let late = |(here, there): &&(Option<f64>, Option<f64>)| {
        here.is_none_or(|here| there.is_some_and(|there| here > there + LATE_SECONDS))
    };
    (!pairs.is_empty()).then(|| pairs.iter().filter(late).count() as f64 / pairs.len() as f64)
}

/// Returns the bytes that all lines carried towards the receivers, by sample.
fn sent(record: &Record) -> Vec<u64> {
    let mut all: Vec<u64> = Vec::new();
    let lines = record.links.iter().filter(|link| {
        link.rate > 0 && DIRECT_LINKS.iter().any(|(from, to)| link.from == *from && link.to == *to)
    });
    for line in lines {
        all.resize(line.sent.len(), 0);
        all.iter_mut().zip(&line.sent).for_each(|(all, sent)| *all += sent);
    }
    all
}

/// The capacity of a scene's lines.
struct Capacity {
    /// The rate in bytes per second, with the second from which it applies.
    rates: Vec<(f64, f64)>,
}

impl Capacity {
    fn of(scene: &Scene, times: &SceneTimes) -> Self {
        let lines = f64::from(scene.line.paths.lines());
        let rates = rates(&scene.line, times.stop);
        Self { rates: rates.into_iter().map(|(at, rate)| (seconds(at), rate as f64 / 8.0 * lines)).collect() }
    }

    fn bytes(&self, from: f64, to: f64) -> f64 {
        let ends = self.rates.iter().skip(1).map(|(at, _)| *at).chain([f64::INFINITY]);
        let spans = self.rates.iter().zip(ends);
        spans.map(|((begin, rate), end)| rate * (to.min(end) - from.max(*begin)).max(0.0)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::grid::{Bottleneck, Foreground, GRID_LINES, Paths, RateProfile};
    use super::*;
    use crate::record::{CrossRecord, LinkRecord, RequestRecord};

    /// 8 Mbit/s: a million bytes a second.
    fn scene(foreground: Foreground, transfers: u32) -> Scene {
        let plain = GRID_LINES.iter().copied().find(Bottleneck::is_plain).expect("a plain line");
        let line = Bottleneck { mbit: 8, rtt_ms: 20, queue: 20, ..plain };
        Scene { line, foreground, transfers, among: TransferMix::Alike }
    }

    /// A record of `seconds` seconds. Each entry of `transfers` is a transfer's group, and a
    /// function: the bytes received in the n-th tenth of a second. `line` gives the bytes that the
    /// line carries.
    fn record(seconds: u64, transfers: &[(&str, &dyn Fn(u64) -> u64)], line: &dyn Fn(u64) -> u64) -> Record {
        let sum = |rate: &dyn Fn(u64) -> u64| -> Vec<u64> {
            let mut all = 0;
            let mut series = vec![0];
            series.extend((0..seconds * 10).map(|tenth| {
                all += rate(tenth);
                all
            }));
            series
        };
        let link = |from: &str, to: &str, rate| LinkRecord {
            from: from.into(),
            to: to.into(),
            rate,
            sent: sum(line),
            ..LinkRecord::default()
        };
        Record {
            sample: 0.1,
            duration: seconds as f64,
            transfers: transfers
                .iter()
                .map(|(group, rate)| TransferRecord {
                    group: (*group).into(),
                    received: sum(*rate),
                    ..TransferRecord::default()
                })
                .collect(),
            // The way back and lines without a rate do not count.
            links: vec![
                link("near", "far", 8_000_000),
                link("far", "near", 8_000_000),
                link("far", "relay", 0),
            ],
            ..Record::default()
        }
    }

    fn near(value: Option<f64>, expected: f64) {
        assert!(value.is_some_and(|value| (value - expected).abs() < 1e-6), "{value:?}, not {expected}");
    }

    #[test]
    fn transfers_alone_are_told_by_how_soon_how_much_and_how_evenly() {
        let scene = scene(Foreground::Nobody, 2);
        let seconds = u64::from(scene.times().stop) / 1000;
        assert_eq!(seconds, 120);
        // The line is empty for two seconds, then one has three times what the other has; in the
        // second half they are even.
        let one = |tenth| match tenth {
            0..20 => 0,
            20..600 => 60_000,
            _ => 40_000,
        };
        let other = |tenth| match tenth {
            0..20 => 0,
            20..600 => 20_000,
            _ => 40_000,
        };
        let line = |tenth| if tenth < 20 { 0 } else { 100_000 };
        let figures = figures(
            &scene,
            None,
            &record(seconds, &[(BACKGROUND_NAME, &one), (BACKGROUND_NAME, &other)], &line),
        );
        near(figures.share, 0.8 * 118.0 / 120.0);
        near(figures.fill, 2.9);
        near(figures.jain_first, 16.0 / 20.0);
        near(figures.jain, 1.0);
        // From the fifth second on: a fifth of the line, where half is fair.
        near(figures.least, 0.4);
        assert_eq!((figures.median, figures.keeps, figures.regain), (None, None, None));
    }

    #[test]
    fn a_latecomer_counts_from_its_beginning() {
        let scene = Scene { among: TransferMix::Late, ..scene(Foreground::Nobody, 2) };
        let (begin, seconds) = (u64::from(scene.times().begin) / 100, u64::from(scene.times().stop) / 1000);
        assert_eq!((begin, seconds), (200, 140));
        let first = |tenth| if tenth < begin { 90_000 } else { 60_000 };
        let last = |tenth| if tenth < begin { 0 } else { 20_000 };
        let figures = figures(
            &scene,
            None,
            &record(seconds, &[(BACKGROUND_NAME, &first), (LAST_NAME, &last)], &|_| 90_000),
        );
        near(figures.jain_first, 0.8);
        near(figures.jain, 0.8);
        near(figures.least, 0.4);
        near(figures.share, 0.8);
        assert_eq!(figures.of_one, None);
    }

    #[test]
    fn several_paths_are_told_by_what_one_has() {
        let nobody = scene(Foreground::Nobody, 2);
        let line = Bottleneck { paths: Paths::ThreeOverOne, ..nobody.line };
        let beside = Scene { line, among: TransferMix::Single, ..nobody };
        let seconds = u64::from(beside.times().stop) / 1000;
        let of = |bytes: u64| move |_| bytes;
        let both = record(seconds, &[(BACKGROUND_NAME, &of(60_000)), (LAST_NAME, &of(40_000))], &|_| 100_000);
        near(figures(&beside, None, &both).of_one, 1.5);
        let instead = Scene { line, transfers: 1, ..nobody };
        let alone = |bytes: u64| record(seconds, &[(BACKGROUND_NAME, &of(bytes))], &|_| 100_000);
        let found = figures(&instead, Some(&alone(96_000)), &alone(84_000));
        near(found.of_one, 0.875);
        near(found.share, 0.84);
        assert_eq!(figures(&instead, Some(&alone(0)), &alone(84_000)).of_one, None);
    }

    #[test]
    fn a_bulk_flow_is_told_by_what_it_keeps_and_how_soon_it_is_over() {
        let scene = scene(Foreground::Cubic, 1);
        let times = scene.times();
        let (begin, end) = (u64::from(times.begin) / 100, u64::from(times.end) / 100);
        let seconds = u64::from(times.stop) / 1000;
        let flow = |had: u64| move |tenth: u64| if (begin..end).contains(&tenth) { had } else { 0 };
        let (had, keeps) = (flow(90_000), flow(60_000));
        // The line is half full until three seconds after the flow.
        let line = |tenth| if (end..end + 30).contains(&tenth) { 50_000 } else { 100_000 };
        let alone = record(seconds, &[(FOREGROUND_NAME, &had)], &had);
        let beside = record(seconds, &[(FOREGROUND_NAME, &keeps), (BACKGROUND_NAME, &|_| 30_000)], &line);
        let figures = figures(&scene, Some(&alone), &beside);
        near(figures.keeps, 2.0 / 3.0);
        near(figures.regain, 3.8);
        assert_eq!((figures.share, figures.fill, figures.median), (None, None, None));
    }

    #[test]
    fn requests_are_told_by_what_they_wait_for_and_what_they_leave() {
        let scene = scene(Foreground::Requests, 1);
        let times = scene.times();
        let (begin, seconds) = (seconds(times.begin), u64::from(times.stop) / 1000);
        let list = |took: [Option<f64>; 4]| {
            let request = |(number, took)| RequestRecord {
                size: 20_000,
                began: Some(begin + 10.0 * number as f64),
                took,
                given_up: false,
            };
            vec![RequestsRecord {
                list: took.into_iter().enumerate().map(request).collect(),
                ..RequestsRecord::default()
            }]
        };
        // Alone they take a tenth of the line.
        let asked = |tenth: u64| if tenth >= u64::from(times.begin) / 100 { 10_000 } else { 0 };
        let alone = Record { requests: list([Some(0.1); 4]), ..record(seconds, &[], &asked) };
        let beside = |took| Record {
            requests: list(took),
            ..record(seconds, &[(BACKGROUND_NAME, &|_| 60_000)], &|_| 100_000)
        };
        let found = figures(&scene, Some(&alone), &beside([Some(0.1), Some(0.12), Some(0.2), Some(2.0)]));
        near(found.median, 1.2);
        near(found.p90, 20.0);
        // The last came 32 seconds after the first was asked for.
        let needed = 0.1 * (seconds as f64 - begin);
        near(found.share, 0.6 * 32.0 / (32.0 - needed));
        let never = figures(&scene, Some(&alone), &beside([Some(0.1), None, Some(0.2), None]));
        assert_eq!((never.median.is_some(), never.p90), (true, None), "infinite");
        near(never.share, 0.6 * (seconds as f64 - begin) / (seconds as f64 - begin - needed));
    }

    #[test]
    fn a_page_is_as_slow_as_its_last_object_and_a_call_as_late_as_each_packet() {
        let page = |objects: [(f64, Option<f64>); 2]| RequestsRecord {
            list: objects
                .map(|(began, took)| RequestRecord { size: 1, began: Some(began), took, given_up: false })
                .to_vec(),
            ..RequestsRecord::default()
        };
        let pages = |second| Record {
            requests: vec![
                page([(1.0, Some(0.5)), (1.5, Some(0.5))]),
                page([(3.0, Some(0.2)), (3.0, second)]),
            ],
            ..Record::default()
        };
        let rounded = |ratios: Vec<Option<f64>>| -> Vec<Option<f64>> {
            ratios.into_iter().map(|ratio| ratio.map(|ratio| libm::round(ratio * 100.0) / 100.0)).collect()
        };
        let (alone, beside) = (pages(Some(0.4)), pages(Some(0.8)));
        assert_eq!(rounded(ratios(Foreground::Page, &alone, &beside)), [Some(1.0), Some(2.0)]);
        assert_eq!(rounded(ratios(Foreground::Page, &alone, &pages(None))), [Some(1.0), None]);
        let call = |delays: [Option<f64>; 4]| Record {
            cross: vec![CrossRecord { delays: delays.to_vec(), ..CrossRecord::default() }],
            ..Record::default()
        };
        let alone = call([Some(0.01); 4]);
        let beside = call([Some(0.01), Some(0.03), Some(0.06), None]);
        let found = rounded(ratios(Foreground::Call, &alone, &beside));
        assert_eq!(found, [Some(1.0), Some(3.0), Some(6.0), None]);
        assert_eq!(late(&alone, &beside), Some(0.5));
    }

    #[test]
    fn what_a_line_can_carry_follows_its_rate() {
        let steady = scene(Foreground::Nobody, 1);
        let two = Scene { line: Bottleneck { paths: Paths::TwoOverTwo, ..steady.line }, ..steady };
        let capacity = |scene: &Scene| Capacity::of(scene, &scene.times());
        assert_eq!((capacity(&steady).bytes(2.0, 4.5), capacity(&two).bytes(2.0, 4.5)), (2.5e6, 5e6));
        for course in [RateProfile::Wifi, RateProfile::Lte] {
            let scene = Scene { line: Bottleneck { course, ..steady.line }, ..steady };
            let of = capacity(&scene);
            let part = of.bytes(0.0, 20.0) / 20e6;
            assert!((0.3..0.9).contains(&part), "{part}");
            assert!((of.bytes(1.0, 2.05) + of.bytes(2.05, 3.0) - of.bytes(1.0, 3.0)).abs() < 1e-3);
        }
    }
}
