//! Memory for data on its way to the disk.

use alloc::vec::Vec;

/// Buffers, lent out ahead of the bytes that will fill them, and taken back.
///
/// What is lent ahead never exceeds the budget. Beyond it, bytes get buffers of just their size: flow control bounds
/// those. Together: at most twice the window.
#[derive(Debug)]
pub(super) struct Pool {
    /// Bytes of a standard buffer.
    block: usize,
    budget: usize,
    free: Vec<Vec<u8>>,
    /// Capacity of all buffers in use: open, ready, and with the owner.
    lent: usize,
}

impl Pool {
    pub const fn new(block: usize, budget: usize) -> Self {
        Self { block, budget, free: Vec::new(), lent: 0 }
    }

    pub const fn block(&self) -> usize {
        self.block
    }

    /// Bytes held here and lent out.
    pub fn memory(&self) -> usize {
        self.lent + self.free.len() * self.block
    }

    /// A buffer for up to `length` bytes that are still to come; `None` when the budget is used up.
    pub fn ahead(&mut self, length: usize) -> Option<Vec<u8>> {
        // A quarter of a standard buffer or less gets its own size: many small objects must not take a block each.
        let size = if length > self.block / 4 { self.block } else { length };
        if self.lent + size > self.budget {
            return None;
        }
        let buffer = match self.free.pop() {
            Some(buffer) if size == self.block => buffer,
            other => {
                self.free.extend(other);
                Vec::with_capacity(size)
            }
        };
        self.lent += buffer.capacity();
        // What lies free is part of the budget too.
        while self.lent + self.free.len() * self.block > self.budget && self.free.pop().is_some() {}
        Some(buffer)
    }

    /// A buffer with just these bytes.
    pub fn exact(&mut self, bytes: &[u8]) -> Vec<u8> {
        let buffer = Vec::from(bytes);
        self.lent += buffer.capacity();
        buffer
    }

    /// Takes a buffer back.
    pub fn take_back(&mut self, mut buffer: Vec<u8>) {
        let size = buffer.capacity();
        self.lent = self.lent.saturating_sub(size);
        if size == self.block && self.memory() + size <= self.budget {
            buffer.clear();
            self.free.push(buffer);
        }
    }
}
