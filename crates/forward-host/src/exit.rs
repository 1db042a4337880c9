//! The far end: dials what the streams of its sessions ask for, as far as it is allowed.

use crate::connection_shares::ConnectionShares;
use crate::connection_slots::{Number, Slots};
use crate::name_lookup_queue::{QuestionId, Sender};
use crate::nonblocking_tcp::{ByteCounts, Tcp};
use crate::resolver::Resolver;
use crate::target_dial::{Dial, Dialled};
use byway_engine::data::{InEvent, OutEvent};
use byway_engine::{Connection, Endpoint, Handle};
use byway_forward::allow_rules::{Allow, DialDecision};
use byway_forward::forward_target::{Target, TargetHost};
use byway_forward::splice::{Local as _, Splice, SpliceStatus, SplicedStream as _, StreamOf, WaitsFor};
use byway_forward::stream_request::{CONNECTED_ANSWER, Refusal, Request, code};
use byway_net::{Control, Ready, Token, Watch};
use byway_wire::{Duration, Instant, StreamId};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Time that a request may take to arrive, and then a name's lookup.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Time that a target may take to accept the rest of a connection whose session is over.
const PARTING_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes kept for targets of sessions that are over, at most. Further connections are reset.
const MAX_PARTING_BYTES: usize = 32 << 20;
/// Bytes that a connection counts for at least among [`MAX_PARTING_BYTES`].
const MIN_PARTING_BYTES: usize = 64 << 10;
/// Bytes read at once.
const SCRATCH_LEN: usize = 64 << 10;

/// The state of a connection at the exit.
enum ExitState {
    /// The stream's request has not come whole yet.
    Asking(Request),
    /// The target's name is being looked up.
    Resolving(Target),
    /// The target is being dialled.
    Dialling(Dial),
    /// The request was refused, and the reply has yet to be sent.
    Refused,
    /// The stream and the target are connected.
    Open(Tcp, Splice),
    /// The session is over, and the target has yet to accept the rest of the program's data. The
    /// number is the connection's part of [`MAX_PARTING_BYTES`].
    Parting(Tcp, Splice, usize),
}

/// A connection that comes by a stream.
struct Incoming {
    /// A number that no other connection ever gets, unlike the slot's number.
    serial: u64,
    session: Handle,
    stream: StreamId,
    state: ExitState,
    /// Whether the connection occupies one of the places that all senders share.
    has_place: bool,
    /// The first byte of the stream: connected, or a refusal. `None`: it was written, or is not
    /// known yet.
    answer: Option<u8>,
    /// Whether the peer ended the stream right after the request.
    ended: bool,
    /// Whether the peer reset the stream.
    broken: bool,
}

impl Incoming {
    /// The id of the question that resolves the target's name.
    fn question(&self, number: Number) -> QuestionId {
        self.serial << 32 | u64::from(number)
    }
}

/// A session that may ask for targets.
struct Session {
    sender: Sender,
    streams: BTreeMap<StreamId, Number>,
}

/// Dials for sessions. Belongs to the owner of their endpoint.
pub struct Exit {
    allow: Allow,
    shares: ConnectionShares,
    watch: Watch,
    resolver: Resolver,
    sessions: BTreeMap<Handle, Session>,
    slots: Slots<Incoming>,
    scratch: Vec<u8>,
    serial: u64,
    opened: u64,
    byte_counts: ByteCounts,
    /// Bytes that connections without a session count for.
    parting_bytes: usize,
}

impl Exit {
    /// Dials only targets that `allow` permits, with at most `most` connections at once. `control`
    /// belongs to the event loop (driver) that will run this exit. Other users of the loop's
    /// [`Watch`] must not use this exit's tokens: its connection numbers, from 0.
    #[must_use]
    pub fn new(allow: Allow, most: usize, control: &Control) -> Self {
        Self {
            allow,
            shares: ConnectionShares::new(most),
            watch: control.watch().clone(),
            resolver: Resolver::new(control.waker().clone()),
            sessions: BTreeMap::new(),
            slots: Slots::default(),
            scratch: vec![0; SCRATCH_LEN],
            serial: 0,
            opened: 0,
            byte_counts: ByteCounts::default(),
            parting_bytes: 0,
        }
    }

    /// Adds a session that may ask for targets. `sender` is the public key of its peer: all
    /// sessions of one key share one party's limits.
    pub fn join(&mut self, session: Handle, sender: [u8; 32]) {
        if !self.serves(session) {
            self.shares.join(sender);
            self.sessions.insert(session, Session { sender, streams: BTreeMap::new() });
        }
    }

    /// Whether `session` is one of the sessions that this exit serves.
    #[must_use]
    pub fn serves(&self, session: Handle) -> bool {
        self.sessions.contains_key(&session)
    }

    /// The sessions that this exit serves.
    pub fn sessions(&self) -> impl Iterator<Item = Handle> + '_ {
        self.sessions.keys().copied()
    }

    /// Removes a session that ended. A connection whose both directions had ended passes on the
    /// data that had arrived, which are read from `connection`. Others are reset.
    pub fn leave(&mut self, session: Handle, mut connection: Option<&mut Connection>, now: Instant) {
        let Some(Session { sender, streams }) = self.sessions.remove(&session) else { return };
        let mut places = 0;
        for number in streams.into_values() {
            let Some(incoming) = self.slots.get_mut(number) else { continue };
            places += usize::from(std::mem::take(&mut incoming.has_place));
            if connection.as_deref_mut().is_some_and(|connection| self.outlives(number, connection)) {
                self.slots.set_end(number, Some(now + PARTING_TIMEOUT));
                self.slots.hurry(number);
                continue;
            }
            let Some(incoming) = self.slots.remove(number) else { continue };
            let question = incoming.question(number);
            match incoming.state {
                ExitState::Open(mut tcp, _) => tcp.abort(),
                ExitState::Resolving(_) => self.resolver.forget(sender, question),
                _ => {}
            }
        }
        self.shares.leave(sender, places);
    }

    /// Whether a connection can outlive its session. If so, it begins to do so.
    fn outlives(&mut self, number: Number, connection: &mut Connection) -> bool {
        let free = MAX_PARTING_BYTES - self.parting_bytes;
        let Some(incoming) = self.slots.get_mut(number).filter(|it| !it.broken) else { return false };
        let ExitState::Open(_, splice) = &mut incoming.state else { return false };
        let rest = splice.outlive(&mut StreamOf { connection, id: incoming.stream }, free);
        let Some(cost) = rest.map(|rest| rest.max(MIN_PARTING_BYTES)).filter(|cost| *cost <= free) else {
            return false;
        };
        if let ExitState::Open(tcp, splice) = std::mem::replace(&mut incoming.state, ExitState::Refused) {
            self.parting_bytes += cost;
            incoming.state = ExitState::Parting(tcp, splice, cost);
        }
        true
    }

    /// Returns the number of connections, and the number of connections ever made to targets.
    #[must_use]
    pub fn count(&self) -> (usize, u64) {
        (self.shares.len(), self.opened)
    }

    /// Whether there is no connection, not even one that is over and still has bytes to write.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.slots.is_empty()
    }

    /// Bytes that were moved by connections that are over.
    #[must_use]
    pub const fn moved(&self) -> ByteCounts {
        self.byte_counts
    }

    /// Notes that a socket is ready. Call this for each event that the driver reports.
    pub fn ready(&mut self, ready: Ready) {
        self.slots.hurry(ready.token.0);
    }

    /// Runs all due work. Returns whether another turn is needed soon, as some connections used
    /// their turn.
    pub fn turn(&mut self, endpoint: &mut Endpoint, now: Instant) -> bool {
        self.take_names(now);
        for session in self.sessions.keys().copied().collect::<Vec<_>>() {
            if let Some(connection) = endpoint.connection_mut(session) {
                self.take_events(session, connection, now);
            }
        }
        while let Some(number) = self.slots.next_end(now) {
            self.time_is_up(number, now);
        }
        for _ in 0..self.slots.count_due() {
            let Some(number) = self.slots.next_due() else { break };
            let Some(incoming) = self.slots.get_mut(number) else { continue };
            if let ExitState::Parting(tcp, splice, _) = &mut incoming.state {
                if !matches!(splice.flush(tcp), SpliceStatus::Open(_)) {
                    self.end(number);
                }
                continue;
            }
            if let Some(connection) = endpoint.connection_mut(incoming.session) {
                self.drive(number, connection, now);
            }
        }
        self.slots.count_due() > 0
    }

    fn take_events(&mut self, session: Handle, connection: &mut Connection, now: Instant) {
        while let Some(event) = connection.incoming().next_event() {
            match event {
                InEvent::StreamOpened(id) => self.open(session, id, connection, now),
                InEvent::StreamReadable(id) => self.hurry(session, id, false),
                InEvent::StreamReset { id, .. } => self.hurry(session, id, true),
                InEvent::ObjectComplete { .. } => {}
            }
        }
        while let Some(event) = connection.outgoing().next_event() {
            match event {
                OutEvent::Writable(id) => self.hurry(session, id, false),
                OutEvent::Stopped { stream, .. } => self.hurry(session, stream, true),
                OutEvent::MayOpen | OutEvent::StreamAcked(_) | OutEvent::ObjectAcked(_) => {}
            }
        }
    }

    fn hurry(&mut self, session: Handle, stream: StreamId, broken: bool) {
        let number = self.sessions.get(&session).and_then(|it| it.streams.get(&stream)).copied();
        if let Some(number) = number {
            if let Some(incoming) = self.slots.get_mut(number) {
                incoming.broken |= broken;
            }
            self.slots.hurry(number);
        }
    }

    /// Makes a connection for a stream that the peer opened.
    fn open(&mut self, session: Handle, stream: StreamId, connection: &mut Connection, now: Instant) {
        connection.outgoing().open_stream(stream);
        self.serial += 1;
        let sender = self.sessions.get(&session).map(|it| it.sender);
        let has_place = sender.is_some_and(|sender| self.shares.take(sender));
        let (state, answer) = match has_place {
            true => (ExitState::Asking(Request::default()), None),
            false => (ExitState::Refused, Some(Refusal::Full.code())),
        };
        let serial = self.serial;
        let (ended, broken) = (false, false);
        let incoming = Incoming { serial, session, stream, state, has_place, answer, ended, broken };
        let number = self.slots.insert(incoming);
        if let Some(session) = self.sessions.get_mut(&session) {
            session.streams.insert(stream, number);
        }
        self.slots.set_end(number, Some(now + REQUEST_TIMEOUT));
        self.slots.hurry(number);
    }

    /// Takes the resolver's answers, and dials the addresses.
    fn take_names(&mut self, now: Instant) {
        while let Some((whom, addresses)) = self.resolver.next() {
            let number = Number::try_from(whom & u64::from(u32::MAX)).unwrap_or(Number::MAX);
            let Some(incoming) = self.slots.get_mut(number) else { continue };
            if incoming.serial != whom >> 32 {
                continue;
            }
            let ExitState::Resolving(target) = &incoming.state else { continue };
            let target = target.clone();
            if addresses.is_empty() {
                self.refuse(number, Refusal::Name);
            } else {
                self.dial(number, &target, &addresses, now);
            }
            self.slots.hurry(number);
        }
    }

    fn time_is_up(&mut self, number: Number, now: Instant) {
        let Some(incoming) = self.slots.get_mut(number) else { return };
        match &mut incoming.state {
            ExitState::Asking(_) => incoming.broken = true,
            ExitState::Resolving(_) => {
                self.forget_name(number);
                self.refuse(number, Refusal::Name);
            }
            ExitState::Dialling(dial) => {
                let dialled = dial.time_is_up(&self.watch, Token(number), now);
                self.note(number, dialled);
            }
            ExitState::Parting(..) => return self.end(number),
            ExitState::Refused | ExitState::Open(..) => return,
        }
        self.slots.hurry(number);
    }

    /// Resolves the target of a request, and dials it.
    fn resolve(&mut self, number: Number, target: Target, now: Instant) {
        let name = match &target.host {
            TargetHost::Address(address) => {
                let address = *address;
                return self.dial(number, &target, &[address], now);
            }
            TargetHost::Name(name) => name,
        };
        if !self.allow.may_look_up(&target, name) {
            return self.refuse(number, Refusal::Forbidden);
        }
        if let Some(addresses) = Resolver::known(name) {
            return self.dial(number, &target, &addresses, now);
        }
        let Some(incoming) = self.slots.get_mut(number) else { return };
        let Some(sender) = self.sessions.get(&incoming.session).map(|it| it.sender) else { return };
        if self.resolver.ask(sender, incoming.question(number), name) {
            incoming.state = ExitState::Resolving(target);
            self.slots.set_end(number, Some(now + REQUEST_TIMEOUT));
        } else {
            self.resolver.forget(sender, incoming.question(number));
            self.refuse(number, Refusal::Full);
        }
    }

    /// Gives up the look-up of a name for which this connection waits, if there is one.
    fn forget_name(&mut self, number: Number) {
        let Some(incoming) = self.slots.get_mut(number) else { return };
        if let (ExitState::Resolving(_), Some(session)) =
            (&incoming.state, self.sessions.get(&incoming.session))
        {
            self.resolver.forget(session.sender, incoming.question(number));
        }
    }

    fn dial(&mut self, number: Number, target: &Target, addresses: &[IpAddr], now: Instant) {
        // Where the system does not tell, an address may be the host's own.
        let is_own = |address| byway_net::is_own(address).unwrap_or(true);
        match self.allow.choose(target, addresses, &is_own) {
            Ok(addresses) => {
                let mut dial = Dial::new(addresses);
                let dialled = dial.begin(&self.watch, Token(number), now);
                if let Some(incoming) = self.slots.get_mut(number) {
                    incoming.state = ExitState::Dialling(dial);
                }
                self.note(number, dialled);
            }
            Err(DialDecision::Near) => self.refuse(number, Refusal::Near),
            Err(_) => self.refuse(number, Refusal::Forbidden),
        }
    }

    /// Handles the progress of dialling.
    fn note(&mut self, number: Number, dialled: Dialled) {
        match dialled {
            Dialled::Goes(until) => self.slots.set_end(number, Some(until)),
            Dialled::Failed(refusal) => self.refuse(number, refusal),
            Dialled::Connected(tcp) => {
                self.opened += 1;
                self.slots.set_end(number, None);
                if let Some(incoming) = self.slots.get_mut(number) {
                    incoming.state = ExitState::Open(tcp, Splice::beginning(incoming.ended));
                    incoming.answer = Some(CONNECTED_ANSWER);
                }
            }
        }
    }

    /// Refuses the request of a stream. Its place is free, even if the peer never reads the answer.
    fn refuse(&mut self, number: Number, refusal: Refusal) {
        self.slots.set_end(number, None);
        let Some(incoming) = self.slots.get_mut(number) else { return };
        incoming.state = ExitState::Refused;
        incoming.answer = Some(refusal.code());
        let had_place = std::mem::take(&mut incoming.has_place);
        if let Some(session) = self.sessions.get(&incoming.session).filter(|_| had_place) {
            self.shares.give_back(session.sender);
        }
    }

    /// Serves one connection that has a turn.
    fn drive(&mut self, number: Number, connection: &mut Connection, now: Instant) {
        let Some(incoming) = self.slots.get_mut(number) else { return };
        let mut stream = StreamOf { connection, id: incoming.stream };
        if incoming.broken {
            if let ExitState::Open(tcp, _) = &mut incoming.state {
                tcp.abort();
            }
            stream.reset(code::CONNECTION_RESET);
            return self.end(number);
        }
        match &mut incoming.state {
            ExitState::Asking(request) => match ask(request, &mut stream) {
                Ok(Some((target, ended))) => {
                    incoming.ended = ended;
                    self.resolve(number, target, now);
                }
                Ok(None) => return,
                Err(code) => {
                    stream.reset(code);
                    return self.end(number);
                }
            },
            ExitState::Dialling(dial) => match dial.look(&self.watch, Token(number), now) {
                Some(dialled) => self.note(number, dialled),
                None => return,
            },
            ExitState::Resolving(_) => return,
            ExitState::Refused | ExitState::Open(..) | ExitState::Parting(..) => {}
        }
        self.go_on(number, &mut stream);
    }

    /// Writes the answer about the target to the stream. If the target is connected, moves bytes
    /// too.
    fn go_on(&mut self, number: Number, stream: &mut StreamOf<'_>) {
        let Some(incoming) = self.slots.get_mut(number) else { return };
        if let Some(answer) = incoming.answer {
            if stream.room(1) == 0 {
                return;
            }
            stream.write(&[answer]);
            incoming.answer = None;
        }
        match &mut incoming.state {
            ExitState::Refused => {
                stream.finish();
                // What the program sent is for nobody.
                stream.connection.incoming().stop(stream.id, code::CONNECTION_RESET);
                self.end(number);
            }
            ExitState::Open(tcp, splice) => match splice.pump(tcp, stream, &mut self.scratch) {
                SpliceStatus::Open(waits) => self.wait(number, waits),
                SpliceStatus::Over | SpliceStatus::Broken => self.end(number),
            },
            ExitState::Asking(_)
            | ExitState::Resolving(_)
            | ExitState::Dialling(_)
            | ExitState::Parting(..) => {}
        }
    }

    fn wait(&mut self, number: Number, waits: WaitsFor) {
        if waits.turn {
            self.slots.hurry(number);
        }
        if waits.room {
            // It is not read meanwhile, and so does not tell that it broke.
            if let Some(Incoming { state: ExitState::Open(tcp, _), broken, .. }) = self.slots.get_mut(number)
                && tcp.is_broken()
            {
                *broken = true;
                self.slots.hurry(number);
            }
        }
    }

    fn end(&mut self, number: Number) {
        self.forget_name(number);
        let Some(incoming) = self.slots.remove(number) else { return };
        if let Some(session) = self.sessions.get_mut(&incoming.session) {
            session.streams.remove(&incoming.stream);
            if incoming.has_place {
                self.shares.give_back(session.sender);
            }
        }
        if let ExitState::Parting(_, _, cost) = incoming.state {
            self.parting_bytes -= cost;
        }
        if let ExitState::Open(_, splice) = incoming.state {
            let [forth, back] = [splice.moved[1], splice.moved[0]];
            self.byte_counts =
                ByteCounts { forth: self.byte_counts.forth + forth, back: self.byte_counts.back + back };
        }
    }
}

/// Reads a request from a stream, byte by byte, so that later bytes stay there. Returns the target,
/// and whether the stream ends with the request.
fn ask(request: &mut Request, stream: &mut StreamOf<'_>) -> Result<Option<(Target, bool)>, u64> {
    let mut byte = [0];
    loop {
        let Some(read) = stream.read(&mut byte) else { return Err(code::CONNECTION_RESET) };
        if read.length == 0 {
            return if read.finished { Err(code::MALFORMED_REQUEST) } else { Ok(None) };
        }
        match request.take(&byte) {
            Ok((_, Some(target))) => return Ok(Some((target, read.finished))),
            Ok((_, None)) if !read.finished => {}
            _ => return Err(code::MALFORMED_REQUEST),
        }
    }
}
