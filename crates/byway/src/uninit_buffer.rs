//! A buffer that is written where it stands, without being cleared first.

/// Bytes of the smallest buffer.
const MIN_BUFFER_BYTES: usize = 4 << 10;

/// A buffer whose first bytes are filled, with free memory after them.
#[derive(Debug, Default)]
pub struct FilledBuffer {
    /// Initialized memory. Bytes beyond `length` are arbitrary.
    bytes: Vec<u8>,
    length: usize,
}

impl FilledBuffer {
    /// Makes an empty buffer in the memory of `bytes`, whatever it contains.
    pub const fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, length: 0 }
    }

    /// A buffer that is full with `bytes`.
    pub const fn whole(bytes: Vec<u8>) -> Self {
        let length = bytes.len();
        Self { bytes, length }
    }

    /// The bytes that are filled.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// The number of filled bytes.
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether no bytes are filled.
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The free part of the buffer, behind the filled bytes. The whole buffer takes `most` bytes at
    /// most. It grows as it fills, so that a stream that moves little data takes little memory.
    pub fn room(&mut self, most: usize) -> &mut [u8] {
        if self.length == self.bytes.len() && self.length < most {
            self.bytes.resize((2 * self.length).clamp(MIN_BUFFER_BYTES.min(most), most), 0);
        }
        let end = self.bytes.len().min(most);
        self.bytes.get_mut(self.length..end).unwrap_or_default()
    }

    /// Enters that `length` bytes were written into the [room](Self::room).
    pub fn add(&mut self, length: usize) {
        self.length = (self.length + length).min(self.bytes.len());
    }

    /// The buffer's memory, for another buffer.
    pub fn into_memory(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_as_it_fills_and_no_further_than_it_may() {
        let mut filled = FilledBuffer::default();
        assert!(filled.is_empty());
        let mut written = 0;
        while written < 20_000 {
            let room = filled.room(20_000).len();
            assert!(room > 0 && room <= written.max(MIN_BUFFER_BYTES));
            filled.room(20_000).fill((written / MIN_BUFFER_BYTES) as u8);
            filled.add(room);
            written += room;
        }
        assert_eq!((filled.len(), filled.room(20_000).len()), (20_000, 0));
        assert_eq!(filled.as_slice()[MIN_BUFFER_BYTES], 1);
        let mut again = FilledBuffer::new(filled.into_memory());
        assert_eq!((again.len(), again.room(1 << 20).len(), again.room(100).len()), (0, 20_000, 100));
    }
}
