//! Keeps other byway processes out of a directory that is written into.

use crate::exit::{Exit, Failure};
use crate::messages;
use anyhow::{Error, Result};
use byway_transfer::{DirectoryLock, DirectoryLockError};
use std::path::Path;

/// The lock file that names the sink's process. It is beside the notes, whose names begin with no
/// dot.
const LOCK_FILE: &str = ".byway-sink/.lock";

/// Locks a directory for a sink, which must be the only writer.
pub(super) fn by_sink(directory: &Path) -> Result<DirectoryLock> {
    DirectoryLock::exclusive(directory, Path::new(LOCK_FILE)).map_err(|error| failure(directory, error))
}

/// Locks a directory for a receiver, which may share it with other receivers.
pub(super) fn by_receiver(directory: &Path) -> Result<DirectoryLock> {
    DirectoryLock::shared(directory, Path::new(LOCK_FILE)).map_err(|error| failure(directory, error))
}

fn failure(directory: &Path, error: DirectoryLockError) -> Error {
    match error {
        DirectoryLockError::InUse { by } => {
            let message = messages::common::directory_in_use(directory, by.as_deref());
            Failure::new(Exit::Error, message).into()
        }
        DirectoryLockError::Io(error) => Error::new(error).context(messages::common::cannot_lock(directory)),
    }
}
