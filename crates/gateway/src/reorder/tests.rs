use super::*;
use alloc::vec;
use alloc::vec::Vec;
use byway_wire::{Duration, Instant};
use proptest::prelude::*;

const WAIT: Duration = Duration::from_millis(30);

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn arrived(sequence: u32, wait: Duration) -> ArrivedPacket<u32> {
    ArrivedPacket { sequence, bytes: 1_000, wait, packet: sequence }
}

struct Bench {
    queue: Reorder<u32>,
    stats: WaitStats,
}

impl Bench {
    fn new() -> Self {
        Self { queue: Reorder::new(FlowLimits { bytes: 10_000, packets: 8 }), stats: WaitStats::default() }
    }

    fn on(&mut self, millis: u64, sequence: u32) -> Vec<u32> {
        let mut out = vec![];
        self.queue
            .on_packet(at(millis), arrived(sequence, WAIT), &mut self.stats, &mut |packet| out.push(packet));
        out
    }

    fn expire(&mut self, millis: u64) -> Vec<u32> {
        let mut out = vec![];
        self.queue.expire(at(millis), &mut self.stats, &mut |packet| out.push(packet));
        out
    }
}

#[test]
fn in_sequence_at_once_else_when_the_hole_is_filled() {
    let mut bench = Bench::new();
    assert_eq!(bench.on(0, u32::MAX), [u32::MAX]);
    assert_eq!(bench.on(1, 1), []);
    assert_eq!(bench.on(2, 3), []);
    assert_eq!(bench.on(11, 0), [0, 1]);
    assert_eq!(bench.queue.deadline(), Some(at(32)));
    assert_eq!(bench.on(12, 2), [2, 3]);
    assert_eq!((bench.queue.bytes(), bench.queue.deadline()), (0, None));
    assert_eq!((bench.stats.in_order, bench.stats.waited), (5, Duration::from_millis(20)));
}

#[test]
fn an_expired_packet_takes_all_before_it_along_and_nothing_behind_a_hole() {
    let mut bench = Bench::new();
    bench.on(0, 0);
    assert_eq!(
        (bench.on(1, 5), bench.on(2, 3), bench.on(3, 6), bench.on(4, 8)),
        (vec![], vec![], vec![], vec![])
    );
    assert_eq!(bench.expire(30), []);
    // Number 5 expires. So 3, which came later, goes before it. Then 6 is in sequence, and 8 waits
    // for 7.
    assert_eq!(bench.expire(31), [3, 5, 6]);
    assert_eq!(bench.on(32, 4), [4], "late, but the receiver waits for it");
    assert_eq!(bench.expire(34), [8]);
    assert_eq!(bench.on(35, 9), [9]);
    let stats = bench.stats;
    assert_eq!((stats.timed_out, stats.swept, stats.late, stats.in_order), (2, 1, 1, 3));
}

#[test]
fn what_has_no_time_to_wait_does_not() {
    let mut bench = Bench::new();
    let mut out = vec![];
    for sequence in [0, 2, 1] {
        let arrived = arrived(sequence, Duration::ZERO);
        bench.queue.on_packet(at(5), arrived, &mut bench.stats, &mut |packet| out.push(packet));
    }
    assert_eq!((out, bench.stats.timed_out), (vec![0, 2, 1], 1));
}

#[test]
fn too_much_goes_on_out_of_order_and_is_not_dropped() {
    let mut bench = Bench::new();
    bench.on(0, 0);
    for sequence in 2..10 {
        assert_eq!(bench.on(1, sequence), []);
    }
    assert_eq!(bench.on(1, 12), [2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!((bench.queue.len(), bench.stats.overflowed), (1, 1));
}

#[test]
fn the_same_packet_twice_is_delivered_once() {
    let mut bench = Bench::new();
    bench.on(0, 0);
    bench.on(0, 2);
    assert_eq!((bench.on(1, 2), bench.stats.duplicates), (vec![], 1));
    assert_eq!(bench.on(1, 1), [1, 2]);
}

#[test]
fn an_entry_that_counts_anew_is_followed() {
    let mut bench = Bench::new();
    bench.on(0, 3_000_000);
    bench.on(0, 3_000_005);
    assert_eq!(bench.on(1, 0), [3_000_005, 0]);
    assert_eq!((bench.on(2, 1), bench.stats.begun_anew), (vec![1], 1));
}

fn exit(bytes: usize, flows: usize) -> ReorderQueues<u8, u32> {
    let limits = ExitLimits { bytes, flows, ..ExitLimits::default() };
    ReorderQueues::new(limits)
}

#[test]
fn flows_wait_for_their_own_holes_only() {
    let mut exit = exit(1 << 20, 10);
    let mut out = vec![];
    for (flow, sequence) in [(1, 0), (2, 0), (1, 2), (2, 1), (2, 4)] {
        exit.on_packet(at(u64::from(flow)), flow, arrived(sequence, WAIT), &mut |flow, packet| {
            out.push((*flow, packet))
        });
    }
    assert_eq!(out, [(1, 0), (2, 0), (2, 1)]);
    assert_eq!(exit.bytes(), 2_000);
    assert_eq!(exit.deadline(), Some(at(31)));
    out.clear();
    exit.expire(at(31), &mut |flow, packet| out.push((*flow, packet)));
    assert_eq!((out.as_slice(), exit.deadline()), (&[(1, 2)][..], Some(at(32))));
    exit.forget(at(31), |flow| *flow == 2, &mut |flow, packet| out.push((*flow, packet)));
    assert_eq!((out.as_slice(), exit.flows(), exit.bytes()), (&[(1, 2), (2, 4)][..], 1, 0));
    let idle = at(1) + ExitLimits::default().idle_for;
    assert_eq!(exit.deadline(), Some(idle));
    exit.expire(idle, &mut |_, _| ());
    assert_eq!((exit.flows(), exit.deadline()), (0, None));
}

proptest! {
    #[test]
    fn every_packet_leaves_once_within_its_time_and_within_bounds(
        steps in prop::collection::vec((0u8..6, 0u32..30, 0u64..40, 0u64..4), 1..300)
    ) {
        let mut exit = exit(9_000, 4);
        let (mut now, mut came, mut left) = (at(0), 0u64, 0u64);
        for (flow, sequence, wait, later) in steps {
            let wait = Duration::from_millis(wait);
            came += 1;
            exit.on_packet(now, flow, arrived(sequence, wait), &mut |_, _| left += 1);
            prop_assert!(exit.bytes() <= 9_000 && exit.flows() <= 4);
            now += Duration::from_millis(later);
            exit.expire(now, &mut |_, _| left += 1);
            prop_assert!(exit.deadline().is_none_or(|deadline| deadline > now));
            let waiting = exit.bytes() as u64 / 1_000;
            prop_assert_eq!(came, left + waiting + exit.stats().duplicates);
            prop_assert_eq!(exit.stats().packets(), left);
        }
        exit.forget(now, |_| true, &mut |_, _| left += 1);
        prop_assert_eq!((exit.flows(), exit.bytes(), came), (0, 0, left + exit.stats().duplicates));
    }

    #[test]
    fn two_paths_of_one_flow_come_out_in_order_if_there_is_time_enough(
        paths in prop::collection::vec(any::<bool>(), 1..200), slow in 1u64..50
    ) {
        // A packet per ms; the slow path takes so many ms longer.
        let mut arrivals: Vec<(u64, u32)> =
            (1..).zip(&paths).map(|(sequence, path)| (u64::from(sequence) + if *path { slow } else { 0 }, sequence)).collect();
        arrivals.sort_unstable();
        let (mut queue, mut stats, mut out) = (Reorder::new(FlowLimits::default()), WaitStats::default(), vec![]);
        // Whatever comes first is the beginning.
        for (millis, sequence) in [(0, 0)].into_iter().chain(arrivals) {
            queue.expire(at(millis), &mut stats, &mut |packet| out.push(packet));
            let arrived = arrived(sequence, Duration::from_millis(slow + 1));
            queue.on_packet(at(millis), arrived, &mut stats, &mut |packet| out.push(packet));
        }
        prop_assert_eq!((stats.timed_out, stats.late), (0, 0));
        prop_assert_eq!(out, (0..=paths.len() as u32).collect::<Vec<_>>());
    }
}

#[test]
fn how_late_a_packet_is_counts_from_the_first_that_waited_for_it() {
    let (mut queue, mut stats) = (Reorder::new(FlowLimits::default()), WaitStats::default());
    let mut come =
        |millis, sequence| queue.on_packet(at(millis), arrived(sequence, WAIT), &mut stats, &mut |_| {});
    assert_eq!((come(0, 0), come(1, 3), come(4, 2)), (None, None, None));
    assert_eq!(come(6, 1), Some(Duration::from_millis(5)), "packet 3 came at 1 ms");
    assert_eq!((come(7, 4), come(8, 1)), (None, None), "nobody waited; a duplicate");
    // After it was given up as well.
    assert_eq!(come(10, 6), None);
    let given_up = 10 + WAIT.as_millis() as u64;
    queue.expire(at(given_up), &mut stats, &mut |_| {});
    let mut come =
        |millis, sequence| queue.on_packet(at(millis), arrived(sequence, WAIT), &mut stats, &mut |_| {});
    assert_eq!(come(given_up + 30, 5), Some(WAIT + Duration::from_millis(30)));
    assert_eq!(come(given_up + 31, 4), None, "that one was not waited for");
}

#[test]
fn what_is_late_is_remembered_for_some_packets_and_taken_for_long_where_nothing_is_known() {
    let (longest, mut late) = (Duration::from_millis(40), PacketLateness::default());
    late.on_packet(at(1_000), None, longest);
    assert!(late.peak() > longest * 9 / 10);
    // However many packets there are in that time.
    for each in [1, 8] {
        let mut late = late;
        for packet in 0..4_000 * each {
            late.on_packet(at(1_001 + packet / each), None, longest);
        }
        assert!(late.peak().abs_diff(longest.mul_f64(0.368)) < Duration::from_millis(1), "{:?}", late.peak());
    }
    for packet in 1..40_000 {
        late.on_packet(at(1_000 + packet), None, longest);
    }
    assert!(late.peak() < Duration::from_millis(1), "{:?}", late.peak());
    late.on_packet(at(41_002), Some(Duration::from_millis(90)), longest);
    assert_eq!((late.peak(), late.wait()), (Duration::from_millis(90), Duration::from_millis(135)));
    late.on_packet(at(43_000), None, longest);
    assert!(late.peak() > Duration::from_millis(80), "the larger of the two, after a pause");
}
