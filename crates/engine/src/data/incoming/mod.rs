//! What this side receives: streams and objects.
//!
//! Who calls what: the connection hands over frames and asks for limits, refusals and SNACKs to send; the owner writes
//! objects to the disk ([`Incoming::next_write`], [`Incoming::written`]), reads streams and takes events. What the owner
//! does not take, the sender cannot send: every byte counts against the window until it was read or written.
//!
//! All that comes from the peer is checked here. Memory stays within four times [`IncomingLimits::memory`] (the bytes,
//! and room ahead of them), whatever the peer sends.

mod account;
mod holes;
mod objects;
mod owner;
mod pool;
mod receive;
mod streams;
mod tell;
mod window;

use super::ranges::RangeSet;
use crate::payload::Payload;
use account::Account;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use byway_wire::{ObjectId, StreamId};
use holes::Holes;
use objects::InObject;
use pool::Pool;
use streams::InStream;

/// Bounds of what is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncomingLimits {
    /// The window: bytes of streams and objects that may be received and not yet read or written, and the costs of
    /// objects. At least 16 KiB.
    pub memory: usize,
    /// A stream's window.
    pub stream_window: usize,
    /// Streams open at once.
    pub streams: usize,
    /// Objects incomplete at once. The peer must know it: [`super::OutgoingLimits::objects`].
    pub objects: usize,
}

impl IncomingLimits {
    /// What is enforced: a memory that is not too small, and no stream that may have more than all together.
    fn sound(self) -> Self {
        let memory = self.memory.max(16 << 10);
        Self { memory, stream_window: self.stream_window.clamp(1, memory), ..self }
    }

    /// The first limits, for the handshake to tell: of the connection, and of every stream.
    #[must_use]
    pub fn initial(self) -> (u64, u64) {
        let sound = self.sound();
        (sound.memory as u64, sound.stream_window as u64)
    }
}

impl Default for IncomingLimits {
    fn default() -> Self {
        Self { memory: 32 << 20, stream_window: 8 << 20, streams: 1024, objects: 4096 }
    }
}

/// Bytes for the disk. Give the buffer back with [`Incoming::written`], as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteRequest {
    /// The object.
    pub object: ObjectId,
    /// Where the bytes stand in it.
    pub offset: u64,
    /// The bytes.
    pub data: Vec<u8>,
}

/// Bytes of an object that is only a length, new and not told before: see [`Incoming::next_arrival`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The object.
    pub object: ObjectId,
    /// Where the bytes stand in it.
    pub offset: u64,
    /// How many they are.
    pub length: u64,
}

/// What the owner may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InEvent {
    /// The first frame of a stream came (also on streams that this side opened, when the peer first answers).
    StreamOpened(StreamId),
    /// A stream can be read, or is at its end. Told once until a read comes to the end of what is there.
    StreamReadable(StreamId),
    /// The peer gave up a stream; what was not read is gone.
    StreamReset {
        /// The stream.
        id: StreamId,
        /// The peer's reason.
        code: u64,
    },
    /// All of an object arrived, and all of it was handed out by [`Incoming::next_write`] (or
    /// [`Incoming::next_arrival`]) before. The object is forgotten with this.
    ObjectComplete {
        /// The object.
        id: ObjectId,
        /// Its size in bytes.
        size: u64,
    },
}

/// What a read gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamRead {
    /// Bytes put into the buffer.
    pub length: usize,
    /// Whether the stream ends after them. It is forgotten with this.
    pub finished: bool,
}

/// What waits for the owner's disk, in order.
#[derive(Debug)]
enum Ready {
    Write(WriteRequest),
    Length(Arrival),
    Complete { id: ObjectId, size: u64 },
}

/// An object that the owner wants no more of: only counted.
#[derive(Debug, Default)]
struct Forgotten {
    received: RangeSet,
    size: Option<u64>,
    /// Whether its cost was counted.
    begun: bool,
}

/// What this side receives.
#[derive(Debug)]
pub struct Incoming {
    limits: IncomingLimits,
    /// The window at most, where it is a [share](Self::share) of a memory; then `limits.memory` is what it is now.
    most: u64,
    /// What it begins with.
    least: u64,
    /// It wants a larger window once so much was taken.
    more_at: u64,
    payload: Payload,
    account: Account,
    streams: BTreeMap<StreamId, InStream>,
    objects: BTreeMap<ObjectId, InObject>,
    forgotten: BTreeMap<ObjectId, Forgotten>,
    /// Halves of the ids of streams that are over: even ones, odd ones.
    closed_streams: [RangeSet; 2],
    /// Ids of objects that are complete or were given up for good.
    closed_objects: RangeSet,
    /// Ranges that describe what arrived, of everything together.
    ranges: usize,
    pool: Pool,
    /// Open blocks in the order in which they were opened, and how much was gathered and lent in them.
    open: BTreeMap<u64, (ObjectId, u64)>,
    serial: u64,
    gathered: u64,
    gathering: usize,
    ready: VecDeque<Ready>,
    /// Bytes that the owner is writing.
    with_owner: u64,
    holes: Holes,
    /// Bytes that arrived beyond a hole of their stream or object, and the most that there ever were.
    beyond: (u64, u64),
    events: VecDeque<InEvent>,
    /// Streams with a new limit to tell.
    stream_limits: VecDeque<StreamId>,
    /// Streams to refuse.
    stops: VecDeque<StreamId>,
}

impl Incoming {
    /// Nothing received yet.
    #[must_use]
    pub fn new(limits: IncomingLimits) -> Self {
        let limits = limits.sound();
        let memory = limits.memory;
        Self {
            limits,
            most: memory as u64,
            least: memory as u64,
            more_at: u64::MAX,
            payload: Payload::Bytes,
            account: Account::new(memory as u64),
            streams: BTreeMap::new(),
            objects: BTreeMap::new(),
            forgotten: BTreeMap::new(),
            closed_streams: [RangeSet::new(), RangeSet::new()],
            closed_objects: RangeSet::new(),
            ranges: 0,
            pool: Pool::new((memory / 64).clamp(1 << 10, 128 << 10), memory),
            open: BTreeMap::new(),
            serial: 0,
            gathered: 0,
            gathering: 0,
            ready: VecDeque::new(),
            with_owner: 0,
            holes: Holes::default(),
            beyond: (0, 0),
            events: VecDeque::new(),
            stream_limits: VecDeque::new(),
            stops: VecDeque::new(),
        }
    }

    /// Says what objects are made of, before any arrives.
    #[must_use]
    pub const fn made_of(mut self, payload: Payload) -> Self {
        self.payload = payload;
        self
    }

    /// Begins with a window of `least` bytes, before anything arrives. It is [set](Self::set_window) anew as others come and go.
    #[must_use]
    pub(crate) fn sharing(mut self, least: u64) -> Self {
        self.least = least;
        self.account = Account::new(least);
        self.set_window(least);
        self
    }

    /// Of a memory that is shared with others: the bytes that the peer was granted and nobody has taken, and the window that there is a
    /// use for. That follows what the owner takes: what it leaves lying is not worth a larger one.
    pub(crate) fn share(&self) -> (u64, u64) {
        (
            self.account.granted(),
            self.account.taken().saturating_mul(4).saturating_add(self.least).min(self.most),
        )
    }

    /// The window from now on. What the peer was told before it keeps.
    pub(crate) fn set_window(&mut self, window: u64) {
        let window = window.min(self.most);
        self.limits.memory = window as usize;
        self.account.set_window(window);
        self.pool.set_budget(window as usize);
        let more = self.account.taken() + window / 2;
        self.more_at = if window < self.most { more } else { u64::MAX };
    }

    /// Whether the owner took so much that a larger window is worth asking for.
    pub(crate) const fn wants_window(&self) -> bool {
        self.account.taken() >= self.more_at
    }

    /// The first limits, for the handshake to tell: of the connection, and of every stream.
    #[must_use]
    pub const fn initial_limits(&self) -> (u64, u64) {
        (self.limits.memory as u64, self.limits.stream_window as u64)
    }

    /// Bytes received and not yet read or written, with the costs of objects.
    #[must_use]
    pub const fn held(&self) -> u64 {
        self.account.held()
    }

    /// Bytes that wait now for a hole before them in their stream or object to be filled, and the most that ever did: what a
    /// receiver needs that hands everything on in order (one stream or object at a time).
    #[must_use]
    pub const fn out_of_order(&self) -> (u64, u64) {
        self.beyond
    }

    /// Bytes of memory that data take: at most four times the limit. A scan over all streams.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.pool.memory() + self.streams.values().map(InStream::memory).sum::<usize>()
    }

    /// Distinct bytes of streams and objects received so far.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.account.bytes
    }
}

#[cfg(test)]
mod tests;
