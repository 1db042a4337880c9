//! The entry of a forward: programs connect to local ports, and each TCP connection becomes a
//! stream of the session.
//!
//! Without a session, connections wait at most ten seconds. Then they are reset; SOCKS5
//! connections first get an error reply.

use crate::connection_slots::{Number, Slots};
use crate::forwarded_stream::{ForwardedStream, RequestStream};
use crate::nonblocking_tcp::{ByteCounts, Tcp, listen};
use crate::socks_dialog::{ProgramRequest, speak};
use crate::target_dial::is_out_of_descriptors;
use byway_engine::Connection;
use byway_engine::data::{InEvent, OutEvent};
use byway_forward::forward_target::Target;
use byway_forward::local_port::Forward;
use byway_forward::socks::{self, Socks};
use byway_forward::splice::{IoResult, Local as _, SpliceStatus, SplicedStream as _, StreamOf, WaitsFor};
use byway_forward::stream_request::{Refusal, code};
use byway_net::{Ready, Token, Watch};
use byway_wire::{Duration, Instant, StreamId};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;

/// Time that a program may take to send its SOCKS5 request, and time that a connection waits for a
/// session.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that the peer may take to answer: longer than a lookup and two attempts to connect.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(40);
/// Time for which listeners pause after a failure for want of descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// The most connections that each listener accepts in one turn.
const MAX_ACCEPTS_PER_TURN: usize = 64;
/// Bytes read at once.
const SCRATCH_LEN: usize = 64 << 10;
/// Events that wait for the owner, at most.
const MAX_QUEUED_EVENTS: usize = 256;

/// A local port that programs connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The local address and port that is listened on.
    pub address: SocketAddr,
    /// The target of the listener's connections. `None`: each program names a target by SOCKS5.
    pub target: Option<Target>,
}

/// Why a port cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on TCP {address}: {source}")]
pub struct ListenError {
    /// The address and port that could not be listened on.
    pub address: SocketAddr,
    /// The system's error.
    pub source: io::Error,
}

/// Listening sockets, opened before there is an [`Entry`] that serves them.
#[derive(Debug)]
pub struct Listening(Vec<(TcpListener, Listener)>);

impl Listening {
    /// Listens on local ports: those of `forwards`, each of which has a fixed target, and those of
    /// `socks`, where the program names the target by SOCKS5.
    ///
    /// # Errors
    /// A port is in use, or may not be used.
    pub fn begin(forwards: Vec<Forward>, socks: &[SocketAddr]) -> Result<Self, ListenError> {
        let forwards = forwards.into_iter().map(|it| (it.listen, Some(it.target)));
        let all = forwards.chain(socks.iter().map(|address| (*address, None)));
        let bind = |(address, target): (SocketAddr, Option<Target>)| {
            let bound = listen(address).and_then(|listener| Ok((listener.local_addr()?, listener)));
            let (address, listener) = bound.map_err(|source| ListenError { address, source })?;
            Ok((listener, Listener { address, target }))
        };
        Ok(Self(all.map(bind).collect::<Result<_, _>>()?))
    }

    /// Returns the sockets, each with its listener's target.
    #[must_use]
    pub fn into_sockets(self) -> Vec<(TcpListener, Listener)> {
        self.0
    }

    /// All listeners. A port that was given as 0 is the one that the system chose.
    pub fn listeners(&self) -> impl Iterator<Item = &Listener> {
        self.0.iter().map(|(_, listener)| listener)
    }
}

/// An event at the entry of a forward, for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryEvent {
    /// The far end does not connect to a target.
    Refused(Target, Refusal),
    /// A connection waited for a session in vain.
    NoSession(Target),
    /// A connection to this target waited for a free place until its timeout.
    NoPlace(Target),
    /// A connection to this target was reset, by its program or at the far end.
    Reset(Target),
    /// The system gives no more descriptors.
    NoDescriptors,
}

/// The state of a program's connection.
#[derive(Debug)]
enum EntryState {
    /// The program negotiates its target by SOCKS5.
    Socks(Socks),
    /// The connection waits for a session, or for a stream that the far end admits.
    Waiting(Target),
    /// The connection has a stream.
    Open(ForwardedStream),
}

/// A connection of a program.
#[derive(Debug)]
struct ProgramConnection {
    tcp: Tcp,
    /// Whether the program waits for a reply of SOCKS5.
    awaits_reply: bool,
    state: EntryState,
    broken: bool,
}

/// Serves programs. Belongs to the owner of an endpoint.
pub struct Entry {
    listeners: Vec<(TcpListener, Listener)>,
    watch: Watch,
    /// Connections at most.
    most: usize,
    /// When listeners are tried again, after the system refused to accept. `None`: they do not
    /// pause.
    accept_at: Option<Instant>,
    /// Whether some may have more to accept.
    accepts: bool,
    /// Whether connections were left unaccepted because there were too many.
    full: bool,
    slots: Slots<ProgramConnection>,
    streams: BTreeMap<StreamId, Number>,
    events: VecDeque<EntryEvent>,
    scratch: Vec<u8>,
    opened: u64,
    byte_counts: ByteCounts,
    /// Bytes that may still be taken from streams. `None`: no limit.
    budget: Option<usize>,
}

impl Entry {
    /// Accepts local programs' connections at the ports of `listening`: at most `most` at once,
    /// others wait in the system's backlog. `watch`: the event loop's watcher of sockets. Its other
    /// users must not use this entry's tokens: connection numbers, from 0, and listener numbers,
    /// from 2^31.
    ///
    /// # Errors
    /// A port cannot be watched.
    pub fn new(listening: Listening, most: usize, watch: &Watch) -> io::Result<Self> {
        let listeners = listening.0;
        for (number, (listener, _)) in listeners.iter().enumerate() {
            watch.add(listener, Token(LISTENER_TOKEN_BASE | number as u32))?;
        }
        Ok(Self {
            listeners,
            watch: watch.clone(),
            most,
            accept_at: None,
            accepts: true,
            full: false,
            slots: Slots::default(),
            streams: BTreeMap::new(),
            events: VecDeque::new(),
            scratch: vec![0; SCRATCH_LEN],
            opened: 0,
            byte_counts: ByteCounts::default(),
            budget: None,
        })
    }

    /// Forwards this connection to `target`. `program`: one end of a pair of sockets, whose other
    /// end this process has.
    ///
    /// # Errors
    /// The socket cannot be used without blocking.
    pub fn join(&mut self, program: UnixStream, target: Target, now: Instant) -> io::Result<()> {
        self.take(Tcp::of_pair(program)?, false, Some(target), now);
        Ok(())
    }

    /// The number of connections, and how many connections ever got a stream.
    #[must_use]
    pub fn count(&self) -> (usize, u64) {
        (self.slots.len(), self.opened)
    }

    /// Bytes moved in each direction so far.
    #[must_use]
    pub const fn moved(&self) -> ByteCounts {
        self.byte_counts
    }

    /// Takes at most `budget` bytes from streams until the next call. With `None` it takes as many
    /// as there are.
    pub fn allow(&mut self, budget: Option<usize>) {
        if std::mem::replace(&mut self.budget, budget) == Some(0) && budget != Some(0) {
            self.slots.unblock();
        }
    }

    /// Returns the number of bytes that may still be read.
    #[must_use]
    pub const fn budget(&self) -> Option<usize> {
        self.budget
    }

    /// The next thing that happened.
    pub fn next_event(&mut self) -> Option<EntryEvent> {
        self.events.pop_front()
    }

    /// Notes that a socket is ready. Call this for each event that the driver reports.
    pub fn ready(&mut self, ready: Ready) {
        match ready.token.0 {
            LISTENER_TOKEN_BASE.. => self.accepts = true,
            number => self.slots.hurry(number),
        }
    }

    /// Notes that a session began. Connections that wait get a turn.
    pub fn begin(&mut self) {
        self.slots.unblock();
    }

    /// Handles the end of the session. Connections with a stream are reset, and others wait for the
    /// next session.
    pub fn lose(&mut self) {
        for number in std::mem::take(&mut self.streams).into_values() {
            if let Some(program) = self.slots.remove(number) {
                self.part(program, None);
            }
        }
    }

    /// Runs all due work, with the session if there is one. Returns whether another turn is needed
    /// soon.
    pub fn turn(&mut self, mut session: Option<&mut Connection>, now: Instant) -> bool {
        if let Some(connection) = session.as_deref_mut() {
            self.take_events(connection);
        }
        self.accept(now);
        while let Some(number) = self.slots.next_end(now) {
            self.time_is_up(number, session.as_deref_mut());
        }
        for _ in 0..self.slots.count_due() {
            let Some(number) = self.slots.next_due() else { break };
            self.drive(number, session.as_deref_mut(), now);
        }
        self.slots.count_due() > 0 || self.accepts && self.accept_at.is_none() && self.slots.len() < self.most
    }

    fn take_events(&mut self, connection: &mut Connection) {
        while let Some(event) = connection.incoming().next_event() {
            match event {
                InEvent::StreamOpened(id) => match self.line(id) {
                    Some(line) => line.begun = true,
                    // Only this side opens streams.
                    None => connection.incoming().stop(id, code::CONNECTION_RESET),
                },
                InEvent::StreamReadable(id) => self.hurry(id, false),
                InEvent::StreamReset { id, .. } => self.hurry(id, true),
                InEvent::ObjectComplete { .. } => {}
            }
        }
        while let Some(event) = connection.outgoing().next_event() {
            match event {
                OutEvent::Writable(id) => self.hurry(id, false),
                OutEvent::MayOpen => self.slots.unblock(),
                // Why it is refused is yet to come.
                OutEvent::Stopped { stream, .. } => {
                    if self.line(stream).is_some_and(|line| line.answered) {
                        self.hurry(stream, true);
                    }
                }
                OutEvent::StreamAcked(id) => {
                    if let Some(line) = self.line(id) {
                        line.acked = true;
                        self.hurry(id, false);
                    }
                }
                OutEvent::ObjectAcked(_) => {}
            }
        }
    }

    fn line(&mut self, id: StreamId) -> Option<&mut ForwardedStream> {
        match &mut self.slots.get_mut(*self.streams.get(&id)?)?.state {
            EntryState::Open(line) => Some(line),
            _ => None,
        }
    }

    fn hurry(&mut self, id: StreamId, broken: bool) {
        let Some(number) = self.streams.get(&id).copied() else { return };
        if let Some(program) = self.slots.get_mut(number) {
            program.broken |= broken;
        }
        self.slots.hurry(number);
    }

    fn accept(&mut self, now: Instant) {
        if !self.accepts || self.accept_at.is_some_and(|at| now < at) {
            return;
        }
        (self.accepts, self.full, self.accept_at) = (false, false, None);
        for index in 0..self.listeners.len() {
            for taken in 0.. {
                if taken == MAX_ACCEPTS_PER_TURN || self.slots.len() >= self.most {
                    self.accepts = true;
                    self.full |= taken < MAX_ACCEPTS_PER_TURN;
                    break;
                }
                let Some((listener, what)) = self.listeners.get(index) else { break };
                let (socks, target) = (what.target.is_none(), what.target.clone());
                match listener.accept().and_then(|(stream, _)| Tcp::accepted(stream)) {
                    Ok(tcp) => self.take(tcp, socks, target, now),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if is_out_of_descriptors(&error) => {
                        (self.accepts, self.accept_at) = (true, Some(now + ACCEPT_RETRY_DELAY));
                        self.tell(EntryEvent::NoDescriptors);
                        return;
                    }
                    // One that has gone again, or that a firewall forbids: the next may do.
                    Err(_) => {}
                }
            }
        }
    }

    fn take(&mut self, tcp: Tcp, socks: bool, target: Option<Target>, now: Instant) {
        let state = target.map_or_else(|| EntryState::Socks(Socks::default()), EntryState::Waiting);
        let number = self.slots.insert(ProgramConnection { tcp, awaits_reply: socks, state, broken: false });
        let Some(program) = self.slots.get_mut(number) else { return };
        if self.watch.add(&program.tcp, Token(number)).is_err() {
            self.slots.remove(number);
            return;
        }
        self.slots.set_end(number, Some(now + REQUEST_TIMEOUT));
        self.slots.hurry(number);
    }

    fn time_is_up(&mut self, number: Number, session: Option<&mut Connection>) {
        let Some(program) = self.slots.remove(number) else { return };
        let refusal = match &program.state {
            EntryState::Socks(_) => None,
            EntryState::Waiting(target) => {
                let target = target.clone();
                self.tell(match session {
                    Some(_) => EntryEvent::NoPlace(target),
                    None => EntryEvent::NoSession(target),
                });
                Some(Refusal::Failed)
            }
            EntryState::Open(line) => {
                let (target, id) = (line.target.clone(), line.id);
                self.streams.remove(&id);
                if let Some(connection) = session {
                    StreamOf { connection, id }.reset(code::CONNECTION_RESET);
                }
                self.tell(EntryEvent::Refused(target, Refusal::Timeout));
                Some(Refusal::Timeout)
            }
        };
        self.part(program, refusal);
    }

    /// Serves one connection that has a turn.
    fn drive(&mut self, number: Number, session: Option<&mut Connection>, now: Instant) {
        let Some(program) = self.slots.get_mut(number) else { return };
        if let EntryState::Socks(words) = &mut program.state {
            match speak(&mut program.tcp, words) {
                ProgramRequest::Waits => return,
                ProgramRequest::Asks(target) => {
                    program.state = EntryState::Waiting(target);
                    self.slots.set_end(number, Some(now + REQUEST_TIMEOUT));
                }
                ProgramRequest::Over => {
                    self.slots.remove(number);
                    return;
                }
            }
        }
        let Some(connection) = session else {
            self.slots.block(number);
            return;
        };
        self.open(number, connection, now);
        self.go_on(number, connection);
    }

    /// Opens a stream for a connection that waits for one.
    fn open(&mut self, number: Number, connection: &mut Connection, now: Instant) {
        let Some(ProgramConnection { state: EntryState::Waiting(target), .. }) = self.slots.get_mut(number)
        else {
            return;
        };
        let target = target.clone();
        let Some(id) = connection.outgoing().open_next() else { return self.slots.block(number) };
        if let Some(program) = self.slots.get_mut(number) {
            program.state = EntryState::Open(ForwardedStream::new(target, id));
        }
        self.streams.insert(id, number);
        self.slots.set_end(number, Some(now + ANSWER_TIMEOUT));
        self.opened += 1;
    }

    /// Takes the answer, and moves bytes.
    fn go_on(&mut self, number: Number, connection: &mut Connection) {
        let Some(program) = self.slots.get_mut(number) else { return };
        let EntryState::Open(line) = &mut program.state else { return };
        let before = line.splice.moved;
        let mut stream = RequestStream {
            stream: StreamOf { connection, id: line.id },
            begun: line.begun,
            answered: &mut line.answered,
            ended: &mut line.ended,
            refusal: &mut line.refusal,
            budget: &mut self.budget,
            is_short: false,
        };
        if let Some(request) = line.request.take_if(|_| !program.broken) {
            if stream.room(request.len()) < request.len() {
                line.request = Some(request);
                return;
            }
            stream.write(&request);
        }
        let was_answered = *stream.answered;
        let mut standing = SpliceStatus::Open(WaitsFor::default());
        if program.broken {
            line.splice.break_off(&mut program.tcp, &mut stream);
            standing = SpliceStatus::Broken;
        } else if program.awaits_reply {
            match stream.answer() {
                Some(true) => {}
                Some(false) => return,
                None => {
                    stream.reset(code::CONNECTION_RESET);
                    standing = SpliceStatus::Broken;
                }
            }
            if standing != SpliceStatus::Broken {
                program.awaits_reply = false;
                // A connection that has just begun has room for ten bytes.
                if program.tcp.write(&socks::reply(Ok(()))) != IoResult::Done(10) {
                    program.broken = true;
                }
            }
        }
        if standing != SpliceStatus::Broken {
            standing = line.splice.pump(&mut program.tcp, &mut stream, &mut self.scratch);
        }
        let (answered, is_short) = (*stream.answered && !was_answered, stream.is_short);
        let acked = line.acked;
        let moved = [0, 1].map(|way| line.splice.moved[way] - before[way]);
        self.byte_counts =
            ByteCounts { forth: self.byte_counts.forth + moved[0], back: self.byte_counts.back + moved[1] };
        if answered {
            self.slots.set_end(number, None);
        }
        if is_short {
            self.slots.block(number);
        }
        match standing {
            SpliceStatus::Open(waits) => self.wait(number, waits),
            // Until then the far end may still lack the last bytes.
            SpliceStatus::Over if !acked => {}
            SpliceStatus::Over | SpliceStatus::Broken => self.end(number, standing == SpliceStatus::Broken),
        }
    }

    fn wait(&mut self, number: Number, waits: WaitsFor) {
        if waits.turn {
            self.slots.hurry(number);
        }
        if waits.room {
            // It is not read meanwhile, and so does not tell that it broke.
            if let Some(program) = self.slots.get_mut(number).filter(|program| program.tcp.is_broken()) {
                program.broken = true;
                self.slots.hurry(number);
            }
        }
    }

    /// A connection with a stream is over.
    fn end(&mut self, number: Number, broken: bool) {
        let Some(program) = self.slots.remove(number) else { return };
        let EntryState::Open(line) = &program.state else { return };
        self.streams.remove(&line.id);
        let (target, refusal) = (line.target.clone(), line.refusal);
        match refusal {
            Some(refusal) => self.tell(EntryEvent::Refused(target, refusal)),
            None if broken => self.tell(EntryEvent::Reset(target)),
            None => {}
        }
        if broken {
            self.part(program, refusal);
        }
        self.accepts |= self.full;
    }

    /// Ends the connection of a program that cannot be served. It gets a SOCKS5 reply if it waits
    /// for one, and a reset otherwise.
    fn part(&mut self, mut program: ProgramConnection, refusal: Option<Refusal>) {
        self.accepts |= self.full;
        if program.awaits_reply && !matches!(program.state, EntryState::Socks(_)) {
            let reply = socks::reply(Err(refusal.unwrap_or(Refusal::Failed)));
            // Where there is no room, there is nobody who reads.
            let _ = program.tcp.write(&reply);
            program.tcp.leave();
        } else {
            program.tcp.abort();
        }
    }

    /// Queues an event. If the queue is full, the event is lost.
    fn tell(&mut self, event: EntryEvent) {
        if self.events.len() < MAX_QUEUED_EVENTS {
            self.events.push_back(event);
        }
    }
}

/// The offset of the listeners' tokens, so that they differ from those of connections.
const LISTENER_TOKEN_BASE: u32 = 1 << 31;
