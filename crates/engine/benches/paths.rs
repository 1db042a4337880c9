//! Measures how many packets per second two endpoints handle in one thread, without encryption. The
//! time of the simulated relays and links is not counted. Objects have a length and no bytes. All
//! paths have the same rate and RTT.
//!
//! ```text
//! cargo bench -p byway-engine --bench paths [-- PATHS CONGESTION MILLISECONDS [IDLE]]
//! benches/instructions.sh    counts instructions instead of time
//! ```
//!
//! | argument | meaning |
//! |---|---|
//! | `PATHS` | number of open paths, all but one of them through relays |
//! | `CONGESTION` | a congestion controller, for instance `newreno` |
//! | `MILLISECONDS` | the simulated time |
//! | `IDLE` | number of further relays, which answer and carry no data |
//! | none | compares 4 paths, 256 paths, and 4 paths with 1,000 idle relays |
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a bench that cannot run should say where")]
#![expect(clippy::disallowed_types, reason = "a bench looks at the clock")]

mod few;
#[path = "../tests/it/common/many.rs"]
mod many;

use byway_engine::connection::Event;
use byway_engine::connection::path::PathState;
use byway_engine::{Endpoint, EndpointEvent, Handle, RelayState};
use byway_relay::Relay;
use byway_wire::{
    Datagram, Duration, Ecn, Input, Instant, LinkChange, Local, Machine, ObjectId, TransmitBuffer,
};
use std::net::SocketAddr;
use std::time::{Duration as Time, Instant as Clock};

/// Of every path.
const BYTES_PER_SECOND: u64 = 25_000_000 / 8;
const ONE_WAY: Duration = Duration::from_millis(10);
/// What a path's queue holds: some 50 packets.
const QUEUE: Duration = Duration::from_millis(24);
/// How often everybody is looked at.
const STEP: Duration = Duration::from_millis(1);
/// Steps that a packet may be under way.
const AHEAD: usize = 64;
const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)), 5000);
const THERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 1, 1)), 4000);

/// A datagram between two endpoints.
struct Packet {
    bytes: Vec<u8>,
    from: SocketAddr,
    to: SocketAddr,
    phantom: usize,
}

/// Datagrams by the step in which they arrive, and what each path's queue does to them.
struct Queues {
    steps: Vec<Vec<Packet>>,
    free_at: Vec<Instant>,
    spare: Vec<Vec<u8>>,
}

impl Queues {
    fn new(paths: usize) -> Self {
        let steps = (0..AHEAD).map(|_| Vec::new()).collect();
        Self { steps, free_at: vec![Instant::ZERO; paths], spare: Vec::new() }
    }

    /// A path's number: that of the relay's address it goes by, or the last for the direct one.
    fn path(&self, relay: SocketAddr) -> usize {
        match relay.ip() {
            std::net::IpAddr::V4(ip) if ip.octets()[1] == 1 => {
                usize::from(ip.octets()[2]) * 200 + usize::from(ip.octets()[3])
            }
            _ => self.free_at.len() - 1,
        }
    }

    fn push(&mut self, now: Instant, packet: Packet) {
        let path = self.path(if packet.to == THERE || packet.to == HERE { packet.from } else { packet.to });
        let free_at = &mut self.free_at[path];
        let waits = free_at.max(&mut { now }).since(now);
        if waits > QUEUE {
            self.spare.push(packet.bytes);
            return;
        }
        let bytes = (packet.bytes.len() + packet.phantom) as u64;
        *free_at = (*free_at).max(now) + Duration::from_nanos(bytes * 1_000_000_000 / BYTES_PER_SECOND);
        let step = (*free_at + ONE_WAY).as_micros() / STEP.as_micros() as u64 + 1;
        self.steps[step as usize % AHEAD].push(packet);
    }

    fn take(&mut self, now: Instant) -> Vec<Packet> {
        let step = now.as_micros() / STEP.as_micros() as u64;
        std::mem::take(&mut self.steps[step as usize % AHEAD])
    }
}

/// What was written, in memory that was used before: packets are their headers alone, and few.
fn copy(written: &[u8], spare: &mut Vec<Vec<u8>>) -> Vec<u8> {
    let mut bytes = spare.pop().unwrap_or_else(|| Vec::with_capacity(128));
    bytes.clear();
    bytes.extend_from_slice(written);
    bytes
}

/// Datagrams one after the other, and where each ends, whose it is (from whom, or to whom) and its
/// phantom bytes.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    each: Vec<(usize, SocketAddr, usize)>,
}

struct End {
    endpoint: Endpoint,
    address: SocketAddr,
    handle: Option<Handle>,
    /// Where it writes what it sends.
    buffer: Vec<u8>,
    arrived: Batch,
    sent: Batch,
    /// Time spent in its endpoint.
    spent: Time,
}

impl End {
    fn new(seed: u8, address: SocketAddr, receives: bool) -> Self {
        let mut endpoint = many::endpoint(seed, receives);
        endpoint.handle(Instant::ZERO, Input::Link(LinkChange { local: Local(0), address, up: true }));
        Self {
            endpoint,
            address,
            handle: None,
            buffer: vec![0; 1500],
            arrived: Batch::default(),
            sent: Batch::default(),
            spent: Time::ZERO,
        }
    }

    /// The last thing that the connection had to say.
    fn farewell(&mut self) -> Option<Event> {
        let connection = self.endpoint.connection_mut(self.handle?)?;
        std::iter::from_fn(|| connection.next_event()).last()
    }

    /// Takes what arrived, does what is due, and sends.
    fn step(&mut self, now: Instant, arrived: Vec<Packet>, spare: &mut Vec<Vec<u8>>, sent: &mut Vec<Packet>) {
        for Packet { bytes, from, phantom, .. } in arrived {
            self.arrived.bytes.extend_from_slice(&bytes);
            self.arrived.each.push((self.arrived.bytes.len(), from, phantom));
            spare.push(bytes);
        }
        let begun = Clock::now();
        self.work(now);
        self.spent += begun.elapsed();
        let mut start = 0;
        for (end, to, phantom) in self.sent.each.drain(..) {
            let bytes = copy(&self.sent.bytes[start..end], spare);
            sent.push(Packet { bytes, from: self.address, to, phantom });
            start = end;
        }
        self.sent.bytes.clear();
    }

    #[inline(never)]
    fn work(&mut self, now: Instant) {
        let Batch { bytes, each } = &mut self.arrived;
        let mut start = 0;
        for (end, from, phantom) in each.drain(..) {
            let payload = &mut bytes[start..end];
            let ecn = Ecn::NotEct;
            let datagram = Datagram { local: Local(0), remote: from, ecn, arrival: now, payload, phantom };
            self.endpoint.handle(now, Input::Datagram(datagram));
            start = end;
        }
        bytes.clear();
        if self.endpoint.deadline().is_some_and(|at| at <= now) {
            self.endpoint.wake(now);
        }
        while let Some(event) = self.endpoint.next_event() {
            match event {
                EndpointEvent::Connected(handle) => {
                    self.handle = Some(handle);
                    let connection = self.endpoint.connection_mut(handle).unwrap();
                    connection.outgoing().add_object(ObjectId(0), 1 << 50);
                }
                EndpointEvent::Accepted(handle) => self.handle = Some(handle),
                other => panic!("{other:?}: {:?}", self.farewell()),
            }
        }
        if let Some(connection) = self.handle.and_then(|handle| self.endpoint.connection_mut(handle)) {
            while connection.incoming().next_arrival().is_some() {}
        }
        loop {
            let mut out = TransmitBuffer { buffer: &mut self.buffer, max_segments: 1 };
            let Some(transmit) = self.endpoint.transmit(now, &mut out) else { return };
            self.sent.bytes.extend_from_slice(&self.buffer[..transmit.size]);
            self.sent.each.push((self.sent.bytes.len(), transmit.remote, transmit.phantom));
        }
    }
}

struct Bench {
    now: Instant,
    sender: End,
    receiver: End,
    relay: Relay,
    queues: Queues,
    sent: Vec<Packet>,
}

impl Bench {
    fn new(paths: usize, congestion: &str, idle: usize) -> Self {
        let mut relay = many::relay(1024, 1 << 24, 1 << 14);
        let address = SocketAddr::from(([10, 1, 0, 0], 4748));
        relay.handle(Instant::ZERO, Input::Link(LinkChange { local: Local(0), address, up: true }));
        let receiver = End::new(9, THERE, true);
        let mut sender = End::new(7, HERE, false);
        let peer = receiver.endpoint.public_key();
        let words: Vec<_> = (0..paths - 1 + idle).map(|index| many::word(&relay, index)).collect();
        let controller = Box::new(few::Few::new(byway_control::by_name(congestion, 1).unwrap(), paths));
        many::connect_by(&mut sender.endpoint, Instant::ZERO, peer, vec![THERE], controller, &words);
        let queues = Queues::new(paths + idle);
        Self { now: Instant::from_millis(1), sender, receiver, relay, queues, sent: Vec::new() }
    }

    /// Hands over what was sent: to the relay and from there on at once, and then into the queues.
    fn carry(&mut self) {
        let now = self.now;
        for mut packet in self.sent.drain(..) {
            if packet.to == HERE || packet.to == THERE {
                self.queues.push(now, packet);
                continue;
            }
            let (relay, phantom) = (packet.to, packet.phantom);
            let payload = &mut packet.bytes[..];
            let ecn = Ecn::NotEct;
            let remote = packet.from;
            let datagram = Datagram { local: Local(0), remote, ecn, arrival: now, payload, phantom };
            self.relay.handle(now, Input::Datagram(datagram));
            self.queues.spare.push(packet.bytes);
            loop {
                let mut out = TransmitBuffer { buffer: &mut self.sender.buffer, max_segments: 1 };
                let Some(transmit) = self.relay.transmit(now, &mut out) else { break };
                let bytes = copy(&self.sender.buffer[..transmit.size], &mut self.queues.spare);
                let phantom = transmit.phantom;
                self.queues.push(now, Packet { bytes, from: relay, to: transmit.remote, phantom });
            }
        }
    }

    /// By name, so that callgrind tells the two ends apart.
    #[inline(never)]
    fn sending_end(&mut self, arrived: Vec<Packet>) {
        self.sender.step(self.now, arrived, &mut self.queues.spare, &mut self.sent);
    }

    #[inline(never)]
    fn receiving_end(&mut self, arrived: Vec<Packet>) {
        self.receiver.step(self.now, arrived, &mut self.queues.spare, &mut self.sent);
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += STEP;
            let now = self.now;
            if self.relay.deadline().is_some_and(|at| at <= now) {
                self.relay.wake(now);
            }
            let (here, there) = self.queues.take(now).into_iter().partition(|packet| packet.to == HERE);
            self.sending_end(here);
            self.carry();
            self.receiving_end(there);
            self.carry();
        }
    }

    fn available(&mut self) -> usize {
        let handle = self.sender.handle.expect("connected");
        let relays = self.sender.endpoint.relays(self.now, handle);
        relays.iter().filter(|relay| relay.standing == RelayState::Available).count()
    }

    fn sent(&self) -> (u64, usize) {
        let handle = self.sender.handle.expect("connected");
        let status = self.sender.endpoint.connection(handle).expect("a connection").status();
        let active = status.paths.iter().filter(|path| path.state == PathState::Active).count();
        (status.paths.iter().map(|path| path.totals.packets).sum(), active)
    }
}

/// Packets per second.
fn measure(paths: usize, congestion: &str, time: Duration, idle: usize) -> f64 {
    let mut bench = Bench::new(paths, congestion, idle);
    bench.run(Duration::from_secs(4));
    let (before, _) = bench.sent();
    let (here, there) = (bench.sender.spent, bench.receiver.spent);
    bench.run(time);
    let (after, active) = bench.sent();
    let packets = (after - before) as f64;
    let [here, there] = [bench.sender.spent - here, bench.receiver.spent - there].map(|t| t.as_secs_f64());
    let available = bench.available();
    println!(
        "{paths:>4} paths {congestion:<8} {active:>4} active {available:>4} available {packets:>9} packets {:>9.0} packets/s, sender {:>5.0} ns, \
         receiver {:>5.0} ns each",
        packets / (here + there),
        here / packets * 1e9,
        there / packets * 1e9,
    );
    packets / (here + there)
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [paths, congestion, millis, idle @ ..] = &words[..] {
        let time = Duration::from_millis(millis.parse().expect("milliseconds"));
        let idle = idle.first().map_or(0, |idle| idle.parse().expect("idle relays"));
        measure(paths.parse().expect("paths"), congestion, time, idle);
        return;
    }
    let mut rates = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..5 {
        rates[0].push(measure(4, "newreno", Duration::from_secs(40), 0));
        rates[1].push(measure(256, "newreno", Duration::from_secs(1), 0));
        rates[2].push(measure(4, "newreno", Duration::from_secs(40), 1_000));
    }
    let [few, many, idle] = rates.map(|rates| median(&rates));
    println!("256 paths: {:.2} of the packets per second of 4", many / few);
    println!("1,000 idle relays: {:.2} of the packets per second without", idle / few);
}
