//! Going to a host of a lab.

use crate::lab_directory::{HostRecord, LabRecord};
use crate::namespaces;
use std::io;

/// Moves this process into a host of a lab. Programs started afterwards run on the host until the
/// lab ends. The process must have only one thread (setns(2)).
///
/// # Errors
/// The lab has ended, or belongs to another user.
pub fn enter(record: &LabRecord, host: &HostRecord) -> io::Result<()> {
    let here = std::env::current_dir();
    namespaces::join(record.process, host.network)?;
    namespaces::own_mounts()?;
    // Both show what is inside where the system allows it.
    let _ = namespaces::own_sys();
    // Other mounts have another root, and there we are.
    match here {
        Ok(here) => std::env::set_current_dir(here),
        Err(_) => Ok(()),
    }
}
