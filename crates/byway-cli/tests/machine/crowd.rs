//! Overload of gateways: ten thousand flows at once, and a flood of SYNs. Flows must arrive intact,
//! memory and tables must stay within the configured limits, and counters must report drops.
//!
//! Needs root, `ip`, `nft` and `iperf3`.

pub mod play;

use crate::common::machine::{Measured, measures};
use crate::common::sites::Sites;
use crate::sites::pour;
use libtest_mimic::Trial;
use std::fs;

pub fn tests() -> Vec<Trial> {
    let name = "crowd::ten_thousand_flows_at_once_and_a_flood_of_syns";
    vec![measures(name, Sites::missing(), crowd_and_flood)]
}

const PLAN: &str = r#"
[[link]]
between = ["alice", "left"]
rate = "400 Mbit/s"
delay = "0.1 ms"
queue = "20000 packets"
[[link]]
between = ["right", "bob"]
rate = "400 Mbit/s"
delay = "0.1 ms"
queue = "20000 packets"
[[link]]
between = ["left", "right"]
rate = "100 Mbit/s"
delay = "2 ms"
queue = "500 packets"
"#;

const FLOWS: usize = 10_000;
const SYNS: usize = 200_000;
/// What the tables of a gateway hold by its configuration.
const TABLE: u64 = 12_000;
const OPENING: u64 = 1_000;
/// The limits of what waits, MiB, and what a gateway may have besides: the program itself, the
/// tables, buffers of its sockets.
const WAITS: u64 = 8 + 16;
const BESIDES: u64 = 40;
const PORTS: [u16; 3] = [5201, 5202, 5203];
const LAST_PORT: u16 = PORTS[2] + 9;

/// The most memory that a gateway ever had, MiB.
fn peak(sites: &Sites, host: &str) -> u64 {
    let number = fs::read_to_string(sites.bench.path(&format!("{host}.pid"))).unwrap();
    let status = sites.bench.says(host, &["cat", &format!("/proc/{}/status", number.trim())]);
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1_024
}

fn crowd_and_flood() -> Measured {
    let mut sites = Sites::new(PLAN);
    sites.configure(&format!("{}-{LAST_PORT}", PORTS[0]), "", &[]);
    let [alice, bob] = ["alice", "bob"].map(|host| sites.bench.address(host));
    for host in ["left", "right"] {
        // Alice may also be who she pretends to be.
        sites.rewrite(host, &format!("[\"{alice}/32\"]"), &format!("[\"{alice}/32\", \"198.18.0.0/15\"]"));
        let limits = format!(
            "[limits]\nflows = {TABLE}\nopening = {OPENING}\nentry = \"8M\"\nreorder = \"16M\"\n\n[[rule]]"
        );
        sites.rewrite(host, "[[rule]]", &limits);
    }
    sites.start_both(1);

    let [port, other, flooded] = PORTS;
    let strings = |words: &[String]| words.to_vec();
    let start = |sites: &mut Sites, name: &str, host: &str, words: Vec<String>| {
        sites.bench.start(name, host, &words.iter().map(String::as_str).collect::<Vec<_>>());
    };
    start(&mut sites, "answer", "bob", strings(&play::answer_words(port, FLOWS)));
    sites.bench.line("answer");
    let go = sites.bench.word("go");
    start(&mut sites, "crowd", "alice", strings(&play::crowd_words(&format!("{bob}:{port}"), FLOWS, &go)));
    println!("{}", sites.bench.line("crowd"));
    for host in ["left", "right"] {
        assert!(sites.status(host)["flows"].as_u64() >= Some(FLOWS as u64), "{}", sites.status(host));
    }
    fs::write(&go, "").unwrap();
    for name in ["crowd", "answer"] {
        assert!(sites.bench.end(name).success(), "{}", sites.bench.complained(name));
    }
    println!("{}", sites.bench.said("crowd").lines().last().unwrap());
    let before = ["left", "right"].map(|host| peak(&sites, host));
    println!("the gateways have had {before:?} MiB");

    // A flow that is open, and SYNs of which most pretend.
    const MUCH: u64 = 150_000_000;
    start(&mut sites, "sink", "bob", strings(&pour::sink_words(false, other)));
    sites.bench.line("sink");
    start(&mut sites, "pour", "alice", strings(&pour::pour_words(&format!("{bob}:{other}"), "cubic", MUCH)));
    sites.bench.line("sink");
    let arrived = |sites: &Sites| -> u64 {
        sites.bench.said("sink").lines().filter_map(|line| line.parse().ok()).next_back().unwrap_or(0)
    };
    sites.bench.wait("the flow", || (arrived(&sites) > 1_000_000).then_some(()));
    start(&mut sites, "flood", "alice", strings(&play::flood_words(&alice, &bob, flooded, SYNS)));
    let at = arrived(&sites);
    let mut most = 0;
    while !sites.bench.is_over("flood") {
        most = most.max(sites.status("left")["flows"].as_u64().unwrap());
    }
    println!(
        "{} while the other flow had {} MB",
        sites.bench.said("flood").trim(),
        (arrived(&sites) - at) / 1_000_000
    );
    assert!(arrived(&sites) > at, "the flow that was open stands still");
    for name in ["pour", "sink"] {
        assert!(sites.bench.end(name).success(), "{}", sites.bench.complained(name));
    }
    let hash = sites.bench.line("pour");
    assert!(sites.bench.said("sink").contains(&hash), "something else came");

    for (host, before) in ["left", "right"].into_iter().zip(before) {
        let (status, peak) = (sites.status(host), peak(&sites, host));
        println!("{host}: {peak} MiB; {status}");
        assert!(peak < WAITS + BESIDES, "{host} had {peak} MiB, {before} before the flood");
        assert!(status["flows"].as_u64() <= Some(TABLE), "{status}");
        sites.assert_none(&status, &["lost_sessions"]);
    }
    assert!(most <= TABLE, "{most} flows in a table of {TABLE}");
    let pushed_out = sites.count("left", "pushed_out");
    assert!(pushed_out > SYNS as u64 / 4, "{pushed_out} were pushed out");
    Ok(Some(()))
}
