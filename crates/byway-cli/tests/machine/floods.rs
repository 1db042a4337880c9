//! A transfer fills the line of a receiver. Meanwhile a stranger sends 10,000 to 30,000 datagrams
//! per second to the receiver, from many source addresses. All these datagrams are useless to the
//! receiver.
//!
//! ```text
//!   sender ── 10.78.0.0/24, 100 Mbit/s ── receiver ── 10.78.1.0/24 ── stranger, who sends as anybody of 198.18.0.0/16
//! ```

use crate::common::machine::{Measured, is_quiet, measures, missing};
use crate::common::spaces::Spaces;
use byway_engine::config::Params;
use byway_engine::handshake::{Identity, Initiator};
use byway_engine::seal::Suites;
use libtest_mimic::Trial;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub fn tests() -> Vec<Trial> {
    let lacks = missing(Spaces::possible(&["tc -V"]), "it needs root and the programs ip and tc");
    vec![measures("floods::a_transfer_keeps_its_rate_in_a_flood", lacks, in_a_flood)]
}

/// What a stranger sends, how often a second, and its first bytes. The rest is chance.
const FLOODS: [(&str, u64, &[u8]); 5] = [
    ("garbage", 30_000, &[]),
    ("data", 30_000, &[0x40]),
    ("notices", 30_000, &[0x6e, 1]),
    ("greetings", 30_000, &[0x6c]),
    ("first messages", 10_000, &[]),
];
/// Bytes of a transfer: more than two seconds of the line.
const FILE_BYTES: usize = 30 << 20;
/// Addresses that a stranger sends from.
const ADDRESSES: u8 = 200;
const PORT: u16 = 4_000;

/// A process that ends when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn hosts() -> Spaces {
    let hosts = Spaces::new("fl", &["snd", "rcv", "bad"]);
    hosts.line([("snd", "d0", "10.78.0.1"), ("rcv", "d1", "10.78.0.2")]);
    hosts.line([("bad", "x0", "10.78.1.1"), ("rcv", "x1", "10.78.1.2")]);
    for (host, device) in [("snd", "d0"), ("rcv", "d1"), ("bad", "x0"), ("rcv", "x1")] {
        hosts.wait(host, device);
    }
    let shape = ["root", "tbf", "rate", "100mbit", "burst", "20kb", "limit", "200kb"];
    hosts.says("snd", &[&["tc", "qdisc", "add", "dev", "d0"], shape.as_slice()].concat());
    hosts.says("bad", &["ip", "link", "set", "lo", "up"]);
    hosts.says("bad", &["ip", "route", "add", "local", "198.18.0.0/16", "dev", "lo"]);
    hosts.says("rcv", &["ip", "route", "add", "198.18.0.0/16", "via", "10.78.1.1"]);
    hosts
}

/// A first message as of a sender who knows another key than the receiver's: it takes a computation
/// to find that out.
fn first_message() -> Vec<u8> {
    let said = Params::of(&byway_engine::Config::default()).payload(b"");
    let (own, other) = (Identity::from_secret([1; 32]), Identity::from_secret([2; 32]));
    Initiator::new(&own, other.public(), &said, Suites::SECURE, [3; 32]).unwrap().hello()
}

/// Sends until told to stop; returns how many it sent.
fn flood(what: &str, per_second: u64, first: &[u8], stop: &AtomicBool, sent: &AtomicU64) {
    let to = SocketAddr::from(([10, 78, 1, 2], PORT));
    let sockets: Vec<UdpSocket> = (0..ADDRESSES)
        .map(|last| UdpSocket::bind(SocketAddr::from(([198, 18, last, 1], 6_000))).unwrap())
        .collect();
    let mut bytes = if what == "first messages" { first_message() } else { vec![0x5a; 200] };
    let begun = Instant::now();
    let mut chance = 1_u64;
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let due = begun.elapsed().as_micros() as u64 * per_second / 1_000_000;
        while number < due {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let random = chance.to_be_bytes();
            if what == "first messages" {
                bytes[20..28].copy_from_slice(&random);
                bytes[700..708].copy_from_slice(&random);
            } else {
                bytes[..8].copy_from_slice(&random);
                bytes[..first.len()].copy_from_slice(first);
            }
            // What the kernel has no room for is lost: so is what a stranger's line has none for.
            let _ = sockets[number as usize % sockets.len()].send_to(&bytes, to);
            number += 1;
        }
        sent.store(number, Ordering::Relaxed);
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// Mbit/s of a transfer.
fn transfer(hosts: &Spaces, flooded: Option<(&str, u64, &[u8])>) -> f64 {
    let directory = tempfile::tempdir().unwrap();
    let (source, sink) = (directory.path().join("file"), directory.path().join("in"));
    std::fs::write(&source, vec![7; FILE_BYTES]).unwrap();
    let byway = |host: &str, arguments: &[&str]| -> Command {
        let mut command = hosts.on(host);
        command.arg(env!("CARGO_BIN_EXE_byway")).arg("--json").args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.env("BYWAY_STATE_DIR", directory.path().join(host));
        command
    };
    let listen = format!("0.0.0.0:{PORT}");
    let mut child =
        byway("rcv", &["recv", sink.to_str().unwrap(), "--once", "--listen", &listen]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let _receiver = Running(child);
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    // Read to the end: who writes to a full pipe waits.
    std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
    let ticket = ready["ticket"].as_str().unwrap_or_else(|| panic!("{line}"));
    let (stop, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    let output = std::thread::scope(|scope| {
        if let Some((what, per_second, first)) = flooded {
            let (stop, sent) = (&stop, &sent);
            scope.spawn(move || hosts.at("bad", || flood(what, per_second, first, stop, sent)));
        }
        let send = ["send", source.to_str().unwrap(), ticket, "--priority", "normal"];
        let output = byway("snd", &send).output();
        stop.store(true, Ordering::Relaxed);
        output.unwrap()
    });
    let text = String::from_utf8(output.stdout).unwrap();
    let last = text.lines().last().unwrap_or_default();
    let result: Value = serde_json::from_str(last).unwrap_or_else(|_| panic!("{last}"));
    assert!(output.status.success() && result["verified"] == true, "{last}");
    let rate = result["goodput_bps"].as_f64().unwrap() / 1e6;
    eprintln!(
        "{:?}: {rate:.1} Mbit/s, {} sent",
        flooded.map(|(what, ..)| what),
        sent.load(Ordering::Relaxed)
    );
    rate
}

fn in_a_flood() -> Measured {
    let hosts = hosts();
    let calm = transfer(&hosts, None);
    assert!(calm > 85.0, "{calm} Mbit/s of 100 in peace");
    for flood in FLOODS {
        if !is_quiet() {
            return Ok(None);
        }
        let rate = transfer(&hosts, Some(flood));
        assert!(rate > calm * 0.9, "{}: {rate} of {calm} Mbit/s", flood.0);
    }
    Ok(Some(()))
}
