//! Writes a tree that another host sends, and does not trust that host. Symbolic links are made
//! last, so that no file is written through one. Directories get their times last, because each new
//! file changes its directory's time.
//!
//! | part | module |
//! |---|---|
//! | a file under a temporary name, until its whole hash is right | `sink/partial.rs` |
//! | contents, hashed chunk by chunk | `sink/contents.rs` |
//! | which files are here already, and which are wanted | `sink/comparing.rs` |
//! | further names of files | `sink/hard_links.rs` |
//! | chunks from an earlier try, offered to the sender | `sink/earlier_try.rs` |
//! | what is here and no longer at the sender | `sink/mirror.rs` |
//! | moving it to the trash | `sink/deleting.rs` |

mod answers;
mod comparing;
mod contents;
mod deferred_work;
mod deleting;
mod earlier_try;
mod hard_links;
mod look;
mod mirror;
mod modes;
mod partial;
mod placement;
mod read_back;
mod small_file;
mod small_files;
mod writing;

use crate::chunks::Layout;
use crate::contained_dir::Beneath;
use crate::error::SinkError;
use crate::manifest::{ComparePlan, Counts, MANIFEST_VERSION, Metadata, Record, RecordReader};
use crate::name::{Subdirectory, check_name};
use crate::receiver_report::{Reason, Report};
use crate::trash::TrashName;
use crate::tree_selection::SelectionError;
use crate::tree_walk::to_path;
use crate::{MAX_OUTSTANDING, NameError};
use answers::{Answer, Answers, FileStanding};
use byway_engine::data::{NumberedMap, RangeSet};
use byway_wire::{DecodeError, ObjectId};
use contents::{Contents, Incoming};
use deferred_work::{DeferredWork, PendingHardLink};
pub use look::Look;
use mirror::Mirror;
pub use modes::Modes;
use partial::{Key, Partials};
use read_back::ReadBack;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
pub use small_file::{MadeFile, SmallFile};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};

/// The most problems that are kept until [`Sink::problems`] takes them. Later ones are only
/// counted.
const MAX_PROBLEMS: usize = 1_024;

/// Ranges of holes remembered at most, of all files together: 16 MiB.
const MAX_HOLES: usize = 1 << 20;

/// Options of receiving.
#[derive(Clone, Copy, Debug)]
pub struct SinkOptions {
    /// Names the transfer: the same when it is tried again, another for any other into the same
    /// directory.
    pub transfer: [u8; 16],
    /// The mode bits that are set on files and directories. By default the umask 022 applies, so
    /// that others cannot write.
    pub modes: Modes,
    /// Put each file on stable storage before it gets its final name. This is slow. Without it, a
    /// file may be empty if the host crashes during the transfer. A repeated transfer replaces such
    /// a file.
    pub durable: bool,
    /// Whether the whole tree is synced to stable storage before it is reported complete.
    pub sync: bool,
    /// Whether entries that a sender no longer has are moved to the trash, if the sender asks for
    /// that.
    pub deletes: bool,
    /// Files held open at a time.
    pub open_files: usize,
    /// Memory for directories and links, which wait until the end, in bytes.
    pub memory: usize,
}

impl Default for SinkOptions {
    fn default() -> Self {
        Self {
            transfer: [0; 16],
            modes: Modes::Masked(0o022),
            durable: false,
            sync: true,
            deletes: true,
            // Small files wait for their hash, which comes a piece of the manifest later.
            open_files: 256,
            memory: 256 << 20,
        }
    }
}

/// The result of bytes given to [`Sink::write`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The bytes are in the partial file.
    Stored,
    /// The object was not announced yet, or it is not known yet which of its bytes are sent. Keep
    /// the bytes, and write them again after more records.
    Pending,
    /// The object has already been verified or has failed, so the bytes are not needed.
    Ignored,
}

/// The result of [`Sink::finish`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The object is verified and under its final name.
    Verified,
    /// The file is not in place, and will not be.
    Failed(Reason),
    /// The object is complete, and waits for its hash.
    Waiting,
    /// The object was not announced yet. Finish it again after more records.
    Pending,
    /// The object was already verified or has failed.
    Settled,
}

/// An entry that did not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The path of the entry in the manifest.
    pub path: PathBuf,
    /// Why the entry did not arrive.
    pub reason: Reason,
    /// More, for a person; may be empty.
    pub detail: String,
}

/// The counts of all that was received so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The counts of announced entries so far.
    pub announced: Counts,
    /// Number of files in place.
    pub files: u64,
    /// Bytes of the files in place.
    pub bytes: u64,
    /// Number of entries that failed.
    pub failed: u64,
    /// Bytes of files in place that were here before.
    pub kept: u64,
    /// Number of files that were here before, with the same size and time.
    pub unchanged: u64,
    /// Bytes of the files announced that do not travel: they are here already, or are holes.
    pub skipped: u64,
    /// The size of all files in bytes, as the sender claims. `None`: it has sent none.
    pub total: Option<u64>,
    /// Number of entries that were moved to the trash, because the sender no longer has them.
    pub deleted: u64,
    /// Number of entries that should have been moved to the trash, and were not.
    pub undeleted: u64,
    /// The folder of the trash with the deleted entries.
    pub trash: Option<TrashName>,
}

/// The longest name of a tree's first entry that is shown with the directory before it, in bytes.
const MAX_TOP_LEN: usize = 255;

/// The first entry at the top of a tree, as far as it was received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeTop {
    /// The name of the first, behind the directory in which the tree lands: `photos`, or
    /// `2026/photos`.
    pub first: Vec<u8>,
    /// Whether there are other entries at the top.
    pub others: bool,
}

/// A tree that is being received.
#[derive(Debug)]
pub struct Sink {
    path: PathBuf,
    options: SinkOptions,
    tree: Beneath,
    partials: Partials,
    reader: RecordReader,
    state: SinkState,
    /// The object that the next FILE record must have.
    next_object: u32,
    objects: NumberedMap<ObjectId, Incoming>,
    keys: BTreeSet<Key>,
    /// Objects that failed while another thread was making their files.
    orphans: BTreeMap<ObjectId, Key>,
    /// The rules by which files here are compared with the sender's. `None`: all are sent whole.
    plan: Option<ComparePlan>,
    answers: Answers,
    /// The entries that the sender no longer has. `None`: no entry is deleted.
    mirror: Option<Box<Mirror>>,
    /// A directory that this transfer has made, so that entries below it need no check. Empty:
    /// none.
    fresh: Vec<u8>,
    /// Objects whose existing chunks are to be reported to the sender, in order.
    asked: VecDeque<ObjectId>,
    read_back: Option<ReadBack>,
    /// The holes of the file that is announced next.
    holes: Option<RangeSet>,
    /// Ranges of holes remembered, of all objects together.
    holes_held: usize,
    deferred_work: DeferredWork,
    out: Vec<u8>,
    problems: VecDeque<Problem>,
    summary: Summary,
    top: TreeTop,
    /// The reason of the last failure.
    last_failure: Reason,
    /// Entries that did not arrive. A newer file that is kept is none.
    losses: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SinkState {
    /// The sink has received nothing yet.
    Begun,
    /// The START record was received.
    Receiving,
    /// The END record was received.
    Ended,
    /// The sink has reported DONE.
    Complete,
    /// The manifest is not valid; nothing more is done.
    Broken,
}

impl Sink {
    /// Opens `directory`, makes missing directories of its path, and finds out whether it can be
    /// written to.
    ///
    /// # Errors
    /// `directory` is no directory, is not writable, read-only or full, or another sink receives
    /// the same transfer into it.
    pub fn open(directory: &Path, options: SinkOptions) -> Result<Self, SinkError> {
        Self::open_below(directory, None, options)
    }

    /// Opens as [`Self::open`] does, for a tree in `below`, a directory below `directory`. A
    /// missing one is made, and no component may be a symbolic link.
    ///
    /// # Errors
    /// As [`Self::open`], or `below` has a symbolic link or something else than a directory.
    pub fn open_below(
        directory: &Path,
        below: Option<&Subdirectory>,
        options: SinkOptions,
    ) -> Result<Self, SinkError> {
        std::fs::create_dir_all(directory).map_err(|cause| SinkError::from_io(directory, cause))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut root = rustix::fs::open(directory, flags, Mode::empty())
            .map_err(|errno| SinkError::from_io(directory, errno.into()))?;
        let place = below.map(|below| directory.join(to_path(below.as_bytes().to_vec())));
        let directory = place.as_deref().unwrap_or(directory);
        let failed = |cause: io::Error| SinkError::from_io(directory, cause);
        if let Some(below) = below {
            root = Beneath::new(root).into_subdirectory(below.as_bytes()).map_err(|errno| match errno {
                Errno::NOTDIR | Errno::LOOP => SinkError::NotADirectory(directory.to_owned()),
                errno => failed(errno.into()),
            })?;
        }
        let second = root.try_clone().map_err(failed)?;
        let partials = Partials::open(second, options.transfer, options.open_files).map_err(|errno| {
            let partial = directory.join(crate::PARTIAL_DIRECTORY);
            match errno {
                Errno::WOULDBLOCK => SinkError::Busy(directory.to_owned()),
                Errno::NOTDIR | Errno::LOOP => SinkError::NotADirectory(partial),
                errno => failed(errno.into()),
            }
        })?;
        Ok(Self {
            path: directory.to_owned(),
            options,
            tree: Beneath::new(root),
            partials,
            reader: RecordReader::default(),
            state: SinkState::Begun,
            next_object: 0,
            objects: NumberedMap::default(),
            keys: BTreeSet::new(),
            orphans: BTreeMap::new(),
            plan: None,
            answers: Answers::default(),
            mirror: None,
            fresh: Vec::new(),
            asked: VecDeque::new(),
            read_back: None,
            holes: None,
            holes_held: 0,
            deferred_work: DeferredWork::default(),
            out: Vec::new(),
            problems: VecDeque::new(),
            summary: Summary::default(),
            top: TreeTop::default(),
            last_failure: Reason::Other,
            losses: 0,
        })
    }

    /// Handles the next bytes of the manifest stream. `bytes` may begin or end within a record.
    ///
    /// # Errors
    /// The bytes are no valid manifest, or the disk cannot be used. After an error no further file
    /// gets its final name.
    pub fn records(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        let mut reader = std::mem::take(&mut self.reader);
        let fed = reader.feed(bytes, |record| self.record(record));
        self.reader = reader;
        if fed.is_err() {
            self.state = SinkState::Broken;
        }
        fed
    }

    /// Finishes an object; to be called after its last byte was written. Once the HASH record is
    /// known, the file gets its final name, or fails if its hash differs.
    ///
    /// # Errors
    /// The disk is full or unusable.
    pub fn finish(&mut self, object: ObjectId) -> Result<Finish, SinkError> {
        let Some(incoming) = self.objects.get_mut(object) else {
            let known = object.0 < self.next_object;
            return Ok(if known { Finish::Settled } else { Finish::Pending });
        };
        if !incoming.is_open() {
            return Ok(Finish::Pending);
        }
        if self.state == SinkState::Broken || std::mem::replace(&mut incoming.finished, true) {
            return Ok(Finish::Waiting);
        }
        if incoming.is_ready() { self.conclude(object) } else { Ok(Finish::Waiting) }
    }

    /// Takes the bytes to send on the stream of reports.
    pub fn reports(&mut self) -> Vec<u8> {
        self.answers.flush(&mut self.out);
        std::mem::take(&mut self.out)
    }

    /// Takes the problems since the last call. Some are left out if there were very many in
    /// between.
    pub fn problems(&mut self) -> Vec<Problem> {
        self.problems.drain(..).collect()
    }

    /// Returns the counts of all that was received so far.
    #[must_use]
    pub const fn summary(&self) -> Summary {
        self.summary
    }

    /// Returns the first entry at the top of the tree, as far as it was received.
    #[must_use]
    pub const fn top(&self) -> &TreeTop {
        &self.top
    }

    /// Whether all is done. Then files are in place, times and modes set, nothing partial is left,
    /// and DONE is among the reports.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.state == SinkState::Complete
    }

    fn record(&mut self, record: Record<'_>) -> Result<(), SinkError> {
        match (self.state, record) {
            (SinkState::Begun, Record::Start { version: MANIFEST_VERSION }) => {
                self.state = SinkState::Receiving;
                Ok(())
            }
            (SinkState::Begun, Record::Start { version }) => Err(SinkError::Version(version)),
            (SinkState::Receiving, record) => self.entry(record),
            _ => Err(DecodeError::Range("order of records").into()),
        }
    }

    fn entry(&mut self, record: Record<'_>) -> Result<(), SinkError> {
        if self.holes.is_some() && !matches!(record, Record::File { .. }) {
            return Err(DecodeError::Range("order of records").into());
        }
        match record {
            Record::Holes(holes) => self.holes = Some(holes.set()),
            Record::Compare(plan) if self.plan.is_none() && self.summary.announced == Counts::default() => {
                self.begin_comparing(plan)?;
            }
            Record::Filter { excludes, pattern } if self.summary.announced == Counts::default() => {
                self.protect(|mirror| match mirror.filter.add(pattern, excludes) {
                    Ok(()) => Ok(()),
                    Err(SelectionError::TooManyPatterns) => Err(SinkError::TooMany("patterns")),
                    Err(_) => Err(DecodeError::Range("pattern").into()),
                })?;
            }
            Record::Root { path } => {
                if !path.is_empty() && check_name(path).is_err() {
                    return Err(DecodeError::Range("path").into());
                }
                self.protect(|mirror| Ok(mirror.enter_root(path)?))?;
            }
            Record::Keep { path } => {
                if path.is_empty() && self.plan.is_some_and(|plan| plan.deletes) {
                    self.delete_nothing();
                    return Ok(());
                }
                if check_name(path).is_err() {
                    return Err(DecodeError::Range("path").into());
                }
                self.protect(|mirror| Ok(mirror.keep(path)?))?;
            }
            Record::Start { .. } | Record::Compare(_) | Record::Filter { .. } => {
                return Err(DecodeError::Range("order of records").into());
            }
            Record::Total { bytes } => self.summary.total = Some(bytes),
            Record::Directory { metadata, path } => {
                self.arrive(path)?;
                self.note_top(path);
                self.summary.announced.directories += 1;
                let mode = self.options.modes.of_directory(metadata.mode);
                self.make_directory(path, Metadata { mode, ..metadata })?;
            }
            Record::Symlink { mtime, path, target } => {
                self.arrive(path)?;
                self.note_top(path);
                self.summary.announced.symlinks += 1;
                if let Err(error) = check_name(path).and_then(|()| check_target(target)) {
                    self.refuse(path.to_vec(), Reason::Name, error.to_string());
                } else {
                    self.deferred_work.link(path, target, mtime, self.options.memory)?;
                }
            }
            Record::HardLink { size, mtime, path, first } => {
                self.note_top(path);
                self.arrive(path)?;
                self.summary.announced.files += 1;
                if let Err(error) = check_name(path).and_then(|()| check_name(first)) {
                    self.refuse(path.to_vec(), Reason::Name, error.to_string());
                } else {
                    let (path, first) = (path.to_vec(), first.to_vec());
                    let link = PendingHardLink { path, first, size, mtime };
                    self.deferred_work.hard_link(link, self.options.memory)?;
                }
            }
            Record::File { object, size, metadata, path } => {
                if self.objects.len() >= MAX_OUTSTANDING {
                    return Err(SinkError::TooMany("unfinished files"));
                }
                self.next_object += 1;
                self.arrive(path)?;
                self.note_top(path);
                self.summary.announced.files += 1;
                self.summary.announced.bytes = self.summary.announced.bytes.saturating_add(size);
                let metadata = Metadata { mode: self.options.modes.of_file(metadata.mode), ..metadata };
                let holes = self.holes.take().unwrap_or_default();
                let layout = Layout::new(size);
                if holes.end() > layout.count().into() || !holes.is_empty() && !layout.is_divided() {
                    return Err(DecodeError::Range("holes").into());
                }
                self.announce(object, size, metadata, path, holes)?;
            }
            Record::Hash { object, hash } => {
                self.announced(object)?;
                if let Some(incoming) = self.objects.get_mut(object) {
                    if incoming.hash.replace(hash).is_some() {
                        return Err(DecodeError::Range("second hash").into());
                    }
                    if !incoming.is_open() {
                        return Err(DecodeError::Range("order of records").into());
                    }
                    if incoming.is_ready() {
                        self.conclude(object)?;
                    }
                }
            }
            Record::Parts { object, kept } => {
                self.announced(object)?;
                self.take_parts(object, &kept.set())?;
            }
            Record::Withdrawn { object, .. } => {
                self.announced(object)?;
                self.fail(object, Reason::Withdrawn, String::new());
            }
            Record::End(counts) => {
                if counts != self.summary.announced {
                    return Err(DecodeError::Range("counts at the end").into());
                }
                if self.objects.iter().any(|incoming| incoming.hash.is_none()) {
                    return Err(DecodeError::Range("end before every hash").into());
                }
                self.mirror.iter_mut().for_each(|mirror| mirror.leave_all());
                self.state = SinkState::Ended;
            }
        }
        Ok(())
    }

    /// Starts to receive a file. If it fails at once, the sender gets a report, so that it need not
    /// send the bytes.
    fn announce(
        &mut self,
        object: ObjectId,
        size: u64,
        metadata: Metadata,
        path: &[u8],
        holes: RangeSet,
    ) -> Result<(), SinkError> {
        let key = Key::new(path, size, &metadata);
        let refused = match check_name(path) {
            Err(error) => Some((Reason::Name, error.to_string())),
            Ok(()) if self.keys.contains(&key) => Some((Reason::Protocol, "named twice".to_owned())),
            Ok(()) => None,
        };
        if let Some((reason, detail)) = refused {
            // Not by way of `fail`: the key, and the file of that key, may be another object's.
            self.report_failure(object, path.to_vec(), reason, detail);
            return Ok(());
        }
        let asked = match self.compare(path, size, &metadata) {
            FileStanding::Same => {
                self.same(object, size);
                return Ok(());
            }
            FileStanding::Newer => {
                self.keep_newer(|detail| Report::Failed { object, reason: Reason::Newer, detail }, path);
                return Ok(());
            }
            FileStanding::Wanted => false,
            FileStanding::Chunks => true,
        };
        let incoming = Incoming::new(path.to_vec(), size, metadata, key, holes, asked);
        self.holes_held += incoming.hashes.holes.count();
        if self.holes_held > MAX_HOLES {
            return Err(SinkError::TooMany("holes"));
        }
        if asked {
            self.asked.push_back(object);
        } else {
            if self.plan.is_some() {
                self.answers.give(Answer::Wanted, object, &mut self.out);
            }
            self.summary.skipped = self.summary.skipped.saturating_add(size - incoming.travels.size());
        }
        self.keys.insert(key);
        self.objects.insert(object, incoming);
        Ok(())
    }

    fn note_top(&mut self, path: &[u8]) {
        if self.summary.announced == Counts::default() {
            // Directories stand before what they hold. So what stands before the first entry's own
            // name is where the tree lands.
            let is_short = path.len() <= MAX_TOP_LEN;
            let first = if is_short { Some(path) } else { path.split(|byte| *byte == b'/').next() };
            self.top.first = first.unwrap_or_default().to_vec();
        } else {
            let rest = path.strip_prefix(self.top.first.as_slice());
            self.top.others |= !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"));
        }
    }

    fn announced(&self, object: ObjectId) -> Result<(), SinkError> {
        if object.0 < self.next_object { Ok(()) } else { Err(DecodeError::Range("object").into()) }
    }

    /// Marks an object as failed, and removes its partial file.
    fn fail(&mut self, object: ObjectId, reason: Reason, detail: String) {
        let Some(incoming) = self.objects.remove(object) else { return };
        if incoming.is_created() {
            self.partials.discard(object, incoming.key, &incoming.hashes.layout);
        }
        if incoming.contents == Contents::Apart {
            self.orphans.insert(object, incoming.key);
        } else {
            self.keys.remove(&incoming.key);
        }
        self.holes_held -= incoming.hashes.holes.count();
        self.report_failure(object, incoming.path, reason, detail);
    }

    /// Marks an object as failed with a system error, or ends the transfer if the error concerns
    /// all of it.
    fn fail_io(&mut self, object: ObjectId, error: io::Error) -> Result<(), SinkError> {
        let (reason, detail) = self.judge(error)?;
        self.fail(object, reason, detail);
        Ok(())
    }

    fn report_failure(&mut self, object: ObjectId, path: Vec<u8>, reason: Reason, detail: String) {
        Report::Failed { object, reason, detail: detail.clone() }.encode(&mut self.out);
        self.note(path, reason, detail);
    }

    /// Reports a directory or link that cannot be made.
    fn refuse(&mut self, path: Vec<u8>, reason: Reason, detail: String) {
        Report::Refused { path: path.clone(), reason, detail: detail.clone() }.encode(&mut self.out);
        self.note(path, reason, detail);
    }

    fn note(&mut self, path: Vec<u8>, reason: Reason, detail: String) {
        self.summary.failed += 1;
        self.losses += u64::from(reason != Reason::Newer);
        self.last_failure = reason;
        self.keep_problem(path, reason, detail);
    }

    fn keep_problem(&mut self, path: Vec<u8>, reason: Reason, detail: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push_back(Problem { path: to_path(path), reason, detail });
        }
    }

    /// Turns a system error into the reason of one entry, or into the error that ends the transfer.
    fn judge(&self, error: io::Error) -> Result<(Reason, String), SinkError> {
        use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        if matches!(error.kind(), StorageFull | QuotaExceeded | ReadOnlyFilesystem) {
            return Err(SinkError::from_io(&self.path, error));
        }
        let reason = match Errno::from_io_error(&error) {
            Some(Errno::ISDIR) => Reason::IsDirectory,
            Some(Errno::NOTDIR) => Reason::NotADirectory,
            Some(Errno::LOOP) => Reason::Link,
            Some(Errno::NAMETOOLONG | Errno::INVAL | Errno::ILSEQ) => Reason::Name,
            Some(Errno::ACCESS | Errno::PERM) => Reason::Denied,
            Some(Errno::FBIG) => Reason::TooLarge,
            Some(Errno::XDEV) => Reason::OtherFileSystem,
            _ => Reason::Other,
        };
        Ok((reason, error.to_string()))
    }
}

/// Whether `target` is permitted as the target of a link. Links are never followed, so it may lead
/// anywhere.
fn check_target(target: &[u8]) -> Result<(), NameError> {
    if target.is_empty() {
        return Err(NameError::Empty);
    }
    if target.contains(&0) { Err(NameError::Nul) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
