//! Partial files: the contents of files that are not verified yet, at `.byway-partial/TRANSFER/KEY`
//! in the receiver's directory.
//!
//! | name | what |
//! |---|---|
//! | `TRANSFER` | the transfer's id; this directory is locked while a process uses it |
//! | `KEY` | a hash of the file's path, size and time, so a repeated transfer finds its partial files again |
//! | `KEY.journal` | the [journal](crate::chunk_journal) of a file of more than one chunk |

use crate::chunk_journal::Journal;
use crate::chunks::Layout;
use crate::contained_dir::times;
use crate::manifest::{Metadata, Timestamp};
use crate::name::PARTIAL_DIRECTORY;
use crate::open_files::OpenFiles;
use byway_wire::ObjectId;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FallocateFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::{Errno, Result};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::Arc;

/// Number of attempts to make the directory again after another transfer, just complete, removed
/// it.
const MAX_TRIES: u32 = 8;
/// The name under which a link is made before it is moved into place. No key has this form.
const LINK_NAME: &str = "link";

/// The file name of a partial file.
pub(super) type Name = [u8; 32];

/// The key of a partial file, from which its name is derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key([u8; 16]);

impl Key {
    /// The key of a version of a file: another size or time is another version.
    pub(super) fn new(path: &[u8], size: u64, metadata: &Metadata) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&size.to_be_bytes());
        hasher.update(&metadata.mtime.seconds.to_be_bytes());
        hasher.update(&metadata.mtime.nanoseconds.to_be_bytes());
        hasher.update(path);
        let mut key = [0; 16];
        hasher.finalize_xof().fill(&mut key);
        Self(key)
    }

    /// Returns the name of the file: the key's bytes in hexadecimal. It is needed several times per
    /// file, so it takes no heap memory.
    pub(super) fn name(self) -> Name {
        let digit = |value: u8| value + if value < 10 { b'0' } else { b'a' - 10 };
        let mut name = Name::default();
        for (two, byte) in name.as_chunks_mut().0.iter_mut().zip(self.0) {
            *two = [digit(byte >> 4), digit(byte & 15)];
        }
        name
    }

    fn journal(self) -> Vec<u8> {
        [&self.name()[..], b".journal"].concat()
    }

    /// The identity under which the file's journal is stored.
    fn identity(self) -> [u8; 32] {
        *blake3::hash(&self.0).as_bytes()
    }
}

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The partial files of one transfer.
#[derive(Debug)]
pub(super) struct Partials {
    /// The sink's directory.
    root: OwnedFd,
    transfer: String,
    directory: Arc<OwnedFd>,
    open: OpenFiles,
    journals: OpenFiles,
    /// For each file mode: whether the first file created with this mode really got it. A umask may
    /// remove bits. `None` if group or others have access to the directory of the partial files.
    /// Then each of these is created with mode 0600.
    modes: Option<BTreeMap<u16, bool>>,
}

impl Partials {
    /// Makes and locks the directory of `transfer` below `root`. `EWOULDBLOCK` if the same transfer
    /// runs already.
    pub(super) fn open(root: OwnedFd, transfer: [u8; 16], open_files: usize) -> Result<Self> {
        let transfer = hex(&transfer);
        let listed = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..MAX_TRIES {
            make(&root, PARTIAL_DIRECTORY)?;
            let opened =
                rustix::fs::openat(&root, PARTIAL_DIRECTORY, listed, Mode::empty()).and_then(|all| {
                    make(&all, &transfer)?;
                    let directory = rustix::fs::openat(&all, transfer.as_str(), listed, Mode::empty())?;
                    rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive)?;
                    Ok(directory)
                });
            match opened {
                // Taken away between two calls; also when it was locked just after.
                Err(Errno::NOENT) => {}
                Ok(directory) => {
                    let stat = rustix::fs::fstat(&directory)?;
                    if stat.st_nlink == 0 {
                        continue;
                    }
                    let closed = stat.st_mode & 0o077 == 0;
                    let modes = closed.then(BTreeMap::new);
                    // Few files have journals, and those are written now and then.
                    let (open, journals) = (OpenFiles::new(open_files), OpenFiles::new(open_files / 8));
                    let directory = Arc::new(directory);
                    return Ok(Self { root, transfer, directory, open, journals, modes });
                }
                Err(error) => return Err(error),
            }
        }
        Err(Errno::NOENT)
    }

    /// Creates the partial file of `key`, and replaces an existing one. A file of more than one
    /// chunk gets its full size at once, without any data. Returns whether the file already has
    /// `mode`.
    pub(super) fn create(&mut self, object: ObjectId, key: Key, layout: &Layout, mode: u16) -> Result<bool> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let early = self.modes.as_ref().filter(|_| is_early(mode)).map(|modes| modes.get(&mode).copied());
        let made_so = early.is_some_and(|known| known != Some(false));
        let (last, mode) = (mode, if made_so { Mode::from_raw_mode(mode.into()) } else { OWNER_MODE });
        let file = match rustix::fs::openat(&*self.directory, &key.name()[..], flags, mode) {
            // What an earlier run left goes, together with any link that somebody gave it.
            Err(Errno::EXIST) => {
                self.discard(object, key, layout);
                rustix::fs::openat(&*self.directory, &key.name()[..], flags, mode)?
            }
            opened => opened?,
        };
        // A file of one chunk is written whole, and has its size then.
        if layout.is_divided()
            && let Err(error) = rustix::fs::ftruncate(&file, layout.size)
        {
            self.discard(object, key, layout);
            return Err(error);
        }
        // The user's mask and the directory's defaults take bits away: of each mode the first file
        // shows.
        let mut dressed = made_so;
        if made_so && early == Some(None) {
            dressed = Mode::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) == mode;
            self.modes.iter_mut().for_each(|modes| _ = modes.insert(last, dressed));
        }
        self.open.insert(object, File::from(file));
        Ok(dressed)
    }

    /// The directory of the files, for another thread.
    pub(super) fn shared(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.directory)
    }

    /// Whether files made with this mode get exactly this mode. False until one was made.
    pub(super) fn makes_with(&self, mode: u16) -> bool {
        self.modes.as_ref().and_then(|modes| modes.get(&mode)) == Some(&true)
    }

    /// Removes the file of `key`, which another thread made.
    pub(super) fn remove(&self, key: Key) {
        let _ = rustix::fs::unlinkat(&*self.directory, &key.name()[..], AtFlags::empty());
    }

    /// Sets the time of a complete file, and its mode unless `has_mode`. Closes the file, which is
    /// then ready to be moved.
    pub(super) fn dress(
        &mut self,
        object: ObjectId,
        key: Key,
        metadata: &Metadata,
        has_mode: bool,
        durable: bool,
    ) -> Result<()> {
        let file = self.file(object, key)?;
        if !has_mode {
            rustix::fs::fchmod(file, Mode::from_raw_mode(metadata.mode.into()))?;
        }
        rustix::fs::futimens(file, &times(metadata.mtime))?;
        if durable {
            rustix::fs::fsync(file)?;
        }
        self.open.remove(object);
        Ok(())
    }

    /// Whether an earlier run left the file of `key`, as byway leaves one; it is
    /// [there](Self::file) then.
    pub(super) fn reopen(&mut self, object: ObjectId, key: Key, layout: &Layout) -> bool {
        let Ok(file) = self.file(object, key) else { return false };
        let ours = rustix::fs::fstat(file).is_ok_and(|stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
                && stat.st_nlink == 1
                && u64::try_from(stat.st_size) == Ok(layout.size)
        });
        if !ours {
            self.open.remove(object);
        }
        ours
    }

    /// Makes a stretch of the file of `key` a hole.
    pub(super) fn empty(&mut self, object: ObjectId, key: Key, from: u64, length: u64) -> Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(self.file(object, key)?, flags, from, length)
    }

    /// Opens the journal of the partial file of `key`, and returns whether it existed. A journal
    /// that is missing or of another file is made anew.
    pub(super) fn journal(
        &mut self,
        object: ObjectId,
        key: Key,
        layout: Layout,
    ) -> io::Result<(Journal<'_>, bool)> {
        let mut was = true;
        if self.journals.get(object).is_none() {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mode = Mode::RUSR | Mode::WUSR;
            let file = File::from(rustix::fs::openat(&*self.directory, &key.journal()[..], flags, mode)?);
            was = Journal::open(&file, &key.identity(), layout)?.1;
            self.journals.insert(object, file);
        }
        let file = self.journals.get(object).ok_or(io::ErrorKind::NotFound)?;
        Ok((Journal::known(file, layout), was))
    }

    /// The file of `key`, made before.
    pub(super) fn file(&mut self, object: ObjectId, key: Key) -> Result<&File> {
        if self.open.get(object).is_none() {
            let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&*self.directory, &key.name()[..], flags, Mode::empty())?;
            self.open.insert(object, File::from(file));
        }
        self.open.get(object).ok_or(Errno::NOENT)
    }

    /// Moves the finished ([dressed](Self::dress)) file to `leaf` in `directory` atomically.
    /// Replaces an existing file.
    pub(super) fn place(
        &mut self,
        object: ObjectId,
        (key, layout): (Key, &Layout),
        directory: BorrowedFd<'_>,
        leaf: &[u8],
    ) -> Result<()> {
        rustix::fs::renameat(&*self.directory, &key.name()[..], directory, leaf)?;
        // Nothing writes to it from here on.
        self.open.remove(object);
        self.forget_journal(object, key, layout);
        Ok(())
    }

    fn forget_journal(&mut self, object: ObjectId, key: Key, layout: &Layout) {
        if layout.is_divided() {
            self.journals.remove(object);
            let _ = rustix::fs::unlinkat(&*self.directory, &key.journal()[..], AtFlags::empty());
        }
    }

    /// Makes a symbolic link at `leaf` in `directory` atomically. Replaces an existing file or
    /// link.
    pub(super) fn place_link(
        &mut self,
        target: &[u8],
        mtime: Timestamp,
        directory: BorrowedFd<'_>,
        leaf: &[u8],
    ) -> Result<()> {
        // One that an earlier try made may stand in a directory that has got its final mode, and
        // cannot be replaced.
        if rustix::fs::readlinkat(directory, leaf, Vec::new()).is_ok_and(|now| now.as_bytes() == target) {
            return rustix::fs::utimensat(directory, leaf, &times(mtime), AtFlags::SYMLINK_NOFOLLOW);
        }
        let _ = rustix::fs::unlinkat(&*self.directory, LINK_NAME, AtFlags::empty());
        rustix::fs::symlinkat(target, &*self.directory, LINK_NAME)?;
        rustix::fs::utimensat(&*self.directory, LINK_NAME, &times(mtime), AtFlags::SYMLINK_NOFOLLOW)?;
        rustix::fs::renameat(&*self.directory, LINK_NAME, directory, leaf)
    }

    /// Begins a further name of the file `leaf` in `directory`;
    /// [`Self::place_hard_link`] ends it.
    pub(super) fn begin_hard_link(&mut self, directory: BorrowedFd<'_>, leaf: &[u8]) -> Result<()> {
        let _ = rustix::fs::unlinkat(&*self.directory, LINK_NAME, AtFlags::empty());
        rustix::fs::linkat(directory, leaf, &*self.directory, LINK_NAME, AtFlags::empty())
    }

    /// Moves the further name to `leaf` in `directory` atomically. Replaces an existing file or
    /// link.
    pub(super) fn place_hard_link(&mut self, directory: BorrowedFd<'_>, leaf: &[u8]) -> Result<()> {
        rustix::fs::renameat(&*self.directory, LINK_NAME, directory, leaf)
    }

    /// Removes the partial file of `key`, if it exists.
    pub(super) fn discard(&mut self, object: ObjectId, key: Key, layout: &Layout) {
        self.open.remove(object);
        let _ = rustix::fs::unlinkat(&*self.directory, &key.name()[..], AtFlags::empty());
        self.forget_journal(object, key, layout);
    }

    /// Syncs the file system of the transfer to stable storage.
    pub(super) fn sync(&self) -> Result<()> {
        rustix::fs::syncfs(&*self.directory)
    }

    /// Sets the time of the transfer's directory by the clock of its file system.
    pub(super) fn touch(&self) -> Result<rustix::fs::Stat> {
        crate::trash::touch(self.directory.as_fd())?;
        rustix::fs::fstat(&*self.directory)
    }

    /// Removes all partial files and journals of this transfer, and the common directory if no
    /// other transfer uses it.
    pub(super) fn clean(&mut self) -> Result<()> {
        for entry in Dir::read_from(&*self.directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if name != c"." && name != c".." {
                let _ = rustix::fs::unlinkat(&*self.directory, name, AtFlags::empty());
            }
        }
        self.leave();
        Ok(())
    }

    /// Removes the directories of partial files if they are empty.
    fn leave(&self) {
        let path = format!("{PARTIAL_DIRECTORY}/{}", self.transfer);
        let _ = rustix::fs::unlinkat(&self.root, path, AtFlags::REMOVEDIR);
        let _ = rustix::fs::unlinkat(&self.root, PARTIAL_DIRECTORY, AtFlags::REMOVEDIR);
    }
}

impl Drop for Partials {
    /// A transfer that left nothing to resume leaves no trace.
    fn drop(&mut self) {
        self.leave();
    }
}

/// The mode of unfinished files whose final mode has to wait.
const OWNER_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Whether an unfinished file may have `mode`: it can be opened again, and gives nothing away but
/// to be read and written.
pub(super) fn is_early(mode: u16) -> bool {
    mode & !0o777 == 0 && mode & 0o600 == 0o600
}

fn make(directory: impl AsFd, name: &str) -> Result<()> {
    match rustix::fs::mkdirat(directory, name, Mode::RWXU) {
        Err(Errno::EXIST) => Ok(()),
        result => result,
    }
}
