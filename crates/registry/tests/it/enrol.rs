//! From enrolment to a question's answer.

use crate::common::*;
use byway_registry::message::{Answer, Enrol, Failure, Reason};
use byway_registry::registry_client::AskError;
use byway_registry::word::{RegistryWord, WordKind};
use byway_wire::Duration;
use byway_wire::relay::Minted;

fn join() -> RegistryWord {
    word(JOIN, WordKind::Join)
}

#[test]
fn a_relay_is_tested_enrolled_listed_and_its_grant_is_good() {
    let mut net = Net::new(1, memory());
    let (relay, host, client) = (net.relay(0), net.asker(Asker::new(1)), net.asker(Asker::new(2)));
    assert!(net.list(client, 100, 0).relays.is_empty());
    let answer = net.enrol(relay, host, &join(), enrol(0, &[relay_address(0)]));
    let expected = Answer::Enrolled { beat_millis: 10_000, passed: vec![relay_address(0)], failed: vec![] };
    assert_eq!(answer, Ok(expected));
    let list = net.list(client, 100, 0);
    assert_eq!(list.relays.len(), 1);
    let listed = &list.relays[0];
    assert_eq!((listed.operator.as_str(), listed.region.as_str()), ("operator 0", "eu"));
    assert_eq!(listed.word.relays(), [relay_address(0)]);
    assert_eq!(Minted::of(listed.word.grant().id), Minted::new(RANGE, 1, USE));
    assert_eq!(net.list(client, 100, 0).relays[0].word, listed.word, "one grant per client, relay and epoch");
    // No heartbeat comes.
    net.run(Duration::from_secs(40));
    assert!(net.list(client, 100, 0).relays.is_empty());
    let log: Vec<_> = net.world[net.hub].store.log().iter().map(|entry| entry.what).collect();
    assert_eq!(log, ["enrolled"]);
}

#[test]
fn nobody_enrols_an_address_that_is_not_his() {
    let mut net = Net::new(2, memory());
    let (victim, _) = (net.relay(0), net.relay(1));
    let host = net.asker(Asker::new(1));
    // A relay is there, and has another key.
    let answer = net.enrol(victim, host, &join(), enrol(7, &[relay_address(1)]));
    assert_eq!(answer, Err(AskError::Refused(Reason::Untested)));
    // Nobody is there.
    let answer = net.enrol(victim, host, &join(), enrol(0, &[relay_address(3)]));
    assert_eq!(answer, Err(AskError::Refused(Reason::Untested)));
    // What does not pass is left out.
    let answer = net.enrol(victim, host, &join(), enrol(0, &[relay_address(0), relay_address(3)]));
    let Ok(Answer::Enrolled { passed, failed, .. }) = answer else { panic!("{answer:?}") };
    assert_eq!((passed, failed), (vec![relay_address(0)], vec![(relay_address(3), Failure::NoAnswer)]));
    // Another host that knows its name, and even its key, does not change it.
    let thief = net.asker(Asker::new(2));
    let answer = net.enrol(victim, thief, &join(), enrol(0, &[relay_address(0)]));
    assert_eq!(answer, Err(AskError::Refused(Reason::OtherKey)));
    let again = Enrol { region: byway_registry::message::Label::new("us"), ..enrol(0, &[relay_address(0)]) };
    assert!(net.enrol(victim, host, &join(), again).is_ok());
    let client = net.asker(Asker::new(3));
    assert_eq!(net.list(client, 100, 0).relays[0].region.as_str(), "us");
}

#[test]
fn each_word_is_good_for_what_it_says() {
    let mut store = memory();
    let mut once = row(3, WordKind::Join, "once");
    once.uses = Some(1);
    store.put_word(once);
    let mut old = row(4, WordKind::Use, "old");
    old.expires = UNIX + 100;
    store.put_word(old);
    store.put_word(row(5, WordKind::Use, "alice"));
    let mut net = Net::new(3, store);
    let (relay, other) = (net.relay(0), net.relay(1));
    let (host, second, client) =
        (net.asker(Asker::new(1)), net.asker(Asker::new(2)), net.asker(Asker::new(3)));
    let refused = |reason| Err(AskError::Refused(reason));
    let proof = |number: u32, kind| word(number, kind).proof;
    let with = |number, index: usize| Enrol {
        proof: proof(number, WordKind::Join),
        ..enrol(index, &[relay_address(index)])
    };
    let asks = |number: u32| {
        byway_registry::message::Request::Ask(byway_registry::message::RelayQuery {
            proof: proof(number, WordKind::Use),
            most: 5,
            skip: 0,
        })
    };
    let use_word = word(USE, WordKind::Use);
    assert!(net.enrol(relay, host, &join(), with(3, 0)).is_ok());
    assert!(net.enrol(relay, host, &join(), with(3, 0)).is_ok(), "it is in already");
    assert_eq!(net.enrol(other, second, &join(), with(3, 1)), refused(Reason::UsedUp));
    assert_eq!(net.enrol(other, second, &join(), with(USE, 1)), refused(Reason::OtherKind));
    assert_eq!(net.ask(client, &use_word, &asks(JOIN)), refused(Reason::OtherKind));
    assert_eq!(net.ask(client, &use_word, &asks(99)), refused(Reason::UnknownWord));
    let mut forged = proof(5, WordKind::Use);
    forged.secret = byway_wire::secret::Secret::new([0; 16]);
    let forged = byway_registry::message::Request::Ask(byway_registry::message::RelayQuery {
        proof: forged,
        most: 5,
        skip: 0,
    });
    assert_eq!(net.ask(client, &use_word, &forged), refused(Reason::UnknownWord));
    assert!(net.ask(client, &use_word, &asks(4)).is_ok() && net.ask(client, &use_word, &asks(5)).is_ok());
    net.run(Duration::from_secs(101));
    assert_eq!(net.ask(client, &use_word, &asks(4)), refused(Reason::Expired));
    let hub = net.hub;
    net.world.act(hub, |hub, _| hub.store.revoke("alice", UNIX + 200));
    net.run(Duration::from_secs(2));
    assert_eq!(net.ask(client, &use_word, &asks(5)), refused(Reason::Revoked));
    assert_eq!(net.world[hub].registry.epoch().number, 2);
    assert_eq!(net.world[hub].registry.counters().refused(Reason::Revoked), 1);
}

#[test]
fn an_enrolment_that_the_store_did_not_write_is_refused_and_questions_go_on() {
    let mut net = Net::new(4, memory());
    let (relay, host, client) = (net.relay(0), net.asker(Asker::new(1)), net.asker(Asker::new(2)));
    let hub = net.hub;
    net.world.act(hub, |hub, _| hub.away = true);
    let answer = net.enrol(relay, host, &join(), enrol(0, &[relay_address(0)]));
    assert_eq!(answer, Err(AskError::Refused(Reason::StoreGone)));
    assert!(net.list(client, 9, 0).relays.is_empty());
    net.world.act(hub, |hub, _| hub.away = false);
    assert!(net.enrol(relay, host, &join(), enrol(0, &[relay_address(0)])).is_ok());
    assert_eq!(net.list(client, 9, 0).relays.len(), 1);
}
