//! The errors of this library. The text of an error is one sentence for a person.

use byway_engine::connection::close;
use byway_transfer::Printable;
use byway_transfer::close::CloseCode;
use std::io;
use thiserror::Error;

pub use byway_transfer::application_protocol::ProtocolNameError;
pub use byway_transfer::{Error as StartError, NotConnected};

/// Why an endpoint cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The endpoint could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The endpoint's event loop is over: the endpoint was closed, or the system took its sockets
    /// away.
    #[error("the endpoint is over")]
    Over,
}

/// Why no connection to a peer was established.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The connection could not begin on this side.
    #[error(transparent)]
    Start(#[from] StartError),
    /// No connection was made. For example, no host answered, or a host with another key did.
    #[error(transparent)]
    NotConnected(#[from] NotConnected),
    /// The listener does not admit this side. The text is its reason.
    #[error("the listener does not admit this side: {0}")]
    NotAdmitted(String),
    /// The listener speaks another protocol, or is no application. The text is its reason.
    #[error("the listener is of another kind: {0}")]
    OtherKind(String),
    /// The connection ended before it could be used.
    #[error(transparent)]
    Lost(#[from] ConnectionError),
}

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The application on this host closed the connection, or dropped its last handle.
    #[error("this side closed the connection")]
    ClosedHere,
    /// The peer closed the connection. Code 0 means no error. Other codes are the peer's
    /// application's.
    #[error("the peer closed the connection with code {code}{}", because(.reason))]
    Closed {
        /// The peer's code, below 65536.
        code: u64,
        /// The peer's reason, a line of text. It may be empty.
        reason: String,
    },
    /// Nothing was received from the peer for the time of
    /// [`Config::idle_timeout`](crate::Config::idle_timeout).
    #[error("the connection was lost: nothing was heard of the peer")]
    Lost,
    /// One host broke the protocol, in the other's view. The cause is a defect of byway or of
    /// another program.
    #[error("the connection broke: {0}")]
    Broke(String),
    /// The endpoint's event loop is over.
    #[error("the endpoint is over")]
    EndpointOver,
}

fn because(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}

/// Why a stream gives or takes no more.
///
/// Reading and writing give an [`io::Error`] that holds one of these: see [`of`](Self::of).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The peer reset its direction of the stream, with this code.
    /// [`io::ErrorKind::ConnectionReset`].
    #[error("the peer gave the stream up, with code {0}")]
    Reset(u64),
    /// The peer refuses the data of this host, with this code. [`io::ErrorKind::BrokenPipe`].
    #[error("the peer wants no more of the stream, and says code {0}")]
    Stopped(u64),
    /// The application on this host has finished or reset the stream, which takes no more data.
    /// [`io::ErrorKind::NotConnected`].
    #[error("the stream was finished or given up by this side")]
    Finished,
    /// The time is over that was set for reading, writing or finishing.
    /// [`io::ErrorKind::TimedOut`].
    #[error("the time is over that was set")]
    TimedOut,
    /// The connection is over. [`io::ErrorKind::ConnectionAborted`].
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

impl StreamError {
    /// The stream error inside `error`, if `error` came from reading or writing a stream.
    ///
    /// ```
    /// use byway::StreamError;
    /// let error = std::io::Error::from(StreamError::Reset(7));
    /// assert_eq!(StreamError::of(&error), Some(&StreamError::Reset(7)));
    /// ```
    #[must_use]
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl From<StreamError> for io::Error {
    fn from(error: StreamError) -> Self {
        let kind = match &error {
            StreamError::Reset(_) => io::ErrorKind::ConnectionReset,
            StreamError::Stopped(_) => io::ErrorKind::BrokenPipe,
            StreamError::Finished => io::ErrorKind::NotConnected,
            StreamError::TimedOut => io::ErrorKind::TimedOut,
            StreamError::Connection(_) => io::ErrorKind::ConnectionAborted,
        };
        Self::new(kind, error)
    }
}

impl From<ConnectionError> for io::Error {
    fn from(error: ConnectionError) -> Self {
        StreamError::from(error).into()
    }
}

/// Returns the reason for a connection's end, from the code and text in its CLOSE.
pub fn ended(code: u64, reason: &str, by_peer: bool) -> ConnectionError {
    // It may be the peer's text: one line, whatever that holds.
    let reason = Printable(reason.as_bytes()).to_string();
    match (code, by_peer) {
        (close::IDLE_CODE, _) => ConnectionError::Lost,
        (0x1_0000.., _) => ConnectionError::Broke(reason),
        (_, true) => ConnectionError::Closed { code, reason },
        (_, false) => ConnectionError::ClosedHere,
    }
}

/// Returns the error for a connection that ended before it was established.
pub fn refused(error: ConnectionError) -> ConnectError {
    match error {
        ConnectionError::Closed { code, reason } if code == CloseCode::NotAdmitted.number() => {
            ConnectError::NotAdmitted(reason)
        }
        ConnectionError::Closed { code, reason } if code == CloseCode::OtherKind.number() => {
            ConnectError::OtherKind(reason)
        }
        other => other.into(),
    }
}

/// The code with which this side closes when the peer's library breaks the protocol.
pub const FAULT_CODE: u64 = CloseCode::Failed as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_by_its_code_and_by_whose_it_is() {
        assert_eq!(ended(close::IDLE_CODE, "", false), ConnectionError::Lost);
        assert_eq!(ended(close::VIOLATION_CODE, "x", true), ConnectionError::Broke("x".into()));
        assert_eq!(ended(0, "", false), ConnectionError::ClosedHere);
        let closed = ended(9, "a\nb", true);
        assert_eq!(closed.to_string().lines().count(), 1);
        assert!(matches!(closed, ConnectionError::Closed { code: 9, .. }));
        assert!(matches!(refused(ended(6, "who?", true)), ConnectError::NotAdmitted(_)));
        assert!(matches!(refused(ended(2, "files", true)), ConnectError::OtherKind(_)));
        assert!(matches!(refused(ended(5, "", true)), ConnectError::Lost(_)));
    }

    #[test]
    fn kinds_of_stream_errors_are_those_of_tcp() {
        let kind = |error| io::Error::from(error).kind();
        assert_eq!(kind(StreamError::Reset(1)), io::ErrorKind::ConnectionReset);
        assert_eq!(kind(StreamError::Stopped(1)), io::ErrorKind::BrokenPipe);
        assert_eq!(kind(ConnectionError::Lost.into()), io::ErrorKind::ConnectionAborted);
        assert_eq!(StreamError::of(&io::Error::other("x")), None);
    }
}
