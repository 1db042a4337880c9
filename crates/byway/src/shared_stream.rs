//! A stream as the event loop and the application share it: two buffers with a bound, and how each
//! direction stands.

use crate::error::{ConnectionError, StreamError};
use crate::receive_queue::ByteQueue;
use crate::shared_value::Shared;
use byway_engine::Handle;
use byway_wire::StreamId;
use std::sync::atomic::{AtomicBool, Ordering};

/// The most bytes of one direction that wait between application and event loop. Each side of the
/// handover holds as many again.
pub const STREAM_BUFFER_BYTES: usize = 256 << 10;
/// A stream's state that the event loop and the application share.
#[derive(Debug)]
pub struct SharedStream {
    /// The handle of the connection.
    pub handle: Handle,
    /// The number of the stream.
    pub id: StreamId,
    /// Bytes from the application.
    pub sending: Shared<Sending>,
    /// Bytes for the application.
    pub receiving: Shared<Receiving>,
    /// Whether the stream is in the event loop's queue.
    listed: AtomicBool,
}

/// The sending direction of a stream.
#[derive(Debug, Default)]
pub struct Sending {
    /// Bytes for the event loop.
    pub ready: Vec<u8>,
    /// Whether nothing follows.
    pub finished: bool,
    /// The code with which the stream was given up.
    pub reset: Option<u64>,
    /// The end of the direction. `Ok`: the peer's application has read every byte. `None`: it has
    /// not ended.
    pub over: Option<Result<(), StreamError>>,
}

/// The receiving direction of a stream.
#[derive(Debug, Default)]
pub struct Receiving {
    /// Bytes for the application.
    pub ready: ByteQueue,
    /// Whether the event loop waits for room.
    pub paused: bool,
    /// The end behind the received bytes. `None`: more bytes may come.
    pub end: Option<StreamEnd>,
    /// The application has read all, the end included.
    pub confirmed: bool,
    /// The code with which the application refused the rest. `None`: it did not refuse it.
    pub stopped: Option<u64>,
}

/// How the receiving direction of a stream ends.
#[derive(Clone, Debug)]
pub enum StreamEnd {
    /// The sender finished the direction.
    Fin,
    /// The direction broke, for this reason.
    Broken(StreamError),
}

impl SharedStream {
    pub fn new(handle: Handle, id: StreamId) -> Self {
        let (sending, receiving) = (Shared::default(), Shared::default());
        Self { handle, id, sending, receiving, listed: AtomicBool::new(false) }
    }

    /// Adds the stream to the event loop's queue. Returns whether it was not there yet.
    pub fn list(&self) -> bool {
        !self.listed.swap(true, Ordering::AcqRel)
    }

    /// Notes that the event loop removed the stream from its queue.
    pub fn unlist(&self) {
        self.listed.store(false, Ordering::Release);
    }

    /// Notes that the connection has ended. Bytes received before stay readable.
    pub fn fail(&self, error: &ConnectionError) {
        let error = StreamError::Connection(error.clone());
        self.sending.change(|sending| {
            sending.over.get_or_insert(Err(error.clone()));
        });
        self.receiving.change(|receiving| {
            receiving.end.get_or_insert(StreamEnd::Broken(error));
        });
    }
}

impl Sending {
    /// Returns why the direction takes no more bytes. `None`: it takes bytes.
    pub fn refusal(&self) -> Option<StreamError> {
        match &self.over {
            Some(Err(error)) => Some(error.clone()),
            Some(Ok(())) => Some(StreamError::Finished),
            None => (self.finished || self.reset.is_some()).then_some(StreamError::Finished),
        }
    }
}
