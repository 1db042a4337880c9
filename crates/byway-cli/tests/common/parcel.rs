//! A file that is sent from one host to another, and what arrives of it.

use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// A file, and the directory of a receiver beside it.
pub struct Parcel {
    directory: TempDir,
}

impl Parcel {
    /// A file of so many bytes.
    pub fn new(size: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        fs::write(directory.path().join("file"), bytes).unwrap();
        Self { directory }
    }

    /// What a host keeps there.
    pub fn state(&self, host: &str) -> PathBuf {
        self.directory.path().join(host)
    }

    /// The file.
    pub fn file(&self) -> String {
        self.directory.path().join("file").display().to_string()
    }

    /// Where it is to arrive.
    pub fn destination(&self) -> PathBuf {
        self.directory.path().join("in")
    }

    /// It has arrived as it is.
    pub fn arrived(&self) {
        let same = fs::read(self.file()).unwrap() == fs::read(self.destination().join("file")).unwrap();
        assert!(same, "what arrived differs");
    }
}
