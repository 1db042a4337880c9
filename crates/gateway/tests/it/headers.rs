//! Short headers between gateways, where everything goes wrong that can: hosts notice nothing, and nothing stays long.

use crate::common::{Plan, Sites};
#[allow(dead_code, reason = "each test program uses its part")]
use byway_gateway::flow;
use byway_gateway::loss::Rule;
use byway_gateway::site::{Counters, Settings};
use byway_sim::PipeConfig;
use byway_wire::{Duration, Instant};

const MB: u64 = 1_000_000;

fn line(mbit: u64, delay_ms: u64) -> PipeConfig {
    PipeConfig::new(mbit * 1_000_000, Duration::from_millis(delay_ms)).queue(50)
}

/// Alice fetches what Bob serves, and has all of it, byte for byte, within a minute.
fn fetch(sites: &mut Sites, bytes: u64) {
    sites.run(1_000);
    let from = sites.plan.host(1);
    sites.world.act(sites.bob, |site, _| site.host.serve(80, bytes));
    sites.world.act(sites.alice, |site, _| site.host.fetch(from, 80));
    finish(sites, bytes);
}

fn finish(sites: &mut Sites, bytes: u64) {
    let alice = sites.alice;
    let until = sites.world.now() + Duration::from_secs(60);
    let done = sites.world.run_while(|world| world[alice].host.received() < bytes, until);
    assert!(done, "{} of {bytes}: {:?}", sites.world[alice].host.received(), counters(sites));
}

/// Of Alice's gateway and of Bob's.
fn counters(sites: &Sites) -> [Counters; 2] {
    [sites.alice, sites.bob].map(|site| sites.world[site].gateway.counters())
}

#[test]
fn nearly_all_packets_travel_short_in_both_directions() {
    for v6 in [false, true] {
        let mut sites =
            Sites::new(Plan { v6, ..Plan::default() }, &[line(10, 10), line(10, 15)], &line(1, 50));
        fetch(&mut sites, 10 * MB);
        let carried =
            [sites.alice, sites.bob].map(|site| sites.world[site].gateway.status().peers[0].carried);
        let counters = counters(&sites);
        println!("{carried:?} {counters:?}");
        for (counters, carried) in counters.iter().zip(carried) {
            assert!(counters.short * 100 > carried * 97, "{counters:?} of {carried}");
            assert!((2..10).contains(&counters.examples), "{counters:?}");
            assert_eq!((counters.unknown, counters.malformed), (0, 0), "{counters:?}");
        }
        // smoltcp sends no timestamps: 20 and 20 bytes of headers become 11 or less, 40 and 20 become 9.
        let least = if v6 { 49 } else { 27 };
        assert!(counters[1].short_saved >= counters[1].short * least, "{counters:?}");
    }
}

#[test]
fn paths_that_lose_double_and_reorder_harm_no_packet() {
    let bad = PipeConfig { loss: 0.01, ..line(10, 10) }
        .duplication(0.02)
        .reordering(0.05, Duration::from_millis(8));
    for (seed, loss) in [(1, Rule::PathNumbers), (2, Rule::Batched), (3, Rule::AllPassed)] {
        let settings = Settings { loss, ..Settings::default() };
        let mut sites =
            Sites::new(Plan { settings, seed, ..Plan::default() }, &[bad.clone(), bad.clone()], &line(1, 50));
        fetch(&mut sites, 4 * MB);
        for counters in counters(&sites) {
            println!("{loss:?} {counters:?}");
            // What is lost, late or twice takes no other packet with it, and no template.
            assert_eq!((counters.unknown, counters.malformed), (0, 0), "{counters:?}");
            assert!(counters.short > 500, "{counters:?}");
        }
    }
}

#[test]
fn a_peer_that_does_not_understand_short_headers_gets_none() {
    let off = Settings { compact: false, ..Settings::default() };
    for (settings, of_bob) in [(Settings::default(), off), (off, Settings::default())] {
        let plan = Plan { settings, of_bob: Some(of_bob), ..Plan::default() };
        let mut sites = Sites::new(plan, &[line(10, 10)], &line(1, 50));
        fetch(&mut sites, MB);
        for (site, counters) in [sites.alice, sites.bob].into_iter().zip(counters(&sites)) {
            assert_eq!((counters.short, counters.examples, counters.malformed), (0, 0, 0), "{counters:?}");
            assert!(!sites.world[site].gateway.status().peers[0].compact);
        }
    }
}

/// The exit has room for one flow, and another takes it: what is short then cannot be read, and is asked for whole.
#[test]
fn an_exit_that_forgot_a_flow_asks_and_gets_whole_packets() {
    let one = flow::Limits { flows: 1, spare_after: Duration::ZERO, ..flow::Limits::default() };
    let forgetful = Settings { flows: one, ..Settings::default() };
    let plan = Plan { settings: forgetful, of_bob: Some(Settings::default()), ..Plan::default() };
    let mut sites = Sites::new(plan, &[line(10, 10)], &line(10, 10).queue(4_000));
    sites.run(1_000);
    let from = sites.plan.host(1);
    sites.world.act(sites.bob, |site, _| site.host.serve(80, 8 * MB));
    sites.world.act(sites.alice, |site, _| site.host.fetch(from, 80));
    sites.run(3_000);
    let before = counters(&sites)[1];
    assert!(before.short > 1_000, "{before:?}");
    sites.world.act(sites.bob, |site, _| site.host.serve(81, 1_000));
    sites.world.act(sites.alice, |site, _| site.host.fetch(from, 81));
    finish(&mut sites, 8 * MB + 1_000);
    let [exit, entry] = counters(&sites);
    println!("{before:?} {exit:?} {entry:?}");
    // Nothing is lost but what was under way when it asked; the flow goes on whole, as one that began before the exit did.
    assert!((1..100).contains(&exit.unknown), "{exit:?}");
    assert!(exit.delivered > 5_000, "{exit:?}");
    assert!(entry.short - before.short < 200, "{entry:?}");
    assert!((1..10).contains(&(entry.examples - before.examples)), "{entry:?}");
}

/// Who stays has told the one before what its short headers mean: the next one knows nothing of that.
#[test]
fn an_exit_that_restarts_is_told_anew() {
    let mut sites = Sites::new(Plan::default(), &[line(10, 10)], &line(10, 10).queue(4_000));
    fetch(&mut sites, 2 * MB);
    let at = sites.world.now();
    let config = sites.plan.config(0, &["10.2.0.1:4000".parse().unwrap()]);
    sites.world.act(sites.alice, |site, now| {
        let mut fresh = byway_gateway::site::Gateway::new(config).unwrap();
        let address = "10.1.0.1:4000".parse().unwrap();
        let change = byway_wire::LinkChange { local: byway_wire::Local(1), address, up: true };
        byway_wire::Machine::handle(&mut fresh, now, byway_wire::Input::Link(change));
        site.gateway = fresh;
    });
    sites.world.run_until(at + Duration::from_secs(6));
    let from = sites.plan.host(1);
    let before = counters(&sites)[1];
    sites.world.act(sites.bob, |site, _| site.host.serve(81, 2 * MB));
    sites.world.act(sites.alice, |site, _| site.host.fetch(from, 81));
    finish(&mut sites, 4 * MB);
    let [exit, entry] = counters(&sites);
    println!("{exit:?} {entry:?}");
    assert_eq!((exit.unknown, exit.malformed), (0, 0), "{exit:?}");
    assert!(entry.short > before.short + 1_000, "{entry:?}");
}

/// What waited for a path that is no more comes out at the entry as its host sent it: every packet that does is looked at.
#[test]
fn when_the_session_ends_what_waits_is_whole_again() {
    let slow = line(2, 20);
    let mut sites = Sites::new(Plan::default(), &[slow.clone(), slow], &line(10, 10).queue(4_000));
    sites.run(1_000);
    let from = sites.plan.host(1);
    sites.world.act(sites.bob, |site, _| site.host.serve(80, 4 * MB));
    sites.world.act(sites.alice, |site, _| site.host.fetch(from, 80));
    sites.run(5_000);
    for link in sites.there.iter().chain(&sites.back) {
        sites.world.pipe(*link).partition(Instant::from_millis(5_000), Instant::from_millis(200_000));
    }
    finish(&mut sites, 4 * MB);
    let [_, entry] = counters(&sites);
    println!("{entry:?}");
    assert!(entry.short > 500 && entry.failed_open > 0, "{entry:?}");
}
