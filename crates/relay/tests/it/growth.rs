//! A table of accounts that grows forgets nobody, and no packet waits for memory.

use crate::common::*;
use crate::heap::Heap;
use byway_relay::{Config, Dropped};
use byway_wire::relay::*;
use byway_wire::{Datagram, Duration, Ecn, Input, Local, Machine, TransmitBuffer};

/// One packet of so many bytes under a word is handled; whether it is delivered.
fn carry(world: &mut World, hop: &Hop, bytes: usize) -> bool {
    let mut payload = seal(hop, world.now, b"x");
    let phantom = bytes - payload.len();
    let before = world.relay.counters().forwarded_packets;
    let (local, ecn, arrival) = (Local(0), Ecn::NotEct, world.now);
    let datagram = Datagram { local, remote: sender(), ecn, arrival, payload: &mut payload, phantom };
    let mut buffer = [0; 2_000];
    let heap = Heap::new();
    world.relay.handle(world.now, Input::Datagram(datagram));
    while world
        .relay
        .transmit(world.now, &mut TransmitBuffer { buffer: &mut buffer, max_segments: 64 })
        .is_some()
    {}
    assert_eq!(heap.calls(), 0);
    world.relay.counters().forwarded_packets > before
}

fn hop(world: &mut World, serial: u32) -> Hop {
    let terms = Terms { quota: QuotaClass(0), ..terms() }; // 512 KiB
    let grant = Grant { id: Minted::new(0, 1, serial).unwrap().id(), terms };
    let secret = world.relay.range_key(0).epoch_key(1).secret(&grant);
    let word = Word::new(vec![relay_v4()], grant, secret).unwrap();
    let consent = RelayKey::new(&KEY).consent(grant.id, receiver(), UNIX + 86_400);
    world.hop_with(&word, receiver(), consent)
}

#[test]
fn the_grants_of_a_day_are_known_until_it_is_over() {
    const GRANTS: u32 = 40_000;
    let heap = Heap::new();
    let mut world = World::new(&Config { accounts: 1 << 18, ..config() });
    let first = heap.held();
    world.relay.set_epoch(world.now, 0, 1, Duration::ZERO);
    let mut refused = 0;
    for serial in 0..GRANTS {
        let hop = hop(&mut world, serial);
        refused += u32::from(!carry(&mut world, &hop, 500_000));
        world.relay.make_room();
    }
    // A set that is full while others have room.
    println!("{refused} of {GRANTS} found no room");
    assert!(refused < GRANTS / 2_000, "{refused}");
    assert_eq!(world.relay.counters().dropped(Dropped::Refused(Reason::Busy)), u64::from(refused));
    assert_eq!(world.relay.accounts(), (GRANTS - refused) as usize);
    assert_eq!(world.relay.counters().evicted, 0);
    // Memory follows the grants.
    let places = GRANTS as isize * 3 + 4_096;
    assert!(first < 16_384 * 300 + (5 << 20), "{first}");
    assert!(heap.held() < places * 300 + (5 << 20), "{}", heap.held());
    let mut again = 0;
    for serial in 0..GRANTS {
        let hop = hop(&mut world, serial);
        again += u32::from(carry(&mut world, &hop, 100_000));
    }
    // Only who was refused before has anything left.
    assert!(again <= refused, "{again}");
}

#[test]
fn a_table_that_nobody_gives_memory_stays_as_it_is_and_one_that_is_full_says_so() {
    for (accounts, room) in [(1 << 18, false), (64, true)] {
        let mut world = World::new(&Config { accounts, ..config() });
        world.relay.set_epoch(world.now, 0, 1, Duration::ZERO);
        for serial in 0..20_000 {
            let hop = hop(&mut world, serial);
            carry(&mut world, &hop, 1_000);
            if room {
                world.relay.make_room();
            }
        }
        let known = world.relay.accounts();
        assert!(known <= accounts.min(16_384), "{known}");
        assert_eq!(world.relay.counters().dropped(Dropped::Refused(Reason::Busy)), 20_000 - known as u64);
    }
}
