//! Messages of `byway sink`.

use byway_sources::FileChange;
use std::path::Path;

pub fn cannot_write_into(directory: &Path) -> String {
    format!("cannot write into {}", directory.display())
}

pub fn too_many_relays(most: usize, given: usize) -> String {
    format!("a ticket can name {most} relays, and --relay gives {given}: give fewer")
}

pub fn cannot_listen_on_tcp(addresses: &[String]) -> String {
    format!(
        "cannot listen on TCP {}: stop the program that uses the port, or choose another one with --listen",
        addresses.join(", ")
    )
}

pub fn port_not_used(port: u16) -> String {
    format!(
        "the sink does not listen on port {port} any more: the ticket printed before does not work, so use the new one"
    )
}

/// The command to type on a source's host.
pub fn source_command(ticket: &str) -> String {
    format!("program | byway source --name NAME --demand RATE --to {ticket}")
}

pub fn source_came(name: &str) -> String {
    format!("source {name} is connected")
}

pub fn source_gone(name: &str, why: &str) -> String {
    format!("source {name} is not connected any more: {why}")
}

pub fn new_file(name: &str, change: FileChange) -> String {
    match change {
        FileChange::Moved => format!("the file {name} was moved: its records go on in a new one"),
        FileChange::Missing => {
            format!("the file {name} is not there any more: its records go on in a new one")
        }
        FileChange::Deleted => {
            format!("the file {name} was deleted, with the records in it: the next ones are in a new file")
        }
        FileChange::Emptied => format!(
            "the file {name} was emptied: records written between its copy and that are in neither; move the file away instead"
        ),
    }
}
