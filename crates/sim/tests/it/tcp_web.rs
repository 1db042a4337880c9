//! Web requests, cross traffic.

use crate::tcp_common::*;
use byway_sim::tcp::web::{self, Clients, Request, WebTrace};
use byway_sim::tcp::{Cbr, Flow, ServerConfig, TcpConfig, TcpHost};
use byway_sim::{Handle, LinkId, PipeConfig, Random, World};
use byway_wire::{Duration, Instant};

/// Clients at one end of a line, their server at the other, and a bulk flow beside them on request.
fn web(requests: &[Request], line: &PipeConfig, bulk: bool) -> (World, Handle<Clients>, LinkId) {
    web_of(&TcpConfig::default(), requests, line, bulk)
}

fn web_of(
    options: &TcpConfig,
    requests: &[Request],
    line: &PipeConfig,
    bulk: bool,
) -> (World, Handle<Clients>, LinkId) {
    let (users, server) = (address(1, 1), address(2, 1));
    let mut world = World::new(3);
    let clients = Clients::new(server, requests, Instant::ZERO, options.clone());
    let clients = world.add("clients", clients, &[users]);
    let serve = ServerConfig { options: options.clone(), ..ServerConfig::default() };
    let host = world.add("server", TcpHost::serving(1, serve), &[server]);
    let (_, down) = world.connect(users, server, line.clone(), line.clone());
    if bulk {
        let sink = address(1, 2);
        world.add("sink", TcpHost::new(2), &[sink]);
        world.route(server, sink.ip(), &[down]);
        let free = world.link("free", PipeConfig::delay_only(10 * MS));
        world.route(sink, server.ip(), &[free]);
        world.act(host, |host, _| host.open(Flow::tcp(sink)));
    }
    (world, clients, down)
}

fn times(world: &World, clients: Handle<Clients>) -> Vec<f64> {
    let outcomes = world[clients].outcomes();
    outcomes.iter().map(|o| o.finished.unwrap().since(o.started.unwrap()).as_secs_f64()).collect()
}

#[test]
fn a_request_takes_its_round_trips() {
    // SYN and SYN-ACK, request and response: two round trips of 20 ms, and 1000 bytes.
    let requests = web::fetches(1, 3, 1_000, at(100), Duration::from_secs(30), false);
    let (mut world, clients, down) = web(&requests, &PipeConfig::new(100_000_000, 10 * MS), false);
    assert!(world.run_while(|world| !world[clients].is_done(), at(60_000)));
    for time in times(&world, clients) {
        assert!((0.0400..0.0403).contains(&time), "{time}");
    }
    world.run_for(Duration::from_secs(20));
    // SYN-ACK, the ACK of the request that the response carries or goes before, the response, and
    // an ACK of a FIN at most.
    let sent = world.counters(down).sent;
    assert!((6..=12).contains(&sent), "{sent}");
}

#[test]
fn every_request_is_answered_also_where_much_is_lost() {
    let list = web::trace(1, &WebTrace { clients: 5, requests: 40, ..WebTrace::default() });
    let line = PipeConfig::new(10_000_000, 10 * MS).queue(50).loss(0.05).duplication(0.02).corruption(0.02);
    let (mut world, clients, _) = web(&list, &line, false);
    world.wake_spuriously(0.1);
    assert!(world.run_while(|world| !world[clients].is_done(), at(600_000)));
    let outcomes = world[clients].outcomes();
    assert!(outcomes.iter().all(|outcome| outcome.finished.is_some()));
    assert_eq!(outcomes.len(), 200);
}

/// Connections come and go 4 s after their end, and their places are used again.
#[test]
fn requests_one_after_the_other_wait_for_no_more_than_a_timeout() {
    let requests = web::fetches(1, 3_000, 20_000, at(100), Duration::from_secs(300), true);
    for options in [TcpConfig::default(), TcpConfig::linux()] {
        let line = PipeConfig::new(100_000_000, 10 * MS).queue(50).loss(0.02);
        let (mut world, clients, _) = web_of(&options, &requests, &line, false);
        assert!(world.run_while(|world| !world[clients].is_done(), at(600_000)));
        let longest = times(&world, clients).into_iter().fold(0.0, f64::max);
        assert!(longest < 8.0, "{longest}: {options:?}");
    }
}

#[test]
fn the_same_list_is_replayed_beside_other_load() {
    let list = web::trace(2, &WebTrace { clients: 4, requests: 30, ..WebTrace::default() });
    let line = PipeConfig::new(10_000_000, 10 * MS).queue(50);
    let run = |bulk| {
        let (mut world, clients, _) = web(&list, &line, bulk);
        assert!(world.run_while(|world| !world[clients].is_done(), at(600_000)));
        times(&world, clients)
    };
    let (alone, beside, again) = (run(false), run(true), run(true));
    assert_eq!(beside, again);
    let slower = alone.iter().zip(&beside).filter(|(alone, beside)| beside > alone).count();
    println!("{slower} of {}", alone.len());
    assert!(slower > 100, "a queue of 50 packets slows all: {slower} of {}", alone.len());
}

#[test]
fn datagrams_come_at_their_rate() {
    for poisson in [false, true] {
        let (from, to) = (address(1, 1), address(2, 1));
        let mut world = World::new(3);
        let mut source = Cbr::source(to, 8_000_000, 1_000, at(1_000), at(11_000));
        if poisson {
            source = source.poisson(Random::new(1));
        }
        let source = world.add("source", source, &[from]);
        let sink = world.add("sink", Cbr::sink(), &[to]);
        world.connect(from, to, PipeConfig::delay_only(MS), PipeConfig::default());
        world.run_until(at(20_000));
        let heard = world[sink].heard;
        assert_eq!((heard, world[sink].heard_bytes), (world[source].sent, 1_000 * heard));
        if poisson {
            // Four standard deviations.
            assert!(heard.abs_diff(10_000) < 400 && heard != 10_000, "{heard}");
        } else {
            assert_eq!(heard, 10_000);
        }
    }
}
