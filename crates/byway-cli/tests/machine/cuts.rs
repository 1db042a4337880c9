//! UDP is blocked in mid-transfer and restored later. The tests measure when bytes flow again, and
//! count at the router which protocol carries them.
//!
//! ```text
//!   sender 10.82.1.1 ─── hub ─── receiver 10.82.2.1
//!                         ├───── relay 10.82.3.1
//!                         └───── stranger 10.82.4.1, 198.19.0.0/16
//! ```
//!
//! Needs root and `ip`, `nft`; otherwise the tests are reported as ignored.

use crate::common::Running;
use crate::common::machine::{Measured, PATIENCE, measures, missing, wait_for};
use crate::common::spaces::Spaces;
use libtest_mimic::Trial;
use std::fs;
use std::time::{Duration, Instant};

pub const SENDER: &str = "10.82.1.1";
pub const RECEIVER: &str = "10.82.2.1";
pub const RELAY: &str = "10.82.3.1";
/// A host that is also whoever has an address of 198.19.0.0/16.
pub const STRANGER: &str = "10.82.4.1";
/// More than is sent meanwhile.
const SIZE: usize = 300 << 20;
/// Bytes flow again so soon after UDP is cut.
const FLOWS: Duration = Duration::from_secs(3);
/// UDP carries again so soon after it is restored.
const BACK: Duration = Duration::from_secs(20);
/// Bytes in which TCP ends what it has begun, and asks whether the other side lives.
const RESTS: u64 = 50_000;

pub fn tests() -> Vec<Trial> {
    let lacks = missing(Spaces::possible(&["nft -v"]), "it needs root and the programs ip and nft");
    vec![
        measures("cuts::a_direct_transfer_goes_on_over_tcp_and_back_over_udp", lacks, || cut("d", false)),
        measures("cuts::a_relayed_transfer_goes_on_over_tcp_and_back_over_udp", lacks, || cut("r", true)),
    ]
}

/// The hosts, and what they keep.
pub struct Net {
    pub spaces: Spaces,
    pub directory: tempfile::TempDir,
}

/// A transfer's programs.
pub struct Transfer {
    pub relay: Option<Running>,
    pub receiver: Running,
    _sender: Running,
}

impl Net {
    pub fn new(tag: &str) -> Self {
        let hosts = [("from", SENDER), ("to", RECEIVER), ("relay", RELAY), ("bad", STRANGER)];
        let spaces = Spaces::star(tag, &hosts);
        spaces.says("bad", &["ip", "route", "add", "local", "198.19.0.0/16", "dev", "lo"]);
        spaces.says("hub", &["ip", "route", "add", "198.18.0.0/15", "via", STRANGER]);
        let table = format!(
            "add table ip n; add chain ip n count {{ type filter hook prerouting priority -1; }}; \
             add chain ip n pass {{ type filter hook forward priority 0; }}; \
             add chain ip n always {{ type filter hook forward priority 1; }}; \
             add rule ip n count ip saddr {SENDER} meta l4proto udp counter; \
             add rule ip n count ip saddr {SENDER} meta l4proto tcp counter"
        );
        spaces.says("hub", &["nft", &table]);
        Self { spaces, directory: tempfile::tempdir().unwrap() }
    }

    pub fn rule(&self, rule: &str) {
        self.spaces.says("hub", &["nft", rule]);
    }

    /// Bytes that came from the sender so far, over UDP and over TCP.
    pub fn counted(&self) -> (u64, u64) {
        let said = self.spaces.says("hub", &["nft", "list chain ip n count"]);
        let mut counters = said.split("bytes ").skip(1).map(|rest| rest.split_whitespace().next());
        let mut next = || counters.next().flatten().and_then(|bytes| bytes.parse().ok()).unwrap();
        (next(), next())
    }

    /// Waits until so much was counted.
    #[track_caller]
    pub fn wait(&self, what: &str, is_enough: impl Fn(u64, u64) -> bool) -> (u64, u64) {
        let reached = wait_for(PATIENCE, || Some(self.counted()).filter(|(udp, tcp)| is_enough(*udp, *tcp)));
        reached.unwrap_or_else(|| panic!("{what}: {:?}", self.counted()))
    }

    fn start(&self, host: &str, arguments: &[&str]) -> Running {
        self.spaces.byway(host, &self.directory.path().join(host), arguments)
    }

    /// A transfer of 1 MB/s that does not end. Only the relay leads to its receiver if it is to be
    /// `relayed`.
    pub fn transfer(&self, relayed: bool) -> Transfer {
        let into = self.directory.path().join("in").display().to_string();
        let mut receive = vec!["recv", &into, "--listen", RECEIVER];
        let (mut relay, word);
        relay = None;
        if relayed {
            self.rule(&format!("add rule ip n always ip saddr {SENDER} ip daddr {RECEIVER} drop"));
            let relays = ["relay", "--listen", RELAY, "--allow-destination", "10.82.0.0/16"];
            word = relay.insert(self.start("relay", &relays)).event("ready")["word"].clone();
            receive.extend(["--relay", word.as_str().unwrap()]);
        }
        let mut receiver = self.start("to", &receive);
        let ticket = receiver.event("ready")["ticket"].as_str().unwrap().to_owned();
        let file = self.directory.path().join("file");
        fs::write(&file, vec![7; SIZE]).unwrap();
        let send = ["send", file.to_str().unwrap(), &ticket, "--bwlimit", "1M", "--priority", "normal"];
        Transfer { relay, receiver, _sender: self.start("from", &send) }
    }
}

fn cut(tag: &str, relayed: bool) -> Measured {
    let net = Net::new(tag);
    let _running = net.transfer(relayed);
    net.wait("UDP carries", |udp, _| udp > 1_000_000);
    net.rule("add rule ip n pass meta l4proto udp drop");
    let at = Instant::now();
    net.wait("TCP carries", |_, tcp| tcp > 100_000);
    let flows = at.elapsed();
    // All that TCP has to do is done before UDP is back.
    let (udp, _) = net.wait("TCP goes on", |_, tcp| tcp > 3_000_000);
    net.rule("flush chain ip n pass");
    let at = Instant::now();
    let (udp, _) = net.wait("UDP carries again", |now, _| now > udp + 200_000);
    let back = at.elapsed();
    let (udp, rests) = net.wait("UDP goes on", |now, _| now > udp + 4_000_000);
    let (udp, tcp) = net.wait("UDP goes on still", |now, _| now > udp + 3_000_000);
    println!(
        "bytes flow {flows:.1?} after the cut, over UDP {back:.1?} after its return; later {} of {udp} bytes go over TCP",
        tcp - rests
    );
    assert!(flows < FLOWS && back < BACK, "{flows:?} {back:?}");
    assert!(tcp - rests < RESTS, "TCP goes on: {rests} {tcp}");
    Ok(Some(()))
}
