//! Why two hosts are not paired.

use super::code::PairingCode;
use byway_wire::relay::Reason;
use std::io;
use std::net::SocketAddr;
use thiserror::Error;

/// Why two hosts are not paired.
#[derive(Debug, Error)]
pub enum PairingError {
    /// The system gave no socket.
    #[error("cannot reach the relay: {0}")]
    Socket(#[from] io::Error),
    /// No relay answered.
    #[error("no relay answers at {}: pairing needs UDP", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Silent(Vec<SocketAddr>),
    /// The relay refuses the relay word.
    #[error("{0}")]
    Refused(Reason),
    /// The relay has no room.
    #[error("the relay has as many open codes as it takes: try again in ten minutes")]
    Full,
    /// No host waits with the code.
    #[error(
        "no host waits with the code {0}: it is good for ten minutes and one guess, \
         and both hosts must use one relay"
    )]
    NoHost(PairingCode),
    /// A third host used the code first.
    #[error("another host used the code {0} first: begin again with a new code")]
    Taken(PairingCode),
    /// No host came in time, or the relay has forgotten the mailbox.
    #[error("the code is over, and no host came with it: begin again with a new one")]
    Over,
    /// The other host answered before, and is silent now.
    #[error("the other host is gone: begin again with a new code")]
    Gone,
    /// The words of the code differ at the two hosts.
    #[error("the other host has another code: nothing was told, and this code is over")]
    WrongCode,
    /// The first letter from the other host is not valid. So nothing proves that its sender has the
    /// code.
    #[error("what came in place of the other host is not byway's: begin again with a new code")]
    Stranger,
    /// The other host sent a message that is not valid.
    #[error("the other host has the code and says something that byway does not: its {0}")]
    Malformed(&'static str),
    /// The relay sent a message that is not valid.
    #[error("the relay says something that byway does not understand")]
    RelayMalformed,
    /// The other host has the same key as this one.
    #[error("the code was typed on the host that made it: type it on the other host")]
    Oneself,
    /// The ticket to send has another key than this host.
    #[error("the ticket is of another host, or of a key that this host has no more")]
    ForeignTicket,
    /// The introduction is too long for a letter.
    #[error("this host's ticket is too long for a letter: hand it over by hand")]
    TooLong,
    /// The caller wants no more.
    #[error("stopped")]
    Stopped,
}
