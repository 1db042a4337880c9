//! Where receivers are: who may register, who may ask, and what neither can do.

use crate::common::*;
use crate::heap::Heap;
use byway_relay::{Config, Dropped};
use byway_wire::relay::{
    GREET_LEN, Grant, Greeted, Location, LocationAction, LocationKey, Minute, Notice, Reason, RelayKey, Word,
};
use std::net::SocketAddr;

const SECRET: [u8; 16] = *b"permission 1234.";
const NONCE: [u8; 8] = *b"12345678";

/// What a relay answered to a request.
#[derive(Debug, PartialEq)]
enum Answer {
    Location(SocketAddr, u16),
    Greeted,
    Notice(Reason),
    Nothing,
}

impl World {
    fn request(&mut self, word: &Word, action: LocationAction, from: SocketAddr) -> (Vec<u8>, LocationKey) {
        let Greeted { cookie, unix_millis, .. } = self.greet(from, word.grant().id).unwrap();
        let key = LocationKey::new(word, &SECRET);
        let mut packet = [0; GREET_LEN];
        key.write(&mut packet, NONCE, action, cookie, unix_millis / 1_000);
        (packet.to_vec(), key)
    }

    fn answer(&mut self, from: SocketAddr, (packet, key): &(Vec<u8>, LocationKey)) -> Answer {
        let sent = self.put(from, packet);
        let Some((to, bytes)) = sent.first() else { return Answer::Nothing };
        assert_eq!((*to, sent.len()), (from, 1));
        if Location::answers(bytes, NONCE) {
            let location = key.read(bytes).expect("made with the word's key");
            return Answer::Location(location.address, location.age_minutes);
        }
        match Notice::read(bytes) {
            Ok(notice) => {
                assert!(notice.is_authentic(key.mac_key()) && notice.echo == NONCE);
                Answer::Notice(notice.reason)
            }
            Err(_) => Greeted::read(bytes).map_or(Answer::Nothing, |_| Answer::Greeted),
        }
    }

    fn ask(&mut self, word: &Word, action: LocationAction, from: SocketAddr) -> Answer {
        let request = self.request(word, action, from);
        self.answer(from, &request)
    }

    fn register(&mut self, word: &Word, from: SocketAddr) -> Answer {
        self.ask(word, LocationAction::Register, from)
    }

    fn look_up(&mut self, word: &Word) -> Answer {
        self.ask(word, LocationAction::LookUp, sender())
    }
}

#[test]
fn a_sender_is_told_where_the_receiver_was_heard_last_and_reaches_it_there() {
    let mut world = World::new(&config());
    let word = world.word(1, terms());
    assert_eq!(world.look_up(&word), Answer::Notice(Reason::NoReceiver));
    assert_eq!(world.register(&word, receiver()), Answer::Location(receiver(), 0));
    world.pass(180_000);
    assert_eq!(world.look_up(&word), Answer::Location(receiver(), 3));
    // Its router redials.
    let moved = at("9.9.8.8:40000");
    assert_eq!(world.register(&word, moved), Answer::Location(moved, 0));
    let (packet, key) = world.request(&word, LocationAction::LookUp, sender());
    let sent = world.put(sender(), &packet);
    let location = key.read(&sent[0].1).unwrap();
    assert_eq!(location.address, moved);
    let cookie = world.greet(sender(), 1).unwrap().cookie;
    let mut hop = world.hop_with(&word, moved, location.consent);
    hop.set_cookie(cookie);
    let sent = world.put(sender(), &seal(&hop, world.now, b"hello"));
    assert_eq!(sent[0].0, moved);
}

#[test]
fn a_request_from_elsewhere_or_under_another_word_is_a_plain_greeting() {
    let mut world = World::new(&config());
    let (word, other) = (world.word(1, terms()), world.word(2, terms()));
    let request = world.request(&word, LocationAction::Register, receiver());
    // Played by who saw it.
    assert_eq!(world.answer(at("7.7.7.7:1"), &request), Answer::Greeted);
    assert_eq!(world.look_up(&word), Answer::Notice(Reason::NoReceiver));
    assert_eq!(world.answer(receiver(), &request), Answer::Location(receiver(), 0));
    // With another grant's MAC.
    let stolen =
        (world.request(&word, LocationAction::LookUp, sender()).0, LocationKey::new(&other, &SECRET));
    let mut forged = stolen.0.clone();
    let theirs = world.request(&other, LocationAction::LookUp, sender()).0;
    forged[48..].copy_from_slice(&theirs[48..]);
    assert_eq!(world.answer(sender(), &(forged, stolen.1)), Answer::Greeted);
    // A relay of another key.
    let foreign = RelayKey::new(&[9; 32]).issue(*word.grant(), vec![relay_v4()]).unwrap();
    assert_eq!(world.look_up(&foreign), Answer::Greeted);
    // The other word's holder knows the secret, and another account's receivers stay hidden.
    assert_eq!(world.look_up(&other), Answer::Notice(Reason::NoReceiver));
}

#[test]
fn an_older_registration_that_is_played_again_moves_nobody() {
    let mut world = World::new(&config());
    let word = world.word(1, terms());
    let older = world.request(&word, LocationAction::Register, receiver());
    assert_eq!(world.answer(receiver(), &older), Answer::Location(receiver(), 0));
    world.pass(15_000);
    let moved = at("9.9.8.8:40000");
    assert_eq!(world.register(&word, moved), Answer::Location(moved, 0));
    // Its source address is forged: the cookie fits.
    assert_eq!(world.answer(receiver(), &older), Answer::Greeted);
    assert_eq!(world.look_up(&word), Answer::Location(moved, 0));
}

#[test]
fn words_that_are_narrowed_expired_or_wider_are_judged_as_on_packets() {
    let mut world = World::new(&config());
    let word = world.word(1, terms());
    let friend = narrowed(&word, 3, |terms| terms.expiry = Minute::from_unix(UNIX + 120));
    assert_eq!(world.register(&word, receiver()), Answer::Location(receiver(), 0));
    assert_eq!(world.look_up(&friend), Answer::Location(receiver(), 0), "of one grant");
    world.pass(120_000);
    assert_eq!(world.look_up(&friend), Answer::Notice(Reason::Expired));
    assert_eq!(world.look_up(&word), Answer::Location(receiver(), 2));
    let soon =
        Grant { id: 5, terms: byway_wire::relay::Terms { expiry: Minute::from_unix(UNIX), ..terms() } };
    let over = world.relay.issue(soon, vec![relay_v4()]).unwrap();
    assert_eq!(world.register(&over, receiver()), Answer::Notice(Reason::Expired));
    assert_eq!(world.relay.counters().dropped(Dropped::Refused(Reason::Expired)), 2);
}

#[test]
fn a_rolled_key_loses_no_location_and_a_restarted_relay_takes_it_anew() {
    let mut world = World::new(&config());
    let word = world.word(1, terms());
    assert_eq!(world.register(&word, receiver()), Answer::Location(receiver(), 0));
    world.relay.roll(&[6; 32]);
    assert_eq!(world.look_up(&word), Answer::Location(receiver(), 0));
    assert_eq!(world.register(&word, receiver()), Answer::Location(receiver(), 0));
    world.relay.roll(&[7; 32]);
    assert_eq!(world.look_up(&word), Answer::Greeted, "the word is revoked");
    // It starts again with a clock that is a year off. Who has an old cookie gets a new one first.
    let mut word_and_request = None;
    for unix_millis in [UNIX * 1_000, (UNIX - 366 * 86_400) * 1_000, (UNIX + 30 * 86_400) * 1_000] {
        let mut world = World::new(&Config { unix_millis, ..config() });
        let word = world.word(1, terms());
        if let Some(request) = &word_and_request {
            assert_eq!(world.answer(receiver(), request), Answer::Greeted);
        }
        word_and_request = Some(world.request(&word, LocationAction::Register, receiver()));
        assert_eq!(world.look_up(&word), Answer::Notice(Reason::NoReceiver));
        assert_eq!(world.register(&word, receiver()), Answer::Location(receiver(), 0));
    }
}

#[test]
fn a_request_with_the_cookie_of_the_day_before_holds_until_the_next_midnight() {
    for key_was_rolled in [false, true] {
        let mut world = World::new(&Config { unix_millis: (UNIX - 1) * 1_000, ..config() });
        let word = world.word(1, terms());
        let registration = world.request(&word, LocationAction::Register, receiver());
        let question = world.request(&word, LocationAction::LookUp, sender());
        world.pass(2_000);
        if key_was_rolled {
            world.relay.roll(&[6; 32]);
        }
        assert_eq!(world.answer(receiver(), &registration), Answer::Location(receiver(), 0));
        assert_eq!(world.answer(sender(), &question), Answer::Location(receiver(), 0));
        world.pass(86_400_000);
        assert_eq!(world.answer(sender(), &question), Answer::Greeted, "its cookie is two days old");
        assert!(matches!(world.look_up(&word), Answer::Location(..)));
    }
}

#[test]
fn two_hosts_with_one_state_directory_share_one_place_and_the_last_heard_has_it() {
    let mut world = World::new(&config());
    let word = world.word(1, terms());
    let copy = at("9.9.7.7:5");
    for host in [receiver(), copy, receiver()] {
        assert_eq!(world.register(&word, host), Answer::Location(host, 0));
        assert_eq!(world.look_up(&word), Answer::Location(host, 0));
        world.pass(5_000);
    }
    assert_eq!(world.relay.remembered_receivers(), 1);
}

#[test]
fn one_grant_fills_sixty_four_places_and_a_million_guesses_find_nobody() {
    let mut world = World::new(&config());
    let (word, other) = (world.word(1, terms()), world.word(2, terms()));
    let cookie = world.greet(receiver(), 1).unwrap().cookie;
    let mut refused = 0;
    for number in 0..65u64 {
        world.pass(1);
        let mut secret = [0; 16];
        secret[..8].copy_from_slice(&number.to_be_bytes());
        let key = LocationKey::new(&word, &secret);
        let mut packet = [0; GREET_LEN];
        key.write(&mut packet, NONCE, LocationAction::Register, cookie, UNIX);
        refused += u32::from(world.answer(receiver(), &(packet.to_vec(), key)) == Answer::Greeted);
    }
    assert_eq!((refused, world.relay.remembered_receivers()), (1, 64));
    assert_eq!(world.register(&other, receiver()), Answer::Location(receiver(), 0), "another grant has room");

    let cookie = world.greet(sender(), 1).unwrap().cookie;
    let mut found = 0;
    for guess in 0..1_000_000u64 {
        let mut secret = [0xee; 16];
        secret[..8].copy_from_slice(&guess.to_be_bytes());
        let mut packet = [0; GREET_LEN];
        LocationKey::new(&word, &secret).write(&mut packet, NONCE, LocationAction::LookUp, cookie, UNIX);
        found += world.put(sender(), &packet).iter().filter(|(_, it)| Location::answers(it, NONCE)).count();
        if guess % 1_000 == 0 {
            world.pass(1);
        }
    }
    assert_eq!((found, world.relay.remembered_receivers()), (0, 65));
    let counters = world.relay.counters();
    // A second passed: what it may answer is limited, and a guess is never answered with more.
    assert!(counters.dropped(Dropped::Greeting) > 990_000, "{counters:?}");
    assert!(counters.notices < 700, "{counters:?}");
}

/// A relay with so many remembered receivers, 64 under each word.
fn crowd(receivers: u32) -> World {
    let mut world = World::new(&config());
    for number in 0..receivers {
        let (id, place) = (10 + number / 64, number % 64);
        let word = world.word(id, terms());
        let host = SocketAddr::from(([9, 9, (id >> 8) as u8, id as u8], 2_000 + place as u16));
        let cookie = RelayKey::new(&KEY).cookie(id, host, UNIX);
        let mut secret = [0; 16];
        secret[..4].copy_from_slice(&place.to_be_bytes());
        let key = LocationKey::new(&word, &secret);
        let mut packet = [0; GREET_LEN];
        key.write(&mut packet, NONCE, LocationAction::Register, cookie, UNIX);
        world.pass(1);
        assert_eq!(world.answer(host, &(packet.to_vec(), key)), Answer::Location(host, 0));
    }
    assert_eq!(world.relay.remembered_receivers(), receivers as usize);
    world
}

#[test]
fn ten_thousand_receivers_take_little_memory() {
    let heap = Heap::new();
    let few = {
        let _world = crowd(1);
        heap.held()
    };
    let _world = crowd(10_000);
    let more = heap.held() - few;
    println!("10,000 receivers: {more} bytes more");
    assert!(more < 3 << 20, "{more}");
}
