//! Whether a file was modified: its size, modification time, device and inode, at one moment and at
//! another.

use crate::manifest::{Metadata, Timestamp};
use rustix::fs::Stat;
use std::fs::File;
use std::io;

/// The status of a regular file at one time. Equal statuses mean equal contents, as far as can be
/// known without reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStatus {
    pub size: u64,
    pub metadata: Metadata,
    /// When contents or metadata were changed last.
    pub changed: Timestamp,
    pub device: u64,
    pub inode: u64,
    /// Whether the file stores fewer bytes than its size.
    pub is_sparse: bool,
}

impl FileStatus {
    /// The status from the system's metadata of the file.
    pub(crate) fn new(stat: &Stat) -> Self {
        Self {
            size: u64::try_from(stat.st_size).unwrap_or(0),
            metadata: metadata(stat),
            changed: Timestamp {
                seconds: stat.st_ctime,
                nanoseconds: u32::try_from(stat.st_ctime_nsec).unwrap_or(0),
            },
            device: stat.st_dev,
            inode: stat.st_ino,
            is_sparse: u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512)
                < u64::try_from(stat.st_size).unwrap_or(0),
        }
    }

    /// The status of an open file now.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        Ok(Self::new(&rustix::fs::fstat(file)?))
    }

    /// Whether the contents may have changed since `self` was taken. A change of the mode alone
    /// does not count.
    pub(crate) fn differs(&self, now: &Self) -> bool {
        (self.size, self.metadata.mtime, self.device, self.inode)
            != (now.size, now.metadata.mtime, now.device, now.inode)
    }
}

/// The metadata of a file that a manifest contains.
pub(crate) fn metadata(stat: &Stat) -> Metadata {
    Metadata { mode: (stat.st_mode & 0o7777) as u16, mtime: mtime(stat) }
}

/// When the contents were last changed.
pub(crate) fn mtime(stat: &Stat) -> Timestamp {
    Timestamp { seconds: stat.st_mtime, nanoseconds: u32::try_from(stat.st_mtime_nsec).unwrap_or(0) }
}
