use super::*;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;
use byway_wire::PathId;
use proptest::prelude::*;

const RULES: [LossRuleKind; 3] = [LossRuleKind::AllPassed, LossRuleKind::Batched, LossRuleKind::PathNumbers];

/// A test bench that sends packets in order, and passes arrivals to a rule.
struct Bench {
    rule: Box<dyn LossRule>,
    sent: Vec<SentPacket>,
    numbers: BTreeMap<PathId, u64>,
}

impl Bench {
    fn new(rule: LossRuleKind, later: u32, paths: &[u32]) -> Self {
        let mut bench = Self { rule: rule.make(later), sent: vec![], numbers: BTreeMap::new() };
        paths.iter().for_each(|path| bench.send(*path));
        bench
    }

    fn send(&mut self, path: u32) {
        let (path, start) = (PathId(path), self.sent.len() as u64);
        let number = self.numbers.entry(path).or_default();
        let packet = SentPacket { path, number: *number, start, end: start + 1 };
        *number += 1;
        self.sent.push(packet);
        self.rule.on_sent(packet);
    }

    /// Lets packet `place` arrive. Returns the places of the packets that are lost by this.
    fn arrive(&mut self, place: usize) -> Vec<u64> {
        let mut lost = vec![];
        self.rule.on_arrived(self.sent[place], &mut lost);
        lost.iter().map(|packet| packet.start).collect()
    }
}

#[test]
fn harps_rule_waits_for_every_path_with_data_under_way_and_for_no_other() {
    // Packets 0, 2 and 4 are on path 0, and 1 and 3 on path 1. Path 2 is idle since it delivered
    // nothing.
    let mut bench = Bench::new(LossRuleKind::AllPassed, 1, &[0, 1, 0, 1, 0]);
    assert_eq!(bench.arrive(2), [0; 0], "path 1 has not passed 0");
    assert_eq!(bench.arrive(3), [0, 1], "now both have, and the range up to the head of the queue is lost");
    assert_eq!(bench.arrive(0), [0; 0], "after all");
    assert_eq!(bench.arrive(4), [0; 0]);
    // Path 1 has nothing under way: nobody waits for it.
    bench.send(0);
    bench.send(0);
    assert_eq!(bench.arrive(6), [5]);
}

#[test]
fn path_numbers_and_maps_need_later_packets_of_the_same_path_only() {
    for rule in [LossRuleKind::Batched, LossRuleKind::PathNumbers] {
        let mut bench = Bench::new(rule, 1, &[0, 1, 0, 1, 0]);
        assert_eq!(bench.arrive(2), [0], "{rule:?}");
        assert_eq!(bench.arrive(4), [0; 0], "told once");
        assert_eq!(bench.arrive(3), [1]);
        let mut patient = Bench::new(rule, 3, &[0; 5]);
        assert_eq!((patient.arrive(1), patient.arrive(2), patient.arrive(3)), (vec![], vec![], vec![0]));
        // One that was only overtaken in time.
        let mut overtaken = Bench::new(rule, 3, &[0; 5]);
        let arrivals = [1, 2, 0, 3, 4].map(|place| overtaken.arrive(place).len());
        assert_eq!(arrivals, [0; 5], "{rule:?}");
    }
}

#[test]
fn what_is_under_way_on_a_path_that_ends_is_returned() {
    for rule in RULES {
        let mut bench = Bench::new(rule, 1, &[0, 1, 0, 1]);
        let gone: Vec<u64> = bench.rule.close(PathId(1)).iter().map(|packet| packet.start).collect();
        assert_eq!(gone, [1, 3], "{rule:?}");
        assert_eq!(bench.arrive(2), [0]);
    }
}

#[test]
fn maps_in_bits() {
    let mut maps = BatchMap::new();
    let sent = [(0, 10), (1, 11), (0, 12), (0, 13), (1, 14), (0, 45), (0, 78)];
    let maps = sent.map(|(path, sequence)| maps.next(PathId(path), sequence));
    assert_eq!(maps, [0, 0, 0b10, 0b101, 0b100, 1 << 31, 0]);
}

/// Sends one packet per ms over paths with these delays, of which some are dropped. Returns the
/// time at which the rule finds each loss, by its place.
fn found(
    rule: LossRuleKind,
    delays: &[u64],
    paths: &[usize],
    dropped: &BTreeSet<usize>,
) -> BTreeMap<u64, u64> {
    // Each event is (time, arrival or sending, place). An ACK of what arrives is taken for instant,
    // which is the same for all rules.
    let mut events: Vec<(u64, bool, usize)> = vec![];
    for (place, path) in paths.iter().enumerate() {
        events.push((place as u64, true, place));
        if !dropped.contains(&place) {
            events.push((place as u64 + delays[*path], false, place));
        }
    }
    events.sort_unstable();
    let (mut bench, mut found) = (Bench::new(rule, 1, &[]), BTreeMap::new());
    for (at, sending, place) in events {
        if sending {
            bench.send(paths[place] as u32);
        } else {
            found.extend(bench.arrive(place).into_iter().map(|lost| (lost, at)));
        }
    }
    found
}

#[test]
fn with_paths_of_20_and_200_ms_the_map_takes_less_than_half_of_harps_time() {
    let delays = [10, 100];
    let paths: Vec<usize> = (0..4_000).map(|place| place % 2).collect();
    let dropped: BTreeSet<usize> = (0..3_000).step_by(50).chain((25..3_000).step_by(50)).collect();
    let median = |rule| {
        let found = found(rule, &delays, &paths, &dropped);
        // Since the packet would have arrived.
        let mut latencies: Vec<u64> =
            found.iter().map(|(place, at)| at - place - delays[paths[*place as usize]]).collect();
        assert_eq!(latencies.len(), dropped.len(), "{rule:?}");
        latencies.sort_unstable();
        latencies[latencies.len() / 2]
    };
    let medians = RULES.map(median);
    assert!(medians[1] * 2 <= medians[0], "{medians:?}");
    assert_eq!(medians[1], medians[2]);
}

proptest! {
    #[test]
    fn on_paths_that_keep_the_order_all_rules_find_the_same_and_harps_last(
        delays in prop::collection::vec(1u64..60, 1..4),
        steps in prop::collection::vec((0usize..3, prop::bool::weighted(0.1)), 1..300)
    ) {
        let paths: Vec<usize> = steps.iter().map(|(path, _)| path % delays.len()).collect();
        let dropped: BTreeSet<usize> =
            steps.iter().enumerate().filter(|(_, (_, dropped))| *dropped).map(|(place, _)| place).collect();
        let [harp, map, numbers] = RULES.map(|rule| found(rule, &delays, &paths, &dropped));
        for found in [&harp, &map, &numbers] {
            prop_assert!(found.keys().all(|place| dropped.contains(&(*place as usize))), "none is lost that is not");
        }
        for place in &dropped {
            let mut later = (place + 1..paths.len()).filter(|later| paths[*later] == paths[*place]);
            let next = later.find(|later| !dropped.contains(later));
            let place = *place as u64;
            prop_assert_eq!(numbers.contains_key(&place), next.is_some());
            if next.is_some_and(|next| next as u64 - place <= 32) {
                prop_assert_eq!(map.get(&place), numbers.get(&place));
            }
            if let Some(at) = harp.get(&place) {
                prop_assert!(numbers.get(&place).is_some_and(|numbers| numbers <= at));
            }
        }
    }
}
