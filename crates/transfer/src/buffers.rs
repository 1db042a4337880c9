//! Buffers for the contents of small files that are sent, used again and again. The reading thread
//! fills them. The event loop gives them back once the peer has their contents.

use bytes::Bytes;
use byway_engine::data::BufferPool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Larger buffers are not kept: they are few.
const LARGEST: usize = 64 << 10;
/// Bytes kept at most of buffers that nobody uses.
const MOST: usize = 4 << 20;

/// Buffers that wait for their next use.
#[derive(Clone, Default)]
pub(crate) struct Buffers(Arc<Mutex<BufferPool>>);

impl Buffers {
    /// A buffer of so many bytes, whatever they are.
    pub fn take(&self, length: usize) -> Vec<u8> {
        let size = if length > LARGEST { length } else { BufferPool::fitting(length) };
        let mut buffer = self.spare().take(size).unwrap_or_else(|| Vec::with_capacity(size));
        // What of it was used before stays as it was: it is written over.
        buffer.resize(length, 0);
        buffer
    }

    /// The bytes of a buffer, which comes back when nobody holds them any more.
    pub fn lend(&self, buffer: Vec<u8>) -> Bytes {
        if !(BufferPool::LEAST..=LARGEST).contains(&buffer.capacity()) {
            return buffer.into();
        }
        Bytes::from_owner(PooledBuffer { buffer, buffers: self.clone() })
    }

    fn put(&self, buffer: Vec<u8>) {
        let mut spare = self.spare();
        if spare.bytes() + buffer.capacity() <= MOST {
            spare.put(buffer);
        }
    }

    fn spare(&self) -> MutexGuard<'_, BufferPool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer in use.
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
    fn no_more_is_kept_than_is_worth_it() {
        let buffers = Buffers::default();
        let lent: Vec<_> = (0..1_000).map(|_| buffers.lend(buffers.take(10_000))).collect();
        drop(lent);
        assert_eq!(buffers.spare().bytes(), MOST / 10_240 * 10_240);
        let buffers = Buffers::default();
        for length in [0, 100, 1 << 20] {
            assert_eq!(buffers.lend(buffers.take(length)).len(), length);
        }
        assert_eq!(buffers.spare().bytes(), 0);
    }
}
