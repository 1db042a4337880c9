//! Unused buffers, kept for the next use of their size.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Free buffers by capacity, kept because to allocate 10 kB again costs as much as all other work
/// on 10 kB of data. Few capacities occur, so a kept buffer often fits. The caller limits
/// [`bytes`](Self::bytes).
#[derive(Debug, Default)]
pub struct BufferPool {
    by_size: BTreeMap<usize, Vec<Vec<u8>>>,
    bytes: usize,
}

impl BufferPool {
    /// The smallest buffer that is kept, in bytes. Smaller ones share a page of memory.
    pub const MIN_BUFFER_BYTES: usize = 1 << 10;

    /// A pool without buffers.
    #[must_use]
    pub const fn new() -> Self {
        Self { by_size: BTreeMap::new(), bytes: 0 }
    }

    /// The size of buffer for `length` bytes: four sizes to each doubling.
    #[must_use]
    pub const fn fitting(length: usize) -> usize {
        if length < Self::MIN_BUFFER_BYTES {
            return length;
        }
        let step = length.next_power_of_two() / 8;
        length.div_ceil(step) * step
    }

    /// Bytes of all that lies here.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns a buffer of capacity `size`, with its old contents. `None`: there is none.
    pub fn take(&mut self, size: usize) -> Option<Vec<u8>> {
        let buffer = self.by_size.get_mut(&size)?.pop()?;
        self.bytes -= size;
        Some(buffer)
    }

    /// Keeps a buffer for later use, if it has a [`fitting`](Self::fitting) size.
    pub fn put(&mut self, buffer: Vec<u8>) {
        let size = buffer.capacity();
        if size >= Self::MIN_BUFFER_BYTES && size == Self::fitting(size) {
            self.bytes += size;
            self.by_size.entry(size).or_default().push(buffer);
        }
    }

    /// Gives one buffer back to the allocator, a large one first; `None` if there is none.
    pub fn drop_one(&mut self) -> Option<()> {
        let buffer = self.by_size.values_mut().rev().find_map(Vec::pop)?;
        self.bytes -= buffer.capacity();
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_sizes_serve_all_and_waste_no_more_than_a_quarter() {
        for length in BufferPool::MIN_BUFFER_BYTES..=128 << 10 {
            let size = BufferPool::fitting(length);
            assert!(length <= size && size <= length + length / 4, "{length}: {size}");
            assert_eq!(BufferPool::fitting(size), size, "{length}");
        }
        let mut sizes: Vec<usize> =
            (BufferPool::MIN_BUFFER_BYTES..=32 << 10).map(BufferPool::fitting).collect();
        sizes.dedup();
        assert_eq!(sizes.len(), 5 * 4 + 1);
    }

    #[test]
    fn what_is_kept_is_counted_and_of_few_sizes() {
        let mut spare = BufferPool::new();
        for size in [100, 1_030, 10_240, 10_240, 64 << 10] {
            spare.put(Vec::with_capacity(size));
        }
        assert_eq!(spare.bytes(), 2 * 10_240 + (64 << 10));
        assert_eq!((spare.take(10_239), spare.take(100)), (None, None));
        assert_eq!(spare.take(10_240).map(|buffer| buffer.capacity()), Some(10_240));
        assert_eq!((spare.drop_one(), spare.bytes()), (Some(()), 10_240), "the large one went");
        assert_eq!((spare.drop_one(), spare.drop_one(), spare.bytes()), (Some(()), None, 0));
    }
}
