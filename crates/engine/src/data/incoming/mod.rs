//! What this side receives.
use super::{Carried, ProtocolError};
use alloc::vec::Vec;
use byway_wire::{Duration, Instant, ObjectId, StreamId, Writer, frame};
use smallvec::SmallVec;

/// Bounds of what is received.
#[derive(Clone, Copy, Debug)]
pub struct IncomingLimits {
    /// The connection's window in bytes.
    pub memory: usize,
    /// A stream's window in bytes.
    pub stream_window: usize,
    /// Streams open at once.
    pub streams: usize,
    /// Objects incomplete at once.
    pub objects: usize,
    /// Datagrams queued.
    pub datagrams: usize,
}

impl Default for IncomingLimits {
    fn default() -> Self {
        Self { memory: 32 << 20, stream_window: 4 << 20, streams: 1024, objects: 4096, datagrams: 256 }
    }
}

/// Bytes for the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteRequest {
    /// The object.
    pub object: ObjectId,
    /// Where the bytes stand in it.
    pub offset: u64,
    /// The bytes.
    pub data: Vec<u8>,
}

/// What the owner may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InEvent {
    /// The first frame of a stream came.
    StreamOpened(StreamId),
    /// A stream has something to read.
    StreamReadable(StreamId),
    /// The peer gave up a stream.
    StreamReset {
        /// The stream.
        id: StreamId,
        /// Its reason.
        code: u64,
    },
    /// All of an object arrived and was handed out.
    ObjectComplete {
        /// The object.
        id: ObjectId,
        /// Its size.
        size: u64,
    },
    /// An unreliable message.
    Datagram(Vec<u8>),
}

/// What a read gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamRead {
    /// Bytes put into the buffer.
    pub length: usize,
    /// Whether they end the stream.
    pub finished: bool,
}

/// What this side receives.
#[derive(Debug)]
pub struct Incoming {}

#[allow(missing_docs, unused_variables)]
impl Incoming {
    #[must_use]
    pub fn new(limits: IncomingLimits) -> Self {
        Self {}
    }
    pub fn on_stream(&mut self, now: Instant, frame: &frame::Stream<'_>) -> Result<(), ProtocolError> {
        Ok(())
    }
    pub fn on_object(&mut self, now: Instant, frame: &frame::Object<'_>) -> Result<(), ProtocolError> {
        Ok(())
    }
    pub fn on_datagram(&mut self, data: &[u8]) {}
    pub fn on_reset_stream(&mut self, id: StreamId, code: u64) -> Result<(), ProtocolError> {
        Ok(())
    }
    #[must_use]
    pub fn wants_to_send(&self) -> bool {
        false
    }
    pub fn fill(&mut self, writer: &mut Writer<'_>, carried: &mut SmallVec<[Carried; 2]>) {}
    pub fn on_lost(&mut self, carried: &Carried) {}
    #[must_use]
    pub fn snack_deadline(&self, tau: Duration) -> Option<Instant> {
        None
    }
    pub fn write_snacks(&mut self, now: Instant, tau: Duration, writer: &mut Writer<'_>) -> bool {
        false
    }
    pub fn next_write(&mut self) -> Option<WriteRequest> {
        None
    }
    pub fn flush(&mut self) {}
    pub fn written(&mut self, buffer: Vec<u8>) {}
    pub fn next_event(&mut self) -> Option<InEvent> {
        None
    }
    pub fn read(&mut self, id: StreamId, buffer: &mut [u8]) -> Option<StreamRead> {
        None
    }
    pub fn stop(&mut self, id: StreamId, code: u64) {}
    pub fn forget_object(&mut self, id: ObjectId) {}
    #[must_use]
    pub fn initial_limits(&self) -> (u64, u64) {
        (0, 0)
    }
}
