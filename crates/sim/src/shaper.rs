//! A link emulator as a sans-I/O state machine. It forwards datagrams between two sockets through
//! pipes, and so makes a fast path slow, late or lossy. It runs in a [`World`](crate::World), or
//! under a driver with real sockets.

use crate::counters::LinkCounters;
use crate::link::{Decision, Delivery, DropReason, Link, Offer, PacketOutcome};
use crate::pipe::{Pipe, PipeConfig};
use crate::random::Random;
use byway_wire::{
    Datagram, Dscp, Duration, Ecn, Input, Instant, LinkChange, Local, Machine, Transmit, TransmitBuffer,
};
use core::net::SocketAddr;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// The configuration of a [`Shaper`].
#[derive(Clone, Debug)]
pub struct ShaperConfig {
    /// The destination of clients' datagrams.
    pub server: SocketAddr,
    /// The pipe from clients to the server.
    pub up: PipeConfig,
    /// The pipe from the server to clients.
    pub down: PipeConfig,
    /// Whether clients share the two pipes.
    pub sharing: Sharing,
    /// The most packets held in all, queued or propagating. Further packets are dropped as by a
    /// full queue.
    pub hold_packets: usize,
    /// Most payload bytes that may be held in all.
    pub hold_bytes: usize,
    /// The silence after which a client's socket may be given to another client.
    pub idle: Duration,
    /// The seed of the faults.
    pub seed: u64,
}

/// Whether clients of a shaper share its pipes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Each client has its own pipes.
    PerClient,
    /// All clients go through the same two pipes: one bottleneck.
    Shared,
}

impl ShaperConfig {
    /// Shapes packets to `server`. Each client has a pair of pipes, and at most 65 536 packets or
    /// 64 MiB are held.
    #[must_use]
    pub fn new(server: SocketAddr, up: PipeConfig, down: PipeConfig) -> Self {
        Self {
            server,
            up,
            down,
            sharing: Sharing::PerClient,
            hold_packets: 65_536,
            hold_bytes: 64 << 20,
            idle: Duration::from_secs(60),
            seed: 0,
        }
    }
}

/// The counts of a shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ShaperCounters {
    /// Counts from clients to the server. `queued` stays 0: all held packets count as in flight.
    pub up: LinkCounters,
    /// Counts from the server to clients.
    pub down: LinkCounters,
    /// Datagrams of clients that got no socket.
    pub refused: u64,
    /// Datagrams at a back socket that did not come from the server, or had no client.
    pub foreign: u64,
    /// Clients that were given a socket.
    pub clients: u64,
}

/// A pipe, its counts, and the number of its packets that are held.
#[derive(Debug)]
struct ShaperPipe {
    pipe: Pipe,
    counters: LinkCounters,
    held: u64,
    /// Datagrams about which the pipe has yet to decide: their arrival times and slots.
    queued: VecDeque<(Instant, usize)>,
}

/// A socket toward the server, and the client that it serves.
#[derive(Debug, Default)]
struct BackSocket {
    up: bool,
    client: Option<(SocketAddr, Instant)>,
}

#[derive(Debug)]
struct HeldDatagram {
    local: Local,
    remote: SocketAddr,
    ecn: Ecn,
    lane: usize,
    payload: Vec<u8>,
}

/// The shaper. Clients send to its front socket, `Local(0)`. Each client gets one of the back
/// sockets, `Local(1)` onwards. The client's datagrams leave from this back socket, and the
/// server's answers arrive at it.
#[derive(Debug)]
pub struct Shaper {
    config: ShaperConfig,
    /// Back `i` is `Local(i + 1)`.
    backs: Vec<BackSocket>,
    /// The back socket that a client has.
    by_remote: BTreeMap<SocketAddr, usize>,
    /// Pipes: number 2i is the direction up of socket i, 2i + 1 its direction down. If shared,
    /// there are only two.
    lanes: Vec<ShaperPipe>,
    /// Books of clients that are gone.
    retired: [LinkCounters; 2],
    line: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    accepted: u64,
    datagrams: Vec<HeldDatagram>,
    free: Vec<usize>,
    held_bytes: usize,
    refused: u64,
    foreign: u64,
    clients: u64,
}

const FRONT_SOCKET: Local = Local(0);

impl Shaper {
    /// Makes an empty shaper.
    #[must_use]
    pub fn new(config: ShaperConfig) -> Self {
        Self {
            config,
            backs: Vec::new(),
            by_remote: BTreeMap::new(),
            lanes: Vec::new(),
            retired: [LinkCounters::default(); 2],
            line: BinaryHeap::new(),
            accepted: 0,
            datagrams: Vec::new(),
            free: Vec::new(),
            held_bytes: 0,
            refused: 0,
            foreign: 0,
            clients: 0,
        }
    }

    /// The counts so far.
    #[must_use]
    pub fn counters(&self) -> ShaperCounters {
        let [mut up, mut down] = self.retired;
        for pair in self.lanes.chunks(2) {
            for (total, lane) in [&mut up, &mut down].into_iter().zip(pair) {
                *total += LinkCounters { in_flight: lane.held, ..lane.counters };
            }
        }
        ShaperCounters { up, down, refused: self.refused, foreign: self.foreign, clients: self.clients }
    }

    /// The clients that have a socket now, and which.
    pub fn clients(&self) -> impl Iterator<Item = (SocketAddr, Local)> {
        self.by_remote.iter().map(|(&remote, &back)| (remote, Local(back as u16 + 1)))
    }

    fn link_changed(&mut self, change: LinkChange) {
        let Some(back) = usize::from(change.local.0).checked_sub(1) else { return };
        if self.backs.len() <= back {
            self.backs.resize_with(back + 1, BackSocket::default);
        }
        if let Some(place) = self.backs.get_mut(back) {
            place.up = change.up;
        }
    }

    /// The index of a client's socket. Assigns one if the client has none. `None`: none is free.
    fn back_of(&mut self, now: Instant, remote: SocketAddr) -> Option<usize> {
        if let Some(&back) = self.by_remote.get(&remote) {
            let place = self.backs.get_mut(back)?;
            place.client = Some((remote, now));
            return place.up.then_some(back);
        }
        // Only for the first datagram of a client: a look at every back, of which there are as many
        // as sockets.
        let free = self.backs.iter().position(|back| back.up && back.client.is_none());
        let back = free.or_else(|| self.retire_idle(now))?;
        self.by_remote.insert(remote, back);
        self.backs.get_mut(back)?.client = Some((remote, now));
        self.clients += 1;
        self.open_lanes(back);
        Some(back)
    }

    /// Frees the socket of the client that was silent longest, if it was silent long enough and
    /// none of its packets is held.
    fn retire_idle(&mut self, now: Instant) -> Option<usize> {
        let (seen, back, remote) = self
            .backs
            .iter()
            .enumerate()
            .filter(|(back, place)| {
                place.up && (self.config.sharing == Sharing::Shared || !self.holds(*back))
            })
            .filter_map(|(back, place)| place.client.map(|(remote, seen)| (seen, back, remote)))
            .min()?;
        if now.since(seen) < self.config.idle {
            return None;
        }
        self.by_remote.remove(&remote);
        Some(back)
    }

    fn holds(&self, back: usize) -> bool {
        self.lanes.iter().skip(2 * back).take(2).any(|lane| lane.held > 0)
    }

    /// Makes pipes for a back socket that got a new client, and for earlier ones without pipes.
    fn open_lanes(&mut self, back: usize) {
        let pair = match self.config.sharing {
            Sharing::PerClient => back,
            Sharing::Shared if self.lanes.is_empty() => 0,
            Sharing::Shared => return,
        };
        let fresh = |direction: usize| {
            let (name, pipe) =
                if direction == 0 { ("up", &self.config.up) } else { ("down", &self.config.down) };
            let random = Random::component(self.config.seed, &format!("client {} {name}", self.clients));
            ShaperPipe {
                pipe: Pipe::new(pipe.clone(), random),
                counters: LinkCounters::default(),
                held: 0,
                queued: VecDeque::new(),
            }
        };
        while self.lanes.len() < 2 * (pair + 1) {
            self.lanes.push(fresh(self.lanes.len() % 2));
        }
        for (direction, retired) in self.retired.iter_mut().enumerate() {
            if let Some(lane) = self.lanes.get_mut(2 * pair + direction) {
                *retired += core::mem::replace(lane, fresh(direction)).counters;
            }
        }
    }

    fn lane(&self, back: usize, direction: usize) -> usize {
        match self.config.sharing {
            Sharing::PerClient => 2 * back + direction,
            Sharing::Shared => direction,
        }
    }

    fn datagram(&mut self, now: Instant, datagram: &Datagram<'_>) {
        let (lane, local, remote) = match usize::from(datagram.local.0).checked_sub(1) {
            None => {
                let Some(back) = self.back_of(now, datagram.remote) else {
                    self.refused += 1;
                    return;
                };
                (self.lane(back, 0), Local(back as u16 + 1), self.config.server)
            }
            Some(back) => {
                let client = self.backs.get_mut(back).and_then(|place| place.client.as_mut());
                let Some((remote, seen)) = client.filter(|_| datagram.remote == self.config.server) else {
                    self.foreign += 1;
                    return;
                };
                *seen = now;
                let remote = *remote;
                (self.lane(back, 1), FRONT_SOCKET, remote)
            }
        };
        // A lane is a client's own.
        let offer = Offer { size: datagram.payload.len(), ecn: datagram.ecn, flow: 0 };
        let full = self.datagrams.len() - self.free.len() + 2 > self.config.hold_packets
            || self.held_bytes + 2 * offer.size > self.config.hold_bytes;
        self.decide(now);
        let place = &mut self.lanes[lane];
        let fate =
            if full { PacketOutcome::Dropped(DropReason::QueueFull) } else { place.pipe.offer(now, &offer) };
        place.counters.note(now, &offer, &fate);
        if let PacketOutcome::Dropped(_) = fate {
            return;
        }
        let slot = self.store(lane, local, remote, datagram.ecn, datagram.payload);
        if fate != PacketOutcome::Queued {
            self.apply(slot, fate);
        } else {
            self.lanes[lane].queued.push_back((now, slot));
        }
    }

    /// Stores a datagram until it is due. Returns its slot.
    fn store(&mut self, lane: usize, local: Local, remote: SocketAddr, ecn: Ecn, payload: &[u8]) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            let payload = Vec::new();
            self.datagrams.push(HeldDatagram { local, remote, ecn, lane, payload });
            self.datagrams.len() - 1
        });
        let parcel = &mut self.datagrams[slot];
        (parcel.local, parcel.remote, parcel.lane, parcel.ecn) = (local, remote, lane, ecn);
        parcel.payload.clear();
        parcel.payload.extend_from_slice(payload);
        self.lanes[lane].held += 1;
        self.held_bytes += payload.len();
        slot
    }

    /// Lets a fate come true for a datagram that is kept.
    fn apply(&mut self, slot: usize, fate: PacketOutcome) {
        match fate {
            PacketOutcome::Queued => {}
            PacketOutcome::Dropped(_) => {
                self.forget(slot);
            }
            PacketOutcome::Delivered(delivery) => self.launch(slot, delivery),
            PacketOutcome::Duplicated(first, second) => {
                let parcel = &mut self.datagrams[slot];
                let payload = core::mem::take(&mut parcel.payload);
                let (lane, local, remote, ecn) = (parcel.lane, parcel.local, parcel.remote, parcel.ecn);
                let copy = self.store(lane, local, remote, ecn, &payload);
                self.datagrams[slot].payload = payload;
                self.launch(slot, first);
                self.launch(copy, second);
            }
        }
    }

    fn launch(&mut self, slot: usize, delivery: Delivery) {
        let parcel = &mut self.datagrams[slot];
        parcel.ecn = delivery.ecn;
        if let Some(corruption) = delivery.corruption {
            corruption.apply(&mut parcel.payload);
        }
        self.accepted += 1;
        self.line.push(Reverse((delivery.at, self.accepted, slot)));
    }

    /// Whether pipes may decide later than when a datagram comes.
    fn decides_later(&self) -> bool {
        self.config.up.discipline.decides_later() || self.config.down.discipline.decides_later()
    }

    /// Lets the pipes decide about held packets, as far as they can at this time.
    fn decide(&mut self, now: Instant) {
        if !self.decides_later() {
            return;
        }
        for lane in 0..self.lanes.len() {
            while let Some(place) = self.lanes.get_mut(lane)
                && place.pipe.decides_at().is_some_and(|at| at <= now)
                && let Some(Decision { place: which, fate }) = place.pipe.decide(now)
                && let Some((came, slot)) = place.queued.remove(which)
            {
                let ecn = self.datagrams[slot].ecn;
                place.counters.note_fate(came, ecn, &fate);
                self.apply(slot, fate);
            }
        }
    }

    /// Frees the slot of a datagram. Returns its pipe and its size.
    fn forget(&mut self, slot: usize) -> (&mut ShaperPipe, usize) {
        self.free.push(slot);
        let parcel = &self.datagrams[slot];
        let size = parcel.payload.len();
        self.held_bytes -= size;
        let lane = &mut self.lanes[parcel.lane];
        lane.held -= 1;
        (lane, size)
    }

    /// Returns the slot of the next datagram, if it is due.
    fn due(&self, now: Instant) -> Option<usize> {
        self.line.peek().filter(|Reverse((at, _, _))| *at <= now).map(|Reverse((_, _, slot))| *slot)
    }

    /// Removes the next datagram, as arrived or, if it fits into no buffer, as dropped.
    fn release(&mut self, slot: usize, arrived: bool) {
        self.line.pop();
        let (lane, size) = self.forget(slot);
        if arrived {
            lane.counters.note_arrival(size);
        } else {
            lane.counters.note_drop(DropReason::TooLarge);
        }
    }
}

impl Machine for Shaper {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Datagram(datagram) => self.datagram(now, &datagram),
            Input::Link(change) => self.link_changed(change),
            // A line does not know that nobody listens at its end.
            Input::SendError(_) | Input::Room(_) | Input::Connection(_) | Input::NotDialed(_) => {}
        }
    }

    /// Does nothing: due datagrams leave by `transmit`.
    fn wake(&mut self, _: Instant) {}

    /// Returns the next due datagram, together with following ones of the same route and size.
    fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        self.decide(now);
        let mut run: Option<Transmit> = None;
        let mut segments = 0;
        while let Some(slot) = self.due(now) {
            let parcel = self.datagrams.get(slot)?;
            let size = parcel.payload.len();
            let start = run.as_ref().map_or(0, |run| run.size);
            let room = out.buffer.get_mut(start..start + size);
            if let Some(run) = &run {
                let same = (run.local, run.remote, run.ecn) == (parcel.local, parcel.remote, parcel.ecn);
                let fits = size > 0 && size <= run.segment && segments < out.max_segments && room.is_some();
                if !same || !fits {
                    break;
                }
            }
            let Some(room) = room else {
                self.release(slot, false);
                continue;
            };
            room.copy_from_slice(&parcel.payload);
            let head = Transmit {
                local: parcel.local,
                remote: parcel.remote,
                ecn: parcel.ecn,
                dscp: Dscp::BestEffort,
                size: 0,
                segment: size,
                phantom: 0,
            };
            let run = run.get_or_insert(head);
            run.size += size;
            segments += 1;
            let last = size < run.segment || size == 0;
            self.release(slot, true);
            if last {
                break;
            }
        }
        run
    }

    fn deadline(&self) -> Option<Instant> {
        let first = self.line.peek().map(|Reverse((at, _, _))| *at);
        if !self.decides_later() {
            return first;
        }
        let decision = self.lanes.iter().filter_map(|lane| lane.pipe.decides_at());
        first.into_iter().chain(decision).min()
    }
}
