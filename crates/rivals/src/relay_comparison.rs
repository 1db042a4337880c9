//! Compares byway's relay with a forwarder that only copies packets, on real sockets and the same
//! driver. The difference is the cost of authenticating each packet. Only the processor time of the
//! driver's thread counts. Nobody reads the destination sockets.

use crate::Error;
use byway_net::{Clock, LoopControl, Owner, Socket, spawn, unix_seconds};
use byway_relay::{Config, Policy, Relay};
use byway_wire::relay::{
    GREET_LEN, Grant, Greet, Greeted, Hop, Minute, QuotaClass, RateClass, RelayClock, Scope, Terms,
};
use byway_wire::{
    Datagram, Dscp, Ecn, Input, Instant, LinkChange, Local, Machine, Prefix, Transmit, TransmitBuffer, Writer,
};
use quinn_udp::{UdpSockRef, UdpSocketState};
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// UDP payload of each packet.
pub const PACKET_LEN: usize = 1200;
/// The most packets in flight. A socket's buffer holds so many.
const MAX_PACKETS_IN_FLIGHT: u64 = 1_024;

/// How packets come.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Senders that take turns.
    pub senders: usize,
    /// Packets that each sender sends in one call, before the next sender has its turn.
    pub run: usize,
}

/// The program that forwards packets in a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarder {
    /// byway's relay.
    Relay,
    /// A forwarder that only copies packets.
    Bare,
}

/// The throughput of a forwarder in one measurement.
#[derive(Clone, Copy, Debug)]
pub struct Forwarded {
    /// Packets forwarded per second of processor time of the forwarder's thread.
    pub per_cpu_second: f64,
    /// Packets per receive call, and per send call.
    pub per_call: [f64; 2],
}

/// Forwards each datagram to the destination that belongs to its source port. Copies it once.
struct BareForwarder {
    /// The destinations by source port.
    destinations: Vec<Option<SocketAddr>>,
    queue: VecDeque<(SocketAddr, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
    forwarded: u64,
}

impl Machine for BareForwarder {
    fn handle(&mut self, _: Instant, input: Input<'_>) {
        let Input::Datagram(Datagram { remote, payload, .. }) = input else { return };
        let destination = self.destinations.get(usize::from(remote.port())).copied().flatten();
        if let Some(destination) = destination {
            let mut copy = self.spare.pop().unwrap_or_default();
            copy.clear();
            copy.extend_from_slice(payload);
            self.queue.push_back((destination, copy));
            self.forwarded += 1;
        }
    }

    fn wake(&mut self, _: Instant) {}

    fn transmit(&mut self, _: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let (remote, first) = self.queue.pop_front()?;
        let segment = first.len();
        let mut size = segment;
        out.buffer.get_mut(..size)?.copy_from_slice(&first);
        self.spare.push(first);
        let mut segments = 1;
        while segments < out.max_segments
            && let Some((to, next)) = self.queue.front()
            && *to == remote
            && next.len() == segment
            && let Some(place) = out.buffer.get_mut(size..size + segment)
        {
            place.copy_from_slice(next);
            (size, segments) = (size + segment, segments + 1);
            self.spare.extend(self.queue.pop_front().map(|(_, bytes)| bytes));
        }
        Some(Transmit {
            local: Local(0),
            remote,
            ecn: Ecn::NotEct,
            dscp: Dscp::BestEffort,
            size,
            segment,
            phantom: 0,
        })
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// A forwarder that counts the packets it forwarded.
trait ForwardCounter: Machine + Send + 'static {
    fn forwarded(&self) -> u64;
}

impl ForwardCounter for BareForwarder {
    fn forwarded(&self) -> u64 {
        self.forwarded
    }
}

impl ForwardCounter for Relay {
    fn forwarded(&self) -> u64 {
        self.counters().forwarded_packets
    }
}

/// Counts of the forwarder's thread, which the loading thread reads.
#[derive(Debug, Default)]
struct Gauge {
    forwarded: AtomicU64,
    /// Processor time of the thread, ns.
    cpu: AtomicU64,
}

struct Operator<M> {
    gauge: Arc<Gauge>,
    machine: std::marker::PhantomData<fn(M)>,
}

impl<M: ForwardCounter> Owner for Operator<M> {
    type Machine = M;

    fn turn(&mut self, machine: &mut M, _: Instant) -> LoopControl {
        self.gauge.forwarded.store(machine.forwarded(), Relaxed);
        let cpu = Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
        self.gauge.cpu.store(u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX), Relaxed);
        LoopControl::Continue
    }
}

/// A sender: its socket, and the batch of packets (`run`) that it sends again and again. A relay
/// keeps no state per flow, so repeated packets cost it as much as new ones.
struct PacketSender {
    io: UdpSocket,
    state: UdpSocketState,
    run: Vec<u8>,
}

impl PacketSender {
    /// Sends the batch of packets. Returns false if the socket's buffer was full, which is no
    /// error.
    fn send(&self, to: SocketAddr) -> Result<bool, Error> {
        let transmit = quinn_udp::Transmit {
            destination: to,
            ecn: None,
            contents: &self.run,
            segment_size: (self.run.len() > PACKET_LEN).then_some(PACKET_LEN),
            src_ip: None,
        };
        match self.state.try_send(UdpSockRef::from(&self.io), &transmit) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

fn bind() -> Result<UdpSocket, Error> {
    Ok(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?)
}

/// Makes the credentials that one sender needs at the relay. A second relay in memory issues them.
/// It has the same key as the relay on the socket, so the credentials are valid there, too.
fn hop(
    relay: &mut Relay,
    at: SocketAddr,
    id: u32,
    from: SocketAddr,
    to: SocketAddr,
    unix: u64,
) -> Result<Hop, Error> {
    let mut greet = |address: SocketAddr| -> Result<Greeted, Error> {
        let mut packet = [0; GREET_LEN];
        Greet { nonce: *b"12345678", grant: id }.write(&mut Writer::new(&mut packet));
        let (local, ecn, arrival) = (Local(0), Ecn::NotEct, Instant::ZERO);
        let datagram = Datagram { local, remote: address, ecn, arrival, payload: &mut packet, phantom: 0 };
        relay.handle(Instant::ZERO, Input::Datagram(datagram));
        let mut answer = [0; 1_500];
        let mut out = TransmitBuffer { buffer: &mut answer, max_segments: 1 };
        let sent = relay.transmit(Instant::ZERO, &mut out).ok_or("a greeting was not answered")?;
        Greeted::read(answer.get(..sent.size).unwrap_or_default())
            .map_err(|error| format!("{error:?}").into())
    };
    let (cookie, consent) = (greet(from)?.cookie, greet(to)?.consent);
    let expiry = Minute::from_unix(unix + 86_400);
    let terms = Terms { expiry, rate: RateClass::UNLIMITED, quota: QuotaClass::UNLIMITED, scope: Scope::ALL };
    let word = relay.issue(Grant { id, terms }, vec![at]).map_err(|error| format!("{error:?}"))?;
    let mut hop = Hop::new(&word, at, to, consent, RelayClock::new(unix * 1_000, Instant::ZERO));
    hop.set_cookie(cookie);
    Ok(hop)
}

/// Loads a forwarder for `duration`.
///
/// # Errors
/// There are no sockets, or nothing is forwarded.
pub fn run(forwarder: Forwarder, load: Load, duration: Duration) -> Result<Forwarded, Error> {
    let socket = Socket::bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let at = socket.address();
    let unix = unix_seconds();
    let mut config = Config::new([5; 32], unix * 1_000);
    config.policy = Policy::public().allow(Prefix::of(Ipv4Addr::LOCALHOST.into(), 8));
    let mut papers = Relay::new(&config, Instant::ZERO);
    papers.handle(Instant::ZERO, Input::Link(LinkChange { local: Local(0), address: at, up: true }));
    let mut destinations = vec![None; 1 << 16];
    let (mut sources, mut sinks) = (Vec::new(), Vec::new());
    for number in 0..load.senders {
        let (io, sink) = (bind()?, bind()?);
        let (from, to) = (io.local_addr()?, sink.local_addr()?);
        let hop = hop(&mut papers, at, u32::try_from(number)? + 1, from, to, unix)?;
        let mut packet = vec![7; PACKET_LEN];
        if !hop.seal(Instant::ZERO, &mut packet) {
            return Err("a packet has no room for its envelope".into());
        }
        if let Some(place) = destinations.get_mut(usize::from(from.port())) {
            *place = Some(to);
        }
        let state = UdpSocketState::new(UdpSockRef::from(&io))?;
        sources.push(PacketSender { io, state, run: packet.repeat(load.run) });
        sinks.push(sink);
    }
    let clock = Clock::new();
    let mut running = Config::new([5; 32], unix * 1_000);
    running.policy = config.policy;
    match forwarder {
        Forwarder::Relay => {
            load_it(Relay::new(&running, clock.now()), socket, clock, &sources, load, duration)
        }
        Forwarder::Bare => {
            let bare =
                BareForwarder { destinations, queue: VecDeque::new(), spare: Vec::new(), forwarded: 0 };
            load_it(bare, socket, clock, &sources, load, duration)
        }
    }
}

fn load_it<M: ForwardCounter>(
    machine: M,
    socket: Socket,
    clock: Clock,
    sources: &[PacketSender],
    load: Load,
    duration: Duration,
) -> Result<Forwarded, Error> {
    let at = socket.address();
    let gauge = Arc::new(Gauge::default());
    let owner = Operator { gauge: Arc::clone(&gauge), machine: std::marker::PhantomData };
    let driver = spawn("forwarder", machine, owner, vec![socket], clock)?;
    let over = AtomicBool::new(false);
    let measured = thread::scope(|scope| {
        let loading = scope.spawn(|| -> Result<(), Error> {
            let mut sent = 0;
            let mut patience = 0;
            while !over.load(Relaxed) {
                for source in sources {
                    if source.send(at)? {
                        sent += load.run as u64;
                    }
                }
                while sent > gauge.forwarded.load(Relaxed) + MAX_PACKETS_IN_FLIGHT && !over.load(Relaxed) {
                    thread::yield_now();
                    patience += 1;
                    // What was dropped will not come: it is no longer waited for.
                    if patience > 10_000 {
                        (sent, patience) = (gauge.forwarded.load(Relaxed), 0);
                    }
                }
            }
            Ok(())
        });
        let read = || (gauge.forwarded.load(Relaxed), gauge.cpu.load(Relaxed));
        thread::sleep(duration / 5);
        let before = read();
        thread::sleep(duration);
        let after = read();
        over.store(true, Relaxed);
        let outcome = loading.join().map_err(|_| "the senders' thread panicked")?;
        outcome.map(|()| (after.0 - before.0, after.1 - before.1))
    });
    driver.stop();
    let statistics = driver.statistics();
    driver.join()?.outcome?;
    let (packets, cpu) = measured?;
    if packets == 0 || cpu == 0 {
        return Err("nothing was forwarded".into());
    }
    let per = |datagrams: u64, calls: u64| datagrams as f64 / calls.max(1) as f64;
    Ok(Forwarded {
        per_cpu_second: packets as f64 / (cpu as f64 / 1e9),
        per_call: [
            per(statistics.received_datagrams, statistics.receive_calls),
            per(statistics.sent_datagrams, statistics.send_calls),
        ],
    })
}
