//! Messages of `byway forward`.

use crate::units::Bytes;
use std::fmt::Display;

pub const NO_TICKET: &str = "the command names no receiver: give its ticket with --to TICKET";
pub const STDIO_WITH_JSON: &str =
    "with --stdio, standard output holds the connection's bytes: there is no place for the events of --json";
pub const CANNOT_TAKE_STDIO: &str = "cannot use standard input and output";
pub const RECEIVER_ANSWERS: &str = "the receiver answers";

pub fn away(reason: &str) -> String {
    format!(
        "the receiver is away ({reason}): new connections wait ten seconds, and are refused if it does not answer"
    )
}

pub fn broke(target: impl Display, reason: &str) -> String {
    format!("the connection to {target} broke, since the receiver is away: {reason}")
}

pub fn forwards(address: impl Display, target: impl Display) -> String {
    format!("connections to {address} go to {target} at the receiver")
}

pub fn accepts_socks(address: impl Display) -> String {
    format!("{address} accepts SOCKS5; the receiver resolves names")
}

pub fn stopped(connections: u64, sent: u64, received: u64) -> String {
    format!("stopped: {connections} connections, {} sent and {} received", Bytes(sent), Bytes(received))
}
