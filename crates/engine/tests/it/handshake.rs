//! Handshakes in simulated worlds: over bad lines, under floods, against strangers and replays.

use crate::common::strangers::{crowd, hello, receiver_address, spoofed};
use crate::common::{MS, Plan, Receiver, Sender, address, both, identity, line, parallel};
use byway_engine::seal::Suites;
use byway_engine::{Config, ConnectError};
use byway_sim::{TapVerdict, World};
use byway_wire::packet::Handshake;
use byway_wire::{Duration, Ecn, Instant};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

const KIB: u64 = 1 << 10;

#[test]
fn over_lines_that_lose_or_corrupt_a_third() {
    let mut slowest = Duration::ZERO;
    for seed in 0..16 {
        let bad = line(10, 20 * MS);
        for bad in [bad.clone().loss(0.3), bad.clone().corruption(0.3), bad.loss(0.15).corruption(0.15)] {
            let mut world = parallel(seed, Plan::new("newreno", &[4 * KIB], &[]), &[both(bad)]);
            world.finish(Duration::from_secs(60));
            let connected = world.world[world.sender].connected_at.unwrap();
            slowest = slowest.max(connected.since(Instant::ZERO));
            assert_eq!(world.world[world.receiver].received, 4 * KIB);
            assert_eq!(world.world[world.receiver].handles.len(), 1);
        }
    }
    println!("slowest of 48: {slowest:?}");
    assert!(slowest < Duration::from_secs(12), "{slowest:?}");
}

#[test]
fn a_crowd_makes_it_ask_for_cookies_and_goes_away() {
    for seed in 0..6 {
        let (mut world, retries) = crowd(seed, line(10, 20 * MS).loss(if seed == 0 { 0.0 } else { 0.3 }), 80);
        world.finish(Duration::from_secs(60));
        assert!(*retries.borrow() > 0, "no cookie was asked for");
        world.world.run_until(Instant::from_millis(80_000));
        let receiver = &world.world[world.receiver];
        assert_eq!(receiver.handles.len(), 1, "a stranger was let in");
        assert!(receiver.endpoint.handles().count() <= 1, "strangers are kept");
    }
}

#[test]
fn without_a_crowd_no_cookie_is_asked_for() {
    let (mut world, retries) = crowd(1, line(10, 20 * MS), 20);
    world.finish(Duration::from_secs(10));
    assert_eq!(*retries.borrow(), 0);
}

/// Forged HELLOs must not make a host send more to anybody than came in that name.
#[test]
fn nobody_gets_more_than_came_in_his_name() {
    let mut world = parallel(1, Plan::new("newreno", &[64 * KIB], &[]), &[both(line(10, 20 * MS))]);
    let books: Rc<RefCell<BTreeMap<SocketAddr, (usize, usize)>>> = Rc::default();
    let seen = Rc::clone(&books);
    let mut sent = BTreeMap::new();
    // HELLOs are whole, repeated, short, or of an unknown version. There are 500 in the name of 5
    // hosts.
    for number in 0..500_u32 {
        let from = spoofed(&mut world.world, (number % 5) as u8);
        let mut forged = hello(number / 2);
        match number % 10 {
            3 => forged.truncate(900),
            4 => forged[1] = 200,
            7 => forged.truncate(60),
            _ => {}
        }
        let at = Instant::from_millis(u64::from(number));
        sent.entry(from).or_insert_with(Vec::new).push((at, forged.len()));
        world.world.inject(at, from, receiver_address(), Ecn::NotEct, &forged);
    }
    world.world.tap(move |datagram| {
        if let Some(arrivals) = sent.get(datagram.to) {
            let came: usize =
                arrivals.iter().filter(|(at, _)| *at <= datagram.now).map(|(_, size)| size).sum();
            let mut books = seen.borrow_mut();
            let book = books.entry(*datagram.to).or_default();
            *book = (came, book.1 + datagram.payload.len());
            assert!(book.1 <= book.0, "{}: {} bytes out, {} in", datagram.to, book.1, book.0);
        }
        TapVerdict::Pass
    });
    world.finish(Duration::from_secs(10));
    world.world.run_for(Duration::from_secs(30));
    let books = books.borrow();
    assert_eq!(books.len(), 5);
    assert!(books.values().all(|(_, out)| *out > 0));
    println!("{books:?}");
}

#[test]
fn a_replayed_hello_opens_nothing_and_is_forgotten() {
    let mut world = parallel(1, Plan::new("newreno", &[64 * KIB], &[]), &[both(line(10, 20 * MS))]);
    let captured: Rc<RefCell<Vec<u8>>> = Rc::default();
    let seen = Rc::clone(&captured);
    world.world.tap(move |datagram| {
        if let Ok(Handshake::Hello { .. }) = Handshake::read(datagram.payload) {
            seen.borrow_mut().clone_from(datagram.payload);
        }
        TapVerdict::Pass
    });
    world.finish(Duration::from_secs(10));
    world.world.run_for(Duration::from_secs(5));
    let replay = captured.borrow().clone();
    assert!(!replay.is_empty());
    let from = spoofed(&mut world.world, 1);
    let now = world.world.now();
    let before = world.world[world.receiver].endpoint.handles().count();
    for number in 0..500_u32 {
        world.world.inject(now + MS * number, from, receiver_address(), Ecn::NotEct, &replay);
    }
    world.world.run_for(Duration::from_secs(1));
    let receiver = &world.world[world.receiver];
    assert!(receiver.endpoint.handles().count() <= before + 1, "one HELLO takes more than one place");
    assert_eq!((receiver.handles.len(), receiver.received), (1, 64 * KIB));
    world.world.run_for(Duration::from_secs(12));
    assert_eq!(world.world[world.receiver].endpoint.handles().count(), before);
}

#[test]
fn who_is_not_on_the_list_is_told_so() {
    for seed in 0..4 {
        let mut plan = Plan::new("newreno", &[64 * KIB], &[]);
        plan.said = b"no";
        let pipe = line(10, 20 * MS).loss(if seed == 0 { 0.0 } else { 0.2 });
        let mut world = parallel(seed, plan, &[both(pipe)]);
        let sender = world.sender;
        let limit = Instant::from_millis(20_000);
        assert!(world.world.run_while(|world| world[sender].closed.is_none(), limit), "never told");
        assert_eq!(world.world[sender].closed, Some((6, "not on the list".to_owned())));
        let receiver = &world.world[world.receiver];
        assert_eq!((receiver.received, receiver.handles.len()), (0, 0));
        world.world.run_for(Duration::from_secs(40));
        assert_eq!(world.world[world.receiver].endpoint.handles().count(), 0);
    }
}

#[test]
fn another_key_at_the_address() {
    let mut world = World::new(1);
    let (to, from) = (receiver_address(), address("10.0.0.1:5000"));
    world.add("receiver", Receiver::new(9, Config::default(), Suites::SECURE), &[to]);
    let plan = Plan::new("newreno", &[KIB], &[to]);
    let sender = world.add("sender", Sender::new(7, identity(8).public(), plan), &[from]);
    world.connect(from, to, line(10, 20 * MS), line(10, 20 * MS));
    assert!(world.run_while(|world| world[sender].failed.is_none(), Instant::from_millis(25_000)));
    assert_eq!(world[sender].failed, Some(ConnectError::WrongKey));
    assert!(world.now() < Instant::from_millis(5_000), "{:?}", world.now());
}

#[test]
fn nobody_answers() {
    let dead = line(10, 20 * MS).partition(Instant::ZERO, Instant::FAR_FUTURE);
    for way in [both(dead.clone()), (dead.clone(), line(10, 20 * MS)), (line(10, 20 * MS), dead)] {
        let mut world = parallel(1, Plan::new("newreno", &[KIB], &[]), &[way]);
        let sender = world.sender;
        assert!(world.world.run_while(|world| world[sender].failed.is_none(), Instant::from_millis(25_000)));
        assert_eq!(world.world[sender].failed, Some(ConnectError::NoAnswer));
        assert_eq!(world.world.now(), Instant::from_millis(20_000));
        world.world.run_for(Duration::from_secs(40));
        assert_eq!(world.world[world.receiver].endpoint.handles().count(), 0);
    }
}

#[test]
fn no_socket_fits() {
    let mut world = World::new(1);
    let plan = Plan::new("newreno", &[KIB], &[address("[2001:db8::1]:4000")]);
    let sender = world.add("sender", Sender::new(7, identity(9).public(), plan), &[address("10.0.0.1:5000")]);
    // Nothing to wait for: it is told at once.
    assert!(world.run_while(|world| world[sender].failed.is_none(), Instant::from_millis(10)));
    assert_eq!(world[sender].failed, Some(ConnectError::NoRoute));
}
