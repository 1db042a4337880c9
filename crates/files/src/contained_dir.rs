//! Opens files below one directory, the root. No path leads out of the root or through a symbolic
//! link, even one made meanwhile. Linux 5.6 checks that (`openat2` with `RESOLVE_BENEATH` and
//! `RESOLVE_NO_SYMLINKS`). On older kernels each component is opened with `O_NOFOLLOW`.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::{Errno, Result};

use crate::manifest::Timestamp;
use crate::name::split;

/// The flags with which directories are opened. `O_PATH` needs no permission to list them.
const DIRECTORY_FLAGS: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// The mode of directories that are made because an entry below them is named. The process's umask
/// removes bits from it.
const PARENT_MODE: Mode = Mode::from_bits_retain(0o755);
/// Lookups of one path at most. The kernel asks to try again after a rename crossed its lookup.
const MAX_TRIES: u32 = 16;

/// The most directories below the root that stay open. One is not enough: a sender lists a
/// directory while it reads files of an earlier one. A receiver writes into a directory while it
/// renames files of an earlier one.
const MAX_HELD_DIRECTORIES: usize = 4;

/// A directory, and the directories below it that were used last, all held open.
#[derive(Debug)]
pub(crate) struct Beneath {
    root: OwnedFd,
    /// Directories with their paths, the last used one at the end.
    held: Vec<(Vec<u8>, OwnedFd)>,
    by_component: bool,
}

impl Beneath {
    pub(crate) fn new(root: OwnedFd) -> Self {
        Self { root, held: Vec::new(), by_component: false }
    }

    /// Makes a tree that opens paths component by component, as on a kernel without `openat2`.
    #[cfg(test)]
    pub(crate) fn by_component(root: OwnedFd) -> Self {
        Self { root, held: Vec::new(), by_component: true }
    }

    /// Opens `path` below the root with `flags` and `O_CLOEXEC`. `path` is one that `check_name`
    /// accepts, or empty for the root. Fails with `ELOOP` or `ENOTDIR` if a component of `path` is
    /// a symbolic link, the last one included.
    pub(crate) fn open(&mut self, path: &[u8], flags: OFlags) -> Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let path = if path.is_empty() { &b"."[..] } else { path };
        if !self.by_component {
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            for _ in 0..MAX_TRIES {
                match rustix::fs::openat2(&self.root, path, flags, Mode::empty(), resolve) {
                    Err(Errno::AGAIN) => {}
                    // A sandbox answers EPERM; if the file system said it, the slow way says it
                    // again.
                    Err(Errno::NOSYS | Errno::PERM) => break,
                    result => return result,
                }
            }
        }
        let (directory, leaf) = split(path);
        let mut held: Option<OwnedFd> = None;
        for component in directory.split(|byte| *byte == b'/').filter(|component| !component.is_empty()) {
            let from = held.as_ref().map_or(self.root.as_fd(), AsFd::as_fd);
            held = Some(rustix::fs::openat(from, component, DIRECTORY_FLAGS, Mode::empty())?);
        }
        let from = held.as_ref().map_or(self.root.as_fd(), AsFd::as_fd);
        rustix::fs::openat(from, leaf, flags, Mode::empty())
    }

    /// Opens `path` as [`Self::open`] does, but fails with `EXDEV` if it is on another mount than
    /// the root.
    pub(crate) fn open_unmounted(&mut self, path: &[u8], flags: OFlags) -> Result<OwnedFd> {
        if !self.by_component && !path.is_empty() {
            let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let resolve = ResolveFlags::BENEATH
                | ResolveFlags::NO_SYMLINKS
                | ResolveFlags::NO_MAGICLINKS
                | ResolveFlags::NO_XDEV;
            for _ in 0..MAX_TRIES {
                match rustix::fs::openat2(&self.root, path, flags, Mode::empty(), resolve) {
                    Err(Errno::AGAIN) => {}
                    Err(Errno::NOSYS | Errno::PERM) => break,
                    result => return result,
                }
            }
        }
        let opened = self.open(path, flags)?;
        let device = rustix::fs::fstat(&self.root)?.st_dev;
        if rustix::fs::fstat(&opened)?.st_dev == device { Ok(opened) } else { Err(Errno::XDEV) }
    }

    /// Returns the directory at `path` (checked or empty), for calls that name an entry directly in
    /// it.
    pub(crate) fn directory(&mut self, path: &[u8]) -> Result<BorrowedFd<'_>> {
        if path.is_empty() {
            return Ok(self.root.as_fd());
        }
        match self.held.iter().rposition(|(held, _)| held == path) {
            Some(place) => {
                let last = self.held.len() - 1;
                self.held.swap(place, last);
            }
            None => {
                let opened = self.open(path, DIRECTORY_FLAGS)?;
                if self.held.len() == MAX_HELD_DIRECTORIES {
                    self.held.remove(0);
                }
                self.held.push((path.to_vec(), opened));
            }
        }
        Ok(self.held.last().map_or(self.root.as_fd(), |(_, held)| held.as_fd()))
    }

    /// Returns a directory as [`Self::directory`] does, but makes it with mode 0700 if it is
    /// missing. Missing parents get the mode that the umask allows.
    pub(crate) fn make_directory(&mut self, path: &[u8]) -> Result<BorrowedFd<'_>> {
        self.make(path, Mode::RWXU)
    }

    /// Returns a directory as [`Self::directory`] does, but makes missing directories with the mode
    /// that the umask allows.
    pub(crate) fn make_parents(&mut self, path: &[u8]) -> Result<BorrowedFd<'_>> {
        self.make(path, PARENT_MODE)
    }

    /// A descriptor of the directory at `path`, made as by [`Self::make_parents`].
    pub(crate) fn into_subdirectory(mut self, path: &[u8]) -> Result<OwnedFd> {
        self.make_parents(path)?;
        self.open(path, DIRECTORY_FLAGS)
    }

    fn make(&mut self, path: &[u8], mode: Mode) -> Result<BorrowedFd<'_>> {
        match self.directory(path).map(drop) {
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
            Ok(()) => return self.directory(path),
        }
        let ends = (0..path.len()).filter(|at| path.get(*at) == Some(&b'/')).chain([path.len()]);
        for end in ends {
            let (directory, leaf) = split(path.get(..end).unwrap_or(path));
            let mode = if end == path.len() { mode } else { PARENT_MODE };
            match rustix::fs::mkdirat(self.directory(directory)?, leaf, mode) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
        }
        self.directory(path)
    }

    /// Closes the held directories, because one may have been moved.
    pub(crate) fn forget(&mut self) {
        self.held.clear();
    }

    /// The target of the symbolic link at `path`.
    pub(crate) fn readlink(&mut self, path: &[u8]) -> Result<Vec<u8>> {
        let (directory, leaf) = split(path);
        Ok(rustix::fs::readlinkat(self.directory(directory)?, leaf, Vec::new())?.into_bytes())
    }

    /// Returns the metadata of `path`. Of a symbolic link, it returns the link's own metadata.
    pub(crate) fn stat(&mut self, path: &[u8]) -> Result<rustix::fs::Stat> {
        let (directory, leaf) = split(path);
        rustix::fs::statat(self.directory(directory)?, leaf, AtFlags::SYMLINK_NOFOLLOW)
    }
}

/// The modification time of a file.
pub(crate) fn mtime(stat: &rustix::fs::Stat) -> Timestamp {
    Timestamp { seconds: stat.st_mtime, nanoseconds: u32::try_from(stat.st_mtime_nsec).unwrap_or_default() }
}

pub(crate) fn is_regular(stat: &rustix::fs::Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// Whether this is a file that was modified after `time`. Where a sender has another entry of that
/// time, the file is kept unless the sender says otherwise.
pub(crate) fn is_newer_file(stat: &rustix::fs::Stat, time: Timestamp) -> bool {
    is_regular(stat) && mtime(stat) > time
}

/// Times for system calls that set `mtime` and leave the access time unchanged.
pub(crate) fn times(mtime: Timestamp) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: mtime.seconds, tv_nsec: mtime.nanoseconds.into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn both(directory: &std::path::Path) -> [Beneath; 2] {
        let open = || OwnedFd::from(std::fs::File::open(directory).unwrap());
        [Beneath::new(open()), Beneath::by_component(open())]
    }

    #[test]
    fn links_are_not_followed_wherever_they_stand() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::create_dir(outside.path().join("d")).unwrap();
        std::fs::write(outside.path().join("d/secret"), "s").unwrap();
        let inside = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(inside.path().join("a/b")).unwrap();
        std::fs::write(inside.path().join("a/b/f"), "f").unwrap();
        symlink(outside.path(), inside.path().join("out")).unwrap();
        symlink("a", inside.path().join("alias")).unwrap();
        symlink("b", inside.path().join("a/alias")).unwrap();
        for mut beneath in both(inside.path()) {
            for path in ["out", "out/d", "out/d/secret", "alias", "alias/b/f", "a/alias/f", "a/alias"] {
                let refused = beneath.open(path.as_bytes(), OFlags::RDONLY).unwrap_err();
                assert!(matches!(refused, Errno::LOOP | Errno::NOTDIR), "{path}: {refused}");
                assert!(beneath.make_directory(format!("{path}/new").as_bytes()).is_err(), "{path}");
            }
            assert!(beneath.open(b"a/b/f", OFlags::RDONLY).is_ok());
            assert!(beneath.open(b"", OFlags::RDONLY).is_ok());
            assert_eq!(beneath.stat(b"alias").unwrap().st_mode & 0o170_000, 0o120_000);
        }
        assert!(!outside.path().join("new").exists() && !outside.path().join("d/new").exists());
    }

    #[test]
    fn a_subdirectory_is_never_behind_a_link() {
        let outside = tempfile::tempdir().unwrap();
        let inside = tempfile::tempdir().unwrap();
        symlink(outside.path(), inside.path().join("out")).unwrap();
        for path in [&b"out"[..], b"out/d"] {
            for beneath in both(inside.path()) {
                let refused = beneath.into_subdirectory(path).unwrap_err();
                assert!(matches!(refused, Errno::LOOP | Errno::NOTDIR), "{refused}");
            }
        }
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
        for beneath in both(inside.path()) {
            let made = beneath.into_subdirectory(b"a/b").unwrap();
            assert!(rustix::fs::fstat(made).is_ok() && inside.path().join("a/b").is_dir());
        }
    }

    #[test]
    fn directories_are_made_as_needed_and_the_last_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        for index in 0..2 {
            let inside = tempfile::tempdir().unwrap();
            std::fs::write(inside.path().join("file"), "").unwrap();
            let [first, second] = both(inside.path());
            let mut beneath = if index == 0 { first } else { second };
            beneath.make_directory(b"x/y/z").unwrap();
            beneath.make_directory(b"x/y/z").unwrap();
            beneath.make_directory(b"x/q").unwrap();
            beneath.make_directory(b"").unwrap();
            assert_eq!(beneath.make_directory(b"file").unwrap_err(), Errno::NOTDIR);
            assert_eq!(beneath.make_directory(b"file/x").unwrap_err(), Errno::NOTDIR);
            beneath.make_parents(b"p/q").unwrap();
            let parents = ["x", "x/y", "p", "p/q"].map(|path| (path, 0o755));
            for (path, least) in ["x/y/z", "x/q"].map(|path| (path, 0o700)).into_iter().chain(parents) {
                let mode = inside.path().join(path).metadata().unwrap().permissions().mode();
                assert!(mode & 0o7777 & !least == 0 && mode & 0o700 == 0o700, "{path}: {mode:o}");
            }
        }
    }
}
