//! Three disjoint paths over TCP relays, where the sender's network drops UDP.
//!
//! ```text
//!              10 Mbit/s           100 Mbit/s
//!           ┌─────────── r1 ─────────┐
//!   sender ─┼─────────── r2 ─────────┼─ receiver      5 ms each
//!           └─────────── r3 ─────────┘
//! ```
//!
//! Needs root, `ip` and `nft`; otherwise the tests are reported as ignored.

use crate::common::bench::{BYWAY, Bench, TRIES};
use crate::common::machine::{Measured, is_root, measures, missing, works};
use libtest_mimic::Trial;
use serde_json::Value;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

const RELAYS: [&str; 3] = ["r1", "r2", "r3"];
/// Megabits per second that are wanted of three times 10.
const WANTED: f64 = 26.0;
/// More than is sent meanwhile.
const SIZE: usize = 200 << 20;
/// How long it is measured.
const LASTS: Duration = Duration::from_secs(10);

pub fn tests() -> Vec<Trial> {
    let root = is_root() && ["ip -V", "nft -v", "unshare --net true"].into_iter().all(works);
    let lacks = missing(root, "it needs root and the programs ip, nft and unshare");
    vec![measures("tcp_bundle::three_paths_over_tcp_relays_fill_three_lines", lacks, bundle)]
}

fn plan() -> String {
    let links = RELAYS.map(|relay| {
        format!(
            "[[link]]\nbetween = [\"sender\", \"{relay}\"]\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\nqueue = \"50 packets\"\n\
             [[link]]\nbetween = [\"{relay}\", \"receiver\"]\nrate = \"100 Mbit/s\"\ndelay = \"5 ms\"\nqueue = \"200 packets\"\n"
        )
    });
    links.concat()
}

struct Site {
    bench: Bench,
}

impl Site {
    fn new() -> Self {
        let mut site = Self { bench: Bench::new() };
        site.bench.up("bundle", &plan());
        let receiver = site.bench.address("receiver");
        // Relays alone lead to the receiver, and over TCP alone.
        let rules = format!(
            "add table inet n; add chain inet n out {{ type filter hook output priority 0; }}; \
             add rule inet n out meta l4proto udp drop; add rule inet n out ip daddr {receiver} drop; \
             add rule inet n out ip6 daddr fd66::/64 drop"
        );
        site.bench.says("sender", &["nft", &rules]);
        let mut words = Vec::new();
        for relay in RELAYS {
            let listen = format!("{}:4748", site.bench.address(relay));
            site.start(relay, &["relay", "--listen", &listen, "--allow-destination", "10.66.0.0/16"]);
            words.push(site.ready(relay, "word"));
        }
        let into = site.bench.word("in");
        let words = words.iter().flat_map(|word| ["--relay", word.as_str()]);
        let receive: Vec<&str> =
            ["recv", into.as_str(), "--listen", receiver.as_str()].into_iter().chain(words).collect();
        site.start("receiver", &receive);
        let ticket = site.ready("receiver", "ticket");
        let file = site.bench.word("file");
        fs::write(&file, vec![7; SIZE]).unwrap();
        site.start("sender", &["send", &file, &ticket, "--priority", "normal", "--progress"]);
        site
    }

    fn start(&mut self, host: &str, arguments: &[&str]) {
        let state = self.bench.word(&format!("{host}-state"));
        self.bench.start(host, host, &[&[BYWAY, "--json", "--state-dir", &state], arguments].concat());
    }

    fn ready(&self, name: &str, field: &str) -> String {
        let line = self.bench.line(name);
        let event: Value = serde_json::from_str(&line).unwrap();
        event[field].as_str().unwrap_or_else(|| panic!("{line}")).to_owned()
    }

    /// Bytes that the receiver has.
    fn bytes(&self) -> u64 {
        let said = self.bench.said("sender");
        let mut events = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let last = events.rfind(|event| event["event"] == "progress");
        last.map_or(0, |event| event["bytes"].as_u64().unwrap())
    }

    /// Waits for the next look at how far the transfer is; that, and when it was.
    fn look(&self) -> (u64, Instant) {
        let before = self.bytes();
        let now = self.bench.wait("progress", || Some(self.bytes()).filter(|now| *now > before));
        (now, Instant::now())
    }
}

fn bundle() -> Measured {
    for _ in 0..TRIES {
        let site = Site::new();
        site.bench.wait("the transfer", || (site.bytes() > 4_000_000).then_some(()));
        let (before, begun) = site.look();
        sleep(LASTS);
        let (after, ended) = site.look();
        let rate = (after - before) as f64 * 8e-6 / (ended - begun).as_secs_f64();
        println!("three paths over TCP relays of 10 Mbit/s each: {rate:.1} Mbit/s");
        if !site.bench.is_accurate() {
            continue;
        }
        assert!(rate >= WANTED, "{rate} Mbit/s {}", site.bench.said("sender"));
        return Ok(Some(()));
    }
    Ok(None)
}
