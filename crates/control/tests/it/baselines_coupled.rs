//! The coupled algorithms of others: their arithmetic step by step, and what they do on links.

use crate::hand::{PACKET, ack_after, congested, opened};
use crate::model::World;
use byway_control::bundle::Law;
use byway_control::newreno::Options;
use byway_control::{Balia, Controller, Coupled, Lia, Olia, Trigger, WVegas, by_name};
use byway_wire::{Duration, Instant, PathId};

const FOREVER: (u64, u64) = (0, u64::MAX / 2_000_000);

/// Paths out of slow start with the given windows in packets and RTTs in milliseconds, at a time of ten seconds.
fn bring<L: Law>(law: L, paths: &[(f64, u64)]) -> Coupled<L> {
    let options = Options { initial: 2.0, limit: f64::INFINITY };
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
fn on_one_path_each_grows_as_tcp() {
    close(growth(&mut bring(Lia, &[(10.0, 50)]), 50), 0.1);
    close(growth(&mut bring(Olia, &[(10.0, 50)]), 50), 0.1);
    close(growth(&mut bring(Balia, &[(10.0, 50)]), 50), 0.1);
}

#[test]
fn lia_grows_by_equation_1_of_rfc_6356() {
    // Equal RTTs, 10 and 30 packets: alpha = 40 * 30 / 40^2 = 3/4, alpha/total = 3/160.
    close(growth(&mut bring(Lia, &[(10.0, 100), (30.0, 100)]), 100), 3.0 / 160.0);
    // 10 packets at 10 ms, 30 at 100 ms: max 10/.01^2 = 1e5, sum 1000 + 300: 1e5/1300^2 = .0592 per packet; TCP: .1.
    close(growth(&mut bring(Lia, &[(10.0, 10), (30.0, 100)]), 10), 1e5 / (1300.0 * 1300.0));
    // 50 packets at 100 ms beside 2 at 10 ms: max 2e4, sum 700: .0408 per packet, but TCP's .02 is the limit.
    close(growth(&mut bring(Lia, &[(50.0, 100), (2.0, 10)]), 100), 0.02);
}

#[test]
fn lia_counts_bytes_where_packets_differ() {
    let options = Options { initial: 10.0, limit: 1.0 };
    let mut lia = Coupled::with_options("test", Lia, options);
    for (path, packet_size) in [(0, PACKET), (1, 500)] {
        lia.open(PathId(path), &byway_control::Opened { packet_size, ..opened(false) });
        let at = Instant::from_millis(9_000);
        lia.on_congested(PathId(path), &congested(Trigger::Loss, at, at));
    }
    // 5000 and 2500 bytes, equal RTT: 1000 bytes acknowledged earn 1000 * 5000/7500^2 of a packet of 1000.
    close(growth(&mut lia, 100), 1000.0 * 5000.0 / (7500.0 * 7500.0));
}

#[test]
fn balia_grows_and_shrinks_by_its_formulas() {
    // x: 100 and 300 per second; alpha = 3: 100/(.1 * 400^2) * 4/2 * 7/5.
    let mut balia = bring(Balia, &[(10.0, 100), (30.0, 100)]);
    let grown = growth(&mut balia, 100);
    close(grown, 100.0 / (0.1 * 160_000.0) * 2.0 * 1.4);
    // As the kernel: packets to acknowledge for one more, 10 w S^2 / ((x + max)(4 x + max)).
    close(1.0 / grown, 10.0 * 10.0 * 160_000.0 / (400.0 * 700.0));
    // The slower path loses three quarters, the faster half.
    let at = Instant::from_millis(20_000);
    let before = balia.window(PathId(0)).unwrap();
    balia.on_congested(PathId(0), &congested(Trigger::Loss, at, at));
    close(balia.window(PathId(0)).unwrap(), before / 4.0);
    balia.on_congested(PathId(1), &congested(Trigger::Loss, at, at));
    close(balia.window(PathId(1)).unwrap(), 15.0);
}

#[test]
fn olia_moves_growth_from_the_largest_windows_to_the_best_paths() {
    // Path 0 has had more acknowledged since its loss than path 1 ever between losses, but a smaller window.
    let mut olia = bring(Olia, &[(10.0, 100), (30.0, 100)]);
    let linked = 10.0 / (40.0 * 40.0);
    close(growth(&mut olia, 100), linked);
    let at = Instant::from_millis(11_000);
    ack_after(&mut olia, 0, 100.0, at, Duration::from_millis(100), &[]);
    let window = olia.window(PathId(0)).unwrap();
    let linked = window / ((window + 30.0) * (window + 30.0));
    close(growth(&mut olia, 100), linked + 0.5 / window);
    // And the other cedes as much.
    let window = olia.window(PathId(0)).unwrap();
    ack_after(&mut olia, 1, 1.0, at, Duration::from_millis(100), &[]);
    let linked = 30.0 / ((window + 30.0) * (window + 30.0));
    close(olia.window(PathId(1)).unwrap(), 30.0 + linked - 0.5 / 30.0);
}

#[test]
fn olia_forgets_a_distance_at_the_loss_after_the_next() {
    let mut olia = bring(Olia, &[(10.0, 100), (30.0, 100)]);
    // Path 1 has had 58 packets before its loss, path 0 eighteen: path 1 is the best, and has the largest window.
    close(growth(&mut olia, 100), 10.0 / 1600.0);
    // After two losses in short order that is forgotten, and path 0 is the best; but path 1 has still the larger window.
    for at in [20_000, 21_000] {
        ack_after(&mut olia, 1, 1.0, Instant::from_millis(at), Duration::from_millis(1), &[]);
        let at = Instant::from_millis(at + 500);
        olia.on_congested(PathId(1), &congested(Trigger::Loss, at, at));
    }
    let mut olia = {
        // Its RTT was measured as 1 ms above: bring it back.
        ack_after(&mut olia, 1, 0.0, Instant::from_millis(22_000), Duration::from_millis(100), &[]);
        olia
    };
    let (a, b) = (olia.window(PathId(0)).unwrap(), olia.window(PathId(1)).unwrap());
    let (linked, grown) = (a / ((a + b) * (a + b)), growth(&mut olia, 100));
    assert!(a > b, "{a} {b}");
    close(grown, linked);
}

#[test]
fn wvegas_keeps_its_packets_waiting_and_drains_when_the_queue_doubles() {
    let mut vegas = bring(WVegas, &[(40.0, 100)]);
    let mut at = 10_000;
    let mut round = |vegas: &mut Coupled<WVegas>, rtt: u64| {
        ack_after(vegas, 0, 1.0, Instant::from_millis(at), Duration::from_millis(rtt), &[]);
        at += 1_000;
        vegas.window(PathId(0)).unwrap()
    };
    // The base is 100 ms. Nothing waits: one more packet. Alone, alpha becomes 10 at the first that waits too long.
    assert_eq!(round(&mut vegas, 100), 41.0);
    // 41 * 20/120 = 6.8 wait, more than the initial two: now ten may wait, and six are fewer.
    assert_eq!(round(&mut vegas, 120), 42.0);
    // 42 * 33/133 = 10.4: rest.
    assert_eq!(round(&mut vegas, 133), 42.0);
    // 42 * 39/139 = 11.8: one less; 39 ms is less than twice 20.
    assert_eq!(round(&mut vegas, 139), 41.0);
    // 60 ms is thrice the least: 41 - 1, times 100/(2 * 160); and slow start begins, with the packet acknowledged.
    assert_eq!(round(&mut vegas, 160), 40.0 * 100.0 / 320.0 + 1.0);
}

#[test]
fn wvegas_shares_ten_packets_by_rate() {
    let mut vegas = bring(WVegas, &[(30.0, 100), (10.0, 100)]);
    let round = |vegas: &mut Coupled<WVegas>, path, at| {
        ack_after(vegas, path, 1.0, Instant::from_millis(at), Duration::from_millis(151), &[]);
        vegas.window(PathId(path)).unwrap()
    };
    // 30 * 51/151 = 10.1 wait: alone so far, alpha is ten, the window rests.
    assert_eq!(round(&mut vegas, 0, 10_000), 30.0);
    // 3.4 wait on the other: its share of the rate is a quarter, two packets of ten, so one is too many.
    assert_eq!(round(&mut vegas, 1, 10_000), 9.0);
    // Now three quarters: seven packets, and ten are too many.
    assert_eq!(round(&mut vegas, 0, 11_000), 29.0);
}

fn named(name: &str) -> Box<dyn Controller> {
    by_name(name, 1).unwrap()
}

/// Mbit/s of the paths of flow 0 and of all of flow 1 between two times in seconds.
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
    // wVegas drains it again and again: 7.05 of 10 Mbit/s.
    for (name, least) in [("lia", 9.3), ("olia", 9.3), ("balia", 9.3), ("bmc", 9.3), ("wvegas", 6.7)] {
        let mut world = World::new(1);
        let link = world.link(10.0, 50, 0.0);
        let flow = world.flow(named(name), &[(link, 100)], FOREVER);
        let rate = world.rate(flow, 10_000, 60_000);
        assert!(rate > least, "{name}: {rate}");
    }
}

#[test]
fn three_disjoint_paths_are_filled() {
    // wVegas drains its paths whenever a queueing delay has doubled: 26.8 of 30 Mbit/s, and 29.8 if it did not.
    for (name, least) in [("lia", 29.5), ("olia", 29.5), ("balia", 29.5), ("wvegas", 25.5), ("bmc", 29.0)] {
        let mut world = World::new(1);
        let links = [(); 3].map(|()| world.link(10.0, 50, 0.0));
        let flow = world.flow(named(name), &links.map(|link| (link, 20)), FOREVER);
        let rate = world.rate(flow, 10_000, 60_000);
        assert!(rate > least, "{name}: {rate}");
    }
}

#[test]
fn three_paths_through_one_link_are_not_three_tcps() {
    for name in ["lia", "olia", "balia", "wvegas", "bmc"] {
        let mut world = World::new(1);
        let link = world.link(10.0, 50, 0.0);
        world.flow(named(name), &[(link, 20); 3], FOREVER);
        world.flow(named("newreno"), &[(link, 20)], FOREVER);
        let (own, tcp) = rates(&mut world, 3, 20, 220);
        // NewReno on each of three paths leaves the other a quarter; one flow like all others leaves half.
        assert!(tcp > 4.3, "{name}: {own:?}, TCP {tcp}");
    }
}

#[test]
fn load_moves_to_the_path_that_nobody_else_uses() {
    for name in ["lia", "olia", "balia", "wvegas", "bmc"] {
        let mut world = World::new(1);
        let links = [(); 2].map(|()| world.link(10.0, 50, 0.0));
        world.flow(named(name), &links.map(|link| (link, 20)), FOREVER);
        world.flow(named("newreno"), &[(links[0], 20)], FOREVER);
        let (own, tcp) = rates(&mut world, 2, 20, 120);
        // Uncoupled, the shared link is halved.
        assert!(own[1] > 9.5 && own[0] < 2.8 && tcp > 7.0, "{name}: {own:?}, TCP {tcp}");
    }
}
