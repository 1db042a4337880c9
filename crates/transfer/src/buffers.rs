//! Buffers for the contents of files that are sent, used again and again: to clear new memory costs
//! up to a tenth of a sender's work. The reading thread fills them. The event loop gives them back
//! once the peer has their contents.

use bytes::Bytes;
use byway_engine::data::BufferPool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The largest buffer that is kept, in bytes: the size of one read of a large file
/// (`byway_engine::data::OutgoingLimits::read_size`).
const MAX_KEPT_LEN: usize = 256 << 10;
/// The most bytes of unused buffers that are kept.
const MAX_SPARE_BYTES: usize = 8 << 20;

/// A pool of buffers that wait for their next use.
#[derive(Clone, Default)]
pub(crate) struct Buffers(Arc<Mutex<BufferPool>>);

impl Buffers {
    /// A buffer of `length` bytes with arbitrary contents.
    pub fn take(&self, length: usize) -> Vec<u8> {
        let size = if length > MAX_KEPT_LEN { length } else { BufferPool::fitting(length) };
        let mut buffer = self.spare().take(size).unwrap_or_else(|| Vec::with_capacity(size));
        // What of it was used before stays as it was: it is written over.
        buffer.resize(length, 0);
        buffer
    }

    /// Makes shared bytes from a buffer. The buffer returns to the pool when the last holder drops
    /// the bytes.
    pub fn lend(&self, buffer: Vec<u8>) -> Bytes {
        if !(BufferPool::MIN_BUFFER_BYTES..=MAX_KEPT_LEN).contains(&buffer.capacity()) {
            return buffer.into();
        }
        Bytes::from_owner(PooledBuffer { buffer, buffers: self.clone() })
    }

    fn put(&self, buffer: Vec<u8>) {
        let mut spare = self.spare();
        if spare.bytes() + buffer.capacity() <= MAX_SPARE_BYTES {
            spare.put(buffer);
        }
    }

    fn spare(&self) -> MutexGuard<'_, BufferPool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer whose bytes are shared. When dropped, it returns to the pool.
struct PooledBuffer {
    buffer: Vec<u8>,
    buffers: Buffers,
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        self.buffers.put(std::mem::take(&mut self.buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_up_is_used_again() {
        let buffers = Buffers::default();
        let mut buffer = buffers.take(10_000);
        let address = buffer.as_ptr();
        buffer.fill(7);
        let lent = buffers.lend(buffer);
        let part = lent.slice(5_000..);
        drop(lent);
        let another = buffers.take(10_000);
        assert_ne!(another.as_ptr(), address, "somebody holds a part of it");
        assert_eq!(part.as_ref(), [7; 5_000]);
        drop(part);
        let again = buffers.take(9_900);
        assert_eq!((again.as_ptr(), again.len()), (address, 9_900));
    }

    #[test]
    fn a_large_file_is_read_into_the_same_buffers() {
        let read_size = byway_engine::data::OutgoingLimits::default().read_size;
        let buffers = Buffers::default();
        let first = buffers.take(read_size);
        let address = first.as_ptr();
        drop(buffers.lend(first));
        let again = buffers.take(read_size);
        assert_eq!(again.as_ptr(), address);
    }

    #[test]
    fn no_more_is_kept_than_is_worth_it() {
        let buffers = Buffers::default();
        let lent: Vec<_> = (0..2_000).map(|_| buffers.lend(buffers.take(10_000))).collect();
        drop(lent);
        assert_eq!(buffers.spare().bytes(), MAX_SPARE_BYTES / 10_240 * 10_240);
        let buffers = Buffers::default();
        for length in [0, 100, 1 << 20] {
            assert_eq!(buffers.lend(buffers.take(length)).len(), length);
        }
        assert_eq!(buffers.spare().bytes(), 0);
    }
}
