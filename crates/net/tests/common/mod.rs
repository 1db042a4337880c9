//! Machines small enough to see through, for tests of the world around them.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use byway_net::{Clock, LoopControl, Owner, Socket, spawn};
use byway_wire::{
    ConnectionChange, Dscp, Duration, Ecn, Input, Instant, LinkChange, Local, Machine, RoomChange, SendError,
    TcpRequest, Transmit, TransmitBuffer,
};
use std::collections::{BTreeSet, VecDeque};
use std::marker::PhantomData;
use std::net::SocketAddr;

/// Longest that anything here may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// An owner that is a closure.
pub struct Turn<M, F>(F, PhantomData<fn(M)>);

pub fn turn<M, F: FnMut(&mut M, Instant) -> LoopControl>(turn: F) -> Turn<M, F> {
    Turn(turn, PhantomData)
}

impl<M: Machine + Send, F: FnMut(&mut M, Instant) -> LoopControl + Send> Owner for Turn<M, F> {
    type Machine = M;
    fn turn(&mut self, machine: &mut M, now: Instant) -> LoopControl {
        (self.0)(machine, now)
    }
}

pub fn socket(address: &str) -> Socket {
    Socket::bind(address.parse().unwrap()).unwrap()
}

/// Sends what it is given and remembers what it is told.
#[derive(Default)]
pub struct Notebook {
    pub to_send: VecDeque<(Transmit, Vec<u8>)>,
    pub links: Vec<LinkChange>,
    pub connections: Vec<ConnectionChange>,
    /// Whether connections serve anything.
    pub serves: bool,
    /// What it asks of the driver, and the connections that it did not get.
    pub asks: VecDeque<TcpRequest>,
    pub not_dialed: Vec<SocketAddr>,
    pub errors: Vec<SendError>,
    pub received: Vec<(Instant, Instant, Ecn, Vec<u8>)>,
    pub deadline: Option<Instant>,
    pub woken: Vec<Instant>,
    /// Sockets that are full, and how often one was.
    pub full: BTreeSet<Local>,
    pub filled: u32,
}

impl Notebook {
    pub fn say(&mut self, remote: SocketAddr, ecn: Ecn, segment: usize, bytes: &[u8]) {
        let transmit = Transmit {
            local: Local(0),
            remote,
            ecn,
            dscp: Dscp::BestEffort,
            size: bytes.len(),
            segment,
            phantom: 0,
        };
        self.to_send.push_back((transmit, bytes.to_vec()));
    }
}

impl Machine for Notebook {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Datagram(datagram) => {
                self.received.push((now, datagram.arrival, datagram.ecn, datagram.payload.to_vec()));
            }
            Input::SendError(error) => self.errors.push(error),
            Input::Link(change) => self.links.push(change),
            Input::Connection(change) => self.connections.push(change),
            Input::NotDialed(peer) => self.not_dialed.push(peer),
            Input::Room(RoomChange { local, room: true }) => assert!(self.full.remove(&local)),
            Input::Room(RoomChange { local, room: false }) => {
                self.filled += 1;
                assert!(self.full.insert(local));
            }
        }
    }
    fn wake(&mut self, now: Instant) {
        self.woken.push(now);
        self.deadline = None;
    }
    fn transmit(&mut self, _: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let next = self.to_send.iter().position(|(transmit, _)| !self.full.contains(&transmit.local))?;
        let (transmit, bytes) = self.to_send.remove(next)?;
        out.buffer[..bytes.len()].copy_from_slice(&bytes);
        Some(transmit)
    }
    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }
    fn serves(&self, _: Local) -> bool {
        self.serves
    }
    fn ask(&mut self, _: Instant) -> Option<TcpRequest> {
        self.asks.pop_front()
    }
}

/// Sends `total` numbered datagrams of `size` bytes in runs, at most `window` without an answer,
/// and ticks off what comes back.
pub struct Asker {
    pub peer: SocketAddr,
    pub size: usize,
    pub total: u32,
    pub window: u32,
    pub asked: u32,
    pub answered: Vec<bool>,
    pub answers: u32,
    pub wrong: u32,
    pub longest_run: usize,
}

impl Asker {
    pub fn new(peer: SocketAddr, size: usize, total: u32) -> Self {
        let answered = vec![false; total as usize];
        let window = 512;
        Self { peer, size, total, window, asked: 0, answered, answers: 0, wrong: 0, longest_run: 0 }
    }
}

impl Machine for Asker {
    fn handle(&mut self, _: Instant, input: Input<'_>) {
        let Input::Datagram(datagram) = input else { return };
        let number = u32::from_be_bytes(datagram.payload[..4].try_into().unwrap());
        let right = datagram.remote == self.peer
            && datagram.ecn == Ecn::Ect0
            && datagram.payload.len() == self.size
            && datagram.payload[4..].iter().all(|byte| *byte == number as u8);
        let seen = std::mem::replace(&mut self.answered[number as usize], true);
        self.answers += 1;
        self.wrong += u32::from(seen || !right);
    }
    fn wake(&mut self, _: Instant) {}
    fn transmit(&mut self, _: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let allowed = (self.total - self.asked).min(self.window - (self.asked - self.answers));
        let run = (allowed as usize).min(out.max_segments).min(out.buffer.len() / self.size);
        if run == 0 {
            return None;
        }
        for datagram in out.buffer.chunks_exact_mut(self.size).take(run) {
            datagram[..4].copy_from_slice(&self.asked.to_be_bytes());
            datagram[4..].fill(self.asked as u8);
            self.asked += 1;
        }
        self.longest_run = self.longest_run.max(run);
        let size = run * self.size;
        Some(Transmit {
            local: Local(0),
            remote: self.peer,
            ecn: Ecn::Ect0,
            dscp: Dscp::BestEffort,
            size,
            segment: self.size,
            phantom: 0,
        })
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// Sends back what it gets, runs as runs.
#[derive(Default)]
pub struct Echo(VecDeque<(SocketAddr, Ecn, Vec<u8>)>);

impl Machine for Echo {
    fn handle(&mut self, _: Instant, input: Input<'_>) {
        if let Input::Datagram(datagram) = input {
            self.0.push_back((datagram.remote, datagram.ecn, datagram.payload.to_vec()));
        }
    }
    fn wake(&mut self, _: Instant) {}
    fn transmit(&mut self, _: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let (remote, ecn, first) = self.0.pop_front()?;
        let segment = first.len();
        out.buffer[..segment].copy_from_slice(&first);
        let mut size = segment;
        while size + segment <= out.buffer.len()
            && size / segment < out.max_segments
            && self.0.front().is_some_and(|next| (next.0, next.1, next.2.len()) == (remote, ecn, segment))
            && let Some(next) = self.0.pop_front()
        {
            out.buffer[size..size + segment].copy_from_slice(&next.2);
            size += segment;
        }
        Some(Transmit { local: Local(0), remote, ecn, dscp: Dscp::BestEffort, size, segment, phantom: 0 })
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// Always has something to send.
pub struct Flood {
    pub sink: SocketAddr,
    pub sent: u64,
    pub received: u64,
}

impl Machine for Flood {
    fn handle(&mut self, _: Instant, input: Input<'_>) {
        self.received += u64::from(matches!(input, Input::Datagram(_)));
    }
    fn wake(&mut self, _: Instant) {}
    fn transmit(&mut self, _: Instant, _: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        self.sent += 1;
        Some(Transmit {
            local: Local(0),
            remote: self.sink,
            ecn: Ecn::NotEct,
            dscp: Dscp::BestEffort,
            size: 1_200,
            segment: 1_200,
            phantom: 0,
        })
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// Ten thousand datagrams from `address` to itself and back, in runs, none lost, none changed.
pub fn ten_thousand_there_and_back(address: &str) {
    let clock = Clock::new();
    let (here, there) = (socket(address), socket(address));
    let asker = Asker::new(there.address(), 1_200, 10_000);
    let echo =
        spawn("echo", Echo::default(), turn(|_: &mut Echo, _| LoopControl::Continue), vec![there], clock)
            .unwrap();
    let until = clock.now() + PATIENCE;
    let done = turn(move |asker: &mut Asker, now| {
        if asker.answers >= asker.total || now > until { LoopControl::Stop } else { LoopControl::Continue }
    });
    let asker = spawn("asker", asker, done, vec![here], clock).unwrap();
    let asker_control = asker.control().clone();
    let finished = asker.join().unwrap();
    finished.outcome.unwrap();
    echo.stop();
    let echo_control = echo.control().clone();
    echo.join().unwrap();

    let asker = finished.machine;
    assert_eq!((asker.asked, asker.answers, asker.wrong), (10_000, 10_000, 0));
    for statistics in [asker_control.statistics(), echo_control.statistics()] {
        assert_eq!((statistics.sent_datagrams, statistics.received_datagrams), (10_000, 10_000));
        assert_eq!((statistics.sent_bytes, statistics.received_bytes), (12_000_000, 12_000_000));
        if asker.longest_run > 1 {
            assert!(statistics.gso_runs > 0 && statistics.send_calls < 10_000, "{statistics:?}");
        }
    }
}

/// Each mark arrives as it left.
pub fn marks_are_carried(address: &str) {
    const MARKS: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
    let clock = Clock::new();
    let (here, there) = (socket(address), socket(address));
    let mut speaker = Notebook::default();
    for (number, ecn) in MARKS.into_iter().enumerate() {
        speaker.say(there.address(), ecn, 1, &[number as u8; 3]);
    }
    let until = clock.now() + PATIENCE;
    let listen = turn(move |notebook: &mut Notebook, now| {
        if notebook.received.len() == 12 || now > until { LoopControl::Stop } else { LoopControl::Continue }
    });
    let listener = spawn("listener", Notebook::default(), listen, vec![there], clock).unwrap();
    let speak =
        spawn("speaker", speaker, turn(|_: &mut Notebook, _| LoopControl::Stop), vec![here], clock).unwrap();
    speak.join().unwrap().outcome.unwrap();
    let received = listener.join().unwrap().machine.received;
    assert_eq!(received.len(), 12);
    for (_, _, ecn, bytes) in received {
        assert_eq!(ecn, MARKS[usize::from(bytes[0])]);
    }
}
