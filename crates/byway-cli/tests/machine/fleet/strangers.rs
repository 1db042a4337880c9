//! Relays must forward only packets with a valid grant, the right to use the relay. Hosts that take
//! part in no transfer send packets to a victim. The victim consents to packets from every host, so
//! relays drop packets only because of the grant.

use super::{ALICE, EVE, Fleet, LONG, STEADY, VICTIM, address, named};
use crate::common::machine::{PATIENCE, wait_for};
use crate::greet::greet;
use byway_net::{Clock, unix_seconds};
use byway_registry::message::RelayList;
use byway_wire::relay::{GrantSecret, Hop, Word};
use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// Bytes in each packet.
const INNER: usize = 2 * LONG;
/// Packets by each relay.
const EACH: u64 = 3;
/// After so long a packet is lost.
const COMES: Duration = Duration::from_secs(30);
/// Of a quota of 512 KiB.
const ABOVE_QUOTA: usize = 700;

/// Somebody who can be reached, and consents to everything.
pub struct Victim {
    socket: UdpSocket,
}

fn socket(fleet: &Fleet, host: &str, address: &str) -> UdpSocket {
    let socket = fleet.spaces.at(host, || UdpSocket::bind((address, 0)).unwrap());
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    socket
}

impl Victim {
    pub fn new(fleet: &Fleet) -> Self {
        Self { socket: socket(fleet, "victim", VICTIM) }
    }

    /// Long packets that came to its interface.
    pub fn counted(&self, fleet: &Fleet) -> u64 {
        fleet.counted("victim", "netdev", "got").0
    }

    /// The way to it by a relay.
    fn hop(&self, word: &Word, relay: SocketAddr, clock: &Clock) -> Hop {
        let (greeted, time) = greet(&self.socket, relay, word.grant().id, clock);
        Hop::new(word, relay, greeted.address, greeted.consent, time)
    }

    /// Waits until so many have come.
    #[track_caller]
    fn awaits(&self, fleet: &Fleet, aim: u64) {
        let come = wait_for(COMES, || (self.counted(fleet) >= aim).then_some(()));
        assert!(come.is_some(), "{} of {aim} packets came", self.counted(fleet));
    }
}

fn packet(hop: &Hop, clock: &Clock) -> Vec<u8> {
    let mut packet = vec![7; hop.room() + INNER];
    assert!(hop.seal(clock.now(), &mut packet));
    packet
}

/// Words by relay, for those that stay.
fn words(list: &RelayList) -> BTreeMap<SocketAddr, &Word> {
    let all = list.relays.iter().map(|listed| (listed.word.relays()[0], &listed.word));
    let steady: Vec<SocketAddr> =
        STEADY.map(|relay| SocketAddr::new(address(relay).parse().unwrap(), 4748)).collect();
    let words: BTreeMap<_, _> = all.filter(|(relay, _)| steady.contains(relay)).collect();
    assert_eq!(words.len(), steady.len(), "{:?}", named(list));
    words
}

/// Alice sends with her grants. Eve has copies of her packets, and sends them as her own. How many
/// come.
pub fn with_grants(fleet: &Fleet, victim: &Victim, list: &RelayList) -> u64 {
    let clock = Clock::new();
    let (alice, eve) = (socket(fleet, "alice", ALICE), socket(fleet, "eve", EVE));
    let before = victim.counted(fleet);
    let mut owed = 0;
    for (relay, word) in words(list) {
        let mut hop = victim.hop(word, relay, &clock);
        hop.set_cookie(greet(&alice, relay, word.grant().id, &clock).0.cookie);
        for _ in 0..EACH {
            let packet = packet(&hop, &clock);
            eve.send_to(&packet, relay).unwrap();
            alice.send_to(&packet, relay).unwrap();
            eve.send_to(&packet, relay).unwrap();
            owed += 1;
        }
    }
    victim.awaits(fleet, before + owed);
    owed
}

/// Carol sends more than she may by one relay. How many come.
pub fn over_quota(fleet: &Fleet, victim: &Victim, list: &RelayList) -> u64 {
    let (clock, carol) = (Clock::new(), socket(fleet, "alice", ALICE));
    let words = words(list);
    let (relay, word) = words.first_key_value().unwrap();
    let hop = victim.hop(word, *relay, &clock);
    let quota = word.terms().quota.bytes_per_day().unwrap();
    let length = packet(&hop, &clock).len();
    let (before, owed) = (victim.counted(fleet), quota / length as u64);
    assert!((owed as usize) < ABOVE_QUOTA);
    for _ in 0..ABOVE_QUOTA {
        carol.send_to(&packet(&hop, &clock), relay).unwrap();
        // No queue on the way is to be full.
        std::thread::sleep(Duration::from_micros(300));
    }
    victim.awaits(fleet, before + owed);
    owed
}

/// Eve sends with grants that nobody gave her: with a secret of her own, with other terms, with one
/// relay's at another.
pub fn without_grants(fleet: &Fleet, victim: &Victim, list: &RelayList) {
    let (clock, eve) = (Clock::new(), socket(fleet, "eve", EVE));
    let words = words(list);
    let other = words.values().skip(1).chain(words.values().take(1));
    for ((relay, word), other) in words.iter().zip(other) {
        let forged = Word::new(vec![*relay], *word.grant(), GrantSecret::new([9; 16])).unwrap();
        eve.send_to(&packet(&victim.hop(&forged, *relay, &clock), &clock), relay).unwrap();
        eve.send_to(&packet(&victim.hop(other, *relay, &clock), &clock), relay).unwrap();
        let hop = victim.hop(word, *relay, &clock);
        let whole = packet(&hop, &clock);
        for place in 0..hop.room() {
            let mut altered = whole.clone();
            altered[place] ^= 1;
            eve.send_to(&altered, relay).unwrap();
        }
    }
}

/// Sends with grants that are over, as soon as they are.
pub fn too_late(fleet: &Fleet, victim: &Victim, list: &RelayList) {
    let (clock, alice) = (Clock::new(), socket(fleet, "alice", ALICE));
    for (relay, word) in words(list) {
        if word.terms().expiry.unix() <= unix_seconds() + 60 {
            wait_for(PATIENCE, || (unix_seconds() > word.terms().expiry.unix()).then_some(()));
        }
        let hop = victim.hop(word, relay, &clock);
        (0..EACH).for_each(|_| assert!(alice.send_to(&packet(&hop, &clock), relay).is_ok()));
    }
}
