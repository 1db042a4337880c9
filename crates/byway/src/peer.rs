//! A connection to a peer, as the application holds it.

use crate::datagrams::{DatagramError, Datagrams};
use crate::error::ConnectionError;
use crate::loop_commands::{Command, ConnectionGuard, PeerState};
use crate::object::{IncomingObject, SentObject};
use crate::path_status::{PathStatus, StatusSnapshot};
use crate::shared_object::{ObjectError, OutboundObject};
use crate::shared_stream::SharedStream;
use crate::shared_value::Shared;
use crate::stream::Stream;
use byway_transfer::PauseReason;
use byway_transfer::identity::PublicKey;
use byway_wire::StreamId;
use std::io::Read;
use std::sync::Arc;

/// A connection to a peer. Streams, objects and datagrams share its paths. Clones and streams are
/// handles. After the last handle is dropped, the connection stays open for at most a minute. It
/// closes earlier once the peer has all objects and [finished](crate::SendStream::shutdown)
/// streams; unfinished streams are reset.
#[derive(Clone)]
pub struct Peer(Arc<ConnectionGuard>);

impl Peer {
    pub(crate) const fn new(held: Arc<ConnectionGuard>) -> Self {
        Self(held)
    }

    /// The peer's public key, which the handshake has proven.
    #[must_use]
    pub fn key(&self) -> PublicKey {
        self.0.cell.key
    }

    /// Opens a stream. Waits if this side already has as many open streams as the peer allows
    /// ([`Config::streams`](crate::Config::streams)).
    ///
    /// The peer learns of the stream when its first bytes or its end arrive.
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

    /// Waits until the peer's application has read all [finished](crate::SendStream::shutdown)
    /// streams, then ends the connection. Other streams end with an error.
    ///
    /// # Errors
    /// The connection was lost or aborted, or the peer closed it before its application had read
    /// all.
    pub fn close(&self) -> Result<(), ConnectionError> {
        if self.0.core().ask(Command::Close(self.0.cell.handle)).is_err() {
            return self.0.cell.state.with(|state| state.closed()).unwrap_or(Err(over()));
        }
        self.0.cell.state.wait(None, |state| state.closed()).unwrap_or(Err(over()))
    }

    /// Ends the connection at once. Data that the peer has not read are lost. The peer sees
    /// [`ConnectionError::Closed`] with code and reason.
    pub fn abort(&self, code: u16, reason: &str) {
        let _ = self.0.core().ask(Command::Abort(self.0.cell.handle, code, reason.to_owned()));
    }

    /// Sends `size` bytes from `source` as an object, described by `header` (at most 1024 bytes).
    /// Returns when all are read; [`SentObject::finish`] waits for the peer. At most 256 objects
    /// are sent at once.
    ///
    /// # Errors
    /// The source fails or is too short, the peer refuses, or the connection is over.
    pub fn send_object(
        &self,
        header: &[u8],
        size: u64,
        mut source: impl Read,
    ) -> Result<SentObject, ObjectError> {
        if header.len() > crate::control_records::HEADER_MAX {
            return Err(ObjectError::Header);
        }
        let id = self.0.cell.state.wait(None, PeerState::send).unwrap_or(Err(over()))?;
        let handle = self.0.cell.handle;
        let sent =
            Arc::new(OutboundObject { handle, id, header: header.to_vec(), size, state: Shared::default() });
        self.0.core().ask(Command::Send(Arc::clone(&sent))).map_err(|_| over())?;
        let object = SentObject::new(Arc::clone(&self.0), sent);
        object.feed(&mut source)?;
        Ok(object)
    }

    /// Waits for the next object that the peer sends.
    ///
    /// Objects that are not accepted fill the connection's memory. Then the peer can send nothing
    /// more, not even on streams.
    ///
    /// # Errors
    /// The connection is over.
    pub fn accept_object(&self) -> Result<IncomingObject, ConnectionError> {
        let coming = self.0.cell.state.wait(None, PeerState::accept_object).unwrap_or(Err(over()))?;
        Ok(IncomingObject::new(Arc::clone(&self.0), coming))
    }

    /// Sends a message over the fastest path that has room, and does not wait. The message may be
    /// lost, or overtake earlier ones.
    ///
    /// # Errors
    /// The message is [too large](Self::max_datagram), 256 messages wait already, or the connection
    /// is over.
    pub fn send_datagram(&self, data: &[u8]) -> Result<(), DatagramError> {
        self.0.cell.datagrams.with(|datagrams| datagrams.put(data))?;
        self.0.core().again();
        Ok(())
    }

    /// Waits for the next message of the peer's. If 256 wait, the oldest goes.
    ///
    /// # Errors
    /// The connection is over.
    pub fn receive_datagram(&self) -> Result<Vec<u8>, ConnectionError> {
        self.0.cell.datagrams.wait(None, Datagrams::take).unwrap_or(Err(over()))
    }

    /// Bytes of the largest message that is taken now. It changes with the paths, and is 1000 at
    /// least but on very narrow ones.
    #[must_use]
    pub fn max_datagram(&self) -> usize {
        self.0.cell.datagrams.with(|datagrams| datagrams.largest())
    }

    /// The paths on which this side sends now; none if the connection is over. Rates are averages
    /// over a quarter of a second or longer. Each call waits for the endpoint's thread: a few calls
    /// a second are enough.
    #[must_use]
    pub fn paths(&self) -> Vec<PathStatus> {
        self.look().paths
    }

    /// Returns why this host does not send faster. `None`: only the paths limit it, or the
    /// connection has ended.
    #[must_use]
    pub fn why_slow(&self) -> Option<PauseReason> {
        self.look().why_slow
    }

    fn look(&self) -> StatusSnapshot {
        let answer = Arc::new(Shared::default());
        match self.0.core().ask(Command::Look(self.0.cell.handle, Arc::clone(&answer))) {
            Ok(()) => answer.wait(None, Option::take).unwrap_or_default(),
            Err(_) => StatusSnapshot::default(),
        }
    }

    /// Returns why the connection has ended. `None`: it has not ended.
    #[must_use]
    pub fn ended(&self) -> Option<ConnectionError> {
        self.0.cell.state.with(|state| state.over.clone())
    }

    fn opened(&self, id: StreamId) -> Result<Stream, ConnectionError> {
        let cell = Arc::new(SharedStream::new(self.0.cell.handle, id));
        self.0.core().ask(Command::Open(Arc::clone(&cell))).map_err(|_| over())?;
        Ok(Stream::new(Arc::clone(&self.0), cell))
    }
}

const fn over() -> ConnectionError {
    ConnectionError::EndpointOver
}

/// Methods for tasks. Nothing here blocks the thread that runs the task.
#[cfg(feature = "tokio")]
impl Peer {
    /// Opens a stream as [`open_stream`](Self::open_stream) does, for tasks.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn open_stream_async(&self) -> Result<Stream, ConnectionError> {
        let opened = self.0.cell.state.ready(PeerState::open).await;
        self.opened(opened?)
    }

    /// Accepts a stream as [`accept_stream`](Self::accept_stream) does, for tasks.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn accept_stream_async(&self) -> Result<Stream, ConnectionError> {
        let cell = self.0.cell.state.ready(PeerState::accept).await?;
        Ok(Stream::new(Arc::clone(&self.0), cell))
    }

    /// Receives a datagram as [`receive_datagram`](Self::receive_datagram) does, for tasks.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn receive_datagram_async(&self) -> Result<Vec<u8>, ConnectionError> {
        self.0.cell.datagrams.ready(Datagrams::take).await
    }

    /// The async form of [`close`](Self::close).
    ///
    /// # Errors
    /// As there.
    pub async fn close_async(&self) -> Result<(), ConnectionError> {
        match self.0.core().ask(Command::Close(self.0.cell.handle)) {
            Ok(()) => self.0.cell.state.ready(|state| state.closed()).await,
            Err(_) => self.0.cell.state.with(|state| state.closed()).unwrap_or(Err(over())),
        }
    }
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peer").field("key", &self.key()).finish_non_exhaustive()
    }
}
