//! Runs `byway gateway` at two nodes of an emulated network, and relays at the nodes through which
//! the gateways' paths go. Records what the gateways report while packets of hosts pass through
//! them.

use super::process::{HelperProcess, ready, text};
use super::run_lab::RunLab;
use super::status::ask;
use super::transfer_setup::FIRST_SERVER_PORT;
use crate::error::{About as _, Error, Result};
use byway_gateway::gateway_options::{GATEWAY_OPTIONS, GatewayOption, Value, ValueKind};
use byway_gateway::machine::{Bundle, Settings};
use byway_gateway::report::{GatewayReport, PathReport};
use byway_lab::Setup;
use byway_lab::record::{GatewayRecord, PathRecord, TransferRecord};
use byway_lab::setup::{Carrier, Gateways, NodeChoice, PathChoice, Transfer};
use rustix::process::geteuid;
use serde_json::{Value as Json, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The port of the first pair's gateways and relays; each pair has its own.
const FIRST_GATEWAY_PORT: u16 = 4749;
/// The firewall mark of the first pair's gateways; each pair has its own.
const FIRST_MARK: u32 = 25_207;
/// Time that gateways may take to find each other, and time for each of their paths.
const PATHS_TIMEOUT: Duration = Duration::from_secs(15);
/// Time between two checks of the gateways' paths.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The size of a packet in bytes, to show windows in packets.
const PACKET_BYTES: f32 = 1_400.0;

/// Checks that real gateways can do all that a variant requires.
pub(super) fn check(setup: &Setup) -> Result<(), String> {
    for gateways in used(setup) {
        let refused = |why: &str| Err(format!("[[gateways]] {}: {why}", gateways.name));
        let mut told = Settings::default();
        let taken = told_to(&gateways.settings).all(|(option, value)| option.set(&mut told, value).is_ok());
        if !taken || gateways.settings != told {
            return refused("settings that the file of a gateway does not have are only simulated");
        }
        if !geteuid().is_root() || !Path::new("/dev/net/tun").exists() {
            return refused("real gateways need root, and /dev/net/tun");
        }
        if !["ip", "nft"].into_iter().all(there) {
            return refused("real gateways need the programs ip and nft");
        }
    }
    Ok(())
}

/// The options for a real gateway's file, from the plan's settings.
fn told_to(settings: &Settings) -> impl Iterator<Item = (&'static GatewayOption, Value<'static>)> {
    let told = GATEWAY_OPTIONS
        .iter()
        .filter(|option| option.kind == ValueKind::Name || option.name.starts_with("cache"));
    told.filter_map(|option| Some((option, option.get(settings)?)))
}

fn there(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("-V").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok()
}

/// The gateways that something goes through.
fn used(setup: &Setup) -> impl Iterator<Item = &Gateways> {
    setup.gateways.iter().filter(|gateways| behind(setup, gateways).next().is_some())
}

/// Returns the transfers that go through a pair of gateways, with their indices in the plan.
fn behind<'a>(setup: &'a Setup, gateways: &'a Gateways) -> impl Iterator<Item = (usize, &'a Transfer)> {
    let by =
        |transfer: &Transfer| matches!(&transfer.carrier, Carrier::Gateways(_, by) if *by == gateways.name);
    setup.transfers.iter().enumerate().filter(move |(_, transfer)| by(transfer))
}

/// A pair of gateways that runs.
pub(super) struct RunningGateways {
    name: String,
    /// The processes of relays, and then of gateways. They are ended in this order.
    _helpers: Vec<HelperProcess>,
    entry: PathBuf,
    exit: PathBuf,
    /// The name of each path, and the first address to which its packets go.
    paths: Vec<(String, String)>,
    /// The reports of the entry gateway, each with its time in seconds.
    reports: Vec<(f64, GatewayReport)>,
    /// The exit when the run began.
    first_report: GatewayReport,
}

/// Starts all gateways of a variant, and waits until they carry packets.
pub(super) fn start(site: &RunLab, setup: &Setup) -> Result<Vec<RunningGateways>> {
    used(setup)
        .enumerate()
        .map(|(number, gateways)| one(site, setup, gateways, FIRST_GATEWAY_PORT + number as u16))
        .collect()
}

fn one(site: &RunLab, setup: &Setup, gateways: &Gateways, port: u16) -> Result<RunningGateways> {
    let name = gateways.name.clone();
    let (a, b) = (gateways.between.0.as_str(), gateways.between.1.as_str());
    let mut helpers = Vec::new();
    let (mut words, mut paths) = (Vec::new(), Vec::new());
    for way in &gateways.paths {
        let PathChoice::Through(node) = way else {
            paths.push(("direct".to_owned(), format!("{}:{port}", site.address(b)?)));
            continue;
        };
        let listen = format!("{}:{}", site.address(node)?, port + 1_000);
        let relay = ["relay", "--listen", &listen, "--allow-destination", "10.66.0.0/16"];
        let (helper, said) = ready(site.byway(node, &name, &relay)?)?;
        helpers.push(helper);
        words.push(text(&said, "word")?);
        paths.push((node.clone(), listen));
    }
    let (mut hosts, mut ports) = ([Vec::new(), Vec::new()], Vec::new());
    for (place, transfer) in behind(setup, gateways) {
        for (end, hosts) in [&transfer.from, &transfer.to].into_iter().zip(&mut hosts) {
            let NodeChoice::Node(node) = end else {
                return Err(Error::Failed(format!("{name}: who sends is chosen by chance")));
            };
            let address = format!("{}/32", site.address(node)?);
            if !hosts.contains(&address) {
                hosts.push(address);
            }
        }
        ports.push(FIRST_SERVER_PORT + place as u16);
    }
    let sockets = [a, b].map(|host| site.directory.path().join(format!("{name}-{host}.sock")));
    let [here, there] = &hosts;
    let [entry, exit] = &sockets;
    for (host, peer, socket, serves, allowed) in [(a, b, entry, here, there), (b, a, exit, there, here)] {
        let mut gateway = json!({
            "serves": serves,
            "listen": [format!("{}:{port}", site.address(host)?)],
            "status": socket,
            "congestion": gateways.congestion.to_string(),
            "tun": format!("gw{port}"),
            "mark": FIRST_MARK + u32::from(port - FIRST_GATEWAY_PORT),
        });
        let mut limits = json!({});
        for (option, value) in told_to(&gateways.settings) {
            let table = if option.limit { &mut limits } else { &mut gateway };
            table[option.name] = written(value);
        }
        let config = toml::to_string(&json!({
            "gateway": gateway,
            "limits": limits,
            "peer": [{
                "name": peer,
                "key": key(site, peer, &name)?,
                "addresses": [format!("{}:{port}", site.address(peer)?)],
                "allowed": allowed,
                "relays": words,
            }],
            "rule": [{ "name": "transfers", "to-ports": ports }],
        }))?;
        let file = site.directory.path().join(format!("{name}-{host}.toml"));
        fs::write(&file, config)?;
        let log = fs::File::create(site.directory.path().join(format!("{name}-{host}.log")))?;
        let mut gateway = site.byway(host, &name, &["gateway", "--config", &file.to_string_lossy()])?;
        helpers.push(HelperProcess(gateway.stdout(log.try_clone()?).stderr(log).spawn()?));
    }
    let [entry, exit] = sockets;
    let begun = Instant::now();
    while !(ready_to_carry(&entry, paths.len()) && ready_to_carry(&exit, paths.len())) {
        if begun.elapsed() > PATHS_TIMEOUT {
            let said = |host: &str| {
                fs::read_to_string(site.directory.path().join(format!("{name}-{host}.log")))
                    .unwrap_or_default()
            };
            return Err(Error::Failed(format!(
                "gateways {name}: not all their paths are there after {PATHS_TIMEOUT:?}; {} {}",
                said(a),
                said(b)
            )));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    let before = ask(&exit)?;
    Ok(RunningGateways {
        name,
        _helpers: helpers,
        entry,
        exit,
        paths,
        reports: Vec::new(),
        first_report: before,
    })
}

/// An option's value as written in a file.
fn written(value: Value<'_>) -> Json {
    match value {
        Value::Name(name) => name.into(),
        Value::Flag(flag) => flag.into(),
        Value::Count(count) => count.into(),
        Value::Bytes(bytes) => bytes.to_string().into(),
        Value::Time(time) => format!("{}s", time.as_secs_f64()).into(),
    }
}

/// The key of the gateway at a host.
fn key(site: &RunLab, host: &str, role: &str) -> Result<String> {
    let state = site.state(host, role)?;
    let output =
        Command::new(&site.program).args(["--quiet", "id"]).env("BYWAY_STATE_DIR", state).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Whether a gateway has a session, knows the hosts that its peer serves, and can use all its
/// paths.
fn ready_to_carry(socket: &Path, paths: usize) -> bool {
    ask(socket).is_ok_and(|report| {
        report.peers.iter().all(|peer| {
            let there = peer.paths.iter().filter(|path| path.state != "probing").count();
            peer.up && !peer.serves.is_empty() && there >= paths
        })
    })
}

impl RunningGateways {
    /// Asks the entry gateway for a report, `at` seconds after the beginning.
    pub(super) fn note(&mut self, at: f64) {
        // One that does not answer has died, and what it said before counts.
        if let Ok(report) = ask(&self.entry) {
            self.reports.push((at, report));
        }
    }

    /// The records of a transfer's paths from the entry gateway. Each record has a value per
    /// element of `received`, one every `sample` seconds. `own`: the transfer's port, if each flow
    /// has paths of its own. `None`: all flows share the gateway's paths.
    fn paths(&self, received: &[u64], sample: f64, own: Option<u16>) -> Vec<PathRecord> {
        let path = |(name, address): &(String, String)| {
            let mut record = PathRecord { name: name.clone(), ..PathRecord::default() };
            let at = |index: usize| {
                let time = index as f64 * sample + sample / 2.0;
                let (_, report) = self.reports.iter().rev().find(|(at, _)| *at <= time)?;
                let all = report.peers.iter().filter(|_| own.is_none()).flat_map(|peer| &peer.paths);
                let bundles = report.peers.iter().flat_map(|peer| &peer.bundles);
                let own = bundles.filter(|bundle| own.is_some_and(|port| bundle.is_to(port)));
                let same = |path: &&PathReport| path.route.split(' ').next() == Some(address.as_str());
                // A program may have opened a second flow, to talk of the first.
                all.chain(own.flat_map(|bundle| &bundle.paths))
                    .filter(same)
                    .max_by_key(|path| path.sent_bytes)
            };
            for index in 0..received.len() {
                let seen = at(index);
                record.acked.push(seen.map_or(0, |path| path.sent_bytes));
                record.window.push(seen.map_or(0.0, |path| path.window as f32 / PACKET_BYTES));
                record.rtt.push(seen.and_then(|path| path.srtt).map_or(0.0, |rtt| (rtt * 1e3) as f32));
                record.lost.push(seen.map_or(0, |path| u32::try_from(path.lost).unwrap_or(u32::MAX)));
                record.choked.push(seen.is_some_and(|path| path.state == "choked"));
            }
            // A path that came back counts from where it was.
            for index in 1..record.acked.len() {
                let before = record.acked.get(index - 1).copied().unwrap_or_default();
                if let Some(acked) = record.acked.get_mut(index) {
                    *acked = before.max(*acked);
                }
            }
            record
        };
        self.paths.iter().map(path).collect()
    }

    /// Ends the gateways. Returns their records, and adds to the transfers' records which paths
    /// were used.
    pub(super) fn finish(self, setup: &Setup, transfers: &mut [TransferRecord]) -> Result<GatewayRecord> {
        let exit = ask(&self.exit).about(|| format!("the gateways {}", self.name))?;
        let each = setup
            .gateways
            .iter()
            .any(|gateways| gateways.name == self.name && gateways.settings.bundle == Bundle::Flow);
        for ((transfer, record), port) in setup.transfers.iter().zip(transfers).zip(FIRST_SERVER_PORT..) {
            if matches!(&transfer.carrier, Carrier::Gateways(_, by) if *by == self.name) {
                let own = each.then_some(port);
                record.paths = self.paths(&record.received, setup.sample.as_secs_f64(), own);
                record.opened = self.paths.len() as u64;
            }
        }
        let counter = |name: &str| {
            let of = |report: &GatewayReport| report.counters.get(name).copied().unwrap_or_default();
            of(&exit).saturating_sub(of(&self.first_report))
        };
        let released = counter("delivered");
        let part = |share: f64| (share * released as f64).round() as u64;
        let within = part(exit.waited_under_20ms);
        let last = self.reports.last().map(|(_, report)| report);
        let entry = last.map(|report| report.peers.as_slice()).unwrap_or_default();
        Ok(GatewayRecord {
            name: self.name,
            waits: vec![(20, within), (u64::MAX, released.saturating_sub(within))],
            released,
            timed_out: part(exit.waited_in_vain),
            carried: 0,
            dropped: entry.iter().map(|peer| peer.dropped).sum(),
            plain: counter("passed"),
            found: last
                .into_iter()
                .flat_map(|report| &report.found_after)
                .map(|at| (at * 1e3) as f32)
                .collect(),
        })
    }
}
