//! Errors of reading or writing the files of a state directory.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The result of a function that reads or writes the state directory.
pub(super) type Result<T> = std::result::Result<T, StateError>;

/// Why a file of the state directory cannot be written or used.
#[derive(Debug, Error)]
pub enum StateError {
    /// No directory was given, and the environment names none.
    #[error("neither HOME nor XDG_DATA_HOME says where keys are kept: give --state-dir DIR")]
    NoHome,
    /// The system gives no randomness.
    #[error("the system gives no randomness: {0}")]
    NoRandomness(getrandom::Error),
    /// The operating system reported an error.
    #[error("cannot {what} {}", .path.display())]
    Io {
        /// The failed action, as part of a sentence.
        what: String,
        /// To which file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A key may have been seen.
    #[error(
        "the {what} in {shown} can be read by others (mode {mode:03o}): run `chmod 600 {shown}`, \
         or remove it for a new one if somebody did read it",
        shown = .path.display()
    )]
    Exposed {
        /// The kind of key.
        what: &'static str,
        /// The file's path.
        path: PathBuf,
        /// The file's mode.
        mode: u32,
    },
    /// A file that should hold a key holds something else.
    #[error("{} {holds}: put back a copy, or remove the file for a new one", .path.display())]
    Damaged {
        /// The file's path.
        path: PathBuf,
        /// The text that the file holds.
        holds: String,
    },
}

impl StateError {
    pub(super) fn io(what: impl Into<String>, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let (what, path) = (what.into(), path.to_owned());
        move |source| Self::Io { what, path, source }
    }
}
