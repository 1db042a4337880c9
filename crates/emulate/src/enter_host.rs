//! Going to a host of a lab.

use crate::lab_directory::{HostRecord, LabRecord};
use crate::namespaces;
use std::io;

/// Takes this process to a host: its children run there, among the lab's processes, and see its
/// devices and names. What they leave behind ends with the lab. To be called while this process has
/// one thread.
///
/// # Errors
/// If the lab is gone, or belongs to somebody else.
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
