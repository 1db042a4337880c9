//! Measures how much longer requests take beside bulk transfers (of byway or of the kernel's TCP)
//! than alone, over an emulated link or in the simulator. The answers cross the link in the same
//! direction as the bulk data.

mod figures;
mod world;

pub use figures::Bounds;
pub use world::AccessLink;

use crate::emulation::{self, RunContext};
use crate::error::{About as _, Error, OrFailed as _, Result};
use byway_lab::Record;
use figures::{Figures, figures};
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use world::Rival;

/// The settings of a measurement of harm.
#[derive(Clone, Debug)]
pub struct HarmOptions {
    /// The names of the bulk senders.
    pub against: Vec<String>,
    /// The numbers of simultaneous transfers. Each number is a run.
    pub bulk: Vec<u32>,
    /// Number of requests.
    pub requests: u32,
    /// Packets that wait before the link; each number is a series of runs.
    pub queue: Vec<u32>,
    /// The rate of the link in Mbit/s.
    pub rate: u32,
    /// The line's round-trip time in milliseconds.
    pub rtt: u32,
    /// The seed of the random times at which requests begin.
    pub seed: u64,
    /// In the simulator instead.
    pub simulated: bool,
    /// The file for samples, as JSON lines.
    pub trace: Option<PathBuf>,
}

/// An event while harm is measured.
#[derive(Clone, Copy, Debug)]
pub enum HarmEvent<'a> {
    /// The measurement begins. The fields tell how many runs it has, and how long they take.
    Begins {
        /// The number of runs, including those without transfers.
        runs: usize,
        /// Minutes, where time passes.
        minutes: u32,
    },
    /// A run with this name begins.
    Run(&'a str),
    /// Something is missing, or not to be trusted.
    Warning(&'a str),
    /// A run has ended, with this result.
    Row(&'a HarmRow),
    /// All runs on a link have ended, with these results.
    Rows(AccessLink, &'a [HarmRow]),
}

/// The times of requests beside bulk transfers, and the bytes of the transfers. Ratios compare each
/// request with itself alone.
#[derive(Clone, Debug, Serialize)]
pub struct HarmRow {
    /// The program and class of the transfers.
    pub against: String,
    /// Number of simultaneous transfers.
    pub bulk: u32,
    /// Packets of queue before the link.
    pub queue: u32,
    /// The link's rate in bits per second.
    pub rate_bps: u64,
    /// The link's round-trip time, milliseconds.
    pub rtt_ms: u32,
    /// Number of requests made.
    pub requests: usize,
    /// Number of requests that finished.
    pub finished: usize,
    /// Median completion time alone.
    pub alone_median_seconds: f64,
    /// Ninetieth percentile of completion times alone.
    pub alone_p90_seconds: f64,
    /// Median completion time beside the transfers; a request that did not finish counts as
    /// endless, which is null.
    pub median_seconds: Option<f64>,
    /// The 90th percentile of these times.
    pub p90_seconds: Option<f64>,
    /// The median of the requests' times, each divided by its time alone.
    pub median: Option<f64>,
    /// Ninetieth percentile of ratios.
    pub p90: Option<f64>,
    /// File bytes delivered from the first request to the end of the last, as a share of the
    /// capacity that the requests left.
    pub share: Option<f64>,
    /// Seconds from the end of the last request until the transfers had 90 % of the link for a
    /// second; null: they never had.
    pub regain_seconds: Option<f64>,
    /// Whether the machine was not too busy, neither now nor for the requests alone.
    pub accurate: bool,
    /// Whether byway stayed within its bounds.
    pub verdict: HarmVerdict,
    /// The bounds that do not hold.
    pub missed: Vec<&'static str>,
}

/// The verdict on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum HarmVerdict {
    /// byway, which held every bound.
    #[serde(rename = "pass")]
    Pass,
    /// byway, which did not.
    #[serde(rename = "fail")]
    Fail,
    /// byway, on a machine that was too busy to judge.
    #[serde(rename = "inaccurate")]
    Inaccurate,
    /// The run is shown without a verdict, because it is not byway's background class.
    #[serde(rename = "-")]
    Shown,
}

/// Runs that can begin.
#[derive(Clone, Debug)]
pub struct Prepared {
    options: HarmOptions,
    rivals: Vec<(String, Rival)>,
}

/// The result of a run that has ended.
struct HarmRun {
    record: Record,
    accurate: bool,
}

/// Checks that this machine can measure everything in `options`, so that a missing program is found
/// before the first measurement. `tell` gets warnings about omitted parts.
///
/// # Errors
/// A name is unknown, something is missing, or `tell` failed.
pub fn prepare(
    options: HarmOptions,
    mut tell: impl FnMut(HarmEvent<'_>) -> io::Result<()>,
) -> Result<Prepared> {
    let mut rivals = Vec::new();
    for name in &options.against {
        let rival = Rival::named(name).map_err(Error::Usage)?;
        if rival == Rival::Tcp("ledbat".to_owned()) && !options.simulated && !emulation::has_ledbat() {
            tell(HarmEvent::Warning(
                "ledbat is left out: no python3 here has libtorrent (python3-libtorrent)",
            ))?;
        } else {
            rivals.push((name.clone(), rival));
        }
    }
    for &queue in options.queue.iter().filter(|_| !options.simulated) {
        for (name, rival) in &rivals {
            let text = world::plan(options.link(queue), options.requests, Some((rival, 1)))?;
            emulation::possible(&world::setup(name, &text)?)?;
        }
    }
    Ok(Prepared { options, rivals })
}

impl HarmOptions {
    const fn link(&self, queue: u32) -> AccessLink {
        AccessLink { mbit: self.rate, rtt_ms: self.rtt, queue }
    }
}

impl Prepared {
    /// Runs the measurements one after another, because they share the machine. Once `cancel` is
    /// set, this function returns soon, with the rows so far. `program` is the path of byway.
    ///
    /// # Errors
    /// A program failed, or `tell` failed.
    pub fn run(
        &self,
        program: &Path,
        cancel: &AtomicBool,
        mut tell: impl FnMut(HarmEvent<'_>) -> io::Result<()>,
    ) -> Result<Vec<HarmRow>> {
        let options = &self.options;
        let runs = options.queue.len() * (1 + self.rivals.len() * options.bulk.len());
        let minutes = (runs as u32 * (world::seconds(options.requests) + 2)).div_ceil(60);
        tell(HarmEvent::Begins { runs, minutes })?;
        let mut all: Vec<HarmRow> = Vec::new();
        for &queue in &options.queue {
            let link = options.link(queue);
            let Some(alone) = self.one(link, None, program, cancel, &mut tell)? else { return Ok(all) };
            let mut rows: Vec<HarmRow> = Vec::new();
            for (name, rival) in &self.rivals {
                for &bulk in &options.bulk {
                    let beside = Some((name.as_str(), rival, bulk));
                    let Some(beside) = self.one(link, beside, program, cancel, &mut tell)? else {
                        return Ok(all);
                    };
                    let found = figures(&alone.record, &beside.record)
                        .or_failed(|| "no request came back, even alone")?;
                    let row = row((name, rival), bulk, link, alone.accurate && beside.accurate, &found);
                    tell(HarmEvent::Row(&row))?;
                    rows.push(row);
                }
            }
            tell(HarmEvent::Rows(link, &rows))?;
            all.extend(rows);
        }
        Ok(all)
    }

    /// Makes one run. `None`: it was cancelled.
    fn one(
        &self,
        link: AccessLink,
        bulk: Option<(&str, &Rival, u32)>,
        program: &Path,
        cancel: &AtomicBool,
        tell: &mut impl FnMut(HarmEvent<'_>) -> io::Result<()>,
    ) -> Result<Option<HarmRun>> {
        let options = &self.options;
        let called = match bulk {
            Some((name, _, count)) => format!("queue {}: beside {count} of {name}", link.queue),
            None => format!("queue {}: alone", link.queue),
        };
        tell(HarmEvent::Run(&called))?;
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("harm.toml");
        let text = world::plan(link, options.requests, bulk.map(|(_, rival, count)| (rival, count)))?;
        fs::write(&file, &text)?;
        let file = file.to_string_lossy();
        let setup = world::setup(&file, &text)?;
        let run = if options.simulated {
            let record = byway_lab::world::run(&setup, options.seed, cancel);
            emulation::EmulatedRun { record: Some(record.about(|| called.clone())?), warning: None }
        } else {
            let ground = RunContext { program, what: &file, experiments: None };
            emulation::variant(ground, &setup, options.seed, cancel).about(|| called.clone())?
        };
        if let (Some(directory), Some(record)) = (&options.trace, &run.record) {
            fs::create_dir_all(directory)?;
            let name = format!("{}.jsonl", called.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
            let mut lines = BufWriter::new(File::create(directory.join(name))?);
            byway_lab::trace::jsonl::write(record, &mut lines)?;
        }
        for failed in run.record.iter().flat_map(|record| &record.transfers) {
            if let Some(why) = &failed.failed {
                tell(HarmEvent::Warning(&format!("{called}: {}: {why}", failed.name)))?;
            }
        }
        let accurate = run.warning.is_none();
        if let Some(warning) = run.warning {
            tell(HarmEvent::Warning(&format!("{called}: {warning}")))?;
        }
        Ok(run.record.map(|record| HarmRun { record, accurate }))
    }
}

fn row(
    (name, rival): (&str, &Rival),
    bulk: u32,
    link: AccessLink,
    accurate: bool,
    found: &Figures,
) -> HarmRow {
    let finite = |value: f64| Some(value).filter(|value| value.is_finite());
    let missed = found.missed(&Bounds::of(link.mbit, bulk));
    let verdict = match (rival.is_judged(), accurate, missed.is_empty()) {
        (false, ..) => HarmVerdict::Shown,
        (_, false, _) => HarmVerdict::Inaccurate,
        (_, _, true) => HarmVerdict::Pass,
        _ => HarmVerdict::Fail,
    };
    HarmRow {
        against: name.to_owned(),
        bulk,
        queue: link.queue,
        rate_bps: u64::from(link.mbit) * 1_000_000,
        rtt_ms: link.rtt_ms,
        requests: found.requests,
        finished: found.finished,
        alone_median_seconds: found.alone[0],
        alone_p90_seconds: found.alone[1],
        median_seconds: finite(found.beside[0]),
        p90_seconds: finite(found.beside[1]),
        median: finite(found.ratio[0]),
        p90: finite(found.ratio[1]),
        share: found.share,
        regain_seconds: found.regain,
        accurate,
        verdict,
        missed,
    }
}
