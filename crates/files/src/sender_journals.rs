//! The sender's notes for resuming a transfer: a directory with a [journal](crate::chunk_journal)
//! for each file of more than one chunk. If the directory exists at the start, an earlier run began
//! the transfer.

use crate::chunk_journal::Journal;
use crate::chunks::Layout;
use crate::file_status::FileStatus;
use crate::manifest::Timestamp;
use crate::open_files::OpenFiles;
use byway_wire::ObjectId;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A journal's hashes are used only if the journal was made more than this many seconds after the
/// file's last change. File times are coarse: a journal could miss a second write that gives the
/// file the same time.
const MIN_QUIET_SECONDS: i64 = 2;
/// Journals held open at a time.
const MAX_OPEN_JOURNALS: usize = 64;

/// A sender's journals of one transfer, locked while it runs.
#[derive(Debug)]
pub struct Journals {
    path: PathBuf,
    directory: OwnedFd,
    open: OpenFiles,
    was_begun: bool,
}

impl Journals {
    /// Opens the directory `path`, where the journals of one transfer are. Missing directories are
    /// made with mode 0700.
    ///
    /// # Errors
    /// Of kind `WouldBlock`: another process sends the same transfer. Of any other kind: the
    /// directory cannot be made or used.
    pub fn open(path: &Path) -> io::Result<Self> {
        if let Some(above) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(above)?;
        }
        let was_begun = match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => true,
            made => made.map(|()| false)?,
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())?;
        rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { path: path.to_owned(), directory, open: OpenFiles::new(MAX_OPEN_JOURNALS), was_begun })
    }

    /// Whether the transfer was begun by an earlier run.
    #[must_use]
    pub const fn was_begun(&self) -> bool {
        self.was_begun
    }

    /// Removes the journals, as the receiver has the whole transfer. A journal that cannot be
    /// removed costs the next run only a question.
    pub fn remove(self) {
        if let Ok(entries) = Dir::read_from(&self.directory) {
            for entry in entries.flatten() {
                let _ = rustix::fs::unlinkat(&self.directory, entry.file_name(), AtFlags::empty());
            }
        }
        let _ = std::fs::remove_dir(&self.path);
    }

    /// The journal of this version of a file, for writing.
    pub(crate) fn of(
        &mut self,
        object: ObjectId,
        path: &[u8],
        status: &FileStatus,
        layout: Layout,
    ) -> io::Result<Journal<'_>> {
        if self.open.get(object).is_none() {
            let identity = identity(path, status);
            let name: String = identity.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mode = Mode::RUSR | Mode::WUSR;
            let file = File::from(rustix::fs::openat(&self.directory, name, flags, mode)?);
            Journal::open(&file, &identity, layout)?;
            self.open.insert(object, file);
        }
        let file = self.open.get(object).ok_or(io::ErrorKind::NotFound)?;
        Ok(Journal::known(file, layout))
    }

    /// Returns the journal of this version of a file, if its hashes are trustworthy without reading
    /// the file.
    pub(crate) fn believed(
        &mut self,
        object: ObjectId,
        path: &[u8],
        status: &FileStatus,
        layout: Layout,
    ) -> io::Result<Option<Journal<'_>>> {
        let journal = self.of(object, path, status, layout)?;
        let made = journal.made(&identity(path, status))?;
        let settled =
            |made: Timestamp| status.changed.seconds.saturating_add(MIN_QUIET_SECONDS) < made.seconds;
        Ok(made.is_some_and(settled).then_some(journal))
    }

    /// Closes the journal of `object`.
    pub(crate) fn close(&mut self, object: ObjectId) {
        self.open.remove(object);
    }
}

/// A hash that identifies a version of a file. It changes whenever the file changes.
fn identity(path: &[u8], status: &FileStatus) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("byway 2026 version of a file that is sent");
    let (modified, changed) = (status.metadata.mtime, status.changed);
    for number in [status.size, status.device, status.inode] {
        hasher.update(&number.to_be_bytes());
    }
    for time in [modified, changed] {
        hasher.update(&time.seconds.to_be_bytes());
        hasher.update(&time.nanoseconds.to_be_bytes());
    }
    hasher.update(path);
    *hasher.finalize().as_bytes()
}
