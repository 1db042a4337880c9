//! Buffers of 64 KiB for streams that bring much data, because a buffer that grows while bytes
//! arrive is copied each time. All these buffers take at most an eighth of the session's memory,
//! and are used again.

use alloc::vec::Vec;

/// The largest piece of a stream's data in bytes.
pub(super) const PIECE_BYTES: usize = 64 << 10;
/// The most large buffers that lie free.
const MAX_FREE_BUFFERS: usize = 16;

/// Consecutive bytes of a stream.
#[derive(Debug, Default)]
pub(super) struct StreamPiece {
    pub bytes: Vec<u8>,
    /// Whether the piece's buffer had its full size from the beginning.
    large: bool,
}

impl StreamPiece {
    /// Appends bytes.
    pub fn extend(&mut self, bytes: &[u8]) {
        if self.bytes.capacity() < self.bytes.len() + bytes.len() {
            self.bytes.reserve_exact(bytes.len().max(self.bytes.len() / 2));
        }
        self.bytes.extend_from_slice(bytes);
    }
}

impl From<&[u8]> for StreamPiece {
    fn from(bytes: &[u8]) -> Self {
        Self { bytes: Vec::from(bytes), large: false }
    }
}

/// Lends large buffers.
#[derive(Debug, Default)]
pub(super) struct StreamBuffers {
    free: Vec<Vec<u8>>,
    /// Number of buffers that are lent.
    lent: usize,
    /// The most buffers that may be lent.
    most: usize,
}

impl StreamBuffers {
    /// The memory that streams may have together: an eighth of it may be large buffers.
    pub fn set_memory(&mut self, memory: u64) {
        self.most = usize::try_from(memory / 8).unwrap_or(usize::MAX) / PIECE_BYTES;
        self.free.truncate(self.most);
    }

    /// A piece with a large buffer, or one without any if too many are lent.
    pub fn large(&mut self) -> StreamPiece {
        if self.lent >= self.most {
            return StreamPiece::default();
        }
        self.lent += 1;
        let bytes = self.free.pop().unwrap_or_else(|| Vec::with_capacity(PIECE_BYTES));
        StreamPiece { bytes, large: true }
    }

    /// A piece is used no more.
    pub fn take_back(&mut self, piece: StreamPiece) {
        if piece.large {
            self.lent -= 1;
            self.put(piece.bytes);
        }
    }

    /// Gives the bytes of a piece to the caller. The buffer does not come back.
    pub fn give_away(&mut self, piece: StreamPiece) -> Vec<u8> {
        self.lent -= usize::from(piece.large);
        piece.bytes
    }

    /// A buffer that was given away comes back, or another.
    pub fn put(&mut self, mut bytes: Vec<u8>) {
        if bytes.capacity() >= PIECE_BYTES
            && bytes.capacity() <= 2 * PIECE_BYTES
            && self.free.len() < MAX_FREE_BUFFERS.min(self.most)
        {
            bytes.clear();
            self.free.push(bytes);
        }
    }

    /// Bytes that lie free.
    pub fn memory(&self) -> usize {
        self.free.iter().map(Vec::capacity).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_lent_than_may_be_and_they_come_back() {
        let mut buffers = StreamBuffers::default();
        buffers.set_memory(32 * PIECE_BYTES as u64);
        let mut pieces: Vec<StreamPiece> = (0..6).map(|_| buffers.large()).collect();
        assert_eq!(
            pieces.iter().map(|piece| piece.large).collect::<Vec<_>>(),
            [true, true, true, true, false, false]
        );
        pieces.iter_mut().for_each(|piece| piece.extend(b"x"));
        let address = pieces[0].bytes.as_ptr();
        let given = buffers.give_away(pieces.remove(0));
        assert_eq!((given.as_ptr(), buffers.lent), (address, 3));
        buffers.put(given);
        pieces.into_iter().for_each(|piece| buffers.take_back(piece));
        assert_eq!((buffers.lent, buffers.memory()), (0, 4 * PIECE_BYTES));
        buffers.put(Vec::with_capacity(PIECE_BYTES));
        buffers.put(Vec::with_capacity(10));
        assert_eq!(buffers.memory(), 4 * PIECE_BYTES);
        assert!(buffers.large().bytes.is_empty());
        buffers.set_memory(0);
        assert_eq!(buffers.memory(), 0);
    }
}
