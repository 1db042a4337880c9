//! Networks that drop UDP: TCP takes its place, by itself.
//!
//! ```text
//!   sender 10.80.1.1 ─── router ─── receiver 10.80.2.1
//! ```
//!
//! Needs root and `ip`, `nft`; otherwise the tests are reported as ignored.

use crate::common::Running;
use crate::common::machine::{PATIENCE, missing, test, wait_for};
use crate::common::parcel::Parcel;
use crate::common::spaces::Spaces;
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

const SENDER: &str = "10.80.1.1";
const RECEIVER: &str = "10.80.2.1";
const SIZE: usize = 6 << 20;

pub fn tests() -> Vec<Trial> {
    let lacks = missing(Spaces::possible(&["nft -v"]), "it needs root and the programs ip and nft");
    vec![
        test("no_udp::from_the_start_tcp_carries_a_transfer", lacks, from_the_start),
        test("no_udp::tcp_takes_over_where_udp_is_cut_in_mid_transfer", lacks, in_mid_transfer),
        test("no_udp::tcp_carries_where_most_of_udp_is_dropped", lacks, throttled),
        test("no_udp::a_forward_goes_over_tcp", lacks, forwarded),
        test("no_udp::a_ping_goes_over_tcp", lacks, pinged),
        test("no_udp::who_is_told_not_to_uses_no_tcp", lacks, not_wanted),
    ]
}

/// The hosts, and a file to send.
struct Net {
    spaces: Spaces,
    parcel: Parcel,
}

impl Net {
    fn new(tag: &str) -> Self {
        let spaces = Spaces::new(tag, &["from", "router", "to"]);
        spaces.line([("from", "eth0", SENDER), ("router", "to-from", "10.80.1.254")]);
        spaces.line([("to", "eth0", RECEIVER), ("router", "to-to", "10.80.2.254")]);
        spaces.says("router", &["sysctl", "-qw", "net.ipv4.ip_forward=1"]);
        for (host, by) in [("from", "10.80.1.254"), ("to", "10.80.2.254")] {
            spaces.says(host, &["ip", "route", "add", "default", "via", by]);
            spaces.wait(host, "eth0");
        }
        let table = "add table ip n; add chain ip n pass { type filter hook forward priority 0; }; \
                     add chain ip n count { type filter hook forward priority 1; }; \
                     add rule ip n count ip saddr 10.80.1.1 meta l4proto udp counter; \
                     add rule ip n count ip saddr 10.80.1.1 meta l4proto tcp counter";
        spaces.says("router", &["nft", table]);
        Self { spaces, parcel: Parcel::new(SIZE) }
    }

    /// The router drops UDP from now on.
    fn cut(&self) {
        self.spaces.says("router", &["nft", "add rule ip n pass meta l4proto udp drop"]);
    }

    /// The router drops UDP beyond 60 KB a second from now on, and queues none.
    fn throttle(&self) {
        let rule =
            "add rule ip n pass meta l4proto udp limit rate over 60 kbytes/second burst 10 kbytes drop";
        self.spaces.says("router", &["nft", rule]);
    }

    /// Bytes that the router passed on from the sender, over UDP and over TCP.
    fn counted(&self) -> (u64, u64) {
        let said = self.spaces.says("router", &["nft", "list chain ip n count"]);
        let words: Vec<&str> = said.split_whitespace().collect();
        let bytes = |carrier: &str| {
            let at = words.iter().position(|word| *word == carrier).unwrap();
            let at = at + words[at..].iter().position(|word| *word == "bytes").unwrap();
            words[at + 1].parse::<u64>().unwrap()
        };
        (bytes("udp"), bytes("tcp"))
    }

    /// Waits until the router has counted so much.
    #[track_caller]
    fn wait(&self, what: &str, enough: impl Fn((u64, u64)) -> bool) -> (u64, u64) {
        let reached = wait_for(PATIENCE, || Some(self.counted()).filter(|counted| enough(*counted)));
        reached.unwrap_or_else(|| panic!("{what}: {:?}", self.counted()))
    }

    fn start(&self, host: &str, arguments: &[&str]) -> Running {
        self.spaces.byway(host, &self.parcel.state(host), arguments)
    }

    /// A receiver, and its ticket.
    fn receiver(&self, more: &[&str]) -> (Running, String) {
        let into = self.parcel.destination().display().to_string();
        let mut receiver = self.start("to", &[&["recv", &into, "--listen", RECEIVER], more].concat());
        let ticket = receiver.event("ready")["ticket"].as_str().unwrap().to_owned();
        (receiver, ticket)
    }

    fn sender(&self, ticket: &str, more: &[&str]) -> Running {
        self.start("from", &[&["send", &self.parcel.file(), ticket], more].concat())
    }
}

/// Bytes that a transfer moved by each carrier.
fn carried(result: &Value, carrier: &str) -> u64 {
    let paths = result["paths"].as_array().unwrap().iter();
    paths.filter(|path| path["carrier"] == carrier).map(|path| path["bytes"].as_u64().unwrap()).sum()
}

fn from_the_start() -> Result<(), Failed> {
    let net = Net::new("n");
    net.cut();
    let (_receiver, ticket) = net.receiver(&[]);
    let result = net.sender(&ticket, &[]).event("result");
    assert!(result["exit"] == 0 && carried(&result, "udp") == 0, "{result}");
    assert!(carried(&result, "tcp") >= SIZE as u64, "{result}");
    assert_eq!(result["paths"][0]["route"], "direct over TCP");
    net.parcel.arrived();
    Ok(())
}

fn in_mid_transfer() -> Result<(), Failed> {
    let net = Net::new("m");
    let (_receiver, ticket) = net.receiver(&[]);
    let mut sender = net.sender(&ticket, &["--bwlimit", "600K", "--progress"]);
    while sender.event("progress")["bytes"].as_u64().unwrap() < (SIZE / 8) as u64 {}
    net.cut();
    let result = sender.event("result");
    assert_eq!(result["exit"], 0, "{result}");
    assert!(
        carried(&result, "udp") > (SIZE / 8) as u64 && carried(&result, "tcp") > (SIZE / 4) as u64,
        "{result}"
    );
    net.parcel.arrived();
    Ok(())
}

/// UDP gets through, and a twentieth of what TCP would carry. TCP takes its place, and the transfer
/// says so.
fn throttled() -> Result<(), Failed> {
    let net = Net { parcel: Parcel::new(128 << 20), ..Net::new("t") };
    net.throttle();
    let (_receiver, ticket) = net.receiver(&[]);
    let mut sender = net.sender(&ticket, &["--bwlimit", "1200K", "--priority", "normal"]);
    let path = |sender: &mut Running, name: &str, state: &str| loop {
        let event = sender.event("path");
        if event["name"].as_str().unwrap().starts_with(name) && event["state"] == state {
            return event;
        }
    };
    path(&mut sender, "direct over TCP", "active");
    let rests = path(&mut sender, "direct", "available");
    assert!(rests["reason"].as_str().unwrap().contains("far less than TCP"), "{rests}");
    let before = net.counted();
    let after = net.wait("TCP goes on", |(_, tcp)| tcp > before.1 + 20_000_000);
    assert!(after.0 - before.0 < 1_000_000, "UDP goes on: {before:?} {after:?}");
    sender.interrupt();
    sender.end();
    Ok(())
}

/// One connection of a program, through a forward: 100 KB each way.
fn forwarded() -> Result<(), Failed> {
    let net = Net::new("f");
    net.cut();
    let listener = net.spaces.at("to", || TcpListener::bind("127.0.0.1:9000").unwrap());
    let echo = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = vec![0; 100_000];
        stream.read_exact(&mut bytes).unwrap();
        stream.write_all(&bytes).unwrap();
    });
    let (_receiver, ticket) = net.receiver(&["--allow-forward", "127.0.0.1:9000"]);
    let mut forward = net.start("from", &["forward", "0:127.0.0.1:9000", "--to", &ticket]);
    let address = forward.event("ready")["listen"][0].as_str().unwrap().to_owned();
    forward.event("connected");
    let got = net.spaces.at("from", || {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(&[7; 100_000]).unwrap();
        let mut bytes = vec![0; 100_000];
        stream.read_exact(&mut bytes).unwrap();
        bytes
    });
    assert_eq!(got, [7; 100_000]);
    echo.join().unwrap();
    let (_, tcp) = net.counted();
    assert!(tcp > 100_000, "{tcp} bytes over TCP");
    Ok(())
}

fn pinged() -> Result<(), Failed> {
    let net = Net::new("p");
    net.cut();
    let (_receiver, ticket) = net.receiver(&[]);
    let result = net.start("from", &["ping", &ticket]).event("result");
    assert_eq!(result["exit"], 0, "{result}");
    let path = &result["paths"][0];
    assert_eq!((&path["route"], &path["received"]), (&"direct over TCP".into(), &4.into()), "{result}");
    let result = net.start("from", &["ping", &ticket, "--no-tcp"]).event("result");
    assert_eq!(result["exit"], 5, "{result}");
    Ok(())
}

fn not_wanted() -> Result<(), Failed> {
    let net = Net::new("o");
    net.cut();
    let (receiver, ticket) = net.receiver(&["--no-tcp"]);
    let listening = net.spaces.says("to", &["ss", "-Hltn"]);
    assert_eq!(listening.trim(), "", "it listens on TCP");
    let result = net.sender(&ticket, &["--no-tcp"]).event("result");
    assert!(result["exit"] != 0, "{result}");
    receiver.signal("TERM");
    receiver.end();
    Ok(())
}
