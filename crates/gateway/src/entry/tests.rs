use super::*;
use alloc::collections::BTreeMap;
use alloc::vec;
use proptest::prelude::*;

fn queue(bytes: usize, flow_bytes: usize) -> EntryQueue<u32> {
    EntryQueue::new(EntryLimits { bytes, flow_bytes, packets: 1_000, quantum: 1_500 })
}

fn push(queue: &mut EntryQueue<u32>, flow: u32, bytes: usize, packet: u32) -> Vec<(u32, u32)> {
    let mut dropped = vec![];
    queue.push(flow, bytes, packet, |flow, packet| dropped.push((flow, packet)));
    dropped
}

#[test]
fn flows_share_bytes_and_not_packets() {
    let mut queue = queue(1 << 20, 1 << 20);
    for packet in 0..300 {
        push(&mut queue, 0, 1_500, packet);
        push(&mut queue, 1, 500, packet);
        push(&mut queue, 2, 100, packet);
    }
    let mut sent = [0; 3];
    while queue.bytes_of(2) > 0 {
        let (flow, packet) = queue.peek().map(|(flow, packet)| (flow, *packet)).unwrap();
        let before = queue.bytes();
        assert_eq!(queue.pop(), Some((flow, packet)), "what was shown is what is taken");
        sent[flow as usize] += before - queue.bytes();
    }
    assert_eq!(sent[2], 30_000);
    assert!(sent[..2].iter().all(|bytes| bytes.abs_diff(30_000) <= 3_000), "{sent:?}");
}

#[test]
fn the_longest_loses_its_oldest() {
    let mut queue = queue(100_000, 80_000);
    for packet in 0..60 {
        assert!(push(&mut queue, 0, 1_000, packet).is_empty());
    }
    for packet in 0..20 {
        assert!(push(&mut queue, 1, 1_000, packet).is_empty());
    }
    for packet in 60..80 {
        push(&mut queue, 0, 1_000, packet);
    }
    assert_eq!(queue.bytes(), 100_000);
    assert_eq!(push(&mut queue, 2, 1_500, 0), [(0, 0), (0, 1)]);
    assert_eq!(queue.counters().dropped, 2);
    let mut alone = self::queue(100_000, 5_000);
    let dropped: Vec<_> = (0..7).flat_map(|packet| push(&mut alone, 9, 1_000, packet)).collect();
    assert_eq!((dropped, alone.counters().dropped_of_flow), (vec![(9, 0), (9, 1)], 2));
    // What fits nowhere does not stay, and takes nothing but its own flow's with it.
    assert_eq!(push(&mut alone, 8, 6_000, 1), [(8, 1)]);
}

#[test]
fn packets_without_bytes_are_bounded_too() {
    let mut queue = queue(1_000, 1_000);
    let dropped: usize = (0..3_000).map(|packet| push(&mut queue, packet % 7, 0, packet).len()).sum();
    assert_eq!((queue.len(), dropped), (1_000, 2_000));
}

#[test]
fn a_flow_that_ended_waits_no_more() {
    let mut queue = queue(100_000, 80_000);
    for flow in 0..3 {
        push(&mut queue, flow, 1_000, flow);
    }
    queue.clear(1);
    queue.clear(77);
    assert_eq!((queue.pop(), queue.pop(), queue.pop()), (Some((0, 0)), Some((2, 2)), None));
    assert!(queue.is_empty() && queue.bytes() == 0 && queue.counters().cleared == 1);
}

#[test]
fn nothing_is_allocated_once_it_was_as_full() {
    let mut queue = queue(50_000, 50_000);
    for packet in 0..10_000 {
        push(&mut queue, packet % 40, 1_000, packet);
        if packet % 3 == 0 {
            queue.pop();
        }
    }
    assert!(queue.nodes.len() <= 51 && queue.flows.len() == 40, "{} places", queue.nodes.len());
}

proptest! {
    #[test]
    fn nothing_is_lost_without_being_told_and_nothing_overtakes_its_flow(
        steps in prop::collection::vec((0u32..5, 0usize..3_000, 0u8..8), 1..400)
    ) {
        let limits = EntryLimits { bytes: 20_000, flow_bytes: 9_000, packets: 12, quantum: 500 };
        let mut queue = EntryQueue::new(limits);
        // Packets of each flow, oldest first, with their bytes.
        let mut model: BTreeMap<u32, Vec<(u32, usize)>> = BTreeMap::new();
        for (packet, (flow, bytes, what)) in (0..).zip(steps) {
            match what {
                0 | 1 => {
                    let popped = queue.pop();
                    prop_assert_eq!(popped.is_none(), model.values().all(Vec::is_empty));
                    if let Some((flow, packet)) = popped {
                        prop_assert_eq!(model.get_mut(&flow).map(|queue| queue.remove(0).0), Some(packet));
                    }
                }
                2 if packet % 9 == 0 => {
                    queue.clear(flow);
                    model.remove(&flow);
                }
                3 if packet % 5 == 0 => {
                    let oldest = model.get_mut(&flow).filter(|queue| !queue.is_empty()).map(|queue| queue.remove(0).0);
                    prop_assert_eq!(queue.withdraw(flow), oldest);
                }
                _ => {
                    model.entry(flow).or_default().push((packet, bytes));
                    let most = |model: &BTreeMap<u32, Vec<(u32, usize)>>| -> usize {
                        model.values().map(|queue| queue.iter().map(|(_, bytes)| bytes).sum()).max().unwrap_or(0)
                    };
                    let mut dropped = vec![];
                    queue.push(flow, bytes, packet, |flow, packet| dropped.push((flow, packet)));
                    for (victim, packet) in dropped {
                        let had: usize = model[&victim].iter().map(|(_, bytes)| bytes).sum();
                        prop_assert!(had * 2 >= most(&model) || had > limits.flow_bytes, "{had} of {}", most(&model));
                        prop_assert_eq!(model.get_mut(&victim).map(|queue| queue.remove(0).0), Some(packet));
                    }
                }
            }
            let bytes: usize = model.values().flatten().map(|(_, bytes)| bytes).sum();
            prop_assert_eq!((queue.bytes(), queue.len()), (bytes, model.values().map(Vec::len).sum()));
            prop_assert!(queue.bytes() <= limits.bytes && queue.len() <= limits.packets);
            let counters = queue.counters();
            let gone = counters.left + counters.dropped + counters.dropped_of_flow + counters.cleared;
            prop_assert_eq!(counters.came, gone + queue.len() as u64);
        }
    }
}
