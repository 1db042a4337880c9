//! Transfers by real programs, and what they report as series.

use super::{Site, gateways, utp};
use anyhow::{Context as _, Result, bail};
use byway_lab::Setup;
use byway_lab::record::{PathRecord, TransferRecord};
use byway_lab::setup::{Carrier, Changed, Demand, End, Transfer, Way};
use byway_sim::Random;
use byway_sim::topology::{Direction, Graph};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Controllers of simulated TCP hosts, and what the kernel calls the like.
const KERNEL: [(&str, &str); 4] = [("newreno", "reno"), ("reno", "reno"), ("cubic", "cubic"), ("bbr", "bbr")];
const NO_OPTIONS: &str = "the kernel's TCP has no options of its controllers";
/// The first port of servers.
pub(super) const PORT: u16 = 5201;
/// The most that a transfer without an end may have to send: it is a file.
const MOST_BYTES: u64 = 1_000_000_000;
/// Tries to reach a server that has just been started.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(40);

/// Whether real programs can do what a variant asks for.
pub(super) fn check(setup: &Setup) -> Result<(), String> {
    for requests in &setup.requests {
        if kernel(&requests.congestion.name).is_none() {
            return Err(format!("[[requests]] {}: {}", requests.name, unknown(&requests.congestion.name)));
        }
        if !requests.congestion.options.is_empty() {
            return Err(format!("[[requests]] {}: {NO_OPTIONS}", requests.name));
        }
    }
    if let Some(cross) = setup.cross.first() {
        return Err(format!("[[cross]] {}: there is no program for it yet", cross.name));
    }
    if setup.changes.iter().any(|change| matches!(change.what, Changed::Relay { .. })) {
        return Err("[[change]]: relays that crash are only simulated".into());
    }
    gateways::check(setup)?;
    super::beginnings::of(setup)?;
    setup.transfers.iter().try_for_each(|transfer| {
        possible(transfer).map_err(|why| format!("[[transfer]] {}: {why}", transfer.name))
    })
}

fn possible(transfer: &Transfer) -> Result<(), String> {
    let (End::Node(_), End::Node(_)) = (&transfer.from, &transfer.to) else {
        return Err("ends chosen by the seed are only simulated".into());
    };
    if matches!(&transfer.demand, Demand::Rate(steps) if steps.len() > 1) {
        return Err("a demand that changes is only simulated".into());
    }
    let name = transfer.congestion.name.as_str();
    match &transfer.carrier {
        Carrier::Tcp(_) | Carrier::Gateways(..) if !transfer.congestion.options.is_empty() => {
            Err(NO_OPTIONS.into())
        }
        Carrier::Tcp(_) if transfer.paths.len() != 1 => {
            Err("the kernel's TCP has one path: behind gateways it has more (`carrier = \"gateways\"`)"
                .into())
        }
        Carrier::Tcp(_) if matches!(transfer.paths.as_slice(), [Way::Any(..)]) => {
            Err("ways chosen by the seed are only simulated".into())
        }
        Carrier::Tcp(_) if name == utp::NAME => utp::check(transfer),
        Carrier::Tcp(_) | Carrier::Gateways(..) => kernel(name).map(drop).ok_or_else(|| unknown(name)),
        Carrier::Session(_) if transfer.paths.iter().any(|way| matches!(way, Way::Any(..))) => {
            Err("relays chosen by the seed are only simulated".into())
        }
        Carrier::Session(options)
            if options.pnack_first_gap || options.ack_direct || options.tau.is_some() =>
        {
            Err("readings of the papers that byway itself does not follow are only simulated".into())
        }
        Carrier::Session(_) => Ok(()),
        Carrier::TcpRelays(_) => Err("tcp-relays are only simulated".into()),
    }
}

/// What the kernel calls a controller of this name.
pub(super) fn kernel(name: &str) -> Option<&'static str> {
    KERNEL.iter().find(|(known, _)| *known == name).map(|(_, kernel)| *kernel)
}

fn unknown(name: &str) -> String {
    let known: Vec<_> = KERNEL.iter().map(|(name, _)| *name).collect();
    format!("the kernel's TCP has no {name}: there are {}", known.join(", "))
}

/// A transfer that is under way.
pub(super) struct Carried {
    transfer: Transfer,
    started: f64,
    helpers: Vec<Helper>,
    reports: JoinHandle<Result<Report>>,
}

/// A program that serves, ended when it is dropped.
pub(super) struct Helper(pub(super) Child);

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How far a transfer was when, in seconds since it began and bytes that the receiver had.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Report {
    pub(super) steps: Vec<(f64, u64)>,
    /// By name of the path.
    pub(super) paths: Vec<(String, Vec<(f64, u64)>)>,
    pub(super) finished: Option<f64>,
    /// Packets that it found lost, if it told.
    pub(super) lost: Option<u64>,
}

/// Makes the files that a variant's transfers send. On a fast line that takes seconds, so it comes before the time of the run begins.
pub(super) fn prepare(site: &Site, setup: &Setup, graph: &Graph, seed: u64) -> Result<()> {
    for transfer in &setup.transfers {
        let Some((run, _)) = moving(setup, transfer, graph, seed, Instant::now()) else { continue };
        let sends_a_file = match transfer.carrier {
            Carrier::Tcp(_) => transfer.congestion.name == utp::NAME,
            Carrier::Gateways(..) => false,
            _ => true,
        };
        if sends_a_file {
            noise_file(site, run.bytes(transfer)?)?;
        }
    }
    Ok(())
}

/// When and between whom a transfer moves, and when it begins in the run's time. `None`: not between hosts.
fn moving<'a>(
    setup: &Setup,
    transfer: &'a Transfer,
    graph: &'a Graph,
    seed: u64,
    begun: Instant,
) -> Option<(Moving<'a>, Duration)> {
    let (End::Node(from), End::Node(to)) = (&transfer.from, &transfer.to) else { return None };
    let late = Random::component(seed, &transfer.name).up_to(transfer.start_jitter);
    let started = transfer.start + late;
    let end = transfer.stop.unwrap_or(setup.duration).min(setup.duration);
    Some((Moving { begins: begun + started, lasts: end.saturating_sub(started), from, to, graph }, started))
}

/// Starts all transfers of a variant, each at its time.
pub(super) fn start(
    site: &Site,
    setup: &Setup,
    graph: &Graph,
    seed: u64,
    begun: Instant,
) -> Result<Vec<Carried>> {
    let mut all = Vec::new();
    for (number, transfer) in setup.transfers.iter().enumerate() {
        let Some((run, started)) = moving(setup, transfer, graph, seed, begun) else { continue };
        let port = PORT + number as u16;
        let (helpers, reports) = match transfer.carrier {
            Carrier::Tcp(_) if transfer.congestion.name == utp::NAME => {
                utp::start(site, transfer, &run, port)?
            }
            Carrier::Tcp(_) | Carrier::Gateways(..) => tcp(site, transfer, &run, port)?,
            _ => session(site, transfer, &run, port)?,
        };
        all.push(Carried { transfer: transfer.clone(), started: started.as_secs_f64(), helpers, reports });
    }
    Ok(all)
}

/// When and between whom.
pub(super) struct Moving<'a> {
    pub(super) begins: Instant,
    pub(super) lasts: Duration,
    pub(super) from: &'a str,
    pub(super) to: &'a str,
    pub(super) graph: &'a Graph,
}

impl Moving<'_> {
    /// The ways of a session beside the direct one, and what the plan calls that one. Where the plan leaves it out, it is what
    /// leads through one of the plan's nodes; byway uses it always.
    fn ways<'t>(&self, transfer: &'t Transfer) -> Result<(&'t str, Vec<&'t str>)> {
        let nodes = || {
            transfer.paths.iter().filter_map(|way| match way {
                Way::Through(node) => Some(node.as_str()),
                Way::Direct | Way::Any(..) => None,
            })
        };
        if transfer.paths.contains(&Way::Direct) {
            return Ok(("direct", nodes().collect()));
        }
        let direct = self.graph.way(self.from, self.to, &[])?;
        let leads = |node: &&str| self.graph.way(self.from, self.to, &[*node]).is_ok_and(|way| way == direct);
        match nodes().find(leads) {
            Some(own) => Ok((own, nodes().filter(|node| *node != own).collect())),
            None => bail!("{}: byway always uses the direct path too", transfer.name),
        }
    }

    /// The links of one of a transfer's ways.
    fn links(&self, way: &Way) -> Result<Vec<Direction>> {
        let through = match way {
            Way::Through(node) => vec![node.as_str()],
            Way::Direct | Way::Any(..) => Vec::new(),
        };
        Ok(self.graph.way(self.from, self.to, &through)?)
    }

    /// The bytes that a session or a torrent is given to carry.
    fn bytes(&self, transfer: &Transfer) -> Result<u64> {
        Ok(match &transfer.demand {
            Demand::Size(bytes) => *bytes,
            Demand::Rate(steps) => {
                steps.first().map_or(0, |(_, rate)| rate / 8) * self.lasts.as_secs().max(1)
            }
            Demand::Unlimited => self.more_than_fits(transfer)?,
        })
    }

    /// More bytes than all ways of a transfer can carry.
    fn more_than_fits(&self, transfer: &Transfer) -> Result<u64> {
        let ways = transfer.paths.iter().map(|way| self.links(way)).collect::<Result<Vec<_>>>()?;
        let mut rate = ways.iter().filter_map(|way| self.graph.bottleneck(way)).sum::<u64>();
        // Where all begin with one link, or end with one, that is what bounds them together.
        for end in [<[Direction]>::first, <[Direction]>::last] {
            let mut ends = ways.iter().filter_map(|way| end(way));
            if let Some(one) = ends.next()
                && ends.all(|other| other == one)
            {
                rate = rate.min(self.graph.config(*one).rate.unwrap_or(u64::MAX));
            }
        }
        let bytes = rate / 8 * (self.lasts.as_secs() + 1);
        if bytes > MOST_BYTES {
            bail!("{}: it would be {} MB; give it a size, or less time", transfer.name, bytes / 1_000_000);
        }
        Ok(bytes)
    }
}

/// Programs that serve, and who will know what came of the transfer.
pub(super) type Started = (Vec<Helper>, JoinHandle<Result<Report>>);

/// Something that waits for its time, runs, and reports.
pub(super) fn later<T: Send + 'static>(
    begins: Instant,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<JoinHandle<Result<T>>> {
    let thread = std::thread::Builder::new().name("transfer".into());
    Ok(thread.spawn(move || {
        std::thread::sleep(begins.saturating_duration_since(Instant::now()));
        work()
    })?)
}

/// iperf3 over the kernel's TCP.
fn tcp(site: &Site, transfer: &Transfer, run: &Moving<'_>, port: u16) -> Result<Started> {
    let port = port.to_string();
    let server = site.on(run.to, &["iperf3", "-s", "-1", "-p", &port]).stdout(Stdio::null()).spawn()?;
    // One that has its size in time ends by itself; one that has not is ended, and still says how far it came.
    let limit = format!("{:.3}", run.lasts.as_secs_f64());
    let congestion = kernel(&transfer.congestion.name).unwrap_or("cubic");
    let mut words =
        vec!["timeout", "--signal=INT", &limit, "iperf3", "-4", "-J", "--get-server-output", "-i", "1"];
    // Its receiver counts whole blocks alone, which are of 128 KiB else: over a second of a line of 800 kbit/s.
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
        for _ in 0..TRIES {
            let said: Value =
                serde_json::from_slice(&client.output()?.stdout).context("iperf3 said nothing")?;
            match said["error"].as_str() {
                Some(error) if error.contains("unable to connect") => std::thread::sleep(PAUSE),
                Some(error) if !error.contains("interrupt") => bail!("iperf3: {error}"),
                _ => return Ok(of_iperf(&said, sized)),
            }
        }
        bail!("no iperf3 answers")
    })?;
    Ok((vec![Helper(server)], reports))
}

/// What iperf3's receiver counted, or its sender if the receiver did not tell.
fn of_iperf(said: &Value, sized: bool) -> Report {
    let server = &said["server_output_json"];
    let intervals = server["intervals"].as_array().filter(|list| !list.is_empty());
    let mut total = 0;
    let steps: Vec<_> = intervals
        .or_else(|| said["intervals"].as_array())
        .into_iter()
        .flatten()
        .map(|interval| {
            total += interval["sum"]["bytes"].as_u64().unwrap_or(0);
            (interval["sum"]["end"].as_f64().unwrap_or(0.0), total)
        })
        .collect();
    let whole = sized && said["error"].is_null();
    let finished = steps.last().filter(|_| whole).map(|(at, _)| *at);
    // What its kernel sent again.
    let lost = said["end"]["sum_sent"]["retransmits"].as_u64();
    Report { paths: vec![("direct".into(), steps.clone())], steps, finished, lost }
}

/// byway's own programs: a relay at each node that a path goes through, a receiver, a sender.
fn session(site: &Site, transfer: &Transfer, run: &Moving<'_>, port: u16) -> Result<Started> {
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
        let said = child.stdout.take().context("no output")?;
        let sender = Helper(child);
        let begun = Instant::now();
        let mut report = Report::default();
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

/// Adds what an event of `byway send` tells, which came `at` seconds after it began.
pub(super) fn of_byway(event: &Value, at: f64, report: &mut Report) {
    let bytes = event["bytes"].as_u64();
    match (event["event"].as_str(), bytes) {
        (Some("progress"), Some(bytes)) => {
            report.steps.push((at, bytes));
            if let Some(paths) = event["paths"].as_array() {
                paths.iter().for_each(|path| note_path(path, at, report));
                // A path that is no more is not told of any more either.
                let lost = paths.iter().filter_map(|path| path["lost"].as_u64()).sum();
                report.lost = report.lost.max(Some(lost));
            }
        }
        (Some("result"), Some(bytes)) if event["exit"] == 0 => {
            report.steps.push((at, bytes));
            report.finished = Some(at);
        }
        _ => {}
    }
}

fn note_path(path: &Value, at: f64, report: &mut Report) {
    let (Some(name), Some(bytes)) = (path["name"].as_str(), path["bytes"].as_u64()) else { return };
    match report.paths.iter_mut().find(|(known, _)| known == name) {
        Some((_, steps)) => steps.push((at, bytes)),
        None => report.paths.push((name.to_owned(), vec![(at, bytes)])),
    }
}

/// Starts a program that says when it is ready, and what others need.
pub(super) fn ready(mut command: Command) -> Result<(Helper, Value)> {
    let mut child = command.stderr(Stdio::null()).spawn()?;
    let said = child.stdout.take().context("no output")?;
    let helper = Helper(child);
    let mut lines: BufReader<ChildStdout> = BufReader::new(said);
    let mut line = String::new();
    lines.read_line(&mut line)?;
    let ready: Value = serde_json::from_str(&line).with_context(|| format!("it said {line:?}"))?;
    if ready["event"] != "ready" {
        bail!("{}", ready["error"].as_str().unwrap_or("it is not ready"));
    }
    // Whatever it says later is not waited for, and must not stop it.
    std::thread::Builder::new()
        .name("drain".into())
        .spawn(move || std::io::copy(&mut lines, &mut std::io::sink()))?;
    Ok((helper, ready))
}

/// Starts a program that says that it is ready, and no more.
pub(super) fn said_ready(mut command: Command) -> Result<Helper> {
    let mut child = command.spawn()?;
    let said = child.stdout.take().context("no output")?;
    let helper = Helper(child);
    let mut line = String::new();
    BufReader::new(said).read_line(&mut line)?;
    if line.trim() == "ready" { Ok(helper) } else { bail!("a server is not ready") }
}

pub(super) fn text(ready: &Value, key: &str) -> Result<String> {
    Ok(ready[key].as_str().with_context(|| format!("it names no {key}"))?.to_owned())
}

/// A file of this size. Transfers of one size send one file: eight of them need not fill the disk.
pub(super) fn noise_file(site: &Site, bytes: u64) -> Result<PathBuf> {
    let file = site.directory.path().join(format!("noise-{bytes}"));
    if !file.exists() {
        noise(&file, bytes)?;
    }
    Ok(file)
}

/// A file without holes or repetitions.
fn noise(file: &Path, bytes: u64) -> Result<()> {
    let mut random = Random::component(bytes, "noise");
    let mut to = std::io::BufWriter::new(File::create(file)?);
    let mut block = [0; 4096];
    let mut left = bytes;
    while left > 0 {
        random.fill(&mut block);
        let part = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        to.write_all(block.get(..part).unwrap_or_default())?;
        left -= part as u64;
    }
    Ok(to.flush()?)
}

impl Carried {
    /// Whether it has nothing more to do and has told what it did.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.transfer.demand, Demand::Size(_)) && self.reports.is_finished()
    }

    /// What came of it. A program that says nothing by `until` is ended.
    pub(super) fn finish(self, setup: &Setup, until: Instant) -> Result<TransferRecord> {
        while !self.reports.is_finished() && Instant::now() < until {
            std::thread::sleep(PAUSE);
        }
        let done = self.reports.is_finished();
        drop(self.helpers);
        let name = self.transfer.name.clone();
        let report = match done.then(|| self.reports.join()) {
            Some(Ok(report)) => report.with_context(|| name.clone())?,
            Some(Err(_)) => bail!("{name}: it panicked"),
            None => Report::default(),
        };
        let sample = setup.sample.as_secs_f64();
        let count = (setup.duration.as_secs_f64() / sample + 1e-9) as usize + 1;
        let series = |steps: &[(f64, u64)]| sampled(steps, self.started, sample, count);
        let path = |(name, steps): &(String, Vec<(f64, u64)>)| PathRecord {
            name: name.clone(),
            acked: series(steps),
            // Programs do not tell, and what is not known is not zero.
            window: Vec::new(),
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

/// Steps (seconds since `started`, cumulative) as `count` samples, straight lines between.
fn sampled(steps: &[(f64, u64)], started: f64, sample: f64, count: usize) -> Vec<u64> {
    let mut before = (0.0, 0);
    let mut rest = steps.iter().copied().peekable();
    (0..count)
        .map(|number| {
            let at = number as f64 * sample - started;
            while let Some(step) = rest.next_if(|step| step.0 <= at) {
                before = step;
            }
            match rest.peek() {
                Some(next) if at > before.0 && next.0 > before.0 => {
                    let part = (at - before.0) / (next.0 - before.0);
                    before.1 + (part * next.1.saturating_sub(before.1) as f64) as u64
                }
                _ => before.1,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reports_become_samples() {
        let steps = [(1.0, 100), (2.0, 300)];
        assert_eq!(sampled(&steps, 0.0, 0.5, 6), [0, 50, 100, 200, 300, 300]);
        assert_eq!(sampled(&steps, 1.0, 1.0, 5), [0, 0, 100, 300, 300]);
        assert_eq!(sampled(&[], 0.0, 1.0, 3), [0, 0, 0]);
    }

    #[test]
    fn iperf_is_understood() {
        let sum = |end: f64, bytes: u64| json!({ "sum": { "end": end, "bytes": bytes } });
        let mut said = json!({
            "intervals": [sum(1.0, 9)],
            "end": { "sum_sent": { "retransmits": 4 } },
            "server_output_json": { "intervals": [sum(1.0, 5), sum(1.5, 2)] },
        });
        let report = of_iperf(&said, true);
        assert_eq!((report.steps, report.finished), (vec![(1.0, 5), (1.5, 7)], Some(1.5)));
        assert_eq!(report.lost, Some(4));
        said["error"] = "interrupt - the client has terminated".into();
        assert_eq!(of_iperf(&said, true).finished, None);
        said["server_output_json"] = Value::Null;
        assert_eq!(of_iperf(&said, false).steps, [(1.0, 9)]);
    }

    #[test]
    fn events_of_byway_are_understood() {
        let mut report = Report::default();
        let path = |bytes: u64| json!({ "name": "direct", "bytes": bytes, "lost": 3 });
        of_byway(&json!({ "event": "progress", "bytes": 10, "paths": [path(9)] }), 1.0, &mut report);
        of_byway(&json!({ "event": "path", "name": "direct" }), 1.5, &mut report);
        of_byway(&json!({ "event": "result", "exit": 0, "bytes": 30 }), 2.0, &mut report);
        assert_eq!(report.steps, [(1.0, 10), (2.0, 30)]);
        assert_eq!(report.paths, [("direct".to_owned(), vec![(1.0, 9)])]);
        assert_eq!((report.finished, report.lost), (Some(2.0), Some(3)));
    }
}
