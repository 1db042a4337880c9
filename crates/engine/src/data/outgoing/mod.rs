//! The sent data: streams and objects. The application adds data and takes events. The connection
//! asks for frames ([`Outgoing::fill`]), and reports what was acknowledged or lost. Queues hold
//! what can be sent, so idle streams cost no time.

mod blocked_reason;
#[cfg(feature = "studies")]
mod choice_facts;
mod delivery_state;
mod frame_selection;
mod objects;
mod owner_events;
#[cfg(debug_assertions)]
mod recount;
mod send_buffer;
mod send_limits;
mod stream_count_limit;
mod streams;
mod write_limits;

#[cfg(debug_assertions)]
use super::data_frames::OBJECT_COST;
use super::data_frames::{Carried, DataId};
use super::ranges::RangeSet;
use crate::invariant::Invariant as _;
use crate::numbered_map::NumberedMap;
use crate::payload_kind::Payload;
use crate::role::Role;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
pub use blocked_reason::Blocked;
use bytes::Bytes;
use byway_wire::{ObjectId, StreamId};
use delivery_state::Queues;
use objects::OutObject;
pub use owner_events::{DataCounters, OutEvent, ReadRequest};
#[cfg(debug_assertions)]
use recount::{Live, Sums};
pub use send_limits::OutgoingLimits;
use stream_count_limit::PeerStreamLimit;
use streams::{OutStream, Reset};
use write_limits::WriteLimits;

/// The sending side of a connection: streams and objects.
#[derive(Debug)]
pub struct Outgoing {
    limits: OutgoingLimits,
    payload: Payload,
    streams: BTreeMap<StreamId, OutStream>,
    /// An unused buffer for bytes of streams.
    spare: Vec<u8>,
    objects: NumberedMap<ObjectId, OutObject>,
    queues: Queues,
    /// Streams with new bytes within their own limits, in turn.
    ready: VecDeque<StreamId>,
    /// Objects that are not completely sent, in the order in which they were added. The first entry
    /// is never outdated.
    order: VecDeque<ObjectId>,
    /// Objects not wholly read, in the order added.
    to_read: VecDeque<ObjectId>,
    /// Streams whose reset the peer must hear of.
    resets: VecDeque<StreamId>,
    events: VecDeque<OutEvent>,
    stream_limit: u64,
    /// The peer's limit on distinct bytes and object costs. `used`: the part already used.
    limit: u64,
    used: u64,
    stream_memory: usize,
    object_memory: usize,
    /// Pieces of objects that were read, or asked for, and not wholly sent yet.
    unsent: usize,
    opening: PeerStreamLimit,
    room: WriteLimits,
    objects_begun: usize,
    streams_busy: usize,
    objects_acked: RangeSet,
    progress: DataCounters,
}

/// The calls of the owner.
impl Outgoing {
    /// Nothing to send yet, and nothing allowed yet: see [`Outgoing::on_max_data`].
    #[must_use]
    pub fn new(limits: OutgoingLimits) -> Self {
        let read_size = limits.read_size.min(limits.memory / 4).max(1);
        let limits = OutgoingLimits { read_size, ..limits };
        Self {
            limits,
            payload: Payload::Bytes,
            streams: BTreeMap::new(),
            spare: Vec::new(),
            objects: NumberedMap::default(),
            queues: Queues::default(),
            ready: VecDeque::new(),
            order: VecDeque::new(),
            to_read: VecDeque::new(),
            resets: VecDeque::new(),
            events: VecDeque::new(),
            stream_limit: 0,
            limit: 0,
            used: 0,
            stream_memory: 0,
            object_memory: 0,
            unsent: 0,
            opening: PeerStreamLimit::new(),
            room: WriteLimits::default(),
            objects_begun: 0,
            streams_busy: 0,
            objects_acked: RangeSet::new(),
            progress: DataCounters::default(),
        }
    }

    /// Sets whether objects are bytes or only a length. Call this before any is added.
    #[must_use]
    pub const fn made_of(mut self, payload: Payload) -> Self {
        self.payload = payload;
        self
    }

    /// Sets the role of this side, which decides who opens even and odd streams. The default is the
    /// initiator.
    #[must_use]
    pub(crate) const fn belonging_to(mut self, role: Role) -> Self {
        self.opening.belong_to(role);
        self
    }

    /// Opens the next stream, with an id two above that of the last stream which this side opened.
    /// `None` if the peer allows no further stream now; [`OutEvent::MayOpen`] reports when it
    /// allows one.
    pub fn open_next(&mut self) -> Option<StreamId> {
        let id = self.opening.next()?;
        self.open_stream(id).then_some(id)
    }

    /// Opens the stream `id`, or the sending half of a stream that the peer opened. An id is never
    /// used twice in a connection. Returns `false` if the peer allows no further stream now;
    /// [`OutEvent::MayOpen`] reports when it allows one.
    pub fn open_stream(&mut self, id: StreamId) -> bool {
        let limit = self.stream_limit;
        let open = self.opening.open(id);
        if open {
            self.streams.entry(id).or_insert_with(|| OutStream::new(limit));
        }
        #[cfg(debug_assertions)]
        self.check();
        open
    }

    /// Returns how many of `wanted` bytes [`write`](Self::write) takes now; 0 if the stream is not
    /// open or is finished. If memory or the peer's flow control limit leaves too little room,
    /// [`OutEvent::Writable`] later reports new room.
    pub fn room(&mut self, id: StreamId, wanted: usize) -> usize {
        let room = self.stream_room();
        let stream = self.streams.get_mut(&id).filter(|stream| !stream.finished);
        stream.map_or(0, |stream| self.room.of(id, stream, wanted, room, &self.limits))
    }

    /// Appends to a stream. Returns how many bytes were taken: see [`room`](Self::room).
    pub fn write(&mut self, id: StreamId, data: &[u8]) -> usize {
        let taken = self.room(id, data.len());
        let Some(stream) = self.streams.get_mut(&id).filter(|_| taken > 0) else { return 0 };
        stream.write(data.get(..taken).unwrap_or_default(), &mut self.spare);
        self.stream_memory += taken;
        self.settle_stream(id);
        #[cfg(debug_assertions)]
        self.check();
        taken
    }

    /// Appends to a stream without a copy of many bytes. Returns the number of bytes taken. The
    /// rest stays in `data`.
    pub fn write_bytes(&mut self, id: StreamId, data: &mut Bytes) -> usize {
        let taken = self.room(id, data.len());
        let Some(stream) = self.streams.get_mut(&id).filter(|_| taken > 0) else { return 0 };
        stream.push(data.split_to(taken), &mut self.spare);
        self.stream_memory += taken;
        self.settle_stream(id);
        #[cfg(debug_assertions)]
        self.check();
        taken
    }

    /// Ends a stream after the bytes written.
    pub fn finish(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.finished = true;
            self.settle_stream(id);
        }
        #[cfg(debug_assertions)]
        self.check();
    }

    /// Resets a stream. Its unsent bytes are dropped.
    pub fn reset(&mut self, id: StreamId, code: u64) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.reset == Reset::None) else {
            return;
        };
        self.stream_memory -= stream.give_up(code);
        if stream.in_ready {
            stream.in_ready = false;
            self.ready.retain(|ready| *ready != id);
        }
        self.resets.push_back(id);
        self.settle_stream(id);
        self.settle_lengths();
        #[cfg(debug_assertions)]
        self.check();
    }

    /// Adds an object of `size` bytes. Objects are sent in the order added. Use consecutive ids (0,
    /// 1, 2): the receiver stores the ids of past objects as ranges, and accepts only a limited
    /// number of ranges.
    pub fn add_object(&mut self, id: ObjectId, size: u64) {
        if self.objects.contains(id) || self.object_acked(id) {
            return;
        }
        self.objects.insert(id, OutObject::new(size, self.limits.read_size));
        self.order.push_back(id);
        if size > 0 {
            self.to_read.push_back(id);
        }
        self.settle_lengths();
        #[cfg(debug_assertions)]
        self.check();
    }

    /// Returns the next piece of an object that the application should read and pass to
    /// [`Outgoing::provide`]. Objects come in the order added, each from start to end. `None` if
    /// nothing is left, or while earlier pieces fill the memory for data to send.
    pub fn next_read(&mut self) -> Option<ReadRequest> {
        let (share, room) = (self.limits.share(), self.limits.memory.saturating_sub(self.stream_memory));
        loop {
            let id = *self.to_read.front()?;
            let Some((object, (offset, length, cost))) =
                self.objects.get_mut(id).and_then(|object| object.next_read().map(|read| (object, read)))
            else {
                self.to_read.pop_front();
                continue;
            };
            if self.object_memory > 0 && self.object_memory + cost > share.min(room) {
                return None;
            }
            self.object_memory += cost;
            self.unsent += 1;
            if !object.asked() {
                self.to_read.pop_front();
            }
            #[cfg(debug_assertions)]
            self.check();
            return Some(ReadRequest { object: id, offset, length });
        }
    }

    /// Answers a [`ReadRequest`] with its bytes. A `Vec` is not copied. Returns `false` if no
    /// request has this offset and length, or if the object was given up. If the source has become
    /// shorter, call [`Outgoing::abandon_object`].
    pub fn provide(&mut self, object: ObjectId, offset: u64, bytes: impl Into<Bytes>) -> bool {
        self.objects.get_mut(object).is_some_and(|object| object.provide(offset, bytes.into()))
    }

    /// Gives up an object whose source has vanished or changed: no further bytes are sent. No frame
    /// tells the peer, so the application must, for instance on a stream. Has no effect once the
    /// whole object was sent.
    pub fn abandon_object(&mut self, id: ObjectId) {
        let Some(object) = self.objects.get_mut(id).filter(|object| !object.is_sent()) else { return };
        self.unsent -= object.unsent();
        self.object_memory -= object.abandon();
        self.settle_object(id);
        self.settle_order();
        self.settle_lengths();
        #[cfg(debug_assertions)]
        self.check();
    }

    /// Whether the peer has all of an object.
    #[must_use]
    pub fn object_acked(&self, id: ObjectId) -> bool {
        self.objects_acked.covers(id.0.into(), u64::from(id.0) + 1)
    }

    /// Whether the peer has all that was written and added so far, ends of finished streams
    /// included.
    #[must_use]
    pub fn all_acked(&self) -> bool {
        self.objects.is_empty() && self.streams_busy == 0
    }

    /// The counters of bytes sent and acknowledged so far.
    #[must_use]
    pub const fn progress(&self) -> DataCounters {
        self.progress
    }

    /// The number of pieces of objects that the application was asked to read, and that are not
    /// wholly sent yet. If there are many, the application may stop asking for the
    /// [next read](Self::next_read), because further pieces would only wait.
    #[must_use]
    pub const fn unsent(&self) -> usize {
        self.unsent
    }

    /// Returns the bytes held, including those of objects that the owner is reading. Never more
    /// than the limit.
    #[must_use]
    pub const fn memory(&self) -> usize {
        self.stream_memory + self.object_memory
    }

    /// The next thing the owner may want to know.
    pub fn next_event(&mut self) -> Option<OutEvent> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        while self.is_room_worth_a_word() {
            if let Some(id) = self.room.next(&mut self.streams, &self.limits)? {
                return Some(OutEvent::Writable(id));
            }
        }
        None
    }

    /// Whether [`Outgoing::next_event`] has an event.
    pub(crate) fn has_news(&self) -> bool {
        !self.events.is_empty() || (self.room.is_awaited() && self.is_room_worth_a_word())
    }
}

/// The connection's side, without the frames.
impl Outgoing {
    /// Whether [`Outgoing::fill`] would write something into an empty packet.
    #[must_use]
    pub fn wants_to_send(&self) -> bool {
        !self.resets.is_empty()
            || self.queues.wants()
            || (!self.ready.is_empty() && self.credit() > 0)
            || self.next_object() == Ok(())
    }

    /// Returns why no data can be sent. `None`: data can be sent.
    #[must_use]
    pub fn blocked_by(&self) -> Option<Blocked> {
        if self.wants_to_send() {
            return None;
        }
        match self.next_object() {
            // Streams that only their own limits hold back, or the connection's.
            _ if !self.ready.is_empty() => Some(Blocked::PeerLimit),
            Err(Blocked::Application) if self.room.is_beyond() => Some(Blocked::PeerLimit),
            other => other.err(),
        }
    }

    /// Notes that the contents of a packet were acknowledged.
    pub fn on_acked(&mut self, carried: &Carried) {
        match *carried {
            Carried::Stream { id, offset, length, fin } => {
                let Some(stream) = self.streams.get_mut(&id) else { return };
                let (new, freed) = stream.on_acked(offset, offset + u64::from(length), fin, &mut self.spare);
                self.progress.acked += new;
                self.stream_memory -= freed;
                self.settle_stream(id);
            }
            Carried::Object { id, offset, length, fin } => {
                let Some(object) = self.objects.get_mut(id) else { return };
                let (new, freed) = object.on_acked(offset, offset + u64::from(length), fin);
                self.progress.acked += new;
                self.object_memory -= freed;
                self.settle_object(id);
            }
            Carried::ResetStream(id) => {
                if let Some(stream) = self.streams.get_mut(&id)
                    && stream.reset != Reset::None
                {
                    if let Reset::Due(_) = stream.reset {
                        self.resets.retain(|reset| *reset != id); // believed lost, and was not
                    }
                    stream.reset = Reset::Acked;
                    self.settle_stream(id);
                }
            }
            Carried::MaxStreams
            | Carried::MaxData
            | Carried::MaxStreamData(_)
            | Carried::StopSending(_)
            | Carried::Datagram(_)
            | Carried::PathDropped(_) => {}
        }
        self.settle_lengths();
        #[cfg(debug_assertions)]
        self.check();
    }

    /// Handles a lost packet: its data are sent again, unless they were acknowledged meanwhile.
    pub fn on_lost(&mut self, carried: &Carried) {
        match *carried {
            Carried::Stream { id, offset, length, fin } => {
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.on_lost(offset, offset + u64::from(length), fin);
                    self.settle_stream(id);
                }
            }
            Carried::Object { id, offset, length, fin } => {
                if let Some(object) = self.objects.get_mut(id) {
                    object.on_lost(offset, offset + u64::from(length), fin);
                    self.settle_object(id);
                }
            }
            Carried::ResetStream(id) => {
                if let Some(stream) = self.streams.get_mut(&id)
                    && let Reset::Sent(code) = stream.reset
                {
                    stream.reset = Reset::Due(code);
                    self.resets.push_back(id);
                }
            }
            Carried::MaxStreams
            | Carried::MaxData
            | Carried::MaxStreamData(_)
            | Carried::StopSending(_)
            | Carried::Datagram(_)
            | Carried::PathDropped(_) => {}
        }
        #[cfg(debug_assertions)]
        self.check();
    }

    /// The peer reported (SNACK) that the bytes `start..end` of a stream or object are missing. All
    /// bytes in this range that were sent and are not acknowledged are sent again, even if they are
    /// still in flight.
    pub fn missing(&mut self, what: DataId, start: u64, end: u64) {
        match what {
            DataId::Stream(id) => {
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.track.on_lost(start, end);
                    self.settle_stream(id);
                }
            }
            DataId::Object(id) => {
                if let Some(object) = self.objects.get_mut(id) {
                    object.track.on_lost(start, end);
                    self.settle_object(id);
                }
            }
        }
        #[cfg(debug_assertions)]
        self.check();
    }

    /// Returns the number of streams that this host has opened.
    pub(crate) const fn opened(&self) -> u64 {
        self.opening.opened()
    }

    /// Sets the peer's first limit on streams, from the handshake.
    pub const fn set_initial_max_streams(&mut self, limit: u64) {
        self.opening.set_limit(limit);
    }

    /// The peer takes `limit` streams in all. Limits never shrink.
    pub fn on_max_streams(&mut self, limit: u64) {
        if self.opening.raise_limit(limit) {
            self.events.push_back(OutEvent::MayOpen);
        }
    }

    /// Nothing more comes of a stream that the peer opened. Returns whether it goes on in this
    /// direction; then it is [counted](Self::take_answers_over) later.
    pub(crate) fn answer_ends(&mut self, id: StreamId) -> bool {
        self.streams.get_mut(&id).map(|stream| stream.last = true).is_some()
    }

    /// Returns the number of the peer's streams that have ended in this direction since the last
    /// call.
    pub(crate) const fn take_answers_over(&mut self) -> u64 {
        self.opening.take_answers_over()
    }

    /// The peer's limit on the connection (also the first, from the handshake). Limits never
    /// shrink.
    pub fn on_max_data(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
        #[cfg(debug_assertions)]
        self.check();
    }

    /// The peer's limit on a stream.
    pub fn on_max_stream_data(&mut self, id: StreamId, limit: u64) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.limit = stream.limit.max(limit);
            self.settle_stream(id);
        }
        #[cfg(debug_assertions)]
        self.check();
    }

    /// The peer's first limit on every stream, from the handshake.
    pub fn set_initial_stream_limit(&mut self, limit: u64) {
        self.stream_limit = limit;
        let ids: Vec<StreamId> = self.streams.keys().copied().collect();
        for id in ids {
            self.on_max_stream_data(id, limit);
        }
    }

    /// The peer wants no more of a stream: it is reset with the peer's code.
    pub fn on_stop_sending(&mut self, id: StreamId, code: u64) {
        let open = self.streams.get(&id).is_some_and(|stream| stream.reset == Reset::None);
        if open {
            self.events.push_back(OutEvent::Stopped { stream: id, code });
            self.reset(id, code);
        }
    }
}

/// Updates of queues and memory after each change.
impl Outgoing {
    const fn credit(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// Returns the bytes that streams may hold in addition to the present ones.
    fn stream_room(&self) -> usize {
        let own = self.limits.share().saturating_sub(self.stream_memory);
        own.min(self.limits.memory.saturating_sub(self.stream_memory + self.object_memory))
    }

    /// Whether the free memory is enough to tell waiting streams: more than a sixteenth.
    fn is_room_worth_a_word(&self) -> bool {
        self.stream_room() > self.limits.memory / 16
    }

    /// Checks whether the next object can be sent. An error: the reason why not.
    fn next_object(&self) -> Result<(), Blocked> {
        let object = self.order.front().and_then(|id| self.objects.get(*id)).ok_or(Blocked::Application)?;
        object.may_be_sent(self.credit(), self.objects_begun >= self.limits.objects)
    }

    fn settle_stream(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id).sure() else { return };
        let wants = stream.wants_again();
        self.queues.settle(DataId::Stream(id), &mut stream.track, wants);
        if !stream.in_ready && stream.has_new() {
            stream.in_ready = true;
            self.ready.push_back(id);
        }
        match (stream.busy, stream.is_busy()) {
            (false, true) => self.streams_busy += 1,
            (true, false) => self.streams_busy -= 1,
            _ => {}
        }
        stream.busy = stream.is_busy();
        let (done, given_up, last) = (stream.is_done(), stream.reset != Reset::None, stream.last);
        self.room.settle(id, stream, &self.limits);
        #[cfg(debug_assertions)]
        stream.check();
        if done {
            if let Reset::Due(_) = stream.reset {
                self.resets.retain(|reset| *reset != id); // too late: the peer has it all
            }
            self.streams.remove(&id);
            if last {
                self.opening.on_answer_over();
            }
            if !given_up {
                self.events.push_back(OutEvent::StreamAcked(id));
            }
            self.settle_tail();
        }
    }

    fn settle_object(&mut self, id: ObjectId) {
        let Some(object) = self.objects.get_mut(id).sure() else { return };
        let wants = object.wants_again();
        self.queues.settle(DataId::Object(id), &mut object.track, wants);
        #[cfg(debug_assertions)]
        object.check();
        if !object.is_done() {
            return;
        }
        if object.begun {
            self.objects_begun -= 1;
        }
        if !object.abandoned {
            self.objects_acked.insert(id.0.into(), u64::from(id.0) + 1);
            self.events.push_back(OutEvent::ObjectAcked(id));
        }
        self.objects.remove(id);
        self.settle_tail();
    }

    /// Removes objects from the front of `order` that are completely sent.
    fn settle_order(&mut self) {
        while let Some(id) = self.order.front()
            && self.objects.get(*id).is_none_or(|object| object.is_sent())
        {
            self.order.pop_front();
        }
    }

    /// Removes entries from the front of `tail` that need no repetition.
    fn settle_tail(&mut self) {
        while let Some(id) = self.queues.next_tail() {
            let track = match id {
                DataId::Stream(id) => {
                    self.streams.get_mut(&id).map(|stream| (stream.is_in_flight(), &mut stream.track))
                }
                DataId::Object(id) => self.objects.get_mut(id).map(|object| (true, &mut object.track)),
            };
            match track {
                Some((true, _)) => return,
                Some((false, track)) => self.queues.pop_tail(Some(track)),
                None => self.queues.pop_tail(None),
            }
        }
    }

    /// Asserts that sums are within their limits and queues are complete. With little data, the
    /// sums are counted anew.
    #[cfg(debug_assertions)]
    fn check(&self) {
        let Self { streams, objects, progress, limits, limit, used, .. } = self;
        let Self { ready, resets, order, to_read, objects_begun, streams_busy, .. } = self;
        debug_assert!(
            progress.acked <= progress.sent && progress.sent <= *used && used <= limit,
            "{progress:?}"
        );
        let costs = used - progress.sent;
        debug_assert!(costs.is_multiple_of(OBJECT_COST) && costs / OBJECT_COST >= *objects_begun as u64);
        debug_assert!(*objects_begun <= objects.len().min(limits.objects) && *streams_busy <= streams.len());
        // Of a tiny memory, one piece of an object may be more than there is.
        let most = limits.memory.max(limits.share() + limits.read_size);
        debug_assert!(
            self.stream_memory <= limits.share() && self.memory() <= most,
            "{} bytes",
            self.memory()
        );
        let is_unsent = |id: &ObjectId| objects.get(*id).is_some_and(|object| !object.is_sent());
        debug_assert!(order.front().is_none_or(is_unsent), "the object whose turn it is was sent");
        let live = Live { streams, objects };
        if !live.is_little(ready.len() + resets.len() + order.len() + to_read.len() + self.queues.entries()) {
            return;
        }
        let Self { stream_memory, object_memory, unsent, .. } = *self;
        let (objects_begun, streams_busy) = (*objects_begun, *streams_busy);
        let in_flight = progress.sent - progress.acked;
        let kept = Sums { stream_memory, object_memory, unsent, objects_begun, streams_busy, in_flight };
        debug_assert_eq!(kept, live.recount(), "what is counted is so");
        live.check_queues(&self.queues);
        live.check_streams(ready, resets);
        live.check_objects(order, to_read);
        self.room.check(streams);
    }

    /// Provides objects that are only a length, as soon as the memory would hold their bytes.
    fn settle_lengths(&mut self) {
        while self.payload == Payload::Length
            && let Some(read) = self.next_read()
        {
            if let Some(object) = self.objects.get_mut(read.object).sure() {
                object.provide_length(read.length);
            }
        }
    }
}

#[cfg(test)]
mod tests;
