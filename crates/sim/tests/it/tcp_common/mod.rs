//! Worlds for the tests and the bench of TCP hosts.
#![allow(dead_code, reason = "each test binary uses its own part")]

use byway_sim::tcp::{Flow, FlowId, ServerConfig, TcpConfig, TcpHost};
use byway_sim::{Handle, LinkId, PipeConfig, World};
use byway_wire::{Duration, Instant};
use std::net::SocketAddr;

pub const MS: Duration = Duration::from_millis(1);

pub fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// 10.`net`.`host / 256`.`host % 256`:80.
pub fn address(net: u8, host: usize) -> SocketAddr {
    SocketAddr::from(([10, net, (host / 256) as u8, host as u8], 80))
}

/// Senders and receivers, a pair for each flow, with access links of their own on both sides of one
/// bottleneck.
pub struct Dumbbell {
    pub world: World,
    pub senders: Vec<Handle<TcpHost>>,
    pub receivers: Vec<Handle<TcpHost>>,
    pub bottleneck: LinkId,
}

impl Dumbbell {
    /// `access` has one config for each pair of hosts: for its access links on both sides, in both
    /// directions. `line` is the bottleneck from senders to receivers. The line back is the same,
    /// except for a queue of 2^20 packets.
    pub fn new(seed: u64, access: &[PipeConfig], line: PipeConfig, serve: &ServerConfig) -> Self {
        let mut world = World::new(seed);
        let back = PipeConfig { queue_packets: 1 << 20, ..line.clone() };
        let bottleneck = world.link("there", line);
        let back = world.link("back", back);
        let (mut senders, mut receivers) = (Vec::new(), Vec::new());
        for (pair, access) in access.iter().enumerate() {
            let (from, to) = (address(1, pair), address(2, pair));
            senders.push(world.add(&format!("s{pair}"), TcpHost::new(2 * pair as u64), &[from]));
            let receiver = TcpHost::serving(2 * pair as u64 + 1, serve.clone());
            receivers.push(world.add(&format!("r{pair}"), receiver, &[to]));
            let [a, b, c, d] =
                ["a", "b", "c", "d"].map(|leg| world.link(&format!("{leg}{pair}"), access.clone()));
            world.route(from, to.ip(), &[a, bottleneck, b]);
            world.route(to, from.ip(), &[c, back, d]);
        }
        Self { world, senders, receivers, bottleneck }
    }

    /// Bytes that each receiver's application has.
    pub fn received(&self) -> Vec<u64> {
        self.receivers.iter().map(|&receiver| self.world[receiver].received_bytes()).collect()
    }

    /// Goodput of each receiver from now to `end` in Mbit/s.
    pub fn goodput(&mut self, end: Instant) -> Vec<f64> {
        let (start, before) = (self.world.now(), self.received());
        self.world.run_until(end);
        let time = end.since(start).as_secs_f64();
        let after = self.received();
        after.iter().zip(before).map(|(after, before)| (after - before) as f64 * 8e-6 / time).collect()
    }
}

/// The conventions of the oracle runs: no delayed ACKs, 1448 bytes of payload in 1502 on the line.
pub fn prompt() -> (TcpConfig, ServerConfig) {
    let options = TcpConfig::default().without_delayed_ack();
    (options.clone(), ServerConfig { options, ..ServerConfig::default() })
}

pub fn line(rate: u64, delay: Duration, queue: usize) -> PipeConfig {
    PipeConfig { overhead: 30, ..PipeConfig::new(rate, delay).queue(queue) }
}

/// So many NewReno flows, begun `apart`, over one bottleneck of 8 ms with 1 ms of access on both
/// sides.
pub fn dumbbell(
    flows: usize,
    rate: u64,
    queue: usize,
    first: Instant,
    apart: Duration,
    seed: u64,
) -> Dumbbell {
    dumbbell_with(line(1_000_000_000, MS, 10_000), flows, rate, queue, first, apart, seed)
}

fn dumbbell_with(
    access: PipeConfig,
    flows: usize,
    rate: u64,
    queue: usize,
    first: Instant,
    apart: Duration,
    seed: u64,
) -> Dumbbell {
    let (options, serve) = prompt();
    let access = vec![access; flows];
    let mut dumbbell = Dumbbell::new(seed, &access, line(rate, 8 * MS, queue), &serve);
    for pair in 0..flows {
        let flow = Flow::tcp(address(2, pair)).options(options.clone()).start(first + apart * pair as u32);
        dumbbell.world.act(dumbbell.senders[pair], |host, _| host.open(flow));
    }
    dumbbell
}

/// D2: two flows over 10 Mbit/s, with a queue of 50 packets.
pub fn d2() -> Dumbbell {
    dumbbell(2, 10_000_000, 50, at(10), 100 * MS, 1)
}

/// D100: 100 flows over 1 Gbit/s, with a queue of 1 667 packets.
pub fn d100() -> Dumbbell {
    dumbbell(100, 1_000_000_000, 1_667, at(5), 5 * MS, 1)
}

/// D100 (100 flows over 1 Gbit/s) with up to 0.1 ms of jitter on the access lines. Without jitter,
/// bursts arrive exactly as fast as the bottleneck's queue frees places, and flows with large
/// windows lose no packets.
pub fn jittered_d100(seed: u64) -> Dumbbell {
    let access = line(1_000_000_000, MS, 10_000).jitter(MS / 10);
    dumbbell_with(access, 100, 1_000_000_000, 1_667, at(5), 5 * MS, seed)
}

pub fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    sum * sum / (rates.len() as f64 * rates.iter().map(|rate| rate * rate).sum::<f64>())
}

/// One host that sends to another over a line each way.
pub struct Pair {
    pub world: World,
    pub sender: Handle<TcpHost>,
    pub receiver: Handle<TcpHost>,
    pub there: LinkId,
    pub back: LinkId,
}

impl Pair {
    pub fn new(seed: u64, there: PipeConfig, back: PipeConfig, serve: ServerConfig) -> Self {
        let mut world = World::new(seed);
        let (from, to) = (address(1, 0), address(2, 0));
        let sender = world.add("sender", TcpHost::new(1), &[from]);
        let receiver = world.add("receiver", TcpHost::serving(2, serve), &[to]);
        let (there, back) = world.connect(from, to, there, back);
        Self { world, sender, receiver, there, back }
    }

    pub fn open(&mut self, flow: Flow) -> FlowId {
        self.world.act(self.sender, |host, _| host.open(flow))
    }

    pub fn received(&self) -> u64 {
        self.world[self.receiver].received_bytes()
    }
}
