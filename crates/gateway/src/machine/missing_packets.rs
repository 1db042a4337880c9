//! Finds missing packets by the maps in packets that arrived (HIR, 7.3). The memory for all flows
//! of a tunnel together is bounded.

use crate::encap::Label;
use crate::loss::BatchHoles;
use alloc::collections::BTreeMap;

/// Number of later packets that report a packet as missing before it is lost, because paths
/// reorder. It is `kPacketThreshold` (RFC 9002, section 6.1.1).
const REORDER_PACKETS: u32 = 3;
/// Packets remembered of all flows of a tunnel; beyond it, all is forgotten, which delays a finding
/// and makes none that is wrong.
const MAX_REMEMBERED: usize = 1 << 18;

#[derive(Debug)]
struct FlowHoles {
    holes: BatchHoles,
    /// The sequence number of the first packet that arrived. Earlier ones are unknown.
    since: u32,
    latest: u32,
}

/// The flows whose packets came by a tunnel.
#[derive(Debug, Default)]
pub(super) struct Holes {
    flows: BTreeMap<Label, FlowHoles>,
    remembered: usize,
}

impl Holes {
    /// A packet came. Ranges of sequences that are lost by that are given to `lost`: first, one
    /// past the last.
    pub fn on_arrived(&mut self, label: Label, sequence: u32, map: u32, mut lost: impl FnMut(u32, u32)) {
        if self.remembered > MAX_REMEMBERED {
            *self = Self::default();
        }
        let new = || FlowHoles { holes: BatchHoles::new(REORDER_PACKETS), since: sequence, latest: sequence };
        let flow = self.flows.entry(label).or_insert_with(new);
        if sequence.abs_diff(flow.latest) > 1 << 31 {
            *flow = new(); // the numbers have gone round
        }
        flow.latest = flow.latest.max(sequence);
        // Bits beyond the first that came say nothing.
        let known = sequence.saturating_sub(flow.since);
        let map = if known >= 32 { map } else { map & ((1 << known) - 1) };
        let before = flow.holes.len();
        let mut range: Option<(u32, u32)> = None;
        flow.holes.on_arrived(u64::from(sequence), map, |missing| {
            let missing = missing as u32;
            match &mut range {
                Some((_, end)) if *end == missing => *end += 1,
                _ => {
                    if let Some((first, end)) = range.replace((missing, missing.wrapping_add(1))) {
                        lost(first, end);
                    }
                }
            }
        });
        self.remembered = self.remembered + flow.holes.len() - before;
        if let Some((first, end)) = range {
            lost(first, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn what_three_later_packets_of_the_path_name_is_lost_and_nothing_before_the_first() {
        let (mut holes, mut lost) = (Holes::default(), Vec::new());
        // 10 came first; 11 to 13 never do; all took one path.
        for sequence in [10, 14, 15, 16, 17] {
            holes.on_arrived(Label::new(1), sequence, u32::MAX, |first, end| {
                lost.push((sequence, first, end))
            });
        }
        assert_eq!(lost, [(16, 11, 14)]);
        // Another flow is another matter.
        holes.on_arrived(Label::new(2), 500, u32::MAX, |_, _| panic!("nothing is known of it"));
    }

    #[test]
    fn memory_is_bounded() {
        let mut holes = Holes::default();
        for number in 0..MAX_REMEMBERED as u32 * 3 {
            holes.on_arrived(Label::new(number % 1_000), number / 1_000, 1, |_, _| {});
            assert!(holes.remembered <= MAX_REMEMBERED + 40);
        }
    }
}
