//! Networks as data: errors, ways against brute force, and worlds built from them.

use crate::common::{Flood, Ping, address};
use byway_sim::aqm::{Discipline, RedConfig};
use byway_sim::topology::{
    Direction, Graph, KNOWN_TOPOLOGIES, Parameters, TopologyError, Traffic, bdp_packets, bundle, dumbbell,
    named,
};
use byway_sim::{PipeConfig, Random, World};
use byway_wire::{Duration, Instant};
use proptest::prelude::*;

const MS: Duration = Duration::from_millis(1);

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// The names of the nodes that a way visits.
fn stops<'a>(graph: &'a Graph, way: &[Direction]) -> Vec<&'a str> {
    let begin = way.first().map(|&first| graph.ends(first).0);
    begin.into_iter().chain(way.iter().map(|&direction| graph.ends(direction).1)).collect()
}

fn square() -> Graph {
    let mut graph = Graph::new();
    let slow = PipeConfig::new(1_000_000, 10 * MS);
    for (a, b) in [("a", "b"), ("b", "d"), ("a", "c"), ("c", "d")] {
        graph.join(a, b, &slow).unwrap();
    }
    graph
}

#[test]
fn a_network_that_cannot_be_says_what_is_wrong() {
    let line = PipeConfig::new(1_000, MS);
    let mut graph = square();
    let said = |error: TopologyError| error.to_string();
    for name in ["", "a b", "a>b"] {
        assert_eq!(graph.add_node(name), Err(TopologyError::BadName { name: name.to_owned() }));
    }
    assert_eq!(said(graph.add_node("a").unwrap_err()), "there are two nodes called a");
    assert_eq!(
        said(graph.add_edge("a", "z", line.clone(), line.clone()).unwrap_err()),
        "there is no node called z; there are a, b, c, d"
    );
    // In the other order it is the same edge.
    assert_eq!(
        said(graph.add_edge("b", "a", line.clone(), line.clone()).unwrap_err()),
        "b and a are joined already: for a second way between them, put a node on it"
    );
    assert_eq!(said(graph.join("a", "a", &line).unwrap_err()), "a cannot be joined to itself");
    let dead = PipeConfig::new(0, MS);
    assert_eq!(
        said(graph.add_edge("a", "d", line.clone(), dead).unwrap_err()),
        "the link d>a has a rate of zero: leave it out, or give it a partition"
    );
    assert_eq!(said(graph.direction("a", "d").unwrap_err()), "no link leads from a straight to d");
    graph.add_node("island").unwrap();
    assert_eq!(said(graph.way("a", "island", &[]).unwrap_err()), "no way leads from a to island");
    assert_eq!(said(graph.way("a", "d", &["island"]).unwrap_err()), "no way leads from a to island");
    assert!(
        matches!(graph.way("a", "d", &["y"]), Err(TopologyError::UnknownNode { name, .. }) if name == "y")
    );
    let mut world = World::new(1);
    let built = graph.build_with(&mut world, graph.way("a", "d", &[]).unwrap(), |world, name, config| {
        world.link(name, config.clone())
    });
    assert!(built.link("a", "b").is_ok());
    assert!(built.link("b", "a").unwrap_err().to_string().starts_with("the link b>a is not in this world"));
    let other = graph.way("d", "a", &[]).unwrap();
    assert_eq!(built.links(&other), Err(TopologyError::NotBuilt { link: "d>b".into() }));
}

#[test]
fn an_unknown_node_in_a_large_network_lists_a_few_names_only() {
    let line = PipeConfig::new(1_000, MS);
    let graph = dumbbell(100, 100, &line, &line).unwrap();
    let said = graph.way("l1", "l101", &[]).unwrap_err().to_string();
    assert!(said.starts_with("there is no node called l101; there are east, l1,"), "{said}");
    assert!(said.ends_with(", …") && said.len() < 150, "{said}");
}

#[test]
fn among_equal_ways_the_shorter_and_then_the_first_by_name_is_taken() {
    let mut graph = square();
    // Two ways of equal delay and length.
    assert_eq!(stops(&graph, &graph.way("a", "d", &[]).unwrap()), ["a", "b", "d"]);
    assert_eq!(stops(&graph, &graph.way("a", "d", &["c"]).unwrap()), ["a", "c", "d"]);
    assert_eq!(graph.way("a", "a", &[]).unwrap(), []);
    // A direct one of the same delay has fewer links.
    graph.join("a", "d", &PipeConfig::new(1_000_000, 20 * MS)).unwrap();
    assert_eq!(stops(&graph, &graph.way("a", "d", &[]).unwrap()), ["a", "d"]);
    // A change of the network is noticed.
    graph.config_mut("a", "c").unwrap().delay = 9 * MS;
    assert_eq!(stops(&graph, &graph.way("a", "d", &[]).unwrap()), ["a", "c", "d"]);
    assert_eq!(stops(&graph, &graph.way("d", "a", &[]).unwrap()), ["d", "a"]);
    // A cost stands in for the delay, both ways.
    graph.set_cost("a", "d", 1).unwrap();
    assert_eq!(stops(&graph, &graph.way("a", "d", &[]).unwrap()), ["a", "d"]);
    assert_eq!(stops(&graph, &graph.way("a", "d", &["b", "c"]).unwrap()), ["a", "b", "a", "c", "d"]);
}

#[test]
fn the_first_difference_decides_not_the_last() {
    // The ways are s-a-z-t and s-b-c-t. By the last node before t, c comes before z. By the first
    // node, a comes before b.
    let mut graph = Graph::new();
    for (a, b) in [("s", "b"), ("b", "c"), ("c", "t"), ("s", "a"), ("a", "z"), ("z", "t")] {
        graph.join(a, b, &PipeConfig::delay_only(MS)).unwrap();
    }
    assert_eq!(stops(&graph, &graph.way("s", "t", &[]).unwrap()), ["s", "a", "z", "t"]);
    // The same, the nodes of a way having different delays, so that they are reached at different
    // times.
    graph.config_mut("s", "b").unwrap().delay = MS / 2;
    graph.config_mut("b", "c").unwrap().delay = MS * 3 / 2;
    assert_eq!(stops(&graph, &graph.way("s", "t", &[]).unwrap()), ["s", "a", "z", "t"]);
}

/// Every way without a repeated node: its delay, its length, its names.
fn brute(graph: &Graph, from: &str, to: &str) -> Option<(Duration, usize, Vec<String>)> {
    fn walk(graph: &Graph, to: &str, way: &mut Vec<String>, found: &mut Vec<(Duration, usize, Vec<String>)>) {
        let here = way.last().unwrap().clone();
        if here == to {
            let directions: Vec<Direction> =
                way.windows(2).map(|pair| graph.direction(&pair[0], &pair[1]).unwrap()).collect();
            found.push((graph.propagation(&directions), way.len(), way.clone()));
            return;
        }
        for next in graph.neighbours(&here).unwrap() {
            if !way.iter().any(|seen| seen == next) {
                way.push(next.to_owned());
                walk(graph, to, way, found);
                way.pop();
            }
        }
    }
    let mut found = Vec::new();
    walk(graph, to, &mut vec![from.to_owned()], &mut found);
    found.into_iter().min()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn ways_are_those_of_brute_force(
        size in 2_usize..7,
        // Few different delays, zero among them, so that there are many ties. `None` means no edge.
        delays in proptest::collection::vec(proptest::option::weighted(0.7, (0_u64..4, 0_u64..4)), 21),
        order: u64,
    ) {
        let names = ["n4", "n1", "x", "n3", "a", "n2", "q"];
        let mut pairs: Vec<(usize, usize)> =
            (0..size).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
        let shuffled = |pairs: &mut Vec<(usize, usize)>, random: &mut Random| {
            for place in (1..pairs.len()).rev() {
                pairs.swap(place, random.below(place as u64 + 1) as usize);
            }
        };
        let build = |pairs: &[(usize, usize)]| {
            let mut graph = Graph::new();
            for &name in &names[..size] {
                graph.add_node(name).unwrap();
            }
            for &(a, b) in pairs {
                if let Some((there, back)) = delays[a * (a - 1) / 2 + b] {
                    let [there, back] = [there, back].map(|delay| PipeConfig::delay_only(MS * delay as u32));
                    graph.add_edge(names[a], names[b], there, back).unwrap();
                }
            }
            graph
        };
        let graph = build(&pairs);
        shuffled(&mut pairs, &mut Random::new(order));
        let other = build(&pairs);
        for &from in &names[..size] {
            for &to in &names[..size] {
                let expected = brute(&graph, from, to);
                let way = graph.way(from, to, &[]);
                match expected {
                    None => prop_assert!(way.is_err() && other.way(from, to, &[]).is_err()),
                    Some((delay, length, stopped)) => {
                        let way = way.unwrap();
                        prop_assert_eq!(graph.propagation(&way), delay);
                        prop_assert_eq!(way.len() + 1, length);
                        if from != to {
                            prop_assert_eq!(stops(&graph, &way), stopped.clone());
                            // Whatever the order in which the edges were added.
                            prop_assert_eq!(stops(&other, &other.way(from, to, &[]).unwrap()), stopped);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn two_hosts_talk_at_the_predicted_round_trip() {
    let graph = named("harp-t2", &Parameters::new(1)).unwrap();
    for through in [&[][..], &["T2"], &["T4"], &["T5"], &["T5", "T1", "T2"]] {
        let there = graph.way("S1", "R1", through).unwrap();
        let back = graph.way("R1", "S1", &[]).unwrap();
        let predicted = graph.transit(&there, 100) + graph.transit(&back, 100);
        // 128 bytes at 10 Mbit/s once each way at least.
        assert!(predicted > graph.base_rtt(&there, &back) + Duration::from_micros(204));

        let (a, b) = (address(1, 1000), address(2, 2000));
        let mut world = World::new(1);
        let client = world.add("client", Ping::client(b, 3, 1_000 * MS), &[a]);
        world.add("server", Ping::server(), &[b]);
        let built = graph.build(&mut world);
        built.route(&mut world, a, b.ip(), &there).unwrap();
        built.route(&mut world, b.ip(), a.ip(), &back).unwrap();
        world.run_until(at(2_000));
        let expected: Vec<Instant> = (1..=3).map(|round| Instant::ZERO + predicted * round).collect();
        assert_eq!(world[client].times, expected, "through {through:?}");
        for &direction in &there {
            let (from, to) = graph.ends(direction);
            assert!(world.counters(built.link(from, to).unwrap()).delivered >= 3, "{from}>{to}");
        }
    }
}

#[test]
fn hosts_at_one_node_reach_each_other_at_once() {
    let graph = named("dumbbell", &Parameters::new(1)).unwrap();
    let (a, b) = (address(1, 1000), address(2, 2000));
    let mut world = World::new(1);
    let client = world.add("client", Ping::client(b, 1, MS), &[a]);
    let server = world.add("server", Ping::server(), &[b]);
    let built = graph.build(&mut world);
    let way = graph.way("l1", "l1", &[]).unwrap();
    built.route(&mut world, (client, byway_wire::Local(0)), b.ip(), &way).unwrap();
    built.route(&mut world, (server, byway_wire::Local(0)), a.ip(), &way).unwrap();
    world.run_until(at(10));
    assert_eq!(world[client].times, [Instant::ZERO]);
}

#[test]
fn another_edge_shifts_nobodys_faults() {
    let lossy = PipeConfig::new(1_000_000, MS).loss(0.3);
    let heard = |more: bool| {
        let mut graph = Graph::new();
        if more {
            graph.join("aside", "a", &lossy).unwrap();
        }
        graph.join("a", "b", &lossy).unwrap();
        let (a, b) = (address(1, 1), address(2, 2));
        let mut world = World::new(9);
        world.add("source", Flood::new(b, 10 * MS, 100, 1_000), &[a]);
        let sink = world.add("sink", Flood::sink(), &[b]);
        let built = graph.build(&mut world);
        built.route(&mut world, a, b.ip(), &graph.way("a", "b", &[]).unwrap()).unwrap();
        world.run_until(at(100_000));
        (world[sink].heard, world[sink].last)
    };
    assert_eq!(heard(true), heard(false));
    assert!((600..800).contains(&heard(true).0));
}

#[test]
fn delays_rates_and_queues_are_told_beforehand() {
    let access = PipeConfig::new(1_000_000_000, MS);
    let graph = dumbbell(2, 2, &access, &PipeConfig::new(10_000_000, 8 * MS).queue(50)).unwrap();
    let there = graph.way("l1", "r2", &[]).unwrap();
    let back = graph.way("r2", "l1", &[]).unwrap();
    assert_eq!(stops(&graph, &there), ["l1", "west", "east", "r2"]);
    assert_eq!(graph.base_rtt(&there, &back), 20 * MS);
    assert_eq!(graph.bottleneck(&there), Some(10_000_000));
    assert_eq!(graph.bottleneck(&[]), None);
    // 1 500 bytes with headers: twice 12 us and 1 200 us.
    assert_eq!(graph.transit(&there, 1_472), 10 * MS + Duration::from_micros(1_224));
    // 25 000 bytes are 16 packets and two thirds of one.
    assert_eq!(bdp_packets(10_000_000, 20 * MS, 1_500), 17);
    assert_eq!(bdp_packets(1_000_000_000, 20 * MS, 1_500), 1_667);
}

#[test]
fn what_is_under_way_stays_below_the_bound() {
    let mut graph = Graph::new();
    graph.join("a", "b", &PipeConfig::new(100_000_000, 7 * MS).queue(30).jitter(3 * MS)).unwrap();
    graph.join("b", "c", &PipeConfig::new(10_000_000, 20 * MS).queue(40).duplication(0.5)).unwrap();
    let way = graph.way("a", "c", &[]).unwrap();
    let (a, b) = (address(1, 1), address(2, 2));
    let mut world = World::new(1);
    // 1 500 bytes on the wire, somewhat more than the first link carries.
    world.add("source", Flood::new(b, Duration::from_micros(110), 1_472, 50_000), &[a]);
    world.add("sink", Flood::sink(), &[b]);
    let built = graph.build(&mut world);
    built.route(&mut world, a, b.ip(), &way).unwrap();
    let traffic = Traffic { flows: 1, window: u64::MAX, packet: 1_500 };
    let bound = graph.memory_bound(way.iter().copied(), traffic);
    let mut most = 0;
    for step in 0..500 {
        world.run_until(at(step));
        let under_way: u64 = built
            .links(&way)
            .unwrap()
            .iter()
            .map(|&link| world.counters(link))
            .map(|books| books.queued + books.in_flight)
            .sum();
        most = most.max(under_way);
    }
    let each = 1_500 + byway_sim::topology::MEMORY_PER_PACKET;
    assert!(most * each <= bound && bound < 2 * most * each, "{most} packets, bound {}", bound / each);
    // Used twice, it counts once; a flow of few bytes cannot fill it; nothing limits a flow on a
    // line without a rate.
    assert_eq!(graph.memory_bound(way.iter().chain(&way).copied(), traffic), bound);
    assert_eq!(graph.memory_bound(way.clone(), Traffic { window: 15_000, flows: 2, ..traffic }), 20 * each);
    let mut free = Graph::new();
    free.join("a", "b", &PipeConfig::delay_only(MS)).unwrap();
    assert_eq!(free.memory_bound(free.directions(), traffic), u64::MAX);
}

#[test]
fn every_named_network_is_made_and_hangs_together() {
    for known in KNOWN_TOPOLOGIES {
        let graph = named(known.name, &Parameters::new(3)).unwrap();
        let first = graph.nodes().next().unwrap();
        for node in graph.nodes() {
            graph.way(first, node, &[]).unwrap();
        }
        // Every parameter has a default that it may have; the least is taken, what is beyond the
        // range is refused.
        for parameter in known.parameters {
            assert!((parameter.least..=parameter.most).contains(&parameter.default), "{parameter:?}");
            let least = Parameters::new(3).with(parameter.name, parameter.least);
            assert!(named(known.name, &least).is_ok(), "{}: {parameter:?}", known.name);
            for wrong in [parameter.most * 2.0 + 1.0, f64::NAN, parameter.least - 1.0] {
                let parameters = Parameters::new(3).with(parameter.name, wrong);
                assert!(
                    matches!(named(known.name, &parameters), Err(TopologyError::BadParameter { .. })),
                    "{}: {} = {wrong}",
                    known.name,
                    parameter.name
                );
            }
        }
    }
}

#[test]
fn a_name_or_parameter_that_nobody_knows_is_refused_with_those_that_there_are() {
    let said = named("harp-t9", &Parameters::new(1)).unwrap_err().to_string();
    assert!(
        said.starts_with("there is no topology called harp-t9; there are dumbbell, bundle, harp-t1, harp-t2"),
        "{said}"
    );
    let refused =
        |name, value| named("harp-t1", &Parameters::new(1).with(name, value)).unwrap_err().to_string();
    assert_eq!(
        refused("rate", 1.0),
        "harp-t1 has no parameter rate; it has mbit, ms, queue, factor, access_mbit"
    );
    assert_eq!(
        refused("mbit", 0.0),
        "harp-t1: mbit = 0, but it must be a number from 0.001 to 100000: Mbit/s of each bottleneck (reconstructed)"
    );
    assert!(refused("queue", 1.5).contains("must be a whole number"), "{}", refused("queue", 1.5));
}

/// Delay, bottleneck and stops of a way, for tables.
fn told(graph: &Graph, from: &str, to: &str, through: &[&str]) -> (u128, u64, String) {
    let way = graph.way(from, to, through).unwrap();
    let rate = graph.bottleneck(&way).unwrap() / 1_000;
    (graph.propagation(&way).as_micros(), rate, stops(graph, &way).join(" "))
}

#[test]
fn harps_networks_have_the_paths_that_its_prose_names() {
    let [t1, t2, t4, fig3] =
        ["harp-t1", "harp-t2", "harp-t4", "harp-fig3"].map(|name| named(name, &Parameters::new(1)).unwrap());
    let expect = |graph: &Graph, from, to, through: &[&str], ms: u128, kbit, way: &str| {
        assert_eq!(told(graph, from, to, through), (ms * 1_000, kbit, way.to_owned()));
    };
    expect(&t1, "S1", "R1", &[], 12, 10_000, "S1 T1 T3 R1");
    expect(&t1, "S1", "R1", &["T2"], 12, 10_000, "S1 T1 T2 T3 R1");
    expect(&t1, "W1", "C1", &[], 12, 10_000, "W1 T1 T3 C1");
    expect(&t1, "W2", "C2", &[], 7, 10_000, "W2 T2 T3 C2");

    expect(&t2, "S1", "R1", &[], 12, 10_000, "S1 T1 T3 R1");
    expect(&t2, "S1", "R1", &["T2"], 14, 10_000, "S1 T1 T2 X T3 R1");
    expect(&t2, "S1", "R1", &["T4"], 16, 10_000, "S1 T1 T4 T3 R1");
    expect(&t2, "S1", "R1", &["T5"], 18, 10_000, "S1 T1 T5 T3 R1");
    expect(&t2, "S2", "R2", &[], 8, 10_000, "S2 X T3 R2");

    expect(&t4, "S1", "R1", &[], 12, 10_000, "S1 T1 T6 R1");
    expect(&t4, "S1", "R1", &["T3"], 13, 10_000, "S1 T1 T3 T2 T6 R1");
    expect(&t4, "S1", "R1", &["T5"], 15, 10_000, "S1 T1 T5 T2 T6 R1");
    expect(&t4, "S2", "R2", &[], 7, 10_000, "S2 T2 T6 R2");

    expect(&fig3, "S1", "R1", &[], 12, 10_000, "S1 A B R1");
    expect(&fig3, "S1", "R1", &["T1"], 14, 8_000, "S1 A T1 T2 B R1");
    expect(&fig3, "S2", "R2", &[], 10, 8_000, "S2 T1 T2 R2");

    // Each path of S1 crosses one bottleneck alone, and the back ways mirror them.
    for (graph, relays) in [(&t1, &["T2"][..]), (&t2, &["T2", "T4", "T5"]), (&t4, &["T3", "T4", "T5"])] {
        for through in relays.iter().map(std::slice::from_ref).chain([&[][..]]) {
            let way = graph.way("S1", "R1", through).unwrap();
            let slow = way.iter().filter(|&&direction| graph.config(direction).rate == Some(10_000_000));
            assert_eq!(slow.count(), 1, "through {through:?}");
        }
    }
    // Figure 7a: the path through T2 three times as long.
    let far = named("harp-t1", &Parameters::new(1).with("factor", 3.0)).unwrap();
    expect(&far, "S1", "R1", &["T2"], 32, 10_000, "S1 T1 T2 T3 R1");
}

#[test]
fn the_other_papers_networks_have_their_paths() {
    let net = |name| named(name, &Parameters::new(1)).unwrap();
    let expect = |graph: &Graph, from, to, through: &[&str], us: u128, kbit, way: &str| {
        assert_eq!(told(graph, from, to, through), (us, kbit, way.to_owned()));
    };
    let hir = net("hir");
    expect(&hir, "S1", "R1", &["T1"], 10_000, 1_600, "S1 E T1 X R1");
    expect(&hir, "S2", "R2", &["T2"], 15_000, 1_600, "S2 E T2 X R2");
    expect(&hir, "S1", "R1", &["T3"], 20_000, 1_600, "S1 E T3 X R1");
    expect(&hir, "F2", "Q", &[], 7_500, 1_600, "F2 T2 X Q");

    let fig7 = net("mpath-fig7");
    expect(&fig7, "S", "D", &[], 50_000, 10_000, "S R1 R2 D");
    expect(&fig7, "S", "D", &["P1"], 55_000, 10_000, "S R1 P1 R1 R2 D");
    expect(&fig7, "S", "D", &["P2"], 60_000, 15_000, "S R1 P2 R3 R4 R2 D");
    expect(&fig7, "S", "D", &["P3"], 65_000, 5_000, "S R1 P3 R2 D");
    assert_eq!(fig7.config(fig7.direction("S", "R1").unwrap()).rate, Some(20_000_000));
    let fig13 = net("mpath-fig13");
    expect(&fig13, "S", "D", &["P2"], 60_000, 15_000, "S R1 P2 R3 R4 R2 D");
    expect(&fig13, "A1", "B1", &[], 50_000, 6_000, "A1 R3 R4 B1");
    expect(&fig13, "A2", "B2", &[], 50_000, 8_000, "A2 R3 R4 B2");
    expect(&fig13, "A3", "B3", &[], 50_000, 10_000, "A3 R3 R4 B3");
    let fig10 = net("mpath-fig10");
    expect(&fig10, "S", "D", &[], 50_000, 6_000, "S R1 R2 D");
    expect(&fig10, "S", "D", &["P"], 55_000, 6_000, "S R1 P R2 D");

    let fig2 = net("bmc-fig2");
    expect(&fig2, "s1", "d1", &[], 22_000, 12_000, "s1 A B d1");
    expect(&fig2, "s2", "d2", &[], 22_000, 12_000, "s2 A B d2");
    expect(&fig2, "s2", "d2", &["C"], 22_000, 18_000, "s2 C E d2");
    expect(&fig2, "s3", "d3", &[], 22_000, 18_000, "s3 C E d3");
    let bmc = named("bmc-dumbbell", &Parameters::new(1).with("flows", 48.0)).unwrap();
    expect(&bmc, "w3", "x3", &[], 23_000, 60_000, "w3 west east x3");
    expect(&bmc, "t48", "u48", &[], 38_000, 60_000, "t48 west east u48");
    let red = |graph: &Graph| graph.config(graph.direction("west", "east").unwrap()).discipline.clone();
    assert_eq!(red(&bmc), Discipline::Red(RedConfig::new(75.0, 225.0)));
    let plain = named("bmc-dumbbell", &Parameters::new(1).with("red", 0.0)).unwrap();
    assert_eq!(red(&plain), Discipline::DropTail);
}

#[test]
fn a_bundle_has_its_paths_side_by_side() {
    use byway_sim::topology::BundlePath;
    let fast = PipeConfig::new(100_000_000, MS);
    let path = |delay| BundlePath { first: fast.clone(), second: PipeConfig::new(1_600_000, delay) };
    let graph = bundle(2, &fast, Some(&PipeConfig::new(1, 2 * MS)), &[path(9 * MS), path(14 * MS)]).unwrap();
    assert_eq!(told(&graph, "S2", "R1", &[]).2, "S2 E X R1");
    assert_eq!(told(&graph, "S1", "R2", &["T2"]), (17_000, 1_600, "S1 E T2 X R2".to_owned()));
    assert!(bundle(1, &fast, None, &[]).unwrap().way("E", "X", &[]).is_err());
}
