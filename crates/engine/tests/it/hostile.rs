//! Peers and strangers that mean harm. They send garbage, replays and damaged packets. A peer with
//! valid keys lies.

use crate::common::liar::{Bench, drain, liar, put};
use crate::common::{MS, Plan, address, both, line, parallel};
use byway_engine::connection::close;
use byway_engine::data::ProtocolError;
use byway_engine::{Config, EndpointEvent, RelayTrouble};
use byway_sim::{Random, TapVerdict};
use byway_wire::frame::ack::{AckWriter, EntryParts};
use byway_wire::frame::{self, Frame, Object, RelayOffer, Stream};
use byway_wire::packet::Handshake;
use byway_wire::relay::MessageType;
use byway_wire::{Duration, Ecn, Instant, Machine, ObjectId, PathId, StreamId, Writer};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

/// A datagram that went by. It is when, from where, to where, and what.
type Recorded = (Instant, SocketAddr, SocketAddr, Vec<u8>);

const MIB: u64 = 1 << 20;

#[test]
fn garbage_changes_nothing() {
    let mut bench = Bench::new(Config::default());
    let (state, before) = (bench.state(), bench.honest.dropped());
    let mut random = Random::component(1, "garbage");
    let mut greetings = 0;
    for round in 0..20_000_u64 {
        let length = random.below(1500) as usize;
        let mut garbage: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
        if let (Some(first), true) = (garbage.first_mut(), round % 2 == 0) {
            *first = (round / 2 % 256) as u8;
        }
        let from = if round % 3 == 0 { liar() } else { SocketAddr::from(([99, 0, 0, round as u8], 6000)) };
        let sent = put(&mut bench.honest, bench.now, from, &garbage);
        // Only what looks like a HELLO of another version is answered, and with less than came.
        let answered: usize = sent.iter().map(|(_, bytes)| bytes.len()).sum();
        assert!(answered * 10 <= length, "{answered} bytes for {length} of garbage");
        greetings += usize::from(answered > 0);
    }
    assert_eq!(bench.state(), state);
    let after = bench.honest.dropped();
    let count = |dropped: byway_engine::endpoint::DropCounters| {
        dropped.unknown + dropped.stray + dropped.forged + dropped.replayed + dropped.hellos
    };
    assert_eq!(count(after) - count(before) + greetings as u64, 20_000, "{after:?}");
    assert!(bench.honest.next_event().is_none());
}

#[test]
fn damaged_and_replayed_packets_change_nothing() {
    let mut bench = Bench::new(Config::default());
    for round in 0..8_u32 {
        let packet = bench.packet(round % 3, |writer| {
            let data = [7; 200];
            let offset = u64::from(round) * 200;
            frame::write_object(writer, &Object { id: ObjectId(1), offset, data: &data, fin: false }, true);
        });
        let (state, before) = (bench.state(), bench.honest.dropped());
        let mut tries = 0;
        for length in 0..packet.len() {
            assert!(put(&mut bench.honest, bench.now, liar(), &packet[..length]).is_empty());
            tries += 1;
        }
        for bit in 0..packet.len() * 8 {
            let mut damaged = packet.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            if damaged[0] != packet[0] && (Handshake::is(damaged[0]) || MessageType::of(damaged[0]).is_some())
            {
                continue; // another kind of packet: that is another test
            }
            let sent = put(&mut bench.honest, bench.now, liar(), &damaged);
            assert!(sent.is_empty(), "bit {bit} changed, and it is answered");
            tries += 1;
        }
        assert_eq!(bench.state(), state);
        let after = bench.honest.dropped();
        assert!(after.forged - before.forged > 1_000, "{after:?}");
        assert_eq!(
            after.unknown + after.stray + after.forged + after.replayed
                - (before.unknown + before.stray + before.forged + before.replayed),
            tries,
            "{before:?} {after:?}"
        );
        // The genuine one is taken, once.
        put(&mut bench.honest, bench.now, liar(), &packet);
        let taken = bench.state();
        for _ in 0..300 {
            assert!(put(&mut bench.honest, bench.now, liar(), &packet).is_empty());
        }
        assert_eq!(bench.state(), taken);
        assert_eq!(bench.honest.dropped().replayed - after.replayed, 300);
    }
    let incoming = bench.honest.connection_mut(bench.handle).unwrap().incoming();
    incoming.flush();
    let received: usize = std::iter::from_fn(|| incoming.next_write()).map(|write| write.data.len()).sum();
    assert_eq!(received, 8 * 200);
}

/// Somebody on the way sends what passed again and again, in everybody's name; and what he holds
/// back, each time with one bit changed.
#[test]
fn of_half_a_million_copies_and_changed_bits_none_is_accepted() {
    const PACKETS: u64 = 600;
    const COPIES: u64 = 800;
    let mut bench = Bench::new(Config::default());
    let data = [3; 1_100];
    let recorded: Vec<Vec<u8>> = (0..PACKETS)
        .map(|number| {
            let offset = number * data.len() as u64;
            let packet = bench.packet((number % 3) as u32, |writer| {
                frame::write_object(
                    writer,
                    &Object { id: ObjectId(0), offset, data: &data, fin: false },
                    false,
                );
            });
            if number % 2 == 0 {
                put(&mut bench.honest, bench.now, liar(), &packet);
            }
            packet
        })
        .collect();
    // What was to be said of them is said.
    for _ in 0..100 {
        bench.now += 100 * MS;
        bench.honest.wake(bench.now);
        drain(&mut bench.honest, bench.now);
        bench.say(0, |writer| Frame::Ping.write(writer));
    }
    drain(&mut bench.honest, bench.now);
    let incoming = |bench: &mut Bench| {
        let incoming = bench.honest.connection_mut(bench.handle).unwrap().incoming();
        (incoming.received(), incoming.held())
    };
    let count = |bench: &Bench| {
        let dropped = bench.honest.dropped();
        dropped.unknown + dropped.stray + dropped.forged + dropped.replayed + dropped.hellos
    };
    let (state, held, before) = (bench.state(), incoming(&mut bench), count(&bench));
    assert_eq!(held.0, PACKETS / 2 * data.len() as u64);
    let mut random = Random::component(1, "changed bits");
    let (mut sent, mut answers) = (0_u64, 0);
    for round in 0..COPIES {
        for pair in recorded.chunks(2) {
            let from = SocketAddr::from(([99, 0, (round >> 8) as u8, round as u8], 6000));
            answers += put(&mut bench.honest, bench.now, from, &pair[0]).len() as u64;
            let mut changed = pair[1].clone();
            let bit = random.below(changed.len() as u64 * 8) as usize;
            changed[bit / 8] ^= 1 << (bit % 8);
            answers += put(&mut bench.honest, bench.now, liar(), &changed).len() as u64;
            sent += 2;
        }
    }
    assert_eq!(sent, 480_000);
    let dropped = bench.honest.dropped();
    println!("{sent} sent, {answers} answered, {dropped:?}");
    assert_eq!((bench.state(), incoming(&mut bench)), (state, held));
    // A changed first byte may make a first message of another version, which is answered with a
    // refusal.
    assert_eq!(count(&bench) - before + answers, sent);
    assert!(
        answers < 100 && dropped.replayed >= sent / 2 && dropped.forged > sent * 2 / 5,
        "{answers} answers"
    );
    assert!(bench.honest.next_event().is_none() && bench.is_open());
    // What was held back is taken as it is.
    recorded
        .iter()
        .skip(1)
        .step_by(2)
        .for_each(|packet| drop(put(&mut bench.honest, bench.now, liar(), packet)));
    assert_eq!(incoming(&mut bench).0, PACKETS * data.len() as u64);
}

/// Somebody on the way records everything and sends it again, damaged, cut and in other names,
/// while a transfer runs.
#[test]
fn a_transfer_under_fire() {
    let (calm, _) = under_fire(false, 0, 0);
    let (fired, dropped) = under_fire(true, 200, 0);
    println!("{calm:?} in peace, {fired:?} under fire, {dropped:?}");
    assert!(dropped.forged > 0 && dropped.replayed > 500 && dropped.unknown > 20, "{dropped:?}");
    assert!(fired < calm * 11 / 10, "{calm:?} {fired:?}");
}

/// The attacker is faster than the network. So his copies are the first to come, from another
/// address (RFC 9000 section 9.3.3).
#[test]
fn a_transfer_whose_copies_come_first() {
    let (calm, _) = under_fire(false, 0, 0);
    // From the first HELLO on, when no address is known to be the peer's, they cost some timeouts:
    // 5.6 s. While the transfer runs they cost a few per cent.
    for (since, most) in [(0, calm + Duration::from_secs(6)), (200, calm * 11 / 10)] {
        let (raced, dropped) = under_fire(true, 0, since);
        println!("{calm:?} in peace, {raced:?} with copies that come first from {since} ms on, {dropped:?}");
        assert!(raced < most, "{calm:?} {raced:?}");
    }
}

/// If packets of a path come from a new address, the host keeps sending to the old one. It moves to
/// the new address only after the peer has shown that it receives there.
#[test]
fn a_path_moves_to_where_the_peer_receives_and_nowhere_else() {
    let mut bench = Bench::new(Config::default());
    let thief = address("99.9.9.9:999");
    let ping = |writer: &mut Writer<'_>| {
        Frame::Ping.write(writer);
        writer.bytes(&[0; 200]);
    };
    let towards = |bench: &Bench| {
        let status = bench.honest.connection(bench.handle).unwrap().status();
        status.paths.iter().map(|path| path.route.remote).collect::<Vec<_>>()
    };
    assert_eq!(towards(&bench), [liar()]);
    let mut asked = Vec::new();
    let (mut came, mut left) = (0, 0);
    for _ in 0..500 {
        bench.now += 10 * MS;
        let packet = bench.packet(0, ping);
        came += packet.len();
        for (to, bytes) in put(&mut bench.honest, bench.now, thief, &packet) {
            if to == thief {
                left += bytes.len();
                asked.push(bytes);
            }
        }
        assert_eq!(towards(&bench), [liar()], "it moved to where nobody proved to receive");
    }
    assert!(
        left <= came && (2..100).contains(&asked.len()),
        "{} times, {left} bytes for {came}",
        asked.len()
    );
    // An answer that comes too late: newer packets came from the old address meanwhile.
    let challenge = bench.challenge_in(asked.last().unwrap());
    bench.say(0, ping);
    bench.say(1, |writer| Frame::PathResponse(challenge).write(writer));
    assert_eq!(towards(&bench), [liar()]);
    // And one in time.
    bench.now += Duration::from_secs(1);
    let packet = bench.packet(0, ping);
    let sent = put(&mut bench.honest, bench.now, thief, &packet);
    let challenge = bench.challenge_in(&sent.iter().find(|(to, _)| *to == thief).unwrap().1);
    let packet = bench.packet(0, |writer| Frame::PathResponse(challenge).write(writer));
    put(&mut bench.honest, bench.now, thief, &packet);
    assert!(towards(&bench).contains(&thief) && bench.is_open(), "{:?}", towards(&bench));
}

/// A NAT gives another port, and again another one before the challenge to the first is answered.
/// No later packet comes from a new address, and the path still moves.
#[test]
fn a_path_moves_although_the_peer_moved_twice_within_a_round_trip() {
    let mut bench = Bench::new(Config::default());
    let [first, second] = ["99.9.9.9:1", "99.9.9.9:2"].map(address);
    let ping = |writer: &mut Writer<'_>| {
        Frame::Ping.write(writer);
        writer.bytes(&[0; 200]);
    };
    let mut challenge = None;
    for step in 0..300 {
        bench.now += 10 * MS;
        let source = if step == 0 { first } else { second };
        let packet = bench.packet(0, ping);
        let sent = put(&mut bench.honest, bench.now, source, &packet);
        challenge = challenge.or(sent.into_iter().find(|(to, _)| *to == second).map(|(_, bytes)| bytes));
    }
    let challenge = bench.challenge_in(&challenge.expect("its newest address is challenged"));
    let packet = bench.packet(0, |writer| Frame::PathResponse(challenge).write(writer));
    put(&mut bench.honest, bench.now, second, &packet);
    let status = bench.honest.connection(bench.handle).unwrap().status();
    assert!(status.paths.iter().any(|path| path.route.remote == second), "{:?}", status.paths);
}

/// The peer comes from an address to which nothing gets through. Such a path is asked with data
/// once. What it lost goes where the peer receives.
#[test]
fn a_path_that_nobody_hears_takes_data_once() {
    let mut bench = Bench::new(Config::default());
    let deaf = address("99.9.9.9:1");
    let out = bench.honest.connection_mut(bench.handle).unwrap().outgoing();
    let stream = out.open_next().unwrap();
    out.write(stream, &[7; 400]);
    let ping = |writer: &mut Writer<'_>| {
        Frame::Ping.write(writer);
        writer.bytes(&[0; 800]);
    };
    let mut carries_data = 0;
    let has_data = |frame: Frame<'_>| matches!(frame, Frame::Stream(_)).then_some(());
    for _ in 0..3_000 {
        bench.now += 10 * MS;
        let packet = bench.packet(1, ping);
        let mut sent = put(&mut bench.honest, bench.now, deaf, &packet);
        bench.honest.wake(bench.now);
        sent.extend(drain(&mut bench.honest, bench.now));
        let asked = sent.iter().filter(|(to, _)| *to == deaf);
        carries_data += asked.filter(|(_, bytes)| bench.frame_in(bytes, has_data).is_some()).count();
    }
    assert_eq!(carries_data, 1);
}

/// Copies of the handshake that come first, and from an address that nobody asked, do not use up
/// the genuine answer.
#[test]
fn an_answer_whose_copy_comes_first() {
    let mut world = parallel(1, Plan::new("mpath", &[MIB], &[]), &[both(line(10, 10 * MS))]);
    let answers: Rc<RefCell<Vec<Recorded>>> = Rc::default();
    let seen = Rc::clone(&answers);
    world.world.tap(move |datagram| {
        if *datagram.from == address("10.0.1.1:4000") && Handshake::is(datagram.payload[0]) {
            let copy = (datagram.now, *datagram.from, *datagram.to, datagram.payload.clone());
            seen.borrow_mut().push(copy);
        }
        TapVerdict::Pass
    });
    for step in 1..60 {
        world.world.run_until(Instant::from_millis(step));
        let now = world.world.now();
        for (_, _, to, bytes) in answers.borrow_mut().drain(..) {
            world.world.inject(now, address("99.9.9.9:999"), to, Ecn::NotEct, &bytes);
        }
    }
    let took = world.finish(Duration::from_secs(5));
    assert!(took < Duration::from_secs(2), "{took:?}");
}

/// A transfer and a recorder that plays copies `age` ms old. It plays from `since` ms on.
fn under_fire(fire: bool, age: u64, since: u64) -> (Duration, byway_engine::endpoint::DropCounters) {
    {
        let mut world = parallel(
            1,
            Plan::new("mpath", &[4 * MIB], &[]),
            &[both(line(10, 10 * MS)), both(line(10, 15 * MS))],
        );
        let recorded: Rc<RefCell<Vec<Recorded>>> = Rc::default();
        let seen = Rc::clone(&recorded);
        world.world.tap(move |datagram| {
            let mut seen = seen.borrow_mut();
            if seen.len() < 4_000 {
                seen.push((datagram.now, *datagram.from, *datagram.to, datagram.payload.clone()));
            }
            TapVerdict::Pass
        });
        let mut random = Random::component(1, "fire");
        for step in 1..150_u64 {
            world.world.run_until(Instant::from_millis(step * 10));
            let now = world.world.now();
            let old = |(at, ..): &&(Instant, SocketAddr, SocketAddr, Vec<u8>)| {
                *at + Duration::from_millis(age) <= now
            };
            let recorded: Vec<_> = recorded.borrow().iter().filter(old).cloned().collect();
            let fire = fire && !recorded.is_empty() && step * 10 > since;
            for _ in 0..if fire { 80 } else { 0 } {
                let (_, mut from, to, mut bytes) =
                    recorded[random.below(recorded.len() as u64) as usize].clone();
                match random.below(4) {
                    0 => {}
                    1 => bytes.truncate(random.below(bytes.len() as u64) as usize),
                    2 => from = address("99.9.9.9:999"),
                    _ => {
                        let at = random.below(bytes.len() as u64) as usize;
                        bytes[at] ^= 1 << random.below(8);
                    }
                }
                world.world.inject(now, from, to, Ecn::Ect0, &bytes);
            }
        }
        let took = world.finish(Duration::from_secs(30));
        let dropped = world.world[world.receiver].endpoint.dropped();
        assert_eq!(
            (world.world[world.receiver].received, world.world[world.receiver].handles.len()),
            (4 * MIB, 1)
        );
        (took, dropped)
    }
}

#[test]
fn an_ack_of_what_was_never_sent() {
    for (path, largest) in [(0, 1_000), (0, 1 << 40), (3, 0), (1 << 20, 0)] {
        let mut bench = Bench::new(Config::default());
        let sent = bench.say(0, |writer| {
            let mut ack = AckWriter::begin(writer);
            let parts = EntryParts {
                path: PathId(path),
                lost: 0,
                ce: 0,
                arrival: 0,
                held_micros: 0,
                ranges: &[(largest, largest + 1)],
                stamps: &[],
            };
            assert!(ack.entry(writer, &parts));
            ack.finish(writer);
        });
        bench.closed_with(&sent, close::VIOLATION_CODE);
    }
}

#[test]
fn losses_and_holes_of_what_was_never_sent() {
    let mut bench = Bench::new(Config::default());
    for round in 0..2_000_u64 {
        bench.say(0, |writer| {
            frame::write_pnack(writer, PathId((round % 5) as u32), &[(round, round + 1), (1 << 40, 1 << 50)]);
            frame::write_snack_object(writer, ObjectId(round as u32), &[(0, 1 << 60)]);
            frame::write_snack_stream(writer, StreamId(round as u32), &[(5, 9)]);
        });
    }
    assert!(bench.is_open());
}

#[test]
fn more_than_flow_control_allows() {
    let mut config = Config::default();
    config.incoming.memory = 64 << 10;
    config.incoming.stream_window = 32 << 10;
    let code = close::DATA_CODE_OFFSET + ProtocolError::FLOW_CONTROL;
    let data = [1; 100];
    let mut bench = Bench::new(config.clone());
    let object = Object { id: ObjectId(0), offset: 70_000, data: &data, fin: false };
    let sent = bench.say(0, |writer| frame::write_object(writer, &object, true));
    if bench.is_open() {
        // Bytes count, not offsets: fill the window, and one more.
        for chunk in 0..700 {
            let object = Object { id: ObjectId(0), offset: chunk * 100, data: &data, fin: false };
            let sent = bench.say(0, |writer| frame::write_object(writer, &object, true));
            if !bench.is_open() {
                assert!(chunk > 600, "{chunk}");
                bench.closed_with(&sent, code);
                break;
            }
        }
        assert!(!bench.is_open(), "it took more than its window");
    } else {
        bench.closed_with(&sent, code);
    }
    let mut bench = Bench::new(config);
    let stream = Stream { id: StreamId(0), offset: 33_000, data: &data, fin: false };
    let sent = bench.say(0, |writer| frame::write_stream(writer, &stream, true));
    bench.closed_with(&sent, code);
}

#[test]
fn more_streams_and_objects_than_allowed() {
    let data = [1; 1];
    let code = close::DATA_CODE_OFFSET + ProtocolError::STREAM_LIMIT;
    let limits = Config::default().incoming;
    for objects in [true, false] {
        let mut bench = Bench::new(Config::default());
        let mut opened = 0;
        let limit = if objects { limits.objects } else { limits.streams };
        let sent = loop {
            let sent = bench.say(0, |writer| {
                if objects {
                    let object = Object { id: ObjectId(opened), offset: 0, data: &data, fin: false };
                    frame::write_object(writer, &object, true);
                } else {
                    let stream = Stream { id: StreamId(opened * 2), offset: 0, data: &data, fin: false };
                    frame::write_stream(writer, &stream, true);
                }
            });
            if !bench.is_open() {
                break sent;
            }
            opened += 1;
            assert!(opened as usize <= limit, "more than {limit}");
        };
        assert_eq!(opened as usize, limit);
        bench.closed_with(&sent, code);
    }
}

#[test]
fn ends_that_move() {
    let data = [1; 100];
    let mut bench = Bench::new(Config::default());
    let at = |offset, fin| Object { id: ObjectId(0), offset, data: &data, fin };
    bench.say(0, |writer| frame::write_object(writer, &at(100, true), true));
    let sent = bench.say(0, |writer| frame::write_object(writer, &at(200, false), true));
    bench.closed_with(&sent, close::DATA_CODE_OFFSET + ProtocolError::FINAL_SIZE);
}

#[test]
fn what_is_no_frame() {
    let mut bench = Bench::new(Config::default());
    let sent = bench.say(0, |writer| writer.bytes(&[0xff, 0xff, 0xff]));
    bench.closed_with(&sent, close::MALFORMED_CODE);
}

/// An owner whose peer offers relay after relay must not become a source of datagrams to whomever
/// the peer likes.
#[test]
fn a_flood_of_relay_offers() {
    let mut bench = Bench::new(Config::default());
    let mut sent = Vec::new();
    for number in 0..10_000_u32 {
        let relay = SocketAddr::from(([99, (number >> 8) as u8, number as u8, 1], 4748));
        sent.extend(bench.say(0, |writer| {
            Frame::RelayOffer(RelayOffer { offer: number, relay, grant: number }).write(writer);
        }));
        if number % 50 == 0 {
            bench.now += MS;
        }
    }
    for _ in 0..3_000 {
        bench.now += 10 * MS;
        bench.honest.wake(bench.now);
        sent.extend(drain(&mut bench.honest, bench.now));
        if bench.now > Instant::from_millis(20_000) {
            break;
        }
    }
    let mut greeted: BTreeMap<SocketAddr, usize> = BTreeMap::new();
    for (to, _) in sent.iter().filter(|(to, _)| *to != liar()) {
        *greeted.entry(*to).or_default() += 1;
    }
    println!("{} relays greeted, at most {:?} times", greeted.len(), greeted.values().max());
    assert!(greeted.len() <= 256, "{}", greeted.len());
    assert!(greeted.values().all(|times| *times <= 6), "{greeted:?}");
    assert!(bench.is_open());
}

/// An offer may name any address; nothing is sent to one that cannot be a relay's.
#[test]
fn offers_of_what_cannot_be_a_relay() {
    let mut bench = Bench::new(Config::default());
    let addresses = [
        "0.0.0.0:4748",
        "127.0.0.1:22",
        "224.0.0.251:5353",
        "255.255.255.255:9",
        "192.0.2.77:0",
        "[::ffff:127.0.0.1]:22",
    ]
    .map(address);
    let mut sent = Vec::new();
    for (number, relay) in (0..).zip(addresses) {
        sent.extend(bench.say(0, |writer| {
            Frame::RelayOffer(RelayOffer { offer: number, relay, grant: number }).write(writer);
        }));
    }
    for _ in 0..100 {
        bench.now += 10 * MS;
        bench.honest.wake(bench.now);
        sent.extend(drain(&mut bench.honest, bench.now));
    }
    assert!(
        sent.iter().all(|(to, _)| *to == liar()),
        "{:?}",
        sent.iter().map(|(to, _)| to).collect::<Vec<_>>()
    );
    let mut refused = Vec::new();
    while let Some(event) = bench.honest.next_event() {
        if let EndpointEvent::RelayTrouble(_, relay, RelayTrouble::Unfit(_)) = event {
            refused.push(relay);
        }
    }
    assert_eq!(refused, addresses);
    assert!(bench.is_open());
    // Of one that can be, this is not said.
    let relay = address("99.0.0.1:4748");
    let greeted = bench.say(0, |writer| {
        Frame::RelayOffer(RelayOffer { offer: 9, relay, grant: 9 }).write(writer);
    });
    assert!(greeted.iter().any(|(to, _)| *to == relay));
}

/// Paths and challenges without end: state stays bounded, and so does what is sent to addresses
/// that proved nothing.
#[test]
fn floods_of_paths_addresses_and_challenges() {
    let mut bench = Bench::new(Config::default());
    let (mut came, mut left): (BTreeMap<SocketAddr, usize>, BTreeMap<SocketAddr, usize>) = Default::default();
    for number in 0..20_000_u32 {
        let from = SocketAddr::from(([99, 0, (number >> 8) as u8, number as u8], 6000));
        let packet = bench.packet(number % 60, |writer| {
            Frame::PathChallenge(u64::from(number).to_be_bytes()).write(writer);
            Frame::Ping.write(writer);
        });
        *came.entry(from).or_default() += packet.len();
        for (to, bytes) in put(&mut bench.honest, bench.now, from, &packet) {
            *left.entry(to).or_default() += bytes.len();
        }
        if number % 10 == 0 {
            bench.now += MS;
            bench.honest.wake(bench.now);
            for (to, bytes) in drain(&mut bench.honest, bench.now) {
                *left.entry(to).or_default() += bytes.len();
            }
        }
    }
    for (to, bytes) in left.iter().filter(|(to, _)| **to != liar()) {
        assert!(bytes <= &came[to], "{to}: {bytes} bytes for {}", came[to]);
    }
    let paths = bench.honest.connection(bench.handle).unwrap().status().paths.len();
    println!("{paths} paths");
    assert!(paths <= 128, "{paths} paths back");
}

/// A path that is over stays over, however many came after it; and what lives goes on living.
#[test]
fn ids_of_paths_that_are_over_stay_over() {
    let mut bench = Bench::new(Config::default());
    let ping = |bench: &mut Bench, path| bench.say(path, |writer| Frame::Ping.write(writer));
    for path in 1..20_000 {
        ping(&mut bench, path);
        bench.say(0, |writer| Frame::PathDropped(PathId(path)).write(writer));
        // Of some neither is ever said, which a peer has no reason for.
        if path % 100 == 0 {
            bench.now += MS;
            bench.say(0, |writer| Frame::PathDropped(PathId(path + 20)).write(writer));
        }
    }
    let before = bench.honest.dropped();
    for path in (1..20_000).step_by(7) {
        // The next of the path's packets, sealed as it has to be.
        ping(&mut bench, path);
    }
    let after = bench.honest.dropped();
    assert_eq!(after.stray - before.stray, (1..20_000).step_by(7).len() as u64, "{after:?}");
    assert!(bench.is_open());
    let sent = ping(&mut bench, 0);
    assert!(!sent.is_empty(), "the first path is heard no more");
    ping(&mut bench, 20_050);
    assert_eq!(bench.honest.dropped(), after);
}
