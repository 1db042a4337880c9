//! Hundreds of relays behind one access line: which are found, what looking for them costs, and what bad ones do.

use crate::common::detours::{receiver_address, relay, relay_address, seconds, sender_address, through};
use crate::common::{MS, Receiver, Sender, identity, line};
use byway_engine::{RelayStatus, Standing};
use byway_relay::Relay;
use byway_sim::{Handle, LinkId, PipeConfig, Verdict, World};
use byway_wire::{Duration, Instant, Local};
use std::collections::BTreeMap;

/// Both classes.
const CLASSES: [&str; 2] = ["background", "mpath"];

/// One-way delay of the direct line behind the access line.
const DIRECT: Duration = Duration::from_millis(39);

fn at(second: u64) -> Instant {
    Instant::ZERO + seconds(second)
}

/// What a relay is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Good,
    /// It answers greetings and forwards nothing.
    Swallows,
    /// It has 100 kbit/s.
    Slow,
    /// Nobody is there.
    Dead,
}

/// A sender behind an access line of `access` Mbit/s, a direct line behind it, and relays on lines of their own.
struct Search {
    world: World,
    sender: Handle<Sender>,
    receiver: Handle<Receiver>,
    relays: Vec<Handle<Relay>>,
    /// The access line, up and down.
    access: [LinkId; 2],
}

/// RTTs of relays are spread between 40 and 200 ms.
fn search(
    seed: u64,
    congestion: &'static str,
    size: u64,
    [access, direct]: [u64; 2],
    kinds: &[Kind],
) -> Search {
    let mut plan = through(congestion, size, kinds.len()).lengths();
    let (from, to) = (sender_address(), receiver_address());
    plan.addresses.push(to);
    let mut world = World::new(seed);
    world.stop_trace();
    let receiver = world.add("receiver", Receiver::new(9, plan.config.clone(), plan.suites), &[to]);
    let sender = world.add("sender", Sender::new(7, identity(9).public(), plan), &[from]);
    let queue = (access * 1_000_000 / 8 / 1_500 / 20) as usize; // 50 ms
    let uplink = line(access, MS).queue(queue.max(50));
    let [up, down] = ["up", "down"].map(|name| world.link(name, uplink.clone()));
    let [there, back] = ["there", "back"].map(|name| world.link(name, line(direct, DIRECT)));
    world.route(from, to.ip(), &[up, there]);
    world.route(to, from.ip(), &[back, down]);
    let mut relays = Vec::new();
    let mut swallowing = Vec::new();
    for (index, kind) in kinds.iter().enumerate() {
        let here = relay_address(index);
        if *kind == Kind::Dead {
            continue;
        }
        // Packets of different relays never meet but on the access line.
        let one_way = Duration::from_millis(19 + index as u64 * 80 / kinds.len() as u64);
        let pipe = match kind {
            Kind::Slow => PipeConfig::new(100_000, one_way).queue(20),
            _ => line(10, one_way),
        };
        let node = world.add(&format!("relay {index}"), relay(Instant::ZERO), &[here]);
        let links = ["near", "near back", "far", "far back"];
        let pipes = [pipe.clone(), pipe, line(100, MS / 2), line(100, MS / 2)];
        let mut links = links.iter().zip(pipes);
        let mut link =
            || links.next().map(|(name, pipe)| world.link(&format!("{name} {index}"), pipe)).unwrap();
        let [near, near_back, far, far_back] = [link(), link(), link(), link()];
        world.route(from, here.ip(), &[up, near]);
        world.route(here, from.ip(), &[near_back, down]);
        world.route(here, to.ip(), &[far]);
        world.route(to, here.ip(), &[far_back]);
        if *kind == Kind::Swallows {
            swallowing.push(here);
        }
        relays.push(node);
    }
    world.tap(move |datagram| {
        // What a relay sends to the receiver is forwarded, but for its short answers to greetings.
        let swallowed = swallowing.contains(datagram.from) && datagram.payload.len() + datagram.phantom > 120;
        if swallowed && *datagram.to == receiver_address() { Verdict::Drop } else { Verdict::Pass }
    });
    Search { world, sender, receiver, relays, access: [up, down] }
}

impl Search {
    fn relays(&mut self) -> Vec<RelayStatus> {
        self.world.act(self.sender, |host, now| host.endpoint.relays(now, host.handle.unwrap()))
    }

    fn counts(&mut self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for relay in self.relays() {
            *counts.entry(format!("{:?}", relay.standing)).or_default() += 1;
        }
        counts
    }

    /// Seconds until all has arrived.
    fn finish(&mut self, limit: u64, size: u64) -> f64 {
        let sender = self.sender;
        assert!(self.world.run_while(|world| !world[sender].finished(), at(limit)), "{:?}", self.counts());
        assert_eq!(self.world[self.receiver].received, size);
        self.world[sender].done_at.unwrap().since(Instant::ZERO).as_secs_f64()
    }

    /// Mbit/s of object bytes between two times in seconds.
    fn rate(&self, from: u64, until: u64) -> f64 {
        self.world[self.receiver].goodput(seconds(from), seconds(until)) / 1e6
    }
}

/// Good, swallowing and slow relays in turn.
fn thirds(count: usize) -> Vec<Kind> {
    (0..count).map(|index| [Kind::Good, Kind::Swallows, Kind::Slow][index % 3]).collect()
}

/// How much longer 60 s worth of data takes with 64 relays of which a third swallow, a third are slow, and a third are good, than with the
/// good ones alone. Meanwhile some of the good ones die and come back.
fn loss_by_bad_relays(seed: u64, congestion: &'static str) -> f64 {
    let size = 60 * 19_000_000 / 8;
    let took = |kinds: &[Kind]| {
        let mut world = search(seed, congestion, size, [20, 4], kinds);
        world.world.run_until(at(15));
        let dying = [world.relays[0], world.relays[3]];
        dying.iter().for_each(|relay| world.world.freeze(*relay, true));
        world.world.run_until(at(30));
        dying.iter().for_each(|relay| world.world.freeze(*relay, false));
        world.finish(300, size)
    };
    let kinds = thirds(64);
    // The good ones keep their places, so that their RTTs are the same.
    let good: Vec<Kind> =
        kinds.iter().map(|kind| if *kind == Kind::Good { Kind::Good } else { Kind::Dead }).collect();
    let (all, alone) = (took(&kinds), took(&good));
    println!("{congestion}, seed {seed}: {all:.1} s, {alone:.1} s with the good ones alone");
    all / alone
}

#[test]
fn bad_relays_cost_little() {
    for congestion in CLASSES {
        let ratio = loss_by_bad_relays(1, congestion);
        assert!(ratio <= 1.15, "{congestion}: {ratio}");
    }
}

#[test]
#[ignore = "slow: forty transfers of a minute"]
fn bad_relays_cost_little_whatever_the_seed() {
    for congestion in CLASSES {
        let mut ratios: Vec<f64> = (1..=10).map(|seed| loss_by_bad_relays(seed, congestion)).collect();
        ratios.sort_by(f64::total_cmp);
        println!("{congestion}: {ratios:.3?}");
        assert!(ratios[5] <= 1.15, "{congestion}: {ratios:?}");
    }
}

/// A list of 450 relays, a tenth of them dead, is complete in time. Then all packets but data and their ACKs are less than 1 % of 1 Mbit/s.
#[test]
fn a_complete_list_costs_next_to_nothing() {
    for congestion in CLASSES {
        complete_list(congestion);
    }
}

fn complete_list(congestion: &'static str) {
    let kinds: Vec<Kind> =
        (0..450).map(|index| if index % 10 == 9 { Kind::Dead } else { Kind::Good }).collect();
    let mut world = search(1, congestion, 1 << 40, [20, 4], &kinds);
    let complete = (450 + 45) / 4 + 5;
    world.world.run_until(at(complete));
    let counts = world.counts();
    println!("{congestion}: {counts:?}");
    assert_eq!(counts.get("Unusable"), Some(&45), "{counts:?}");
    assert!(!counts.contains_key("Untried"), "{counts:?}");
    world.world.run_until(at(180));
    // Without data to send, all that is left is what it costs to keep paths and relays.
    world.world.act(world.sender, |host, now| {
        host.endpoint.connection_mut(host.handle.unwrap()).unwrap().set_cap(now, Some(1));
    });
    world.world.run_until(at(190));
    let sent = |world: &Search| world.access.map(|link| world.world.counters(link).sent_bytes);
    let before = sent(&world);
    world.world.run_until(at(250));
    let after = sent(&world);
    let rates = [0, 1].map(|way| (after[way] - before[way]) as f64 * 8.0 / 60.0);
    println!("{congestion}: {rates:.0?} bit/s up and down; {:?}", world.counts());
    assert!(rates.iter().all(|rate| *rate <= 10_000.0), "{congestion}: {rates:?}");
}

/// All relays are dead: the direct path is as fast as without any.
#[test]
fn all_relays_are_dead() {
    for congestion in CLASSES {
        let mut rates = Vec::new();
        for relays in [0, 300] {
            let mut world = search(1, congestion, 1 << 40, [20, 4], &vec![Kind::Dead; relays]);
            world.world.run_until(at(60));
            rates.push(world.rate(10, 60));
        }
        println!("{congestion}: {rates:.2?} Mbit/s");
        assert!(rates[1] >= 0.98 * rates[0], "{congestion}: {rates:?}");
    }
}

/// The direct path dies while relays live.
#[test]
fn the_direct_path_dies() {
    for congestion in CLASSES {
        let size = 60 << 20;
        let mut world = search(1, congestion, size, [20, 4], &[Kind::Good; 40]);
        world.world.run_until(at(8));
        let (from, to) = (sender_address(), receiver_address());
        let dark = world.world.link("dark", line(4, DIRECT).partition(Instant::ZERO, Instant::FAR_FUTURE));
        world.world.route(from, to.ip(), &[dark]);
        world.world.route(to, from.ip(), &[dark]);
        let took = world.finish(90, size);
        println!("{congestion}: {took:.1} s");
    }
}

/// The uplink goes and comes back with 300 candidates, tried and untried.
#[test]
fn the_uplink_is_lost_with_three_hundred_candidates() {
    for congestion in CLASSES {
        let size = 100 << 20;
        let mut world = search(1, congestion, size, [20, 4], &[Kind::Good; 300]);
        world.world.run_until(at(20));
        world.world.set_up(world.sender, Local(0), false);
        world.world.run_until(at(30));
        world.world.set_up(world.sender, Local(0), true);
        let took = world.finish(120, size);
        let counts = world.counts();
        println!("{congestion}: {took:.1} s, {counts:?}");
        assert!(took < 75.0, "{congestion}: {took}");
    }
}

/// Relays that answer late are used if there is no better one, and only then.
#[test]
fn late_relays_are_a_reserve() {
    // The direct RTT is 80 ms, and ACKs take the direct way: a probe by a relay that is 100 ms further away comes back after 180 ms.
    let further = |world: &mut Search, relays: core::ops::Range<usize>| {
        for index in relays {
            let name = format!("further {index}");
            let link = world.world.link(&name, line(100, 100 * MS));
            world.world.route(relay_address(index), receiver_address().ip(), &[link]);
        }
    };
    let mut world = search(1, "mpath", 1 << 40, [20, 4], &[Kind::Good; 12]);
    further(&mut world, 6..12);
    world.world.run_until(at(20));
    let standings: Vec<Standing> = world.relays().iter().map(|relay| relay.standing).collect();
    assert!(standings[..6].iter().all(|standing| *standing == Standing::InUse), "{standings:?}");
    assert!(standings[6..].iter().all(|standing| *standing == Standing::Reserve), "{standings:?}");

    let mut world = search(1, "mpath", 1 << 40, [20, 4], &[Kind::Good; 4]);
    further(&mut world, 0..4);
    world.world.run_until(at(20));
    let standings: Vec<Standing> = world.relays().iter().map(|relay| relay.standing).collect();
    assert!(standings.iter().all(|standing| *standing == Standing::InUse), "{standings:?}");
}
