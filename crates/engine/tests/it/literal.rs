//! What the papers say word by word, by option, and what a trace can tell.

use crate::common::detours::{
    Detours, MIB, detours, receiver_address, relay_address, seconds, sender_address, through, way,
};
use crate::common::spy::{Log, Told};
use crate::common::{MS, Plan, line};
use byway_control::Trigger;
use byway_engine::connection::Event;
use byway_engine::connection::path::PathState;
use byway_engine::{AckPathRule, Payload, Pnack, Tau};
use byway_sim::TapVerdict;
use byway_wire::{Duration, Instant, PathId};
use std::cell::RefCell;
use std::rc::Rc;

const SIZE: u64 = 8 * MIB;

fn run(mut plan: Plan, direct: Duration, relay: Duration) -> Detours {
    plan.config.payload = Payload::Length;
    let ways = [way(10, relay)].map(|(near, far)| (near.loss(0.002), far));
    detours(1, plan, &line(10, direct).loss(0.002), &ways)
}

/// Bytes sent again, and the most that waited for a hole.
fn repairs(tau: Tau) -> (u64, u64) {
    let mut plan = through("newreno", SIZE, 1);
    plan.config.tau = tau;
    plan.config.repeat_tail = false;
    let mut world = run(plan, 10 * MS, 90 * MS);
    let handle = |world: &Detours| world.world[world.receiver].handles[0];
    let mut most = 0;
    for second in 1..=4 {
        world.world.run_for(seconds(1));
        let (node, handle) = (world.receiver, handle(&world));
        let held = world.world.act(node, |host, _| {
            host.endpoint.connection_mut(handle).map(|connection| connection.incoming().out_of_order())
        });
        let (now, high) = held.expect("a connection");
        assert!(now <= high && high >= most, "{second} s");
        most = high;
    }
    let sender = world.sender;
    let progress = world.world.act(sender, |host, _| {
        let handle = host.handle.expect("connected");
        host.endpoint.connection_mut(handle).map(|connection| connection.outgoing().progress())
    });
    (progress.expect("a connection").repeated, most)
}

/// A τ that the longer path does not fit into has its packets sent again, and holds the buffer
/// smaller.
#[test]
fn tau_follows_the_direct_path_alone() {
    let [short, long, adaptive] = [Tau::Direct(150), Tau::Direct(1_500), Tau::Adaptive].map(repairs);
    println!("(repeated, most out of order): {short:?}, {long:?}, adaptive {adaptive:?}");
    assert!(short.0 > 4 * long.0 && short.0 > 4 * adaptive.0);
    assert!(short.1 < long.1);
}

/// Datagrams from the receiver by the direct line and by the relay.
fn acks(ack_way: AckPathRule) -> (u64, u64) {
    let mut plan = through("newreno", SIZE, 1);
    plan.config.ack_way = ack_way;
    let mut world = run(plan, 40 * MS, 5 * MS);
    let seen = Rc::new(RefCell::new((0, 0)));
    let log = Rc::clone(&seen);
    world.world.tap(move |datagram| {
        if *datagram.from == receiver_address() {
            let mut log = log.borrow_mut();
            log.0 += u64::from(*datagram.to == sender_address());
            log.1 += u64::from(*datagram.to == relay_address(0));
        }
        TapVerdict::Pass
    });
    world.finish(60, SIZE);
    world.world.untap();
    *seen.borrow()
}

#[test]
fn acks_take_the_direct_path_by_option() {
    let (direct, relayed) = acks(AckPathRule::Fastest);
    println!("fastest: {direct} direct, {relayed} by the relay");
    assert!(relayed > 5 * direct);
    let (direct, relayed) = acks(AckPathRule::Direct);
    println!("direct: {direct} direct, {relayed} by the relay");
    assert!(direct > 20 * relayed);
}

/// Jitter makes every late packet a loss for who does not wait.
#[test]
fn a_gap_is_a_loss_at_once_by_option() {
    let undone = |pnack| {
        let mut plan = through("newreno", SIZE, 0);
        plan.config.pnack = pnack;
        let log = Log::default();
        plan.log = Some(Log::clone(&log));
        let mut world = detours(1, plan, &line(10, 10 * MS).reordering(0.02, 3 * MS), &[]);
        world.finish(60, SIZE);
        let told = log.lock().expect("one thread");
        told.iter().filter(|told| matches!(told, Told::Undone(_))).count()
    };
    let (patient, at_once) = (undone(Pnack::Patient), undone(Pnack::FirstGap));
    println!("losses that were none: {patient} patient, {at_once} at the first gap");
    assert!(at_once > 50 && at_once > 10 * patient);
}

/// mPath asks its registration server for more proxies once all are probed (section 2.1). The
/// direct path has met no loss here, so no path is wished for.
#[test]
fn more_relays_are_asked_for_once_all_are_probed_as_published() {
    let asked = |congestion| {
        let mut plan = through(congestion, 40 * MIB, 6);
        plan.config.payload = Payload::Length;
        let direct = line(10, 10 * MS).queue(5_000);
        let ways: Vec<_> = (0..6).map(|relay| way(10, (3 + relay) * MS)).collect();
        let mut world = detours(1, plan, &direct, &ways);
        world.world.run_until(Instant::ZERO + seconds(5));
        world.world[world.sender].events.clone()
    };
    assert_eq!(asked("mpath-literal"), [Event::PathUp(PathId(0)), Event::RelaysUsedUp]);
    let all_used: Vec<_> = (0..7).map(|path| Event::PathUp(PathId(path))).collect();
    let of_class = asked("mpath");
    assert_eq!(of_class.split_last(), Some((&Event::RelaysUsedUp, all_used.as_slice())));
}

#[test]
fn the_life_of_a_path_can_be_told() {
    let log = Log::default();
    let mut plan = through("newreno", SIZE, 1);
    plan.log = Some(Log::clone(&log));
    let mut world = run(plan, 10 * MS, 5 * MS);
    let mut life = Vec::new();
    for _ in 0..300 {
        world.world.run_for(10 * MS);
        let sender = &world.world[world.sender];
        let Some(connection) = sender.handle.and_then(|handle| sender.endpoint.connection(handle)) else {
            continue;
        };
        let status = connection.status();
        let relayed = status.paths.iter().find(|path| path.route.remote == relay_address(0));
        if let Some(path) = relayed
            && life.last() != Some(&path.state)
        {
            life.push(path.state);
        }
    }
    assert_eq!((life.first(), life.last()), (Some(&PathState::Probing), Some(&PathState::Active)));
    let sender = world.sender;
    let handle = world.world[sender].handle.expect("connected");
    let status = world.world[sender].endpoint.connection(handle).expect("a connection").status();
    let [direct, relayed] = status.paths.as_slice() else { panic!("{:?}", status.paths) };
    for path in [direct, relayed] {
        let totals = path.totals;
        assert!(totals.acked > 500 && totals.acked + totals.lost <= totals.packets, "{totals:?}");
        assert!(totals.lost > 0 && totals.lost_bytes > 1_000 * totals.lost, "{totals:?}");
        // A queue of 50 packets is 60 ms at 10 Mbit/s.
        let queueing = path.queueing.expect("measured");
        assert!(queueing < 70 * MS && path.min_rtt + queueing < path.srtt + 40 * MS, "{path:?}");
    }
    assert_eq!((direct.route.remote, relayed.route.remote), (receiver_address(), relay_address(0)));
    let told = log.lock().expect("one thread");
    assert!(told.contains(&Told::Opened(relayed.id)));
    let lost: u64 = told
        .iter()
        .filter_map(|told| match told {
            Told::Congested { path, trigger: Trigger::Loss, bytes } if *path == relayed.id => Some(*bytes),
            _ => None,
        })
        .sum();
    assert!(lost >= relayed.totals.lost_bytes, "{lost} of {:?}", relayed.totals);
}
