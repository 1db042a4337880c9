//! What gateways announce reaches those that are not their peers' neighbours: with its origin, and
//! as far as files allow.

use crate::common::{Plan, identity};
use byway_gateway::Prefix;
use byway_gateway::machine::{Gateway, MachineConfig, PeerConfig, Settings};
use byway_gateway::serves::Served;
use byway_sim::{Handle, LinkId, PipeConfig, World};
use byway_wire::{Duration, Instant};
use std::net::{IpAddr, SocketAddr};

fn line() -> PipeConfig {
    PipeConfig::new(100_000_000, Duration::from_millis(5)).queue(5_000)
}

fn bad() -> PipeConfig {
    PipeConfig { loss: 0.03, ..line() }.duplication(0.02).reordering(0.05, Duration::from_millis(3))
}

fn at(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 1, number, 1], 4_749))
}

/// The hosts behind the gateway of this number.
fn hosts(number: u8) -> Prefix {
    Prefix::of(IpAddr::from([172, 16, number, 0]), 24)
}

/// Gateways in a world.
struct Net {
    world: World,
    gateways: Vec<Handle<Gateway>>,
    links: Vec<(u8, u8, LinkId)>,
}

/// A gateway's file: it knows the keys of `known`, and the addresses of `found` alone.
fn config(number: u8, known: &[u8], found: &[u8], serves: Vec<Served>) -> MachineConfig {
    let peer = |other: &u8| PeerConfig {
        name: other.to_string(),
        key: identity(other + 1).public(),
        addresses: Some(at(*other)).filter(|_| found.contains(other)).into_iter().collect(),
        allowed: vec![hosts(*other)],
        relays: Vec::new(),
    };
    MachineConfig {
        identity: identity(number + 1),
        seed: [number + 1; 32],
        peers: known.iter().map(peer).collect(),
        serves,
        ..Plan::default().config(0, &[])
    }
}

fn usual(number: u8) -> Vec<Served> {
    vec![Served { hosts: hosts(number), ports: Vec::new() }]
}

impl Net {
    /// All lines are there; who finds whom is the files' business.
    fn new(seed: u64, configs: Vec<MachineConfig>, line: impl Fn() -> PipeConfig) -> Self {
        let mut world = World::new(seed);
        let numbers = 0..configs.len() as u8;
        let gateways = configs.into_iter().zip(0u8..).map(|(config, number)| {
            world.add(&format!("gateway {number}"), Gateway::new(config).unwrap(), &[at(number)])
        });
        let gateways = gateways.collect();
        let mut links = Vec::new();
        for one in numbers.clone() {
            for other in numbers.clone().filter(|other| *other > one) {
                let (there, back) = world.connect(at(one), at(other), line(), line());
                links.extend([(one, other, there), (one, other, back)]);
            }
        }
        Self { world, gateways, links }
    }

    fn run(&mut self, millis: u64) {
        self.world.run_until(Instant::from_millis(millis));
    }

    /// Cuts a gateway off for good.
    fn cut(&mut self, number: u8, millis: u64) {
        let (from, until) = (Instant::from_millis(millis), Instant::from_millis(100_000_000));
        for (_, _, link) in self.links.iter().filter(|(one, other, _)| [*one, *other].contains(&number)) {
            self.world.pipe(*link).partition(from, until);
        }
    }

    /// What a gateway knows of another: whether there is a session, and how many prefixes it
    /// serves.
    fn knows(&self, gateway: u8, of: u8) -> (bool, usize) {
        let status = self.world[self.gateways[usize::from(gateway)]].status();
        let name = of.to_string();
        let peer = status.peers.into_iter().find(|peer| peer.name == name).expect("a peer");
        (peer.up, peer.serves.len())
    }

    fn counter(&self, gateway: u8, name: &str) -> u64 {
        let counters = self.world[self.gateways[usize::from(gateway)]].counters();
        counters.each().find(|(known, _)| *known == name).expect("a counter").1
    }
}

/// The ends of a row know each other's key and no address. Gateways between them tell where they
/// are.
#[test]
fn gateways_meet_that_others_told_of_each_other() {
    for seed in 0..4 {
        for line in [line as fn() -> PipeConfig, bad] {
            let configs = vec![
                config(0, &[1, 2], &[1], usual(0)),
                config(1, &[0, 2], &[], usual(1)),
                config(2, &[1, 0], &[1], usual(2)),
            ];
            let mut net = Net::new(seed, configs, line);
            net.run(20_000);
            assert_eq!((net.knows(0, 2), net.knows(2, 0)), ((true, 1), (true, 1)), "seed {seed}");
        }
    }
}

#[test]
fn who_is_told_not_to_introduce_tells_nothing() {
    let quiet = Settings { introduce: false, ..Settings::default() };
    let configs = vec![
        config(0, &[1, 2], &[1], usual(0)),
        MachineConfig { settings: quiet, ..config(1, &[0, 2], &[], usual(1)) },
        config(2, &[1, 0], &[1], usual(2)),
    ];
    let mut net = Net::new(1, configs, line);
    net.run(20_000);
    assert_eq!((net.knows(0, 2), net.counter(1, "passed_on")), ((false, 0), 0));
}

/// What is told of an origin counts as far as the hearer's own file lets the origin speak.
#[test]
fn files_say_for_whom_an_origin_may_speak() {
    let many = (0..200).map(|number| Served { hosts: hosts(number), ports: Vec::new() }).collect();
    // The third does not know the first, and takes no session with it.
    let configs = vec![
        config(0, &[1, 2], &[1], usual(0)),
        config(1, &[0, 2], &[], usual(1)),
        config(2, &[1], &[1], many),
    ];
    let mut net = Net::new(1, configs, line);
    net.run(20_000);
    assert_eq!(net.knows(0, 2), (false, 1), "of two hundred prefixes one");
    // The third is told of the first, which its file does not name.
    assert!(net.counter(2, "unknown_origins") > 0);
}

/// Everybody is everybody's peer, and in a ring. What is told goes round no more than once, and
/// ends with its origin.
#[test]
fn loops_end() {
    let all = [0, 1, 2, 3, 4];
    // A ring: each finds the next alone. The keys of all are known to all.
    let configs = all.map(|number| {
        let others: Vec<u8> = all.into_iter().filter(|other| *other != number).collect();
        config(number, &others, &[(number + 1) % 5], usual(number))
    });
    let mut net = Net::new(3, configs.into(), bad);
    net.run(60_000);
    for number in all {
        for other in all.into_iter().filter(|other| *other != number) {
            assert_eq!(net.knows(number, other), (true, 1), "{number} of {other}");
        }
    }
    // In ten minutes each announces some fifteen times, and each of four peers passes that to three
    // others.
    let before: u64 = all.iter().map(|number| net.counter(*number, "passed_on")).sum();
    net.run(660_000);
    let after: u64 = all.iter().map(|number| net.counter(*number, "passed_on")).sum();
    println!("{before} {after}");
    assert!(after - before <= 5 * 4 * 3 * 12, "{before} {after}");
}

/// An origin that is gone is forgotten, though two gateways tell each other of it.
#[test]
fn what_is_gone_is_forgotten() {
    let configs = vec![
        config(0, &[1, 2, 3], &[1], usual(0)),
        config(1, &[0, 2, 3], &[2], usual(1)),
        config(2, &[0, 1, 3], &[0], usual(2)),
        config(3, &[1], &[1], usual(3)),
    ];
    let mut net = Net::new(5, configs, line);
    net.run(20_000);
    // The fourth does not know the first, and takes no session with it.
    assert_eq!(net.knows(0, 3), (false, 1));
    net.cut(3, 20_000);
    net.run(60_000);
    assert_eq!((net.knows(1, 3), net.knows(0, 3)), ((false, 0), (false, 1)), "nobody says it again");
    net.run(300_000);
    for number in [0, 1, 2] {
        assert_eq!(net.knows(number, 3), (false, 0), "{number}");
    }
}

/// Ten thousand entries of one gateway reach the far end of a row.
#[test]
fn ten_thousand_entries_are_told() {
    let many: Vec<Served> = (0..10_000u32)
        .map(|host| Served {
            hosts: Prefix::of(IpAddr::V4((0xac10_0000 + host).into()), 32),
            ports: Vec::new(),
        })
        .collect();
    let wide = |mut config: MachineConfig| {
        for peer in &mut config.peers {
            peer.allowed = vec![Prefix::of(IpAddr::from([172, 16, 0, 0]), 12)];
        }
        config
    };
    let configs = vec![
        wide(config(0, &[1, 2], &[1], usual(200))),
        wide(config(1, &[0, 2], &[], usual(201))),
        wide(config(2, &[1], &[1], many)),
    ];
    let mut net = Net::new(1, configs, line);
    net.run(30_000);
    // The third does not know the first, so there is no session, and what the second tells is all
    // that is known.
    assert_eq!(net.knows(0, 2), (false, 10_000));
    assert_eq!(net.knows(1, 2), (true, 10_000));
}
