//! A line that many share: sessions, each between two hosts of its own, and TCP flows.

use super::{Plan, Receiver, Sender, identity};
use byway_control::Controller;
use byway_sim::tcp::{Flow, ServerConfig, Subflow, TcpConfig, TcpHost};
use byway_sim::{Handle, LinkId, PipeConfig, World};
use byway_wire::{Duration, Instant};
use std::net::SocketAddr;

/// A session over the line.
#[derive(Clone, Copy)]
pub struct Session {
    pub sender: Handle<Sender>,
    pub receiver: Handle<Receiver>,
}

/// A line with the same delay back, and whoever uses it.
pub struct Shared {
    pub world: World,
    pub there: LinkId,
    pub back: LinkId,
    pub sessions: Vec<Session>,
    /// Hosts that receive TCP flows.
    pub flows: Vec<Handle<TcpHost>>,
    hosts: u8,
}

impl Shared {
    pub fn new(seed: u64, line: &PipeConfig) -> Self {
        let mut world = World::new(seed);
        world.stop_trace();
        let back = PipeConfig { loss: 0.0, bursts: None, queue_packets: 100_000, ..line.clone() };
        let there = world.link("there", line.clone());
        let back = world.link("back", back);
        Self { world, there, back, sessions: Vec::new(), flows: Vec::new(), hosts: 0 }
    }

    pub fn pair(&mut self) -> (SocketAddr, SocketAddr) {
        self.hosts += 1;
        let (from, to) = ([10, 1, 0, self.hosts], [10, 2, 0, self.hosts]);
        (SocketAddr::from((from, 5_000)), SocketAddr::from((to, 4_000)))
    }

    pub fn connect(&mut self, from: SocketAddr, to: SocketAddr) {
        self.world.route(from, to.ip(), &[self.there]);
        self.world.route(to, from.ip(), &[self.back]);
    }

    /// Two more hosts and a session between them. Both of its ends draw chance from `seed`.
    pub fn session(&mut self, seed: u8, mut plan: Plan) -> Session {
        let (from, to) = self.pair();
        plan.addresses.push(to);
        let receiver = Receiver::new(seed ^ 0x80, plan.config.clone(), plan.suites);
        let receiver = self.world.add(&format!("receiver {to}"), receiver, &[to]);
        let sender = Sender::new(seed, identity(seed ^ 0x80).public(), plan);
        let sender = self.world.add(&format!("sender {from}"), sender, &[from]);
        self.connect(from, to);
        let session = Session { sender, receiver };
        self.sessions.push(session);
        session
    }

    /// Two more hosts and a TCP flow between them, without end.
    pub fn tcp(&mut self, controller: Box<dyn Controller>, start: Duration) -> Handle<TcpHost> {
        let (from, to) = self.pair();
        let mut flow = Flow::new(vec![Subflow::direct(to)], controller);
        flow.start = Instant::ZERO + start;
        flow.options = TcpConfig::default();
        let mut host = TcpHost::new(u64::from(self.hosts));
        host.open(flow);
        self.world.add(&format!("tcp from {from}"), host, &[from]);
        let host = TcpHost::serving(u64::from(self.hosts) + 100, ServerConfig::default());
        let receiver = self.world.add(&format!("tcp to {to}"), host, &[to]);
        self.connect(from, to);
        self.flows.push(receiver);
        receiver
    }

    /// Bytes that each session and then each TCP flow has received.
    pub fn received(&self) -> Vec<u64> {
        let sessions = self.sessions.iter().map(|session| self.world[session.receiver].received);
        sessions.chain(self.flows.iter().map(|host| self.world[*host].received_bytes())).collect()
    }

    /// Runs on until `until`; Mbit/s of each session and then of each TCP flow in that time.
    pub fn rates(&mut self, until: Duration) -> Vec<f64> {
        let (began, before) = (self.world.now(), self.received());
        let until = Instant::ZERO + until;
        self.world.run_until(until);
        let time = until.since(began).as_secs_f64();
        let after = self.received();
        after.iter().zip(before).map(|(after, before)| (after - before) as f64 * 8e-6 / time).collect()
    }
}
