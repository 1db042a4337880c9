//! Work that waits until every file is in place: links of both kinds, and the metadata of
//! directories.

use crate::error::SinkError;
use crate::manifest::{Metadata, Timestamp};

/// Links and directory times, which wait until every file is in place.
#[derive(Debug, Default)]
pub(super) struct DeferredWork {
    hard_links: Vec<PendingHardLink>,
    links: Vec<PendingSymlink>,
    directories: Vec<Directory>,
    sorted: bool,
    bytes: usize,
}

/// A symbolic link to make.
#[derive(Debug)]
pub(super) struct PendingSymlink {
    pub path: Vec<u8>,
    pub target: Vec<u8>,
    pub mtime: Timestamp,
}

/// A further name of a file.
#[derive(Debug)]
pub(super) struct PendingHardLink {
    pub path: Vec<u8>,
    /// The path of the file.
    pub first: Vec<u8>,
    /// The size that the file must have.
    pub size: u64,
    /// The modification time that the file must have.
    pub mtime: Timestamp,
}

/// A directory, and its final metadata.
#[derive(Debug)]
pub(super) struct Directory {
    pub path: Vec<u8>,
    pub metadata: Metadata,
}

impl DeferredWork {
    pub(super) fn link(
        &mut self,
        path: &[u8],
        target: &[u8],
        mtime: Timestamp,
        limit: usize,
    ) -> Result<(), SinkError> {
        self.charge(size_of::<PendingSymlink>() + path.len() + target.len(), limit)?;
        self.links.push(PendingSymlink { path: path.to_vec(), target: target.to_vec(), mtime });
        Ok(())
    }

    pub(super) fn hard_link(&mut self, link: PendingHardLink, limit: usize) -> Result<(), SinkError> {
        self.charge(size_of::<PendingHardLink>() + link.path.len() + link.first.len(), limit)?;
        self.hard_links.push(link);
        Ok(())
    }

    pub(super) fn directory(
        &mut self,
        path: &[u8],
        metadata: Metadata,
        limit: usize,
    ) -> Result<(), SinkError> {
        self.charge(size_of::<Directory>() + path.len(), limit)?;
        self.directories.push(Directory { path: path.to_vec(), metadata });
        Ok(())
    }

    fn charge(&mut self, bytes: usize, limit: usize) -> Result<(), SinkError> {
        self.bytes += bytes;
        if self.bytes > limit { Err(SinkError::TooMany("directories and links")) } else { Ok(()) }
    }

    /// The next further name to make.
    pub(super) fn next_hard_link(&mut self) -> Option<PendingHardLink> {
        self.sort();
        self.hard_links.pop()
    }

    /// The next symbolic link to make.
    pub(super) fn next_link(&mut self) -> Option<PendingSymlink> {
        self.sort();
        self.links.pop()
    }

    /// The next directory to set right.
    pub(super) fn next_directory(&mut self) -> Option<Directory> {
        self.sort();
        self.directories.pop()
    }

    /// Sorts links and directories for `pop`, which takes the last one first. Links are taken in
    /// the order of arrival. Directory `a/b` is taken before its parent `a`, whose new mode may
    /// deny access. Of two records for one directory, the later one is taken last.
    fn sort(&mut self) {
        if !self.sorted {
            self.hard_links.reverse();
            self.links.reverse();
            self.directories.reverse();
            self.directories.sort_by(|a, b| a.path.cmp(&b.path));
            self.sorted = true;
        }
    }
}
