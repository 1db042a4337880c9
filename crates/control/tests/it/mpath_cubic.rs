//! The class `normal` as one CUBIC flow: against CUBIC on one path, as a law of several paths, and
//! beside others at a bottleneck.

use crate::hand::{PACKET, RTT, ack, congested, opened};
use crate::model::World;
use byway_control::mpath::{MPath, MPathOptions};
use byway_control::seeded_random::Random;
use byway_control::{Controller, Trigger, Undo, by_name};
use byway_wire::{Instant, PathId};

const FOREVER: (u64, u64) = (0, u64::MAX / 2_000_000);

fn named(name: &str) -> Box<dyn Controller> {
    by_name(name, 1).unwrap()
}

fn packets(flow: &dyn Controller, path: u32) -> f64 {
    flow.allowance(PathId(path)).window as f64 / f64::from(PACKET)
}

/// `normal` without load aggregation, which is not of its growth.
fn normal() -> MPath {
    MPath::new("normal", MPathOptions { evidence: u32::MAX, ..MPathOptions::PRODUCTION }, 1)
}

/// The sum of the windows of all paths, in packets, as a mean over time. `rates` has a loss rate
/// for each path; packets are lost at random. Each path gets an ACK every 100 ms.
fn total(flow: &mut dyn Controller, rates: &[f64], seed: u64) -> f64 {
    let mut random = Random::new(seed);
    for path in 0..rates.len() as u32 {
        flow.open(PathId(path), &opened(path > 0));
    }
    let (mut sum, rounds) = (0.0, 60_000_u64);
    for step in 1..rounds + 1_000 {
        let at = Instant::from_millis(step * 100);
        for (path, rate) in rates.iter().enumerate() {
            let window = packets(flow, path as u32);
            sum += if step < 1_000 { 0.0 } else { window };
            let lost = (0..window as u32).filter(|_| random.unit() < *rate).count() as f64;
            if lost > 0.0 {
                flow.on_congested(PathId(path as u32), &congested(Trigger::Loss, at, at + RTT));
            }
            ack(flow, path as u32, (window - lost).max(0.0), at, 10);
        }
    }
    sum / rounds as f64
}

#[test]
#[ignore = "slow: seconds of a processor, at full scale"]
fn one_path_is_a_cubic_flow() {
    for (rate, seed) in [(1e-2, 1), (1e-3, 2), (1e-4, 3), (2e-5, 4)] {
        let cubic = total(named("cubic").as_mut(), &[rate], seed);
        let normal = total(&mut normal(), &[rate], seed);
        println!("{rate}: {normal:.1}, CUBIC {cubic:.1}");
        assert!((0.95..1.06).contains(&(normal / cubic)), "{rate}: {normal} of {cubic}");
    }
}

#[test]
#[ignore = "slow: seconds of a processor, at full scale"]
fn paths_that_lose_by_themselves_have_no_more_than_by_the_paper_s_law() {
    // By mPath's eq. 2 (semicoupled windows), n paths together have sqrt(n) times the window of one
    // path. At low loss rates, windows follow CUBIC's curve instead of its estimate of Reno's
    // window. Then n paths have less than sqrt(n) times.
    for rate in [1e-2, 1e-3, 1e-4] {
        let one = total(&mut normal(), &[rate], 1);
        for n in [2_u32, 3, 5] {
            let all = total(&mut normal(), &vec![rate; n as usize], u64::from(n)) / one;
            let root = f64::from(n).sqrt();
            println!("{rate}, {n} paths: {all:.2}");
            assert!(all > 1.1 && all < 1.1 * root, "{rate}, {n} paths: {all}");
        }
    }
}

#[test]
fn a_worse_path_beside_the_best_costs_little() {
    for rate in [1e-3, 1e-4] {
        let alone = total(&mut normal(), &[rate], 1);
        for worse in [10.0, 100.0] {
            let together = total(&mut normal(), &[rate, rate * worse], 2) / alone;
            println!("{rate} and {worse} times that: {together:.2}");
            assert!((0.88..1.2).contains(&together), "{rate} and {worse} times that: {together}");
        }
    }
}

#[test]
fn load_moved_to_the_direct_path_makes_it_no_larger_than_it_was() {
    let initial =
        MPathOptions { initial: 64.0, initial_proxied: 64.0, evidence: 1, ..MPathOptions::PRODUCTION };
    let mut flow = MPath::new("normal", initial, 1);
    for path in 0..4 {
        flow.open(PathId(path), &opened(path > 0));
    }
    let at = Instant::from_millis;
    for path in [1, 2, 3, 0] {
        flow.on_congested(PathId(path), &congested(Trigger::Loss, at(1_000), at(1_100)));
    }
    // "The upper bound guarantees that the congestion window of the direct path will not be more
    // than w0."
    let windows = [0, 1, 2, 3].map(|path| flow.window(PathId(path)).unwrap());
    assert!((windows[0] - 64.0).abs() < 1e-9, "{windows:?}");
    assert!((windows.iter().sum::<f64>() - 0.7 * 4.0 * 64.0).abs() < 1e-9, "{windows:?}");
}

#[test]
fn a_loss_that_was_none_leaves_no_trace() {
    let at = Instant::from_millis;
    let run = |spurious: bool| {
        let mut flow = normal();
        for path in 0..2 {
            flow.open(PathId(path), &opened(path > 0));
            flow.on_congested(PathId(path), &congested(Trigger::Loss, at(100), at(200)));
        }
        for step in 3..200_u64 {
            if spurious && step == 100 {
                flow.on_congested(PathId(1), &congested(Trigger::Loss, at(9_995), at(10_095)));
                flow.on_undo(PathId(1), &Undo { now: at(10_096), sent_at: at(9_995) });
            }
            for path in 0..2 {
                let window = packets(&flow, path);
                ack(&mut flow, path, window, at(step * 100), 10);
            }
        }
        flow.total()
    };
    let (with, without) = (run(true), run(false));
    assert!((with / without - 1.0).abs() < 0.02, "{with}, and {without} without");
}

/// The throughput of a flow with the controller `name` beside a flow with the controller `other`,
/// divided by the mean of both throughputs. The first flow has `paths` paths. All of them, and the
/// other flow, use the same drop-tail link.
fn of_its_half(name: &str, paths: u64, other: &str, (capacity, rtt, queue): (f64, u64, usize)) -> f64 {
    let part = |seed: u64| {
        let mut world = World::new(seed);
        let link = world.link(capacity, queue, 0.0);
        let beside = world.flow(named(other), &[(link, rtt)], (137 * seed, u64::MAX / 2_000_000));
        let ways: Vec<_> = (0..paths).map(|path| (link, rtt + 1 + path)).collect();
        let flow = world.flow(named(name), &ways, (1_000, u64::MAX / 2_000_000));
        world.run(30_000);
        let before = (world.delivered(flow), world.delivered(beside));
        world.run(230_000);
        let (ours, theirs) = (world.delivered(flow) - before.0, world.delivered(beside) - before.1);
        2.0 * ours as f64 / (ours + theirs) as f64
    };
    (1..=3).map(part).sum::<f64>() / 3.0
}

#[test]
#[ignore = "slow: measures rates over minutes of simulated time"]
fn beside_cubic_it_takes_its_half_over_one_path_and_over_several() {
    for line in [(10.0, 20, 50), (10.0, 100, 85), (50.0, 50, 200), (100.0, 100, 200)] {
        for (paths, most) in [(1, 1.15), (2, 1.2), (3, 1.27)] {
            let part = of_its_half("mpath", paths, "cubic", line);
            println!("{line:?}, {paths} paths: {part:.2}");
            assert!(part > 0.75 && part < most, "{line:?}, {paths} paths: {part}");
        }
    }
}

#[test]
#[ignore = "slow: measures rates over minutes of simulated time"]
fn beside_newreno_it_takes_what_cubic_takes() {
    for line in [(10.0, 20, 50), (50.0, 50, 200), (100.0, 100, 200)] {
        let cubic = of_its_half("cubic", 1, "newreno", line);
        for paths in [1, 2] {
            let part = of_its_half("mpath", paths, "newreno", line);
            println!("{line:?}, {paths} paths: {part:.2}, CUBIC {cubic:.2}");
            assert!(part > 0.9 && part < 1.1 * cubic, "{line:?}, {paths} paths: {part}, CUBIC {cubic}");
        }
    }
}

#[test]
fn a_long_line_that_loses_by_chance_gives_as_much_as_to_cubic() {
    for (rtt, loss) in [(100, 1e-2), (100, 1e-3), (100, 1e-4), (20, 1e-3)] {
        let rate = |name: &str| {
            (1..=4)
                .map(|seed| {
                    let mut world = World::new(seed);
                    let link = world.link(100.0, 850, loss);
                    let flow = world.flow(named(name), &[(link, rtt)], FOREVER);
                    world.rate(flow, 3_000, 63_000) / 4.0
                })
                .sum::<f64>()
        };
        let (normal, cubic) = (rate("mpath"), rate("cubic"));
        println!("{rtt} ms, {loss}: {normal:.2} Mbit/s, CUBIC {cubic:.2}");
        assert!(normal > 0.9 * cubic, "{rtt} ms, {loss}: {normal:.2} Mbit/s, CUBIC {cubic:.2}");
    }
}

#[test]
fn what_grows_is_counted_in_packets_of_the_size_that_passes() {
    let at = Instant::from_millis;
    // Bytes that a small window, where Reno's estimate rules, grows by in five seconds.
    let growth = |size: u32| {
        let mut flow = normal();
        flow.open(PathId(0), &opened(false));
        flow.on_congested(PathId(0), &congested(Trigger::Loss, at(100), at(200)));
        let before = flow.allowance(PathId(0)).window;
        flow.on_packet_size(PathId(0), size);
        let resized = flow.allowance(PathId(0)).window;
        assert!(resized.abs_diff(before) <= 1, "{resized} bytes of {before}");
        for step in 3..53_u64 {
            let window = packets(&flow, 0);
            ack(&mut flow, 0, window, at(step * 100), 10);
        }
        (flow.allowance(PathId(0)).window - before) as f64
    };
    let (same, larger) = (growth(PACKET), growth(PACKET * 3 / 2));
    assert!((larger / same - 1.5).abs() < 0.05, "{larger} bytes, {same} in packets of the first size");
}
