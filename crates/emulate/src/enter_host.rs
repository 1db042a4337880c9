//! Going to a host of a lab.

use crate::lab_directory::{HostRecord, LabRecord};
use crate::namespaces;
use std::io;

/// Moves this process into a host of a lab. Its children run in the namespaces of the host and of
/// the lab, and see the host's devices and the lab's host names. Children that are still running
/// when the lab ends are killed with it. May be called only while this process has one thread.
///
/// # Errors
/// If the lab is gone, or belongs to another user.
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
