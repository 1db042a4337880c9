//! A connection on the event loop's side: its streams, what the two libraries tell each other, and
//! its end.

use crate::control_records::{ControlRecord, EndKind, Records, is_initiators, records_of};
use crate::error::{ConnectionError, FAULT_CODE, ended, refused};
use crate::loop_commands::{Connecting, PeerCell, first_stream};
use crate::path_status::{StatusSampler, StatusSnapshot};
use crate::shared_buffers::SharedBuffers;
use crate::shared_object::{InboundObject, OutboundObject};
use crate::shared_stream::SharedStream;
use crate::stream_pump::StreamPump;
use byway_engine::Connection;
use byway_engine::connection::{Event, close};
use byway_engine::data::{InEvent, OutEvent};
use byway_wire::{Instant, StreamId};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::loop_objects::{ConnectionObjects, MAX_OBJECTS, PeerViolation};

/// The most streams that one host may have open at once, even if the peer permits more.
pub const MAX_STREAMS: u32 = 16 << 10;
/// The most bytes of records that wait to be sent. A peer that leaves more waiting is no library.
const MAX_UNSENT_RECORD_BYTES: usize = 1 << 20;
/// Time that a connection without handles waits for the peer's application to read the finished
/// data.
const LINGER_TIME: Duration = Duration::from_secs(60);

/// Resources that the sessions of an event loop share.
pub struct LoopResources<'a> {
    /// A buffer for one read of records.
    pub scratch: &'a mut [u8],
    /// Buffers that are used again.
    pub shared_buffers: &'a Arc<SharedBuffers>,
    /// The local addresses from which this side sends.
    pub locals: &'a [SocketAddr],
}

/// The state of a session after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionStatus {
    /// The session is open.
    Open,
    /// The session is open, and needs another turn.
    Again,
    /// The session has ended, and all waiting handles were told.
    Over,
}

/// A connection on the event loop's side.
pub struct Session {
    cell: Arc<PeerCell>,
    /// Whether this side began the connection.
    initiator: bool,
    /// Streams that the peer may have open.
    limit: u32,
    pumps: BTreeMap<StreamId, StreamPump>,
    /// Number of open streams that the peer opened.
    theirs: u32,
    /// Streams that the application touched.
    touched: Vec<StreamId>,
    /// Streams that the engine could not open yet.
    unopened: VecDeque<Arc<SharedStream>>,
    /// Encoded records to send. The engine does not have those from `said` on.
    unsaid: Vec<u8>,
    records: Records,
    greeted: bool,
    /// The caller of an attempt to connect, which waits for the peer's first message.
    connecting: Option<Arc<Connecting>>,
    closing: Option<Closing>,
    /// The peer's violation of the protocol. `None`: there was none.
    fault: Option<String>,
    sampler: StatusSampler,
    objects: ConnectionObjects,
}

/// A connection that is to end once the peer's application has read all.
#[derive(Clone, Copy, Debug)]
struct Closing {
    /// When to end in any case.
    until: Option<Instant>,
}

impl Session {
    /// Returns how long nothing was heard of the peer, though something is awaited. Otherwise zero.
    pub fn silence(&self, now: Instant) -> Duration {
        self.sampler.silence(now)
    }

    pub fn new(
        cell: Arc<PeerCell>,
        initiator: bool,
        limit: u32,
        connection: &mut Connection,
        connecting: Option<Arc<Connecting>>,
        now: Instant,
    ) -> Self {
        let (mut sampler, objects) = (StatusSampler::default(), ConnectionObjects::new(cell.handle));
        sampler.begin(now);
        connection.outgoing().open_stream(records_of(initiator));
        let mut unsaid = Vec::new();
        ControlRecord::Hello { streams: limit, objects: MAX_OBJECTS }.write(&mut unsaid);
        Self {
            cell,
            initiator,
            limit,
            pumps: BTreeMap::new(),
            theirs: 0,
            touched: Vec::new(),
            unopened: VecDeque::new(),
            unsaid,
            records: Records::default(),
            greeted: false,
            connecting,
            closing: None,
            fault: None,
            sampler,
            objects,
        }
    }

    /// Takes on a stream that the application opened.
    pub fn open(&mut self, cell: Arc<SharedStream>, connection: &mut Connection) {
        self.unopened.push_back(cell);
        self.open_next(connection);
    }

    /// Opens waiting streams, as many as the peer permits.
    fn open_next(&mut self, connection: &mut Connection) {
        while let Some(cell) = self.unopened.pop_front() {
            if !connection.outgoing().open_stream(cell.id) {
                return self.unopened.push_front(cell);
            }
            self.touched.push(cell.id);
            self.pumps.insert(cell.id, StreamPump::new(cell));
        }
    }

    /// The application touched a stream.
    pub fn touch(&mut self, id: StreamId) {
        self.touched.push(id);
    }

    /// Takes on an object that the application sends.
    pub fn send(&mut self, sent: Arc<OutboundObject>, connection: &mut Connection) {
        self.objects.send(sent, connection.outgoing(), &mut self.unsaid);
    }

    /// Handles the application's change of an object that it sends.
    pub fn touch_sent(&mut self, sent: &Arc<OutboundObject>, connection: &mut Connection) {
        if self.objects.touch_sent(sent, connection.outgoing(), &mut self.unsaid) {
            self.free_object();
        }
    }

    /// Handles the application's change of an object that it receives.
    pub fn touch_coming(&mut self, coming: &Arc<InboundObject>, connection: &mut Connection) {
        self.objects.touch_coming(coming, connection.incoming(), &mut self.unsaid);
    }

    /// The status of the connection.
    pub fn look(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        locals: &[SocketAddr],
    ) -> StatusSnapshot {
        self.sampler.look(now, connection, locals).clone()
    }

    /// Closes the connection for the application. `abandoned`: it has dropped its last handle.
    pub fn close(&mut self, now: Instant, abandoned: bool) {
        let until = abandoned.then(|| now + LINGER_TIME);
        self.closing.get_or_insert(Closing { until });
    }

    /// Moves all that can be moved.
    pub fn drive(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        tools: &mut LoopResources<'_>,
    ) -> SessionStatus {
        self.hear(connection, tools);
        let mut touched = std::mem::take(&mut self.touched);
        for id in touched.drain(..) {
            self.attend(id, connection, tools);
        }
        self.touched = touched;
        self.objects.ask(connection.outgoing());
        let some = self.cell.datagrams.with(|datagrams| {
            let some = datagrams.receive(connection);
            if !datagrams.is_idle() {
                datagrams.send(connection);
            }
            some
        });
        if some {
            self.cell.datagrams.change(|_| ());
        }
        self.say(connection);
        while let Some(event) = connection.next_event() {
            if let Event::Closed { code, ref reason, by_peer } = event {
                let error = match self.fault.take() {
                    Some(fault) => ConnectionError::Broke(fault),
                    None => ended(code, reason, by_peer),
                };
                self.end(&error);
                return SessionStatus::Over;
            }
            self.sampler.on_event(event, connection, tools.locals);
        }
        self.sampler.look(now, connection, tools.locals);
        if connection.is_closing() {
            return SessionStatus::Again;
        }
        if let Some(fault) = &self.fault {
            connection.close(now, FAULT_CODE, fault);
            return SessionStatus::Again;
        }
        let is_late = |closing: Closing| closing.until.is_some_and(|until| now >= until);
        let is_due = |closing| is_late(closing) || self.is_read(connection);
        if self.closing.is_some_and(is_due) {
            connection.close(now, close::DONE_CODE, "");
            // Told in the next turn, when the peer's packet has left.
            return SessionStatus::Again;
        }
        SessionStatus::Open
    }

    /// Whether the peer's application has read everything that was finished, and the peer has all
    /// records.
    fn is_read(&self, connection: &mut Connection) -> bool {
        self.unsaid.is_empty()
            && self.unopened.is_empty()
            && !self.pumps.values().any(StreamPump::is_finishing)
            && !self.objects.is_busy()
            && connection.outgoing().all_acked()
    }

    /// Handles the engine's events about streams.
    fn hear(&mut self, connection: &mut Connection, tools: &mut LoopResources<'_>) {
        let theirs = records_of(!self.initiator);
        let received = self.objects.receive(connection.incoming());
        self.judge(received);
        while let Some(event) = connection.incoming().next_event() {
            match event {
                InEvent::StreamOpened(id) if id != theirs => self.on_opened(id, connection),
                InEvent::StreamReadable(id) if id == theirs => self.read_records(connection, tools),
                InEvent::StreamReadable(id) => self.attend(id, connection, tools),
                InEvent::StreamReset { id, code } => {
                    if let Some(pump) = self.pumps.get_mut(&id)
                        && pump.on_reset(code)
                    {
                        ControlRecord::Over { stream: id, how: EndKind::Reset }.write(&mut self.unsaid);
                    }
                    self.reap(id);
                }
                InEvent::ObjectComplete { id, size } => {
                    let complete = self.objects.on_complete(id, size);
                    self.judge(complete);
                }
                InEvent::StreamOpened(_) => {}
            }
        }
        while let Some(event) = connection.outgoing().next_event() {
            match event {
                OutEvent::Stopped { stream, code } => {
                    if let Some(pump) = self.pumps.get_mut(&stream) {
                        pump.on_stopped(code);
                    }
                }
                OutEvent::Writable(id) => self.touched.push(id),
                OutEvent::MayOpen => self.open_next(connection),
                OutEvent::StreamAcked(_) | OutEvent::ObjectAcked(_) => {}
            }
        }
    }

    /// A stream's first frame came.
    fn on_opened(&mut self, id: StreamId, connection: &mut Connection) {
        if self.pumps.contains_key(&id) {
            return; // the peer's first answer on a stream of this side's
        }
        if is_initiators(id) == self.initiator || id < first_stream(!self.initiator) {
            connection.incoming().stop(id, 0); // an answer to what is over
            return;
        }
        // What is over there may not be over here yet.
        if self.theirs >= self.limit.max(1).saturating_mul(2) {
            return self.blame("more streams than it may have open");
        }
        self.theirs += 1;
        connection.outgoing().open_stream(id);
        let cell = Arc::new(SharedStream::new(self.cell.handle, id));
        self.pumps.insert(id, StreamPump::new(Arc::clone(&cell)));
        self.cell.state.change(|state| state.accepted.push_back(cell));
    }

    /// Moves bytes on a stream, as far as possible without waiting.
    fn attend(&mut self, id: StreamId, connection: &mut Connection, tools: &mut LoopResources<'_>) {
        let Some(pump) = self.pumps.get_mut(&id) else { return };
        pump.send(connection.outgoing(), tools.shared_buffers);
        if let Some(how) = pump.receive(connection.incoming(), tools.shared_buffers) {
            ControlRecord::Over { stream: id, how }.write(&mut self.unsaid);
        }
        self.reap(id);
    }

    /// Forgets a stream that is over.
    fn reap(&mut self, id: StreamId) {
        if self.pumps.get(&id).is_some_and(StreamPump::is_over) {
            self.pumps.remove(&id);
            if is_initiators(id) == self.initiator {
                self.cell.state.change(|state| state.open = state.open.saturating_sub(1));
            } else {
                self.theirs -= 1;
            }
        }
    }

    /// Passes queued records to the engine.
    fn say(&mut self, connection: &mut Connection) {
        if !self.unsaid.is_empty() {
            let taken = connection.outgoing().write(records_of(self.initiator), &self.unsaid);
            self.unsaid.drain(..taken);
            if self.unsaid.len() > MAX_UNSENT_RECORD_BYTES {
                self.blame("it takes nothing of what it must");
            }
        }
    }

    fn read_records(&mut self, connection: &mut Connection, tools: &mut LoopResources<'_>) {
        let theirs = records_of(!self.initiator);
        let mut heard = Vec::new();
        while let Some(read) = connection.incoming().read(theirs, tools.scratch) {
            let bytes = tools.scratch.get(..read.length).unwrap_or_default();
            let taken = self.records.take(bytes, |record| heard.push(record));
            for record in heard.drain(..) {
                self.on_record(record, connection);
            }
            if let Err(error) = taken {
                self.blame(&format!("what it says makes no sense: {error}"));
            }
            if read.length == 0 || read.finished || self.fault.is_some() {
                break;
            }
        }
    }

    fn on_record(&mut self, record: ControlRecord, connection: &mut Connection) {
        match record {
            ControlRecord::Hello { streams, objects } if !self.greeted => {
                self.greeted = true;
                self.cell.state.change(|state| {
                    state.most = streams.min(MAX_STREAMS);
                    state.most_objects = objects.min(MAX_OBJECTS);
                });
                if let Some(connecting) = self.connecting.take() {
                    connecting.change(|answer| *answer = Some(Ok(Arc::clone(&self.cell))));
                }
            }
            ControlRecord::Over { stream, how } if self.greeted => {
                if let Some(pump) = self.pumps.get_mut(&stream) {
                    pump.on_over(how);
                }
                self.reap(stream);
            }
            ControlRecord::Object { object, size, header } if self.greeted => {
                match self.objects.on_announced(object, header, size) {
                    Ok(coming) => self.cell.state.change(|state| state.coming.push_back(coming)),
                    Err(fault) => self.judge(Err(fault)),
                }
            }
            ControlRecord::Taken { object, how } if self.greeted => {
                if self.objects.on_taken(object, how, connection.outgoing()) {
                    self.free_object();
                }
            }
            ControlRecord::Withdrawn { object } if self.greeted => {
                self.objects.on_withdrawn(object, connection.incoming());
            }
            _ => self.blame("it does not greet once and first"),
        }
    }

    fn free_object(&mut self) {
        self.cell.state.change(|state| state.objects = state.objects.saturating_sub(1));
    }

    fn judge(&mut self, outcome: Result<(), PeerViolation>) {
        if let Err(PeerViolation(what)) = outcome {
            self.blame(what);
        }
    }

    /// The peer's library is at fault: the connection ends.
    fn blame(&mut self, what: &str) {
        self.fault.get_or_insert_with(|| format!("the other side's library is at fault: {what}"));
    }

    /// Notifies all waiting handles that the connection is over.
    pub fn end(&mut self, error: &ConnectionError) {
        if let Some(connecting) = self.connecting.take() {
            connecting.change(|answer| *answer = Some(Err(refused(error.clone()))));
        }
        let unread = !self.unopened.is_empty() || self.pumps.values().any(StreamPump::is_finishing);
        let pumps = std::mem::take(&mut self.pumps);
        let Self { cell, unopened, objects, .. } = self;
        // Under one lock: whoever hears of it from a part finds all of it over, and the other way
        // round.
        cell.state.change(|state| {
            state.over.get_or_insert(error.clone());
            state.unread = unread;
            let waiting = std::mem::take(&mut state.accepted);
            for cell in pumps.values().map(StreamPump::shared).chain(&waiting).chain(&*unopened) {
                cell.fail(error);
            }
            objects.end(error);
            cell.datagrams.change(|datagrams| datagrams.end(error));
        });
    }
}
