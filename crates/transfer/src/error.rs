//! The errors of this library. The text of an error is one sentence for a person: what happened,
//! where, and what to do about it.

use crate::session::no_answer::NoAnswer;
use crate::state_directory::state_error::StateError;
use byway_files::{SinkError, SourceError};
use byway_forward::forward_target::Target;
use byway_forward::stream_request::Refusal;
use byway_net::{BindError, DriverError, EntropyError, Panicked};
use byway_wire::DecodeError;
use byway_wire::relay::{Reason, RelayWordError};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use thiserror::Error;

/// Why a transfer could not be started, or could not be carried on by this process.
#[derive(Debug, Error)]
pub enum Error {
    /// The system gives no event descriptor.
    #[error("cannot make an event descriptor")]
    Descriptor(#[source] io::Error),
    /// The system gives no thread.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
    /// The system gives no randomness.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// No socket to send from or to listen on.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A relay cannot listen on TCP.
    #[error("cannot listen on TCP {address}: {source}")]
    Listen {
        /// The address that the relay cannot listen on.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The log file of path events cannot be made.
    #[error("{}: {source}", file.display())]
    SessionLog {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A relay word cannot be made from a relay's addresses.
    #[error("this relay cannot be named")]
    RelayWord(#[source] RelayWordError),
    /// A key or other file in the state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The relay has given all its ranges of grants to registries, and none is left.
    #[error("this relay was enrolled at 128 registries: --roll-key makes it a new one")]
    NoRange,
    /// Another process already lends this host's line.
    #[error("another byway relays for others with this state directory: its quota is for one")]
    AlreadyLending,
    /// A file or directory to send does not exist or cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Another process is sending the same files to the same receiver.
    #[error("another `byway send` is sending the same to the same receiver: wait for it or stop it")]
    AlreadySending,
    /// The event loop's thread panicked.
    #[error(transparent)]
    Panicked(#[from] Panicked),
    /// The event loop could not go on.
    #[error(transparent)]
    EventLoop(#[from] DriverError),
    /// The transfer failed after it had begun.
    #[error(transparent)]
    Transfer(#[from] TransferError),
}

/// Why a transfer did not complete.
#[derive(Debug, Error)]
pub enum TransferError {
    /// The transfer was cancelled by the program on this side.
    #[error("interrupted")]
    Cancelled,
    /// The transfer was stopped on this side.
    #[error("stopped before the transfer was complete")]
    Stopped,
    /// The transfer reached the byte limit of this host's program.
    #[error("the limit of bytes is reached; what arrived is kept, the same command goes on from there")]
    ByteLimit,
    /// No connection was made.
    #[error(transparent)]
    NotConnected(#[from] NotConnected),
    /// Nothing was heard from the other side for too long.
    #[error(
        "the connection was lost: nothing was heard from the other side for a minute; what arrived is kept, the same command goes on from there"
    )]
    ConnectionLost,
    /// The other side answers, but no data sent to it arrives.
    #[error(
        "nothing of what was sent arrived for a minute, although the other side answers: the network drops large packets, or blocks the data; what arrived is kept, the same command goes on from there"
    )]
    Standstill,
    /// Nothing got through. A relay reports, with this reason, that its quota is used up, which may
    /// be the cause.
    #[error(
        "the connection was lost: nothing got through for a minute, and a relay says: {0}; what arrived is kept, the same command goes on from there"
    )]
    QuotaUsedUp(Reason),
    /// The other side violated the protocol, so this side closed the connection.
    #[error("the connection broke: {0}")]
    ConnectionBroke(String),
    /// The receiver of a tree answers, and no longer knows the session: it was started anew, or
    /// heard nothing for too long.
    #[error("the receiver no longer knows this session: the same command goes on from there")]
    SessionForgotten,
    /// The receiver of a stream answers, and no longer knows the session. The stream's beginning is
    /// gone.
    #[error(
        "the receiver no longer knows this session: send the stream again, with the ticket that it prints now"
    )]
    StreamForgotten,
    /// The receiver accepts only the other kind of transfer. The text is its reason.
    #[error("{0}")]
    OtherKind(String),
    /// The receiver does not admit this sender. The text is its reason.
    #[error("{0}")]
    NotAdmitted(String),
    /// The other side found that the data differ from what was sent. The text is its reason.
    #[error("the other side ended the transfer: {0}")]
    PeerFoundDamage(String),
    /// The other side failed. The text is its reason.
    #[error("the other side ended the transfer: {0}")]
    PeerFailed(String),
    /// The other side was stopped by its user.
    #[error("the other side was interrupted; what arrived is kept, the same command goes on from there")]
    PeerInterrupted,
    /// The other side ended the connection before the transfer was complete.
    #[error("the other side closed before the transfer was complete: the same command goes on from there")]
    PeerLeft,
    /// A thread of this side panicked. The text says what the thread does.
    #[error("the thread that {0} broke down")]
    ThreadDied(&'static str),
    /// The stream to send cannot be read.
    #[error("cannot read standard input: {0}")]
    Input(io::Error),
    /// The stream that comes cannot be written.
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    /// Nobody reads the stream that comes any more.
    #[error("the reader of standard output has gone before the end of the stream")]
    OutputClosed,
    /// The receiver reports that nobody reads the stream any more.
    #[error("the receiver takes no more of the stream: its reader has gone")]
    StreamRefused,
    /// The receiver gave no receipt.
    #[error("the receiver ended the stream before all of it was written")]
    StreamCutShort,
    /// A retry of a stream does not begin with the same bytes as the first try.
    #[error(
        "the stream was begun again and is another one: {kept} bytes of the first have gone down the pipe; start `byway recv -` again"
    )]
    OtherStream {
        /// Bytes that cannot be taken back.
        kept: u64,
    },
    /// The receipt for a stream is none.
    #[error("the receiver's receipt makes no sense: compare the versions of byway")]
    Receipt,
    /// The reports about a tree are none.
    #[error("the receiver's reports make no sense ({0}): compare the versions of byway")]
    Reports(DecodeError),
    /// The receiver's disk failed.
    #[error("{0}")]
    Sink(SinkError),
    /// The receiver does not connect to the target of a forwarded connection.
    #[error("{target}: {refusal}")]
    TargetRefused {
        /// The target that was asked for.
        target: Target,
        /// The reason for the refusal.
        refusal: Refusal,
    },
    /// A forwarded connection to this target was reset before its end.
    #[error("{0}: the connection was reset before its end")]
    TargetReset(Target),
    /// The event loop ended without a reason.
    #[error("the transfer stopped before its end")]
    Unfinished,
}

/// Why no connection was made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotConnected {
    /// Nobody answers.
    #[error("{0}")]
    NoAnswer(NoAnswer),
    /// The host at the receiver's address has another key.
    #[error(
        "the host at the ticket's address has another key than the ticket says: \
         ask the receiver for a new ticket"
    )]
    OtherKey,
    /// The receiver speaks another version of the session's protocol.
    #[error("the receiver runs an incompatible version of byway: update the older side")]
    OtherVersion,
    /// The receiver takes no more connections.
    #[error("the receiver has as many connections as it takes: try again later")]
    ReceiverFull,
    /// The ticket's key is no point of the curve that gives a secret.
    #[error("the ticket holds a key that cannot be: ask for a new ticket")]
    ImpossibleKey,
}
