//! A host asks a gateway to carry its flows (`byway gateway join`), until the host leaves again.
//! The flows are the kernel's TCP, through real processes on emulated links.
//!
//! Needs root, `ip`, `nft` and `iperf3`.

use super::detours::PLAN;
use crate::common::bench::BYWAY;
use crate::common::machine::{must, test};
use crate::common::sites::Sites;
use libtest_mimic::{Failed, Trial};
use std::fs;

pub fn tests() -> Vec<Trial> {
    vec![test("joining::a_host_is_served_while_it_wants_to_be", Sites::missing(), guest)]
}

fn key(sites: &Sites, host: &str) -> String {
    let state = sites.bench.word(&format!("state-{host}"));
    must(&mut sites.bench.byway(&["--state-dir", &state, "id"])).trim().to_owned()
}

/// What the gateway of Bob's site knows of hosts behind the other.
fn served(sites: &Sites) -> Vec<String> {
    let status = sites.status("right");
    let served = status["peers"][0]["serves"].as_array().cloned().unwrap_or_default();
    served.iter().filter_map(|served| served.as_str().map(str::to_owned)).collect()
}

/// Sends some megabytes from Alice to Bob; how many of them the gateway of her site carried.
fn carried(sites: &mut Sites, name: &str) -> u64 {
    let before = sites.status("left")["peers"][0]["carried_bytes"].as_u64().unwrap_or_default();
    sites.bench.start(name, "alice", &["iperf3", "-J", "-4", "-c", "bob", "-n", "3M"]);
    assert!(sites.bench.end(name).success(), "{}", sites.bench.said(name));
    sites.status("left")["peers"][0]["carried_bytes"].as_u64().unwrap_or_default() - before
}

fn guest() -> Result<(), Failed> {
    let mut sites = Sites::new(PLAN);
    sites.bench.serve("bob");
    sites.configure("5201", "", &[]);
    let alice = sites.bench.address("alice");
    sites.rewrite("left", &format!("serves = [\"{alice}/32\"]\n"), "");
    let file = sites.bench.path("left.toml");
    let text = fs::read_to_string(&file).unwrap();
    let guest = format!("[[guest]]\nname = \"alice\"\nkey = \"{}\"\n", key(&sites, "alice"));
    fs::write(&file, text + &guest).unwrap();
    sites.start("left");
    sites.start("right");
    sites.bench.wait("a session", || (sites.status("left")["peers"][0]["up"] == true).then_some(()));
    assert_eq!(carried(&mut sites, "before"), 0, "nobody has joined");

    let gateway = format!("{}@{}", key(&sites, "left"), sites.bench.address("left"));
    // A host that the file does not have is refused, and told why.
    let state = sites.bench.word("state-bob");
    let refused = sites.bench.on("bob", &[BYWAY, "--state-dir", &state, "gateway", "join", &gateway]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(6), "{said}");
    assert!(said.contains("this gateway does not know your key"), "{said}");

    let state = sites.bench.word("state-alice");
    sites.bench.start("join", "alice", &[BYWAY, "--state-dir", &state, "gateway", "join", &gateway]);
    sites.bench.wait("a host that has joined", || (served(&sites) == [alice.clone()]).then_some(()));
    let rules = || sites.bench.says("left", &["nft", "list", "table", "inet", "byway_gw"]);
    sites.bench.wait("rules for it", || rules().contains(&alice).then_some(()));
    assert!(carried(&mut sites, "while") > 2 << 20, "{}", sites.status("left"));
    let status = sites.status("left");
    assert_eq!(status["guests"][0]["name"], "alice", "{status}");
    assert_eq!(status["counters"]["refused_guests"], 1, "{status}");

    sites.bench.stop("join", "TERM");
    sites.bench.wait("a host that has left", || served(&sites).is_empty().then_some(()));
    let rules = || sites.bench.says("left", &["nft", "list", "table", "inet", "byway_gw"]);
    sites.bench.wait("no rules for it", || (!rules().contains(&alice)).then_some(()));
    assert_eq!(carried(&mut sites, "after"), 0, "it has left");
    Ok(())
}
