//! The loop that runs one machine in the real world: receive, wake, turn, transmit, wait.

use crate::clock::Clock;
use crate::control::Control;
use crate::device::DeviceSource;
use crate::outbox::Outbox;
use crate::receive::{Inbox, Received};
use crate::send::{Obstacle, Progress as Left, Sent};
use crate::socket::Socket;
use crate::wait::Waiter;
use byway_wire::{
    Duration, Input, Instant, LinkChange, Local, Machine, Out, SendError, SendErrorKind, Transmit,
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
        links: sockets.into_iter().map(|socket| Link { socket, failures: 0 }).collect(),
        inbox: Inbox::new(),
        outbox: Outbox::new(),
        blocked: None,
    };
    let outcome = driver.run();
    let sockets = driver.links.into_iter().map(|link| link.socket).collect();
    Finished { machine: driver.machine, owner: driver.owner, sockets, outcome }
}

struct Driver<'a, O: Owner> {
    machine: O::Machine,
    owner: O,
    clock: Clock,
    control: &'a Control,
    links: Vec<Link>,
    inbox: Inbox,
    /// What the machine wrote and the system has not taken yet.
    outbox: Outbox,
    blocked: Option<Blocked>,
}

struct Link {
    socket: Socket,
    failures: u32,
}

/// The first run of the outbox met a full socket or device: the machine writes nothing else until it left.
#[derive(Clone, Copy)]
struct Blocked {
    local: Local,
    /// When to try again if the socket itself will not tell.
    retry: Option<Instant>,
}

/// How far sending got.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The machine has nothing more to say.
    Done,
    /// It may have; its share of this round is used up.
    More,
    /// A socket or device is full.
    Blocked,
}

impl<O: Owner> Driver<'_, O> {
    fn run(&mut self) -> Result<(), DriverError> {
        let device = self.owner.device();
        self.announce(0)?;
        let mut progress = Progress::More;
        while let Some(opened) = self.run_with_these(device.as_ref(), &mut progress)? {
            let before = self.links.len();
            self.links.extend(opened.into_iter().map(|socket| Link { socket, failures: 0 }));
            self.announce(before)?;
        }
        Ok(())
    }

    /// Runs until the end, or until the owner opened more sockets.
    fn run_with_these(
        &mut self,
        device: Option<&DeviceSource>,
        progress: &mut Progress,
    ) -> Result<Option<Vec<Socket>>, DriverError> {
        let sources: Vec<_> = self.links.iter().map(|link| link.socket.io.clone()).collect();
        let mut waiter = Waiter::new(self.control.waker(), &sources, device);
        loop {
            let (until, blocked) = self.patience(*progress);
            waiter.wait(&self.clock, until, blocked).map_err(DriverError::Wait)?;
            if waiter.rung() {
                self.control.counters().rung.add(1);
                self.control.waker().silence();
            }
            self.owner.before(&mut self.machine, self.clock.now());
            for index in 0..self.links.len() {
                if waiter.readable(index) {
                    self.receive(index)?;
                }
            }
            // Asked before the turn, so that the turn sees all that was said before the stop.
            let stopped = self.control.is_stopped();
            let now = self.clock.now();
            if self.machine.deadline().is_some_and(|deadline| deadline <= now) {
                self.machine.wake(now);
            }
            self.control.counters().turns.add(1);
            let flow = self.owner.turn(&mut self.machine, now);
            *progress = self.transmit();
            if flow == Flow::Stop || stopped {
                return Ok(None);
            }
            let opened = self.owner.opened();
            if !opened.is_empty() {
                return Ok(Some(opened));
            }
        }
    }

    /// Tells the machine of the sockets from this one on.
    fn announce(&mut self, first: usize) -> Result<(), DriverError> {
        let count = self.links.len();
        let now = self.clock.now();
        for (index, link) in self.links.iter().enumerate().skip(first) {
            let number = u16::try_from(index).map_err(|_| DriverError::TooManySockets(count))?;
            let change = LinkChange { local: Local(number), address: link.socket.address(), up: true };
            self.machine.handle(now, Input::Link(change));
            if link.socket.buffers().clipped() {
                self.control.counters().clipped_sockets.add(1);
            }
        }
        Ok(())
    }

    /// Until when to wait (`None`: for as long as it takes) and which socket must have room first.
    fn patience(&self, progress: Progress) -> (Option<Instant>, Option<usize>) {
        let deadline = self.machine.deadline();
        match (progress, &self.blocked) {
            (Progress::More, _) => (Some(Instant::ZERO), None),
            (_, None) => (deadline, None),
            (_, Some(blocked)) => {
                // A machine that may not send cannot move a deadline that only sending would move; it was woken in this
                // round, and is again when the obstacle is gone.
                let now = self.clock.now();
                let deadline = deadline.filter(|deadline| *deadline > now);
                let until = [deadline, blocked.retry].into_iter().flatten().min();
                (until, blocked.retry.is_none().then_some(usize::from(blocked.local.0)))
            }
        }
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

    /// Sends what is left from before, then what the machine has to say, for one round.
    fn transmit(&mut self) -> Progress {
        let max_segments = self.links.iter().map(|link| link.socket.max_segments()).max().unwrap_or(1);
        let (mut runs, mut bytes) = (0, 0);
        while self.flush() {
            if runs >= BURST_RUNS || bytes >= BURST_BYTES {
                return Progress::More;
            }
            while let Some(buffer) = self.outbox.room() {
                let mut out = Out { buffer, max_segments };
                let Some(transmit) = self.machine.transmit(self.clock.now(), &mut out) else {
                    return if self.flush() { Progress::Done } else { Progress::Blocked };
                };
                (runs, bytes) = (runs + 1, bytes + transmit.size);
                self.outbox.push(transmit);
            }
        }
        Progress::Blocked
    }

    /// Sends what is in the outbox. `false`: some of it has to wait.
    fn flush(&mut self) -> bool {
        let counters = self.control.counters();
        self.blocked = None;
        while let Some((local, left)) = self.send_next() {
            match left.then {
                Sent::All => self.outbox.advance(left.done, 0),
                Sent::Blocked(sent, obstacle) => {
                    counters.blocked.add(1);
                    let retry = (obstacle == Obstacle::Device).then(|| self.clock.now() + DEVICE_PAUSE);
                    self.outbox.advance(left.done, sent);
                    self.blocked = Some(Blocked { local, retry });
                    return false;
                }
                Sent::Failed(kind) => {
                    counters.failed(kind);
                    self.outbox.advance(left.done, 0);
                    if let Some(Transmit { local, remote, segment, size, .. }) = self.outbox.first().copied()
                    {
                        self.outbox.advance(1, 0);
                        let error = SendError { local, remote, size: segment.min(size), kind };
                        self.machine.handle(self.clock.now(), Input::SendError(error));
                    }
                }
            }
        }
        true
    }

    /// Sends what leaves next by one socket, as far as that goes.
    fn send_next(&mut self) -> Option<(Local, Left)> {
        let (local, runs, start) = self.outbox.next()?;
        let left = match self.links.get_mut(usize::from(local.0)) {
            Some(link) => link.socket.send(&runs, start, self.control.counters()),
            None => Left { done: 0, then: Sent::Failed(SendErrorKind::Unreachable) },
        };
        Some((local, left))
    }
}
