//! `byway lab run --emulate`: the transfers of a plan over its network on this machine, by real programs: iperf3 over the
//! kernel's TCP, byway itself, and for requests a server and clients of our own. What they report becomes a [`Record`] like
//! those of simulated runs, so that the same claims are held against it.

mod asking;
mod beginnings;
mod carriers;
mod detours;
mod gateways;
mod utp;

use crate::exit::{Exit, Failure};
use anyhow::{Context as _, Result, bail};
use byway_emulate::{Lab, Status};
use byway_lab::plan::Plan;
use byway_lab::record::LinkRecord;
use byway_lab::{Record, Setup};
use byway_sim::topology::Graph;
use carriers::Carried;
use std::fs;
use std::io::{PipeWriter, pipe};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// After a run is over, so long is waited for what its programs report.
const GRACE: Duration = Duration::from_secs(5);
/// Time between two looks at whether a run is to end.
const LOOK: Duration = Duration::from_millis(50);

/// Runs every variant of a plan with every seed, one after the other: they share the machine. `what` is the plan as
/// `byway lab up` takes it; `tell` hears how far it is, and whom not to trust.
pub(super) fn run(
    what: &str,
    experiments: Option<&Path>,
    plan: &Plan,
    cancel: &AtomicBool,
    mut tell: impl FnMut(&str),
) -> Result<Vec<Record>> {
    plan.variants.iter().try_for_each(possible)?;
    let planned = plan.variants.len() * plan.seeds as usize;
    let mut records = Vec::new();
    for setup in &plan.variants {
        for seed in 1..=u64::from(plan.seeds) {
            if cancel.load(Ordering::Relaxed) {
                return Ok(records);
            }
            let axes: Vec<_> = setup.axes.iter().map(|(axis, label)| format!("{axis}={label}")).collect();
            let called = format!("{} of {planned}: {} seed {seed}", records.len() + 1, axes.join(" "));
            tell(&called);
            let run = variant(what, experiments, setup, seed, cancel)?;
            if let Some(warning) = run.warning {
                tell(&format!("{called}: {warning}"));
            }
            records.extend(run.record);
        }
    }
    Ok(records)
}

/// Whether real programs, and those that are here, can do what a variant asks for.
pub(super) fn possible(setup: &Setup) -> Result<()> {
    carriers::check(setup)
        .map_err(|why| Failure::new(Exit::Usage, format!("this plan cannot be emulated: {why}")).into())
}

/// What came of one run.
pub(super) struct Run {
    /// `None`: it was cancelled.
    pub(super) record: Option<Record>,
    /// Why it is not to be trusted, if it is not.
    pub(super) warning: Option<String>,
}

/// Runs one variant of a plan with one seed, on a network of its own.
pub(super) fn variant(
    what: &str,
    experiments: Option<&Path>,
    setup: &Setup,
    seed: u64,
    cancel: &AtomicBool,
) -> Result<Run> {
    possible(setup)?;
    let axes: Vec<_> = setup.axes.iter().map(|(axis, label)| format!("{axis}={label}")).collect();
    let site = Site::up(what, experiments, &axes, seed)?;
    one(&site, setup, seed, cancel)
}

/// One variant with one seed.
fn one(site: &Site, setup: &Setup, seed: u64, cancel: &AtomicBool) -> Result<Run> {
    let graph = byway_lab::world::graph(setup, seed)?;
    detours::set_up(site, setup, &graph)?;
    beginnings::set_up(site, setup)?;
    let mut gateways = gateways::start(site, setup)?;
    carriers::prepare(site, setup, &graph, seed)?;
    let begun = Instant::now();
    let carried = carriers::start(site, setup, &graph, seed, begun)?;
    let asked = asking::start(site, setup, seed, begun)?;
    let mut links = Links::new(&graph, setup);
    // When nothing more can happen, what is left of the time need not pass.
    let mut over = false;
    // Link by link as the simulator notes them, at the same times; the transfers tell of themselves at the end.
    for sample in 0..=links.samples {
        let at = setup.sample * sample;
        loop {
            // Also where a note took longer than a sample, so that there is nothing to wait for.
            if cancel.load(Ordering::Relaxed) {
                return Ok(Run { record: None, warning: None });
            }
            over = over || carried.iter().all(Carried::is_over) && asked.iter().all(asking::Asked::is_over);
            let left = at.saturating_sub(begun.elapsed());
            if over || left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(LOOK));
        }
        links.note(&site.lab.status().context("the lab has ended")?);
        gateways.iter_mut().for_each(|pair| pair.note(at.as_secs_f64()));
    }
    let transfers =
        carried.into_iter().map(|carried: Carried| carried.finish(setup, begun + setup.duration + GRACE));
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
        requests: asked.into_iter().map(asking::Asked::finish).collect::<Result<_>>()?,
        links: links.records,
        // It is only simulated.
        cross: Vec::new(),
        gateways,
        optimum: None,
    };
    Ok(Run { record: Some(record), warning: status.lateness.warning() })
}

/// Series of all links.
struct Links {
    samples: u32,
    records: Vec<LinkRecord>,
}

impl Links {
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

    /// Both are in the graph's order.
    fn note(&mut self, status: &Status) {
        for (record, link) in self.records.iter_mut().zip(&status.links) {
            let dropped = link.dropped_queue + link.dropped_managed + link.dropped_loss + link.dropped_other;
            record.sent.push(link.delivered_bytes);
            record.queue.push(u32::try_from(link.waiting).unwrap_or(u32::MAX));
            record.dropped.push(u32::try_from(dropped).unwrap_or(u32::MAX));
        }
    }
}

/// Whether there is a LEDBAT that is not byway's own.
pub(super) fn has_ledbat() -> bool {
    utp::python().is_some()
}

/// A lab for one run, and a directory for what its programs keep; both gone when it is dropped. The lab is gone too if this process is
/// killed.
struct Site {
    program: PathBuf,
    lab: Lab,
    _owner: PipeWriter,
    directory: tempfile::TempDir,
}

impl Site {
    fn up(what: &str, experiments: Option<&Path>, axes: &[String], seed: u64) -> Result<Self> {
        let program = std::env::current_exe().context("where this program is")?;
        let lab = super::emulated::place().lab(&format!("run-{}", std::process::id()));
        let mut command = Command::new(&program);
        let seed = seed.to_string();
        command.args(["--quiet", "lab", "up", what, "--owned", "--name", &lab.name, "--seed", &seed]);
        command.args(axes.iter().flat_map(|axis| ["--sweep", axis.as_str()]));
        if let Some(directory) = experiments {
            command.arg("--experiments").arg(directory);
        }
        let (owned, owner) = pipe()?;
        let output = command.stdin(owned).output()?;
        if !output.status.success() {
            let told = String::from_utf8_lossy(&output.stderr);
            bail!("{}", told.trim().trim_start_matches("byway: "));
        }
        Ok(Self { program, lab, _owner: owner, directory: tempfile::tempdir()? })
    }

    /// A program on a host.
    fn on(&self, host: &str, program: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["lab", "exec", "--lab", &self.lab.name, host, "--"]).args(program);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Where byway keeps keys and journals on a host.
    fn state(&self, host: &str, role: &str) -> Result<PathBuf> {
        let state = self.directory.path().join(format!("{role}-{host}"));
        fs::create_dir_all(&state)?;
        Ok(state)
    }

    /// byway itself on a host, with keys and journals of its own there.
    fn byway(&self, host: &str, role: &str, arguments: &[&str]) -> Result<Command> {
        let state = self.state(host, role)?;
        let program = self.program.to_string_lossy();
        let mut command = self.on(host, &[&[&*program, "--json"], arguments].concat());
        command.env("BYWAY_STATE_DIR", state);
        Ok(command)
    }

    fn address(&self, host: &str) -> Result<String> {
        let record = self.lab.record()?;
        let found = record.hosts.iter().find(|known| known.name == host);
        Ok(found.with_context(|| format!("there is no host {host}"))?.v4.to_string())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = byway_emulate::end(&self.lab);
    }
}
