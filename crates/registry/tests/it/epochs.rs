//! Heartbeats, and grants that end with their epoch.

use crate::common::*;
use byway_registry::message::{Answer, Reason, Request};
use byway_registry::registry_client::AskError;
use byway_registry::word::{RegistryWord, WordKind};
use byway_relay::Relay;
use byway_sim::Handle;
use byway_wire::Duration;
use byway_wire::relay::Minted;

fn join() -> RegistryWord {
    word(JOIN, WordKind::Join)
}

/// A relay that is enrolled, and beats.
fn member(net: &mut Net, index: usize, host: Handle<Asker>) -> Handle<Relay> {
    let relay = net.relay(index);
    let answer = net.enrol(relay, host, &join(), enrol(index, &[relay_address(index)]));
    assert!(matches!(answer, Ok(Answer::Enrolled { .. })), "{answer:?}");
    net.world.act(relay, |relay, now| {
        assert!(relay.watch(now, RANGE, vec![hub_address()], Duration::from_secs(1)));
    });
    relay
}

#[test]
fn a_relay_that_beats_stays_listed_and_one_that_drains_is_off_at_once() {
    let mut net = Net::new(11, memory());
    let (host, client) = (net.asker(Asker::new(1)), net.asker(Asker::new(2)));
    let relay = member(&mut net, 0, host);
    net.run(Duration::from_secs(300));
    assert_eq!(net.list(client, 9, 0).relays.len(), 1);
    assert!(net.world[relay].standing(RANGE).unwrap().listed);
    assert!((28..=32).contains(&net.world[net.hub].registry.counters().beats));
    net.world.act(relay, |relay, now| relay.drain(now));
    net.run(Duration::from_secs(1));
    assert!(net.list(client, 9, 0).relays.is_empty());
}

#[test]
fn a_registry_that_is_restarted_amid_heartbeats_has_lost_nothing() {
    let mut net = Net::new(12, memory());
    let (host, client) = (net.asker(Asker::new(1)), net.asker(Asker::new(2)));
    let relay = member(&mut net, 0, host);
    net.run(Duration::from_secs(60));
    let before = net.list(client, 9, 0).relays[0].word.clone();
    let (hub, now) = (net.hub, net.world.now());
    let store = net.world[hub].store.clone();
    net.world.restart(hub, Hub::new(store, now));
    // At once, before any heartbeat; and a copy of an old heartbeat does not count.
    assert_eq!(net.list(client, 9, 0).relays[0].word, before);
    net.run(Duration::from_secs(60));
    assert_eq!(net.list(client, 9, 0).relays.len(), 1);
    assert!(net.world[relay].standing(RANGE).unwrap().unanswered <= 1);
}

/// What another registry enrolled is listed here before its first heartbeat.
#[test]
fn two_registries_on_one_store_list_the_same_relays() {
    let mut net = Net::new(15, memory());
    let (host, client) = (net.asker(Asker::new(1)), net.asker(Asker::new(2)));
    let relay = net.relay(0);
    assert!(net.enrol(relay, host, &join(), enrol(0, &[relay_address(0)])).is_ok());
    let (hub, now) = (net.hub, net.world.now());
    let elsewhere = net.world[hub].store.clone();
    net.world.restart(hub, Hub::new(memory(), now));
    assert!(net.list(client, 9, 0).relays.is_empty());
    net.world.act(hub, |hub, _| hub.store = elsewhere);
    net.run(Duration::from_secs(2));
    assert_eq!(net.list(client, 9, 0).relays.len(), 1);
}

#[test]
fn a_planned_roll_keeps_the_last_epoch_for_an_hour_and_a_revocation_does_not() {
    let mut store = memory();
    store.put_word(row(5, WordKind::Use, "alice"));
    let mut net = Net::new(13, store);
    let (host, client) = (net.asker(Asker::new(1)), net.asker(Asker::new(2)));
    let relay = member(&mut net, 0, host);
    let (hub, epoch) = (net.hub, |net: &Net| net.world[relay].epoch(net.world.now(), RANGE).unwrap());
    net.run(Duration::from_secs(24 * 3_600 - 60));
    assert_eq!(epoch(&net).0, 1);
    let last = net.list(client, 9, 0);
    assert!(last.until > last.made + 3_600, "a client has an hour to renew");
    net.run(Duration::from_secs(65));
    let (number, holds) = epoch(&net);
    assert_eq!(number, 2, "told without being asked");
    assert!(holds > Duration::from_secs(3_500));
    let next = net.list(client, 9, 0);
    let parity =
        |list: &byway_registry::message::RelayList| Minted::of(list.relays[0].word.grant().id).unwrap().odd;
    assert!(parity(&last) && !parity(&next));
    assert!(next.until > last.until);
    net.world.act(hub, |hub, _| hub.store.revoke("alice", UNIX + 24 * 3_600 + 5));
    net.run(Duration::from_secs(8));
    let (number, holds) = epoch(&net);
    assert_eq!((number, holds), (3, Duration::ZERO));
    assert_eq!(net.list(client, 9, 0).relays.len(), 1, "it said that it knows");
}

#[test]
fn a_registry_whose_own_clock_is_a_day_off_keeps_its_relays_and_brings_no_epoch_back() {
    for day in [-86_400_i64, 86_400] {
        let mut store = memory();
        store.put_word(row(5, WordKind::Use, "alice"));
        let mut net = Net::new(16, store);
        let (host, client) = (net.asker(Asker::new(1)), net.asker(Asker::new(2)));
        let relay = member(&mut net, 0, host);
        let hub = net.hub;
        net.run(Duration::from_secs(30));
        net.world.act(hub, |hub, _| hub.store.revoke("alice", UNIX + 30));
        net.run(Duration::from_secs(15));
        let epoch = |net: &Net| net.world[relay].epoch(net.world.now(), RANGE).unwrap();
        assert_eq!(epoch(&net), (2, Duration::ZERO));
        let mut number = 2;
        for off in [day, 0] {
            net.world.act(hub, |hub, now| {
                let unix = UNIX.saturating_add_signed(off) * 1_000 + now.as_nanos() / 1_000_000;
                hub.registry.set_clock(now, unix);
            });
            net.run(Duration::from_secs(40));
            // A day ahead it is time for the next epoch, after which the last holds for an hour. No
            // epoch falls.
            let (now, holds) = epoch(&net);
            assert!(now >= number && now <= 3, "{day} {off}: {now} after {number}");
            assert!(holds == Duration::ZERO || now == 3 && holds <= Duration::from_secs(3_600), "{holds:?}");
            number = now;
            // What it mints is carried: the relay passes the test that a complaint leads to.
            let names = vec![enrol(0, &[]).relay];
            let complain = Request::Complain { proof: word(USE, WordKind::Use).proof, relays: names };
            assert_eq!(net.ask(client, &word(USE, WordKind::Use), &complain), Ok(Answer::Heard));
            net.run(Duration::from_secs(40));
            let list = net.list(client, 9, 0);
            assert_eq!(list.relays.len(), 1, "{day} {off}");
            assert_eq!(Minted::of(list.relays[0].word.grant().id).unwrap().odd, number % 2 == 1);
        }
        assert_eq!(number, if day > 0 { 3 } else { 2 });
        assert_eq!(net.world[hub].registry.counters().tests_failed, 0);
    }
}

#[test]
fn a_relay_that_senders_complain_of_is_tested_again() {
    let mut net = Net::new(14, memory());
    let (host, client) = (net.asker(Asker::new(1)), net.asker(Asker::new(2)));
    let (good, bad) = (member(&mut net, 0, host), member(&mut net, 1, host));
    let names = [0, 1].map(|index| enrol(index, &[]).relay);
    let complain = Request::Complain { proof: word(USE, WordKind::Use).proof, relays: names.to_vec() };
    assert_eq!(net.ask(client, &word(USE, WordKind::Use), &complain), Ok(Answer::Heard));
    net.run(Duration::from_secs(5));
    assert_eq!(net.list(client, 9, 0).relays.len(), 2, "both pass");
    net.run(Duration::from_secs(60));
    net.world.crash(bad);
    assert_eq!(net.ask(client, &word(USE, WordKind::Use), &complain), Ok(Answer::Heard));
    net.run(Duration::from_secs(5));
    let list = net.list(client, 9, 0);
    assert_eq!(list.relays.iter().map(|it| it.relay).collect::<Vec<_>>(), names[..1]);
    let _ = good;
    let refused = Request::Complain { proof: join().proof, relays: names.to_vec() };
    let answer = net.ask(client, &word(USE, WordKind::Use), &refused);
    assert_eq!(answer, Err(AskError::Refused(Reason::OtherKind)));
}
