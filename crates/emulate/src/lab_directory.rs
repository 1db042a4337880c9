//! Where labs are written down, and which of them are alive: a directory for each, with a lock that
//! its keeper holds.

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The directory of all labs of a user.
#[derive(Clone, Debug)]
pub struct LabDirectory {
    root: PathBuf,
}

/// A lab, by its directory. It may be alive, dead, or missing.
#[derive(Clone, Debug)]
pub struct Lab {
    /// The name of the lab.
    pub name: String,
    directory: PathBuf,
}

/// The data with which a process enters a lab. They are written to the lab's directory once the lab
/// is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabRecord {
    /// The process id of the keeper, outside of the lab's PID namespace.
    pub process: u32,
    /// The plan that was built.
    pub plan: String,
    /// The seed of the random numbers in the lab's links.
    pub seed: u64,
    /// The lab's hosts.
    pub hosts: Vec<HostRecord>,
}

/// A host of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRecord {
    /// The name of the host.
    pub name: String,
    /// The host's IPv4 address.
    pub v4: Ipv4Addr,
    /// The host's IPv6 address.
    pub v6: Ipv6Addr,
    /// The keeper's file descriptor for the host's network namespace.
    pub network: i32,
}

/// A lock on a lab's directory, which is held until this value is dropped.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "what counts is that it is open")] File);

impl LabDirectory {
    /// Returns the directory of labs: for root /run/byway/labs, for others byway/labs in
    /// `$XDG_RUNTIME_DIR`, or else in /tmp.
    #[must_use]
    pub fn locate(root: bool, user: u32, env: impl Fn(&str) -> Option<OsString>) -> Self {
        let runtime = || env("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
        let root = match (env("BYWAY_LABS"), root) {
            (Some(chosen), _) => PathBuf::from(chosen),
            (None, true) => PathBuf::from("/run/byway/labs"),
            (None, false) => {
                let runtime = runtime().map(|runtime| runtime.join("byway"));
                runtime.unwrap_or_else(|| PathBuf::from(format!("/tmp/byway-{user}"))).join("labs")
            }
        };
        Self { root }
    }

    /// The lab with this name, which need not exist.
    #[must_use]
    pub fn lab(&self, name: &str) -> Lab {
        Lab { name: name.to_owned(), directory: self.root.join(name) }
    }

    /// All labs in the directory, alive or dead, sorted by name.
    ///
    /// # Errors
    /// If the directory cannot be read; that there is none is no error.
    pub fn all(&self) -> io::Result<Vec<Lab>> {
        let entries = match fs::read_dir(&self.root) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut labs = Vec::new();
        for entry in entries {
            if let Ok(name) = entry?.file_name().into_string() {
                labs.push(self.lab(&name));
            }
        }
        labs.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(labs)
    }
}

impl Lab {
    /// Makes the directory of the lab, takes the lab's lock, and removes files of a dead lab.
    /// `None`: the lab is alive, and another process holds the lock.
    ///
    /// # Errors
    /// The directory cannot be made, or belongs to another user.
    pub fn take(&self) -> io::Result<Option<Lock>> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        if fs::metadata(&self.directory)?.uid() != rustix::process::geteuid().as_raw() {
            let what = format!("{} belongs to another user", self.directory.display());
            return Err(io::Error::new(ErrorKind::PermissionDenied, what));
        }
        let path = self.file("lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        for left in ["record", "socket", "hosts"] {
            match fs::remove_file(self.file(left)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(Some(Lock(file)))
    }

    /// Whether the lab is alive: a keeper process holds the lock of its directory.
    #[must_use]
    pub fn alive(&self) -> bool {
        let Ok(file) = File::open(self.file("lock")) else { return false };
        flock(&file, FlockOperation::NonBlockingLockShared).is_err()
    }

    /// Removes the lab's directory.
    ///
    /// # Errors
    /// If something stays.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The path of a file in the lab's directory.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Reads the record that the keeper wrote when the lab was ready.
    ///
    /// # Errors
    /// If there is nothing, or nothing that can be understood.
    pub fn record(&self) -> io::Result<LabRecord> {
        serde_json::from_slice(&fs::read(self.file("record"))?).map_err(io::Error::from)
    }

    /// Writes the lab's record to its directory. Replaces the file atomically.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, record: &LabRecord) -> io::Result<()> {
        let draft = self.file("record.new");
        fs::write(&draft, serde_json::to_vec(record)?)?;
        fs::rename(draft, self.file("record"))
    }

    /// Asks the keeper how the lab is: its links, and how late packets left.
    ///
    /// # Errors
    /// If nobody answers.
    pub fn status(&self) -> io::Result<crate::Status> {
        let mut text = Vec::new();
        UnixStream::connect(self.file("socket"))?.read_to_end(&mut text)?;
        serde_json::from_slice(&text).map_err(io::Error::from)
    }

    /// Whether a lab may have this name, which becomes part of a path.
    #[must_use]
    pub fn may_be_called(name: &str) -> bool {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
        (1..=40).contains(&name.len()) && name.chars().all(plain) && !name.starts_with(['.', '-'])
    }

    /// The directory of the lab.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, LabDirectory) {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("labs");
        (directory, LabDirectory::locate(true, 0, |name| (name == "BYWAY_LABS").then(|| root.clone().into())))
    }

    #[test]
    fn a_lab_is_alive_while_its_lock_is_held_and_its_leftovers_are_taken_over() {
        let (_directory, place) = place();
        assert!(place.all().unwrap().is_empty());
        let lab = place.lab("one");
        assert!(!lab.alive());
        let lock = lab.take().unwrap().unwrap();
        fs::write(lab.file("record"), "half").unwrap();
        assert!(lab.alive());
        assert!(lab.take().unwrap().is_none(), "it is taken");
        assert!(lab.file("record").exists(), "and nothing of it was touched");
        drop(lock);
        assert!(!lab.alive());
        assert_eq!(place.all().unwrap().len(), 1, "dead, and still to be seen");
        assert!(lab.take().unwrap().is_some());
        assert!(!lab.file("record").exists());
        lab.remove().unwrap();
        lab.remove().unwrap();
        assert!(place.all().unwrap().is_empty());
    }

    #[test]
    fn what_is_written_is_read() {
        let (_directory, place) = place();
        let lab = place.lab("one");
        let _lock = lab.take().unwrap();
        let host =
            HostRecord { name: "a".into(), v4: [10, 66, 0, 1].into(), v6: Ipv6Addr::LOCALHOST, network: 7 };
        let record = LabRecord { process: 12, plan: "p".into(), seed: 3, hosts: vec![host] };
        lab.write(&record).unwrap();
        assert_eq!(lab.record().unwrap(), record);
    }

    #[test]
    fn where_labs_are() {
        let none = |_: &str| None;
        let runtime = |name: &str| (name == "XDG_RUNTIME_DIR").then(|| "/run/user/7".into());
        assert_eq!(LabDirectory::locate(true, 0, runtime).root, Path::new("/run/byway/labs"));
        assert_eq!(LabDirectory::locate(false, 7, runtime).root, Path::new("/run/user/7/byway/labs"));
        assert_eq!(LabDirectory::locate(false, 7, none).root, Path::new("/tmp/byway-7/labs"));
        for wrong in ["", ".", "..", "a/b", "-x", &"x".repeat(41)] {
            assert!(!Lab::may_be_called(wrong), "{wrong}");
        }
        assert!(Lab::may_be_called("two-sites.2"));
    }
}
