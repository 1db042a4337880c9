//! Who tries what against a relay, and what comes of it.

use crate::common::*;
use byway_relay::{Config, Dropped};
use byway_wire::relay::*;
use byway_wire::{Duration, Ecn, Input, Instant, Local, Machine, TransmitBuffer};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::net::SocketAddr;

fn refused(world: &World, reason: Reason) -> u64 {
    world.relay.counters().dropped(Dropped::Refused(reason))
}

/// One packet is sent, and refused with this proven notice.
fn expect_refusal(world: &mut World, hop: &Hop, from: SocketAddr, reason: Reason) -> Notice {
    let before = refused(world, reason);
    let sent = world.put(from, &seal(hop, world.now, &[7; 1100]));
    assert_eq!(refused(world, reason), before + 1, "{:?}", world.relay.counters());
    let [(to, bytes)] = sent.as_slice() else { panic!("one notice expected, {sent:?}") };
    let notice = Notice::read(bytes).unwrap();
    assert_eq!((*to, notice.reason), (from, reason));
    notice
}

#[test]
fn there_and_back_in_all_families() {
    let (v4, v6) = (at("9.9.9.9:2000"), at("[2a00::9]:2000"));
    for (from, to) in [(sender(), v4), (sender(), v6), (at("[2a00::8]:1"), v4), (at("[2a00::8]:1"), v6)] {
        for branch in [0, 3] {
            let mut world = World::new(&config());
            let mut word = world.word(1, terms());
            if branch != 0 {
                word = narrowed(&word, branch, |terms| terms.rate = RateClass(0xf0));
            }
            let hop = world.hop(&word, from, to);
            let packet = seal(&hop, world.now, b"inner packet");
            let sent = world.put(from, &packet);
            let [(reached, delivered)] = sent.as_slice() else { panic!("{:?}", world.relay.counters()) };
            assert_eq!((*reached, delivered.len()), (to, packet.len()));
            let header = Delivered::read(delivered).unwrap();
            assert_eq!((header.from, header.tag.grant, header.tag.branch), (from, 1, branch));
            assert_eq!(&delivered[header.inner..], b"inner packet");

            let hop = ReturnHop::new(relay_v4(), &header);
            let mut packet = vec![0; hop.room()];
            packet.extend(b"answer");
            assert!(hop.seal(&mut packet));
            let sent = world.put(to, &packet);
            let [(reached, back)] = sent.as_slice() else { panic!("{:?}", world.relay.counters()) };
            assert_eq!((*reached, back.len()), (from, packet.len()));
            let header = ReturnedPacket::read(back).unwrap();
            assert_eq!((header.from, &back[header.inner..]), (to, b"answer".as_slice()));
        }
    }
}

#[test]
fn a_mapped_source_is_the_ipv4_host() {
    let mut world = World::new(&config());
    let word = world.word(1, terms());
    let hop = world.hop(&word, sender(), receiver());
    let sent = world.put(at("[::ffff:8.8.8.8]:1000"), &seal(&hop, world.now, b"x"));
    assert_eq!(Delivered::read(&sent[0].1).unwrap().from, sender());
    assert_ne!(Delivered::read(&sent[0].1).unwrap().tag.tag, 0);
}

#[test]
fn without_a_word_nothing_passes_and_nothing_is_kept() {
    let mut world = World::new(&config());
    let word = world.word(1, terms());
    let hop = world.hop(&word, sender(), receiver());
    let good = seal(&hop, world.now, &[1; 200]);
    for bit in 0..good.len() * 8 {
        let mut forged = good.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        world.put(sender(), &forged);
    }
    let foreign = World::new(&Config::new([6; 32], UNIX * 1000)).word(1, terms());
    let stranger = Hop::new(&foreign, relay_v4(), receiver(), Consent { expiry: 0, tag: 0 }, world.clock());
    world.pass(60_000);
    world.pass(0);
    let sent = world.put(sender(), &seal(&stranger, world.now, &[1; 200]));
    let notice = Notice::read(&sent[0].1).unwrap();
    assert_eq!(notice.reason, Reason::UnknownWord);
    assert_eq!(stranger.judge(&notice, world.now), Some(NoticeTrust::Hint));
    assert_eq!(world.relay.counters().forwarded_packets, 0);
    assert_eq!(world.relay.accounts(), 0);
}

#[test]
fn a_cookie_of_another_address_is_refused_and_none_means_no_way_back() {
    let mut world = World::new(&config());
    let word = world.word(1, terms());
    let mut hop = world.hop(&word, sender(), receiver());
    // A word's holder forges a victim's source. Without the victim's cookie no return tag leads to
    // him.
    let victim = at("7.7.7.7:53");
    world.put(victim, &seal(&hop, world.now, b"x"));
    assert_eq!(refused(&world, Reason::StaleCookie), 1);
    hop.set_cookie(0);
    let sent = world.put(victim, &seal(&hop, world.now, b"x"));
    let [(_, delivered)] = sent.as_slice() else { panic!("delivered without a return tag") };
    let back = ReturnHop::new(relay_v4(), &Delivered::read(delivered).unwrap());
    let mut packet = vec![0; back.room() + 1];
    assert!(back.seal(&mut packet));
    assert!(world.put(receiver(), &packet).is_empty());
    assert_eq!(world.relay.counters().dropped(Dropped::BadReturn), 1);
}

/// A NAT gave the sender another port or address, or the sender slept for two days: its word is
/// good, and the relay says so. A cookie of another relay or of another word proves nothing.
#[test]
fn a_cookie_that_holds_no_more_is_told_from_a_word_that_is_unknown() {
    for (from, slept) in
        [("8.8.8.8:1001", 0), ("8.8.4.4:1000", 0), ("[2a00::8]:1000", 0), ("8.8.8.8:1000", 48)]
    {
        for is_known in [false, true] {
            let mut world = World::new(&config());
            let word = world.word(1, terms());
            let hop = world.hop(&word, sender(), receiver());
            if is_known {
                world.put(sender(), &seal(&hop, world.now, b"x"));
            }
            world.pass(slept * 3_600_000 + 1_000);
            let notice = expect_refusal(&mut world, &hop, at(from), Reason::StaleCookie);
            assert_eq!(hop.judge(&notice, world.now), Some(NoticeTrust::Proven), "{from}");
            let hop = world.hop(&word, at(from), receiver());
            assert_eq!(world.put(at(from), &seal(&hop, world.now, b"x"))[0].0, receiver(), "{from}");
        }
    }
    let (mut world, mut other) = (World::new(&config()), World::new(&Config { key: [6; 32], ..config() }));
    let word = world.word(1, terms());
    let mut hop = world.hop(&word, sender(), receiver());
    for cookie in [other.greet(sender(), 1), world.greet(sender(), 2)] {
        hop.set_cookie(cookie.unwrap().cookie);
        world.pass(1_000);
        expect_refusal(&mut world, &hop, sender(), Reason::UnknownWord);
    }
}

/// Two relays do not forward a packet to each other for ever. An attacker that can spoof their
/// addresses encloses a packet in up to five envelopes, for the two relays in turn. The second
/// relay drops the packet.
#[test]
fn two_relays_that_forward_to_each_other_carry_a_packet_once() {
    // What each takes the other for.
    let other = [at("5.6.7.8:4748"), at("5.6.7.9:4748")];
    let mut relays = [World::new(&config()), World::new(&Config { key: [6; 32], ..config() })];
    for from_a_relay in [false, true] {
        let mut hops = Vec::new();
        for (world, other) in relays.iter_mut().zip(other) {
            let word = world.word(1, terms());
            hops.push(world.hop(&word, if from_a_relay { other } else { sender() }, other));
        }
        for layers in 1..6 {
            // The outermost is for the first relay, the next for the second, and so on.
            let now = relays[0].now;
            let packet =
                (0..layers).rev().fold(vec![7; 700], |inner, layer| seal(&hops[layer % 2], now, &inner));
            let first = if from_a_relay { other[0] } else { sender() };
            let before = relays.each_ref().map(|world| world.relay.counters().forwarded_packets);
            let mut waiting = VecDeque::from([(0, first, packet)]);
            let mut carried = 0;
            while let Some((relay, from, packet)) = waiting.pop_front() {
                for (to, sent) in relays[relay].put(from, &packet) {
                    assert_eq!(to, other[relay], "to nobody else");
                    carried += 1;
                    assert!(carried <= 2, "it goes round");
                    if let Ok(header) = Delivered::read(&sent) {
                        // The other one is as bad as can be, and answers.
                        let hop = ReturnHop::new(relay_v4(), &header);
                        let mut answer = vec![0; hop.room()];
                        answer.extend([7; 100]);
                        if hop.seal(&mut answer) && from_a_relay {
                            waiting.push_back((relay, other[relay], answer));
                        }
                    }
                    waiting.push_back((1 - relay, other[1 - relay], sent));
                }
            }
            let after = relays.each_ref().map(|world| world.relay.counters().forwarded_packets);
            assert_eq!([after[0] - before[0], after[1] - before[1]], [1, 0], "{layers} layers");
            assert_eq!(carried, if from_a_relay { 2 } else { 1 });
        }
    }
}

#[test]
fn tags_serve_the_receiver_alone_and_not_for_long() {
    let mut world = World::new(&config());
    let word = world.word(1, terms());
    let hop = world.hop(&word, sender(), receiver());
    let sent = world.put(sender(), &seal(&hop, world.now, b"x"));
    let header = Delivered::read(&sent[0].1).unwrap();
    let packet = |header: &Delivered| {
        let back = ReturnHop::new(relay_v4(), header);
        let mut packet = vec![0; back.room() + 10];
        assert!(back.seal(&mut packet));
        packet
    };
    assert_eq!(world.put(receiver(), &packet(&header)).len(), 1);
    assert!(world.put(at("9.9.9.9:2001"), &packet(&header)).is_empty(), "another port");
    assert!(world.put(at("7.7.7.7:2000"), &packet(&header)).is_empty(), "another host");
    let elsewhere = Delivered { from: at("7.7.7.7:53"), ..header };
    assert!(world.put(receiver(), &packet(&elsewhere)).is_empty(), "another sender");
    let other_account = Delivered { tag: ReturnTag { grant: 2, ..header.tag }, ..header };
    assert!(world.put(receiver(), &packet(&other_account)).is_empty(), "another account");
    let longer = Delivered { tag: ReturnTag { expiry: header.tag.expiry + 1, ..header.tag }, ..header };
    assert!(world.put(receiver(), &packet(&longer)).is_empty(), "a longer life");
    world.pass(601_000);
    assert!(world.put(receiver(), &packet(&header)).is_empty(), "ran out");
    assert_eq!(world.relay.counters().dropped(Dropped::BadReturn), 6);
    let mut restarted = World::new(&config());
    assert!(restarted.put(receiver(), &packet(&header)).is_empty());
    assert_eq!(restarted.relay.counters().dropped(Dropped::UnknownAccount), 1);
}

#[test]
fn each_rule_is_refused_by_its_name_and_the_notice_is_proven() {
    let day = 86_400_000;
    let mut world = World::new(&config());
    let word = world.word(1, terms());
    let hop = world.hop(&word, sender(), receiver());
    let consent = world.greet(receiver(), 1).unwrap().consent;
    let other_grant = world.greet(receiver(), 2).unwrap().consent;
    let other_address = world.greet(at("9.9.9.9:2001"), 1).unwrap().consent;
    for wrong in [other_grant, other_address, Consent { tag: consent.tag ^ 1, ..consent }] {
        let hop = world.hop_with(&word, receiver(), wrong);
        let notice = expect_refusal(&mut world, &hop, sender(), Reason::NoConsent);
        assert_eq!(hop.judge(&notice, world.now), Some(NoticeTrust::Proven));
    }
    let no_v6 = world.word(1, Terms { scope: Scope::V4, ..terms() });
    let to_v6 = world.hop(&no_v6, sender(), at("[2a00::9]:1"));
    expect_refusal(&mut world, &to_v6, sender(), Reason::Scope);
    let short = world.word(1, Terms { expiry: Minute::from_unix(UNIX + 60), ..terms() });
    let short = world.hop(&short, sender(), receiver());
    assert_eq!(world.put(sender(), &seal(&short, world.now, b"x")).len(), 1);
    world.pass(60_000);
    expect_refusal(&mut world, &short, sender(), Reason::Expired);
    world.pass(day);
    expect_refusal(&mut world, &hop, sender(), Reason::ConsentExpired);
}

#[test]
fn only_the_operator_s_kind_of_destination_is_reached() {
    let mut world = World::new(&config());
    let word = world.word(1, terms());
    let key = RelayKey::new(&KEY);
    for inside in
        ["127.0.0.1:22", "10.0.0.1:80", "169.254.169.254:80", "[::1]:22", "[fe80::1]:1", "1.2.3.4:4748"]
    {
        let to = at(inside);
        assert_eq!(world.greet(to, 1), None, "greeted {to}");
        // Not even with a consent, which a forged greeting within the network might have won.
        let hop = world.hop_with(&word, to, key.consent(1, to, UNIX + 86_400));
        expect_refusal(&mut world, &hop, sender(), Reason::Destination);
    }
    let hop = world.hop(&word, sender(), at("10.9.3.4:80"));
    assert_eq!(world.put(sender(), &seal(&hop, world.now, b"x")).len(), 1);
}

#[test]
fn an_observer_s_copy_is_worth_nothing_after_seconds() {
    let mut world = World::new(&config());
    let word = world.word(1, terms());
    let hop = world.hop(&word, sender(), receiver());
    let packet = seal(&hop, world.now, b"x");
    assert_eq!(world.put(sender(), &packet).len(), 1);
    world.pass((TIME_WINDOW + 1) * 1000);
    let sent = world.put(sender(), &packet);
    let notice = Notice::read(&sent[0].1).unwrap();
    assert_eq!((notice.reason, u64::from(notice.unix)), (Reason::Clock, UNIX + TIME_WINDOW + 1));
    // Nor when the sixteen bits come round.
    world.pass((65_536 - TIME_WINDOW - 1) * 1000);
    world.put(sender(), &packet);
    assert_eq!((refused(&world, Reason::Clock), refused(&world, Reason::UnknownWord)), (1, 1));
    assert_eq!(world.relay.counters().forwarded_packets, 1);
}

#[test]
fn a_wide_caveat_is_refused_though_its_mac_is_right() {
    let mut world = World::new(&config());
    let less = Terms { rate: RateClass(0x80), ..terms() };
    let word = world.word(1, less);
    let consent = world.greet(receiver(), 1).unwrap().consent;
    let caveat = Caveat { branch: 1, terms: terms() };
    assert_eq!(word.narrow(caveat), Err(RelayWordError::Wider));
    // So the holder makes it by hand: bytes of a narrowed word with the secret that follows from
    // his own.
    let secret = RelayKey::new(&KEY).secret(word.grant()).narrow(&caveat);
    let plain = Word::new(vec![relay_v4()], *word.grant(), secret).unwrap().to_bytes();
    let mut bytes = plain[..12].to_vec();
    bytes[1] = 1;
    bytes.extend(caveat.to_bytes());
    bytes.extend(&plain[12..]);
    let wide = Word::from_bytes(&bytes).unwrap();
    let hop = world.hop_with(&wide, receiver(), consent);
    let notice = expect_refusal(&mut world, &hop, sender(), Reason::Wider);
    assert_eq!(hop.judge(&notice, world.now), Some(NoticeTrust::Proven));
    // And the holder of a narrowed word cannot strike the caveat out.
    let narrowed = narrowed(&word, 1, |terms| terms.rate = RateClass(0x10)).to_bytes();
    let mut bytes = narrowed[..12].to_vec();
    bytes[1] = 0;
    bytes.extend(&narrowed[19..]);
    let struck = Word::from_bytes(&bytes).unwrap();
    let hop = world.hop_with(&struck, receiver(), consent);
    expect_refusal(&mut world, &hop, sender(), Reason::UnknownWord);
}

#[test]
fn quota_is_by_the_day_and_a_branch_draws_on_both() {
    let mut world = World::new(&config());
    let word = world.word(1, Terms { quota: QuotaClass(8), ..terms() }); // 1 MiB
    let branch = narrowed(&word, 1, |terms| terms.quota = QuotaClass(0)); // 512 KiB
    let (own, other) = (world.hop(&branch, sender(), receiver()), world.hop(&word, sender(), receiver()));
    let carried = |world: &mut World, hop: &Hop| {
        let mut bytes = 0;
        loop {
            let packet = seal(hop, world.now, &[0; 1000]);
            match world.put(sender(), &packet).first() {
                Some((to, _)) if *to == receiver() => bytes += packet.len(),
                _ => return bytes,
            }
        }
    };
    let first = carried(&mut world, &own);
    assert!(first <= 512 << 10 && first > (512 << 10) - 1100);
    let second = carried(&mut world, &other);
    assert!(first + second <= 1 << 20 && first + second > (1 << 20) - 1100);
    world.pass(2_000);
    let notice = expect_refusal(&mut world, &own, sender(), Reason::OverQuota);
    assert_eq!(u64::from(notice.retry_after), 86_400 - (UNIX + 2) % 86_400);
    // The same word under another guise draws on the same account.
    let renewed = world.word(1, Terms { quota: QuotaClass(8), rate: RateClass(0xf0), ..terms() });
    let renewed = world.hop(&renewed, sender(), receiver());
    assert_eq!(carried(&mut world, &renewed), 0);
    world.pass(u64::from(notice.retry_after) * 1000);
    let (own, other) = (world.hop(&branch, sender(), receiver()), world.hop(&word, sender(), receiver()));
    assert!(carried(&mut world, &own) > 500 << 10);
    assert!(carried(&mut world, &other) > 500 << 10);
}

#[test]
fn rate_is_kept_over_time() {
    let mut world = World::new(&config());
    let word = world.word(1, Terms { rate: RateClass::at_most(1 << 20), ..terms() });
    let hop = world.hop(&word, sender(), receiver());
    for _ in 0..10_000 {
        world.pass(1);
        for _ in 0..3 {
            world.put(sender(), &seal(&hop, world.now, &[0; 1000]));
        }
    }
    let carried = world.relay.counters().forwarded_bytes;
    let expected = 10 << 20..=(10 << 20) + (1 << 18); // ten seconds, and the burst
    assert!(expected.contains(&carried), "{carried}");
    assert!(refused(&world, Reason::OverRate) > 10_000);
    let notices = world.relay.counters().notices;
    assert!((9..=11).contains(&notices), "one a second, not {notices}");
}

#[test]
fn words_outlive_a_restart_and_one_roll_but_not_two() {
    let mut world = World::new(&config());
    let word = world.word(1, terms());
    let hop = world.hop(&word, sender(), receiver());
    let mut restarted = World::new(&config());
    assert_eq!(restarted.put(sender(), &seal(&hop, world.now, b"x"))[0].0, receiver());
    assert_eq!(restarted.word(1, terms()), word);
    world.relay.roll(&[8; 32]);
    assert_eq!(world.put(sender(), &seal(&hop, world.now, b"x"))[0].0, receiver());
    assert_eq!(world.put(sender(), &seal(&hop, world.now, b"x"))[0].0, receiver());
    world.relay.roll(&[9; 32]);
    expect_refusal(&mut world, &hop, sender(), Reason::UnknownWord);
    let mut config = Config { previous_key: Some(KEY), ..config() };
    config.key = [8; 32];
    assert_eq!(World::new(&config).put(sender(), &seal(&hop, Instant::ZERO, b"x"))[0].0, receiver());
}

#[test]
fn memory_is_bounded_and_being_pushed_out_refills_nothing() {
    let count = if cfg!(debug_assertions) { 20_000 } else { 1_000_000 };
    let mut world = World::new(&config());
    let consent_key = RelayKey::new(&KEY);
    let quota = Terms { quota: QuotaClass(0), ..terms() };
    let mut first = None;
    for id in 0..count {
        let word = world.word(id, quota);
        let consent = consent_key.consent(id, receiver(), UNIX + 86_400);
        let hop = world.hop_with(&word, receiver(), consent);
        world.put(sender(), &seal(&hop, world.now, &[0; 1000]));
        first.get_or_insert(hop);
    }
    // All 64 accounts owe something today, so the first ones keep theirs, and the others are told.
    assert!(world.relay.accounts() <= 64);
    assert_eq!(world.relay.counters().evicted, 0);
    assert_eq!(world.relay.counters().forwarded_packets, world.relay.accounts() as u64);
    assert_eq!(refused(&world, Reason::Busy), u64::from(count) - world.relay.accounts() as u64);
    let first = first.unwrap();
    while world
        .put(sender(), &seal(&first, world.now, &[0; 1000]))
        .first()
        .is_some_and(|(to, _)| *to == receiver())
    {}
    let spent = world.relay.counters().forwarded_packets;
    assert!(spent < 64 + 512 * 1024 / 1000);
    // Words without a daily limit owe nothing a moment later, and come and go.
    let mut world = World::new(&config());
    for id in 0..count {
        let word = world.word(id, terms());
        let hop = world.hop_with(&word, receiver(), consent_key.consent(id, receiver(), UNIX + 86_400));
        world.put(sender(), &seal(&hop, world.now, &[0; 1000]));
    }
    assert!(world.relay.accounts() <= 64);
    assert_eq!(world.relay.counters().forwarded_packets, u64::from(count));
    assert_eq!(world.relay.counters().evicted, u64::from(count) - world.relay.accounts() as u64);
}

#[test]
fn a_full_queue_drops_counts_and_charges_nobody() {
    let mut world = World::new(&Config { queue_bytes: 5_000, ..config() });
    let word = world.word(1, terms());
    let hop = world.hop(&word, sender(), receiver());
    for _ in 0..10 {
        let mut payload = seal(&hop, world.now, &[0; 1000]);
        let payload = payload.as_mut_slice();
        let (local, remote) = (Local(0), sender());
        let datagram =
            byway_wire::Datagram { local, remote, ecn: Ecn::Ce, arrival: world.now, payload, phantom: 0 };
        world.relay.handle(world.now, Input::Datagram(datagram));
    }
    assert_eq!(world.relay.counters().dropped(Dropped::QueueFull), 6);
    let mut buffer = vec![0; 65_535];
    let sent = world
        .relay
        .transmit(world.now, &mut TransmitBuffer { buffer: &mut buffer, max_segments: 64 })
        .unwrap();
    assert_eq!((sent.size, sent.segment, sent.ecn), (4 * 1037, 1037, Ecn::Ce));
    assert!(world.drain().is_empty());
    assert_eq!(world.put(sender(), &seal(&hop, world.now, &[0; 1000])).len(), 1);
    assert_eq!(world.relay.next_event().map(|event| event.dropped), Some(Dropped::QueueFull));
}

#[test]
fn a_full_socket_takes_nothing_and_the_other_goes_on() {
    let mut world = World::new(&config());
    let other = at("[2a00::9]:2000");
    let word = world.word(1, terms());
    let hops = [receiver(), other].map(|to| (to, world.hop(&word, sender(), to)));
    let put = |world: &mut World, index: usize| {
        let (to, hop) = &hops[index];
        let sent = world.put(sender(), &seal(hop, world.now, &[0; 1000]));
        assert!(sent.iter().all(|(remote, _)| remote == to));
        sent.len()
    };
    let room = |world: &mut World, room| {
        let change = byway_wire::RoomChange { local: Local(0), room };
        world.relay.handle(world.now, Input::Room(change));
    };
    assert_eq!((put(&mut world, 0), put(&mut world, 1)), (1, 1));
    room(&mut world, false);
    assert_eq!((put(&mut world, 0), put(&mut world, 1)), (0, 1));
    assert_eq!(world.relay.counters().dropped(Dropped::QueueFull), 1);
    room(&mut world, true);
    assert_eq!((put(&mut world, 0), put(&mut world, 1)), (1, 1));
}

#[test]
fn greetings_and_hints_are_few() {
    let mut world = World::new(&Config { greetings_per_second: 10, hints_per_second: 10, ..config() });
    let foreign = World::new(&Config::new([6; 32], UNIX * 1000)).word(1, terms());
    let hop = Hop::new(&foreign, relay_v4(), receiver(), Consent { expiry: 0, tag: 0 }, world.clock());
    for _ in 0..1_000 {
        world.pass(1);
        world.greet(receiver(), 1);
        world.put(sender(), &seal(&hop, world.now, &[0; 100]));
    }
    let counters = world.relay.counters();
    assert!((9..=12).contains(&counters.greeted) && (9..=12).contains(&counters.notices), "{counters:?}");
    assert_eq!(counters.dropped(Dropped::Greeting), 1_000 - counters.greeted);
}

#[derive(Clone, Debug)]
enum Step {
    Garbage(Vec<u8>),
    Honest { word: u8, from: u8, to: u8, size: usize },
    Mutant { word: u8, bit: prop::sample::Index, size: usize },
    Cut { word: u8, to: prop::sample::Index },
    Answer { from: u8, size: usize },
    Greet { from: u8, grant: u32, cut: usize },
    Locate { word: u8, from: u8, cookie: u8, looks_up: bool, sequence: u64 },
    Visit { word: Option<u8>, from: u8, cookie: u8, seat: u8, number: u16, page: u8, letter: usize },
    Replay { from: u8 },
    Pass(u64),
    Roll(u8),
}

fn host(number: u8) -> SocketAddr {
    [at("8.8.8.8:1"), at("9.9.9.9:2"), at("[2a00::1]:3"), at("127.0.0.1:4"), at("10.9.0.1:5")]
        [usize::from(number % 5)]
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0x60u8..0x70, prop::collection::vec(any::<u8>(), 0..120)).prop_map(|(kind, mut bytes)| {
            bytes.insert(0, kind);
            Step::Garbage(bytes)
        }),
        (any::<u8>(), any::<u8>(), any::<u8>(), 1usize..1400)
            .prop_map(|(word, from, to, size)| Step::Honest { word, from, to, size }),
        (any::<u8>(), any::<prop::sample::Index>(), 1usize..200).prop_map(|(word, bit, size)| Step::Mutant {
            word,
            bit,
            size
        }),
        (any::<u8>(), any::<prop::sample::Index>()).prop_map(|(word, to)| Step::Cut { word, to }),
        (any::<u8>(), 1usize..300).prop_map(|(from, size)| Step::Answer { from, size }),
        (any::<u8>(), 0u32..4, 0usize..70).prop_map(|(from, grant, cut)| Step::Greet { from, grant, cut }),
        (any::<u8>(), any::<u8>(), any::<u8>(), any::<bool>(), any::<u64>()).prop_map(
            |(word, from, cookie, looks_up, sequence)| Step::Locate {
                word,
                from,
                cookie,
                looks_up,
                sequence
            }
        ),
        (any::<Option<u8>>(), any::<u8>(), any::<u8>(), 0u8..4, 0u16..4, 0u8..2, 0usize..=LETTER_MAX)
            .prop_map(|(word, from, cookie, seat, number, page, letter)| Step::Visit {
                word,
                from,
                cookie,
                seat,
                number,
                page,
                letter
            }),
        any::<u8>().prop_map(|from| Step::Replay { from }),
        (0u64..40_000).prop_map(Step::Pass),
        any::<u8>().prop_map(Step::Roll),
    ]
}

proptest! {
    /// Bytes go only to the sender of the datagram, to a receiver that consented, or back to a
    /// sender that proved its address. `World::put` asserts that no more bytes leave than came in.
    /// The same steps give the same bytes.
    #[test]
    fn whatever_happens_nobody_is_sent_what_he_did_not_ask_for(steps in prop::collection::vec(any_step(), 0..60)) {
        let run = || {
            let mut world = World::new(&config());
            let plain: Vec<Word> = (0..3).map(|id| world.word(id, Terms { rate: RateClass(0x80), ..terms() })).collect();
            let words: Vec<Word> = plain.iter().cloned().chain(plain.iter().map(|word| narrowed(word, 1, |terms| terms.rate = RateClass(0x70)))).collect();
            let (mut greeted, mut log): (Vec<SocketAddr>, Vec<Sent>) = (Vec::new(), Vec::new());
            let (mut delivered, mut last): (Option<Delivered>, Vec<u8>) = (None, vec![0x60]);
            for step in steps.clone() {
                let (from, packet) = match step {
                    Step::Garbage(bytes) => (host(0), bytes),
                    Step::Honest { word, from, to, size } => {
                        let word = &words[usize::from(word) % words.len()];
                        let (Some(a), Some(b)) = (world.greet(host(from), word.grant().id), world.greet(host(to), word.grant().id)) else { continue };
                        greeted.extend([host(from), host(to)]);
                        let mut hop = Hop::new(word, relay_v4(), host(to), b.consent, world.clock());
                        hop.set_cookie(a.cookie);
                        last = seal(&hop, world.now, &vec![0; size]);
                        (host(from), last.clone())
                    }
                    Step::Mutant { word, bit, size } => {
                        let word = &words[usize::from(word) % words.len()];
                        let Some(b) = world.greet(host(1), word.grant().id) else { continue };
                        greeted.push(host(1));
                        let mut packet = seal(&world.hop_with(word, host(1), b.consent), world.now, &vec![0; size]);
                        let bit = bit.index(packet.len() * 8);
                        packet[bit / 8] ^= 1 << (bit % 8);
                        (host(0), packet)
                    }
                    Step::Cut { word, to } => {
                        let word = &words[usize::from(word) % words.len()];
                        let mut packet = seal(&world.hop_with(word, host(1), Consent { expiry: 0, tag: 0 }), world.now, b"xyz");
                        packet.truncate(to.index(packet.len()));
                        (host(0), packet)
                    }
                    Step::Answer { from, size } => {
                        let Some(delivered) = &delivered else { continue };
                        let hop = ReturnHop::new(relay_v4(), delivered);
                        let mut packet = vec![0; hop.room() + size];
                        assert!(hop.seal(&mut packet));
                        (host(from), packet)
                    }
                    Step::Greet { from, grant, cut } => {
                        let mut packet = vec![0; cut];
                        let mut whole = [0; GREET_LEN];
                        Greet { nonce: [1; 8], grant }.write(&mut byway_wire::Writer::new(&mut whole));
                        packet.iter_mut().zip(whole).for_each(|(to, from)| *to = from);
                        (host(from), packet)
                    }
                    Step::Locate { word, from, cookie, looks_up, sequence } => {
                        let word = &words[usize::from(word) % words.len()];
                        let Some(greeted) = world.greet(host(cookie), word.grant().id) else { continue };
                        let action = if looks_up { LocationAction::LookUp } else { LocationAction::Register };
                        let mut packet = [0; GREET_LEN];
                        LocationKey::new(word, &[7; 16]).write(&mut packet, [1; 8], action, greeted.cookie, sequence);
                        last = packet.to_vec();
                        (host(from), last.clone())
                    }
                    Step::Visit { word, from, cookie, seat, number, page, letter } => {
                        let word = word.map(|word| &words[usize::from(word) % words.len()]);
                        let grant = word.map_or(0, |word| word.grant().id);
                        let Some(greeted) = world.greet(host(cookie), grant) else { continue };
                        let number = Some(number).filter(|number| *number != 0);
                        let mut packet = [0; MAILBOX_LEN];
                        MailboxKey::new(word, [seat; 8]).write(&mut packet, [1; 8], (number, page), &[seat; LETTER_MAX][..letter], greeted.cookie);
                        last = packet.to_vec();
                        (host(from), last.clone())
                    }
                    Step::Replay { from } => (host(from), last.clone()),
                    Step::Pass(millis) => { world.pass(millis); continue }
                    Step::Roll(byte) => { world.relay.roll(&[byte; 32]); continue }
                };
                let sent = world.put(from, &packet);
                assert!(sent.len() <= 1);
                for (to, bytes) in &sent {
                    assert!(*to == from || greeted.contains(to), "{to} never asked");
                    if let Ok(header) = Delivered::read(bytes) { delivered = Some(header); }
                }
                log.push(sent);
            }
            let before = world.relay.counters().to_owned();
            world.relay.wake(world.now + Duration::from_secs(1));
            assert_eq!(world.relay.counters(), &before);
            log
        };
        prop_assert_eq!(run(), run());
    }
}
