//! Spare buffers of all streams of an event loop.

use bytes::Bytes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Buffers kept for streams that will move something.
const MAX_SPARE_BUFFERS: usize = 64;

/// Buffers that streams hand back.
#[derive(Debug, Default)]
pub struct SharedBuffers(Mutex<Buffers>);

#[derive(Debug, Default)]
struct Buffers {
    /// Spare buffers of any size.
    any: Vec<Vec<u8>>,
    /// Buffers of the size in which the engine keeps bytes of streams.
    pieces: Vec<Vec<u8>>,
}

/// The smallest and the largest buffer in bytes that is kept for the engine's received data.
const PIECE_BUFFER_BYTES: std::ops::RangeInclusive<usize> = 64 << 10..=128 << 10;
/// Buffers for the engine that are kept.
const MAX_PIECE_BUFFERS: usize = 16;

impl SharedBuffers {
    fn buffers(&self) -> MutexGuard<'_, Buffers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer with arbitrary contents.
    pub fn take(&self) -> Vec<u8> {
        self.buffers().any.pop().unwrap_or_default()
    }

    /// A buffer for the engine. `None`: there is none.
    pub fn take_piece(&self) -> Option<Vec<u8>> {
        self.buffers().pieces.pop()
    }

    /// Returns a buffer for later use.
    pub fn put(&self, buffer: Vec<u8>) {
        if buffer.capacity() == 0 {
            return;
        }
        let mut buffers = self.buffers();
        if PIECE_BUFFER_BYTES.contains(&buffer.capacity()) && buffers.pieces.len() < MAX_PIECE_BUFFERS {
            buffers.pieces.push(buffer);
        } else if buffers.any.len() < MAX_SPARE_BUFFERS {
            buffers.any.push(buffer);
        }
    }
}

/// A buffer that returns to the pool after its bytes were sent.
#[derive(Debug)]
pub struct PooledBuffer {
    bytes: Vec<u8>,
    buffers: Arc<SharedBuffers>,
}

impl PooledBuffer {
    /// The buffer's bytes, for the engine.
    pub fn bytes(bytes: Vec<u8>, buffers: &Arc<SharedBuffers>) -> Bytes {
        Bytes::from_owner(Self { bytes, buffers: Arc::clone(buffers) })
    }
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        self.buffers.put(std::mem::take(&mut self.bytes));
    }
}
