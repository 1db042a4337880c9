//! The code point and the ECN mark of what a session sends.

use byway_control::Class;
use byway_engine::handshake::Identity;
use byway_engine::seal::Suites;
use byway_engine::{Admission, Admit, Config, Connect, Endpoint, EndpointConfig, EndpointEvent, Payload};
use byway_wire::packet::Handshake;
use byway_wire::{
    Datagram, Dscp, Duration, Ecn, Input, Instant, LinkChange, Local, Machine, ObjectId, TransmitBuffer,
};
use std::net::SocketAddr;

const ONE_WAY: Duration = Duration::from_millis(5);
const BYTES: u64 = 2 << 20;

struct Everybody;

impl Admission for Everybody {
    fn admit(&mut self, _: byway_engine::handshake::PublicKey, _: &[u8]) -> Admit {
        Admit::Accept(Class::Normal.controller(2))
    }
}

fn address(end: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, end], 4000))
}

fn endpoint(end: u8, dscp: Dscp) -> Endpoint {
    let everybody: Box<dyn Admission> = Box::new(Everybody);
    let mut endpoint = Endpoint::new(EndpointConfig {
        identity: Identity::from_secret([end; 32]),
        suites: Suites::INSECURE_SIMULATION,
        seed: [end; 32],
        connection: Config { payload: Payload::Length, dscp, ..Config::default() },
        admission: Some(everybody),
        greeting: Vec::new(),
    });
    let link = LinkChange { local: Local(0), address: address(end), up: true };
    endpoint.handle(Instant::ZERO, Input::Link(link));
    endpoint
}

/// Datagrams that an end sent, by what was written on them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sent {
    handshake: u32,
    lower: u32,
    best: u32,
    capable: u32,
}

/// Moves an object from end 1 to end 2. The network delivers only datagrams with a DSCP for which
/// `carries` returns `true`. Returns what each end sent.
fn transfer(dscp: Dscp, carries: impl Fn(Dscp) -> bool) -> [Sent; 2] {
    let mut ends = [endpoint(1, dscp), endpoint(2, Dscp::BestEffort)];
    let connect = Connect {
        peer: ends[1].public_key(),
        addresses: vec![address(2)],
        application: Vec::new(),
        controller: Class::Background.controller(1),
    };
    ends[0].connect(Instant::ZERO, connect).unwrap();
    let mut sent = [Sent::default(), Sent::default()];
    let (mut under_way, mut now, mut arrived, mut taken) = (Vec::new(), Instant::ZERO, 0, None);
    while arrived < BYTES {
        assert!(now < Instant::from_millis(60_000), "{arrived} bytes arrived, and {sent:?} was sent");
        for (from, end) in ends.iter_mut().enumerate() {
            let mut bytes = vec![0; 2_000];
            while let Some(it) =
                end.transmit(now, &mut TransmitBuffer { buffer: &mut bytes, max_segments: 1 })
            {
                assert_ne!(it.ecn, Ecn::Ect1);
                let sent = &mut sent[from];
                let count = match it.dscp {
                    _ if Handshake::is(bytes[0]) => &mut sent.handshake,
                    Dscp::LowerEffort => &mut sent.lower,
                    Dscp::BestEffort => &mut sent.best,
                };
                *count += 1;
                sent.capable += u32::from(it.ecn == Ecn::Ect0);
                assert!(!Handshake::is(bytes[0]) || it.dscp == Dscp::BestEffort);
                if carries(it.dscp) {
                    under_way.push((now + ONE_WAY, 1 - from, bytes[..it.size].to_vec(), it.phantom));
                }
            }
        }
        now += Duration::from_millis(1);
        for (at, to, mut bytes, phantom) in std::mem::take(&mut under_way) {
            if at > now {
                under_way.push((at, to, bytes, phantom));
                continue;
            }
            let remote = address(2 - to as u8);
            let (local, ecn, payload) = (Local(0), Ecn::NotEct, &mut bytes[..]);
            ends[to].handle(
                now,
                Input::Datagram(Datagram { local, remote, ecn, arrival: now, payload, phantom }),
            );
        }
        for end in &mut ends {
            if end.deadline().is_some_and(|at| at <= now) {
                end.wake(now);
            }
        }
        while let Some(event) = ends[0].next_event() {
            let EndpointEvent::Connected(handle) = event else { panic!("{event:?}") };
            ends[0].connection_mut(handle).unwrap().outgoing().add_object(ObjectId(0), BYTES);
        }
        while let Some(event) = ends[1].next_event() {
            let EndpointEvent::Accepted(handle) = event else { panic!("{event:?}") };
            taken = Some(handle);
        }
        if let Some(connection) = taken.and_then(|handle| ends[1].connection_mut(handle)) {
            while let Some(arrival) = connection.incoming().next_arrival() {
                arrived += arrival.length;
            }
        }
    }
    sent
}

const PACKETS: u32 = (BYTES / 1_472) as u32;

#[test]
fn an_end_marks_all_of_a_session_as_it_was_told_and_never_what_belongs_to_none() {
    let [sender, receiver] = transfer(Dscp::LowerEffort, |_| true);
    assert!(sender.handshake > 0 && sender.lower > PACKETS && sender.capable > PACKETS, "{sender:?}");
    assert_eq!(sender.best, 0);
    assert!(receiver.best > 0 && receiver.lower == 0, "ACKs are not held back: {receiver:?}");
    let [sender, _] = transfer(Dscp::BestEffort, |_| true);
    assert!(sender.best > PACKETS && sender.lower == 0, "{sender:?}");
}

#[test]
fn a_path_that_does_not_carry_lower_effort_goes_on_as_best_effort() {
    let [sender, _] = transfer(Dscp::LowerEffort, |dscp| dscp == Dscp::BestEffort);
    assert!(sender.best > PACKETS && sender.lower > 0 && sender.lower < 50, "{sender:?}");
}
