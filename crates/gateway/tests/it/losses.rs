//! Losses between gateways: found by each of the three rules, and mended from the cache.

use crate::common::{Plan, Sites};
#[allow(dead_code, reason = "each test program uses its part")]
use byway_gateway::cache;
use byway_gateway::loss::LossRuleKind;
use byway_gateway::machine::{Counters, Settings};
use byway_sim::PipeConfig;
use byway_wire::{Duration, Instant};

const MB: u64 = 1_000_000;
const RULES: [LossRuleKind; 3] = [LossRuleKind::AllPassed, LossRuleKind::Batched, LossRuleKind::PathNumbers];

fn line(mbit: u64, delay_ms: u64) -> PipeConfig {
    PipeConfig::new(mbit * 1_000_000, Duration::from_millis(delay_ms)).queue(50)
}

fn sites(settings: Settings, paths: &[PipeConfig]) -> Sites {
    // A foreground class: what a background one makes of a loss is another question.
    Sites::new(Plan { settings, congestion: "mpath", ..Plan::default() }, paths, &line(1, 50))
}

/// Alice fetches what Bob serves, and has all of it, byte for byte, within `limit` seconds. How
/// long it took.
fn fetch(sites: &mut Sites, bytes: u64, limit: u64) -> Duration {
    sites.run(2_000);
    let from = sites.plan.host(1);
    sites.world.act(sites.bob, |site, _| site.host.serve(80, bytes));
    sites.world.act(sites.alice, |site, _| site.host.fetch(from, 80));
    finish(sites, bytes, limit)
}

fn finish(sites: &mut Sites, bytes: u64, limit: u64) -> Duration {
    let (alice, begun) = (sites.alice, sites.world.now());
    let until = Instant::from_millis(limit * 1_000);
    let done = sites.world.run_while(|world| world[alice].host.received() < bytes, until);
    assert!(done, "{} of {bytes}: {:?}", sites.world[alice].host.received(), entry(sites));
    assert_eq!(sites.world[alice].plain_packets + sites.world[sites.bob].plain_packets, 0);
    sites.world.now().since(begun)
}

/// What Bob's gateway, by which the bytes enter, has counted.
fn entry(sites: &Sites) -> Counters {
    sites.world[sites.bob].gateway.counters()
}

#[test]
#[ignore = "slow: measures rates over minutes of simulated time"]
fn a_flow_over_a_path_that_loses_one_in_a_hundred_is_whole_and_faster_with_the_cache() {
    let lossy = PipeConfig { loss: 0.01, ..line(10, 10) };
    for rule in RULES {
        // One flow has about fifty losses. The number of duplicate ACKs depends on how many losses
        // are close together, and may be zero for a single flow. So the test adds up eight flows.
        let took = [None, Some(cache::CacheLimits::default())].map(|cache| {
            let mut suppressed = 0;
            let of = |seed| {
                let settings = Settings { loss: rule, cache, ..Settings::default() };
                let plan = Plan { seed, settings, congestion: "mpath", ..Plan::default() };
                let mut sites = Sites::new(plan, &[lossy.clone(), lossy.clone()], &line(1, 50));
                let took = fetch(&mut sites, 5 * MB, 200);
                let status = sites.world[sites.bob].gateway.status();
                println!("{rule:?} {took:?} {:?} {:?}", status.counters, status.cache);
                assert_eq!(status.cache.is_some(), cache.is_some());
                // What is lost shows by what comes later, and that is acknowledged after a round
                // trip.
                assert!(status.found.after().all(|after| after >= Duration::from_millis(20)));
                assert_eq!(status.found.after().count() as u64, status.counters.lost);
                if let Some((counters, bytes)) = status.cache {
                    assert!(counters.resent > 20, "{counters:?}");
                    suppressed += counters.suppressed;
                    assert!(bytes < 200_000, "{bytes} are kept, though all is acknowledged");
                }
                took
            };
            let took = (1..=8).map(of).sum::<Duration>();
            assert!(cache.is_none() || suppressed > 300, "{rule:?}: {suppressed} duplicates in eight flows");
            took
        });
        assert!(took[1] * 10 < took[0] * 9, "{rule:?}: {took:?}");
    }
}

#[test]
fn everything_bad_at_once_harms_no_flow_by_whichever_rule() {
    let bad = PipeConfig { loss: 0.01, ..line(10, 10) }
        .duplication(0.02)
        .reordering(0.03, Duration::from_millis(4));
    for rule in RULES {
        for cache in [
            None,
            Some(cache::CacheLimits { bytes: 40_000, flow_bytes: 20_000, ..cache::CacheLimits::default() }),
        ] {
            let settings = Settings { loss: rule, cache, ..Settings::default() };
            let mut sites = sites(settings, &[bad.clone(), bad.clone()]);
            let took = fetch(&mut sites, 3 * MB, 200);
            let status = sites.world[sites.bob].gateway.status();
            println!("{rule:?} {took:?} {:?} {:?}", status.counters, status.cache);
            assert!(status.cache.is_none_or(|(_, bytes)| bytes <= 20_000));
            assert_eq!(status.counters.malformed + status.counters.forbidden, 0);
        }
    }
}

#[test]
#[ignore = "slow: measures rates over minutes of simulated time"]
fn each_rule_tells_the_controller_of_losses_and_none_of_mere_reordering_of_a_few_packets() {
    // The path delays 5% of the packets by 2 ms. A packet takes 1.2 ms, so at most two packets
    // overtake a delayed one. `Batched` and `PathNumbers` need three to call it lost. The queue
    // holds all packets in flight.
    let reorders = line(10, 10).reordering(0.05, Duration::from_millis(2)).queue(2_000);
    for rule in RULES {
        for seed in 1..=8 {
            let settings =
                Settings { loss: rule, cache: Some(cache::CacheLimits::default()), ..Settings::default() };
            let plan = Plan { seed, settings, congestion: "mpath", ..Plan::default() };
            let mut sites = Sites::new(plan, std::slice::from_ref(&reorders), &line(1, 50));
            fetch(&mut sites, 5 * MB, 60);
            let counters = entry(&sites);
            println!("{rule:?} {counters:?}");
            let Counters { lost, spurious, penalties, .. } = counters;
            match rule {
                LossRuleKind::AllPassed => {}
                LossRuleKind::Batched => assert_eq!((lost, penalties), (0, 0)),
                // The session numbers its own small packets too, so that once three overtake; then
                // it has more patience.
                LossRuleKind::PathNumbers => {
                    assert!(lost <= 1 && spurious == lost && penalties == 0, "{counters:?}")
                }
            }
        }
    }
    for rule in [LossRuleKind::AllPassed, LossRuleKind::Batched] {
        let lossy = PipeConfig { loss: 0.01, ..line(10, 10) };
        let mut sites = sites(Settings { loss: rule, ..Settings::default() }, &[lossy]);
        fetch(&mut sites, 3 * MB, 200);
        let counters = entry(&sites);
        assert!(counters.lost > 15 && counters.penalties > 5, "{rule:?} {counters:?}");
        assert!(counters.penalties <= counters.lost && counters.spurious == 0, "{rule:?} {counters:?}");
    }
}

#[test]
fn a_path_that_is_killed_is_noticed_by_whichever_rule() {
    for rule in RULES {
        for cache in [None, Some(cache::CacheLimits::default())] {
            let settings = Settings { loss: rule, cache, ..Settings::default() };
            let mut sites = sites(settings, &[line(10, 10), line(10, 15)]);
            sites.run(1_000);
            let from = sites.plan.host(1);
            sites.world.act(sites.bob, |site, _| site.host.serve(80, 10 * MB));
            sites.world.act(sites.alice, |site, _| site.host.fetch(from, 80));
            sites.run(3_000);
            for link in [sites.there[1], sites.back[1]] {
                let (from, to) = (Instant::from_millis(3_000), Instant::from_millis(500_000));
                sites.world.pipe(link).partition(from, to);
            }
            finish(&mut sites, 10 * MB, 60);
            let status = sites.world[sites.bob].gateway.status();
            println!("{rule:?} {:?} {:?}", status.counters, status.cache);
            let silent = status.peers[0].paths.iter().filter(|path| path.silent > 0).count();
            let left = status.peers[0].paths.len();
            assert!(silent == 1 || left == 1, "{rule:?}: {:?}", status.peers[0].paths);
            if rule != LossRuleKind::PathNumbers || cache.is_some() {
                assert!(status.counters.lost > 0, "{rule:?}");
            }
        }
    }
}
