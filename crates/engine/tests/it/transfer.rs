//! Transfers in simulated worlds: every byte arrives, whatever the network does.

use crate::common::{MS, Plan, both, line, parallel};
use byway_sim::PipeConfig;
use byway_wire::Duration;

const MIB: u64 = 1 << 20;

#[test]
fn one_path() {
    let mut world = parallel(1, Plan::new("newreno", &[MIB, 0, 1, 70_000], &[]), &[both(line(10, 10 * MS))]);
    let took = world.finish(Duration::from_secs(10));
    let receiver = &world.world[world.receiver];
    assert_eq!(receiver.received, MIB + 70_001);
    assert_eq!(receiver.complete.len(), 4);
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn three_paths_carry_three_times_as_much() {
    let pipes = [both(line(10, 10 * MS)), both(line(10, 10 * MS)), both(line(10, 10 * MS))];
    let mut world = parallel(1, Plan::new("newreno", &[24 * MIB], &[]), &pipes);
    let took = world.finish(Duration::from_secs(20));
    let rate = 24.0 * MIB as f64 * 8.0 / took.as_secs_f64() / 1e6;
    println!("{took:?} {rate:.2} Mbit/s {:?}", world.world[world.sender].events);
    assert!(rate > 22.0, "{rate}");
}

#[test]
fn a_stream_arrives_in_order_over_paths_of_different_length() {
    let pipes = [both(line(10, 5 * MS)), both(line(20, 60 * MS))];
    let mut plan = Plan::new("newreno", &[], &[]);
    plan.stream = 6 * MIB;
    let mut world = parallel(3, plan, &pipes);
    world.finish(Duration::from_secs(20));
    let receiver = &world.world[world.receiver];
    assert_eq!((receiver.stream, receiver.streams_finished), (6 * MIB, 1));
}

#[test]
fn loss_corruption_duplication_and_reordering() {
    for (seed, loss) in [(1, 0.02), (2, 0.1), (3, 0.3)] {
        let bad = PipeConfig { loss, corruption: loss / 2.0, ..line(10, 10 * MS) };
        let bad = bad.duplication(0.02).reordering(0.05, 15 * MS);
        let mut world =
            parallel(seed, Plan::new("background", &[MIB / 2], &[]), &[both(bad.clone()), both(bad)]);
        let took = world.finish(Duration::from_secs(120));
        println!("{loss}: {took:?}");
        assert_eq!(world.world[world.receiver].received, MIB / 2);
    }
}
