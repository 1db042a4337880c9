//! Harp's rule: every path has passed what is missing.

use super::rule::{LossRule, SentPacket};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use byway_wire::PathId;

#[derive(Clone, Copy, Debug, Default)]
struct PassedPath {
    /// One more than the highest byte that arrived on the path: `last_byte_rcvd` of the paper.
    last: u64,
    outstanding: usize,
}

/// Harp's rule: "when the last_byte_rcvd_i on each path exceeds rcvnext, the exit gateway detects a
/// possible packet loss".
#[derive(Debug, Default)]
pub struct AllPassed {
    outstanding: BTreeMap<u64, SentPacket>,
    paths: BTreeMap<PathId, PassedPath>,
    /// Ranges that arrived beyond the first missing one, and wait in the reorder queue.
    beyond: BTreeMap<u64, u64>,
}

impl AllPassed {
    fn settle(&mut self, packet: &SentPacket) -> bool {
        let known = self.outstanding.remove(&packet.start).is_some();
        if let Some(path) = self.paths.get_mut(&packet.path).filter(|_| known) {
            path.outstanding -= 1;
        }
        known
    }

    fn find(&mut self, lost: &mut Vec<SentPacket>) {
        while let Some((&missing, _)) = self.outstanding.first_key_value() {
            // What arrived before the first that is missing waits no more.
            while self.beyond.first_key_value().is_some_and(|(start, _)| *start < missing) {
                self.beyond.pop_first();
            }
            let Some((&head, _)) = self.beyond.first_key_value() else { return };
            if self.paths.values().any(|path| path.outstanding > 0 && path.last <= missing) {
                return;
            }
            // "The range of missing bytes [...] determined by rcvnext and the sequence number of
            // the packet at the head".
            let range: Vec<SentPacket> =
                self.outstanding.range(missing..head).map(|(_, packet)| *packet).collect();
            for packet in range {
                self.settle(&packet);
                lost.push(packet);
            }
        }
        self.beyond.clear();
    }
}

impl LossRule for AllPassed {
    fn on_sent(&mut self, packet: SentPacket) {
        self.paths.entry(packet.path).or_default().outstanding += 1;
        self.outstanding.insert(packet.start, packet);
    }

    fn on_arrived(&mut self, packet: SentPacket, lost: &mut Vec<SentPacket>) {
        let known = self.settle(&packet);
        if let Some(path) = self.paths.get_mut(&packet.path) {
            path.last = path.last.max(packet.end);
        }
        if known {
            self.beyond.insert(packet.start, packet.end);
        }
        self.find(lost);
    }

    fn withdraw(&mut self, packet: SentPacket) {
        self.settle(&packet);
    }

    fn close(&mut self, path: PathId) -> Vec<SentPacket> {
        let gone: Vec<SentPacket> =
            self.outstanding.values().filter(|packet| packet.path == path).copied().collect();
        for packet in &gone {
            self.settle(packet);
        }
        self.paths.remove(&path);
        gone
    }
}
