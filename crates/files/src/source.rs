//! Reads a tree for sending: the manifest as a stream, contents on demand, hashes as a by-product
//! of reading.

mod contents;
mod outgoing;

use crate::error::SourceError;
use crate::manifest::{
    ChunkRanges, ComparePlan, Counts, MANIFEST_VERSION, MODE_MASK, Record, RecordCodec, Withdrawal,
};
use crate::name::Subdirectory;
use crate::not_copied::NotCopied;
use crate::open_files::OpenFiles;
use crate::sender_journals::Journals;
use crate::source_options::SourceOptions;
use crate::tree_selection::TreeSelection;
use crate::tree_walk::{Entry, Walk, Warning, WarningKind};
use crate::{MAX_OUTSTANDING, NameError, check_name};
use byway_engine::data::NumberedMap;
use byway_wire::codec::VARINT_MAX;
use byway_wire::{ObjectId, frame};
use outgoing::Outgoing;
use std::collections::{BTreeSet, VecDeque};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

/// The most warnings that are kept until [`Source::warnings`] takes them. Later ones are only
/// counted.
const MAX_WARNINGS: usize = 1_024;
/// The most entries that one call of [`Source::next_records`] looks at, however much room there is.
const MAX_ENTRIES: usize = 4_096;

/// An object that the manifest has announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewObject {
    /// The number of the object, from 0 without a gap.
    pub id: ObjectId,
    /// The size of the object in bytes. Of an object of size 0 nothing need be sent.
    pub size: u64,
}

/// A piece of the manifest stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The next bytes of the stream. Need not end with a record.
    pub bytes: Vec<u8>,
    /// Objects to send from now on, in order.
    pub objects: Vec<NewObject>,
    /// Objects whose remaining bytes are of no use any more.
    pub withdrawn: Vec<ObjectId>,
}

/// A tree that is being sent.
#[derive(Debug)]
pub struct Source {
    walk: Walk,
    options: SourceOptions,
    /// The directory for the tree, below the receiver's directory.
    below: Option<Subdirectory>,
    objects: NumberedMap<ObjectId, Outgoing>,
    open: OpenFiles,
    next_object: u32,
    /// The lowest object for which the receiver may still answer whether it wants the file.
    next_answer: u32,
    /// Objects with neither hash nor withdrawal yet.
    unsettled: usize,
    /// Objects that were read to their end, but not completely in order.
    behind: BTreeSet<ObjectId>,
    settled: VecDeque<(ObjectId, FileResult)>,
    /// Bytes of the stream that did not fit the limit of the last batch.
    out: Vec<u8>,
    codec: RecordCodec,
    state: SourceState,
    counts: Counts,
    warnings: VecDeque<Warning>,
    unsent: u64,
    /// Entries that patterns exclude.
    excluded: u64,
    /// The journals of the transfer, for another try.
    journals: Option<Journals>,
    /// Whether the receiver is asked which chunks an earlier try left.
    resuming: bool,
    /// Number of files that the receiver reports as equal.
    unchanged: u64,
    /// Objects whose chunks to send have just been decided.
    divided: VecDeque<NewObject>,
    /// Bytes that are not sent because the receiver has them.
    kept: u64,
    /// Bytes that are not sent: those in `kept`, and holes.
    skipped: u64,
    /// Whether the total size was sent by [`tell_total`](Self::tell_total).
    told: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SourceState {
    Begun,
    Walking,
    Walked,
    Ended,
}

#[derive(Clone, Copy, Debug)]
enum FileResult {
    Hash([u8; 32]),
    Withdrawn(Withdrawal),
}

impl Source {
    /// Opens `paths` for sending. A symbolic link among them is followed, and its target gets the
    /// link's name. Links below a named directory are sent as links.
    ///
    /// | path | what arrives |
    /// |---|---|
    /// | `photos`, `photos/` | a directory `photos`; with [`SourceOptions::into_root`] what it holds |
    /// | `photos/.`, `.`, `..`, `/` | what the directory holds, without its name |
    /// | `a/b.txt` | `b.txt` |
    ///
    /// # Errors
    /// A path does not exist or cannot be read, or two paths would arrive under the same name.
    pub fn open(paths: &[PathBuf], options: SourceOptions) -> Result<Self, SourceError> {
        Ok(Self {
            walk: Walk::open(paths, &options)?,
            options,
            below: None,
            objects: NumberedMap::default(),
            open: OpenFiles::new(options.open_files),
            next_object: 0,
            next_answer: 0,
            unsettled: 0,
            behind: BTreeSet::new(),
            settled: VecDeque::new(),
            out: Vec::new(),
            codec: RecordCodec::default(),
            state: SourceState::Begun,
            counts: Counts::default(),
            warnings: VecDeque::new(),
            unsent: 0,
            excluded: 0,
            journals: None,
            resuming: false,
            unchanged: 0,
            divided: VecDeque::new(),
            kept: 0,
            skipped: 0,
            told: false,
        })
    }

    /// Restricts the tree to the selected entries.
    #[must_use]
    pub fn select(mut self, selection: Arc<TreeSelection>) -> Self {
        self.walk = self.walk.select(selection);
        self
    }

    /// Lets the tree land in a directory below the receiver's.
    #[must_use]
    pub fn below(mut self, below: Option<Subdirectory>) -> Self {
        self.below = below;
        self
    }

    /// Writes `journals`, so that a later run can resume the transfer. If `journals` are from an
    /// earlier run, the receiver is asked which chunks it has of each file ([`Self::have`]).
    #[must_use]
    pub fn with_journals(mut self, journals: Journals) -> Self {
        self.resuming = journals.was_begun();
        self.journals = Some(journals);
        self
    }

    /// Removes the journals, because the receiver has the whole tree.
    pub fn forget_journals(&mut self) {
        if let Some(journals) = self.journals.take() {
            journals.remove();
        }
    }

    /// Returns the number of files that are not sent, because the receiver reports files of the
    /// same size and time.
    #[must_use]
    pub const fn unchanged(&self) -> u64 {
        self.unchanged
    }

    /// Returns the number of excluded entries so far. A directory counts as one, with all that it
    /// holds.
    #[must_use]
    pub const fn excluded(&self) -> u64 {
        self.excluded
    }

    /// Whether a file of the receiver that is newer is no failure.
    #[must_use]
    pub const fn expects_newer(&self) -> bool {
        self.options.expects_newer
    }

    /// Returns the bytes that are not sent because the receiver has them.
    #[must_use]
    pub const fn kept(&self) -> u64 {
        self.kept
    }

    /// Returns the bytes of announced files that are not sent: the receiver has them, or they are
    /// holes.
    #[must_use]
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Tells the receiver that all files together have `bytes` bytes, unless it was told before.
    /// The caller has counted them. Without this call, the receiver is told once the last file is
    /// announced.
    pub fn tell_total(&mut self, bytes: u64) {
        if self.state == SourceState::Walking && !std::mem::replace(&mut self.told, true) {
            self.codec.encode(&Record::Total { bytes }, &mut self.out);
        }
    }

    /// The next bytes of the manifest, at most `limit`, and the objects that the receiver wants
    /// now. `objects`: roughly the most objects to announce. An empty batch means that the receiver
    /// must answer or announced objects be read first, or that the stream
    /// [has ended](Self::is_finished).
    pub fn next_records(&mut self, limit: usize, objects: usize) -> Batch {
        let mut batch = Batch::default();
        if self.state == SourceState::Begun {
            self.codec.encode(&Record::Start { version: MANIFEST_VERSION }, &mut self.out);
            let plan = ComparePlan {
                resumes: self.resuming,
                contents: self.options.compares_contents,
                replaces_newer: self.options.replaces_newer,
                deletes: self.options.deletes,
                expects_newer: self.options.expects_newer,
            };
            self.codec.encode(&Record::Compare(plan), &mut self.out);
            if self.options.deletes {
                for (pattern, excludes) in self.walk.filter().patterns() {
                    self.codec.encode(&Record::Filter { excludes, pattern }, &mut self.out);
                }
            }
            self.state = SourceState::Walking;
        }
        self.catch_up();
        self.say_settled(limit, &mut batch);
        let (mut entries, mut announced) = (MAX_ENTRIES, 0);
        while self.state == SourceState::Walking
            && self.out.len() < limit
            && announced < objects
            && self.objects.len() < MAX_OUTSTANDING
            && entries > 0
        {
            entries -= 1;
            // One that would be closed again before it is read need not be opened.
            self.walk.opens = !self.options.looks && self.open.has_room();
            match self.walk.step() {
                Some(entry) => {
                    announced += usize::from(matches!(entry, Entry::File { .. }));
                    self.announce(entry);
                }
                None => {
                    self.tell_total(self.counts.bytes);
                    self.state = SourceState::Walked;
                }
            }
        }
        self.say_settled(limit, &mut batch);
        if self.state == SourceState::Walked && self.unsettled == 0 && self.settled.is_empty() {
            if self.options.deletes && self.unsent > 0 {
                // What could not be sent may be what the receiver has under another name.
                self.codec.encode(&Record::Keep { path: b"" }, &mut self.out);
            }
            self.codec.encode(&Record::End(self.counts), &mut self.out);
            self.state = SourceState::Ended;
        }
        let rest = self.out.split_off(limit.min(self.out.len()));
        batch.bytes = std::mem::replace(&mut self.out, rest);
        // Not before what announces them, or their bytes would wait at the receiver for a record
        // that waits for room.
        if self.out.is_empty() {
            let objects = &self.objects;
            let wanted = |new: &NewObject| objects.get(new.id).is_some_and(|it| !it.withdrawn);
            batch.objects.extend(self.divided.drain(..).filter(wanted));
        }
        batch
    }

    /// Returns the bytes of all files. `None`: the walk has not found all of them yet.
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        matches!(self.state, SourceState::Walked | SourceState::Ended).then_some(self.counts.bytes)
    }

    /// Whether the whole manifest was handed out.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.state == SourceState::Ended && self.out.is_empty()
    }

    /// Fills `buffer` with an object's bytes from `offset` on. Returns the count of bytes filled:
    /// less than asked only at the object's end. If the file has changed or is unreadable, fills
    /// zeros and withdraws the object.
    ///
    /// # Errors
    /// [`SourceError::NoSuchObject`].
    pub fn read_into(
        &mut self,
        object: ObjectId,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, SourceError> {
        let outgoing = self.objects.get(object).ok_or(SourceError::NoSuchObject(object))?;
        let left = outgoing.size().saturating_sub(offset);
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let buffer = buffer.get_mut(..length).unwrap_or_default();
        if buffer.is_empty() {
            return Ok(0);
        }
        if outgoing.withdrawn {
            buffer.fill(0);
        } else if let Err(error) = self.fill(object, offset, buffer) {
            buffer.fill(0);
            self.withdraw(object, error);
        }
        Ok(length)
    }

    /// Reads as [`Self::read_into`] does, into a new buffer of at most `length` bytes.
    ///
    /// # Errors
    /// [`SourceError::NoSuchObject`].
    pub fn read(&mut self, object: ObjectId, offset: u64, length: usize) -> Result<Vec<u8>, SourceError> {
        let size = self.objects.get(object).map_or(0, |outgoing| outgoing.size());
        let left = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut buffer = vec![0; length.min(left)];
        let read = self.read_into(object, offset, &mut buffer)?;
        buffer.truncate(read);
        Ok(buffer)
    }

    /// Forgets an object that a report settled. One that was not read to its end is withdrawn,
    /// silently: the receiver knows already.
    pub fn release(&mut self, object: ObjectId) {
        let Some(outgoing) = self.objects.remove(object) else { return };
        self.open.remove(object);
        self.behind.remove(&object);
        if let Some(journals) = &mut self.journals {
            journals.close(object);
        }
        if !outgoing.settled {
            self.unsettled = self.unsettled.saturating_sub(1);
            self.settled.push_back((object, FileResult::Withdrawn(Withdrawal::Unreadable)));
        }
    }

    /// Whether [`Self::next_records`] has contents to hash, so that it is worth calling again at
    /// once.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        !self.behind.is_empty()
    }

    /// Returns the path of an object in the manifest. `None`: the object was released.
    #[must_use]
    pub fn path(&self, object: ObjectId) -> Option<&[u8]> {
        self.objects.get(object).map(|outgoing| outgoing.path.as_slice())
    }

    /// Returns the counts of all that was announced so far.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Entries that should have been sent and were not, so far: the transfer is partial if there
    /// are any.
    #[must_use]
    pub const fn unsent(&self) -> u64 {
        self.unsent
    }

    /// Returns the counts of metadata met so far that are not copied.
    #[must_use]
    pub const fn not_copied(&self) -> NotCopied {
        self.walk.not_copied
    }

    /// Takes the warnings since the last call. Some are left out if there were very many in
    /// between.
    pub fn warnings(&mut self) -> Vec<Warning> {
        self.warnings.drain(..).collect()
    }

    /// Returns the path of an entry in the manifest. `None`: the path is too long to be sent, which
    /// is reported.
    fn sent_path(&mut self, path: &[u8]) -> Option<Vec<u8>> {
        let Some(below) = &self.below else { return Some(path.to_vec()) };
        let sent = below.holds(path);
        if check_name(&sent).is_err() {
            self.keep(path);
            let path = crate::tree_walk::to_path(path.to_vec());
            self.warn(Warning { path, kind: WarningKind::LongPath });
            return None;
        }
        Some(sent)
    }

    /// The receiver keeps what it has at the path of an entry that is not sent. If the path is too
    /// long for a record, it keeps all that is in a directory above.
    fn keep(&mut self, path: &[u8]) {
        if !self.options.deletes {
            return;
        }
        let path = self.below.as_ref().map_or_else(|| path.to_vec(), |below| below.holds(path));
        let mut path = path.as_slice();
        while check_name(path) == Err(NameError::Long) {
            path = crate::name::split(path).0;
        }
        if check_name(path).is_ok() {
            self.codec.encode(&Record::Keep { path }, &mut self.out);
        }
    }

    fn announce(&mut self, entry: Entry) {
        let (of_directory, of_file) =
            if self.options.special_modes { (MODE_MASK, MODE_MASK) } else { (0o1777, 0o777) };
        match entry {
            Entry::Warning(warning) => {
                self.keep(warning.path.as_os_str().as_bytes());
                self.warn(warning);
            }
            Entry::Excluded { path } => {
                self.excluded += 1;
                self.keep(&path);
            }
            Entry::Root { path } => {
                let path = match &self.below {
                    Some(below) if path.is_empty() => below.as_bytes().to_vec(),
                    Some(below) => below.holds(&path),
                    None => path,
                };
                if path.is_empty() || check_name(&path).is_ok() {
                    self.codec.encode(&Record::Root { path: &path }, &mut self.out);
                }
            }
            Entry::Directory { path, mut metadata } => {
                let Some(path) = self.sent_path(&path) else { return };
                metadata.mode &= of_directory;
                self.counts.directories += 1;
                self.codec.encode(&Record::Directory { metadata, path: &path }, &mut self.out);
            }
            Entry::Symlink { path, mtime, target } => {
                if check_name(&target) == Err(NameError::Long) {
                    self.keep(&path);
                    let path = crate::tree_walk::to_path(path);
                    return self.warn(Warning { path, kind: WarningKind::LongPath });
                }
                let Some(path) = self.sent_path(&path) else { return };
                self.counts.symlinks += 1;
                let link = Record::Symlink { mtime, path: &path, target: &target };
                self.codec.encode(&link, &mut self.out);
            }
            Entry::HardLink { path, size, mtime, first } => {
                let (Some(path), Some(first)) = (self.sent_path(&path), self.sent_path(&first)) else {
                    return self.keep(&path);
                };
                self.counts.files += 1;
                let link = Record::HardLink { size, mtime, path: &path, first: &first };
                self.codec.encode(&link, &mut self.out);
            }
            Entry::File { path, start, status, file } => {
                if self.next_object > frame::MAX_OBJECT_ID || status.size > VARINT_MAX {
                    self.keep(&path);
                    let path = crate::tree_walk::to_path(path);
                    return self.warn(Warning { path, kind: WarningKind::TooMany });
                }
                let Some(sent) = self.sent_path(&path) else { return };
                let object = ObjectId(self.next_object);
                self.next_object += 1;
                self.counts.files += 1;
                self.counts.bytes = self.counts.bytes.saturating_add(status.size);
                let mut metadata = status.metadata;
                metadata.mode &= of_file;
                // A walk that opens no files has not opened this one.
                let reopened = (file.is_none() && status.is_sparse)
                    .then(|| self.walk.reopen(start, &path).ok())
                    .flatten();
                let holes = outgoing::holes(file.as_ref().or(reopened.as_ref()), &status);
                if !holes.is_empty() {
                    let (bytes, _) = ChunkRanges::write(&holes);
                    self.codec.encode(&Record::Holes(ChunkRanges::written(&bytes)), &mut self.out);
                }
                let announced = Record::File { object, size: status.size, metadata, path: &sent };
                self.codec.encode(&announced, &mut self.out);
                if self.options.looks {
                    return;
                }
                self.objects.insert(object, Outgoing::new(start, path, status, holes));
                self.unsettled += 1;
                file.into_iter().for_each(|file| self.open.insert(object, file));
            }
        }
    }

    fn say_settled(&mut self, limit: usize, batch: &mut Batch) {
        while self.out.len() < limit
            && let Some((object, verdict)) = self.settled.pop_front()
        {
            match verdict {
                FileResult::Hash(hash) => self.codec.encode(&Record::Hash { object, hash }, &mut self.out),
                FileResult::Withdrawn(why) => {
                    batch.withdrawn.push(object);
                    self.codec.encode(&Record::Withdrawn { object, why }, &mut self.out);
                }
            }
        }
    }

    fn warn(&mut self, warning: Warning) {
        self.unsent += u64::from(warning.kind.is_loss());
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push_back(warning);
        }
    }
}
