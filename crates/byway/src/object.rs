//! Objects, as the application holds them.

use crate::error::ConnectionError;
use crate::loop_commands::{ChangedItem, ConnectionGuard};
use crate::shared_object::{InboundObject, InboundState, ObjectError, OutboundObject};
use byway_engine::data::WriteRequest;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Deref;
use std::sync::Arc;

/// An object that this side sends: all that is left is to know that the peer's application has it.
pub struct SentObject {
    guard: Arc<ConnectionGuard>,
    sent: Arc<OutboundObject>,
}

/// An object that the peer sends: bytes of a known length that arrive in any order. So a slow path
/// never delays bytes of another path.
///
/// If it is dropped before [`next`](Self::next) has returned `None`, the peer stops sending it.
pub struct IncomingObject {
    guard: Arc<ConnectionGuard>,
    coming: Arc<InboundObject>,
    header: Vec<u8>,
    size: u64,
    done: bool,
}

/// Bytes of an object, and their offset. When the piece is dropped, the sender may send as many
/// more.
pub struct Piece {
    guard: Arc<ConnectionGuard>,
    coming: Arc<InboundObject>,
    write: WriteRequest,
}

impl SentObject {
    /// Returns the number of the object, unique in its direction of the connection.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.sent.id.0
    }

    /// Waits until the peer's application has all of the object.
    ///
    /// # Errors
    /// It wants no more of it, or the connection is over.
    pub fn finish(&self) -> Result<(), ObjectError> {
        let over = self.sent.state.wait(None, |state| state.over.clone());
        over.map_or(Err(ConnectionError::EndpointOver.into()), crate::shared_object::ObjectEnd::outcome)
    }

    pub(crate) const fn new(guard: Arc<ConnectionGuard>, sent: Arc<OutboundObject>) -> Self {
        Self { guard, sent }
    }

    /// Provides the bytes that the engine requests, until it has all of them.
    pub(crate) fn feed(&self, source: &mut dyn Read) -> Result<(), ObjectError> {
        let mut left = self.sent.size;
        while left > 0 {
            let next = self.sent.state.wait(None, |state| match (&state.over, state.wanted.pop_front()) {
                (Some(over), _) => Some(Err(over.clone())),
                (None, Some(read)) => {
                    state.in_hand = 1;
                    Some(Ok(read))
                }
                (None, None) => None,
            });
            let read = match next {
                Some(Ok(read)) => read,
                Some(Err(over)) => return over.outcome(),
                None => return Err(ConnectionError::EndpointOver.into()),
            };
            let mut bytes = vec![0; read.length];
            let outcome = source.read_exact(&mut bytes);
            self.sent.state.with(|state| match &outcome {
                Ok(()) => {
                    state.in_hand = 0;
                    state.ready.push_back((read.offset, bytes));
                }
                Err(_) => state.withdrawn = true,
            });
            self.guard.core().touch_other(ChangedItem::Sent(Arc::clone(&self.sent)));
            outcome?;
            left -= read.length as u64;
        }
        Ok(())
    }
}

impl IncomingObject {
    pub(crate) fn new(guard: Arc<ConnectionGuard>, coming: Arc<InboundObject>) -> Self {
        let (header, size) = coming.state.with(|state| state.announced.clone()).unwrap_or_default();
        Self { guard, coming, header, size, done: false }
    }

    /// Returns the number of the object, unique in its direction of the connection.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.coming.id.0
    }

    /// The description of the object by the sender's application.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// Returns the size of the object in bytes, as its sender announced it. No more bytes will
    /// come.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Waits for the next bytes of the object. `None`: all bytes were returned before, and the
    /// sender now learns that this side has the object.
    ///
    /// # Errors
    /// The sender gave the object up, or the connection is over.
    #[allow(clippy::should_implement_trait, reason = "it waits and fails, as reading does")]
    pub fn next(&mut self) -> Result<Option<Piece>, ObjectError> {
        let next = |state: &mut InboundState| match (state.pieces.pop_front(), state.complete, &state.broken)
        {
            (Some(write), _, _) => Some(Ok(Some(write))),
            (None, true, _) => {
                state.confirmed = true;
                Some(Ok(None))
            }
            (None, false, Some(broken)) => Some(Err(broken.clone())),
            (None, false, None) => None,
        };
        match self.coming.state.wait(None, next) {
            Some(Ok(Some(write))) => {
                let (guard, coming) = (Arc::clone(&self.guard), Arc::clone(&self.coming));
                Ok(Some(Piece { guard, coming, write }))
            }
            Some(Ok(None)) => {
                if !std::mem::replace(&mut self.done, true) {
                    self.guard.core().touch_other(ChangedItem::Coming(Arc::clone(&self.coming)));
                }
                Ok(None)
            }
            Some(Err(broken)) => broken.outcome().map(|()| None),
            None => Err(ConnectionError::EndpointOver.into()),
        }
    }

    /// Writes the whole object to `target`, each byte at its offset from the beginning of `target`.
    ///
    /// # Errors
    /// Writing fails, the sender gave the object up, or the connection is over.
    pub fn copy_to(&mut self, target: &mut (impl Write + Seek)) -> Result<(), ObjectError> {
        while let Some(piece) = self.next()? {
            target.seek(SeekFrom::Start(piece.offset()))?;
            target.write_all(&piece)?;
        }
        Ok(())
    }

    /// Refuses the rest of the object. The sender gets this code.
    pub fn refuse(mut self, code: u32) {
        self.stop(code);
    }

    fn stop(&mut self, code: u32) {
        if !std::mem::replace(&mut self.done, true) {
            self.coming.state.with(|state| state.stopped = Some(code.into()));
            self.guard.core().touch_other(ChangedItem::Coming(Arc::clone(&self.coming)));
        }
    }
}

impl Drop for IncomingObject {
    fn drop(&mut self) {
        self.stop(0);
    }
}

impl Piece {
    /// The offset of the bytes in the object.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.write.offset
    }
}

impl Deref for Piece {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.write.data
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.write.data);
        self.coming.state.with(|state| state.done.push(buffer));
        self.guard.core().touch_other(ChangedItem::Coming(Arc::clone(&self.coming)));
    }
}

impl std::fmt::Debug for SentObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SentObject").field("id", &self.id()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for IncomingObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IncomingObject")
            .field("id", &self.id())
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Piece {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let length = self.write.data.len();
        f.debug_struct("Piece")
            .field("offset", &self.offset())
            .field("length", &length)
            .finish_non_exhaustive()
    }
}
