//! The rule by numbers of a path: enough later packets have arrived.

use super::rule::{LossRule, SentPacket};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use byway_wire::PathId;

/// The rule by which a packet is lost once `later` later packets of its path have arrived.
#[derive(Debug)]
pub struct PathNumbers {
    later: u64,
    outstanding: BTreeMap<(PathId, u64), SentPacket>,
}

impl PathNumbers {
    /// The rule for `later` packets, at least one.
    #[must_use]
    pub fn new(later: u32) -> Self {
        Self { later: u64::from(later.max(1)), outstanding: BTreeMap::new() }
    }
}

impl LossRule for PathNumbers {
    fn on_sent(&mut self, packet: SentPacket) {
        self.outstanding.insert((packet.path, packet.number), packet);
    }

    fn on_arrived(&mut self, packet: SentPacket, lost: &mut Vec<SentPacket>) {
        self.outstanding.remove(&(packet.path, packet.number));
        let Some(passed) = packet.number.checked_sub(self.later) else { return };
        let range = (packet.path, 0)..=(packet.path, passed);
        while let Some((&key, _)) = self.outstanding.range(range.clone()).next() {
            lost.extend(self.outstanding.remove(&key));
        }
    }

    fn withdraw(&mut self, packet: SentPacket) {
        self.outstanding.remove(&(packet.path, packet.number));
    }

    fn close(&mut self, path: PathId) -> Vec<SentPacket> {
        let mut gone = Vec::new();
        while let Some((&key, _)) = self.outstanding.range((path, 0)..=(path, u64::MAX)).next() {
            gone.extend(self.outstanding.remove(&key));
        }
        gone
    }
}
