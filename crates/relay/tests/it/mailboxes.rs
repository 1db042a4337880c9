//! Letters between two hosts that know nothing of each other: who may leave them, and who reads
//! them.

use crate::common::*;
use byway_relay::Dropped;
use byway_wire::relay::{
    Grant, LETTER_MAX, MAILBOX_LEN, MailboxAnswer, MailboxKey, MailboxState, Minute, Notice, Reason,
    RelayKey, Terms, Word,
};
use std::net::SocketAddr;

const NONCE: [u8; 8] = *b"12345678";
const OPENER: [u8; 8] = *b"opener..";
const GUEST: [u8; 8] = *b"guest...";

/// A host with a word.
struct Host<'a> {
    /// `None`: it is a stranger to the relay.
    word: Option<&'a Word>,
    at: SocketAddr,
    seat: [u8; 8],
}

type Answer = (u16, MailboxState, Vec<u8>);

impl World {
    fn packet(&mut self, host: &Host<'_>, place: (Option<u16>, u8), letter: &[u8]) -> [u8; MAILBOX_LEN] {
        let cookie = self.greet(host.at, host.word.map_or(0, |word| word.grant().id)).unwrap().cookie;
        let mut packet = [0; MAILBOX_LEN];
        MailboxKey::new(host.word, host.seat).write(&mut packet, NONCE, place, letter, cookie);
        packet
    }

    fn mailed(&mut self, host: &Host<'_>, packet: &[u8]) -> Option<Answer> {
        let sent = self.put(host.at, packet);
        let (to, bytes) = sent.first().filter(|(_, bytes)| Notice::read(bytes).is_err())?;
        assert_eq!((*to, sent.len()), (host.at, 1));
        assert!(MailboxAnswer::answers(bytes, NONCE) && bytes.len() < packet.len());
        let key = MailboxKey::new(host.word, host.seat);
        let answer = key.read(bytes).expect("made with the word's key");
        Some((answer.number, answer.state, answer.letter.to_vec()))
    }

    fn visit(&mut self, host: &Host<'_>, place: (Option<u16>, u8), letter: &[u8]) -> Option<Answer> {
        let packet = self.packet(host, place, letter);
        self.mailed(host, &packet)
    }
}

fn seated(number: u16, letter: &[u8]) -> Option<Answer> {
    Some((number, MailboxState::Seated, letter.to_vec()))
}

#[test]
fn two_hosts_leave_each_other_two_letters_each_under_words_of_their_own() {
    let mut world = World::new(&config());
    let (word, other) = (world.word(1, terms()), world.word(2, terms()));
    let opener = Host { word: Some(&word), at: receiver(), seat: OPENER };
    let guest = Host { word: Some(&other), at: sender(), seat: GUEST };
    assert_eq!(world.visit(&opener, (None, 0), b"a0"), seated(1, b""));
    assert_eq!(world.visit(&opener, (None, 0), b"a0"), seated(1, b""), "its answer was lost");
    assert_eq!(world.visit(&guest, (Some(1), 0), b"b0"), seated(1, b"a0"));
    assert_eq!(world.visit(&opener, (Some(1), 0), b""), seated(1, b"b0"));
    let long = [7; LETTER_MAX];
    assert_eq!(world.visit(&opener, (Some(1), 1), &long), seated(1, b""));
    assert_eq!(world.visit(&guest, (Some(1), 1), b"b1"), seated(1, &long));
    // Its address changes meanwhile.
    let moved = Host { at: at("9.9.8.8:40000"), ..opener };
    assert_eq!(world.visit(&moved, (Some(1), 1), b"another"), seated(1, b"b1"));
    assert_eq!(world.visit(&guest, (Some(1), 1), b""), seated(1, &long), "the first letter stays");
    assert_eq!((world.relay.mailboxes(), world.relay.counters().mailed), (1, 8));
}

#[test]
fn a_stranger_to_the_relay_answers_who_opened_a_mailbox() {
    let mut world = World::new(&config());
    let word = world.word(1, terms());
    let opener = Host { word: Some(&word), at: receiver(), seat: OPENER };
    let stranger = Host { word: None, at: sender(), seat: GUEST };
    assert_eq!(world.visit(&opener, (None, 0), b"a0"), seated(1, b""));
    assert_eq!(world.visit(&stranger, (Some(1), 0), b"b0"), seated(1, b"a0"));
    assert_eq!(world.visit(&opener, (Some(1), 0), b""), seated(1, b"b0"));
}

#[test]
fn a_third_host_finds_no_seat_and_after_ten_minutes_nobody_does() {
    let mut world = World::new(&config());
    let word = world.word(1, terms());
    let host = |seat| Host { word: Some(&word), at: sender(), seat };
    assert_eq!(world.visit(&host(OPENER), (None, 0), b"a"), seated(1, b""));
    assert_eq!(world.visit(&host(GUEST), (Some(1), 0), b"b"), seated(1, b"a"));
    let third = world.visit(&host(*b"third..."), (Some(1), 0), b"c");
    assert_eq!(third, Some((1, MailboxState::Taken, Vec::new())));
    assert_eq!(world.visit(&host(OPENER), (Some(1), 0), b""), seated(1, b"b"));
    assert_eq!(world.visit(&host(GUEST), (Some(2), 0), b"b"), Some((2, MailboxState::Missing, Vec::new())));
    assert_eq!(world.visit(&host(*b"another."), (None, 0), b"a"), seated(2, b""));
    let over = |number| Some((number, MailboxState::Missing, Vec::new()));
    world.pass(59_999);
    assert_eq!(world.visit(&host(GUEST), (Some(1), 0), b""), seated(1, b"a"));
    world.pass(1);
    assert_eq!(world.visit(&host(OPENER), (Some(1), 0), b""), over(1), "a minute after its guest came");
    world.pass(539_999);
    assert_eq!(world.visit(&host(*b"another."), (Some(2), 0), b""), seated(2, b""));
    world.pass(1);
    assert_eq!(world.visit(&host(*b"another."), (Some(2), 0), b""), over(2));
    assert_eq!(world.relay.mailboxes(), 0);
}

#[test]
fn a_used_code_leaves_its_room_to_others_and_its_number_to_nobody() {
    let mut world = World::new(&config());
    let word = world.word(1, terms());
    let host = |number: u16, side: u8| {
        let [high, low] = number.to_be_bytes();
        Host { word: Some(&word), at: sender(), seat: [side, high, low, 0, 0, 0, 0, 0] }
    };
    for number in 1..=999 {
        assert_eq!(world.visit(&host(number, 1), (None, 0), b"a"), seated(number, b""));
        assert_eq!(world.visit(&host(number, 2), (Some(number), 0), b"b"), seated(number, b"a"));
        world.pass(10_000);
        assert!(world.relay.mailboxes() <= 6);
    }
    assert_eq!(world.visit(&host(0, 1), (None, 0), b"a"), seated(1, b""));
    // A used code ends no later than an unused one.
    world.pass(590_000);
    assert_eq!(world.visit(&host(0, 2), (Some(1), 0), b"b"), seated(1, b"a"));
    world.pass(10_000);
    assert_eq!(world.visit(&host(0, 2), (Some(1), 0), b""), Some((1, MailboxState::Missing, Vec::new())));
}

#[test]
fn no_grant_and_no_relay_has_more_mailboxes_than_it_may() {
    let mut world = World::new(&config());
    let open = |world: &mut World, grant: u32, seat: u32| {
        let word = world.word(grant, terms());
        let mut name = [0; 8];
        name[..4].copy_from_slice(&grant.to_be_bytes());
        name[4..].copy_from_slice(&seat.to_be_bytes());
        world.pass(10);
        world.visit(&Host { word: Some(&word), at: sender(), seat: name }, (None, 0), b"a").unwrap()
    };
    for number in 1..=8 {
        assert_eq!(open(&mut world, 1, number).0, number as u16);
    }
    assert_eq!(open(&mut world, 1, 9).1, MailboxState::Full, "the ninth of a grant");
    assert_eq!(open(&mut world, 1, 3).0, 3, "who has one is let in");
    for grant in 2..=32 {
        for number in 0..8 {
            assert_eq!(open(&mut world, grant, number).1, MailboxState::Seated);
        }
    }
    assert_eq!(open(&mut world, 33, 0).1, MailboxState::Full);
    assert_eq!(world.relay.mailboxes(), 256);
    world.pass(600_000);
    assert_eq!(open(&mut world, 33, 0), (257, MailboxState::Seated, Vec::new()));
}

#[test]
fn who_has_no_word_that_holds_has_no_mailbox() {
    let mut world = World::new(&config());
    let word = world.word(1, terms());
    let opener = Host { word: Some(&word), at: receiver(), seat: OPENER };
    let packet = world.packet(&opener, (None, 0), b"a");
    let elsewhere = Host { at: at("7.7.7.7:1"), ..opener };
    assert_eq!(world.mailed(&elsewhere, &packet), None, "played by who saw it");
    let foreign = RelayKey::new(&[9; 32]).issue(*word.grant(), vec![relay_v4()]).unwrap();
    assert_eq!(world.visit(&Host { word: Some(&foreign), ..opener }, (None, 0), b"a"), None);
    let stranger = Host { word: None, ..opener };
    let packet_of_stranger = world.packet(&stranger, (Some(1), 0), b"a");
    assert_eq!(world.mailed(&Host { word: None, ..elsewhere }, &packet_of_stranger), None);
    assert_eq!(world.visit(&stranger, (None, 0), b"a"), Some((0, MailboxState::Full, Vec::new())));
    for length in [0, 1, 39, MAILBOX_LEN - 1] {
        assert!(world.put(receiver(), &packet[..length]).is_empty());
    }
    assert!(world.put(receiver(), &[&packet[..], &[0]].concat()).is_empty());
    let soon = Grant { id: 5, terms: Terms { expiry: Minute::from_unix(UNIX), ..terms() } };
    let over = world.relay.issue(soon, vec![relay_v4()]).unwrap();
    let packet = world.packet(&Host { word: Some(&over), ..opener }, (None, 0), b"a");
    let sent = world.put(receiver(), &packet);
    let notice = Notice::read(&sent[0].1).unwrap();
    assert!(notice.is_authentic(&over.mac_key()) && notice.reason == Reason::Expired);
    assert_eq!(world.relay.mailboxes(), 0);
    assert_eq!(world.relay.counters().dropped(Dropped::Refused(Reason::UnknownWord)), 3);
}
