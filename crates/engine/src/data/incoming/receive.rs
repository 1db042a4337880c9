//! Frames from the peer: checked, counted, and put where they belong.

use super::objects::Block;
use super::streams::{InStream, Interest};
use super::{Arrival, Forgotten, InEvent, InObject, Incoming, Ready, WriteRequest};
use crate::data::carried::{DataId, OBJECT_COST, ProtocolError};
use crate::data::ranges::RangeSet;
use crate::payload::Payload;
use alloc::collections::BTreeMap;
use byway_wire::{Instant, ObjectId, StreamId, frame};
use smallvec::SmallVec;

/// Ranges beyond one for each stream and object that any peer may make us remember.
const RANGES: usize = 16 << 10;
/// The same for the ids of streams and objects that are over: 4 MiB of memory.
const CLOSED: usize = 256 << 10;

/// The runs of a frame that are new: nearly always one.
type Runs = SmallVec<[(u64, u64); 4]>;

/// Checks a frame's end against the end that is known, and learns it.
fn check_end(size: &mut Option<u64>, highest: u64, end: u64, fin: bool) -> Result<(), ProtocolError> {
    const fn wrong(reason: &'static str) -> Result<(), ProtocolError> {
        Err(ProtocolError::new(ProtocolError::FINAL_SIZE, reason))
    }
    match *size {
        Some(known) if end > known => wrong("data beyond the end"),
        Some(known) if fin && end != known => wrong("two different ends"),
        None if fin && end < highest => wrong("an end before data already received"),
        None if fin => {
            *size = Some(end);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Adds a frame's bytes to what is known; returns the new runs, and keeps `total` ranges and the bytes `beyond` holes.
fn add(received: &mut RangeSet, total: &mut usize, beyond: &mut (u64, u64), start: u64, end: u64) -> Runs {
    let mut runs = Runs::new();
    let in_order = received.prefix();
    *total -= received.count();
    let new = received.insert_each(start, end, |from, to| runs.push((from, to)));
    *total += received.count();
    beyond.0 = (beyond.0 + new).saturating_sub(received.prefix() - in_order);
    beyond.1 = beyond.1.max(beyond.0);
    runs
}

/// Bytes beyond holes in what arrived of something that is no more waited for.
pub(super) fn beyond(received: &RangeSet) -> u64 {
    received.iter().map(|(start, end)| end - start).sum::<u64>() - received.prefix()
}

fn length(runs: &Runs) -> u64 {
    runs.iter().map(|(start, end)| end - start).sum()
}

/// The bytes of a run within the data of a frame at `offset`.
fn bytes_of(data: &[u8], offset: u64, run: (u64, u64)) -> &[u8] {
    data.get((run.0 - offset) as usize..(run.1 - offset) as usize).unwrap_or_default()
}

impl Incoming {
    /// A STREAM frame.
    pub fn on_stream(&mut self, now: Instant, frame: &frame::Stream<'_>) -> Result<(), ProtocolError> {
        let (id, start) = (frame.id, frame.offset);
        let end = start + frame.data.len() as u64;
        let Some(stream) = self.stream(id)? else { return Ok(()) };
        let highest = stream.received.end();
        check_end(&mut stream.size, highest, end, frame.fin)?;
        if !stream.window.allows(end) {
            return Err(ProtocolError::new(ProtocolError::FLOW_CONTROL, "more data than the stream's limit"));
        }
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        let runs = add(&mut stream.received, &mut self.ranges, &mut self.beyond, start, end);
        self.account.receive(length(&runs), 0)?;
        if stream.interest == Interest::Wanted {
            for run in &runs {
                stream.keep(run.0, bytes_of(frame.data, start, *run));
            }
            let hole = stream.received.prefix() < stream.received.end();
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
        } else {
            self.account.take(length(&runs));
        }
        self.settle_stream(id);
        self.check_ranges()
    }

    /// A RESET_STREAM frame.
    pub fn on_reset_stream(&mut self, id: StreamId, code: u64) -> Result<(), ProtocolError> {
        let Some(stream) = self.stream(id)? else { return Ok(()) };
        match stream.interest {
            Interest::Wanted => {
                stream.interest = Interest::Reset;
                let held = stream.discard();
                self.account.take(held);
                self.events.push_back(InEvent::StreamReset { id, code });
            }
            // The owner wanted no more of it: nobody needs to hear.
            Interest::Stopped(_) => stream.interest = Interest::ResetTold,
            Interest::Reset | Interest::ResetTold => {}
        }
        self.settle_stream(id);
        Ok(())
    }

    /// An OBJECT frame.
    pub fn on_object(&mut self, now: Instant, frame: &frame::Object<'_>) -> Result<(), ProtocolError> {
        let (id, start) = (frame.id, frame.offset);
        let end = start + frame.data.len() as u64;
        if !self.objects.contains_key(&id) {
            if self.closed_objects.covers(id.0.into(), u64::from(id.0) + 1) {
                return Ok(());
            }
            if self.forgotten.contains_key(&id) {
                return self.on_forgotten(frame);
            }
            if self.objects.len() >= self.limits.objects {
                return Err(ProtocolError::new(
                    ProtocolError::STREAM_LIMIT,
                    "more objects at once than allowed",
                ));
            }
            self.account.receive(0, OBJECT_COST)?;
            if start == 0 && frame.fin {
                return self.whole_object(frame);
            }
            self.objects.insert(id, InObject::default());
        }
        let Some(object) = self.objects.get_mut(&id) else { return Ok(()) };
        let highest = object.received.end();
        check_end(&mut object.size, highest, end, frame.fin)?;
        let runs = add(&mut object.received, &mut self.ranges, &mut self.beyond, start, end);
        self.account.receive(length(&runs), 0)?;
        for run in &runs {
            match self.payload {
                Payload::Bytes => self.gather(id, run.0, bytes_of(frame.data, start, *run)),
                Payload::Length => self.arrived(id, run.0, run.1),
            }
        }
        if start > highest && end > start {
            self.holes.born(now, DataId::Object(id), highest, start, false);
        }
        if let Some(size) =
            self.objects.get(&id).filter(|object| object.is_complete()).and_then(|object| object.size)
        {
            self.complete(id, size)?;
        }
        self.limit_gathering();
        self.sweep_holes();
        self.check_ranges()
    }

    /// The stream, opened if it is new; `None` if it is over.
    fn stream(&mut self, id: StreamId) -> Result<Option<&mut InStream>, ProtocolError> {
        if !self.streams.contains_key(&id) {
            let half = u64::from(id.0 / 2);
            if self.closed_streams[usize::from(id.0 % 2 == 1)].covers(half, half + 1) {
                return Ok(None);
            }
            if self.streams.len() >= self.limits.streams {
                return Err(ProtocolError::new(
                    ProtocolError::STREAM_LIMIT,
                    "more streams at once than allowed",
                ));
            }
            if self.closed_streams.iter().any(|closed| closed.count() > CLOSED) {
                return Err(ProtocolError::new(ProtocolError::SCATTERED, "stream ids too scattered"));
            }
            self.streams.insert(id, InStream::new(self.limits.stream_window as u64));
            self.events.push_back(InEvent::StreamOpened(id));
        }
        Ok(self.streams.get_mut(&id))
    }

    /// Forgets a stream that is over.
    fn settle_stream(&mut self, id: StreamId) {
        if self.streams.get(&id).is_some_and(InStream::is_over) {
            self.close_stream(id);
        }
        self.sweep_holes();
    }

    pub(super) fn close_stream(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.remove(&id) {
            self.ranges -= stream.received.count();
            let half = u64::from(id.0 / 2);
            self.closed_streams[usize::from(id.0 % 2 == 1)].insert(half, half + 1);
        }
    }

    fn on_forgotten(&mut self, frame: &frame::Object<'_>) -> Result<(), ProtocolError> {
        let Self { forgotten, account, ranges, .. } = self;
        let Some(object) = forgotten.get_mut(&frame.id) else { return Ok(()) };
        let end = frame.offset + frame.data.len() as u64;
        check_end(&mut object.size, object.received.end(), end, frame.fin)?;
        let runs = add(&mut object.received, ranges, &mut (0, 0), frame.offset, end);
        let cost = if object.begun { 0 } else { OBJECT_COST };
        object.begun = true;
        account.receive(length(&runs), cost)?;
        account.take(length(&runs) + cost);
        if object.size.is_some_and(|size| object.received.covers(0, size)) {
            self.bury(frame.id);
            return self.check_closed();
        }
        self.check_ranges()
    }

    /// Forgets a forgotten object for good.
    pub(super) fn bury(&mut self, id: ObjectId) {
        if let Some(Forgotten { received, .. }) = self.forgotten.remove(&id) {
            self.ranges -= received.count();
            self.closed_objects.insert(id.0.into(), u64::from(id.0) + 1);
        }
    }

    /// An object in one frame: most of ten thousand small ones.
    fn whole_object(&mut self, frame: &frame::Object<'_>) -> Result<(), ProtocolError> {
        self.account.receive(frame.data.len() as u64, 0)?;
        if self.payload == Payload::Length {
            self.arrived(frame.id, 0, frame.data.len() as u64);
        } else if !frame.data.is_empty() {
            let data = self.pool.exact(frame.data);
            self.ready.push_back(Ready::Write(WriteRequest { object: frame.id, offset: 0, data }));
        }
        self.complete(frame.id, frame.data.len() as u64)
    }

    fn complete(&mut self, id: ObjectId, size: u64) -> Result<(), ProtocolError> {
        if let Some(object) = self.objects.remove(&id) {
            self.ranges -= object.received.count();
            self.close_blocks(id, object.blocks);
        }
        self.ready.push_back(Ready::Complete { id, size });
        self.closed_objects.insert(id.0.into(), u64::from(id.0) + 1);
        self.check_closed()
    }

    fn check_closed(&self) -> Result<(), ProtocolError> {
        if self.closed_objects.count() > CLOSED {
            return Err(ProtocolError::new(ProtocolError::SCATTERED, "object ids too scattered"));
        }
        Ok(())
    }

    fn check_ranges(&self) -> Result<(), ProtocolError> {
        let fair = self.streams.len() + self.objects.len() + self.forgotten.len();
        if self.ranges > fair + RANGES.max(self.limits.memory / 512) {
            return Err(ProtocolError::new(ProtocolError::SCATTERED, "data too scattered"));
        }
        Ok(())
    }

    /// New bytes of an object that is only a length: told with those before if they follow them.
    fn arrived(&mut self, object: ObjectId, start: u64, end: u64) {
        match self.ready.back_mut() {
            Some(Ready::Length(last)) if last.object == object && last.offset + last.length == start => {
                last.length += end - start;
            }
            _ if end > start => {
                self.ready.push_back(Ready::Length(Arrival { object, offset: start, length: end - start }));
            }
            _ => {}
        }
    }

    /// Copies new bytes of an object into the blocks that gather them.
    fn gather(&mut self, id: ObjectId, mut start: u64, mut bytes: &[u8]) {
        let Self { objects, pool, open, ready, serial, gathered, gathering, .. } = self;
        let Some(object) = objects.get_mut(&id) else { return };
        while !bytes.is_empty() {
            if object.block_at(start).is_none() {
                let end = object.block_end(start, pool.block() as u64);
                let Some(buffer) = pool.ahead((end - start) as usize) else {
                    // No memory ahead of the bytes: they go to the disk as they came.
                    let (now, later) = bytes.split_at(bytes.len().min((end - start) as usize));
                    ready.push_back(Ready::Write(WriteRequest {
                        object: id,
                        offset: start,
                        data: pool.exact(now),
                    }));
                    (start, bytes) = (start + now.len() as u64, later);
                    continue;
                };
                *gathering += buffer.capacity();
                *serial += 1;
                open.insert(*serial, (id, start));
                object.blocks.insert(start, Block::new(end, *serial, buffer));
            }
            let Some((first, block)) = object.block_at(start) else { return };
            let (now, later) = bytes.split_at(bytes.len().min((block.end - start) as usize));
            block.put((start - first) as usize, now);
            *gathered += now.len() as u64;
            (start, bytes) = (start + now.len() as u64, later);
            if first + block.filled == block.end
                && let Some(block) = object.blocks.remove(&first)
            {
                open.remove(&block.serial);
                *gathered -= block.filled;
                *gathering -= block.data.capacity();
                block.close(pool, |at, data| {
                    ready.push_back(Ready::Write(WriteRequest { object: id, offset: first + at, data }));
                });
            }
        }
    }

    /// Ends the gathering of blocks that are out of the books of their object already.
    fn close_blocks(&mut self, id: ObjectId, blocks: BTreeMap<u64, Block>) {
        let Self { pool, open, ready, gathered, gathering, .. } = self;
        for (start, block) in blocks {
            open.remove(&block.serial);
            *gathered -= block.filled;
            *gathering -= block.data.capacity();
            block.close(pool, |at, data| {
                ready.push_back(Ready::Write(WriteRequest { object: id, offset: start + at, data }));
            });
        }
    }

    /// Ends the gathering of the block opened first; `false` if none is open.
    pub(super) fn flush_oldest(&mut self) -> bool {
        let Some((_, (id, start))) = self.open.pop_first() else { return false };
        if let Some(block) = self.objects.get_mut(&id).and_then(|object| object.blocks.remove(&start)) {
            self.close_blocks(id, BTreeMap::from([(start, block)]));
        }
        true
    }

    /// Blocks that wait for holes must not hold so much of the window that the sender never fills them, nor so much
    /// memory that others cannot gather.
    fn limit_gathering(&mut self) {
        let most = self.limits.memory / 2;
        while (self.gathered > most as u64 / 2 || self.gathering > most) && self.flush_oldest() {}
    }

    fn sweep_holes(&mut self) {
        let Self { holes, streams, objects, .. } = self;
        holes.sweep(|region| {
            let received = match region.id {
                DataId::Stream(id) => {
                    streams.get(&id).filter(|s| s.interest == Interest::Wanted).map(|s| &s.received)
                }
                DataId::Object(id) => objects.get(&id).map(|object| &object.received),
            };
            received.is_some_and(|received| !received.covers(region.start, region.end))
        });
    }
}
