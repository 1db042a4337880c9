//! File transfers between separate hosts (network namespaces), with a direct line and two detours
//! through relays, each shaped by the kernel. The received tree must equal the sent tree.
//!
//! ```text
//!              10.77.0.0/24, 10 Mbit/s
//!   sender ───────────────────────────── receiver
//!     ├── 10.77.1.0/24 ── relay 1 ── 10.77.3.0/24 ──┤
//!     └── 10.77.2.0/24 ── relay 2 ── 10.77.4.0/24 ──┘
//! ```
//!
//! Needs root and `ip`, `tc`.

use crate::common::machine::{Measured, PATIENCE, measures, missing, test, wait_for};
use crate::common::spaces::Spaces;
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// Relays may send to the hosts of this test, which are private.
pub const PRIVATE: [&str; 2] = ["--allow-destination", "10.77.0.0/16"];

pub fn tests() -> Vec<Trial> {
    let lacks = missing(Spaces::possible(&["tc -V"]), "it needs root and the programs ip and tc");
    vec![
        test("namespaces::a_tree_travels_over_the_direct_line_and_two_relays", lacks, over_three_lines),
        test(
            "namespaces::a_tree_arrives_through_a_relay_when_there_is_no_direct_line",
            lacks,
            without_a_direct_line,
        ),
        measures("namespaces::a_background_transfer_says_that_it_yields", lacks, yielding),
        test("namespaces::a_second_uplink_comes_goes_and_comes_back", lacks, a_second_uplink),
    ]
}

/// Hosts with byway on them.
pub struct Hosts {
    hosts: Spaces,
}

/// A line: name, one end, its address, the other end, its address.
const LINES: [(&str, &str, &str, &str, &str); 5] = [
    ("d", "snd", "10.77.0.1", "rcv", "10.77.0.2"),
    ("a", "snd", "10.77.1.1", "r1", "10.77.1.2"),
    ("b", "snd", "10.77.2.1", "r2", "10.77.2.2"),
    ("e", "r1", "10.77.3.1", "rcv", "10.77.3.2"),
    ("f", "r2", "10.77.4.1", "rcv", "10.77.4.2"),
];

impl Hosts {
    /// These hosts.
    pub const fn of(hosts: Spaces) -> Self {
        Self { hosts }
    }

    pub const fn spaces(&self) -> &Spaces {
        &self.hosts
    }

    /// Four hosts and the lines between them.
    pub fn new(tag: &str) -> Self {
        let hosts = Spaces::new(tag, &["snd", "rcv", "r1", "r2"]);
        let devices = LINES.map(|(line, ..)| [format!("{line}0"), format!("{line}1")]);
        for ((_, a, a_address, b, b_address), [left, right]) in LINES.iter().zip(&devices) {
            hosts.line([(a, left, a_address), (b, right, b_address)]);
        }
        for ((_, a, _, b, _), [left, right]) in LINES.iter().zip(&devices) {
            hosts.wait(a, left);
            hosts.wait(b, right);
        }
        // The receiver knows the relays by the addresses at which the sender knows them.
        hosts.says("rcv", &["ip", "route", "add", "10.77.1.2/32", "via", "10.77.3.1"]);
        hosts.says("rcv", &["ip", "route", "add", "10.77.2.2/32", "via", "10.77.4.1"]);
        for device in ["d0", "a0", "b0"] {
            let shape = ["root", "tbf", "rate", "10mbit", "burst", "6kb", "limit", "75kb"];
            hosts.says("snd", &[&["tc", "qdisc", "add", "dev", device], shape.as_slice()].concat());
        }
        Self { hosts }
    }

    /// byway on a host, with a state directory of its own.
    fn byway(&self, host: &str, state: &Path, arguments: &[&str]) -> Command {
        let mut command = self.hosts.on(host);
        command.args([env!("CARGO_BIN_EXE_byway"), "--json"]);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        command.env("XDG_STATE_HOME", state.join(host)).env("XDG_CONFIG_HOME", state.join(host));
        command.env("BYWAY_STATE_DIR", state.join(host));
        command
    }

    /// Starts byway and waits until it is ready.
    pub fn start(&self, host: &str, state: &Path, arguments: &[&str]) -> (Running, Value) {
        let mut child = self.byway(host, state, arguments).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let ready: Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("{arguments:?} said {line:?}"));
        assert_eq!(ready["event"], "ready", "{line}");
        // Read to the end: who writes to a full pipe waits.
        std::thread::spawn(move || io::copy(&mut lines, &mut io::sink()));
        (Running { child }, ready)
    }
}

/// A process that ends when it is dropped.
pub struct Running {
    child: Child,
}

impl Running {
    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for it to end by itself.
    pub fn wait(&mut self) -> Option<i32> {
        wait_for(PATIENCE, || self.child.try_wait().unwrap())?.code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The last line of a sender: its result.
pub fn send(hosts: &Hosts, state: &Path, arguments: &[&str]) -> Value {
    let output = hosts.byway("snd", state, arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let last = text.lines().last().unwrap_or_default();
    assert!(
        output.status.success(),
        "{:?}: {last} {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let result: Value = serde_json::from_str(last).unwrap();
    assert_eq!(result["event"], "result", "{last}");
    assert_eq!(result["verified"], true, "{last}");
    result
}

fn over_three_lines() -> Result<(), Failed> {
    let hosts = Hosts::new("t");
    let directory = tempfile::tempdir()?;
    let (source, sink) = (directory.path().join("photos"), directory.path().join("in"));
    byway_files::generate(&source, 3, 12 << 20)?;
    let relay = |host, listen| {
        hosts.start(host, directory.path(), &[&["relay", "--listen", listen], PRIVATE.as_slice()].concat())
    };
    let (_r1, first) = relay("r1", "10.77.1.2:4748");
    let (_r2, second) = relay("r2", "10.77.2.2:4748");
    let recv = ["recv", sink.to_str().unwrap(), "--once"];
    let (mut receiver, ready) = hosts.start("rcv", directory.path(), &recv);
    let result = send(
        &hosts,
        directory.path(),
        &[
            "send",
            source.to_str().unwrap(),
            ready["ticket"].as_str().unwrap(),
            "--priority",
            "normal",
            "--relay",
            first["word"].as_str().unwrap(),
            "--relay",
            second["word"].as_str().unwrap(),
        ],
    );
    assert_eq!(receiver.wait(), Some(0));
    assert_eq!(byway_files::compare(&source, &sink.join("photos"))?, []);
    let paths = result["paths"].as_array().unwrap();
    let total: u64 = paths.iter().map(|path| path["bytes"].as_u64().unwrap()).sum();
    let busy = paths.iter().filter(|path| path["bytes"].as_u64().unwrap() * 10 > total).count();
    assert!(busy >= 3, "not all three lines carried a tenth: {result}");
    Ok(())
}

fn without_a_direct_line() -> Result<(), Failed> {
    let hosts = Hosts::new("n");
    let directory = tempfile::tempdir()?;
    let (source, sink) = (directory.path().join("photos"), directory.path().join("in"));
    byway_files::generate(&source, 4, 2 << 20)?;
    let (_relay, ready) = hosts.start(
        "r1",
        directory.path(),
        &[&["relay", "--listen", "10.77.1.2:4748"], PRIVATE.as_slice()].concat(),
    );
    let word = ready["word"].as_str().unwrap().to_owned();
    let recv = ["recv", sink.to_str().unwrap(), "--once", "--relay", &word];
    let (mut receiver, ready) = hosts.start("rcv", directory.path(), &recv);
    hosts.hosts.says("snd", &["ip", "link", "set", "d0", "down"]);
    send(&hosts, directory.path(), &["send", source.to_str().unwrap(), ready["ticket"].as_str().unwrap()]);
    assert_eq!(receiver.wait(), Some(0));
    assert_eq!(byway_files::compare(&source, &sink.join("photos"))?, []);
    Ok(())
}

/// The next event of a sender's progress that is what is waited for.
fn until(lines: &mut impl BufRead, what: &str, is_it: impl Fn(&Value) -> bool) {
    let mut last = String::new();
    for line in lines.lines() {
        last = line.unwrap();
        let event: Value = serde_json::from_str(&last).unwrap();
        assert_ne!(event["event"], "result", "it ended before {what}: {last}");
        if event["event"] == "progress" && is_it(&event) {
            return;
        }
    }
    panic!("it ended before {what}: {last}");
}

/// What all paths from this address carried so far by a progress event; `None` if there is none
/// that is in use.
fn carried(progress: &Value, from: &str) -> Option<u64> {
    let paths = progress["paths"].as_array().unwrap().iter();
    let used =
        paths.filter(|path| path["name"].as_str().unwrap().ends_with(from) && path["state"] == "active");
    used.map(|path| path["bytes"].as_u64().unwrap()).reduce(|sum, more| sum + more)
}

/// A sender that begins with one uplink uses a second one when it appears, goes on without it, and
/// takes it again.
fn a_second_uplink() -> Result<(), Failed> {
    let hosts = Hosts::new("u");
    let directory = tempfile::tempdir()?;
    let (source, sink) = (directory.path().join("photos"), directory.path().join("in"));
    byway_files::generate(&source, 5, 28 << 20)?;
    let second = |state| hosts.hosts.says("snd", &["ip", "link", "set", "a0", state]);
    hosts.hosts.says("snd", &["ip", "link", "set", "b0", "down"]);
    hosts.hosts.says("snd", &["ip", "address", "del", "10.77.1.1/24", "dev", "a0"]);
    second("down");
    let relay = [&["relay", "--listen", "10.77.1.2:4748"], PRIVATE.as_slice()].concat();
    let (_relay, ready) = hosts.start("r1", directory.path(), &relay);
    let word = ready["word"].as_str().unwrap().to_owned();
    let recv = ["recv", sink.to_str().unwrap(), "--once"];
    let (mut receiver, ready) = hosts.start("rcv", directory.path(), &recv);
    let (source, ticket) = (source.to_str().unwrap(), ready["ticket"].as_str().unwrap());
    let arguments = ["send", source, ticket, "--relay", &word, "--priority", "normal"];
    let mut child = hosts.byway("snd", directory.path(), &arguments).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let sender = Running { child };
    let used = |progress: &Value| carried(progress, "from 10.77.1.1").is_some_and(|bytes| bytes > 200_000);
    until(&mut lines, "it began", |progress| progress["bytes"].as_u64() > Some(500_000));
    hosts.hosts.says("snd", &["ip", "address", "add", "10.77.1.1/24", "dev", "a0"]);
    second("up");
    until(&mut lines, "it used the second uplink", used);
    second("down");
    until(&mut lines, "it noticed that it went", |progress| carried(progress, "from 10.77.1.1").is_none());
    second("up");
    until(&mut lines, "it used it again", used);
    let last = lines.lines().last().unwrap()?;
    let result: Value = serde_json::from_str(&last)?;
    assert_eq!((&result["event"], &result["verified"]), (&"result".into(), &true.into()), "{last}");
    assert_eq!(receiver.wait(), Some(0));
    drop(sender);
    assert_eq!(byway_files::compare(&directory.path().join("photos"), &sink.join("photos"))?, []);
    Ok(())
}

/// Beside somebody else's transfer on the same line a background one says why it is slow.
fn yielding() -> Measured {
    let hosts = Hosts::new("y");
    let directory = tempfile::tempdir()?;
    let sink = directory.path().join("in");
    let (_receiver, ready) = hosts.start("rcv", directory.path(), &["recv", sink.to_str().unwrap()]);
    let start = |name: &str, priority: &str| -> std::io::Result<(Running, BufReader<ChildStdout>)> {
        let file = directory.path().join(name);
        std::fs::write(&file, vec![7; 32 << 20])?;
        let ticket = ready["ticket"].as_str().unwrap();
        let arguments =
            ["send", file.to_str().unwrap(), ticket, "--bind", "10.77.0.1", "--priority", priority];
        let mut child = hosts.byway("snd", directory.path(), &arguments).spawn()?;
        let lines = BufReader::new(child.stdout.take().unwrap());
        Ok((Running { child }, lines))
    };
    let (_normal, mut lines) = start("one", "normal")?;
    until(&mut lines, "it began", |progress| progress["bytes"].as_u64() > Some(2_000_000));
    let (_background, mut lines) = start("two", "background")?;
    let told =
        |progress: &Value| progress["pause"] == "yielding" && progress["paths"][0]["pause"] == "yielding";
    until(&mut lines, "it yielded", told);
    Ok(Some(()))
}
