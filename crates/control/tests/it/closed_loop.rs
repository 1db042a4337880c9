//! Controllers against links that are made of nothing but capacity, delay and a drop-tail queue.

use crate::model::{World, megabits};
use byway_control::{Class, Controller, by_name};
use byway_wire::{Duration, PathId};

fn named(name: &str) -> Box<dyn Controller> {
    by_name(name, 1).unwrap()
}

fn background() -> Box<dyn Controller> {
    Class::Background.controller(1)
}

const FOREVER: (u64, u64) = (0, u64::MAX / 2_000_000);

#[test]
fn three_disjoint_paths_are_filled_after_two_seconds() {
    for (class, least) in [(Class::Background, 28.0), (Class::Normal, 29.5)] {
        let mut world = World::new(1);
        let links = [(); 3].map(|()| world.link(10.0, 50, 0.0));
        let flow = world.flow(class.controller(1), &links.map(|link| (link, 20)), FOREVER);
        for (from, until) in [(2_000, 12_000), (12_000, 60_000)] {
            let rate = world.rate(flow, from, until);
            assert!(rate > least, "{class:?} {from}: {rate}");
        }
    }
}

#[test]
fn one_path_is_filled_at_any_rtt_with_and_without_random_loss() {
    for rtt in [5, 20, 50, 100, 300] {
        for loss in [0.0, 0.001, 0.005] {
            let mut world = World::new(2);
            let link = world.link(10.0, 50, loss);
            let flow = world.flow(background(), &[(link, rtt)], FOREVER);
            for (from, until) in [(5_000, 10_000), (10_000, 40_000)] {
                let rate = world.rate(flow, from, until);
                // Two cases may stay below 9 Mbit/s. At an RTT of 5 ms, the receiver's ACKs come
                // only every 10 ms, less often than once per RTT. At an RTT of 300 ms and 0.5 % of
                // loss, the flow reaches 8.8 Mbit/s.
                let least = match rtt {
                    5 => 8.2,
                    300 => 8.5,
                    _ => 9.0,
                };
                assert!(rate > least, "RTT {rtt} ms, loss {loss}, from {from}: {rate}");
            }
        }
    }
}

#[test]
fn slow_and_fast_links_are_filled_too() {
    for (capacity, queue) in [(1.0, 50), (100.0, 500)] {
        for rtt in [5, 20, 100] {
            let mut world = World::new(2);
            let link = world.link(capacity, queue, 0.0);
            let flow = world.flow(background(), &[(link, rtt)], FOREVER);
            let rate = world.rate(flow, 4_000, 30_000);
            assert!(rate > 0.88 * capacity, "{capacity} Mbit/s, RTT {rtt} ms: {rate}");
        }
    }
}

#[test]
fn background_yields_to_a_tcp_and_returns_when_it_ends() {
    for rtt in [20, 100] {
        for (tcp_from, background_from) in [(0, 5_000), (5_000, 0)] {
            let alone = {
                let mut world = World::new(3);
                let link = world.link(10.0, 50, 0.0);
                let tcp = world.flow(named("newreno"), &[(link, rtt)], (tcp_from, 40_000));
                world.rate(tcp, 10_000, 40_000)
            };
            let mut world = World::new(3);
            let link = world.link(10.0, 50, 0.0);
            let tcp = world.flow(named("newreno"), &[(link, rtt)], (tcp_from, 40_000));
            let flow = world.flow(background(), &[(link, rtt)], (background_from, u64::MAX / 2_000_000));
            let rate = world.rate(tcp, 10_000, 40_000);
            assert!(rate > 0.97 * alone, "RTT {rtt}, TCP from {tcp_from}: {rate} of {alone}");
            let back = world.rate(flow, 50_000, 60_000);
            assert!(back > 9.3, "RTT {rtt}, TCP from {tcp_from}: {back}");
        }
    }
}

#[test]
fn background_leaves_the_shared_path_and_keeps_the_others() {
    let mut world = World::new(3);
    let links = [(); 3].map(|()| world.link(10.0, 50, 0.0));
    let flow = world.flow(background(), &links.map(|link| (link, 20)), FOREVER);
    let tcp = world.flow(named("newreno"), &[(links[1], 20)], (5_000, 60_000));
    world.run(10_000);
    let (tcp_before, flow_before) = (world.delivered(tcp), world.delivered(flow));
    world.run(60_000);
    let tcp_rate = megabits(world.delivered(tcp) - tcp_before, 10_000, 60_000);
    let rate = megabits(world.delivered(flow) - flow_before, 10_000, 60_000);
    assert!(tcp_rate > 9.7, "{tcp_rate}");
    assert!(rate > 18.8, "{rate}");
    let after = world.rate(flow, 65_000, 75_000);
    assert!(after > 28.0, "{after}");
}

#[test]
fn a_queue_kept_full_by_others_does_not_become_the_base() {
    let mut world = World::new(4);
    let link = world.link(10.0, 50, 0.0);
    let flow = world.flow(background(), &[(link, 20)], FOREVER);
    world.flow(named("newreno"), &[(link, 20)], (3_000, 400_000));
    let rate = world.rate(flow, 300_000, 400_000);
    assert!(rate < 0.2, "{rate}");
}

#[test]
#[ignore = "slow: measures rates over minutes of simulated time"]
fn its_own_queue_does_not_become_the_base_either() {
    // The flow is alone for 700 s, so each queue is its own. None of these queues may raise the
    // base delay.
    let mut world = World::new(5);
    let link = world.link(100.0, 5_000, 0.0);
    let flow = world.flow(background(), &[(link, 5)], FOREVER);
    world.run(5_000);
    let limit = |world: &World| world.flows[flow].controller.allowance(PathId(0)).delay_limit.unwrap();
    let before = limit(&world);
    let rate = world.rate(flow, 5_000, 700_000);
    // The limit may follow jitter by some milliseconds. A base that rose with the queue would rise
    // without end.
    assert!((limit(&world) - before).abs() < 8_000_000, "{before} became {}", limit(&world));
    assert!(rate > 80.0, "{rate}");
    assert_eq!(world.links[link].dropped, 0);
}

#[test]
fn jitter_is_no_congestion() {
    for class in [Class::Background, Class::Normal] {
        let mut world = World::new(6);
        let link = world.link(10.0, 50, 0.0);
        let flow = world.flow(class.controller(1), &[(link, 40)], FOREVER);
        // Uniform: packets that are clearly late come every few, but not in a row.
        world.jitter(flow, 0, Duration::from_micros(1_100));
        let rate = world.rate(flow, 3_000, 30_000);
        assert!(rate > 9.0, "{class:?}: {rate}");
    }
}

#[test]
fn more_jitter_is_no_congestion_either() {
    // Jitter here is several times a packet's transmission time, so it delays several packets in a
    // row, like a queue. The flow mistakes jitter for a queue and slows down. Only the links of 12
    // and 5 Mbit/s are used well.
    for (capacity, rtt, jitter, least) in
        [(20.0, 20, 10, 3.5), (40.0, 6, 5, 8.5), (100.0, 40, 10, 3.0), (12.0, 50, 8, 8.0), (5.0, 30, 10, 3.5)]
    {
        let mut world = World::new(6);
        let link = world.link(capacity, 200, 0.0);
        let flow = world.flow(background(), &[(link, rtt)], FOREVER);
        world.jitter(flow, 0, Duration::from_millis(jitter));
        let rate = world.rate(flow, 5_000, 30_000);
        assert!(rate > least, "{capacity} Mbit/s, RTT {rtt} ms, jitter {jitter} ms: {rate}");
    }
}

#[test]
fn background_yields_on_a_line_that_trembles_and_on_a_slow_one() {
    for (capacity, rtt, jitter) in [(20.0, 20, 10), (10.0, 40, 6), (2.0, 20, 0), (10.0, 100, 8)] {
        for (tcp_from, background_from) in [(0, 10_000), (10_000, 0)] {
            let run = |with: bool| {
                let mut world = World::new(3);
                let link = world.link(capacity, 80, 0.0);
                let tcp = world.flow(named("newreno"), &[(link, rtt)], (tcp_from, 60_000));
                world.jitter(tcp, 0, Duration::from_millis(jitter));
                if with {
                    let span = (background_from, u64::MAX / 2_000_000);
                    let flow = world.flow(background(), &[(link, rtt)], span);
                    world.jitter(flow, 0, Duration::from_millis(jitter));
                    world.run(15_000);
                    let before = world.delivered(tcp);
                    world.run(60_000);
                    let rate = megabits(world.delivered(tcp) - before, 15_000, 60_000);
                    let back = world.rate(flow, 85_000, 95_000);
                    return (rate, back);
                }
                (world.rate(tcp, 15_000, 60_000), 0.0)
            };
            let ((alone, _), (rate, back)) = (run(false), run(true));
            let what = format!("{capacity} Mbit/s, RTT {rtt}, jitter {jitter}, TCP from {tcp_from}");
            assert!(rate > 0.95 * alone, "{what}: {rate} of {alone}");
            let least = if capacity == 20.0 { 0.15 } else { 0.8 };
            assert!(back > least * capacity, "{what}: {back}");
        }
    }
}

#[test]
fn a_longer_route_that_trembles_is_learnt() {
    let mut world = World::new(10);
    let link = world.link(10.0, 100, 0.0);
    let flow = world.flow(background(), &[(link, 20)], FOREVER);
    world.jitter(flow, 0, Duration::from_millis(6));
    world.run(10_000);
    world.delay(flow, 0, 170);
    let rate = world.rate(flow, 70_000, 90_000);
    assert!(rate > 8.0, "{rate}");
}

#[test]
fn a_link_that_was_down_is_used_again() {
    for name in ["background", "mpath", "newreno"] {
        for rtt in [20, 135] {
            let mut world = World::new(7);
            let link = world.link(10.0, 50, 0.0);
            let flow = world.flow(named(name), &[(link, rtt)], FOREVER);
            world.run(10_000);
            world.links[link].up = false;
            world.run(13_000);
            assert!(world.flows[flow].timeouts > 0);
            world.links[link].up = true;
            let rate = world.rate(flow, 24_000, 34_000);
            assert!(rate > 8.5, "{name}, RTT {rtt}: {rate}");
        }
    }
}

#[test]
fn a_dead_path_costs_the_others_nothing_and_comes_back() {
    let mut world = World::new(8);
    let links = [(); 2].map(|()| world.link(10.0, 50, 0.0));
    let flow = world.flow(background(), &links.map(|link| (link, 30)), FOREVER);
    world.run(5_000);
    world.links[links[0]].up = false;
    let rate = world.rate(flow, 6_000, 15_000);
    assert!(rate > 9.3, "{rate}");
    assert!(world.flows[flow].controller.allowance(PathId(0)).choked);
    world.links[links[0]].up = true;
    let rate = world.rate(flow, 22_000, 30_000);
    assert!(rate > 18.8, "{rate}");
}

#[test]
fn when_the_last_unchoked_path_dies_a_choked_one_that_answers_takes_over() {
    for name in ["background", "harp-adaptive", "harp-independent", "harp-joint", "hir"] {
        let mut world = World::new(9);
        let links = [(); 2].map(|()| world.link(10.0, 50, 0.0));
        let flow = world.flow(named(name), &links.map(|link| (link, 20)), FOREVER);
        world.flow(named("newreno"), &[(links[0], 20)], (2_000, 100_000));
        let choked =
            |world: &World| [0, 1].map(|path| world.flows[flow].controller.allowance(PathId(path)).choked);
        let busy = (20_000..60_000).step_by(100).find(|millis| {
            world.run(*millis);
            choked(&world) == [true, false]
        });
        let cut = busy.unwrap_or_else(|| panic!("{name}: the path beside TCP is never choked"));
        world.links[links[1]].up = false;
        world.run(cut + 20_000);
        assert!(choked(&world)[1], "{name}: the dead path is choked");
        let before = world.delivered_on(flow, 0);
        world.run(cut + 40_000);
        assert!(world.delivered_on(flow, 0) > before, "{name}");
    }
}

#[test]
fn a_longer_route_is_learnt_without_being_told() {
    let mut world = World::new(10);
    let link = world.link(10.0, 50, 0.0);
    let flow = world.flow(background(), &[(link, 20)], FOREVER);
    world.run(10_000);
    world.delay(flow, 0, 80);
    let rate = world.rate(flow, 60_000, 70_000);
    assert!(rate > 9.0, "{rate}");
}

#[test]
fn normal_is_as_fair_as_a_tcp_on_one_link() {
    for rtt in [20, 100] {
        // Without chance, two flows may keep in step for minutes. Who begins a moment later has
        // another share.
        let mut ratios = [700, 1_000, 1_500, 3_000].map(|start| {
            let mut world = World::new(11);
            let link = world.link(10.0, 50, 0.0);
            let tcp = world.flow(named("newreno"), &[(link, rtt)], FOREVER);
            let flow = world.flow(named("mpath"), &[(link, rtt + 1)], (start, u64::MAX / 2_000_000));
            world.run(20_000);
            let (a, b) = (world.delivered(tcp), world.delivered(flow));
            world.run(200_000);
            (world.delivered(flow) - b) as f64 / (world.delivered(tcp) - a) as f64
        });
        ratios.sort_by(f64::total_cmp);
        let median = f64::midpoint(ratios[1], ratios[2]);
        assert!((0.6..1.6).contains(&median), "RTT {rtt}: {ratios:?}");
    }
}

#[test]
fn normal_over_three_paths_through_one_link_is_no_three_tcps() {
    let ratio = |name| {
        let mut world = World::new(12);
        let link = world.link(10.0, 50, 0.0);
        let tcp = world.flow(named("newreno"), &[(link, 50)], FOREVER);
        let flow =
            world.flow(named(name), &[(link, 51), (link, 52), (link, 53)], (1_000, u64::MAX / 2_000_000));
        world.run(30_000);
        let (a, b) = (world.delivered(tcp), world.delivered(flow));
        world.run(330_000);
        (world.delivered(flow) - b) as f64 / (world.delivered(tcp) - a) as f64
    };
    let (coupled, uncoupled) = (ratio("mpath"), ratio("newreno"));
    // All three paths together grow as fast as one flow. But a loss reduces only the window of one
    // path, not the sum of the three. So the flow may take more than one TCP, but less than two.
    assert!(coupled < 2.0, "{coupled}");
    assert!(uncoupled > 2.4, "{uncoupled}");
}

#[test]
fn newreno_alone_has_the_utilisation_of_its_sawtooth() {
    // `expected` is the mean of `min(1, window/BDP)` over one tooth of NewReno's sawtooth. In a
    // tooth the window grows from `(1+b)/2` to `1+b` BDPs; b is the length of the queue in BDPs.
    for (queue, expected) in [(20, 0.889), (83, 1.0)] {
        let mut world = World::new(13);
        let link = world.link(10.0, queue, 0.0);
        let flow = world.flow(named("newreno"), &[(link, 100)], FOREVER);
        let rate = world.rate(flow, 60_000, 400_000) / 10.0;
        assert!((rate / expected - 1.0).abs() < 0.04, "{queue}: {rate} for {expected}");
    }
}

#[test]
fn the_same_seed_does_the_same() {
    for name in ["background", "mpath", "mpath-literal", "harp-adaptive"] {
        let run = || {
            let mut world = World::new(14);
            let links = [(); 3].map(|()| world.link(10.0, 30, 0.001));
            let flow = world.flow(named(name), &links.map(|link| (link, 25)), FOREVER);
            world.run(20_000);
            (0..3).map(|path| world.delivered_on(flow, path)).collect::<Vec<_>>()
        };
        assert_eq!(run(), run(), "{name}");
    }
}
