//! Many paths at once have something to say: packets of a whole tick arrive together, and every
//! path misses some of them.

use byway_engine::{Endpoint, EndpointEvent, Handle};
use byway_wire::{
    Datagram, Duration, Ecn, Input, Instant, LinkChange, Local, Machine, ObjectId, TransmitBuffer,
};
use std::net::SocketAddr;

/// As many direct paths as a sender tries.
const PATHS: u16 = 16;
const TICK: Duration = Duration::from_millis(20);
const SENDER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)), 5000);

fn address(index: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 1, 1 + index as u8], 4000))
}

fn endpoint(seed: u8, addresses: &[SocketAddr], receives: bool) -> Endpoint {
    let mut endpoint = crate::common::many::endpoint(seed, receives);
    for (index, address) in addresses.iter().enumerate() {
        let change = LinkChange { local: Local(index as u16), address: *address, up: true };
        endpoint.handle(Instant::ZERO, Input::Link(change));
    }
    endpoint
}

/// A datagram, the receiver's address that it goes to or comes from, and its phantom bytes.
type Packet = (Vec<u8>, u16, usize);

/// What an endpoint has to send now. `receiving`: it is the one with many addresses.
fn sent(endpoint: &mut Endpoint, now: Instant, receiving: bool) -> Vec<Packet> {
    let mut all = Vec::new();
    loop {
        let mut bytes = vec![0; 1500];
        let mut out = TransmitBuffer { buffer: &mut bytes, max_segments: 1 };
        let Some(transmit) = endpoint.transmit(now, &mut out) else { return all };
        bytes.truncate(transmit.size);
        let at = if receiving {
            transmit.local.0
        } else {
            (0..PATHS).find(|index| address(*index) == transmit.remote).unwrap()
        };
        all.push((bytes, at, transmit.phantom));
    }
}

fn take(endpoint: &mut Endpoint, now: Instant, packets: Vec<Packet>, receiving: bool) {
    for (mut bytes, at, phantom) in packets {
        let (local, remote) = if receiving { (Local(at), SENDER) } else { (Local(0), address(at)) };
        let payload = &mut bytes[..];
        let datagram = Datagram { local, remote, ecn: Ecn::NotEct, arrival: now, payload, phantom };
        endpoint.handle(now, Input::Datagram(datagram));
    }
    if endpoint.deadline().is_some_and(|at| at <= now) {
        endpoint.wake(now);
    }
}

/// Every other packet of many paths is lost at once. The receiver then has more ACKs and loss
/// reports (PNACK) than fit into one packet. It sends the rest in further packets, and data keeps
/// arriving.
#[test]
fn what_many_paths_miss_at_once_is_told_in_several_packets() {
    let addresses: Vec<SocketAddr> = (0..PATHS).map(address).collect();
    let mut receiver = endpoint(9, &addresses, true);
    let mut sender = endpoint(7, &[SENDER], false);
    crate::common::many::connect(
        &mut sender,
        Instant::ZERO,
        receiver.public_key(),
        addresses,
        "newreno",
        &[],
    );
    let mut handle: Option<Handle> = None;
    let (mut now, mut count, mut arrived, mut most_answers) = (Instant::ZERO, 0_u64, 0, 0);
    let mut on_the_way = Vec::new();
    for tick in 0..1000 {
        now += TICK;
        let mut packets = std::mem::replace(&mut on_the_way, sent(&mut sender, now, false));
        // Windows grow for a second; then every other packet of all paths is missing.
        packets.retain(|_| {
            count += 1;
            tick % 50 != 49 || count % 2 == 0
        });
        take(&mut receiver, now, packets, true);
        while let Some(event) = receiver.next_event() {
            assert!(matches!(event, EndpointEvent::Accepted(_)), "{event:?}");
            if let EndpointEvent::Accepted(accepted) = event {
                handle = Some(accepted);
            }
        }
        if let Some(incoming) = handle.and_then(|handle| receiver.connection_mut(handle)) {
            while let Some(arrival) = incoming.incoming().next_arrival() {
                arrived += arrival.length;
            }
        }
        let answers = sent(&mut receiver, now, true);
        most_answers = most_answers.max(answers.len());
        take(&mut sender, now, answers, false);
        while let Some(event) = sender.next_event() {
            let EndpointEvent::Connected(connected) = event else { panic!("{event:?}") };
            sender.connection_mut(connected).unwrap().outgoing().add_object(ObjectId(0), 1 << 40);
        }
    }
    assert!(most_answers > 2, "the ACKs of a tick never filled a packet: nothing was tested");
    assert!(arrived > 10 << 20, "{arrived} bytes in 20 s");
}
