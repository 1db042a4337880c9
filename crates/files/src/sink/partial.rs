//! Where contents grow until they are verified: `.byway-partial/TRANSFER/KEY` below the sink.
//!
//! The transfer's name is its id, the key is made of path, size and time, so the files of an interrupted transfer can be
//! found again by whoever receives the same manifest. The transfer's directory is locked while it is in use.

use crate::beneath::times;
use crate::name::PARTIAL_DIRECTORY;
use crate::open_files::OpenFiles;
use crate::record::{Metadata, Timestamp};
use byway_wire::ObjectId;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags};
use rustix::io::{Errno, Result};
use std::fs::File;

/// Times to make the directory again that another transfer, just complete, took away.
const TRIES: u32 = 8;
/// The name under which a symbolic link is made before it is moved into place. No key looks like it.
const LINK: &str = "link";

/// The name of one partial file.
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

    fn name(self) -> String {
        hex(&self.0)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The partial files of one transfer.
#[derive(Debug)]
pub(super) struct Partials {
    /// The sink itself.
    root: OwnedFd,
    transfer: String,
    directory: OwnedFd,
    open: OpenFiles,
}

impl Partials {
    /// Makes and locks the directory of `transfer` below `root`. `EWOULDBLOCK` if the same transfer runs already.
    pub(super) fn open(root: OwnedFd, transfer: [u8; 16], open_files: usize) -> Result<Self> {
        let transfer = hex(&transfer);
        let listed = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..TRIES {
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
                Ok(directory) if rustix::fs::fstat(&directory)?.st_nlink == 0 => {}
                Ok(directory) => {
                    return Ok(Self { root, transfer, directory, open: OpenFiles::new(open_files) });
                }
                Err(error) => return Err(error),
            }
        }
        Err(Errno::NOENT)
    }

    /// Makes the file of `key` anew with `size` bytes, all of them holes.
    pub(super) fn create(&mut self, object: ObjectId, key: Key, size: u64) -> Result<()> {
        // What an earlier run left goes, together with any link that somebody gave it.
        self.discard(object, key);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, key.name(), flags, Mode::RUSR | Mode::WUSR)?;
        if let Err(error) = rustix::fs::ftruncate(&file, size) {
            self.discard(object, key);
            return Err(error);
        }
        self.open.insert(object, File::from(file));
        Ok(())
    }

    /// The file of `key`, made before.
    pub(super) fn file(&mut self, object: ObjectId, key: Key) -> Result<&File> {
        if self.open.get(object).is_none() {
            let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&self.directory, key.name(), flags, Mode::empty())?;
            self.open.insert(object, File::from(file));
        }
        self.open.get(object).ok_or(Errno::NOENT)
    }

    /// Gives the file its mode and time, and moves it to `leaf` in `directory` in one step, over a file that is there.
    pub(super) fn place(
        &mut self,
        object: ObjectId,
        key: Key,
        metadata: &Metadata,
        durable: bool,
        directory: BorrowedFd<'_>,
        leaf: &[u8],
    ) -> Result<()> {
        let file = self.file(object, key)?;
        rustix::fs::fchmod(file, Mode::from_raw_mode(metadata.mode.into()))?;
        rustix::fs::futimens(file, &times(metadata.mtime))?;
        if durable {
            rustix::fs::fsync(file)?;
        }
        rustix::fs::renameat(&self.directory, key.name(), directory, leaf)?;
        // Nothing writes to it from here on.
        self.open.remove(object);
        Ok(())
    }

    /// Makes a symbolic link at `leaf` in `directory` in one step, over a file or link that is there.
    pub(super) fn place_link(
        &mut self,
        target: &[u8],
        mtime: Timestamp,
        directory: BorrowedFd<'_>,
        leaf: &[u8],
    ) -> Result<()> {
        let _ = rustix::fs::unlinkat(&self.directory, LINK, AtFlags::empty());
        rustix::fs::symlinkat(target, &self.directory, LINK)?;
        rustix::fs::utimensat(&self.directory, LINK, &times(mtime), AtFlags::SYMLINK_NOFOLLOW)?;
        rustix::fs::renameat(&self.directory, LINK, directory, leaf)
    }

    /// Removes the file of `key`, if there is one.
    pub(super) fn discard(&mut self, object: ObjectId, key: Key) {
        self.open.remove(object);
        let _ = rustix::fs::unlinkat(&self.directory, key.name(), AtFlags::empty());
    }

    /// Removes all that is left of this transfer, and the common directory if no other transfer uses it.
    pub(super) fn clean(&mut self) -> Result<()> {
        for entry in Dir::read_from(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if name != c"." && name != c".." {
                let _ = rustix::fs::unlinkat(&self.directory, name, AtFlags::empty());
            }
        }
        self.leave();
        Ok(())
    }

    /// Removes the directories if nothing is in them.
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

fn make(directory: impl AsFd, name: &str) -> Result<()> {
    match rustix::fs::mkdirat(directory, name, Mode::RWXU) {
        Err(Errno::EXIST) => Ok(()),
        result => result,
    }
}
