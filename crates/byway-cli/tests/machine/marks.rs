//! The DSCP and the ECN field of the packets that `byway send` sends. A firewall at the receiver
//! counts them.
//!
//! Needs root, `ip` and `nft`; otherwise the tests are reported as ignored.

use super::sources::Hosts;
use crate::common::machine::{missing, test};
use crate::common::spaces::Spaces;
use byway_transfer::ticket::Ticket;
use libtest_mimic::{Failed, Trial};
use serde_json::Value;

pub fn tests() -> Vec<Trial> {
    let lacks = missing(
        Spaces::possible(&["nft list tables"]),
        "it needs root, the programs ip and nft, and a kernel with nftables",
    );
    vec![
        test("marks::background_alone_is_marked_as_lower_effort", lacks, background),
        test("marks::a_line_that_drops_lower_effort_is_used_without_it", lacks, dropped),
    ]
}

/// What comes in, by code point, with what is sent back, in IP bytes. Whatever is ECT(1) counts
/// beside.
const COUNTERS: &str = "table inet marks {
    counter lower {}
    counter best {}
    counter other {}
    counter back {}
    counter marked_back {}
    counter ect1 {}
    chain tell {
        ip ecn ect1 counter name ect1
        ip6 ecn ect1 counter name ect1
    }
    chain incoming {
        type filter hook input priority 0;
        meta l4proto != udp return
        jump tell
        ip dscp 1 counter name lower return
        ip6 dscp 1 counter name lower return
        ip dscp 0 counter name best return
        ip6 dscp 0 counter name best return
        counter name other
    }
    chain outgoing {
        type filter hook output priority 0;
        meta l4proto != udp return
        jump tell
        counter name back
        ip dscp != 0 counter name marked_back
        ip6 dscp != 0 counter name marked_back
    }
}";

const FILE: u64 = 3 << 20;
/// Handshakes and what else belongs to no session are less.
const LITTLE: u64 = 20_000;

fn counter(hosts: &Hosts, name: &str) -> u64 {
    let said = hosts.spaces.says("rcv", &["nft", "-j", "list", "counter", "inet", "marks", name]);
    let said: Value = serde_json::from_str(&said).unwrap();
    let counters = said["nftables"].as_array().unwrap();
    counters.iter().find_map(|object| object["counter"]["bytes"].as_u64()).unwrap()
}

/// Sends a file to that address of the receiver; bytes of lower and of best effort that came.
fn send(hosts: &Hosts, address: &str, options: &[&str]) -> [u64; 2] {
    // What is there already does not travel.
    let _ = std::fs::remove_dir_all(hosts.place.path("in"));
    hosts.spaces.says("rcv", &["nft", COUNTERS]);
    let mut receiver = hosts.start("rcv", &["recv", "in", "--listen", address, "--new-ticket"]);
    let ticket: Ticket = receiver.line().parse().unwrap();
    let ticket = ticket.to_string();
    hosts.start("snd", &[&["send", "file", &ticket], options].concat()).end().succeeded();
    drop(receiver);
    let [lower, best, other, back, marked_back, ect1] =
        ["lower", "best", "other", "back", "marked_back", "ect1"].map(|name| counter(hosts, name));
    println!("{address} {options:?}: {lower} lower, {best} best, {back} back");
    assert_eq!((other, marked_back, ect1), (0, 0, 0), "{options:?}");
    assert!(back > 0, "{options:?}");
    hosts.spaces.says("rcv", &["nft", "delete table inet marks"]);
    [lower, best]
}

fn both_versions(tag: &str) -> Hosts {
    let hosts = Hosts::new(tag);
    for (host, device, address) in [("snd", "e0", "fd00:88::1/64"), ("rcv", "e1", "fd00:88::2/64")] {
        hosts.ip(host, &format!("-6 address add {address} dev {device} nodad"));
    }
    hosts
}

fn background() -> Result<(), Failed> {
    let hosts = both_versions("m");
    for address in ["10.88.0.2:0", "[fd00:88::2]:0"] {
        for (options, marked) in [
            (&[][..], true),
            (&["--dscp", "none"], false),
            (&["--priority", "normal"], false),
            (&["--congestion", "ledbat++"], false),
            (&["--priority", "normal", "--dscp", "le"], true),
        ] {
            let [lower, best] = send(&hosts, address, options);
            if marked {
                assert!(lower > FILE && best > 0 && best < LITTLE, "{address} {options:?}: {lower} {best}");
            } else {
                assert!(lower == 0 && best > FILE, "{address} {options:?}: {lower} {best}");
            }
        }
    }
    Ok(())
}

fn dropped() -> Result<(), Failed> {
    let hosts = both_versions("md");
    let strict = "table inet strict {
        chain incoming {
            type filter hook input priority 10
            ip dscp 1 drop
            ip6 dscp 1 drop
        }
    }";
    hosts.spaces.says("rcv", &["nft", strict]);
    for address in ["10.88.0.2:0", "[fd00:88::2]:0"] {
        let [lower, best] = send(&hosts, address, &[]);
        assert!(lower > 0 && best > FILE, "{address}: {lower} {best}");
    }
    Ok(())
}
