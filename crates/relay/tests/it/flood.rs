//! Datagrams by the million: no memory, few answers, and nothing sent to who did not ask for it.

use crate::common::*;
use crate::heap::Heap;
use byway_relay::{Config, Dropped};
use byway_wire::relay::*;
use byway_wire::{Datagram, Ecn, Input, Local, Machine, TransmitBuffer};
use std::net::SocketAddr;

const MANY: u64 = 1_000_000;
/// Datagrams per simulated second.
const PER_SECOND: u64 = 100_000;

/// What left, and how much of it went to who had just sent something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Left {
    back: u64,
    receiver: u64,
    elsewhere: u64,
    allocations: u64,
}

/// Sends `MANY` datagrams that `make` writes into the buffer; it gives their length and source.
fn flood(world: &mut World, mut make: impl FnMut(u64, &mut [u8]) -> (usize, SocketAddr)) -> Left {
    let (mut payload, mut buffer) = (vec![0; 1_500], vec![0; 65_535]);
    let mut left = Left::default();
    let heap = Heap::new();
    for number in 0..MANY {
        let (length, remote) = make(number, &mut payload);
        let (local, ecn, payload) = (Local(0), Ecn::NotEct, &mut payload[..length]);
        let datagram = Datagram { local, remote, ecn, arrival: world.now, payload, phantom: 0 };
        world.relay.handle(world.now, Input::Datagram(datagram));
        let mut bytes = 0;
        let mut out = TransmitBuffer { buffer: &mut buffer, max_segments: 64 };
        while let Some(sent) = world.relay.transmit(world.now, &mut out) {
            bytes += sent.size;
            match sent.remote {
                to if to == remote => left.back += 1,
                to if to == receiver() => left.receiver += 1,
                _ => left.elsewhere += 1,
            }
        }
        assert!(bytes <= length, "{bytes} bytes for {length}");
        while world.relay.next_event().is_some() {}
        if number % (PER_SECOND / 1_000) == 0 {
            world.pass(1);
        }
    }
    left.allocations = heap.calls();
    left
}

fn somebody(number: u64) -> SocketAddr {
    SocketAddr::from(([8, (number >> 16) as u8, (number >> 8) as u8, number as u8], 1000))
}

/// Cheap numbers that look like nothing.
fn mix(number: u64) -> u64 {
    let mixed = (number ^ (number >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

#[test]
fn garbage() {
    let mut world = World::new(&config());
    let left = flood(&mut world, |number, payload| {
        let length = mix(number) as usize % 130;
        for (at, bytes) in payload[..length].chunks_mut(8).enumerate() {
            let word = mix(number.wrapping_mul(31).wrapping_add(at as u64)).to_be_bytes();
            bytes.copy_from_slice(&word[..bytes.len()]);
        }
        payload[0] = if number % 2 == 0 { 0x60 + (number / 2 % 16) as u8 } else { payload[0] };
        (length, somebody(number))
    });
    let counters = *world.relay.counters();
    println!("{left:?} {counters:?}");
    assert_eq!((left.receiver, left.elsewhere, left.allocations), (0, 0, 0));
    assert_eq!((world.relay.accounts(), counters.forwarded_packets, counters.returned_packets), (0, 0, 0));
    // Ten seconds of hints to who seems to hold a word, and of answered greetings: what was
    // configured, and a burst.
    let config = config();
    let most = 11 * (config.hints_per_second + config.greetings_per_second);
    assert!(left.back <= most && counters.notices <= 11 * config.hints_per_second, "{left:?} {counters:?}");
}

#[test]
fn forged_words_in_everybodys_name() {
    let mut world = World::new(&config());
    let word = world.word(1, terms());
    let hop = world.hop(&word, sender(), receiver());
    let good = seal(&hop, world.now, &[0; 200]);
    let left = flood(&mut world, |number, payload| {
        payload[..good.len()].copy_from_slice(&good);
        // Another grant, another MAC, or another inner packet.
        let at = [11, 1, 100][number as usize % 3];
        payload[at..at + 8]
            .iter_mut()
            .zip((number + 1).to_be_bytes())
            .for_each(|(byte, other)| *byte ^= other);
        (good.len(), somebody(number))
    });
    let counters = *world.relay.counters();
    println!("{left:?} {counters:?}");
    assert_eq!((left.receiver, left.elsewhere, left.allocations), (0, 0, 0));
    assert_eq!((world.relay.accounts(), counters.forwarded_packets), (0, 0));
    // Sixteen bits tell a cookie that this relay made, under either of its keys.
    let by_chance = counters.dropped(Dropped::Refused(Reason::StaleCookie));
    assert_eq!(counters.dropped(Dropped::Refused(Reason::UnknownWord)) + by_chance, MANY);
    assert!(by_chance < MANY / 10_000, "{by_chance}");
    assert!(left.back <= 11 * config().hints_per_second, "{left:?}");
}

/// An observer's copies pass for [`TIME_WINDOW`] seconds, to the receiver alone and out of the
/// account, and then never again.
#[test]
fn copies_of_a_good_packet() {
    let mut world = World::new(&config());
    let quota = Terms { quota: QuotaClass::at_most(20 << 20), ..terms() };
    let word = world.word(1, quota);
    let hop = world.hop(&word, sender(), receiver());
    let good = seal(&hop, world.now, &[0; 200]);
    // From the sender's own address and from others: those are refused, since the cookie is not
    // theirs.
    let left = flood(&mut world, |number, payload| {
        payload[..good.len()].copy_from_slice(&good);
        (good.len(), if number % 2 == 0 { sender() } else { somebody(number) })
    });
    println!("{left:?} {:?}", world.relay.counters());
    assert_eq!((left.elsewhere, left.allocations, world.relay.accounts()), (0, 0, 1));
    let carried = left.receiver * good.len() as u64;
    assert!((10 << 20..=20 << 20).contains(&carried), "{carried}");
    // To the sender one notice a second about its quota; to the others the relay's few hints.
    assert!(left.back <= 11 + 11 * config().hints_per_second, "{left:?}");
    world.pass(1_000 * TIME_WINDOW + 86_400_000);
    assert!(world.put(sender(), &good).iter().all(|(to, _)| *to == sender()), "a day later it passes");
}

/// Holders of genuine relay words (credentials for one relay) whose packets must be refused. The
/// receiver did not consent to this word, or the word has expired. Or the word has no quota left,
/// or its holder wrote higher limits into it.
#[test]
fn holders_who_ask_for_too_much() {
    let config = Config { notices_per_second: 50, ..config() };
    let mut world = World::new(&config);
    let expired = world.word(2, Terms { expiry: Minute::from_unix(UNIX), ..terms() });
    let little = world.word(3, Terms { quota: QuotaClass(0), ..terms() });
    let word = world.word(1, terms());
    // Narrowed by hand to more than the word allows, and sealed as is right for that.
    let narrow = world.word(4, Terms { rate: RateClass(0x10), ..terms() });
    let wide = Caveat { branch: 1, terms: terms() };
    let secret = RelayKey::new(&KEY).secret(narrow.grant()).narrow(&wide);
    let plain = Word::new(vec![relay_v4()], *narrow.grant(), secret).unwrap().to_bytes();
    let mut bytes = plain[..12].to_vec();
    bytes[1] = 1;
    bytes.extend(wide.to_bytes());
    bytes.extend(&plain[12..]);
    let wide = Word::from_bytes(&bytes).unwrap();
    let mut packets = Vec::new();
    let mut packet = |world: &mut World, hop: &Hop| packets.push(seal(hop, world.now, &[0; 200]));
    let consent = world.greet(receiver(), 2).unwrap().consent;
    let hops = [
        world.hop_with(&word, receiver(), consent),
        world.hop_with(&expired, receiver(), consent),
        world.hop(&little, sender(), receiver()),
        world.hop(&wide, sender(), receiver()),
    ];
    hops.iter().for_each(|hop| packet(&mut world, hop));
    let left = flood(&mut world, |number, payload| {
        let packet = &packets[number as usize % packets.len()];
        payload[..packet.len()].copy_from_slice(packet);
        (packet.len(), sender())
    });
    let counters = *world.relay.counters();
    println!("{left:?} {counters:?}");
    assert_eq!((left.elsewhere, left.allocations), (0, 0));
    assert!(left.receiver * packets[2].len() as u64 <= 512 << 10, "{left:?}");
    assert!(left.back <= 11 * config.notices_per_second, "{left:?}");
    for reason in [Reason::NoConsent, Reason::Expired, Reason::Wider] {
        assert_eq!(counters.dropped(Dropped::Refused(reason)), MANY / 4);
    }
    assert!(world.relay.accounts() <= 1, "only who may pass takes a place");
}
