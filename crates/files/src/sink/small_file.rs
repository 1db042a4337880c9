//! A small file that another thread makes.

use super::partial::Name;
use crate::chunks::Hash;
use crate::contained_dir::times;
use crate::manifest::Timestamp;
use byway_wire::ObjectId;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// A small file, to be [made](SmallFile::make) with others on any thread, see
/// [`Sink::apart`](super::Sink::apart).
#[derive(Debug)]
pub struct SmallFile {
    object: ObjectId,
    directory: Arc<OwnedFd>,
    pub(super) name: Name,
    mode: Mode,
    mtime: Timestamp,
    bytes: Vec<u8>,
}

/// The result of making a [`SmallFile`], for [`Sink::made`](super::Sink::made).
#[derive(Debug)]
pub struct MadeFile {
    pub(super) object: ObjectId,
    pub(super) bytes: Vec<u8>,
    pub(super) hash: io::Result<Hash>,
}

impl SmallFile {
    /// Files that are handed over at once.
    pub const BATCH_FILES: usize = 16;

    /// A file that gets this name in this directory.
    pub(super) fn new(
        object: ObjectId,
        (directory, name): (Arc<OwnedFd>, Name),
        mode: Mode,
        mtime: Timestamp,
        bytes: Vec<u8>,
    ) -> Self {
        Self { object, directory, name, mode, mtime, bytes }
    }

    /// Bytes that the batch takes.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Makes the files, each under the name of its partial file.
    #[must_use]
    pub fn make(together: Vec<Self>) -> Vec<MadeFile> {
        let made = together.into_iter().map(|small| {
            let hash = small.file().map(|()| *blake3::hash(&small.bytes).as_bytes());
            MadeFile { object: small.object, bytes: small.bytes, hash }
        });
        made.collect()
    }

    fn file(&self) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&*self.directory, &self.name[..], flags, self.mode)?;
        let file = File::from(file);
        file.write_all_at(&self.bytes, 0)?;
        Ok(rustix::fs::futimens(&file, &times(self.mtime))?)
    }
}
