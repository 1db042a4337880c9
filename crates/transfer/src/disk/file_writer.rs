//! The receiver's disk thread: writes, verifies and puts in place, or writes to standard output.

use crate::disk::file_thread::FileThread;
use crate::disk::thread_channel::BatchReceiver;
use crate::error::TransferError;
use crate::receiver::received_output::ReceivingDirectory;
use crate::warnings::Warnings;
use byway_engine::data::WriteRequest;
use byway_files::{
    Finish, Look, MadeFile, Printable, Report, Reports, Sink, SinkError, SinkOptions, SmallFile,
    Subdirectory, Summary, TreeTop, Written,
};
use byway_net::Waker;
use byway_wire::ObjectId;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that are verified before the writer looks for arrived data again.
const VERIFY_STEP_BYTES: u64 = 4 << 20;
/// The most tasks that wait for this thread. If fewer could wait, small files would make the event
/// loop and this thread wake each other more often.
pub(crate) const MAX_QUEUED_TASKS: usize = 256;
/// The numbers of returned buffers and bytes at which the owner is woken. Both are a fraction of
/// what the owner may hand over.
const WAKE_THRESHOLDS: (usize, usize) = (MAX_QUEUED_TASKS / 4, 2 << 20);
/// The most tasks after which their results are reported.
const TASKS_PER_REPORT: usize = MAX_QUEUED_TASKS / 2;
/// Bytes of small files that are collected, and then written together.
const BATCH_BYTES: usize = 512 << 10;

/// A task for the thread that writes to disk.
pub(crate) enum DiskTask {
    /// The next bytes of the manifest, or of a pipe.
    Bytes(Vec<u8>),
    /// Bytes of an object.
    Write(WriteRequest),
    /// All bytes of an object were handed over.
    Complete(ObjectId),
    /// The stream has ended.
    End,
}

/// An event of the thread that writes to disk, for the owner.
pub(crate) enum DiskEvent {
    /// The bytes of a write are on the disk, or not wanted; here is their buffer.
    Buffer(Vec<u8>),
    /// To send to the peer.
    Reports(Vec<u8>),
    /// The receiver wants no more bytes of this object.
    Forget(ObjectId),
    /// Everything is written, with the last reports. They come in one event, so that the owner
    /// knows the end before the peer does.
    Done(Summary, Vec<u8>),
    /// The transfer cannot go on.
    Failed(TransferError),
}

/// The ends of the channels to and from the owner.
pub(crate) struct DiskChannels {
    pub tasks: BatchReceiver<DiskTask>,
    /// The writes that the owner had not handed over when it ended.
    pub rest: Receiver<Vec<WriteRequest>>,
    /// Closed when the writer of an earlier attempt at this transfer has ended. Of a stream, that
    /// writer first sends its byte count and hash.
    pub before: Option<Receiver<PipeTotal>>,
    /// Held until this writer has ended.
    pub ended: SyncSender<PipeTotal>,
    pub back: SyncSender<DiskEvent>,
    pub progress: WriteProgress,
    pub warnings: Warnings,
    pub waker: Waker,
}

/// The counts of a tree that the disk thread has written so far, for the progress display.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteProgress(Arc<Mutex<(Summary, TreeTop)>>);

impl WriteProgress {
    fn note(&self, sink: &Sink) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.0 = sink.summary();
        if seen.1 != *sink.top() {
            seen.1 = sink.top().clone();
        }
    }

    /// Returns the counts so far.
    pub fn summary(&self) -> Summary {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// The name of the file or directory that the sender named. Of several, the first and an
    /// ellipsis.
    pub fn name(&self) -> Option<String> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = String::from_utf8_lossy(&seen.1.first);
        (!first.is_empty()).then(|| if seen.1.others { format!("{first}, …") } else { first.into_owned() })
    }
}

/// The bytes that were written to a pipe, and cannot be taken back.
#[derive(Debug, Default)]
pub(crate) struct PipeTotal {
    hasher: blake3::Hasher,
    bytes: u64,
}

impl PipeTotal {
    fn add(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
    }
}

/// The owner's end of the channel is closed.
struct ReceiverGone;

impl DiskChannels {
    /// Gives a buffer back to the event loop through the channel `back`. To save wake-ups, wakes
    /// the loop only after several buffers (`WAKE_THRESHOLDS`), or when the channel is full.
    /// `quiet`: number and bytes of buffers since the last wake-up.
    fn hand_back(&self, buffer: Vec<u8>, quiet: &mut (usize, usize)) -> Result<(), ReceiverGone> {
        *quiet = (quiet.0 + 1, quiet.1 + buffer.len());
        match self.back.try_send(DiskEvent::Buffer(buffer)) {
            Ok(()) if quiet.0 < WAKE_THRESHOLDS.0 && quiet.1 < WAKE_THRESHOLDS.1 => Ok(()),
            Ok(()) => {
                self.wake(quiet);
                Ok(())
            }
            Err(TrySendError::Full(back)) => {
                self.wake(quiet);
                self.give(back)
            }
            Err(TrySendError::Disconnected(_)) => Err(ReceiverGone),
        }
    }

    /// Wakes the owner if replies were sent since it was last woken.
    fn wake(&self, quiet: &mut (usize, usize)) {
        if std::mem::take(quiet).0 > 0 {
            self.waker.wake();
        }
    }

    fn give(&self, back: DiskEvent) -> Result<(), ReceiverGone> {
        let given = self.back.send(back).map_err(|_| ReceiverGone);
        self.waker.wake();
        given
    }
}

/// Writes a tree until it is complete or the owner closes the channel.
pub(crate) fn write_tree(
    directory: &ReceivingDirectory,
    below: Option<&Subdirectory>,
    transfer: [u8; 16],
    channels: DiskChannels,
) {
    if let Some(before) = &channels.before {
        // It is hung up: of a tree nothing is told but what is on the disk.
        let _ = before.recv();
    }
    let ReceivingDirectory { modes, deletes, .. } = *directory;
    let options = SinkOptions { transfer, modes, deletes, ..SinkOptions::default() };
    match Sink::open_below(&directory.path, below, options) {
        Ok(sink) => {
            let mut writer = TreeWriter {
                file_thread: FileThread::start(),
                together: Vec::new(),
                gathered: 0,
                sink,
                channels,
                pending: Vec::new(),
                finishing: Vec::new(),
                own_reports: Reports::new(),
                quiet: (0, 0),
            };
            if let Err(ReceiverGone) = writer.run() {
                writer.save();
            }
        }
        Err(error) => {
            let _ = channels.give(DiskEvent::Failed(TransferError::Sink(error)));
        }
    }
}

/// Reports to a sender what a transfer would do, and writes nothing.
pub(crate) fn look_at_tree(
    directory: &ReceivingDirectory,
    below: Option<&Subdirectory>,
    mut channels: DiskChannels,
) {
    // When the owner has gone there is nobody to tell.
    let _ = answer_look(directory, below, &mut channels);
}

fn answer_look(
    directory: &ReceivingDirectory,
    below: Option<&Subdirectory>,
    channels: &mut DiskChannels,
) -> Result<(), ReceiverGone> {
    let failed = |error| DiskEvent::Failed(TransferError::Sink(error));
    let mut look = match Look::open(&directory.path, below, directory.deletes) {
        Ok(look) => look,
        Err(error) => return channels.give(failed(error)),
    };
    loop {
        match channels.tasks.recv().map_err(|_| ReceiverGone)? {
            DiskTask::Bytes(bytes) => {
                if let Err(error) = look.records(&bytes) {
                    return channels.give(failed(error));
                }
            }
            DiskTask::Write(write) => channels.give(DiskEvent::Buffer(write.data))?,
            DiskTask::Complete(_) | DiskTask::End => {}
        }
        while look.work() {
            channels.give(DiskEvent::Reports(look.reports()))?;
        }
        let reports = look.reports();
        if look.is_complete() {
            return channels.give(DiskEvent::Done(Summary::default(), reports));
        }
        if !reports.is_empty() {
            channels.give(DiskEvent::Reports(reports))?;
        }
    }
}

fn shown(path: &Path) -> String {
    Printable(path.as_os_str().as_bytes()).to_string()
}

struct TreeWriter {
    /// The thread that makes small files. It is dropped first, so that it writes nothing after the
    /// sink is gone.
    file_thread: Option<FileThread>,
    /// Small files to make in one go, and their bytes.
    together: Vec<SmallFile>,
    gathered: usize,
    sink: Sink,
    channels: DiskChannels,
    /// Writes and ends of objects that the manifest has not announced yet. Their bytes count
    /// against the window, so they are bounded.
    pending: Vec<WriteRequest>,
    finishing: Vec<ObjectId>,
    /// Reads this side's own reports, to learn which objects failed.
    own_reports: Reports,
    /// Buffers given back since the owner was woken, and the number of their bytes.
    quiet: (usize, usize),
}

impl TreeWriter {
    fn run(&mut self) -> Result<(), ReceiverGone> {
        let mut untold = 0;
        loop {
            while let Some(made) = self.file_thread.as_mut().and_then(FileThread::next) {
                if let Err(error) = self.collect(made)? {
                    return self.channels.give(DiskEvent::Failed(TransferError::Sink(error)));
                }
            }
            let more = match self.sink.work(VERIFY_STEP_BYTES) {
                Ok(more) => more,
                Err(error) => return self.channels.give(DiskEvent::Failed(TransferError::Sink(error))),
            };
            if self.sink.is_complete() {
                let reports = self.tell()?;
                return self.channels.give(DiskEvent::Done(self.sink.summary(), reports));
            }
            let task = match self.channels.tasks.try_recv() {
                Ok(task) if untold < TASKS_PER_REPORT => task,
                // There will be no more of them for now.
                Err(TryRecvError::Empty) if !self.together.is_empty() => {
                    if let Err(error) = self.make()? {
                        return self.channels.give(DiskEvent::Failed(TransferError::Sink(error)));
                    }
                    continue;
                }
                // Nothing is left to do, or much was done: all of it is told at once.
                taken => {
                    untold = 0;
                    let reports = self.tell()?;
                    let told = !reports.is_empty();
                    if told {
                        self.channels.give(DiskEvent::Reports(reports))?;
                    }
                    match taken {
                        Ok(task) => task,
                        Err(TryRecvError::Disconnected) => return Err(ReceiverGone),
                        Err(TryRecvError::Empty) => {
                            self.channels.wake(&mut self.quiet);
                            // What was told may have made room for more work.
                            if more || told {
                                continue;
                            }
                            if let Some(made) = self.file_thread.as_mut().and_then(FileThread::wait) {
                                let Ok(made) = made else {
                                    let error = TransferError::ThreadDied("makes small files");
                                    return self.channels.give(DiskEvent::Failed(error));
                                };
                                if let Err(error) = self.collect(made)? {
                                    return self.channels.give(DiskEvent::Failed(TransferError::Sink(error)));
                                }
                                continue;
                            }
                            self.channels.tasks.recv().map_err(|_| ReceiverGone)?
                        }
                    }
                }
            };
            untold += 1;
            if let Err(error) = self.take(task)? {
                return self.channels.give(DiskEvent::Failed(TransferError::Sink(error)));
            }
        }
    }

    /// Writes the received data that the owner left, so that the next attempt can continue from
    /// them.
    fn save(&mut self) {
        let own = SmallFile::make(std::mem::take(&mut self.together));
        let theirs = std::iter::from_fn(|| self.file_thread.as_mut().and_then(FileThread::wait)?.ok());
        for made in own.into_iter().chain(theirs.flatten()) {
            if self.sink.made(made).is_err() {
                return;
            }
        }
        while let Ok(task) = self.channels.tasks.try_recv() {
            let saved = match task {
                DiskTask::Bytes(bytes) => self.sink.records(&bytes),
                DiskTask::Write(write) => self.sink.write(write.object, write.offset, &write.data).map(drop),
                DiskTask::Complete(object) => self.sink.finish(object).map(drop),
                DiskTask::End => Ok(()),
            };
            if saved.is_err() {
                return;
            }
        }
        for write in self.channels.rest.try_iter().flatten() {
            if self.sink.write(write.object, write.offset, &write.data).is_err() {
                return;
            }
        }
    }

    fn take(&mut self, task: DiskTask) -> Result<Result<(), SinkError>, ReceiverGone> {
        let done = match task {
            DiskTask::Bytes(bytes) => match self.sink.records(&bytes) {
                Ok(()) => {
                    for write in std::mem::take(&mut self.pending) {
                        if let Err(error) = self.write(write)? {
                            return Ok(Err(error));
                        }
                    }
                    let finishing = std::mem::take(&mut self.finishing);
                    finishing.into_iter().try_for_each(|object| self.finish(object))
                }
                Err(error) => Err(error),
            },
            DiskTask::Write(write) => self.write(write)?,
            DiskTask::Complete(object) => self.finish(object),
            DiskTask::End => Ok(()),
        };
        Ok(done)
    }

    fn write(&mut self, mut write: WriteRequest) -> Result<Result<(), SinkError>, ReceiverGone> {
        match self.sink.apart(write.object, write.offset, write.data) {
            Ok(small) => {
                self.gathered += small.length();
                self.together.push(small);
                let enough = self.together.len() >= SmallFile::BATCH_FILES || self.gathered >= BATCH_BYTES;
                return if enough { self.make() } else { Ok(Ok(())) };
            }
            Err(data) => write.data = data,
        }
        match self.sink.write(write.object, write.offset, &write.data) {
            Ok(Written::Pending) => {
                self.pending.push(write);
                Ok(Ok(()))
            }
            Ok(Written::Stored | Written::Ignored) => {
                self.channels.hand_back(write.data, &mut self.quiet)?;
                Ok(Ok(()))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    /// Has the small files made that were gathered: by the file_thread, if it has room.
    fn make(&mut self) -> Result<Result<(), SinkError>, ReceiverGone> {
        self.gathered = 0;
        let mut together = std::mem::take(&mut self.together);
        if let Some(file_thread) = self.file_thread.as_mut().filter(|file_thread| file_thread.has_room()) {
            match file_thread.give(together) {
                Ok(()) => return Ok(Ok(())),
                Err(refused) => together = refused,
            }
        }
        self.collect(SmallFile::make(together))
    }

    /// Passes files that the file thread made to the sink.
    fn collect(&mut self, made: Vec<MadeFile>) -> Result<Result<(), SinkError>, ReceiverGone> {
        for made in made {
            match self.sink.made(made) {
                Ok(buffer) => self.channels.hand_back(buffer, &mut self.quiet)?,
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(()))
    }

    fn finish(&mut self, object: ObjectId) -> Result<(), SinkError> {
        if self.sink.finish(object)? == Finish::Pending {
            self.finishing.push(object);
        }
        Ok(())
    }

    /// Returns the reports for the sender, and notifies the owner of failed files.
    fn tell(&mut self) -> Result<Vec<u8>, ReceiverGone> {
        self.channels.progress.note(&self.sink);
        let reports = self.sink.reports();
        // They are this very side's, so that reading them cannot fail.
        for report in self.own_reports.feed(&reports).unwrap_or_default() {
            if let Report::Failed { object, .. } = report {
                self.channels.give(DiskEvent::Forget(object))?;
            }
        }
        for problem in self.sink.problems() {
            self.channels.warnings.give(|| match problem.path.as_os_str().is_empty() {
                true => problem.reason.to_string(),
                false => format!("{}: {}", shown(&problem.path), problem.reason),
            });
        }
        Ok(reports)
    }
}

/// Writes a stream to `output`. At the end reports the number of bytes and their hash. If the
/// stream comes again after a break, bytes that were written before are not written twice, but must
/// have the same hash.
pub(crate) fn write_pipe(mut output: impl Write, mut channels: DiskChannels) {
    let before = channels.before.as_ref().map_or(Ok(PipeTotal::default()), Receiver::recv);
    let Ok(mut poured) = before else {
        let _ =
            channels.give(DiskEvent::Failed(TransferError::ThreadDied("wrote to standard output before")));
        return;
    };
    // When the owner has gone there is nobody to tell.
    let _ = copy_pipe(&mut output, &mut channels, &mut poured);
    // Nobody takes it unless another try follows.
    let _ = channels.ended.try_send(poured);
}

fn copy_pipe(
    output: &mut impl Write,
    channels: &mut DiskChannels,
    poured: &mut PipeTotal,
) -> Result<(), ReceiverGone> {
    let kept = poured.bytes;
    let mut again = PipeTotal::default();
    loop {
        match channels.tasks.recv().map_err(|_| ReceiverGone)? {
            DiskTask::Bytes(bytes) => {
                let known = usize::try_from(kept - again.bytes).unwrap_or(usize::MAX).min(bytes.len());
                let (known, new) = bytes.split_at(known);
                again.add(known);
                if !known.is_empty()
                    && again.bytes == kept
                    && again.hasher.finalize() != poured.hasher.finalize()
                {
                    return channels.give(DiskEvent::Failed(TransferError::OtherStream { kept }));
                }
                if let Err(error) = output.write_all(new) {
                    return channels.give(DiskEvent::Failed(output_error(error)));
                }
                poured.add(new);
                channels.waker.wake();
            }
            DiskTask::End if again.bytes < kept => {
                return channels.give(DiskEvent::Failed(TransferError::OtherStream { kept }));
            }
            DiskTask::End => {
                if let Err(error) = output.flush() {
                    return channels.give(DiskEvent::Failed(output_error(error)));
                }
                let receipt = [&poured.bytes.to_be_bytes()[..], poured.hasher.finalize().as_bytes()].concat();
                let summary = Summary { files: 1, bytes: poured.bytes, ..Summary::default() };
                return channels.give(DiskEvent::Done(summary, receipt));
            }
            DiskTask::Write(_) | DiskTask::Complete(_) => {}
        }
    }
}

fn output_error(error: io::Error) -> TransferError {
    match error.kind() {
        io::ErrorKind::BrokenPipe => TransferError::OutputClosed,
        _ => TransferError::Output(error),
    }
}
