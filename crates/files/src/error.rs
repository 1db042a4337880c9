//! The errors that end a transfer at once. Trouble with single files does not: see
//! [`crate::Warning`] and [`crate::Reason`].

use crate::manifest::MANIFEST_VERSION;
use byway_wire::{DecodeError, ObjectId};
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a tree cannot be sent.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The list of things to send is empty.
    #[error("nothing to send: name at least one file or directory")]
    Nothing,
    /// No file or directory has this name.
    #[error("{} does not exist: check the name", .0.display())]
    NotFound(PathBuf),
    /// The metadata of a named path cannot be read.
    #[error("{} cannot be read ({cause}): check its permissions and those of the directories above it", .path.display())]
    Unreadable {
        /// The path that was named.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// Two entries would arrive under the same name.
    #[error("{} and {} would arrive under the same name: send them one after the other, or rename one", .0.display(), .1.display())]
    SameName(PathBuf, PathBuf),
    /// Bytes of an object were asked for that was not announced, or was released.
    #[error("{0} is not being sent: it was not announced or is settled already")]
    NoSuchObject(ObjectId),
}

/// Why a tree cannot be received, or not any further. The data that arrived are kept for another
/// attempt.
#[derive(Debug, Error)]
pub enum SinkError {
    /// The path exists and is not a directory.
    #[error("{} is not a directory: name another place to receive into", .0.display())]
    NotADirectory(PathBuf),
    /// The process may not write into the directory.
    #[error("{} cannot be written to: change its permissions or name another directory", .0.display())]
    NotWritable(PathBuf),
    /// The file system is mounted read-only.
    #[error("{} is on a read-only file system: name another directory", .0.display())]
    ReadOnly(PathBuf),
    /// No space, or no quota.
    #[error("the disk of {} is full: free some space and start again, what has arrived is kept", .0.display())]
    Full(PathBuf),
    /// Space, but no room for another file.
    #[error(
        "the file system of {} has no inodes left, so that it takes no more files, however much space is free: remove files and \
         start again, what has arrived is kept",
        .0.display()
    )]
    NoInodes(PathBuf),
    /// Another receiver is receiving the same transfer.
    #[error("this transfer is already being received into {}: wait for it or stop it", .0.display())]
    Busy(PathBuf),
    /// The manifest is malformed.
    #[error("the sender's manifest is not valid ({0}): compare the versions of byway on both sides")]
    Manifest(#[from] DecodeError),
    /// A manifest of another version.
    #[error(
        "the sender's manifest is of version {0}, this byway reads version {known}: update the older side",
        known = MANIFEST_VERSION
    )]
    Version(u64),
    /// More than a receiver is willing to remember.
    #[error("the sender announced more {0} than can be kept in memory: send the tree in parts")]
    TooMany(&'static str),
    /// Another error of the system.
    #[error("{} cannot be used ({cause}): check the disk", .path.display())]
    Io {
        /// The path of the failed operation.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
}

impl SinkError {
    /// The error for a system error at `path`.
    pub(crate) fn from_io(path: &std::path::Path, cause: io::Error) -> Self {
        let path = path.to_owned();
        match cause.kind() {
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => Self::NotADirectory(path),
            io::ErrorKind::PermissionDenied => Self::NotWritable(path),
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly(path),
            io::ErrorKind::StorageFull if lacks_inodes(&path) => Self::NoInodes(path),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full(path),
            _ => Self::Io { path, cause },
        }
    }
}

/// Whether a full file system has free space but no free inode. Some file systems do not count
/// inodes.
fn lacks_inodes(path: &std::path::Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|it| it.f_files > 0 && it.f_favail == 0 && it.f_bavail > 0)
}
