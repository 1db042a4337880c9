//! Memory for data on its way to the disk.

use crate::data::buffer_pool::BufferPool;
use alloc::vec::Vec;

/// Buffers for received bytes on their way to the disk. A block gets its full buffer when its first
/// byte arrives. Once all buffers reach `budget` bytes, new buffers are sized for arrived bytes
/// only, at most a quarter larger.
#[derive(Debug)]
pub(super) struct Pool {
    /// Bytes of a standard buffer.
    block: usize,
    /// One window in bytes. All buffers together take at most 2.25 times as much.
    budget: usize,
    spare: BufferPool,
    /// Capacity of all buffers in use: open, ready, and with the owner.
    lent: usize,
}

impl Pool {
    pub const fn new(block: usize, budget: usize) -> Self {
        Self { block: BufferPool::fitting(block), budget, spare: BufferPool::new(), lent: 0 }
    }

    /// Sets the budget. Buffers that are lent stay lent.
    pub fn set_budget(&mut self, budget: usize) {
        self.budget = budget;
        while self.memory() > self.budget && self.spare.drop_one().is_some() {}
    }

    /// The size of a block in bytes.
    pub const fn block(&self) -> usize {
        self.block
    }

    /// Bytes held here and lent out.
    pub const fn memory(&self) -> usize {
        self.lent + self.spare.bytes()
    }

    /// A buffer for up to `length` bytes that are still to come; `None` when the budget is used up.
    pub fn ahead(&mut self, length: usize) -> Option<Vec<u8>> {
        let size = if self.is_small(length) { BufferPool::fitting(length) } else { self.block };
        (self.lent + size <= self.budget).then(|| self.lend(size))
    }

    /// Returns a buffer that contains `bytes`.
    pub fn exact(&mut self, bytes: &[u8]) -> Vec<u8> {
        let length = bytes.len();
        let mut buffer = self.lend(if self.is_small(length) { BufferPool::fitting(length) } else { length });
        buffer.extend_from_slice(bytes);
        buffer
    }

    /// Whether a buffer is at most a quarter of a block. Such a buffer gets its own size, so that
    /// many small objects do not take a block each.
    const fn is_small(&self, length: usize) -> bool {
        length <= self.block / 4
    }

    fn lend(&mut self, size: usize) -> Vec<u8> {
        let buffer = self.spare.take(size).unwrap_or_else(|| Vec::with_capacity(size));
        self.lent += buffer.capacity();
        // What lies free is part of the budget too.
        while self.memory() > self.budget && self.spare.drop_one().is_some() {}
        buffer
    }

    /// Returns a buffer to the pool.
    pub fn take_back(&mut self, mut buffer: Vec<u8>) {
        let size = buffer.capacity();
        self.lent = self.lent.saturating_sub(size);
        if (size == self.block || self.is_small(size)) && self.memory() + size <= self.budget {
            buffer.clear();
            self.spare.put(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_is_lent_again() {
        let mut pool = Pool::new(128 << 10, 32 << 20);
        let buffer = pool.exact(&[1; 10_000]);
        let address = buffer.as_ptr();
        pool.take_back(buffer);
        let again = pool.exact(&[2; 9_900]);
        assert_eq!((again.as_ptr(), again.as_slice()), (address, &[2; 9_900][..]));
        pool.take_back(again);
        assert_eq!((pool.lent, pool.memory()), (0, 10_240));
    }

    #[test]
    fn what_lies_free_is_part_of_the_budget() {
        let mut pool = Pool::new(64 << 10, 1 << 20);
        let lent: Vec<_> = (0..100).filter_map(|_| pool.ahead(10_000)).collect();
        assert_eq!(lent.len(), 100);
        lent.into_iter().for_each(|buffer| pool.take_back(buffer));
        assert_eq!((pool.lent, pool.memory()), (0, 100 * 10_240));
        let blocks: Vec<_> = core::iter::from_fn(|| pool.ahead(64 << 10)).collect();
        assert_eq!((blocks.len(), pool.memory()), (16, 1 << 20));
        blocks.into_iter().for_each(|buffer| pool.take_back(buffer));
        assert_eq!((pool.lent, pool.memory()), (0, 1 << 20));
    }
}
