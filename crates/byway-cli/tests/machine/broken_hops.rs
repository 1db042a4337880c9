//! Transfers over TCP relays while something fails: a relay is killed, connections are reset, or
//! the receiving process is stopped (SIGSTOP) for `SLEEPS`, 11 seconds.
//!
//! Needs root and `ip`, `nft`; otherwise the tests are reported as ignored.

use crate::common::Running;
use crate::common::machine::{PATIENCE, missing, test, wait_for};
use crate::common::parcel::Parcel;
use crate::common::peak::memory;
use crate::common::spaces::Spaces;
use libtest_mimic::{Failed, Trial};
use std::time::Duration;

const SENDER: &str = "10.84.1.1";
const RECEIVER: &str = "10.84.2.1";
const RELAYS: [(&str, &str); 2] = [("r1", "10.84.3.1"), ("r2", "10.84.4.1")];
/// Longer than a relay takes a packet for fresh.
const SLEEPS: Duration = Duration::from_secs(11);
/// What the memory of a relay may change by, whoever sleeps.
const SLACK: u64 = 3 << 20;
/// Times that connections are reset.
const RESETS: usize = 3;

pub fn tests() -> Vec<Trial> {
    let lacks = missing(Spaces::possible(&["nft -v"]), "it needs root and the programs ip and nft");
    vec![
        test("broken_hops::a_relay_is_killed_and_the_other_goes_on", lacks, killed),
        test("broken_hops::connections_are_reset_amid_frames", lacks, reset),
        test("broken_hops::a_receiver_that_sleeps_makes_no_relay_grow", lacks, sleeps),
    ]
}

/// A transfer over TCP by all relays.
struct Site {
    spaces: Spaces,
    parcel: Parcel,
    relays: Vec<Running>,
    receiver: Running,
    sender: Running,
}

impl Site {
    fn new(tag: &str, relays: usize, size: usize, limit: &str) -> Self {
        let relays = &RELAYS[..relays];
        let hosts = [&[("from", SENDER), ("to", RECEIVER)], relays].concat();
        let spaces = Spaces::star(tag, &hosts);
        let rules = format!(
            "add table ip n; add chain ip n pass {{ type filter hook forward priority 0; }}; \
             add chain ip n again {{ type filter hook forward priority 1; }}; \
             add rule ip n pass ip saddr {SENDER} ip daddr {RECEIVER} drop; \
             add rule ip n pass ip saddr {SENDER} meta l4proto udp drop"
        );
        spaces.says("hub", &["nft", &rules]);
        let parcel = Parcel::new(size);
        let start = |host: &str, arguments: &[&str]| spaces.byway(host, &parcel.state(host), arguments);
        let into = parcel.destination().display().to_string();
        let mut receive = vec!["recv".to_owned(), into, "--listen".to_owned(), RECEIVER.to_owned()];
        let relays: Vec<Running> = relays
            .iter()
            .map(|(host, listen)| {
                let arguments = ["relay", "--listen", listen, "--allow-destination", "10.84.0.0/16"];
                let mut relay = start(host, &arguments);
                receive.extend([
                    "--relay".to_owned(),
                    relay.event("ready")["word"].as_str().unwrap().to_owned(),
                ]);
                relay
            })
            .collect();
        let receive: Vec<&str> = receive.iter().map(String::as_str).collect();
        let mut receiver = start("to", &receive);
        let ticket = receiver.event("ready")["ticket"].as_str().unwrap().to_owned();
        let send =
            ["send", &parcel.file(), &ticket, "--bwlimit", limit, "--priority", "normal", "--progress"];
        let sender = start("from", &send);
        Self { spaces, parcel, relays, receiver, sender }
    }

    /// Waits until so many bytes are there.
    fn reaches(&mut self, bytes: u64) {
        while self.sender.event("progress")["bytes"].as_u64().unwrap() < bytes {}
    }

    /// Waits for the end, which is a good one.
    fn arrives(&mut self) {
        let result = self.sender.event("result");
        assert_eq!(result["exit"], 0, "{result}");
        println!("{} s, {}", result["seconds"], result["paths"]);
        self.parcel.arrived();
    }
}

fn killed() -> Result<(), Failed> {
    const SIZE: usize = 8 << 20;
    let mut site = Site::new("bk", 2, SIZE, "1M");
    site.reaches(SIZE as u64 / 4);
    site.relays[0].signal("KILL");
    site.arrives();
    Ok(())
}

/// Both ends of all connections that carry something are told that they are over.
fn reset() -> Result<(), Failed> {
    const SIZE: usize = 8 << 20;
    let mut site = Site::new("br", 1, SIZE, "1M");
    for number in 0..RESETS {
        site.reaches((number + 1) as u64 * SIZE as u64 / (RESETS as u64 + 2));
        let rule = "add rule ip n again meta l4proto tcp counter reject with tcp reset";
        site.spaces.says("hub", &["nft", rule]);
        let hit = wait_for(PATIENCE, || {
            let said = site.spaces.says("hub", &["nft", "list chain ip n again"]);
            let packets = said.split("packets ").nth(1)?.split_whitespace().next()?.parse::<u64>().ok()?;
            (packets > 1).then_some(())
        });
        assert!(hit.is_some(), "nothing is under way");
        site.spaces.says("hub", &["nft", "flush chain ip n again"]);
    }
    site.arrives();
    Ok(())
}

fn sleeps() -> Result<(), Failed> {
    const SIZE: usize = 48 << 20;
    let mut site = Site::new("bs", 1, SIZE, "8M");
    site.reaches(SIZE as u64 / 4);
    let relay = site.relays[0].id();
    let before = memory(relay, "VmRSS").unwrap();
    site.receiver.signal("STOP");
    std::thread::sleep(SLEEPS);
    let after = memory(relay, "VmHWM").unwrap();
    site.receiver.signal("CONT");
    println!(
        "the relay has {} KiB before its receiver sleeps, {} KiB at most after",
        before >> 10,
        after >> 10
    );
    assert!(after < before + SLACK, "{before} {after}");
    site.arrives();
    Ok(())
}
