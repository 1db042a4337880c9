//! Two gateways carry TCP flows of hosts over simulated paths. smoltcp, the hosts' TCP, may resend
//! packets that are only 10 ms later than the smoothed round trip. So these tests measure the bytes
//! that the gateways carry, not goodput.

use crate::common::{Plan, Sites, carried_all};
use byway_gateway::machine::Settings;
use byway_gateway::report::GatewayReport;
use byway_sim::PipeConfig;
use byway_wire::{Duration, Instant};

const MB: u64 = 1_000_000;

fn line(mbit: u64, delay_ms: u64) -> PipeConfig {
    PipeConfig::new(mbit * 1_000_000, Duration::from_millis(delay_ms)).queue(50)
}

/// The plain route, with a queue in which nothing is lost: smoltcp recovers from loss slowly.
fn plain() -> PipeConfig {
    line(10, 10).queue(4_000)
}

/// Alice fetches what Bob serves, once the session is there. Returns Mbit/s of IP packets that were
/// delivered to her.
fn fetch(sites: &mut Sites, bytes: u64, limit_ms: u64) -> f64 {
    sites.run(1_000);
    let from = sites.plan.host(1);
    sites.world.act(sites.bob, |site, _| site.host.serve(80, bytes));
    sites.world.act(sites.alice, |site, _| site.host.fetch(from, 80));
    let alice = sites.alice;
    let begun = sites.world.now();
    let before = sites.world[alice].gateway.counters().delivered_bytes;
    let done =
        sites.world.run_while(|world| world[alice].host.received() < bytes, Instant::from_millis(limit_ms));
    let (a, b) = (&sites.world[sites.alice], &sites.world[sites.bob]);
    assert!(
        done,
        "{} of {bytes} bytes\n{:?}\n{:?}",
        a.host.received(),
        a.gateway.status(),
        b.gateway.status()
    );
    let delivered = a.gateway.counters().delivered_bytes - before;
    delivered as f64 * 8.0 / sites.world.now().since(begun).as_secs_f64() / 1e6
}

#[test]
fn one_path() {
    let mut sites = Sites::new(Plan::default(), &[line(10, 10)], &line(1, 50));
    let rate = fetch(&mut sites, 10 * MB, 60_000);
    println!("{rate:.2} Mbit/s");
    carried_all(&sites);
    assert!(rate > 8.3, "{rate}");
}

#[test]
fn three_paths_carry_one_flow() {
    let mut sites = Sites::new(Plan::default(), &[line(10, 10), line(10, 15), line(10, 20)], &line(1, 50));
    let rate = fetch(&mut sites, 30 * MB, 60_000);
    let waits = sites.world[sites.alice].gateway.status().waits;
    println!(
        "{rate:.2} Mbit/s, {:.3} wait < 20 ms, {:.4} time out",
        waits.share_within(20),
        waits.share_timed_out()
    );
    carried_all(&sites);
    assert!(rate > 24.0, "{rate}");
    assert!(waits.share_within(20) > 0.9 && waits.share_timed_out() < 0.01, "{waits:?}");
}

/// The round trip is 20 ms directly, and 25 ms and 33 ms by two relays. A relay's round trip may be
/// 1.5 times the direct one, or 20 ms (`Policy::slack`) longer, whichever is more. So both relays
/// are used.
#[test]
fn relays_a_little_beyond_the_factor_carry_their_share() {
    let fast = PipeConfig::new(100_000_000, Duration::from_millis(5)).queue(1_000);
    let ways = [[fast.clone(), line(10, 10)], [fast, line(10, 18)]];
    let mut sites = Sites::with_relays(Plan::default(), line(10, 10), &ways, &line(1, 50));
    let rate = fetch(&mut sites, 30 * MB, 60_000);
    let [alice, bob] = [sites.alice, sites.bob].map(|site| sites.world[site].gateway.status());
    let sent: Vec<u64> = bob.peers[0].paths.iter().map(|path| path.totals.bytes).collect();
    println!(
        "{rate:.2} Mbit/s {sent:?}, {:.3} wait < 20 ms, {:.4} time out; of acknowledgments {:.4}",
        alice.waits.share_within(20),
        alice.waits.share_timed_out(),
        bob.waits.share_timed_out(),
    );
    carried_all(&sites);
    assert!(rate > 24.0, "{rate}");
    assert!(alice.waits.share_within(20) > 0.9 && alice.waits.share_timed_out() < 0.01, "{:?}", alice.waits);
    assert!(sent.iter().all(|sent| *sent > 6 * MB), "{sent:?}: a path stood idle");
    // What acknowledges waits for nothing, by whichever path.
    assert!(bob.waits.share_timed_out() == 0.0, "{:?}", bob.waits);
}

#[test]
fn ipv6() {
    let plan = Plan { v6: true, ..Plan::default() };
    let mut sites = Sites::new(plan, &[line(10, 10), line(10, 15)], &line(1, 50));
    let rate = fetch(&mut sites, 10 * MB, 60_000);
    carried_all(&sites);
    assert!(rate > 14.0, "{rate}");
}

#[test]
fn loss_reordering_and_duplication_harm_no_flow() {
    let bad = PipeConfig { loss: 0.005, ..line(10, 10) }
        .duplication(0.01)
        .reordering(0.02, Duration::from_millis(3));
    let mut sites = Sites::new(Plan::default(), &[bad.clone(), bad], &line(1, 50));
    let rate = fetch(&mut sites, 5 * MB, 120_000);
    println!("{rate:.2} Mbit/s");
    carried_all(&sites);
}

#[test]
fn the_plain_route_while_there_is_no_session() {
    let dead = line(10, 10).partition(Instant::ZERO, Instant::from_millis(3_600_000));
    let mut sites = Sites::new(Plan::default(), &[dead], &line(10, 10));
    fetch(&mut sites, 2 * MB, 60_000);
    let alice = &sites.world[sites.alice];
    assert!(alice.plain_packets > 0);
    assert_eq!(alice.gateway.status().flows, 0);
}

#[test]
fn flows_go_on_by_the_plain_route_within_three_seconds_of_the_end_of_all_paths() {
    let mut sites = Sites::new(Plan::default(), &[line(10, 10), line(10, 20)], &plain());
    sites.run(1_000);
    let from = sites.plan.host(1);
    sites.world.act(sites.bob, |site, _| site.host.serve(80, 20 * MB));
    sites.world.act(sites.alice, |site, _| site.host.fetch(from, 80));
    sites.run(5_000);
    assert!(sites.world[sites.alice].host.received() > 2 * MB);
    // Who looks at peers' comings and goings learns of both.
    let peers = |sites: &Sites| {
        let gateway = &sites.world[sites.alice].gateway;
        let states: Vec<bool> = gateway.peer_states().iter().map(|peer| peer.up).collect();
        (gateway.peers_version(), states)
    };
    let came = peers(&sites);
    assert!(came.0 > 0);
    assert_eq!(came.1, [true]);
    for link in sites.there.iter().chain(&sites.back) {
        sites.world.pipe(*link).partition(Instant::from_millis(5_000), Instant::from_millis(200_000));
    }
    sites.run(8_000);
    let gone = peers(&sites);
    assert!(gone.0 > came.0);
    assert_eq!(gone.1, [false]);
    let before = sites.world[sites.alice].host.received();
    sites.world.act(sites.bob, |site, _| site.host.serve(81, MB));
    sites.world.act(sites.alice, |site, _| site.host.fetch(from, 81));
    sites.run(11_000);
    let after = sites.world[sites.alice].host.received();
    assert!(after >= before + MB, "{before} {after}: a new flow takes the plain route");
    // The old one goes on when its host sends again.
    let alice = sites.alice;
    let done = |world: &byway_sim::World| world[alice].host.received() == 21 * MB;
    assert!(sites.world.run_while(|world| !done(world), Instant::from_millis(100_000)));
    assert_eq!(sites.world[alice].gateway.counters().lost_sessions, 1);
    assert!(sites.world[sites.bob].plain_packets > 10_000);
}

#[test]
fn fail_closed_flows_wait_for_the_session() {
    let settings = Settings { fail_closed: true, ..Settings::default() };
    let mut sites = Sites::new(Plan { settings, ..Plan::default() }, &[line(10, 10)], &line(10, 10));
    sites.run(1_000);
    let from = sites.plan.host(1);
    sites.world.act(sites.bob, |site, _| site.host.serve(80, 10 * MB));
    sites.world.act(sites.alice, |site, _| site.host.fetch(from, 80));
    for link in [sites.there[0], sites.back[0]] {
        sites.world.pipe(link).partition(Instant::from_millis(4_000), Instant::from_millis(12_000));
    }
    let alice = sites.alice;
    let done =
        sites.world.run_while(|world| world[alice].host.received() < 10 * MB, Instant::from_millis(90_000));
    assert!(done, "{}", sites.world[alice].host.received());
    carried_all(&sites);
    assert!(sites.world[sites.bob].gateway.counters().held > 0);
}

#[test]
fn an_exit_that_restarts_loses_no_flow() {
    let mut sites = Sites::new(Plan::default(), &[line(10, 10)], &plain());
    sites.run(1_000);
    let from = sites.plan.host(1);
    sites.world.act(sites.bob, |site, _| site.host.serve(80, 10 * MB));
    sites.world.act(sites.alice, |site, _| site.host.fetch(from, 80));
    sites.run(4_000);
    let config = sites.plan.config(0, &["10.2.0.1:4000".parse().unwrap()]);
    sites.world.act(sites.alice, |site, _| site.dead = true);
    sites.run(5_000);
    sites.world.act(sites.alice, |site, _| {
        // A new process: it knows its sockets, and nothing of flows.
        let mut fresh = byway_gateway::machine::Gateway::new(config).unwrap();
        let change = byway_wire::LinkChange {
            local: byway_wire::Local(1),
            address: "10.1.0.1:4000".parse().unwrap(),
            up: true,
        };
        byway_wire::Machine::handle(&mut fresh, Instant::from_millis(5_000), byway_wire::Input::Link(change));
        site.gateway = fresh;
        site.dead = false;
    });
    let alice = sites.alice;
    let done =
        sites.world.run_while(|world| world[alice].host.received() < 10 * MB, Instant::from_millis(90_000));
    assert!(
        done,
        "{} {:?} {:?}",
        sites.world[alice].host.received(),
        sites.world[alice].gateway.status(),
        sites.world[sites.bob].gateway.status()
    );
}

#[test]
fn what_a_peer_may_not_speak_for_is_told_and_not_carried_to() {
    let mut sites = Sites::new(Plan::default(), &[line(10, 10)], &line(10, 10));
    let mut config = sites.plan.config(1, &[]);
    // Wider than Alice's gateway allows.
    config.serves[0].hosts = byway_gateway::Prefix::of(sites.plan.host(1), 16);
    sites.world.act(sites.bob, |site, now| {
        site.gateway = byway_gateway::machine::Gateway::new(config).unwrap();
        let address = "10.2.0.1:4000".parse().unwrap();
        let change = byway_wire::LinkChange { local: byway_wire::Local(1), address, up: true };
        byway_wire::Machine::handle(&mut site.gateway, now, byway_wire::Input::Link(change));
    });
    fetch(&mut sites, MB / 10, 60_000);
    let status = sites.world[sites.alice].gateway.status();
    assert!(status.peers[0].up, "{status:?}");
    assert_eq!((status.peers[0].refused, status.peers[0].serves.len(), status.peers[0].carried), (1, 0, 0));
}

#[test]
fn observing_changes_nothing() {
    let settings = Settings { observe: true, ..Settings::default() };
    let mut sites = Sites::new(Plan { settings, ..Plan::default() }, &[line(10, 10)], &line(10, 10));
    fetch(&mut sites, MB, 60_000);
    let counters = sites.world[sites.alice].gateway.counters();
    assert_eq!((counters.flows, counters.flows_left), (1, 1));
    assert!(sites.world[sites.alice].plain_packets > 0);
    let status = sites.world[sites.alice].gateway.status();
    assert_eq!(status.peers[0].carried, 0);
    let report = GatewayReport::of(&status, 1.0);
    let told: Vec<_> = report.options.iter().filter(|option| !option.usual).collect();
    assert!(
        matches!(told[..], [option] if (option.name.as_str(), option.value.as_str()) == ("observe", "true"))
    );
    assert!(report.observing && report.options.iter().all(|option| !option.help.is_empty()));
}

/// At the start, packets wait at the sending gateway after they were assigned to a path. One-way
/// delays do not include this wait. The receiving gateway (exit) waits for missing packets. If only
/// these delays set its wait, it would give up late packets.
#[test]
fn an_exit_waits_long_enough_from_the_very_beginning() {
    let mut sites = Sites::new(Plan::default(), &[line(20, 10), line(20, 13), line(20, 15)], &line(1, 50));
    sites.run(1_000);
    let from = sites.plan.host(1);
    sites.world.act(sites.bob, |site, _| site.host.serve(80, 30 * MB));
    sites.world.act(sites.alice, |site, _| site.host.fetch(from, 80));
    sites.run(2_000);
    let waits = sites.world[sites.alice].gateway.status().waits;
    println!("{} of {} packets were not waited for", waits.timed_out, waits.packets());
    assert!(waits.packets() > 3_000 && waits.timed_out < 8, "{waits:?}");
}
