//! Transfers by real programs, and what they report as series.

use super::capabilities::kernel;
use super::process::{HelperProcess, Started, later, noise_file, ready, text};
use super::report::{TransferReport, of_byway, of_iperf, sampled};
use super::run_lab::RunLab;
use super::transfer_setup::{FIRST_SERVER_PORT, TransferSetup, moving};
use super::utp;
use crate::error::{About as _, Error, OrFailed as _, Result};
use byway_lab::Setup;
use byway_lab::record::{PathRecord, TransferRecord};
use byway_lab::setup::{Carrier, Demand, Transfer};
use byway_sim::topology::Graph;
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Tries to reach a server that has just been started, at most.
const MAX_TRIES: u32 = 50;
/// Time between two such attempts, and between two checks whether a program has reported.
const RETRY_INTERVAL: Duration = Duration::from_millis(40);

/// A transfer that is running.
pub(super) struct RunningTransfer {
    transfer: Transfer,
    started: f64,
    helpers: Vec<HelperProcess>,
    reports: JoinHandle<Result<TransferReport>>,
}

/// Creates the files that the transfers of a variant send. This takes seconds for the large files
/// of a fast line, so it happens before the run's clock starts.
pub(super) fn prepare(site: &RunLab, setup: &Setup, graph: &Graph, seed: u64) -> Result<()> {
    for transfer in &setup.transfers {
        let Some((run, _)) = moving(setup, transfer, graph, seed, Instant::now()) else { continue };
        let sends_a_file = match transfer.carrier {
            Carrier::Tcp(_) => transfer.congestion.name == utp::CONTROLLER_NAME,
            Carrier::Gateways(..) => false,
            _ => true,
        };
        if sends_a_file {
            noise_file(site, run.bytes(transfer)?)?;
        }
    }
    Ok(())
}

/// Starts all transfers of a variant, each at its time.
pub(super) fn start(
    site: &RunLab,
    setup: &Setup,
    graph: &Graph,
    seed: u64,
    begun: Instant,
) -> Result<Vec<RunningTransfer>> {
    let mut all = Vec::new();
    for (number, transfer) in setup.transfers.iter().enumerate() {
        let Some((run, started)) = moving(setup, transfer, graph, seed, begun) else { continue };
        let port = FIRST_SERVER_PORT + number as u16;
        let (helpers, reports) = match transfer.carrier {
            Carrier::Tcp(_) if transfer.congestion.name == utp::CONTROLLER_NAME => {
                utp::start(site, transfer, &run, port)?
            }
            Carrier::Tcp(_) | Carrier::Gateways(..) => tcp(site, transfer, &run, port)?,
            _ => session(site, transfer, &run, port)?,
        };
        all.push(RunningTransfer {
            transfer: transfer.clone(),
            started: started.as_secs_f64(),
            helpers,
            reports,
        });
    }
    Ok(all)
}

/// iperf3 over the kernel's TCP.
fn tcp(site: &RunLab, transfer: &Transfer, run: &TransferSetup<'_>, port: u16) -> Result<Started> {
    let port = port.to_string();
    let server = site.on(run.to, &["iperf3", "-s", "-1", "-p", &port]).stdout(Stdio::null()).spawn()?;
    // One that has its size in time ends by itself; one that has not is ended, and still says how
    // far it came.
    let limit = format!("{:.3}", run.lasts.as_secs_f64());
    let congestion = kernel(&transfer.congestion.name).unwrap_or("cubic");
    let mut words =
        vec!["timeout", "--signal=INT", &limit, "iperf3", "-4", "-J", "--get-server-output", "-i", "1"];
    // Its receiver counts whole blocks alone, which are of 128 KiB else: over a second of a line of
    // 800 kbit/s.
    words.extend(["-c", run.to, "-p", &port, "-C", congestion, "-l", "8K"]);
    let amount = match &transfer.demand {
        Demand::Size(bytes) => ["-n".to_owned(), bytes.to_string()],
        _ => ["-t".to_owned(), run.lasts.as_secs().max(1).to_string()],
    };
    words.extend(amount.iter().map(String::as_str));
    let rate = match &transfer.demand {
        Demand::Rate(steps) => steps.first().map(|(_, rate)| rate.to_string()),
        _ => None,
    };
    if let Some(rate) = &rate {
        words.extend(["-b", rate]);
    }
    if !matches!(transfer.demand, Demand::Size(_)) {
        // It ends by itself, and says more if nobody hurries it.
        words.drain(..3);
    }
    let mut client = site.on(run.from, &words);
    let sized = matches!(transfer.demand, Demand::Size(_));
    let reports = later(run.begins, move || {
        for _ in 0..MAX_TRIES {
            let said: Value =
                serde_json::from_slice(&client.output()?.stdout).about(|| "iperf3 said nothing")?;
            match said["error"].as_str() {
                Some(error) if error.contains("unable to connect") => std::thread::sleep(RETRY_INTERVAL),
                Some(error) if !error.contains("interrupt") => {
                    return Err(Error::Failed(format!("iperf3: {error}")));
                }
                _ => return Ok(of_iperf(&said, sized)),
            }
        }
        Err(Error::failed("no iperf3 answers"))
    })?;
    Ok((vec![HelperProcess(server)], reports))
}

/// byway's own programs: a relay at each node that a path goes through, a receiver, a sender.
fn session(site: &RunLab, transfer: &Transfer, run: &TransferSetup<'_>, port: u16) -> Result<Started> {
    let mut helpers = Vec::new();
    let (mut words, mut names) = (Vec::new(), Vec::new());
    let (direct, nodes) = run.ways(transfer)?;
    for node in nodes {
        let listen = format!("{}:{port}", site.address(node)?);
        let relay = ["relay", "--listen", &listen, "--allow-destination", "10.66.0.0/16"];
        let (helper, ready) = ready(site.byway(node, &transfer.name, &relay)?)?;
        helpers.push(helper);
        words.push(text(&ready, "word")?);
        names.push((format!("relay {listen}"), node.to_owned()));
    }
    names.push(("direct".to_owned(), direct.to_owned()));
    let directory = site.directory.path().join(format!("{}-in", transfer.name));
    fs::create_dir_all(&directory)?;
    // One address, or one line would be two direct paths.
    let listen = format!("{}:{port}", site.address(run.to)?);
    let receive = ["recv", &directory.to_string_lossy(), "--once", "--listen", &listen];
    let (helper, ready) = ready(site.byway(run.to, &transfer.name, &receive)?)?;
    helpers.push(helper);
    let ticket = text(&ready, "ticket")?;
    let limit = match &transfer.demand {
        Demand::Rate(steps) => Some(steps.first().map_or(0, |(_, rate)| rate / 8).to_string()),
        Demand::Size(_) | Demand::Unlimited => None,
    };
    let file = noise_file(site, run.bytes(transfer)?)?;
    let file = file.to_string_lossy();
    let congestion = transfer.congestion.to_string();
    let mut arguments = vec!["send", &*file, &ticket, "--congestion", &congestion];
    for word in &words {
        arguments.extend(["--relay", word]);
    }
    if words.is_empty() {
        arguments.push("--no-relay");
    }
    if let Some(limit) = &limit {
        arguments.extend(["--bwlimit", limit]);
    }
    let mut sender = site.byway(run.from, &transfer.name, &arguments)?;
    let (lasts, endless) = (run.lasts, transfer.demand == Demand::Unlimited);
    let reports = later(run.begins, move || {
        let mut child = sender.stderr(Stdio::null()).spawn()?;
        let said = child.stdout.take().or_failed(|| "no output")?;
        let sender = HelperProcess(child);
        let begun = Instant::now();
        let mut report = TransferReport::default();
        for line in BufReader::new(said).lines() {
            let event: Value = serde_json::from_str(&line?)?;
            of_byway(&event, begun.elapsed().as_secs_f64(), &mut report);
            if begun.elapsed() > lasts {
                break;
            }
        }
        drop(sender);
        if endless {
            report.finished = None;
        }
        // As the plan calls them.
        for (name, _) in &mut report.paths {
            if let Some((_, node)) = names.iter().find(|(called, _)| called == name) {
                name.clone_from(node);
            }
        }
        Ok(report)
    })?;
    Ok((helpers, reports))
}

impl RunningTransfer {
    /// Whether the transfer has ended and its report has arrived.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.transfer.demand, Demand::Size(_)) && self.reports.is_finished()
    }

    /// The record of the transfer. A program that does not report by `until` is killed.
    pub(super) fn finish(self, setup: &Setup, until: Instant) -> Result<TransferRecord> {
        while !self.reports.is_finished() && Instant::now() < until {
            std::thread::sleep(RETRY_INTERVAL);
        }
        let done = self.reports.is_finished();
        drop(self.helpers);
        let name = self.transfer.name.clone();
        let report = match done.then(|| self.reports.join()) {
            Some(Ok(report)) => report.about(|| name.clone())?,
            Some(Err(_)) => return Err(Error::Failed(format!("{name}: it panicked"))),
            None => TransferReport::default(),
        };
        let sample = setup.sample.as_secs_f64();
        let count = (setup.duration.as_secs_f64() / sample + 1e-9) as usize + 1;
        let series = |steps: &[(f64, u64)]| sampled(steps, self.started, sample, count);
        let path = |(name, steps): &(String, Vec<(f64, u64)>)| PathRecord {
            name: name.clone(),
            acked: series(steps),
            // Programs do not tell, and what is not known is not zero.
            window: Vec::new(),
            window_bytes: Vec::new(),
            rtt: Vec::new(),
            lost: vec![0; count],
            choked: vec![false; count],
        };
        Ok(TransferRecord {
            group: self.transfer.group,
            started: self.started,
            finished: report
                .finished
                .map(|at| self.started + at)
                .filter(|at| *at <= setup.duration.as_secs_f64()),
            failed: (!done).then(|| "it said nothing when the run was over".to_owned()),
            received: series(&report.steps),
            opened: report.paths.len() as u64,
            lost: report.lost,
            paths: report.paths.iter().map(path).collect(),
            name,
            ..TransferRecord::default()
        })
    }
}
