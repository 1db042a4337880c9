//! A stream on its way in: kept until everything before it has arrived and the owner has read it.

use super::received_extent::Extent;
use super::stream_buffers::{PIECE_BYTES, StreamBuffers, StreamPiece};
use super::stream_window::StreamWindow;
use crate::invariant::Invariant as _;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The size below which a piece also grows at its front, so that bytes that arrive backwards cost
/// no more than others.
const SMALL_PIECE_BYTES: usize = 4 << 10;
/// Bytes of a piece from which on the next piece gets a buffer that is large from the beginning.
const BULK_PIECE_BYTES: usize = 16 << 10;

/// Whether anybody wants the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Interest {
    /// The owner reads the stream.
    #[default]
    Wanted,
    /// The owner refuses the stream. The peer gets this code.
    Stopped(u64),
    /// The peer reset the stream, and the owner does not know yet.
    Reset,
    /// The peer reset the stream, and the owner knows.
    ResetTold,
}

/// A stream that is being received.
#[derive(Debug, Default)]
pub(super) struct InStream {
    /// The bytes of the stream that have arrived.
    pub extent: Extent,
    pieces: BTreeMap<u64, StreamPiece>,
    /// Whether the last piece that was read was large.
    bulk: bool,
    /// The offset up to which the owner has read.
    pub read: u64,
    /// Bytes that wait to be read.
    pub held: u64,
    /// The flow-control window of the stream.
    pub window: StreamWindow,
    pub interest: Interest,
    /// Whether the owner was told of bytes to read, and has not read them all.
    pub told: bool,
}

impl InStream {
    /// A stream with a window of `window` bytes, of which the peer knows.
    pub fn new(window: u64) -> Self {
        Self { window: StreamWindow::new(window), ..Self::default() }
    }

    /// Bytes that can be read now.
    pub fn readable(&self) -> u64 {
        self.extent.received.prefix().saturating_sub(self.read)
    }

    /// Whether a read would give bytes or the end.
    pub fn is_readable(&self) -> bool {
        self.interest == Interest::Wanted && (self.readable() > 0 || self.is_read())
    }

    /// Whether the peer has a use for a higher limit.
    pub fn may_grow(&self) -> bool {
        self.extent.size.is_none() && self.interest == Interest::Wanted
    }

    /// Whether the owner has read the whole stream.
    pub fn is_read(&self) -> bool {
        self.extent.size == Some(self.read)
    }

    /// Whether the stream has ended and needs nothing more.
    pub fn is_over(&self) -> bool {
        match self.interest {
            // The owner must still learn of the end.
            Interest::Wanted | Interest::Reset => false,
            Interest::Stopped(_) | Interest::ResetTold => self.extent.complete().is_some(),
        }
    }

    /// Stores new bytes until they are read.
    pub fn keep(&mut self, offset: u64, bytes: &[u8], buffers: &mut StreamBuffers) {
        self.held += bytes.len() as u64;
        if let Some((start, piece)) = self.pieces.range_mut(..=offset).next_back()
            && *start + piece.bytes.len() as u64 == offset
            && piece.bytes.len() + bytes.len() <= PIECE_BYTES
        {
            return piece.extend(bytes);
        }
        let mut piece = if self.bulk { buffers.large() } else { StreamPiece::default() };
        piece.extend(bytes);
        let end = offset + bytes.len() as u64;
        if self.pieces.get(&end).is_some_and(|next| next.bytes.len() < SMALL_PIECE_BYTES)
            && let Some(next) = self.pieces.remove(&end)
        {
            piece.extend(&next.bytes);
            buffers.take_back(next);
        }
        self.pieces.insert(offset, piece);
    }

    /// Discards all unread bytes. Returns how many there were.
    pub fn discard(&mut self, buffers: &mut StreamBuffers) -> u64 {
        core::mem::take(&mut self.pieces).into_values().for_each(|piece| buffers.take_back(piece));
        core::mem::take(&mut self.held)
    }

    /// Moves bytes to the owner; returns how many.
    pub fn copy(&mut self, buffer: &mut [u8], buffers: &mut StreamBuffers) -> usize {
        let most = (self.readable().min(buffer.len() as u64)) as usize;
        let mut done = 0;
        while done < most {
            let Some(entry) = self.pieces.first_entry().sure() else { break };
            let skipped = (self.read - *entry.key()) as usize;
            let rest = entry.get().bytes.get(skipped..).unwrap_or_default();
            let length = rest.len().min(most - done);
            if let (Some(to), Some(from)) = (buffer.get_mut(done..done + length), rest.get(..length)) {
                to.copy_from_slice(from);
            }
            self.read += length as u64;
            if length == rest.len() {
                self.bulk = entry.get().bytes.len() >= BULK_PIECE_BYTES;
                buffers.take_back(entry.remove());
            } else if skipped + length > entry.get().bytes.len() / 2 {
                // What is read must not take more memory than what is not.
                let rest = StreamPiece::from(rest.get(length..).unwrap_or_default());
                buffers.take_back(entry.remove());
                self.pieces.insert(self.read, rest);
            }
            self.held -= length as u64;
            done += length;
        }
        done
    }

    /// Moves the next buffer of the stream to the application without a copy. `None` if a byte
    /// before it is missing, if some of its bytes were read already, or if it has less than `least`
    /// bytes.
    pub fn take(&mut self, least: usize, buffers: &mut StreamBuffers) -> Option<Vec<u8>> {
        let entry = self.pieces.first_entry()?;
        let length = entry.get().bytes.len();
        if *entry.key() != self.read || length < least {
            return None;
        }
        self.bulk = length >= BULK_PIECE_BYTES;
        self.read += length as u64;
        self.held -= length as u64;
        Some(buffers.give_away(entry.remove()))
    }

    /// Bytes of memory that the stream's data take.
    pub fn memory(&self) -> usize {
        self.pieces.values().map(|piece| piece.bytes.capacity()).sum()
    }
}
