//! An object that is being received: bytes arrive in any order, because paths differ in delay, and
//! are gathered into blocks for the disk. Each partly filled block has its own buffer. A full block
//! is one write.

use super::pool::Pool;
use super::received_extent::Extent;
use crate::data::ranges::RangeSet;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// An object that is being received.
#[derive(Debug, Default)]
pub(super) struct InObject {
    /// The bytes of the object that have arrived.
    pub extent: Extent,
    /// The incomplete blocks by their offsets. Blocks do not overlap.
    pub blocks: BTreeMap<u64, Block>,
}

impl InObject {
    /// The end offset of a new block that starts at `start`: the next multiple of `block`, the
    /// start of the next open block, or the end of the object, whichever is lowest.
    pub fn block_end(&self, start: u64, block: u64) -> u64 {
        let boundary = (start / block + 1) * block;
        let next = self.blocks.range(start..).next().map_or(u64::MAX, |(next, _)| *next);
        boundary.min(next).min(self.extent.size.unwrap_or(u64::MAX))
    }

    /// The open block that `offset` belongs to.
    pub fn block_at(&mut self, offset: u64) -> Option<(u64, &mut Block)> {
        let (start, block) = self.blocks.range_mut(..=offset).next_back()?;
        (offset < block.end).then_some((*start, block))
    }
}

/// A stretch of an object that is being gathered.
#[derive(Debug)]
pub(super) struct Block {
    /// One more than the last offset in the block.
    pub end: u64,
    /// The block's number in the order in which blocks were opened.
    pub serial: u64,
    /// Bytes from the start on; holes are zero.
    pub data: Vec<u8>,
    /// The ranges of received bytes, counted from the block's start.
    have: RangeSet,
    /// Number of bytes of the block that have been received.
    pub filled: u64,
}

impl Block {
    pub fn new(end: u64, serial: u64, data: Vec<u8>) -> Self {
        Self { end, serial, data, have: RangeSet::new(), filled: 0 }
    }

    /// Copies `bytes`, which are all new, to the offset `at` of the block.
    pub fn put(&mut self, at: usize, bytes: &[u8]) {
        if at >= self.data.len() {
            self.data.resize(at, 0);
            self.data.extend_from_slice(bytes);
        } else if let Some(place) = self.data.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self.filled += self.have.insert(at as u64, (at + bytes.len()) as u64);
    }

    /// Ends the gathering: hands over the pieces, each with its distance from the block's start.
    pub fn close(self, pool: &mut Pool, mut piece: impl FnMut(u64, Vec<u8>)) {
        // Bytes that fill less than half of their buffer are copied to a buffer of their own size.
        // Otherwise a few hundred small objects could hold all memory while they wait for the disk.
        let whole = self.have.count() == 1 && self.have.prefix() == self.data.len() as u64;
        if whole && self.data.len() >= self.data.capacity() / 2 {
            piece(0, self.data);
            return;
        }
        for (start, end) in self.have.iter() {
            if let Some(bytes) = self.data.get(start as usize..end as usize) {
                piece(start, pool.exact(bytes));
            }
        }
        pool.take_back(self.data);
    }
}
