//! Two endpoints with very many paths, direct or through relays, without encryption. The packets
//! leave out the transferred bytes and state only their number. This file uses no other file here,
//! so benches can include it.
#![allow(dead_code, reason = "each test and bench uses its part")]

use byway_control::{Controller, by_name};
use byway_engine::handshake::{Identity, PublicKey};
use byway_engine::seal::Suites;
use byway_engine::{Admission, Admit, Config, Connect, Endpoint, EndpointConfig, Handle, Payload};
use byway_relay::{Config as RelayConfig, Policy, Relay};
use byway_wire::relay::{Grant, Minute, QuotaClass, RateClass, Scope, Terms, Word};
use byway_wire::{Duration, Instant};
use std::net::SocketAddr;

/// When all this happens: relays and their words know the time of day. Seconds since 1970.
const UNIX: u64 = 1_800_057_600;

/// Lets everybody in.
struct Everybody;

impl Admission for Everybody {
    fn admit(&mut self, _: PublicKey, _: &[u8]) -> Admit {
        Admit::Accept(by_name("newreno", 2).unwrap())
    }
}

/// An endpoint that asks nobody for room or time: a sender, or a receiver of whoever comes.
pub fn endpoint(seed: u8, receives: bool) -> Endpoint {
    let mut connection = Config { payload: Payload::Length, ..Config::default() };
    connection.probe_interval = Duration::from_millis(2);
    connection.relays_per_peer = 1024;
    connection.outgoing.memory = 256 << 20;
    connection.incoming.memory = 256 << 20;
    let everybody: Box<dyn Admission> = Box::new(Everybody);
    Endpoint::new(EndpointConfig {
        identity: Identity::from_secret([seed; 32]),
        suites: Suites::INSECURE_SIMULATION,
        seed: [seed; 32],
        connection,
        admission: receives.then_some(everybody),
        greeting: Vec::new(),
    })
}

/// Begins a connection to a receiver, governed by the controller of that name, over its addresses
/// and over relays.
pub fn connect(
    sender: &mut Endpoint,
    now: Instant,
    peer: PublicKey,
    addresses: Vec<SocketAddr>,
    congestion: &str,
    words: &[Word],
) -> Handle {
    connect_by(sender, now, peer, addresses, by_name(congestion, 1).unwrap(), words)
}

/// The same with a controller at hand.
pub fn connect_by(
    sender: &mut Endpoint,
    now: Instant,
    peer: PublicKey,
    addresses: Vec<SocketAddr>,
    controller: Box<dyn Controller>,
    words: &[Word],
) -> Handle {
    let connect = Connect { peer, addresses, application: Vec::new(), controller };
    let handle = sender.connect(now, connect).unwrap();
    for word in words {
        sender.add_relay(now, handle, word, None);
    }
    handle
}

/// A relay for `clients` that forwards between hosts of 10.0.0.0/8, with room for so many bytes in
/// a queue of so many datagrams.
pub fn relay(clients: usize, bytes: usize, datagrams: usize) -> Relay {
    let mut config = RelayConfig::new([5; 32], UNIX * 1000);
    config.policy = Policy::public().allow("10.0.0.0/8".parse().unwrap());
    (config.accounts, config.queue_bytes, config.queue_datagrams) = (clients, bytes, datagrams);
    config.greetings_per_second = 1 << 20;
    Relay::new(&config, Instant::ZERO)
}

/// Where the relay of this number is.
pub fn relay_address(index: usize) -> SocketAddr {
    SocketAddr::from(([10, 1, (index / 200) as u8, (index % 200) as u8], 4748))
}

/// A word of a relay that is met at the address of this number, without limits.
pub fn word(relay: &Relay, index: usize) -> Word {
    let expiry = Minute::from_unix(UNIX + 40 * 86_400);
    let (rate, quota) = (RateClass::UNLIMITED, QuotaClass::UNLIMITED);
    let terms = Terms { expiry, rate, quota, scope: Scope::ALL };
    relay.issue(Grant { id: 7 + index as u32, terms }, vec![relay_address(index)]).unwrap()
}
