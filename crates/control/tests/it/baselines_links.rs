//! The single-path baselines on links that are made of nothing but capacity, delay and a drop-tail
//! queue.

use crate::model::World;
use byway_control::by_name;
use byway_wire::Duration;

const FOREVER: (u64, u64) = (0, u64::MAX / 2_000_000);
const SINGLES: [&str; 6] = ["cubic", "ledbat", "ledbat++", "newreno", "nice", "tcp-lp"];

fn alone(name: &str, capacity: f64, rtt: u64, queue: usize) -> (World, usize, usize) {
    let mut world = World::new(1);
    world.tells_held = true;
    let link = world.link(capacity, queue, 0.0);
    let flow = world.flow(by_name(name, 1).unwrap(), &[(link, rtt)], FOREVER);
    (world, link, flow)
}

/// Mean queue of `link` in ms over a span in ms.
fn standing(world: &mut World, link: usize, from: u64, until: u64) -> f64 {
    let mut sum = 0.0;
    for now in from..until {
        world.run(now);
        sum += world.waiting(link).as_secs_f64() * 1e3;
    }
    sum / (until - from) as f64
}

#[test]
fn each_alone_fills_a_link_and_keeps_the_queue_it_stands_for() {
    // Measured from 10 s to 60 s at 10 Mbit/s and 20 ms, with 50 packets of queue (60 ms).
    let expected = [
        ("cubic", 9.9, 40.0..60.0),
        // 200 ms of ten seconds are for the smallest RTT.
        ("bbr", 9.5, 0.0..12.0),
        ("bbr3", 9.4, 0.0..8.0),
        ("proteus-s", 8.5, 0.0..8.0),
        // The buffer is shorter than the target, so it is Reno's sawtooth.
        ("ledbat", 9.7, 25.0..50.0),
        // A tenth of the time is for slowdowns.
        ("ledbat++", 9.2, 30.0..50.0),
        ("newreno", 9.9, 30.0..50.0),
        ("nice", 9.9, 1.0..6.0),
        // TCP-LP halves its window at a queue of 7.5 ms. Half of the window does not keep the link
        // busy: that would need a queue of one RTT (20 ms).
        ("tcp-lp", 8.1, 1.0..6.0),
    ];
    for (name, least, queue) in expected {
        let (mut world, link, flow) = alone(name, 10.0, 20, 50);
        let rate = world.rate(flow, 10_000, 60_000);
        let stands = standing(&mut world, link, 60_000, 80_000);
        assert!(rate > least, "{name}: {rate}");
        assert!(queue.contains(&stands), "{name}: {stands}");
    }
}

#[test]
#[ignore = "slow: seconds of a processor, at full scale"]
fn each_fills_slow_long_and_fast_links() {
    for (capacity, rtt, queue) in [(1.0, 20, 50), (10.0, 100, 200), (100.0, 20, 200)] {
        for name in SINGLES {
            let (mut world, _, flow) = alone(name, capacity, rtt, queue);
            let rate = world.rate(flow, 30_000, 80_000);
            // Nice reaches 0.75 of a capacity of 1 Mbit/s: a packet takes 12 ms there, so a single
            // waiting packet already counts as congestion. TCP-LP reaches 0.82 of the capacity at
            // an RTT of 100 ms.
            let least = match name {
                "nice" => 0.7,
                "tcp-lp" => 0.78,
                _ => 0.85,
            };
            assert!(rate > least * capacity, "{name} at {capacity} Mbit/s, {rtt} ms: {rate}");
        }
    }
}

#[test]
fn o19_ledbat_alone_keeps_the_target_in_the_queue() {
    // LEDBAT's queue approaches its target of 100 ms exponentially. The third case is the slowest:
    // the target is 417 packets at 50 Mbit/s, and the window grows by at most one packet per RTT of
    // 40 + 100 ms.
    for (capacity, rtt, queue, from) in
        [(10.0, 20, 200, 30_000), (10.0, 100, 200, 100_000), (50.0, 40, 1_000, 300_000)]
    {
        let (mut world, link, _) = alone("ledbat", capacity, rtt, queue);
        let stands = standing(&mut world, link, from, from + 30_000);
        assert!((stands / 100.0 - 1.0).abs() < 0.1, "{capacity} Mbit/s, {rtt} ms: {stands}");
        assert_eq!(world.links[link].dropped, 0);
    }
}

/// What the later of two flows takes, and the queue that both keep.
fn latecomer(name: &str) -> (f64, f64) {
    let (mut world, link, first) = alone(name, 10.0, 40, 500);
    let second = world.flow(by_name(name, 2).unwrap(), &[(link, 40)], (20_000, FOREVER.1));
    world.run(60_000);
    let (a, b) = (world.delivered(first), world.delivered(second));
    let stands = standing(&mut world, link, 60_000, 300_000);
    let (a, b) = (world.delivered(first) - a, world.delivered(second) - b);
    let share = b as f64 / (a + b) as f64;
    (share, stands)
}

#[test]
fn o19_a_ledbat_that_comes_late_takes_the_queue_for_the_path_and_everything() {
    let (share, stands) = latecomer("ledbat");
    assert!(share > 0.9, "{share}");
    assert!(stands > 180.0, "two targets: {stands}");
    // The slowdowns of LEDBAT++ show it the empty path.
    let (share, stands) = latecomer("ledbat++");
    assert!((0.35..0.65).contains(&share), "{share}");
    assert!(stands < 70.0, "{stands}");
}

/// The share of a link that the controller `name` takes beside a NewReno flow, and its rate in
/// Mbit/s after the NewReno flow has ended. `first`: whether the flow of `name` begins first, five
/// seconds before the NewReno flow.
fn beside_newreno(name: &str, rtt: u64, queue: usize, first: bool) -> (f64, f64) {
    let mut world = World::new(1);
    world.tells_held = true;
    let link = world.link(10.0, queue, 0.0);
    let (flow_from, tcp_from) = if first { (0, 5_000) } else { (5_000, 0) };
    let flow = world.flow(by_name(name, 1).unwrap(), &[(link, rtt)], (flow_from, FOREVER.1));
    let tcp = world.flow(by_name("newreno", 1).unwrap(), &[(link, rtt)], (tcp_from, 125_000));
    world.run(25_000);
    let (a, b) = (world.delivered(flow), world.delivered(tcp));
    world.run(125_000);
    let (a, b) = (world.delivered(flow) - a, world.delivered(tcp) - b);
    let back = world.rate(flow, 165_000, 185_000);
    let share = a as f64 / (a + b) as f64;
    (share, back)
}

#[test]
fn the_low_priority_ones_yield_to_newreno_and_come_back() {
    // Shares measured, whichever is first.
    let most = [
        ("ledbat++", vec![(20, 200, 0.03), (100, 200, 0.03)]),
        ("nice", vec![(20, 50, 0.01), (20, 200, 0.01), (100, 50, 0.01), (100, 200, 0.01)]),
        ("tcp-lp", vec![(20, 50, 0.03), (20, 200, 0.02), (100, 50, 0.04), (100, 200, 0.02)]),
    ];
    for (name, cases) in most {
        for (rtt, queue, most) in cases {
            for first in [true, false] {
                let (share, back) = beside_newreno(name, rtt, queue, first);
                assert!(share < most, "{name}, RTT {rtt}, queue {queue}, first {first}: {share}");
                assert!(back > 7.0, "{name}, RTT {rtt}, queue {queue}, first {first}: {back}");
            }
        }
    }
}

#[test]
fn a_buffer_shorter_than_the_target_is_shared_and_not_yielded() {
    // A full queue of 50 packets takes 60 ms, the target of LEDBAT++. So LEDBAT++ loses packets
    // before it yields. Beside a NewReno it takes about 0.25 of the link at an RTT of 20 ms, 0.40
    // at 100 ms.
    for (rtt, between) in [(20, 0.15..0.35), (100, 0.25..0.5)] {
        for first in [true, false] {
            let (share, _) = beside_newreno("ledbat++", rtt, 50, first);
            assert!(between.contains(&share), "RTT {rtt}, first {first}: {share}");
        }
    }
}

#[test]
fn cubic_and_newreno_live_together() {
    for first in [true, false] {
        let (share, _) = beside_newreno("cubic", 20, 50, first);
        assert!((0.4..0.65).contains(&share), "{share}");
    }
}

#[test]
fn a_link_that_was_down_is_used_again_by_each() {
    for name in SINGLES {
        let (mut world, link, flow) = alone(name, 10.0, 50, 50);
        world.run(10_000);
        world.links[link].up = false;
        world.run(13_000);
        world.links[link].up = true;
        let rate = world.rate(flow, 24_000, 44_000);
        // The least is Nice's, which grows by a packet in an RTT: 7.6.
        assert!(rate > 7.0, "{name}: {rate}");
    }
}

#[test]
fn jitter_keeps_none_of_them_from_most_of_the_link() {
    for name in SINGLES {
        let (mut world, _, flow) = alone(name, 10.0, 40, 200);
        world.jitter(flow, 0, Duration::from_millis(3));
        let rate = world.rate(flow, 10_000, 60_000);
        assert!(rate > 7.0, "{name}: {rate}");
    }
}
