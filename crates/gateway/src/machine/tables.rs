//! Tables that reach gateways beyond direct peers: what a peer announces is passed on to the others, with its key and its address.
//!
//! - It holds only for a gateway that the file names, and for hosts for which the file lets it speak. Whoever passes it on has it in
//!   its own file, so memory follows files. With the address two gateways that know each other's key meet, though no file says where.
//! - It is passed on when it comes, and never by a timer. A part goes on once in [`EVERY`], and over [`MOST_HOPS`] gateways, so loops end.
//!   What is not heard of again is forgotten after [`HOLDS`].
//! - An origin's own word counts more: what others say of it is not looked at while there is a session with it.

use super::links::Links;
use super::places::PeerIdx;
use super::status::Counters;
use crate::encap::Message;
use crate::serves::{Given, Part};
use crate::table::{MOST_ADDRESSES, MOST_HOPS, Table};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use byway_wire::{Duration, Instant, Writer};
use core::net::SocketAddr;

/// A part is passed on no more often than this.
const EVERY: Duration = Duration::from_secs(2);
/// What others say of an origin holds for so long. They say it again every minute.
const HOLDS: Duration = Duration::from_secs(150);
/// Datagrams that wait for the paths to a peer, beyond which nothing is passed on to it.
const MOST_WAITING: usize = 512;

/// What was passed on.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// Until when holds what others said of an origin.
    heard: BTreeMap<PeerIdx, Instant>,
    /// The serial of a part, and when it was passed on.
    passed: BTreeMap<(PeerIdx, u8), (u32, Instant)>,
    counters: Counters,
}

/// Something to be passed on.
struct Passing<'a> {
    origin: PeerIdx,
    from: PeerIdx,
    hops: u8,
    addresses: Vec<SocketAddr>,
    part: &'a [u8],
    is: &'a Part,
}

impl Tables {
    /// What is counted here.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// When something is to be forgotten.
    pub fn deadline(&self) -> Option<Instant> {
        self.heard.values().copied().min()
    }

    /// An origin itself says whom it serves. Whether others had told of it until now.
    pub fn on_own_word(&mut self, origin: PeerIdx) -> bool {
        self.heard.remove(&origin).is_some()
    }

    /// Whether what is known of an origin is what others say.
    pub fn has_heard(&self, origin: PeerIdx) -> bool {
        self.heard.contains_key(&origin)
    }

    /// Whether a part may be passed on now.
    fn may_pass(&mut self, now: Instant, passing: &Passing<'_>) -> bool {
        let place = (passing.origin, passing.is.part);
        let known = self.passed.get(&place).filter(|(serial, _)| *serial == passing.is.serial);
        if passing.hops > MOST_HOPS || known.is_some_and(|(_, at)| now.since(*at) < EVERY) {
            return false;
        }
        self.passed.insert(place, (passing.is.serial, now));
        true
    }
}

/// A peer announced a part of what it serves: the others hear of it.
pub(super) fn on_part(links: &mut Links, now: Instant, from: PeerIdx, part: &[u8], is: &Part) {
    let peer = &links.peers[from];
    let known = links.addresses_of(from).into_iter().chain(peer.config.addresses.iter().copied());
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in known {
        if !addresses.iter().any(|other| other.is_ipv4() == address.is_ipv4()) {
            addresses.push(address);
        }
    }
    debug_assert!(addresses.len() <= MOST_ADDRESSES, "one of each version of IP");
    pass(links, now, Passing { origin: from, from, hops: 1, addresses, part, is });
}

/// A peer passed on what another announced. Whether it said something.
pub(super) fn on_table(links: &mut Links, now: Instant, from: PeerIdx, bytes: &[u8]) -> bool {
    let Ok(table) = Table::read(bytes) else { return false };
    let Ok(part) = Part::read(table.part) else { return false };
    if table.origin == links.endpoint.public_key() {
        return true;
    }
    let Some(origin) = links.peer_of(table.origin) else {
        links.tables.counters.unknown_origins += 1;
        return true;
    };
    let peer = &mut links.peers[origin];
    if origin == from || links.tunnels[peer.site].session().is_some() {
        return true;
    }
    peer.learn(now, &table.addresses, links.tunnels[peer.site].dialling.is_some());
    let given = links.directory.on_part(origin, part.clone(), &links.peers[origin].config.allowed);
    if let Given::Complete { refused } = given {
        links.peers[origin].refused = refused;
    }
    links.tables.heard.insert(origin, now + HOLDS);
    let Table { hops, addresses, part: bytes, .. } = table;
    pass(links, now, Passing { origin, from, hops: hops + 1, addresses, part: bytes, is: &part });
    links.note_due();
    true
}

/// Forgets what was not heard of again.
pub(super) fn tend(links: &mut Links, now: Instant) {
    let over = links.tables.heard.iter().filter(|(_, until)| **until <= now);
    let over: Vec<PeerIdx> = over.map(|(origin, _)| *origin).collect();
    for origin in over {
        links.tables.heard.remove(&origin);
        links.directory.forget(origin);
        links.peers[origin].unlearn();
    }
}

fn pass(links: &mut Links, now: Instant, passing: Passing<'_>) {
    if !links.introduces() || !links.tables.may_pass(now, &passing) {
        return;
    }
    let Passing { origin, from, hops, addresses, part, .. } = passing;
    let table = Table { hops, origin: links.peers[origin].config.key, addresses, part }.to_bytes();
    let mut datagram = alloc::vec![0; table.len() + 1];
    Message::Table { table: &table }.write(&mut Writer::new(&mut datagram));
    for index in links.peers.numbers().filter(|index| *index != origin && *index != from) {
        let site = links.peers[index].site;
        let tunnel = &mut links.tunnels[site];
        if tunnel.session().is_some() && tunnel.returned.len() < MOST_WAITING {
            tunnel.returned.push_back(datagram.clone());
            links.tables.counters.passed_on += 1;
            links.note_waiting(site);
        }
    }
}
