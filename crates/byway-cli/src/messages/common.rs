//! Messages of several verbs.

use std::fmt::Display;
use std::path::Path;

pub const CANNOT_READ_HISTORY: &str = "cannot read the history of transfers";
pub const CANNOT_CATCH_SIGNALS: &str = "cannot install the signal handlers";

pub const NO_ADDRESS_TO_SEND_TO: &str = "the ticket names no address that can be used: start the receiver with --listen ADDR, or name a relay with --relay WORD";
pub const NOT_ANSWERED_YET: &str = "the receiver has not answered yet";

pub const CANNOT_REPLACE_TICKET: &str = "cannot replace the saved ticket";

/// The next run cannot print the same ticket.
pub fn ticket_not_saved(error: impl Display) -> String {
    format!("cannot save the ticket ({error}): it is valid only until this process ends")
}

/// The message that names the command to type on the sending host.
pub fn command_elsewhere(command: &str) -> String {
    format!("on the other host: {command}")
}

/// The message that another byway process writes into the directory. `process` names that process,
/// where it is known.
pub fn directory_in_use(directory: &Path, process: Option<&str>) -> String {
    let process = process.map(|process| format!(" ({process})")).unwrap_or_default();
    format!(
        "another byway process{process} writes into {}: stop it, or choose another directory",
        directory.display()
    )
}

pub fn cannot_lock(directory: &Path) -> String {
    format!("cannot lock {} against other byway processes", directory.display())
}
