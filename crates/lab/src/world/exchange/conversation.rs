//! The application of one session: it sends and receives objects, streams and datagrams, and checks
//! that the received data equal the sent ones.

use super::content::ContentId;
use super::disk::SharedState;
use crate::setup::{EndChoice, ExchangeOptions, StreamSetup};
use byway_engine::connection::Connection;
use byway_engine::data::InEvent;
use byway_wire::time::nanos;
use byway_wire::{Duration, Instant, ObjectId, StreamId};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Time between two datagrams.
const DATAGRAM_INTERVAL: Duration = Duration::from_millis(20);
/// Bytes of a datagram: the number, and content.
const DATAGRAM_LEN: usize = 200;
const NUMBER_LEN: usize = 4;
/// Bytes that an application writes or reads at once.
const CHUNK_LEN: usize = 8 << 10;
/// The least time between two looks of an application that reads or writes at a rate.
const RATE_INTERVAL: Duration = Duration::from_millis(20);
/// The code with which streams are reset.
const RESET_CODE: u64 = 7;

/// The rate limit of an application that reads or writes.
#[derive(Debug)]
pub(super) struct RateLimit {
    bits_per_second: Option<u64>,
    /// Bytes that may be moved; below zero: bytes that were moved early.
    allowance: i64,
    counted_at: Instant,
}

impl RateLimit {
    pub(super) const fn new(bits_per_second: Option<u64>) -> Self {
        Self { bits_per_second, allowance: 0, counted_at: Instant::ZERO }
    }

    /// Returns how many of `wanted` bytes the limit permits at `now`.
    fn grant(&mut self, now: Instant, wanted: usize) -> usize {
        let Some(rate) = self.bits_per_second else { return wanted };
        let elapsed = now.since(self.counted_at).min(Duration::from_secs(60));
        let more = u128::from(rate) * u128::from(nanos(elapsed)) / 8_000_000_000;
        if more > 0 {
            // A second's worth at most, but as much as one call moves.
            let most = i64::try_from(rate / 8).unwrap_or(i64::MAX).max(CHUNK_LEN as i64);
            let more = i64::try_from(more).unwrap_or(most);
            self.allowance = self.allowance.saturating_add(more).min(most);
            self.counted_at = now;
        }
        usize::try_from(self.allowance).unwrap_or(0).min(wanted)
    }

    const fn spend(&mut self, bytes: usize) {
        self.allowance = self.allowance.saturating_sub(bytes as i64);
    }

    const fn is_limited(&self) -> bool {
        self.bits_per_second.is_some()
    }
}

/// The direction of a stream that this side writes.
#[derive(Debug)]
struct StreamWriter {
    content: ContentId,
    written: u64,
    length: u64,
    reset_after: Option<u64>,
}

/// The direction of a stream that this side reads.
#[derive(Debug)]
struct StreamReader {
    content: ContentId,
    read: u64,
    length: u64,
}

/// The application's side of one session.
#[derive(Debug)]
pub(super) struct Conversation {
    options: Rc<ExchangeOptions>,
    state: SharedState,
    side: EndChoice,
    begun: bool,
    /// The number of streams that this side has opened.
    opened: usize,
    writers: BTreeMap<StreamId, StreamWriter>,
    readers: BTreeMap<StreamId, StreamReader>,
    /// Streams of which something can be read.
    readable: BTreeSet<StreamId>,
    /// Streams whose answer is here, or will never be.
    answered: BTreeSet<StreamId>,
    /// Bytes of each incomplete object that came.
    arrived: BTreeMap<ObjectId, u64>,
    datagrams_sent: u32,
    datagram_due: Instant,
    datagrams_seen: BTreeSet<u32>,
    /// Whether the application waits for its rate limit.
    waits: bool,
}

impl Conversation {
    pub(super) fn new(options: &Rc<ExchangeOptions>, state: &SharedState, side: EndChoice) -> Self {
        Self {
            options: Rc::clone(options),
            state: state.clone(),
            side,
            begun: false,
            opened: 0,
            writers: BTreeMap::new(),
            readers: BTreeMap::new(),
            readable: BTreeSet::new(),
            answered: BTreeSet::new(),
            arrived: BTreeMap::new(),
            datagrams_sent: 0,
            datagram_due: Instant::ZERO,
            datagrams_seen: BTreeSet::new(),
            waits: false,
        }
    }

    const fn is_back(&self) -> bool {
        matches!(self.side, EndChoice::Receiver)
    }

    /// Reads and writes as much as possible now. `reads`: whether this side's application reads at
    /// all.
    pub(super) fn drive(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        writing: &mut RateLimit,
        reading: &mut RateLimit,
        reads: bool,
    ) {
        self.waits = false;
        if !core::mem::replace(&mut self.begun, true) {
            self.begin(now, connection);
        }
        self.give_objects(connection);
        self.open_streams(connection);
        if reads {
            self.take_objects(now, connection, reading);
            self.take_events(connection);
            self.read_streams(now, connection, reading);
        }
        self.write_streams(now, connection, writing);
        while connection.outgoing().next_event().is_some() {}
        self.send_datagrams(now, connection);
        self.take_datagrams(connection);
        let memory = connection.incoming().memory() as u64;
        if self.is_back() {
            self.state.note(|notes| notes.most_memory = notes.most_memory.max(memory));
        }
    }

    /// When the application has something to do though nothing came.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let datagram =
            (self.begun && self.datagrams_sent < self.options.datagrams).then_some(self.datagram_due);
        let rate = self.waits.then_some(now + RATE_INTERVAL);
        [datagram, rate].into_iter().flatten().min()
    }

    /// Whether this side has sent everything and has all answers.
    pub(super) fn is_done(&self, connection: &mut Connection) -> bool {
        self.begun
            && self.opened == self.options.streams.len()
            && self.writers.is_empty()
            && self.answered.len() == self.options.streams.len()
            && self.datagrams_sent >= self.options.datagrams
            && connection.outgoing().all_acked()
    }

    /// Offers the objects that the peer does not have on its disk.
    fn begin(&mut self, now: Instant, connection: &mut Connection) {
        for (number, size) in self.state.lacking(&self.options, self.side) {
            connection.outgoing().add_object(ObjectId(number), size);
        }
        self.datagram_due = now;
    }

    fn give_objects(&self, connection: &mut Connection) {
        let out = connection.outgoing();
        while let Some(read) = out.next_read() {
            let content = ContentId::Object { number: read.object.0, back: self.is_back() };
            out.provide(read.object, read.offset, content.bytes(read.offset, read.length));
        }
    }

    fn open_streams(&mut self, connection: &mut Connection) {
        if self.is_back() {
            return;
        }
        while let Some(setup) = self.options.streams.get(self.opened).copied()
            && let Some(id) = connection.outgoing().open_next()
        {
            let number = self.opened as u32;
            self.opened += 1;
            self.writers.insert(id, writer(number, setup, false));
            self.readers.insert(id, reader(number, setup, true));
        }
    }

    /// Returns the index of a stream in the exchange, and its options. The sender opens streams
    /// with even indices.
    fn setup(&self, id: StreamId) -> Option<(u32, StreamSetup)> {
        let number = id.0 / 2;
        Some((number, *self.options.streams.get(number as usize)?))
    }

    fn take_objects(&mut self, now: Instant, connection: &mut Connection, reading: &mut RateLimit) {
        let incoming = connection.incoming();
        incoming.flush();
        loop {
            if reading.grant(now, 1) == 0 {
                self.waits = true;
                break;
            }
            let Some(write) = incoming.next_write() else { break };
            let content = ContentId::Object { number: write.object.0, back: !self.is_back() };
            if !content.is(write.offset, &write.data) {
                self.state.blame(format!("bytes of {content:?} at {} differ", write.offset));
            }
            let arrived = self.arrived.entry(write.object).or_default();
            *arrived += write.data.len() as u64;
            if self.side == EndChoice::Receiver {
                self.state.on_part(write.object.0, *arrived);
            }
            reading.spend(write.data.len());
            incoming.written(write.data);
        }
    }

    fn take_events(&mut self, connection: &mut Connection) {
        while let Some(event) = connection.incoming().next_event() {
            match event {
                InEvent::ObjectComplete { id, size } => self.complete(id, size),
                InEvent::StreamOpened(id) => self.answer(id),
                InEvent::StreamReadable(id) => {
                    self.readable.insert(id);
                }
                InEvent::StreamReset { id, code } => {
                    self.readers.remove(&id);
                    self.readable.remove(&id);
                    self.answered.insert(id);
                    let known = self.setup(id);
                    if code != RESET_CODE || known.is_none_or(|(_, setup)| setup.reset_after.is_none()) {
                        self.state.blame(format!("stream {} was reset with {code}", id.0));
                    }
                    if self.writers.remove(&id).is_some() {
                        connection.outgoing().reset(id, RESET_CODE);
                    }
                }
            }
        }
    }

    fn complete(&mut self, id: ObjectId, size: u64) {
        let sizes = if self.is_back() { &self.options.objects } else { &self.options.objects_back };
        let arrived = self.arrived.remove(&id).unwrap_or_default();
        if sizes.get(id.0 as usize) != Some(&size) || arrived != size {
            self.state.blame(format!("object {} is complete with {arrived} bytes of {size}", id.0));
        }
        self.state.on_whole(id.0, self.side);
    }

    /// Handles a stream that the peer opened: reads it, and answers on it.
    fn answer(&mut self, id: StreamId) {
        if !self.is_back() {
            return;
        }
        let Some((number, setup)) = self.setup(id) else {
            return self.state.blame(format!("nobody opened stream {}", id.0));
        };
        self.readers.insert(id, reader(number, setup, false));
        if !setup.in_turn {
            self.writers.insert(id, writer(number, setup, true));
        }
    }

    fn read_streams(&mut self, now: Instant, connection: &mut Connection, reading: &mut RateLimit) {
        let mut buffer = [0; CHUNK_LEN];
        for id in self.readable.clone() {
            loop {
                let room = reading.grant(now, buffer.len());
                if room == 0 {
                    self.waits = true;
                    return;
                }
                let Some(space) = buffer.get_mut(..room) else { return };
                let Some(read) = connection.incoming().read(id, space) else {
                    self.readable.remove(&id);
                    break;
                };
                reading.spend(read.length);
                if !self.check(id, buffer.get(..read.length).unwrap_or_default(), read.finished) {
                    self.readable.remove(&id);
                    break;
                }
                if read.finished || read.length == 0 {
                    self.readable.remove(&id);
                    break;
                }
            }
        }
    }

    /// Checks bytes that were read from a stream. Returns whether the stream is known.
    fn check(&mut self, id: StreamId, bytes: &[u8], is_end: bool) -> bool {
        let Some(known) = self.readers.get_mut(&id) else {
            self.state.blame(format!("nobody reads stream {}", id.0));
            return false;
        };
        if !known.content.is(known.read, bytes) {
            self.state.blame(format!("bytes of {:?} at {} differ", known.content, known.read));
        }
        known.read += bytes.len() as u64;
        let (read, length) = (known.read, known.length);
        let Some((number, setup)) = self.setup(id) else { return false };
        if self.is_back() && setup.reset_after.is_none() {
            self.state.on_stream(number, read);
        }
        if is_end {
            self.readers.remove(&id);
            self.answered.insert(id);
            if read != length {
                self.state.blame(format!("stream {} ended after {read} bytes of {length}", id.0));
            }
            if self.is_back() && setup.in_turn {
                self.writers.insert(id, writer(number, setup, true));
            }
        }
        true
    }

    fn write_streams(&mut self, now: Instant, connection: &mut Connection, writing: &mut RateLimit) {
        let back = self.is_back();
        let out = connection.outgoing();
        let (readers, answered, readable) = (&mut self.readers, &mut self.answered, &mut self.readable);
        let mut resets = Vec::new();
        let mut waits = false;
        self.writers.retain(|id, writer| {
            if back && !out.open_stream(*id) {
                return true;
            }
            let end = writer.reset_after.map_or(writer.length, |after| after.min(writer.length));
            while writer.written < end {
                let wanted = usize::try_from(end - writer.written).unwrap_or(usize::MAX).min(CHUNK_LEN);
                let granted = writing.grant(now, wanted);
                if granted == 0 {
                    waits = writing.is_limited();
                    return true;
                }
                let taken = out.write(*id, &writer.content.bytes(writer.written, granted));
                writing.spend(taken);
                writer.written += taken as u64;
                if taken < granted {
                    return true;
                }
            }
            if writer.reset_after.is_some() {
                out.reset(*id, RESET_CODE);
                resets.push(*id);
            } else {
                out.finish(*id);
            }
            false
        });
        self.waits |= waits;
        for id in resets {
            // Who resets one direction wants nothing of the other.
            readers.remove(&id);
            readable.remove(&id);
            answered.insert(id);
            connection.incoming().stop(id, RESET_CODE);
        }
    }

    fn send_datagrams(&mut self, now: Instant, connection: &mut Connection) {
        if self.datagrams_sent >= self.options.datagrams || now < self.datagram_due {
            return;
        }
        self.datagram_due = now + DATAGRAM_INTERVAL;
        let number = self.datagrams_sent;
        self.datagrams_sent += 1;
        let Some(path) = connection.path_views().find(|path| path.room > 0).map(|path| path.id) else {
            return;
        };
        let content = ContentId::Datagram { number, back: self.is_back() };
        let mut data = number.to_be_bytes().to_vec();
        data.extend(content.bytes(0, DATAGRAM_LEN - NUMBER_LEN));
        // One that is refused is as good as lost.
        let _ = connection.send_datagram(path, u64::from(number), data);
    }

    fn take_datagrams(&mut self, connection: &mut Connection) {
        while let Some(datagram) = connection.next_datagram() {
            let Some((head, content)) = datagram.data.split_first_chunk::<NUMBER_LEN>() else {
                self.state.blame("a datagram is shorter than its number".to_owned());
                continue;
            };
            let number = u32::from_be_bytes(*head);
            let id = ContentId::Datagram { number, back: !self.is_back() };
            if content.len() != DATAGRAM_LEN - NUMBER_LEN || !id.is(0, content) {
                self.state.blame(format!("bytes of {id:?} differ"));
            }
            if !self.datagrams_seen.insert(number) {
                self.state.blame(format!("{id:?} came twice"));
            }
            self.state.note(|notes| notes.datagrams += 1);
            connection.recycle(datagram.data);
        }
        while connection.next_returned().is_some() {}
    }
}

fn writer(number: u32, setup: StreamSetup, back: bool) -> StreamWriter {
    StreamWriter {
        content: ContentId::Stream { number, back },
        written: 0,
        length: if back { setup.answer } else { setup.bytes },
        reset_after: setup.reset_after.filter(|_| !back),
    }
}

fn reader(number: u32, setup: StreamSetup, back: bool) -> StreamReader {
    let length = if back { setup.answer } else { setup.bytes };
    StreamReader { content: ContentId::Stream { number, back }, read: 0, length }
}
