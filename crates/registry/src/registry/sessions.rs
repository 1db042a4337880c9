//! The sessions of a registry's clients: requests, answers, timeouts, and whose place a newcomer
//! takes.

use super::session_places::SessionPlaces;
use crate::message::{MAX_REQUEST_LEN, Request};
use crate::stream_records::{self, Records};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use byway_engine::{Connection, Handle};
use byway_wire::{Duration, Instant, NetworkPrefix, StreamId};

/// The longest session. All requests in one take two or three round trips, and a test.
pub(super) const SESSION_TIMEOUT: Duration = Duration::from_secs(20);
/// Time that the first whole request may take after the client has proved that its HELLO is no
/// replay. The request is in flight by then: it needs half a round trip, or one more if it is lost.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
pub(super) use super::session_places::MAX_SESSIONS;
/// Requests of a session at most.
const MAX_REQUESTS: u32 = 16;
/// The stream of requests, from the host that asks.
const REQUEST_STREAM: StreamId = StreamId(0);
/// The stream with the registry's answers.
const ANSWER_STREAM: StreamId = StreamId(1);

#[derive(Debug)]
struct ClientSession {
    records: Records,
    /// Whether a request is being answered. The next one waits.
    busy: bool,
    requests: u32,
    /// Whether the client asks nothing more.
    ended: bool,
    /// Whether everything is answered.
    finished: bool,
}

/// The next step of a session.
#[derive(Debug)]
pub(super) enum SessionStep {
    /// Nothing is to be done for now.
    Wait,
    /// A request, which must be answered once.
    Request(Request),
    /// Something that is none.
    Malformed,
}

/// The sessions of all clients.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    sessions: BTreeMap<Handle, ClientSession>,
    places: SessionPlaces<Handle>,
    /// When the first request must be there, in the order in which the sessions began.
    first_until: VecDeque<(Instant, Handle)>,
    /// When all must be over, in the order in which the sessions began.
    until: VecDeque<(Instant, Handle)>,
}

impl Sessions {
    /// A session begins. Returns the one whose place it takes, if any: that one is to be dismissed.
    pub fn begin(&mut self, now: Instant, handle: Handle, network: NetworkPrefix) -> Option<Handle> {
        let records = Records::new(MAX_REQUEST_LEN);
        let session = ClientSession { records, busy: false, requests: 0, ended: false, finished: false };
        self.sessions.insert(handle, session);
        self.first_until.push_back((now + FIRST_REQUEST_TIMEOUT, handle));
        self.until.push_back((now + SESSION_TIMEOUT, handle));
        let dismissed = self.places.enter(handle, network);
        if let Some(dismissed) = dismissed {
            self.end(dismissed);
        }
        dismissed
    }

    pub fn end(&mut self, handle: Handle) {
        self.sessions.remove(&handle);
        self.places.leave(handle);
        for order in [&mut self.first_until, &mut self.until] {
            while let Some((_, first)) = order.front()
                && !self.sessions.contains_key(first)
            {
                order.pop_front();
            }
        }
    }

    /// The next session that took too long.
    pub fn next_overdue(&mut self, now: Instant) -> Option<Handle> {
        while let Some(handle) = take_due(&mut self.first_until, now) {
            if self.sessions.get(&handle).is_some_and(|session| session.requests == 0) {
                return Some(handle);
            }
        }
        while let Some(handle) = take_due(&mut self.until, now) {
            if self.sessions.contains_key(&handle) {
                return Some(handle);
            }
        }
        None
    }

    pub fn deadline(&self) -> Option<Instant> {
        let first = |order: &VecDeque<(Instant, Handle)>| order.front().map(|(until, _)| *until);
        [first(&self.first_until), first(&self.until)].into_iter().flatten().min()
    }

    /// Stops reading from a client whose messages are malformed.
    pub fn stop(&mut self, handle: Handle) {
        if let Some(session) = self.sessions.get_mut(&handle) {
            session.requests = MAX_REQUESTS;
        }
    }

    /// Reads what the client has sent since the last call.
    pub fn step(&mut self, handle: Handle, connection: &mut Connection) -> SessionStep {
        while connection.incoming().next_event().is_some() {}
        while connection.next_event().is_some() {}
        let Some(session) =
            self.sessions.get_mut(&handle).filter(|session| !session.busy && !session.finished)
        else {
            return SessionStep::Wait;
        };
        loop {
            if session.requests >= MAX_REQUESTS {
                connection.incoming().stop(REQUEST_STREAM, 1);
                session.finish(connection);
                return SessionStep::Wait;
            }
            match session.records.take().map(|record| record.map(Request::read)) {
                Ok(Some(Ok(request))) => {
                    (session.busy, session.requests) = (true, session.requests + 1);
                    self.places.set_busy(handle);
                    return SessionStep::Request(request);
                }
                Err(_) | Ok(Some(Err(_))) => {
                    session.busy = true;
                    return SessionStep::Malformed;
                }
                Ok(None) => {}
            }
            if session.ended {
                session.finish(connection);
                return SessionStep::Wait;
            }
            let mut piece = [0; 1024];
            let Some(read) = connection.incoming().read(REQUEST_STREAM, &mut piece) else {
                return SessionStep::Wait;
            };
            session.records.push(piece.get(..read.length).unwrap_or_default());
            session.ended = read.finished;
            if read.length == 0 && !read.finished {
                return SessionStep::Wait;
            }
        }
    }

    /// Writes an answer.
    pub fn reply(&mut self, handle: Handle, connection: &mut Connection, answer: &[u8]) {
        let Some(session) = self.sessions.get_mut(&handle).filter(|session| !session.finished) else {
            return;
        };
        session.busy = false;
        self.places.set_idle(handle);
        let mut record = Vec::with_capacity(stream_records::HEAD_LEN + answer.len());
        stream_records::append(&mut record, answer);
        let out = connection.outgoing();
        out.open_stream(ANSWER_STREAM);
        // A session's answers fit into what it may hold, or it does not take them: then it waits in
        // vain.
        if out.write(ANSWER_STREAM, &record) < record.len() {
            out.reset(ANSWER_STREAM, 1);
            session.finished = true;
        }
    }
}

/// Takes the first session of an order whose time is up.
fn take_due(order: &mut VecDeque<(Instant, Handle)>, now: Instant) -> Option<Handle> {
    order.front().filter(|(until, _)| *until <= now)?;
    order.pop_front().map(|(_, handle)| handle)
}

impl ClientSession {
    /// Nothing more will be answered.
    fn finish(&mut self, connection: &mut Connection) {
        self.finished = true;
        let out = connection.outgoing();
        out.open_stream(ANSWER_STREAM);
        out.finish(ANSWER_STREAM);
        connection.finishing();
    }
}
