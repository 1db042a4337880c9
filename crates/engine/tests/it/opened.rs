//! Both ends are behind NATs that let in only what answers, and meet through a relay: the direct
//! path opens by itself.

use crate::common::detours::{
    Detours, MIB, detours, receiver_address, relay, relay_address, seconds, sender_address, through, word,
};
use crate::common::{MS, TICKET_SECRET, address, line};
use byway_engine::RelayRoute;
use byway_engine::connection::Event;
use byway_relay::Relay;
use byway_sim::{Handle, LinkId, NodeId, TapVerdict};
use byway_wire::relay::{LocationKey, QuotaClass};
use byway_wire::{Duration, Instant, Local};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// The second in which the sender dials.
const START: u64 = 4;

/// A sender and a receiver behind NATs, with a direct line of 24 Mbit/s and a relay of 8 Mbit/s.
struct World {
    detours: Detours,
    relay: Handle<Relay>,
    /// Links from sender to relay, and from relay to receiver; each there and back.
    links: [(LinkId, LinkId); 2],
}

/// `lifetimes`: after what time each NAT forgets; the sender's first.
fn world(size: u64, lifetimes: [Duration; 2]) -> World {
    let mut plan = through("background", size, 0);
    plan.start = seconds(START);
    let mut detours = detours(1, plan, &line(24, 10 * MS), &[]);
    let (from, to, at) = (sender_address(), receiver_address(), relay_address(0));
    let relay = detours.world.add("relay", relay(Instant::ZERO), &[at]);
    let near = detours.world.connect(from, at, line(100, 5 * MS), line(100, 5 * MS));
    let far = detours.world.connect(at, to, line(8, 15 * MS), line(100, 15 * MS));
    let (sender, receiver) = (detours.sender, detours.receiver);
    detours.world.set_nat_filter(sender, Local(0), Some(lifetimes[0]));
    detours.world.set_nat_filter(receiver, Local(0), Some(lifetimes[1]));
    let word = word(0, QuotaClass::UNLIMITED);
    detours.world.act(receiver, |host, now| {
        host.endpoint.stand_at_for(now, &word, &TICKET_SECRET).unwrap();
    });
    let location_key = Some(Arc::new(LocationKey::new(&word, &TICKET_SECRET)));
    let route = RelayRoute { word: word.clone(), reach: None, location_key };
    detours.world.act(sender, |host, _| host.meet(word, route));
    World { detours, relay, links: [near, far] }
}

impl World {
    /// Bytes that arrived, and those that the relay carried, until so many seconds after the dial.
    fn after(&mut self, seconds_after: u64) -> (u64, u64) {
        self.detours.world.run_until(Instant::ZERO + seconds(START + seconds_after));
        let relayed = self.detours.world[self.relay].counters().forwarded_bytes;
        (self.detours.world[self.detours.receiver].received, relayed)
    }
}

#[test]
fn a_direct_path_opens_between_two_nats() {
    for lifetime in [20, 120] {
        let mut world = world(300 * MIB, [seconds(lifetime); 2]);
        let marks = [2, 8, 20, 45, 60].map(|after| world.after(after));
        println!("{lifetime} s: {marks:?}");
        let [at_two, at_eight, at_twenty, late, later] = marks;
        let mbit = |from: (u64, u64), to: (u64, u64), time: f64| (to.0 - from.0) as f64 * 8e-6 / time;
        assert!(at_two.0 > 2 * at_two.1, "direct data within two seconds");
        assert!(mbit(at_eight, at_twenty, 12.0) > 20.0);
        assert_eq!(at_eight.1, at_twenty.1, "the direct path has taken the relay's place");
        assert!(mbit(late, later, 15.0) > 26.0, "the relay adds to the direct path, and is back");
    }
}

/// Gives each destination another port, as a symmetric NAT does: what comes from the relay's port
/// is all that gets in.
fn symmetric(world: &mut World, host: &str, port: u16) {
    let (own, relay) = (address(&format!("{host}:{port}")), relay_address(0));
    world.detours.world.tap(move |seen| {
        let strange = address(&format!("{}:{}", own.ip(), own.port() + 1_000));
        // Out: to any but the relay by another port. In: to the known port from the relay alone.
        if *seen.from == own && *seen.to != relay {
            *seen.from = strange;
        }
        if *seen.to == own && *seen.from != relay { TapVerdict::Drop } else { TapVerdict::Pass }
    });
}

#[test]
fn behind_a_symmetric_nat_the_relay_stays() {
    for (host, port) in [("10.0.0.1", 5_000), ("10.0.1.1", 4_000)] {
        let mut world = world(40 * MIB, [seconds(120); 2]);
        symmetric(&mut world, host, port);
        let (received, relayed) = world.after(20);
        println!("{host}: {received} bytes, {relayed} by the relay");
        assert!(received > 12 * MIB && relayed > received, "{received} {relayed}");
        let sender = &world.detours.world[world.detours.sender];
        let receiver = receiver_address().ip();
        let tells_why =
            |event: &Event| matches!(event, Event::PathUnopened { remote, .. } if remote.ip() == receiver);
        assert!(sender.events.iter().any(tells_why), "{:?}", sender.events);
    }
}

/// Who asks has openings sent to hosts of its choice: few, small, and to single hosts only.
#[test]
fn who_asks_makes_the_peer_send_little() {
    let mut world = world(40 * MIB, [seconds(120); 2]);
    let counted = Rc::new(Cell::new((0_u64, 0_u64)));
    let seen_by_tap = Rc::clone(&counted);
    world.detours.world.tap(move |seen| {
        if seen.payload.first() == Some(&0x6b) {
            let (packets, bytes) = seen_by_tap.get();
            assert!(seen.payload.len() <= 64 && !seen.to.ip().is_multicast());
            seen_by_tap.set((packets + 1, bytes + seen.payload.len() as u64));
        }
        TapVerdict::Pass
    });
    world.after(10);
    assert_eq!(counted.get(), (5, 45), "to one address");
}

/// Both routers redial in the same moment: the direct path is gone, the relay leads on, and another
/// direct path opens.
#[test]
fn both_sides_may_move_at_once() {
    let mut world = world(300 * MIB, [seconds(120); 2]);
    let (before, _) = world.after(8);
    let (at, mut moves) = (relay_address(0), Vec::new());
    let hosts =
        [(world.detours.sender.into(), "77.0.0.1:5000"), (world.detours.receiver.into(), "78.0.0.1:4000")];
    for (host, fresh) in hosts {
        let host: NodeId = host;
        world.detours.world.rebind(host, Local(0), address(fresh));
        moves.push(address(fresh));
    }
    let [(near, near_back), (far, far_back)] = world.links;
    let net = &mut world.detours.world;
    let [direct, direct_back] = ["direct", "back"].map(|name| net.link(name, line(24, 10 * MS)));
    net.route(moves[0], at.ip(), &[near]);
    net.route(at, moves[0].ip(), &[near_back]);
    net.route(at, moves[1].ip(), &[far]);
    net.route(moves[1], at.ip(), &[far_back]);
    net.route(moves[0], moves[1].ip(), &[direct]);
    net.route(moves[1], moves[0].ip(), &[direct_back]);
    let (soon, relayed) = world.after(18);
    let (later, relayed_later) = world.after(48);
    println!("{before}, {soon} after 10 s, {later} after 40 s; by the relay {relayed}, {relayed_later}");
    assert!(soon > before + MIB, "the relay leads on");
    let direct = (later - soon) - (relayed_later - relayed).min(later - soon);
    assert!(direct > 20 * MIB, "a direct path opens again: {direct}");
}
