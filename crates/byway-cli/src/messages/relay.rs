//! Messages of `byway relay`.

use crate::units::Bytes;
use std::fmt::Display;

pub const UDP_AND_TCP: &str = "the relay listens on UDP and TCP, at the same ports";
pub const UDP_ONLY: &str = "the relay listens on UDP only";
pub const BEING_TESTED: &str = "the registry tests the relay";
pub const COUNTS_SAVED_AGAIN: &str = "the count of carried bytes is saved again";

pub const NO_NAMED_WORD: &str = "no word has a name: byway relay word --for NAME makes one";

pub fn revoked(name: impl Display) -> String {
    format!("the word of {name} is revoked; a relay that runs obeys within a second")
}

pub fn words_read(good: usize) -> String {
    format!("the words that have names changed: {good} are not revoked")
}

/// `error` names the file.
pub fn words_unread(error: &anyhow::Error) -> String {
    format!("{error:#}: if the file is damaged, no word that has a name opens anything")
}

/// The command to type at the receiver, with the relay word.
pub fn at_the_receiver(word: &str) -> String {
    format!("on the host that receives: byway recv DIR --relay {word}")
}

/// `error` names the address.
pub fn no_tcp(error: impl Display) -> String {
    format!("{error}: this relay serves UDP only")
}

pub fn too_many_addresses(most: usize, given: usize) -> String {
    format!("a relay word can name {most} addresses, and --advertise gives {given}: give fewer")
}

/// The message that a registry has tested the relay and offers it to senders.
pub fn listed(addresses: &[String]) -> String {
    format!("the registry lists the relay at {}", addresses.join(" "))
}

pub fn not_listed(address: impl Display, why: impl Display) -> String {
    format!("the registry does not list the relay at {address}: {why}")
}

pub fn not_enrolled(error: impl Display, seconds: u64) -> String {
    format!("the relay is not enrolled: {error}; the next attempt is in {seconds} s")
}

pub fn dropped_datagram(from: impl Display, grant: u32, reason: impl Display, left_out: u64) -> String {
    let more = match left_out {
        0 => String::new(),
        more => format!(", and {more} more before"),
    };
    format!("dropped a datagram of {from} (grant {grant:08x}): {reason}{more}")
}

pub fn counts_not_saved(error: impl Display) -> String {
    format!("cannot save the count of carried bytes: {error}; after a restart the count is too small")
}

pub fn draining(seconds: u64) -> String {
    format!(
        "words are still in use: the relay goes on for at most {seconds} s; a second SIGTERM ends it at once"
    )
}

/// Datagrams and bytes in both directions since the start.
pub fn forwarded(forth: (u64, u64), back: (u64, u64), greetings: u64) -> String {
    format!(
        "forwarded {} datagrams ({}) to receivers and {} ({}) back, answered {greetings} greetings",
        forth.0,
        Bytes(forth.1),
        back.0,
        Bytes(back.1)
    )
}

pub fn carried(today: u64, month: u64) -> String {
    format!("  carried {} today and {} this month", Bytes(today), Bytes(month))
}

pub fn knows(connections: usize, receivers: usize) -> String {
    format!("  has {connections} TCP connections now, and remembers where {receivers} receivers are")
}

pub fn lends(rates: impl Display) -> String {
    format!("  {rates} now")
}

pub fn dropped(count: u64, reason: &str) -> String {
    format!("  dropped {count}: {reason}")
}
