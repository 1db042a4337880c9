//! The streams that come in: which live, which are over, and what the peer is to be told of them.

use super::owner_events::{InEvent, StreamRead};
use super::stream::{InStream, Interest};
use super::stream_buffers::StreamBuffers;
use super::stream_count_limit::StreamLimit;
use super::window_tuning::{Readers, WindowInputs};
use crate::data::data_frames::{Carried, ProtocolError};
use crate::data::ranges::RangeSet;
use crate::invariant::Invariant as _;
use crate::role::Role;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use byway_wire::codec::varint_len;
use byway_wire::frame::Frame;
use byway_wire::{Duration, Instant, StreamId, Writer};
use smallvec::SmallVec;

/// The most ranges of ids of streams that are over: 4 MiB of memory.
const MAX_CLOSED_RANGES: usize = 256 << 10;

/// The streams of a connection.
#[derive(Debug)]
pub(super) struct Streams {
    live: BTreeMap<StreamId, InStream>,
    /// Ended streams: the halves of their ids, even and odd ids apart.
    closed: [RangeSet; 2],
    /// The role of this side: initiator or responder.
    role: Role,
    /// The limit on streams that the peer may open.
    places: StreamLimit,
    /// Streams of the peer that have ended in this direction, and perhaps not in the other. `None`:
    /// nobody takes this list.
    ended: Option<Vec<StreamId>>,
    /// Number of streams that this host has opened. The peer may answer on these.
    opened_here: u64,
    /// The initial and the largest window of a stream, in bytes.
    window: (u64, u64),
    /// The connection's window in bytes.
    memory: u64,
    /// Unread bytes of all streams.
    held: u64,
    /// Bytes of all streams that the peer may have sent and that are unread.
    promised: u64,
    readers: Readers,
    buffers: StreamBuffers,
    /// Streams whose new limit is to be sent to the peer.
    limits: VecDeque<StreamId>,
    /// Streams that the peer is to be asked to stop.
    stops: VecDeque<StreamId>,
}

impl Streams {
    /// Makes the state for at most `most` streams of the peer. `window`: bytes of a stream's first
    /// window, and of its largest.
    pub fn new(most: u64, window: (u64, u64), memory: u64) -> Self {
        let mut buffers = StreamBuffers::default();
        buffers.set_memory(memory);
        Self {
            buffers,
            live: BTreeMap::new(),
            closed: [RangeSet::new(), RangeSet::new()],
            role: Role::Responder,
            places: StreamLimit::new(most),
            ended: None,
            opened_here: most,
            window,
            memory,
            held: 0,
            promised: 0,
            readers: Readers::new(),
            limits: VecDeque::new(),
            stops: VecDeque::new(),
        }
    }

    /// Sets this host's role. A stream that is [over](Self::on_over) in this direction may go on in
    /// the other.
    pub fn belong_to(&mut self, role: Role) {
        (self.role, self.ended, self.opened_here) = (role, Some(Vec::new()), 0);
    }

    /// Notes that this side opened `count` streams.
    pub const fn opened_here(&mut self, count: u64) {
        self.opened_here = count;
    }

    /// The peer's streams that have ended in this direction. Each is returned once.
    pub fn take_ended(&mut self) -> impl Iterator<Item = StreamId> + use<> {
        self.ended.as_mut().map(core::mem::take).unwrap_or_default().into_iter()
    }

    /// Enters that `count` streams of the peer's are over in both directions.
    pub const fn on_over(&mut self, count: u64) {
        self.places.on_over(count);
    }

    /// The initial window of a stream, in bytes.
    pub const fn window(&self) -> u64 {
        self.window.0
    }

    /// The connection's window is that from now on.
    pub fn set_memory(&mut self, memory: u64) {
        self.memory = memory;
        self.buffers.set_memory(memory);
    }

    /// Notes that `bytes` wanted bytes arrived.
    pub const fn on_kept(&mut self, bytes: u64) {
        self.held += bytes;
    }

    /// A buffer that was given away comes back.
    pub fn give_back(&mut self, buffer: Vec<u8>) {
        self.buffers.put(buffer);
    }

    /// The inputs for the window of a stream that holds `own` unread bytes itself.
    fn sight(&self, own: u64) -> WindowInputs {
        let (live, begin) = (self.live.len() as u64, self.window.0);
        let promised = self.promised.saturating_sub(self.held).saturating_sub(live * begin);
        let held = self.held.saturating_sub(own);
        WindowInputs { memory: self.memory, held, promised, live, readers: self.readers.count() }
    }

    /// The window `size` in bytes, kept within the smallest and the largest window.
    fn within(&self, size: u64) -> u64 {
        size.clamp(self.window.0, self.window.1)
    }

    /// Returns the number of streams that have not ended.
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Returns the bytes of memory that the streams' data take.
    pub fn memory(&self) -> usize {
        self.live.values().map(InStream::memory).sum::<usize>() + self.buffers.memory()
    }

    /// Returns a stream, made if it is new, and the pool of buffers. `None`: the stream has ended.
    pub fn opened(
        &mut self,
        id: StreamId,
        events: &mut VecDeque<InEvent>,
    ) -> Result<Option<(&mut InStream, &mut StreamBuffers)>, ProtocolError> {
        if !self.live.contains_key(&id) {
            let half = u64::from(id.0 / 2);
            if self.closed[usize::from(id.0 % 2 == 1)].covers(half, half + 1) {
                return Ok(None);
            }
            if self.role.opens(id) {
                if half >= self.opened_here {
                    let reason = "a frame of a stream that nobody opened";
                    return Err(ProtocolError::new(ProtocolError::STREAM_STATE, reason));
                }
            } else if !self.places.allows(half) {
                let reason = "more streams at once than allowed";
                return Err(ProtocolError::new(ProtocolError::STREAM_LIMIT, reason));
            }
            if self.closed.iter().any(|closed| closed.count() > MAX_CLOSED_RANGES) {
                return Err(ProtocolError::new(ProtocolError::SCATTERED, "stream ids too scattered"));
            }
            events.push_back(InEvent::StreamOpened(id));
            let live = self.live.len() as u64 + 1;
            let first = self.within(WindowInputs { live, ..self.sight(0) }.first());
            if self.begin(id).window.widen(first) {
                self.limits.push_back(id);
            }
        }
        Ok(self.live.get_mut(&id).map(|stream| (stream, &mut self.buffers)))
    }

    /// A stream of which nothing was known.
    fn begin(&mut self, id: StreamId) -> &mut InStream {
        self.promised += self.window.0;
        self.live.entry(id).or_insert_with(|| InStream::new(self.window.0))
    }

    /// Whether this host opened the stream, and the peer has not answered on it.
    fn is_unanswered(&self, id: StreamId) -> bool {
        let half = u64::from(id.0 / 2);
        let is_over = self.closed[usize::from(id.0 % 2 == 1)].covers(half, half + 1);
        self.role.opens(id) && half < self.opened_here && !is_over && !self.live.contains_key(&id)
    }

    /// The received ranges of a stream. `None`: the stream is not wanted.
    pub fn awaited(&self, id: StreamId) -> Option<&RangeSet> {
        let stream = self.live.get(&id).filter(|stream| stream.interest == Interest::Wanted)?;
        Some(&stream.extent.received)
    }

    /// Removes a stream that has ended. `None`: it has not ended.
    pub fn take_over(&mut self, id: StreamId) -> Option<InStream> {
        self.live.get(&id).filter(|stream| stream.is_over())?;
        self.close(id)
    }

    fn close(&mut self, id: StreamId) -> Option<InStream> {
        let half = u64::from(id.0 / 2);
        self.closed[usize::from(id.0 % 2 == 1)].insert(half, half + 1);
        if !self.role.opens(id) {
            match &mut self.ended {
                Some(ended) => ended.push(id),
                None => self.places.on_over(1),
            }
        }
        let mut stream = self.live.remove(&id)?;
        self.promised -= stream.window.promised(stream.read);
        self.held -= stream.discard(&mut self.buffers);
        Some(stream)
    }

    /// Forgets the bytes of a stream that the peer gave up; returns how many there were.
    pub fn discard(&mut self, id: StreamId) -> u64 {
        let dropped = self.live.get_mut(&id).map_or(0, |stream| stream.discard(&mut self.buffers));
        self.held -= dropped;
        dropped
    }

    /// Notes that the owner was told of the peer's reset.
    pub fn told_of_reset(&mut self, id: StreamId) {
        if let Some(stream) = self.live.get_mut(&id).sure() {
            stream.interest = Interest::ResetTold;
        }
    }

    /// Reads a stream. Also returns the stream if it has ended.
    pub fn read(&mut self, id: StreamId, buffer: &mut [u8]) -> Option<(StreamRead, Option<InStream>)> {
        let Self { live, buffers, .. } = self;
        let stream = live.get_mut(&id).filter(|stream| stream.interest == Interest::Wanted)?;
        let length = stream.copy(buffer, buffers);
        Some(self.on_read(id, length))
    }

    /// Takes the next piece of a stream, if it has at least `least` bytes.
    pub fn take(&mut self, id: StreamId, least: usize) -> Option<(Vec<u8>, StreamRead, Option<InStream>)> {
        let Self { live, buffers, .. } = self;
        let stream = live.get_mut(&id).filter(|stream| stream.interest == Interest::Wanted)?;
        let piece = stream.take(least, buffers).unwrap_or_default();
        let (read, over) = self.on_read(id, piece.len());
        Some((piece, read, over))
    }

    /// The owner has read `length` bytes.
    fn on_read(&mut self, id: StreamId, length: usize) -> (StreamRead, Option<InStream>) {
        self.held -= length as u64;
        self.promised -= length as u64;
        let Some(stream) = self.live.get_mut(&id).sure() else {
            return (StreamRead { length, finished: false }, None);
        };
        let finished = stream.is_read();
        if stream.readable() == 0 {
            stream.told = false;
        }
        if !finished && stream.window.on_read(stream.read, stream.held, stream.extent.size.is_some()) {
            self.limits.push_back(id);
        }
        let over = if finished { self.close(id) } else { None };
        (StreamRead { length, finished }, over)
    }

    /// Stops a stream for the owner, even before its first byte. Returns the number of bytes that
    /// are dropped.
    pub fn stop(&mut self, id: StreamId, code: u64) -> Option<u64> {
        if self.is_unanswered(id) {
            self.begin(id);
        }
        let stream = self.live.get_mut(&id).filter(|stream| stream.interest == Interest::Wanted)?;
        stream.interest = Interest::Stopped(code);
        // If all is here, there is nothing to refuse.
        if !stream.is_over() {
            self.stops.push_back(id);
        }
        let dropped = stream.discard(&mut self.buffers);
        self.held -= dropped;
        Some(dropped)
    }

    /// Returns the code with which the stream is refused. `None`: it is not refused.
    fn stop_code(&self, id: StreamId) -> Option<u64> {
        match self.live.get(&id)?.interest {
            Interest::Stopped(code) => Some(code),
            _ => None,
        }
    }

    /// Whether [`Streams::fill`] would write something into an empty packet.
    pub fn wants_to_send(&self) -> bool {
        self.places.is_due()
            || self.stops.iter().any(|id| self.stop_code(*id).is_some())
            || self.limits.iter().any(|id| self.live.get(id).is_some_and(InStream::may_grow))
    }

    /// Writes refusals (STOP_SENDING) and limits (such as MAX_STREAM_DATA) that the peer does not
    /// know yet, as many as fit. `rtt` is the time from sending a limit until new data arrives.
    pub fn fill(
        &mut self,
        now: Instant,
        rtt: Duration,
        writer: &mut Writer<'_>,
        carried: &mut SmallVec<[Carried; 2]>,
    ) {
        if self.places.is_due() && writer.room() > 8 {
            Frame::MaxStreams(self.places.tell()).write(writer);
            carried.push(Carried::MaxStreams);
        }
        while let Some(&id) = self.stops.front() {
            if let Some(code) = self.stop_code(id) {
                if writer.room() < 1 + varint_len(id.0.into()) + varint_len(code) {
                    return;
                }
                Frame::StopSending { id, code }.write(writer);
                carried.push(Carried::StopSending(id));
            }
            self.stops.pop_front();
        }
        while let Some(&id) = self.limits.front() {
            if self.live.get(&id).is_some_and(InStream::may_grow) {
                if writer.room() < 1 + varint_len(id.0.into()) + 8 {
                    return;
                }
                self.tune(now, rtt, id);
                let Some(stream) = self.live.get_mut(&id).sure() else { return };
                let before = stream.window.promised(stream.read);
                let limit = stream.window.tell(stream.read);
                self.promised += stream.window.promised(stream.read) - before;
                Frame::MaxStreamData { id, limit }.write(writer);
                carried.push(Carried::MaxStreamData(id));
            }
            if let Some(stream) = self.live.get_mut(&id) {
                stream.window.told();
            }
            self.limits.pop_front();
        }
    }

    /// The window that a stream has from now on.
    fn tune(&mut self, now: Instant, rtt: Duration, id: StreamId) {
        let Some(stream) = self.live.get_mut(&id) else { return };
        let (size, own) = (stream.window.size(), stream.held);
        if stream.read > 0 {
            self.readers.on_read(now, rtt, &mut stream.window.round);
        }
        if let Some((took, elapsed)) = stream.window.look(now, stream.read) {
            let next = self.within(self.sight(own).next(size, took, elapsed, rtt));
            if let Some(stream) = self.live.get_mut(&id).sure() {
                stream.window.set_size(next);
            }
        }
    }

    /// Notes that the packet with the limit of a stream may be lost.
    pub fn tell_limit_again(&mut self, id: StreamId) {
        if self.live.get_mut(&id).is_some_and(|stream| stream.window.tell_again()) {
            self.limits.push_back(id);
        }
    }

    /// Notes that the packet with the limit on the number of streams may be lost.
    pub const fn tell_places_again(&mut self) {
        self.places.tell_again();
    }

    /// Refuses a stream once more, since the first refusal may not have arrived.
    pub fn refuse_again(&mut self, id: StreamId) {
        if self.stop_code(id).is_some() && !self.stops.contains(&id) {
            self.stops.push_back(id);
        }
    }
}
