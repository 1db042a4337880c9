//! Background transfers over lines with jitter, slow ones and those that lose packets, and beside
//! another flow's TCP. Normal ones run after a blackout.

use crate::common::harm::{asked, fetches, percentile, requested};
use crate::common::{MS, Plan, both, line, parallel};
use byway_sim::PipeConfig;
use byway_wire::{Duration, Instant};

const MIB: u64 = 1 << 20;

/// Mbit/s of object bytes over the lines between two times in seconds.
fn rate(congestion: &'static str, pipes: &[PipeConfig], from: u64, until: u64) -> f64 {
    let pipes: Vec<_> = pipes.iter().cloned().map(both).collect();
    let mut world = parallel(1, Plan::new(congestion, &[1024 * MIB], &[]), &pipes);
    world.world.run_for(Duration::from_secs(until));
    world.world[world.receiver].goodput(Duration::from_secs(from), Duration::from_secs(until)) / 1e6
}

#[test]
fn a_slow_line_is_filled() {
    for (mbit, delay, least) in [(2, 10, 0.78), (1, 20, 0.78), (2, 50, 0.85)] {
        let rate = rate("background", &[line(mbit, delay * MS)], 4, 24);
        println!("{mbit} Mbit/s, {delay} ms: {rate:.2} Mbit/s");
        assert!(rate > least * f64::from(mbit as u32), "{mbit} Mbit/s, {delay} ms: {rate:.2}");
    }
}

#[test]
#[ignore = "slow: seconds of a processor, at full scale"]
fn jitter_leaves_a_part_of_the_line() {
    // Jitter of 10 ms is more than is believed (`docs/background.md`).
    for (mbit, delay, jitter, least) in
        [(20, 10, 10, 0.5), (20, 10, 5, 0.85), (40, 3, 5, 0.9), (12, 25, 8, 0.85), (15, 22, 6, 0.85)]
    {
        let pipe = line(mbit, delay * MS).queue(200).jitter(jitter * MS);
        let rate = rate("background", &[pipe], 4, 24);
        println!("{mbit} Mbit/s, {delay} ms, jitter {jitter} ms: {rate:.2} Mbit/s");
        assert!(rate > least * f64::from(mbit as u32), "{mbit}, {delay} ms, jitter {jitter} ms: {rate:.2}");
    }
}

#[test]
#[ignore = "slow: measures rates over minutes of simulated time"]
fn a_path_that_was_dark_is_soon_as_fast_as_before() {
    for congestion in ["mpath", "background"] {
        for (from, until) in [(1_000, 3_000), (5_000, 7_000)] {
            for (delay, dark) in [(10, 0), (10, 1), (40, 0), (40, 1)] {
                let mut pipes = [line(10, delay * MS), line(10, delay * MS)];
                pipes[dark] =
                    pipes[dark].clone().partition(Instant::from_millis(from), Instant::from_millis(until));
                let after = until / 1_000 + 8;
                let rate = rate(congestion, &pipes, after, after + 8);
                println!("{congestion}, {from} to {until} ms, {delay} ms, path {dark}: {rate:.2} Mbit/s");
                assert!(rate > 14.5, "{congestion}, {from} ms, {delay} ms, path {dark}: {rate:.2}");
            }
        }
    }
}

#[test]
fn ten_transfers_harm_hardly_more_than_one() {
    let pipe = line(10, 10 * MS).queue(100);
    let (one, ten) = (fetches(&pipe, 1), fetches(&pipe, 10));
    for percent in [50, 90] {
        let (one, ten) = (percentile(&one, percent), percentile(&ten, percent));
        println!("{percent} %: {one:.3} s beside one, {ten:.3} s beside ten: {:.3}", ten / one);
        assert!(ten <= 1.15 * one, "{percent} %: {ten:.3} s beside ten, {one:.3} s beside one");
    }
}

#[test]
#[ignore = "slow: measures rates over minutes of simulated time"]
fn requests_hardly_notice_background_transfers_and_leave_them_the_rest() {
    for others in [1, 8] {
        let [median, p90, share, back] = requested(9, 50, others);
        let what = format!(
            "{others}: median {median:.3}, p90 {p90:.3}, {share:.3} of the rest, full after {back:.1} s"
        );
        println!("{what}");
        let (most, slowest) = if others == 1 { (1.25, 1.40) } else { (1.34, 1.46) };
        assert!(median <= most && p90 <= slowest && share >= 0.77 && back <= 10.0, "{what}");
    }
}

#[test]
#[ignore = "slow: measures rates over minutes of simulated time"]
fn pages_hardly_notice_background_transfers_and_leave_them_the_rest() {
    for (jitter, others) in [(Duration::ZERO, 1), (Duration::ZERO, 8), (MS, 1), (MS, 8)] {
        let [median, p90, share, back] = asked(3, jitter, others);
        let what = format!(
            "{others}, jitter {jitter:?}: {median:.3}, {p90:.3}, {share:.3} of the rest, {back:.1} s"
        );
        println!("{what}");
        let (most, slowest) = if others == 1 { (1.25, 1.40) } else { (1.34, 1.46) };
        assert!(median <= most && p90 <= slowest && share >= 0.77 && back <= 10.0, "{what}");
    }
}

#[test]
fn loss_by_chance_leaves_the_line_full() {
    for rtt in [5, 10, 30, 100, 300] {
        let rate = rate("background", &[line(10, MS * rtt / 2).loss(0.005)], 8, 30);
        println!("RTT {rtt} ms: {rate:.2} Mbit/s");
        // Of a packet of 1500 bytes 1424 are the object's.
        // Below 20 ms the answer to losses that meet a queue costs more.
        let least = match rtt {
            5 => 8.0,
            10 | 300 => 8.7,
            _ => 9.2,
        };
        assert!(rate > least * 0.949, "RTT {rtt} ms: {rate:.2}");
    }
}
