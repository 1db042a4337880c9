//! Relays over TCP, where networks drop UDP.
//!
//! Needs root and `ip`, `nft`; otherwise the tests are reported as ignored.

use crate::common::Running;
use crate::common::machine::{PATIENCE, missing, test, wait_for};
use crate::common::parcel::Parcel;
use crate::common::spaces::Spaces;
use libtest_mimic::{Failed, Trial};
use serde_json::Value;

const RELAY: &str = "10.81.3.1";
const RECEIVER: &str = "10.81.2.1";
const SIZE: usize = 6 << 20;

pub fn tests() -> Vec<Trial> {
    let lacks = missing(Spaces::possible(&["nft -v"]), "it needs root and the programs ip and nft");
    vec![
        test("tcp_relays::a_sender_without_udp_goes_over_the_relay_of_a_ticket", lacks, sender_without),
        test(
            "tcp_relays::a_receiver_without_udp_dials_its_relay_beforehand",
            lacks,
            a_receiver_without_udp_dials_its_relay_beforehand,
        ),
        test("tcp_relays::udp_is_cut_in_mid_transfer", lacks, in_mid_transfer),
        test("tcp_relays::buffers_of_ten_packets_and_reno_are_what_the_kernel_has", lacks, small_buffers),
    ]
}

/// A sender, a receiver that only a relay reaches, and the relay.
struct Net {
    spaces: Spaces,
    parcel: Parcel,
}

impl Net {
    fn new(tag: &str) -> Self {
        let hosts = [("from", "10.81.1.1"), ("to", RECEIVER), ("relay", RELAY)];
        let spaces = Spaces::star(tag, &hosts);
        spaces.says(
            "hub",
            &["nft", "add table ip n; add chain ip n pass { type filter hook forward priority 0; }"],
        );
        let net = Self { spaces, parcel: Parcel::new(SIZE) };
        // Sender and receiver reach each other by the relay alone.
        net.rule(&["ip saddr 10.81.1.1 ip daddr 10.81.2.1 drop"]);
        net
    }

    fn rule(&self, rules: &[&str]) {
        for rule in rules {
            self.spaces.says("hub", &["nft", &format!("add rule ip n pass {rule}")]);
        }
    }

    fn start(&self, host: &str, arguments: &[&str]) -> Running {
        self.spaces.byway(host, &self.parcel.state(host), arguments)
    }

    fn relay(&self, more: &[&str]) -> (Running, String) {
        let arguments = ["relay", "--listen", RELAY, "--allow-destination", "10.81.0.0/16"];
        let mut relay = self.start("relay", &[&arguments, more].concat());
        let word = relay.event("ready")["word"].as_str().unwrap().to_owned();
        (relay, word)
    }

    fn receiver(&self, word: &str) -> (Running, String) {
        let into = self.parcel.destination().display().to_string();
        let mut receiver = self.start("to", &["recv", &into, "--listen", RECEIVER, "--relay", word]);
        let ticket = receiver.event("ready")["ticket"].as_str().unwrap().to_owned();
        (receiver, ticket)
    }

    fn sender(&self, ticket: &str, more: &[&str]) -> Running {
        self.start("from", &[&["send", &self.parcel.file(), ticket], more].concat())
    }
}

/// Bytes that a transfer moved by each carrier, all of them through the relay.
fn carried(result: &Value, carrier: &str) -> u64 {
    let paths = result["paths"].as_array().unwrap().iter().filter(|path| path["carrier"] == carrier);
    let through = paths.inspect(|path| {
        let none = path["bytes"].as_u64() == Some(0);
        assert!(none || path["route"].as_str().unwrap().starts_with("relay "), "{path}");
    });
    through.map(|path| path["bytes"].as_u64().unwrap()).sum()
}

fn sender_without() -> Result<(), Failed> {
    let net = Net::new("s");
    net.rule(&["ip saddr 10.81.1.1 meta l4proto udp drop"]);
    let (_relay, word) = net.relay(&[]);
    let (_receiver, ticket) = net.receiver(&word);
    let result = net.sender(&ticket, &[]).event("result");
    assert!(result["exit"] == 0 && carried(&result, "udp") == 0, "{result}");
    assert!(carried(&result, "tcp") >= SIZE as u64, "{result}");
    net.parcel.arrived();
    Ok(())
}

fn a_receiver_without_udp_dials_its_relay_beforehand() -> Result<(), Failed> {
    let net = Net::new("r");
    net.rule(&["meta l4proto udp drop"]);
    let (_relay, word) = net.relay(&[]);
    let (_receiver, ticket) = net.receiver(&word);
    let result = net.sender(&ticket, &[]).event("result");
    assert!(result["exit"] == 0 && carried(&result, "tcp") >= SIZE as u64, "{result}");
    net.parcel.arrived();
    Ok(())
}

fn in_mid_transfer() -> Result<(), Failed> {
    let net = Net::new("m");
    let (_relay, word) = net.relay(&[]);
    let (_receiver, ticket) = net.receiver(&word);
    let mut sender = net.sender(&ticket, &["--bwlimit", "600K", "--progress"]);
    while sender.event("progress")["bytes"].as_u64().unwrap() < (SIZE / 8) as u64 {}
    net.rule(&["ip saddr 10.81.1.1 meta l4proto udp drop", "ip daddr 10.81.1.1 meta l4proto udp drop"]);
    let result = sender.event("result");
    assert!(result["exit"] == 0 && carried(&result, "udp") > (SIZE / 8) as u64, "{result}");
    assert!(carried(&result, "tcp") > (SIZE / 4) as u64, "{result}");
    net.parcel.arrived();
    Ok(())
}

/// Bytes that the kernel gives to a connection's buffers, as `ss -m` tells them.
fn buffers(line: &str) -> Vec<u64> {
    let fields = line.split("skmem:(").nth(1).unwrap().split([',', ')']);
    let sizes = fields.filter_map(|field| field.strip_prefix("rb").or_else(|| field.strip_prefix("tb")));
    sizes.map(|size| size.parse().unwrap()).collect()
}

fn small_buffers() -> Result<(), Failed> {
    let net = Net::new("b");
    net.rule(&["meta l4proto udp drop"]);
    let (_relay, word) = net.relay(&["--tcp-buffer", "10", "--tcp-congestion", "reno"]);
    let (_receiver, ticket) = net.receiver(&word);
    let mut sender = net.sender(&ticket, &["--tcp-congestion", "reno", "--bwlimit", "600K"]);
    // Two connections at the relay: the receiver's, and the sender's. The kernel lists them before
    // the relay accepts and sets them.
    let at = |host: &str| net.spaces.says(host, &["ss", "-HOtinm", "state", "established"]);
    let hops = wait_for(PATIENCE, || {
        let said = at("relay");
        (said.lines().count() == 2 && said.lines().all(|hop| hop.contains(" reno "))).then_some(said)
    });
    let hops = hops.ok_or_else(|| format!("no two connections with reno: {}", at("relay")))?;
    for hop in hops.lines() {
        // The kernel counts twice what it is asked for: the other half is for its own records.
        let sizes = buffers(hop);
        assert!(sizes.len() == 2 && sizes.iter().all(|size| *size == 30_000), "{hop}");
    }
    assert!(at("from").contains(" reno "), "{}", at("from"));
    let result = sender.event("result");
    assert!(result["exit"] == 0 && carried(&result, "tcp") >= SIZE as u64, "{result}");
    net.parcel.arrived();
    Ok(())
}
