//! What this side sends.
use super::{Carried, DataId};
use alloc::vec::Vec;
use byway_wire::{ObjectId, StreamId, Writer};
use smallvec::SmallVec;

/// Bounds of what is sent.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingLimits {
    /// Bytes buffered in all.
    pub memory: usize,
    /// Bytes per read.
    pub read_size: usize,
    /// Objects begun and not acknowledged.
    pub objects: usize,
    /// Datagrams queued.
    pub datagrams: usize,
}

impl Default for OutgoingLimits {
    fn default() -> Self {
        Self { memory: 32 << 20, read_size: 256 << 10, objects: 4096, datagrams: 256 }
    }
}

/// What the owner should read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadRequest {
    /// The object.
    pub object: ObjectId,
    /// From where.
    pub offset: u64,
    /// How many bytes.
    pub length: usize,
}

/// What the owner may want to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutEvent {
    /// All of an object was acknowledged.
    ObjectAcked(ObjectId),
    /// All of a stream was acknowledged.
    StreamAcked(StreamId),
    /// The peer wants no more of a stream.
    Stopped {
        /// The stream.
        stream: StreamId,
        /// Its reason.
        code: u64,
    },
    /// There is room again after a write was cut short.
    Writable,
}

/// Why nothing is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// The application has nothing to send.
    Application,
    /// The peer's flow control.
    PeerLimit,
    /// The owner's disk.
    Reading,
}

/// Counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Distinct bytes sent.
    pub sent: u64,
    /// Bytes sent again.
    pub repeated: u64,
    /// Distinct bytes acknowledged.
    pub acked: u64,
}

/// What this side sends.
#[derive(Debug)]
pub struct Outgoing {}

#[allow(missing_docs, unused_variables)]
impl Outgoing {
    #[must_use]
    pub fn new(limits: OutgoingLimits) -> Self {
        Self {}
    }
    pub fn open_stream(&mut self, id: StreamId) {}
    pub fn write(&mut self, id: StreamId, data: &[u8]) -> usize {
        0
    }
    pub fn finish(&mut self, id: StreamId) {}
    pub fn reset(&mut self, id: StreamId, code: u64) {}
    pub fn add_object(&mut self, id: ObjectId, size: u64) {}
    pub fn next_read(&mut self) -> Option<ReadRequest> {
        None
    }
    pub fn provide(&mut self, object: ObjectId, offset: u64, bytes: Vec<u8>) -> bool {
        true
    }
    pub fn abandon_object(&mut self, id: ObjectId) {}
    pub fn send_datagram(&mut self, data: Vec<u8>) -> Result<(), Vec<u8>> {
        Err(data)
    }
    #[must_use]
    pub fn object_acked(&self, id: ObjectId) -> bool {
        false
    }
    #[must_use]
    pub fn all_acked(&self) -> bool {
        true
    }
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress::default()
    }
    pub fn next_event(&mut self) -> Option<OutEvent> {
        None
    }
    #[must_use]
    pub fn wants_to_send(&self) -> bool {
        false
    }
    #[must_use]
    pub fn blocked_by(&self) -> Option<Blocked> {
        None
    }
    pub fn fill(&mut self, writer: &mut Writer<'_>, carried: &mut SmallVec<[Carried; 2]>) {}
    pub fn on_acked(&mut self, carried: &Carried) {}
    pub fn on_lost(&mut self, carried: &Carried) {}
    pub fn on_max_data(&mut self, limit: u64) {}
    pub fn on_max_stream_data(&mut self, id: StreamId, limit: u64) {}
    pub fn set_initial_stream_limit(&mut self, limit: u64) {}
    pub fn set_largest_datagram(&mut self, bytes: usize) {}
    pub fn on_stop_sending(&mut self, id: StreamId, code: u64) {}
    pub fn missing(&mut self, what: DataId, start: u64, end: u64) {}
    pub fn repeat_tail(&mut self, writer: &mut Writer<'_>, carried: &mut SmallVec<[Carried; 2]>) -> bool {
        false
    }
}
