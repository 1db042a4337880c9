//! Three gateways, each a peer of the others, and a relay beside the third gateway. The third
//! gateway tells the other two of this relay, which their configuration does not name. Flows
//! between these two then go through the relay.

use crate::common::{Plan, Sites, carried_all, identity, word_until};
use byway_gateway::machine::{PathStatus, Settings};
use byway_sim::{PipeConfig, World};
use byway_wire::{Duration, Instant};

const MB: u64 = 1_000_000;

fn line(mbit: u64, delay_ms: u64) -> PipeConfig {
    PipeConfig::new(mbit * 1_000_000, Duration::from_millis(delay_ms)).queue(50)
}

/// The third gateway tells both peers of its relay, each by a word of its own, which ends after so
/// many seconds.
fn lend(sites: &mut Sites, third: byway_sim::Handle<byway_gateway::machine::Gateway>, seconds: u64) {
    for site in [0, 1] {
        let word = word_until(0, u32::from(site), seconds);
        sites.world.act(third, |gateway, now| {
            gateway.lend_relay(now, identity(site + 1).public(), word);
        });
    }
}

fn triangle(plan: Plan, fault: impl Fn(PipeConfig) -> PipeConfig) -> Sites {
    let ways = [fault(line(10, 6)), fault(line(10, 6))];
    let meets = [fault(line(10, 6)), fault(line(10, 6))];
    let (mut sites, third) = Sites::with_third(plan, fault(line(10, 10)), ways, meets, &line(1, 50));
    lend(&mut sites, third, 40 * 86_400);
    sites
}

/// Alice fetches what Bob serves; Mbit/s.
fn fetch(sites: &mut Sites, port: u16, bytes: u64) -> f64 {
    let from = sites.plan.host(1);
    let (alice, begun) = (sites.alice, sites.world.now());
    let before = sites.world[alice].host.received();
    sites.world.act(sites.bob, |site, _| site.host.serve(port, bytes));
    sites.world.act(sites.alice, |site, _| site.host.fetch(from, port));
    let missing = |world: &World| world[alice].host.received() < before + bytes;
    assert!(sites.world.run_while(missing, begun + Duration::from_secs(300)), "it comes to an end");
    bytes as f64 * 8.0 / sites.world.now().since(begun).as_secs_f64() / 1e6
}

/// Bob's paths to Alice that lead through a relay.
fn detours(sites: &Sites) -> Vec<PathStatus> {
    let status = sites.world[sites.bob].gateway.status();
    let paths = status.peers.into_iter().next().expect("a peer").paths;
    paths.into_iter().filter(|path| path.route.is_proxied()).collect()
}

#[test]
fn a_peer_s_relay_carries_and_no_file_has_a_word() {
    for seed in 0..4 {
        let mut sites = triangle(Plan { seed, ..Plan::default() }, |line| line);
        sites.run(3_000);
        let rate = fetch(&mut sites, 80, 20 * MB);
        let sent: Vec<u64> = detours(&sites).iter().map(|path| path.totals.bytes).collect();
        println!("seed {seed}: {rate:.2} Mbit/s, {sent:?} by detours");
        carried_all(&sites);
        assert_eq!(sent.len(), 1, "not through its own relay, nor twice");
        assert!(rate > 10.5 && sent[0] > 5 * MB, "{rate} {sent:?}");
        let status = sites.world[sites.alice].gateway.status();
        assert_eq!(status.peers.iter().map(|peer| peer.relays).collect::<Vec<_>>(), [false, true]);
    }
}

#[test]
fn faults_on_every_line_harm_no_flow() {
    for seed in 0..6 {
        let bad = |line: PipeConfig| {
            PipeConfig { loss: 0.005, ..line }.duplication(0.01).reordering(0.02, Duration::from_millis(3))
        };
        let mut sites = triangle(Plan { seed, ..Plan::default() }, bad);
        sites.run(3_000);
        fetch(&mut sites, 80, 3 * MB);
        carried_all(&sites);
        assert_eq!(detours(&sites).len(), 1, "what tells of the relay is told again");
    }
}

#[test]
fn who_does_not_want_detours_takes_none() {
    let settings = Settings { detours: false, ..Settings::default() };
    let mut sites = triangle(Plan { settings, ..Plan::default() }, |line| line);
    sites.run(3_000);
    fetch(&mut sites, 80, 2 * MB);
    carried_all(&sites);
    assert_eq!(detours(&sites).len(), 0);
}

/// A word is renewed before it ends, under the same grant. The path goes on by the renewed one.
#[test]
fn a_word_that_is_renewed_holds_the_detour() {
    let ways = [line(10, 6), line(10, 6)];
    let (mut sites, third) =
        Sites::with_third(Plan::default(), line(10, 10), ways.clone(), ways, &line(1, 50));
    lend(&mut sites, third, 120);
    sites.run(3_000);
    fetch(&mut sites, 80, 5 * MB);
    assert_eq!(detours(&sites).len(), 1);
    sites.run(60_000);
    lend(&mut sites, third, 86_400);
    sites.run(400_000);
    let before = detours(&sites).iter().map(|path| path.totals.bytes).max().unwrap_or_default();
    fetch(&mut sites, 81, 20 * MB);
    let after = detours(&sites).iter().map(|path| path.totals.bytes).max().unwrap_or_default();
    assert!(after > before + 5 * MB, "{before} {after}");
    carried_all(&sites);
}

/// The third site is cut off while its relay carries: the flow goes on by the direct path.
#[test]
fn a_site_that_is_cut_off_takes_its_relay_with_it() {
    for seed in 0..4 {
        let (from, until) = (Instant::from_millis(6_000), Instant::from_millis(400_000));
        let ways = [line(10, 6).partition(from, until), line(10, 6).partition(from, until)];
        let plan = Plan { seed, ..Plan::default() };
        let (mut sites, third) = Sites::with_third(plan, line(10, 10), ways.clone(), ways, &line(1, 50));
        lend(&mut sites, third, 86_400);
        sites.run(3_000);
        fetch(&mut sites, 80, 15 * MB);
        carried_all(&sites);
        let status = sites.world[sites.alice].gateway.status();
        assert!(status.peers[0].up && !status.peers[1].up && !status.peers[1].relays);
    }
}
