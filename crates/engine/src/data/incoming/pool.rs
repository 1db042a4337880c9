//! Memory for data on its way to the disk.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Buffers below this size come from the allocator and go back there: they are few, or cost it little.
const LEAST: usize = 1 << 10;

/// Buffers, lent out ahead of the bytes that will fill them, and taken back.
///
/// What is lent ahead never exceeds the budget. Beyond it, bytes get buffers of about their size: flow control bounds
/// those. Together: at most two and a quarter of the window.
///
/// What comes back is kept for the next, small buffers too: allocators give memory that was freed back to the system, and fetching it
/// from there page by page costs as much as all that is done with ten kilobytes on their way to the disk.
#[derive(Debug)]
pub(super) struct Pool {
    /// Bytes of a standard buffer.
    block: usize,
    budget: usize,
    /// Standard buffers.
    free: Vec<Vec<u8>>,
    /// Smaller ones, by their size.
    small: BTreeMap<usize, Vec<Vec<u8>>>,
    /// Capacity of all that lies free.
    kept: usize,
    /// Capacity of all buffers in use: open, ready, and with the owner.
    lent: usize,
}

impl Pool {
    pub const fn new(block: usize, budget: usize) -> Self {
        Self { block, budget, free: Vec::new(), small: BTreeMap::new(), kept: 0, lent: 0 }
    }

    pub const fn block(&self) -> usize {
        self.block
    }

    /// Bytes held here and lent out.
    pub const fn memory(&self) -> usize {
        self.lent + self.kept
    }

    /// A buffer for up to `length` bytes that are still to come; `None` when the budget is used up.
    pub fn ahead(&mut self, length: usize) -> Option<Vec<u8>> {
        // A quarter of a standard buffer or less gets its own size: many small objects must not take a block each.
        let size = if length > self.block / 4 { self.block } else { fitting(length) };
        (self.lent + size <= self.budget).then(|| self.lend(size))
    }

    /// A buffer with just these bytes.
    pub fn exact(&mut self, bytes: &[u8]) -> Vec<u8> {
        let small = bytes.len() <= self.block / 4;
        let mut buffer = self.lend(if small { fitting(bytes.len()) } else { bytes.len() });
        buffer.extend_from_slice(bytes);
        buffer
    }

    fn lend(&mut self, size: usize) -> Vec<u8> {
        let free = if size == self.block { Some(&mut self.free) } else { self.small.get_mut(&size) };
        let buffer = match free.and_then(Vec::pop) {
            Some(buffer) => {
                self.kept -= buffer.capacity();
                buffer
            }
            None => Vec::with_capacity(size),
        };
        self.lent += buffer.capacity();
        self.trim();
        buffer
    }

    /// What lies free is part of the budget too.
    fn trim(&mut self) {
        while self.kept > 0 && self.memory() > self.budget {
            let small = || self.small.values_mut().find_map(Vec::pop);
            let Some(buffer) = self.free.pop().or_else(small) else { return };
            self.kept -= buffer.capacity();
        }
    }

    /// Takes a buffer back.
    pub fn take_back(&mut self, mut buffer: Vec<u8>) {
        let size = buffer.capacity();
        self.lent = self.lent.saturating_sub(size);
        if self.memory() + size > self.budget {
            return;
        }
        buffer.clear();
        if size == self.block {
            self.free.push(buffer);
        } else if (LEAST..=self.block / 4).contains(&size) && size == fitting(size) {
            self.small.entry(size).or_default().push(buffer);
        } else {
            return;
        }
        self.kept += size;
    }
}

/// The size of buffer for so many bytes: of few sizes, four to each doubling, so that those of one serve the next as well.
const fn fitting(length: usize) -> usize {
    if length < LEAST {
        return length;
    }
    let step = length.next_power_of_two() / 8;
    length.div_ceil(step) * step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_sizes_serve_all_and_waste_no_more_than_a_quarter() {
        for length in LEAST..=40_000 {
            let size = fitting(length);
            assert!(length <= size && size <= length + length / 4, "{length}: {size}");
            assert_eq!(fitting(size), size, "{length}");
        }
        let mut sizes: Vec<usize> = (LEAST..=32 << 10).map(fitting).collect();
        sizes.dedup();
        assert_eq!(sizes.len(), 5 * 4 + 1);
    }

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
