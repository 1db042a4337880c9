//! The loop that runs one machine on sockets. Its steps are receive, wake, turn, transmit and wait.

use crate::address_sockets::{AddressChange, AddressSockets};
use crate::carrier::Carrier;
use crate::clock::Clock;
use crate::connections::Connections;
use crate::driver_control::Control;
use crate::links::{Link, Links, SocketFull};
use crate::owned_machine::{Driven, OwnedMachine};
use crate::owner::{LoopControl, Owner};
use crate::pending_dials::PendingDials;
use crate::receive_batch::{Inbox, ReceiveResult};
use crate::send_backlog::Outbox;
use crate::send_batch::SendResult;
use crate::socket::Socket;
use crate::statistics::Counters;
use crate::tcp::TcpCarrier;
use crate::tcp_limits::TcpLimits;
use crate::timed_wait::{WaitEvent, Waiter};
use byway_wire::{
    ConnectionChange, Input, Instant, LinkChange, Local, Machine, RoomChange, SendError, SendErrorKind,
    TcpRequest, Transmit, TransmitBuffer,
};
use smallvec::SmallVec;
use std::io;
use std::net::SocketAddr;

/// The result of a driver that ended.
#[derive(Debug)]
pub struct Finished<O: Owner> {
    /// The machine in its final state.
    pub machine: O::Machine,
    /// The machine's owner.
    pub owner: O,
    /// The sockets, which are still bound.
    pub sockets: Vec<Socket>,
    /// `Ok` if the owner or [`Control::stop`] ended the driver.
    pub outcome: Result<(), DriverError>,
}

/// Why a driver could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// More sockets than [`Local`] has numbers for.
    #[error("there are too many sockets for one driver; it takes 16384")]
    TooManySockets,
    /// The system refused to wait for the sockets.
    #[error("waiting for the network failed: {0}")]
    Wait(#[source] io::Error),
    /// A socket failed again and again and brought nothing in between.
    #[error("receiving on UDP {address} keeps failing: {source}")]
    Receive {
        /// The address the socket is bound to.
        address: SocketAddr,
        /// The system's last error.
        source: io::Error,
    },
}

/// Receive calls per socket before the machine may send again; each brings up to 32 buffers of
/// coalesced datagrams.
const RECEIVE_CALLS: usize = 2;
/// The number of runs that are sent before the driver checks its sockets again: about a millisecond
/// of work, as for the bytes below.
const BURST_RUNS: usize = 64;
/// Bytes that are sent before the driver checks its sockets again.
const BURST_BYTES: usize = 1 << 20;
/// Receive calls that may fail in a row. Errors of datagrams sent earlier surface here too, so a
/// few mean nothing.
const RECEIVE_FAILURES: u32 = 1_000;

/// Runs the protocol `machine` on the calling thread until `owner` or `control` says stop.
/// `sockets[i]` is `Local(i)`. If a socket is full, the driver keeps its datagrams and serves the
/// other sockets. [`Input::Room`] tells `machine` when a socket becomes full or has room again.
pub fn run<O: Owner>(
    machine: O::Machine,
    owner: O,
    sockets: Vec<Socket>,
    clock: Clock,
    control: &Control,
) -> Finished<O> {
    let mut driven = OwnedMachine { machine, owner };
    let (sockets, outcome) = drive(&mut driven, sockets, clock, control);
    driven.owner.ended();
    Finished { machine: driven.machine, owner: driven.owner, sockets, outcome }
}

/// Runs a machine until its owner or `control` says stop. Returns the sockets.
fn drive(
    driven: &mut dyn Driven,
    sockets: Vec<Socket>,
    clock: Clock,
    control: &Control,
) -> (Vec<Socket>, Result<(), DriverError>) {
    let mut driver = Driver {
        tcp_limits: driven.depth(),
        driven,
        clock,
        control,
        links: Links::default(),
        by_address: AddressSockets::new(),
        connections: Connections::default(),
        pending_dials: PendingDials::default(),
        full: Vec::new(),
        max_segments: 1,
        inbox: Inbox::new(),
        outbox: Outbox::new(),
    };
    let outcome = driver.run(sockets.into_iter().map(Carrier::from).collect());
    (driver.links.into_sockets(), outcome)
}

struct Driver<'a> {
    driven: &'a mut dyn Driven,
    clock: Clock,
    control: &'a Control,
    links: Links,
    by_address: AddressSockets,
    /// The TCP connections, and the times at which the machine is asked whether they are useful.
    connections: Connections,
    /// TCP connections that the machine asked for, and that are being opened.
    pending_dials: PendingDials,
    tcp_limits: TcpLimits,
    /// The sockets and connections that are full.
    full: Vec<Local>,
    /// The most datagrams in one message, over all sockets.
    max_segments: usize,
    inbox: Inbox,
    /// Runs that the machine wrote and the system has not taken. Runs for full sockets are kept
    /// elsewhere.
    outbox: Outbox,
}

/// The result of sending.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FlushResult {
    /// The machine has nothing more to send, or only to full sockets.
    Done,
    /// The machine may have more to send, but its share of this round is used up.
    More,
}

impl Driver<'_> {
    fn run(&mut self, sockets: Vec<Carrier>) -> Result<(), DriverError> {
        let device = self.driven.device();
        let control = self.control;
        let mut waiter =
            Waiter::new(control.watch(), control.waker(), device.as_ref()).map_err(DriverError::Wait)?;
        if let Some(changes) = self.by_address.changes() {
            waiter.add_addresses(changes).map_err(DriverError::Wait)?;
        }
        self.take(&waiter, sockets)?;
        let mut progress = FlushResult::More;
        loop {
            let until = self.patience(progress);
            waiter.wait(&self.clock, until).map_err(DriverError::Wait)?;
            if self.by_address.is_due(self.clock.now()) {
                self.follow_addresses(&waiter)?;
            }
            self.driven.before(self.clock.now());
            for at in 0..waiter.len() {
                match waiter.happened(at) {
                    Some(WaitEvent::Socket { local, over: true, .. }) if self.is_paused(local) => {
                        // It broke, and whoever pauses it would learn of that from no read.
                        self.close(local);
                    }
                    Some(WaitEvent::Socket { local, readable, room, .. }) => {
                        if room
                            && let Some(full) = self.links.get_mut(local).and_then(|link| link.full.as_mut())
                        {
                            full.over = true;
                        }
                        if readable {
                            self.receive(&waiter, local)?;
                        }
                    }
                    Some(WaitEvent::Dialed(number)) => self.dialed(&waiter, number)?,
                    Some(WaitEvent::Source(ready)) => {
                        self.driven.ready(ready, self.clock.now());
                    }
                    Some(WaitEvent::Rung) => {
                        control.counters().rung.add(1);
                        control.waker().silence();
                    }
                    Some(WaitEvent::Addresses) => self.by_address.on_change(),
                    Some(WaitEvent::Device) | None => {}
                }
            }
            // Asked before the turn, so that the turn sees all that was said before the stop.
            let stopped = control.is_stopped();
            self.send_parked(&waiter)?;
            let now = self.clock.now();
            let machine = self.driven.machine();
            if machine.deadline().is_some_and(|deadline| deadline <= now) {
                machine.wake(now);
            }
            control.counters().turns.add(1);
            let flow = self.driven.turn(now);
            progress = self.transmit(&waiter)?;
            if flow == LoopControl::Stop || stopped {
                return Ok(());
            }
            if self.give_up_dialing() | self.answer_asks(&waiter)? {
                progress = FlushResult::More;
            }
            if self.close_useless() {
                progress = FlushResult::More;
            }
            let opened = self.driven.opened();
            if !opened.is_empty() {
                self.take(&waiter, opened)?;
                progress = FlushResult::More;
            }
        }
    }

    /// Adds sockets and connections, and notifies the machine.
    fn take(&mut self, waiter: &Waiter<'_>, carriers: Vec<Carrier>) -> Result<(), DriverError> {
        for carrier in carriers {
            match carrier {
                Carrier::Udp(socket) => self.take_socket(waiter, socket)?,
                Carrier::Tcp(connection) => self.take_connection(waiter, connection)?,
            }
        }
        Ok(())
    }

    fn take_socket(&mut self, waiter: &Waiter<'_>, socket: Socket) -> Result<(), DriverError> {
        let (address, segments, clipped) =
            (socket.address(), socket.max_segments(), socket.buffers().clipped());
        let local = self.links.add_socket(socket).ok_or(DriverError::TooManySockets)?;
        self.enter(waiter, local)?;
        if let Some(Carrier::Udp(socket)) = self.links.get(local).and_then(|link| link.carrier.as_ref()) {
            self.by_address.add(local, socket);
        }
        self.max_segments = self.max_segments.max(segments);
        if clipped {
            self.control.counters().clipped_sockets.add(1);
        }
        self.driven.machine().handle(self.clock.now(), Input::Link(LinkChange { local, address, up: true }));
        Ok(())
    }

    /// Opens and closes the sockets of single addresses, as the host's addresses change.
    fn follow_addresses(&mut self, waiter: &Waiter<'_>) -> Result<(), DriverError> {
        for change in self.by_address.look(self.clock.now()) {
            match change {
                AddressChange::Bind(beside, ip) => {
                    let link = self.links.get(beside).and_then(|link| link.carrier.as_ref());
                    let Some(Carrier::Udp(socket)) = link else { continue };
                    // Without one, the socket of all addresses answers as well as it can.
                    let bound = socket.beside(ip).ok().and_then(|socket| self.links.add_beside(socket));
                    if let Some(local) = bound {
                        self.by_address.bound(beside, ip, local);
                        self.enter(waiter, local)?;
                    }
                }
                AddressChange::Close(local) => {
                    self.full.retain(|full| *full != local);
                    self.links.close_beside(local);
                }
            }
        }
        Ok(())
    }

    fn take_connection(
        &mut self,
        waiter: &Waiter<'_>,
        mut connection: Box<TcpCarrier>,
    ) -> Result<(), DriverError> {
        let (address, peer) = (connection.address(), connection.peer());
        connection.set_depth(&self.tcp_limits);
        // Where no number is left it is closed at once.
        let Some(local) = self.links.add_connection(connection) else { return Ok(()) };
        self.enter(waiter, local)?;
        let now = self.clock.now();
        self.connections.opened(local, now);
        let change = ConnectionChange { local, address, peer, open: true };
        self.driven.machine().handle(now, Input::Connection(change));
        Ok(())
    }

    fn enter(&self, waiter: &Waiter<'_>, local: Local) -> Result<(), DriverError> {
        let carrier = self.links.get(local).and_then(|link| link.carrier.as_ref());
        carrier.map_or(Ok(()), |carrier| waiter.add(local.0, carrier).map_err(DriverError::Wait))
    }

    /// Closes TCP connections that are no longer useful. Returns whether there was one.
    fn close_useless(&mut self) -> bool {
        let (now, mut closed) = (self.clock.now(), false);
        while let Some(local) = self.connections.next_to_ask(now) {
            if !self.driven.machine().serves(local) {
                self.close(local);
                closed = true;
            }
        }
        closed
    }

    /// Closes a TCP connection. Its waiting data are dropped.
    fn close(&mut self, local: Local) {
        let Some(connection) = self.links.take_connection(local) else { return };
        self.full.retain(|full| *full != local);
        self.connections.closed(local);
        let (address, peer) = (connection.address(), connection.peer());
        drop(connection);
        let change = ConnectionChange { local, address, peer, open: false };
        self.driven.machine().handle(self.clock.now(), Input::Connection(change));
    }

    fn is_paused(&self, local: Local) -> bool {
        self.links.get(local).is_some_and(|link| link.paused)
    }

    /// Carries out the machine's requests about connections. Returns whether there were any.
    fn answer_asks(&mut self, waiter: &Waiter<'_>) -> Result<bool, DriverError> {
        let mut any = false;
        while let Some(ask) = self.driven.machine().ask(self.clock.now()) {
            any = true;
            match ask {
                TcpRequest::Dial { peer, patience } => {
                    let now = self.clock.now();
                    let begun = self.pending_dials.dial(now, peer, patience);
                    let entered =
                        begun.map(|(number, dialing)| (number, waiter.add_dialing(number, dialing)));
                    match entered {
                        Some((_, Ok(()))) => {}
                        Some((number, Err(_))) => {
                            self.pending_dials.done(number);
                            self.driven.machine().handle(now, Input::NotDialed(peer));
                        }
                        None => self.driven.machine().handle(now, Input::NotDialed(peer)),
                    }
                }
                TcpRequest::Pause(local) => self.pause(waiter, local, true)?,
                TcpRequest::Resume(local) => self.pause(waiter, local, false)?,
                TcpRequest::Close(local) => self.close(local),
            }
        }
        Ok(any)
    }

    fn pause(&mut self, waiter: &Waiter<'_>, local: Local, paused: bool) -> Result<(), DriverError> {
        let Some(link) = self.links.get_mut(local) else { return Ok(()) };
        let Some(carrier @ Carrier::Tcp(_)) = &link.carrier else { return Ok(()) };
        link.paused = paused;
        waiter.want(local.0, carrier, !paused, link.waits_for_socket()).map_err(DriverError::Wait)
    }

    /// A connection that the machine asked for is established, or failed.
    fn dialed(&mut self, waiter: &Waiter<'_>, number: u32) -> Result<(), DriverError> {
        let Some(dialing) = self.pending_dials.done(number) else { return Ok(()) };
        let peer = dialing.peer();
        match waiter.remove(&dialing).and_then(|()| dialing.finish()) {
            Ok(connection) => self.take_connection(waiter, Box::new(connection)),
            Err(_) => {
                self.driven.machine().handle(self.clock.now(), Input::NotDialed(peer));
                Ok(())
            }
        }
    }

    /// Notifies the machine of connections that were not accepted in time. Returns whether there
    /// were any.
    fn give_up_dialing(&mut self) -> bool {
        let (now, mut any) = (self.clock.now(), false);
        while let Some(peer) = self.pending_dials.next_over(now) {
            any = true;
            self.driven.machine().handle(now, Input::NotDialed(peer));
        }
        any
    }

    /// Returns the end of the next wait. `None`: no limit.
    fn patience(&self, progress: FlushResult) -> Option<Instant> {
        if progress == FlushResult::More {
            return Some(Instant::ZERO);
        }
        let retries = self.full.iter().filter_map(|local| self.links.get(*local)?.full?.retry);
        let addresses = self.by_address.deadline();
        let connections = self.connections.ask_at().into_iter().chain(self.pending_dials.due());
        retries.chain(self.driven.deadline()).chain(connections).chain(addresses).min()
    }

    fn receive(&mut self, waiter: &Waiter<'_>, local: Local) -> Result<(), DriverError> {
        if local.is_connection() {
            return self.receive_connection(waiter, local);
        }
        let counters = self.control.counters();
        let Some(link) = self.links.get_mut(local) else { return Ok(()) };
        let Some(Carrier::Udp(socket)) = &link.carrier else { return Ok(()) };
        for _ in 0..RECEIVE_CALLS {
            match self.inbox.receive((local, socket), self.driven.machine(), &self.clock, counters) {
                ReceiveResult::Full => link.failures = 0,
                ReceiveResult::Drained => {
                    link.failures = 0;
                    break;
                }
                ReceiveResult::Failed(source) => {
                    counters.receive_errors.add(1);
                    link.failures += 1;
                    if link.failures > RECEIVE_FAILURES {
                        return Err(DriverError::Receive { address: socket.address(), source });
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads once, and asks whether the machine takes more.
    fn receive_connection(&mut self, waiter: &Waiter<'_>, local: Local) -> Result<(), DriverError> {
        let Some(link) = self.links.get_mut(local).filter(|link| !link.paused) else { return Ok(()) };
        let Some(Carrier::Tcp(connection)) = &mut link.carrier else { return Ok(()) };
        let at = (local, self.clock.now());
        let bytes = self.inbox.bytes(self.tcp_limits.read);
        if !connection.receive(at, bytes, self.driven.machine(), self.control.counters()) {
            self.close(local);
        }
        self.answer_asks(waiter)?;
        Ok(())
    }

    /// Sends the data that waited for sockets that now have room. Notifies the machine of sockets
    /// without waiting data.
    fn send_parked(&mut self, waiter: &Waiter<'_>) -> Result<(), DriverError> {
        let mut at = 0;
        while let Some(local) = self.full.get(at).copied() {
            at += 1;
            let now = self.clock.now();
            let Some(link) = self.links.get_mut(local) else { continue };
            let Some(full) = link.full else { continue };
            if !full.over && full.retry.is_none_or(|retry| retry > now) {
                continue;
            }
            let counters = self.control.counters();
            let still = send_parked(link, self.driven.machine(), &self.clock, counters);
            let (waited, waits) = (full.waits_for_socket(), still.is_some_and(SocketFull::waits_for_socket));
            if waits != waited
                && let Some(carrier) = &link.carrier
            {
                waiter.want(local.0, carrier, !link.paused, waits).map_err(DriverError::Wait)?;
            }
            if link.is_broken() {
                self.close(local);
                at -= 1;
                continue;
            }
            if still.is_none() {
                at -= 1;
                self.full.swap_remove(at);
                let change = RoomChange { local, room: true };
                self.driven.machine().handle(self.clock.now(), Input::Room(change));
            }
        }
        Ok(())
    }

    /// Sends the machine's datagrams of one round.
    fn transmit(&mut self, waiter: &Waiter<'_>) -> Result<FlushResult, DriverError> {
        let (mut runs, mut bytes) = (0, 0);
        loop {
            if runs >= BURST_RUNS || bytes >= BURST_BYTES {
                return Ok(FlushResult::More);
            }
            let mut silent = false;
            while let Some(buffer) = self.outbox.room() {
                let mut out = TransmitBuffer { buffer, max_segments: self.max_segments };
                let Some(transmit) = self.driven.machine().transmit(self.clock.now(), &mut out) else {
                    silent = true;
                    break;
                };
                (runs, bytes) = (runs + 1, bytes + transmit.size);
                self.outbox.push(transmit);
            }
            // Who was told something may have something to say to that.
            let told = self.flush(waiter)?;
            if silent && !told {
                return Ok(FlushResult::Done);
            }
        }
    }

    /// Empties the outbox: its runs are sent, or wait for their sockets. Returns whether the
    /// machine got any input.
    fn flush(&mut self, waiter: &Waiter<'_>) -> Result<bool, DriverError> {
        let Self { driven, clock, links, outbox, tcp_limits, .. } = self;
        let machine = driven.machine();
        let counters = self.control.counters();
        let (mut told, mut over) = (false, SmallVec::<[Local; 4]>::new());
        while let Some(&Transmit { local, .. }) = outbox.first() {
            let link = links.get_mut(local);
            let Some((full, parked, paused, carrier)) = link.and_then(|link| {
                Some((&mut link.full, &mut link.parked, link.paused, link.carrier.as_mut()?))
            }) else {
                refuse_first(outbox, SendErrorKind::Unreachable, machine, clock.now(), counters);
                told = true;
                continue;
            };
            if full.is_some() {
                let parked = parked.get_or_insert_with(|| match carrier {
                    Carrier::Udp(_) => Box::new(Outbox::new()),
                    Carrier::Tcp(_) => Box::new(Outbox::of(tcp_limits.parked)),
                });
                counters.overflowed.add(outbox.park(local, parked));
                continue;
            }
            let offload = carrier.max_segments();
            match carrier.send_next(outbox, counters) {
                SendResult::All => {}
                SendResult::Blocked(_, obstacle) => {
                    counters.blocked.add(1);
                    let now_full = SocketFull::new(obstacle, clock);
                    if now_full.waits_for_socket() {
                        waiter.want(local.0, &*carrier, !paused, true).map_err(DriverError::Wait)?;
                    }
                    *full = Some(now_full);
                    self.full.push(local);
                    machine.handle(clock.now(), Input::Room(RoomChange { local, room: false }));
                    told = true;
                }
                SendResult::Failed(kind) => {
                    refuse_first(outbox, kind, machine, clock.now(), counters);
                    told = true;
                    if matches!(carrier, Carrier::Tcp(connection) if connection.is_gone()) {
                        over.push(local);
                    }
                }
            }
            if carrier.max_segments() < offload {
                self.max_segments = links.max_segments();
            }
        }
        for local in over {
            self.close(local);
        }
        Ok(told)
    }
}

/// Sends the data that waited for a socket or connection. Returns the condition for which the rest
/// waits.
fn send_parked(
    link: &mut Link,
    machine: &mut dyn Machine,
    clock: &Clock,
    counters: &Counters,
) -> Option<SocketFull> {
    link.full = None;
    let (parked, carrier) = (link.parked.as_mut()?, link.carrier.as_mut()?);
    while parked.first().is_some() {
        match carrier.send_next(parked, counters) {
            SendResult::All => {}
            SendResult::Blocked(_, obstacle) => {
                link.full = Some(SocketFull::new(obstacle, clock));
                break;
            }
            SendResult::Failed(kind) => refuse_first(parked, kind, machine, clock.now(), counters),
        }
    }
    link.full
}

/// The first run is not sent, and the machine learns why.
fn refuse_first(
    outbox: &mut Outbox,
    kind: SendErrorKind,
    machine: &mut dyn Machine,
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
