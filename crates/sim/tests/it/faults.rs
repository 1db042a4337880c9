//! What lines do over a run: losses in bursts, schedules of changes, and RED before a real queue.

use byway_sim::aqm::RedConfig;
use byway_sim::pipe::{Change, GilbertElliott};
use byway_sim::{Discipline, DropReason, Link, Offer, PacketOutcome, Pipe, PipeConfig, Random};
use byway_wire::{Duration, Ecn, Instant};

const MS: Duration = Duration::from_millis(1);

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn offer(pipe: &mut Pipe, now: Instant) -> PacketOutcome {
    // 1 000 bytes with headers.
    pipe.offer(now, &Offer { size: 972, ecn: Ecn::NotEct, flow: 0 })
}

fn delay(pipe: &mut Pipe, millis: u64) -> Option<u64> {
    match offer(pipe, at(millis)) {
        PacketOutcome::Delivered(delivery) => Some(delivery.at.since(at(millis)).as_micros() as u64),
        _ => None,
    }
}

#[test]
fn bursts_lose_the_share_and_the_runs_that_they_name() {
    let bursts = GilbertElliott::of(0.02, 5.0);
    assert!((bursts.mean() - 0.02).abs() < 1e-12);
    let mut pipe = Pipe::new(PipeConfig::delay_only(MS).bursts(bursts), Random::new(4));
    let (mut lost, mut runs, mut before) = (0_u32, 0_u32, false);
    let packets = 1_000_000;
    for round in 0..packets {
        let loses = offer(&mut pipe, at(round)) == PacketOutcome::Dropped(DropReason::Loss);
        lost += u32::from(loses);
        runs += u32::from(loses && !before);
        before = loses;
    }
    let (share, length) = (f64::from(lost) / packets as f64, f64::from(lost) / f64::from(runs));
    assert!((share / 0.02 - 1.0).abs() < 0.05, "{share}");
    assert!((length / 5.0 - 1.0).abs() < 0.05, "{length}");
}

#[test]
fn a_line_follows_its_schedule() {
    let config = PipeConfig::new(8_000_000, 10 * MS)
        // Out of order on purpose: the clock counts, not the list.
        .then(at(3_000), Change::Delay(20 * MS))
        .then(at(1_000), Change::Rate(Some(800_000)))
        .then(at(2_000), Change::Rate(None))
        .then(at(4_000), Change::Down)
        .then(at(5_000), Change::Up)
        .then(at(6_000), Change::Loss(1.0))
        .then(at(7_000), Change::Loss(0.0));
    let mut pipe = Pipe::new(config, Random::new(1));
    let found: Vec<_> = [0, 999, 1_000, 1_999, 2_500, 3_000, 3_999, 4_000, 4_999, 5_000, 6_000, 6_999, 7_000]
        .map(|time| delay(&mut pipe, time))
        .to_vec();
    let (ms10, ms11, ms20) = (Some(10_000), Some(11_000), Some(20_000));
    assert_eq!(found, [ms11, ms11, ms20, ms20, ms10, ms20, ms20, None, None, ms20, None, None, ms20]);
}

#[test]
fn a_spike_of_delay_holds_packets_up_and_reorders_none() {
    let config = PipeConfig::delay_only(10 * MS).delay_spike(at(100), at(110), 50 * MS);
    let mut pipe = Pipe::new(config, Random::new(1));
    // From 110 ms on the delay is 10 ms again, but the last of the spike arrives at 169 ms.
    let found = [99, 100, 109, 110, 150, 158, 160, 170].map(|time| delay(&mut pipe, time));
    assert_eq!(found, [10, 60, 60, 59, 19, 11, 10, 10].map(|ms| Some(ms * 1_000)));
}

#[test]
fn what_is_set_by_hand_ends_the_schedule() {
    let config =
        PipeConfig::delay_only(MS).then(at(100), Change::Delay(9 * MS)).then(at(100), Change::Rate(Some(1)));
    let mut pipe = Pipe::new(config, Random::new(1));
    pipe.set_delay(2 * MS);
    pipe.set_rate(Some(8_000_000));
    assert_eq!([50, 200].map(|time| delay(&mut pipe, time)), [Some(3_000); 2]);
}

/// Offers Poisson traffic at `load` times the line's rate to a queue of `limit` packets under RED.
/// Returns the share that RED dropped, RED's average queue at the end, the longest queue, and how
/// many packets found the queue full.
fn red(config: RedConfig, load: f64, limit: usize) -> (f64, f64, usize, u64) {
    let pipe = PipeConfig::new(8_000_000, MS).queue(limit).discipline(Discipline::Red(config));
    let mut pipe = Pipe::new(pipe, Random::new(5));
    let mut random = Random::new(6);
    let (mut now, mut managed, mut full, mut longest) = (Instant::ZERO, 0_u64, 0_u64, 0);
    let packets = 300_000;
    for _ in 0..packets {
        now += random.exponential(Duration::from_secs_f64(0.001 / load));
        match offer(&mut pipe, now) {
            PacketOutcome::Dropped(DropReason::Managed) => managed += 1,
            PacketOutcome::Dropped(_) => full += 1,
            _ => {}
        }
        longest = longest.max(pipe.waiting(now).packets);
    }
    (managed as f64 / packets as f64, pipe.red_average().unwrap_or(f64::NAN), longest, full)
}

#[test]
fn red_drops_what_is_too_much_and_holds_the_average_where_its_rule_says() {
    // Traffic of 1.1 times the line's rate makes RED drop `1 - 1/1.1 = 9.1 %`, one packet in 11.
    // With RED's probability `p`, gaps between drops are uniform up to `1/p`, so their mean is
    // `1/(2p)`. So `p` is `1/(2 * 11) = 0.045`.
    let (dropped, average, longest, full) = red(RedConfig::new(20.0, 60.0), 1.1, 300);
    assert!((dropped - 0.0909).abs() < 0.003, "{dropped}");
    // `p` grows from 0 at 20 packets to 0.1 at 60 packets: `20 + 40 * 0.045 / 0.1 = 38`.
    assert!((average - 38.2).abs() < 6.0, "{average}");
    assert!(longest < 120 && full == 0, "{longest} {full}");
    // Far beyond, gentle stays below twice the maximum: p = 0.25 is 60 + 60 * 0.15 / 0.9 = 70.
    let (dropped, average, _, full) = red(RedConfig::new(20.0, 60.0), 2.0, 300);
    assert!((dropped - 0.5).abs() < 0.01 && full == 0, "{dropped} {full}");
    assert!((average - 70.0).abs() < 6.0, "{average}");
    // Below the line's rate it drops next to nothing, and the average is that of the queue.
    let (dropped, average, _, full) = red(RedConfig::new(20.0, 60.0), 0.7, 300);
    assert!(dropped < 0.0005 && average < 5.0 && full == 0, "{dropped} {average}");
}

#[test]
fn a_full_queue_bounds_red_too() {
    let (_, _, longest, full) = red(RedConfig::new(20.0, 60.0), 2.0, 30);
    assert!(longest == 30 && full > 0, "{longest} {full}");
}
