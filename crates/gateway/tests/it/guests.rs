//! Hosts that ask a gateway to be served: for their own address, by a key that its file has.

use crate::common::{Plan, Sites, identity};
use byway_engine::seal::Suites;
use byway_gateway::Prefix;
use byway_gateway::joining::{JoinState, Joining, JoiningConfig};
use byway_gateway::machine::GuestConfig;
use byway_gateway::serves::Served;
use byway_sim::{Handle, PipeConfig};
use byway_wire::{Duration, Instant};
use std::net::{IpAddr, SocketAddr};

const GATE: &str = "10.1.0.1:4000";

fn line(mbit: u64, delay_ms: u64) -> PipeConfig {
    PipeConfig::new(mbit * 1_000_000, Duration::from_millis(delay_ms)).queue(50)
}

fn bad(line: PipeConfig) -> PipeConfig {
    PipeConfig { loss: 0.05, ..line }.duplication(0.02).reordering(0.05, Duration::from_millis(3))
}

/// The address of the host with this number, within what Bob allows Alice's gateway to speak for.
fn address(number: u8) -> IpAddr {
    IpAddr::from([192, 168, 1, number])
}

fn guest(number: u8) -> GuestConfig {
    let ports = vec!["80".parse().unwrap(), "443".parse().unwrap()];
    GuestConfig {
        name: format!("host {number}"),
        key: identity(number).public(),
        hosts: Vec::new(),
        ports: if number == 103 { ports } else { Vec::new() },
    }
}

/// Alice's gateway serves nobody but the guests 101 to 105.
fn sites(seed: u64, fault: impl Fn(PipeConfig) -> PipeConfig) -> Sites {
    let guests = (101..=105).map(guest).collect();
    Sites::new(Plan { seed, guests, ..Plan::default() }, &[fault(line(10, 10))], &line(1, 50))
}

/// A host that comes from one address and asks for another, and perhaps for ports.
fn join(
    sites: &mut Sites,
    key: u8,
    from: u8,
    asked: u8,
    ports: &[&str],
    line: PipeConfig,
) -> Handle<Joining> {
    let config = config(key, asked, ports);
    let at = SocketAddr::new(address(from), 5_000);
    let handle = sites.world.add(&format!("host {from}"), Joining::new(config).unwrap(), &[at]);
    sites.world.connect(at, GATE.parse().unwrap(), line.clone(), line);
    handle
}

fn config(key: u8, asked: u8, ports: &[&str]) -> JoiningConfig {
    JoiningConfig {
        identity: identity(key),
        suites: Suites::SECURE,
        seed: [key; 32],
        gateway: identity(1).public(),
        addresses: vec![GATE.parse().unwrap()],
        served: Served {
            hosts: Prefix::of(address(asked), 32),
            ports: ports.iter().map(|port| port.parse().unwrap()).collect(),
        },
    }
}

/// What Bob's gateway knows that Alice's serves.
fn known_to_bob(sites: &Sites) -> Vec<String> {
    let peers = sites.world[sites.bob].gateway.status().peers;
    let served = peers.into_iter().flat_map(|peer| peer.serves);
    served
        .map(|served| {
            let ports: Vec<String> = served.ports.iter().map(ToString::to_string).collect();
            format!("{} {}", served.hosts, ports.join(",")).trim().to_owned()
        })
        .collect()
}

fn later(sites: &mut Sites, millis: u64) {
    let until = sites.world.now() + Duration::from_millis(millis);
    sites.world.run_until(until);
}

fn refusal(sites: &Sites, host: Handle<Joining>) -> String {
    match sites.world[host].standing() {
        JoinState::Refused(why) => why.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_host_joins_is_announced_and_leaves() {
    for seed in 0..4 {
        let mut sites = sites(seed, |line| line);
        let one = join(&mut sites, 101, 101, 101, &[], line(100, 1));
        let two = join(&mut sites, 102, 102, 102, &["80", "443"], line(100, 1));
        later(&mut sites, 3_000);
        assert_eq!(
            [one, two].map(|host| sites.world[host].standing().clone()),
            [JoinState::Joined, JoinState::Joined]
        );
        assert_eq!(known_to_bob(&sites), ["192.168.1.101", "192.168.1.102 80,443"]);
        sites.world.act(one, |host, now| host.leave(now));
        later(&mut sites, 3_000);
        assert_eq!(known_to_bob(&sites), ["192.168.1.102 80,443"]);
        let counters = sites.world[sites.alice].gateway.counters();
        assert_eq!((counters.guests, counters.refused_guests, counters.expired_guests), (2, 0, 0));
    }
}

#[test]
fn an_address_that_is_not_its_own_is_refused_with_the_reason_and_counted() {
    let mut sites = sites(1, |line| line);
    let thief = join(&mut sites, 101, 101, 104, &[], line(100, 1));
    let stranger = join(&mut sites, 99, 99, 99, &[], line(100, 1));
    later(&mut sites, 3_000);
    assert_eq!(refusal(&sites, thief), "192.168.1.104 is not your address here: you come from 192.168.1.101");
    assert!(refusal(&sites, stranger).contains("does not know your key"));
    let counters = sites.world[sites.alice].gateway.counters();
    assert_eq!((counters.guests, counters.refused_guests, counters.foreign_guests), (0, 2, 1));
    assert!(known_to_bob(&sites).is_empty());
    // It does not ask again and again.
    later(&mut sites, 60_000);
    assert_eq!(sites.world[sites.alice].gateway.counters().refused_guests, 2);
}

#[test]
fn ports_and_places_that_the_file_does_not_allow_are_refused() {
    let mut sites = sites(1, |line| line);
    let few = join(&mut sites, 103, 103, 103, &["443"], line(100, 1));
    later(&mut sites, 2_000);
    assert_eq!(sites.world[few].standing(), &JoinState::Joined);
    let many = join(&mut sites, 103, 106, 106, &["22"], line(100, 1));
    later(&mut sites, 3_000);
    assert_eq!(refusal(&sites, many), "this gateway does not serve you at these ports");
    assert_eq!(known_to_bob(&sites), ["192.168.1.103 443"]);
}

/// A guest moves to another address: one key has one place.
#[test]
fn a_guest_has_one_place() {
    let mut sites = sites(1, |line| line);
    join(&mut sites, 101, 101, 101, &[], line(100, 1));
    later(&mut sites, 2_000);
    join(&mut sites, 101, 107, 107, &[], line(100, 1));
    later(&mut sites, 2_500);
    assert_eq!(sites.world[sites.alice].gateway.status().guests.len(), 1);
}

/// A host that falls silent is served for a minute more. It comes back in time, or not.
#[test]
fn a_lease_outlives_a_short_silence_and_ends_after_a_long_one() {
    for (seed, silence, expected) in [(1, 30_000, 1), (2, 30_000, 1), (3, 200_000, 0)] {
        let mut sites = sites(seed, |line| line);
        let until = Instant::from_millis(5_000 + silence);
        let host = line(100, 1).partition(Instant::from_millis(5_000), until);
        join(&mut sites, 101, 101, 101, &[], host);
        sites.run(4_000);
        assert_eq!(known_to_bob(&sites).len(), 1);
        sites.run(4_900 + silence.min(100_000));
        assert_eq!(known_to_bob(&sites).len(), expected, "seed {seed}");
        sites.run(30_000 + silence);
        assert_eq!(known_to_bob(&sites).len(), 1, "it is back");
        let counters = sites.world[sites.alice].gateway.counters();
        assert_eq!(counters.expired_guests, 1 - expected as u64);
    }
}

/// A host with two addresses asks for one, and goes on by the other alone: it is not where it is
/// served any more.
#[test]
fn who_comes_from_elsewhere_now_is_served_no_more() {
    let mut sites = sites(1, |line| line);
    let cut = line(100, 1).partition(Instant::from_millis(5_000), Instant::from_millis(900_000));
    join(&mut sites, 101, 101, 101, &[], cut.clone());
    let second: SocketAddr = "192.168.1.108:5000".parse().unwrap();
    let two = sites.world.add(
        "two",
        Joining::new(config(102, 102, &[])).unwrap(),
        &[SocketAddr::new(address(102), 5_000), second],
    );
    let gate: SocketAddr = GATE.parse().unwrap();
    sites.world.connect(SocketAddr::new(address(102), 5_000), gate, cut.clone(), cut);
    sites.world.connect(second, gate, line(100, 1), line(100, 1));
    sites.run(4_500);
    assert_eq!(known_to_bob(&sites).len(), 2);
    sites.run(120_000);
    assert!(known_to_bob(&sites).is_empty(), "{:?}", sites.world[sites.alice].gateway.status().guests);
    assert!(!matches!(sites.world[two].standing(), JoinState::Joined));
}

#[test]
fn over_bad_lines_hosts_join_all_the_same() {
    for seed in 0..8 {
        let mut sites = sites(seed, bad);
        for number in [101, 102, 104, 105] {
            join(&mut sites, number, number, number, &[], bad(line(10, 5)));
        }
        later(&mut sites, 20_000);
        assert_eq!(known_to_bob(&sites).len(), 4, "seed {seed}");
    }
}

/// The site's host is itself a guest: its flows are carried once it has joined.
#[test]
fn flows_of_a_guest_are_carried() {
    let mut sites = sites(1, |line| line);
    later(&mut sites, 2_000);
    let from = sites.plan.host(1);
    sites.world.act(sites.bob, |site, _| site.host.serve(80, 1_000_000));
    join(&mut sites, 101, 7, 7, &[], line(100, 1));
    later(&mut sites, 2_000);
    sites.world.act(sites.alice, |site, _| site.host.fetch(from, 80));
    later(&mut sites, 10_000);
    assert_eq!(sites.world[sites.alice].host.received(), 1_000_000);
    let counters = sites.world[sites.alice].gateway.counters();
    assert!(counters.delivered_bytes > 1_000_000 && counters.forbidden == 0, "{counters:?}");
}
