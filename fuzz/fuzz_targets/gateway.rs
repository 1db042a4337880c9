//! Flows through the entry's table and queue and the exit's reorder queues, with losses, duplicates
//! and time: everything stays bounded, nothing leaves twice, and no packet is lost without being
//! counted.
#![no_main]

use byway_gateway::entry::{self, EntryQueue};
use byway_gateway::flow_table::{FlowTable, FlowTableLimits, FlowVerdict};
use byway_gateway::reorder::{ArrivedPacket, ExitLimits, FlowLimits, ReorderQueues};
use byway_gateway::{ChecksumState, Segment};
use byway_wire::{Duration, Instant};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Step {
    /// A host sends a segment.
    Segment {
        port: u8,
        back: bool,
        flags: u8,
        sequence: u8,
        ack: u8,
        bytes: u8,
    },
    /// The paths take a packet.
    Send,
    /// A packet that was sent arrives: which, and how long it may wait. It stays under way if it is
    /// duplicated.
    Arrive {
        which: u8,
        wait: u8,
        duplicate: bool,
    },
    /// A packet that was sent is lost.
    Lose {
        which: u8,
    },
    Later(u8),
}

const TABLE: FlowTableLimits = FlowTableLimits {
    flows: 6,
    opening: 3,
    opening_for: Duration::from_millis(200),
    idle_for: Duration::from_millis(900),
    spare_after: Duration::from_millis(100),
    closed_for: Duration::from_millis(50),
};
const QUEUE: entry::EntryLimits =
    entry::EntryLimits { bytes: 2_000, flow_bytes: 900, packets: 20, quantum: 100 };
const EXIT: ExitLimits = ExitLimits {
    flow: FlowLimits { bytes: 1_000, packets: 8 },
    bytes: 1_500,
    flows: 4,
    idle_for: Duration::from_millis(500),
};

/// A segment without payload bytes of its own: what the checksum would say is not asked.
fn segment(port: u8, back: bool, flags: u8, sequence: u8, ack: u8) -> Option<Segment> {
    let mut packet = vec![0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let (here, there) = ([0x10, port % 8], [0x03, 0x69]);
    if back {
        packet[12..20].rotate_left(4);
    }
    let (source, destination) = if back { (there, here) } else { (here, there) };
    let sum: u32 = packet.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let checksum = !((sum >> 16) as u16 + sum as u16);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet.extend(source.iter().chain(&destination));
    packet.extend([0, 0, 0, sequence % 8, 0, 0, 0, ack % 8, 0x50, flags & 0x3f, 1, 0, 0, 0, 0, 0]);
    Segment::read(&packet, ChecksumState::Checked).ok()
}

/// A packet under way: flow, place, bytes.
type Packet = (u32, u32, usize);

fuzz_target!(|steps: Vec<Step>| {
    let (mut table, mut queue) = (FlowTable::new(TABLE), EntryQueue::<usize>::new(QUEUE));
    let (mut exit, mut now) = (ReorderQueues::<u32, Packet>::new(EXIT), Instant::from_millis(1));
    let (mut under_way, mut places) = (Vec::<Packet>::new(), [0u32; 6]);
    let (mut arrived, mut left, mut dropped) = (0, 0, 0);
    for step in steps.iter().take(2_000) {
        match step {
            Step::Segment { port, back, flags, sequence, ack, bytes } => {
                let Some(segment) = segment(*port, *back, *flags, *sequence, *ack) else { continue };
                if let FlowVerdict::Carried { flow, .. } = table.on_segment(now, &segment, |_| Some(())) {
                    assert!(table.get(flow).is_some() && (flow.slot() as usize) < TABLE.flows);
                    let bytes = usize::from(*bytes);
                    queue.push(flow.slot(), bytes, bytes, |_, _| dropped += 1);
                }
            }
            Step::Send => {
                let shown = queue.peek().map(|(flow, bytes)| (flow, *bytes));
                let popped = queue.pop();
                assert_eq!(shown, popped);
                if let Some((flow, bytes)) = popped {
                    let place = &mut places[flow as usize];
                    under_way.push((flow, *place, bytes));
                    *place += 1;
                }
            }
            Step::Arrive { which, wait, duplicate } if !under_way.is_empty() => {
                let which = usize::from(*which) % under_way.len();
                let packet = under_way[which];
                if !duplicate {
                    under_way.swap_remove(which);
                }
                let wait = Duration::from_millis((*wait).into());
                arrived += 1;
                let (flow, sequence, bytes) = packet;
                exit.on_packet(
                    now,
                    flow,
                    ArrivedPacket { sequence, bytes, wait, packet },
                    &mut |flow, packet| {
                        assert_eq!(*flow, packet.0);
                        left += 1;
                    },
                );
            }
            Step::Lose { which } if !under_way.is_empty() => {
                under_way.swap_remove(usize::from(*which) % under_way.len());
            }
            Step::Later(millis) => now += Duration::from_millis((*millis).into()),
            _ => {}
        }
        table.expire(now);
        while let Some((flow, ())) = table.next_gone() {
            queue.clear(flow.slot());
        }
        exit.expire(now, &mut |_, _| left += 1);
        assert!(table.deadline().is_none_or(|deadline| deadline > now));
        assert!(exit.deadline().is_none_or(|deadline| deadline > now));
        assert!(table.len() <= TABLE.flows && queue.bytes() <= QUEUE.bytes && queue.len() <= QUEUE.packets);
        assert!(exit.bytes() <= EXIT.bytes && exit.flows() <= EXIT.flows);
        let counters = queue.counters();
        assert_eq!(counters.dropped + counters.dropped_of_flow, dropped);
        assert_eq!(counters.came, counters.left + dropped + counters.cleared + queue.len() as u64);
        assert_eq!(exit.stats().packets(), left);
    }
    exit.forget(now, |_| true, &mut |_, _| left += 1);
    assert_eq!(arrived, left + exit.stats().duplicates, "all that arrived has left");
});
