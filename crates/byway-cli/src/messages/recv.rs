//! Messages of `byway recv`.

use std::fmt::Display;
use std::path::Path;

pub const STREAM_WITH_JSON: &str =
    "`byway recv -` writes the stream to standard output, which --json needs too: leave out --json";
pub const STREAM_WITH_DIRECTORY: &str =
    "`byway recv -` writes no files, so --allow KEY=SUBDIR has no meaning: leave out the directory";
pub const RECEIVER_STOPPED: &str = "stopped";
pub const PARTIAL_ARRIVAL: &str = "not everything arrived: the warnings name what is missing";
pub const NOT_ALL_DELETED: &str =
    "not everything that the sender no longer has was deleted: the warnings name what is left";
pub const SENDER_COULD_NOT_READ: &str =
    "not everything arrived: the sender could not read all of it, and names there what is missing";

pub fn too_many_relays(most: usize, given: usize) -> String {
    format!(
        "a ticket can name {most} relays, and --relay gives {given}: the ticket names the first that answer"
    )
}

/// The error of `--new-ticket` while another process receives into the same directory.
pub fn ticket_in_use(directory: &Path) -> String {
    format!(
        "another `byway recv` uses the ticket of {}: stop it, and then use --new-ticket",
        directory.display()
    )
}

pub fn port_taken(port: u16) -> String {
    format!(
        "port {port} is in use by another program: the ticket printed before does not work here, so use the new one"
    )
}

pub fn port_not_asked_for(port: u16) -> String {
    format!(
        "--listen does not name port {port} of the run before: the ticket printed then does not work here, so use the new one"
    )
}

/// The message that the ticket was used before, so that it admits only `sender`.
pub fn ticket_has_owner(sender: &str) -> String {
    format!(
        "this ticket admits only {sender}, which completed the first transfer with it; --new-ticket prints one for another sender"
    )
}

/// The first transfer with the ticket is complete.
pub fn ticket_gets_owner(sender: &str) -> String {
    format!(
        "from now on the ticket admits only {sender}; to admit another sender, use --allow KEY or --new-ticket"
    )
}

pub fn owner_not_saved(error: impl Display) -> String {
    format!("cannot save which sender owns the ticket ({error}): the next run admits whoever has the ticket")
}

pub fn stopped_with_ticket(command: &str) -> String {
    format!("stopped; to go on, with the same ticket: {command}")
}
