//! Messages of `byway pair`.

use byway_transfer::identity::PublicKey;
use byway_transfer::pairing::PairingCode;
use byway_transfer::settings::PeerName;
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::Path;

pub const NO_RELAY: &str = "no relay is known where the hosts meet: name one with --relay WORD, or type the code with \
    the relay's address behind it, as in 7-crossover-clockwork@203.0.113.5:4748";
pub const GIVES_NO_TICKET: &str = "this host has no ticket to hand over: the other can send here once `byway recv DIR` ran here, and you pair again";

/// The command that completes the pairing at the other host.
pub fn command(code: PairingCode, relay: SocketAddr) -> String {
    format!("byway pair {code}@{relay}")
}

pub fn at_the_other_host(command: &str) -> String {
    format!("on the other host, within ten minutes: {command}")
}

pub fn relay_not_found(host: &str, error: impl Display) -> String {
    format!("`{host}` is no relay's address, as in relay.example.org:4748: {error}")
}

pub fn name_taken(name: &PeerName, file: &Path) -> String {
    format!("`{name}` is in {} already: choose another name, or remove it first", file.display())
}

/// The message after a pairing with a host that receives. `file` keeps its ticket.
pub fn receives(name: &PeerName, key: &PublicKey, file: &Path) -> String {
    format!("paired with `{name}` ({key}), whose ticket is in {}: byway send PATH {name}:", file.display())
}

/// The message after a pairing with a host that has no ticket. `file` keeps its key.
pub fn sends(name: &PeerName, key: &PublicKey, file: &Path) -> String {
    format!(
        "paired with `{name}` ({key}), which is in {}: `byway recv --allow {name}` admits it alone",
        file.display()
    )
}
