//! A cap on what a connection sends: never exceeded, nearly reached, and told as the reason.

use crate::common::{MS, Parallel, Plan, both, line, parallel};
use byway_engine::Handle;
use byway_sim::{Clock, LinkId};
use byway_wire::{Duration, Instant};
use proptest::prelude::*;

/// Runs until connected, and caps it.
fn capped(congestion: &'static str, cap: u64) -> (Parallel, Handle) {
    let pipes = [both(line(10, 10 * MS)), both(line(20, 30 * MS))];
    let mut world = parallel(1, Plan::new(congestion, &[64 << 20], &[]), &pipes);
    let sender = world.sender;
    let connected =
        world.world.run_while(|world| world[sender].connected_at.is_none(), Instant::from_millis(1_000));
    assert!(connected, "no connection");
    let handle = world.world[world.sender].handle.unwrap();
    world.world.act(world.sender, |host, now| {
        host.endpoint.connection_mut(handle).unwrap().set_cap(now, Some(cap));
    });
    (world, handle)
}

/// UDP payload that left by these links.
fn sent(world: &Parallel, links: &[LinkId]) -> u64 {
    let books = links.iter().map(|&link| world.world.counters(link));
    books.map(|books| books.sent_bytes).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn it_is_reached_and_never_exceeded(
        cap in 20_000_u64..2_500_000,
        congestion in prop_oneof![Just("background"), Just("mpath"), Just("newreno")],
    ) {
        let (mut world, handle) = capped(congestion, cap);
        let there = world.there.clone();
        world.world.run_for(Duration::from_secs(2));
        let (begun, window) = (sent(&world, &there), Duration::from_millis(100));
        let (mut before, mut told) = (begun, 0);
        for _ in 0..80 {
            world.world.run_for(window);
            let now = sent(&world, &there);
            // A burst, and what is no data: ACKs, probes and pings are not capped.
            let most = cap as f64 * 0.11 + 6_000.0;
            prop_assert!(((now - before) as f64) < most, "{} of {most} bytes in 100 ms", now - before);
            before = now;
            let status = world.world[world.sender].endpoint.connection(handle).unwrap().status();
            told += usize::from(status.capped && status.blocked.is_none());
        }
        let rate = (before - begun) as f64 / 8.0;
        prop_assert!(rate > 0.93 * cap as f64 && rate < 1.03 * cap as f64 + 2_000.0, "{rate} of {cap}");
        // Near what the paths carry, a congestion window is at times the tighter bound.
        prop_assert!(told >= 72, "told as the reason in {told} of 80 windows");
    }
}

#[test]
fn without_it_the_paths_are_what_limits() {
    let (mut world, handle) = capped("newreno", 200_000);
    world.world.run_for(Duration::from_secs(3));
    world.world.act(world.sender, |host, now| {
        host.endpoint.connection_mut(handle).unwrap().set_cap(now, None);
    });
    let there = world.there.clone();
    world.world.run_for(Duration::from_secs(4));
    let before = sent(&world, &there);
    world.world.run_for(Duration::from_secs(4));
    let rate = (sent(&world, &there) - before) as f64 * 8.0 / 4.0 / 1e6;
    assert!(rate > 24.0, "{rate} of 30 Mbit/s");
    assert!(!world.world[world.sender].endpoint.connection(handle).unwrap().status().capped);
}

/// What an application says after its host slept, or after its clock was set forward, holds from
/// then on, and not a day later.
#[test]
fn after_a_step_of_the_clock_it_holds_at_once() {
    let pipes = [both(line(10, 10 * MS))];
    let mut world = parallel(1, Plan::new("newreno", &[64 << 20], &[]), &pipes);
    let step = Instant::from_millis(500);
    let clock = Clock::new().with_step(step, Duration::from_secs(86_400));
    world.world.set_clock(world.sender, clock);
    world.world.run_for(Duration::from_secs(2));
    let handle = world.world[world.sender].handle.unwrap();
    world.world.act(world.sender, |host, now| {
        host.endpoint.connection_mut(handle).unwrap().set_cap(now, Some(250_000));
    });
    let there = world.there.clone();
    world.world.run_for(Duration::from_secs(1));
    let before = sent(&world, &there);
    world.world.run_for(Duration::from_secs(8));
    let rate = (sent(&world, &there) - before) as f64 / 8.0;
    assert!((0.93..1.03).contains(&(rate / 250_000.0)), "{rate} bytes a second");
}
