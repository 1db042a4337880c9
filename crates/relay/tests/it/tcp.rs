//! TCP connections at a relay: which addresses are dialled, what goes where, and which connection
//! is held back.

use crate::common::{World, at, config, receiver, seal, sender, terms};
use byway_relay::Dropped;
use byway_wire::relay::{
    Delivered, Greeted, Hop, QuotaClass, RateClass, Reason, ReturnHop, ReturnedPacket, Terms,
};
use byway_wire::relay::{GREET_LEN, Greet};
use byway_wire::{
    ConnectionChange, Datagram, Duration, Ecn, Input, Local, Machine as _, RoomChange, TcpRequest,
    TransmitBuffer, Writer,
};
use std::net::SocketAddr;

/// Connections: a sender's, the one that the relay opens for it, and a receiver's.
const CAME: Local = Local(1 << 15);
const OPENED: Local = Local((1 << 15) + 1);
const STANDS: Local = Local((1 << 15) + 2);

/// A packet that left: by which socket or connection, where to, and its bytes.
type Left = (Local, SocketAddr, Vec<u8>);

fn drain(world: &mut World) -> Vec<Left> {
    let mut buffer = vec![0; 65_535];
    let mut all = Vec::new();
    while let Some(sent) =
        world.relay.transmit(world.now, &mut TransmitBuffer { buffer: &mut buffer, max_segments: 64 })
    {
        all.extend(buffer[..sent.size].chunks(sent.segment).map(|it| (sent.local, sent.remote, it.to_vec())));
    }
    all
}

fn put(world: &mut World, local: Local, remote: SocketAddr, packet: &[u8]) -> Vec<Left> {
    let payload = &mut packet.to_vec()[..];
    let datagram = Datagram { local, remote, ecn: Ecn::NotEct, arrival: world.now, payload, phantom: 0 };
    world.relay.handle(world.now, Input::Datagram(datagram));
    drain(world)
}

fn asks(world: &mut World) -> Vec<TcpRequest> {
    std::iter::from_fn(|| world.relay.ask(world.now)).collect()
}

fn change(world: &mut World, local: Local, peer: SocketAddr, open: bool) {
    let address = at("1.2.3.4:4748");
    let change = ConnectionChange { local, address, peer, open };
    world.relay.handle(world.now, Input::Connection(change));
}

fn room(world: &mut World, local: Local, room: bool) {
    world.relay.handle(world.now, Input::Room(RoomChange { local, room }));
}

fn greet(world: &mut World, local: Local, from: SocketAddr, grant: u32) -> Greeted {
    let mut packet = [0; GREET_LEN];
    Greet { nonce: *b"12345678", grant }.write(&mut Writer::new(&mut packet));
    let left = put(world, local, from, &packet);
    assert_eq!((left[0].0, left[0].1), (local, from));
    Greeted::read(&left[0].2).unwrap()
}

/// A sender that has a connection, and a receiver that consented over UDP.
fn hop(world: &mut World, grant: u32, terms: Terms) -> Hop {
    let word = world.word(grant, terms);
    let consent = world.greet(receiver(), grant).unwrap().consent;
    change(world, CAME, sender(), true);
    let cookie = greet(world, CAME, sender(), grant).cookie;
    let mut hop = world.hop_with(&word, receiver(), consent);
    hop.set_cookie(cookie);
    hop
}

const DIAL: TcpRequest = TcpRequest::Dial {
    peer: SocketAddr::V4(std::net::SocketAddrV4::new(std::net::Ipv4Addr::new(9, 9, 9, 9), 2000)),
    patience: Duration::from_millis(2_500),
};

#[test]
fn the_destination_is_dialled_and_both_hops_lead_into_each_other() {
    let mut world = World::new(&config());
    let hop = hop(&mut world, 7, terms());
    assert_eq!(asks(&mut world), []);
    let packet = seal(&hop, world.now, b"first");
    assert_eq!(put(&mut world, CAME, sender(), &packet), []);
    assert_eq!(asks(&mut world), [DIAL, TcpRequest::Pause(CAME)]);
    // What was read meanwhile waits, too.
    assert_eq!(put(&mut world, CAME, sender(), &packet), []);
    change(&mut world, OPENED, receiver(), true);
    assert_eq!(asks(&mut world), [TcpRequest::Resume(CAME)]);
    let left = drain(&mut world);
    assert_eq!(left.len(), 2);
    assert!(left.iter().all(|(local, to, _)| (*local, *to) == (OPENED, receiver())));
    let delivered = Delivered::read(&left[0].2).unwrap();
    assert_eq!((delivered.from, &left[0].2[delivered.inner..]), (sender(), &b"first"[..]));
    let left = put(&mut world, CAME, sender(), &packet);
    assert_eq!((left[0].0, left[0].1), (OPENED, receiver()));

    let mut answer = vec![0; ReturnHop::new(sender(), &delivered).room() + 6];
    answer.splice(ReturnHop::new(sender(), &delivered).room().., *b"answer");
    assert!(ReturnHop::new(sender(), &delivered).seal(&mut answer));
    let left = put(&mut world, OPENED, receiver(), &answer);
    assert_eq!((left[0].0, left[0].1), (CAME, sender()));
    assert_eq!(ReturnedPacket::read(&left[0].2).unwrap().from, receiver());
    assert!(world.relay.serves(CAME) && world.relay.serves(OPENED));
    // The account is the one of UDP.
    let counters = world.relay.counters();
    assert_eq!((counters.forwarded_packets, counters.returned_packets, world.relay.accounts()), (3, 1, 1));

    // Either end takes the other with it.
    change(&mut world, OPENED, receiver(), false);
    assert_eq!(asks(&mut world), [TcpRequest::Close(CAME)]);
    change(&mut world, CAME, sender(), false);
    assert_eq!((asks(&mut world), world.relay.connections()), (vec![], 0));
}

#[test]
fn who_accepts_no_connection_is_reached_over_udp() {
    let mut world = World::new(&config());
    let hop = hop(&mut world, 7, terms());
    let packet = seal(&hop, world.now, b"first");
    put(&mut world, CAME, sender(), &packet);
    assert_eq!(asks(&mut world), [DIAL, TcpRequest::Pause(CAME)]);
    world.relay.handle(world.now, Input::NotDialed(receiver()));
    let left = drain(&mut world);
    assert_eq!((left[0].0, left[0].1), (Local(0), receiver()));
    assert_eq!(asks(&mut world), [TcpRequest::Resume(CAME)]);
    let left = put(&mut world, CAME, sender(), &packet);
    assert_eq!((left[0].0, left[0].1), (Local(0), receiver()));
    // And what it answers over UDP goes back by the connection.
    let delivered = Delivered::read(&left[0].2).unwrap();
    let back = ReturnHop::new(sender(), &delivered);
    let mut answer = vec![7; back.room() + 3];
    assert!(back.seal(&mut answer));
    assert_eq!(put(&mut world, Local(0), receiver(), &answer)[0].0, CAME);
}

#[test]
fn nobody_is_dialled_who_did_not_consent() {
    let mut world = World::new(&config());
    let word = world.word(7, terms());
    change(&mut world, CAME, sender(), true);
    let consent = greet(&mut world, CAME, sender(), 7).consent;
    let cookie = greet(&mut world, CAME, sender(), 7).cookie;
    let mut stranger = world.hop_with(&word, receiver(), consent);
    stranger.set_cookie(cookie);
    let packet = seal(&stranger, world.now, b"first");
    let left = put(&mut world, CAME, sender(), &packet);
    assert_eq!((left[0].0, left[0].2[0], left.len()), (CAME, 0x6e, 1), "a notice, and nothing else");
    assert_eq!(asks(&mut world), []);
    assert_eq!(world.relay.counters().dropped(Dropped::Refused(Reason::NoConsent)), 1);
}

#[test]
fn a_receiver_that_stands_at_the_relay_is_reached_by_its_own_connection_by_whatever_came() {
    let mut world = World::new(&config());
    let mut hop = hop(&mut world, 7, terms());
    change(&mut world, STANDS, receiver(), true);
    let greeted = greet(&mut world, STANDS, receiver(), 7);
    assert_eq!(greeted.address, receiver());
    let packet = seal(&hop, world.now, b"over TCP");
    assert_eq!(put(&mut world, CAME, sender(), &packet)[0].0, STANDS);
    hop.set_cookie(world.greet(sender(), 7).unwrap().cookie);
    let packet = seal(&hop, world.now, b"over UDP");
    assert_eq!(put(&mut world, Local(0), sender(), &packet)[0].0, STANDS);
    assert_eq!(asks(&mut world), []);
    // A sender that goes leaves it where it is; if it goes, its sender begins anew.
    change(&mut world, CAME, sender(), false);
    assert_eq!(asks(&mut world), []);
    change(&mut world, CAME, sender(), true);
    assert_eq!(put(&mut world, CAME, sender(), &packet)[0].0, STANDS);
    change(&mut world, STANDS, receiver(), false);
    assert_eq!(asks(&mut world), [TcpRequest::Close(CAME)]);
}

#[test]
fn who_fills_a_connection_is_held_back_and_what_comes_over_udp_is_dropped() {
    let mut world = World::new(&config());
    let hop = hop(&mut world, 7, terms());
    change(&mut world, STANDS, receiver(), true);
    let packet = seal(&hop, world.now, b"inner");
    assert_eq!(put(&mut world, CAME, sender(), &packet).len(), 1);
    room(&mut world, STANDS, false);
    assert_eq!(asks(&mut world), [TcpRequest::Pause(CAME)]);
    assert_eq!(put(&mut world, CAME, sender(), &packet).len(), 1, "it was read before");
    assert!(put(&mut world, Local(0), sender(), &packet).is_empty());
    assert_eq!(world.relay.counters().dropped(Dropped::QueueFull), 1);
    assert!(world.relay.serves(CAME));
    room(&mut world, STANDS, true);
    assert_eq!(asks(&mut world), [TcpRequest::Resume(CAME)]);
}

#[test]
fn a_word_has_one_rate_whatever_carries_it_and_a_connection_waits_for_it() {
    let mut world = World::new(&config());
    let terms = Terms { rate: RateClass::at_most(100_000), quota: QuotaClass::UNLIMITED, ..terms() };
    let hop = hop(&mut world, 7, terms);
    change(&mut world, STANDS, receiver(), true);
    let (mut passed, mut waits) = (0, false);
    while !waits {
        let packet = seal(&hop, world.now, &[7; 1_000]);
        passed += put(&mut world, CAME, sender(), &packet).len();
        waits = asks(&mut world).contains(&TcpRequest::Pause(CAME));
    }
    assert!((20..40).contains(&passed), "{passed}");
    let until = world.relay.deadline().unwrap();
    assert!(until > world.now);
    world.now = until;
    world.relay.wake(until);
    assert_eq!(asks(&mut world), [TcpRequest::Resume(CAME)]);
    assert_eq!(world.relay.counters().dropped_in_all(), 0);
}

#[test]
fn a_connection_serves_nothing_before_it_brought_something_and_a_minute_after() {
    let mut world = World::new(&config());
    change(&mut world, CAME, sender(), true);
    put(&mut world, CAME, sender(), b"GET / HTTP/1.1");
    assert!(!world.relay.serves(CAME));
    greet(&mut world, CAME, sender(), 7);
    assert!(world.relay.serves(CAME));
    world.pass(61_000);
    change(&mut world, STANDS, receiver(), true);
    assert!(!world.relay.serves(CAME));
}

#[test]
fn a_grant_has_so_many_connections_that_lead_on() {
    let mut world = World::new(&config());
    let word = world.word(7, terms());
    let mut dialled = 0;
    for number in 0..300_u16 {
        let local = Local::connection(usize::from(number)).unwrap();
        let from = SocketAddr::from(([8, 8, 8, 8], 1_000 + number));
        let to = SocketAddr::from(([9, 9, 9, 9], 1_000 + number));
        let consent = world.greet(to, 7).unwrap().consent;
        change(&mut world, local, from, true);
        let cookie = greet(&mut world, local, from, 7).cookie;
        let mut hop = world.hop_with(&word, to, consent);
        hop.set_cookie(cookie);
        let packet = seal(&hop, world.now, b"inner");
        put(&mut world, local, from, &packet);
        dialled += asks(&mut world).iter().filter(|ask| matches!(ask, TcpRequest::Dial { .. })).count();
        world.pass(1);
    }
    assert_eq!(dialled, 256);
    assert_eq!(world.relay.counters().dropped(Dropped::Refused(Reason::Busy)), 44);
}
