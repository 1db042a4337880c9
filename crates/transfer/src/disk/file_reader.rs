//! The sender's disk thread: reads and hashes, or reads standard input.

use crate::buffers::Buffers;
use crate::disk::thread_channel::BatchReceiver;
use crate::error::TransferError;
use crate::event_loop::news_channel::NewsSender;
use crate::events::TransferEvent;
use crate::expired_leftovers::expire_sent;
use crate::warnings::Warnings;
use bytes::Bytes;
use byway_files::{
    Batch, NotCopied, Printable, Reason, Report, Reports, Source, SourceOptions, Totals, TrashName,
    TreeSelection,
};
use byway_net::Waker;
use byway_wire::{DecodeError, ObjectId};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TryRecvError, TrySendError};
use std::time::Duration;

/// Bytes of the manifest that are made at once. Together with `BATCH_OBJECTS`, making them blocks
/// reads for about a millisecond.
const BATCH_BYTES: usize = 64 << 10;
/// Objects that are announced at once.
const BATCH_OBJECTS: usize = 256;
/// Bytes of standard input taken at once.
const PIPE_BYTES: usize = 64 << 10;
/// Bytes of replies after which the owner is woken, if there are more to give.
const WAKE_BYTES: usize = 256 << 10;
/// Bytes of `WAKE_BYTES` for which each reply counts, in addition to its payload.
const ANSWER_COST_BYTES: usize = 4 << 10;
/// Time before counting starts. If the sender finds all files within this time, they are not
/// counted, as counting costs as much as finding them.
const COUNT_DELAY: Duration = Duration::from_millis(300);
/// The value of a total that is still being counted.
pub(crate) const UNKNOWN_TOTAL: u64 = u64::MAX;

/// A request of the owner to the disk thread. Each gets one reply.
pub(crate) enum DiskRequest {
    Read {
        object: ObjectId,
        offset: u64,
        length: usize,
    },
    /// The next piece of the manifest. It announces new objects only if `announce` is set; other
    /// records need not wait for them.
    Records {
        announce: bool,
    },
    Reports(Vec<u8>),
}

/// A reply of the disk thread, or data that it read from standard input without a request.
pub(crate) enum DiskReply {
    Bytes {
        object: ObjectId,
        offset: u64,
        bytes: Bytes,
    },
    Records {
        batch: Batch,
        finished: bool,
        /// Whether the next piece is not empty, so that the owner is to request it at once.
        busy: bool,
        /// Bytes so far that need not be sent, because the receiver has them.
        skipped: u64,
        /// Bytes in all, once that is known.
        total: Option<u64>,
    },
    /// Reports were read. The objects in `failed` failed at the receiver, so their data need not
    /// be sent.
    Reports {
        failed: Vec<ObjectId>,
        /// The rate in bytes per second that the receiver permits. `None`: these reports name no
        /// rate.
        limit: Option<u64>,
    },
    /// The receiver is through with the tree.
    Done(TreeDone),
    /// The next bytes of a pipe.
    Piped(Vec<u8>),
    /// The end of the stream, with the BLAKE3 hash of all its bytes.
    PipeEnd([u8; 32]),
    /// The transfer cannot go on.
    Failed(TransferError),
}

/// How the sending of a tree ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TreeDone {
    /// Payload bytes that the receiver has in place.
    pub bytes: u64,
    /// Bytes that were not sent, because the receiver had them.
    pub kept: u64,
    /// Number of files that were not sent, because the receiver reports equal ones.
    pub unchanged: u64,
    /// Number of files that were not sent, because the receiver keeps its newer ones, as the sender
    /// expected. Unexpected ones count as failed.
    pub newer: u64,
    /// Number of files, directories and links that are in place.
    pub entries: u64,
    /// Number of entries that the receiver refused or found damaged.
    pub failed: u64,
    /// Number of entries that could not be read.
    pub unsent: u64,
    /// Number of entries that patterns excluded.
    pub excluded: u64,
    /// Number of entries that the receiver moved to its trash.
    pub deleted: u64,
    /// Number of entries that the receiver failed to move to its trash.
    pub undeleted: u64,
    /// The folder of the trash with the deleted entries.
    pub trash: Option<TrashName>,
    /// Whether a hash disagreed.
    pub damaged: bool,
    /// Metadata of the tree that is not copied.
    pub not_copied: NotCopied,
}

/// The thread that reads a tree.
pub(crate) struct TreeReader {
    source: Source,
    asks: BatchReceiver<DiskRequest>,
    answers: SyncSender<DiskReply>,
    waker: Waker,
    /// Bytes of answers since the owner was last woken.
    unwoken: usize,
    buffers: Buffers,
    reports: Reports,
    news: NewsSender<TransferEvent>,
    warnings: Warnings,
    /// The rate in bytes per second that the receiver last permitted.
    limit: Option<u64>,
    /// The size in bytes of all that is to be sent, once another thread has counted it.
    counted: Arc<AtomicU64>,
    /// Number of files that the receiver reports as failed because this host withdrew them.
    withdrawn: u64,
    /// Whether a hash disagreed.
    damaged: bool,
    /// Number of newer files that the receiver keeps, as the options permit.
    newer: u64,
    /// Number of entries that the receiver moved to its trash, and the folder there.
    trashed: Option<(u64, TrashName)>,
    /// Number of entries that the receiver failed to move to its trash.
    undeleted: u64,
}

/// The owner's end of the channel is closed.
struct SenderGone;

impl TreeReader {
    pub fn new(
        source: Source,
        (asks, answers): (BatchReceiver<DiskRequest>, SyncSender<DiskReply>),
        news: NewsSender<TransferEvent>,
        waker: Waker,
        counted: Arc<AtomicU64>,
    ) -> Self {
        Self {
            source,
            asks,
            answers,
            waker,
            unwoken: 0,
            buffers: Buffers::default(),
            reports: Reports::new(),
            news: news.clone(),
            warnings: Warnings::new(news),
            limit: None,
            counted,
            withdrawn: 0,
            newer: 0,
            damaged: false,
            trashed: None,
            undeleted: 0,
        }
    }

    /// Handles requests until the owner closes the channel.
    pub fn run(mut self) {
        while self.answer_next().is_ok() {}
    }

    fn answer_next(&mut self) -> Result<(), SenderGone> {
        let ask = self.next_ask()?;
        self.unwoken += ANSWER_COST_BYTES;
        let mut done = None;
        let answer = match ask {
            DiskRequest::Read { object, offset, length } => self.read(object, offset, length),
            DiskRequest::Records { announce } => self.records(announce),
            DiskRequest::Reports(bytes) => self.take_reports(&bytes, &mut done),
        };
        for warning in self.source.warnings() {
            self.warnings.give(|| warning.to_string());
        }
        self.give(answer)?;
        done.map_or(Ok(()), |done| self.give(DiskReply::Done(done)))
    }

    /// Waits for the next request.
    fn next_ask(&mut self) -> Result<DiskRequest, SenderGone> {
        let asked = self.asks.try_recv();
        if asked.is_ok() && self.unwoken < WAKE_BYTES {
            return asked.map_err(|_| SenderGone);
        }
        // Nothing is left to answer, or much was: the owner is woken once for all of it.
        if std::mem::take(&mut self.unwoken) > 0 {
            self.waker.wake();
        }
        match asked {
            Err(TryRecvError::Empty) => self.asks.recv().map_err(|_| SenderGone),
            asked => asked.map_err(|_| SenderGone),
        }
    }

    fn give(&mut self, answer: DiskReply) -> Result<(), SenderGone> {
        match self.answers.try_send(answer) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(answer)) => {
                self.waker.wake();
                self.answers.send(answer).map_err(|_| SenderGone)
            }
            Err(TrySendError::Disconnected(_)) => Err(SenderGone),
        }
    }

    fn read(&mut self, object: ObjectId, offset: u64, length: usize) -> DiskReply {
        let mut bytes = self.buffers.take(length);
        // Of an object that was settled meanwhile nothing is read, and nobody looks at its bytes:
        // yet they are no other's.
        let read = self.source.read_into(object, offset, &mut bytes).unwrap_or_default();
        bytes.get_mut(read..).unwrap_or_default().fill(0);
        self.unwoken += length;
        DiskReply::Bytes { object, offset, bytes: self.buffers.lend(bytes) }
    }

    fn records(&mut self, announce: bool) -> DiskReply {
        let counted = self.counted.load(Ordering::Acquire);
        if counted != UNKNOWN_TOTAL {
            self.source.tell_total(counted);
        }
        let objects = if announce { BATCH_OBJECTS } else { 0 };
        let batch = self.source.next_records(BATCH_BYTES, objects);
        let (finished, busy) = (self.source.is_finished(), self.source.is_behind());
        let (skipped, total) = (self.source.skipped(), self.source.total());
        DiskReply::Records { batch, finished, busy, skipped, total }
    }

    /// Reads the receiver's reports. After the last one, `done` holds the result of the transfer.
    fn take_reports(&mut self, bytes: &[u8], done: &mut Option<TreeDone>) -> DiskReply {
        let mut failed = Vec::new();
        let taken = self.reports.feed(bytes).and_then(|reports| {
            reports.into_iter().try_for_each(|report| self.settle(report, &mut failed, done))
        });
        match taken {
            Ok(()) => DiskReply::Reports { failed, limit: self.limit.take() },
            Err(error) => DiskReply::Failed(TransferError::Reports(error)),
        }
    }

    fn settle(
        &mut self,
        report: Report,
        lost: &mut Vec<ObjectId>,
        done: &mut Option<TreeDone>,
    ) -> Result<(), DecodeError> {
        match report {
            Report::Have { object, first, hashes, placed, last } => {
                self.source.have(object, first, &hashes, placed, last)?;
            }
            Report::Same(objects) => self.source.same(objects)?,
            Report::Wanted(objects) => self.source.wanted(objects)?,
            Report::Verified { object } => self.source.release(object),
            Report::Limit { bytes_per_second } => self.limit = Some(bytes_per_second),
            Report::Failed { object, reason, detail } => {
                self.damaged |= reason == Reason::Integrity;
                self.withdrawn += u64::from(reason == Reason::Withdrawn);
                let is_expected = self.is_expected(reason);
                // Of what this side took back there was a warning.
                if reason != Reason::Withdrawn && !is_expected {
                    let path = self.source.path(object).unwrap_or_default().to_vec();
                    self.warnings.give(|| refused(&path, reason, &detail));
                }
                self.source.release(object);
                lost.push(object);
            }
            Report::Refused { path, reason, detail } => {
                self.undeleted += u64::from(reason.is_of_deletion());
                if !self.is_expected(reason) {
                    self.warnings.give(|| refused(&path, reason, &detail));
                }
            }
            Report::Looked { what, amount, path } => {
                // Whoever does not wait for it is gone.
                self.news.send(TransferEvent::Looked { what, amount, path });
            }
            Report::Trashed { entries, folder } => self.trashed = Some((entries, folder)),
            Report::Done { files: _, bytes, failed } => {
                let counts = self.source.counts();
                let announced = counts.files + counts.directories + counts.symlinks;
                *done = Some(TreeDone {
                    bytes,
                    kept: self.source.kept(),
                    unchanged: self.source.unchanged(),
                    entries: announced.saturating_sub(failed).saturating_sub(self.newer),
                    newer: self.newer,
                    // What was withdrawn is counted as unsent already.
                    failed: failed.saturating_sub(self.withdrawn.min(self.source.unsent())),
                    unsent: self.source.unsent(),
                    excluded: self.source.excluded(),
                    deleted: self.trashed.map_or(0, |(entries, _)| entries),
                    undeleted: self.undeleted,
                    trash: self.trashed.map(|(_, folder)| folder),
                    damaged: self.damaged,
                    not_copied: self.source.not_copied(),
                });
                if failed == 0 && self.source.unsent() == 0 {
                    self.source.forget_journals();
                }
            }
        }
        Ok(())
    }
}

impl TreeReader {
    /// Whether the receiver may refuse an entry for this reason, because it keeps newer files.
    /// Counts the entry if so.
    fn is_expected(&mut self, reason: Reason) -> bool {
        let is_expected = reason == Reason::Newer && self.source.expects_newer();
        self.newer += u64::from(is_expected);
        is_expected
    }
}

fn refused(path: &[u8], reason: Reason, detail: &str) -> String {
    if path.is_empty() {
        return reason.to_string();
    }
    let path = Printable(path);
    if detail.is_empty() { format!("{path}: {reason}") } else { format!("{path}: {reason} ({detail})") }
}

/// Reads a stream to its end, hashes it, and sends its bytes to the owner.
pub(crate) fn read_pipe(mut input: impl Read, answers: &SyncSender<DiskReply>, waker: &Waker) {
    let mut hasher = blake3::Hasher::new();
    loop {
        let mut bytes = vec![0; PIPE_BYTES];
        let answer = match input.read(&mut bytes) {
            Ok(0) => DiskReply::PipeEnd(*hasher.finalize().as_bytes()),
            Ok(read) => {
                bytes.truncate(read);
                hasher.update(&bytes);
                DiskReply::Piped(bytes)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => DiskReply::Failed(TransferError::Input(error)),
        };
        let over = !matches!(answer, DiskReply::Piped(_));
        let gone = answers.send(answer).is_err();
        waker.wake();
        if over || gone {
            return;
        }
    }
}

/// Work beside the transfer: counts the bytes to send, and removes expired journals.
pub(crate) fn aside(
    (paths, options, selection): (&[PathBuf], &SourceOptions, Arc<TreeSelection>),
    total: &Arc<AtomicU64>,
    journals: Option<&Path>,
) {
    if let Some(directory) = journals {
        expire_sent(directory);
    }
    count((paths, options, selection), total);
}

/// Counts the bytes to send, and stores their sum in `total` at the end.
fn count(
    (paths, options, selection): (&[PathBuf], &SourceOptions, Arc<TreeSelection>),
    total: &Arc<AtomicU64>,
) {
    std::thread::sleep(COUNT_DELAY);
    // Nobody else holds it: nobody wants to know any more. It stands there: the sender has met all
    // there is.
    let is_wanted = || Arc::strong_count(total) > 1 && total.load(Ordering::Acquire) == UNKNOWN_TOTAL;
    let totals = || Totals::new(paths, options, selection).ok();
    let Some(mut totals) = is_wanted().then(totals).flatten() else { return };
    while totals.step(256) {
        if !is_wanted() {
            return;
        }
    }
    total.store(totals.counts().bytes, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::thread_channel::batch_channel;
    use crate::event_loop::news_channel::hung_up;
    use byway_files::ObjectRange;
    use byway_net::Control;
    use std::sync::mpsc::sync_channel;

    /// The receiver counts a file that was withdrawn among those that failed, and so does this side
    /// among those that it did not send: it is one file.
    #[test]
    fn a_file_that_was_withdrawn_is_counted_once() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        std::fs::write(&file, [7; 1000]).unwrap();
        let source = Source::open(std::slice::from_ref(&file), SourceOptions::default()).unwrap();
        let ((_asks, inbox), (answers, _answered)) = (batch_channel(1), sync_channel(1));
        let (control, counted) = (Control::new().unwrap(), Arc::new(AtomicU64::new(UNKNOWN_TOTAL)));
        let mut reader =
            TreeReader::new(source, (inbox, answers), hung_up(), control.waker().clone(), counted);
        reader.records(true);
        let object = ObjectId(0);
        let mut done = None;
        let wanted = Report::Wanted(ObjectRange::one(object));
        assert!(reader.settle(wanted, &mut Vec::new(), &mut done).is_ok());
        let DiskReply::Records { batch, .. } = reader.records(true) else { panic!("records") };
        assert_eq!(batch.objects[0].id, object);
        std::fs::write(&file, [7; 10]).unwrap();
        reader.read(object, 0, 1000);
        for report in [
            Report::Failed { object, reason: Reason::Withdrawn, detail: String::new() },
            Report::Done { files: 0, bytes: 0, failed: 1 },
        ] {
            assert!(reader.settle(report, &mut Vec::new(), &mut done).is_ok());
        }
        let done = done.unwrap();
        assert_eq!((done.entries, done.failed, done.unsent), (0, 0, 1));
    }
}
