//! Pairing: two hosts learn each other's keys by a short code that a person reads aloud or types.
//! They meet in a mailbox of a relay ([`byway_wire::relay::MailboxRequest`]).
//!
//! ```text
//!   opener                          relay                            guest
//!   opens a mailbox  ───────────►  mailbox 7
//!   shows 7-crossover-clockwork                                      its person types the code
//!   page 0: SPAKE2 message  ─────►  keeps both  ◄─────  page 0: SPAKE2 message
//!   page 1: sealed introduction ─►  keeps both  ◄─────  page 1: sealed introduction
//! ```
//!
//! The two words are the password of SPAKE2 (RFC 9382), so who listens learns nothing that helps to
//! guess them. A mailbox has two seats, and each host takes part once: a wrong code ends it. So
//! there is one guess a code, and it hits once in 65,536 times.
//!
//! | question | place |
//! |---|---|
//! | how a code is written | `code`, `code_words` |
//! | what one host tells the other | `introduction` |
//! | how the password becomes keys, and letters are sealed | `sealing` |
//! | what is said when | `conversation` |
//! | how the relay is asked | `relay_visit` |

mod code;
mod code_words;
mod conversation;
mod introduction;
mod relay_visit;
mod sealing;

pub use code::{PairingCode, PairingCodeError};
pub use introduction::Introduction;
pub use relay_visit::{PairingNews, PairingPlan, pair};

use byway_wire::relay::Reason;
use std::io;
use std::net::SocketAddr;
use thiserror::Error;

/// Why two hosts are not paired.
#[derive(Debug, Error)]
pub enum PairingError {
    /// The system has no socket for it.
    #[error("cannot reach the relay: {0}")]
    Socket(#[from] io::Error),
    /// No relay answered.
    #[error("no relay answers at {}: pairing needs UDP", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Silent(Vec<SocketAddr>),
    /// The relay refuses the word.
    #[error("the relay refuses: {0}")]
    Refused(Reason),
    /// The relay has no room.
    #[error("the relay has as many open codes as it takes: try again in ten minutes")]
    Full,
    /// Nobody waits with the code.
    #[error(
        "no host waits with the code {0}: it is good for ten minutes and one guess, \
         and both hosts must use one relay"
    )]
    NoHost(PairingCode),
    /// Another host came first.
    #[error("another host used the code {0} first: begin again with a new code")]
    Taken(PairingCode),
    /// Nobody came in time.
    #[error("no host came with the code in ten minutes: begin again")]
    Over,
    /// The other host was there and says nothing more.
    #[error("the other host is gone: begin again with a new code")]
    Gone,
    /// The words differ.
    #[error("the other host has another code: nothing was told, and this code is over")]
    WrongCode,
    /// The other host said something that byway does not say.
    #[error("the other host has the code and says something that byway does not: its {0}")]
    Malformed(&'static str),
    /// What is to be told is too long for a letter.
    #[error("this host's ticket is too long for a letter: hand it over by hand")]
    TooLong,
    /// The caller wants no more.
    #[error("stopped")]
    Stopped,
}
