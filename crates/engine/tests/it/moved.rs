//! A receiver whose address changes: while nobody is there, and in the middle of a transfer. Its
//! ticket names a relay, which remembers where the receiver is.

use crate::common::detours::{
    Detours, KEY, MIB, UNIX, detours, receiver_address, relay, relay_address, seconds, sender_address,
    through, word,
};
use crate::common::{MS, Plan, Receiver, Sender, TICKET_SECRET, address, both, identity, line, parallel};
use byway_engine::{ConnectError, RelayRoute, RelayTrouble};
use byway_relay::{Config as RelayConfig, Policy, Relay};
use byway_sim::{Handle, LinkId};
use byway_wire::relay::{LocationKey, QuotaClass, Reason};
use byway_wire::{Duration, Instant, Local};
use std::sync::Arc;

/// A sender, a relay and a receiver; the direct line is dead.
struct World {
    detours: Detours,
    relay: Handle<Relay>,
    /// From the relay to the receiver, and back.
    far: (LinkId, LinkId),
}

fn world(size: u64, start: u64) -> World {
    let dead = line(10, 10 * MS).partition(Instant::ZERO, Instant::FAR_FUTURE);
    let mut plan = through("background", size, 0);
    plan.start = seconds(start);
    let mut detours = detours(1, plan, &dead, &[]);
    let (from, to, at) = (sender_address(), receiver_address(), relay_address(0));
    let relay = detours.world.add("relay", relay(Instant::ZERO), &[at]);
    let line = line(10, 10 * MS);
    detours.world.connect(from, at, line.clone(), line.clone());
    let far = detours.world.connect(at, to, line.clone(), line);
    let (sender, receiver) = (detours.sender, detours.receiver);
    let word = word(0, QuotaClass::UNLIMITED);
    detours.world.act(receiver, |host, now| {
        host.endpoint.stand_at_for(now, &word, &TICKET_SECRET).unwrap();
    });
    let location_key = Some(Arc::new(LocationKey::new(&word, &TICKET_SECRET)));
    let route = RelayRoute { word: word.clone(), reach: None, location_key };
    detours.world.act(sender, |host, _| host.meet(word, route));
    World { detours, relay, far }
}

impl World {
    fn receiver(&self) -> &Receiver {
        &self.detours.world[self.detours.receiver]
    }

    /// The receiver's router gets another address.
    fn redial(&mut self, fresh: &str) {
        let (fresh, at) = (address(fresh), relay_address(0));
        let receiver = self.detours.receiver;
        self.detours.world.rebind(receiver, Local(0), fresh);
        self.detours.world.route(at, fresh.ip(), &[self.far.0]);
        self.detours.world.route(fresh, at.ip(), &[self.far.1]);
    }

    /// The second after its start in which the sender has connected.
    fn connected_after(&mut self, start: u64) -> f64 {
        let sender = self.detours.sender;
        let limit = Instant::ZERO + seconds(start + 25);
        assert!(self.detours.world.run_while(|world| world[sender].connected_at.is_none(), limit));
        let at = self.detours.world[sender].connected_at.expect("connected");
        at.since(Instant::ZERO + seconds(start)).as_secs_f64()
    }
}

#[test]
fn a_receiver_is_found_at_the_address_that_it_has_when_it_is_dialled() {
    for (redials, start) in
        [(&[][..], 4), (&["77.0.0.1:5000"], 24), (&["77.0.0.1:5000", "78.0.0.1:6000"], 44)]
    {
        let mut world = world(4 * MIB, start);
        for (turn, fresh) in (0..).zip(redials) {
            world.detours.world.run_until(Instant::ZERO + seconds(5 + 20 * turn));
            world.redial(fresh);
        }
        let after = world.connected_after(start);
        println!("{redials:?}: connected after {after:.2} s");
        assert!(after < 0.5, "{after}");
        assert!(world.receiver().is_remembered.iter().all(|is_remembered| *is_remembered));
        assert!(!world.receiver().is_remembered.is_empty());
        world.detours.finish(60, 4 * MIB);
    }
}

#[test]
fn who_dials_before_the_relay_knows_the_new_address_waits_for_it() {
    let mut world = world(4 * MIB, 20);
    world.detours.world.run_until(Instant::ZERO + seconds(19));
    world.redial("77.0.0.1:5000");
    let after = world.connected_after(20);
    println!("connected after {after:.2} s");
    assert!(after < 15.5, "the next keep-alive: {after}");
    world.detours.finish(60, 4 * MIB);
}

#[test]
fn a_receiver_that_moves_in_mid_transfer_is_followed_through_the_relay() {
    for fresh in ["10.0.1.1:61000", "77.0.0.1:5000"] {
        let mut world = world(40 * MIB, 4);
        world.detours.world.run_until(Instant::ZERO + seconds(14));
        world.redial(fresh);
        let before = world.receiver().received;
        world.detours.world.run_until(Instant::ZERO + seconds(20));
        let after = world.receiver().received;
        println!("{fresh}: {before} bytes, and {after} after 6 s");
        assert!(before > MIB && after > before + MIB, "{before} {after}");
        world.detours.finish(90, 40 * MIB);
    }
}

#[test]
fn a_relay_that_starts_anew_knows_the_receiver_within_seconds() {
    for clock_seconds in [UNIX, UNIX - 366 * 86_400, UNIX + 30 * 86_400] {
        let mut world = world(4 * MIB, 40);
        world.detours.world.run_until(Instant::ZERO + seconds(20));
        let mut config = RelayConfig::new(KEY, clock_seconds * 1_000);
        config.policy = Policy::public().allow("10.0.0.0/8".parse().unwrap());
        let now = world.detours.world.now();
        world.detours.world.replace(world.relay, Relay::new(&config, now));
        let after = world.connected_after(40);
        println!("clock {clock_seconds}: connected after {after:.2} s");
        assert!(after < 0.5, "{after}");
        world.detours.finish(60, 4 * MIB);
    }
}

#[test]
fn a_receiver_of_which_the_relay_never_heard_is_told_as_that() {
    let mut world = world(4 * MIB, 4);
    let receiver = world.detours.receiver;
    world.detours.world.freeze(receiver, true);
    let sender = world.detours.sender;
    let limit = Instant::ZERO + seconds(30);
    assert!(world.detours.world.run_while(|world| !world[sender].finished(), limit));
    let host = &world.detours.world[sender];
    assert_eq!(host.failed, Some(ConnectError::NoAnswer));
    assert_eq!(host.troubles, [(relay_address(0), RelayTrouble::Refused(Reason::NoReceiver))]);
}

/// Without any relay: packets of the receiver come from its new address, and the sender tries it.
#[test]
fn a_receiver_that_moves_in_mid_transfer_is_followed_on_the_direct_line() {
    for fresh in ["10.0.1.1:61000", "77.0.0.1:5000"] {
        let mut world = parallel(1, Plan::new("background", &[20 * MIB], &[]), &[both(line(10, 10 * MS))]);
        world.world.run_until(Instant::ZERO + seconds(6));
        let (from, fresh) = (address("10.0.0.1:5000"), address(fresh));
        world.world.rebind(world.receiver, Local(0), fresh);
        let (there, back) = (world.there[0], world.back[0]);
        world.world.route(from, fresh.ip(), &[there]);
        world.world.route(fresh, from.ip(), &[back]);
        let before = world.world[world.receiver].received;
        world.world.run_until(Instant::ZERO + seconds(12));
        let after = world.world[world.receiver].received;
        println!("{fresh}: {before} bytes, and {after} after 6 s");
        assert!(before > MIB && after > before + MIB, "{before} {after}");
    }
}

#[test]
fn one_ticket_serves_eight_nights() {
    backups(8);
}

#[test]
#[ignore = "slow: 20 s"]
fn one_ticket_serves_thirty_nights() {
    backups(30);
}

/// A backup each night, with one ticket. The receiver's router redials each night, an hour before,
/// and the relay is started anew each week.
fn backups(nights: u8) {
    let day = |day: u8, seconds: u64| Instant::ZERO + Duration::from_secs(u64::from(day) * 86_400 + seconds);
    let mut world = byway_sim::World::new(3);
    let (at, to) = (relay_address(0), receiver_address());
    let plan = through("background", MIB, 0);
    let receiver = world.add("receiver", Receiver::new(9, plan.config.clone(), plan.suites), &[to]);
    let relay_node = world.add("relay", relay(Instant::ZERO), &[at]);
    let line = line(10, 10 * MS);
    let (there, back) = world.connect(at, to, line.clone(), line.clone());
    let word = word(0, QuotaClass::UNLIMITED);
    world.act(receiver, |host, now| host.endpoint.stand_at_for(now, &word, &TICKET_SECRET).unwrap());
    let location_key = Some(Arc::new(LocationKey::new(&word, &TICKET_SECRET)));
    let senders: Vec<_> = (0..nights)
        .map(|night| {
            let mut plan = through("background", MIB, 0);
            plan.start = day(night, 4 * 3_600).since(Instant::ZERO);
            let route = RelayRoute { word: word.clone(), reach: None, location_key: location_key.clone() };
            plan.relays.push((word.clone(), Some(route)));
            let from = address(&format!("10.0.200.{}:5000", night + 1));
            let host = Sender::with_key(7, 100 + night, identity(9).public(), plan);
            let host = world.add(&format!("sender {night}"), host, &[from]);
            world.connect(from, at, line.clone(), line.clone());
            host
        })
        .collect();
    let mut slowest = 0.0_f64;
    for night in 0..nights {
        world.run_until(day(night, 3 * 3_600));
        let fresh = address(&format!("77.0.{night}.1:{}", 5_000 + u16::from(night)));
        world.rebind(receiver, Local(0), fresh);
        world.route(at, fresh.ip(), &[there]);
        world.route(fresh, at.ip(), &[back]);
        if night % 7 == 6 {
            world.run_until(day(night, 3 * 3_600 + 1_800));
            let now = world.now();
            world.replace(relay_node, relay(now));
        }
        let (dialled, sender) = (day(night, 4 * 3_600), senders[usize::from(night)]);
        assert!(world.run_while(|world| !world[sender].finished(), dialled + seconds(60)), "night {night}");
        let host = &world[sender];
        assert!(host.done_at.is_some(), "night {night}: {:?} {:?}", host.failed, host.closed);
        let first = host.connected_at.expect("connected").since(dialled).as_secs_f64();
        slowest = slowest.max(first);
    }
    println!("the slowest of {nights} nights connected after {slowest:.2} s");
    assert!(slowest < 10.0, "{slowest}");
}

/// Of a receiver's two sockets the one that registered goes down: the other takes its place.
#[test]
fn another_socket_registers_when_the_first_is_gone() {
    let mut world = byway_sim::World::new(3);
    let (at, from) = (relay_address(0), sender_address());
    let (first, second) = (receiver_address(), address("10.0.1.2:4000"));
    let mut plan = through("background", MIB, 0);
    plan.start = seconds(8);
    let receiver =
        world.add("receiver", Receiver::new(9, plan.config.clone(), plan.suites), &[first, second]);
    world.add("relay", relay(Instant::ZERO), &[at]);
    let word = word(0, QuotaClass::UNLIMITED);
    let location_key = Some(Arc::new(LocationKey::new(&word, &TICKET_SECRET)));
    plan.relays.push((word.clone(), Some(RelayRoute { word: word.clone(), reach: None, location_key })));
    let sender = world.add("sender", Sender::new(7, identity(9).public(), plan), &[from]);
    for end in [first, second, from] {
        world.connect(end, at, line(10, 5 * MS), line(10, 5 * MS));
    }
    world.act(receiver, |host, now| host.endpoint.stand_at_for(now, &word, &TICKET_SECRET).unwrap());
    world.run_until(Instant::ZERO + seconds(5));
    let registered = world[receiver].reachable.first().map(|(_, address, _)| *address);
    let gone = u16::from(registered == Some(second));
    world.set_up(receiver, Local(gone), false);
    assert!(world.run_while(|world| world[sender].connected_at.is_none(), Instant::ZERO + seconds(11)));
}
