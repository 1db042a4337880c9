//! Three rules that tell which packets were lost, behind one trait.
//!
//! | rule | a packet is lost when | who says so |
//! |---|---|---|
//! | [`AllPassed`] | on each path with data outstanding something behind it has arrived | Harp, III.D |
//! | [`Batched`] | a packet arrives whose map names it as an earlier one of the same path | HIR, 7.3 |
//! | [`PathNumbers`] | enough later packets of its path have arrived | mPath, RFC 9002 |
//!
//! Sequences are the gateway's own, so each is sent once: what is sent again is another packet. A rule is told what is sent and
//! what has arrived; the entry knows both, the latter by the acknowledgments of the paths. Harp's exit knows only the arrivals and
//! would wait for ever for a path on which nothing is under way; here only paths count that have data outstanding.

mod batch;
mod found;

pub use batch::{BatchHoles, BatchMap, Batched};
pub use found::Found;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use byway_wire::PathId;
use core::fmt;

/// A packet as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The path it took.
    pub path: PathId,
    /// Its number on that path.
    pub number: u64,
    /// The first of its bytes, or its place if packets are counted.
    pub start: u64,
    /// One past the last.
    pub end: u64,
}

/// What a rule knows of packets, and what it makes of it.
pub trait LossRule: fmt::Debug + Send {
    /// A packet is sent. Starts only ever grow, and so do the numbers of a path.
    fn on_sent(&mut self, packet: Packet);

    /// A packet has arrived. What is lost by that is added to `lost`, each packet once. A packet that was held for lost and arrives is
    /// taken in silence.
    fn on_arrived(&mut self, packet: Packet, lost: &mut Vec<Packet>);

    /// A packet was not sent after all: its path gave it back.
    fn withdraw(&mut self, packet: Packet);

    /// All that is under way on a path is taken for lost and returned: the path is no more, or its timeout has come. It may be used
    /// again.
    fn close(&mut self, path: PathId) -> Vec<Packet>;
}

/// The rules by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// [`AllPassed`].
    AllPassed,
    /// [`Batched`].
    Batched,
    /// [`PathNumbers`].
    #[default]
    PathNumbers,
}

impl Rule {
    /// All, by the names that people write.
    pub const NAMES: [(&str, Self); 3] =
        [("all-passed", Self::AllPassed), ("batched", Self::Batched), ("path-numbers", Self::PathNumbers)];

    /// The rule of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, rule)| *rule)
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllPassed => "all-passed",
            Self::Batched => "batched",
            Self::PathNumbers => "path-numbers",
        }
    }

    /// The rule, where `later` packets of a path make an earlier one lost: 1 if paths keep the order, 3 if they may not. Harp's own
    /// has no such number.
    #[must_use]
    pub fn make(self, later: u32) -> Box<dyn LossRule> {
        match self {
            Self::AllPassed => Box::new(AllPassed::default()),
            Self::Batched => Box::new(Batched::new(later)),
            Self::PathNumbers => Box::new(PathNumbers::new(later)),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    /// One past the highest byte that arrived: `last_byte_rcvd`.
    last: u64,
    outstanding: usize,
}

/// Harp's rule: "when the last_byte_rcvd_i on each path exceeds rcvnext, the exit gateway detects a possible packet loss".
#[derive(Debug, Default)]
pub struct AllPassed {
    outstanding: BTreeMap<u64, Packet>,
    paths: BTreeMap<PathId, Passed>,
    /// Arrivals beyond the first that is missing: what waits in the reorder queue.
    beyond: BTreeMap<u64, u64>,
}

impl AllPassed {
    fn settle(&mut self, packet: &Packet) -> bool {
        let known = self.outstanding.remove(&packet.start).is_some();
        if let Some(path) = self.paths.get_mut(&packet.path).filter(|_| known) {
            path.outstanding -= 1;
        }
        known
    }

    fn find(&mut self, lost: &mut Vec<Packet>) {
        while let Some((&missing, _)) = self.outstanding.first_key_value() {
            // What arrived before the first that is missing waits no more.
            while self.beyond.first_key_value().is_some_and(|(start, _)| *start < missing) {
                self.beyond.pop_first();
            }
            let Some((&head, _)) = self.beyond.first_key_value() else { return };
            if self.paths.values().any(|path| path.outstanding > 0 && path.last <= missing) {
                return;
            }
            // "The range of missing bytes [...] determined by rcvnext and the sequence number of the packet at the head".
            let range: Vec<Packet> =
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
    fn on_sent(&mut self, packet: Packet) {
        self.paths.entry(packet.path).or_default().outstanding += 1;
        self.outstanding.insert(packet.start, packet);
    }

    fn on_arrived(&mut self, packet: Packet, lost: &mut Vec<Packet>) {
        let known = self.settle(&packet);
        if let Some(path) = self.paths.get_mut(&packet.path) {
            path.last = path.last.max(packet.end);
        }
        if known {
            self.beyond.insert(packet.start, packet.end);
        }
        self.find(lost);
    }

    fn withdraw(&mut self, packet: Packet) {
        self.settle(&packet);
    }

    fn close(&mut self, path: PathId) -> Vec<Packet> {
        let gone: Vec<Packet> =
            self.outstanding.values().filter(|packet| packet.path == path).copied().collect();
        for packet in &gone {
            self.settle(packet);
        }
        self.paths.remove(&path);
        gone
    }
}

/// A packet is lost once so many later ones of its path have arrived.
#[derive(Debug)]
pub struct PathNumbers {
    later: u64,
    outstanding: BTreeMap<(PathId, u64), Packet>,
}

impl PathNumbers {
    /// The rule for `later` packets, at least one.
    #[must_use]
    pub fn new(later: u32) -> Self {
        Self { later: u64::from(later.max(1)), outstanding: BTreeMap::new() }
    }
}

impl LossRule for PathNumbers {
    fn on_sent(&mut self, packet: Packet) {
        self.outstanding.insert((packet.path, packet.number), packet);
    }

    fn on_arrived(&mut self, packet: Packet, lost: &mut Vec<Packet>) {
        self.outstanding.remove(&(packet.path, packet.number));
        let Some(passed) = packet.number.checked_sub(self.later) else { return };
        let range = (packet.path, 0)..=(packet.path, passed);
        while let Some((&key, _)) = self.outstanding.range(range.clone()).next() {
            lost.extend(self.outstanding.remove(&key));
        }
    }

    fn withdraw(&mut self, packet: Packet) {
        self.outstanding.remove(&(packet.path, packet.number));
    }

    fn close(&mut self, path: PathId) -> Vec<Packet> {
        let mut gone = Vec::new();
        while let Some((&key, _)) = self.outstanding.range((path, 0)..=(path, u64::MAX)).next() {
            gone.extend(self.outstanding.remove(&key));
        }
        gone
    }
}

#[cfg(test)]
mod tests;
