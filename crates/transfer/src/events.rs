//! What a transfer tells the program while it runs.

use crate::error::TransferError;
use crate::progress::ForwardCounters;
use crate::progress::TransferProgress;
use crate::received_output::ReceivedTransfer;
use crate::standing_relays::UselessRelay;
use crate::ticket::GreetedRelay;

/// What happens while a transfer runs.
#[derive(Debug)]
pub enum TransferEvent {
    /// The peer is there; bytes begin to move.
    Begun,
    /// How far it is.
    Progress(TransferProgress),
    /// Something that a person should know and that does not end the transfer.
    Warning(String),
    /// A path changed its state.
    Path {
        /// The path's number.
        path: u32,
        /// What to call it.
        name: String,
        /// The path's state from now on.
        state: &'static str,
        /// Why, for a person.
        reason: Option<String>,
    },
    /// A relay has come further: it is available, a reserve, in use, unusable or dropped.
    Relay {
        /// What to call it.
        name: String,
        /// How far it has come: see [`RelayOutcome::standing`](crate::RelayOutcome::standing).
        standing: &'static str,
        /// Why, for a person.
        reason: Option<String>,
    },
    /// A receiver can be reached through a relay where it stands. The relay takes the word.
    Reachable(GreetedRelay),
    /// Nobody will come through a relay where a receiver stands.
    UselessRelay(UselessRelay),
    /// One transfer to a receiver is over.
    Received(ReceivedTransfer),
    /// What was forwarded so far.
    Forwarded(ForwardCounters),
    /// The receiver of forwarded connections is away, for this reason. [`TransferEvent::Begun`]
    /// follows when it is back.
    Away(TransferError),
}
