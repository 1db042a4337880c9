//! Bad input: bounded, refused with a reason, counted, and nobody else's harm.

use crate::common::*;
use byway_engine::config::Params;
use byway_engine::handshake::{Identity, Initiator};
use byway_engine::seal::Suites;
use byway_registry::message::{Answer, Reason, Request};
use byway_registry::registry_client::AskError;
use byway_registry::secrets::Secrets;
use byway_registry::word::WordKind;
use byway_relay::Relay;
use byway_wire::heartbeat::{BEAT_LEN, Heartbeat, HeartbeatReport};
use byway_wire::relay::RelayKey;
use byway_wire::{Duration, Ecn, Instant, Writer};
use std::net::SocketAddr;

#[test]
fn ten_thousand_half_open_handshakes_keep_nobody_out() {
    let mut net = Net::new(21, memory());
    let client = net.asker(Asker::new(2));
    let key = Secrets::new(&SECRET).identity().public();
    let said = Params::of(&byway_engine::Config::default()).payload(b"");
    let stranger = Identity::from_secret([77; 32]);
    for number in 0_u32..10_000 {
        let mut seed = [0x3c; 32];
        seed[..4].copy_from_slice(&number.to_be_bytes());
        let hello = Initiator::new(&stranger, key, &said, Suites::SECURE, seed).unwrap().hello();
        let from = SocketAddr::from(([99, (number >> 6) as u8, (number & 63) as u8, 1], 6000));
        net.world.route(hub_address(), from.ip(), &[]);
        net.world.inject(
            Instant::from_millis(u64::from(number) / 10),
            from,
            hub_address(),
            Ecn::NotEct,
            &hello,
        );
    }
    net.run(Duration::from_millis(500));
    assert!(net.list(client, 9, 0).relays.is_empty(), "it is answered amid them");
    net.run(Duration::from_secs(30));
    assert!(net.list(client, 9, 0).relays.is_empty());
    assert!(net.world[net.hub].registry.sessions() <= 1_100, "{}", net.world[net.hub].registry.sessions());
}

#[test]
fn one_address_that_opens_sessions_and_says_nothing_keeps_nobody_out() {
    let mut net = Net::new(28, memory());
    let holder = net.asker_at(Asker::new(1), SocketAddr::from(([10, 99, 0, 1], 5000)));
    let neighbour = net.asker_at(Asker::new(2), SocketAddr::from(([10, 99, 0, 2], 5000)));
    let client = net.asker(Asker::new(3));
    // 2,400 sessions, 150 in a second.
    for _ in 0..160 {
        net.world.act(holder, |holder, now| {
            (0..15).for_each(|_| holder.open(now, &word(USE, WordKind::Use)));
        });
        net.run(Duration::from_millis(100));
        assert!(net.world[net.hub].registry.sessions() < 400, "{}", net.world[net.hub].registry.sessions());
    }
    let began = net.world.now();
    assert!(net.list(client, 9, 0).relays.is_empty());
    assert!(net.list(neighbour, 9, 0).relays.is_empty(), "not even its neighbour");
    assert!(net.world.now().since(began) < Duration::from_secs(1));
    net.run(Duration::from_secs(3));
    assert_eq!(net.world[net.hub].registry.sessions(), 0);
}

#[test]
fn a_session_that_says_a_byte_now_and_then_is_ended() {
    let mut net = Net::new(22, memory());
    let slow = net.asker(Asker::new(1));
    net.world.act(slow, |slow, now| slow.open(now, &word(USE, WordKind::Use)));
    for _ in 0..25 {
        net.run(Duration::from_secs(1));
        net.world.act(slow, |slow, _| slow.write(&[0]));
    }
    assert_eq!(net.world[net.hub].registry.counters().overdue, 1);
    assert_eq!(net.world[net.hub].registry.sessions(), 0);
}

#[test]
fn a_long_list_is_refused_by_its_length() {
    let mut net = Net::new(23, memory());
    let long = net.asker(Asker::new(1));
    net.world.act(long, |long, now| long.open(now, &word(USE, WordKind::Use)));
    net.run(Duration::from_secs(1));
    let (mut sent, many) = (0, vec![0xff; 1 << 20]);
    for _ in 0..100 {
        net.world.act(long, |long, _| long.write(&many));
        net.run(Duration::from_millis(20));
        sent = sent.max(net.world.act(long, |long, _| long.sent()));
    }
    assert_eq!(net.world[net.hub].registry.counters().refused(Reason::Malformed), 1);
    assert!(sent > 0 && sent < 64 << 10, "{sent}");
}

#[test]
fn more_questions_than_a_word_has_are_refused_and_another_word_is_not() {
    let mut store = memory();
    store.put_word(row(5, WordKind::Use, "alice"));
    let mut net = Net::new(24, store);
    let clients: Vec<_> = (0..80).map(|it| net.asker(Asker::new(10 + it))).collect();
    // More than ten thousand, in eight rounds.
    for round in 1..=8 {
        for client in &clients {
            net.world.act(*client, |client, now| {
                client.begin(now, &word(USE, WordKind::Use), &ask(100, 0), true);
                (1..15).for_each(|_| client.ask(&ask(100, 0)));
                client.go_on(&ask(100, 0));
            });
        }
        net.run(Duration::from_secs(2));
        let counters = net.world[net.hub].registry.counters();
        let (answered, refused) = (counters.questions, counters.refused(Reason::TooOften));
        let most = 520 + 100 * round;
        // One network has half of what may come at once.
        assert!((250..=most).contains(&answered) && refused >= 1_280 * round - most, "{answered} {refused}");
    }
    assert!(clients.iter().all(|client| net.world[*client].answers.len() <= 16));
    let other = Request::Ask(byway_registry::message::RelayQuery {
        proof: word(5, WordKind::Use).proof,
        most: 9,
        skip: 0,
    });
    assert!(matches!(net.ask(clients[0], &word(USE, WordKind::Use), &other), Ok(Answer::List(_))));
    net.run(Duration::from_secs(20));
    assert!(
        net.ask(clients[1], &word(USE, WordKind::Use), &ask(9, 0)).is_ok(),
        "after a while it may ask again"
    );
}

#[test]
fn heartbeats_that_are_copies_or_forgeries_are_counted_and_not_answered() {
    let mut net = Net::new(25, memory());
    let (relay, host) = (net.relay(0), net.asker(Asker::new(1)));
    assert!(net.enrol(relay, host, &word(JOIN, WordKind::Join), enrol(0, &[relay_address(0)])).is_ok());
    let key = RelayKey::new(&relay_key(0));
    let bytes = |counter: u64, key: &RelayKey, relay| {
        let report = HeartbeatReport {
            relay,
            range: RANGE,
            counter,
            epoch: 1,
            rate: 0,
            grants: 0,
            today: 0,
            month: 0,
            left: u64::MAX,
            flags: 0,
        };
        let mut bytes = [0; BEAT_LEN];
        Heartbeat::new(report, &key.range_key(RANGE).heartbeat_key()).write(&mut Writer::new(&mut bytes));
        bytes
    };
    let (mine, other) = (bytes(7, &key, key.id()), RelayKey::new(&[9; 32]));
    let sent =
        [mine, mine, bytes(6, &key, key.id()), bytes(8, &other, key.id()), bytes(8, &other, other.id())];
    for packet in sent {
        net.world.inject(net.world.now(), relay_address(0), hub_address(), Ecn::NotEct, &packet);
        net.run(Duration::from_millis(50));
    }
    let counters = net.world[net.hub].registry.counters();
    assert_eq!((counters.beats, counters.beats_replayed), (1, 2));
    assert_eq!((counters.beats_forged, counters.beats_unknown), (1, 1));
}

#[test]
fn a_clock_that_is_a_day_off_keeps_no_relay_out() {
    for day in [-86_400_i64, 86_400] {
        let mut net = Net::new(26, memory());
        let host = net.asker(Asker::new(1));
        let relay: byway_sim::Handle<Relay> = net.relay_whose_clock_is_off(0, day);
        let answer = net.enrol(relay, host, &word(JOIN, WordKind::Join), enrol(0, &[relay_address(0)]));
        assert!(matches!(answer, Ok(Answer::Enrolled { .. })), "{day}: {answer:?}");
        let client = net.asker(Asker::new(2));
        assert_eq!(net.list(client, 9, 0).relays.len(), 1);
    }
}

#[test]
fn a_relay_whose_clock_is_days_ahead_is_told_so() {
    for ahead in [2 * 86_400, 365 * 86_400] {
        let mut net = Net::new(29, memory());
        let host = net.asker(Asker::new(1));
        let relay = net.relay_whose_clock_is_off(0, ahead);
        let answer = net.enrol(relay, host, &word(JOIN, WordKind::Join), enrol(0, &[relay_address(0)]));
        assert_eq!(answer, Err(AskError::Refused(Reason::Clock)), "{ahead}");
    }
}

/// A board without a battery for its clock begins in 1970.
#[test]
fn a_relay_whose_clock_is_years_behind_is_tested_and_listed() {
    for behind in [2 * 86_400, 400 * 86_400, UNIX as i64] {
        let mut net = Net::new(30, memory());
        let host = net.asker(Asker::new(1));
        let relay = net.relay_whose_clock_is_off(0, -behind);
        let answer = net.enrol(relay, host, &word(JOIN, WordKind::Join), enrol(0, &[relay_address(0)]));
        assert!(matches!(answer, Ok(Answer::Enrolled { .. })), "{behind}: {answer:?}");
        let client = net.asker(Asker::new(2));
        assert_eq!(net.list(client, 9, 0).relays.len(), 1, "{behind}");
    }
}

#[test]
fn what_is_no_request_is_refused_and_nothing_more_of_it_is_read() {
    let mut net = Net::new(27, memory());
    let client = net.asker(Asker::new(1));
    let answer = net.ask(client, &word(USE, WordKind::Use), &Request::Ready);
    assert_eq!(answer, Err(AskError::Refused(Reason::Malformed)), "nobody enrols here");
    net.world.act(client, |client, now| client.open(now, &word(USE, WordKind::Use)));
    net.run(Duration::from_secs(1));
    net.world.act(client, |client, _| client.write(&[0, 1, 99]));
    net.run(Duration::from_secs(1));
    net.world.act(client, |client, _| client.write(&[0, 1, 98]));
    net.run(Duration::from_secs(1));
    assert_eq!(net.world[net.hub].registry.counters().refused(Reason::Malformed), 2);
}
