//! The rates that transfers must reach on idle lines. Unless a test says otherwise, paths are
//! disjoint, with 10 Mbit/s (with IP and UDP headers), an RTT of 20 ms, queues of 50 packets and an
//! MTU of 1500 bytes.

use crate::common::{MS, Parallel, Plan, both, line, parallel};
use byway_wire::Duration;

const MIB: u64 = 1 << 20;

fn paths(count: usize, congestion: &'static str, size: u64) -> Parallel {
    let pipe = byway_sim::PipeConfig { mtu: Some(1500), ..line(10, 10 * MS) };
    parallel(1, Plan::new(congestion, &[size], &[]), &vec![both(pipe); count])
}

/// Mbit/s of object bytes from 2 s to 14 s.
fn after_two_seconds(count: usize, congestion: &'static str) -> f64 {
    let mut world = paths(count, congestion, 64 * MIB);
    world.world.run_for(Duration::from_secs(14));
    world.world[world.receiver].goodput(Duration::from_secs(2), Duration::from_secs(14)) / 1e6
}

#[test]
fn normal_fills_three_paths() {
    let rate = after_two_seconds(3, "mpath");
    println!("normal, three paths: {rate:.2} Mbit/s");
    assert!(rate >= 27.0, "{rate:.2} Mbit/s");
}

#[test]
fn background_fills_three_paths() {
    let rate = after_two_seconds(3, "background");
    println!("background, three paths: {rate:.2} Mbit/s");
    assert!(rate >= 26.5, "{rate:.2} Mbit/s");
}

#[test]
fn both_classes_fill_one_path() {
    // The sawtooth of `background` is the headroom that it leaves to others.
    for (congestion, least) in [("mpath", 9.2), ("background", 8.9)] {
        let rate = after_two_seconds(1, congestion);
        println!("{congestion}, one path: {rate:.2} Mbit/s");
        assert!(rate >= least, "{congestion}: {rate:.2} Mbit/s");
    }
}

#[test]
fn a_file_as_a_whole() {
    for congestion in ["mpath", "background"] {
        let mut world = paths(3, congestion, 48 * MIB);
        let took = world.finish(Duration::from_secs(30));
        let rate = 48.0 * MIB as f64 * 8.0 / took.as_secs_f64() / 1e6;
        println!("{congestion}, 48 MiB over three paths: {rate:.2} Mbit/s in {took:?}");
        assert!(rate >= 26.0, "{congestion}: {rate:.2} Mbit/s");
    }
}

/// On a line of 100 Mbit/s with an RTT of 100 ms and a random loss of 0.1 %, one path of class
/// `normal` reaches at least 90 % of the rate of CUBIC. There is no other traffic.
#[test]
#[ignore = "slow: measures rates over minutes of simulated time"]
fn normal_gets_what_cubic_gets_where_packets_are_lost_by_chance() {
    let rate = |congestion, seed| {
        let pipe = line(100, 50 * MS).queue(850).loss(0.001);
        let mut world = parallel(seed, Plan::new(congestion, &[256 * MIB], &[]), &[both(pipe)]);
        world.world.run_for(Duration::from_secs(63));
        world.world[world.receiver].goodput(Duration::from_secs(3), Duration::from_secs(63)) / 1e6
    };
    let mean = |congestion| (1..=6).map(|seed| rate(congestion, seed)).sum::<f64>() / 6.0;
    let (normal, cubic) = (mean("mpath"), mean("cubic"));
    println!("100 Mbit/s, 100 ms, 0.1 % lost: normal {normal:.2} Mbit/s, CUBIC {cubic:.2}");
    assert!(normal >= 0.9 * cubic, "{normal:.2} Mbit/s, and CUBIC {cubic:.2}");
}

/// The congestion controller counts in packets of the current size, which path MTU discovery found.
/// At a given random loss, the packets per second are then the same for each size. So the rate is
/// proportional to the packet size.
#[test]
#[ignore = "slow: measures rates over minutes of simulated time"]
fn normal_counts_in_packets_of_the_size_that_passes() {
    let rate = |mtu, seed| {
        let pipe = line(100, 50 * MS).queue(850).loss(0.001).mtu(mtu);
        let mut world = parallel(seed, Plan::new("mpath", &[256 * MIB], &[]), &[both(pipe)]);
        world.world.run_for(Duration::from_secs(123));
        world.world[world.receiver].goodput(Duration::from_secs(3), Duration::from_secs(123)) / 1e6
    };
    let mean = |mtu| (1..=6).map(|seed| rate(mtu, seed)).sum::<f64>() / 6.0;
    let (small, large) = (mean(1_300), mean(1_500));
    println!("datagrams of 1200 bytes: {small:.2} Mbit/s, of 1472: {large:.2}");
    assert!(large >= 1.17 * small, "{large:.2} Mbit/s, and {small:.2} with datagrams of 1200 bytes");
}
