//! The announcements of other gateways, and the search for the one that serves a host.

use super::part::{AnnouncementPart, Served};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use byway_wire::Prefix;
use core::net::IpAddr;

/// The result of a part of an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartResult {
    /// More parts are to come.
    Waiting,
    /// The part was known.
    Known,
    /// The announcement is whole and counts from now on.
    Complete {
        /// Number of entries that were left out, because their sender may not announce them.
        refused: usize,
    },
}

#[derive(Clone, Debug, Default)]
struct PartialAnnouncement {
    serial: u32,
    parts: BTreeMap<u8, Vec<Served>>,
}

/// The hosts that each gateway serves. `P` names a gateway. If two serve a host equally well, the
/// smaller name is chosen.
#[derive(Clone, Debug)]
pub struct Directory<P> {
    by_prefix: BTreeMap<Prefix, BTreeMap<P, Vec<Served>>>,
    lengths: BTreeMap<u8, usize>,
    serials: BTreeMap<P, u32>,
    pending: BTreeMap<P, PartialAnnouncement>,
}

impl<P> Default for Directory<P> {
    fn default() -> Self {
        Self {
            by_prefix: BTreeMap::new(),
            lengths: BTreeMap::new(),
            serials: BTreeMap::new(),
            pending: BTreeMap::new(),
        }
    }
}

impl<P: Ord + Copy> Directory<P> {
    /// Makes a directory without entries.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in a part of an announcement of `peer`, which may speak for the hosts in `allowed`
    /// only.
    pub fn on_part(&mut self, peer: P, part: AnnouncementPart, allowed: &[Prefix]) -> PartResult {
        if self.serials.get(&peer).is_some_and(|serial| !newer(part.serial, *serial)) {
            return PartResult::Known;
        }
        let pending = self.pending.entry(peer).or_default();
        if pending.parts.is_empty() || newer(part.serial, pending.serial) {
            *pending = PartialAnnouncement { serial: part.serial, parts: BTreeMap::new() };
        }
        if part.serial != pending.serial {
            return PartResult::Known;
        }
        let known = pending.parts.insert(part.part, part.entries).is_some();
        if pending.parts.len() < usize::from(part.parts) {
            return if known { PartResult::Known } else { PartResult::Waiting };
        }
        let entries: Vec<Served> = core::mem::take(&mut pending.parts).into_values().flatten().collect();
        self.pending.remove(&peer);
        let told = entries.len();
        let may = |entry: &Served| allowed.iter().any(|prefix| prefix.covers(&entry.hosts));
        let entries: Vec<Served> = entries.into_iter().filter(may).collect();
        let refused = told - entries.len();
        self.set(peer, entries);
        self.serials.insert(peer, part.serial);
        PartResult::Complete { refused }
    }

    /// Replaces the hosts that `peer` serves, as a configuration would.
    pub fn set(&mut self, peer: P, entries: Vec<Served>) {
        self.forget_entries(peer);
        for entry in entries {
            let peers = self.by_prefix.entry(entry.hosts).or_default();
            if peers.is_empty() {
                *self.lengths.entry(entry.hosts.length()).or_default() += 1;
            }
            peers.entry(peer).or_default().push(entry);
        }
    }

    /// Forgets all about `peer`: its session ended. Its next announcement counts whatever its
    /// serial.
    pub fn forget(&mut self, peer: P) {
        self.forget_entries(peer);
        self.serials.remove(&peer);
        self.pending.remove(&peer);
    }

    /// The gateway that serves `port` of `host`: the one with the longest prefix; among equals one
    /// that names ports before one that serves all.
    #[must_use]
    pub fn find(&self, host: IpAddr, port: u16) -> Option<P> {
        for length in self.lengths.keys().rev() {
            let prefix = Prefix::of(host, *length);
            // A length beyond an IPv4 address is cut to the whole of it, which has its own turn.
            let Some(peers) = self.by_prefix.get(&prefix).filter(|_| prefix.length() == *length) else {
                continue;
            };
            let served = |named: bool| {
                let serves = |entry: &Served| entry.ports.is_empty() != named && entry.has_port(port);
                peers.iter().find(|(_, entries)| entries.iter().any(serves)).map(|(peer, _)| *peer)
            };
            if let Some(peer) = served(true).or_else(|| served(false)) {
                return Some(peer);
            }
        }
        None
    }

    /// Returns the hosts that `peer` serves.
    pub fn served_by(&self, peer: P) -> impl Iterator<Item = &Served> {
        self.by_prefix.values().filter_map(move |peers| peers.get(&peer)).flatten()
    }

    fn forget_entries(&mut self, peer: P) {
        let lengths = &mut self.lengths;
        self.by_prefix.retain(|prefix, peers| {
            let had = peers.remove(&peer).is_some();
            if had
                && peers.is_empty()
                && let Some(count) = lengths.get_mut(&prefix.length())
            {
                *count -= 1;
            }
            !peers.is_empty()
        });
        lengths.retain(|_, count| *count > 0);
    }
}

/// Whether serial `a` is after `b`, in the circle of 2^32 (RFC 1982).
const fn newer(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}
