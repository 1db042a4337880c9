//! The owner's side: bytes to the disk, streams to the application, events.

use super::streams::Interest;
use super::{Arrival, Forgotten, InEvent, Incoming, Ready, StreamRead, WriteRequest};
use crate::data::carried::OBJECT_COST;
use alloc::vec::Vec;
use byway_wire::{ObjectId, StreamId};

/// Objects that the owner wants no more of and that may still send: beyond so many, the oldest is not counted further.
const FORGOTTEN: usize = 64 << 10;

impl Incoming {
    /// The next bytes for the disk, in no particular order.
    pub fn next_write(&mut self) -> Option<WriteRequest> {
        loop {
            match self.ready.pop_front()? {
                Ready::Write(write) => {
                    self.with_owner += write.data.len() as u64;
                    return Some(write);
                }
                Ready::Length(arrival) => self.account.take(arrival.length),
                Ready::Complete { id, size } => self.events.push_back(InEvent::ObjectComplete { id, size }),
            }
        }
    }

    /// The next bytes that arrived of objects that are [only a length](crate::config::Payload::Length), in no particular order:
    /// in place of [`Incoming::next_write`]. With this the sender may send as much again; who does not ask stops it.
    pub fn next_arrival(&mut self) -> Option<Arrival> {
        loop {
            match self.ready.pop_front()? {
                Ready::Length(arrival) => {
                    self.account.take(arrival.length);
                    return Some(arrival);
                }
                Ready::Write(write) => self.written(write.data),
                Ready::Complete { id, size } => self.events.push_back(InEvent::ObjectComplete { id, size }),
            }
        }
    }

    /// Makes [`Incoming::next_write`] hand out also what is still being gathered: when nothing more comes for a while, or
    /// the owner wants to write a checkpoint.
    pub fn flush(&mut self) {
        while self.flush_oldest() {}
    }

    /// The owner is done with a buffer of [`Incoming::next_write`] and gives it back, its length unchanged: the sender
    /// may send as much again.
    pub fn written(&mut self, buffer: Vec<u8>) {
        let amount = (buffer.len() as u64).min(self.with_owner);
        self.with_owner -= amount;
        self.account.take(amount);
        self.pool.take_back(buffer);
    }

    /// The next thing that the owner may want to know.
    pub fn next_event(&mut self) -> Option<InEvent> {
        if self.events.is_empty()
            && let Some(Ready::Complete { id, size }) = self.ready.front()
        {
            self.events.push_back(InEvent::ObjectComplete { id: *id, size: *size });
            self.ready.pop_front();
        }
        let event = self.events.pop_front()?;
        match event {
            InEvent::ObjectComplete { .. } => self.account.take(OBJECT_COST),
            InEvent::StreamReset { id, .. } => {
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.interest = Interest::ResetTold;
                    if stream.is_over() {
                        self.close_stream(id);
                    }
                }
            }
            _ => {}
        }
        Some(event)
    }

    /// Whether [`Incoming::next_event`] has something of a stream to tell.
    pub(crate) fn has_news(&self) -> bool {
        !self.events.is_empty()
    }

    /// Reads a stream in order. `None`: there is no such stream (any more). Nothing read and not finished: nothing is
    /// there now, [`InEvent::StreamReadable`] follows.
    pub fn read(&mut self, id: StreamId, buffer: &mut [u8]) -> Option<StreamRead> {
        let stream = self.streams.get_mut(&id).filter(|stream| stream.interest == Interest::Wanted)?;
        let length = stream.copy(buffer);
        self.account.take(length as u64);
        let finished = stream.is_read();
        if stream.readable() == 0 {
            stream.told = false;
        }
        if finished {
            self.close_stream(id);
            return Some(StreamRead { length, finished });
        }
        if stream.window.on_read(stream.read, stream.held, stream.size.is_some()) {
            self.stream_limits.push_back(id);
        }
        Some(StreamRead { length, finished })
    }

    /// The owner wants no more of a stream: what is there is dropped, and the peer is told.
    pub fn stop(&mut self, id: StreamId, code: u64) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.interest == Interest::Wanted)
        else {
            return;
        };
        stream.interest = Interest::Stopped(code);
        let held = stream.discard();
        self.account.take(held);
        if stream.is_over() {
            self.close_stream(id); // all is here: nothing to refuse
        } else {
            self.stops.push_back(id);
        }
    }

    /// The owner wants no more of an object that is not complete: what comes of it is dropped. What the owner was
    /// handed already it gives back as always.
    pub fn forget_object(&mut self, id: ObjectId) {
        if self.closed_objects.covers(id.0.into(), u64::from(id.0) + 1) || self.forgotten.contains_key(&id) {
            return;
        }
        let mut forgotten = Forgotten::default();
        if let Some(object) = self.objects.remove(&id) {
            self.account.take(OBJECT_COST);
            self.beyond.0 -= super::receive::beyond(&object.received).min(self.beyond.0);
            for block in object.blocks.into_values() {
                self.open.remove(&block.serial);
                self.gathered -= block.filled;
                self.gathering -= block.data.capacity();
                self.account.take(block.filled);
                self.pool.take_back(block.data);
            }
            let Self { ready, account, pool, .. } = self;
            ready.retain_mut(|ready| match ready {
                Ready::Write(write) if write.object == id => {
                    account.take(write.data.len() as u64);
                    pool.take_back(core::mem::take(&mut write.data));
                    false
                }
                Ready::Length(arrival) if arrival.object == id => {
                    account.take(arrival.length);
                    false
                }
                _ => true,
            });
            forgotten = Forgotten { received: object.received, size: object.size, begun: true };
        }
        self.forgotten.insert(id, forgotten);
        if self.forgotten.len() > FORGOTTEN
            && let Some(oldest) = self.forgotten.keys().next().copied()
        {
            self.bury(oldest);
        }
    }
}
