use super::*;
use crate::checksum::ChecksumState;
use crate::testing::build;
use alloc::vec::Vec;
use etherparse::{TcpHeader, TcpOptionElement};
use proptest::prelude::*;

const OPENER: (u16, u16) = (40_000, 873);

/// A segment between the ports of `OPENER` (or back), with options only in a SYN.
fn segment(
    ports: (u16, u16),
    flags: Flags,
    sequence: u32,
    ack: u32,
    payload: &[u8],
    scale: Option<u8>,
) -> Segment {
    let mut header = TcpHeader::new(ports.0, ports.1, sequence, 1_000);
    (header.syn, header.ack) = (flags.any(Flags::SYN), flags.any(Flags::ACK));
    (header.fin, header.rst) = (flags.any(Flags::FIN), flags.any(Flags::RST));
    header.acknowledgment_number = ack;
    if flags.any(Flags::SYN) {
        let mut options = alloc::vec![TcpOptionElement::MaximumSegmentSize(1_460)];
        options.extend(scale.map(TcpOptionElement::WindowScale));
        header.set_options(&options).unwrap();
    }
    Segment::read(&build(&header, payload), ChecksumState::Full).unwrap()
}

/// Makes a segment of the opposite direction, with the addresses of `build` swapped.
fn back(
    ports: (u16, u16),
    flags: Flags,
    sequence: u32,
    ack: u32,
    payload: &[u8],
    scale: Option<u8>,
) -> Segment {
    let mut segment = segment((ports.1, ports.0), flags, sequence, ack, payload, scale);
    core::mem::swap(&mut segment.ip.source, &mut segment.ip.destination);
    segment
}

const SYN_ACK: Flags = Flags::SYN.or(Flags::ACK);
const FIN_ACK: Flags = Flags::FIN.or(Flags::ACK);

struct Bench {
    table: FlowTable<u32>,
    now: Instant,
}

impl Bench {
    fn new(limits: FlowTableLimits) -> Self {
        Self { table: FlowTable::new(limits), now: Instant::from_millis(1) }
    }

    fn see(&mut self, segment: &Segment) -> FlowVerdict {
        let seen = self.table.on_segment(self.now, segment, |_| Some(7));
        while self.table.next_gone().is_some() {}
        seen
    }

    /// Opens a flow from port `port`.
    fn open(&mut self, port: u16) -> FlowVerdict {
        let ports = (port, 873);
        self.see(&segment(ports, Flags::SYN, 100, 0, b"", Some(7)));
        self.see(&back(ports, SYN_ACK, 500, 101, b"", Some(9)));
        self.see(&segment(ports, Flags::ACK, 101, 501, b"", None))
    }

    fn phase(&self) -> FlowState {
        self.table.iter().next().unwrap().phase
    }
}

#[test]
fn from_syn_to_fin() {
    let mut bench = Bench::new(FlowTableLimits::default());
    let FlowVerdict::Carried { flow, from: FlowEnd::Opener, new: true } =
        bench.see(&segment(OPENER, Flags::SYN, u32::MAX, 0, b"", Some(7)))
    else {
        panic!("not taken")
    };
    assert_eq!(
        (bench.phase(), bench.table.get(flow).unwrap().scale(FlowEnd::Opener)),
        (FlowState::Opening, None)
    );
    let answer = bench.see(&back(OPENER, SYN_ACK, 500, 0, b"", Some(15)));
    assert_eq!(answer, FlowVerdict::Carried { flow, from: FlowEnd::Acceptor, new: false });
    assert_eq!(bench.phase(), FlowState::Opening, "nobody has shown yet to receive at the opener's address");
    bench.see(&segment(OPENER, Flags::ACK, 0, 501, b"data", None));
    let state = bench.table.get(flow).unwrap();
    assert_eq!(
        (state.phase, state.scale(FlowEnd::Opener), state.scale(FlowEnd::Acceptor)),
        (FlowState::Open, Some(7), Some(14))
    );
    assert_eq!(state.side(FlowEnd::Opener).end, 4);
    assert_eq!(state.side(FlowEnd::Opener).window, 1_000 << 7);
    bench.see(&segment(OPENER, FIN_ACK, 4, 501, b"", None));
    assert_eq!(bench.phase(), FlowState::Open, "the other side may send on for hours");
    bench.see(&back(OPENER, FIN_ACK, 501, 5, b"", None));
    assert_eq!(bench.phase(), FlowState::Closed);
    // The last acknowledgment still belongs to it; a SYN is another flow.
    assert_eq!(
        bench.see(&segment(OPENER, Flags::ACK, 5, 502, b"", None)),
        FlowVerdict::Carried { flow, from: FlowEnd::Opener, new: false }
    );
    let again = bench.see(&segment(OPENER, Flags::SYN, 9_000, 0, b"", None));
    assert!(matches!(again, FlowVerdict::Carried { flow: other, new: true, .. } if other != flow));
    assert!(bench.table.get(flow).is_none(), "a name is not used again");
}

#[test]
fn windows_are_scaled_only_if_both_offered_to() {
    let mut bench = Bench::new(FlowTableLimits::default());
    bench.see(&segment(OPENER, Flags::SYN, 1, 0, b"", Some(7)));
    bench.see(&back(OPENER, SYN_ACK, 1, 2, b"", None));
    let flow = bench.table.iter().next().unwrap();
    assert_eq!((flow.scale(FlowEnd::Opener), flow.scale(FlowEnd::Acceptor)), (Some(0), Some(0)));
}

#[test]
fn flows_seen_mid_life_pass_and_cost_nothing() {
    let mut bench = Bench::new(FlowTableLimits::default());
    for seen in [
        segment(OPENER, Flags::ACK, 5, 6, b"data", None),
        back(OPENER, SYN_ACK, 5, 6, b"", Some(7)),
        segment(OPENER, FIN_ACK, 5, 6, b"", None),
        segment(OPENER, Flags::RST, 5, 0, b"", None),
    ] {
        assert_eq!(bench.see(&seen), FlowVerdict::PassThrough(EndCause::MidLife));
    }
    let unwanted = bench.table.on_segment(bench.now, &segment(OPENER, Flags::SYN, 5, 0, b"", None), |_| None);
    assert_eq!(unwanted, FlowVerdict::PassThrough(EndCause::Unwanted));
    assert!(bench.table.is_empty());
}

#[test]
fn only_a_reset_that_its_receiver_would_believe_ends_a_flow() {
    let mut bench = Bench::new(FlowTableLimits::default());
    bench.open(OPENER.0);
    bench.see(&back(OPENER, Flags::ACK, 501, 101, b"", None));
    // The acceptor's window is 1000 << 9 from 101 on.
    for (sequence, ends) in [(100, false), (101 + (1_000 << 9) + 1, false), (5_000, true)] {
        bench.see(&segment(OPENER, Flags::RST, sequence, 0, b"", None));
        assert_eq!(bench.phase() == FlowState::Closed, ends, "{sequence}");
    }
    let mut refused = Bench::new(FlowTableLimits::default());
    refused.see(&segment(OPENER, Flags::SYN, 100, 0, b"", None));
    refused.see(&back(OPENER, Flags::RST.or(Flags::ACK), 0, 99, b"", None));
    assert_eq!(refused.phase(), FlowState::Opening);
    refused.see(&back(OPENER, Flags::RST.or(Flags::ACK), 0, 101, b"", None));
    assert_eq!(refused.phase(), FlowState::Closed);
}

#[test]
fn acknowledging_what_was_never_sent_opens_nothing() {
    let mut bench = Bench::new(FlowTableLimits::default());
    bench.see(&segment(OPENER, Flags::SYN, 100, 0, b"", None));
    bench.see(&back(OPENER, SYN_ACK, 500, 101, b"", None));
    for guess in [499, 502, 7] {
        bench.see(&segment(OPENER, Flags::ACK, 101, guess, b"", None));
        assert_eq!(bench.phase(), FlowState::Opening, "{guess}");
    }
    bench.see(&segment(OPENER, Flags::ACK, 101, 501, b"", None));
    assert_eq!(bench.phase(), FlowState::Open);
}

#[test]
fn a_flood_of_syns_pushes_out_its_own() {
    let limits = FlowTableLimits { flows: 100, opening: 20, ..FlowTableLimits::default() };
    let mut bench = Bench::new(limits);
    let opened: Vec<FlowVerdict> = (0..90).map(|port| bench.open(1_000 + port)).collect();
    for port in 0..10_000 {
        bench.now += Duration::from_millis(1);
        bench.see(&segment((20_000 + port, 873), Flags::SYN, u32::from(port), 0, b"", None));
    }
    assert_eq!(bench.table.len(), 100);
    for seen in opened {
        assert!(
            matches!(seen, FlowVerdict::Carried { flow, .. } if bench.table.get(flow).unwrap().phase == FlowState::Open)
        );
    }
    assert_eq!(bench.table.counters().pushed_out, 10_000 - 10);
    // Full of open flows: others pass, until one was idle for long.
    for port in 0..10 {
        bench.open(2_000 + port);
    }
    assert_eq!(bench.open(3_000), FlowVerdict::PassThrough(EndCause::MidLife));
    assert_eq!(
        bench.see(&segment((3_000, 873), Flags::SYN, 1, 0, b"", None)),
        FlowVerdict::PassThrough(EndCause::Full)
    );
    bench.now += limits.spare_after;
    assert!(matches!(bench.open(3_000), FlowVerdict::Carried { .. }));
    assert_eq!((bench.table.len(), bench.table.counters().made_room), (100, 1));
}

#[test]
fn each_phase_has_its_own_patience() {
    let limits = FlowTableLimits::default();
    let mut bench = Bench::new(limits);
    let began = bench.now;
    bench.open(1);
    bench.see(&segment((2, 873), Flags::SYN, 1, 0, b"", None));
    bench.open(3);
    bench.see(&segment((3, 873), Flags::RST, 101, 0, b"", None));
    for (stays, left) in [(limits.closed_for, 2), (limits.opening_for, 1), (limits.idle_for, 0)] {
        assert_eq!(bench.table.deadline(), Some(began + stays));
        bench.table.expire(began + stays - Duration::from_nanos(1));
        assert_eq!(bench.table.len(), left + 1);
        bench.table.expire(began + stays);
        assert_eq!(bench.table.len(), left);
        assert_eq!(bench.table.next_gone().map(|(_, data)| data), Some(7));
    }
    assert_eq!((bench.table.deadline(), bench.table.next_gone()), (None, None));
}

proptest! {
    #[test]
    fn whatever_comes_the_table_is_bounded_and_agrees_with_itself(
        steps in prop::collection::vec((1u16..8, any::<bool>(), 0u16..32, 0u32..6, 0u32..6, 0u64..100), 0..300)
    ) {
        let limits = FlowTableLimits { flows: 4, opening: 2, ..FlowTableLimits::default() };
        let mut bench = Bench::new(limits);
        for (port, forth, flags, sequence, ack, seconds) in steps {
            let flags = Flags(flags);
            if flags == Flags::default() || flags.any(Flags::SYN) && flags.any(Flags::FIN.or(Flags::RST)) || flags == Flags::PSH {
                continue;
            }
            let make = if forth { segment } else { back };
            let seen = bench.see(&make((port, 873), flags, sequence, ack, b"", Some(3)));
            if let FlowVerdict::Carried { flow, .. } = seen {
                prop_assert!(bench.table.get(flow).is_some());
                prop_assert!((flow.slot() as usize) < limits.flows);
            }
            let opening = bench.table.iter().filter(|flow| flow.phase == FlowState::Opening).count();
            prop_assert_eq!(opening, bench.table.opening);
            prop_assert!(opening <= limits.opening && bench.table.len() <= limits.flows);
            bench.now += Duration::from_secs(seconds);
            bench.table.expire(bench.now);
            prop_assert!(bench.table.deadline().is_none_or(|deadline| deadline > bench.now));
        }
    }
}
