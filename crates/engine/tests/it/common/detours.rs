//! Worlds with relays. They have a sender, a receiver, a direct line, and detours.

use super::{Plan, Receiver, Sender, address, identity, line};
use byway_relay::{Config as RelayConfig, Policy, Relay};
use byway_sim::{PipeConfig, World};
use byway_wire::relay::{Grant, Minute, QuotaClass, RateClass, Scope, Terms, Word};
use byway_wire::{Duration, Instant};
use std::net::{IpAddr, SocketAddr};

pub const MIB: u64 = 1 << 20;
pub const UNIX: u64 = 1_800_057_600;
pub const KEY: [u8; 32] = [5; 32];

pub fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub fn sender_address() -> SocketAddr {
    address("10.0.0.1:5000")
}

pub fn receiver_address() -> SocketAddr {
    address("10.0.1.1:4000")
}

pub fn relay_address(index: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 2 + (index >> 8) as u8, index as u8], 4748))
}

/// The number of the relay at this address.
pub fn relay_index(at: SocketAddr) -> Option<usize> {
    match at.ip() {
        IpAddr::V4(ip) if ip.octets()[2] >= 2 => {
            let [_, _, high, low] = ip.octets().map(usize::from);
            Some(((high - 2) << 8) + low)
        }
        _ => None,
    }
}

pub fn relay(now: Instant) -> Relay {
    let mut config = RelayConfig::new(KEY, UNIX * 1000 + now.as_nanos() / 1_000_000);
    config.policy = Policy::public().allow("10.0.0.0/8".parse().unwrap());
    Relay::new(&config, now)
}

pub fn word(index: usize, quota: QuotaClass) -> Word {
    let expiry = Minute::from_unix(UNIX + 40 * 86_400);
    let terms = Terms { expiry, rate: RateClass::UNLIMITED, quota, scope: Scope::ALL };
    let grant = Grant { id: 7 + index as u32, terms };
    relay(Instant::ZERO).issue(grant, vec![relay_address(index)]).unwrap()
}

/// A sender, a receiver, a direct line, and relays with a line to each of the two.
pub struct Detours {
    pub world: World,
    pub sender: byway_sim::Handle<Sender>,
    pub receiver: byway_sim::Handle<Receiver>,
    pub relays: Vec<byway_sim::Handle<Relay>>,
}

/// `ways`: for each relay its lines to the sender and to the receiver, both ways alike.
pub fn detours(seed: u64, mut plan: Plan, direct: &PipeConfig, ways: &[(PipeConfig, PipeConfig)]) -> Detours {
    let mut world = World::new(seed);
    let (from, to) = (sender_address(), receiver_address());
    plan.addresses.push(to);
    let receiver = world.add("receiver", Receiver::new(9, plan.config.clone(), plan.suites), &[to]);
    let sender = world.add("sender", Sender::new(7, identity(9).public(), plan), &[from]);
    world.connect(from, to, direct.clone(), direct.clone());
    let mut relays = Vec::new();
    for (index, (near, far)) in ways.iter().enumerate() {
        let at = relay_address(index);
        relays.push(world.add(&format!("relay {index}"), relay(Instant::ZERO), &[at]));
        world.connect(from, at, near.clone(), near.clone());
        world.connect(at, to, far.clone(), far.clone());
    }
    Detours { world, sender, receiver, relays }
}

impl Detours {
    pub fn finish(&mut self, limit: u64, size: u64) -> Duration {
        let sender = self.sender;
        let limit = Instant::ZERO + seconds(limit);
        let done = self.world.run_while(|world| !world[sender].finished(), limit);
        let host = &self.world[sender];
        assert!(done, "not done: received {}", self.world[self.receiver].received);
        assert_eq!(self.world[self.receiver].received, size);
        let done_at = host.done_at.unwrap_or_else(|| panic!("{:?} {:?}", host.failed, host.closed));
        done_at.since(Instant::ZERO)
    }

    pub fn forwarded(&self) -> Vec<u64> {
        self.relays.iter().map(|relay| self.world[*relay].counters().forwarded_bytes).collect()
    }
}

pub fn through(congestion: &'static str, size: u64, relays: usize) -> Plan {
    let mut plan = Plan::new(congestion, &[size], &[]);
    plan.relays = (0..relays).map(|index| (word(index, QuotaClass::UNLIMITED), None)).collect();
    plan
}

/// A way of this rate to the sender, and a fast line to the receiver.
pub fn way(mbit: u64, near: Duration) -> (PipeConfig, PipeConfig) {
    (line(mbit, near), line(100, 5 * super::MS).queue(200))
}
