//! Two gateways between hosts that do not know of the gateways. The flows are the kernel's TCP,
//! through real processes on emulated links.
//!
//! Needs root, `ip`, `nft` and `iperf3`.

use crate::common::bench::TRIES;
use crate::common::machine::{Measured, measures, test};
use crate::common::sites::Sites;
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use std::collections::BTreeMap;

pub fn tests() -> Vec<Trial> {
    let lacks = Sites::missing();
    vec![
        measures("gateway::a_kernels_flow_over_three_ways_by_two_gateways", lacks, three_ways),
        measures("gateway::over_one_way_a_flow_loses_little", lacks, one_way),
        test("gateway::a_dead_gateway_leaves_its_flows_to_the_plain_route", lacks, fail_open),
    ]
}

/// Alice behind a gateway, Bob behind another; between the gateways a direct line and two detours,
/// 10 Mbit/s each.
const PLAN: &str = r#"
[[link]]
between = ["alice", "left"]
rate = "200 Mbit/s"
delay = "0.1 ms"
queue = "1000 packets"
[[link]]
between = ["right", "bob"]
rate = "200 Mbit/s"
delay = "0.1 ms"
queue = "1000 packets"
[[link]]
between = ["left", "right"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = "50 packets"
[[link]]
between = ["left", "one"]
rate = "100 Mbit/s"
delay = "5 ms"
queue = "1000 packets"
[[link]]
between = ["one", "right"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = "50 packets"
[[link]]
between = ["left", "two"]
rate = "100 Mbit/s"
delay = "5 ms"
queue = "1000 packets"
[[link]]
between = ["two", "right"]
rate = "10 Mbit/s"
delay = "15 ms"
queue = "50 packets"
"#;

/// Both gateways, with three ways between them.
fn start(sites: &mut Sites) {
    let relays = [sites.relay("one"), sites.relay("two")];
    sites.configure("5201", "", &relays);
    sites.start_both(3);
}

/// Goodput of a transfer from Alice to Bob, Mbit/s.
fn goodput(sites: &Sites, congestion: &str, options: &[&str]) -> f64 {
    let said = sites.bench.iperf("alice", &[&["-c", "bob", "-C", congestion], options].concat());
    said["end"]["sum_received"]["bits_per_second"].as_f64().unwrap() / 1e6
}

/// The part of what a gateway sent that each of its routes carried, the least first.
fn shares(status: &Value) -> Vec<f64> {
    let mut sent = BTreeMap::new();
    for path in status["peers"][0]["paths"].as_array().unwrap() {
        *sent.entry(path["route"].as_str().unwrap()).or_default() += path["sent_bytes"].as_f64().unwrap();
    }
    let all: f64 = sent.values().sum();
    let mut shares: Vec<f64> = sent.into_values().map(|bytes: f64| bytes / all).collect();
    shares.sort_by(f64::total_cmp);
    shares
}

/// Three ways carry half as much again as the plain route, and each of them carries its part. On a
/// quiet machine they carry more. A stall of the machine looks like a queue on all ways at once, so
/// the gateways yield, even if the lab is accurate.
fn three_ways() -> Measured {
    let mut short = None;
    for _ in 0..TRIES {
        let mut sites = Sites::new(PLAN);
        sites.bench.serve("bob");
        let plain = goodput(&sites, "cubic", &["-t", "4"]);
        start(&mut sites);
        let found = ["cubic", "reno"].map(|congestion| {
            // The first seconds are left out: where the kernel's slow start ends is a matter of
            // luck.
            let carried = goodput(&sites, congestion, &["-t", "12", "-O", "4"]);
            let (left, right) = (sites.status("left"), sites.status("right"));
            let (shares, soon) = (shares(&left), right["waited_under_20ms"].as_f64().unwrap());
            println!(
                "{congestion}: {carried:.1} Mbit/s, {plain:.1} by the plain route; by route {shares:.2?}; \
                 {soon:.3} wait less than 20 ms to be put in order; {left} {right}"
            );
            assert_eq!(left["counters"]["too_large"], 0, "{left}");
            sites.assert_none(&left, &["failed_open"]);
            let all_carry = shares.len() == 3 && shares.iter().all(|share| *share > 0.15);
            (congestion, carried / plain, all_carry, soon)
        });
        if !sites.bench.is_accurate() {
            continue;
        }
        short = found.into_iter().find(|(_, gain, all_carry, soon)| *gain < 1.5 || !all_carry || *soon < 0.9);
        if short.is_none() {
            return Ok(Some(()));
        }
    }
    match short {
        Some(found) => Err(format!(
            "congestion control, gain over the plain route, whether all three ways carry, and what part waits \
             less than 20 ms to be put in order: {found:?}, and in no try better"
        )
        .into()),
        None => Ok(None),
    }
}

fn one_way() -> Measured {
    let mut sites = Sites::new(PLAN);
    sites.bench.serve("bob");
    sites.configure("5201", "", &[]);
    sites.start_both(1);
    let carried = goodput(&sites, "cubic", &["-t", "10", "-O", "2"]);
    println!("cubic over one way: {carried:.1} Mbit/s");
    if !sites.bench.is_accurate() {
        return Ok(None);
    }
    assert!(carried > 8.3, "{carried} Mbit/s over one way of 10");
    Ok(Some(()))
}

fn fail_open() -> Result<(), Failed> {
    let mut sites = Sites::new(PLAN);
    sites.bench.serve("bob");
    start(&mut sites);
    assert!(!sites.installed("left").is_empty(), "or this test sees nothing");
    let load = ["iperf3", "-J", "-4", "-c", "bob", "-C", "cubic", "-n", "8M"];
    sites.bench.start("load", "alice", &load);
    // Killed in the middle of a flow.
    let carried = || sites.status("left")["peers"][0]["carried_bytes"].as_u64();
    sites.bench.wait("a flow that is carried", || carried().filter(|bytes| *bytes > 2_000_000));
    sites.bench.stop("left", "KILL");
    // The rest goes by the plain route.
    assert!(sites.bench.end("load").success(), "{}", sites.bench.said("load"));
    Ok(())
}
