//! Bytes of objects on their way to the owner's disk: gathered into blocks, then ready, in order,
//! then with the owner.

use super::object::{Block, InObject};
use super::owner_events::{Arrival, WriteRequest};
use super::pool::Pool;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use byway_wire::ObjectId;

/// An item that waits for the owner's disk.
#[derive(Debug)]
pub(super) enum DiskEvent {
    Write(WriteRequest),
    Length(Arrival),
    Complete { id: ObjectId, size: u64 },
}

/// Bytes of objects that wait for the disk. Incomplete blocks are stored in their objects.
#[derive(Debug)]
pub(super) struct WriteCoalescer {
    pool: Pool,
    /// Incomplete blocks, in the order in which they were begun.
    open: BTreeMap<u64, (ObjectId, u64)>,
    serial: u64,
    /// Bytes of data in open blocks, and bytes of the blocks' buffers.
    gathered: u64,
    gathering: usize,
    ready: VecDeque<DiskEvent>,
    /// Bytes that the owner is writing.
    with_owner: u64,
}

impl WriteCoalescer {
    /// For a window of `memory` bytes.
    pub fn new(memory: usize) -> Self {
        Self {
            pool: Pool::new((memory / 64).clamp(1 << 10, 128 << 10), memory),
            open: BTreeMap::new(),
            serial: 0,
            gathered: 0,
            gathering: 0,
            ready: VecDeque::new(),
            with_owner: 0,
        }
    }

    /// Sets the window, which bounds the memory for buffers.
    pub fn set_window(&mut self, memory: usize) {
        self.pool.set_budget(memory);
    }

    /// Bytes of memory that data take.
    pub const fn memory(&self) -> usize {
        self.pool.memory()
    }

    /// Copies new bytes of an object into its blocks.
    pub fn keep(&mut self, id: ObjectId, object: &mut InObject, mut start: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let Some((first, block)) = object.block_at(start) else {
                let end = object.block_end(start, self.pool.block() as u64);
                if let Some(buffer) = self.pool.ahead((end - start) as usize) {
                    self.gathering += buffer.capacity();
                    self.serial += 1;
                    self.open.insert(self.serial, (id, start));
                    object.blocks.insert(start, Block::new(end, self.serial, buffer));
                } else {
                    // No memory ahead of the bytes: they go to the disk as they came.
                    let (now, later) = bytes.split_at(bytes.len().min((end - start) as usize));
                    let data = self.pool.exact(now);
                    self.ready.push_back(DiskEvent::Write(WriteRequest { object: id, offset: start, data }));
                    (start, bytes) = (start + now.len() as u64, later);
                }
                continue;
            };
            let (now, later) = bytes.split_at(bytes.len().min((block.end - start) as usize));
            block.put((start - first) as usize, now);
            self.gathered += now.len() as u64;
            (start, bytes) = (start + now.len() as u64, later);
            if first + block.filled == block.end
                && let Some(block) = object.blocks.remove(&first)
            {
                self.close(id, first, block);
            }
        }
    }

    /// Keeps an object that fits into one frame, as small files do.
    pub fn keep_whole(&mut self, id: ObjectId, bytes: &[u8]) {
        let data = self.pool.exact(bytes);
        self.ready.push_back(DiskEvent::Write(WriteRequest { object: id, offset: 0, data }));
    }

    /// Notes new bytes of an object that is only a length. Consecutive bytes are reported together.
    pub fn count(&mut self, object: ObjectId, start: u64, end: u64) {
        match self.ready.back_mut() {
            Some(DiskEvent::Length(last)) if last.object == object && last.offset + last.length == start => {
                last.length += end - start;
            }
            _ if end > start => {
                self.ready.push_back(DiskEvent::Length(Arrival {
                    object,
                    offset: start,
                    length: end - start,
                }));
            }
            _ => {}
        }
    }

    /// Notes that all of an object is received and handed over.
    pub fn complete(&mut self, id: ObjectId, size: u64) {
        self.ready.push_back(DiskEvent::Complete { id, size });
    }

    /// Closes a block that was already removed from its object, and hands out its data.
    pub fn close(&mut self, id: ObjectId, start: u64, block: Block) {
        self.open.remove(&block.serial);
        self.gathered -= block.filled;
        self.gathering -= block.data.capacity();
        let Self { pool, ready, .. } = self;
        block.close(pool, |at, data| {
            ready.push_back(DiskEvent::Write(WriteRequest { object: id, offset: start + at, data }));
        });
    }

    /// Takes the block that was opened first out of the order: whose it is, and where it begins.
    pub fn take_oldest(&mut self) -> Option<(ObjectId, u64)> {
        self.open.pop_first().map(|(_, block)| block)
    }

    /// Whether partly filled blocks are too many: their bytes exceed a quarter of `memory`, or
    /// their allocated buffers exceed half. Then the caller writes the oldest block. Otherwise such
    /// blocks could fill the flow control window, and the sender could not send the missing bytes.
    pub const fn is_too_much(&self, memory: usize) -> bool {
        let most = memory / 2;
        self.gathered > most as u64 / 2 || self.gathering > most
    }

    /// The next item for the owner.
    pub fn next(&mut self) -> Option<DiskEvent> {
        let next = self.ready.pop_front()?;
        if let DiskEvent::Write(write) = &next {
            self.with_owner += write.data.len() as u64;
        }
        Some(next)
    }

    /// Returns the next complete object, if no write waits before it.
    pub fn next_complete(&mut self) -> Option<(ObjectId, u64)> {
        let Some(&DiskEvent::Complete { id, size }) = self.ready.front() else { return None };
        self.ready.pop_front();
        Some((id, size))
    }

    /// Takes a written buffer back from the owner. Returns how many bytes it held.
    pub fn written(&mut self, buffer: Vec<u8>) -> u64 {
        let amount = (buffer.len() as u64).min(self.with_owner);
        self.with_owner -= amount;
        self.pool.take_back(buffer);
        amount
    }

    /// Drops the gathered and ready data of an object. Returns the number of bytes dropped.
    pub fn forget(&mut self, id: ObjectId, blocks: BTreeMap<u64, Block>) -> u64 {
        let mut dropped = 0;
        for block in blocks.into_values() {
            self.open.remove(&block.serial);
            self.gathered -= block.filled;
            self.gathering -= block.data.capacity();
            dropped += block.filled;
            self.pool.take_back(block.data);
        }
        let pool = &mut self.pool;
        self.ready.retain_mut(|ready| match ready {
            DiskEvent::Write(write) if write.object == id => {
                dropped += write.data.len() as u64;
                pool.take_back(core::mem::take(&mut write.data));
                false
            }
            DiskEvent::Length(arrival) if arrival.object == id => {
                dropped += arrival.length;
                false
            }
            _ => true,
        });
        dropped
    }
}
