//! The sender's owner at each turn: it moves bytes between the disk thread and the engine, and
//! never waits.

use crate::disk::file_reader::{DiskReply, DiskRequest, TreeDone, UNKNOWN_TOTAL};
use crate::disk::thread_channel::{BatchSender, batch_channel};
use crate::endpoint::{RECEIVER_STREAM, SENDER_STREAM};
use crate::error::TransferError;
use crate::progress::TransferAmount;
use byway_engine::data::{Incoming, OutEvent, Outgoing, ReadRequest};
use byway_files::{Journals, NewObject};
use byway_wire::{Duration, Instant, ObjectId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};

/// The most reads that the event loop requests from the disk thread before answers come. With small
/// files, many reads keep wake-ups between the two threads rare.
const MAX_READS: usize = 256;
/// The most bytes that the event loop requests from the disk thread before answers come. With large
/// files, many bytes keep the disk busy.
const MAX_READ_BYTES: usize = 16 << 20;
/// The most reads that were requested and whose bytes are not all sent yet. A buffer is reused once
/// its bytes are sent. More reads would need new buffers, and new memory costs as much time as
/// reading a small file.
const MAX_UNSENT_READS: usize = 512;
/// Reads requested at once, mostly.
const ASK_BATCH: usize = 32;
/// The most messages that wait between the two threads. It exceeds the number of requests in
/// flight, so the disk thread never waits.
pub(crate) const MAX_QUEUED_MESSAGES: usize = MAX_READS + 16;
/// Reports that may wait for the disk thread.
const MAX_QUEUED_REPORTS: usize = 8;
/// Objects that are announced and that the receiver does not have yet. Beyond this number no more
/// are announced.
const MAX_ANNOUNCED_OBJECTS: usize = 4096;
/// Time after an empty piece of the manifest until the next piece is requested, even if nothing
/// else happens.
const MANIFEST_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Bytes of the receipt of a pipe: length and BLAKE3 hash.
pub(crate) const RECEIPT_LEN: usize = 8 + 32;

/// The content that a connection sends: a tree or a stream.
pub(crate) enum Outbound {
    Tree(Box<OutboundTree>),
    Pipe(Box<OutboundPipe>),
}

impl Outbound {
    /// Moves bytes between the disk thread and the engine, as far as possible without waiting.
    pub fn drive(&mut self, out: &mut Outgoing, now: Instant) {
        match self {
            Self::Tree(tree) => tree.drive(out, now),
            Self::Pipe(pipe) => pipe.drive(out),
        }
    }

    /// Reads what the receiver sent.
    pub fn take(&mut self, incoming: &mut Incoming) {
        // What comes is read below whether it was announced or not.
        while incoming.next_event().is_some() {}
        match self {
            Self::Tree(tree) => tree.take(incoming),
            Self::Pipe(pipe) => pipe.take(incoming),
        }
    }

    /// Whether the engine has everything.
    pub fn is_sent(&self) -> bool {
        match self {
            Self::Tree(tree) => tree.finished && tree.manifest_piece.is_empty(),
            Self::Pipe(pipe) => pipe.finished,
        }
    }

    /// Returns the rate in bytes per second that the receiver permits, if it sent a new one. 0: no
    /// limit.
    pub const fn take_limit(&mut self) -> Option<u64> {
        match self {
            Self::Tree(tree) => tree.limit.take(),
            Self::Pipe(_) => None,
        }
    }

    /// Sends at most this many payload bytes, and the rest of a piece that has begun.
    pub fn limit_bytes(&mut self, most: u64) {
        match self {
            Self::Tree(tree) => tree.byte_limit.most = most,
            Self::Pipe(pipe) => pipe.byte_limit.most = most,
        }
    }

    /// Payload bytes that were taken to be sent. Bytes that are sent again count once.
    pub fn taken_bytes(&self) -> u64 {
        match self {
            Self::Tree(tree) => tree.byte_limit.taken,
            Self::Pipe(pipe) => pipe.byte_limit.taken,
        }
    }

    /// Whether the byte limit holds data back, and the receiver has all data before that.
    pub fn is_at_byte_limit(&self, out: &Outgoing) -> bool {
        let counters = out.progress();
        match self {
            // One read was taken, and is never answered.
            Self::Tree(tree) => {
                let is_quiet = tree.reads == 0 && out.unsent() <= 1 && counters.acked == counters.sent;
                tree.byte_limit.holds_back && is_quiet
            }
            Self::Pipe(pipe) => pipe.byte_limit.holds_back && counters.acked >= pipe.sent,
        }
    }

    /// Closes the channel to the thread that reads files, so that the thread can end.
    pub fn hang_up(&mut self) {
        match self {
            Self::Tree(tree) => tree.asks = batch_channel(1).0,
            Self::Pipe(pipe) => pipe.journals.take().map_or((), Journals::remove),
        }
    }

    /// Returns the result of the transfer. `None`: the transfer goes on.
    pub fn ending(&mut self) -> Option<Result<TreeDone, TransferError>> {
        match self {
            Self::Tree(tree) => tree.ending.take(),
            Self::Pipe(pipe) => pipe.ending.take(),
        }
    }

    /// Returns the amount of data that the receiver has acknowledged.
    pub fn progress(&self, out: &Outgoing) -> TransferAmount {
        let acked = out.progress().acked;
        match self {
            Self::Tree(tree) => {
                let total = Some(tree.total.load(Ordering::Acquire)).filter(|total| *total != UNKNOWN_TOTAL);
                // The manifest is acknowledged too; it goes first, mostly.
                TransferAmount::of_tree(acked.saturating_sub(tree.manifest_sent), tree.skipped, total)
            }
            Self::Pipe(_) => TransferAmount { bytes: acked, travelled: acked, total: None },
        }
    }
}

/// The most payload bytes that a transfer may send.
struct ByteLimit {
    most: u64,
    taken: u64,
    /// Whether there is more than may be sent.
    holds_back: bool,
}

impl ByteLimit {
    const fn new() -> Self {
        Self { most: u64::MAX, taken: 0, holds_back: false }
    }

    /// Whether one more piece may be sent. If so, it counts.
    const fn take(&mut self, length: usize) -> bool {
        if self.taken >= self.most {
            self.holds_back = true;
            return false;
        }
        self.taken = self.taken.saturating_add(length as u64);
        true
    }
}

/// A piece of the manifest. Its objects may be sent once all of the piece is written to the stream.
#[derive(Default)]
struct ManifestPiece {
    bytes: Vec<u8>,
    written: usize,
    objects: Vec<NewObject>,
    withdrawn: Vec<ObjectId>,
}

impl ManifestPiece {
    fn is_empty(&self) -> bool {
        self.written == self.bytes.len() && self.objects.is_empty() && self.withdrawn.is_empty()
    }
}

/// A tree that is being sent.
pub(crate) struct OutboundTree {
    asks: BatchSender<DiskRequest>,
    answers: Receiver<DiskReply>,
    total: Arc<AtomicU64>,
    opened: bool,
    manifest_piece: ManifestPiece,
    /// Whether a piece of the manifest was asked for.
    asked: bool,
    /// The time of the last piece, if it was empty and nothing has changed since. The next request
    /// waits for a while after this time.
    quiet: Option<Instant>,
    finished: bool,
    reads: usize,
    /// Bytes of the reads that the disk thread was asked for and has not answered.
    reading: usize,
    reports: usize,
    /// Objects that the engine has and the receiver has not.
    objects: usize,
    manifest_sent: u64,
    /// Bytes that are not sent: the receiver has them from an earlier attempt, or they are holes.
    skipped: u64,
    byte_limit: ByteLimit,
    /// The rate in bytes per second that the receiver permits, if it sent a new one.
    limit: Option<u64>,
    ending: Option<Result<TreeDone, TransferError>>,
}

impl OutboundTree {
    pub fn new(asks: BatchSender<DiskRequest>, answers: Receiver<DiskReply>, total: Arc<AtomicU64>) -> Self {
        Self {
            asks,
            answers,
            total,
            opened: false,
            manifest_piece: ManifestPiece::default(),
            asked: false,
            quiet: None,
            finished: false,
            reads: 0,
            reading: 0,
            reports: 0,
            objects: 0,
            manifest_sent: 0,
            skipped: 0,
            byte_limit: ByteLimit::new(),
            limit: None,
            ending: None,
        }
    }

    fn drive(&mut self, out: &mut Outgoing, now: Instant) {
        if !self.opened {
            self.opened = true;
            out.open_stream(SENDER_STREAM);
        }
        while let Some(event) = out.next_event() {
            if let OutEvent::ObjectAcked(_) = event {
                self.objects = self.objects.saturating_sub(1);
            }
        }
        loop {
            match self.answers.try_recv() {
                Ok(answer) => self.on_answer(answer, out, now),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    let gone = || Err(TransferError::ThreadDied("reads files"));
                    self.ending.get_or_insert_with(gone);
                    return;
                }
            }
        }
        self.write_manifest(out);
        // A walk over very many things that cannot be sent gives empty pieces too.
        let quiet = self.quiet.is_some_and(|since| now.since(since) < MANIFEST_RETRY_DELAY);
        let idle = !self.asked && !quiet && !self.finished && self.manifest_piece.is_empty();
        let idle = idle && !self.byte_limit.holds_back;
        if idle && self.asks.has_room() {
            self.asked = true;
            self.asks.send(DiskRequest::Records { announce: self.objects < MAX_ANNOUNCED_OBJECTS });
        }
        while self.asks.has_room() && !self.byte_limit.holds_back {
            let mut batch = Vec::new();
            while batch.len() < ASK_BATCH
                && self.reads < MAX_READS
                && self.reading < MAX_READ_BYTES
                && out.unsent() < MAX_UNSENT_READS
                && let Some(ReadRequest { object, offset, length }) = out.next_read()
                && self.byte_limit.take(length)
            {
                self.reads += 1;
                self.reading += length;
                batch.push(DiskRequest::Read { object, offset, length });
            }
            if batch.is_empty() {
                break;
            }
            self.asks.send_all(batch);
        }
    }

    fn on_answer(&mut self, answer: DiskReply, out: &mut Outgoing, now: Instant) {
        match answer {
            DiskReply::Bytes { object, offset, bytes } => {
                self.reads -= 1;
                self.reading -= bytes.len();
                self.quiet = None;
                out.provide(object, offset, bytes);
            }
            DiskReply::Records { batch, finished, busy, skipped, total } => {
                if let Some(total) = total {
                    self.total.store(total, Ordering::Release);
                }
                self.asked = false;
                self.skipped = skipped;
                let empty = batch.bytes.is_empty() && batch.objects.is_empty();
                self.quiet = (empty && !busy).then_some(now);
                self.finished = finished;
                let (bytes, objects, withdrawn) = (batch.bytes, batch.objects, batch.withdrawn);
                self.manifest_piece = ManifestPiece { bytes, written: 0, objects, withdrawn };
            }
            DiskReply::Reports { failed, limit } => {
                self.limit = limit.or(self.limit);
                self.reports -= 1;
                self.quiet = None;
                for object in failed {
                    self.abandon(object, out);
                }
            }
            DiskReply::Done(done) => self.ending = Some(Ok(done)),
            DiskReply::Failed(error) => self.ending = Some(Err(error)),
            DiskReply::Piped(_) | DiskReply::PipeEnd(_) => {}
        }
    }

    fn write_manifest(&mut self, out: &mut Outgoing) {
        let batch = &mut self.manifest_piece;
        let rest = batch.bytes.get(batch.written..).unwrap_or_default();
        if !rest.is_empty() {
            let taken = out.write(SENDER_STREAM, rest);
            batch.written += taken;
            self.manifest_sent += taken as u64;
            if batch.written < batch.bytes.len() {
                return;
            }
        }
        let ManifestPiece { objects, withdrawn, .. } = std::mem::take(batch);
        for NewObject { id, size } in objects {
            out.add_object(id, size);
            self.objects += 1;
        }
        for object in withdrawn {
            self.abandon(object, out);
        }
        if self.finished {
            out.finish(SENDER_STREAM);
        }
    }

    fn abandon(&mut self, object: ObjectId, out: &mut Outgoing) {
        if !out.object_acked(object) {
            out.abandon_object(object);
        }
    }

    fn take(&mut self, incoming: &mut Incoming) {
        let mut piece = [0; 16 << 10];
        while self.reports < MAX_QUEUED_REPORTS && self.asks.has_room() {
            let Some(read) = incoming.read(RECEIVER_STREAM, &mut piece) else { return };
            if read.length == 0 {
                return;
            }
            self.reports += 1;
            self.asks.send(DiskRequest::Reports(piece.get(..read.length).unwrap_or_default().to_vec()));
        }
    }
}

/// A stream that is being sent.
pub(crate) struct OutboundPipe {
    answers: Receiver<DiskReply>,
    /// Locks the transfer, so that no other process sends the same stream.
    journals: Option<Journals>,
    opened: bool,
    piece: Vec<u8>,
    written: usize,
    sent: u64,
    byte_limit: ByteLimit,
    hash: Option<[u8; 32]>,
    finished: bool,
    receipt: Vec<u8>,
    ending: Option<Result<TreeDone, TransferError>>,
}

impl OutboundPipe {
    pub fn new(answers: Receiver<DiskReply>, journals: Option<Journals>) -> Self {
        Self {
            answers,
            journals,
            opened: false,
            piece: Vec::new(),
            written: 0,
            sent: 0,
            byte_limit: ByteLimit::new(),
            hash: None,
            finished: false,
            receipt: Vec::new(),
            ending: None,
        }
    }

    fn drive(&mut self, out: &mut Outgoing) {
        if !self.opened {
            self.opened = true;
            out.open_stream(SENDER_STREAM);
        }
        while let Some(event) = out.next_event() {
            if let OutEvent::Stopped { .. } = event {
                self.ending.get_or_insert(Err(TransferError::StreamRefused));
            }
        }
        while !self.finished && !self.byte_limit.holds_back {
            let rest = self.piece.get(self.written..).unwrap_or_default();
            if !rest.is_empty() {
                let taken = out.write(SENDER_STREAM, rest);
                self.written += taken;
                self.sent += taken as u64;
                if self.written < self.piece.len() {
                    return;
                }
            }
            match self.answers.try_recv() {
                Ok(DiskReply::Piped(bytes)) => {
                    if self.byte_limit.take(bytes.len()) {
                        (self.piece, self.written) = (bytes, 0);
                    }
                }
                Ok(DiskReply::PipeEnd(hash)) => {
                    self.hash = Some(hash);
                    self.finished = true;
                    out.finish(SENDER_STREAM);
                }
                Ok(DiskReply::Failed(error)) => {
                    self.finished = true;
                    self.ending.get_or_insert(Err(error));
                }
                Ok(_) => {}
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    self.finished = true;
                    self.ending.get_or_insert(Err(TransferError::ThreadDied("reads standard input")));
                }
            }
        }
    }

    fn take(&mut self, incoming: &mut Incoming) {
        let mut bytes = [0; RECEIPT_LEN];
        while let Some(read) = incoming.read(RECEIVER_STREAM, &mut bytes) {
            self.receipt.extend(bytes.iter().take(read.length));
            if self.receipt.len() > RECEIPT_LEN {
                self.ending.get_or_insert(Err(TransferError::Receipt));
                return;
            }
            if read.finished {
                self.judge();
            }
            if read.finished || read.length == 0 {
                return;
            }
        }
    }

    /// Compares the receiver's hash of the stream with this side's.
    fn judge(&mut self) {
        let (Some(hash), true) = (self.hash, self.receipt.len() == RECEIPT_LEN) else {
            self.ending.get_or_insert(Err(TransferError::StreamCutShort));
            return;
        };
        let expected = [&self.sent.to_be_bytes()[..], &hash].concat();
        let damaged = self.receipt != expected;
        let done = TreeDone { bytes: self.sent, entries: 1, damaged, ..TreeDone::default() };
        self.ending.get_or_insert(Ok(done));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_bytes_holds_back_what_begins_beyond_it() {
        let mut limit = ByteLimit { most: 10, ..ByteLimit::new() };
        assert!(limit.take(6) && limit.take(6) && !limit.holds_back);
        assert!(!limit.take(1) && limit.holds_back && limit.taken == 12);
        // What is all of a transfer is not held back.
        let mut limit = ByteLimit { most: 12, ..ByteLimit::new() };
        assert!(limit.take(6) && limit.take(6) && !limit.holds_back);
        assert!(ByteLimit::new().take(usize::MAX) && ByteLimit::new().take(0));
        assert!(!ByteLimit { most: 0, ..ByteLimit::new() }.take(1));
    }
}
