//! The client of a registry. It asks in a session of its owner's endpoint, beside the endpoint's
//! other sessions.

use crate::message::{Answer, MAX_ANSWER_LEN, Reason, Request};
use crate::stream_records::{self, Records, TooLong};
use crate::word::RegistryWord;
use alloc::string::String;
use alloc::vec::Vec;
use byway_control::Class;
use byway_engine::connection::{Event, close};
use byway_engine::{Connect, ConnectError, Endpoint, EndpointEvent, Handle};
use byway_wire::{DecodeError, Duration, Instant, StreamId};
use thiserror::Error;

/// The longest time of an exchange.
pub const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(20);

/// Relays that a transfer asks for at first.
pub const FIRST_ASK_RELAYS: usize = 24;
/// Number of relays that a transfer asks for after it has tried all that it has.
pub const NEXT_ASK_RELAYS: usize = 48;
/// The most relays that one transfer asks for.
pub const MAX_ASKED_RELAYS: usize = 400;

/// The stream with the client's requests.
const REQUEST_STREAM: StreamId = StreamId(0);
/// The stream with the registry's answers.
const ANSWER_STREAM: StreamId = StreamId(1);

/// Why a request to a registry got no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AskError {
    /// No session with the registry could be had.
    #[error("the registry cannot be reached: {0}")]
    Connect(#[from] ConnectError),
    /// The session ended. The text is the reason.
    #[error("the registry ended the session: {0}")]
    Closed(String),
    /// The registry's message is malformed.
    #[error("what the registry says makes no sense: it {0}")]
    Malformed(#[from] DecodeError),
    /// The registry's answer was too long.
    #[error("what the registry says makes no sense: {0}")]
    TooLong(#[from] TooLong),
    /// The registry refused, for this reason.
    #[error("{0}")]
    Refused(Reason),
    /// The registry took too long to answer.
    #[error("the registry does not answer in time")]
    TooLate,
}

/// A session with a registry.
#[derive(Debug)]
pub struct ClientExchange {
    handle: Handle,
    connected: bool,
    /// Bytes of the request that are not written to the stream yet.
    out: Vec<u8>,
    finishing: bool,
    finished: bool,
    records: Records,
    ended: bool,
    until: Instant,
}

impl ClientExchange {
    /// Begins a session. The endpoint greets the registry at all addresses of its word.
    ///
    /// # Errors
    /// There is no such key.
    pub fn begin(endpoint: &mut Endpoint, now: Instant, word: &RegistryWord) -> Result<Self, AskError> {
        let connect = Connect {
            peer: word.key,
            addresses: word.addresses.clone(),
            application: Vec::new(),
            controller: Class::Normal.controller(0),
        };
        Ok(Self {
            handle: endpoint.connect(now, connect)?,
            connected: false,
            out: Vec::new(),
            finishing: false,
            finished: false,
            records: Records::new(MAX_ANSWER_LEN),
            ended: false,
            until: now + EXCHANGE_TIMEOUT,
        })
    }

    /// The session of this exchange.
    #[must_use]
    pub const fn handle(&self) -> Handle {
        self.handle
    }

    /// Asks something. There is an answer to each request.
    pub fn ask(&mut self, request: &Request) {
        stream_records::append(&mut self.out, &request.to_bytes());
    }

    /// Says that no more questions follow.
    pub const fn finish(&mut self) {
        self.finishing = true;
    }

    /// Takes in an event of the endpoint; whether it is about this session.
    ///
    /// # Errors
    /// There is no session.
    pub fn on_event(&mut self, event: &EndpointEvent) -> Result<bool, AskError> {
        match event {
            EndpointEvent::Connected(handle) if *handle == self.handle => self.connected = true,
            EndpointEvent::Failed(handle, error) if *handle == self.handle => return Err((*error).into()),
            EndpointEvent::Closed(handle) if *handle == self.handle => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Sends and receives as far as possible. Returns the next answer, if there is one; it must
    /// then be called again.
    ///
    /// # Errors
    /// There will be no answer.
    pub fn drive(&mut self, endpoint: &mut Endpoint, now: Instant) -> Result<Option<Answer>, AskError> {
        if now >= self.until {
            return Err(AskError::TooLate);
        }
        if !self.connected {
            return Ok(None);
        }
        let Some(connection) = endpoint.connection_mut(self.handle) else {
            return Err(AskError::Closed(String::from("it is gone")));
        };
        let mut closed = None;
        while let Some(event) = connection.next_event() {
            if let Event::Closed { reason, .. } = event {
                closed = Some(reason);
            }
        }
        while connection.incoming().next_event().is_some() {}
        if !self.finished && closed.is_none() {
            let out = connection.outgoing();
            out.open_stream(REQUEST_STREAM);
            let taken = out.write(REQUEST_STREAM, &self.out);
            self.out.drain(..taken);
            if self.finishing && self.out.is_empty() {
                self.finished = true;
                out.finish(REQUEST_STREAM);
                connection.finishing();
            }
        }
        let mut piece = [0; 4096];
        loop {
            if let Some(record) = self.records.take()? {
                return match Answer::read(record)? {
                    Answer::Refused { reason, .. } => Err(AskError::Refused(reason)),
                    answer => Ok(Some(answer)),
                };
            }
            let Some(read) = connection.incoming().read(ANSWER_STREAM, &mut piece) else { break };
            self.records.push(piece.get(..read.length).unwrap_or_default());
            self.ended |= read.finished;
            if read.length == 0 && !read.finished {
                break;
            }
        }
        match closed {
            Some(reason) => Err(AskError::Closed(reason)),
            None if self.ended => Err(AskError::Closed(String::from("it has nothing more to say"))),
            None => Ok(None),
        }
    }

    /// When to give up.
    #[must_use]
    pub const fn deadline(&self) -> Instant {
        self.until
    }

    /// Ends the session. One that the registry has ended is forgotten, since its `Closed` came
    /// before.
    pub fn end(self, endpoint: &mut Endpoint, now: Instant) {
        endpoint.close(now, self.handle, close::DONE_CODE, "done");
        endpoint.forget(self.handle);
    }
}
