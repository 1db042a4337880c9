//! A source that is connected to the sink: what came of it and is not written yet, and what it is
//! told.

use crate::MAX_NUMBER;
use crate::checkpoint::Checkpoint;
use crate::endpoint::{FAULT_CODE, OTHER_VERSION_CODE, SINK_STREAM, SOURCE_STREAM};
use crate::memory_budget::{MemoryBudget, MemoryShare};
use crate::message::{self, FromSink, FromSource, Message as _, Messages, SourceHeartbeat};
use crate::sink_file::Block;
use crate::sink_plan::SourceReport;
use crate::source_name::Name;
use byway_engine::handshake::PublicKey;
use byway_engine::{Connection, Handle};
use byway_transfer::close::CloseCode;
use byway_transfer::session_seats::Seat;
use byway_wire::{Duration, Instant, NetworkPrefix};

/// Bytes of records that wait for the writer before nothing more is read of the source.
const MAX_WAITING_BYTES: usize = 256 << 10;
/// Bytes from which a block is written at once. A smaller one is written after `BLOCK_DELAY`.
const MIN_BLOCK_BYTES: usize = 32 << 10;
/// Time that a block of less than `MIN_BLOCK_BYTES` waits for more records before it is written.
const BLOCK_DELAY: Duration = Duration::from_millis(150);
/// Time between two reports of the written records to a source, if nothing changed.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// The shortest time between two reports of the written records, unless `REPORT_BYTES` were
/// written. Each report costs a packet in both directions.
const MIN_REPORT_INTERVAL: Duration = Duration::from_millis(250);
/// Number of newly written bytes after which the source gets a report at once.
const REPORT_BYTES: u64 = 16 << 10;
/// Bytes of messages that may wait for a source that does not read. Beyond it, no more are queued.
const MAX_UNREAD_BYTES: usize = 1 << 10;
/// The silence after which a source's name may be taken by another source. A live one is heard
/// every second.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(3);
/// Time that a new connection may take to send its HELLO. A source sends it at once, so this is
/// time for two losses in a row of a TCP segment (RFC 6298: 1 s, then 2 s).
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes of the pieces in which a source may be read: the longest for which there is memory.
const PIECE_SIZES: [usize; 3] = [16 << 10, 4 << 10, 1 << 10];
/// Time that a record may take to arrive while another source waits for the record's memory.
const RECORD_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes up to which the memory of a block grows by doubling. Beyond, it grows by
/// `BLOCK_STEP_BYTES`.
const DOUBLING_BLOCK_BYTES: usize = 256 << 10;
/// Bytes by which the memory of a long block grows.
const BLOCK_STEP_BYTES: usize = 64 << 10;

/// Bytes of memory that a block of `length` bytes takes.
const fn block_capacity(length: usize) -> usize {
    if length <= DOUBLING_BLOCK_BYTES {
        length.next_power_of_two()
    } else {
        length.next_multiple_of(BLOCK_STEP_BYTES)
    }
}

/// The source's description of itself, from its first message.
pub struct Hello {
    /// The name of the source, and of its file.
    pub name: Name,
    /// The id of the source's run.
    pub run: [u8; 16],
    /// Whether each record of the source ends with a line feed.
    pub has_lines: bool,
}

/// A source that is connected.
pub struct ConnectedSource {
    /// The name of the session for the thread that writes.
    session: u64,
    /// The public key of the source's host.
    key: PublicKey,
    /// The network of the source's host. `None`: it is this host.
    network: Option<NetworkPrefix>,
    came_at: Instant,
    heard_at: Instant,
    hello: Option<Hello>,
    messages: Messages,
    /// Records that came and are not with the thread that writes.
    block: Block,
    block_since: Option<Instant>,
    /// This source's share of the sink's memory.
    share: MemoryShare,
    /// Whether reading pauses because there is no memory for the next bytes.
    is_held_back: bool,
    /// When the first byte of an incomplete record arrived. `None`: no record is incomplete.
    record_since: Option<Instant>,
    /// Whether the source's file is open. In `is_writing`: whether a block is being written.
    is_open: bool,
    is_writing: bool,
    /// The number of the record that comes next.
    next: u64,
    /// The latest note about the source's file.
    checkpoint: Checkpoint,
    /// Bytes of records written in this session.
    bytes: u64,
    /// Bytes of the block that is being written. In `writing_capacity`: the memory of the block.
    writing_bytes: u64,
    writing_capacity: usize,
    heartbeat: SourceHeartbeat,
    has_ended: bool,
    /// Encoded messages that wait to be sent to the source.
    back: Vec<u8>,
    word_at: Instant,
    /// Bytes written at the last report to the source, and the time of that report.
    told: (u64, Instant),
    /// Bytes written at the last report, and the time.
    reported: (u64, Instant),
    fault: Option<(u64, String)>,
}

impl ConnectedSource {
    /// A session that begins now, with the host that has this key and this network.
    pub fn new(session: u64, key: PublicKey, network: Option<NetworkPrefix>, now: Instant) -> Self {
        Self {
            session,
            key,
            network,
            came_at: now,
            heard_at: now,
            hello: None,
            messages: Messages::default(),
            block: Block::default(),
            block_since: None,
            share: MemoryShare::default(),
            is_held_back: false,
            record_since: None,
            is_open: false,
            is_writing: false,
            next: 0,
            checkpoint: Checkpoint::default(),
            bytes: 0,
            writing_bytes: 0,
            writing_capacity: 0,
            heartbeat: SourceHeartbeat::default(),
            has_ended: false,
            back: Vec::new(),
            word_at: now,
            told: (0, now),
            reported: (0, now),
            fault: None,
        }
    }

    /// The name of the session for the thread that writes.
    pub const fn session(&self) -> u64 {
        self.session
    }

    /// The public key of the source's host.
    pub const fn key(&self) -> PublicKey {
        self.key
    }

    /// Returns the source's place among the sessions.
    pub const fn seat(&self, session: Handle) -> Seat<Handle> {
        let (network, came_at) = (self.network, self.came_at);
        Seat { session, network, is_silent: self.hello.is_none(), came_at }
    }

    /// Returns the source's description of itself. `None`: it has not arrived yet.
    pub const fn who(&self) -> Option<&Hello> {
        self.hello.as_ref()
    }

    /// Whether the source's file is open.
    pub const fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether the source was silent for so long that another source may take its name.
    pub fn is_silent(&self, now: Instant) -> bool {
        now.since(self.heard_at) >= SILENCE_TIMEOUT
    }

    /// Notes that the source may use the name that it requested.
    pub fn identify(&mut self, hello: Hello) {
        self.hello = Some(hello);
    }

    /// Marks the session to be closed with this code and reason. Only the first mark counts.
    pub fn blame(&mut self, code: u64, sentence: impl Into<String>) {
        self.fault.get_or_insert_with(|| (code, sentence.into()));
    }

    /// Why the session is to be closed.
    pub const fn take_fault(&mut self) -> Option<(u64, String)> {
        self.fault.take()
    }

    /// Reads the source's messages, as far as there is memory for them. Returns a HELLO.
    pub fn read(
        &mut self,
        connection: &mut Connection,
        scratch: &mut [u8],
        budget: &mut MemoryBudget,
        now: Instant,
    ) -> Option<Hello> {
        let mut hello = None;
        self.is_held_back = false;
        while self.fault.is_none()
            && hello.is_none()
            && (self.is_open || self.hello.is_none())
            && self.block.bytes.len() < MAX_WAITING_BYTES
        {
            let memory = PIECE_SIZES.map(|piece| (piece, self.memory(piece)));
            let piece = memory.into_iter().find(|(_, memory)| self.share.grow(budget, *memory));
            let Some(scratch) = piece.and_then(|(piece, _)| scratch.get_mut(..piece)) else {
                self.is_held_back = true;
                if !self.is_writing && self.block.bytes.is_empty() {
                    budget.on_shortage(now);
                }
                break;
            };
            let Some(read) = connection.incoming().read(SOURCE_STREAM, scratch) else { break };
            let bytes = scratch.get(..read.length).unwrap_or_default();
            let mut messages = std::mem::take(&mut self.messages);
            let pushed = messages.push(bytes, |message| {
                if let Some(said) = self.on_message(now, message) {
                    hello = Some(said);
                }
            });
            self.messages = messages;
            match pushed {
                Ok(()) => {}
                Err(message::OTHER_VERSION_ERROR) => self.blame(
                    OTHER_VERSION_CODE,
                    "the source speaks another version than the sink: install the same byway on both hosts",
                ),
                Err(error) => self.blame(FAULT_CODE, format!("what the source says makes no sense: {error}")),
            }
            if read.length == 0 || read.finished {
                break;
            }
        }
        let is_coming = self.messages.record_length() > 0;
        if !is_coming {
            self.share.shrink(budget, self.memory(0));
        }
        let since = is_coming.then(|| *self.record_since.get_or_insert(now));
        self.record_since = since;
        if since.is_some_and(|since| now.since(since) >= RECORD_TIMEOUT) && budget.is_short(now) {
            let sentence = "a record took too long, and others wait for its memory: it may come again";
            self.blame(CloseCode::Failed.number(), sentence);
        }
        if self.hello.is_none() && hello.is_none() && now.since(self.came_at) >= HELLO_TIMEOUT {
            self.blame(FAULT_CODE, "the source did not say who it is");
        }
        hello
    }

    /// Returns the bytes of the sink's memory that the source needs after it has read `more` bytes.
    fn memory(&self, more: usize) -> usize {
        let record = self.messages.record_length();
        let now = self.messages.capacity().max(record) + self.block.bytes.capacity();
        let then = block_capacity(self.block.bytes.len() + record.max(self.messages.begun()) + more);
        now.max(then) + more + self.writing_capacity
    }

    /// Returns the source's memory to the budget. The source is gone.
    pub fn give_back(&mut self, budget: &mut MemoryBudget) {
        self.share.shrink(budget, 0);
    }

    /// Handles a message of the source. Returns a HELLO, which the caller must answer.
    fn on_message(&mut self, now: Instant, message: FromSource) -> Option<Hello> {
        self.heard_at = now;
        let is_sense = match message {
            FromSource::Hello { name, run, has_lines } if self.hello.is_none() => {
                return Some(Hello { name, run, has_lines });
            }
            FromSource::Beat(beat) if self.is_open => {
                self.heartbeat = beat;
                true
            }
            FromSource::From(number) if self.is_open => {
                number.checked_sub(self.next).is_some_and(|count| self.skip(now, count))
            }
            FromSource::Skipped(count) if self.is_open => self.skip(now, count),
            FromSource::Record(record) if self.is_open => {
                self.block_since.get_or_insert(now);
                self.record_since = None;
                self.append(record);
                self.block.records += 1;
                self.count(1)
            }
            FromSource::End if self.is_open => {
                self.has_ended = true;
                true
            }
            _ => false,
        };
        if !is_sense {
            self.blame(FAULT_CODE, "what the source says makes no sense");
        }
        None
    }

    fn append(&mut self, record: Vec<u8>) {
        let block = &mut self.block.bytes;
        let length = block.len() + record.len();
        if block.is_empty() && length > block.capacity() {
            *block = record;
            return;
        }
        if length > block.capacity() {
            block.reserve_exact(block_capacity(length) - block.len());
        }
        block.extend_from_slice(&record);
    }

    /// Handles `count` numbers without records. Returns whether these numbers are possible.
    fn skip(&mut self, now: Instant, count: u64) -> bool {
        if count > 0 {
            self.block_since.get_or_insert(now);
            // No more than `MAX_NUMBER`, as the number after them.
            self.block.lost = self.block.lost.saturating_add(count);
        }
        self.count(count)
    }

    /// Counts `numbers` used numbers. Returns whether these are possible.
    fn count(&mut self, numbers: u64) -> bool {
        let next = self.next.checked_add(numbers).filter(|next| *next <= MAX_NUMBER);
        self.next = next.unwrap_or(self.next);
        next.is_some()
    }

    /// The block that is to be written now.
    pub fn due(&mut self, now: Instant) -> Option<Block> {
        let since = self.block_since?;
        let is_due =
            self.block.bytes.len() >= MIN_BLOCK_BYTES || self.has_ended || now.since(since) >= BLOCK_DELAY;
        if self.is_writing || !is_due || self.fault.is_some() {
            return None;
        }
        self.is_writing = true;
        self.block_since = None;
        self.writing_capacity = self.block.bytes.capacity();
        self.writing_bytes = self.block.bytes.len() as u64;
        Some(std::mem::take(&mut self.block))
    }

    /// Notes that the source's file is open, with the latest note about it.
    pub fn on_opened(&mut self, note: Checkpoint, now: Instant) {
        self.is_open = true;
        self.next = note.next;
        self.checkpoint = note;
        self.reported = (0, now);
        self.say(now, FromSink::Welcome(note.next, note.runs));
    }

    /// Notes that a block is written, and keeps the new note about the file.
    pub fn on_written(&mut self, note: Checkpoint, now: Instant) {
        self.is_writing = false;
        self.writing_capacity = 0;
        self.checkpoint = note;
        self.bytes = self.bytes.saturating_add(self.writing_bytes);
        let (bytes, at) = self.told;
        if self.has_ended || self.bytes.saturating_sub(bytes) >= REPORT_BYTES {
            self.say(now, FromSink::Written(note.next));
        } else {
            self.word_at = self.word_at.min(at + MIN_REPORT_INTERVAL);
        }
    }

    fn say(&mut self, now: Instant, message: FromSink) {
        if self.back.len() < MAX_UNREAD_BYTES {
            message.write(&mut self.back);
        }
        self.word_at = now + REPORT_INTERVAL;
        self.told = (self.bytes, now);
    }

    /// Reports the written records to the source, if a report is due.
    pub fn answer(&mut self, connection: &mut Connection, now: Instant) {
        if self.is_open && now >= self.word_at {
            self.say(now, FromSink::Written(self.checkpoint.next));
        }
        if !self.back.is_empty() {
            let taken = connection.outgoing().write(SINK_STREAM, &self.back);
            self.back.drain(..taken);
        }
    }

    /// The source's figures since the previous report. `paths`: bytes received over each path.
    pub fn report(&mut self, paths: Vec<(String, u64)>, now: Instant) -> Option<SourceReport> {
        let who = self.hello.as_ref().filter(|_| self.is_open)?;
        let note = self.checkpoint;
        let (before, at) = std::mem::replace(&mut self.reported, (self.bytes, now));
        let seconds = now.since(at).as_secs_f64().max(1e-3);
        let waiting = self.heartbeat.produced.saturating_sub(note.next);
        Some(SourceReport {
            name: who.name.clone(),
            rate: self.bytes.saturating_sub(before) as f64 / seconds,
            demand: self.heartbeat.demand,
            lag: waiting,
            lag_seconds: if waiting == 0 { 0.0 } else { self.heartbeat.age_ms as f64 / 1e3 },
            lost: note.lost,
            written: note.next.saturating_sub(note.lost),
            paths,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_source() -> ConnectedSource {
        let mut source = ConnectedSource::new(1, PublicKey([5; 32]), None, Instant::ZERO);
        source.identify(Hello { name: "radar7".parse().unwrap(), run: [7; 16], has_lines: true });
        source.on_opened(Checkpoint { next: 100, ..Checkpoint::default() }, Instant::ZERO);
        source
    }

    /// Returns the index of the first message that ends the session. `None`: all are accepted.
    fn refused(messages: &[FromSource]) -> Option<usize> {
        let mut source = open_source();
        messages.iter().position(|message| {
            source.on_message(Instant::ZERO, message.clone());
            source.take_fault().is_some()
        })
    }

    #[test]
    fn no_source_moves_its_numbers_out_of_reach() {
        use FromSource::{From, Record, Skipped};
        let record = || Record(b"x\n".to_vec());
        let rest = MAX_NUMBER - 100;
        assert_eq!(refused(&[Skipped(rest), record()]), Some(1));
        assert_eq!(refused(&[Skipped(rest - 1), record(), record()]), Some(2));
        assert_eq!(refused(&[Skipped(rest), Skipped(1)]), Some(1));
        assert_eq!(refused(&[From(MAX_NUMBER), From(MAX_NUMBER), From(99)]), Some(2));
        for number in [MAX_NUMBER + 1, u64::MAX] {
            assert_eq!(refused(&[record(), Skipped(number)]), Some(1));
            assert_eq!(refused(&[record(), From(number)]), Some(1));
        }
        let mut source = open_source();
        source.on_message(Instant::ZERO, Skipped(rest));
        source.on_message(Instant::ZERO, Skipped(MAX_NUMBER));
        assert!(source.due(Instant::from_millis(500)).is_none(), "what is refused is not written");
    }

    #[test]
    fn heartbeats_of_any_numbers_move_no_count_of_the_sink() {
        use byway_wire::codec::VARINT_MAX;
        for number in [0, 99, 101, MAX_NUMBER + 1, VARINT_MAX - 1, VARINT_MAX, u64::MAX] {
            let mut source = open_source();
            let beat = SourceHeartbeat { produced: number, age_ms: number, demand: number, given_up: number };
            source.on_message(Instant::ZERO, FromSource::Beat(beat));
            source.on_message(Instant::ZERO, FromSource::Record(b"x\n".to_vec()));
            let report = source.report(Vec::new(), Instant::from_millis(1_000)).unwrap();
            assert_eq!(report.lag, number.max(100) - 100, "100 are written");
            assert!(report.lag_seconds.is_finite() && report.lag_seconds >= 0.0);
            assert_eq!((report.lost, report.written, source.next), (0, 100, 101));
            assert!(source.take_fault().is_none());
        }
    }

    #[test]
    fn a_source_that_reads_nothing_is_told_no_more() {
        let mut source = open_source();
        for second in 0..100_000 {
            source.say(Instant::from_millis(second * 1_000), FromSink::Written(MAX_NUMBER));
        }
        assert!(source.back.len() <= MAX_UNREAD_BYTES + 9, "{}", source.back.len());
    }

    /// A session never takes more memory than it was granted, however its records arrive.
    #[test]
    fn nothing_is_held_that_was_not_given() {
        for length in [0, 1, 100, 5_000, 7_000, 20_000, 300_000, crate::MAX_RECORD_LEN] {
            for piece in PIECE_SIZES {
                let mut bytes = Vec::new();
                (0..4_u8).for_each(|byte| FromSource::Record(vec![byte; length]).write(&mut bytes));
                let mut source = open_source();
                for bytes in bytes.chunks(piece) {
                    let given = source.memory(bytes.len());
                    let mut messages = std::mem::take(&mut source.messages);
                    let pushed = messages.push(bytes, |said| drop(source.on_message(Instant::ZERO, said)));
                    source.messages = messages;
                    pushed.unwrap();
                    let held = source.messages.capacity() + source.block.bytes.capacity();
                    assert!(held <= given, "{held} of {given} for {length} by {piece}");
                }
                assert_eq!(source.block.records, 4);
                // Small records never wait for others' memory.
                let own = crate::memory_budget::SESSION_MEMORY_BYTES;
                assert!(length > 7_000 || open_source().memory(length + 16) <= own, "{length}");
            }
        }
    }
}
