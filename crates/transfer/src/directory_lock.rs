//! Which processes write into a directory, on whatever host and with whatever state directory: one
//! sink, or any number of receivers.

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Bytes of the longest text in a lock file: a process's number and its host's name.
const MAX_TEXT_BYTES: u64 = 300;

/// A lock on a directory into which this process writes. It ends when this value is dropped or the
/// process ends.
#[derive(Debug)]
pub struct DirectoryLock {
    _directory: Option<OwnedFd>,
    _file: Option<File>,
}

/// Why a directory is not locked.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryLockError {
    /// Another process writes into the directory.
    #[error("another byway process writes into it")]
    InUse {
        /// The other process, as its lock file describes it: `process 4711 on host radar`. `None`:
        /// unknown.
        by: Option<String>,
    },
    /// The lock file cannot be used.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl DirectoryLock {
    /// Locks `directory` for a receiver, together with other receivers. If a sink holds it, the
    /// error names the sink from its lock file `name`.
    ///
    /// # Errors
    /// A sink writes into it.
    pub fn shared(directory: &Path, name: &Path) -> Result<Self, DirectoryLockError> {
        let file = File::open(directory.join(name)).ok();
        if let Some(file) = &file
            && flock(file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
        {
            return Err(DirectoryLockError::InUse { by: holder(file) });
        }
        let directory = lock(directory, FlockOperation::NonBlockingLockShared)?;
        Ok(Self { _directory: directory, _file: file })
    }

    /// Locks `directory` for this process alone. The file `name` in it says which process that is.
    /// The file also serves where directories cannot be locked, as on NFS.
    ///
    /// # Errors
    /// Another process writes into it, or the lock file cannot be made.
    pub fn exclusive(directory: &Path, name: &Path) -> Result<Self, DirectoryLockError> {
        let path = directory.join(name);
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).mode(0o644).open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => {
                // Receivers share the lock, and the file names the sink before them.
                let by_receivers = flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
                let by = if by_receivers { None } else { holder(&file) };
                return Err(DirectoryLockError::InUse { by });
            }
            locked => locked.map_err(io::Error::from)?,
        }
        // Whoever was named in the file is gone: a receiver holds the directory alone.
        file.set_len(0)?;
        let directory = lock(directory, FlockOperation::NonBlockingLockExclusive)?;
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let text = format!("process {} on host {}\n", std::process::id(), host.trim());
        file.write_all_at(text.as_bytes(), 0)?;
        Ok(Self { _directory: directory, _file: Some(file) })
    }
}

/// Locks the directory itself. `None`: its file system does not support such locks.
fn lock(directory: &Path, operation: FlockOperation) -> Result<Option<OwnedFd>, DirectoryLockError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let descriptor = open(directory, flags, Mode::empty()).map_err(io::Error::from)?;
    match flock(&descriptor, operation) {
        Ok(()) => Ok(Some(descriptor)),
        Err(Errno::WOULDBLOCK) => Err(DirectoryLockError::InUse { by: None }),
        Err(_) => Ok(None),
    }
}

/// Returns the description of the process that holds the lock, from the lock file.
fn holder(file: &File) -> Option<String> {
    let mut text = String::new();
    file.take(MAX_TEXT_BYTES).read_to_string(&mut text).ok()?;
    let line = text.lines().next()?;
    (!line.is_empty() && !line.contains(char::is_control)).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder_of(locked: Result<DirectoryLock, DirectoryLockError>) -> Option<String> {
        match locked {
            Err(DirectoryLockError::InUse { by }) => by,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_sink_or_any_number_of_receivers() {
        let directory = tempfile::tempdir().unwrap();
        let name = Path::new(".lock");
        let sink = || DirectoryLock::exclusive(directory.path(), name);
        let receiver = || DirectoryLock::shared(directory.path(), name);
        let first = sink().unwrap();
        let by = holder_of(sink()).unwrap();
        assert!(by.starts_with(&format!("process {} on host ", std::process::id())), "{by}");
        assert_eq!(holder_of(receiver()), Some(by));
        drop(first);
        let receivers = (receiver().unwrap(), receiver().unwrap());
        assert_eq!(holder_of(sink()), None, "a receiver leaves no name");
        // Where the sink has never been, a receiver has the directory itself.
        fs::remove_file(directory.path().join(name)).unwrap();
        assert_eq!(holder_of(sink()), None);
        drop(receivers);
        drop(sink().unwrap());
    }

    #[test]
    fn a_directory_is_the_same_under_whatever_path() {
        let place = tempfile::tempdir().unwrap();
        let (directory, link) = (place.path().join("out"), place.path().join("link"));
        fs::create_dir_all(directory.join("sub")).unwrap();
        std::os::unix::fs::symlink("out", &link).unwrap();
        let name = Path::new(".lock");
        let own = format!("process {} on host ", std::process::id());
        let first = DirectoryLock::exclusive(&directory, name).unwrap();
        let root = Path::new("/proc/self/root");
        let by_root = root.join(directory.strip_prefix("/").unwrap());
        for other in [link.clone(), link.join("sub/.."), directory.join("."), by_root] {
            for locked in [DirectoryLock::exclusive(&other, name), DirectoryLock::shared(&other, name)] {
                assert!(holder_of(locked).unwrap().starts_with(&own), "{}", other.display());
            }
        }
        // It is renamed while it is in use, and whoever tidies up removes the lock file.
        let renamed = place.path().join("renamed");
        fs::rename(&directory, &renamed).unwrap();
        assert!(holder_of(DirectoryLock::exclusive(&renamed, name)).unwrap().starts_with(&own));
        fs::remove_file(renamed.join(name)).unwrap();
        assert_eq!(holder_of(DirectoryLock::shared(&renamed, name)), None);
        assert_eq!(holder_of(DirectoryLock::exclusive(&renamed, name)), None);
        drop(first);
        drop(DirectoryLock::exclusive(&renamed, name).unwrap());
    }
}
