//! Streams, as the application holds them.

use crate::error::StreamError;
use crate::loop_commands::ConnectionGuard;
use crate::receive_queue::ByteQueue;
use crate::shared_stream::{Receiving, STREAM_BUFFER_BYTES, Sending, SharedStream, StreamEnd};
use crate::uninit_buffer::FilledBuffer;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

/// A stream carries bytes in order, in both directions. It is [`Read`] and [`Write`], as a
/// [`TcpStream`](std::net::TcpStream) is.
///
/// [`split`](Self::split) returns a half for each direction, for two threads; [`SendStream`] and
/// [`RecvStream`] document the halves.
#[derive(Debug)]
pub struct Stream {
    sending: SendStream,
    receiving: RecvStream,
}

/// The half of a stream that sends ([`Write`]). Writes wait while the stream's buffer of 256 KiB
/// is full; `flush` does nothing.
///
/// Dropped before [`finish`](Self::finish) or [`shutdown`](Self::shutdown), the half resets the
/// stream with code 0: the peer reads an error.
pub struct SendStream {
    guard: Arc<ConnectionGuard>,
    shared: Arc<SharedStream>,
    patience: Option<Duration>,
}

/// The half of a stream that receives ([`Read`]). The application must read. The peer waits while
/// unread bytes fill the flow control window and a buffer of up to 512 KiB.
///
/// A drop before the end makes the peer's writes fail with [`StreamError::Stopped`], code 0.
pub struct RecvStream {
    guard: Arc<ConnectionGuard>,
    shared: Arc<SharedStream>,
    patience: Option<Duration>,
    /// Bytes from the event loop. Those from `at` on are not read yet.
    current: FilledBuffer,
    at: usize,
    /// Whether nothing follows `current`: the stream ended, or the application stopped it.
    done: bool,
}

/// The result of taking bytes from the event loop.
enum ReadResult {
    /// Bytes, and whether the event loop waits for room.
    Bytes { paused: bool },
    /// The stream has ended.
    End,
}

impl Stream {
    pub(crate) fn new(guard: Arc<ConnectionGuard>, shared: Arc<SharedStream>) -> Self {
        let sending = SendStream { guard: Arc::clone(&guard), shared: Arc::clone(&shared), patience: None };
        let receiving = RecvStream {
            guard,
            shared,
            patience: None,
            current: FilledBuffer::default(),
            at: 0,
            done: false,
        };
        Self { sending, receiving }
    }

    /// A half for each direction.
    #[must_use]
    pub fn split(self) -> (RecvStream, SendStream) {
        (self.receiving, self.sending)
    }

    /// The number of the stream, the same on both sides of the connection.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.sending.id()
    }

    /// Like [`SendStream::shutdown`].
    ///
    /// # Errors
    /// As there.
    pub fn shutdown(&mut self) -> Result<(), StreamError> {
        self.sending.shutdown()
    }

    /// Like [`SendStream::finish`].
    ///
    /// # Errors
    /// As there.
    pub fn finish(&mut self) -> Result<(), StreamError> {
        self.sending.finish()
    }

    /// Like [`SendStream::finish_async`].
    ///
    /// # Errors
    /// As there.
    #[cfg(feature = "tokio")]
    pub async fn finish_async(&mut self) -> Result<(), StreamError> {
        self.sending.finish_async().await
    }

    /// Gives both directions up: [`SendStream::reset`] and [`RecvStream::stop`] with the same code.
    pub fn reset(&mut self, code: u32) {
        self.sending.reset(code);
        self.receiving.stop(code);
    }
}

impl SendStream {
    /// The number of the stream, the same on both sides of the connection.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.shared.id.0
    }

    /// Sets the longest wait of writing and finishing. `None`, the default: as long as the
    /// connection lasts.
    pub const fn set_timeout(&mut self, patience: Option<Duration>) {
        self.patience = patience;
    }

    /// Ends the sending direction after the bytes written so far, without waiting. The peer reads
    /// all bytes and the end, even if this half is then dropped.
    ///
    /// # Errors
    /// One side gave the stream up, or the connection is over.
    pub fn shutdown(&mut self) -> Result<(), StreamError> {
        let ended = self.shared.sending.with(|sending| match (&sending.over, sending.reset) {
            (Some(Err(error)), _) => Err(error.clone()),
            (None, Some(_)) => Err(StreamError::Finished),
            (Some(Ok(())), _) | (None, None) => {
                sending.finished = true;
                Ok(())
            }
        });
        self.guard.core().touch(&self.shared);
        ended
    }

    /// Ends the sending direction, and waits until the peer's application has read all bytes.
    ///
    /// # Errors
    /// The peer wants no more bytes ([`StreamError::Stopped`]), the connection is over, or the
    /// [timeout](Self::set_timeout) has passed. After a timeout `finish` may be called again.
    pub fn finish(&mut self) -> Result<(), StreamError> {
        self.shutdown()?;
        let over = self.shared.sending.wait(self.patience, |sending| sending.over.clone());
        over.unwrap_or(Err(StreamError::TimedOut))
    }

    /// Finishes as [`finish`](Self::finish) does, for tasks, and without a time limit.
    ///
    /// # Errors
    /// As there.
    #[cfg(feature = "tokio")]
    pub async fn finish_async(&mut self) -> Result<(), StreamError> {
        self.shutdown()?;
        self.shared.sending.ready(|sending| sending.over.clone()).await
    }

    /// Resets this direction: unsent data are dropped. The peer reads [`StreamError::Reset`] with
    /// this code.
    pub fn reset(&mut self, code: u32) {
        self.shared.sending.change(|sending| {
            sending.reset.get_or_insert(code.into());
            sending.ready = Vec::new();
        });
        self.guard.core().touch(&self.shared);
    }

    /// Takes as many bytes as there is room for. `None`: there is no room now.
    fn put(
        sending: &mut Sending,
        bytes: &[u8],
        spare: &crate::shared_buffers::SharedBuffers,
    ) -> Option<Result<usize, StreamError>> {
        if let Some(error) = sending.refusal() {
            return Some(Err(error));
        }
        let room = STREAM_BUFFER_BYTES.saturating_sub(sending.ready.len()).min(bytes.len());
        if room == 0 && !bytes.is_empty() {
            return None;
        }
        if sending.ready.capacity() == 0 {
            sending.ready = spare.take();
            sending.ready.clear();
        }
        sending.ready.extend_from_slice(bytes.get(..room).unwrap_or_default());
        Some(Ok(room))
    }
}

impl Write for SendStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let spare = &self.guard.core().shared_buffers;
        let put = self.shared.sending.wait(self.patience, |sending| Self::put(sending, bytes, spare));
        let taken = put.unwrap_or(Err(StreamError::TimedOut))?;
        self.guard.core().touch(&self.shared);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        let is_open = self.shared.sending.with(|sending| {
            let is_open = sending.refusal().is_none();
            if is_open {
                sending.reset = Some(0);
                sending.ready = Vec::new();
            }
            is_open
        });
        if is_open {
            self.guard.core().touch(&self.shared);
        }
    }
}

impl RecvStream {
    /// The number of the stream, the same on both sides of the connection.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.shared.id.0
    }

    /// Sets the longest wait of reading. `None`, the default: as long as the connection lasts.
    pub const fn set_timeout(&mut self, patience: Option<Duration>) {
        self.patience = patience;
    }

    /// Refuses the rest of the stream, and drops unread bytes. The peer's writes fail with
    /// [`StreamError::Stopped`] and this code.
    pub fn stop(&mut self, code: u32) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        self.shared.receiving.with(|receiving| {
            receiving.stopped = Some(code.into());
            receiving.ready = ByteQueue::default();
        });
        (self.current, self.at) = (FilledBuffer::default(), 0);
        self.guard.core().touch(&self.shared);
    }

    /// Takes bytes that have arrived. `None`: there are none now.
    fn take(
        receiving: &mut Receiving,
        current: &mut FilledBuffer,
    ) -> Option<Result<ReadResult, StreamError>> {
        if let Some(next) = receiving.ready.pop() {
            *current = next;
            return Some(Ok(ReadResult::Bytes { paused: std::mem::take(&mut receiving.paused) }));
        }
        match &receiving.end {
            _ if receiving.stopped.is_some() => Some(Err(StreamError::Finished)),
            None => None,
            Some(StreamEnd::Fin) => Some(Ok(ReadResult::End)),
            Some(StreamEnd::Broken(error)) => Some(Err(error.clone())),
        }
    }

    fn try_take(&mut self) -> Option<Result<ReadResult, StreamError>> {
        let Self { guard, shared, current, .. } = self;
        // Its bytes were read.
        guard.core().shared_buffers.put(std::mem::take(current).into_memory());
        self.at = 0;
        shared.receiving.with(|receiving| Self::take(receiving, current))
    }

    /// Makes taken bytes the current ones.
    fn begin(&mut self, taken: Result<ReadResult, StreamError>) -> Result<(), StreamError> {
        match taken? {
            ReadResult::Bytes { paused } => {
                self.at = 0;
                if paused {
                    self.guard.core().touch(&self.shared);
                }
            }
            ReadResult::End => self.settle(),
        }
        Ok(())
    }

    /// Copies to the application.
    fn copy(&mut self, buffer: &mut [u8]) -> usize {
        let rest = self.current.as_slice().get(self.at..).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..length), rest.get(..length)) {
            to.copy_from_slice(from);
        }
        self.at += length;
        if length > 0 && self.at == self.current.len() {
            self.settle();
        }
        length
    }

    /// Notifies the event loop once the application has read all bytes.
    fn settle(&mut self) {
        let confirmed = self.shared.receiving.with(|receiving| {
            let all = receiving.ready.is_empty() && matches!(receiving.end, Some(StreamEnd::Fin));
            receiving.confirmed |= all;
            all
        });
        if confirmed && !std::mem::replace(&mut self.done, true) {
            self.guard.core().touch(&self.shared);
        }
    }

    /// Releases unused buffers before waiting.
    fn rest(&mut self) {
        let memory = self.shared.receiving.with(|receiving| receiving.ready.rest());
        self.guard.core().shared_buffers.put(memory);
    }
}

impl Read for RecvStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.current.len() && !buffer.is_empty() {
            let taken = match self.try_take() {
                Some(taken) => taken,
                None => {
                    self.rest();
                    let Self { shared, current, patience, .. } = self;
                    let taken = shared.receiving.wait(*patience, |receiving| Self::take(receiving, current));
                    taken.unwrap_or(Err(StreamError::TimedOut))
                }
            };
            self.begin(taken)?;
        }
        Ok(self.copy(buffer))
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        self.stop(0);
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receiving.read(buffer)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sending.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sending.flush()
    }
}

/// Streams for tasks. Nothing blocks a thread, and the timeouts that are set for threads do not
/// count.
#[cfg(feature = "tokio")]
mod tasks {
    use super::{RecvStream, SendStream, Stream};
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};
    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

    impl AsyncRead for RecvStream {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let this = &mut *self;
            if this.at == this.current.len() && buffer.remaining() > 0 {
                let taken = match this.try_take() {
                    Some(taken) => taken,
                    None => {
                        this.rest();
                        let Self { shared, current, .. } = this;
                        ready!(shared.receiving.poll(context, |receiving| Self::take(receiving, current)))
                    }
                };
                this.begin(taken)?;
            }
            let length = this.copy(buffer.initialize_unfilled());
            buffer.advance(length);
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for SendStream {
        fn poll_write(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let spare = &self.guard.core().shared_buffers;
            let put = self.shared.sending.poll(context, |sending| Self::put(sending, bytes, spare));
            let taken = ready!(put)?;
            self.guard.core().touch(&self.shared);
            Poll::Ready(Ok(taken))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        /// Like [`SendStream::shutdown`]: it does not wait for the peer.
        fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(self.shutdown().map_err(io::Error::from))
        }
    }

    impl AsyncRead for Stream {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.receiving).poll_read(context, buffer)
        }
    }

    impl AsyncWrite for Stream {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.sending).poll_write(context, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.sending).poll_flush(context)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.sending).poll_shutdown(context)
        }
    }
}

impl std::fmt::Debug for SendStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SendStream").field("id", &self.id()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecvStream").field("id", &self.id()).finish_non_exhaustive()
    }
}
