//! A connection to a peer, as the application holds it.

use crate::cell::Cell;
use crate::core::{Command, Held, PeerState};
use crate::error::ConnectionError;
use crate::stream::Stream;
use byway_transfer::identity::PublicKey;
use byway_wire::StreamId;
use std::sync::Arc;

/// A connection to a peer. Clones are handles of the same connection, and may be used by several threads.
///
/// Streams, objects and datagrams of both sides share the connection's paths. [`close`](Self::close) ends it well,
/// [`abort`](Self::abort) at once. When the last handle is dropped, streams included, the connection goes on in the background until the
/// peer's application has read all that was [finished](crate::SendStream::shutdown), for a minute at most. It ends with the process.
#[derive(Clone)]
pub struct Peer(Arc<Held>);

impl Peer {
    pub(crate) const fn new(held: Arc<Held>) -> Self {
        Self(held)
    }

    /// The peer's public key, which the handshake has proven.
    #[must_use]
    pub fn key(&self) -> PublicKey {
        self.0.cell.key
    }

    /// Opens a stream. Waits while as many are open as the peer allows ([`Config::streams`](crate::Config::streams)).
    ///
    /// The peer learns of the stream with its first bytes, or its end.
    ///
    /// # Errors
    /// The connection is over.
    pub fn open_stream(&self) -> Result<Stream, ConnectionError> {
        let opened = self.0.cell.state.wait(None, PeerState::open).unwrap_or(Err(over()));
        self.opened(opened?)
    }

    /// Waits for the next stream that the peer opens.
    ///
    /// # Errors
    /// The connection is over.
    pub fn accept_stream(&self) -> Result<Stream, ConnectionError> {
        let cell = self.0.cell.state.wait(None, PeerState::accept).unwrap_or(Err(over()))?;
        Ok(Stream::new(Arc::clone(&self.0), cell))
    }

    /// Ends the connection well: waits until the peer's application has read all streams that were
    /// [finished](crate::SendStream::shutdown), then tells the peer. Streams that were not finished end with an error on both sides.
    ///
    /// # Errors
    /// The connection ended in another way meanwhile. That the peer closed it well is none, if it had read all.
    pub fn close(&self) -> Result<(), ConnectionError> {
        if self.0.core().ask(Command::Close(self.0.cell.handle)).is_err() {
            return self.0.cell.state.with(|state| state.closed()).unwrap_or(Err(over()));
        }
        self.0.cell.state.wait(None, |state| state.closed()).unwrap_or(Err(over()))
    }

    /// Ends the connection at once: what the peer has not read is lost. The peer sees [`ConnectionError::Closed`] with code and reason.
    pub fn abort(&self, code: u16, reason: &str) {
        let _ = self.0.core().ask(Command::Abort(self.0.cell.handle, code, reason.to_owned()));
    }

    /// Why the connection is over; `None` if it is not.
    #[must_use]
    pub fn ended(&self) -> Option<ConnectionError> {
        self.0.cell.state.with(|state| state.over.clone())
    }

    fn opened(&self, id: StreamId) -> Result<Stream, ConnectionError> {
        let cell = Arc::new(Cell::new(self.0.cell.handle, id));
        self.0.core().ask(Command::Open(Arc::clone(&cell))).map_err(|_| over())?;
        Ok(Stream::new(Arc::clone(&self.0), cell))
    }
}

const fn over() -> ConnectionError {
    ConnectionError::EndpointOver
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peer").field("key", &self.key()).finish_non_exhaustive()
    }
}
