//! Measures how many packets per second one thread sends to another over the IPv4 loopback: by
//! byway's driver, and by a minimal loop that only calls quinn-udp. The last column is their ratio.
//!
//! `cargo run --release -p byway-net --example loopback`
//!
//! This measures system calls, not a network. The loopback (MTU 65536 bytes) passes a message of
//! many datagrams (segmentation offload, GSO) uncut. So the work of cutting messages into packets
//! is missing.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use byway_net::{Clock, LoopControl, Owner, Socket, spawn};
use byway_wire::{Dscp, Ecn, Input, Instant, Local, Machine, Transmit, TransmitBuffer};
use quinn_udp::{BATCH_SIZE, RecvMeta, UdpSockRef, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, IoSliceMut};
use std::marker::PhantomData;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The most packets that the sender keeps in flight.
const WINDOW: u64 = 1_024;
const MEASURED: Duration = Duration::from_secs(1);
const HERE: &str = "127.0.0.1:0";

/// Packets of `size` bytes in runs of `run` to `peer`.
#[derive(Clone, Copy)]
struct Load {
    peer: SocketAddr,
    size: usize,
    run: usize,
}

struct Sender {
    load: Load,
    sent: u64,
    arrived: u64,
}

impl Machine for Sender {
    fn handle(&mut self, _: Instant, input: Input<'_>) {
        if let Input::Datagram(datagram) = input {
            let arrived = u64::from_be_bytes(datagram.payload.try_into().unwrap());
            self.arrived = self.arrived.max(arrived);
        }
    }
    fn wake(&mut self, _: Instant) {}
    fn transmit(&mut self, _: Instant, _: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let Load { peer, size, run } = self.load;
        if self.sent + run as u64 > self.arrived + WINDOW {
            return None;
        }
        self.sent += run as u64;
        Some(Transmit {
            local: Local(0),
            remote: peer,
            ecn: Ecn::Ect0,
            dscp: Dscp::BestEffort,
            size: run * size,
            segment: size,
            phantom: 0,
        })
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

#[derive(Default)]
struct Receiver {
    from: Option<SocketAddr>,
    arrived: u64,
    told: u64,
}

impl Machine for Receiver {
    fn handle(&mut self, _: Instant, input: Input<'_>) {
        if let Input::Datagram(datagram) = input {
            self.from = Some(datagram.remote);
            self.arrived += 1;
        }
    }
    fn wake(&mut self, _: Instant) {}
    fn transmit(&mut self, _: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let remote = self.from.filter(|_| self.told < self.arrived)?;
        self.told = self.arrived;
        out.buffer[..8].copy_from_slice(&self.told.to_be_bytes());
        Some(Transmit {
            local: Local(0),
            remote,
            ecn: Ecn::NotEct,
            dscp: Dscp::BestEffort,
            size: 8,
            segment: 8,
            phantom: 0,
        })
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

#[expect(clippy::disallowed_methods, reason = "the thread that looks at the clock has nothing else to do")]
fn measure() {
    std::thread::sleep(MEASURED);
}

struct Idle<M>(PhantomData<fn(M)>);

impl<M: Machine + Send> Owner for Idle<M> {
    type Machine = M;
    fn turn(&mut self, _: &mut M, _: Instant) -> LoopControl {
        LoopControl::Continue
    }
}

fn through_the_driver(size: usize, run: usize) -> f64 {
    let clock = Clock::new();
    let bind = || Socket::bind(HERE.parse().unwrap()).unwrap();
    let (here, there) = (bind(), bind());
    let sender = Sender { load: Load { peer: there.address(), size, run }, sent: 0, arrived: 0 };
    let receiver = spawn("receiver", Receiver::default(), Idle(PhantomData), vec![there], clock).unwrap();
    let sender = spawn("sender", sender, Idle(PhantomData), vec![here], clock).unwrap();
    measure();
    receiver.stop();
    let arrived = receiver.join().unwrap().machine.arrived;
    let elapsed = clock.now();
    sender.stop();
    sender.join().unwrap().outcome.unwrap();
    arrived as f64 / elapsed.as_secs_f64()
}

/// The loop without a driver. It has one socket, and neither clock, machine nor owner.
struct Bare {
    io: UdpSocket,
    state: UdpSocketState,
    bytes: Vec<u8>,
}

impl Bare {
    fn bind() -> Self {
        let io = UdpSocket::bind(HERE).unwrap();
        socket2::SockRef::from(&io).set_recv_buffer_size(byway_net::BUFFER_BYTES).unwrap();
        let state = UdpSocketState::new(UdpSockRef::from(&io)).unwrap();
        Self { io, state, bytes: vec![0; BATCH_SIZE << 16] }
    }

    fn wait(&self) {
        let mut watched = [PollFd::new(&self.io, PollFlags::IN)];
        poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 100_000_000 })).unwrap();
    }

    fn receive(&mut self, mut each: impl FnMut(&[u8], SocketAddr)) {
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let mut room = self.bytes.chunks_exact_mut(1 << 16);
        let mut slices: [_; BATCH_SIZE] = std::array::from_fn(|_| IoSliceMut::new(room.next().unwrap()));
        match self.state.recv(UdpSockRef::from(&self.io), &mut slices, &mut metas) {
            Ok(count) => {
                for (meta, bytes) in metas.iter().zip(self.bytes.chunks_exact(1 << 16)).take(count) {
                    bytes[..meta.len].chunks(meta.stride).for_each(|datagram| each(datagram, meta.addr));
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(),
            Err(error) => panic!("receiving: {error}"),
        }
    }

    fn send(&self, destination: SocketAddr, contents: &[u8], segment: usize) {
        let segment_size = (contents.len() > segment).then_some(segment);
        let transmit = quinn_udp::Transmit { destination, ecn: None, contents, segment_size, src_ip: None };
        self.state.try_send(UdpSockRef::from(&self.io), &transmit).unwrap();
    }
}

fn bare(size: usize, run: usize) -> f64 {
    let (mut here, mut there) = (Bare::bind(), Bare::bind());
    let peer = there.io.local_addr().unwrap();
    let stop = AtomicBool::new(false);
    let clock = Clock::new();
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let (mut arrived, mut told) = (0u64, 0);
            while !stop.load(Ordering::Relaxed) {
                let mut sender = None;
                there.receive(|_, from| {
                    arrived += 1;
                    sender = Some(from);
                });
                if let Some(sender) = sender.filter(|_| told < arrived) {
                    told = arrived;
                    there.send(sender, &told.to_be_bytes(), 8);
                }
            }
            arrived
        });
        scope.spawn(|| {
            let contents = vec![0; run * size];
            let (mut sent, mut arrived) = (0, 0);
            while !stop.load(Ordering::Relaxed) {
                while sent + run as u64 <= arrived + WINDOW {
                    here.send(peer, &contents, size);
                    sent += run as u64;
                }
                here.receive(|datagram, _| {
                    arrived = arrived.max(u64::from_be_bytes(datagram.try_into().unwrap()));
                });
            }
        });
        measure();
        stop.store(true, Ordering::Relaxed);
        let arrived = receiver.join().unwrap();
        arrived as f64 / clock.now().as_secs_f64()
    })
}

fn main() {
    println!("{:>5} {:>4} {:>14} {:>14} {:>6}", "bytes", "run", "driver pkt/s", "bare pkt/s", "ratio");
    for size in [1_200, 1_452] {
        for run in [1, 16, 44] {
            let (driver, bare) = (through_the_driver(size, run), bare(size, run));
            println!("{size:>5} {run:>4} {driver:>14.0} {bare:>14.0} {:>6.2}", driver / bare);
        }
    }
}
