//! The events of a running transfer, for the program.

use crate::error::TransferError;
use crate::inbound_relays::UselessRelay;
use crate::progress::ForwardCounters;
use crate::progress::TransferProgress;
use crate::receiver::received_output::ReceivedTransfer;
use crate::session::name_lookup::NameStep;
use crate::ticket::GreetedRelay;
use byway_files::LookedAt;

/// An event of a running transfer, for the program.
#[derive(Debug)]
pub enum TransferEvent {
    /// The session with the peer is established.
    Begun,
    /// The progress of the transfer, a few times a second.
    Progress(TransferProgress),
    /// Something that a person should know and that does not end the transfer.
    Warning(String),
    /// A path changed its state.
    Path {
        /// The path's number.
        path: u32,
        /// The name of the path, for a person.
        name: String,
        /// The path's state from now on.
        state: &'static str,
        /// The reason for the change, for a person.
        reason: Option<String>,
    },
    /// A relay has come further: it is available, a reserve, in use, unusable or dropped.
    Relay {
        /// The name of the relay, for a person.
        name: String,
        /// The relay's state, as in [`RelayOutcome::standing`](crate::RelayOutcome::standing).
        standing: &'static str,
        /// The reason for the change, for a person.
        reason: Option<String>,
    },
    /// A step in looking up a name of the receiver.
    Name(NameStep),
    /// The effect that a transfer would have on an entry, for a sender's dry run. The program must
    /// read these events, or the dry run waits.
    Looked {
        /// The effect on the entry.
        what: LookedAt,
        /// Bytes of a file, or the number of entries that would go.
        amount: u64,
        /// The path of the entry.
        path: Vec<u8>,
    },
    /// The receiver can now be reached through this relay.
    Reachable(GreetedRelay),
    /// The receiver cannot be reached through this relay, and why.
    UselessRelay(UselessRelay),
    /// One transfer to a receiver is over.
    Received(ReceivedTransfer),
    /// The counters of forwarded connections.
    Forwarded(ForwardCounters),
    /// The receiver of forwarded connections is away, for this reason. [`TransferEvent::Begun`]
    /// follows when it is back.
    Away(TransferError),
}
