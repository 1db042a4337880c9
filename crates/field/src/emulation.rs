//! `byway lab run --emulate`: real programs make the transfers of a plan, over an emulated network.
//! The programs are byway, iperf3 (the kernel's TCP), libtorrent (LEDBAT), and `http_requests`.
//! Each run gives a [`Record`], as a simulated run does.

mod capabilities;
mod detours;
mod gateways;
mod initial_window;
mod process;
mod report;
mod requests;
mod run_lab;
mod status;
mod transfer_setup;
mod transfers;
mod utp;

pub use run_lab::RunContext;

use crate::error::{About as _, Error, Result};
use byway_emulate::Status;
use byway_lab::plan::Plan;
use byway_lab::record::LinkRecord;
use byway_lab::{Record, Setup};
use byway_sim::topology::Graph;
use run_lab::RunLab;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use transfers::RunningTransfer;

/// Time that the programs of a run that is over may take to report.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time between two checks whether a run must end.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs every variant of a plan with every seed, one after another, because all runs use this
/// machine. `tell` gets the progress, and a warning about each unreliable run.
///
/// # Errors
/// The plan cannot be emulated, or a program failed.
pub fn run(
    ground: RunContext<'_>,
    plan: &Plan,
    cancel: &AtomicBool,
    mut tell: impl FnMut(&str),
) -> Result<Vec<Record>> {
    plan.variants.iter().try_for_each(possible)?;
    let planned = plan.variants.len() * plan.seeds as usize;
    let mut records = Vec::new();
    for setup in &plan.variants {
        for seed in plan.seed_range() {
            if cancel.load(Ordering::Relaxed) {
                return Ok(records);
            }
            let axes: Vec<_> = setup.axes.iter().map(|(axis, label)| format!("{axis}={label}")).collect();
            let called = format!("{} of {planned}: {} seed {seed}", records.len() + 1, axes.join(" "));
            tell(&called);
            let run = variant(ground, setup, seed, cancel)?;
            if let Some(warning) = run.warning {
                tell(&format!("{called}: {warning}"));
            }
            records.extend(run.record);
        }
    }
    Ok(records)
}

/// Checks that real programs on this machine can do all that a variant requires.
///
/// # Errors
/// They cannot, and why.
pub fn possible(setup: &Setup) -> Result<()> {
    capabilities::check(setup).map_err(|why| Error::Usage(format!("this plan cannot be emulated: {why}")))
}

/// The result of one run with real programs.
#[derive(Clone, Debug)]
pub struct EmulatedRun {
    /// The record of the run. `None`: the run was cancelled.
    pub record: Option<Record>,
    /// Why the run's measurements are not valid. `None`: they are valid.
    pub warning: Option<String>,
}

/// Runs one variant of a plan with one seed, on an emulated network that only this run uses.
///
/// # Errors
/// The variant cannot be emulated, or a program failed.
pub fn variant(ground: RunContext<'_>, setup: &Setup, seed: u64, cancel: &AtomicBool) -> Result<EmulatedRun> {
    possible(setup)?;
    let axes: Vec<_> = setup.axes.iter().map(|(axis, label)| format!("{axis}={label}")).collect();
    let site = RunLab::up(ground, &axes, seed)?;
    one(&site, setup, seed, cancel)
}

/// Runs one variant with one seed.
fn one(site: &RunLab, setup: &Setup, seed: u64, cancel: &AtomicBool) -> Result<EmulatedRun> {
    let graph = byway_lab::world::graph(setup, seed)?;
    detours::set_up(site, setup, &graph)?;
    initial_window::set_up(site, setup)?;
    let mut gateways = gateways::start(site, setup)?;
    transfers::prepare(site, setup, &graph, seed)?;
    let begun = Instant::now();
    let carried = transfers::start(site, setup, &graph, seed, begun)?;
    let asked = requests::start(site, setup, seed, begun)?;
    let mut links = LinkSeries::new(&graph, setup);
    // When nothing more can happen, what is left of the time need not pass.
    let mut over = false;
    // Link by link as the simulator notes them, at the same times; the transfers tell of themselves
    // at the end.
    for sample in 0..=links.samples {
        let at = setup.sample * sample;
        loop {
            // Also where a note took longer than a sample, so that there is nothing to wait for.
            if cancel.load(Ordering::Relaxed) {
                return Ok(EmulatedRun { record: None, warning: None });
            }
            over = over
                || carried.iter().all(RunningTransfer::is_over)
                    && asked.iter().all(requests::RunningRequests::is_over);
            let left = at.saturating_sub(begun.elapsed());
            if over || left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(POLL_INTERVAL));
        }
        links.note(&site.lab.status().about(|| "the lab has ended")?);
        gateways.iter_mut().for_each(|pair| pair.note(at.as_secs_f64()));
    }
    let transfers = carried
        .into_iter()
        .map(|carried: RunningTransfer| carried.finish(setup, begun + setup.duration + REPORT_TIMEOUT));
    let mut transfers = transfers.collect::<Result<Vec<_>>>()?;
    let gateways =
        gateways.into_iter().map(|pair| pair.finish(setup, &mut transfers)).collect::<Result<_>>()?;
    let status = site.lab.status()?;
    let record = Record {
        axes: setup.axes.clone(),
        seed,
        // Nothing that happens here happens twice.
        trace: 0,
        sample: setup.sample.as_secs_f64(),
        duration: setup.duration.as_secs_f64(),
        cut: setup.cut.as_secs_f64(),
        packets: status.links.iter().map(|link| link.delivered).sum(),
        transfers,
        requests: asked.into_iter().map(requests::RunningRequests::finish).collect::<Result<_>>()?,
        links: links.records,
        // It is only simulated.
        cross: Vec::new(),
        gateways,
        optimum: None,
    };
    Ok(EmulatedRun { record: Some(record), warning: status.lateness.warning() })
}

/// Series of all links.
struct LinkSeries {
    samples: u32,
    records: Vec<LinkRecord>,
}

impl LinkSeries {
    fn new(graph: &Graph, setup: &Setup) -> Self {
        let record = |direction| {
            let (from, to) = graph.ends(direction);
            let rate = graph.config(direction).rate.unwrap_or(0);
            LinkRecord { from: from.to_owned(), to: to.to_owned(), rate, ..LinkRecord::default() }
        };
        let samples = setup.duration.as_nanos() / setup.sample.as_nanos().max(1);
        Self {
            samples: u32::try_from(samples).unwrap_or(u32::MAX),
            records: graph.directions().map(record).collect(),
        }
    }

    /// Adds the links' counters. Both lists are in the graph's order.
    fn note(&mut self, status: &Status) {
        for (record, link) in self.records.iter_mut().zip(&status.links) {
            let dropped = link.dropped_queue + link.dropped_managed + link.dropped_loss + link.dropped_other;
            record.sent.push(link.delivered_bytes);
            record.queue.push(u32::try_from(link.waiting).unwrap_or(u32::MAX));
            record.dropped.push(u32::try_from(dropped).unwrap_or(u32::MAX));
        }
    }
}

/// Whether a LEDBAT implementation other than byway's is installed.
#[must_use]
pub fn has_ledbat() -> bool {
    utp::python().is_some()
}
