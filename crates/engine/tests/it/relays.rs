//! Transfers through relays in simulated worlds: beside the direct path, instead of it, and while
//! relays come and go.

use crate::common::detours::{
    Detours, KEY, MIB, UNIX, detours, receiver_address, relay, relay_address, seconds, sender_address,
    through, way, word,
};
use crate::common::{MS, Plan, Receiver, Sender, TICKET_SECRET, address, identity, line, relay_route};
use byway_engine::connection::Event;
use byway_engine::{ConnectError, RelayTrouble};
use byway_relay::{Config as RelayConfig, Dropped, Relay};
use byway_sim::{PipeConfig, World};
use byway_wire::relay::{Grant, Minute, QuotaClass, Reason, RelayKey, Terms};
use byway_wire::{Duration, Input, Instant, Local, Machine, PathId, SendError, SendErrorKind};

#[test]
fn direct_and_two_relays() {
    for congestion in ["background", "mpath", "newreno"] {
        let plan = through(congestion, 16 * MIB, 2);
        let mut world = detours(1, plan, &line(10, 10 * MS), &[way(10, 5 * MS), way(10, 10 * MS)]);
        let took = world.finish(30, 16 * MIB);
        let rate = 134.2 / took.as_secs_f64();
        println!("{congestion}: {took:?}, {rate:.1} of 30 Mbit/s, by relay {:?}", world.forwarded());
        assert!(rate > 20.0 && world.forwarded().iter().all(|bytes| *bytes > 3 * MIB), "{rate}");
    }
}

/// A receiver behind a firewall: its ticket says by which relays it can be reached, and nothing
/// else works.
#[test]
fn only_relays() {
    for (congestion, loss) in [("background", 0.0), ("mpath", 0.0), ("newreno", 0.0), ("newreno", 0.05)] {
        let dead = line(10, 10 * MS).partition(Instant::ZERO, Instant::FAR_FUTURE);
        let mut plan = through(congestion, 4 * MIB, 0);
        plan.start = seconds(5);
        let ways = [way(10, 5 * MS), way(10, 10 * MS)].map(|(near, far)| (near.loss(loss), far.loss(loss)));
        let mut world = detours(1, plan, &dead, &ways);
        let receiver = world.receiver;
        world.world.act(receiver, |host, now| {
            for index in 0..2 {
                host.endpoint.stand_at(now, &word(index, QuotaClass::UNLIMITED)).unwrap();
            }
        });
        world.world.run_until(Instant::from_millis(4_900));
        let reachable = world.world[receiver].reachable.clone();
        assert_eq!(reachable.len(), 2);
        let sender = world.sender;
        world.world.act(sender, |host, _| {
            for (index, (_, destination, consent)) in reachable.into_iter().enumerate() {
                let word = word(index, QuotaClass::UNLIMITED);
                let reach = relay_route(&word, destination, consent);
                host.meet(word, reach);
            }
        });
        let took = world.finish(120, 4 * MIB) - seconds(5);
        println!("{congestion} {loss}: {took:?}, {:?}", world.forwarded());
        assert!(loss > 0.0 || took < seconds(4), "{took:?}");
    }
}

/// The only direct address cannot be sent to at all; the relay that the ticket speaks of answers
/// late, and is waited for.
#[test]
fn a_relay_that_answers_after_all_else_failed() {
    let refuse = |world: &mut Detours| {
        let sender = world.sender;
        let error = SendError {
            local: Local(0),
            remote: receiver_address(),
            size: 1200,
            kind: SendErrorKind::Unreachable,
        };
        world.world.act(sender, |host, now| host.endpoint.handle(now, Input::SendError(error)));
    };
    for answers in [true, false] {
        let dead = line(10, 10 * MS).partition(Instant::ZERO, Instant::FAR_FUTURE);
        let mut plan = through("mpath", MIB, 0);
        plan.start = seconds(1);
        let until = if answers { Instant::ZERO + seconds(4) } else { Instant::FAR_FUTURE };
        let late = line(10, 5 * MS).partition(Instant::ZERO + seconds(1), until);
        let mut world = detours(1, plan, &dead, &[(late, line(10, 5 * MS))]);
        let (sender, receiver) = (world.sender, world.receiver);
        let word = word(0, QuotaClass::UNLIMITED);
        world.world.act(receiver, |host, now| host.endpoint.stand_at(now, &word).unwrap());
        world.world.run_until(Instant::from_millis(900));
        let (_, destination, consent) = world.world[receiver].reachable[0];
        world.world.act(sender, |host, _| host.meet(word.clone(), relay_route(&word, destination, consent)));
        for at in [1_001, 1_500, 2_000, 3_000, 3_900] {
            world.world.run_until(Instant::from_millis(at));
            refuse(&mut world);
        }
        assert_eq!(world.world[sender].failed, None);
        if answers {
            println!("{:?}", world.finish(20, MIB));
        } else {
            let limit = Instant::ZERO + seconds(18);
            assert!(world.world.run_while(|world| !world[sender].finished(), limit));
            assert_eq!(world.world[sender].failed, Some(ConnectError::Unreachable));
            assert_eq!(world.world[sender].troubles, [(relay_address(0), RelayTrouble::Silent)]);
        }
    }
}

/// Of a receiver's two sockets only the second leads to the relay.
#[test]
fn a_relay_that_only_the_second_socket_reaches() {
    for reached in [true, false] {
        let plan = through("mpath", 8 * MIB, 1);
        let mut world = World::new(1);
        let (from, to, second, at) =
            (sender_address(), receiver_address(), address("10.0.1.2:4000"), relay_address(0));
        let receiver =
            world.add("receiver", Receiver::new(9, plan.config.clone(), plan.suites), &[to, second]);
        let mut plan = plan;
        plan.addresses.push(to);
        let sender = world.add("sender", Sender::new(7, identity(9).public(), plan), &[from]);
        world.add("relay", relay(Instant::ZERO), &[at]);
        let dead = line(10, 5 * MS).partition(Instant::ZERO, Instant::FAR_FUTURE);
        let last = if reached { line(100, 5 * MS).queue(200) } else { dead.clone() };
        for (a, b, pipe) in
            [(from, to, line(5, 10 * MS)), (from, at, line(5, 10 * MS)), (at, to, dead), (at, second, last)]
        {
            world.connect(a, b, pipe.clone(), pipe);
        }
        assert!(world.run_while(|world| !world[sender].finished(), Instant::ZERO + seconds(25)));
        println!("{reached}: {:?}, {:?}", world[sender].done_at, world[sender].troubles);
        assert_eq!(world[receiver].received, 8 * MIB);
        if reached {
            assert_eq!(world[sender].troubles, []);
            assert!(world[sender].done_at.unwrap() < Instant::ZERO + seconds(11));
        } else {
            assert_eq!(world[sender].troubles, [(at, RelayTrouble::PeerCannot)]);
        }
    }
}

#[test]
fn a_relay_dies_and_another_is_born_in_its_place() {
    for congestion in ["background", "mpath", "newreno"] {
        let plan = through(congestion, 48 * MIB, 1);
        let mut world = detours(1, plan, &line(10, 10 * MS), &[way(10, 10 * MS)]);
        world.world.run_until(Instant::from_millis(3_000));
        let (relay_node, receiver) = (world.relays[0], world.receiver);
        world.world.freeze(relay_node, true);
        world.world.run_until(Instant::from_millis(8_000));
        let now = world.world.now();
        world.world.replace(relay_node, relay(now));
        world.world.run_until(Instant::from_millis(8_000));
        assert_eq!(world.world[relay_node].counters().forwarded_bytes, 0);
        let took = world.finish(60, 48 * MIB);
        let host = &world.world[receiver];
        let goodput = |from, until| host.goodput(seconds(from), seconds(until)) / 1e6;
        let (before, without, again) = (goodput(1, 3), goodput(4, 8), goodput(19, 22));
        println!("{congestion}: {took:?}: {before:.1}, {without:.1}, then {again:.1} Mbit/s");
        assert!(without > 8.0 && again > 15.0, "{without} {again}");
    }
}

#[test]
fn a_relay_that_never_answers() {
    let plan = through("mpath", 24 * MIB, 2);
    let dead = line(10, 5 * MS).partition(Instant::ZERO, Instant::FAR_FUTURE);
    let mut world =
        detours(1, plan, &line(10, 10 * MS), &[(dead.clone(), dead.clone()), (line(10, 5 * MS), dead)]);
    let took = world.finish(40, 24 * MIB);
    println!("{took:?} {:?}", world.world[world.sender].troubles);
    let mut troubles = world.world[world.sender].troubles.clone();
    troubles.sort_by_key(|(relay, _)| *relay);
    let expected = [(relay_address(0), RelayTrouble::Silent), (relay_address(1), RelayTrouble::PeerCannot)];
    assert_eq!(troubles, expected);
    assert!(took < seconds(23), "{took:?}");
}

/// It sends to public addresses only, and hosts here have none: it says so, and is not waited for.
#[test]
fn a_relay_that_refuses_whoever_greets_it_says_why() {
    let plan = through("mpath", MIB, 1);
    let mut world = detours(1, plan, &line(2, 10 * MS), &[way(10, 5 * MS)]);
    let (relay_node, sender) = (world.relays[0], world.sender);
    let strict = Relay::new(&RelayConfig::new([5; 32], UNIX * 1000), Instant::ZERO);
    world.world.replace(relay_node, strict);
    world.world.run_until(Instant::from_millis(1_200));
    let expected = [(relay_address(0), RelayTrouble::Refused(Reason::Destination))];
    assert_eq!(world.world[sender].troubles, expected);
    world.finish(20, MIB);
}

/// The ticket's only way is through a relay that does not take it: that is known at once, and why.
#[test]
fn a_relay_that_does_not_forward_ends_an_attempt_that_has_no_other_way() {
    let dead = line(10, 10 * MS).partition(Instant::ZERO, Instant::FAR_FUTURE);
    let mut plan = through("mpath", MIB, 0);
    plan.start = seconds(1);
    let mut world = detours(1, plan, &dead, &[way(10, 5 * MS)]);
    let (sender, receiver) = (world.sender, world.receiver);
    let word = word(0, QuotaClass::UNLIMITED);
    world.world.act(receiver, |host, now| host.endpoint.stand_at(now, &word).unwrap());
    world.world.run_until(Instant::from_millis(900));
    let (_, _, consent) = world.world[receiver].reachable[0];
    // Not whose consent it is.
    let destination = address("10.0.1.1:4001");
    world.world.act(sender, |host, _| host.meet(word.clone(), relay_route(&word, destination, consent)));
    let refused = SendError {
        local: Local(0),
        remote: receiver_address(),
        size: 1200,
        kind: SendErrorKind::Unreachable,
    };
    world.world.run_until(Instant::from_millis(1_001));
    world.world.act(sender, |host, now| host.endpoint.handle(now, Input::SendError(refused)));
    let limit = Instant::ZERO + seconds(5);
    assert!(world.world.run_while(|world| !world[sender].finished(), limit));
    assert_eq!(world.world[sender].failed, Some(ConnectError::Unreachable));
    let expected = [(relay_address(0), RelayTrouble::Refused(Reason::NoConsent))];
    assert_eq!(world.world[sender].troubles, expected);
}

#[test]
fn a_quota_runs_out() {
    let mut plan = Plan::new("mpath", &[12 * MIB], &[]);
    plan.relays = vec![(word(0, QuotaClass::at_most(2 * MIB)), None)];
    let mut world = detours(1, plan, &line(10, 10 * MS), &[way(10, 10 * MS)]);
    let took = world.finish(30, 12 * MIB);
    let events = &world.world[world.sender].events;
    let told =
        |event: &&Event| matches!(event, Event::Notice { reason: Reason::OverQuota, proven: true, .. });
    println!("{took:?} {:?} {events:?}", world.forwarded());
    assert!(events.iter().any(|event| told(&event)), "{events:?}");
    assert!(world.forwarded()[0] <= 2 * MIB);
    assert!(took < seconds(12), "{took:?}");
}

#[test]
fn greeting_offer_and_consent_over_bad_lines() {
    let mut slowest = Duration::ZERO;
    for seed in 0..12 {
        let plan = through("newreno", 2 * MIB, 1);
        let bad = |pipe: PipeConfig| pipe.loss(0.2);
        let (near, far) = way(10, 10 * MS);
        let mut world = detours(seed, plan, &bad(line(1, 10 * MS)), &[(bad(near), bad(far))]);
        let relay = world.relays[0];
        let up = world
            .world
            .run_while(|world| world[relay].counters().forwarded_packets < 20, Instant::ZERO + seconds(30));
        assert!(up, "seed {seed}: {:?}", world.world[world.sender].troubles);
        slowest = slowest.max(world.world.now().since(Instant::ZERO));
        assert_eq!(world.world[world.sender].troubles, []);
    }
    println!("slowest: {slowest:?}");
    assert!(slowest < seconds(50), "{slowest:?}");
}

/// The direct line loses its way back; it still carries data forward, and the ACKs take the relay.
#[test]
fn acks_take_another_way_when_theirs_dies() {
    // At several moments, so that no ping is there by chance.
    for (congestion, at) in ["background", "mpath", "newreno"]
        .into_iter()
        .flat_map(|name| [3_000, 3_300, 3_650].map(|at| (name, at)))
    {
        let plan = through(congestion, 16 * MIB, 1);
        let mut world = detours(1, plan, &line(10, 5 * MS), &[way(10, 10 * MS)]);
        world.world.run_until(Instant::from_millis(at));
        // A route that leads nowhere.
        let dead = line(10, 5 * MS).partition(Instant::ZERO, Instant::FAR_FUTURE);
        let dead = world.world.link("dead way back", dead);
        world.world.route(receiver_address(), sender_address().ip(), &[dead]);
        let took = world.finish(30, 16 * MIB);
        let goodput = world.world[world.receiver].goodput(seconds(4), seconds(6)) / 1e6;
        println!("{congestion}: {took:?}, {goodput:.1} of 20 Mbit/s after its way back died");
        assert!(goodput > 10.5, "{goodput}");
    }
}

/// Return tags are good for ten minutes, and clocks drift. The path through a relay must outlive
/// both.
#[test]
fn a_path_through_a_relay_outlives_its_return_tags() {
    let mut plan = through("newreno", 330 * MIB, 1);
    plan.suites = byway_engine::seal::Suites::INSECURE_SIMULATION;
    let mut world = detours(1, plan, &line(1, 10 * MS), &[(line(1, 10 * MS), line(10, 5 * MS))]);
    world.world.stop_trace();
    world.world.run_until(Instant::ZERO + seconds(1_000));
    let host = &world.world[world.receiver];
    let goodput = host.goodput(seconds(500), seconds(1_000)) / 1e6;
    println!("{goodput:.2} of 2 Mbit/s, {:?}", world.world[world.sender].events);
    assert!(goodput > 1.7, "{goodput}");
}

/// Who comes back with another address is reached again, by the relay too.
#[test]
fn an_uplink_that_comes_back_takes_its_relays_with_it() {
    let plan = through("mpath", 24 * MIB, 1);
    let mut world = detours(1, plan, &line(10, 10 * MS), &[way(10, 10 * MS)]);
    world.world.run_until(Instant::from_millis(2_000));
    world.world.set_up(world.sender, Local(0), false);
    world.world.run_until(Instant::from_millis(4_000));
    world.world.set_up(world.sender, Local(0), true);
    let before = world.forwarded()[0];
    let took = world.finish(60, 24 * MIB);
    let by_relay = world.forwarded()[0] - before;
    println!("{took:?}, {by_relay} by the relay after");
    assert!(by_relay > 4 * MIB && took < seconds(20), "{took:?} {by_relay}");
}

/// A second uplink appears while a transfer runs: it is used, directly and through the relay.
#[test]
fn an_uplink_that_appears_later() {
    let plan = through("mpath", 24 * MIB, 1);
    let mut world = World::new(1);
    let (from, later, to, at) =
        (sender_address(), address("10.0.0.2:5000"), receiver_address(), relay_address(0));
    let receiver = world.add("receiver", Receiver::new(9, plan.config.clone(), plan.suites), &[to]);
    let mut plan = plan;
    plan.addresses.push(to);
    let sender = world.add("sender", Sender::new(7, identity(9).public(), plan), &[from, later]);
    world.set_up(sender, Local(1), false);
    let relay = world.add("relay", relay(Instant::ZERO), &[at]);
    for (a, b) in [(from, to), (from, at), (at, to), (later, to), (later, at)] {
        let line = if a == at { line(100, 5 * MS).queue(200) } else { line(5, 10 * MS) };
        world.connect(a, b, line.clone(), line);
    }
    world.run_until(Instant::from_millis(3_000));
    let before = world[receiver].goodput(seconds(1), seconds(3)) / 1e6;
    world.set_up(sender, Local(1), true);
    world.run_until(Instant::from_millis(8_000));
    let after = world[receiver].goodput(seconds(5), seconds(8)) / 1e6;
    println!("{before:.1}, then {after:.1} Mbit/s; {} by the relay", world[relay].counters().forwarded_bytes);
    assert!(before > 8.0 && after > 17.0, "{before} {after}");
}

/// A consent is good for a day.
#[test]
fn a_day_and_more() {
    let plan = through("mpath", MIB, 1);
    let mut world = detours(1, plan, &line(10, 10 * MS), &[way(10, 10 * MS)]);
    world.world.stop_trace();
    let sender = world.sender;
    world.world.act(sender, |host, _| host.keep_open = true);
    world.world.run_until(Instant::ZERO + seconds(27 * 3_600));
    let events = &world.world[sender].events;
    let expected = [Event::PathUp(PathId(0)), Event::PathUp(PathId(1)), Event::RelaysUsedUp];
    assert_eq!((&events[..], world.world[sender].closed.as_ref()), (&expected[..], None));
}

/// Only the relay leads there, and the sender's NAT gives another port or address: the relay's
/// refusal brings a new cookie at once, and nobody is told of a word that is not known.
#[test]
fn a_nat_forgets_the_way_to_the_only_relay() {
    for (fresh, pause) in [("10.0.0.1:61000", 0), ("77.0.0.1:5000", 0), ("10.0.0.1:61000", 4)] {
        let dead = line(10, 10 * MS).partition(Instant::ZERO, Instant::FAR_FUTURE);
        let mut plan = through("background", 8 * MIB, 0);
        plan.start = seconds(5);
        let mut world = detours(1, plan, &dead, &[]);
        let (from, to, at, fresh) = (sender_address(), receiver_address(), relay_address(0), address(fresh));
        let relay = world.world.add("relay", relay(Instant::ZERO), &[at]);
        let line = line(10, 10 * MS);
        // Nothing passes between the sender and the relay while the NAT starts anew.
        let (begin, end) = (Instant::ZERO + seconds(8), Instant::ZERO + seconds(8 + pause));
        let near = if pause > 0 { line.clone().partition(begin, end) } else { line.clone() };
        let (there, back) = world.world.connect(from, at, near.clone(), near);
        world.world.connect(at, to, line.clone(), line);
        let (sender, receiver) = (world.sender, world.receiver);
        let word = word(0, QuotaClass::UNLIMITED);
        world.world.act(receiver, |host, now| host.endpoint.stand_at(now, &word).unwrap());
        world.world.run_until(Instant::from_millis(4_900));
        let (_, destination, consent) = world.world[receiver].reachable[0];
        let reach = relay_route(&word, destination, consent);
        world.world.act(sender, |host, _| host.meet(word, reach));
        world.world.run_until(begin);
        world.world.rebind(sender, Local(0), fresh);
        world.world.route(fresh, at.ip(), &[there]);
        world.world.route(at, fresh.ip(), &[back]);
        world.world.run_until(end);
        let before = world.world[receiver].received;
        world.world.run_until(end + seconds(5));
        let after = world.world[receiver].received;
        println!("{fresh}, {pause} s: {before}, 5 s later {after}");
        assert!(before > MIB && after > before + MIB, "{fresh}: {before} {after}");
        let told = |event: &Event| matches!(event, Event::Notice { .. });
        assert!(!world.world[sender].events.iter().any(told), "{:?}", world.world[sender].events);
        assert!(world.world[relay].counters().dropped(Dropped::Refused(Reason::StaleCookie)) > 0);
        world.finish(60, 8 * MIB);
    }
}

/// A NAT that is short of ports gives the sender a new port again and again, and at times a new
/// address. The session goes on, and no word is said to be unknown.
#[test]
fn a_nat_changes_the_port_to_the_only_relay_again_and_again() {
    for interval in [1_300, 1_500, 2_000_u64] {
        let dead = line(10, 10 * MS).partition(Instant::ZERO, Instant::FAR_FUTURE);
        let mut plan = through("background", 40 * MIB, 0);
        plan.start = seconds(5);
        let mut world = detours(1, plan, &dead, &[]);
        let (from, to, at) = (sender_address(), receiver_address(), relay_address(0));
        let relay = world.world.add("relay", relay(Instant::ZERO), &[at]);
        let line = line(10, 10 * MS);
        let (there, back) = world.world.connect(from, at, line.clone(), line.clone());
        world.world.connect(at, to, line.clone(), line);
        let (sender, receiver) = (world.sender, world.receiver);
        let word = word(0, QuotaClass::UNLIMITED);
        world.world.act(receiver, |host, now| host.endpoint.stand_at(now, &word).unwrap());
        world.world.run_until(Instant::from_millis(4_900));
        let (_, destination, consent) = world.world[receiver].reachable[0];
        let reach = relay_route(&word, destination, consent);
        world.world.act(sender, |host, _| host.meet(word, reach));
        let mut received = Vec::new();
        for change in 0..16_u16 {
            world.world.run_until(Instant::from_millis(6_000 + interval * u64::from(change)));
            received.push(world.world[receiver].received);
            let host = if change % 3 == 2 { "77.0.0.1" } else { "10.0.0.1" };
            let fresh = address(&format!("{host}:{}", 61_000 + change));
            world.world.rebind(sender, Local(0), fresh);
            world.world.route(fresh, at.ip(), &[there]);
            world.world.route(at, fresh.ip(), &[back]);
        }
        println!("{interval} ms: bytes received before each change: {received:?}");
        let least = MIB / 10;
        assert!(received.windows(2).all(|pair| pair[1] > pair[0] + least), "{interval} ms: {received:?}");
        let told = |event: &Event| matches!(event, Event::Notice { .. });
        assert!(!world.world[sender].events.iter().any(told), "{:?}", world.world[sender].events);
        assert!(world.world[relay].counters().dropped(Dropped::Refused(Reason::StaleCookie)) >= 8);
        world.finish(90, 40 * MIB);
    }
}

#[test]
fn a_relay_whose_word_is_unknown_to_it() {
    let mut plan = Plan::new("mpath", &[4 * MIB], &[]);
    let other = Relay::new(&RelayConfig::new([6; 32], UNIX * 1000), Instant::ZERO);
    let terms = *word(0, QuotaClass::UNLIMITED).terms();
    let forged = other.issue(Grant { id: 7, terms }, vec![relay_address(0)]).unwrap();
    plan.relays = vec![(forged, None)];
    let mut world = detours(1, plan, &line(10, 10 * MS), &[way(10, 10 * MS)]);
    let took = world.finish(30, 4 * MIB);
    let events = &world.world[world.sender].events;
    println!("{took:?} {events:?}");
    assert_eq!(world.forwarded(), [0]);
    assert!(took < seconds(5));
    let told =
        |event: &Event| matches!(event, Event::Notice { reason: Reason::UnknownWord, proven: false, .. });
    assert!(events.iter().any(told), "{events:?}");
}

/// A relay that was asleep when it was tried is no use then. Once the direct line is dead, it is
/// the only way.
#[test]
fn a_relay_that_was_silent_once_is_tried_again_when_nothing_answers() {
    for congestion in ["background", "mpath", "newreno"] {
        let size = 20 * MIB;
        let dies = line(10, 10 * MS).partition(Instant::ZERO + seconds(12), Instant::FAR_FUTURE);
        let mut plan = through(congestion, size, 0);
        plan.start = seconds(1);
        let mut world = detours(7, plan, &dies, &[way(10, 10 * MS)]);
        let (sender, receiver, relay) = (world.sender, world.receiver, world.relays[0]);
        let word = word(0, QuotaClass::UNLIMITED);
        world.world.act(receiver, |host, now| host.endpoint.stand_at(now, &word).unwrap());
        world.world.run_until(Instant::from_millis(900));
        let (_, destination, consent) = world.world[receiver].reachable[0];
        let reach = relay_route(&word, destination, consent);
        world.world.act(sender, |host, _| host.meet(word.clone(), reach));
        world.world.freeze(relay, true);
        world.world.run_until(Instant::ZERO + seconds(8));
        world.world.freeze(relay, false);
        let took = world.finish(90, size);
        println!("{congestion}: {took:?}");
    }
}

/// A receiver has its words checked at the relay: one that is good, one that has expired, and one
/// of another key. What is refused is told, and by its grant.
#[test]
fn words_are_checked_at_the_relay_before_it_is_said_to_lead_here() {
    for loss in [0.0, 0.3] {
        let plan = through("mpath", MIB, 0);
        let dead = line(10, 10 * MS).partition(Instant::ZERO, Instant::FAR_FUTURE);
        let mut world = detours(1, plan, &dead, &[(way(10, 5 * MS).0, way(10, 5 * MS).1.loss(loss))]);
        let good = word(0, QuotaClass::UNLIMITED);
        let issue = |id: u32, key: &RelayKey, expiry: u64| {
            let terms = Terms { expiry: Minute::from_unix(expiry), ..*good.terms() };
            key.issue(Grant { id, terms }, vec![relay_address(0)]).unwrap()
        };
        let over = issue(20, &RelayKey::new(&KEY), UNIX - 60);
        let foreign = issue(21, &RelayKey::new(&[9; 32]), UNIX + 86_400);
        let receiver = world.receiver;
        world.world.act(receiver, |host, now| {
            for word in [&good, &over, &foreign] {
                assert_eq!(host.endpoint.stand_at_for(now, word, &TICKET_SECRET), Ok(vec![relay_address(0)]));
            }
        });
        world.world.run_until(Instant::from_millis(15_000));
        let host = &world.world[receiver];
        let mut troubles = host.standing_troubles.clone();
        troubles.sort_by_key(|(grant, _)| *grant);
        if loss == 0.0 {
            let refused = RelayTrouble::Refused;
            assert_eq!(troubles, [(20, refused(Reason::Expired)), (21, refused(Reason::UnknownWord))]);
            assert_eq!(host.reachable_grants, [good.grant().id]);
        }
        // A good word is good though packets are lost.
        assert!(host.reachable_grants.contains(&good.grant().id), "{troubles:?}");
        assert!(troubles.iter().all(|(grant, _)| *grant != good.grant().id), "{troubles:?}");
    }
}
