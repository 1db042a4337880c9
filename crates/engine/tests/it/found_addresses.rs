//! Addresses of a peer that are found after the attempt to connect has begun.

use crate::common::{address, identity};
use byway_control::by_name;
use byway_engine::handshake::PublicKey;
use byway_engine::seal::Suites;
use byway_engine::{
    Admission, Admit, Config, Connect, ConnectError, Endpoint, EndpointConfig, EndpointEvent, Handle,
};
use byway_wire::{Datagram, Duration, Ecn, Input, Instant, LinkChange, Local, Machine, TransmitBuffer};
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// The most addresses that are added to an attempt or a connection.
const MAX_ADDED: usize = 16;

struct Everybody;

impl Admission for Everybody {
    fn admit(&mut self, _: PublicKey, _: &[u8]) -> Admit {
        Admit::Accept(by_name("newreno", 2).unwrap())
    }
}

/// An endpoint with one socket, and what it sends.
struct Host {
    endpoint: Endpoint,
    address: SocketAddr,
}

impl Host {
    fn new(seed: u8, own: &str) -> Self {
        let mut endpoint = Endpoint::new(EndpointConfig {
            identity: identity(seed),
            suites: Suites::SECURE,
            seed: [seed; 32],
            connection: Config::default(),
            admission: Some(Box::new(Everybody)),
            greeting: Vec::new(),
        });
        let own = address(own);
        endpoint.handle(at(0), Input::Link(LinkChange { local: Local(0), address: own, up: true }));
        Self { endpoint, address: own }
    }

    fn connect(&mut self, peer: &Self) -> Handle {
        self.connect_to(peer, Vec::new())
    }

    fn connect_to(&mut self, peer: &Self, addresses: Vec<SocketAddr>) -> Handle {
        let controller = by_name("newreno", 1).unwrap();
        let peer = peer.endpoint.public_key();
        let connect = Connect { peer, addresses, application: Vec::new(), controller };
        self.endpoint.connect(at(0), connect).unwrap()
    }

    /// Each datagram that is due, and where to.
    fn sent(&mut self, now: Instant) -> Vec<(SocketAddr, Vec<u8>)> {
        self.endpoint.wake(now);
        let (mut sent, mut buffer) = (Vec::new(), vec![0; 65_536]);
        while let Some(transmit) =
            self.endpoint.transmit(now, &mut TransmitBuffer { buffer: &mut buffer, max_segments: 1 })
        {
            sent.push((transmit.remote, buffer[..transmit.size].to_vec()));
        }
        sent
    }

    fn take(&mut self, now: Instant, from: SocketAddr, mut payload: Vec<u8>) {
        let datagram = Datagram {
            local: Local(0),
            remote: from,
            ecn: Ecn::NotEct,
            arrival: now,
            payload: &mut payload,
            phantom: 0,
        };
        self.endpoint.handle(now, Input::Datagram(datagram));
    }

    fn events(&mut self) -> Vec<EndpointEvent> {
        std::iter::from_fn(|| self.endpoint.next_event()).collect()
    }
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Where both hosts send until then, every 10 ms. What is sent to the other host arrives.
fn run(hosts: &mut [Host; 2], from: u64, until: u64) -> BTreeSet<SocketAddr> {
    let mut all = BTreeSet::new();
    for now in (from..until).step_by(10).map(at) {
        for number in [0, 1] {
            for (to, bytes) in hosts[number].sent(now) {
                all.insert(to);
                let source = hosts[number].address;
                if hosts[1 - number].address == to {
                    hosts[1 - number].take(now, source, bytes);
                }
            }
        }
    }
    all
}

#[test]
fn an_attempt_without_addresses_waits_for_them_and_tries_sixteen_of_them() {
    let mut hosts = [Host::new(1, "192.0.2.1:1000"), Host::new(2, "192.0.2.2:2000")];
    let [here, there] = &mut hosts;
    let handle = here.connect(there);
    here.endpoint.expect_addresses(handle, true);
    assert!(run(&mut hosts, 0, 5_000).is_empty() && hosts[0].events().is_empty());
    for host in 0..20 {
        let found = SocketAddr::from(([198, 51, 100, host], 4747));
        (0..2).for_each(|_| hosts[0].endpoint.add_address(at(5_000), handle, found));
    }
    // Of another family than the socket.
    hosts[0].endpoint.add_address(at(5_000), handle, address("[2001:db8::1]:4747"));
    let tried = run(&mut hosts, 5_000, 5_010);
    assert_eq!(tried.len(), MAX_ADDED);
}

#[test]
fn an_attempt_that_expects_no_more_addresses_fails() {
    let mut hosts = [Host::new(1, "192.0.2.1:1000"), Host::new(2, "192.0.2.2:2000")];
    let [here, there] = &mut hosts;
    let handle = here.connect(there);
    here.endpoint.expect_addresses(handle, true);
    run(&mut hosts, 0, 1_000);
    hosts[0].endpoint.expect_addresses(handle, false);
    run(&mut hosts, 1_000, 1_100);
    assert_eq!(hosts[0].events(), [EndpointEvent::Failed(handle, ConnectError::NoRoute)]);
}

#[test]
fn a_connection_probes_addresses_that_are_found_later() {
    let mut hosts = [Host::new(1, "192.0.2.1:1000"), Host::new(2, "192.0.2.2:2000")];
    let there = hosts[1].address;
    let handle = {
        let [here, there] = &mut hosts;
        here.connect(there)
    };
    hosts[0].endpoint.add_address(at(0), handle, there);
    run(&mut hosts, 0, 1_000);
    assert_eq!(hosts[0].events(), [EndpointEvent::Connected(handle)]);
    let found = address("198.51.100.7:4747");
    hosts[0].endpoint.add_address(at(1_000), handle, found);
    let wait = Duration::from_secs(2).as_millis() as u64;
    assert!(run(&mut hosts, 1_000, 1_000 + wait).contains(&found));
}

/// Addresses at which nobody answers.
fn dead_addresses(count: u8) -> Vec<SocketAddr> {
    (0..count).map(|host| SocketAddr::from(([198, 51, 100, host], 4747))).collect()
}

#[test]
fn an_address_of_a_name_is_tried_beside_a_full_list_of_others() {
    let mut hosts = [Host::new(1, "192.0.2.1:1000"), Host::new(2, "192.0.2.2:2000")];
    let there = hosts[1].address;
    let handle = {
        let [here, there] = &mut hosts;
        here.connect_to(there, dead_addresses(MAX_ADDED as u8))
    };
    run(&mut hosts, 0, 1_000);
    hosts[0].endpoint.add_address(at(1_000), handle, there);
    run(&mut hosts, 1_000, 3_000);
    assert_eq!(hosts[0].events(), [EndpointEvent::Connected(handle)]);
}

/// A name that leads elsewhere every day has led to many addresses in a month.
#[test]
fn a_connection_tries_what_is_found_after_sixteen_others() {
    let mut hosts = [Host::new(1, "192.0.2.1:1000"), Host::new(2, "192.0.2.2:2000")];
    let there = hosts[1].address;
    let handle = {
        let [here, there] = &mut hosts;
        here.connect(there)
    };
    hosts[0].endpoint.add_address(at(0), handle, there);
    run(&mut hosts, 0, 1_000);
    assert_eq!(hosts[0].events(), [EndpointEvent::Connected(handle)]);
    let dead = dead_addresses(MAX_ADDED as u8 + 4);
    for (second, found) in (1..).zip(&dead) {
        hosts[0].endpoint.add_address(at(second * 1_000), handle, *found);
        run(&mut hosts, second * 1_000, (second + 1) * 1_000);
    }
    let tried = run(&mut hosts, 21_000, 60_000);
    assert!(tried.contains(dead.last().unwrap()), "{tried:?}");
}
