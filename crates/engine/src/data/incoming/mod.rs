//! The received data: streams and objects.
//!
//! Received bytes fill the flow-control window until the application has read them (streams) or
//! written them to disk (objects). So a slow application slows the sender. Memory stays within four
//! times [`IncomingLimits::memory`].
//!
//! | modules | what they do |
//! |---|---|
//! | `streams`, `stream`, `objects`, `object` | what is open, and which bytes have arrived |
//! | `received_extent` | which bytes of one stream or object have arrived |
//! | `write_coalescing`, `pool` | gather bytes of objects into blocks for the disk |
//! | `stream_buffers` | memory for the bytes of streams |
//! | `owner_events` | events for the application |
//! | `receive_limits` | limits that the application sets |
//! | `connection_window`, `stream_window`, `stream_count_limit` | flow control |
//! | `window_tuning` | how large a stream's window is |
//! | `out_of_order` | limits the number of ranges that have arrived out of order |
//! | `order_waits` | how long bytes of streams wait for bytes before them, for studies |
//! | `snack_schedule` | when missing bytes are reported to the sender |

mod connection_window;
mod object;
mod objects;
#[cfg(feature = "studies")]
mod order_waits;
mod out_of_order;
mod owner_events;
mod pool;
mod receive_limits;
mod received_extent;
mod snack_schedule;
mod stream;
mod stream_buffers;
mod stream_count_limit;
mod stream_window;
mod streams;
mod window_tuning;
mod write_coalescing;

pub use owner_events::{Arrival, InEvent, StreamRead, WriteRequest};

use super::data_frames::{Carried, DataId, OBJECT_COST, ProtocolError};
use super::ranges::RangeSet;
use crate::payload_kind::Payload;
use crate::role::Role;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use byway_wire::frame::{self, Frame};
use byway_wire::{Duration, Instant, ObjectId, StreamId, Writer};
use connection_window::ConnectionWindow;
use objects::Objects;
use out_of_order::{OutOfOrder, length};
pub use receive_limits::IncomingLimits;
use smallvec::SmallVec;
use snack_schedule::{Holes, Region};
use stream::Interest;
use streams::Streams;
use write_coalescing::{DiskEvent, WriteCoalescer};

/// Bytes of a SNACK frame without its ranges.
const SNACK_HEADER: usize = 1 + 8 + 2;
/// Bytes that each range of a SNACK frame takes at most.
const SNACK_RANGE: usize = 16;
/// Holes named per frame.
const SNACK_RANGES: usize = 32;

/// The receiving side of a connection: streams and objects.
#[derive(Debug)]
pub struct Incoming {
    payload: Payload,
    window: ConnectionWindow,
    streams: Streams,
    objects: Objects,
    coalescer: WriteCoalescer,
    out_of_order: OutOfOrder,
    holes: Holes,
    events: VecDeque<InEvent>,
    #[cfg(feature = "studies")]
    order_waits: order_waits::OrderWaits,
}

/// The bytes of a run within the data of a frame at `offset`.
fn bytes_of(data: &[u8], offset: u64, run: (u64, u64)) -> &[u8] {
    data.get((run.0 - offset) as usize..(run.1 - offset) as usize).unwrap_or_default()
}

/// The received ranges of a stream or object that is still wanted.
fn awaited<'a>(streams: &'a Streams, objects: &'a Objects, id: DataId) -> Option<&'a RangeSet> {
    match id {
        DataId::Stream(id) => streams.awaited(id),
        DataId::Object(id) => objects.awaited(id),
    }
}

impl Incoming {
    /// The receiving side of a connection that has received nothing yet.
    #[must_use]
    pub fn new(limits: IncomingLimits) -> Self {
        let limits = limits.sound();
        Self {
            payload: Payload::Bytes,
            window: ConnectionWindow::new(limits.memory as u64),
            streams: Streams::new(
                limits.streams as u64,
                (limits.stream_start as u64, limits.stream_window as u64),
                limits.memory as u64,
            ),
            objects: Objects::new(limits.objects),
            coalescer: WriteCoalescer::new(limits.memory),
            out_of_order: OutOfOrder::default(),
            holes: Holes::default(),
            events: VecDeque::new(),
            #[cfg(feature = "studies")]
            order_waits: order_waits::OrderWaits::default(),
        }
    }

    /// Sets whether objects are bytes or only a length. Call this before any arrives.
    #[must_use]
    pub const fn made_of(mut self, payload: Payload) -> Self {
        self.payload = payload;
        self
    }

    /// Sets this side's role, before anything arrives. From then on each stream of the peer counts
    /// against the peer's stream limit until both directions are over
    /// ([`on_streams_over`](Self::on_streams_over)). Without a role only the received direction
    /// matters.
    #[must_use]
    pub(crate) fn belonging_to(mut self, role: Role) -> Self {
        self.streams.belong_to(role);
        self
    }

    /// Notes that this side opened `count` streams, on which the peer may answer.
    pub(crate) const fn opened_here(&mut self, count: u64) {
        self.streams.opened_here(count);
    }

    /// Streams of the peer's that have ended, each returned once.
    pub(crate) fn take_ended(&mut self) -> impl Iterator<Item = StreamId> + use<> {
        self.streams.take_ended()
    }

    /// Enters that `count` streams of the peer's are over in both directions. The peer may open as
    /// many more.
    pub(crate) const fn on_streams_over(&mut self, count: u64) {
        self.streams.on_over(count);
    }

    /// Starts with a window of `least` bytes. The endpoint [changes](Self::set_window) it as other
    /// connections come and go.
    #[must_use]
    pub(crate) fn sharing(mut self, least: u64) -> Self {
        self.window.sharing(least);
        self.streams.set_memory(self.window.window());
        self.coalescer.set_window(self.memory_limit());
        self
    }

    /// Returns the memory that the connection was granted of a shared total, and [the memory that
    /// it can use](ConnectionWindow::share).
    pub(crate) fn share(&self) -> (u64, u64) {
        self.window.share()
    }

    /// Sets the connection's window in bytes. The limit that the peer has stays valid.
    pub(crate) fn set_window(&mut self, window: u64) {
        self.window.set_window(window);
        self.streams.set_memory(self.window.window());
        self.coalescer.set_window(self.memory_limit());
    }

    /// Whether the owner took enough for a larger window to be worth asking for.
    pub(crate) const fn wants_window(&self) -> bool {
        self.window.wants_window()
    }

    /// The window, in bytes of memory.
    const fn memory_limit(&self) -> usize {
        self.window.window() as usize
    }

    /// The first limits in bytes, for the handshake: of the connection, and of each stream.
    #[must_use]
    pub const fn initial_limits(&self) -> (u64, u64) {
        (self.window.window(), self.streams.window())
    }

    /// Bytes received and not yet read or written, with the costs of objects.
    #[must_use]
    pub const fn held(&self) -> u64 {
        self.window.held()
    }

    /// Bytes of streams and objects that arrived while an earlier byte is still missing: the number
    /// now, and the highest number so far. A receiver that delivers each stream and object in order
    /// needs this much memory.
    #[must_use]
    pub const fn out_of_order(&self) -> (u64, u64) {
        self.out_of_order.beyond()
    }

    /// How many frames of streams waited how long for bytes before them: whole milliseconds, and
    /// the number of frames. The last entry has all longer waits too.
    #[cfg(feature = "studies")]
    pub fn order_waits(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.order_waits.histogram()
    }

    /// Bytes of memory that data take: at most four times the limit. A scan over all streams.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.coalescer.memory() + self.streams.memory()
    }

    /// Distinct bytes of streams and objects received so far.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.window.bytes
    }
}

/// Handles frames from the peer.
impl Incoming {
    /// Handles a STREAM frame.
    pub fn on_stream(&mut self, now: Instant, frame: &frame::Stream<'_>) -> Result<(), ProtocolError> {
        let (id, start) = (frame.id, frame.offset);
        let end = start + frame.data.len() as u64;
        let Some((stream, buffers)) = self.streams.opened(id, &mut self.events)? else { return Ok(()) };
        let highest = stream.extent.received.end();
        stream.extent.check(end, frame.fin)?;
        if !stream.window.allows(end) {
            return Err(ProtocolError::new(ProtocolError::FLOW_CONTROL, "more data than the stream's limit"));
        }
        let runs = self.out_of_order.add(&mut stream.extent.received, start, end);
        #[cfg(feature = "studies")]
        self.order_waits.on_frame(now, id, &runs, stream.extent.received.prefix());
        self.window.receive(length(&runs), 0)?;
        if stream.interest == Interest::Wanted {
            let kept = length(&runs);
            for run in &runs {
                stream.keep(run.0, bytes_of(frame.data, start, *run), buffers);
            }
            let hole = stream.extent.received.prefix() < stream.extent.received.end();
            if stream.window.press(stream.held, hole) {
                self.holes.hurry(DataId::Stream(id));
            }
            if start > highest && end > start {
                self.holes.born(now, DataId::Stream(id), highest, start, stream.window.is_pressed());
            }
            if !stream.told && stream.is_readable() {
                stream.told = true;
                self.events.push_back(InEvent::StreamReadable(id));
            }
            self.streams.on_kept(kept);
        } else {
            self.window.take(length(&runs));
        }
        self.settle_stream(id);
        self.sweep_holes();
        self.check_ranges()
    }

    /// Handles a RESET_STREAM frame.
    pub fn on_reset_stream(&mut self, id: StreamId, code: u64) -> Result<(), ProtocolError> {
        let Some((stream, _)) = self.streams.opened(id, &mut self.events)? else { return Ok(()) };
        match stream.interest {
            Interest::Wanted => {
                stream.interest = Interest::Reset;
                let dropped = self.streams.discard(id);
                self.window.take(dropped);
                self.events.push_back(InEvent::StreamReset { id, code });
            }
            // The owner wanted no more of it: nobody needs to hear.
            Interest::Stopped(_) => stream.interest = Interest::ResetTold,
            Interest::Reset | Interest::ResetTold => {}
        }
        self.settle_stream(id);
        self.sweep_holes();
        Ok(())
    }

    /// Handles an OBJECT frame.
    pub fn on_object(&mut self, now: Instant, frame: &frame::Object<'_>) -> Result<(), ProtocolError> {
        let (id, start) = (frame.id, frame.offset);
        let end = start + frame.data.len() as u64;
        if !self.objects.lives(id) {
            if self.objects.is_closed(id) {
                return Ok(());
            }
            if let Some(forgotten) = self.objects.forgotten(id) {
                forgotten.extent.check(end, frame.fin)?;
                let runs = self.out_of_order.add_unwanted(&mut forgotten.extent.received, start, end);
                let cost = forgotten.cost();
                let complete = forgotten.extent.complete();
                return self.on_unwanted(id, length(&runs), cost, complete.is_some());
            }
            self.objects.check_room()?;
            self.window.receive(0, OBJECT_COST)?;
            if start == 0 && frame.fin {
                return self.whole_object(frame);
            }
        }
        let object = self.objects.begun(id);
        let highest = object.extent.received.end();
        object.extent.check(end, frame.fin)?;
        let runs = self.out_of_order.add(&mut object.extent.received, start, end);
        self.window.receive(length(&runs), 0)?;
        for run in &runs {
            match self.payload {
                Payload::Bytes => self.coalescer.keep(id, object, run.0, bytes_of(frame.data, start, *run)),
                Payload::Length => self.coalescer.count(id, run.0, run.1),
            }
        }
        if start > highest && end > start {
            self.holes.born(now, DataId::Object(id), highest, start, false);
        }
        if let Some(size) = object.extent.complete() {
            self.complete(id, size)?;
        }
        while self.coalescer.is_too_much(self.memory_limit()) && self.flush_oldest() {}
        self.sweep_holes();
        self.check_ranges()
    }

    /// Removes a stream if it has ended.
    fn settle_stream(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.take_over(id) {
            self.out_of_order.forget(&stream.extent.received);
        }
    }

    /// New bytes of an object that the owner wants no more of.
    fn on_unwanted(
        &mut self,
        id: ObjectId,
        bytes: u64,
        cost: u64,
        is_complete: bool,
    ) -> Result<(), ProtocolError> {
        self.window.receive(bytes, cost)?;
        self.window.take(bytes + cost);
        if is_complete {
            self.bury(id);
            return self.objects.check_closed();
        }
        self.check_ranges()
    }

    /// Forgets a forgotten object for good.
    fn bury(&mut self, id: ObjectId) {
        if let Some(extent) = self.objects.bury(id) {
            self.out_of_order.forget(&extent.received);
        }
    }

    /// Handles an object that fits into one frame, as small files do.
    fn whole_object(&mut self, frame: &frame::Object<'_>) -> Result<(), ProtocolError> {
        let size = frame.data.len() as u64;
        self.window.receive(size, 0)?;
        if self.payload == Payload::Length {
            self.coalescer.count(frame.id, 0, size);
        } else if !frame.data.is_empty() {
            self.coalescer.keep_whole(frame.id, frame.data);
        }
        self.complete(frame.id, size)
    }

    fn complete(&mut self, id: ObjectId, size: u64) -> Result<(), ProtocolError> {
        if let Some(object) = self.objects.complete(id) {
            self.out_of_order.forget(&object.extent.received);
            for (start, block) in object.blocks {
                self.coalescer.close(id, start, block);
            }
        }
        self.coalescer.complete(id, size);
        self.objects.check_closed()
    }

    fn check_ranges(&self) -> Result<(), ProtocolError> {
        self.out_of_order.check(self.streams.len() + self.objects.len(), self.memory_limit())
    }

    /// Ends the gathering of the block opened first; `false` if none is open.
    fn flush_oldest(&mut self) -> bool {
        let Some((id, start)) = self.coalescer.take_oldest() else { return false };
        let block = self.objects.take_block(id, start);
        debug_assert!(block.is_some(), "an open block at {start} that {id:?} has not");
        if let Some(block) = block {
            self.coalescer.close(id, start, block);
        }
        true
    }

    fn sweep_holes(&mut self) {
        let Self { holes, streams, objects, .. } = self;
        holes.sweep(|region| {
            awaited(streams, objects, region.id)
                .is_some_and(|received| !received.covers(region.start, region.end))
        });
    }
}

/// The owner's side: bytes to the disk, streams to the application, events.
impl Incoming {
    /// The next bytes for the disk, in no particular order.
    pub fn next_write(&mut self) -> Option<WriteRequest> {
        loop {
            match self.coalescer.next()? {
                DiskEvent::Write(write) => return Some(write),
                DiskEvent::Length(arrival) => self.window.take(arrival.length),
                DiskEvent::Complete { id, size } => {
                    self.events.push_back(InEvent::ObjectComplete { id, size })
                }
            }
        }
    }

    /// Returns the next range of an object's bytes that arrived, in no particular order. Used
    /// instead of [`Incoming::next_write`] in simulations whose packets leave out the bytes of
    /// objects ([`Payload::Length`]). Each call permits the sender as many new bytes as the range
    /// has.
    pub fn next_arrival(&mut self) -> Option<Arrival> {
        loop {
            match self.coalescer.next()? {
                DiskEvent::Length(arrival) => {
                    self.window.take(arrival.length);
                    return Some(arrival);
                }
                DiskEvent::Write(write) => self.written(write.data),
                DiskEvent::Complete { id, size } => {
                    self.events.push_back(InEvent::ObjectComplete { id, size })
                }
            }
        }
    }

    /// Makes [`Incoming::next_write`] also return blocks that are not full yet. Call this if no
    /// data arrives for a while, or before a checkpoint.
    pub fn flush(&mut self) {
        while self.flush_oldest() {}
    }

    /// The owner is done with a buffer of [`Incoming::next_write`] and gives it back, its length
    /// unchanged: the sender may send as much again.
    pub fn written(&mut self, buffer: Vec<u8>) {
        self.window.take(self.coalescer.written(buffer));
    }

    /// The next thing that the owner may want to know.
    pub fn next_event(&mut self) -> Option<InEvent> {
        let event = self.events.pop_front().or_else(|| {
            let (id, size) = self.coalescer.next_complete()?;
            Some(InEvent::ObjectComplete { id, size })
        })?;
        match event {
            InEvent::ObjectComplete { .. } => self.window.take(OBJECT_COST),
            InEvent::StreamReset { id, .. } => {
                self.streams.told_of_reset(id);
                self.settle_stream(id);
            }
            _ => {}
        }
        Some(event)
    }

    /// Whether [`Incoming::next_event`] has an event of a stream.
    pub(crate) fn has_news(&self) -> bool {
        !self.events.is_empty()
    }

    /// Reads a stream in order. `None`: there is no such stream. If no byte was read and the stream
    /// is not finished, [`InEvent::StreamReadable`] follows when bytes arrive.
    pub fn read(&mut self, id: StreamId, buffer: &mut [u8]) -> Option<StreamRead> {
        let (read, over) = self.streams.read(id, buffer)?;
        self.window.take(read.length as u64);
        if let Some(stream) = over {
            self.out_of_order.forget(&stream.extent.received);
        }
        Some(read)
    }

    /// Takes the next bytes of a stream without a copy. Return the buffer with
    /// [`Incoming::give_back`]. An empty buffer before the stream's end: the next bytes are
    /// missing, partly read, or fewer than `least`. Then call [`Incoming::read`]. `None`: there is
    /// no such stream.
    pub fn take(&mut self, id: StreamId, least: usize) -> Option<(Vec<u8>, StreamRead)> {
        let (piece, read, over) = self.streams.take(id, least)?;
        self.window.take(read.length as u64);
        if let Some(stream) = over {
            self.out_of_order.forget(&stream.extent.received);
        }
        Some((piece, read))
    }

    /// Takes back a buffer of [`Incoming::take`], for reuse.
    pub fn give_back(&mut self, buffer: Vec<u8>) {
        self.streams.give_back(buffer);
    }

    /// Stops a stream: drops its unread bytes, and sends the peer the code.
    pub fn stop(&mut self, id: StreamId, code: u64) {
        if let Some(dropped) = self.streams.stop(id, code) {
            self.window.take(dropped);
            self.settle_stream(id);
        }
    }

    /// Gives up an object that is not complete: bytes of it that still arrive are dropped. Buffers
    /// of it that the application already has must still be returned with [`Incoming::written`].
    pub fn forget_object(&mut self, id: ObjectId) {
        if self.objects.is_closed(id) || self.objects.forgotten(id).is_some() {
            return;
        }
        if let Some(received) = self.objects.awaited(id) {
            self.out_of_order.give_up(received);
        }
        if let Some(object) = self.objects.forget(id) {
            self.window.take(OBJECT_COST + self.coalescer.forget(id, object.blocks));
        }
        if let Some(oldest) = self.objects.one_too_many() {
            self.bury(oldest);
        }
    }
}

/// Writes frames for the peer: limits, refusals and holes.
impl Incoming {
    /// Whether [`Incoming::fill`] would write something into an empty packet.
    #[must_use]
    pub fn wants_to_send(&self) -> bool {
        self.window.is_due() || self.streams.wants_to_send()
    }

    /// Writes refusals (STOP_SENDING) and limits (such as MAX_DATA) that the peer does not know
    /// yet, as many as fit, and lists them in `carried`. Window sizes depend on `rtt`: the time
    /// from sending a limit until new data arrives.
    pub fn fill(
        &mut self,
        now: Instant,
        rtt: Duration,
        writer: &mut Writer<'_>,
        carried: &mut SmallVec<[Carried; 2]>,
    ) {
        if self.window.is_due() && writer.room() > 8 {
            Frame::MaxData(self.window.tell()).write(writer);
            carried.push(Carried::MaxData);
        }
        self.streams.fill(now, rtt, writer, carried);
    }

    /// Handles a lost packet: its limits and refusals are sent again with present values, if they
    /// still matter.
    pub fn on_lost(&mut self, carried: &Carried) {
        match *carried {
            Carried::MaxData => self.window.tell_again(),
            Carried::MaxStreams => self.streams.tell_places_again(),
            Carried::MaxStreamData(id) => self.streams.tell_limit_again(id),
            Carried::StopSending(id) => self.streams.refuse_again(id),
            _ => {}
        }
    }

    /// When [`Incoming::write_snacks`] next reports a hole (missing bytes): `tau` after its
    /// discovery, and again each `tau` (mPath, section 2.2). A new hole is reported at once if the
    /// window of its stream or connection is over half full.
    #[must_use]
    pub fn snack_deadline(&self, tau: Duration) -> Option<Instant> {
        self.holes.deadline(tau, self.window.is_half_full())
    }

    /// Writes the holes that are due at `now`. Returns whether any was due. Holes that do not fit
    /// stay due.
    pub fn write_snacks(&mut self, now: Instant, tau: Duration, writer: &mut Writer<'_>) -> bool {
        let (all, mut wrote) = (self.window.is_half_full(), false);
        while let Some(region) = self.holes.take_due(now, tau, all) {
            let gaps = self.gaps(&region);
            if gaps.is_empty() {
                continue;
            }
            let room = writer.room().saturating_sub(SNACK_HEADER) / SNACK_RANGE;
            let named = gaps.get(..room).unwrap_or(&gaps);
            let Some(&(_, end)) = named.last() else {
                self.holes.put_back(region);
                break;
            };
            match region.id {
                DataId::Stream(id) => frame::write_snack_stream(writer, id, named),
                DataId::Object(id) => frame::write_snack_object(writer, id, named),
            }
            wrote = true;
            self.holes.named(now, Region { end, ..region });
            if end < region.end {
                self.holes.put_back(Region { start: end, ..region });
            }
        }
        wrote
    }

    /// The first `SNACK_RANGES` holes that are still open in a region.
    fn gaps(&self, region: &Region) -> SmallVec<[(u64, u64); SNACK_RANGES]> {
        awaited(&self.streams, &self.objects, region.id)
            .into_iter()
            .flat_map(|received| received.gaps(region.start, region.end))
            .take(SNACK_RANGES)
            .collect()
    }
}

#[cfg(test)]
mod tests;
