//! A relay that ends TCP on one side and begins it anew on the other.

use crate::tcp_common::{MS, address, at, line, prompt};
use byway_sim::tcp::{Demand, Flow, FlowId, Subflow, TcpHost, TcpRelay};
use byway_sim::{Handle, PipeConfig, World};

const PACKETS: u32 = 10;

struct Hops {
    world: World,
    source: Handle<TcpHost>,
    relay: Handle<TcpRelay>,
    receiver: Handle<TcpHost>,
}

/// 100 Mbit/s to the relay and `onward` from there, 10 ms each.
fn hops(seed: u64, onward: PipeConfig) -> Hops {
    let mut world = World::new(seed);
    let (options, serve) = prompt();
    let [from, between, to] = [1, 2, 3].map(|net| address(net, 0));
    let source = world.add("source", TcpHost::new(1), &[from]);
    let relay = TcpRelay::new(2, Subflow::direct(to), PACKETS, &options);
    let relay = world.add("relay", relay, &[between]);
    let receiver = world.add("receiver", TcpHost::serving(3, serve), &[to]);
    let first = line(100_000_000, 10 * MS, 1_000);
    world.connect(from, between, first.clone(), first);
    world.connect(between, to, onward.clone(), onward);
    Hops { world, source, relay, receiver }
}

fn open(hops: &mut Hops, demand: Demand) -> FlowId {
    let flow = Flow::tcp(address(2, 0));
    hops.world.act(hops.source, |host, _| host.open(flow.demand(demand).options(prompt().0)))
}

/// How much the buffer may hold.
const ROOM: u64 = PACKETS as u64 * 1_448;

#[test]
fn all_that_is_sent_arrives_and_the_end_too() {
    let loss = PipeConfig { loss: 0.01, ..line(10_000_000, 10 * MS, 100) };
    let mut hops = hops(1, loss);
    let flow = open(&mut hops, Demand::Size(1_000_000));
    hops.world.run_until(at(60_000));
    assert_eq!(hops.world[hops.receiver].received_bytes(), 1_000_000);
    assert!(hops.world[hops.source].report(flow).unwrap().finished.is_some());
    let tag = hops.world[hops.relay].tags().next().unwrap();
    let received = hops.world[hops.receiver].received(tag).unwrap();
    assert!(received.bytes == 1_000_000 && received.finished.is_some(), "{received:?}");
    assert_eq!(hops.world[hops.relay].held(), 0);
}

#[test]
fn a_full_buffer_holds_the_source_back() {
    let mut hops = hops(2, line(1_000_000, 10 * MS, 100));
    let flow = open(&mut hops, Demand::Bulk);
    let mut most = 0;
    for step in 1..=3_000 {
        hops.world.run_until(at(10 * step));
        most = most.max(hops.world[hops.relay].held());
        let (sent, arrived) =
            (hops.world[hops.source].delivered(flow), hops.world[hops.receiver].received_bytes());
        assert!(sent <= arrived + ROOM, "{sent} acknowledged to the source, {arrived} arrived");
    }
    // The most that the buffer held is its limit, or up to two packets less. A packet leaves every
    // 12 ms, and the source refills its place one round trip (20 ms) later. So up to two places are
    // empty.
    assert!((ROOM - 2 * 1_448..=ROOM).contains(&most), "{most} of {ROOM}");
    let report = hops.world[hops.source].report(flow).unwrap();
    assert_eq!((report.subflows[0].losses, report.subflows[0].timeouts), (0, 0));
    // The second hop is never idle: it holds 10 packets of 12 ms, and a round trip is 20 ms.
    let rate = hops.world[hops.receiver].received_bytes() as f64 * 8.0 / 30.0;
    let line = 1e6 * 1_448.0 / 1_502.0;
    println!("{rate} bit/s of {line}, at most {most} bytes held");
    assert!(rate > 0.99 * line && rate <= line, "{rate} of {line}");
}

#[test]
fn a_rate_below_the_second_hops_passes_as_it_is() {
    let mut hops = hops(3, line(1_000_000, 10 * MS, 100));
    let flow = open(&mut hops, Demand::paced(400_000));
    hops.world.run_until(at(5_000));
    let before = hops.world[hops.receiver].received_bytes();
    hops.world.act(hops.source, |host, now| host.set_rate(now, flow, Some(800_000)));
    hops.world.run_until(at(15_000));
    let rate = (hops.world[hops.receiver].received_bytes() - before) as f64 * 8.0 / 10.0;
    println!("400 kbit/s: {before} bytes in 5 s; then {rate} bit/s");
    assert!((before as f64 * 8.0 / 5.0 / 400e3 - 1.0).abs() < 0.03, "{before}");
    assert!((rate / 800e3 - 1.0).abs() < 0.02, "{rate}");
}
