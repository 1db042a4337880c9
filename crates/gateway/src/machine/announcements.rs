//! Peers' announcements: the hosts that they serve, the hosts that others serve, and the relay
//! beside them.

use super::index_vec::PeerIdx;
use super::tunnels::PeerSessions;
use crate::encap::Message;
use crate::forwarded_announcements::{ForwardedPart, MAX_ADDRESSES};
use crate::serves::{AnnouncementPart, PartResult};
use alloc::vec::Vec;
use byway_engine::handshake::PublicKey;
use byway_wire::relay::Word;
use byway_wire::{Instant, Writer};
use core::net::SocketAddr;

/// The most datagrams that wait for the paths to a peer. With more, no announcement is passed on to
/// the peer.
const MAX_WAITING: usize = 512;

/// Something to be passed on.
struct PassedAnnouncement<'a> {
    origin: PeerIdx,
    from: PeerIdx,
    hops: u8,
    addresses: Vec<SocketAddr>,
    part: &'a [u8],
    is: &'a AnnouncementPart,
}

/// Handles a part of a peer's announcement, and passes it on. Returns false if it is malformed.
pub(super) fn on_serves(links: &mut PeerSessions, now: Instant, from: PeerIdx, bytes: &[u8]) -> bool {
    let Ok(part) = AnnouncementPart::read(bytes) else { return false };
    if links.tables.on_own_word(from) {
        links.directory.forget(from);
    }
    on_part(links, now, from, bytes, &part);
    take(links, from, part);
    true
}

/// Stores the hosts that an origin announces, as far as it may announce them.
fn take(links: &mut PeerSessions, origin: PeerIdx, part: AnnouncementPart) {
    let PeerSessions { directory, peers, .. } = links;
    let peer = &mut peers[origin];
    if let PartResult::Complete { refused } = directory.on_part(origin, part, &peer.config.allowed) {
        peer.refused = refused;
    }
}

/// Passes a part of a peer's announcement on to the other peers.
fn on_part(links: &mut PeerSessions, now: Instant, from: PeerIdx, part: &[u8], is: &AnnouncementPart) {
    let peer = &links.peers[from];
    let known = links.addresses_of(from).into_iter().chain(peer.config.addresses.iter().copied());
    let mut addresses: Vec<SocketAddr> = Vec::new();
    // Where a peer is on this very host says nothing to others.
    for address in known.filter(|address| !address.ip().is_loopback()) {
        if !addresses.iter().any(|other| other.is_ipv4() == address.is_ipv4()) {
            addresses.push(address);
        }
    }
    debug_assert!(addresses.len() <= MAX_ADDRESSES, "one of each version of IP");
    pass(links, now, PassedAnnouncement { origin: from, from, hops: 1, addresses, part, is });
}

/// Handles another gateway's announcement that a peer passed on. Returns false if it is malformed.
pub(super) fn on_table(links: &mut PeerSessions, now: Instant, from: PeerIdx, bytes: &[u8]) -> bool {
    let Ok(table) = ForwardedPart::read(bytes) else { return false };
    let Ok(part) = AnnouncementPart::read(table.part) else { return false };
    if table.origin == links.endpoint.public_key() {
        return true;
    }
    let Some(origin) = links.peer_of(table.origin) else {
        links.tables.on_unknown();
        return true;
    };
    let peer = &mut links.peers[origin];
    if origin == from || links.tunnels[peer.site].session().is_some() {
        return true;
    }
    peer.learn(now, &table.addresses, links.tunnels[peer.site].dialling.is_some());
    take(links, origin, part.clone());
    links.tables.on_heard(now, origin);
    let ForwardedPart { hops, addresses, part: bytes, .. } = table;
    pass(links, now, PassedAnnouncement { origin, from, hops: hops + 1, addresses, part: bytes, is: &part });
    links.note_due();
    true
}

/// Forgets announcements that were not repeated in time.
pub(super) fn tend(links: &mut PeerSessions, now: Instant) {
    if links.tables.deadline().is_none_or(|at| at > now) {
        return;
    }
    for origin in links.tables.take_over(now) {
        links.directory.forget(origin);
        links.peers[origin].unlearn();
    }
    links.note_due();
}

fn pass(links: &mut PeerSessions, now: Instant, passing: PassedAnnouncement<'_>) {
    if !links.introduces() || !links.tables.may_pass(now, passing.origin, passing.hops, passing.is) {
        return;
    }
    let PassedAnnouncement { origin, from, hops, addresses, part, .. } = passing;
    let table = ForwardedPart { hops, origin: links.peers[origin].config.key, addresses, part }.to_bytes();
    let mut datagram = alloc::vec![0; table.len() + 1];
    Message::Table { table: &table }.write(&mut Writer::new(&mut datagram));
    for index in links.peers.numbers().filter(|index| *index != origin && *index != from) {
        let site = links.peers[index].site;
        let tunnel = &mut links.tunnels[site];
        if tunnel.session().is_some() && tunnel.returned.len() < MAX_WAITING {
            tunnel.returned.push_back(datagram.clone());
            links.tables.on_passed();
            links.note_waiting(site);
        }
    }
}

/// Sends the peer with this key the relay word for the relay beside this gateway.
pub(super) fn lend(links: &mut PeerSessions, now: Instant, key: PublicKey, word: Word) {
    let Some(index) = links.peer_of(key) else { return };
    links.detours.lend(index, word);
    links.peers[index].announce_anew(now);
    links.note_due();
}

/// Handles relays that a registry offers.
pub(super) fn on_found(links: &mut PeerSessions, now: Instant, words: Vec<Word>) {
    let fresh = links.detours.on_found(words);
    spread(links, now, &fresh, None);
}

/// Handles a peer's message about the relay beside it. Returns false if the message is malformed.
pub(super) fn on_relay(links: &mut PeerSessions, now: Instant, from: PeerIdx, word: &[u8]) -> bool {
    let Ok(word) = links.detours.on_word(now, from, word) else { return false };
    spread(links, now, word.as_slice(), Some(from));
    true
}

/// Adds relays to all sessions with peers other than `of`.
fn spread(links: &mut PeerSessions, now: Instant, words: &[Word], of: Option<PeerIdx>) {
    let PeerSessions { tunnels, endpoint, .. } = links;
    for (_, tunnel) in tunnels.iter().filter(|(_, tunnel)| Some(tunnel.peer) != of) {
        for handle in &tunnel.sessions {
            words.iter().for_each(|word| endpoint.add_relay(now, *handle, word, None));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Settings;
    use super::super::testing::{Parts, parts};
    use super::*;
    use crate::serves::announce;

    const NOW: Instant = Instant::from_millis(5);

    #[test]
    fn a_peer_serves_what_it_may_announce() {
        let Parts { mut links, peer, .. } = parts(Settings::default());
        let served = |hosts: [u8; 4]| crate::serves::Served {
            hosts: byway_wire::Prefix::of(hosts.into(), 24),
            ports: Vec::new(),
        };
        let [told] =
            announce(1, &[served([10, 0, 1, 0]), served([10, 9, 9, 0])]).unwrap().try_into().unwrap();
        assert!(on_serves(&mut links, NOW, peer, &told) && !on_serves(&mut links, NOW, peer, &told[..2]));
        assert_eq!(links.directory.find([10, 0, 1, 9].into(), 80), Some(peer));
        assert_eq!((links.directory.find([10, 9, 9, 9].into(), 80), links.peers[peer].refused), (None, 1));
    }
}
