//! The loop that runs one machine in the real world: receive, wake, turn, transmit, wait.

use crate::clock::Clock;
use crate::control::Control;
use crate::device::DeviceSource;
use crate::outbox::Outbox;
use crate::receive::{Inbox, Received};
use crate::send::{Obstacle, Sent};
use crate::socket::Socket;
use crate::statistics::Counters;
use crate::wait::{Happened, Waiter};
use crate::watch::Ready;
use byway_wire::{
    Duration, Input, Instant, LinkChange, Local, Machine, Out, RoomChange, SendError, SendErrorKind, Transmit,
};
use std::io;
use std::net::SocketAddr;

/// Who owns a machine: the application's side of it, on the driver's thread.
pub trait Owner: Send {
    /// What it owns.
    type Machine: Machine + Send;

    /// Called when the driver was woken, before it hands what arrived to the machine: tell the machine what it must know for that. Must
    /// not block either.
    fn before(&mut self, _machine: &mut Self::Machine, _now: Instant) {}

    /// A descriptor that the owner entered in the driver's [`Watch`](crate::Watch) is ready, told before the turn. Must not block either.
    fn ready(&mut self, _machine: &mut Self::Machine, _ready: Ready, _now: Instant) {}

    /// Called after each round of input, after each ring of the [`Waker`](crate::Waker), and at the machine's deadlines:
    /// move what came in on, put what is to go out in. Must not block; other threads are reached by bounded channels.
    /// What the machine has to send after the turn is sent next. May be called without cause.
    fn turn(&mut self, machine: &mut Self::Machine, now: Instant) -> Flow;

    /// Sockets that the owner opened in the turn before: the driver takes them, and their numbers go on from those that it has.
    fn opened(&mut self) -> Vec<Socket> {
        Vec::new()
    }

    /// A device of the owner's, beside the machine's sockets: there is a turn whenever it has something to read. Asked for once,
    /// before the first turn.
    fn device(&self) -> Option<DeviceSource> {
        None
    }
}

/// Whether a driver goes on after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    Continue,
    /// Send what the machine still has to say, as far as that goes without waiting, and end.
    Stop,
}

/// What a driver hands back when it ends.
#[derive(Debug)]
pub struct Finished<O: Owner> {
    /// The machine, in the state it ended in.
    pub machine: O::Machine,
    /// Its owner.
    pub owner: O,
    /// The sockets, still bound.
    pub sockets: Vec<Socket>,
    /// `Ok` if the owner or [`Control::stop`] ended it.
    pub outcome: Result<(), DriverError>,
}

/// Why a driver could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// More sockets than [`Local`] has numbers.
    #[error("{0} sockets are too many for one driver; it takes 65536")]
    TooManySockets(usize),
    /// The system refused to wait for the sockets.
    #[error("waiting for the network failed: {0}")]
    Wait(#[source] io::Error),
    /// A socket failed again and again and brought nothing in between.
    #[error("receiving on UDP {address} keeps failing: {source}")]
    Receive {
        /// The address the socket is bound to.
        address: SocketAddr,
        /// What the system said last.
        source: io::Error,
    },
}

/// Receive calls per socket before the machine may send again; each brings up to 32 buffers of coalesced datagrams.
const RECEIVE_CALLS: usize = 2;
/// Runs sent before the driver looks at its sockets again: about a millisecond of work, as for the bytes below.
const BURST_RUNS: usize = 64;
/// Bytes sent before the driver looks at its sockets again.
const BURST_BYTES: usize = 1 << 20;
/// How long to leave a full device alone. At 1 Gbit/s, 50 full-sized datagrams have left by then.
const DEVICE_PAUSE: Duration = Duration::from_micros(500);
/// Receive calls that may fail in a row. Errors of datagrams sent earlier surface here too, so a few mean nothing.
const RECEIVE_FAILURES: u32 = 1_000;

/// Runs `machine` on the calling thread until `owner` or `control` says stop. The machine learns of its sockets first:
/// the socket at index `i` is `Local(i)`, and up. So are those that the owner [opens](Owner::opened) later.
///
/// A full socket holds up nobody but itself: what was written for it waits, the machine is [told](Input::Room), and all others
/// go on.
pub fn run<O: Owner>(
    machine: O::Machine,
    owner: O,
    sockets: Vec<Socket>,
    clock: Clock,
    control: &Control,
) -> Finished<O> {
    let mut driver = Driver {
        machine,
        owner,
        clock,
        control,
        links: Vec::with_capacity(sockets.len()),
        full: Vec::new(),
        max_segments: 1,
        inbox: Inbox::new(),
        outbox: Outbox::new(),
    };
    let outcome = driver.run(sockets);
    let sockets = driver.links.into_iter().map(|link| link.socket).collect();
    Finished { machine: driver.machine, owner: driver.owner, sockets, outcome }
}

struct Driver<'a, O: Owner> {
    machine: O::Machine,
    owner: O,
    clock: Clock,
    control: &'a Control,
    links: Vec<Link>,
    /// Which of them are full.
    full: Vec<Local>,
    /// Most datagrams in one message of any of them.
    max_segments: usize,
    inbox: Inbox,
    /// What the machine wrote and the system has not taken yet, but for what waits for a full socket.
    outbox: Outbox,
}

struct Link {
    socket: Socket,
    failures: u32,
    full: Option<Full>,
    /// What waits until it is full no more. Made when it is full for the first time.
    parked: Option<Box<Outbox>>,
}

/// A socket or its device takes no more.
#[derive(Clone, Copy)]
struct Full {
    /// When to try again if the socket itself will not tell.
    retry: Option<Instant>,
    /// Whether it has room again, as far as anybody can tell.
    over: bool,
}

/// How far sending got.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The machine has nothing more to say, or nothing to a socket that has room.
    Done,
    /// It may have; its share of this round is used up.
    More,
}

impl<O: Owner> Driver<'_, O> {
    fn run(&mut self, sockets: Vec<Socket>) -> Result<(), DriverError> {
        let device = self.owner.device();
        let control = self.control;
        let mut waiter =
            Waiter::new(control.watch(), control.waker(), device.as_ref()).map_err(DriverError::Wait)?;
        self.take(&waiter, sockets)?;
        let mut progress = Progress::More;
        loop {
            let until = self.patience(progress);
            waiter.wait(&self.clock, until).map_err(DriverError::Wait)?;
            self.owner.before(&mut self.machine, self.clock.now());
            for at in 0..waiter.len() {
                match waiter.happened(at) {
                    Some(Happened::Socket { index, readable, room }) => {
                        if room
                            && let Some(full) = self.links.get_mut(index).and_then(|link| link.full.as_mut())
                        {
                            full.over = true;
                        }
                        if readable {
                            self.receive(index)?;
                        }
                    }
                    Some(Happened::Source(ready)) => {
                        self.owner.ready(&mut self.machine, ready, self.clock.now());
                    }
                    Some(Happened::Rung) => {
                        control.counters().rung.add(1);
                        control.waker().silence();
                    }
                    Some(Happened::Device) | None => {}
                }
            }
            // Asked before the turn, so that the turn sees all that was said before the stop.
            let stopped = control.is_stopped();
            self.send_parked(&waiter)?;
            let now = self.clock.now();
            if self.machine.deadline().is_some_and(|deadline| deadline <= now) {
                self.machine.wake(now);
            }
            control.counters().turns.add(1);
            let flow = self.owner.turn(&mut self.machine, now);
            progress = self.transmit(&waiter)?;
            if flow == Flow::Stop || stopped {
                return Ok(());
            }
            let opened = self.owner.opened();
            if !opened.is_empty() {
                self.take(&waiter, opened)?;
                progress = Progress::More;
            }
        }
    }

    /// Takes more sockets and tells the machine of them.
    fn take(&mut self, waiter: &Waiter<'_>, sockets: Vec<Socket>) -> Result<(), DriverError> {
        let count = self.links.len() + sockets.len();
        let now = self.clock.now();
        for socket in sockets {
            let number = u16::try_from(self.links.len()).map_err(|_| DriverError::TooManySockets(count))?;
            waiter.add(number, &socket.io).map_err(DriverError::Wait)?;
            self.max_segments = self.max_segments.max(socket.max_segments());
            if socket.buffers().clipped() {
                self.control.counters().clipped_sockets.add(1);
            }
            let change = LinkChange { local: Local(number), address: socket.address(), up: true };
            self.links.push(Link { socket, failures: 0, full: None, parked: None });
            self.machine.handle(now, Input::Link(change));
        }
        Ok(())
    }

    /// Until when to wait (`None`: for as long as it takes).
    fn patience(&self, progress: Progress) -> Option<Instant> {
        if progress == Progress::More {
            return Some(Instant::ZERO);
        }
        let retries = self.full.iter().filter_map(|local| self.link(*local)?.full?.retry);
        retries.chain(self.machine.deadline()).min()
    }

    fn link(&self, local: Local) -> Option<&Link> {
        self.links.get(usize::from(local.0))
    }

    fn receive(&mut self, index: usize) -> Result<(), DriverError> {
        let counters = self.control.counters();
        let (Some(link), Ok(number)) = (self.links.get_mut(index), u16::try_from(index)) else {
            return Ok(());
        };
        for _ in 0..RECEIVE_CALLS {
            let from = (Local(number), &link.socket);
            match self.inbox.receive(from, &mut self.machine, &self.clock, counters) {
                Received::Full => link.failures = 0,
                Received::Drained => {
                    link.failures = 0;
                    break;
                }
                Received::Failed(source) => {
                    counters.receive_errors.add(1);
                    link.failures += 1;
                    if link.failures > RECEIVE_FAILURES {
                        return Err(DriverError::Receive { address: link.socket.address(), source });
                    }
                }
            }
        }
        Ok(())
    }

    /// Sends what waited for sockets that have room again, and tells the machine of those for which nothing waits any more.
    fn send_parked(&mut self, waiter: &Waiter<'_>) -> Result<(), DriverError> {
        let mut at = 0;
        while let Some(local) = self.full.get(at).copied() {
            at += 1;
            let now = self.clock.now();
            let Some(link) = self.links.get_mut(usize::from(local.0)) else { continue };
            let Some(full) = link.full else { continue };
            if !full.over && full.retry.is_none_or(|retry| retry > now) {
                continue;
            }
            let counters = self.control.counters();
            let still = link.send_parked(&mut self.machine, &self.clock, counters);
            let (waited, waits) = (full.waits_for_socket(), still.is_some_and(Full::waits_for_socket));
            if waits != waited {
                waiter.want_room(local.0, &link.socket.io, waits).map_err(DriverError::Wait)?;
            }
            if still.is_none() {
                at -= 1;
                self.full.swap_remove(at);
                let change = RoomChange { local, room: true };
                self.machine.handle(self.clock.now(), Input::Room(change));
            }
        }
        Ok(())
    }

    /// Sends what the machine has to say, for one round.
    fn transmit(&mut self, waiter: &Waiter<'_>) -> Result<Progress, DriverError> {
        let (mut runs, mut bytes) = (0, 0);
        loop {
            if runs >= BURST_RUNS || bytes >= BURST_BYTES {
                return Ok(Progress::More);
            }
            let mut silent = false;
            while let Some(buffer) = self.outbox.room() {
                let mut out = Out { buffer, max_segments: self.max_segments };
                let Some(transmit) = self.machine.transmit(self.clock.now(), &mut out) else {
                    silent = true;
                    break;
                };
                (runs, bytes) = (runs + 1, bytes + transmit.size);
                self.outbox.push(transmit);
            }
            // Who was told something may have something to say to that.
            let told = self.flush(waiter)?;
            if silent && !told {
                return Ok(Progress::Done);
            }
        }
    }

    /// Empties the outbox: what is in it leaves, or waits for its socket. Returns whether the machine was told something.
    fn flush(&mut self, waiter: &Waiter<'_>) -> Result<bool, DriverError> {
        let Self { machine, clock, links, outbox, .. } = self;
        let counters = self.control.counters();
        let mut told = false;
        while let Some(&Transmit { local, .. }) = outbox.first() {
            let Some(link) = links.get_mut(usize::from(local.0)) else {
                refuse_first(outbox, SendErrorKind::Unreachable, machine, clock.now(), counters);
                told = true;
                continue;
            };
            if link.full.is_some() {
                let parked = link.parked.get_or_insert_with(|| Box::new(Outbox::new()));
                counters.overflowed.add(outbox.park(local, parked));
                continue;
            }
            let offload = link.socket.max_segments();
            match send_next(&mut link.socket, outbox, counters) {
                Sent::All => {}
                Sent::Blocked(_, obstacle) => {
                    counters.blocked.add(1);
                    let full = Full::new(obstacle, clock.now());
                    if full.waits_for_socket() {
                        waiter.want_room(local.0, &link.socket.io, true).map_err(DriverError::Wait)?;
                    }
                    link.full = Some(full);
                    self.full.push(local);
                    machine.handle(clock.now(), Input::Room(RoomChange { local, room: false }));
                    told = true;
                }
                Sent::Failed(kind) => {
                    refuse_first(outbox, kind, machine, clock.now(), counters);
                    told = true;
                }
            }
            if link.socket.max_segments() < offload {
                self.max_segments = links.iter().map(|link| link.socket.max_segments()).max().unwrap_or(1);
            }
        }
        Ok(told)
    }
}

impl Link {
    /// Sends what waited. Returns what it waits for still.
    fn send_parked<M: Machine>(
        &mut self,
        machine: &mut M,
        clock: &Clock,
        counters: &Counters,
    ) -> Option<Full> {
        self.full = None;
        let parked = self.parked.as_mut()?;
        while parked.first().is_some() {
            match send_next(&mut self.socket, parked, counters) {
                Sent::All => {}
                Sent::Blocked(_, obstacle) => {
                    self.full = Some(Full::new(obstacle, clock.now()));
                    break;
                }
                Sent::Failed(kind) => refuse_first(parked, kind, machine, clock.now(), counters),
            }
        }
        self.full
    }
}

impl Full {
    fn new(obstacle: Obstacle, now: Instant) -> Self {
        Self { retry: (obstacle == Obstacle::Device).then(|| now + DEVICE_PAUSE), over: false }
    }

    /// Whether the socket itself will tell.
    const fn waits_for_socket(self) -> bool {
        self.retry.is_none()
    }
}

/// Sends what leaves next by `socket`, as far as that goes, and takes it out.
fn send_next(socket: &mut Socket, outbox: &mut Outbox, counters: &Counters) -> Sent {
    let Some((_, runs, start)) = outbox.next() else { return Sent::All };
    let left = socket.send(&runs, start, counters);
    drop(runs);
    let sent = if let Sent::Blocked(sent, _) = left.then { sent } else { 0 };
    outbox.advance(left.done, sent);
    left.then
}

/// The first run is not sent, and the machine learns why.
fn refuse_first<M: Machine>(
    outbox: &mut Outbox,
    kind: SendErrorKind,
    machine: &mut M,
    now: Instant,
    counters: &Counters,
) {
    counters.failed(kind);
    if let Some(Transmit { local, remote, segment, size, .. }) = outbox.first().copied() {
        outbox.advance(1, 0);
        let error = SendError { local, remote, size: segment.min(size), kind };
        machine.handle(now, Input::SendError(error));
    }
}
