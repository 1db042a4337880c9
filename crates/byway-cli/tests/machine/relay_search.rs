//! Forty relays behind one access line. Thirteen drop data packets silently and thirteen are slow.
//! The sender tries the relays to find the good ones. The kernel counts the packets of these
//! trials.
//!
//! ```text
//!            20 Mbit/s              direct: 4 Mbit/s
//!   sender ───────────── hub ────────────────────────── receiver
//!                         ├── relay 0     each forwards by way of the hub
//!                         └── …  relay 39
//! ```
//!
//! Needs root, `ip`, `tc`, `nft`.

use crate::common::machine::{missing, slow};
use crate::common::spaces::Spaces;
use crate::namespaces::{Hosts, PRIVATE, Running, send};
use libtest_mimic::{Failed, Trial};
use std::fs;
use std::time::{Duration, Instant};

const RELAYS: usize = 40;
const SENDER: &str = "10.77.200.1";
const RECEIVER: &str = "10.77.201.1";
/// Four relays are tried per second, and each of those that swallow needs a second probe.
const LISTED: Duration = Duration::from_millis((RELAYS as u64 + 13) * 250 + 5_000);

pub fn tests() -> Vec<Trial> {
    let lacks =
        missing(Spaces::possible(&["tc -V", "nft -v"]), "it needs root and the programs ip, tc and nft");
    vec![slow("relay_search::forty_relays_of_which_fourteen_are_good", lacks, forty_relays)]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Good,
    Swallows,
    Slow,
}

fn kind(relay: usize) -> Kind {
    [Kind::Good, Kind::Swallows, Kind::Slow][relay % 3]
}

fn host(relay: usize) -> String {
    format!("r{relay}")
}

fn address(relay: usize) -> String {
    format!("10.77.{relay}.1")
}

fn build() -> Hosts {
    let relays: Vec<(String, String)> = (0..RELAYS).map(|relay| (host(relay), address(relay))).collect();
    let relays = relays.iter().map(|(name, address)| (name.as_str(), address.as_str()));
    let hosts: Vec<_> = [("snd", SENDER), ("rcv", RECEIVER)].into_iter().chain(relays).collect();
    let spaces = Spaces::star("s", &hosts);
    let shape = |host: &str, device: &str, rate: &str| {
        let limits = ["root", "tbf", "rate", rate, "burst", "6kb", "limit", "100kb"];
        spaces.says(host, &[&["tc", "qdisc", "add", "dev", device], limits.as_slice()].concat());
    };
    shape("snd", "eth0", "20mbit");
    for relay in 0..RELAYS {
        match kind(relay) {
            Kind::Good => shape(&host(relay), "eth0", "10mbit"),
            Kind::Slow => shape(&host(relay), "eth0", "100kbit"),
            // Its answers to greetings are short, what it forwards is not.
            Kind::Swallows => {
                let rule = format!(
                    "add table ip t; add chain ip t out {{ type filter hook output priority 0; }}; \
                     add rule ip t out ip daddr {RECEIVER} udp length > 150 drop"
                );
                spaces.says(&host(relay), &["nft", &rule]);
            }
        }
    }
    let direct = format!(
        "add table ip t; add chain ip t f {{ type filter hook forward priority 0; }}; \
         add rule ip t f ip saddr {SENDER} ip daddr {RECEIVER} limit rate over 500 kbytes/second burst 30 kbytes drop"
    );
    spaces.says("hub", &["nft", &direct]);
    let count = "add table ip t; add chain ip t out { type filter hook output priority 0; }; \
                 add rule ip t out udp length 60-299 counter";
    spaces.says("snd", &["nft", count]);
    Hosts::of(spaces)
}

/// Bytes of control packets that left the sender so far, with their IP headers. The firewall counts
/// UDP datagrams of 60 to 299 bytes: data packets are longer, and an ACK alone is shorter.
fn control(hosts: &Hosts) -> u64 {
    let rules = hosts.spaces().says("snd", &["nft", "list", "table", "ip", "t"]);
    let (_, bytes) = rules.split_once("bytes ").expect("a counter");
    bytes.split_whitespace().next().and_then(|bytes| bytes.parse().ok()).expect("a number")
}

fn forty_relays() -> Result<(), Failed> {
    let hosts = build();
    let directory = tempfile::tempdir()?;
    let (source, sink) = (directory.path().join("photos"), directory.path().join("in"));
    byway_files::generate(&source, 3, 64 << 20)?;
    let mut words = String::new();
    let mut running: Vec<Running> = Vec::new();
    for relay in 0..RELAYS {
        let listen = format!("{}:4748", address(relay));
        let arguments = [&["relay", "--listen", &listen], PRIVATE.as_slice()].concat();
        let (process, ready) = hosts.start(&host(relay), directory.path(), &arguments);
        words.push_str(ready["word"].as_str().unwrap());
        words.push('\n');
        running.push(process);
    }
    let list = directory.path().join("relays");
    fs::write(&list, words)?;
    let recv = ["recv", sink.to_str().unwrap(), "--once"];
    let (mut receiver, ready) = hosts.start("rcv", directory.path(), &recv);
    let (list, source_path) = (format!("@{}", list.display()), source.to_str().unwrap());
    let arguments = [
        "send",
        source_path,
        ready["ticket"].as_str().unwrap(),
        "--relay",
        &list,
        "--priority",
        "normal",
        "--no-tcp",
    ];
    let (result, [first, second]) = std::thread::scope(|scope| {
        let counting = scope.spawn(|| {
            std::thread::sleep(LISTED);
            [(); 2].map(|()| {
                let at = (Instant::now(), control(&hosts));
                std::thread::sleep(Duration::from_secs(6));
                at
            })
        });
        let result = send(&hosts, directory.path(), &arguments);
        (result, counting.join().unwrap())
    });
    assert_eq!(receiver.wait(), Some(0));
    assert_eq!(byway_files::compare(&source, &sink.join("photos"))?, []);
    let seconds = second.0.duration_since(first.0).as_secs_f64();
    let rate = (second.1 - first.1) as f64 * 8.0 / seconds;
    let relays = result["relays"].as_array().unwrap();
    let carried = |wanted: Kind| -> u64 {
        let of =
            (0..RELAYS).filter(|relay| kind(*relay) == wanted).map(|relay| format!("{}:", address(relay)));
        let bytes = |host: String| {
            let found = relays.iter().filter(|relay| relay["name"].as_str().unwrap().contains(&host));
            found.map(|relay| relay["bytes"].as_u64().unwrap()).sum::<u64>()
        };
        of.map(bytes).sum()
    };
    let [good, swallowed, slow] = [Kind::Good, Kind::Swallows, Kind::Slow].map(carried);
    println!(
        "{:.1} s, by good relays {good}, by slow ones {slow}, lost in others {swallowed} bytes; control {rate:.0} bit/s; {}",
        result["seconds"].as_f64().unwrap(),
        result["relays_verdict"]
    );
    let unusable = relays.iter().filter(|relay| relay["standing"] == "unusable").count();
    // A relay that drops data still forwards a probe without data. So it is found out only when it
    // is used.
    assert!(unusable >= 10, "{result}");
    assert!(good > 10 * (slow + swallowed), "{result}");
    // The sender's control packets take at most 50 kbit/s. This is a quarter of a percent of the
    // access line's 20 Mbit/s.
    assert!(rate <= 50_000.0, "{rate} bit/s: {result}");
    Ok(())
}
