//! Random transfers, requests and cross traffic over a random network.

use super::draw::{bytes, millis, one, rate, seconds};
use super::network::NetworkDraw;
use super::world_facts::TROUBLE_END_SECONDS;
use crate::setup::{
    Arrivals, Carrier, ClockSetup, Cross, Demand, ExchangeOptions, NodeChoice, PathChoice, Requests,
    SessionOptions, Sizes, StreamSetup, TcpOptions, Transfer,
};
use byway_control::{ControllerChoice, controller_names};
use byway_sim::Random;
use byway_wire::Duration;
use std::collections::BTreeMap;

/// The most bytes that one transfer moves.
const MAX_BYTES: u64 = 1_500_000;
/// Bytes of objects that may be small.
const MAX_SMALL_OBJECT_BYTES: u64 = 40_000;

fn transfer(number: u64, paths: Vec<PathChoice>, carrier: Carrier, random: &mut Random) -> Transfer {
    let name = format!("transfer{number}");
    Transfer {
        group: name.clone(),
        name,
        from: NodeChoice::Node("S".into()),
        to: NodeChoice::Node("D".into()),
        paths,
        carrier,
        congestion: choice(one(random, &controller_names()).unwrap_or(&"background")),
        demand: Demand::Size(10_000 + random.below(MAX_BYTES)),
        start: millis(random, 0, 3_000),
        start_jitter: Duration::ZERO,
        stop: None,
    }
}

fn choice(name: &str) -> ControllerChoice {
    ControllerChoice { name: name.into(), options: BTreeMap::new() }
}

/// A random choice of routes: the direct one, and relays.
fn ways(network: &NetworkDraw, random: &mut Random) -> Vec<PathChoice> {
    let mut ways = vec![PathChoice::Direct];
    let relays = network.relays().iter().filter(|_| random.chance(0.7));
    ways.extend(relays.map(|relay| PathChoice::Through(relay.clone())));
    ways
}

/// A transfer of any kind.
pub(super) fn any(number: u64, network: &NetworkDraw, random: &mut Random) -> Transfer {
    match random.below(20) {
        0..11 => exchange(number, network, random),
        11..14 => {
            let options = SessionOptions { real_bytes: true, ..SessionOptions::default() };
            transfer(number, ways(network, random), Carrier::Session(options), random)
        }
        14 if !network.relays().is_empty() => relayed(number, network, random),
        _ => {
            let carrier = Carrier::Tcp(TcpOptions {
                delayed_ack: random.chance(0.5),
                sack: random.chance(0.7),
                receive_window: random.chance(0.3).then(|| 20_000 + random.below(200_000)),
                linux: random.chance(0.5),
                mss: 1_220,
                ..TcpOptions::default()
            });
            transfer(number, ways(network, random), carrier, random)
        }
    }
}

/// A live source over TCP to relays, with Wang's rates.
fn relayed(number: u64, network: &NetworkDraw, random: &mut Random) -> Transfer {
    let paths = network.relays().iter().take(3).map(|relay| PathChoice::Through(relay.clone())).collect();
    let carrier = Carrier::TcpRelays(TcpOptions { mss: 1_220, ..TcpOptions::linux() });
    let one = transfer(number, paths, carrier, random);
    Transfer {
        congestion: choice("newreno"),
        demand: Demand::Rate(vec![(Duration::ZERO, 50_000 + random.below(500_000))]),
        stop: Some(seconds(random, TROUBLE_END_SECONDS, TROUBLE_END_SECONDS + 20)),
        ..one
    }
}

/// A session that asks the registry for relays.
pub(super) fn by_registry(number: u64, random: &mut Random) -> Transfer {
    let carrier = Carrier::Session(SessionOptions { real_bytes: true, ..SessionOptions::default() });
    let one = transfer(number, vec![PathChoice::Direct, PathChoice::Registry], carrier, random);
    Transfer { congestion: choice(product(random)), ..one }
}

/// A class of the product.
fn product(random: &mut Random) -> &'static str {
    if random.chance(0.6) { "background" } else { "mpath" }
}

/// An exchange, mostly by a class of the product.
pub(super) fn exchange(number: u64, network: &NetworkDraw, random: &mut Random) -> Transfer {
    let mut paths = ways(network, random);
    if paths.len() > 1 && random.chance(0.15) {
        paths.remove(0);
    }
    let mut options = options(network, random);
    if !paths.contains(&PathChoice::Direct) {
        // Without its relays it would never end.
        options.words_hold = None;
    }
    let size = options.bytes();
    let mut one = transfer(number, paths, Carrier::Exchange(options), random);
    if random.chance(0.75) {
        one.congestion = choice(product(random));
    }
    one.demand = Demand::Size(size);
    one
}

fn options(network: &NetworkDraw, random: &mut Random) -> ExchangeOptions {
    let (objects, streams) = match random.below(10) {
        0..4 => (vec![bytes(random, 10_000, MAX_BYTES)], Vec::new()),
        4..7 => (objects(random), Vec::new()),
        7 => (Vec::new(), streams(random)),
        _ => (objects(random), streams(random)),
    };
    let present = if random.chance(0.2) { random.below(objects.len() as u64 + 1) as usize } else { 0 };
    let is_whole = present == objects.len();
    ExchangeOptions {
        objects_present: if is_whole { 0 } else { present },
        objects,
        objects_back: if random.chance(0.2) { objects_back(random) } else { Vec::new() },
        streams,
        datagrams: if random.chance(0.15) { random.below(300) as u32 } else { 0 },
        writes: random.chance(0.15).then(|| 100_000 + rate(random)),
        reads: random.chance(0.15).then(|| 200_000 + rate(random)),
        memory: random.chance(0.3).then(|| bytes(random, 16 << 10, 4 << 20)),
        datagram: random.chance(0.4).then_some(1_472),
        path_rule: None,
        tcp: random.chance(0.5),
        uplinks: if random.chance(0.8) { network.uplinks().to_vec() } else { Vec::new() },
        ticket_names_relays: random.chance(0.5),
        words_hold: random.chance(0.08).then(|| Duration::from_secs(60 * (1 + random.below(2)))),
        sender_clock: clock(random),
        receiver_clock: clock(random),
    }
}

fn objects(random: &mut Random) -> Vec<u64> {
    let count = 1 + random.below(30);
    let each = MAX_BYTES / count;
    let size = |random: &mut Random| match random.below(6) {
        0 => 0,
        1 | 2 => random.below(MAX_SMALL_OBJECT_BYTES.min(each)),
        _ => bytes(random, 1_000, each.max(2_000)),
    };
    let mut sizes: Vec<u64> = (0..count).map(|_| size(random)).collect();
    // One at least that is not empty.
    sizes.push(bytes(random, 2_000, MAX_BYTES / 2));
    sizes
}

fn objects_back(random: &mut Random) -> Vec<u64> {
    (0..1 + random.below(4)).map(|_| bytes(random, 100, 200_000)).collect()
}

/// Connections of programs: some talk by turns, some at once, some are reset.
fn streams(random: &mut Random) -> Vec<StreamSetup> {
    let one = |random: &mut Random| {
        let bytes = bytes(random, 1, 300_000);
        StreamSetup {
            bytes,
            answer: if random.chance(0.7) { self::bytes(random, 1, 200_000) } else { 0 },
            in_turn: random.chance(0.5),
            reset_after: random.chance(0.2).then(|| random.below(bytes + 1)),
        }
    };
    (0..1 + random.below(12)).map(|_| one(random)).collect()
}

fn clock(random: &mut Random) -> ClockSetup {
    const DAY_SECONDS: u64 = 86_400;
    if random.chance(0.7) {
        return ClockSetup::default();
    }
    ClockSetup {
        ahead: Duration::from_secs(random.below(2 * DAY_SECONDS)),
        drift_ppm: libm::round((random.unit() - 0.5) * 1_000.0),
        step: random.chance(0.3).then(|| {
            let by =
                if random.chance(0.5) { random.below(20_000) } else { 1_000 * random.below(2 * DAY_SECONDS) };
            (seconds(random, 1, TROUBLE_END_SECONDS), Duration::from_millis(1 + by))
        }),
    }
}

pub(super) fn requests(random: &mut Random) -> Requests {
    Requests {
        name: "web".into(),
        client: "D".into(),
        server: "S".into(),
        arrivals: Arrivals::Open { count: 20, every: millis(random, 50, 2_000), poisson: true },
        sizes: if random.chance(0.5) { Sizes::Web } else { Sizes::Fixed(20_000) },
        congestion: choice("newreno"),
        tcp: TcpOptions { mss: 1_220, ..TcpOptions::default() },
        start: Duration::ZERO,
        stop: None,
    }
}

pub(super) fn cross(random: &mut Random) -> Cross {
    Cross {
        name: "noise".into(),
        from: "S".into(),
        to: "D".into(),
        rate: 200_000,
        packet: 200 + random.below(1_000) as u32,
        poisson: random.chance(0.5),
        start: Duration::ZERO,
        stop: Some(Duration::from_secs(TROUBLE_END_SECONDS)),
        delays: false,
    }
}
