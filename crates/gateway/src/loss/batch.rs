//! The batch map (paper HIR, 7.3): a field in each packet that tells which of the flow's previous
//! 32 packets took the same path as this one. Bit 0 is for the previous packet, bit 1 for the one
//! before that. The paper specifies no format.

use super::rule::{LossRule, SentPacket};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use byway_wire::PathId;

/// The number of earlier packets that a map describes.
const MAP_PACKETS: u64 = 32;
/// Number of arrived packets that are remembered. A map names recent packets, and paths differ in
/// their delays.
const MAX_REMEMBERED: usize = 8_192;

/// The sending side of the batch maps, for one flow.
#[derive(Clone, Debug, Default)]
pub struct BatchMap {
    latest: BTreeMap<PathId, (u64, u32)>,
}

impl BatchMap {
    /// A batch in which nothing was sent yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { latest: BTreeMap::new() }
    }

    /// The map for packet `sequence`, which is sent on `path` now. Sequences only ever grow.
    pub fn next(&mut self, path: PathId, sequence: u64) -> u32 {
        let map = match self.latest.get(&path) {
            Some((latest, map)) => match sequence.saturating_sub(*latest) {
                step @ 1..=MAP_PACKETS => ((u64::from(*map) << step) | 1 << (step - 1)) as u32,
                _ => 0,
            },
            None => 0,
        };
        self.latest.insert(path, (sequence, map));
        map
    }

    /// Forgets a path that is no more.
    pub fn close(&mut self, path: PathId) {
        self.latest.remove(&path);
    }
}

/// The exit's side for one flow: finds the packets that maps name and that did not arrive.
#[derive(Clone, Debug)]
pub struct BatchHoles {
    later: u32,
    arrived: BTreeSet<u64>,
    /// The number of reports about each missing packet. Lost packets stay, so that each is reported
    /// once.
    missing: BTreeMap<u64, u32>,
}

impl BatchHoles {
    /// The receiving side. A packet is lost once `later` packets have reported it, at least one.
    #[must_use]
    pub const fn new(later: u32) -> Self {
        let later = if later == 0 { 1 } else { later };
        Self { later, arrived: BTreeSet::new(), missing: BTreeMap::new() }
    }

    /// Packets that are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.arrived.len() + self.missing.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Notes that packet `sequence` has arrived with its map. Calls `lost` with the sequence
    /// numbers, all of its path, that are lost by this map.
    pub fn on_arrived(&mut self, sequence: u64, map: u32, mut lost: impl FnMut(u64)) {
        self.arrived.insert(sequence);
        self.missing.remove(&sequence);
        for place in (0..MAP_PACKETS).rev().filter(|place| map >> place & 1 == 1) {
            let Some(named) = sequence.checked_sub(1 + place) else { continue };
            if self.arrived.contains(&named) {
                continue;
            }
            let times = self.missing.entry(named).or_default();
            *times = times.saturating_add(1);
            if *times == self.later {
                lost(named);
            }
        }
        while self.arrived.len() > MAX_REMEMBERED {
            self.arrived.pop_first();
        }
        while self.missing.len() > MAX_REMEMBERED {
            self.missing.pop_first();
        }
    }
}

/// Both sides of the batch maps as one rule, for a comparison with other rules. Numbers count
/// packets.
#[derive(Debug)]
pub struct Batched {
    maps: BatchMap,
    holes: BatchHoles,
    /// Packets in flight, each with the map in its header.
    outstanding: BTreeMap<u64, (SentPacket, u32)>,
}

impl Batched {
    /// Makes the rule by which a packet is lost once `later` packets have reported it as missing.
    #[must_use]
    pub const fn new(later: u32) -> Self {
        Self { maps: BatchMap::new(), holes: BatchHoles::new(later), outstanding: BTreeMap::new() }
    }
}

impl LossRule for Batched {
    fn on_sent(&mut self, packet: SentPacket) {
        let map = self.maps.next(packet.path, packet.start);
        self.outstanding.insert(packet.start, (packet, map));
    }

    fn on_arrived(&mut self, packet: SentPacket, lost: &mut Vec<SentPacket>) {
        let Some((_, map)) = self.outstanding.remove(&packet.start) else { return };
        let outstanding = &mut self.outstanding;
        self.holes.on_arrived(packet.start, map, |sequence| {
            lost.extend(outstanding.remove(&sequence).map(|(packet, _)| packet));
        });
    }

    fn withdraw(&mut self, packet: SentPacket) {
        self.outstanding.remove(&packet.start);
    }

    fn close(&mut self, path: PathId) -> Vec<SentPacket> {
        self.maps.close(path);
        let those = self.outstanding.values().filter(|(packet, _)| packet.path == path);
        let gone: Vec<SentPacket> = those.map(|(packet, _)| *packet).collect();
        for packet in &gone {
            self.outstanding.remove(&packet.start);
        }
        gone
    }
}
