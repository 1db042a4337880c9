//! Measures of transfers and their paths.

use super::series::{self, RunTimes, Window};
use super::undefined_value::Undefined;
use crate::record::{PathRecord, Record, TransferRecord};
use crate::spelling;
use crate::stats;
use std::collections::BTreeMap;

/// The window of a share or a rate, in seconds, for the functions that find a moment.
const MOMENT_WINDOW_SECONDS: f64 = 10.0;
/// A path that carries less than this part of the bytes is no longer used.
const MIN_USED_SHARE: f64 = 0.01;
/// The window of [`Transfers::usable`], in seconds.
const USABLE_WINDOW_SECONDS: f64 = 20.0;

/// Transfers of one run that a measure combines.
#[derive(Clone, Debug)]
pub(super) struct Transfers<'r> {
    record: &'r Record,
    members: Vec<&'r TransferRecord>,
}

impl<'r> Transfers<'r> {
    /// The transfer or group with this name. Several names are separated by `|`.
    pub(super) fn named(record: &'r Record, name: &str) -> Result<Self, Undefined> {
        let mut members: Vec<&TransferRecord> = Vec::new();
        for name in name.split('|') {
            let before = members.len();
            let exact = record.transfers.iter().filter(|transfer| transfer.name == name);
            members.extend(exact);
            if members.len() == before {
                members.extend(record.transfers.iter().filter(|transfer| transfer.group == name));
            }
            if members.len() == before {
                let names = record.transfers.iter().flat_map(|transfer| [&*transfer.group, &*transfer.name]);
                return Err(Undefined::wrong(spelling::unknown("transfer", name, names)));
            }
        }
        Ok(Self { record, members })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'r str> + '_ {
        self.members.iter().map(|transfer| transfer.name.as_str())
    }

    const fn times(&self) -> RunTimes {
        RunTimes::of(self.record)
    }

    fn sample(&self) -> f64 {
        self.record.sample
    }

    /// Bytes that the applications had in a window.
    fn received(&self, window: Window) -> Result<f64, Undefined> {
        self.members.iter().map(|transfer| self.received_by(transfer, window)).sum()
    }

    fn received_by(&self, transfer: &TransferRecord, window: Window) -> Result<f64, Undefined> {
        series::grown(&transfer.received, self.sample(), window)
    }

    pub(super) fn goodput(&self, window: Window) -> Result<f64, Undefined> {
        Ok(series::megabits(self.received(window)?, window.seconds()))
    }

    /// The goodput of each transfer.
    pub(super) fn goodputs(&self, window: Window) -> Result<Vec<f64>, Undefined> {
        let goodput = |transfer: &&TransferRecord| {
            Ok(series::megabits(self.received_by(transfer, window)?, window.seconds()))
        };
        self.members.iter().map(goodput).collect()
    }

    /// The paths with this name, of all transfers that have one.
    fn paths(&self, name: &str) -> Result<Vec<&'r PathRecord>, Undefined> {
        let all = || self.members.iter().flat_map(|transfer| &transfer.paths);
        let paths: Vec<_> = all().filter(|path| path.name == name).collect();
        if all().next().is_none() {
            return Err(Undefined::no_data("no path was ever open"));
        }
        if paths.is_empty() {
            let names: Vec<&str> = all().map(|path| path.name.as_str()).collect();
            return Err(Undefined::wrong(spelling::unknown("path", name, names)));
        }
        Ok(paths)
    }

    fn acked<'p>(
        &self,
        paths: impl IntoIterator<Item = &'p PathRecord>,
        window: Window,
    ) -> Result<f64, Undefined> {
        paths.into_iter().map(|path| series::grown(&path.acked, self.sample(), window)).sum()
    }

    pub(super) fn path(&self, name: &str, window: Window) -> Result<f64, Undefined> {
        Ok(series::megabits(self.acked(self.paths(name)?, window)?, window.seconds()))
    }

    pub(super) fn share(&self, name: &str, window: Window) -> Result<f64, Undefined> {
        let part = self.acked(self.paths(name)?, window)?;
        let all = self.acked(self.members.iter().flat_map(|transfer| &transfer.paths), window)?;
        if all > 0.0 {
            Ok(part / all)
        } else {
            Err(Undefined::no_data(format!(
                "no path carried anything from second {} to {}",
                window.from, window.to
            )))
        }
    }

    pub(super) fn window(&self, name: &str, window: Window) -> Result<f64, Undefined> {
        let mean = |path: &PathRecord| {
            let windows = series::within(&path.window, self.sample(), window);
            let windows: Vec<f64> = windows.iter().map(|&window| f64::from(window)).collect();
            stats::mean(&windows).ok_or_else(|| no_sample(window))
        };
        self.paths(name)?.into_iter().map(mean).sum()
    }

    pub(super) fn rtt(&self, name: &str, window: Window) -> Result<f64, Undefined> {
        let mut known = Vec::new();
        for path in self.paths(name)? {
            let rtts = series::within(&path.rtt, self.sample(), window);
            known.extend(rtts.iter().filter(|&&rtt| rtt > 0.0).map(|&rtt| f64::from(rtt)));
        }
        stats::mean(&known).ok_or_else(|| {
            let (from, to) = (window.from, window.to);
            Undefined::no_data(format!("path `{name}` knew no RTT from second {from} to {to}"))
        })
    }

    pub(super) fn completion(&self) -> Result<f64, Undefined> {
        let took = |transfer: &&TransferRecord| match (transfer.finished, &transfer.failed) {
            (Some(finished), _) => Ok(finished - transfer.started),
            (None, Some(why)) => {
                Err(Undefined::no_data(format!("transfer `{}` failed: {why}", transfer.name)))
            }
            (None, None) => Err(Undefined::no_data(format!(
                "transfer `{}` did not finish within {} s",
                transfer.name, self.record.duration
            ))),
        };
        let times = self.members.iter().map(took).collect::<Result<Vec<_>, _>>()?;
        stats::mean(&times).ok_or_else(|| Undefined::wrong("times that are no numbers"))
    }

    /// Returns the ten seconds before every sample, or fewer at the beginning.
    fn tens(&self) -> impl Iterator<Item = Window> + use<> {
        let (end, sample) = (self.times().end(), self.sample());
        let samples = libm::floor(end / sample + 1e-6) as u64;
        (1..=samples).map(move |at| {
            let to = (at as f64 * sample).min(end);
            Window { from: (to - MOMENT_WINDOW_SECONDS).max(0.0), to }
        })
    }

    pub(super) fn dropped_at(&self, name: &str) -> Result<f64, Undefined> {
        self.paths(name)?;
        let mut dropped = None;
        let mut carried = false;
        for ten in self.tens() {
            // Where nothing at all is carried nobody can tell.
            let Ok(share) = self.share(name, ten) else { continue };
            carried = true;
            if share >= MIN_USED_SHARE {
                dropped = None;
            } else if dropped.is_none() {
                dropped = Some(ten.to);
            }
        }
        if carried {
            Ok(dropped.unwrap_or_else(|| self.times().end()))
        } else {
            Err(Undefined::no_data("no path carried anything in the whole run"))
        }
    }

    pub(super) fn deviation(&self, window: Window) -> Result<f64, Undefined> {
        let bins = series::parts(window, 1.0).map(|bin| self.goodput(bin)).collect::<Result<Vec<_>, _>>()?;
        stats::standard_deviation(&bins)
            .ok_or_else(|| Undefined::wrong("a deviation needs two seconds or more"))
    }

    pub(super) fn settles(&self, part: f64, last: Option<f64>) -> Result<f64, Undefined> {
        let end = self.times().end();
        let last = Window::of(self.times(), Some(end - last.unwrap_or(end / 4.0)), Some(end))?;
        let wanted = part * self.goodput(last)?;
        let mut since = None;
        for ten in self.tens() {
            // A rounding in the mean of a constant is no fall.
            if self.goodput(ten)? < wanted * (1.0 - 1e-9) {
                since = None;
            } else if since.is_none() {
                since = Some(ten.to);
            }
        }
        since.ok_or_else(|| {
            let seconds = last.seconds();
            Undefined::no_data(format!(
                "goodput does not stay at {part} times its mean over the last {seconds} s"
            ))
        })
    }

    pub(super) fn reaches(&self, rate: f64, from: Option<f64>) -> Result<f64, Undefined> {
        let from = Window::of(self.times(), Some(from.unwrap_or(0.0)), None)?.from;
        let (end, sample) = (self.times().end(), self.sample());
        let samples = libm::floor(end / sample + 1e-6) as u64;
        let first = libm::ceil((from + 1.0) / sample - 1e-6) as u64;
        for at in first..=samples {
            let to = (at as f64 * sample).min(end);
            if self.goodput(Window { from: to - 1.0, to })? >= rate * (1.0 - 1e-9) {
                return Ok(to - from);
            }
        }
        Err(Undefined::no_data(format!("goodput reaches no {rate} Mbit/s after second {from}")))
    }

    pub(super) fn fairness(&self, window: Window) -> Result<f64, Undefined> {
        stats::jain(&self.goodputs(window)?).ok_or_else(|| {
            let (from, to) = (window.from, window.to);
            Undefined::no_data(format!("nobody received anything from second {from} to {to}"))
        })
    }

    pub(super) fn fairness_worst(&self, seconds: f64, window: Window) -> Result<f64, Undefined> {
        if seconds.partial_cmp(&self.sample()).is_none_or(core::cmp::Ordering::is_lt) {
            let sample = self.sample();
            return Err(Undefined::wrong(format!("windows of {seconds} s: expected at least {sample} s")));
        }
        let parts = series::parts(window, seconds).map(|part| self.fairness(part));
        let indices = parts.collect::<Result<Vec<_>, _>>()?;
        let wrong = || Undefined::wrong(format!("no {seconds} s fit between the seconds given"));
        indices.into_iter().reduce(f64::min).ok_or_else(wrong)
    }

    pub(super) fn below(&self, rate: f64, window: Window) -> Result<f64, Undefined> {
        let goodputs = self.goodputs(window)?;
        let below = goodputs.iter().filter(|&&goodput| goodput < rate).count();
        Ok(below as f64 / goodputs.len() as f64)
    }

    pub(super) fn losses(&self) -> Result<f64, Undefined> {
        let lost = |transfer: &&TransferRecord| {
            let untold = || format!("transfer `{}` did not tell what it lost", transfer.name);
            transfer.lost.map(|lost| lost as f64).ok_or_else(|| Undefined::no_data(untold()))
        };
        self.members.iter().map(lost).sum()
    }

    /// The most bytes held out of order, in KB.
    pub(super) fn reorder(&self) -> f64 {
        self.members.iter().map(|transfer| transfer.reorder as f64 / 1e3).fold(0.0, f64::max)
    }

    /// The percentile of the waits of frames for bytes before them, in whole milliseconds. Waits
    /// are rounded down.
    pub(super) fn order_wait(&self, percent: f64) -> Result<f64, Undefined> {
        let mut counts = BTreeMap::new();
        for (millis, frames) in self.members.iter().flat_map(|transfer| &transfer.order_waits) {
            *counts.entry(*millis).or_insert(0) += frames;
        }
        let needed = percent / 100.0 * counts.values().sum::<u64>() as f64;
        let mut passed = 0;
        let reached = counts.iter().find(|(_, frames)| {
            passed += **frames;
            passed as f64 >= needed
        });
        let none = || Undefined::no_data("no frame of a stream was noted");
        reached.map(|(millis, _)| *millis as f64).ok_or_else(none)
    }

    pub(super) fn opened(&self, by: Option<f64>) -> Result<f64, Undefined> {
        let opened = |transfer: &&TransferRecord| {
            let Some(by) = by else { return Ok(transfer.opened as f64) };
            self.count_by(&transfer.found, by)
        };
        let opened = self.members.iter().map(opened).collect::<Result<Vec<_>, _>>()?;
        Ok(opened.iter().sum::<f64>() / self.members.len() as f64)
    }

    /// The number of relays that answered a probe in time, by second `by` or at the end.
    pub(super) fn available(&self, by: Option<f64>) -> Result<f64, Undefined> {
        let available = |transfer: &&TransferRecord| {
            let Some(last) = transfer.available.last() else {
                let untold = || format!("transfer `{}` did not tell which relays answer", transfer.name);
                return Err(Undefined::no_data(untold()));
            };
            by.map_or(Ok(f64::from(*last)), |by| self.count_by(&transfer.available, by))
        };
        let available = self.members.iter().map(available).collect::<Result<Vec<_>, _>>()?;
        Ok(available.iter().sum::<f64>() / self.members.len() as f64)
    }

    /// Returns a count, which is recorded at each sample, as it was at second `by`.
    fn count_by(&self, counts: &[u32], by: f64) -> Result<f64, Undefined> {
        let count = counts.get(libm::floor(by / self.sample() + 1e-6) as usize);
        let none = || Undefined::no_data(format!("nothing was noted of the paths found by second {by}"));
        count.map(|count| f64::from(*count)).ok_or_else(none)
    }

    pub(super) fn abroad(&self) -> Result<f64, Undefined> {
        let abroad = self.members.iter().map(|transfer| transfer.abroad).collect::<Option<Vec<bool>>>();
        let abroad = abroad.ok_or_else(|| Undefined::no_data("this network knows of no continents"))?;
        Ok(abroad.iter().filter(|abroad| **abroad).count() as f64 / self.members.len() as f64)
    }

    pub(super) fn base_rtt(&self) -> f64 {
        self.members.iter().map(|transfer| transfer.base_rtt).sum::<f64>() / self.members.len() as f64
    }

    pub(super) fn usable(&self, from: Option<f64>, to: Option<f64>) -> Result<f64, Undefined> {
        let end = self.times().end();
        let window = Window::of(
            self.times(),
            from.or(Some((end - USABLE_WINDOW_SECONDS).max(0.0))),
            to.or(Some(end)),
        )?;
        let mut used = 0;
        for transfer in &self.members {
            let all = self.acked(&transfer.paths, window)?;
            if all <= 0.0 {
                let what = format!(
                    "transfer `{}` carried nothing from second {} to {}",
                    transfer.name, window.from, window.to
                );
                return Err(Undefined::no_data(what));
            }
            for path in &transfer.paths {
                used += usize::from(self.acked([path], window)? >= MIN_USED_SHARE * all);
            }
        }
        Ok(used as f64 / self.members.len() as f64)
    }
}

fn no_sample(window: Window) -> Undefined {
    Undefined::no_data(format!("no sample lies between the seconds {} and {}", window.from, window.to))
}
