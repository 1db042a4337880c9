//! Proteus-S on hosts like Linux: alone, beside CUBIC, and among its own. The bound beside CUBIC is
//! what the abstract of its paper says (SIGCOMM 2020): Proteus is a much more effective scavenger
//! than LEDBAT. The abstract has no figure.

use crate::tcp_common::*;
use byway_control::SenderKind;
use byway_sim::PipeConfig;
use byway_sim::tcp::{Flow, ServerConfig, TcpConfig};

/// Payload of a packet of 1500 bytes.
const PAYLOAD_SHARE: f64 = 1_448.0 / 1_500.0;

fn flow(name: &str, pair: usize, start: u64) -> Flow {
    let host = SenderKind::Linux { initial_window: 10 };
    let controller = byway_control::controller(&name.parse().unwrap(), host, 1 + pair as u64).unwrap();
    let flow = Flow { controller, ..Flow::tcp(address(2, pair)) };
    flow.options(TcpConfig::linux()).start(at(start))
}

fn serve() -> ServerConfig {
    ServerConfig { options: TcpConfig::linux(), ..ServerConfig::default() }
}

/// Packets in `products` bandwidth-delay products.
fn packets(rate: u64, rtt: u32, products: f64) -> usize {
    (rate as f64 * 1e3 * f64::from(rtt) / 12_000.0 * products) as usize
}

/// What each of two flows delivers between two seconds, in Mbit/s. They begin at these seconds.
fn two(flows: [(&str, u64); 2], rate: u64, rtt: u32, queue: usize, (from, to): (u64, u64)) -> [f64; 2] {
    let line = PipeConfig::new(rate * 1_000_000, MS * rtt / 2).queue(queue);
    let access = vec![PipeConfig::new(1_000_000_000, MS / 100).queue(10_000); 2];
    let mut dumbbell = Dumbbell::new(1, &access, line, &serve());
    for (pair, (name, start)) in flows.into_iter().enumerate() {
        let flow = flow(name, pair, 1_000 * start);
        dumbbell.world.act(dumbbell.senders[pair], |host, _| host.open(flow));
    }
    dumbbell.world.run_until(at(1_000 * from));
    let rates = dumbbell.goodput(at(1_000 * to));
    [rates[0], rates[1]]
}

/// With a queue of 1.5 bandwidth-delay products it has .9 of the line, and leaves the queue empty.
#[test]
fn alone_it_fills_a_line_and_leaves_its_queue_empty() {
    for (rate, rtt) in [(10, 20), (10, 40), (10, 100), (50, 30), (100, 20)] {
        let there = PipeConfig::new(rate * 1_000_000, MS * rtt / 2).queue(packets(rate, rtt, 1.5));
        let mut pair = Pair::new(1, there, PipeConfig::delay_only(MS * rtt / 2), serve());
        pair.open(flow("proteus-s", 0, 0));
        pair.world.run_until(at(10_000));
        let before = pair.received();
        let mut sum = 0;
        for millis in 10_000..70_000 {
            pair.world.run_until(at(millis));
            sum += pair.world.waiting(pair.there).packets;
        }
        let part = (pair.received() - before) as f64 * 8e-6 / 60.0 / (rate as f64 * PAYLOAD_SHARE);
        let (mean, product) = (sum as f64 / 6e4, packets(rate, rtt, 1.0));
        println!("{rate} Mbit/s, {rtt} ms: {part:.3}, {mean:.1} packets wait of {product}");
        assert!(part >= 0.9, "{rate} Mbit/s, {rtt} ms: {part}");
        assert!(mean < 0.1 * product as f64, "{rate} Mbit/s, {rtt} ms: {mean} packets");
    }
}

/// What a CUBIC has of a line, beside one flow of `name` that began 10 s before or after it.
fn cubic_beside(name: &str, first: bool, rate: u64, rtt: u32, products: f64) -> f64 {
    let starts = if first { [(name, 0), ("cubic", 10)] } else { [(name, 10), ("cubic", 0)] };
    let [_, cubic] = two(starts, rate, rtt, packets(rate, rtt, products), (60, 120));
    cubic / (rate as f64 * PAYLOAD_SHARE)
}

/// The queues here take less than the 100 ms that LEDBAT waits for, so that LEDBAT is as strong as
/// CUBIC.
#[test]
fn cubic_has_more_beside_it_than_beside_ledbat() {
    for (rate, rtt, products) in [(10, 20, 1.5), (10, 40, 1.0), (50, 30, 1.0), (50, 30, 2.0), (100, 20, 2.0)]
    {
        for first in [false, true] {
            let [proteus, ledbat] =
                ["proteus-s", "ledbat"].map(|it| cubic_beside(it, first, rate, rtt, products));
            println!(
                "{rate} Mbit/s, {rtt} ms, {products}, {first}: CUBIC has {proteus:.2}, beside LEDBAT {ledbat:.2}"
            );
            assert!(proteus > ledbat, "{rate} Mbit/s, {rtt} ms, {first}: {proteus} {ledbat}");
        }
    }
}

/// The latecomer of two LEDBATs takes the queue of the first for the path, and nearly all of the
/// line. Proteus keeps no base delay.
#[test]
fn a_latecomer_takes_its_half() {
    for (rate, rtt, queue) in [(10, 40, 500), (50, 30, 188)] {
        let [first, late] = two([("proteus-s", 0), ("proteus-s", 20)], rate, rtt, queue, (60, 180));
        let share = late / (first + late);
        println!("{rate} Mbit/s: {share:.2}");
        assert!((0.35..0.65).contains(&share), "{rate} Mbit/s: {share}");
    }
    let [first, late] = two([("ledbat", 0), ("ledbat", 20)], 10, 40, 500, (60, 180));
    assert!(late / (first + late) > 0.9, "{first} {late}");
}
