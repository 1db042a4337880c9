//! The pipe against what theory and arithmetic say of it.

use byway_sim::link::DropReason;
use byway_sim::{Delivery, Link, Offer, PacketOutcome, Pipe, PipeConfig, Random};
use byway_wire::{Duration, Ecn, Instant};
use proptest::prelude::*;

const MS: Duration = Duration::from_millis(1);

fn offer(size: usize) -> Offer {
    Offer { size, ecn: Ecn::NotEct, flow: 0 }
}

fn pipe(config: PipeConfig) -> Pipe {
    Pipe::new(config, Random::new(9))
}

fn delivery(fate: PacketOutcome) -> Delivery {
    match fate {
        PacketOutcome::Delivered(delivery) => delivery,
        other => panic!("not delivered: {other:?}"),
    }
}

/// Measures the mean wait of an M/D/1 queue, in service times. Theory says `rho / (2 (1 - rho))`:
/// Kleinrock, "Queueing Systems", vol. 1, equation 5.75 with constant service.
fn mean_wait(load: f64, packets: u32, seed: u64) -> f64 {
    let delay = 3 * MS;
    // 972 + 28 bytes at 8 Mbit/s are 1 ms.
    let mut pipe = pipe(PipeConfig::new(8_000_000, delay).queue(usize::MAX));
    let mut random = Random::new(seed);
    let mut now = Instant::ZERO;
    let mut waited = 0;
    for _ in 0..packets {
        now += random.exponential(Duration::from_secs_f64(0.001 / load));
        let arrival = delivery(pipe.offer(now, &offer(972))).at;
        waited += arrival.since(now + delay + MS).as_nanos();
    }
    waited as f64 / f64::from(packets) / 1e6
}

#[test]
fn poisson_arrivals_wait_as_long_as_queueing_theory_says() {
    for (load, packets, tolerance) in [(0.3, 200_000, 0.04), (0.5, 200_000, 0.04), (0.8, 1_000_000, 0.02)] {
        let theory = load / (2.0 * (1.0 - load));
        let found = mean_wait(load, packets, 1);
        assert!((found / theory - 1.0).abs() < tolerance, "load {load}: {found} instead of {theory}");
    }
}

#[test]
fn a_busy_line_sends_at_its_rate_to_the_nanosecond() {
    // 7 bit/ns does not divide evenly: only the carried remainder keeps the rate exact.
    let rate = 7_000_003;
    let mut pipe = pipe(PipeConfig::new(rate, Duration::ZERO).queue(usize::MAX));
    let mut last = Instant::ZERO;
    let packets = 50_000_u64;
    for _ in 0..packets {
        last = delivery(pipe.offer(Instant::ZERO, &offer(1_172))).at;
    }
    let exact = packets * 1_200 * 8 * 1_000_000_000 / rate;
    assert_eq!(last.as_nanos(), exact);
}

#[test]
fn the_packet_in_service_is_not_part_of_the_queue() {
    let mut pipe = pipe(PipeConfig::new(8_000_000, MS).queue(3));
    let fates: Vec<PacketOutcome> = (0..6).map(|_| pipe.offer(Instant::ZERO, &offer(972))).collect();
    let at: Vec<u64> = fates.iter().take(4).map(|&fate| delivery(fate).at.as_micros()).collect();
    assert_eq!(at, [2_000, 3_000, 4_000, 5_000]);
    assert_eq!(fates[4..], [PacketOutcome::Dropped(DropReason::QueueFull); 2]);
    assert_eq!(pipe.waiting(Instant::ZERO).packets, 3);
    // At the end of the first service the second packet leaves the queue.
    assert_eq!(pipe.waiting(Instant::from_millis(1)).packets, 2);
    assert_eq!(delivery(pipe.offer(Instant::from_millis(1), &offer(972))).at.as_micros(), 6_000);
}

#[test]
fn a_queue_in_bytes_counts_headers() {
    let mut config = PipeConfig::new(8_000_000, Duration::ZERO);
    config.queue_bytes = 2_000;
    config.overhead = byway_sim::pipe::OVERHEAD_IPV6;
    let mut pipe = pipe(config);
    // 952 + 48 = 1000: one in service, two in the queue.
    let fates: Vec<bool> = (0..4)
        .map(|_| matches!(pipe.offer(Instant::ZERO, &offer(952)), PacketOutcome::Delivered(_)))
        .collect();
    assert_eq!(fates, [true, true, true, false]);
}

#[test]
fn packets_beyond_the_mtu_and_within_a_partition_are_dropped() {
    let (from, until) = (Instant::from_millis(10), Instant::from_millis(20));
    let mut pipe = pipe(PipeConfig::delay_only(MS).mtu(1_500).partition(from, until));
    assert_eq!(pipe.offer(Instant::ZERO, &offer(1_473)), PacketOutcome::Dropped(DropReason::TooLarge));
    assert_eq!(delivery(pipe.offer(Instant::ZERO, &offer(1_472))).at, Instant::ZERO + MS);
    assert_eq!(delivery(pipe.offer(from.offset_nanos(-1), &offer(1))).at, (from + MS).offset_nanos(-1));
    assert_eq!(pipe.offer(from, &offer(1)), PacketOutcome::Dropped(DropReason::Partition));
    assert_eq!(pipe.offer(until.offset_nanos(-1), &offer(1)), PacketOutcome::Dropped(DropReason::Partition));
    assert_eq!(delivery(pipe.offer(until, &offer(1))).at, until + MS);
    pipe.partition(Instant::from_millis(30), Instant::from_millis(40));
    assert_eq!(
        pipe.offer(Instant::from_millis(35), &offer(1)),
        PacketOutcome::Dropped(DropReason::Partition)
    );
}

#[test]
fn only_ecn_capable_packets_that_meet_a_queue_are_marked() {
    let mut pipe = pipe(PipeConfig::new(8_000_000, Duration::ZERO).mark_above(2));
    let marks: Vec<Ecn> = [Ecn::Ect0, Ecn::Ect0, Ecn::Ect0, Ecn::Ect0, Ecn::NotEct, Ecn::Ect1]
        .map(|ecn| delivery(pipe.offer(Instant::ZERO, &Offer { size: 972, ecn, flow: 0 })).ecn)
        .to_vec();
    assert_eq!(marks, [Ecn::Ect0, Ecn::Ect0, Ecn::Ect0, Ecn::Ce, Ecn::NotEct, Ecn::Ce]);
}

#[test]
fn the_rate_follows_its_steps_and_begins_anew() {
    let mut config = PipeConfig::new(8_000_000, Duration::ZERO);
    let step = |second, rate| byway_sim::pipe::RateStep { at: Duration::from_secs(second), rate };
    config.rate_steps = vec![step(1, 800_000), step(2, 80_000_000)];
    config.rate_period = Some(Duration::from_secs(3));
    let mut pipe = pipe(config);
    let mut service = |millis| {
        let now = Instant::from_millis(millis);
        delivery(pipe.offer(now, &offer(972))).at.since(now).as_micros()
    };
    assert_eq!(
        [0, 999, 1_000, 2_000, 3_000, 4_500].map(&mut service),
        [1_000, 1_000, 10_000, 100, 1_000, 10_000]
    );
}

#[test]
fn faults_come_as_often_as_they_are_said_to() {
    let config = PipeConfig::delay_only(MS)
        .loss(0.1)
        .duplication(0.05)
        .corruption(0.02)
        .reordering(0.03, 5 * MS)
        .jitter(MS);
    let mut pipe = pipe(config);
    let (mut lost, mut copied, mut corrupted, mut late, mut jitter) = (0, 0, 0, 0, 0);
    let rounds = 100_000_u64;
    for round in 0..rounds {
        let now = Instant::from_millis(10 * round);
        match pipe.offer(now, &offer(100)) {
            PacketOutcome::Dropped(_) | PacketOutcome::Queued => lost += 1,
            PacketOutcome::Duplicated(..) => copied += 1,
            PacketOutcome::Delivered(delivery) => {
                corrupted += u64::from(delivery.corruption.is_some());
                let after = delivery.at.since(now + MS);
                late += u64::from(after >= 5 * MS);
                jitter += after.as_nanos() % 5_000_000;
            }
        }
    }
    let near = |found: u64, expected: f64| {
        let deviation = (rounds as f64 * expected * (1.0 - expected)).sqrt();
        assert!((found as f64 - rounds as f64 * expected).abs() < 5.0 * deviation, "{found}: {expected}");
    };
    near(lost, 0.1);
    near(copied, 0.9 * 0.05);
    near(corrupted, 0.9 * 0.95 * 0.02);
    near(late, 0.9 * 0.95 * 0.03);
    let mean = jitter as f64 / (rounds - lost - copied) as f64;
    assert!((mean / 500_000.0 - 1.0).abs() < 0.02, "mean jitter {mean} ns");
}

#[test]
fn a_clock_that_is_read_late_does_not_turn_time_back() {
    let mut pipe = pipe(PipeConfig::new(8_000_000, MS));
    pipe.offer(Instant::from_millis(10), &offer(972));
    assert_eq!(delivery(pipe.offer(Instant::from_millis(5), &offer(972))).at, Instant::from_millis(13));
}

proptest! {
    #[test]
    fn a_pipe_keeps_its_promises(
        seed: u64,
        rate in prop_oneof![Just(None), (10_000_u64..1_000_000_000).prop_map(Some)],
        queue in 0_usize..20,
        queue_bytes in 0_u64..30_000,
        jitter in 0_u64..50_000_000,
        loss in 0.0..0.5_f64,
        packets in proptest::collection::vec((0_u64..10_000_000, 0_usize..1_500), 1..200),
    ) {
        let mut config = PipeConfig::delay_only(MS).queue(queue).jitter(Duration::from_nanos(jitter));
        (config.rate, config.queue_bytes, config.loss) = (rate, queue_bytes, loss);
        config.duplication = loss / 2.0;
        let mut pipe = Pipe::new(config, Random::new(seed));
        let (mut now, mut last) = (Instant::ZERO, Instant::ZERO);
        let mut bits = 0;
        for (gap, size) in packets {
            now += Duration::from_nanos(gap);
            let deliveries = match pipe.offer(now, &offer(size)) {
                PacketOutcome::Dropped(_) | PacketOutcome::Queued => vec![],
                PacketOutcome::Delivered(only) => vec![only],
                PacketOutcome::Duplicated(first, second) => vec![first, second],
            };
            let waiting = pipe.waiting(now);
            prop_assert!(waiting.packets <= queue && waiting.bytes <= queue_bytes);
            if !deliveries.is_empty() {
                bits += (size as u64 + 28) * 8;
            }
            for delivery in deliveries {
                prop_assert!(delivery.at >= last && delivery.at >= now + MS);
                last = delivery.at;
                // Nothing beats the rate: what has come through took at least its time.
                if let Some(rate) = rate {
                    let least = bits as f64 / rate as f64;
                    prop_assert!((delivery.at - MS).as_secs_f64() >= least - 1e-6);
                }
            }
        }
        prop_assert_eq!(pipe.waiting(last + Duration::from_secs(3_600)), byway_sim::Occupancy::default());
    }
}
