//! Machines small enough to be obviously right, for the tests of the world.
#![allow(dead_code, reason = "each test binary uses its own part")]

use byway_sim::Node;
use byway_wire::{Datagram, Dscp, Duration, Ecn, Input, Instant, Local, Machine, Transmit, TransmitBuffer};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// 10.0.0.`host`:`port`.
pub fn address(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], port))
}

/// Sends numbered pings, one at a time, and sends again what is not answered in time. With no
/// destination it answers.
#[derive(Debug, Default)]
pub struct Ping {
    pub to: Option<SocketAddr>,
    pub goal: u64,
    pub retry: Duration,
    pub size: usize,
    /// Pings answered so far.
    pub answered: u64,
    /// Pings and answers received.
    pub heard: u64,
    /// When each answer came, on the machine's clock.
    pub times: Vec<Instant>,
    /// Remotes from which something came, each change noted.
    pub remotes: Vec<SocketAddr>,
    queue: VecDeque<(SocketAddr, u64)>,
    due: Option<Instant>,
}

impl Ping {
    pub fn client(to: SocketAddr, goal: u64, retry: Duration) -> Self {
        Self { to: Some(to), goal, retry, size: 100, due: Some(Instant::ZERO), ..Self::default() }
    }

    pub fn server() -> Self {
        Self { size: 100, ..Self::default() }
    }

    pub fn done(&self) -> bool {
        self.answered == self.goal
    }

    fn ask(&mut self, now: Instant) {
        if let (Some(to), false) = (self.to, self.done()) {
            self.queue.push_back((to, self.answered));
            self.due = Some(now + self.retry);
        } else {
            self.due = None;
        }
    }
}

impl Machine for Ping {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        let Input::Datagram(Datagram { remote, payload, .. }) = input else { return };
        self.heard += 1;
        if self.remotes.last() != Some(&remote) {
            self.remotes.push(remote);
        }
        // Number and its complement: corruption shows.
        let (words, _) = payload.as_chunks::<8>();
        let &[number, check, ..] = words else { return };
        let (number, check) = (u64::from_be_bytes(number), u64::from_be_bytes(check));
        if number != !check {
            return;
        }
        if self.to.is_none() {
            self.queue.push_back((remote, number));
        } else if number == self.answered && !self.done() {
            self.answered += 1;
            self.times.push(now);
            self.ask(now);
        }
    }

    fn wake(&mut self, now: Instant) {
        if self.due.is_some_and(|due| due <= now) {
            self.ask(now);
        }
    }

    fn transmit(&mut self, _: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let (remote, number) = self.queue.pop_front()?;
        out.buffer[..self.size].fill(7);
        out.buffer[..8].copy_from_slice(&number.to_be_bytes());
        out.buffer[8..16].copy_from_slice(&(!number).to_be_bytes());
        Some(Transmit {
            local: Local(0),
            remote,
            ecn: Ecn::Ect0,
            dscp: Dscp::BestEffort,
            size: self.size,
            segment: self.size,
            phantom: 0,
        })
    }

    fn deadline(&self) -> Option<Instant> {
        self.due
    }
}

/// Sends datagrams of a fixed size at a fixed interval, in runs, and counts what comes.
#[derive(Debug)]
pub struct Flood {
    pub to: Option<SocketAddr>,
    pub every: Duration,
    pub size: usize,
    pub run: usize,
    pub left: u64,
    pub heard: u64,
    pub heard_bytes: u64,
    pub ce: u64,
    pub last: Instant,
    pending: bool,
    due: Option<Instant>,
}

impl Flood {
    pub fn new(to: SocketAddr, every: Duration, size: usize, left: u64) -> Self {
        let due = Some(Instant::ZERO);
        Self { to: Some(to), every, size, left, due, ..Self::sink() }
    }

    pub fn sink() -> Self {
        Self {
            to: None,
            every: Duration::ZERO,
            size: 0,
            run: 1,
            left: 0,
            heard: 0,
            heard_bytes: 0,
            ce: 0,
            last: Instant::ZERO,
            pending: false,
            due: None,
        }
    }
}

impl Machine for Flood {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        if let Input::Datagram(datagram) = input {
            self.heard += 1;
            self.heard_bytes += datagram.payload.len() as u64;
            self.ce += u64::from(datagram.ecn == Ecn::Ce);
            self.last = now;
        }
    }

    fn wake(&mut self, now: Instant) {
        if let Some(due) = self.due
            && due <= now
        {
            self.pending = true;
            self.due = (self.left > self.run as u64).then_some(due + self.every);
        }
    }

    fn transmit(&mut self, _: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let remote = self.to?;
        if !core::mem::take(&mut self.pending) {
            return None;
        }
        let run = self.run.min(out.max_segments).min(self.left as usize);
        self.left -= run as u64;
        let size = run * self.size;
        out.buffer[..size].fill(self.left as u8);
        Some(Transmit {
            local: Local(0),
            remote,
            ecn: Ecn::Ect0,
            dscp: Dscp::BestEffort,
            size,
            segment: self.size,
            phantom: 0,
        })
    }

    fn deadline(&self) -> Option<Instant> {
        self.due
    }
}

/// An application above a machine: asks for `more` pings whenever the machine is done, and rests in
/// between.
#[derive(Debug)]
pub struct Patient {
    pub ping: Ping,
    pub rest: Duration,
    pub rounds: u32,
    pub next: Option<Instant>,
}

impl Node for Patient {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.ping
    }

    fn turn(&mut self, now: Instant) {
        match self.next {
            Some(next) if next <= now => {
                self.next = None;
                self.rounds += 1;
                self.ping.goal += 1;
                self.ping.ask(now);
            }
            None if self.ping.done() && self.rounds < 5 => self.next = Some(now + self.rest),
            _ => {}
        }
    }

    fn alarm(&self) -> Option<Instant> {
        self.next
    }
}
