//! A stream as the event loop and the application share it: two buffers with a bound, and how each
//! direction stands.

use crate::error::{ConnectionError, StreamError};
use crate::receive_queue::ByteQueue;
use crate::shared_value::Shared;
use bytes::Bytes;
use byway_engine::Handle;
use byway_wire::StreamId;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most bytes of one direction that wait between application and event loop. Each side of the
/// handover holds as many again.
pub const STREAM_BUFFER_BYTES: usize = 256 << 10;
/// Buffers kept for streams that will move something.
const MAX_SPARE_BUFFERS: usize = 64;

/// A stream, as the event loop and the application share it.
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
    /// How the direction ended. `Ok`: the peer's application has read everything. `None`: it has
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
    /// What follows the received bytes. `None`: more bytes may come.
    pub end: Option<StreamEnd>,
    /// The application has read all, the end included.
    pub confirmed: bool,
    /// The code with which the application refused the rest. `None`: it did not.
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
    /// Why the direction takes no bytes any more. `None`: it does.
    pub fn refusal(&self) -> Option<StreamError> {
        match &self.over {
            Some(Err(error)) => Some(error.clone()),
            Some(Ok(())) => Some(StreamError::Finished),
            None => (self.finished || self.reset.is_some()).then_some(StreamError::Finished),
        }
    }
}

/// Buffers that streams hand back.
#[derive(Debug, Default)]
pub struct SharedBuffers(Mutex<Buffers>);

#[derive(Debug, Default)]
struct Buffers {
    /// Spare buffers of any size.
    any: Vec<Vec<u8>>,
    /// As the engine keeps bytes of streams in.
    pieces: Vec<Vec<u8>>,
}

/// Bytes of the smallest and the largest buffer that is kept for the engine, which brings much data
/// in it.
const PIECE_BUFFER_BYTES: std::ops::RangeInclusive<usize> = 64 << 10..=128 << 10;
/// Buffers for the engine that are kept.
const MAX_PIECE_BUFFERS: usize = 16;

impl SharedBuffers {
    fn buffers(&self) -> MutexGuard<'_, Buffers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer with arbitrary contents.
    pub fn take(&self) -> Vec<u8> {
        self.buffers().any.pop().unwrap_or_default()
    }

    /// A buffer for the engine. `None`: there is none.
    pub fn take_piece(&self) -> Option<Vec<u8>> {
        self.buffers().pieces.pop()
    }

    /// Returns a buffer for later use.
    pub fn put(&self, buffer: Vec<u8>) {
        if buffer.capacity() == 0 {
            return;
        }
        let mut buffers = self.buffers();
        if PIECE_BUFFER_BYTES.contains(&buffer.capacity()) && buffers.pieces.len() < MAX_PIECE_BUFFERS {
            buffers.pieces.push(buffer);
        } else if buffers.any.len() < MAX_SPARE_BUFFERS {
            buffers.any.push(buffer);
        }
    }
}

/// A buffer that is used again after its bytes were sent.
#[derive(Debug)]
pub struct PooledBuffer {
    bytes: Vec<u8>,
    buffers: Arc<SharedBuffers>,
}

impl PooledBuffer {
    /// The buffer's bytes, for the engine.
    pub fn bytes(bytes: Vec<u8>, buffers: &Arc<SharedBuffers>) -> Bytes {
        Bytes::from_owner(Self { bytes, buffers: Arc::clone(buffers) })
    }
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        self.buffers.put(std::mem::take(&mut self.bytes));
    }
}
