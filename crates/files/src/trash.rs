//! The trash of a receiver: what senders no longer have, at `.byway-trash/TIME/PATH` in the
//! receiver's directory. Each transfer that deletes has a folder of its own, called after its
//! begin. It is removed [`RETENTION_TIME`](crate::RETENTION_TIME) after the transfer.

use crate::contained_dir::Beneath;
use crate::name::{TRASH_DIRECTORY, split};
use byway_wire::date::{DAY_SECONDS, civil};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, FlockOperation, Mode, OFlags, RenameFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT,
};
use rustix::io::{Errno, Result};
use std::fmt;

/// Number of attempts to find or make a folder that another transfer, or an expiry, makes or
/// removes meanwhile.
const MAX_TRIES: u16 = 1_000;

/// The name of a folder in the trash: the start of its transfer, and a number within that second.
/// It is shown as `2026-11-29-195005`, or `2026-11-29-195005.2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrashName {
    /// Seconds since 1970 (UTC).
    pub seconds: u64,
    /// Counted from 1.
    pub number: u16,
}

impl fmt::Display for TrashName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil(self.seconds / DAY_SECONDS);
        let second = self.seconds % DAY_SECONDS;
        let (hours, minutes, seconds) = (second / 3_600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}-{hours:02}{minutes:02}{seconds:02}")?;
        if self.number > 1 { write!(f, ".{}", self.number) } else { Ok(()) }
    }
}

/// Whether a name is that of a folder in the trash. Other files there are not removed.
pub(crate) fn is_trash_name(name: &[u8]) -> bool {
    let name = name.split(|byte| *byte == b'.').next().unwrap_or(name);
    let is_fit = |(at, byte): (usize, &u8)| match at {
        4 | 7 | 10 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    name.len() == 17 && name.iter().enumerate().all(is_fit)
}

/// The folder of one transfer.
#[derive(Debug)]
pub(crate) struct TrashFolder {
    name: TrashName,
    /// The folder's descriptor, locked so that the folder does not expire meanwhile.
    lock: OwnedFd,
    tree: Beneath,
}

impl TrashFolder {
    /// Makes a folder in the directory `root`, for a transfer that began at `seconds`.
    pub(crate) fn make(root: BorrowedFd<'_>, seconds: u64) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut number = 1;
        for _ in 0..MAX_TRIES {
            match rustix::fs::mkdirat(root, TRASH_DIRECTORY, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
            let name = TrashName { seconds, number };
            let made = rustix::fs::openat(root, TRASH_DIRECTORY, flags, Mode::empty()).and_then(|all| {
                rustix::fs::mkdirat(&all, name.to_string(), Mode::RWXU)?;
                let lock = rustix::fs::openat(&all, name.to_string(), flags, Mode::empty())?;
                rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
                Ok(lock)
            });
            match made {
                Ok(lock) => {
                    let tree = Beneath::new(lock.try_clone().map_err(|_| Errno::MFILE)?);
                    return Ok(Self { name, lock, tree });
                }
                Err(Errno::EXIST) => number += 1,
                // Taken away between two calls.
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::EXIST)
    }

    pub(crate) const fn name(&self) -> TrashName {
        self.name
    }

    /// Moves the entry `path` of `tree` here, under the same path. Nothing is replaced.
    pub(crate) fn take(&mut self, tree: &mut Beneath, path: &[u8]) -> Result<()> {
        let (directory, leaf) = split(path);
        let from = tree.directory(directory)?;
        let into = self.tree.make_directory(directory)?;
        match rename(from, into, leaf) {
            Err(Errno::ACCESS) => rename_closed(from, into, leaf),
            renamed => renamed,
        }
    }

    /// Sets the folder's time to that of its last change, from which its expiry counts.
    pub(crate) fn close(&self) {
        // One that cannot be dated is as old as its newest entry at the top.
        let _ = touch(self.lock.as_fd());
    }
}

/// Moves the entry `leaf` from one directory to another. Nothing is replaced.
fn rename(from: BorrowedFd<'_>, into: BorrowedFd<'_>, leaf: &[u8]) -> Result<()> {
    match rustix::fs::renameat_with(from, leaf, into, leaf, RenameFlags::NOREPLACE) {
        // The file system does not know the flag. Nobody else writes into this folder.
        Err(Errno::INVAL | Errno::NOSYS) => match rustix::fs::statat(into, leaf, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => rustix::fs::renameat(from, leaf, into, leaf),
            Err(errno) => Err(errno),
            Ok(_) => Err(Errno::EXIST),
        },
        renamed => renamed,
    }
}

/// Renames as [`rename`] does a directory that its owner may not write to, which the system refuses
/// to move. Its mode is restored afterwards.
fn rename_closed(from: BorrowedFd<'_>, into: BorrowedFd<'_>, leaf: &[u8]) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let moved = rustix::fs::openat(from, leaf, flags, Mode::empty())?;
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&moved)?.st_mode);
    rustix::fs::fchmod(&moved, mode | Mode::WUSR)?;
    let renamed = rename(from, into, leaf);
    rustix::fs::fchmod(&moved, mode)?;
    renamed
}

/// Updates the status change time (ctime) of a directory.
pub(crate) fn touch(directory: BorrowedFd<'_>) -> Result<()> {
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
    };
    rustix::fs::futimens(directory, &times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn folders_are_called_after_their_time_and_by_that_alone_known() {
        let name = |number| TrashName { seconds: 1_796_000_405, number };
        assert_eq!(name(1).to_string(), "2026-11-30-010005");
        assert_eq!(name(2).to_string(), "2026-11-30-010005.2");
        for number in [1, 2, 999] {
            assert!(is_trash_name(name(number).to_string().as_bytes()));
        }
        for other in
            ["", "notes", "2026-11-30", "2026-11-30-01200", "2026-11-30-0100055", "x026-11-30-010005"]
        {
            assert!(!is_trash_name(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn an_entry_keeps_its_path_and_replaces_nothing() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir_all(top.path().join("a/b")).unwrap();
        fs::write(top.path().join("a/b/c"), "1").unwrap();
        let root = || OwnedFd::from(fs::File::open(top.path()).unwrap());
        let mut tree = Beneath::new(root());
        let mut folder = TrashFolder::make(root().as_fd(), 0).unwrap();
        let second = TrashFolder::make(root().as_fd(), 0).unwrap();
        assert_eq!(second.name().to_string(), "1970-01-01-000000.2");
        folder.take(&mut tree, b"a/b/c").unwrap();
        let kept = top.path().join(".byway-trash/1970-01-01-000000/a/b/c");
        assert_eq!(fs::read(&kept).unwrap(), b"1");
        fs::write(top.path().join("a/b/c"), "2").unwrap();
        assert_eq!(folder.take(&mut tree, b"a/b/c"), Err(Errno::EXIST));
        assert_eq!(folder.take(&mut tree, b"a/b/none"), Err(Errno::NOENT));
        assert_eq!(fs::read(&kept).unwrap(), b"1");
        assert_eq!(fs::read(top.path().join("a/b/c")).unwrap(), b"2");
    }

    #[test]
    fn a_trash_that_is_a_link_takes_nothing() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir_all(top.path().join("in")).unwrap();
        fs::create_dir_all(top.path().join("outside")).unwrap();
        std::os::unix::fs::symlink("../outside", top.path().join("in/.byway-trash")).unwrap();
        let root = fs::File::open(top.path().join("in")).unwrap();
        assert!(TrashFolder::make(root.as_fd(), 0).is_err());
        assert_eq!(fs::read_dir(top.path().join("outside")).unwrap().count(), 0);
    }
}
