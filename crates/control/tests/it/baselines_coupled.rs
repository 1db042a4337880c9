//! The coupled algorithms of others: their arithmetic step by step, and what they do on links.

use crate::hand::{PACKET, ack_after, congested, opened};
use crate::model::World;
use byway_control::bundle::Law;
use byway_control::newreno::NewRenoOptions;
use byway_control::{Controller, Coupled, Lia, Trigger, by_name};
use byway_wire::{Duration, Instant, PathId};

const FOREVER: (u64, u64) = (0, u64::MAX / 2_000_000);

/// Paths after slow start with the given windows in packets and RTTs in milliseconds, at a time of
/// ten seconds.
fn bring<L: Law>(law: L, paths: &[(f64, u64)]) -> Coupled<L> {
    let options = NewRenoOptions { initial: 2.0, limit: f64::INFINITY };
    let mut coupled = Coupled::with_options("test", law, options);
    for (path, (window, rtt)) in (0..).zip(paths) {
        coupled.open(PathId(path), &opened(false));
        let at = Instant::from_millis(5_000);
        ack_after(&mut coupled, path, 2.0 * window - 2.0, at, Duration::from_millis(*rtt), &[]);
        coupled.on_congested(PathId(path), &congested(Trigger::Loss, at, Instant::from_millis(9_000)));
        assert_eq!(coupled.window(PathId(path)), Some(*window));
    }
    coupled
}

/// By how much the window of path 0 grows for one packet acknowledged.
fn growth<L: Law>(coupled: &mut Coupled<L>, rtt: u64) -> f64 {
    let before = coupled.window(PathId(0)).unwrap();
    ack_after(coupled, 0, 1.0, Instant::from_millis(10_000), Duration::from_millis(rtt), &[]);
    coupled.window(PathId(0)).unwrap() - before
}

fn close(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-9 * expected.abs().max(1.0), "{value}, expected {expected}");
}

#[test]
fn on_one_path_lia_grows_as_tcp() {
    close(growth(&mut bring(Lia, &[(10.0, 50)]), 50), 0.1);
}

#[test]
fn lia_grows_by_equation_1_of_rfc_6356() {
    // LIA with windows of 10 and 30 packets and equal RTTs: `alpha = 40 * 30 / 40^2 = 3/4`. So the
    // window of path 0 grows by `alpha / cwnd_total = 3/160` per packet acknowledged.
    close(growth(&mut bring(Lia, &[(10.0, 100), (30.0, 100)]), 100), 3.0 / 160.0);
    // 10 packets at 10 ms and 30 at 100 ms: `MAX (cwnd_i/rtt_i^2) = 10/.01^2 = 1e5`, and `SUM
    // (cwnd_i/rtt_i) = 1000 + 300`. Path 0 grows by `1e5/1300^2 = .0592` per packet acknowledged,
    // less than the `1/10` of a TCP.
    close(growth(&mut bring(Lia, &[(10.0, 10), (30.0, 100)]), 10), 1e5 / (1300.0 * 1300.0));
    // 50 packets at 100 ms and 2 at 10 ms: `MAX (cwnd_i/rtt_i^2) = 2e4`, and `SUM (cwnd_i/rtt_i) =
    // 700`. `2e4/700^2 = .0408` is more than the `1/50` of a TCP, so path 0 grows by 1/50 per
    // packet acknowledged.
    close(growth(&mut bring(Lia, &[(50.0, 100), (2.0, 10)]), 100), 0.02);
}

#[test]
fn lia_counts_bytes_where_packets_differ() {
    let options = NewRenoOptions { initial: 10.0, limit: 1.0 };
    let mut lia = Coupled::with_options("test", Lia, options);
    for (path, packet_size) in [(0, PACKET), (1, 500)] {
        lia.open(PathId(path), &byway_control::Opened { packet_size, ..opened(false) });
        let at = Instant::from_millis(9_000);
        lia.on_congested(PathId(path), &congested(Trigger::Loss, at, at));
    }
    // Windows of 5000 and 2500 bytes, equal RTTs. 1000 acknowledged bytes earn `1000 * 5000/7500^2`
    // packets of 1000 bytes.
    close(growth(&mut lia, 100), 1000.0 * 5000.0 / (7500.0 * 7500.0));
}

fn named(name: &str) -> Box<dyn Controller> {
    by_name(name, 1).unwrap()
}

/// The rates of each path of flow 0, and of all paths of flow 1, between two times in seconds, in
/// Mbit/s.
fn rates(world: &mut World, paths: u32, from: u64, until: u64) -> (Vec<f64>, f64) {
    let state = |world: &World| {
        let own: Vec<u64> = (0..paths).map(|path| world.delivered_on(0, path)).collect();
        (own, world.delivered(1))
    };
    world.run(from * 1_000);
    let before = state(world);
    world.run(until * 1_000);
    let after = state(world);
    let rate = |now: u64, then: u64| (now - then) as f64 * 8.0 / 1e6 / (until - from) as f64;
    let own = after.0.iter().zip(&before.0).map(|(now, then)| rate(*now, *then)).collect();
    (own, rate(after.1, before.1))
}

#[test]
fn one_long_path_is_filled() {
    for (name, least) in [("lia", 9.3), ("bmc", 9.3)] {
        let mut world = World::new(1);
        let link = world.link(10.0, 50, 0.0);
        let flow = world.flow(named(name), &[(link, 100)], FOREVER);
        let rate = world.rate(flow, 10_000, 60_000);
        assert!(rate > least, "{name}: {rate}");
    }
}

#[test]
fn three_disjoint_paths_are_filled() {
    for (name, least) in [("lia", 29.5), ("bmc", 29.0)] {
        let mut world = World::new(1);
        let links = [(); 3].map(|()| world.link(10.0, 50, 0.0));
        let flow = world.flow(named(name), &links.map(|link| (link, 20)), FOREVER);
        let rate = world.rate(flow, 10_000, 60_000);
        assert!(rate > least, "{name}: {rate}");
    }
}

#[test]
fn three_paths_through_one_link_are_not_three_tcps() {
    for name in ["lia", "bmc"] {
        let mut world = World::new(1);
        let link = world.link(10.0, 50, 0.0);
        world.flow(named(name), &[(link, 20); 3], FOREVER);
        world.flow(named("newreno"), &[(link, 20)], FOREVER);
        let (own, tcp) = rates(&mut world, 3, 20, 220);
        // NewReno on each of three paths leaves the other a quarter; one flow like all others
        // leaves half.
        assert!(tcp > 4.3, "{name}: {own:?}, TCP {tcp}");
    }
}

#[test]
fn load_moves_to_the_path_that_nobody_else_uses() {
    for name in ["lia", "bmc"] {
        let mut world = World::new(1);
        let links = [(); 2].map(|()| world.link(10.0, 50, 0.0));
        world.flow(named(name), &links.map(|link| (link, 20)), FOREVER);
        world.flow(named("newreno"), &[(links[0], 20)], FOREVER);
        let (own, tcp) = rates(&mut world, 2, 20, 120);
        // Uncoupled, the shared link is halved.
        assert!(own[1] > 9.5 && own[0] < 2.8 && tcp > 7.0, "{name}: {own:?}, TCP {tcp}");
    }
}
