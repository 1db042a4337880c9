//! BBR, version 3, on hosts like Linux: what draft-ietf-ccwg-bbr-06 says it makes of a line, alone
//! and beside CUBIC. Section numbers are of that draft.

use crate::tcp_common::*;
use byway_control::SenderKind;
use byway_sim::PipeConfig;
use byway_sim::tcp::{Flow, FlowId, ServerConfig, TcpConfig};

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

fn pair(name: &str, there: PipeConfig, rtt: u32) -> (Pair, FlowId) {
    let mut pair = Pair::new(1, there, PipeConfig::delay_only(MS * rtt / 2), serve());
    let id = pair.open(flow(name, 0, 0));
    (pair, id)
}

/// Goodput in Mbit/s between two seconds.
fn goodput(pair: &mut Pair, from: u64, to: u64) -> f64 {
    pair.world.run_until(at(from * 1_000));
    let before = pair.received();
    pair.world.run_until(at(to * 1_000));
    (pair.received() - before) as f64 * 8e-6 / (to - from) as f64
}

/// The throughput that 5.3.4.2 aims at is .98 of the rate, for PROBE_RTT takes .02. The pacing rate
/// is 1 % below the rate (5.6.2). A hundredth is left for DOWN, which the draft does not count.
/// STARTUP queues one bandwidth-delay product at most (5.3.1.1), and the first round of PROBE_UP
/// too. A half is left for what is under way before an ACK tells of it.
#[test]
fn it_fills_a_line_and_queues_a_bandwidth_delay_product_at_most() {
    for (rate, rtt, queue) in [(10, 40, 500), (10, 20, 50), (10, 100, 200), (100, 20, 400), (4, 50, 50)] {
        let there = PipeConfig::new(rate * 1_000_000, MS * rtt / 2).queue(queue);
        let (mut pair, _) = pair("bbr3", there, rtt);
        let (mut sum, mut most) = (0, 0);
        for millis in 0..10_000 {
            pair.world.run_until(at(millis));
            let waits = pair.world.waiting(pair.there).packets;
            (sum, most) = (sum + waits, most.max(waits));
        }
        let part = goodput(&mut pair, 10, 70) / (rate as f64 * PAYLOAD_SHARE);
        let product = rate as f64 * 1e3 * f64::from(rtt) / 12_000.0;
        let mean = sum as f64 / 1e4;
        println!(
            "{rate} Mbit/s, {rtt} ms: {part:.3}, {mean:.1} packets wait, at most {most} of {product:.1}"
        );
        assert!(part > 0.98 * 0.99 - 0.01, "{rate} Mbit/s, {rtt} ms: {part}");
        assert!((most as f64) < 1.5 * product, "{rate} Mbit/s, {rtt} ms: {most} packets");
        assert!(mean < 0.3 * product, "{rate} Mbit/s, {rtt} ms: {mean} packets");
    }
}

/// PROBE_RTT comes 5 s after the end of the one before. It lasts 200 ms and a round, with half of a
/// bandwidth-delay product in flight (5.3.4.1).
#[test]
fn it_halves_its_window_each_five_seconds() {
    let there = PipeConfig::new(10_000_000, MS * 20).queue(200);
    let (mut pair, id) = pair("bbr3", there, 40);
    // Half of 10 Mbit/s in 40 ms, in packets.
    let half = 10e6 * 0.04 / 12_000.0 / 2.0;
    let mut low = Vec::new();
    for millis in 1_000..60_000 {
        pair.world.run_until(at(millis));
        let window = pair.world[pair.sender].report(id).unwrap().subflows[0].window as f64 / 1_448.0;
        if window < 1.1 * half {
            assert!(window > 0.9 * half, "{millis}: {window} packets");
            low.push(millis);
        }
    }
    let begins: Vec<u64> = low.iter().copied().filter(|at| !low.contains(&(at - 1))).collect();
    println!("{begins:?}, {} ms", low.len());
    assert!(begins.len() >= 10, "{begins:?}");
    assert!(begins.windows(2).all(|two| (5_200..5_400).contains(&(two[1] - two[0]))), "{begins:?}");
    let each = low.len() / begins.len();
    assert!((200..300).contains(&each), "{each} ms");
}

/// 5.3.3.5.3: a round that loses a part p leaves 1 - p of the rate, until the next probe. The
/// pacing margin of .01 comes off again in each such round. Between two probes there are as many
/// rounds as packets in flight, here 33. Beyond LossThresh, .02, a probe ends at once and lowers
/// the bound on what is in flight, so that little is left. Version 1 takes no notice.
#[test]
fn losses_by_chance_leave_what_the_model_of_the_draft_says() {
    let run = |name, loss| {
        let there = PipeConfig::new(10_000_000, MS * 20).queue(100).loss(loss);
        goodput(&mut pair(name, there, 40).0, 5, 65) / (10.0 * PAYLOAD_SHARE)
    };
    let mean =
        |kept: f64| std::iter::successors(Some(1.0), |rate| Some(rate * kept)).take(33).sum::<f64>() / 33.0;
    for loss in [0.005, 0.01] {
        let part = run("bbr3", loss);
        let (most, least) = (mean(1.0 - loss), mean((1.0 - loss) * 0.99));
        println!("{loss}: {part:.3} of the line, between {least:.3} and {most:.3}");
        assert!((least..most).contains(&part), "{loss}: {part}");
    }
    let (third, first) = (run("bbr3", 0.05), run("bbr", 0.05));
    println!("0.05: {third:.3}, version 1: {first:.3}");
    assert!(third < 0.3 && first > 0.8, "{third} {first}");
}

/// The draft's test cases of a rate that grows and falls tenfold.
#[test]
fn another_rate_is_found() {
    let there = PipeConfig::new(10_000_000, MS * 20).queue(300);
    let (mut pair, _) = pair("bbr3", there, 40);
    let slow = goodput(&mut pair, 5, 10);
    pair.world.pipe(pair.there).set_rate(Some(100_000_000));
    let fast = goodput(&mut pair, 20, 30);
    pair.world.pipe(pair.there).set_rate(Some(10_000_000));
    let again = goodput(&mut pair, 40, 50);
    println!("{slow:.2}, {fast:.2}, {again:.2}");
    assert!(slow > 9.0 && fast > 90.0 && (9.0..9.7).contains(&again), "{slow} {fast} {again}");
}

/// What one flow of `name` has of a line that it shares with one CUBIC.
fn beside_cubic(name: &str, rate: u64, rtt: u32, queue: usize) -> f64 {
    let line = PipeConfig::new(rate * 1_000_000, MS * rtt / 2).queue(queue);
    let access = vec![PipeConfig::new(1_000_000_000, MS / 100).queue(10_000); 2];
    let mut dumbbell = Dumbbell::new(1, &access, line, &serve());
    for (pair, name) in [name, "cubic"].into_iter().enumerate() {
        let flow = flow(name, pair, 100 * pair as u64);
        dumbbell.world.act(dumbbell.senders[pair], |host, _| host.open(flow));
    }
    dumbbell.world.run_until(at(10_000));
    let rates = dumbbell.goodput(at(70_000));
    rates[0] / (rates[0] + rates[1])
}

/// Version 3 leaves CUBIC more than version 1 where the queue holds one bandwidth-delay product or
/// less, which is what it was made for (5.3.3.5). The draft's figure is 25 Mbit/s for a CUBIC at an
/// RTT of 30 ms (5.3.3.5.1), half of 50 Mbit/s: CUBIC has .34 and .46 of it here. With a queue of
/// many products version 3 yields.
#[test]
fn beside_cubic_it_takes_less_than_version_1_where_queues_are_short() {
    for (products, queue) in [(0.25, 31), (1.0, 125)] {
        let [first, third] = ["bbr", "bbr3"].map(|name| beside_cubic(name, 50, 30, queue));
        println!("{products} products: {first:.2}, {third:.2}");
        assert!(third < 0.7 && first > third + 0.2, "{products}: {first} {third}");
    }
    let long = beside_cubic("bbr3", 50, 30, 2_000);
    println!("16 products: {long:.2}");
    assert!(long < 0.4, "{long}");
}
