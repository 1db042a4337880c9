//! Objects that are only a length: the same packets at the same times as with bytes, through losses
//! and relays.

use crate::common::detours::{MIB, detours, seconds, through, way};
use crate::common::many;
use crate::common::{MS, Plan, both, line, parallel};
use byway_engine::connection::{Event, close};
use byway_engine::seal::Suites;
use byway_engine::{EndpointEvent, Payload};
use byway_sim::TapVerdict;
use byway_wire::{
    Datagram as Arrival, Duration, Ecn, Input, Instant, LinkChange, Local, Machine, ObjectId, TransmitBuffer,
};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

/// When, from where, to where, how many bytes on the wire.
type Datagram = (Instant, SocketAddr, SocketAddr, usize);

/// All datagrams that anybody sends in a transfer, and how many of their bytes were there.
fn packets(
    congestion: &'static str,
    payload: Payload,
    relays: usize,
    objects: &[u64],
) -> (Vec<Datagram>, usize) {
    let mut plan = through(congestion, 0, relays);
    plan.objects = objects.to_vec();
    plan.stream = 50_000;
    plan.config.payload = payload;
    plan.suites = Suites::INSECURE_SIMULATION;
    // Small enough to hold the sender up now and then.
    plan.config.outgoing.memory = 2 << 20;
    plan.config.incoming.memory = 1 << 20;
    // No damage: a relay answers damage to its envelope, and lengths alone are mostly envelope.
    let ways = [way(20, 5 * MS), way(8, 20 * MS)].map(|(near, far)| (near.loss(0.01), far));
    let mut world = detours(3, plan, &line(10, 10 * MS).loss(0.005).jitter(3 * MS), &ways[..relays]);
    let seen = Rc::new(RefCell::new((Vec::new(), 0)));
    let log = Rc::clone(&seen);
    world.world.tap(move |datagram| {
        let mut log = log.borrow_mut();
        log.0.push((datagram.now, *datagram.from, *datagram.to, datagram.payload.len() + datagram.phantom));
        log.1 += datagram.payload.len();
        TapVerdict::Pass
    });
    world.finish(60, objects.iter().sum());
    assert_eq!(world.world[world.sender].acked.len(), objects.len());
    assert_eq!(world.world[world.receiver].complete.len(), objects.len());
    world.world.untap();
    Rc::try_unwrap(seen).unwrap_or_default().into_inner()
}

#[test]
fn the_same_packets_at_the_same_times() {
    let many: Vec<u64> = (0..300).map(|index| index * 37 % 5_000).chain([3 * MIB, 0, 2 * MIB + 1]).collect();
    for (congestion, relays) in
        [("background", 0), ("background", 2), ("mpath", 0), ("mpath", 2), ("newreno", 1)]
    {
        let (real, carried) = packets(congestion, Payload::Bytes, relays, &many);
        let (length, carried_then) = packets(congestion, Payload::Length, relays, &many);
        println!(
            "{congestion}, {relays} relays: {} packets, {carried} bytes, {carried_then} then",
            real.len()
        );
        let first = real.iter().zip(&length).position(|(a, b)| a != b);
        let at = first.unwrap_or_else(|| real.len().min(length.len()));
        assert!(
            real == length,
            "the first that differs is {at}: {:?} and {:?}",
            real.get(at),
            length.get(at)
        );
        assert!(carried_then * 5 < carried, "{carried_then} of {carried} bytes");
    }
}

#[test]
fn both_ends_must_agree() {
    for (ours, theirs) in [(Payload::Bytes, Payload::Length), (Payload::Length, Payload::Bytes)] {
        let mut plan = Plan::new("mpath", &[MIB], &[]);
        plan.config.payload = ours;
        let mut world = parallel(1, plan, &[both(line(10, 10 * MS))]);
        let receiver = world.receiver;
        let mut config = byway_engine::Config { payload: theirs, ..Default::default() };
        config.incoming.memory = 1 << 20;
        let other = crate::common::Receiver::new(9, config, Suites::SECURE);
        world.world.replace(receiver, other);
        world.world.run_for(seconds(3));
        let sender = &world.world[world.sender];
        let code = sender.closed.as_ref().map(|(code, _)| *code);
        assert_eq!(code, Some(close::PAYLOAD_CODE), "{:?}", sender.closed);
        assert!(sender.events.iter().any(|event| matches!(event, Event::Closed { by_peer: false, .. })));
        assert_eq!((world.world[receiver].received, world.world[receiver].handles.len()), (0, 0));
    }
}

/// Who does not ask what arrived stops the sender, as one does who writes nothing to the disk.
#[test]
fn a_receiver_that_does_not_look_stops_the_sender() {
    let mut plan = Plan::new("mpath", &[8 * MIB], &[]);
    plan.config.payload = Payload::Length;
    plan.config.incoming.memory = 1 << 20;
    let mut world = parallel(1, plan, &[both(line(50, 10 * MS))]);
    let receiver = world.receiver;
    world.world.act(receiver, |host, _| host.stuck = true);
    world.world.run_for(Duration::from_secs(5));
    let sender = world.sender;
    let handle = world.world[sender].handle.unwrap_or_else(|| panic!("connected"));
    let progress = |world: &mut byway_sim::World| {
        world.act(sender, |host, _| {
            host.endpoint.connection_mut(handle).map_or(0, |connection| connection.outgoing().progress().sent)
        })
    };
    let sent = progress(&mut world.world);
    assert!(sent <= MIB && sent > MIB / 2, "{sent}");
    world.world.act(receiver, |host, _| host.stuck = false);
    world.world.run_for(Duration::from_secs(5));
    assert_eq!(progress(&mut world.world), 8 * MIB);
    assert_eq!(world.world[receiver].received, 8 * MIB);
}

/// The packets of a run leave one by one. A socket may go between two of them, and with it their
/// path.
#[test]
fn a_run_ends_with_its_path() {
    let address = |end: usize| SocketAddr::from(([10, 0, 0, end as u8], 4000));
    let mut ends = [many::endpoint(1, false), many::endpoint(2, true)];
    let link = |end, up| Input::Link(LinkChange { local: Local(0), address: address(end), up });
    for (index, end) in ends.iter_mut().enumerate() {
        end.handle(Instant::ZERO, link(index, true));
    }
    let peer = ends[1].public_key();
    let handle = many::connect(&mut ends[0], Instant::ZERO, peer, vec![address(1)], "newreno", &[]);
    let mut bytes = [0; 2_000];
    let (mut now, mut data) = (Instant::ZERO, 0);
    while data < 5 {
        assert!(now < Instant::from_millis(1_000), "the sender begins");
        for from in 0..2 {
            while data < 5
                && let Some(sent) =
                    ends[from].transmit(now, &mut TransmitBuffer { buffer: &mut bytes, max_segments: 64 })
            {
                data += u32::from(sent.phantom > 0);
                let (local, remote) = (Local(0), address(from));
                let (payload, phantom) = (&mut bytes[..sent.size], sent.phantom);
                let arrival = Arrival { local, remote, ecn: Ecn::NotEct, arrival: now, payload, phantom };
                ends[1 - from].handle(now, Input::Datagram(arrival));
            }
        }
        while let Some(event) = ends[0].next_event() {
            assert_eq!(event, EndpointEvent::Connected(handle));
            ends[0].connection_mut(handle).unwrap().outgoing().add_object(ObjectId(0), MIB);
        }
        now += MS;
    }
    ends[0].handle(now, link(0, false));
    let sent = ends[0].transmit(now, &mut TransmitBuffer { buffer: &mut bytes, max_segments: 64 });
    assert!(sent.is_none(), "no path is left: {sent:?}");
}
