//! From bytes to a tree: verification of contents, moving into place, and what waits until every file is there.

use super::{Finish, Incoming, Sink, Stage};
use crate::beneath::times;
use crate::error::SinkError;
use crate::name::{check_name, split};
use crate::record::{Metadata, Timestamp};
use crate::report::{Reason, Report};
use byway_wire::ObjectId;
use rustix::fd::BorrowedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes read at a time for verification.
const CHUNK: usize = 128 * 1_024;
/// What a rename, a link or a directory counts for in the budget of [`Sink::work`], in bytes.
const ENTRY_COST: u64 = 16 * 1_024;
/// Reports that may wait to be taken before [`Sink::work`] rests, in bytes.
const REPORTS_HIGH: usize = 1 << 20;

/// A file being read back.
#[derive(Debug)]
pub(super) struct Verifying {
    object: ObjectId,
    hasher: Box<blake3::Hasher>,
    offset: u64,
}

/// What waits until every file is in place.
#[derive(Debug, Default)]
pub(super) struct Later {
    links: Vec<Link>,
    directories: Vec<Directory>,
    sorted: bool,
    bytes: usize,
}

#[derive(Debug)]
struct Link {
    path: Vec<u8>,
    target: Vec<u8>,
    mtime: Timestamp,
}

#[derive(Debug)]
struct Directory {
    path: Vec<u8>,
    metadata: Metadata,
}

impl Later {
    pub(super) fn link(
        &mut self,
        path: &[u8],
        target: &[u8],
        mtime: Timestamp,
        limit: usize,
    ) -> Result<(), SinkError> {
        self.charge(size_of::<Link>() + path.len() + target.len(), limit)?;
        self.links.push(Link { path: path.to_vec(), target: target.to_vec(), mtime });
        Ok(())
    }

    fn directory(&mut self, path: &[u8], metadata: Metadata, limit: usize) -> Result<(), SinkError> {
        self.charge(size_of::<Directory>() + path.len(), limit)?;
        self.directories.push(Directory { path: path.to_vec(), metadata });
        Ok(())
    }

    fn charge(&mut self, bytes: usize, limit: usize) -> Result<(), SinkError> {
        self.bytes += bytes;
        if self.bytes > limit { Err(SinkError::TooMany("directories and links")) } else { Ok(()) }
    }

    /// Puts both lists in the order in which they are taken from the end: links as they came, directories with those
    /// below others first. Of records with the same path the last one is taken last, and counts.
    fn sort(&mut self) {
        if !self.sorted {
            self.links.reverse();
            self.directories.reverse();
            self.directories.sort_by(|a, b| a.path.cmp(&b.path));
            self.sorted = true;
        }
    }
}

impl Sink {
    /// Does up to about `budget` bytes worth of disk work: reads files back, moves them into place, and at the end sets
    /// what waits. Whether there is more to do now; if not, records, bytes or a call of [`Self::reports`] are awaited.
    ///
    /// # Errors
    /// The disk is full or cannot be used any more.
    pub fn work(&mut self, budget: u64) -> Result<bool, SinkError> {
        let mut left = budget.max(1);
        while left > 0 {
            if self.out.len() > REPORTS_HIGH || matches!(self.stage, Stage::Broken | Stage::Complete) {
                return Ok(false);
            }
            let spent = if self.verifying.is_some() || self.next_ready() {
                self.verify(left)?
            } else if self.stage == Stage::Ended && self.objects.is_empty() {
                self.settle_one()?;
                ENTRY_COST
            } else {
                return Ok(false);
            };
            left = left.saturating_sub(spent);
        }
        Ok(!matches!(self.stage, Stage::Complete))
    }

    /// Verifies a small file without waiting for its turn.
    pub(super) fn verify_at_once(&mut self, object: ObjectId) -> Result<Finish, SinkError> {
        let other = self.verifying.replace(Verifying::new(object));
        let failed = self.summary.failed;
        let verified = self.verify(u64::MAX);
        self.verifying = other;
        verified?;
        if self.summary.failed == failed {
            return Ok(Finish::Verified);
        }
        Ok(Finish::Failed(self.last_failure))
    }

    /// Makes a directory now, open to its owner only, and remembers what it shall be at the end.
    pub(super) fn make_directory(&mut self, path: &[u8], metadata: Metadata) -> Result<(), SinkError> {
        if let Err(error) = check_name(path) {
            self.refuse(path.to_vec(), Reason::Name, error.to_string());
            return Ok(());
        }
        match self.tree.make_directory(path).map(drop) {
            Ok(()) => self.later.directory(path, metadata, self.options.memory),
            Err(errno) => self.refuse_io(path.to_vec(), errno.into()),
        }
    }

    fn refuse_io(&mut self, path: Vec<u8>, error: io::Error) -> Result<(), SinkError> {
        let (reason, detail) = self.judge(error)?;
        self.refuse(path, reason, detail);
        Ok(())
    }

    /// Takes up the next file to verify, if there is one.
    fn next_ready(&mut self) -> bool {
        while let Some(object) = self.ready.pop_front() {
            // It may have failed while it waited.
            if self.objects.contains_key(&object) {
                self.verifying = Some(Verifying::new(object));
                return true;
            }
        }
        false
    }

    /// Reads on in the file being verified, up to `budget` bytes and one chunk; returns what it spent. At the end of the
    /// file it is put in place, or failed.
    fn verify(&mut self, budget: u64) -> Result<u64, SinkError> {
        let Some(mut verifying) = self.verifying.take() else { return Ok(0) };
        let object = verifying.object;
        // It may have failed while it was read.
        let Some(incoming) = self.objects.get_mut(&object) else { return Ok(ENTRY_COST) };
        if !incoming.created {
            // An empty file, or one of which no byte was written.
            match self.partials.create(object, incoming.key, incoming.size) {
                Ok(()) => incoming.created = true,
                Err(errno) => {
                    self.fail_io(object, errno.into())?;
                    return Ok(ENTRY_COST);
                }
            }
        }
        let (size, key, hash) = (incoming.size, incoming.key, incoming.hash);
        let read = self.partials.file(object, key).map_err(io::Error::from).and_then(|file| {
            let mut buffer = vec![0; CHUNK.min(usize::try_from(size).unwrap_or(CHUNK))];
            let mut spent = 0;
            while verifying.offset < size && spent < budget {
                let left = usize::try_from(size - verifying.offset).unwrap_or(CHUNK);
                let chunk = buffer.get_mut(..left.min(CHUNK)).unwrap_or_default();
                file.read_exact_at(chunk, verifying.offset)?;
                verifying.hasher.update(chunk);
                verifying.offset += chunk.len() as u64;
                spent += chunk.len() as u64;
            }
            // Longer than announced is as wrong as shorter; nobody but us should have written to it.
            Ok((spent, file.metadata()?.len() == size))
        });
        match read {
            Ok((spent, _)) if verifying.offset < size => {
                self.verifying = Some(verifying);
                Ok(spent)
            }
            Ok((spent, right_size)) => {
                if right_size && hash.is_some_and(|hash| verifying.hasher.finalize() == hash) {
                    self.put_in_place(object)?;
                } else {
                    self.fail(object, Reason::Integrity, String::new());
                }
                Ok(spent + ENTRY_COST)
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.fail(object, Reason::Integrity, String::new());
                Ok(ENTRY_COST)
            }
            Err(error) => {
                self.fail_io(object, error)?;
                Ok(ENTRY_COST)
            }
        }
    }

    fn put_in_place(&mut self, object: ObjectId) -> Result<(), SinkError> {
        let Some(Incoming { path, size, metadata, key, .. }) = self.objects.get(&object) else {
            return Ok(());
        };
        let (size, key, durable, partials) = (*size, *key, self.options.durable, &mut self.partials);
        let (directory, leaf) = split(path);
        let mut place =
            |directory: BorrowedFd<'_>| partials.place(object, key, metadata, durable, directory, leaf);
        let placed = match self.tree.make_directory(directory).and_then(&mut place) {
            // The directory held open was removed by somebody: look again.
            Err(Errno::NOENT) => {
                self.tree.forget();
                self.tree.make_directory(directory).and_then(&mut place)
            }
            placed => placed,
        };
        if let Err(errno) = placed {
            return self.fail_io(object, errno.into());
        }
        self.objects.remove(&object);
        self.keys.remove(&key);
        self.summary.files += 1;
        self.summary.bytes = self.summary.bytes.saturating_add(size);
        Report::Verified { object }.encode(&mut self.out);
        Ok(())
    }

    /// One link, or one directory, or the end.
    fn settle_one(&mut self) -> Result<(), SinkError> {
        self.later.sort();
        if let Some(link) = self.later.links.pop() {
            let (directory, leaf) = split(&link.path);
            let placed = self
                .tree
                .make_directory(directory)
                .and_then(|directory| self.partials.place_link(&link.target, link.mtime, directory, leaf));
            return match placed {
                Ok(()) => Ok(()),
                Err(errno) => self.refuse_io(link.path, errno.into()),
            };
        }
        if let Some(directory) = self.later.directories.pop() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let settled = self.tree.open(&directory.path, flags).and_then(|opened| {
                // The time last: a change of mode leaves it alone, but not the other way round on every file system.
                rustix::fs::fchmod(&opened, Mode::from_raw_mode(directory.metadata.mode.into()))?;
                rustix::fs::futimens(&opened, &times(directory.metadata.mtime))
            });
            return match settled {
                Ok(()) => Ok(()),
                Err(errno) => self.refuse_io(directory.path, errno.into()),
            };
        }
        // Leftovers that cannot be removed harm nobody: the tree is complete.
        let _ = self.partials.clean();
        let summary = self.summary;
        Report::Done { files: summary.files, bytes: summary.bytes, failed: summary.failed }
            .encode(&mut self.out);
        self.stage = Stage::Complete;
        Ok(())
    }
}

impl Verifying {
    fn new(object: ObjectId) -> Self {
        Self { object, hasher: Box::default(), offset: 0 }
    }
}
