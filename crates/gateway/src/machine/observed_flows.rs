//! Flows that would be carried, where the gateway only observes.

use super::rule_counters::{FlowStatus, RuleCounts};
use crate::key::FlowKey;
use crate::linked_lists::Lists;
use crate::rules::FlowOrigin;
use crate::tcp_header::{Flags, before};
use crate::tcp_segment::Segment;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// A flow that would be carried.
#[derive(Clone, Copy, Debug)]
struct ObservedFlow {
    flow: FlowStatus,
    /// The sequence number after the last byte from this site's host. `acked`: the last
    /// acknowledgment of that host.
    end: Option<u32>,
    acked: Option<u32>,
}

/// The flows that the gateway would carry. A full table forgets the longest idle flow, but keeps
/// its counts in the sums.
#[derive(Debug)]
pub(super) struct ObservedFlows {
    most: usize,
    by_key: BTreeMap<FlowKey, u32>,
    slots: Vec<ObservedFlow>,
    ages: Lists<1>,
}

impl ObservedFlows {
    pub const fn new(most: usize) -> Self {
        Self { most, by_key: BTreeMap::new(), slots: Vec::new(), ages: Lists::new() }
    }

    /// Counts a segment of a host of this site. `want`: the rule and the peer that would carry a
    /// new flow.
    pub fn on_segment(
        &mut self,
        segment: &Segment,
        want: impl FnOnce(&FlowKey, FlowOrigin) -> Option<(Option<usize>, usize)>,
        tallies: &mut RuleCounts,
    ) {
        let (flags, key) = (segment.tcp.flags, segment.key());
        let origin = if flags.any(Flags::ACK) { FlowOrigin::There } else { FlowOrigin::Here };
        let known = self.by_key.get(&key).or_else(|| self.by_key.get(&key.reversed())).copied();
        let index = match known {
            Some(index) => index,
            None if flags.any(Flags::SYN) => {
                // Of a flow that was opened elsewhere the answer is the first that comes by here.
                let opened = if origin == FlowOrigin::There { key.reversed() } else { key };
                let Some((rule, peer)) = want(&opened, origin) else { return };
                tallies.on_flow(rule);
                self.insert(FlowStatus { key: opened, rule, peer, sent: 0, received: 0 })
            }
            None => return,
        };
        self.ages.put(index, 0);
        let watched = &mut self.slots[index as usize];
        let (sent, received) = watched.on_segment(segment);
        tallies.on_bytes(watched.flow.rule, sent + received);
    }

    /// Returns all observed flows with their counts.
    pub fn flows(&self) -> impl Iterator<Item = FlowStatus> + '_ {
        self.slots.iter().map(|watched| watched.flow)
    }

    /// Applies `moved` to each flow's rule, after the order of the rules changed.
    pub fn replace(&mut self, moved: impl Fn(&mut Option<usize>)) {
        self.slots.iter_mut().for_each(|watched| moved(&mut watched.flow.rule));
    }

    fn insert(&mut self, flow: FlowStatus) -> u32 {
        let watched = ObservedFlow { flow, end: None, acked: None };
        let oldest = self.ages.front(0).filter(|_| self.slots.len() >= self.most.max(1));
        let index = oldest.unwrap_or(self.slots.len() as u32);
        match self.slots.get_mut(index as usize) {
            Some(slot) => {
                self.by_key.remove(&slot.flow.key);
                *slot = watched;
            }
            None => self.slots.push(watched),
        }
        self.by_key.insert(flow.key, index);
        index
    }
}

impl ObservedFlow {
    /// The bytes that are new by this segment of the host here: from it, and to it.
    fn on_segment(&mut self, segment: &Segment) -> (usize, usize) {
        let tcp = &segment.tcp;
        let syn = tcp.flags.any(Flags::SYN);
        if syn {
            // Whatever used these addresses and ports before.
            (self.end, self.acked) = (None, None);
        }
        // A SYN takes a number itself, which is no byte.
        let begin = tcp.sequence.wrapping_add(syn.into());
        let end = begin.wrapping_add(segment.payload_len() as u32);
        let sent = advance(self.end.get_or_insert(begin), end);
        let received = match tcp.flags.any(Flags::ACK) {
            true => advance(self.acked.get_or_insert(tcp.acknowledgment), tcp.acknowledgment),
            false => 0,
        };
        self.flow.sent += sent as u64;
        self.flow.received += received as u64;
        (sent, received)
    }
}

/// Advances a TCP sequence number to `to`, if `to` is later. Returns the number of bytes.
const fn advance(from: &mut u32, to: u32) -> usize {
    if !before(*from, to) {
        return 0;
    }
    let bytes = to.wrapping_sub(*from);
    *from = to;
    bytes as usize
}

#[cfg(test)]
mod tests {
    use super::super::rule_counters::RuleCount;
    use super::*;
    use crate::checksum::ChecksumState;
    use crate::rules::Rules;
    use crate::testing::build;
    use etherparse::TcpHeader;

    fn segment(port: u16, flags: &str, numbers: [u32; 2], payload: &[u8]) -> Segment {
        let mut header = TcpHeader::new(port, 873, numbers[0], 500);
        (header.syn, header.fin) = (flags.contains('S'), flags.contains('F'));
        (header.ack, header.acknowledgment_number) = (flags.contains('A'), numbers[1]);
        Segment::read(&build(&header, payload), ChecksumState::Full).unwrap()
    }

    fn watch(most: usize) -> (ObservedFlows, RuleCounts) {
        let rules = Rules { rules: alloc::vec![crate::rules::Rule::default(); 2] };
        (ObservedFlows::new(most), RuleCounts::new(&rules))
    }

    #[test]
    fn what_a_flow_would_be_is_its_bytes_in_both_directions() {
        let (mut watch, mut tallies) = watch(10);
        let mut see = |flags: &str, numbers, payload: &[u8]| {
            watch.on_segment(&segment(7, flags, numbers, payload), |_, _| Some((Some(1), 0)), &mut tallies);
            (watch.slots[0].flow.sent, watch.slots[0].flow.received)
        };
        let start = u32::MAX - 5;
        assert_eq!(see("S", [start, 0], b""), (0, 0));
        assert_eq!(see("A", [start + 1, 1_000], b""), (0, 0));
        assert_eq!(see("A", [start + 1, 1_000], b"0123456789"), (10, 0));
        assert_eq!(see("A", [start + 1, 1_000], b"0123456789"), (10, 0), "once more");
        assert_eq!(see("A", [5, 5_000], b"ab"), (12, 4_000));
        assert_eq!(see("A", [5, 4_000], b"ab"), (12, 4_000), "an old one");
        assert_eq!(see("FA", [7, 5_000], b""), (12, 4_000));
        assert_eq!(see("S", [90_000, 0], b""), (12, 4_000), "the same ports again");
        assert_eq!(see("A", [90_001, 3], b"abc"), (15, 4_000));
        assert_eq!(tallies.all().0, [RuleCount::default(), RuleCount { flows: 1, bytes: 4_015 }]);
    }

    #[test]
    fn a_flow_from_elsewhere_is_known_by_its_answer() {
        let (mut watch, mut tallies) = watch(10);
        let answer = segment(7, "SA", [50, 100], b"");
        watch.on_segment(
            &answer,
            |key, origin| {
                assert_eq!((*key, origin), (answer.key().reversed(), FlowOrigin::There));
                Some((Some(0), 3))
            },
            &mut tallies,
        );
        watch.on_segment(&segment(7, "A", [51, 600], b"abc"), |_, _| unreachable!(), &mut tallies);
        let flow = watch.slots[0].flow;
        assert_eq!((flow.key, flow.peer, flow.sent, flow.received), (answer.key().reversed(), 3, 3, 500));
        // Under way, or not wanted: of no interest.
        watch.on_segment(&segment(8, "A", [51, 600], b"abc"), |_, _| unreachable!(), &mut tallies);
        watch.on_segment(&segment(9, "S", [1, 0], b""), |_, _| None, &mut tallies);
        assert_eq!((watch.slots.len(), tallies.all().0[0]), (1, RuleCount { flows: 1, bytes: 503 }));
    }

    #[test]
    fn a_flood_pushes_out_what_is_idle() {
        let (mut watch, mut tallies) = watch(10);
        let mut see = |port, flags: &str, payload: &[u8]| {
            watch.on_segment(&segment(port, flags, [1, 1], payload), |_, _| Some((Some(0), 0)), &mut tallies);
            watch.slots.len()
        };
        see(7, "S", b"");
        for port in 1_000..2_000 {
            see(7, "A", b"busy");
            assert!(see(port, "S", b"") <= 10);
        }
        assert_eq!(watch.by_key.len(), 10);
        let busy = watch.slots.iter().find(|watched| watched.flow.key.source_port == 7);
        assert_eq!(busy.unwrap().flow.sent, 3, "its SYN's number was 1, too");
        assert_eq!(tallies.all().0[0].flows, 1_001);
    }
}
