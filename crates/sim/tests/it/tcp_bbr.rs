//! BBR on hosts like Linux: what it makes of a line, alone and beside others.

use crate::tcp_common::*;
use byway_control::SenderKind;
use byway_sim::PipeConfig;
use byway_sim::tcp::{Flow, FlowId, ServerConfig, TcpConfig};

fn flow(name: &str, pair: usize, start: u64) -> Flow {
    let host = SenderKind::Linux { initial_window: 10 };
    let controller = byway_control::controller(&name.parse().unwrap(), host, 1 + pair as u64).unwrap();
    let flow = Flow { controller, ..Flow::tcp(address(2, pair)) };
    flow.options(TcpConfig::linux()).start(at(start))
}

fn serve() -> ServerConfig {
    ServerConfig { options: TcpConfig::linux(), ..ServerConfig::default() }
}

/// Goodput in Mbit/s from `from` to `to` seconds, and the mean and the most packets that wait, by a
/// look each millisecond.
fn alone(rate: u64, rtt: u32, queue: usize, (from, to): (u64, u64)) -> (f64, f64, usize) {
    let there = PipeConfig::new(rate * 1_000_000, MS * rtt / 2).queue(queue);
    let mut pair = Pair::new(1, there, PipeConfig::delay_only(MS * rtt / 2), serve());
    pair.open(flow("bbr", 0, 0));
    pair.world.run_until(at(from * 1_000));
    let before = pair.received();
    let (mut sum, mut most) = (0, 0);
    for millis in from * 1_000..to * 1_000 {
        pair.world.run_until(at(millis));
        let waits = pair.world.waiting(pair.there).packets;
        (sum, most) = (sum + waits, most.max(waits));
    }
    let seconds = (to - from) as f64;
    ((pair.received() - before) as f64 * 8e-6 / seconds, sum as f64 / seconds / 1e3, most)
}

/// The line is full, but for the 200 ms in ten seconds in which the smallest RTT is looked for.
#[test]
fn it_fills_a_line_and_keeps_its_queue_short() {
    for (rate, rtt, queue) in [(10, 20, 50), (10, 100, 200), (100, 20, 200), (4, 50, 50)] {
        let (goodput, mean, _) = alone(rate, rtt, queue, (10, 60));
        let part = goodput / (rate as f64 * 1_448.0 / 1_500.0);
        let product = rate as f64 * 1e3 * f64::from(rtt) / 12_000.0;
        println!("{rate} Mbit/s, {rtt} ms: {part:.3}, {mean:.1} packets wait, {product:.1} are under way");
        assert!(part > 0.93, "{rate} Mbit/s, {rtt} ms: {part}");
        assert!(mean < 0.3 * product + 4.0, "{rate} Mbit/s, {rtt} ms: {mean} packets");
    }
}

/// One packet in fifty is lost by chance, which tells BBR nothing.
#[test]
fn losses_by_chance_do_not_slow_it() {
    let run = |name| {
        let there = PipeConfig::new(10_000_000, MS * 20).queue(100).loss(0.02);
        let mut pair = Pair::new(1, there, PipeConfig::delay_only(MS * 20), serve());
        pair.open(flow(name, 0, 0));
        pair.world.run_until(at(5_000));
        let before = pair.received();
        pair.world.run_until(at(45_000));
        (pair.received() - before) as f64 * 8e-6 / 40.0
    };
    let (bbr, cubic) = (run("bbr"), run("cubic"));
    assert!(bbr > 8.5 && cubic < 4.0, "{bbr} {cubic}");
}

/// The smallest RTT is looked for each ten seconds, with four packets in flight for 200 ms and a
/// round.
#[test]
fn it_empties_the_queue_each_ten_seconds() {
    let there = PipeConfig::new(10_000_000, MS * 20).queue(200);
    let mut pair = Pair::new(1, there, PipeConfig::delay_only(MS * 20), serve());
    let id: FlowId = pair.open(flow("bbr", 0, 0));
    let mut low = Vec::new();
    for millis in 1_000..60_000 {
        pair.world.run_until(at(millis));
        let report = pair.world[pair.sender].report(id).unwrap().subflows[0];
        if report.window <= 4 * 1_448 {
            low.push(millis);
        }
    }
    let begins: Vec<u64> = low.iter().copied().filter(|at| !low.contains(&(at - 1))).collect();
    assert!(begins.len() >= 4, "{begins:?}");
    assert!(begins.windows(2).all(|two| (10_000..11_000).contains(&(two[1] - two[0]))), "{begins:?}");
    let each = low.len() / begins.len();
    assert!((200..320).contains(&each), "{each} ms");
}

/// What one BBR has of a line that it shares with one CUBIC.
fn beside_cubic(rate: u64, rtt: u32, queue: usize) -> f64 {
    let line = PipeConfig::new(rate * 1_000_000, MS * rtt / 2).queue(queue);
    let access = vec![PipeConfig::new(1_000_000_000, MS / 100).queue(10_000); 2];
    let mut dumbbell = Dumbbell::new(1, &access, line, &serve());
    for (pair, name) in ["bbr", "cubic"].into_iter().enumerate() {
        let flow = flow(name, pair, 100 * pair as u64);
        dumbbell.world.act(dumbbell.senders[pair], |host, _| host.open(flow));
    }
    dumbbell.world.run_until(at(10_000));
    let rates = dumbbell.goodput(at(70_000));
    rates[0] / (rates[0] + rates[1])
}

/// What is known of BBR version 1 beside CUBIC (Hock, Bless, Zitterbart, ICNP 2017). With a queue
/// of one bandwidth-delay product, BBR takes most of the line. With a queue of many such products,
/// it takes less than its share.
#[test]
fn beside_cubic_the_queue_decides_who_has_the_line() {
    let (short, long) = (beside_cubic(10, 40, 30), beside_cubic(10, 40, 400));
    println!("{short:.2} {long:.2}");
    assert!(short > 0.6, "{short}");
    assert!(long < 0.5, "{long}");
}
