//! A transfer above the engine: what `send`, `recv` and `demo` share.
//!
//! ```text
//! sender                                              receiver
//!   HELLO says: version, kind, permission, transfer     the gate lets it in, or says why not
//!   stream 0: the manifest (or the bytes of a pipe) ──>
//!   objects: contents of files, in any order        ──> partial files, verified, put in place
//!                                                   <── stream 1: reports (or the receipt of a pipe)
//!   CLOSE                                           ──>
//! ```
//!
//! Two threads per transfer and end. The data plane's must never wait: it runs the endpoint and an owner (`sender`,
//! `receiver`). Disk, standard input and standard output have a thread of their own (`reader`, `writer`; `helper` makes small files beside that one). Between
//! the two are bounded channels; what does not fit waits in the engine, whose flow control then slows the peer.
//!
//! A program uses [`Sending`] and [`Receiving`]: start, take [`News`] until it is over, join.

mod feed;
mod gate;
mod helper;
mod holdup;
mod limit;
mod mailbox;
mod names;
mod ping;
mod preamble;
mod probe;
mod reader;
mod receiver;
mod running;
mod sender;
mod shelf;
pub mod sockets;
mod start;
mod taking;
mod tally;
mod unreached;
mod uplinks;
mod ways;
mod writer;

pub use gate::{Gate, Taken, TicketOwner};
pub use limit::window;
pub use names::route_name;
pub use ping::{PingPlan, Pinged, Pings, ping};
pub use preamble::{Kind, Preamble};
pub use receiver::{BrokenOff, Destination, Received, Receiving, ReceivingPlan};
pub use running::Running;
pub use sender::{Payload, Sending, SendingPlan, Sent};
pub use tally::{PathTally, Tally};
pub use ways::{Heard, Tried};

use crate::exit::{Exit, Failure};
use byway_engine::connection::close;
use byway_files::Shown;
use byway_wire::StreamId;
use byway_wire::relay::Consent;
use std::net::SocketAddr;

/// From the sender: the manifest, or the bytes of a pipe.
const FORTH: StreamId = StreamId(0);
/// From the receiver: reports, or the receipt of a pipe.
const BACK: StreamId = StreamId(1);

/// What happens while a transfer runs.
#[derive(Debug)]
pub enum News {
    /// The peer is there; bytes begin to move.
    Begun,
    /// How far it is.
    Progress(Tally),
    /// Something that a person should know and that does not end the transfer.
    Warning(String),
    /// A path changed its state.
    Path {
        /// Its number.
        path: u32,
        /// What to call it.
        name: String,
        /// Its state from now on.
        state: &'static str,
        /// Why, for a person.
        reason: Option<String>,
    },
    /// A receiver can be reached through a relay where it stands.
    Reachable {
        /// The relay.
        relay: SocketAddr,
        /// The receiver's address as the relay saw it.
        address: SocketAddr,
        /// The receiver's consent.
        consent: Consent,
    },
    /// One transfer to a receiver is over.
    Received(Received),
}

/// The reason to close with when this side's owner gives up: the code is the exit code for the other side.
fn code_of(exit: Exit) -> u64 {
    u64::from(exit as u8)
}

/// Why a connection is over that should not be, as a failure of this side.
fn failure_of(code: u64, reason: &str, by_peer: bool) -> Failure {
    // It may be the peer's text: one line, whatever that holds.
    let reason = Shown(reason.as_bytes()).to_string();
    let peer = |exit: Exit| Failure::new(exit, format!("the other side ended the transfer: {reason}"));
    match code {
        close::IDLE => Failure::new(
            Exit::Network,
            "the connection was lost: nothing was heard from the other side for a minute; what arrived is kept, the same command goes on from there",
        ),
        130 | 143 if !by_peer => Failure::new(Exit::Interrupted, "stopped before the transfer was complete"),
        _ if !by_peer => Failure::new(Exit::Error, format!("the connection broke: {reason}")),
        2 => Failure::new(Exit::Usage, reason),
        6 => Failure::new(Exit::NotAuthorised, reason),
        7 => peer(Exit::Integrity),
        130 | 143 => Failure::new(
            Exit::Network,
            "the other side was interrupted; what arrived is kept, the same command goes on from there",
        ),
        close::DONE => Failure::new(
            Exit::Network,
            "the other side closed before the transfer was complete: the same command goes on from there",
        ),
        _ => peer(Exit::Error),
    }
}

/// The time of day, as file systems have it.
#[must_use]
pub fn wall_clock() -> byway_files::Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    byway_files::Timestamp { seconds, nanoseconds: since.subsec_nanos() }
}
