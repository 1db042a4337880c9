//! An end host that lends its line: what passes, how it is marked, and what registries are told.

use crate::common::*;
use byway_relay::{COUNTER_READ_INTERVAL, Config, Dropped, LendingConfig};
use byway_uplink::InterfaceCounters;
use byway_wire::heartbeat::{Heartbeat, HeartbeatReport};
use byway_wire::relay::*;
use byway_wire::{Datagram, Dscp, Duration, Ecn, Input, Local, Machine, TransmitBuffer};

fn lending(rate: u64) -> World {
    World::new(&Config { lend: Some(LendingConfig { rate: Some(rate), measured: true }), ..config() })
}

fn yielded(world: &World) -> u64 {
    world.relay.counters().dropped(Dropped::Yielded)
}

/// A look after so long, by which time the host itself sent and received so much.
fn look(world: &mut World, counted: &mut InterfaceCounters, own: u64) {
    world.now += COUNTER_READ_INTERVAL;
    (counted.sent, counted.received) = (counted.sent + own, counted.received + own);
    let now = world.now;
    world.relay.lending().unwrap().look(now, Some(*counted));
}

#[test]
fn nothing_passes_without_a_look_or_beside_a_transfer_of_its_own_and_nothing_of_that_is_charged() {
    let mut world = lending(1 << 20);
    let word = world.word(1, terms());
    let hop = world.hop(&word, sender(), receiver());
    let passes = |world: &mut World| !world.put(sender(), &seal(&hop, world.now, &[7; 963])).is_empty();
    assert!(!passes(&mut world));
    let mut counted = InterfaceCounters::default();
    (0..3).for_each(|_| look(&mut world, &mut counted, 0));
    assert!(passes(&mut world));
    world.now += Duration::from_millis(51);
    assert!(!passes(&mut world), "the look is too old");
    (0..3).for_each(|_| look(&mut world, &mut counted, 30_000));
    assert!(!passes(&mut world), "1.5 MB/s of its own");
    let now = world.now;
    world.relay.lending().unwrap().look(now, None);
    assert!(!passes(&mut world), "no counters");
    assert_eq!((yielded(&world), world.relay.used(now).today), (4, 1_000));
}

#[test]
fn what_it_forwards_is_marked_as_lower_effort() {
    for (lend, dscp) in
        [(Some(LendingConfig { rate: None, measured: false }), Dscp::LowerEffort), (None, Dscp::BestEffort)]
    {
        let mut world = World::new(&Config { lend, ..config() });
        let word = world.word(1, terms());
        let hop = world.hop(&word, sender(), receiver());
        let mut payload = seal(&hop, world.now, &[7; 963]);
        let (local, remote, arrival) = (Local(0), sender(), world.now);
        let datagram = Datagram { local, remote, ecn: Ecn::Ect0, arrival, payload: &mut payload, phantom: 0 };
        world.relay.handle(world.now, Input::Datagram(datagram));
        let mut buffer = [0; 2_000];
        let sent = world
            .relay
            .transmit(world.now, &mut TransmitBuffer { buffer: &mut buffer, max_segments: 1 })
            .unwrap();
        assert_eq!((sent.remote, sent.dscp, sent.ecn), (receiver(), dscp, Ecn::Ect0));
    }
}

#[test]
fn two_end_hosts_make_no_loop() {
    // A packet to one relay whose destination is the other one, with a packet back inside.
    let (mut one, other) = (lending(1 << 20), at("4.4.4.4:4748"));
    let word = one.word(1, terms());
    let consented = one.hop(&word, sender(), receiver());
    let inner = seal(&consented, one.now, &[7; 400]);
    // The other relay greets nobody, so its consent is made up.
    let consent = Consent { tag: 7, ..one.greet(receiver(), 1).unwrap().consent };
    let packet = seal(&one.hop_with(&word, other, consent), one.now, &inner);
    let mut counted = InterfaceCounters::default();
    (0..3).for_each(|_| look(&mut one, &mut counted, 0));
    let sent = one.put(sender(), &packet);
    assert!(sent.iter().all(|(to, _)| *to == sender()), "{sent:?}");
    assert_eq!(one.relay.counters().dropped(Dropped::Refused(Reason::NoConsent)), 1);
}

#[test]
fn registries_hear_whether_it_is_busy_and_what_is_left() {
    let config = Config { per_day: Some(5_000), ..config() };
    let mut world =
        World::new(&Config { lend: Some(LendingConfig { rate: None, measured: false }), ..config });
    let (registry, range) = (at("3.3.3.3:4750"), 5);
    assert!(world.relay.watch(world.now, range, vec![registry], Duration::ZERO));
    let beat = |world: &mut World| -> HeartbeatReport {
        world.now = world.relay.deadline().unwrap().max(world.now);
        world.relay.wake(world.now);
        Heartbeat::read(&world.drain()[0].1).unwrap().report
    };
    let first = beat(&mut world);
    assert_eq!((first.left, first.is_busy()), (5_000, false));
    let word = world.word(1, terms());
    let hop = world.hop(&word, sender(), receiver());
    let packet = seal(&hop, world.now, &[7; 963]);
    assert_eq!(world.put(sender(), &packet).len(), 1);
    world.relay.set_busy(world.now, true);
    let second = beat(&mut world);
    assert_eq!((second.left, second.is_busy()), (4_000, true));
    for _ in 0..10 {
        let packet = seal(&hop, world.now, &[7; 963]);
        world.put(sender(), &packet);
    }
    world.relay.set_busy(world.now, false);
    let third = beat(&mut world);
    assert_eq!((third.left, third.today, third.is_busy()), (0, 5_000, false));
}
