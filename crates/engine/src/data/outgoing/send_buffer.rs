//! The bytes of a stream that are kept until they are acknowledged, in pieces as they were written.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;
use byway_wire::Writer;

/// The smallest bytes given by value that become a piece of their own. Fewer bytes are copied
/// behind the preceding ones.
const MIN_PIECE_BYTES: usize = 4 << 10;
/// The approximate size of pieces into which small writes are copied, in bytes.
const PIECE_BYTES: usize = 64 << 10;

/// Some of the bytes.
#[derive(Debug)]
enum BufferPiece {
    /// A copy of the owner's bytes.
    Own(Vec<u8>),
    /// Bytes that the owner gave, shared without a copy.
    Given(Bytes),
}

impl BufferPiece {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Given(bytes) => bytes,
        }
    }

    fn truncate(&mut self, length: usize) {
        match self {
            Self::Own(bytes) => bytes.truncate(length),
            Self::Given(bytes) => bytes.truncate(length),
        }
    }
}

/// The bytes of a stream between two offsets.
#[derive(Debug, Default)]
pub(super) struct SendBuffer {
    /// The offset of the first byte that is kept. The first piece may begin before it.
    base: u64,
    /// The offset and the bytes of each piece, without gaps.
    pieces: VecDeque<(u64, BufferPiece)>,
    /// The bytes after the pieces. `tail_start`: their offset.
    tail: Vec<u8>,
    tail_start: u64,
}

impl SendBuffer {
    /// The offset of the first byte that is kept.
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// One more than the offset of the last written byte.
    pub const fn end(&self) -> u64 {
        self.tail_start + self.tail.len() as u64
    }

    /// The number of bytes.
    pub const fn len(&self) -> usize {
        (self.end() - self.base) as usize
    }

    /// Whether there are no bytes.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a copy of `bytes`, with the memory of `spare` if a buffer is needed.
    pub fn copy_from(&mut self, bytes: &[u8], spare: &mut Vec<u8>) {
        if self.tail.len() + bytes.len() > PIECE_BYTES {
            self.close_tail();
        }
        if self.tail.capacity() == 0 {
            self.tail = core::mem::take(spare);
        }
        self.tail.extend_from_slice(bytes);
    }

    /// Appends `bytes`, without a copy if there are many.
    pub fn push(&mut self, bytes: Bytes, spare: &mut Vec<u8>) {
        if bytes.len() < MIN_PIECE_BYTES {
            return self.copy_from(&bytes, spare);
        }
        self.close_tail();
        self.tail_start += bytes.len() as u64;
        self.pieces.push_back((self.tail_start - bytes.len() as u64, BufferPiece::Given(bytes)));
    }

    fn close_tail(&mut self) {
        if self.tail.is_empty() {
            return;
        }
        let start = self.tail_start;
        self.tail_start = self.end();
        self.pieces.push_back((start, BufferPiece::Own(core::mem::take(&mut self.tail))));
    }

    /// Removes all bytes before `offset`. A freed buffer becomes `spare`.
    pub fn advance(&mut self, offset: u64, spare: &mut Vec<u8>) {
        self.base = offset.clamp(self.base, self.end());
        while let Some((start, piece)) = self.pieces.front()
            && start + piece.bytes().len() as u64 <= self.base
        {
            if let Some((_, BufferPiece::Own(mut bytes))) = self.pieces.pop_front() {
                bytes.clear();
                *spare = bytes;
            }
        }
        if self.is_empty() {
            // Thousands of idle streams take no memory for that.
            *self = Self { base: self.base, tail_start: self.base, ..Self::default() };
        }
    }

    /// Removes all bytes from `offset` on. Returns how many there were.
    pub fn truncate(&mut self, offset: u64) -> usize {
        let (before, end) = (self.len(), offset.max(self.base));
        self.tail.truncate(usize::try_from(end.saturating_sub(self.tail_start)).unwrap_or(usize::MAX));
        while self.tail.is_empty()
            && let Some((start, mut piece)) = self.pieces.pop_back()
        {
            piece.truncate(usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX));
            self.tail_start = start + piece.bytes().len() as u64;
            if !piece.bytes().is_empty() {
                self.pieces.push_back((start, piece));
                break;
            }
        }
        before - self.len()
    }

    /// Writes `length` bytes from `offset` on, as far as they are kept.
    pub fn write(&self, mut offset: u64, mut length: usize, writer: &mut Writer<'_>) {
        let is_before = |(start, piece): &(u64, BufferPiece)| start + piece.bytes().len() as u64 <= offset;
        let mut index = self.pieces.partition_point(is_before);
        while length > 0 {
            let (start, bytes) = match self.pieces.get(index) {
                Some((start, piece)) => (*start, piece.bytes()),
                None => (self.tail_start, self.tail.as_slice()),
            };
            let rest = bytes.get(offset.saturating_sub(start) as usize..).unwrap_or_default();
            let part = rest.get(..length).unwrap_or(rest);
            if part.is_empty() {
                return;
            }
            writer.bytes(part);
            (offset, length, index) = (offset + part.len() as u64, length - part.len(), index + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    fn bytes(from: u64, length: usize) -> Vec<u8> {
        (from..from + length as u64).map(|it| (it % 251) as u8).collect()
    }

    fn written(kept: &SendBuffer, offset: u64, length: usize) -> Vec<u8> {
        let mut buffer = vec![0; length];
        let mut writer = Writer::new(&mut buffer);
        kept.write(offset, length, &mut writer);
        Vec::from(writer.written())
    }

    proptest! {
        /// After any appends, acknowledgements and drops, the buffer holds exactly the bytes that
        /// were written.
        #[test]
        fn what_is_held_is_what_was_written(
            steps in proptest::collection::vec((0_u8..5, 0_usize..9_000), 1..200),
        ) {
            let (mut kept, mut spare) = (SendBuffer::default(), Vec::new());
            let (mut base, mut end) = (0_u64, 0_u64);
            for (what, amount) in steps {
                match what {
                    0 => {
                        kept.copy_from(&bytes(end, amount), &mut spare);
                        end += amount as u64;
                    }
                    1 | 2 => {
                        kept.push(bytes(end, amount).into(), &mut spare);
                        end += amount as u64;
                    }
                    3 => {
                        base = (base + 2 * amount as u64).min(end);
                        kept.advance(base, &mut spare);
                    }
                    _ => {
                        let before = end;
                        end = base.max(end.saturating_sub(amount as u64 / 4));
                        prop_assert_eq!(kept.truncate(end) as u64, before - end);
                    }
                }
                prop_assert_eq!((kept.base(), kept.end(), kept.is_empty()), (base, end, base == end));
                let length = kept.len();
                prop_assert_eq!(written(&kept, base, length), bytes(base, length));
                prop_assert_eq!(written(&kept, base + length as u64 / 2, length), bytes(base + length as u64 / 2, length - length / 2));
            }
        }
    }

    #[test]
    fn what_is_large_is_not_copied_and_what_is_small_is_gathered() {
        let (mut kept, mut spare) = (SendBuffer::default(), Vec::new());
        let large = Bytes::from(bytes(0, 10_000));
        kept.push(large.clone(), &mut spare);
        (0..1_000).for_each(|_| kept.push(Bytes::from_static(&[1; 100]), &mut spare));
        assert_eq!(kept.pieces.front().map(|(_, piece)| piece.bytes().as_ptr()), Some(large.as_ptr()));
        assert_eq!(kept.pieces.len(), 2);
        kept.advance(kept.end(), &mut spare);
        assert_eq!((kept.pieces.capacity(), kept.tail.capacity()), (0, 0));
    }
}
